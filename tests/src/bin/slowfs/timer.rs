//! When operations are done: each a fixed time after it has come, any number of them at a time.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that do what is due. What waits needs none.
const WORKERS: usize = 16;

/// An operation, with its answer.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The operations that wait.
#[derive(Debug)]
pub(crate) struct Timer {
    micros: AtomicU64,
    queue: Sender<(Instant, Job)>,
}

impl Timer {
    pub(crate) fn new(delay: Duration) -> io::Result<Self> {
        let (queue, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..WORKERS {
            let waiting = Arc::clone(&waiting);
            thread::Builder::new().name("slow".to_owned()).spawn(move || work(&waiting))?;
        }
        let timer = Self { micros: AtomicU64::new(0), queue };
        timer.set_delay(delay);
        Ok(timer)
    }

    pub(crate) fn set_delay(&self, delay: Duration) {
        self.micros.store(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Does the job after the delay; now, and on this thread, if there is none.
    pub(crate) fn after_the_delay(&self, job: Job) {
        match self.micros.load(Ordering::Relaxed) {
            0 => job(),
            // Its receivers end with the process.
            micros => drop(self.queue.send((Instant::now() + Duration::from_micros(micros), job))),
        }
    }
}

/// One of the workers waits for the oldest operation, which is due first, since each waits equally
/// long; the others wait for their turn to wait.
fn work(waiting: &Mutex<Receiver<(Instant, Job)>>) {
    loop {
        let oldest = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok((due, job)) = oldest.recv() else { return };
        thread::sleep(due.saturating_duration_since(Instant::now()));
        drop(oldest);
        job();
    }
}
