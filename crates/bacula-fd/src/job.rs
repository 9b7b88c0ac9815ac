//! A job as its threads, the operator's `cancel` and `status` share it. Not here: doing it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fd_config::Messages;
use fd_messages::{CancelToken, MessageType, Progress};
use fd_session::JobStatus;
use fd_transport::{Bandwidth, Canceller, Channel};

/// What a job is doing, the `JobType` of the catalog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JobKind {
    /// Nothing yet.
    System,
    /// A backup.
    Backup,
    /// A restore.
    Restore,
    /// A verify.
    Verify,
}

impl JobKind {
    /// The letter of the catalog.
    pub(crate) const fn letter(self) -> u8 {
        match self {
            Self::System => b'I',
            Self::Backup => b'B',
            Self::Restore => b'R',
            Self::Verify => b'V',
        }
    }

    /// As status and job codes show it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::System => "System or Console",
            Self::Backup => "Backup",
            Self::Restore => "Restore",
            Self::Verify => "Verify",
        }
    }

    const fn from_letter(letter: u8) -> Self {
        match letter {
            b'B' => Self::Backup,
            b'R' => Self::Restore,
            b'V' => Self::Verify,
            _ => Self::System,
        }
    }
}

/// A level's letter as status and job codes show it; a blank for none.
pub(crate) const fn level_words(letter: u8) -> &'static str {
    match letter {
        b'F' => "Full",
        b'B' => "Base",
        b'D' => "Differential",
        b'I' => "Incremental",
        b'S' => "Since",
        b'C' => "Verify Catalog",
        b'V' => "Verify Init Catalog",
        b'O' => "Verify Volume to Catalog",
        b'd' => "Verify Disk to Catalog",
        b'A' => "Verify Data",
        _ => " ",
    }
}

/// A job's state, level and kind in words, as job codes show them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Words {
    /// `%e`.
    pub status: &'static str,
    /// `%l`.
    pub level: &'static str,
    /// `%t`.
    pub kind: &'static str,
}

/// Who a job is, as `JobId=` says it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// Catalog number; 0 for console commands.
    pub job_id: u32,
    /// Full name with date and number.
    pub name: Vec<u8>,
    /// The Storage Daemon's session.
    pub vol_session_id: u32,
    /// The Storage Daemon's session time.
    pub vol_session_time: u32,
}

/// The Storage Daemon's connection as status and cancel see it.
#[derive(Clone, Debug)]
struct StorageSide {
    canceller: Canceller,
    encrypted: bool,
}

/// One job.
#[derive(Debug)]
pub(crate) struct Job {
    /// Who it is.
    pub identity: Identity,
    /// When its connection was made, seconds since 1970.
    pub started: i64,
    /// Its counters.
    pub progress: Progress,
    /// Tells its threads to stop.
    pub cancel: CancelToken,
    /// Bytes per second towards the Storage Daemon, 0 for no limit. Shared with the connection.
    pub bandwidth: Bandwidth,
    status: AtomicU8,
    kind: AtomicU8,
    level: AtomicU8,
    storage: Mutex<Option<StorageSide>>,
    /// A Storage Daemon that called us, until the job's own thread takes it.
    caller: Mutex<Option<Channel>>,
    called: Condvar,
}

impl Job {
    /// A job that has just been named.
    pub(crate) fn new(identity: Identity, started: i64) -> Self {
        Self {
            identity,
            started,
            progress: Progress::default(),
            cancel: CancelToken::new(),
            bandwidth: Bandwidth::new(0),
            status: AtomicU8::new(JobStatus::Created.code()),
            kind: AtomicU8::new(JobKind::System.letter()),
            level: AtomicU8::new(b' '),
            storage: Mutex::new(None),
            caller: Mutex::new(None),
            called: Condvar::new(),
        }
    }

    /// Its full name as text.
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.identity.name).into_owned()
    }

    /// Its state.
    pub(crate) fn status(&self) -> JobStatus {
        JobStatus::from_code(self.status.load(Ordering::Relaxed)).unwrap_or(JobStatus::Created)
    }

    /// Asks for another state; the heavier one stays (reference 02 §7.2).
    pub(crate) fn change_status(&self, new: JobStatus) {
        let changed = |code| JobStatus::from_code(code).map(|old| old.changed_to(new).code());
        let _previous = self.status.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
        if self.status().is_canceled() {
            self.cancel.cancel();
        }
    }

    /// What it does.
    pub(crate) fn kind(&self) -> JobKind {
        JobKind::from_letter(self.kind.load(Ordering::Relaxed))
    }

    /// Notes what it does.
    pub(crate) fn set_kind(&self, kind: JobKind) {
        self.kind.store(kind.letter(), Ordering::Relaxed);
    }

    /// The level's letter, a blank before there is one.
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// Notes the level.
    pub(crate) fn set_level(&self, letter: u8) {
        self.level.store(letter, Ordering::Relaxed);
    }

    /// The Storage Daemon's connection, for [`Self::abort`] and status; `None` when it is closed.
    pub(crate) fn set_storage(&self, storage: Option<(Canceller, bool)>) {
        let side = storage.map(|(canceller, encrypted)| StorageSide { canceller, encrypted });
        if self.cancel.is_cancelled()
            && let Some(side) = &side
        {
            // The cancel came while we were still connecting.
            side.canceller.cancel();
        }
        *self.storage.lock().unwrap_or_else(PoisonError::into_inner) = side;
    }

    /// Whether there is a connection to a Storage Daemon, and whether it is encrypted.
    pub(crate) fn storage_encrypted(&self) -> Option<bool> {
        let side = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        side.as_ref().map(|side| side.encrypted)
    }

    /// The operator's `cancel`, or `stop` if the job is to be resumed: the state changes and every wait on the Storage
    /// Daemon ends.
    pub(crate) fn abort(&self, stop: bool) {
        self.change_status(if stop { JobStatus::Incomplete } else { JobStatus::Canceled });
        self.cancel.cancel();
        if let Some(side) = self.storage.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            side.canceller.cancel();
        }
    }

    /// What job codes show of it (reference 02 §10.2).
    pub(crate) fn words(&self) -> Words {
        let status = match self.status() {
            JobStatus::Terminated if self.progress.errors() == 0 => "OK",
            JobStatus::Terminated | JobStatus::Warnings => "OK -- with warnings",
            JobStatus::Error => "Error",
            JobStatus::Fatal => "Fatal Error",
            JobStatus::Canceled => "Canceled",
            JobStatus::Differences => "Differences",
            JobStatus::Created => "Created",
            JobStatus::Incomplete => "Incomplete",
            JobStatus::Blocked | JobStatus::Running => "Unknown term code",
        };
        Words { status, level: level_words(self.level()), kind: self.kind().words() }
    }

    /// A Storage Daemon has called for this job; gives the connection back if another one waits already.
    pub(crate) fn park(&self, channel: Channel) -> Result<(), Box<Channel>> {
        let mut caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        if caller.is_some() {
            return Err(Box::new(channel));
        }
        *caller = Some(channel);
        self.called.notify_all();
        Ok(())
    }

    /// Waits for the Storage Daemon's call, at most `limit` or until the job is cancelled.
    pub(crate) fn await_call(&self, limit: Duration) -> Option<Channel> {
        /// How often a cancel is looked for.
        const STEP: Duration = Duration::from_millis(200);
        let start = Instant::now();
        let mut caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        while caller.is_none() && !self.cancel.is_cancelled() && start.elapsed() < limit {
            caller = self.called.wait_timeout(caller, STEP).unwrap_or_else(PoisonError::into_inner).0;
        }
        caller.take()
    }

    /// What a message of this type does to the job. `false`: no destination takes the type, so it has no effect at all
    /// (reference 06 §7.3).
    pub(crate) fn note(&self, kind: MessageType, messages: &Messages) -> bool {
        if !messages.wants(kind.number()) {
            return false;
        }
        match kind {
            MessageType::Fatal => {
                self.progress.at_least_one_error();
                self.change_status(JobStatus::Fatal);
            }
            MessageType::Error => self.progress.add_error(),
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fatal_message_fails_the_job_and_stops_its_threads() {
        let job = Job::new(Identity::default(), 0);
        job.change_status(JobStatus::Running);
        job.change_status(JobStatus::Fatal);
        assert!(job.cancel.is_cancelled());
        job.change_status(JobStatus::Terminated);
        assert_eq!(job.status(), JobStatus::Fatal);
    }

    #[test]
    fn a_message_that_goes_nowhere_has_no_effect() {
        let job = Job::new(Identity::default(), 0);
        assert!(!job.note(MessageType::Fatal, &Messages::default()));
        assert_eq!((job.status(), job.progress.errors()), (JobStatus::Created, 0));
    }

    #[test]
    fn an_aborted_job_that_can_be_resumed_is_incomplete() {
        let job = Job::new(Identity::default(), 0);
        job.change_status(JobStatus::Running);
        job.abort(true);
        assert_eq!(job.status(), JobStatus::Incomplete);
        assert!(job.cancel.is_cancelled());
    }
}
