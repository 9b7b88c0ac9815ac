//! What was left out in a directory, and may have to be looked up after all.

use std::cell::{Cell, RefCell};

use crate::scan::Moment;

/// A directory settles what was left out in it after so many bytes of names.
const MOST_UNSETTLED: usize = 16 * 1024;

/// What was left out in a directory in which files can be exchanged without a change of their times
/// (see `scan`), until it is known that it has not changed meanwhile.
pub(super) struct Unsettled {
    /// When it was opened, before its first names were read.
    pub(super) opened: Moment,
    /// As `push_name` writes them.
    pub(super) names: RefCell<Vec<u8>>,
    pub(super) count: Cell<u64>,
    /// It has changed: nothing more is left out in it.
    pub(super) has_changed: Cell<bool>,
}

impl Unsettled {
    pub(super) const fn new(opened: Moment) -> Self {
        Self { opened, names: RefCell::new(Vec::new()), count: Cell::new(0), has_changed: Cell::new(false) }
    }

    /// Whether it is time to settle.
    pub(super) fn is_full(&self) -> bool {
        self.names.borrow().len() >= MOST_UNSETTLED
    }
}
