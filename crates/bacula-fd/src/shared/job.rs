//! The state of a job that its threads, the operator's `cancel` and `status` share. Not here:
//! running it.

mod course;
mod outlook;
mod storage_side;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use fd_config::Messages;
use fd_messages::{CancelToken, MessageType, Progress};
use fd_os::lock::Mutex;
use fd_session::JobStatus;
use fd_transport::{Bandwidth, Canceler};

use crate::clock;

pub(crate) use course::Course;
pub(crate) use outlook::{Done, Outlook};
pub(crate) use storage_side::{StorageSide, StorageView};
pub(crate) use words::{JobKind, JobLevel, Phase, Words, status_words};

/// What identifies a job, from `JobId=`.
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

/// One job.
#[derive(Debug)]
pub(crate) struct Job {
    /// What identifies it.
    pub identity: Identity,
    /// When its connection was made, seconds since 1970.
    pub started: i64,
    /// Its counters.
    pub progress: Arc<Progress>,
    /// Tells its threads to stop.
    pub cancel: CancelToken,
    /// Bytes per second towards the Storage Daemon, 0 for no limit. Shared with the connection.
    pub bandwidth: Bandwidth,
    /// Why it has failed, where the failing thread can't say it.
    failure: Mutex<Option<Vec<u8>>>,
    warnings: AtomicU32,
    /// How often its end was ordered.
    aborts: AtomicU32,
    status: AtomicU8,
    kind: AtomicU8,
    aim: AtomicU8,
    level: AtomicU8,
    has_snapshots: AtomicBool,
    /// What it does right now, and how far it is.
    pub course: Course,
    /// Its Storage Daemon.
    pub storage: StorageSide,
}

/// How long a job that is to end may take before its connection is cut.
const GRACE: Duration = Duration::from_secs(1);

impl Job {
    /// A job that has just been named.
    pub(crate) fn new(identity: Identity, started: i64) -> Self {
        Self {
            identity,
            started,
            progress: Arc::default(),
            cancel: CancelToken::new(),
            bandwidth: Bandwidth::new(0),
            failure: Mutex::new(None),
            warnings: AtomicU32::new(0),
            aborts: AtomicU32::new(0),
            status: AtomicU8::new(JobStatus::Created.code()),
            kind: AtomicU8::new(JobKind::System.code()),
            aim: AtomicU8::new(JobKind::System.code()),
            level: AtomicU8::new(JobLevel::None.code()),
            has_snapshots: AtomicBool::new(false),
            course: Course::new(started),
            storage: StorageSide::default(),
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

    /// Whether it was canceled or stopped, or has failed: what a connection says then is no news.
    pub(crate) fn has_ended(&self) -> bool {
        self.status().is_canceled() || self.status().is_incomplete()
    }

    /// Fails it where no message can be sent; [`Self::take_failure`] returns the first text.
    pub(crate) fn fail(&self, text: Vec<u8>) {
        self.failure.lock().get_or_insert(text);
        self.change_status(JobStatus::Fatal);
    }

    /// The message that is still to be sent.
    pub(crate) fn take_failure(&self) -> Option<Vec<u8>> {
        self.failure.lock().take()
    }

    /// Whether it reads snapshots.
    pub(crate) fn has_snapshots(&self) -> bool {
        self.has_snapshots.load(Ordering::Relaxed)
    }

    /// Notes whether it reads snapshots.
    pub(crate) fn set_snapshots(&self, has_any: bool) {
        self.has_snapshots.store(has_any, Ordering::Relaxed);
    }

    /// What it does.
    pub(crate) fn kind(&self) -> JobKind {
        JobKind::from_code(self.kind.load(Ordering::Relaxed))
    }

    /// Notes what it does.
    pub(crate) fn set_kind(&self, kind: JobKind) {
        self.kind.store(kind.code(), Ordering::Relaxed);
    }

    /// What it does, or was to do: it may end before the command that says so, as by a script.
    pub(crate) fn aim(&self) -> JobKind {
        match self.kind() {
            JobKind::System => JobKind::from_code(self.aim.load(Ordering::Relaxed)),
            kind => kind,
        }
    }

    /// Notes what it is to do, which the first command of its preparations shows: a backup has its
    /// level first, a Verify job its FileSet, a restore its Storage Daemon (reference 02 §5).
    pub(crate) fn note_aim(&self, aim: JobKind) {
        let (none, aim) = (JobKind::System.code(), aim.code());
        let _noted_before = self.aim.compare_exchange(none, aim, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Its level.
    pub(crate) fn level(&self) -> JobLevel {
        JobLevel::from_code(self.level.load(Ordering::Relaxed))
    }

    /// Notes the level.
    pub(crate) fn set_level(&self, level: JobLevel) {
        self.level.store(level.code(), Ordering::Relaxed);
    }

    /// How far it is, if something tells how much it will have.
    pub(crate) fn outlook(&self, now: i64) -> Option<Outlook> {
        let done = Done {
            seconds: self.course.seconds_of_files(now)?,
            bytes: self.progress.job_bytes(),
            examined: self.progress.files_examined(),
            to_restore: self.progress.files_expected().into(),
        };
        Outlook::of(self.kind(), self.level(), &self.course.expected(), &done)
    }

    /// Recent bytes per second, smoothed.
    pub(crate) fn last_rate(&self, now: i64) -> u64 {
        self.course.last_rate(now, self.progress.job_bytes())
    }

    /// The Storage Daemon's connection, for [`Self::abort`] and status; `None` when it is closed.
    pub(crate) fn set_storage(&self, connection: Option<(Canceler, bool)>) {
        self.storage.set(connection);
        // Checked only now: an earlier cancel didn't see the connection.
        if self.cancel.is_canceled()
            && let Some(canceler) = self.storage.canceler()
        {
            canceler.cancel();
        }
    }

    /// The operator's `cancel`, or `stop` if the job is to be resumed: the state changes and every
    /// wait on the Storage Daemon ends.
    pub(crate) fn abort(&self, stop: bool) {
        self.change_status(if stop { JobStatus::Incomplete } else { JobStatus::Canceled });
        self.cancel.cancel();
        self.aborts.fetch_add(1, Ordering::Relaxed);
        let Some(canceler) = self.storage.canceler() else { return };
        // The job stops by itself, between two frames, and the Director then cancels the Storage
        // Daemon's part, which is spared an error. A thread that waits for the Storage Daemon is
        // woken.
        let second = canceler.clone();
        let cut = move || {
            std::thread::sleep(GRACE);
            canceler.cancel();
        };
        if let Err(error) = std::thread::Builder::new().name("cuts".to_owned()).spawn(cut) {
            tracing::warn!(%error, "no thread to wait for the job's own end");
            second.cancel();
        }
    }

    /// How often [`Self::abort`] was called. Unlike the state and the token it distinguishes a new
    /// order from an old one.
    pub(crate) fn aborts(&self) -> u32 {
        self.aborts.load(Ordering::Relaxed)
    }

    /// What job codes show of it (reference 02 §10.2).
    pub(crate) fn words(&self) -> Words {
        let status = match self.status() {
            JobStatus::Terminated if self.progress.errors() == 0 => "OK",
            status => status_words(status),
        };
        Words { status, level: self.level().words(), kind: self.kind().words() }
    }

    /// Waits for this time, or until the job is canceled.
    pub(crate) fn pause(&self, time: Duration) {
        clock::pause_while(time, || !self.cancel.is_canceled());
    }

    /// Warnings that were said.
    pub(crate) fn warnings(&self) -> u32 {
        self.warnings.load(Ordering::Relaxed)
    }

    /// What a message of this type does to the job. `false`: no destination takes the type, so it
    /// has no effect at all (reference 06 §7.3).
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
            MessageType::Warning => {
                self.warnings.fetch_add(1, Ordering::Relaxed);
            }
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
        assert!(job.cancel.is_canceled());
        job.change_status(JobStatus::Terminated);
        assert_eq!(job.status(), JobStatus::Fatal);
    }

    #[test]
    fn a_message_without_a_destination_has_no_effect() {
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
        assert!(job.cancel.is_canceled());
    }
}
