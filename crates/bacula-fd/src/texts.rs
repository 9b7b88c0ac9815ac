//! The texts of the program itself, and the heads and frames of messages (reference 01 §16.2, 06
//! §7.4). Texts for a Director are in `fd-session`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use fd_messages::{MessageType, Stage, StageTimes};

use crate::clock::short_date;

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
         openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=NAME-fd -keyout fd.key -out fd.crt; \
         cat fd.crt fd.key > fd.pem",
        file.display()
    )
}

/// A file holds no private key that can be read.
pub(crate) fn private_key_hint(file: &Path) -> String {
    format!(
        "{}: must hold an RSA private key in PEM form without a pass phrase; openssl rsa -in FILE -out FILE.clear \
         takes a pass phrase away",
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

/// The plugins in a status.
pub(crate) fn plugins(names: &[Vec<u8>]) -> String {
    format!(" Plugin: {} \n", String::from_utf8_lossy(&names.join(&b" "[..])))
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

/// Fatal: it can't be decided whether an expression matches. The stock daemon takes that for a no,
/// or never returns.
pub(crate) fn can_not_match(pattern: &[u8], text: &[u8], why: &str) -> Vec<u8> {
    [b"REGEX ", pattern, b" can't be matched with ", text, b". ERR=", why.as_bytes(), b"\n"].concat()
}

/// Why it can't.
pub(crate) fn took_too_long(limit: Duration) -> String {
    format!("It took more than {} seconds", limit.as_secs())
}

/// Why a heavy expression can't be compiled or matched: its process is missing.
pub(crate) fn no_guest(program: &Path, error: &str) -> String {
    format!("The process for it, {}, can't be started: {error}", program.display())
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

/// An operator command that failed.
pub(crate) fn operator_failed(command: &[u8], why: &str) -> String {
    let command = String::from_utf8_lossy(command);
    format!("Msg delivery error: Operator mail program terminated in error.\nCMD={command}\nERR={why}\n")
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

/// What is said where a destination does not take a message (reference 06 §7.7).
pub(crate) fn delivery_error(time: i64, what: &str) -> String {
    format!("{}  Message delivery ERROR: {what}\n", short_date(time))
}

/// What was lost while this host's destinations had no reader. The stock daemon waits for it.
pub(crate) fn texts_lost(number: u64) -> Vec<u8> {
    format!("{number} messages or lines are lost: their reader on this host did not read.\n").into_bytes()
}

/// A file destination that can't be opened.
pub(crate) fn open_failed(path: &str, reason: &str) -> String {
    format!("fopen {path} failed: ERR={reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_line() {
        let line =
            job_line("dc-fd", 1, MessageType::Info, b"Connected to Storage at 127.0.0.1:20213 without encryption\n");
        let frame = jmsg(1, MessageType::Info.number(), 1_795_227_599, &line);
        assert_eq!(
            frame,
            b"Jmsg JobId=1 type=7 level=1795227599 dc-fd JobId 1: Connected to Storage at 127.0.0.1:20213 without encryption\n"
        );
        assert_eq!(frame.len(), 111);
    }

    #[test]
    fn heads_by_type() {
        let head = |kind| String::from_utf8(job_line("x-fd", 9, kind, b"")).unwrap();
        assert_eq!(head(MessageType::Fatal), "x-fd JobId 9: Fatal error: ");
        assert_eq!(head(MessageType::NotSaved), "x-fd JobId 9: ");
        assert_eq!(head(MessageType::Security), "x-fd JobId 9: Security Alert: ");
        assert_eq!(head(MessageType::Events), "");
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(job_line("x", 1, MessageType::Info, &[b'a'; 6000]).len(), 4999);
    }
}
