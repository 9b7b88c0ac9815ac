//! Every text that we say to a Director or a Storage Daemon, word for word (reference 01 §20, 02 §3
//! and §16).
//!
//! A reply is one frame. A message text begins with the stock daemon's `file.c:line ` where it has
//! one, because site scripts match it, and ends with its newline.

use std::fmt::{self, Write as _};
use std::time::Duration;

use fd_bsock::scan::bash_spaces;

use crate::authenticate::AuthError;
use crate::command::{MetricFormat, NamedSnapshot, SetDebug};
use crate::storage::{Direction, StorageError};

/// A text about a frame or a name, which stands between the two parts.
#[derive(Clone, Copy, Debug)]
pub struct Quote(&'static str, &'static str);

impl Quote {
    /// The text about this one.
    pub fn of(self, quoted: impl AsRef<[u8]>) -> Vec<u8> {
        [self.0.as_bytes(), quoted.as_ref(), self.1.as_bytes()].concat()
    }
}

/// The version that the Director reads; below 13.0.0 it would shift every message type
/// (reference 01 §7).
pub const VERSION: &str = "15.0.3";
/// Release date as the `JobId=` reply has it.
pub const SHORT_DATE: &str = "25Mar25";
/// Release date as the status header has it.
pub const LONG_DATE: &str = "25 March 2025";

/// No such command.
pub const INVALID_COMMAND: &[u8] = b"2999 Invalid command\n";
/// A command that this Director may not use.
pub const NOT_PERMITTED: &[u8] = b"2997 Invalid command for a Director with Monitor directive enabled.\n";

/// A peer and we agreed on TLS with certificates, and our resource names none.
pub const NO_CERTIFICATES: &str = "no certificates were read for this resource";

/// Reply to a malformed `JobId=`.
pub const BAD_JOB: &[u8] = b"2901 Bad Job\n";
/// Reply to `level`.
pub const OK_LEVEL: &[u8] = b"2000 OK level\n";
/// Reply to `fileset`.
pub const OK_INCLUDE: &[u8] = b"2000 OK include\n";
/// Reply to `setbandwidth=`.
pub const OK_BANDWIDTH: &[u8] = b"2000 OK Bandwidth\n";
/// Reply to `storage`.
pub const OK_STORAGE: &[u8] = b"2000 OK storage\n";
/// Reply to a `storage` command that led nowhere.
pub const BAD_STORAGE: &[u8] = b"2902 Bad storage\n";
/// Reply to `backup`.
pub const OK_BACKUP: &[u8] = b"2000 OK backup\n";
/// Reply to a `backup` without a Storage Daemon.
pub const BAD_BACKUP: &[u8] = b"2902 Bad backup\n";
/// Reply to `restore`.
pub const OK_RESTORE: &[u8] = b"2000 OK restore\n";
/// One storage of a restore is done.
pub const STORAGE_END: &[u8] = b"2000 OK storage end\n";
/// The place of a restore is not in `AllowedRestoreDirectories`.
pub const RESTORE_NOT_ALLOWED: &[u8] = b"2996 Restore path out of allowed directories.\n";
/// Reply to `session`.
pub const OK_SESSION: &[u8] = b"2000 OK session\n";
/// Reply to `component_info`.
pub const OK_COMPONENT: &[u8] = b"2000 OK ComponentInfo\n";
/// Reply to `RunBeforeJob` whose program ended well.
pub const OK_RUN_BEFORE: &[u8] = b"2000 OK RunBefore\n";
/// Reply to `RunBeforeJob` whose program failed.
pub const BAD_RUN_BEFORE: &[u8] = b"2905 Bad RunBeforeJob command.\n";
/// Reply to `RunAfterJob`.
pub const OK_RUN_AFTER: &[u8] = b"2000 OK RunAfter\n";
/// Reply to `Run`.
pub const OK_RUN_SCRIPT: &[u8] = b"2000 OK RunScript\n";
/// Reply to a malformed `Run`.
pub const BAD_RUN_SCRIPT: &[u8] = b"2905 Bad RunScript command.\n";
/// Reply to `RunBeforeNow` after which the job is still well.
pub const OK_RUN_BEFORE_NOW: &[u8] = b"2000 OK RunBeforeNow\n";
/// Reply to `RunBeforeNow` after which it is not.
pub const BAD_RUN_BEFORE_NOW: &[u8] = b"2905 Bad RunBeforeNow command.\n";
/// Reply to a malformed `cancel` or `stop`.
pub const BAD_CANCEL: &[u8] = b"2902 Error scanning cancel command.\n";
/// Reply to a malformed `accurate`.
pub const BAD_ACCURATE: &[u8] = b"2991 Bad accurate command\n";
/// Reply to a malformed `estimate`.
pub const BAD_ESTIMATE: &[u8] = b"2992 Bad estimate command.\n";
/// Reply to a `statistics` that does not scan.
pub const BAD_STATISTICS: &[u8] = b"2900 Bad statistics command, missing argument.\n";
/// Reply to a `query` without parameter or plugin.
pub const BAD_QUERY: &[u8] = b"2992 Bad query command\n";
/// Reply to a `query` for a plugin that is not there; no newline.
pub const PLUGIN_NOT_FOUND: &[u8] = b"error=plugin not found";
/// Reply to a `query` that the plugin has failed; no newline.
pub const PLUGIN_PROTOCOL_ERROR: &[u8] = b"error=plugin protocol error";
/// To the Storage Daemon, about a `testnetwork` that does not scan.
pub const BAD_TEST_NETWORK: &[u8] = b"2999 testnetwork command error\n";
/// The `proxy` command has reached the Director.
pub const OK_PROXY: &[u8] = b"2000 proxy OK.\n";
/// Reply to `snapshot prune`, which does nothing.
pub const SNAPSHOT_PRUNED: &[u8] = b"2000 Snapshot pruned ERR=\n";
/// Reply to `snapshot del`.
pub const SNAPSHOT_DELETED: &[u8] = b"2000 Snapshot deleted ERR=\n";

/// Reply to `snapshot query`; `size` in bytes.
pub fn snapshot_queried(status: i64, size: i64) -> Vec<u8> {
    format!("2000 Snapshot status={status} size={size} ERR=\n").into_bytes()
}

/// Reply to `snapshot query` where the helper program fails; `why` in its words.
pub fn snapshot_not_queried(status: i64, why: &[u8]) -> Vec<u8> {
    let head = format!("2999 Snapshot status={status} size=-1 ERR=");
    [head.as_bytes(), bash_spaces(why).as_slice(), b"\n"].concat()
}

/// Reply to `snapshot del` where the helper program fails; `why` in its words.
pub fn snapshot_not_deleted(why: &[u8]) -> Vec<u8> {
    [b"2999 Snapshot deleted ERR=", bash_spaces(why).as_slice(), b"\n"].concat()
}

/// One line of `snapshot list` (reference 07 §12.6).
pub fn listed_snapshot(snapshot: &NamedSnapshot, created: i64, status: i64, error: &[u8]) -> Vec<u8> {
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
pub fn snapshot_helper_failed(action: &str, command: &[u8], printed: &[u8], reason: &str) -> Vec<u8> {
    let head = format!("Error while executing \"{action}\" ");
    [head.as_bytes(), command, b". ", printed, b" ", reason.as_bytes(), b"\n"].concat()
}

/// The helper program doesn't say where it has mounted a snapshot.
pub const NO_SNAPSHOT_MOUNT_POINT: &[u8] = b"the helper program names no snapmountpoint";

/// A snapshot was made of the file system that is mounted there.
pub fn snapshot_created(mount_point: &[u8]) -> Vec<u8> {
    [b"   Create Snapshot for ", mount_point, b"\n"].concat()
}

/// A snapshot could not be made.
pub fn snapshot_not_created(mount_point: &[u8], why: &[u8]) -> Vec<u8> {
    [b"   Unable to create snapshot of ", mount_point, b" ERR=", why, b"\n"].concat()
}

/// A snapshot could not be mounted; the file system is read as it is now.
pub fn snapshot_not_mounted(mount_point: &[u8], why: &[u8]) -> Vec<u8> {
    [b"   Unable to mount snapshot ", mount_point, b" ERR=", why, b"\n"].concat()
}

/// A name of the FileSet has no place in the snapshot of its file system.
pub fn not_in_snapshot(name: &[u8], mount_point: &[u8]) -> Vec<u8> {
    let tail = b" is a place of its file system that its snapshot doesn't show. It is read as it is now\n";
    [b"   Unable to use snapshot of ", mount_point, b" ERR=", name, tail].concat()
}

/// A snapshot was deleted.
pub fn snapshot_removed(mount_point: &[u8]) -> Vec<u8> {
    [b"   Delete Snapshot for ", mount_point, b"\n"].concat()
}

/// A snapshot could not be deleted.
pub fn snapshot_not_removed(mount_point: &[u8], why: &[u8]) -> Vec<u8> {
    [b"   Unable to delete snapshot of ", mount_point, b" ERR=", why, b"\n"].concat()
}

/// The table of mounts can't be read.
pub const NO_MOUNT_TABLE: &[u8] = b"Unable to scan mtab to determine devices to snapshot\n";

/// The Director is asked to note a snapshot that stays (reference 07 §12.5); no newline.
pub fn new_snapshot(job: &[u8], snapshot: &NamedSnapshot, created: i64, retention: &[u8]) -> Vec<u8> {
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
pub const SNAPSHOT_NOTED: &[u8] = b"1000 Snapshot created";

/// The Director has not noted a snapshot that is to stay. Nothing would ever delete it.
pub fn snapshot_not_noted(mount_point: &[u8], answer: &[u8]) -> Vec<u8> {
    let head = b"   The Director has not noted the snapshot of ";
    let middle = b", so it is deleted when the job ends. ERR=";
    [head.as_slice(), mount_point, middle, answer.trim_ascii_end(), b"\n"].concat()
}

/// A snapshot that an earlier run of the daemon has left behind is gone now.
pub fn left_snapshot_removed(name: &[u8], mount_point: &[u8]) -> Vec<u8> {
    let head = b"The daemon ended in the middle of job ";
    [head.as_slice(), name, b": its snapshot of ", mount_point, b" is removed now\n"].concat()
}

/// Such a snapshot can't be removed.
pub fn left_snapshot_stays(name: &[u8], mount_point: &[u8], volume: &[u8], why: &[u8]) -> Vec<u8> {
    let head = b"The daemon ended in the middle of job ";
    let middle = b" can't be removed; this is tried again at the next start. Volume=\"";
    let parts = [head, name, b": its snapshot of ", mount_point, middle, volume, b"\" ERR=", why, b"\n"];
    parts.concat()
}

/// Reply to `setdebug=`: what was asked for, and what is in force now.
pub fn ok_setdebug(now: &SetDebug) -> Vec<u8> {
    let SetDebug { level, trace, hangup, blowup, options, tags } = now;
    let numbers = format!("2000 OK setdebug={level} trace={trace} hangup={hangup} blowup={blowup} options=");
    [numbers.as_bytes(), options, b" tags=", tags, b"\n"].concat()
}

/// One metric of `statistics`: name, value, unit and description. `first` counts for JSON, which
/// divides by commas.
pub fn metric(format: MetricFormat, first: bool, name: &str, value: u64, unit: &str, description: &str) -> Vec<u8> {
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
pub fn test_network(bytes: u64, rounds: u64, bandwidth: u64) -> Vec<u8> {
    format!("testnetwork bytes={bytes} rtt={rounds} bw={bandwidth}\n").into_bytes()
}

/// What the network test has written; `speed` has its unit, as status shows numbers.
pub fn network_written(bytes: u64, milliseconds: u64, speed: &str) -> Vec<u8> {
    format!("2000 OK FD wrote bytes={bytes} to SD duration={milliseconds}ms write_speed={speed}B/s\n").into_bytes()
}

/// What it has read.
pub fn network_read(bytes: u64, milliseconds: u64, speed: &str) -> Vec<u8> {
    format!("2000 OK FD read bytes={bytes} from SD duration={milliseconds}ms read_speed={speed}B/s\n").into_bytes()
}

/// How long small packets took, there and back.
pub fn network_rounds(rounds: u64, total: Duration, least: Duration, most: Duration) -> Vec<u8> {
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
pub const NETWORK_FAILED: Quote = Quote("2999 network test failed ERR=", "\n");

/// The peer went before it said anything, as far as an error has to say so.
pub const NO_STARTTLS: &str = "[FE0071] Unable to get starttls protocol";
/// A peer that does not encrypt, where that is refused.
pub const TLS_REQUIRED: &str = "the connection is not encrypted, and tls.require in bacula-fd.toml refuses that";
/// A peer that has nothing better to say than what we said.
pub const CHALLENGE_REFLECTED: &str =
    "the peer sent our own challenge back to us; it may not know the password, and is not answered";
/// The Director accepts us, and says something else.
pub const NO_GREETING: &str = "[FE0031] Director rejected Hello command";

/// The Director does not take us for a console; `detail` may be empty.
pub fn no_console(detail: &str) -> String {
    let end = if detail.is_empty() { "" } else { "\n" };
    format!(
        "Director authorization problem.\nMost likely the passwords do not agree.\n\
         If you are using TLS, there may have been a certificate validation error during the TLS handshake.\n\
         For help, please see http://www.bacula.org/rel-manual/en/problems/Bacula_Frequently_Asked_Que.html\n{detail}{end}"
    )
}

/// The `proxy` command has not reached the Director.
pub const PROXY_FAILED: Quote = Quote("2999 proxy error. ERR=", "\n");

/// Reply to `sm_dump`.
pub const OK_SM_DUMP: &[u8] = b"2000 sm_dump OK\n";
/// Reply to `snapshot retention=`.
pub const OK_SNAPSHOT_RETENTION: &[u8] = b"2000 Snapshot retention\n";
/// Reply to other `snapshot` commands.
pub const BAD_SNAPSHOT: &[u8] = b"2999 Snapshot command not found\n";
/// First frame of `.status current` and `.status last`.
pub const OK_DOT_STATUS: &[u8] = b"2000 OK .status\n";
/// Reply to `.status` with an unknown word.
pub const BAD_DOT_STATUS: &[u8] = b"2900 Bad .status command, wrong argument.\n";
/// Reply to a malformed `restorefilelist`.
pub const BAD_RESTORE_FILE_LIST: &[u8] = b"2999 restorefilelist command error\n";

/// Reply to `verify`.
pub const OK_VERIFY: &[u8] = b"2000 OK verify\n";
/// Reply to `pluginoptions=`.
pub const OK_PLUGIN_OPTIONS: &[u8] = b"2000 OK plugin options\n";
/// Reply to a malformed `pluginoptions=`.
pub const BAD_PLUGIN_OPTIONS: &[u8] = b"2992 Bad pluginoptions command\n";
/// Reply to `restoreobject end`.
pub const OK_RESTORE_OBJECTS: &[u8] = b"2000 OK ObjectRestored\n";
/// Reply to a malformed `restoreobject`.
pub const BAD_RESTORE_OBJECT: &[u8] = b"2909 Bad RestoreObject command.\n";

/// Answers to a Storage Daemon's signals (reference 01 §3.2).
pub const STORE_OK: &[u8] = b"2000 OK\n";
/// Answer to signal `STATUS`.
pub const STORE_STATUS: &[u8] = b"Status OK\n";

/// Asks for a backup session.
pub const APPEND_OPEN: &[u8] = b"append open session\n";
/// The Storage Daemon is ready for data, or about to send it.
pub const DATA_OK: &[u8] = b"3000 OK data\n";
/// The Storage Daemon has all data.
pub const APPEND_DATA_OK: &[u8] = b"3000 OK append data\n";
/// The Storage Daemon has ended the session.
pub const APPEND_END_OK: &[u8] = b"3000 OK end\n";

/// Asks to send data, or for the first record.
pub fn session_data(direction: Direction, ticket: i64) -> Vec<u8> {
    format!("{direction} data {ticket}\n").into_bytes()
}

/// Asks for the verdict on the data, or for no more records.
pub fn session_close(direction: Direction, ticket: i64) -> Vec<u8> {
    format!("{direction} close session {ticket}\n").into_bytes()
}

/// All data has been sent.
pub fn append_end(ticket: i64) -> Vec<u8> {
    format!("append end session {ticket}\n").into_bytes()
}

/// Asks for the records of a session.
pub fn read_open(vol_session_id: u32, vol_session_time: u32) -> Vec<u8> {
    format!("read open session = DummyVolume {vol_session_id} {vol_session_time} 0 0 0 0\n").into_bytes()
}

/// Reply to `JobId=`: no newline. `platform` is `<host os>,<distribution>,<version>`, `plugins` a
/// comma list.
pub fn ok_job(platform: &str, plugins: &[u8]) -> Vec<u8> {
    let mut reply = format!("2000 OK Job {VERSION} ({SHORT_DATE}) {platform};").into_bytes();
    reply.extend_from_slice(plugins);
    reply
}

/// Answer to `PluginFeatures` for one plugin: its file, and what it says of itself.
pub fn plugin_features(file: &[u8], features: &[u8]) -> Vec<u8> {
    [b"2000 plugin=", file, b" features=", features, b"\n"].concat()
}

/// Reply to `cancel` (or `stop`) of a running job.
pub fn marked(job: &[u8], stopped: bool) -> Vec<u8> {
    let word: &[u8] = if stopped { b"stopped" } else { b"canceled" };
    [b"2001 Job \"", job, b"\" marked to be ", word, b".\n"].concat()
}

/// Reply to a command that names a job that does not run.
pub const JOB_NOT_FOUND: Quote = Quote("2901 Job ", " not found.\n");

/// Reply to a malformed `setbandwidth=`.
pub const BAD_BANDWIDTH: Quote = Quote("2991 Bad setbandwidth command: ", "\n");

/// Reply to a `verify` of a level that there is not. The stock daemon adds what its memory holds
/// behind the command.
pub const BAD_VERIFY_LEVEL: Quote = Quote("2994 Bad verify level: ", "\n");

/// Reply to a malformed `verify`.
pub const BAD_VERIFY_COMMAND: Quote = Quote("2994 Bad verify command: ", "\n");

/// Fatal message: options for a plugin that is not there.
pub const PLUGIN_NOT_LOADED: Quote = Quote("job.c:3735 Command plugin \"", "\" requested, but is not loaded.\n");

/// Error: a restore object is not what it is said to be.
pub fn object_not_unpacked(wanted: i32, got: usize, name: &[u8]) -> Vec<u8> {
    let head = format!("job.c:1375 Decompression failed. Len wanted={wanted} got={got}. Object=");
    [head.as_bytes(), name, b"\n"].concat()
}

/// Reply to a malformed `setdebug=`.
pub const BAD_SETDEBUG: Quote = Quote("2991 Bad setdebug command: ", "\n");

/// The last text of `estimate`; both numbers with thousands commas.
pub fn ok_estimate(files: u64, bytes: u64) -> Vec<u8> {
    format!("2000 OK estimate files={} bytes={}\n", commas(files), commas(bytes)).into_bytes()
}

/// A number with a comma before every third digit from the right.
pub fn commas(number: u64) -> String {
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
pub struct EndJob {
    /// Job state as a decimal character code.
    pub term_code: u8,
    /// Files.
    pub files: u32,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes sent or written.
    pub job_bytes: u64,
    /// Errors.
    pub errors: u32,
    /// Snapshots were open.
    pub vss: bool,
    /// PKI encryption is configured.
    pub encrypt: bool,
    /// Bytes to the Storage Daemon before line compression; signals count with their negative
    /// value.
    pub comm_bytes: i64,
    /// The same after line compression.
    pub compress_comm_bytes: i64,
}

impl EndJob {
    /// The line, the last numbered frame of a job. The two Comm counters are cut to 32 bits as the
    /// stock daemon's are.
    pub fn frame(&self) -> Vec<u8> {
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
pub fn progress(job_id: u32, files: u32, bytes: u64) -> Vec<u8> {
    format!("Progress JobId={job_id} files={files} bytes={bytes} bps=0\n").into_bytes()
}

/// Raw text for a peer whose hello has an unknown name.
pub fn unknown_director(name: &[u8], ip: &str) -> Vec<u8> {
    [b"authenticate.c:100 [FE0027] Connection from unknown Director ", name, b" at ", ip.as_bytes(), b" rejected.\n"]
        .concat()
}

/// Raw text for a peer whose hello does not scan; at most 100 bytes of it are shown.
pub fn bad_hello(ip: &str, hello: &[u8]) -> Vec<u8> {
    let shown = hello.get(..100).unwrap_or(hello);
    [b"authenticate.c:81 Bad Hello command from Director at ", ip.as_bytes(), b": ", shown, b"\n"].concat()
}

/// Raw text for a second hello of an impossible length.
pub fn bad_hello_length(ip: &str, len: usize) -> Vec<u8> {
    format!("authenticate.c:60 Bad Hello command from Director at {ip}. Len={len}.\n").into_bytes()
}

/// Security message about a first frame that is no hello; `len` is negative for a signal, 0 for no
/// frame at all.
pub fn expected_hello(ip: &str, len: i64) -> Vec<u8> {
    format!("job.c:592 FD expecting Hello got bad command from {ip}:{ip}. Len={len}.\n").into_bytes()
}

/// Error about a certificate of the peer's chain.
pub const CERTIFICATE_ERROR: Quote = Quote("", "\n");

/// Warning about a Storage Daemon that does not trust us, or we not it. The stock daemon says
/// nothing.
pub fn storage_rejected(host: &str, port: u16, error: &StorageError) -> Vec<u8> {
    let hint = match error {
        StorageError::Authentication(AuthError::Requirement { .. }) => {
            " (compare TLS Enable, TLS PSK Enable and TLS Require of both daemons)"
        }
        StorageError::Authentication(AuthError::Tls(_)) => {
            " (compare TLS CA Certificate File, TLS Certificate and the addresses of both daemons)"
        }
        _ => "",
    };
    format!("Storage daemon at {host}:{port}: {error}{hint}\n").into_bytes()
}

/// Security message about a connection that `hosts.allow` and `hosts.deny` forbid.
pub fn refused_by_hosts_access(ip: &str, port: u16) -> Vec<u8> {
    format!("bnet_server.c:201 Connection from {ip}:{port} refused by hosts.access\n").into_bytes()
}

/// Security message about a wrong password.
pub fn incorrect_password(director: &[u8], ip: &str) -> Vec<u8> {
    [b"Incorrect password given by Director ", director, b" at ", ip.as_bytes(), b".\n"].concat()
}

/// Security message about a login that looks like an attack; `why` is [`TLS_REQUIRED`] or
/// [`CHALLENGE_REFLECTED`].
pub fn suspicious_login(director: &[u8], ip: &str, why: &str) -> Vec<u8> {
    [b"Director ", director, b" at ", ip.as_bytes(), b" refused: ", why.as_bytes(), b".\n"].concat()
}

/// A Storage Daemon's call that does not scan.
pub const BAD_STORAGE_CALL: &[u8] = b"SD connect failed: Bad Hello command\n";

/// A Storage Daemon's call for a job that does not run here.
pub const STORAGE_CALL_WITHOUT_JOB: Quote = Quote("hello.c:63 SD connect failed: Job name not found: ", "\n");

/// Fatal message about a disabled command; `word` is the table's text.
pub const COMMAND_DISABLED: Quote = Quote("Command: \"", "\" is disabled.\n");

/// Fatal: `JobId=` that does not scan, or a second one.
pub const MALFORMED_JOB: Quote = Quote("Bad Job Command: ", "");
/// Fatal: `level = ` with a word that is no level.
pub const UNKNOWN_LEVEL: Quote = Quote("job.c:2756 Unknown backup level: ", "\n");
/// Fatal: `level = since_utime`, or the Director's answer about its clock.
pub const MALFORMED_LEVEL: Quote = Quote("job.c:2769 Bad level command: ", "\n");
/// Fatal: `storage `.
pub const MALFORMED_STORAGE: Quote = Quote("Bad storage command: ", "");
/// Fatal: `session`.
pub const MALFORMED_SESSION: Quote = Quote("Bad session command: ", "");
/// Fatal: `restore `.
pub const MALFORMED_RESTORE: Quote = Quote("Bad replace command. CMD=", "\n");
/// Fatal: `Run`.
pub const MALFORMED_RUN_SCRIPT: Quote = Quote("job.c:1284 Bad RunScript command: ", "\n");
/// Fatal: `restoreobject`.
pub const MALFORMED_RESTORE_OBJECT: Quote = Quote("job.c:1340 Bad RestoreObject command: ", "\n");
/// Fatal: `estimate`.
pub const MALFORMED_ESTIMATE: Quote = Quote("Bad estimate command: ", "");
/// Fatal: `.status`.
pub const MALFORMED_DOT_STATUS: Quote = Quote("status.c:607 Bad .status command: ", "\n");
/// Fatal: `statistics`.
pub const MALFORMED_STATISTICS: Quote = Quote("fdcollect.c:186 Bad statistics command: ", "\n");
/// Fatal: `restore … regexwhere=` of expressions of which none is usable.
pub const BAD_WHERE_REGEX: Quote = Quote("Bad where regexp. where=", "\n");

/// Fatal message: the restore's place is not allowed.
pub const RESTORE_PATH_NOT_ALLOWED: Quote = Quote("Path not allowed for restore: \"", "\"\n");

/// Information: the Storage Daemon answered.
pub fn connected_to_storage(address: &str, port: u16, encrypted: bool) -> Vec<u8> {
    let how = if encrypted { "with TLS" } else { "without encryption" };
    format!("Connected to Storage at {address}:{port} {how}\n").into_bytes()
}

/// Warning: the Storage Daemon does not answer yet. `text` has the words for it.
pub const STORAGE_RETRYING: Quote = Quote("bsockcore.c:259 ", "");

/// Fatal: `backup` came before `storage`.
pub const NO_STORAGE: &[u8] = b"Cannot contact Storage daemon\n";
/// Fatal: `restore` came before `storage`.
pub const IMPROPER_SEQUENCE: &[u8] = b"Improper calling sequence.\n";
/// Fatal: the Storage Daemon did not call.
pub const STORAGE_DID_NOT_CALL: &[u8] = b"job.c:2916 Failed connect from Storage daemon. SD bsock=NULL.\n";
/// A canceled job has left its thread behind. Not in the stock daemon, whose job stays.
pub const THREAD_LEFT_BEHIND: &[u8] = b"Storage does not answer: the job's own thread still waits for it.\n";

/// The Director's and our clock differ; a warning from 600 seconds on.
pub fn clocks_differ(seconds: i64) -> Vec<u8> {
    format!("DIR and FD clocks differ by {seconds} seconds, FD automatically compensating.\n").into_bytes()
}

/// Fatal: data could not be sent; `line` is the stock daemon's place of the failed send
/// (reference 04 §16).
pub fn send_error(line: u32, reason: &str) -> Vec<u8> {
    format!("backup.c:{line} Network send error to SD. ERR={reason}\n").into_bytes()
}

/// Fatal: `setdebug … hangup=` of so many files.
pub fn hung_up_after_files(files: u32) -> Vec<u8> {
    format!("message.c:1270 Debug hangup requested after {files} files.\n").into_bytes()
}

/// Fatal: `setdebug … hangup=` of so many KiB.
pub fn hung_up_after_kilobytes(kilobytes: u64) -> Vec<u8> {
    format!("message.c:1272 Debug hangup requested after {kilobytes} Kbytes.\n").into_bytes()
}

/// Information: a script is about to run. `label` says when.
pub fn script_starts(label: &str, command: &[u8]) -> Vec<u8> {
    [b"shell command: run ", label.as_bytes(), b" \"", command, b"\"\n"].concat()
}

/// Information: a line that a script printed.
pub fn script_says(label: &str, line: &[u8]) -> Vec<u8> {
    [label.as_bytes(), b": ", line, b"\n"].concat()
}

/// Error: a script failed.
pub fn script_failed(label: &str, status: i32, error: &str) -> Vec<u8> {
    format!("Runscript: {label} returned non-zero status={status}. ERR={error}\n").into_bytes()
}

/// Error of a socket, in its own words: `what` without the newline.
pub const SOCKET_ERROR: Quote = Quote("bsock.c:388 ", "\n");

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongPassword => {
                f.write_str("wrong password: the peer's answer to our challenge does not fit our key")
            }
            Self::Refused(got) => {
                write!(f, "the peer refused our answer to its challenge (wanted \"1000 OK auth\", got {got})")
            }
            Self::Requirement { ours, peers } => {
                write!(f, "no common encryption: we need tlspsk={ours}, the peer said tlspsk={peers}")
            }
            Self::Clear => f.write_str(TLS_REQUIRED),
            Self::Reflected => f.write_str(CHALLENGE_REFLECTED),
            Self::Tls(why) => write!(f, "TLS handshake failed, check the passwords: {why}"),
            Self::NoStart(got) => write!(f, "waiting for starttls or a challenge: {got}"),
            Self::Unexpected { what, got } => write!(f, "{what}: {got}"),
        }
    }
}

impl AuthError {
    /// What the stock daemon says of it to a console, beside that there is a problem; mostly
    /// nothing.
    pub fn detail(&self) -> &str {
        match self {
            Self::Tls(why) => why,
            Self::Clear => TLS_REQUIRED,
            Self::Reflected => CHALLENGE_REFLECTED,
            Self::NoStart(_) => NO_STARTTLS,
            _ => "",
        }
    }
}

impl StorageError {
    /// The text of the fatal job message; empty where the stock daemon says nothing
    /// (reference 01 §12).
    pub fn message(&self) -> Vec<u8> {
        match self {
            Self::NoCapabilities(reason) => {
                format!("hello.c:183 [FE0031] Recv caps from SD failed. ERR={reason}\n").into_bytes()
            }
            Self::BadCapabilities(got) => [b"hello.c:191 Bad caps from SD: ", got.as_slice(), b".\n"].concat(),
            Self::Authentication(_) | Self::NoHello(_) => Vec::new(),
            Self::Open(Direction::Append, got) => Quote("Bad response to append open: ", "\n").of(got),
            Self::Open(Direction::Read, got) => Quote("Bad response to SD read open: ", "\n").of(got),
            Self::OpenGone(Direction::Append) => b"Bad response from stored to open command\n".to_vec(),
            Self::OpenGone(Direction::Read) => b"Bad response from stored to read open command\n".to_vec(),
            Self::Response { command, wanted, got } => {
                let wanted = String::from_utf8_lossy(wanted);
                let (len, shown) = (got.len(), one_line(got));
                format!(
                    "job.c:3698 Bad response from SD to {command} command. Wanted {wanted}, got len={len} \
                     msg=\"{shown}\"\n"
                )
                .into_bytes()
            }
            Self::ResponseSignal { command, wanted, got } => {
                let wanted = String::from_utf8_lossy(wanted);
                format!("job.c:3701 Bad response from SD to {command} command. Wanted {wanted}, got SIGNAL {got}\n")
                    .into_bytes()
            }
            Self::ResponseGone { command, reason } => {
                format!("job.c:3693 Comm error with SD. bad response to {command}. ERR={reason}\n").into_bytes()
            }
            Self::AppendClose => b"Append Close with SD failed.\n".to_vec(),
            Self::BadStatus(code) => {
                format!("Bad status {code} {} returned from Storage Daemon.\n", code.escape_ascii()).into_bytes()
            }
        }
    }
}

/// What a peer sent, on one line and never longer than a line should be.
fn one_line(text: &[u8]) -> String {
    let shown = text.get(..400).unwrap_or(text);
    shown.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_job_line_of_a_real_backup() {
        let end = EndJob {
            term_code: 84,
            files: 7,
            read_bytes: 17,
            job_bytes: 17,
            comm_bytes: 1053,
            compress_comm_bytes: 1053,
            ..EndJob::default()
        };
        assert_eq!(
            String::from_utf8(end.frame()).unwrap(),
            "2800 End Job TermCode=84 JobFiles=7 ReadBytes=17 JobBytes=17 Errors=0 VSS=0 Encrypt=0 CommBytes=1053 \
             CompressCommBytes=1053\n"
        );
    }

    #[test]
    fn comm_bytes_are_cut_to_32_bits() {
        let end = EndJob { comm_bytes: 0x1_0000_0005, ..EndJob::default() };
        assert!(String::from_utf8(end.frame()).unwrap().contains(" CommBytes=5 "));
    }

    #[test]
    fn the_reply_to_job_has_no_newline() {
        assert_eq!(
            ok_job("x86_64-pc-linux-gnu,debian,trixie/sid", b"bpipe(2)"),
            b"2000 OK Job 15.0.3 (25Mar25) x86_64-pc-linux-gnu,debian,trixie/sid;bpipe(2)"
        );
    }

    #[test]
    fn commas_stand_before_every_third_digit() {
        assert_eq!(commas(0), "0");
        assert_eq!(commas(999), "999");
        assert_eq!(commas(1000), "1,000");
        assert_eq!(commas(1_234_567_890_123), "1,234,567,890,123");
    }

    #[test]
    fn the_reply_to_a_bad_hello_shows_no_more_than_100_bytes() {
        let text = bad_hello("127.0.0.1", &[b'x'; 400]);
        assert!(text.ends_with(&[[b'x'; 100].as_slice(), b"\n"].concat()));
        assert!(!text.windows(101).any(|window| window == [b'x'; 101]));
    }
}
