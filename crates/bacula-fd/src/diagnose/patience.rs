//! Questions about files and keys, which lie on storage that may never answer: each is asked by a
//! thread of its own, which is left behind if there is no answer in time.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use fd_os::threads::start;

use crate::diagnose::texts;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take once one has not come: much of what is asked for lies on the same storage.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// How long answers are waited for.
#[derive(Debug)]
pub(super) struct Patience {
    next: Cell<Duration>,
    is_lost: Cell<bool>,
}

impl Patience {
    pub(super) const fn new() -> Self {
        Self { next: Cell::new(PATIENCE), is_lost: Cell::new(false) }
    }

    /// Asks.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`]: there was no answer in time. Otherwise the system has no
    /// thread, or the question has panicked.
    pub(super) fn ask<T: Send + 'static>(&self, question: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let work = move || {
            // It may be a key that is read.
            fd_os::wiping::wipe_what_this_thread_frees();
            question()
        };
        let question = start("question", work)?;
        let (time, asked) = (self.next.get(), Instant::now());
        let Some(answer) = question.end(|| asked.elapsed() < time) else {
            self.next.set(time.min(AFTERWARDS));
            self.is_lost.set(true);
            return Err(io::Error::new(io::ErrorKind::TimedOut, texts::STORAGE_HANGS));
        };
        answer.map_err(|_panic| io::Error::other(texts::NO_ANSWER))
    }

    /// The same for a question whose answer may be the system's error.
    ///
    /// # Errors
    /// Those of [`Self::ask`], and the answer's own.
    pub(super) fn try_ask<T: Send + 'static>(
        &self,
        question: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.ask(question)?
    }

    /// Whether a question has had no answer. Its thread may still hang, and the process can't
    /// become another user then: the C library waits for all threads.
    pub(super) const fn is_lost(&self) -> bool {
        self.is_lost.get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_question_without_an_answer_is_left_and_later_ones_get_less_time() {
        let patience = Patience::new();
        // A panic alone may take seconds on a busy host.
        patience.next.set(Duration::from_secs(3600));
        assert_eq!(patience.ask(|| 7).unwrap(), 7);
        let error = patience.try_ask(|| Err::<(), _>(io::ErrorKind::NotFound.into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = patience.ask(|| -> () { panic!("on purpose") }).unwrap_err();
        assert_eq!((error.kind(), patience.is_lost()), (io::ErrorKind::Other, false));
        let (answer, question) = mpsc::channel::<()>();
        patience.next.set(AFTERWARDS + Duration::from_millis(1));
        let error = patience.ask(move || question.recv()).unwrap_err();
        assert_eq!((error.kind(), patience.is_lost()), (io::ErrorKind::TimedOut, true));
        assert_eq!(patience.next.get(), AFTERWARDS);
        drop(answer);
    }
}
