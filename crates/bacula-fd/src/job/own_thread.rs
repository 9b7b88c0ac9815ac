//! The thread of a job that itself waits for storage: a restore, a Verify job, an estimate, or what
//! another thread asks of storage.
//!
//! A call to storage that does not answer can't be ended. A canceled job leaves such a thread
//! behind: it owns all that it uses, and ends by itself when the storage answers or is taken away.

use std::any::Any;
use std::io;
use std::time::Duration;

use fd_messages::MessageType;
use fd_os::process::IsWanted;
use fd_os::sync::Instant;
use fd_os::threads::{Thread, start};

use crate::shared::job::Job;
use crate::texts;

/// How long a canceled job waits for its thread.
const GRACE: Duration = Duration::from_secs(2);

/// See the module.
pub(crate) struct OwnThread<T> {
    thread: Thread<T>,
    unwanted: Option<Instant>,
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

impl<T: Send + 'static> OwnThread<T> {
    /// Starts it.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(crate) fn start(name: String, work: impl FnOnce() -> T + Send + 'static) -> Result<Self, Nothing> {
        let thread = start(name, work).map_err(|error| Nothing::no_thread(&error))?;
        Ok(Self { thread, unwanted: None })
    }

    /// Waits for its end, unless it hangs and is not wanted any more.
    ///
    /// # Errors
    /// It is left behind, or has panicked.
    pub(crate) fn wait(self, job: &Job, wanted: IsWanted<'_>) -> Result<T, Nothing> {
        let Self { thread, mut unwanted } = self;
        let ended = thread.end(|| wanted() || !has_waited_enough(&mut unwanted, Instant::now(), job, || false));
        let Some(ended) = ended else {
            job.cancel.abandon();
            return Err(Nothing::Left);
        };
        ended.map_err(|panic| Nothing::panicked(&*panic))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It has panicked.
    pub(crate) fn join(self) -> Result<T, Nothing> {
        self.thread.join().map_err(|panic| Nothing::panicked(&*panic))
    }

    /// To be asked ten times a second: leaves the thread behind if its job was canceled two seconds
    /// ago and it has not ended, unless it waits for what a cancel ends: a plugin, or a program of
    /// ours. `true`: it is left, and must not be joined.
    pub(crate) fn is_left(&mut self, job: &Job, is_in_plugin: impl FnOnce() -> bool) -> bool {
        job.cancel.is_canceled() && self.is_left_at(Instant::now(), job, is_in_plugin)
    }

    fn is_left_at(&mut self, now: Instant, job: &Job, is_in_plugin: impl FnOnce() -> bool) -> bool {
        let is_left = has_waited_enough(&mut self.unwanted, now, job, is_in_plugin) && self.thread.leave();
        if is_left {
            job.cancel.abandon();
        }
        is_left
    }
}

/// Whether a thread that is not wanted any more has had the time to end.
fn has_waited_enough(
    unwanted: &mut Option<Instant>,
    now: Instant,
    job: &Job,
    is_in_plugin: impl FnOnce() -> bool,
) -> bool {
    let since = *unwanted.get_or_insert(now);
    if now.saturating_duration_since(since) < GRACE {
        return false;
    }
    let waits_for_us = job.course.is_asking() || is_in_plugin();
    if waits_for_us {
        *unwanted = None;
    }
    !waits_for_us
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;

    use super::*;
    use crate::shared::job::Identity;
    use fd_os::sync::thread;

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
        let (answer, storage) = bounded::<()>(0);
        let job = Job::new(Identity::default(), 0);
        let mut thread = OwnThread::start("hangs".to_owned(), move || storage.recv()).unwrap();
        assert!(!thread.is_left(&job, || false));
        assert!(thread.unwanted.is_none(), "its job is not canceled");
        job.cancel.cancel();
        let canceled = Instant::now();
        let mut is_left = |after| thread.is_left_at(canceled + after, &job, || false);
        assert!(!is_left(Duration::ZERO));
        assert!(!is_left(GRACE.saturating_sub(Duration::from_nanos(1))));
        assert!(!job.cancel.is_abandoned());
        assert!(is_left(GRACE));
        assert!(job.cancel.is_abandoned());
        answer.send(()).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(()));
    }

    #[test]
    fn a_thread_that_has_ended_or_is_in_a_plugin_is_not_left_behind() {
        let job = Job::new(Identity::default(), 0);
        job.cancel.cancel();
        let mut thread = OwnThread::start("ends".to_owned(), || 7).unwrap();
        while !thread.thread.has_ended() {
            thread::yield_now();
        }
        let canceled = Instant::now();
        for (after, is_in_plugin) in [(Duration::ZERO, true), (GRACE, true), (GRACE, false), (GRACE * 2, false)] {
            assert!(!thread.is_left_at(canceled + after, &job, || is_in_plugin), "{after:?}");
        }
        assert_eq!(thread.join().unwrap(), 7);
        assert!(!job.cancel.is_abandoned());
    }
}
