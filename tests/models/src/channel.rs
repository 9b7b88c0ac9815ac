//! Queues with the names of `crossbeam_channel`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::execution::step;
use crate::instant::Instant;
use crate::{Condvar, Mutex, MutexGuard};

#[derive(Debug)]
struct Queue<T> {
    state: Mutex<State<T>>,
    most: usize,
    /// Something was added or taken, or one side is gone.
    news: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    senders: usize,
    receivers: usize,
}

impl<T> Queue<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        self.news.wait(state)
    }
}

/// All receivers are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendError<T>(pub T);

/// Why nothing was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvTimeoutError {
    /// Nothing has come in time.
    Timeout,
    /// Nothing will come: all senders are gone.
    Disconnected,
}

/// All senders are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecvError;

/// The end that sends.
#[derive(Debug)]
pub struct Sender<T>(Arc<Queue<T>>);

/// The end that receives.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Queue<T>>);

/// A queue of any length.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    bounded(usize::MAX)
}

/// A queue of at most so many, at least 1.
pub fn bounded<T>(most: usize) -> (Sender<T>, Receiver<T>) {
    let state = Mutex::new(State { items: VecDeque::new(), senders: 1, receivers: 1 });
    let queue = Arc::new(Queue { state, most: most.max(1), news: Condvar::new() });
    (Sender(Arc::clone(&queue)), Receiver(queue))
}

impl<T> Sender<T> {
    /// Adds one; waits for room.
    ///
    /// # Errors
    /// Nobody will take it.
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        step();
        let mut state = self.0.lock();
        while state.items.len() >= self.0.most && state.receivers > 0 {
            state = self.0.wait(state);
        }
        if state.receivers == 0 {
            return Err(SendError(item));
        }
        state.items.push_back(item);
        self.0.news.notify_all();
        Ok(())
    }

    /// Adds one if there is room.
    ///
    /// # Errors
    /// There is none, or nobody will take it.
    pub fn try_send(&self, item: T) -> Result<(), SendError<T>> {
        step();
        let mut state = self.0.lock();
        if state.receivers == 0 || state.items.len() >= self.0.most {
            return Err(SendError(item));
        }
        state.items.push_back(item);
        self.0.news.notify_all();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.lock().senders -= 1;
        self.0.news.notify_all();
    }
}

impl<T> Receiver<T> {
    /// Takes the next one; waits for it.
    ///
    /// # Errors
    /// None will come.
    pub fn recv(&self) -> Result<T, RecvError> {
        let mut state = self.0.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                self.0.news.notify_all();
                return Ok(item);
            }
            if state.senders == 0 {
                return Err(RecvError);
            }
            state = self.0.wait(state);
        }
    }

    /// Takes the next one if it comes within this time.
    ///
    /// # Errors
    /// See [`RecvTimeoutError`].
    pub fn recv_timeout(&self, limit: Duration) -> Result<T, RecvTimeoutError> {
        let end = Instant::now() + limit;
        let mut state = self.0.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                self.0.news.notify_all();
                return Ok(item);
            }
            if state.senders == 0 {
                return Err(RecvTimeoutError::Disconnected);
            }
            if Instant::now() >= end {
                return Err(RecvTimeoutError::Timeout);
            }
            (state, _) = self.0.news.wait_timeout(state, limit);
        }
    }

    /// Takes the next one if it is there.
    ///
    /// # Errors
    /// It is not.
    pub fn try_recv(&self) -> Result<T, RecvError> {
        self.try_iter().next().ok_or(RecvError)
    }

    /// Takes those that are there.
    pub fn try_iter(&self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| {
            let item = self.0.lock().items.pop_front();
            self.0.news.notify_all();
            item
        })
    }

    /// Takes them until none will come.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| self.recv().ok())
    }
}

impl<'r, T> IntoIterator for &'r Receiver<T> {
    type Item = T;
    type IntoIter = Box<dyn Iterator<Item = T> + 'r>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.lock().receivers += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.lock().receivers -= 1;
        self.0.news.notify_all();
    }
}
