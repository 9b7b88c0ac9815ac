//! The bytes of the records, in chunks: a list that grows is not copied, and takes no memory that
//! it does not use.

/// Records begin at multiples of this, so that 32 bits reach over 16 GiB of them.
const ALIGNMENT: usize = 4;

/// A chunk, bytes. No record goes from one to the next.
const CHUNK: usize = 256 << 10;

/// As many as a [`RecordId`] reaches.
const MOST_CHUNKS: usize = (1 << 32) / (CHUNK / ALIGNMENT);

/// A record of the list: its position in units of the alignment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct RecordId(pub(super) u32);

impl RecordId {
    fn at(chunk: usize, position: usize) -> Option<Self> {
        u32::try_from((chunk * CHUNK + position) / ALIGNMENT).ok().map(Self)
    }

    /// Which chunk, and where in it.
    const fn place(self) -> (usize, usize) {
        let position = self.0 as usize * ALIGNMENT;
        (position / CHUNK, position % CHUNK)
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Records {
    chunks: Vec<Vec<u8>>,
}

impl Records {
    /// Appends a record. `None` if there is no place for it.
    pub(super) fn push(&mut self, record: &[u8]) -> Option<RecordId> {
        let room = self.chunks.last().map_or(0, |chunk| CHUNK - chunk.len());
        if record.len() > room {
            if record.len() > CHUNK || self.chunks.len() == MOST_CHUNKS {
                return None;
            }
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let last = self.chunks.len().checked_sub(1)?;
        let chunk = self.chunks.get_mut(last)?;
        let id = RecordId::at(last, chunk.len());
        chunk.extend_from_slice(record);
        chunk.resize(chunk.len().next_multiple_of(ALIGNMENT), 0);
        id
    }

    /// The bytes of its chunk from this record on.
    pub(super) fn from(&self, id: RecordId) -> Option<&[u8]> {
        let (chunk, position) = id.place();
        self.chunks.get(chunk)?.get(position..)
    }

    /// The record's first byte.
    pub(super) fn first_byte(&mut self, id: RecordId) -> Option<&mut u8> {
        let (chunk, position) = id.place();
        self.chunks.get_mut(chunk)?.get_mut(position)
    }

    /// The first record, if there is any.
    pub(super) fn first(&self) -> Option<RecordId> {
        self.chunks.first().map(|_| RecordId(0))
    }

    /// The record after this one, behind which there are so many bytes in its chunk.
    pub(super) fn after(&self, id: RecordId, behind: usize) -> Option<RecordId> {
        let (chunk, _) = id.place();
        let len = self.chunks.get(chunk)?.len();
        let end = len.checked_sub(behind)?.next_multiple_of(ALIGNMENT);
        let (chunk, position) = if end < len { (chunk, end) } else { (chunk + 1, 0) };
        if chunk < self.chunks.len() { RecordId::at(chunk, position) } else { None }
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.chunks.len() * CHUNK + self.chunks.capacity() * size_of::<Vec<u8>>()
    }
}
