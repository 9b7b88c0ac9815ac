//! Threads of a model, with the names of `std::thread`. A panic ends the thread and not the model.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use shuttle::thread::{current, sleep, yield_now};
pub use std::thread::{Result, panicking};

use crate::execution::{Running, may_start};

/// What a new thread is to be like.
#[derive(Default, Debug)]
pub struct Builder {
    name: String,
}

/// A thread that was started.
#[derive(Debug)]
pub struct JoinHandle<T> {
    inner: shuttle::thread::JoinHandle<Result<T>>,
    has_ended: Arc<AtomicBool>,
}

impl Builder {
    /// One without a name.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this name.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = name;
        self
    }

    /// The stacks of all threads of a model have one size.
    #[must_use]
    pub const fn stack_size(self, _bytes: usize) -> Self {
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// The model has it that there are no more threads ([`crate::allow_threads`]).
    pub fn spawn<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
        if !may_start() {
            return Err(io::Error::from_raw_os_error(11));
        }
        let has_ended = Arc::new(AtomicBool::new(false));
        let (running, ended) = (Running::new(), Arc::clone(&has_ended));
        let work = move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            ended.store(true, Ordering::Relaxed);
            drop(running);
            result
        };
        let inner = shuttle::thread::Builder::new().name(self.name).spawn(work)?;
        Ok(JoinHandle { inner, has_ended })
    }
}

/// Starts a thread of the model itself.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> shuttle::thread::JoinHandle<T> {
    shuttle::thread::spawn(work)
}

impl<T> JoinHandle<T> {
    /// Waits for its end.
    ///
    /// # Errors
    /// It has panicked.
    pub fn join(self) -> Result<T> {
        self.inner.join().and_then(|result| result)
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}
