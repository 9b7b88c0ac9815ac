//! The thread of a job that itself waits for storage: a restore, a Verify job, an estimate, or what
//! another thread asks of storage.
//!
//! A call to storage that does not answer can't be ended. A canceled job leaves such a thread
//! behind: it owns all that it uses, and ends by itself when the storage answers or is taken away.

use std::any::Any;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fd_messages::MessageType;
use fd_os::process::IsWanted;

use crate::shared::job::Job;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::thread::{Builder, JoinHandle};
use crate::sync::{Instant, Mutex, MutexGuard};
use crate::texts;

/// How long a canceled job waits for its thread.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is asked meanwhile whether the job is canceled.
pub(crate) const GLANCE: Duration = Duration::from_millis(200);
/// The most threads that are left behind at a time. With so many a canceled job waits.
const MOST_LEFT: usize = 256;

/// Threads of all jobs that were left behind and have not ended.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// See the module.
pub(crate) struct OwnThread<T> {
    handle: JoinHandle<T>,
    stage: Arc<Mutex<Stage>>,
    /// Disconnected at its end.
    end: Receiver<()>,
    unwanted: Option<Instant>,
    /// Where it is counted when it is left behind.
    left: &'static AtomicUsize,
}

/// Why a thread has nothing to show.
#[derive(Debug)]
pub(crate) enum Nothing {
    /// It was left behind.
    Left,
    /// The system has no thread, or it has panicked; the text for the operator.
    Failed(String),
}

impl Nothing {
    /// The system has refused a thread.
    pub(crate) fn no_thread(error: &io::Error) -> Self {
        Self::Failed(format!("no thread for the job: {error}\n"))
    }

    /// What its panic said.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let why = panic.downcast_ref::<String>().cloned();
        let why = why.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
        Self::Failed(format!("the job's thread panicked, please report this: {why}\n"))
    }

    /// As a message of the job.
    pub(crate) fn message(&self) -> (MessageType, &[u8]) {
        match self {
            Self::Left => (MessageType::Warning, texts::THREAD_LEFT_BEHIND),
            Self::Failed(text) => (MessageType::Fatal, text.as_bytes()),
        }
    }
}

/// What storage answers to `work`, which is left behind if it doesn't and the answer is not wanted
/// any more.
///
/// # Errors
/// There is no answer.
pub(crate) fn ask_storage<T: Send + 'static>(
    job: &Job,
    wanted: IsWanted<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Nothing> {
    OwnThread::start("asks storage".to_owned(), work)?.wait(job, wanted)
}

/// How far a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Waited,
    Left,
    Ended,
}

impl<T: Send + 'static> OwnThread<T> {
    /// Starts it.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(crate) fn start(name: String, work: impl FnOnce() -> T + Send + 'static) -> Result<Self, Nothing> {
        Self::start_counted(name, &LEFT, work)
    }

    fn start_counted(
        name: String,
        left: &'static AtomicUsize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Self, Nothing> {
        let stage = Arc::new(Mutex::new(Stage::Waited));
        let (open, end) = bounded(0);
        let ending = Ending { stage: Arc::clone(&stage), left, _open: open };
        let handle = Builder::new().name(name).spawn(move || {
            let _ending = ending;
            work()
        });
        let handle = handle.map_err(|error| Nothing::no_thread(&error))?;
        Ok(Self { handle, stage, end, unwanted: None, left })
    }

    /// Waits for its end, unless it hangs and is not wanted any more.
    ///
    /// # Errors
    /// It is left behind, or has panicked.
    pub(crate) fn wait(mut self, job: &Job, wanted: IsWanted<'_>) -> Result<T, Nothing> {
        while self.end.recv_timeout(GLANCE) == Err(RecvTimeoutError::Timeout) {
            if !wanted() && self.is_left_if_unwanted(Instant::now(), job, || false) {
                return Err(Nothing::Left);
            }
        }
        self.join()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It has panicked.
    pub(crate) fn join(self) -> Result<T, Nothing> {
        self.handle.join().map_err(|panic| Nothing::panicked(&*panic))
    }

    /// To be asked every [`GLANCE`]: leaves the thread behind if its job was canceled two seconds
    /// ago and it has not ended, unless it waits for what a cancel ends: a plugin, or a program of
    /// ours. `true`: it is left, and must not be joined.
    pub(crate) fn is_left(&mut self, job: &Job, is_in_plugin: impl FnOnce() -> bool) -> bool {
        job.cancel.is_cancelled() && self.is_left_if_unwanted(Instant::now(), job, is_in_plugin)
    }

    fn is_left_if_unwanted(&mut self, now: Instant, job: &Job, is_in_plugin: impl FnOnce() -> bool) -> bool {
        let unwanted = *self.unwanted.get_or_insert(now);
        if now.saturating_duration_since(unwanted) < GRACE {
            return false;
        }
        if job.is_asking() || is_in_plugin() {
            self.unwanted = None;
            return false;
        }
        let mut stage = lock(&self.stage);
        if *stage == Stage::Waited && may_leave_one(self.left) {
            *stage = Stage::Left;
            job.cancel.abandon();
        }
        *stage == Stage::Left
    }
}

/// Counts one more that is left behind, if there may be one.
fn may_leave_one(left: &AtomicUsize) -> bool {
    let more = |left| (left < MOST_LEFT).then_some(left + 1);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

/// Notes the end of the thread, also if it panics.
struct Ending {
    stage: Arc<Mutex<Stage>>,
    left: &'static AtomicUsize,
    /// Disconnects [`OwnThread::end`].
    _open: Sender<()>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut stage = lock(&self.stage);
        if *stage == Stage::Left {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        *stage = Stage::Ended;
    }
}

fn lock(stage: &Mutex<Stage>) -> MutexGuard<'_, Stage> {
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[cfg(feature = "models")]
mod models;

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;

    use super::*;
    use crate::shared::job::Identity;
    use crate::sync::thread;

    #[test]
    fn an_answer_or_a_panic_reaches_who_asked() {
        let job = Job::new(Identity::default(), 0);
        assert_eq!(ask_storage(&job, &|| false, || 7).unwrap(), 7);
        let nothing = ask_storage(&job, &|| true, || panic!("on purpose")).unwrap_err();
        assert_eq!(nothing.message().0, MessageType::Fatal);
        assert!(String::from_utf8_lossy(nothing.message().1).contains("on purpose"));
    }

    #[test]
    fn only_a_canceled_thread_that_hangs_is_left_behind() {
        static LEFT: AtomicUsize = AtomicUsize::new(0);
        let (answer, storage) = bounded::<()>(0);
        let job = Job::new(Identity::default(), 0);
        let mut thread = OwnThread::start_counted("hangs".to_owned(), &LEFT, move || storage.recv()).unwrap();
        assert!(!thread.is_left(&job, || false));
        assert!(thread.unwanted.is_none(), "its job is not canceled");
        job.cancel.cancel();
        let canceled = Instant::now();
        let mut is_left = |after| thread.is_left_if_unwanted(canceled + after, &job, || false);
        assert!(!is_left(Duration::ZERO));
        assert!(!is_left(GRACE.saturating_sub(Duration::from_nanos(1))) && LEFT.load(Ordering::Relaxed) == 0);
        assert!(is_left(GRACE));
        assert!(job.cancel.is_abandoned());
        assert_eq!(LEFT.load(Ordering::Relaxed), 1);
        answer.send(()).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(()));
        assert_eq!(LEFT.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_thread_that_has_ended_or_is_in_a_plugin_is_not_left_behind() {
        let job = Job::new(Identity::default(), 0);
        job.cancel.cancel();
        let mut thread = OwnThread::start("ends".to_owned(), || 7).unwrap();
        while !thread.handle.is_finished() {
            thread::yield_now();
        }
        let canceled = Instant::now();
        for (after, is_in_plugin) in [(Duration::ZERO, true), (GRACE, true), (GRACE, false), (GRACE * 2, false)] {
            assert!(!thread.is_left_if_unwanted(canceled + after, &job, || is_in_plugin), "{after:?}");
        }
        assert_eq!(thread.join().unwrap(), 7);
        assert!(!job.cancel.is_abandoned());
    }
}
