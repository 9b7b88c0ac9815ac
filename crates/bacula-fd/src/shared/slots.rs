//! How many connections are served at once.

use std::sync::Arc;

use fd_os::lock::{Condvar, Mutex};

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

    /// Waits for a free slot.
    pub(crate) fn take(self: &Arc<Self>) -> Slot {
        let mut free = self.free.lock();
        while *free == 0 {
            free = self.freed.wait(free);
        }
        *free -= 1;
        drop(free);
        Slot { slots: Arc::clone(self) }
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
