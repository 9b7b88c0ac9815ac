//! Collects the walk's events to batches: small files together, each large file alone.

use std::sync::Arc;

use fd_records::FileType;
use fd_walk::{Entry, WalkEvent};

use crate::digests::ahead::FileAhead;
use crate::pipeline::piece::Event;

/// A batch holds at most this many items …
const MOST_ITEMS: usize = 64;
/// … and about this many bytes of file data.
const MOST_BYTES: u64 = 1 << 20;
/// A file of this size has a batch of its own, so that other workers take the following ones.
const LARGE: u64 = 1 << 19;

/// What one worker takes at a time.
#[derive(Default, Debug)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    /// The only file, if its digests are computed ahead.
    pub(crate) ahead: Option<Arc<FileAhead>>,
    bytes: u64,
}

/// One event of the walk.
#[derive(Debug)]
pub(crate) enum Item {
    /// An entry to be saved.
    Entry(Entry),
    /// A message.
    Event(Event),
    /// A plugin command, for which there is no plugin.
    Plugin(Vec<u8>),
}

/// Collects events until they make a batch.
#[derive(Default)]
pub(crate) struct Batcher {
    batch: Batch,
}

impl Batcher {
    /// Adds an event. Complete batches are passed to `submit`, in order.
    pub(crate) fn push<E>(
        &mut self,
        event: WalkEvent<'_>,
        mut submit: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let (item, bytes) = match event {
            WalkEvent::Entry(entry) => {
                let bytes = data_len(&entry);
                (Item::Entry(entry), bytes)
            }
            WalkEvent::Message(message) => {
                let fd_walk::Message { kind, text, error } = message;
                (Item::Event(Event::Message { kind, text: text.to_vec(), failed: error }), 0)
            }
            WalkEvent::Plugin(plugin) => (Item::Plugin(plugin.command.to_vec()), 0),
        };
        if bytes >= LARGE {
            self.finish(&mut submit)?;
        }
        self.batch.add(item, bytes);
        if self.batch.is_full() {
            self.finish(&mut submit)?;
        }
        Ok(())
    }

    /// Passes the last batch to `submit`, if it has any item.
    pub(crate) fn finish<E>(&mut self, mut submit: impl FnMut(Batch) -> Result<(), E>) -> Result<(), E> {
        let batch = std::mem::take(&mut self.batch);
        if batch.items.is_empty() { Ok(()) } else { submit(batch) }
    }
}

impl Batch {
    fn add(&mut self, item: Item, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.push(item);
    }

    /// The file of a batch that is one large file.
    pub(crate) fn large_file(&self) -> Option<&Entry> {
        match self.items.as_slice() {
            [Item::Entry(entry)] if self.bytes >= LARGE => Some(entry),
            _ => None,
        }
    }

    fn is_full(&self) -> bool {
        self.items.len() >= MOST_ITEMS || self.bytes >= MOST_BYTES || self.bytes >= LARGE && self.items.len() == 1
    }
}

/// Bytes of data of an entry, as far as its attributes say.
fn data_len(entry: &Entry) -> u64 {
    match entry.file_type {
        FileType::Regular => u64::try_from(entry.stat.size).unwrap_or_default(),
        FileType::Raw | FileType::Fifo => u64::MAX,
        _ => 0,
    }
}
