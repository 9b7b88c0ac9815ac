//! The threads that make files.

use std::sync::Arc;
use std::time::Duration;

use fd_messages::CancelToken;
use fd_metadata::UsualOwner;
use fd_os::depth::Taken;
use fd_os::sync::Instant;
use fd_os::sync::atomic::AtomicBool;
use fd_os::sync::atomic::Ordering::Relaxed;
use fd_os::threads::{GLANCE, Thread, start_helper};

use super::task::{Answer, Task};
use crate::created::Taker;
use crate::sync::{Receiver, RecvTimeoutError, Sender, unbounded};

/// How long a canceled job waits for files that its threads have begun. Its own thread is waited
/// for twice as long.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes of a thread's stack.
const STACK: usize = 256 * 1024;

/// The threads, which are started when there is work for them, and end when this is dropped.
pub(crate) struct Writers {
    /// `None` when this is dropped.
    orders: Option<Sender<(usize, Task)>>,
    /// The other end, to take back what no thread has begun.
    waiting: Receiver<(usize, Task)>,
    answer: Sender<(usize, Answer, Taken)>,
    answers: Receiver<(usize, Answer, Taken)>,
    threads: Vec<Thread<()>>,
    /// A file could not be filled: no thread begins another one of these tasks. Each would stay
    /// open.
    is_full: Arc<AtomicBool>,
    /// A thread hangs in a call, and nobody waits for it any more.
    is_given_up: bool,
}

impl Writers {
    pub(crate) fn new() -> Self {
        let (orders, waiting) = unbounded();
        let (answer, answers) = unbounded();
        let is_full = Arc::default();
        Self { orders: Some(orders), waiting, answer, answers, threads: Vec::new(), is_full, is_given_up: false }
    }

    /// Carries the tasks out, at most `depth` at a time, and returns the answers in their order,
    /// and what the tasks have taken.
    ///
    /// If the job is canceled meanwhile, files that were begun are still finished, if that takes
    /// no longer than a second.
    pub(crate) fn carry_out(&mut self, tasks: Vec<Task>, depth: usize, cancel: &CancelToken) -> (Vec<Answer>, Taken) {
        let mut answers: Vec<Answer> = tasks.iter().map(|_| Answer::NotBegun).collect();
        self.start(depth.min(tasks.len()));
        let mut taken = Taken::default();
        if self.is_given_up || self.threads.is_empty() {
            return (answers, taken);
        }
        self.is_full.store(false, Relaxed);
        let mut open = 0_usize;
        let mut orders: Vec<(usize, Task)> = tasks.into_iter().enumerate().collect();
        orders.sort_by_key(|(_, task)| task.rank);
        for order in orders {
            if self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok()) {
                open += 1;
            }
        }
        let mut canceled_at = None;
        while open > 0 {
            match self.answers.recv_timeout(GLANCE) {
                Ok((number, answer, one)) => {
                    open -= 1;
                    taken.add(one);
                    if let Some(place) = answers.get_mut(number) {
                        *place = answer;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => self.pass_panic_on(),
            }
            if cancel.is_canceled() {
                let at = *canceled_at.get_or_insert_with(Instant::now);
                open = open.saturating_sub(self.waiting.try_iter().count());
                if open > 0 && at.elapsed() >= GRACE {
                    self.is_given_up = true;
                    break;
                }
            }
        }
        (answers, taken)
    }

    /// Whether a thread hangs, so that nothing more is to be called that may hang, too.
    pub(crate) const fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// Starts threads until there are so many, if that is possible.
    fn start(&mut self, count: usize) {
        while self.threads.len() < count {
            let (orders, answer, is_full) = (self.waiting.clone(), self.answer.clone(), Arc::clone(&self.is_full));
            let Ok(thread) = start_helper("writer", STACK, move || work(&orders, &answer, &is_full)) else { return };
            self.threads.push(thread);
        }
    }

    /// A panic of a thread is one of the job: the answer would never come.
    fn pass_panic_on(&mut self) {
        if let Some(ended) = self.threads.iter().position(Thread::has_ended)
            && let Err(panic) = self.threads.swap_remove(ended).join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.orders = None;
        // One that hangs ends by itself once its call returns.
        if !self.is_given_up {
            for thread in self.threads.drain(..) {
                let _panic = thread.join();
            }
        }
    }
}

fn work(orders: &Receiver<(usize, Task)>, answers: &Sender<(usize, Answer, Taken)>, is_full: &AtomicBool) {
    let mut usual = UsualOwner::default();
    for (number, task) in orders {
        let (answer, taken) = if is_full.load(Relaxed) {
            (Answer::NotBegun, Taken::default())
        } else {
            Taken::measure(|| task.carry_out(&mut usual))
        };
        if matches!(answer, Answer::Made(Taker::File(_))) {
            is_full.store(true, Relaxed);
        }
        if answers.send((number, answer, taken)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
#[cfg(feature = "models")]
mod models;

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::OwnedFd;

    use fd_records::{Stat, Stream};

    use super::*;
    use crate::overlap::FileData;

    const DEPTH: usize = 8;

    /// Each is open, and the daemon has a limit.
    #[test]
    fn on_a_full_disk_each_thread_leaves_one_file_at_most() {
        if !nix::unistd::geteuid().is_root() {
            return skip::test("needs root");
        }
        let place = tempfile::tempdir().unwrap();
        let flags = nix::mount::MsFlags::empty();
        if let Err(errno) = nix::mount::mount(Some("tmpfs"), place.path(), Some("tmpfs"), flags, Some("size=64k")) {
            return skip::test(&format!("no tmpfs can be mounted: {errno}"));
        }
        let directory = Arc::new(OwnedFd::from(File::open(place.path()).unwrap()));
        let mut data = FileData::default();
        data.push(Stream::FILE_DATA, 3000, &[7; 3000]);
        let data = Arc::new(data);
        let task = |number: usize| Task {
            directory: Arc::clone(&directory),
            name: number.to_string().into_bytes(),
            data: Arc::clone(&data),
            stat: Stat { mode: Stat::MODE_REGULAR | 0o640, ..Stat::default() },
            behind: None,
            rank: 0,
        };
        let mut writers = Writers::new();
        let cancel = CancelToken::new();
        let (answers, _) = writers.carry_out((0..2000).map(task).collect(), DEPTH, &cancel);
        let count = |is: fn(&Answer) -> bool| answers.iter().filter(|answer| is(answer)).count();
        let empty = count(|answer| matches!(answer, Answer::Made(Taker::File(_))));
        let whole = count(|answer| matches!(answer, Answer::Made(Taker::Finished(_))));
        assert!((1..=DEPTH).contains(&empty), "{empty}");
        assert!((1..=16).contains(&whole), "{whole}");
        // There is room again in the next run.
        for file in fs::read_dir(place.path()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        drop(answers);
        let (answers, _) = writers.carry_out((0..4).map(task).collect(), DEPTH, &cancel);
        assert!(answers.iter().all(|answer| matches!(answer, Answer::Made(Taker::Finished(_)))));
        drop((answers, writers, directory));
        nix::mount::umount2(place.path(), nix::mount::MntFlags::MNT_DETACH).unwrap();
    }
}
