//! How long, and how often, the present thread has waited for anything but storage: for other
//! threads of its job, or because it was told to rest.

use std::cell::Cell;
use std::time::Duration;

/// Waits of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub(crate) time: Duration,
    pub(crate) times: u64,
}

thread_local! {
    static IDLE: Cell<Idle> = const { Cell::new(Idle { time: Duration::ZERO, times: 0 }) };
}

/// The present thread has waited so long for something else than storage.
pub(crate) fn add(waited: Duration) {
    let idle = IDLE.get();
    IDLE.set(Idle { time: idle.time.saturating_add(waited), times: idle.times.saturating_add(1) });
}

/// All such waits of the present thread.
pub(crate) fn total() -> Idle {
    IDLE.get()
}
