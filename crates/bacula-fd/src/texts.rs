//! What the program itself says; what it says to a Director stands in `fd-session`.

use std::path::Path;
use std::time::Duration;

use fd_messages::{Stage, StageTimes};

/// What `bfdjson -?` and every mistake print on standard error.
pub(crate) const JSON_USAGE: &str = "\
Copyright (C) 2012-2025 Kern Sibbald.

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

";

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

/// What `-?` and every mistake print on standard error.
pub(crate) const USAGE: &str = "\
Copyright (C) 2000-2025 Kern Sibbald.

Version: 15.0.3 (25 March 2025)

Usage: bacula-fd [-f -s] [-c config_file] [-d debug_level]
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

";

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

/// Settings and configuration contradict each other: no connection of this resource would ever be good enough.
pub(crate) fn can_not_encrypt(file: &Path, kind: &str, name: &str) -> String {
    format!(
        "{}: tls.require is set, but {kind} \"{name}\" in the configuration is not encrypted from beginning to end: it has \
         \"TLS PSK Enable = no\" without \"TLS Enable = yes\", or \"TLS Authenticate = yes\"\n",
        file.display()
    )
}

/// What could not be done, and one thing that OpenSSL says about it.
pub(crate) fn step_failed(step: &str, error: &str) -> String {
    format!("{step}: ERR={error}")
}

/// Why a FileSet's `|` without a program can't be run, in the words of the system.
pub(crate) const NO_PROGRAM: &str = "No such file or directory";

/// Fatal: nobody can tell whether an expression matches. The stock daemon takes it for a no, or never comes back.
pub(crate) fn can_not_match(pattern: &[u8], text: &[u8], why: &str) -> Vec<u8> {
    [b"REGEX ", pattern, b" can't be matched with ", text, b". ERR=", why.as_bytes(), b"\n"].concat()
}

/// Why it can't.
pub(crate) fn took_too_long(limit: Duration) -> String {
    format!("It took more than {} seconds", limit.as_secs())
}

/// Where the time of a running backup goes, in the status. The stock daemon has no such line; it is there on demand.
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

/// What stands before the metrics.
pub(crate) fn http_head(status: &str, len: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    )
}
