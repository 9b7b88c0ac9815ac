//! The threads of a job. If one ends unexpectedly, all others end, too. One that hangs when the job
//! is over is left behind ([`fd_os::threads`]).

use std::io;
use std::time::Duration;

use fd_os::sync::{Instant, Mutex};
use fd_os::threads::{Thread, start, start_helper};

/// Bytes of the stack of a worker that is there because others wait for storage: as the others'.
const STACK: usize = 2 << 20;

/// The threads of a job that is good are waited for so many times as long.
const GRACES_IF_GOOD: u32 = 30;

/// See the module.
#[derive(Debug)]
pub(crate) struct Threads {
    /// A thread is here before the one that has started it ends.
    started: Mutex<Started>,
    grace: Duration,
}

/// Threads that are not joined yet.
#[derive(Default, Debug)]
struct Started {
    threads: Vec<Thread<()>>,
    /// How many of those that were joined have panicked.
    panicked: usize,
}

impl Started {
    /// Joins those that have ended: each has its stack until then. A long job starts thousands.
    fn join_ended(&mut self) {
        for ended in self.threads.extract_if(.., |thread| thread.has_ended()) {
            self.panicked += usize::from(ended.join().is_err());
        }
    }
}

/// How the threads of a job have ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Joined {
    pub(crate) panicked: usize,
    /// How many were left behind.
    pub(crate) left: usize,
}

impl Threads {
    /// Waits so long for its threads when the job is over.
    pub(crate) fn new(grace: Duration) -> Self {
        Self { started: Mutex::default(), grace }
    }

    /// Starts a thread; a helper only if the daemon has few of them.
    pub(crate) fn start(&self, name: &str, is_helper: bool, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = if is_helper { start_helper(name, STACK, work)? } else { start(name, work)? };
        let mut started = self.started.lock();
        started.join_ended();
        started.threads.push(thread);
        Ok(())
    }

    /// Waits until all threads have ended, but not long; one in a call of a plugin is waited for.
    pub(crate) fn join(&self, is_good: impl Fn() -> bool, is_in_call: impl Fn() -> bool) -> Joined {
        let begun = Instant::now();
        let mut deadline = begun + self.grace;
        let mut joined = Joined::default();
        while let Some(thread) = self.next() {
            let ended = thread.end(|| {
                let now = Instant::now();
                if is_in_call() {
                    deadline = now + self.grace;
                    return true;
                }
                now < deadline || is_only_slow(is_good(), now.saturating_duration_since(begun), self.grace)
            });
            match ended {
                None => joined.left += 1,
                Some(Err(_panic)) => joined.panicked += 1,
                Some(Ok(())) => {}
            }
        }
        joined.panicked += std::mem::take(&mut self.started.lock().panicked);
        joined
    }

    fn next(&self) -> Option<Thread<()>> {
        self.started.lock().threads.pop()
    }
}

/// Whether a thread of a job that is over is likely to lack no more than a processor, on a host
/// that is overloaded: nobody waits for the end of a job that is good as for that of others.
fn is_only_slow(is_good: bool, waited: Duration, grace: Duration) -> bool {
    is_good && waited < grace * GRACES_IF_GOOD
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn hanging(threads: &Threads) -> mpsc::Sender<()> {
        let (answer, storage) = mpsc::channel::<()>();
        threads.start("hangs", false, move || assert!(storage.recv().is_ok())).unwrap();
        answer
    }

    fn wait_for_ends(threads: &Threads) {
        while !threads.started.lock().threads.iter().all(Thread::has_ended) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn threads_that_have_ended_do_not_pile_up_until_the_job_ends() {
        let threads = Threads::new(Duration::ZERO);
        for number in 0..1000 {
            threads.start("ends", false, move || assert!(number != 500, "on purpose")).unwrap();
            wait_for_ends(&threads);
            assert_eq!(threads.started.lock().threads.len(), 1);
        }
        assert_eq!(threads.join(|| true, || false), Joined { panicked: 1, left: 0 });
        assert_eq!(threads.join(|| true, || false), Joined::default());
    }

    #[test]
    fn the_others_of_a_thread_that_hangs_are_joined() {
        let threads = Threads::new(Duration::ZERO);
        threads.start("ends", false, || {}).unwrap();
        threads.start("panics", false, || panic!("on purpose")).unwrap();
        wait_for_ends(&threads);
        let answer = hanging(&threads);
        assert_eq!(threads.join(|| true, || false), Joined { panicked: 1, left: 1 });
        answer.send(()).unwrap();
        assert_eq!(threads.join(|| true, || false), Joined::default());
    }

    #[test]
    fn a_thread_that_gets_no_processor_for_a_minute_is_no_fault_of_a_good_job() {
        let grace = Duration::from_secs(2);
        for (is_good, waited, wanted) in [(true, 0, true), (true, 59, true), (true, 60, false), (false, 0, false)] {
            assert_eq!(is_only_slow(is_good, Duration::from_secs(waited), grace), wanted, "{is_good} {waited}");
        }
    }

    #[test]
    fn a_thread_in_a_call_of_a_plugin_is_waited_for() {
        let threads = Threads::new(Duration::ZERO);
        let over = hanging(&threads);
        let mut asked = 0;
        let asked = std::cell::RefCell::new(&mut asked);
        let is_in_call = || {
            // Its grace has passed twice.
            **asked.borrow_mut() += 1;
            if **asked.borrow() == 3 {
                over.send(()).unwrap();
            }
            true
        };
        assert_eq!(threads.join(|| false, is_in_call), Joined::default());
    }
}
