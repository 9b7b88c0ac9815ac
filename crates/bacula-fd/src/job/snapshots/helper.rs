//! The program that makes snapshots (`Snapshot Command`), and one call of it (reference 07 §12.4).

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use fd_messages::split_arguments;
use fd_os::io_error_text;
use fd_os::process::{Group, IsWanted, Watched, is_unwanted};

use crate::job::program::{self, NotRun};
use crate::job::snapshots::output::{self, Answer};
use crate::shared::daemon::Daemon;
use crate::shared::snapshot_journal::Snapshot;
use crate::texts;

/// The helper without a `Snapshot Command`.
const SNAPSHOT_COMMAND: &[u8] = b"%ebsnapshot";
/// How long one call may take.
const LIMIT: Duration = Duration::from_secs(600);
/// Bytes that one call may print.
const MOST_OUTPUT: u64 = 1 << 20;

/// What the helper is called for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Which file systems are below a mount point.
    Subvolumes,
    /// Whether a file system can have a snapshot.
    Support,
    /// Make one.
    Create,
    /// Mount it.
    Mount,
    /// The opposite of both.
    Unmount,
    /// Remove it.
    Delete,
    /// The snapshots of a device.
    List,
    /// State and size of one.
    Query,
}

impl Action {
    const fn word(self) -> &'static str {
        match self {
            Self::Subvolumes => "subvolumes",
            Self::Support => "support",
            Self::Create => "create",
            Self::Mount => "mount",
            Self::Unmount => "unmount",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Query => "query",
        }
    }
}

/// Why a call has failed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Failed {
    /// The helper's `status`; 0 without one.
    pub(crate) status: i64,
    /// Its error, or how it ended.
    pub(crate) error: Vec<u8>,
    /// The directory of snapshots that it has named all the same.
    pub(crate) snap_directory: Vec<u8>,
    /// It was ended, so it may have done a part of its work.
    pub(crate) was_ended: bool,
    /// The system had no process for it, so it has done nothing.
    pub(crate) had_no_process: bool,
}

impl Failed {
    /// Whether the helper has not come to say anything.
    pub(crate) fn is_no_answer(&self) -> bool {
        self.was_ended || self.had_no_process
    }
}

/// Why nothing is known of what a call has printed.
#[derive(Debug, thiserror::Error)]
enum Unheard {
    #[error("{0}")]
    NotRun(NotRun),
    #[error("{}", io_error_text(.0))]
    NotRead(io::Error),
    #[error("It printed more than 1 MiB")]
    TooMuch,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Helper {
    /// The command, with the codes of its arguments.
    command: Vec<u8>,
    /// `Allowed Script Directories`.
    allowed: Vec<Vec<u8>>,
    working: Vec<u8>,
}

impl Helper {
    /// The helper of this daemon for a Director with these script directories.
    pub(crate) fn new(daemon: &Daemon, allowed: &[Vec<u8>]) -> Self {
        let config = &daemon.config().file_daemon;
        let command = config.snapshot_command.as_deref().unwrap_or(SNAPSHOT_COMMAND);
        let program = std::env::current_exe().unwrap_or_default();
        let directory = program.parent().map(|parent| parent.as_os_str().as_bytes()).unwrap_or_default();
        let directory = [directory, b"/"].concat();
        let working = config.working_directory.as_os_str().as_bytes().to_vec();
        let mut command = expand(command, |code| (code == b'e').then_some(directory.as_slice()));
        if daemon.debug.has_tag("snapshot") && daemon.debug.level() > 0 {
            let level = format!(" -d {} -o ", daemon.debug.level());
            command.extend([level.as_bytes(), &working, b"/bsnapshot.log "].concat());
        }
        Self { command, allowed: allowed.to_vec(), working }
    }

    /// Whether its program is there. Debian's packages of the stock daemon have none.
    pub(crate) fn exists(&self) -> bool {
        let program = split_arguments(&self.command).first().map(|word| without_doubled(word)).unwrap_or_default();
        !program.is_empty() && Path::new(OsStr::from_bytes(&program)).exists()
    }

    /// Calls it, and reads one answer.
    ///
    /// # Errors
    /// See [`Failed`]. A call that prints nothing has failed.
    pub(crate) fn ask(&self, action: Action, about: &Snapshot, wanted: IsWanted<'_>) -> Result<Answer, Failed> {
        let printed = self.run(action, about, wanted)?;
        if printed.is_empty() {
            return Err(Failed { error: texts::NO_HELPER_OUTPUT.to_vec(), ..Failed::default() });
        }
        Ok(output::answer(&printed))
    }

    /// Calls it; what it has printed.
    ///
    /// # Errors
    /// See [`Failed`].
    pub(crate) fn run(&self, action: Action, about: &Snapshot, wanted: IsWanted<'_>) -> Result<Vec<u8>, Failed> {
        // Split first: a value with blanks stays one argument.
        let expanded = |text: &[u8]| expand(text, |code| value(about, action, code));
        let words: Vec<Vec<u8>> = split_arguments(&self.command).iter().map(|word| expanded(word)).collect();
        let command = expanded(&self.command);
        let failed = |printed: &[u8], reason: &str| {
            let answer = output::answer(printed);
            let error = texts::snapshot_helper_failed(action.word(), &command, printed, reason);
            Failed { status: answer.status.unwrap_or(0), error, ..Failed::default() }
        };
        let deadline = Instant::now().checked_add(LIMIT);
        let in_time = || deadline.is_none_or(|deadline| Instant::now() < deadline);
        let wanted = || in_time() && wanted();
        match self.execute(&command, &words, action, about, &wanted) {
            Ok((printed, Some(status))) if status.success() => Ok(printed),
            // It has none (reference 07 §12.7).
            Ok((printed, Some(status)))
                if action == Action::Subvolumes && printed.is_empty() && status.code() == Some(1) =>
            {
                Ok(printed)
            }
            Ok((printed, Some(status))) => {
                let answer = output::answer(&printed);
                match answer.error {
                    Some(error) if status.code() == Some(1) => {
                        let (status, snap_directory) = (answer.status.unwrap_or(0), answer.snap_directory);
                        Err(Failed { status, error, snap_directory, ..Failed::default() })
                    }
                    _ if status.code() == Some(1) => Err(failed(&printed, &texts::ended(status))),
                    _ => {
                        let was_ended = status.code().is_none();
                        Err(Failed { status: 0, was_ended, ..failed(&printed, &texts::ended(status)) })
                    }
                }
            }
            Ok((printed, None)) => {
                let reason = if in_time() { "It was ended: the job is canceled" } else { "It took more than 600 s" };
                Err(Failed { status: 0, was_ended: true, ..failed(&printed, reason) })
            }
            Err(why) => {
                let was_ended = matches!(why, Unheard::TooMuch);
                let had_no_process = matches!(why, Unheard::NotRun(NotRun::NoProcess(_)));
                Err(Failed { was_ended, had_no_process, ..failed(b"", &why.to_string()) })
            }
        }
    }

    /// What it printed, and how it ended; `None` if it was ended.
    fn execute(
        &self,
        command: &[u8],
        words: &[Vec<u8>],
        action: Action,
        about: &Snapshot,
        wanted: IsWanted<'_>,
    ) -> Result<(Vec<u8>, Option<ExitStatus>), Unheard> {
        let environment =
            self.environment(action, about).map(|(name, value)| (name, OsString::from_vec(value.to_vec())));
        let dress = |process: &mut Command| {
            for (name, value) in environment {
                if value.is_empty() {
                    process.env_remove(name);
                } else {
                    process.env(name, value);
                }
            }
        };
        let started = program::start_words_while(command, words, &self.allowed, dress, Group::Ends, wanted);
        let (child, output) = match started {
            Ok(started) => started,
            Err(NotRun::Exec(error)) if is_unwanted(&error) => return Ok((Vec::new(), None)),
            Err(why) => return Err(Unheard::NotRun(why)),
        };
        let mut printed = Vec::new();
        let read = Watched::new(output, wanted).take(MOST_OUTPUT).read_to_end(&mut printed);
        match read {
            Err(error) if is_unwanted(&error) => {
                child.end();
                Ok((printed, None))
            }
            Err(error) => Err(Unheard::NotRead(error)),
            Ok(bytes) if bytes as u64 >= MOST_OUTPUT => {
                child.end();
                Err(Unheard::TooMuch)
            }
            Ok(_) => match child.wait(wanted) {
                Ok(status) if wanted() => Ok((printed, Some(status))),
                _ => Ok((printed, None)),
            },
        }
    }

    fn environment<'s>(&'s self, action: Action, about: &'s Snapshot) -> [(&'static str, &'s [u8]); 10] {
        [
            ("SNAPSHOT_NAME", &about.name),
            ("SNAPSHOT_VOLUME", &about.volume),
            ("SNAPSHOT_DEVICE", &about.device),
            ("SNAPSHOT_TYPE", &about.kind),
            ("SNAPSHOT_FSTYPE", &about.fs_type),
            ("SNAPSHOT_MOUNTPOINT", &about.mount_point),
            ("SNAPSHOT_SNAPDIRECTORY", &about.snap_directory),
            ("SNAPSHOT_SNAPMOUNTPOINT", &about.snap_mount_point),
            ("SNAPSHOT_WORKING", &self.working),
            ("SNAPSHOT_ACTION", action.word().as_bytes()),
        ]
    }
}

fn value(about: &Snapshot, action: Action, code: u8) -> Option<&[u8]> {
    Some(match code {
        b'n' => &about.name,
        b'v' => &about.volume,
        b'd' => &about.device,
        b'D' => &about.snap_directory,
        b'a' => action.word().as_bytes(),
        b't' => &about.kind,
        b'f' => &about.fs_type,
        b'p' => &about.mount_point,
        b's' => &about.snap_mount_point,
        b'%' => b"%",
        _ => return None,
    })
}

/// The word with the codes that have a value replaced.
fn expand<'v>(word: &[u8], value: impl Fn(u8) -> Option<&'v [u8]>) -> Vec<u8> {
    let (mut text, mut rest) = (Vec::with_capacity(word.len()), word);
    loop {
        rest = match rest {
            [] => return text,
            [b'%', code, rest @ ..] => {
                match value(*code) {
                    Some(value) => text.extend_from_slice(value),
                    None => text.extend_from_slice(&[b'%', *code]),
                }
                rest
            }
            [byte, rest @ ..] => {
                text.push(*byte);
                rest
            }
        }
    }
}

fn without_doubled(word: &[u8]) -> Vec<u8> {
    expand(word, |code| (code == b'%').then_some(&b"%"[..]))
}

#[cfg(test)]
pub(super) mod tests;
