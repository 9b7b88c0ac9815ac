//! What the threads of one running job share: counters, the cancel token and the trait for
//! messages.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{PoisonError, TryLockError};

use crate::{MessageType, StageTimes};

/// Where a job's threads send messages for the operator.
///
/// `text` is without the `<fd> JobId <n>: Error: ` head and with its final newline. A message of
/// type [`MessageType::Error`] counts in the job's errors when it is delivered,
/// [`MessageType::Fatal`] ends the job as failed.
pub trait JobLog: Send + Sync {
    /// Hands one message over, in order.
    fn message(&self, kind: MessageType, text: &[u8]);

    /// Whether any destination of the Messages resource takes this type; where none does, the text
    /// need not be built (the line of each saved or restored file, for example).
    fn wants(&self, kind: MessageType) -> bool;

    /// Whether a message of this type has any effect, even if no destination takes it: one that is
    /// not queued delivers those that are (reference 05 §0.4). `all, !restored` leaves it.
    fn has_effect(&self, kind: MessageType) -> bool {
        self.wants(kind)
    }
}

/// Counters of one running job. Status reads them at any time; the job's threads add to them.
#[derive(Default, Debug)]
pub struct Progress {
    files: AtomicU32,
    files_examined: AtomicU64,
    files_expected: AtomicU32,
    read_bytes: AtomicU64,
    job_bytes: AtomicU64,
    errors: AtomicU32,
    last_activity: AtomicI64,
    current_file: Mutex<Vec<u8>>,
    stages: Arc<StageTimes>,
}

impl Progress {
    /// Files sent or restored so far (`JobFiles`; in a backup also the last FileIndex used).
    pub fn files(&self) -> u32 {
        self.files.load(Ordering::Relaxed)
    }

    /// Sets `JobFiles`: a resumed job starts above zero.
    pub fn set_files(&self, files: u32) {
        self.files.store(files, Ordering::Relaxed);
    }

    /// One more file.
    pub fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Entries looked at so far.
    pub fn files_examined(&self) -> u64 {
        self.files_examined.load(Ordering::Relaxed)
    }

    /// `n` more entries looked at.
    pub fn add_files_examined(&self, n: u64) {
        self.files_examined.fetch_add(n, Ordering::Relaxed);
    }

    /// Files that the Director expects (restore), 0 if unknown.
    pub fn files_expected(&self) -> u32 {
        self.files_expected.load(Ordering::Relaxed)
    }

    /// Sets the number that the Director announced.
    pub fn set_files_expected(&self, files: u32) {
        self.files_expected.store(files, Ordering::Relaxed);
    }

    /// Bytes read from files, or received as records.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// `n` more bytes read.
    pub fn add_read_bytes(&self, n: u64) {
        self.read_bytes.fetch_add(n, Ordering::Relaxed);
    }

    /// Bytes sent or written (`JobBytes`).
    pub fn job_bytes(&self) -> u64 {
        self.job_bytes.load(Ordering::Relaxed)
    }

    /// `n` more bytes sent or written.
    pub fn add_job_bytes(&self, n: u64) {
        self.job_bytes.fetch_add(n, Ordering::Relaxed);
    }

    /// `JobErrors` so far.
    pub fn errors(&self) -> u32 {
        self.errors.load(Ordering::Relaxed)
    }

    /// One more error.
    pub fn add_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// A fatal message makes the errors at least one (reference 01 §16.2).
    pub fn at_least_one_error(&self) {
        let _previous = self.errors.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// When something last moved, seconds since 1970; 0 before the first.
    pub fn last_activity(&self) -> i64 {
        self.last_activity.load(Ordering::Relaxed)
    }

    /// Notes that something moved now.
    pub fn touch(&self, now: i64) {
        self.last_activity.store(now, Ordering::Relaxed);
    }

    /// Where the time of a backup goes.
    pub fn stages(&self) -> &Arc<StageTimes> {
        &self.stages
    }

    /// The file being processed, as status shows it. Never waits: empty while the job changes it.
    pub fn current_file(&self) -> Vec<u8> {
        match self.current_file.try_lock() {
            Ok(current) => current.clone(),
            Err(TryLockError::Poisoned(current)) => current.into_inner().clone(),
            Err(TryLockError::WouldBlock) => Vec::new(),
        }
    }

    /// Notes the file being processed. Reuses the buffer: no allocation per file.
    pub fn set_current_file(&self, path: &[u8]) {
        let mut current = self.current_file.lock().unwrap_or_else(PoisonError::into_inner);
        current.clear();
        current.extend_from_slice(path);
    }
}

/// Tells every thread of a job to stop. Cheap to check, never reset.
#[derive(Clone, Default, Debug)]
pub struct CancelToken(Arc<Canceled>);

#[derive(Default, Debug)]
struct Canceled {
    is_canceled: AtomicBool,
    is_abandoned: AtomicBool,
}

impl CancelToken {
    /// A token that is not canceled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the job to stop.
    pub fn cancel(&self) {
        self.0.is_canceled.store(true, Ordering::Relaxed);
    }

    /// Whether the job is to stop.
    pub fn is_canceled(&self) -> bool {
        self.0.is_canceled.load(Ordering::Relaxed)
    }

    /// The job is over, and no thread waits for those that still hang in a call: when it returns,
    /// they must change nothing any more.
    pub fn abandon(&self) {
        self.cancel();
        self.0.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::abandon`] was called.
    pub fn is_abandoned(&self) -> bool {
        self.0.is_abandoned.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fatal_message_makes_errors_at_least_one() {
        let progress = Progress::default();
        progress.at_least_one_error();
        progress.at_least_one_error();
        assert_eq!(progress.errors(), 1);
        progress.add_error();
        progress.at_least_one_error();
        assert_eq!(progress.errors(), 2);
    }

    #[test]
    fn canceling_one_clone_cancels_all() {
        let token = CancelToken::new();
        let other = token.clone();
        assert!(!other.is_canceled());
        token.cancel();
        assert!(other.is_canceled() && !other.is_abandoned());
        token.abandon();
        assert!(other.is_canceled() && other.is_abandoned());
    }
}
