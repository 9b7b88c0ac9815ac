//! The texts of the program: its own, the heads and frames of messages (reference 01 §16.2, 06
//! §7.4), and what it says to a Director or a Storage Daemon beside the dialogues of `fd-session`,
//! word for word (reference 01 §20, 02 §3 and §16).
//!
//! A reply is one frame. A message text begins with the stock daemon's `file.c:line ` where it has
//! one, because site scripts match it, and ends with its newline.

use std::fmt::{Display, Write as _};
use std::net::{Ipv6Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use fd_bsock::scan::bash_spaces;
use fd_fileset::ProgramNotAllowed;
use fd_messages::{MessageType, Stage, StageTimes, one_line, shown};
use fd_session::authenticate::AuthError;
use fd_session::command::{MetricFormat, NamedSnapshot, SetDebug};
use fd_session::storage::StorageError;
use fd_session::texts::Quote;
use nix::sys::signal::Signal;

/// What `bfdjson -?` and every mistake print on standard error.
pub(crate) const JSON_USAGE: &str = concat!(
    "ferrofd ",
    env!("CARGO_PKG_VERSION"),
    ", an independent program that works as this one of Bacula:

Version: 15.0.3 (25 March 2025)

Usage: bfdjson [options] [config_file]
        -r <res>    get resource type <res>
        -n <name>   get resource <name>
        -l <dirs>   get only directives matching dirs (use with -r)
        -D          get only data
        -c <file>   use <file> as configuration file
        -d <nn>     set debug level to <nn>
        -dt         print a timestamp in debug output
        -t          test configuration file and exit
        -v          verbose user messages
        -?          print this message.

"
);

/// What `check_ferrofd -h` and every mistake print.
pub(crate) const CHECK_USAGE: &str = concat!(
    "check_ferrofd ",
    env!("CARGO_PKG_VERSION"),
    ": whether the backups of a host are well, by the metrics of its File Daemon

Usage: check_ferrofd [-H HOST] [-p PORT] [-w HOURS] [-c HOURS] [-n NAME] [-t SECONDS]
        -H <host>     where the metrics are (127.0.0.1)
        -p <port>     their port (19102)
        -w <hours>    warning if the last good backup is so old (26)
        -c <hours>    critical if it is so old (50)
        -n <name>     only backups of this name
        -t <seconds>  how long the answer may take (10)
        -h            print this message

"
);

/// What `check_ferrofd` asks a daemon.
pub(crate) const REQUEST_FOR_METRICS: &str = "GET /metrics HTTP/1.0\r\n\r\n";

/// `check_ferrofd` gets no answer.
pub(crate) fn no_metrics_at(host: &str, port: u16, error: &std::io::Error) -> String {
    format!("no metrics of ferrofd at {host}:{port}: {error}")
}

/// `check_ferrofd` gets an answer of something else.
pub(crate) fn other_answer(host: &str, port: u16) -> String {
    format!("what answers at {host}:{port} has no metrics of ferrofd")
}

/// The newest of the backups that ended well.
pub(crate) fn last_good_backup(name: &str, hours: i64) -> String {
    format!("the last good backup, {name}, ended {hours} hours ago")
}

/// None of them has ended well since the daemon's start.
pub(crate) fn no_good_backup(name: Option<&str>, hours: i64) -> String {
    let of = name.map_or_else(String::new, |name| format!(" {name}"));
    format!("no backup{of} has ended well since the daemon began {hours} hours ago")
}

/// The last backup of a name did not end well.
pub(crate) fn last_backup_failed(name: &str, is_canceled: bool) -> String {
    let what = if is_canceled { "was canceled" } else { "failed" };
    format!("the last backup {name} {what}")
}

/// The last backup of a name had so many of these.
pub(crate) fn last_backup_had(name: &str, count: i64, what: &str) -> String {
    format!("the last backup {name} had {count} {what}")
}

/// A certificate of TLS ends soon, or has ended: then the number is below 0.
pub(crate) fn certificate_ends(resource: &str, name: &str, days: i64) -> String {
    if days < 0 {
        format!("a certificate of {resource} {name} ended {} days ago", -days)
    } else {
        format!("a certificate of {resource} {name} ends in {days} days")
    }
}

/// One tag of `-d LEVEL,TAGS`; `before` are the bits so far.
pub(crate) fn debug_tag(add: bool, tag: &[u8], before: u32) -> Vec<u8> {
    let words = format!(" level={before}\n");
    [format!("bacula-fd: message.c:2024-0 add={} tag=", u8::from(add)).as_bytes(), tag, words.as_bytes()].concat()
}

/// A character that belongs to no tag.
pub(crate) fn debug_tags_end(stray: u8) -> Vec<u8> {
    [b"bacula-fd: message.c:2112-0 invalid ".as_slice(), &[stray], b"\n"].concat()
}

/// An expression for `bfdjson -l` that is none.
pub(crate) fn bad_directives(expression: &[u8]) -> Vec<u8> {
    [b"Please use valid -l argument: ", expression, b"\n"].concat()
}

/// Warning while an address is taken, or the end of the tries.
pub(crate) fn cannot_bind(port: u16, error: &str, retrying: bool) -> Vec<u8> {
    let tail = if retrying { ": Retrying ..." } else { "." };
    format!("Cannot bind port {port}: ERR={error}{tail}\n").into_bytes()
}

/// The last word of a daemon that a signal ends.
pub(crate) fn shutting_down(daemon: &str) -> Vec<u8> {
    format!("Shutting down Bacula service: {daemon} ...\n").into_bytes()
}

/// After SIGHUP.
pub(crate) const CERTIFICATES_READ_AGAIN: &str = "TLS certificates were read again, for connections from now on.";

/// After SIGHUP, if a file can't be used.
pub(crate) fn certificates_kept(problem: &impl Display) -> String {
    format!(
        "TLS certificates can't be read again, and those from before stay in use: {problem}. bacula-fd --diagnose names the file."
    )
}

/// The system does not let the daemon go to the background.
pub(crate) fn no_background(error: &str) -> String {
    format!("bacula-fd: cannot go to the background: {error}\n")
}

/// The system does not let the daemon take its signals.
pub(crate) fn no_signals(error: &str) -> String {
    format!("bacula-fd: cannot take signals: {error}\n")
}

/// `-u` with a name that does not exist, or can't be looked up.
pub(crate) fn no_user(user: &str, why: &str) -> String {
    format!("Could not find userid={user}: ERR={why}")
}

/// The user of the process has no entry.
pub(crate) fn no_password_entry(why: &str) -> String {
    format!("Could not find password entry. ERR={why}")
}

/// `-g` with a name that does not exist, or can't be looked up.
pub(crate) fn no_group(group: &str, why: &str) -> String {
    format!("Could not find group={group}: ERR={why}")
}

/// The supplementary groups can't be set; `group` is that of `-g`.
pub(crate) fn no_initgroups(group: Option<&str>, user: &str, why: &str) -> String {
    let group = group.map(|group| format!("group={group}, ")).unwrap_or_default();
    format!("Could not initgroups for {group}userid={user}: ERR={why}")
}

/// The group can't be set.
pub(crate) fn group_not_set(group: &str, why: &str) -> String {
    format!("Could not set group={group}: ERR={why}")
}

/// The user can't be set.
pub(crate) fn user_not_set(user: &str) -> String {
    format!("Could not set specified userid: {user}")
}

/// A call that keeps a capability failed.
pub(crate) fn call_failed(call: &str, why: &str) -> String {
    format!("{call} failed: ERR={why}")
}

/// What `-?` and every mistake print on standard error.
pub(crate) const USAGE: &str = concat!(
    "ferrofd ",
    env!("CARGO_PKG_VERSION"),
    ", an independent File Daemon that works as this one of Bacula:

Version: 15.0.3 (25 March 2025)

Usage: bacula-fd [-f -s] [-c config_file] [-d debug_level]
       bacula-fd --diagnose [--json] [--storage HOST[:PORT]] [-c config_file]
     --diagnose       look at everything that the daemon needs, see bacula-fd(8)
     -c <file>        use <file> as configuration file
     -d <n>[,<tags>]  set debug level to <nn>, debug tags to <tags>
     -dt              print a timestamp in debug output
     -f               run in foreground (for debugging)
     -g               groupid
     -k               keep readall capabilities
     -m               print kaboom output (for debugging)
     -P               do not create pid file
     -s               no signals (for debugging)
     -t               test configuration file and exit
     -T               set trace on
     -u               userid
     -v               verbose user messages
     -?               print this message.

"
);

/// What could not be done with a certificate's file, in the stock daemon's words.
pub(crate) const OPEN_CERTIFICATE: &str = "Unable to open certificate file";
/// What could not be done with a private key's file, in the stock daemon's words.
pub(crate) const OPEN_PRIVATE_KEY: &str = "Unable to open private key file";
/// What OpenSSL adds where there is no file.
pub(crate) const BIO_NO_SUCH_FILE: &str = "error:10000080:BIO routines::no such file";
/// What OpenSSL adds where the system had another reason.
pub(crate) const BIO_SYSTEM: &str = "error:10080002:BIO routines::system lib";

/// An error of the system as OpenSSL writes it.
pub(crate) fn openssl_system_error(number: i32, words: &str) -> String {
    format!("error:{:08X}:system library::{words}", 0x8000_0000_u32 | number.unsigned_abs())
}

/// A key file can't be opened.
pub(crate) fn unreadable_key_hint(file: &Path) -> String {
    format!("{}: the daemon reads it as root at its start; does it exist, and may root read it?", file.display())
}

/// A file holds no certificate.
pub(crate) fn certificate_hint(file: &Path) -> String {
    format!(
        "{}: must hold a certificate in PEM form (-----BEGIN CERTIFICATE-----); make key and certificate with: \
         umask 077; openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=NAME-fd -keyout fd.key -out fd.crt; \
         cat fd.crt fd.key > fd.pem",
        file.display()
    )
}

/// A file holds no private key that can be read.
pub(crate) fn private_key_hint(file: &Path) -> String {
    format!(
        "{}: must hold an RSA private key in PEM form without a pass phrase; umask 077; openssl rsa -in FILE \
         -out FILE.clear takes a pass phrase away",
        file.display()
    )
}

/// A certificate does not name its key.
pub(crate) fn key_id_hint(file: &Path) -> String {
    format!(
        "{}: make the certificate anew with -addext subjectKeyIdentifier=hash, or with openssl req -x509, which adds it",
        file.display()
    )
}

/// A certificate has a key that can't encrypt.
pub(crate) fn key_type_hint(file: &Path) -> String {
    format!("{}: PKI needs RSA keys; openssl req -x509 -newkey rsa:2048 makes one", file.display())
}

/// The plugins in a status. The line is wrapped behind each doubling of its length, as in the stock
/// daemon.
pub(crate) fn plugins(names: &[Vec<u8>]) -> String {
    let mut text = " Plugin: ".to_owned();
    let mut longest = 80_usize;
    for name in names {
        text.push_str(&String::from_utf8_lossy(name));
        if text.len() > longest {
            text.push_str("\n   ");
            longest = longest.saturating_mul(2);
        } else {
            text.push(' ');
        }
    }
    text.push('\n');
    text
}

/// A plugin whose settings can't be kept.
pub(crate) fn plugin_host_unusable(file: &[u8], why: &str) -> Vec<u8> {
    [b"Plugin ", file, b": it is not loaded: ", why.as_bytes(), b".\n"].concat()
}

/// A user that the settings name.
pub(crate) fn unknown_user(name: &str) -> String {
    format!("there is no user \"{name}\"")
}

/// A group that the settings name.
pub(crate) fn unknown_group(name: &str) -> String {
    format!("there is no group \"{name}\"")
}

/// Settings that no plugin has.
pub(crate) fn plugin_settings_unused(name: &str, plugins: &[&[u8]]) -> String {
    let names: Vec<_> = plugins.iter().map(|name| String::from_utf8_lossy(name)).collect();
    format!(
        "[plugins.settings.{name}] has no effect: there is no file {name}-fd.so in the Plugin Directory; plugins: {}\n",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    )
}

/// A plugin that has died in a job whose result depends on it.
pub(crate) fn plugin_died_in_job(file: &[u8]) -> Vec<u8> {
    [b"The job fails, because plugin ", file, b" has died in it: what the plugin would have done is missing.\n"]
        .concat()
}

/// There is no thread to load a plugin.
pub(crate) fn no_thread_for_plugin(error: &str) -> Vec<u8> {
    format!("A plugin is not loaded: {error}\n").into_bytes()
}

/// A plugin is there.
pub(crate) fn plugin_loaded(file: &[u8]) -> Vec<u8> {
    [b"Loaded plugin: ", file, b"\n"].concat()
}

/// The directory of the plugins can't be opened.
pub(crate) fn no_plugin_directory(daemon: &str, directory: &Path, error: &str) -> String {
    format!("{daemon} ERROR TERMINATION\nFailed to open Plugin directory {}: ERR={error}\n", directory.display())
}

/// Where the stock daemon says that a collector's file can't be opened.
pub(crate) const COLLECTOR_OPEN: &str = "bcollector.c:171";
/// Where it says that one can't be written.
pub(crate) const COLLECTOR_SAVE: &str = "bcollector.c:158";

/// A collector's file can't be opened.
pub(crate) fn collector_not_opened(file: &Path, error: &str) -> String {
    format!("Error opening collector data file: {} Err={error}", file.display())
}

/// A collector has no file.
pub(crate) fn no_collector_file() -> String {
    "Error opening collector data file: <NULL> Err=Bad address".to_owned()
}

/// A collector's file can't be written.
pub(crate) fn collector_not_saved(file: &Path, error: &str) -> String {
    format!("Error saving data file: {} Err={error}", file.display())
}

/// A Graphite server can't be reached.
pub(crate) fn no_graphite(host: Option<&str>, port: u16, error: &str) -> String {
    format!("Could not connect to {}:{port} Err={error}", host.unwrap_or("<NULL>"))
}

/// `bacula-fd.toml` is there and can't be read.
pub(crate) fn unreadable_settings(file: &str, error: &str) -> String {
    format!("{file}: cannot be read: {error}")
}

/// Settings and configuration contradict each other: no connection of this resource would ever be
/// good enough.
pub(crate) fn can_not_encrypt(file: &Path, kind: &str, name: &str) -> String {
    format!(
        "{}: tls.require is set, but {kind} \"{name}\" in the configuration is not encrypted from beginning to end: it has \
         \"TLS PSK Enable = no\" without \"TLS Enable = yes\", or \"TLS Authenticate = yes\"\n",
        file.display()
    )
}

/// `metrics.address` is where the daemon itself listens.
pub(crate) fn metrics_on_own_port(file: &Path, metrics: SocketAddr, own: SocketAddr) -> String {
    format!(
        "{}: metrics.address = \"{metrics}\" is the daemon's own port ({own}); give the metrics another one, such as \
         \"127.0.0.1:19102\"\n",
        file.display()
    )
}

/// What could not be done, and one thing that OpenSSL says about it.
pub(crate) fn step_failed(step: &str, error: &str) -> String {
    format!("{step}: ERR={error}")
}

/// Why a FileSet's `|` without a program can't be run, in the words of the system.
pub(crate) const NO_PROGRAM: &str = "No such file or directory";

/// Why a list of names is not read; ferrofd's own.
pub(crate) const LIST_IS_EXCLUDED: &str = "it is in the Excluded Backup Directories";

/// Why a list of plugin commands is not read; ferrofd's own.
pub(crate) const LIST_IS_NOT_ALLOWED: &str = "it is not in the Allowed Backup Directories";

/// Fatal: it can't be decided whether an expression matches. The stock daemon takes that for a no,
/// or never returns.
pub(crate) fn can_not_match(pattern: &[u8], text: &[u8], why: &str) -> Vec<u8> {
    one_line(&[b"REGEX ", pattern, b" can't be matched with ", text, b". ERR=", why.as_bytes(), b"\n"])
}

/// Why it can't.
pub(crate) fn took_too_long(limit: Duration) -> String {
    format!("It took more than {} seconds", limit.as_secs())
}

/// Why a heavy expression can't be compiled or matched: its process is missing.
pub(crate) fn no_guest(program: &Path, error: &str) -> String {
    format!("The process for it, {}, can't be started: {error}", program.display())
}

/// The same: its process was ended from outside.
pub(crate) fn guest_was_ended(signal: Signal) -> String {
    format!("The process for it was ended by {signal}, from outside or because the host has no memory left")
}

/// How a running backup spends its time, in the status, on demand. The stock daemon has no such
/// line.
pub(crate) fn stage_times(times: &StageTimes) -> String {
    let seconds = |stage| times.get(stage).as_secs_f64();
    format!(
        "    Seconds: reading={:.3} waiting for entries={:.3} for the sender={:.3} sending={:.3} waiting to send={:.3}\n",
        seconds(Stage::Read),
        seconds(Stage::WorkWaitsForEntries),
        seconds(Stage::WorkWaitsForSender),
        seconds(Stage::Send),
        seconds(Stage::SendWaits)
    )
}

/// What a running backup has given away to others, in the status, likewise. `None` if it is
/// nothing.
pub(crate) fn gave_way(times: &StageTimes, seconds: i64) -> Option<String> {
    let (gave_way, to) = times.gave_way_to()?;
    Some(format!("    Gave way {:.0} s of {seconds} s: {to} pressure\n", gave_way.as_secs_f64()))
}

/// How far a running job is, in the status, where that is known. The stock daemon has no such line.
pub(crate) fn estimate(percent: u8, seconds_left: Option<u64>) -> String {
    let left = match seconds_left {
        None => "unknown".to_owned(),
        Some(left) => format!("{}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60),
    };
    format!("    Estimate: Done={percent}% Left={left}\n")
}

/// The head of the HTTP answer.
pub(crate) fn http_head(status: &str, len: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    )
}

/// Longest line of a message, in bytes; the stock daemon's buffer holds one more.
const LINE_MAX: usize = 4999;

/// A job's line as the operator reads it: `<daemon> JobId <n>: Error: <text>`, cut at 4999 bytes.
pub(crate) fn job_line(daemon: &str, job_id: u32, kind: MessageType, text: &[u8]) -> Vec<u8> {
    let head = match kind {
        MessageType::Events => String::new(),
        MessageType::Abort => format!("{daemon} ABORTING via segfault due to ERROR\n"),
        MessageType::ErrorTerm => format!("{daemon} ERROR TERMINATION\n"),
        MessageType::Fatal => format!("{daemon} JobId {job_id}: Fatal error: "),
        MessageType::Error => format!("{daemon} JobId {job_id}: Error: "),
        MessageType::Warning => format!("{daemon} JobId {job_id}: Warning: "),
        MessageType::Security => format!("{daemon} JobId {job_id}: Security Alert: "),
        _ => format!("{daemon} JobId {job_id}: "),
    };
    let mut line = head.into_bytes();
    line.extend_from_slice(text);
    line.truncate(LINE_MAX);
    line
}

/// A daemon's line, outside jobs: `<daemon>: Security Alert: <text>`. `place` is `file.c:line` of
/// the stock daemon.
pub(crate) fn daemon_line(daemon: &str, kind: MessageType, place: &str, text: &[u8]) -> Vec<u8> {
    let head = match kind {
        MessageType::Abort => format!("{daemon}: ABORTING via segfault due to ERROR in {place}\n"),
        MessageType::ErrorTerm => format!("{daemon}: ERROR TERMINATION at {place}\n"),
        MessageType::Fatal => format!("{daemon}: Fatal Error at {place} because:\n"),
        MessageType::Error => format!("{daemon}: ERROR in {place} "),
        MessageType::Warning => format!("{daemon}: Warning: "),
        MessageType::Security => format!("{daemon}: Security Alert: "),
        _ => format!("{daemon}: "),
    };
    let mut line = head.into_bytes();
    line.extend_from_slice(text);
    line.truncate(LINE_MAX);
    line
}

/// The frame that carries a line to a Director; `time` in seconds since 1970 (reference 02 §6.1).
pub(crate) fn jmsg(job_id: u32, type_number: u8, time: i64, line: &[u8]) -> Vec<u8> {
    let mut frame = format!("Jmsg JobId={job_id} type={type_number} level={time} ").into_bytes();
    frame.extend_from_slice(line);
    frame
}

/// The text before a daemon message that came several times.
pub(crate) fn repeated(times: u32) -> String {
    format!("Message repeated {times} times: ")
}

/// An event as a message (reference 06 §9): no name and no job before it. `kind` is `connection`,
/// `command`, `job`, `daemon` or `security`, `reference` any number that stays the same for one
/// session.
pub(crate) fn event(code: &str, daemon: &str, reference: u64, kind: &str, source: &str, text: &str) -> Vec<u8> {
    let bashed = |value: &str| value.replace(' ', "\u{1}");
    let (daemon, source) = (bashed(daemon), bashed(source));
    format!("Events: code={code} daemon={daemon} ref=0x{reference:x} type={kind} source={source} text={text}\n")
        .into_bytes()
}

/// The head of mail that the default command sends.
pub(crate) const MAIL_HEAD: &[u8] = b"Subject: Bacula Message\r\n\r\n";
/// Mail programs hang, and further messages are lost.
pub(crate) const TOO_MANY_MESSAGES: &str = "too many messages wait for the mail program";

/// The command without `Mail Command`.
pub(crate) fn default_mail_command(recipients: &[u8]) -> Vec<u8> {
    [b"/usr/lib/sendmail -F Bacula ", recipients].concat()
}

/// How a program ended (reference 06 §10.1).
pub(crate) fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("Child exited with code {code}"),
        (None, Some(signal)) => format!("Child died from signal {signal}: {}", fd_os::signal_words(signal)),
        (None, None) => "Unknown Error".to_owned(),
    }
}

/// An operator command that failed.
pub(crate) fn operator_failed(command: &[u8], why: &str) -> String {
    let command = String::from_utf8_lossy(command);
    format!("Msg delivery error: Operator mail program terminated in error.\nCMD={command}\nERR={why}")
}

/// A mail command with its codes replaced, outside jobs (reference 06 §7.8).
pub(crate) fn expand_without_job(command: &[u8], daemon: &[u8], recipients: &[u8], process: u32) -> Vec<u8> {
    let mut expanded = Vec::with_capacity(command.len());
    let mut rest = command.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            expanded.push(byte);
            continue;
        }
        match rest.next() {
            None | Some(b'%') => expanded.push(b'%'),
            Some(b'd') => expanded.extend_from_slice(daemon),
            Some(b'r') => expanded.extend_from_slice(recipients),
            Some(b'P') => expanded.extend_from_slice(process.to_string().as_bytes()),
            Some(code) if b"bceEFijlnoRstv".contains(code) => expanded.extend_from_slice(b"*none*"),
            Some(&code) => expanded.extend_from_slice(&[b'%', code]),
        }
    }
    expanded
}

/// What is said, behind the date, where a destination does not take a message (reference 06 §7.7).
pub(crate) fn delivery_error(what: &str) -> String {
    format!("Message delivery ERROR: {what}\n")
}

/// What was lost while this host's destinations had no reader. The stock daemon waits for it.
pub(crate) fn texts_lost(number: u64) -> Vec<u8> {
    format!("{number} messages or lines are lost: their reader on this host did not read.\n").into_bytes()
}

/// A file destination that can't be opened.
pub(crate) fn open_failed(path: &str, reason: &str) -> String {
    format!("fopen {path} failed: ERR={reason}")
}

/// Mail that can't wait in its file.
pub(crate) fn mail_not_spooled(file: &Path, reason: &str) -> String {
    format!("Msg delivery error: {}", open_failed(&file.to_string_lossy(), reason))
}

/// A destination without a name.
pub(crate) fn not_written(place: &str, reason: &str) -> String {
    format!("write to {place} failed: ERR={reason}")
}

/// The version that the Director reads; below 13.0.0 it would shift every message type
/// (reference 01 §7).
pub(crate) const VERSION: &str = "15.0.3";

/// Release date as the `JobId=` reply has it.
pub(crate) const SHORT_DATE: &str = "25Mar25";

/// Release date as the status header has it.
pub(crate) const LONG_DATE: &str = "25 March 2025";

/// A peer and we agreed on TLS with certificates, and our resource names none.
pub(crate) const NO_CERTIFICATES: &str = "no certificates were read for this resource";

/// Reply to `level`.
pub(crate) const OK_LEVEL: &[u8] = b"2000 OK level\n";

/// Reply to `fileset`.
pub(crate) const OK_INCLUDE: &[u8] = b"2000 OK include\n";

/// Reply to `setbandwidth=`.
pub(crate) const OK_BANDWIDTH: &[u8] = b"2000 OK Bandwidth\n";

/// Reply to `storage`.
pub(crate) const OK_STORAGE: &[u8] = b"2000 OK storage\n";

/// Reply to `backup`.
pub(crate) const OK_BACKUP: &[u8] = b"2000 OK backup\n";

/// Reply to a `backup` without a Storage Daemon.
pub(crate) const BAD_BACKUP: &[u8] = b"2902 Bad backup\n";

/// Reply to `restore`.
pub(crate) const OK_RESTORE: &[u8] = b"2000 OK restore\n";

/// One storage of a restore is done.
pub(crate) const STORAGE_END: &[u8] = b"2000 OK storage end\n";

/// The place of a restore is not in `AllowedRestoreDirectories`.
pub(crate) const RESTORE_NOT_ALLOWED: &[u8] = b"2996 Restore path out of allowed directories.\n";

/// Reply to `session`.
pub(crate) const OK_SESSION: &[u8] = b"2000 OK session\n";

/// Reply to `component_info`.
pub(crate) const OK_COMPONENT: &[u8] = b"2000 OK ComponentInfo\n";

/// Reply to `RunBeforeJob` whose program ended well.
pub(crate) const OK_RUN_BEFORE: &[u8] = b"2000 OK RunBefore\n";

/// Reply to `RunBeforeJob` whose program failed.
pub(crate) const BAD_RUN_BEFORE: &[u8] = b"2905 Bad RunBeforeJob command.\n";

/// Reply to `RunAfterJob`.
pub(crate) const OK_RUN_AFTER: &[u8] = b"2000 OK RunAfter\n";

/// Reply to `Run`.
pub(crate) const OK_RUN_SCRIPT: &[u8] = b"2000 OK RunScript\n";

/// Fatal: ferrofd's own.
pub(crate) const TOO_MANY_SCRIPTS: &[u8] =
    b"Too many run scripts: a job has at most 1,000 on a client, and 1 MiB of them.\n";

/// Fatal: ferrofd's own.
pub(crate) const TOO_MANY_PLUGIN_OPTIONS: &[u8] =
    b"Too many plugin options: a job has at most 1,000 on a client, and 1 MiB of them.\n";

/// Fatal: ferrofd's own. So many files are in the memory that there is for accurate lists.
pub(crate) fn list_too_large(files: usize) -> Vec<u8> {
    format!(
        "The accurate list has more than {files} files: with the lists of other jobs that run now they take the memory \
         that there is for accurate lists, half of the host's or of the daemon's limit. Run fewer accurate jobs at a \
         time, or give the daemon more memory.\n"
    )
    .into_bytes()
}

/// Reply to `RunBeforeNow` after which the job is still well.
pub(crate) const OK_RUN_BEFORE_NOW: &[u8] = b"2000 OK RunBeforeNow\n";

/// Reply to `RunBeforeNow` after which it is not.
pub(crate) const BAD_RUN_BEFORE_NOW: &[u8] = b"2905 Bad RunBeforeNow command.\n";

/// Reply to a `query` for a plugin that is not there; no newline.
pub(crate) const PLUGIN_NOT_FOUND: &[u8] = b"error=plugin not found";

/// Plugins say more than is held while their messages can't go out; ferrofd's own.
pub(crate) const PLUGINS_SAY_TOO_MUCH: &[u8] = b"The plugins say more than is held; the rest is left out.\n";

/// Reply to a `query` that the plugin has failed; no newline.
pub(crate) const PLUGIN_PROTOCOL_ERROR: &[u8] = b"error=plugin protocol error";

/// To the Storage Daemon, about a `testnetwork` that does not scan.
pub(crate) const BAD_TEST_NETWORK: &[u8] = b"2999 testnetwork command error\n";

/// The `proxy` command has reached the Director.
pub(crate) const OK_PROXY: &[u8] = b"2000 proxy OK.\n";

/// Reply to `snapshot prune`, which does nothing.
pub(crate) const SNAPSHOT_PRUNED: &[u8] = b"2000 Snapshot pruned ERR=\n";

/// Reply to `snapshot del`.
pub(crate) const SNAPSHOT_DELETED: &[u8] = b"2000 Snapshot deleted ERR=\n";

/// Reply to `snapshot query`; `size` in bytes.
pub(crate) fn snapshot_queried(status: i64, size: i64) -> Vec<u8> {
    format!("2000 Snapshot status={status} size={size} ERR=\n").into_bytes()
}

/// Reply to `snapshot query` where the helper program fails; `why` in its words.
pub(crate) fn snapshot_not_queried(status: i64, why: &[u8]) -> Vec<u8> {
    let head = format!("2999 Snapshot status={status} size=-1 ERR=");
    [head.as_bytes(), bash_spaces(why).as_slice(), b"\n"].concat()
}

/// Reply to `snapshot del` where the helper program fails; `why` in its words.
pub(crate) fn snapshot_not_deleted(why: &[u8]) -> Vec<u8> {
    [b"2999 Snapshot deleted ERR=", bash_spaces(why).as_slice(), b"\n"].concat()
}

/// Why a snapshot is not deleted.
pub(crate) const SNAPSHOT_IN_USE: &[u8] = b"a job reads it";

/// One line of `snapshot list` (reference 07 §12.6).
pub(crate) fn listed_snapshot(snapshot: &NamedSnapshot, created: i64, status: i64, error: &[u8]) -> Vec<u8> {
    let bash = |value: &[u8]| bash_spaces(value);
    let NamedSnapshot { name, volume, device, kind } = snapshot;
    let (created, status) = (created.to_string(), status.to_string());
    let parts: [(&str, &[u8], &str); 7] = [
        ("volume=\"", &bash(volume), "\""),
        (" createtdate=\"", created.as_bytes(), "\""),
        (" name=\"", &bash(name), "\""),
        (" device=\"", &bash(device), "\""),
        (" status=", status.as_bytes(), ""),
        (" error=\"", &bash(error), "\""),
        (" type=\"", kind, "\"\n"),
    ];
    parts.map(|(before, value, after)| [before.as_bytes(), value, after.as_bytes()].concat()).concat()
}

/// Why the helper program has failed, if it doesn't say so itself: what it printed, and how it
/// ended.
pub(crate) fn snapshot_helper_failed(action: &str, command: &[u8], printed: &[u8], reason: &str) -> Vec<u8> {
    let head = format!("Error while executing \"{action}\" ");
    [head.as_bytes(), &shown(command), b". ", printed, b" ", reason.as_bytes(), b"\n"].concat()
}

/// The helper program doesn't say where it has mounted a snapshot.
pub(crate) const NO_SNAPSHOT_MOUNT_POINT: &[u8] = b"the helper program names no snapmountpoint";

/// The helper program said that it has made a snapshot, but not which.
pub(crate) const NO_SNAPSHOT_VOLUME: &[u8] = b"the helper program names no volume";

/// The helper program printed nothing.
pub(crate) const NO_HELPER_OUTPUT: &[u8] = b"Unable to parse snapshot command output";

/// A snapshot was made of the file system that is mounted there.
pub(crate) fn snapshot_created(mount_point: &[u8]) -> Vec<u8> {
    one_line(&[b"   Create Snapshot for ", mount_point, b"\n"])
}

/// A snapshot could not be made.
pub(crate) fn snapshot_not_created(mount_point: &[u8], why: &[u8]) -> Vec<u8> {
    [b"   Unable to create snapshot of ", &*shown(mount_point), b" ERR=", why, b"\n"].concat()
}

/// A snapshot could not be mounted; the file system is read as it is now.
pub(crate) fn snapshot_not_mounted(mount_point: &[u8], why: &[u8]) -> Vec<u8> {
    [b"   Unable to mount snapshot ", &*shown(mount_point), b" ERR=", why, b"\n"].concat()
}

/// There are more subvolumes than are asked for those below them.
pub(crate) const TOO_MANY_SUBVOLUMES: &[u8] = b"there are too many subvolumes";

/// It is not known which subvolumes are in a file system; it is read as it is now, with them.
pub(crate) fn subvolumes_not_known(mount_point: &[u8], why: &[u8]) -> Vec<u8> {
    let why = [b"its subvolumes are not known, and it is read as it is now: ", why.trim_ascii_end()].concat();
    snapshot_not_created(mount_point, &why)
}

/// A name of the FileSet has no place in the snapshot of its file system.
pub(crate) fn not_in_snapshot(name: &[u8], mount_point: &[u8]) -> Vec<u8> {
    let tail = b" is a place of its file system that its snapshot doesn't show. It is read as it is now\n";
    one_line(&[b"   Unable to use snapshot of ", mount_point, b" ERR=", name, tail])
}

/// A snapshot was deleted.
pub(crate) fn snapshot_removed(mount_point: &[u8]) -> Vec<u8> {
    one_line(&[b"   Delete Snapshot for ", mount_point, b"\n"])
}

/// A snapshot that stays could not be unmounted.
pub(crate) fn snapshot_not_unmounted(mount_point: &[u8], why: &[u8]) -> Vec<u8> {
    [b"   Unable to unmount snapshot of ", &*shown(mount_point), b" ERR=", why, b"\n"].concat()
}

/// A snapshot could not be deleted.
pub(crate) fn snapshot_not_removed(mount_point: &[u8], why: &[u8]) -> Vec<u8> {
    [b"   Unable to delete snapshot of ", &*shown(mount_point), b" ERR=", why, b"\n"].concat()
}

/// The table of mounts can't be read.
pub(crate) const NO_MOUNT_TABLE: &[u8] = b"Unable to scan mtab to determine devices to snapshot\n";

/// The Director is asked to note a snapshot that stays (reference 07 §12.5); no newline.
pub(crate) fn new_snapshot(job: &[u8], snapshot: &NamedSnapshot, created: i64, retention: &[u8]) -> Vec<u8> {
    let bash = |value: &[u8]| bash_spaces(value);
    let NamedSnapshot { name, volume, device, kind } = snapshot;
    [
        b"CatReq Job=",
        job,
        b" new_snapshot name=",
        &bash(name),
        b" volume=",
        &bash(volume),
        b" device=",
        &bash(device),
        b" tdate=",
        created.to_string().as_bytes(),
        b" type=",
        kind,
        b" retention=",
        retention,
    ]
    .concat()
}

/// The Director has noted a snapshot.
pub(crate) const SNAPSHOT_NOTED: &[u8] = b"1000 Snapshot created";

/// The Director has not noted a snapshot that is to stay. Nothing would ever delete it.
pub(crate) fn snapshot_not_noted(mount_point: &[u8], answer: &[u8]) -> Vec<u8> {
    let head: &[u8] = b"   The Director has not noted the snapshot of ";
    let middle = b", so it is deleted when the job ends. ERR=";
    one_line(&[head, mount_point, middle, answer.trim_ascii_end(), b"\n"])
}

/// A snapshot that an earlier run of the daemon has left behind is gone now.
pub(crate) fn left_snapshot_removed(name: &[u8], mount_point: &[u8]) -> Vec<u8> {
    let head = b"The daemon ended in the middle of job ";
    one_line(&[head, name, b": its snapshot of ", mount_point, b" is removed now\n"])
}

/// Such a snapshot can't be removed.
pub(crate) fn left_snapshot_stays(name: &[u8], mount_point: &[u8], volume: &[u8], why: &[u8]) -> Vec<u8> {
    let head = b"The daemon ended in the middle of job ";
    let middle = b" can't be removed; this is tried again at the next start. Volume=\"";
    let (mount_point, volume) = (shown(mount_point), shown(volume));
    let parts = [head, name, b": its snapshot of ", &mount_point, middle, &volume, b"\" ERR=", why, b"\n"];
    parts.concat()
}

/// Reply to `setdebug=`: what was asked for, and what is in force now.
pub(crate) fn ok_setdebug(now: &SetDebug) -> Vec<u8> {
    let SetDebug { level, trace, hangup, blowup, options, tags } = now;
    let numbers = format!("2000 OK setdebug={level} trace={trace} hangup={hangup} blowup={blowup} options=");
    [numbers.as_bytes(), options, b" tags=", tags, b"\n"].concat()
}

/// One metric of `statistics`: name, value, unit and description. `first` counts for JSON, which
/// divides by commas.
pub(crate) fn metric(
    format: MetricFormat,
    first: bool,
    name: &str,
    value: u64,
    unit: &str,
    description: &str,
) -> Vec<u8> {
    let text = match format {
        MetricFormat::Simple => format!("{name}={value}\n"),
        MetricFormat::Full => {
            format!("name=\"{name}\" value={value} type=Integer unit={unit} descr=\"{description}\"\n")
        }
        MetricFormat::Json => format!(
            "{}\n  {{\n    \"name\": \"{name}\",\n    \"value\": {value},\n    \"type\": \"Integer\",\n    \"unit\": \
             \"{unit}\",\n    \"description\": \"{description}\"\n  }}",
            if first { "" } else { "," }
        ),
    };
    let mut frame = text.into_bytes();
    frame.push(0);
    frame
}

/// The line to the Storage Daemon that begins a network test.
pub(crate) fn test_network(bytes: u64, rounds: u64, bandwidth: u64) -> Vec<u8> {
    format!("testnetwork bytes={bytes} rtt={rounds} bw={bandwidth}\n").into_bytes()
}

/// What the network test has written; `speed` has its unit, as status shows numbers.
pub(crate) fn network_written(bytes: u64, milliseconds: u64, speed: &str) -> Vec<u8> {
    format!("2000 OK FD wrote bytes={bytes} to SD duration={milliseconds}ms write_speed={speed}B/s\n").into_bytes()
}

/// What it has read.
pub(crate) fn network_read(bytes: u64, milliseconds: u64, speed: &str) -> Vec<u8> {
    format!("2000 OK FD read bytes={bytes} from SD duration={milliseconds}ms read_speed={speed}B/s\n").into_bytes()
}

/// How long small packets took, there and back.
pub(crate) fn network_rounds(rounds: u64, total: Duration, least: Duration, most: Duration) -> Vec<u8> {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let one = total.checked_div(u32::try_from(rounds).unwrap_or(u32::MAX)).unwrap_or_default();
    format!(
        "2000 OK packets={rounds} duration={}ms rtt={:.2}ms min={:.2}ms max={:.2}ms\n",
        total.as_millis(),
        milliseconds(one),
        milliseconds(least),
        milliseconds(most)
    )
    .into_bytes()
}

/// The Storage Daemon went away during the test.
pub(crate) const NETWORK_FAILED: Quote = Quote::new("2999 network test failed ERR=", "\n");

/// The Director accepts us, and says something else.
pub(crate) const NO_GREETING: &str = "[FE0031] Director rejected Hello command";

/// The Director does not take us for a console; `detail` may be empty.
pub(crate) fn no_console(detail: &str) -> String {
    let end = if detail.is_empty() { "" } else { "\n" };
    format!(
        "Director authorization problem.\nMost likely the passwords do not agree.\n\
         If you are using TLS, there may have been a certificate validation error during the TLS handshake.\n\
         For help, please see http://www.bacula.org/rel-manual/en/problems/Bacula_Frequently_Asked_Que.html\n{detail}{end}"
    )
}

/// The `proxy` command has not reached the Director.
pub(crate) const PROXY_FAILED: Quote = Quote::new("2999 proxy error. ERR=", "\n");

/// Reply to `sm_dump`.
pub(crate) const OK_SM_DUMP: &[u8] = b"2000 sm_dump OK\n";

/// Reply to `snapshot retention=`.
pub(crate) const OK_SNAPSHOT_RETENTION: &[u8] = b"2000 Snapshot retention\n";

/// First frame of `.status current` and `.status last`.
pub(crate) const OK_DOT_STATUS: &[u8] = b"2000 OK .status\n";

/// Reply to `verify`.
pub(crate) const OK_VERIFY: &[u8] = b"2000 OK verify\n";

/// Reply to `pluginoptions=`.
pub(crate) const OK_PLUGIN_OPTIONS: &[u8] = b"2000 OK plugin options\n";

/// Reply to `restoreobject end`.
pub(crate) const OK_RESTORE_OBJECTS: &[u8] = b"2000 OK ObjectRestored\n";

/// Answers to a Storage Daemon's signals (reference 01 §3.2).
pub(crate) const STORE_OK: &[u8] = b"2000 OK\n";

/// Answer to signal `STATUS`.
pub(crate) const STORE_STATUS: &[u8] = b"Status OK\n";

/// Reply to `JobId=`: no newline. `platform` is `<host os>,<distribution>,<version>`, `plugins` a
/// comma list.
pub(crate) fn ok_job(platform: &str, plugins: &[u8]) -> Vec<u8> {
    let mut reply = format!("2000 OK Job {VERSION} ({SHORT_DATE}) {platform};").into_bytes();
    reply.extend_from_slice(plugins);
    reply
}

/// Answer to `PluginFeatures` for one plugin: its file, and what it says of itself.
pub(crate) fn plugin_features(file: &[u8], features: &[u8]) -> Vec<u8> {
    [b"2000 plugin=", file, b" features=", features, b"\n"].concat()
}

/// Reply to `cancel` (or `stop`) of a running job.
pub(crate) fn marked(job: &[u8], stopped: bool) -> Vec<u8> {
    let word: &[u8] = if stopped { b"stopped" } else { b"canceled" };
    [b"2001 Job \"", job, b"\" marked to be ", word, b".\n"].concat()
}

/// Reply to a command that names a job that does not run.
pub(crate) const JOB_NOT_FOUND: Quote = Quote::new("2901 Job ", " not found.\n");

/// Fatal message: options for a plugin that is not there.
pub(crate) const PLUGIN_NOT_LOADED: Quote =
    Quote::new("job.c:3735 Command plugin \"", "\" requested, but is not loaded.\n");

/// Error: a restore object is not what it is said to be.
pub(crate) fn object_not_unpacked(wanted: i32, got: usize, name: &[u8]) -> Vec<u8> {
    let head = format!("job.c:1375 Decompression failed. Len wanted={wanted} got={got}. Object=");
    [head.as_bytes(), name, b"\n"].concat()
}

/// The last text of `estimate`; both numbers with thousands commas.
pub(crate) fn ok_estimate(files: u64, bytes: u64) -> Vec<u8> {
    format!("2000 OK estimate files={} bytes={}\n", commas(files), commas(bytes)).into_bytes()
}

/// A number with a comma before every third digit from the right.
pub(crate) fn commas(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The counters of the End Job line (reference 02 §8).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct EndJob {
    /// Job state as a decimal character code.
    pub(crate) term_code: u8,
    /// Files.
    pub(crate) files: u32,
    /// Bytes read.
    pub(crate) read_bytes: u64,
    /// Bytes sent or written.
    pub(crate) job_bytes: u64,
    /// Errors.
    pub(crate) errors: u32,
    /// Snapshots were open.
    pub(crate) vss: bool,
    /// PKI encryption is configured.
    pub(crate) encrypt: bool,
    /// Bytes to the Storage Daemon before line compression; signals count with their negative
    /// value.
    pub(crate) comm_bytes: i64,
    /// The same after line compression.
    pub(crate) compress_comm_bytes: i64,
}

impl EndJob {
    /// The line, the last numbered frame of a job. The two Comm counters are cut to 32 bits as the
    /// stock daemon's are.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let cut = |bytes: i64| bytes & i64::from(u32::MAX);
        let mut line = String::with_capacity(160);
        let _infallible = writeln!(
            line,
            "2800 End Job TermCode={} JobFiles={} ReadBytes={} JobBytes={} Errors={} VSS={} Encrypt={} CommBytes={} \
             CompressCommBytes={}",
            self.term_code,
            self.files,
            self.read_bytes,
            self.job_bytes,
            self.errors,
            u8::from(self.vss),
            u8::from(self.encrypt),
            cut(self.comm_bytes),
            cut(self.compress_comm_bytes)
        );
        line.into_bytes()
    }
}

/// The progress line that a Director stores (reference 02 §6.8).
pub(crate) fn progress(job_id: u32, files: u32, bytes: u64) -> Vec<u8> {
    format!("Progress JobId={job_id} files={files} bytes={bytes} bps=0\n").into_bytes()
}

/// Raw text for a peer whose hello has an unknown name.
pub(crate) fn unknown_director(name: &[u8], ip: &str) -> Vec<u8> {
    [b"authenticate.c:100 [FE0027] Connection from unknown Director ", name, b" at ", ip.as_bytes(), b" rejected.\n"]
        .concat()
}

/// Raw text for a peer whose hello does not scan; at most 100 bytes of it are shown.
pub(crate) fn bad_hello(ip: &str, hello: &[u8]) -> Vec<u8> {
    let shown = hello.get(..100).unwrap_or(hello);
    [b"authenticate.c:81 Bad Hello command from Director at ", ip.as_bytes(), b": ", shown, b"\n"].concat()
}

/// Security message about a first frame that is no hello; `len` is negative for a signal, 0 for no
/// frame at all.
pub(crate) fn expected_hello(ip: &str, len: i64) -> Vec<u8> {
    format!("job.c:592 FD expecting Hello got bad command from {ip}:{ip}. Len={len}.\n").into_bytes()
}

/// Error about a certificate of the peer's chain.
pub(crate) const CERTIFICATE_ERROR: Quote = Quote::new("", "\n");

/// How such an error begins: with a place in the stock daemon.
const OF_CERTIFICATES: &[u8] = b"tls.c:";

/// Such errors of one peer as a message.
pub(crate) fn certificate_errors(errors: &[String]) -> Vec<u8> {
    format!("{}\n", errors.join("\n")).into_bytes()
}

/// Why a peer was not authenticated, for the daemon's log. If something is wrong with its
/// certificates, passwords have nothing to do with it.
pub(crate) fn why_not_authenticated(error: &AuthError, certificate_errors: &[String]) -> String {
    if certificate_errors.is_empty() { error.to_string() } else { certificate_errors.join("; ") }
}

/// Whether a message of the daemon is no news after another one: it is the same, or both are about
/// certificates, whose names a stranger can choose.
pub(crate) fn says_the_same(before: &[u8], text: &[u8]) -> bool {
    before == text || [before, text].iter().all(|text| text.starts_with(OF_CERTIFICATES))
}

/// Warning about a Storage Daemon that does not trust us, or we not it. The stock daemon says
/// nothing.
pub(crate) fn storage_rejected(host: &str, port: u16, error: &StorageError) -> Vec<u8> {
    let hint = match error {
        StorageError::Authentication(AuthError::Requirement { .. }) => {
            " (compare TLS Enable, TLS PSK Enable and TLS Require of both daemons)"
        }
        StorageError::Authentication(AuthError::Tls(_) | AuthError::WrongKey(_)) => {
            " (the Director's Storage resource has to lead to the Storage daemon that the Director talks to; with \
             certificates, compare TLS CA Certificate File, TLS Certificate and the addresses of both daemons)"
        }
        StorageError::Authentication(AuthError::WrongPassword | AuthError::Refused { .. }) => {
            " (the key is the Director's own for this job: its Storage resource has to lead to the Storage daemon that \
             the Director talks to)"
        }
        _ => "",
    };
    if port == 0 {
        return format!("The Storage daemon that has called: {error}{hint}\n").into_bytes();
    }
    format!("Storage daemon at {host}:{port}: {error}{hint}\n").into_bytes()
}

/// Security message about a connection that `hosts.allow` and `hosts.deny` forbid.
pub(crate) fn refused_by_hosts_access(ip: &str, port: u16) -> Vec<u8> {
    format!("bnet_server.c:201 Connection from {ip}:{port} refused by hosts.access\n").into_bytes()
}

/// Security message about a wrong password.
pub(crate) fn incorrect_password(director: &[u8], ip: &str) -> Vec<u8> {
    [b"Incorrect password given by Director ", director, b" at ", ip.as_bytes(), b".\n"].concat()
}

/// Security message about a login that looks like an attack; `why` is [`AuthError::detail`].
pub(crate) fn suspicious_login(director: &[u8], ip: &str, why: &str) -> Vec<u8> {
    [b"Director ", director, b" at ", ip.as_bytes(), b" refused: ", why.as_bytes(), b".\n"].concat()
}

/// Warning about a Storage Daemon that called for a job while another one waited for it.
pub(crate) const STORAGE_CALLED_TWICE: Quote = Quote::new("hello.c:74 SD \"", "\" tried to connect two times.\n");

/// A Storage Daemon's call that does not scan.
pub(crate) const BAD_STORAGE_CALL: &[u8] = b"SD connect failed: Bad Hello command\n";

/// A Storage Daemon's call for a job that does not run here.
pub(crate) const STORAGE_CALL_WITHOUT_JOB: Quote =
    Quote::new("hello.c:63 SD connect failed: Job name not found: ", "\n");

/// Fatal: `restore … regexwhere=` of expressions of which none is usable.
pub(crate) const BAD_WHERE_REGEX: Quote = Quote::new("Bad where regexp. where=", "\n");

/// Fatal message: the restore's place is not allowed.
pub(crate) const RESTORE_PATH_NOT_ALLOWED: Quote = Quote::new("Path not allowed for restore: \"", "\"\n");

/// An error of each backup with such a `PKI Keypair`.
pub(crate) const KEYS_OF_TWO_PAIRS: &[u8] =
    b"The certificate and the private key in the file of PKI Keypair do not belong together. What is encrypted for the \
      certificate can't be restored with this key, and no signature will be good.\n";

/// Information: a restore whose data is not compared with anything.
pub(crate) const DIGESTS_NOT_CHECKED: &[u8] =
    b"Restored data is not compared with its digests: restore.check_digests in bacula-fd.toml is \"no\".\n";

/// Information: the Storage Daemon answered.
pub(crate) fn connected_to_storage(address: &str, port: u16, encrypted: bool) -> Vec<u8> {
    let how = if encrypted { "with TLS" } else { "without encryption" };
    format!("Connected to Storage at {address}:{port} {how}\n").into_bytes()
}

/// Warning: the Storage Daemon does not answer yet. `text` has the words for it.
pub(crate) const STORAGE_RETRYING: Quote = Quote::new("bsockcore.c:259 ", "");

/// Fatal: `backup` came before `storage`.
pub(crate) const NO_STORAGE: &[u8] = b"Cannot contact Storage daemon\n";

/// Fatal: `restore` came before `storage`.
pub(crate) const IMPROPER_SEQUENCE: &[u8] = b"Improper calling sequence.\n";

/// Warning: the Storage Daemon is connected and says nothing. The stock daemon has none.
pub(crate) fn storage_does_not_answer(host: &str, port: u16) -> String {
    if port == 0 {
        return "The Storage daemon has called and does not answer. Waiting ...\n".to_owned();
    }
    format!("Storage daemon on {host}:{port} has taken the call and does not answer. Waiting ...\n")
}

/// Warning: the Storage Daemon has not called yet. The stock daemon has none.
pub(crate) fn storage_does_not_call(waiting_on: &[SocketAddr]) -> String {
    let addresses: Vec<_> = waiting_on.iter().map(ToString::to_string).collect();
    format!("The Storage daemon is to call and has not called yet. Waiting on {} ...\n", addresses.join(", "))
}

/// Fatal: the Storage Daemon did not call.
pub(crate) const STORAGE_DID_NOT_CALL: &[u8] = b"job.c:2916 Failed connect from Storage daemon. SD bsock=NULL.\n";

/// A canceled job has left its thread behind. Not in the stock daemon, whose job stays.
pub(crate) const THREAD_LEFT_BEHIND: &[u8] =
    b"A file system of the host does not answer: the job's own thread still waits for it.\n";

/// The Director's and our clock differ; a warning from 600 seconds on.
pub(crate) fn clocks_differ(seconds: i64) -> Vec<u8> {
    format!("DIR and FD clocks differ by {seconds} seconds, FD automatically compensating.\n").into_bytes()
}

/// Fatal: data could not be sent; `line` is the stock daemon's place of the failed send
/// (reference 04 §16).
pub(crate) fn send_error(line: u32, reason: &str) -> Vec<u8> {
    format!("backup.c:{line} Network send error to SD. ERR={reason}\n").into_bytes()
}

/// Fatal: `setdebug … hangup=` of so many files.
pub(crate) fn hung_up_after_files(files: u32) -> Vec<u8> {
    format!("message.c:1270 Debug hangup requested after {files} files.\n").into_bytes()
}

/// Fatal: `setdebug … hangup=` of so many KiB.
pub(crate) fn hung_up_after_kilobytes(kilobytes: u64) -> Vec<u8> {
    format!("message.c:1272 Debug hangup requested after {kilobytes} Kbytes.\n").into_bytes()
}

/// Warning: why a script is not run.
pub(crate) fn script_refused(label: &str, why: ProgramNotAllowed) -> Vec<u8> {
    format!("{label}: Allowed Script Directories of this Director refuses the program: {why}\n").into_bytes()
}

/// An address that is not used, and what happens in its place.
pub(crate) fn not_ipv4(directive: &str, address: Ipv6Addr) -> String {
    let instead = match directive {
        "FdAddress" => "the daemon listens on all addresses of IPv4, and on none of IPv6",
        _ => "connections have whatever address the system gives them",
    };
    format!("{directive} takes no address of IPv6 such as {address}: {instead}")
}

/// Every caller knows the password.
pub(crate) fn empty_password(director: &str) -> String {
    format!("Director \"{director}\" has an empty password: whoever reaches the daemon's port may give its orders")
}

/// Information: a script is about to run. `label` says when.
pub(crate) fn script_starts(label: &str, command: &[u8]) -> Vec<u8> {
    [b"shell command: run ", label.as_bytes(), b" \"", command, b"\"\n"].concat()
}

/// Information: a line that a script printed.
pub(crate) fn script_says(label: &str, line: &[u8]) -> Vec<u8> {
    [label.as_bytes(), b": ", line, b"\n"].concat()
}

/// Error: a script failed.
pub(crate) fn script_failed(label: &str, status: i32, error: &str) -> Vec<u8> {
    format!("Runscript: {label} returned non-zero status={status}. ERR={error}\n").into_bytes()
}

/// Error of a socket, in its own words: `what` without the newline.
pub(crate) const SOCKET_ERROR: Quote = Quote::new("bsock.c:388 ", "\n");

/// Error of a socket: a frame is too long; the channel's words without the newline.
pub(crate) const OVERSIZED_FRAME: Quote = Quote::new("bsock.c:290 ", "\n");

#[cfg(test)]
mod tests;
