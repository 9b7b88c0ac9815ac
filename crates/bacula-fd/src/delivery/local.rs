//! Messages that stay on this host: standard output, files, mail, the operator, the system's log.
//!
//! Not here: messages to the Director, which the session that serves it sends.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fd_config::{Destination, DestinationKind, Messages};
use fd_messages::MessageType;
use nix::errno::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::delivery::programs::{Content, ProgramQueue, ProgramRun};
use crate::delivery::writer::Writer;
use crate::print::message_as_json;
use crate::security::own_file::{self, Writing};
use crate::{clock, texts};

/// Of new files: that of the daemon's other files, whatever the umask leaves to others.
const MODE: u32 = 0o640;

/// A command with its codes replaced: of the command, and of the recipients.
pub(crate) type Expand<'e> = dyn Fn(&[u8], &[u8]) -> Vec<u8> + 'e;

/// The local destinations of the daemon's Messages resource, with the files that are open.
#[derive(Debug)]
pub(crate) struct LocalDestinations {
    messages: Messages,
    /// The daemon's name, for mail.
    name: String,
    /// Where mail waits.
    working_directory: PathBuf,
    open: HashMap<Vec<u8>, File>,
    /// Mail that waits, by its place among the destinations, in files without a name.
    mail: HashMap<usize, File>,
    programs: ProgramQueue,
}

impl LocalDestinations {
    /// For this resource of the daemon of this name; nothing is opened yet.
    pub(crate) fn new(messages: Messages, name: &str, working_directory: PathBuf) -> Self {
        Self {
            messages,
            name: name.to_owned(),
            working_directory,
            open: HashMap::new(),
            mail: HashMap::new(),
            programs: ProgramQueue::default(),
        }
    }

    /// Writes a line of this type number to every local destination that takes it. `time` in
    /// seconds since 1970; `job` replaces the codes of an operator's command where the line is that
    /// of a job (reference 06 §7.8).
    pub(crate) fn deliver(&mut self, type_number: u8, time: i64, line: &[u8], job: Option<&Expand<'_>>) {
        let date = if is_listing(type_number, line) { String::new() } else { format!("{} ", clock::short_date(time)) };
        let dated = [date.as_bytes(), line].concat();
        let takers: Vec<(usize, Destination)> = (0..)
            .zip(&self.messages.destinations)
            .filter(|(_, destination)| destination.types.contains(type_number))
            .map(|(place, destination)| (place, destination.clone()))
            .collect();
        let is_of_host =
            |kind| matches!(kind, DestinationKind::Stdout | DestinationKind::Stderr | DestinationKind::Syslog);
        let is_told =
            takers.iter().any(|(_, taker)| is_of_host(taker.kind)) && message_as_json(level(type_number), line);
        for (place, destination) in takers {
            let delivered = match destination.kind {
                // Once, however many of them there are.
                kind if is_told && is_of_host(kind) => Ok(()),
                // Whoever aborts has printed it (reference 06 §7.5).
                DestinationKind::Stdout if type_number == MessageType::Abort.number() => Ok(()),
                DestinationKind::Stdout => write_all(&mut io::stdout().lock(), &dated),
                DestinationKind::Stderr => write_all(&mut io::stderr().lock(), &dated),
                DestinationKind::Syslog => syslog(type_number, line),
                DestinationKind::Append | DestinationKind::File => self.append(&destination, &dated),
                DestinationKind::Mail | DestinationKind::MailOnError | DestinationKind::MailOnSuccess => {
                    self.spool(place, &dated)
                }
                DestinationKind::Operator => self.tell_operator(&destination, dated.clone(), job),
                DestinationKind::Director | DestinationKind::Console | DestinationKind::Catalog => Ok(()),
            };
            if let Err(error) = counted(delivered) {
                undelivered(&self.failure(&destination, &error));
            }
        }
    }

    /// Says how many texts were lost because their reader did not read.
    pub(crate) fn deliver_lost(&mut self, lost: u64) {
        let line = texts::daemon_line(&self.name, MessageType::Warning, "", &texts::texts_lost(lost));
        self.deliver(MessageType::Warning.number(), clock::seconds(), &line, None);
    }

    /// A session ended: files are closed, and the next message opens them anew (log rotation,
    /// reference 06 §7.9); mail is sent.
    pub(crate) fn close(&mut self) {
        self.open.clear();
        for (place, file) in std::mem::take(&mut self.mail) {
            let destination = self.messages.destinations.get(place).cloned();
            // Nothing here has a job, so nothing here is a success (reference 06 §7.8).
            let wanted = destination.filter(|destination| destination.kind != DestinationKind::MailOnSuccess);
            let Some(destination) = wanted else { continue };
            let (head, command) = match &destination.command {
                Some(command) => (Vec::new(), self.expanded(command, &destination.place)),
                None => (texts::MAIL_HEAD.to_vec(), texts::default_mail_command(&destination.place)),
            };
            // That mail can't be sent is not reported, as in the stock daemon: there is no other
            // way to say it.
            let run = ProgramRun { command, content: Content::File(head, file), failed: |_, _| {} };
            if !self.programs.send(run) {
                undelivered(texts::TOO_MANY_MESSAGES);
            }
        }
    }

    /// The daemon ends: closes everything and waits until the mail is on its way.
    pub(crate) fn finish(&mut self) {
        self.close();
        self.programs.finish();
    }

    /// What is told of a destination that does not take a message (reference 06 §7.7).
    fn failure(&self, destination: &Destination, error: &io::Error) -> String {
        let reason = fd_os::io_error_text(error);
        match destination.kind {
            DestinationKind::Mail | DestinationKind::MailOnError | DestinationKind::MailOnSuccess => {
                texts::mail_not_spooled(&self.spool_file(), &reason)
            }
            DestinationKind::Stdout => texts::not_written("standard output", &reason),
            DestinationKind::Stderr => texts::not_written("standard error", &reason),
            DestinationKind::Syslog => texts::not_written("the host's log", &reason),
            DestinationKind::Operator => reason,
            _ => texts::open_failed(&String::from_utf8_lossy(&destination.place), &reason),
        }
    }

    /// Where mail waits for a moment. The stock daemon's name has the daemon's twice, which a long
    /// one leaves no room for.
    fn spool_file(&self) -> PathBuf {
        self.working_directory.join(format!("{}.1.mail", self.name))
    }

    fn spool(&mut self, place: usize, dated: &[u8]) -> io::Result<()> {
        if let Some(file) = self.mail.get_mut(&place) {
            return file.write_all(dated);
        }
        let path = self.spool_file();
        let mut file = own_file::create(&path, 0o600)?;
        // A daemon that is killed leaves no mail behind. What can't be removed is replaced by the
        // next one.
        let _left_behind = std::fs::remove_file(&path);
        file.write_all(dated)?;
        self.mail.insert(place, file);
        Ok(())
    }

    fn tell_operator(&mut self, destination: &Destination, dated: Vec<u8>, job: Option<&Expand<'_>>) -> io::Result<()> {
        let (head, command) = match (&destination.command, job) {
            (Some(command), Some(expand)) => (Vec::new(), expand(command, &destination.place)),
            (Some(command), None) => (Vec::new(), self.expanded(command, &destination.place)),
            (None, _) => (texts::MAIL_HEAD.to_vec(), texts::default_mail_command(&destination.place)),
        };
        let run = ProgramRun {
            command,
            content: Content::Bytes([head, dated].concat()),
            failed: |command, why| undelivered(&texts::operator_failed(command, why)),
        };
        if self.programs.send(run) { Ok(()) } else { Err(io::Error::other(texts::TOO_MANY_MESSAGES)) }
    }

    fn expanded(&self, command: &[u8], recipients: &[u8]) -> Vec<u8> {
        texts::expand_without_job(command, self.name.as_bytes(), recipients, std::process::id())
    }

    fn append(&mut self, destination: &Destination, dated: &[u8]) -> io::Result<()> {
        if let Some(file) = self.open.get_mut(&destination.place) {
            if file.write_all(dated).is_ok() {
                return Ok(());
            }
            self.open.remove(&destination.place);
        }
        let writing = if destination.kind == DestinationKind::Append { Writing::Append } else { Writing::Anew };
        let mut file = own_file::open_output(Path::new(OsStr::from_bytes(&destination.place)), writing, MODE)?;
        file.write_all(dated)?;
        self.open.insert(destination.place.clone(), file);
        Ok(())
    }
}

/// Whether a line is one of a list of files, which carry no date: the file itself, as `ls` would
/// show it, or why it was left out, indented by five blanks behind the head (reference 06 §7.5).
/// What a backup could not save has its date; it differs from what a verify could not look at by
/// the quotes around the path.
fn is_listing(type_number: u8, line: &[u8]) -> bool {
    let is = |kind: MessageType| type_number == kind.number();
    is(MessageType::Saved)
        || is(MessageType::Restored)
        || ((is(MessageType::Skipped)
            || is(MessageType::Info)
            || (is(MessageType::NotSaved) && !has_quoted_path(line)))
            && text_of(line).starts_with(b"     "))
}

/// What stands behind the head of a job's line, `NAME JobId N: `.
fn text_of(line: &[u8]) -> &[u8] {
    behind(behind(line, b" JobId "), b": ")
}

/// What stands behind the first place that has this text.
fn behind<'l>(line: &'l [u8], text: &[u8]) -> &'l [u8] {
    let found = line.windows(text.len()).position(|window| window == text);
    found.and_then(|at| line.get(at + text.len()..)).unwrap_or_default()
}

/// Whether the first path of a line is quoted; it may have no slash, or a quote in it.
fn has_quoted_path(line: &[u8]) -> bool {
    let before = line.split(|byte| *byte == b'/').next().unwrap_or_default();
    before.ends_with(b"\"") || before.windows(2).any(|bytes| bytes == b" \"")
}

/// Says on standard output and in the system's log that a message did not reach its destination.
fn undelivered(what: &str) {
    let said = texts::delivery_error(what);
    if message_as_json(level(MessageType::ErrorTerm.number()), said.as_bytes()) {
        return;
    }
    let said = format!("{}  {said}", clock::short_date(clock::seconds()));
    // There is no further place to report to.
    let _undeliverable = write_all(&mut io::stdout().lock(), said.as_bytes());
    let _undeliverable = syslog(MessageType::ErrorTerm.number(), said.as_bytes());
}

/// There is nothing to be said where nothing is read: what is lost there is counted.
fn counted(delivered: io::Result<()>) -> io::Result<()> {
    delivered.or_else(|error| {
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(error);
        }
        Writer::of_the_process().lose();
        Ok(())
    })
}

fn write_all(out: &mut dyn Write, text: &[u8]) -> io::Result<()> {
    out.write_all(text)?;
    out.flush()
}

/// The level of a message's type in the daemon's log.
const fn level(type_number: u8) -> &'static str {
    match type_number {
        1 | 4 | 5 | 12 | 15 => "ERROR",
        6 | 9 | 16 => "WARN",
        2 => "DEBUG",
        _ => "INFO",
    }
}

/// Facility daemon; priority by type; one datagram a line (reference 06 §7.5). A host without a log
/// daemon is no error. Where the log daemon does not read, the text is lost and counted. For the
/// writer's thread only: that is waited for.
///
/// # Errors
/// The system's.
fn syslog(type_number: u8, text: &[u8]) -> io::Result<()> {
    counted(syslog_at(Path::new(LOG), type_number, priority(type_number), text))
}

/// The same for what belongs to no job: an error, whatever its type is (reference 06 §5.5, §7.6).
///
/// # Errors
/// The system's.
pub(crate) fn syslog_of_daemon(type_number: u8, text: &[u8]) -> io::Result<()> {
    counted(syslog_at(Path::new(LOG), type_number, ERROR, text))
}

/// Where the log daemon listens.
const LOG: &str = "/dev/log";
/// Its priority of errors.
const ERROR: u8 = 3;

/// Its priority of a message's type.
const fn priority(type_number: u8) -> u8 {
    match type_number {
        1 | 12 => ERROR,
        4 | 5 | 6 | 15 => 5,
        _ => 6,
    }
}

/// The log daemon did not read the last time.
static LOG_STANDS: AtomicBool = AtomicBool::new(false);

fn syslog_at(place: &Path, type_number: u8, priority: u8, text: &[u8]) -> io::Result<()> {
    const DAEMON: u8 = 3 << 3;
    const PATIENCE: Duration = Duration::from_secs(1);
    if message_as_json(level(type_number), text) {
        return Ok(());
    }
    let Some((socket, end)) = connect_log(place)? else { return Ok(()) };
    socket.set_nonblocking(LOG_STANDS.load(Ordering::Relaxed))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        for piece in line.chunks(1023) {
            let head = format!("<{}>bacula-fd: ", DAEMON | priority);
            let sent = (&socket).write_all(&[head.as_bytes(), piece, end].concat());
            LOG_STANDS.store(sent.is_err(), Ordering::Relaxed);
            sent?;
        }
    }
    Ok(())
}

/// The log daemon's socket, and what ends a text there; `None` if there is no log daemon. Some have
/// a socket for streams, in which a NUL ends each text.
fn connect_log(place: &Path) -> io::Result<Option<(Socket, &'static [u8])>> {
    let address = SockAddr::unix(place)?;
    for (kind, end) in [(Type::DGRAM, &b""[..]), (Type::STREAM, b"\0")] {
        let socket = Socket::new(Domain::UNIX, kind, None)?;
        // A stream's would wait while the log daemon accepts no connection.
        socket.set_nonblocking(true)?;
        match socket.connect(&address) {
            Ok(()) => return Ok(Some((socket, end))),
            Err(error) if error.raw_os_error() == Some(Errno::EPROTOTYPE as i32) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
            Err(_there_is_none) => break,
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
