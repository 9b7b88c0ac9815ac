//! How threads of the pipeline begin and end. If one ends unexpectedly, all others end, too.
//!
//! A thread that waits for storage which does not answer can't be ended from outside. A job that is
//! over leaves it behind: it owns all that it uses, and ends by itself when the storage answers or
//! is taken away.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Condvar, Instant, Mutex, MutexGuard};

/// How often it checks meanwhile whether a plugin is at work.
const GLANCE: Duration = Duration::from_millis(100);

/// Threads of all jobs that were left behind and have not ended.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// The threads of a job.
#[derive(Debug)]
pub(crate) struct Threads {
    handles: Mutex<Vec<JoinHandle<()>>>,
    running: Arc<Running>,
    grace: Duration,
}

/// How many threads have not ended.
#[derive(Debug)]
struct Running {
    state: Mutex<State>,
    /// One has ended.
    ended: Condvar,
    /// Those of all jobs that were left behind.
    left: &'static AtomicUsize,
}

#[derive(Default, Debug)]
struct State {
    count: usize,
    are_left: bool,
}

/// How the threads of a job have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Joined {
    pub(crate) panicked: usize,
    /// How many were left behind.
    pub(crate) left: usize,
}

impl Threads {
    /// Waits so long for its threads when the job is over.
    pub(crate) fn new(grace: Duration) -> Self {
        Self::counted(grace, &LEFT)
    }

    fn counted(grace: Duration, left: &'static AtomicUsize) -> Self {
        let running = Running { state: Mutex::default(), ended: Condvar::new(), left };
        Self { handles: Mutex::default(), running: Arc::new(running), grace }
    }

    /// Starts a thread.
    pub(crate) fn start(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let ending = Ending(Arc::clone(&self.running));
        self.running.lock().count += 1;
        let counted = move || {
            // What the work has borrowed is given back before.
            let _ending = ending;
            work();
        };
        // If there is no thread, its closure is dropped, and the number is right again.
        let handle = thread::Builder::new().name(name.to_owned()).spawn(counted)?;
        lock(&self.handles).push(handle);
        Ok(())
    }

    /// Waits until all threads have ended, but not long; those in plugins are waited for.
    pub(crate) fn join(&self, is_in_plugin: impl Fn() -> bool) -> Joined {
        let mut deadline = Instant::now() + self.grace;
        let mut state = self.running.lock();
        let left = loop {
            let now = Instant::now();
            if is_in_plugin() {
                deadline = now + self.grace.max(GLANCE);
            }
            if state.count == 0 || now >= deadline {
                break state.count;
            }
            let wait = GLANCE.min(deadline - now);
            state = self.running.ended.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        };
        if left > 0 && !state.are_left {
            state.are_left = true;
            self.running.left.fetch_add(left, Ordering::Relaxed);
        }
        drop(state);
        let handles = std::mem::take(&mut *lock(&self.handles));
        let ended = handles.into_iter().filter(|handle| left == 0 || handle.is_finished());
        let panicked = ended.filter_map(|handle| handle.join().err()).count();
        Joined { panicked, left }
    }

    /// How many threads of all jobs were left behind and still wait.
    pub(crate) fn left_behind() -> usize {
        LEFT.load(Ordering::Relaxed)
    }
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Counts a thread until it ends.
struct Ending(Arc<Running>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.count = state.count.saturating_sub(1);
        if state.are_left {
            self.0.left.fetch_sub(1, Ordering::Relaxed);
        }
        self.0.ended.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// No test waits so long.
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_thread_that_hangs_is_left_behind_and_ends_later() {
        static LEFT: AtomicUsize = AtomicUsize::new(0);
        let threads = Threads::counted(Duration::ZERO, &LEFT);
        let (answer, storage) = mpsc::channel::<()>();
        threads.start("hangs", move || assert!(storage.recv().is_ok())).unwrap();
        threads.start("ends", || {}).unwrap();
        threads.start("panics", || panic!("on purpose")).unwrap();
        while lock(&threads.handles).iter().filter(|handle| handle.is_finished()).count() < 2 {
            thread::yield_now();
        }
        assert_eq!(threads.join(|| false), Joined { panicked: 1, left: 1 });
        assert_eq!(LEFT.load(Ordering::Relaxed), 1);
        answer.send(()).unwrap();
        while threads.running.lock().count > 0 {
            thread::yield_now();
        }
        assert_eq!(LEFT.load(Ordering::Relaxed), 0);
        assert_eq!(threads.join(|| false), Joined { panicked: 0, left: 0 });
    }

    #[test]
    fn a_thread_that_ends_in_time_is_waited_for() {
        static LEFT: AtomicUsize = AtomicUsize::new(0);
        let threads = Threads::counted(LONG, &LEFT);
        let (answer, storage) = mpsc::channel::<()>();
        threads.start("answered late", move || assert!(storage.recv().is_ok())).unwrap();
        // Whoever asks this waits already.
        let joined = threads.join(|| {
            let _ended = answer.send(());
            false
        });
        assert_eq!((joined, LEFT.load(Ordering::Relaxed)), (Joined { panicked: 0, left: 0 }, 0));
    }

    #[test]
    fn a_thread_in_a_plugin_is_waited_for() {
        static LEFT: AtomicUsize = AtomicUsize::new(0);
        let threads = Threads::counted(Duration::ZERO, &LEFT);
        let (over, plugin) = mpsc::channel::<()>();
        threads.start("in plugin", move || assert!(plugin.recv().is_ok())).unwrap();
        let asked = AtomicUsize::new(0);
        let joined = threads.join(|| {
            // Its grace has passed twice.
            if asked.fetch_add(1, Ordering::Relaxed) == 2 {
                let _gone = over.send(());
            }
            true
        });
        assert_eq!((joined, LEFT.load(Ordering::Relaxed)), (Joined { panicked: 0, left: 0 }, 0));
    }
}
