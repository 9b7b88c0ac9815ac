//! How many connections are served at once.

use std::sync::Arc;
use std::time::Duration;

use fd_os::lock::{Condvar, Mutex};

/// How often a waiting connection looks whether its peer has left.
const LOOK: Duration = Duration::from_secs(1);

/// How many connections may be served at once (reference 01 §6.3).
#[derive(Debug)]
pub(crate) struct Slots {
    free: Mutex<u32>,
    freed: Condvar,
}

impl Slots {
    /// `count` connections at once.
    pub(crate) const fn new(count: u32) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Waits for a free slot. `None` if there is none and the peer has left: it must not wait on,
    /// in a place that others can use.
    pub(crate) fn take(self: &Arc<Self>, has_left: impl Fn() -> bool) -> Option<Slot> {
        let mut free = self.free.lock();
        while *free == 0 {
            if has_left() {
                return None;
            }
            (free, _) = self.freed.wait_timeout(free, LOOK);
        }
        *free -= 1;
        drop(free);
        Some(Slot { slots: Arc::clone(self) })
    }

    fn give(&self) {
        *self.free.lock() += 1;
        self.freed.notify_one();
    }
}

/// A slot of a connection that is served; free again when this is dropped, also when the session
/// panics.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.give();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_left_does_not_wait_for_a_slot() {
        let slots = Arc::new(Slots::new(1));
        let taken = slots.take(|| true).unwrap();
        assert!(slots.take(|| true).is_none());
        drop(taken);
        assert!(slots.take(|| true).is_some());
    }
}
