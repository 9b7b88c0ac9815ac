//! Collects the walk's events to batches: small files together, each large file and each plugin
//! command alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_fileset::EffectiveOptions;
use fd_records::FileType;
use fd_walk::{Entry, FoundCommand, HardLink, WalkEvent};

use crate::digests::ahead::FileAhead;
use crate::exchange::piece::Event;

/// A batch holds at most this many items …
const MOST_ITEMS: usize = 64;
/// … and about this many bytes of file data.
const MOST_BYTES: u64 = 1 << 20;
/// While many workers wait for storage, they share small trees, and hold few files each.
const FEW_ITEMS: usize = 8;
const FEW_BYTES: u64 = 128 << 10;
/// The walk finds a whole batch in less than this, unless it waits for storage.
const LATE: Duration = Duration::from_millis(10);
/// A file of this size has a batch of its own, so that other workers take the following ones.
const LARGE: u64 = 1 << 19;

/// What one worker takes at a time.
#[derive(Default, Debug)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    /// The only file, if its digests are computed ahead.
    pub(crate) ahead: Option<Arc<FileAhead>>,
    /// Its items are worked on when all earlier batches are sent, one after the other: plugins take
    /// part.
    pub(crate) in_turn: bool,
    /// Number of the Include of a batch that is worked on in turn.
    pub(crate) include: usize,
    bytes: u64,
}

/// One event of the walk.
#[derive(Debug)]
pub(crate) enum Item {
    /// An entry to be saved.
    Entry(Entry),
    /// A message.
    Event(Event),
    /// A plugin command.
    Plugin(Command),
}

/// A plugin command, and what its files have from the walk.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) text: Vec<u8>,
    /// Number of its Include.
    pub(crate) include: usize,
    /// The options that its files inherit.
    pub(crate) options: Arc<EffectiveOptions>,
    /// A plugin has added it since the FileSet was complete.
    pub(crate) is_added: bool,
}

/// Collects events until they make a batch.
#[derive(Default)]
pub(crate) struct Batcher {
    batch: Batch,
    /// Batches are to be small.
    pub(crate) small: bool,
    /// Batches that come late are to be small, too: their files will probably be late as well.
    pub(crate) small_if_late: bool,
    /// When the first item of the present batch came.
    begun: Option<Instant>,
}

impl Batcher {
    /// Adds an event of the Include with this number. Complete batches are passed to `submit`, in
    /// order.
    pub(crate) fn push<E>(
        &mut self,
        event: WalkEvent<'_>,
        include: usize,
        mut submit: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut in_turn = false;
        let (item, bytes) = match event {
            WalkEvent::Entry(entry) => {
                in_turn = may_have_plugin(&entry);
                let bytes = if in_turn { 0 } else { data_len(&entry) };
                (Item::Entry(entry), bytes)
            }
            WalkEvent::Message(message) => {
                let fd_walk::Message { kind, text, error } = message;
                (Item::Event(Event::Message { kind, text: text.to_vec(), failed: error }), 0)
            }
            WalkEvent::Plugin(plugin) => {
                self.finish(&mut submit)?;
                in_turn = true;
                let options = Arc::clone(plugin.options);
                let FoundCommand { include, is_added, .. } = plugin;
                (Item::Plugin(Command { text: plugin.command.to_vec(), include, options, is_added }), 0)
            }
        };
        if in_turn && (!self.batch.in_turn || self.batch.include != include) {
            self.finish(&mut submit)?;
            self.batch.in_turn = true;
            self.batch.include = include;
        }
        if bytes >= LARGE {
            self.finish(&mut submit)?;
        }
        self.batch.add(item, bytes);
        let small = self.small || self.small_if_late && self.is_late();
        if self.batch.is_full(small) {
            self.finish(&mut submit)?;
        }
        Ok(())
    }

    /// Whether few items took long to collect.
    fn is_late(&mut self) -> bool {
        match self.batch.items.len() {
            1 => self.begun = Some(Instant::now()),
            len if len.is_multiple_of(FEW_ITEMS) => return self.begun.is_some_and(|begun| begun.elapsed() > LATE),
            _ => {}
        }
        false
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

    fn is_full(&self, small: bool) -> bool {
        let (most_items, most_bytes) = if small { (FEW_ITEMS, FEW_BYTES) } else { (MOST_ITEMS, MOST_BYTES) };
        matches!(self.items.as_slice(), [Item::Plugin(_)])
            || self.items.len() >= most_items
            || self.bytes >= most_bytes
            || self.bytes >= LARGE && self.items.len() == 1
    }
}

/// Whether the plugin of its Options may save an entry, now or as a file of its own.
fn may_have_plugin(entry: &Entry) -> bool {
    let own_type = match &entry.hard_link {
        Some(HardLink::Later { own_type, .. }) => *own_type,
        _ => entry.file_type,
    };
    entry.options.plugin.is_some() && matches!(own_type, FileType::Regular | FileType::EmptyFile)
}

/// Bytes of data of an entry, as far as its attributes say.
fn data_len(entry: &Entry) -> u64 {
    match entry.file_type {
        FileType::Regular => u64::try_from(entry.stat.size).unwrap_or_default(),
        FileType::Raw | FileType::Fifo => u64::MAX,
        _ => 0,
    }
}
