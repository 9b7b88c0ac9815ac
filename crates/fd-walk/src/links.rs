//! Which inodes with several names were met, and what became of their first names (reference 03 §5.6).

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fd_records::{Stat, Stream};

/// The digest that was sent for a first name; its later names repeat it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkDigest {
    /// Its stream.
    pub stream: Stream,
    /// Its bytes.
    pub bytes: Box<[u8]>,
}

/// What became of the first name of an inode.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum LinkState {
    /// Nobody has said yet.
    #[default]
    Pending,
    /// It was not saved: a later name must stand for itself.
    NotSaved,
    /// It was saved.
    Saved {
        /// Its FileIndex.
        file_index: i32,
        /// Its digest, if one was sent.
        digest: Option<LinkDigest>,
    },
}

/// What the names of one inode share.
#[derive(Clone, Debug)]
pub struct LinkSlot(Arc<Slot>);

#[derive(Debug)]
struct Slot {
    path: Box<[u8]>,
    state: Mutex<LinkState>,
}

impl LinkSlot {
    fn new(path: &[u8]) -> Self {
        Self(Arc::new(Slot { path: path.into(), state: Mutex::default() }))
    }

    /// The first name, as walked.
    pub fn path(&self) -> &[u8] {
        &self.0.path
    }

    /// What became of it.
    pub fn get(&self) -> LinkState {
        self.lock().clone()
    }

    /// Says what became of it.
    pub fn set(&self, state: LinkState) {
        *self.lock() = state;
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a name of an inode with several names is.
#[derive(Debug)]
pub(crate) enum Met {
    /// The first one.
    First(LinkSlot),
    /// The first one once more, by way of another name of the FileSet.
    Again,
    /// Another one.
    Later(LinkSlot),
}

/// The inodes met so far, for the whole job.
#[derive(Default, Debug)]
pub(crate) struct LinkTable {
    inodes: HashMap<(u64, u64), LinkSlot>,
}

impl LinkTable {
    /// Looks an inode up, and notes `path` as its first name if it is new.
    pub(crate) fn meet(&mut self, stat: &Stat, path: &[u8]) -> Met {
        match self.inodes.entry((stat.dev, stat.ino)) {
            Place::Vacant(place) => Met::First(place.insert(LinkSlot::new(path)).clone()),
            Place::Occupied(place) if place.get().path() == path => Met::Again,
            Place::Occupied(place) => Met::Later(place.get().clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_an_inode_is_the_one_met_first() {
        let mut table = LinkTable::default();
        let stat = Stat { dev: 1, ino: 2, ..Stat::default() };
        let Met::First(slot) = table.meet(&stat, b"/a") else { panic!("new") };
        assert!(matches!(table.meet(&stat, b"/a"), Met::Again));
        slot.set(LinkState::Saved { file_index: 7, digest: None });
        let Met::Later(same) = table.meet(&stat, b"/b") else { panic!("known") };
        assert_eq!(same.path(), b"/a");
        assert_eq!(same.get(), LinkState::Saved { file_index: 7, digest: None });
        let other_device = Stat { dev: 2, ..stat };
        assert!(matches!(table.meet(&other_device, b"/c"), Met::First(_)));
    }
}
