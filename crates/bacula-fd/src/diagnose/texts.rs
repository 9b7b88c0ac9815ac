//! What a diagnosis says.

use std::ffi::OsStr;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use fd_config::Bpipe;

use crate::diagnose::rights::UNIT;
use crate::diagnose::world::{Process, Whose};

/// What a mistake prints on standard error.
pub(super) const USAGE: &str = "\
Usage: bacula-fd --diagnose [--json] [--storage HOST[:PORT]]... [-c config_file] [-u user] [-g group] [-k]
     --json           print JSON
     --storage        try to connect to this Storage Daemon, too
     -c <file>        use <file> as configuration file
     -u, -g, -k       check as the daemon with these options
Ends with status 1 if there is a fault.
";

pub(super) const CONFIGURATION: &str = "configuration";
pub(super) const SETTINGS: &str = "settings";
pub(super) const FILES: &str = "permissions";
pub(super) const CERTIFICATES: &str = "tls";
pub(super) const PKI: &str = "pki";
pub(super) const WORKING_DIRECTORY: &str = "working directory";
pub(super) const PID_DIRECTORY: &str = "pid directory";
pub(super) const PLUGINS: &str = "plugin directory";
pub(super) const PROCESS: &str = "daemon";
pub(super) const CAPABILITIES: &str = "capabilities";
pub(super) const METRICS: &str = "metrics";
pub(super) const PAGE_CACHE: &str = "page cache";
pub(super) const CLOCK: &str = "clock";
pub(super) const DIRECTOR: &str = "director";
pub(super) const STORAGE: &str = "storage daemon";

/// Before each hint.
pub(super) const HINT: &str = "hint:";

/// The last line.
pub(super) fn summary(faults: usize, warnings: usize) -> String {
    match (faults, warnings) {
        (0, 0) => "\nNo fault was found.\n".to_owned(),
        _ => format!("\nFaults: {faults}, warnings: {warnings}.\n"),
    }
}

/// The hint to an error: to that of storage that does not answer its own, else the usual one.
pub(super) fn hint<'t>(error: &io::Error, usual: &'t str) -> &'t str {
    if error.kind() == io::ErrorKind::TimedOut { HINT_STORAGE_HANGS } else { usual }
}

pub(super) const STORAGE_HANGS: &str = "its storage does not answer";
pub(super) const KEYS_HANG: &str = "the storage of a certificate or key does not answer";
pub(super) const HINT_STORAGE_HANGS: &str =
    "is the server of that mount up? umount -l takes a dead mount away; the daemon would hang there, too";
/// A thread has ended without an answer.
pub(super) const NO_ANSWER: &str = "no answer";

// Configuration and settings.

pub(super) fn configuration(file: &OsStr, files: usize, daemon: &str, directors: usize) -> String {
    let more = match files.saturating_sub(1) {
        0 => String::new(),
        more => format!(" and {more} included"),
    };
    let directors = if directors == 1 { "1 Director".to_owned() } else { format!("{directors} Directors") };
    format!("{}{more}: File Daemon {daemon}, {directors}", file.display())
}

/// A message of the stock daemon's without its frame.
pub(super) fn reason(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let reason = text.split_once(" because:\n").map_or(&*text, |(_, reason)| reason);
    reason.trim_end().replace('\n', " ")
}

pub(super) fn does_not_fit(file: &OsStr, reasons: &str) -> String {
    format!("{}: {reasons}", file.display())
}

pub(super) fn never_encrypted(kind: &str, name: &str) -> String {
    format!("tls.require is set, but {kind} \"{name}\" is not encrypted from beginning to end")
}

pub(super) const HINT_CONFIGURATION: &str = "bacula-fd -t shows the line; the manual page is bacula-fd.conf(5)";
pub(super) const HINT_NO_CONFIGURATION: &str = "name the daemon's own file with -c, as a user who may read it";

pub(super) fn unknown_director(messages: &str, director: &[u8]) -> String {
    format!("Messages \"{messages}\" has a Director \"{}\", which no resource defines", director.escape_ascii())
}

/// Types that no destination of the resource has.
pub(super) fn unheard_of(messages: &str, types: &[&str]) -> String {
    format!("no destination of Messages \"{messages}\" takes {}: jobs count none of these", types.join(", "))
}

pub(super) const HINT_UNHEARD_OF: &str =
    "add them to a destination: without them a job ends OK that could not read its files";
pub(super) const HINT_EMPTY_PASSWORD: &str = "give it a long random one, here and in the Director's Client resource";
/// In place of an address of IPv6 to listen on.
pub(super) fn listen_on(address: Ipv6Addr, port: u16) -> String {
    format!(
        "name an address of IPv4; or write in place of FDAddress and FDPort: \
         FDAddresses = {{ ipv6 = {{ addr = {address}; port = {port}; }} }}"
    )
}

/// In place of one to call from.
pub(super) const HINT_SOURCE_ADDRESS: &str = "name an address of IPv4, or take it out";
pub(super) const HINT_UNKNOWN_DIRECTOR: &str =
    "correct the name: whatever it is, a job's messages go to the Director that runs it";
pub(super) const HINT_SETTINGS: &str = "the manual page is bacula-fd.toml(5)";
pub(super) const HINT_ENCRYPT: &str =
    "take \"TLS PSK Enable = no\" or \"TLS Authenticate = yes\" out, or set TLS Enable";

// Files.

pub(super) fn unreadable(path: &Path, why: &str) -> String {
    format!("{}: {why}", path.display())
}

pub(super) fn files_are_closed(files: usize) -> String {
    match files {
        1 => "passwords and keys are in 1 file, which only its owner and group can read".to_owned(),
        _ => format!("passwords and keys are in {files} files, which only their owners and groups can read"),
    }
}

pub(super) fn others_write(path: &Path, mode: u32) -> String {
    format!("{} has the mode {mode:o}: other users can change what the daemon does", path.display())
}

pub(super) fn others_read(path: &Path, mode: u32) -> String {
    format!("{} has the mode {mode:o}: every user can read the secret in it", path.display())
}

pub(super) fn other_owner(path: &Path, uid: u32) -> String {
    format!("{} belongs to the user {uid}, which can change what the daemon does", path.display())
}

pub(super) fn chown_root(path: &Path) -> String {
    format!("chown root {}", path.display())
}

pub(super) fn chmod_640(path: &Path) -> String {
    format!("chmod 640 {}; change a secret that others may have seen", path.display())
}

pub(super) const HINT_FILES: &str = "run this as root";

// Certificates and keys.

pub(super) const ONLY_PSK: &str = "no certificates; connections are encrypted with keys made of the passwords";

pub(super) fn resource(kind: &str, name: &str) -> String {
    format!("{kind} {name}")
}

pub(super) fn in_clear(kind: &str, name: &str) -> String {
    format!("{kind} {name}: connections are not encrypted")
}

pub(super) fn password_is_enough(resource: &str) -> String {
    format!("{resource}: a caller with the password needs no certificate")
}

pub(super) const HINT_PSK: &str = "write: TLS PSK Enable = no, if the Director has a certificate";

pub(super) const HINT_IN_CLEAR: &str = "take \"TLS PSK Enable = no\" out on both sides";

pub(super) fn refused(resource: &str, why: &str) -> String {
    format!("{resource}: {why}")
}

pub(super) fn other_key(key: &Path, certificate: &Path) -> String {
    if key == certificate {
        return format!("{}: its key is not that of its certificate", key.display());
    }
    format!("{} is not the key of {}", key.display(), certificate.display())
}

pub(super) fn no_certificate(file: &Path) -> String {
    format!("{}: there is no certificate in it", file.display())
}

pub(super) fn ended(resource: &str, file: &Path, date: &str) -> String {
    format!("{resource}: {} ended on {date}", file.display())
}

pub(super) fn not_yet(resource: &str, file: &Path, date: &str) -> String {
    format!("{resource}: {} begins on {date}", file.display())
}

pub(super) fn ends_soon(resource: &str, file: &Path, date: &str, days: i64) -> String {
    format!("{resource}: {} ends on {date}, in {days} days", file.display())
}

pub(super) fn valid_until(resource: &str, file: &Path, date: &str) -> String {
    format!("{resource}: {} fits its key and is valid until {date}", file.display())
}

pub(super) fn authorities_only(resource: &str) -> String {
    format!("{resource}: authorities to check the other side, no certificate of its own")
}

pub(super) const HINT_CERTIFICATE: &str = "the file must be there, be PEM, and be readable when the daemon starts";
pub(super) const HINT_ENDED: &str = "have it signed again and reload the daemon";
pub(super) const HINT_NOT_YET: &str = "is the clock right, here and where it was signed?";
pub(super) const HINT_OTHER_KEY: &str = "no backup could be decrypted; put key and certificate together again";

pub(super) fn pki(encrypts: bool, signers: usize, masters: usize) -> String {
    let what = if encrypts { "encrypted and signed" } else { "signed" };
    format!("data is {what}; keys fit; other signers: {signers}, master keys: {masters}")
}

// Directories.

pub(super) fn no_directory(path: &Path) -> String {
    format!("{} is not a directory", path.display())
}

pub(super) fn not_writable(path: &Path, why: &str) -> String {
    format!("{} can't be written to: {why}", path.display())
}

pub(super) fn little_space(path: &Path, free: u64) -> String {
    format!("{} has only {free} MiB of free space", path.display())
}

pub(super) fn writable(path: &Path, free: u64) -> String {
    format!("{} can be written to; {free} MiB free", path.display())
}

pub(super) fn make_directory(path: &Path) -> String {
    format!("make it, or correct its name in the configuration: install -d -m 750 {}", path.display())
}

pub(super) fn chmod_750(path: &Path) -> String {
    format!("chmod o-w {}", path.display())
}

pub(super) fn chmod_755(path: &Path) -> String {
    format!("chmod go-w {}; who could write to it could run programs as the daemon", path.display())
}

pub(super) const HINT_NOT_WRITABLE: &str = "give it to the user of the daemon; is the file system read-only, or only for \
                                            the daemon (ReadWritePaths= of its unit)?";
pub(super) const HINT_SPACE: &str = "make room: the list of the last jobs, traces and mails are kept there";
pub(super) const NO_PLUGIN_DIRECTORY: &str = "none is set: FileSets with plugins fail";

pub(super) fn plugins(directory: &Path, names: &str, bpipe: Bpipe) -> String {
    let files = if names.is_empty() { "no files of plugins" } else { names };
    let bpipe = match bpipe {
        Bpipe::Builtin if names.is_empty() => "; bpipe is built in",
        Bpipe::Off => "; bpipe is off",
        Bpipe::Builtin | Bpipe::Library => "",
    };
    format!("{}: {files}{bpipe}", directory.display())
}

pub(super) const NO_BPIPE: &str = "plugins.bpipe is \"library\", and there is no bpipe-fd.so: FileSets with bpipe fail";
pub(super) const HINT_NO_BPIPE: &str = "take the setting out, and bpipe is built in";
pub(super) const HINT_PLUGIN_SETTINGS: &str = "the name is that of the plugin's file before -fd.so";
pub(super) const HINT_PLUGIN_USER: &str = "correct user and group in bacula-fd.toml";

pub(super) fn only_root_loads(file: &str, setting: &str) -> String {
    format!("{file} is loaded only by a daemon that is started as root: its setting \"{setting}\" needs that")
}

pub(super) const HINT_ONLY_ROOT: &str =
    "take the setting out; or start the daemon as root, and with -u if it is not to stay that";

// The process.

pub(super) fn answers(address: SocketAddr, daemon: Option<i32>, only_here: bool) -> String {
    let pid = daemon.map(|pid| format!("process {pid} ")).unwrap_or_default();
    let only = if only_here { "; only this host can call it" } else { "" };
    format!("{pid}answers on {address}{only}")
}

pub(super) fn silence(address: SocketAddr, daemon: Option<i32>) -> String {
    match daemon {
        Some(pid) => format!("process {pid} does not answer on {address}"),
        None => format!("another program than a File Daemon listens on {address}"),
    }
}

pub(super) fn does_not_listen(address: SocketAddr, pid: i32, why: &str) -> String {
    format!("process {pid} does not listen on {address}: {why}")
}

pub(super) fn no_daemon(address: SocketAddr) -> String {
    format!("no daemon runs; nothing listens on {address}")
}

pub(super) const HINT_SILENCE: &str =
    "ss -ltnp shows which program listens; a daemon is silent while 40 callers wait for its Maximum Concurrent Jobs";
pub(super) const HINT_NO_DAEMON: &str =
    "systemctl start bacula-fd; the reason of a failed start: journalctl -u bacula-fd";
pub(super) const HINT_USER: &str = "correct -u or -g; only root can become another user";

pub(super) const HINT_OTHER_USER: &str = "what follows is looked at as root, which may do more than the daemon's user";
pub(super) const NOT_AS_THE_USER: &str =
    "what follows is not looked at as the daemon's user: no process can change its user while its storage hangs";
pub(super) const HINT_NOT_AS_THE_USER: &str = "mend what does not answer, and run this again";

/// Whose capabilities they are; `runs`: a daemon answers.
pub(super) fn who(process: &Process, runs: bool) -> String {
    let uid = process.rights.uid;
    match process.whose {
        Whose::Daemon(pid) => format!("the daemon (process {pid}, user {uid})"),
        Whose::Unit if runs => format!("a daemon of {UNIT} (user {uid}; the one that runs can't be seen)"),
        Whose::Unit => format!("the daemon that {UNIT} starts (user {uid})"),
        Whose::This if runs => format!("this process (user {uid}; root can see what the daemon may do)"),
        Whose::This => format!("this process (user {uid}; no daemon runs)"),
    }
}

pub(super) fn can_not_read(who: &str) -> String {
    format!("{who} can't read files of other users")
}

pub(super) fn user_namespace(who: &str) -> String {
    format!("{who} is root of a container only, and can't read files of users outside it")
}

pub(super) fn saves_and_restores(who: &str) -> String {
    format!("{who} can save and restore every file")
}

pub(super) fn backup_only(who: &str, missing: &str) -> String {
    format!("{who} can save every file, and restore only its own (it lacks {missing})")
}

pub(super) fn restores_partly(who: &str, missing: &str) -> String {
    format!("{who} can save every file, but lacks {missing} for restores")
}

pub(super) const HINT_CAN_NOT_READ: &str =
    "run it as root, or with -u and -k, or with AmbientCapabilities=CAP_DAC_READ_SEARCH";
pub(super) const HINT_USER_NAMESPACE: &str = "run the container without a user namespace";
pub(super) const HINT_RESTORES_PARTLY: &str =
    "CapabilityBoundingSet= of the unit or the container takes them away; owners or devices can't be restored";

// Metrics.

/// Asks for their head.
pub(super) const METRICS_REQUEST: &str = "HEAD /metrics HTTP/1.0\r\n\r\n";

pub(super) fn metrics_answer(address: SocketAddr) -> String {
    format!("answered on {address}")
}

pub(super) fn metrics_free(address: SocketAddr) -> String {
    format!("no daemon runs; {address} is free for them")
}

pub(super) fn no_metrics(address: SocketAddr, why: &str) -> String {
    format!("not answered on {address}: {why}")
}

pub(super) fn other_at_metrics(address: SocketAddr) -> String {
    format!("another program listens on {address}")
}

pub(super) fn port_of_another_daemon(address: SocketAddr) -> String {
    let whose = if address.port() == 9101 { "a Director" } else { "a Storage Daemon" };
    format!("{address} has the port of {whose}, which can't start on this host while the metrics are there")
}

pub(super) fn metrics_on_own_port(metrics: SocketAddr, own: SocketAddr) -> String {
    format!("metrics.address {metrics} is the daemon's own port ({own}): it would not start")
}

pub(super) const HINT_METRICS_PORT: &str = "give metrics.address another port, such as 19102";
pub(super) const HINT_NO_METRICS: &str =
    "has the daemon been restarted since the setting was made? its log has the reason";

// The host.

pub(super) const WATCHES_PAGES: &str = "pages that a backup has filled are dropped again";
pub(super) const PAGES_STAY: &str = "what a backup reads of other users' files stays in it";
pub(super) const HINT_PAGES_STAY: &str = "Linux 6.5 or newer, or a daemon that is root, drops it again";

pub(super) fn synchronized(date: &str) -> String {
    format!("{date}, synchronized")
}

pub(super) fn not_synchronized(date: &str) -> String {
    format!("{date}, not synchronized")
}

pub(super) fn clock_unknown(date: &str) -> String {
    format!("{date}; the kernel does not tell whether it is synchronized")
}

pub(super) const HINT_CLOCK: &str =
    "run a time service such as chrony: a wrong clock makes jobs save too much or too little";

// Other daemons.

pub(super) fn no_answer(after: Duration) -> String {
    format!("no answer in {} s", after.as_secs())
}

pub(super) fn reached(name: &str, host: &str, port: u16, time: Duration) -> String {
    format!("{}accepts a connection ({:.1} ms); the password is not tried", place(name, host, port), milliseconds(time))
}

pub(super) fn not_reached(name: &str, host: &str, port: u16, why: &str) -> String {
    format!("{}can't be reached: {why}", place(name, host, port))
}

fn place(name: &str, host: &str, port: u16) -> String {
    let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    if name.is_empty() { format!("{place} ") } else { format!("{name} on {place} ") }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(super) fn directors_call(number: usize) -> String {
    let they = if number == 1 { "1 Director calls".to_owned() } else { format!("{number} Directors call") };
    format!("{they} this client; addresses of Directors are not in its configuration")
}

pub(super) const HINT_DIRECTOR: &str = "is the Director running, its Address and DIRport right, and the port open?";
pub(super) const HINT_STORAGE: &str = "is the Storage Daemon running, its name known here, and the port open?";
pub(super) const NO_STORAGE: &str = "each job names its own, so none is known here; --storage HOST tries one";
