//! What belongs to one execution of a model. All its threads are those of one thread of the system,
//! so this is a thread-local.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};
use std::time::Duration;

use shuttle::sync::Condvar;

thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static RUNNING: Cell<usize> = const { Cell::new(0) };
    static STARTS: Cell<usize> = const { Cell::new(usize::MAX) };
    static MEETING: RefCell<Option<Meeting>> = const { RefCell::new(None) };
    static TIMED: RefCell<Vec<Weak<Condvar>>> = const { RefCell::new(Vec::new()) };
}

/// What happens to a thread at one of its steps.
struct Meeting {
    thread: &'static str,
    steps: usize,
    what: Box<dyn FnOnce()>,
}

/// A new one begins.
pub(crate) fn begin() {
    NOW.set(Duration::ZERO);
    RUNNING.set(0);
    STARTS.set(usize::MAX);
    MEETING.take();
    TIMED.take();
}

/// The time since it has begun.
pub(crate) fn now() -> Duration {
    NOW.get()
}

/// So much time passes. Whatever waits with a limit wakes up and looks at the clock.
pub fn pass(time: Duration) {
    NOW.set(NOW.get().saturating_add(time));
    let waited_for: Vec<_> = TIMED.with_borrow(|timed| timed.iter().filter_map(Weak::upgrade).collect());
    for condvar in waited_for {
        condvar.notify_all();
    }
}

/// At this step of the threads of this name, of all of them together, this happens. Each time that
/// one of them sends to a queue is a step.
pub fn at_step(thread: &'static str, step: usize, what: impl FnOnce() + 'static) {
    MEETING.set(Some(Meeting { thread, steps: step, what: Box::new(what) }));
}

/// The present thread makes a step.
pub(crate) fn step() {
    let meeting = MEETING.with_borrow_mut(|meeting| {
        let Meeting { thread, steps, .. } = meeting.as_mut()?;
        if shuttle::thread::current().name() != Some(*thread) {
            return None;
        }
        if *steps == 0 {
            return meeting.take();
        }
        *steps -= 1;
        None
    });
    if let Some(meeting) = meeting {
        (meeting.what)();
    }
}

/// How many threads have begun and have not ended.
pub fn running() -> usize {
    RUNNING.get()
}

/// So many more threads can be started.
pub fn allow_threads(number: usize) {
    STARTS.set(number);
}

/// Whether a thread can be started.
pub(crate) fn may_start() -> bool {
    let starts = STARTS.get();
    STARTS.set(starts.saturating_sub(1));
    starts > 0
}

/// A thread that runs, until this is dropped.
pub(crate) struct Running;

impl Running {
    pub(crate) fn new() -> Self {
        RUNNING.set(RUNNING.get() + 1);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get().saturating_sub(1));
    }
}

/// A wait that time ends, until this is dropped.
pub(crate) struct Timed<'c>(&'c Arc<Condvar>);

impl<'c> Timed<'c> {
    pub(crate) fn new(condvar: &'c Arc<Condvar>) -> Self {
        TIMED.with_borrow_mut(|timed| timed.push(Arc::downgrade(condvar)));
        Self(condvar)
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        TIMED.with_borrow_mut(|timed| {
            if let Some(at) = timed.iter().position(|weak| weak.as_ptr() == Arc::as_ptr(self.0)) {
                timed.swap_remove(at);
            }
        });
    }
}
