//! Threads that may be left behind.
//!
//! A call to storage that does not answer can't be ended from outside. So a thread that makes such
//! calls owns all that it uses. Whoever waits for it goes on without it when its result is not
//! wanted any more, and it ends by itself when the storage answers or is taken away.
//!
//! Not here: for how long a thread is waited for, which its owner decides.

use std::ffi::CString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::thread::{self, Builder, JoinHandle};
use crate::sync::{Condvar, Instant, Mutex};

/// How often it is asked whether a thread is still waited for.
pub const GLANCE: Duration = Duration::from_millis(100);
/// The most helpers of the daemon and threads that are left behind, together.
const MOST: usize = 1024;
/// So many of them are never helpers: with so many helpers that hang, a job can still be left.
const NOT_FOR_HELPERS: usize = 256;

/// Gives the calling thread another name, of which the kernel keeps 15 bytes.
pub fn rename_this_thread(name: &str) {
    if let Ok(name) = CString::new(name) {
        // A name that stays is wrong, but does no harm.
        let _may_fail = nix::sys::prctl::set_name(&name);
    }
}

/// How many there are of the threads that nobody must wait for.
#[derive(Debug)]
struct Places(AtomicUsize);

static OF_DAEMON: Places = Places(AtomicUsize::new(0));

impl Places {
    /// Takes one, if fewer than `most` are taken.
    fn take(&self, most: usize) -> bool {
        let more = |taken| (taken < most).then_some(taken + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How far a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Its end is waited for.
    Needed,
    /// A helper, or left behind: it has one of the places.
    Spare,
    Ended,
}

/// What a thread and its owner share.
#[derive(Debug)]
struct Running {
    stage: Mutex<Stage>,
    ended: Condvar,
    places: &'static Places,
}

/// Notes the end of a thread, also if it panics, or could not be started.
struct Ending(Arc<Running>);

impl Drop for Ending {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.0.stage.lock(), Stage::Ended);
        if before == Stage::Spare {
            self.0.places.give_back();
        }
        self.0.ended.notify_all();
    }
}

/// A thread that may be left behind. Dropped, it goes on without being waited for.
#[derive(Debug)]
pub struct Thread<T> {
    handle: JoinHandle<T>,
    running: Arc<Running>,
}

/// Starts a thread.
///
/// # Errors
/// The system has none.
pub fn start<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Thread<T>> {
    start_at(&OF_DAEMON, Stage::Needed, Builder::new().name(name.into()), work)
}

/// Starts a thread without which its job gets on, too, with a stack of so many bytes.
///
/// # Errors
/// The system has none, or the daemon has 768 helpers and threads that are left behind.
pub fn start_helper<T: Send + 'static>(
    name: impl Into<String>,
    stack: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Thread<T>> {
    if !OF_DAEMON.take(MOST - NOT_FOR_HELPERS) {
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    start_at(&OF_DAEMON, Stage::Spare, Builder::new().name(name.into()).stack_size(stack), work)
}

fn start_at<T: Send + 'static>(
    places: &'static Places,
    stage: Stage,
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Thread<T>> {
    let running = Arc::new(Running { stage: Mutex::new(stage), ended: Condvar::new(), places });
    let ending = Ending(Arc::clone(&running));
    let handle = builder.spawn(move || {
        let _ending = ending;
        work()
    })?;
    Ok(Thread { handle, running })
}

impl<T> Thread<T> {
    /// Whether it has ended, also by a panic.
    pub fn has_ended(&self) -> bool {
        *self.running.stage.lock() == Stage::Ended
    }

    /// Leaves it behind: it must not be waited for any more. `false`: it has ended, or so many are
    /// left behind that it has to be waited for.
    pub fn leave(&self) -> bool {
        let mut stage = self.running.stage.lock();
        if *stage == Stage::Needed && self.running.places.take(MOST) {
            *stage = Stage::Spare;
        }
        *stage == Stage::Spare
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// What it has panicked with.
    pub fn join(self) -> thread::Result<T> {
        self.handle.join()
    }

    /// Waits for its end as long as this says so, which is asked at once and every [`GLANCE`].
    /// `None`: it is left behind.
    pub fn end(self, mut is_waited_for: impl FnMut() -> bool) -> Option<thread::Result<T>> {
        while !self.wait(Duration::MAX, &mut is_waited_for) {
            if self.leave() {
                return None;
            }
            self.ends_within(GLANCE);
        }
        Some(self.join())
    }

    /// Waits for its end, at most so long, and as long as this says so, as [`Self::end`]. Whether
    /// it has ended.
    pub fn wait(&self, most: Duration, mut is_waited_for: impl FnMut() -> bool) -> bool {
        let begun = Instant::now();
        while !self.has_ended() {
            let left = most.saturating_sub(begun.elapsed());
            if left.is_zero() || !is_waited_for() {
                return false;
            }
            self.ends_within(left.min(GLANCE));
        }
        true
    }

    fn ends_within(&self, time: Duration) -> bool {
        let stage = self.running.stage.lock();
        if *stage == Stage::Ended {
            return true;
        }
        let (stage, _) = self.running.ended.wait_timeout(stage, time);
        *stage == Stage::Ended
    }
}

#[cfg(test)]
#[cfg(feature = "models")]
mod models;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Starts a thread that waits for an answer. The count is the test's own.
    fn waiting(stage: Stage, taken: usize) -> (Thread<u32>, mpsc::Sender<u32>, &'static Places) {
        let (answer, storage) = mpsc::channel();
        let places: &'static Places = Box::leak(Box::new(Places(AtomicUsize::new(taken))));
        let thread = start_at(places, stage, Builder::new(), move || storage.recv().unwrap()).unwrap();
        (thread, answer, places)
    }

    fn taken(places: &Places) -> usize {
        places.0.load(Ordering::Relaxed)
    }

    #[test]
    fn a_thread_that_is_left_behind_has_a_place_until_it_ends() {
        let (thread, answer, places) = waiting(Stage::Needed, 0);
        assert_eq!(taken(places), 0);
        assert!(thread.leave() && thread.leave());
        assert_eq!(taken(places), 1);
        answer.send(7).unwrap();
        assert_eq!(thread.join().unwrap(), 7);
        assert_eq!(taken(places), 0);
    }

    #[test]
    fn a_thread_is_waited_for_as_long_as_it_is_said() {
        let (thread, answer, places) = waiting(Stage::Needed, 0);
        let mut asked = 0;
        let end = thread.end(|| {
            asked += 1;
            if asked == 3 {
                answer.send(7).unwrap();
            }
            true
        });
        assert_eq!((end.unwrap().unwrap(), taken(places)), (7, 0));
        let (thread, answer, places) = waiting(Stage::Needed, 0);
        assert!(!thread.wait(Duration::MAX, || false) && !thread.wait(Duration::ZERO, || true));
        assert!(thread.end(|| false).is_none());
        answer.send(7).unwrap();
        while taken(places) > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn a_thread_is_waited_for_if_too_many_are_left_behind() {
        let (thread, answer, places) = waiting(Stage::Needed, MOST);
        assert!(!thread.leave());
        // Whoever asks this has found that it can't be left.
        let end = thread.end(|| answer.send(7).is_err());
        assert_eq!((end.unwrap().unwrap(), taken(places)), (7, MOST));
    }

    #[test]
    fn a_helper_has_a_place_from_its_start() {
        let places: &'static Places = Box::leak(Box::new(Places(AtomicUsize::new(MOST - NOT_FOR_HELPERS))));
        assert!(!places.take(MOST - NOT_FOR_HELPERS) && places.take(MOST));
        let (thread, answer, places) = waiting(Stage::Spare, 1);
        answer.send(7).unwrap();
        assert_eq!(thread.join().unwrap(), 7);
        assert_eq!(taken(places), 0);
    }

    #[test]
    fn a_thread_that_has_ended_is_not_left_behind() {
        let (thread, answer, places) = waiting(Stage::Needed, 0);
        // It panics.
        drop(answer);
        while !thread.has_ended() {
            thread::yield_now();
        }
        assert!(!thread.leave() && taken(places) == 0);
        assert!(thread.end(|| false).unwrap().is_err());
    }
}
