//! The state of a job that its threads, the operator's `cancel` and `status` share. Not here:
//! running it.

mod outlook;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fd_config::Messages;
use fd_messages::{CancelToken, MessageType, Progress};
use fd_os::lock::{Condvar, Mutex};
use fd_session::JobStatus;
use fd_transport::{Bandwidth, Canceller, Channel};

pub(crate) use outlook::{Done, Expected, Outlook};
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

/// The Storage Daemon's connection as status and cancel see it.
#[derive(Clone, Debug)]
struct StorageSide {
    canceller: Canceller,
    encrypted: bool,
}

/// What status shows of the Storage Daemon's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StorageView {
    /// Frames that it has sent us.
    pub frames_read: u64,
    /// Number of the socket.
    pub descriptor: i32,
    /// Whether it is encrypted.
    pub encrypted: bool,
}

/// The last rate that a status has computed (reference 02 §11.1).
#[derive(Clone, Copy, Debug)]
struct Rate {
    bytes_per_second: Option<u64>,
    bytes: u64,
    time: i64,
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
    level: AtomicU8,
    phase: AtomicU8,
    phase_since: AtomicI64,
    /// Locked by statuses only.
    rate: Mutex<Rate>,
    storage: Mutex<Option<StorageSide>>,
    /// A Storage Daemon that called us, until the job's own thread takes it.
    caller: Mutex<Option<Channel>>,
    called: Condvar,
    has_snapshots: AtomicBool,
    /// A thread waits for the process that matches heavy expressions.
    is_asking: AtomicBool,
    /// When it has begun with its files, seconds since 1970; 0 before that.
    files_since: AtomicI64,
    expected: Mutex<Expected>,
}

/// How often a cancel is looked for.
const STEP: Duration = Duration::from_millis(200);
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
            level: AtomicU8::new(JobLevel::None.code()),
            phase: AtomicU8::new(Phase::Waiting as u8),
            phase_since: AtomicI64::new(started),
            rate: Mutex::new(Rate { bytes_per_second: None, bytes: 0, time: started }),
            storage: Mutex::new(None),
            caller: Mutex::new(None),
            called: Condvar::new(),
            has_snapshots: AtomicBool::new(false),
            is_asking: AtomicBool::new(false),
            files_since: AtomicI64::new(0),
            expected: Mutex::default(),
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

    /// Its level.
    pub(crate) fn level(&self) -> JobLevel {
        JobLevel::from_code(self.level.load(Ordering::Relaxed))
    }

    /// Notes the level.
    pub(crate) fn set_level(&self, level: JobLevel) {
        self.level.store(level.code(), Ordering::Relaxed);
    }

    /// What it does right now.
    pub(crate) fn phase(&self) -> Phase {
        let phase = self.phase.load(Ordering::Relaxed);
        Phase::ALL.into_iter().find(|known| *known as u8 == phase).unwrap_or(Phase::Waiting)
    }

    /// Since when, seconds since 1970.
    pub(crate) fn phase_since(&self) -> i64 {
        self.phase_since.load(Ordering::Relaxed)
    }

    /// Notes what it does from `now` on.
    pub(crate) fn enter(&self, phase: Phase, now: i64) {
        if phase == Phase::Files {
            let _since_the_first = self.files_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.phase_since.store(now, Ordering::Relaxed);
    }

    /// Notes whether a thread waits for the process that matches heavy expressions.
    pub(crate) fn set_asking(&self, is_asking: bool) {
        self.is_asking.store(is_asking, Ordering::Relaxed);
    }

    /// Whether a thread does. A cancel ends that process, and so the wait.
    pub(crate) fn is_asking(&self) -> bool {
        self.is_asking.load(Ordering::Relaxed)
    }

    /// Notes how much it may have.
    pub(crate) fn expect(&self, note: impl FnOnce(&mut Expected)) {
        note(&mut self.expected.lock());
    }

    /// How far it is, if something tells how much it will have.
    pub(crate) fn outlook(&self, now: i64) -> Option<Outlook> {
        let since = self.files_since.load(Ordering::Relaxed);
        if since == 0 {
            return None;
        }
        let done = Done {
            seconds: u64::try_from(now.saturating_sub(since)).unwrap_or(0),
            bytes: self.progress.job_bytes(),
            examined: self.progress.files_examined(),
            to_restore: self.progress.files_expected().into(),
        };
        let expected = *self.expected.lock();
        Outlook::of(self.kind(), self.level(), &expected, &done)
    }

    /// Recent bytes per second, smoothed as the stock daemon does it: only a plain status more than
    /// ten seconds after the one before moves the base.
    pub(crate) fn last_rate(&self, now: i64) -> u64 {
        const BASE_MOVES_AFTER: i64 = 10;
        let mut rate = self.rate.lock();
        let bytes = self.progress.job_bytes();
        let seconds = u64::try_from(now.saturating_sub(rate.time)).unwrap_or(0).max(1);
        let current = bytes.saturating_sub(rate.bytes) / seconds;
        let last = rate.bytes_per_second.unwrap_or(current);
        let smoothed = last.saturating_mul(2).saturating_add(current) / 3;
        if now.saturating_sub(rate.time) > BASE_MOVES_AFTER {
            *rate = Rate { bytes_per_second: Some(smoothed), bytes, time: now };
        }
        smoothed
    }

    /// The Storage Daemon's connection, for [`Self::abort`] and status; `None` when it is closed.
    pub(crate) fn set_storage(&self, storage: Option<(Canceller, bool)>) {
        let side = storage.map(|(canceller, encrypted)| StorageSide { canceller, encrypted });
        self.storage.lock().clone_from(&side);
        // Checked only now: an earlier cancel didn't see the connection.
        if self.cancel.is_cancelled()
            && let Some(side) = &side
        {
            side.canceller.cancel();
        }
    }

    /// The connection to a Storage Daemon, if there is one. The lock is only ever held for a copy.
    pub(crate) fn storage_view(&self) -> Option<StorageView> {
        let side = self.storage.lock().clone()?;
        let (frames_read, descriptor) = (side.canceller.frames_received(), side.canceller.descriptor().unwrap_or(0));
        Some(StorageView { frames_read, descriptor, encrypted: side.encrypted })
    }

    /// The operator's `cancel`, or `stop` if the job is to be resumed: the state changes and every
    /// wait on the Storage Daemon ends.
    pub(crate) fn abort(&self, stop: bool) {
        self.change_status(if stop { JobStatus::Incomplete } else { JobStatus::Canceled });
        self.cancel.cancel();
        self.aborts.fetch_add(1, Ordering::Relaxed);
        let side = self.storage.lock().clone();
        let Some(side) = side else { return };
        if self.kind() != JobKind::Backup {
            return side.canceller.cancel();
        }
        // A sender stops by itself, between two frames, which spares the Storage Daemon an error. A
        // thread that waits for the Storage Daemon is woken.
        let canceller = side.canceller.clone();
        let cut = move || {
            std::thread::sleep(GRACE);
            canceller.cancel();
        };
        if let Err(error) = std::thread::Builder::new().name("cuts".to_owned()).spawn(cut) {
            tracing::warn!(%error, "no thread to wait for the job's own end");
            side.canceller.cancel();
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

    /// A Storage Daemon has called for this job; gives the connection back if another one waits
    /// already.
    pub(crate) fn park(&self, channel: Channel) -> Result<(), Box<Channel>> {
        let mut caller = self.caller.lock();
        if caller.is_some() {
            return Err(Box::new(channel));
        }
        *caller = Some(channel);
        self.called.notify_all();
        Ok(())
    }

    /// Waits for the Storage Daemon's call, at most `limit`, until the job is canceled, and no
    /// longer than `wanted` returns true.
    pub(crate) fn await_call(&self, limit: Duration, wanted: &dyn Fn() -> bool) -> Option<Channel> {
        let start = Instant::now();
        let mut caller = self.caller.lock();
        while caller.is_none() && !self.cancel.is_cancelled() && wanted() && start.elapsed() < limit {
            (caller, _) = self.called.wait_timeout(caller, STEP);
        }
        caller.take()
    }

    /// Waits for this time, or until the job is canceled.
    pub(crate) fn pause(&self, time: Duration) {
        let start = Instant::now();
        while !self.cancel.is_cancelled() {
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(STEP));
        }
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
        assert!(job.cancel.is_cancelled());
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
        assert!(job.cancel.is_cancelled());
    }
}
