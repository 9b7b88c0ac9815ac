//! Where the blocks of a file are read to: to their place in the stream or among what is to be digested, where nothing else
//! is done to them; otherwise to a block that is used again and again. Not here: reading.

use fd_crypto::Digester;

use crate::digests::long::LongDigest;
use crate::file::emit::Emitter;
use crate::pipeline::halt::Halt;

/// Takes blocks of a file.
pub(crate) trait Intake<E> {
    /// The next block is to be read to the end of this.
    fn room(&mut self) -> &mut Vec<u8>;

    /// A block of `len` bytes, which begins at `position` in the file, was read there.
    fn take(&mut self, position: u64, len: usize) -> Result<(), E>;

    /// What was read there, if anything, does not count.
    fn leave_out(&mut self);
}

/// Every block goes to the same place, and then to `each`, with its position.
pub(crate) struct Scratch<'s, F> {
    pub(crate) block: &'s mut Vec<u8>,
    pub(crate) each: F,
}

impl<E, F: FnMut(u64, &[u8]) -> Result<(), E>> Intake<E> for Scratch<'_, F> {
    fn room(&mut self) -> &mut Vec<u8> {
        self.block.clear();
        self.block
    }

    fn take(&mut self, position: u64, _len: usize) -> Result<(), E> {
        (self.each)(position, self.block)
    }

    fn leave_out(&mut self) {}
}

/// Blocks that are sent as they are.
pub(crate) struct InPlace<'t, 'x, 'j, B, F> {
    pub(crate) emitter: &'t mut Emitter<'x, B>,
    /// For the digest record and for the signature, as far as they are made now.
    pub(crate) digesters: [Option<&'t mut Digester>; 2],
    /// Digests are made later, with those of other files.
    pub(crate) late: bool,
    /// Digests are made together with those of other workers' files.
    pub(crate) long_digest: Option<&'t mut LongDigest<'j>>,
    /// Is called before each block is sent.
    pub(crate) before_each: F,
    /// Where the present block begins, a frame's header included.
    pub(crate) start: usize,
}

impl<B, F: FnMut()> Intake<Halt> for InPlace<'_, '_, '_, B, F> {
    fn room(&mut self) -> &mut Vec<u8> {
        self.start = self.emitter.begin_block(self.late);
        self.emitter.block_room(self.late)
    }

    fn take(&mut self, _position: u64, len: usize) -> Result<(), Halt> {
        (self.before_each)();
        let room = self.emitter.block_room(self.late);
        let block = room.get(room.len().saturating_sub(len)..).unwrap_or_default();
        for digester in self.digesters.iter_mut().flatten() {
            digester.update(block);
        }
        if let Some(digest) = &mut self.long_digest {
            digest.update(block);
        }
        self.emitter.end_block(self.late, self.start)?;
        let tally = &mut self.emitter.piece().tally;
        tally.read_bytes += len as u64;
        tally.job_bytes += len as u64;
        self.emitter.make_room()?;
        Ok(())
    }

    fn leave_out(&mut self) {
        self.emitter.block_room(self.late).truncate(self.start);
    }
}
