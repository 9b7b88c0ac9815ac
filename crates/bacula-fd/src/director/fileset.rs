//! The `fileset` command: its lines, and the lists of names that stand on this host
//! (reference 03 §1).

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use fd_fileset::{
    LineError, ListFailure, ListKind, ListRequest, Parser, Reaction, Regex, RegexCompiler, texts as fileset_texts,
};
use fd_messages::MessageType;
use fd_os::io_error_text;
use fd_os::regex::RegexOptions;
use fd_session::texts;
use fd_transport::{IDLE_LIMIT, Received};
use nix::fcntl::OFlag;

use super::conversation::{Conversation, Flow};
use crate::job::matcher::Matcher;
use crate::job::program::{self, NotRun};
use crate::texts::NO_PROGRAM;
use fd_os::process::{Group, IsWanted, Program, Watched, is_unwanted};

/// How long a list that is a FIFO may be without a writer.
const WRITER_TIMEOUT: Duration = Duration::from_secs(600);

/// Why a list is not whole.
enum ListEnd {
    /// The operator is told.
    Told(LineError),
    /// The job was canceled, or its Director has gone.
    Unwanted,
}

impl From<LineError> for ListEnd {
    fn from(error: LineError) -> Self {
        Self::Told(error)
    }
}

impl Conversation<'_> {
    /// Reads the lines up to a signal. A bad FileSet gets no reply: the command loop just ends.
    pub(super) fn read_fileset(&mut self, snapshot: bool) -> Flow {
        self.snapshot = snapshot;
        if self.fileset.is_some() {
            return Flow::End;
        }
        let (job, director) = (self.job(), self.channel.canceller());
        // A plugin that is not there has failed the job; the lines behind it are told all the same.
        let aborts = job.aborts();
        let is_canceled = || job.aborts() != aborts;
        let wanted = || !is_canceled() && !director.peer_has_left();
        let compiler = PosixCompiler { matcher: Matcher::new(Arc::clone(&job)), wanted: &wanted };
        let mut parser = Parser::new(&compiler);
        if self.daemon.config().file_daemon.plugin_directory.is_none() {
            parser = parser.without_plugins();
        }
        loop {
            let line = match self.channel.recv(IDLE_LIMIT) {
                Ok(Received::Data(line)) => line.to_vec(),
                Ok(Received::Empty) => Vec::new(),
                Ok(Received::Signal(_)) => break,
                Err(error) => {
                    tracing::debug!(%error, "the FileSet broke off");
                    return Flow::End;
                }
            };
            let done = match parser.line(&line) {
                Ok(Reaction::Accepted) => Ok(()),
                Ok(Reaction::UnknownLetters(letters)) => {
                    for letter in letters {
                        self.say(MessageType::Error, &fileset_texts::unknown_letter(letter));
                    }
                    Ok(())
                }
                Ok(Reaction::List(request)) => match self.read_list(&mut parser, &request, &wanted) {
                    Ok(()) => Ok(()),
                    Err(ListEnd::Told(error)) => Err(error),
                    Err(ListEnd::Unwanted) => return Flow::End,
                },
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                if is_canceled() {
                    return Flow::End;
                }
                self.say(MessageType::Fatal, &error.text());
            }
        }
        match parser.finish() {
            Ok(fileset) => {
                self.fileset = Some(Arc::new(fileset));
                self.reply(texts::OK_INCLUDE);
                Flow::GoOn
            }
            Err(error) => {
                tracing::debug!(%error, "a FileSet was refused");
                Flow::End
            }
        }
    }

    fn read_list(
        &mut self,
        parser: &mut Parser<'_>,
        request: &ListRequest,
        wanted: IsWanted<'_>,
    ) -> Result<(), ListEnd> {
        match request.kind {
            ListKind::File => read_list_file(parser, request, wanted),
            ListKind::Program => self.run_list_program(parser, request, wanted),
        }
    }

    fn run_list_program(
        &mut self,
        parser: &mut Parser<'_>,
        request: &ListRequest,
        wanted: IsWanted<'_>,
    ) -> Result<(), ListEnd> {
        let command = self.expanded(&request.argument);
        let cannot_start = |error: &str| ListFailure::CannotStart { error: error.to_owned() };
        let started = match program::prepare(&command, &self.resource.allowed_script_directories) {
            // Whatever ends the reading ends the program, too.
            Ok(mut process) => Program::start(process.stdin(Stdio::null()).stdout(Stdio::piped()), Group::Ends),
            Err(NotRun::Exec(error)) => Err(error),
            Err(NotRun::Refused(refused)) => return Ok(parser.list_failed(cannot_start(&refused.to_string()))?),
            Err(NotRun::Empty) => return Ok(parser.list_failed(cannot_start(NO_PROGRAM))?),
        };
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                let status = program::exec_status(&error);
                let error = io_error_text(&error);
                return Ok(parser.list_failed(ListFailure::Status { status, error })?);
            }
        };
        if let Some(output) = child.take_output() {
            feed(parser, Watched::new(output, wanted))?;
        }
        let ended = child.wait(wanted);
        if !wanted() {
            return Err(ListEnd::Unwanted);
        }
        match ended {
            Ok(status) if status.success() => parser.list_end()?,
            Ok(status) => {
                let number = status.code().or_else(|| status.signal()).unwrap_or(-1);
                parser.list_failed(ListFailure::Status { status: number, error: program::describe(status) })?;
            }
            Err(error) => {
                parser.list_failed(ListFailure::Status { status: -1, error: io_error_text(&error) })?;
            }
        }
        Ok(())
    }
}

/// A list that is a FIFO is read to its end, whenever its writer comes.
fn read_list_file(parser: &mut Parser<'_>, request: &ListRequest, wanted: IsWanted<'_>) -> Result<(), ListEnd> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlag::O_NONBLOCK.bits());
    match options.open(OsStr::from_bytes(&request.argument)) {
        Ok(file) => {
            feed(parser, Watched::new(file, wanted).with_patience(WRITER_TIMEOUT))?;
            parser.list_end()?;
        }
        Err(error) => parser.list_failed(ListFailure::CannotStart { error: io_error_text(&error) })?,
    }
    Ok(())
}

/// Gives the parser all of a list. The caller decides whether that is a good end.
fn feed(parser: &mut Parser<'_>, mut list: impl Read) -> Result<(), ListEnd> {
    let mut buffer = [0; 4096];
    loop {
        match list.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => parser.list_data(buffer.get(..n).unwrap_or(&[]))?,
            Err(error) if is_unwanted(&error) => return Err(ListEnd::Unwanted),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let error = io_error_text(&error);
                return Ok(parser.list_failed(ListFailure::CannotStart { error })?);
            }
        }
    }
}

/// The C library's regular expressions, with the FileSet's options.
struct PosixCompiler<'w> {
    matcher: Arc<Matcher>,
    wanted: IsWanted<'w>,
}

impl RegexCompiler for PosixCompiler<'_> {
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String> {
        let options = RegexOptions { ignore_case, newline: false };
        Ok(Box::new(self.matcher.compile(pattern, options, self.wanted)?))
    }
}
