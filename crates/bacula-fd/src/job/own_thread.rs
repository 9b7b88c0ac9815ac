//! The thread of a job that itself waits for storage: a restore, a Verify job, an estimate.
//!
//! A call to storage that does not answer can't be ended. A canceled job leaves such a thread
//! behind: it owns all that it uses, and ends by itself when the storage answers or is taken away.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::shared::job::Job;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::thread::{self, Builder, JoinHandle};
use crate::sync::{Instant, Mutex, MutexGuard};

/// How long a canceled job waits for its thread.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is asked meanwhile whether the job is canceled.
pub(crate) const GLANCE: Duration = Duration::from_millis(200);
/// The most threads that are left behind at a time. With so many a canceled job waits.
const MOST_LEFT: usize = 256;

/// Threads that were left behind and have not ended.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// See the module.
pub(crate) struct OwnThread<T> {
    handle: JoinHandle<T>,
    stage: Arc<Mutex<Stage>>,
    canceled: Option<Instant>,
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
    pub(crate) fn start(name: String, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let stage = Arc::new(Mutex::new(Stage::Waited));
        let ending = Ending(Arc::clone(&stage));
        let handle = Builder::new().name(name).spawn(move || {
            let _ending = ending;
            work()
        })?;
        Ok(Self { handle, stage, canceled: None })
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It has panicked.
    pub(crate) fn join(self) -> thread::Result<T> {
        self.handle.join()
    }

    /// To be asked every [`GLANCE`]: leaves the thread behind if its job was canceled two seconds
    /// ago and it has not ended, unless it waits for what a cancel ends: a plugin, or a program of
    /// ours. `true`: it is left, and must not be joined.
    pub(crate) fn is_left(&mut self, job: &Job, is_in_plugin: impl FnOnce() -> bool) -> bool {
        if !job.cancel.is_cancelled() {
            return false;
        }
        let canceled = *self.canceled.get_or_insert_with(Instant::now);
        if canceled.elapsed() < GRACE {
            return false;
        }
        if job.is_asking() || is_in_plugin() {
            self.canceled = None;
            return false;
        }
        let mut stage = lock(&self.stage);
        if *stage == Stage::Waited && may_leave_one() {
            *stage = Stage::Left;
            job.cancel.abandon();
        }
        *stage == Stage::Left
    }
}

/// Counts one more that is left behind, if there may be one.
fn may_leave_one() -> bool {
    let more = |left| (left < MOST_LEFT).then_some(left + 1);
    LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

/// Notes the end of the thread, also if it panics.
struct Ending(Arc<Mutex<Stage>>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut stage = lock(&self.0);
        if *stage == Stage::Left {
            LEFT.fetch_sub(1, Ordering::Relaxed);
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

    fn until_left<T: Send + 'static>(thread: &mut OwnThread<T>, job: &Job) -> Duration {
        let begun = Instant::now();
        while !thread.is_left(job, || false) {
            assert!(begun.elapsed() < GRACE * 2);
            thread::sleep(GLANCE / 10);
        }
        begun.elapsed()
    }

    #[test]
    fn only_a_canceled_thread_that_hangs_is_left_behind() {
        let (answer, storage) = bounded::<()>(0);
        let job = Job::new(Identity::default(), 0);
        let mut thread = OwnThread::start("hangs".to_owned(), move || storage.recv()).unwrap();
        assert!(!thread.is_left(&job, || false));
        job.cancel.cancel();
        assert!(until_left(&mut thread, &job) >= GRACE);
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
        let long_ago = Instant::now().checked_sub(GRACE * 2);
        thread.canceled = long_ago;
        assert!(!thread.is_left(&job, || true));
        thread.canceled = long_ago;
        assert!(!thread.is_left(&job, || false));
        assert_eq!(thread.join().unwrap(), 7);
        assert!(!job.cancel.is_abandoned());
    }
}
