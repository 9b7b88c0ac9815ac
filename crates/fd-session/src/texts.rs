//! What the dialogues here say to a Director or a Storage Daemon, word for word (reference 01 §20,
//! 02 §3 and §16). Not here: what else the daemon says to them.
//!
//! A reply is one frame. A message text begins with the stock daemon's `file.c:line ` where it has
//! one, because site scripts match it, and ends with its newline.

use crate::storage::{Direction, StorageError};

/// A text about a frame or a name, which stands between the two parts.
#[derive(Clone, Copy, Debug)]
pub struct Quote(&'static str, &'static str);

impl Quote {
    /// What stands before and behind.
    pub const fn new(before: &'static str, behind: &'static str) -> Self {
        Self(before, behind)
    }

    /// The text about this one.
    pub fn of(self, quoted: impl AsRef<[u8]>) -> Vec<u8> {
        [self.0.as_bytes(), quoted.as_ref(), self.1.as_bytes()].concat()
    }
}

/// No such command.
pub(crate) const INVALID_COMMAND: &[u8] = b"2999 Invalid command\n";

/// A command that this Director may not use.
pub(crate) const NOT_PERMITTED: &[u8] = b"2997 Invalid command for a Director with Monitor directive enabled.\n";

/// Reply to a malformed `JobId=`.
pub(crate) const BAD_JOB: &[u8] = b"2901 Bad Job\n";

/// Reply to a `storage` command that led nowhere.
pub const BAD_STORAGE: &[u8] = b"2902 Bad storage\n";

/// Reply to a malformed `Run`.
pub const BAD_RUN_SCRIPT: &[u8] = b"2905 Bad RunScript command.\n";

/// Reply to a malformed `cancel` or `stop`.
pub(crate) const BAD_CANCEL: &[u8] = b"2902 Error scanning cancel command.\n";

/// Reply to a malformed `accurate`.
pub(crate) const BAD_ACCURATE: &[u8] = b"2991 Bad accurate command\n";

/// Reply to a malformed `estimate`.
pub(crate) const BAD_ESTIMATE: &[u8] = b"2992 Bad estimate command.\n";

/// Reply to a `statistics` that does not scan.
pub(crate) const BAD_STATISTICS: &[u8] = b"2900 Bad statistics command, missing argument.\n";

/// Reply to a `query` without parameter or plugin.
pub(crate) const BAD_QUERY: &[u8] = b"2992 Bad query command\n";

/// Reply to other `snapshot` commands.
pub(crate) const BAD_SNAPSHOT: &[u8] = b"2999 Snapshot command not found\n";

/// Reply to `.status` with an unknown word.
pub(crate) const BAD_DOT_STATUS: &[u8] = b"2900 Bad .status command, wrong argument.\n";

/// Reply to a malformed `restorefilelist`.
pub(crate) const BAD_RESTORE_FILE_LIST: &[u8] = b"2999 restorefilelist command error\n";

/// Reply to a malformed `pluginoptions=`.
pub(crate) const BAD_PLUGIN_OPTIONS: &[u8] = b"2992 Bad pluginoptions command\n";

/// Reply to a malformed `restoreobject`.
pub const BAD_RESTORE_OBJECT: &[u8] = b"2909 Bad RestoreObject command.\n";

/// Asks for a backup session.
pub(crate) const APPEND_OPEN: &[u8] = b"append open session\n";

/// The Storage Daemon is ready for data, or about to send it.
pub(crate) const DATA_OK: &[u8] = b"3000 OK data\n";

/// The Storage Daemon has all data.
pub(crate) const APPEND_DATA_OK: &[u8] = b"3000 OK append data\n";

/// The Storage Daemon has ended the session.
pub(crate) const APPEND_END_OK: &[u8] = b"3000 OK end\n";

/// Asks to send data, or for the first record.
pub(crate) fn session_data(direction: Direction, ticket: i64) -> Vec<u8> {
    format!("{direction} data {ticket}\n").into_bytes()
}

/// Asks for the verdict on the data, or for no more records.
pub(crate) fn session_close(direction: Direction, ticket: i64) -> Vec<u8> {
    format!("{direction} close session {ticket}\n").into_bytes()
}

/// All data has been sent.
pub(crate) fn append_end(ticket: i64) -> Vec<u8> {
    format!("append end session {ticket}\n").into_bytes()
}

/// Asks for the records of a session.
pub(crate) fn read_open(vol_session_id: u32, vol_session_time: u32) -> Vec<u8> {
    format!("read open session = DummyVolume {vol_session_id} {vol_session_time} 0 0 0 0\n").into_bytes()
}

/// Reply to a malformed `setbandwidth=`.
pub(crate) const BAD_BANDWIDTH: Quote = Quote("2991 Bad setbandwidth command: ", "\n");

/// Reply to a `verify` of a level that there is not. The stock daemon adds what its memory holds
/// behind the command.
pub(crate) const BAD_VERIFY_LEVEL: Quote = Quote("2994 Bad verify level: ", "\n");

/// Reply to a malformed `verify`.
pub(crate) const BAD_VERIFY_COMMAND: Quote = Quote("2994 Bad verify command: ", "\n");

/// Reply to a malformed `setdebug=`.
pub(crate) const BAD_SETDEBUG: Quote = Quote("2991 Bad setdebug command: ", "\n");

/// Raw text for a second hello of an impossible length.
pub(crate) fn bad_hello_length(ip: &str, len: usize) -> Vec<u8> {
    format!("authenticate.c:60 Bad Hello command from Director at {ip}. Len={len}.\n").into_bytes()
}

/// Fatal message about a disabled command; `word` is the table's text.
pub(crate) const COMMAND_DISABLED: Quote = Quote("Command: \"", "\" is disabled.\n");

/// Fatal: `JobId=` that does not scan, or a second one.
pub(crate) const MALFORMED_JOB: Quote = Quote("Bad Job Command: ", "");

/// Fatal: `level = ` with a word that is no level.
pub(crate) const UNKNOWN_LEVEL: Quote = Quote("job.c:2756 Unknown backup level: ", "\n");

/// Fatal: `level = since_utime`, or the Director's answer about its clock.
pub const MALFORMED_LEVEL: Quote = Quote("job.c:2769 Bad level command: ", "\n");

/// Fatal: `storage `.
pub(crate) const MALFORMED_STORAGE: Quote = Quote("Bad storage command: ", "");

/// Fatal: `session`.
pub(crate) const MALFORMED_SESSION: Quote = Quote("Bad session command: ", "");

/// Fatal: `restore `.
pub(crate) const MALFORMED_RESTORE: Quote = Quote("Bad replace command. CMD=", "\n");

/// Fatal: `Run`.
pub(crate) const MALFORMED_RUN_SCRIPT: Quote = Quote("job.c:1284 Bad RunScript command: ", "\n");

/// Fatal: `restoreobject`.
pub(crate) const MALFORMED_RESTORE_OBJECT: Quote = Quote("job.c:1340 Bad RestoreObject command: ", "\n");

/// Fatal: `estimate`.
pub(crate) const MALFORMED_ESTIMATE: Quote = Quote("Bad estimate command: ", "");

/// Fatal: `.status`.
pub(crate) const MALFORMED_DOT_STATUS: Quote = Quote("status.c:607 Bad .status command: ", "\n");

/// Fatal: `statistics`.
pub(crate) const MALFORMED_STATISTICS: Quote = Quote("fdcollect.c:186 Bad statistics command: ", "\n");

impl StorageError {
    /// The text of the fatal job message; empty where the stock daemon says nothing
    /// (reference 01 §12).
    pub fn message(&self) -> Vec<u8> {
        match self {
            Self::NoCapabilities(reason) => {
                format!("hello.c:183 [FE0031] Recv caps from SD failed. ERR={reason}\n").into_bytes()
            }
            Self::BadCapabilities(got) => {
                format!("hello.c:191 Bad caps from SD: {}.\n", one_line(got.trim_ascii_end())).into_bytes()
            }
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
