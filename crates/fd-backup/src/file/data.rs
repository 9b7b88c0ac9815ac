//! The data of one file on its way into the stream: digested, compressed, encrypted, sent
//! (reference 04 §8).
//!
//! Data that is sent as it is, is read directly to its place in the stream or among the data to be
//! digested. Other data is read to a block that is used again and again.

use fd_compress::Compressor;
use fd_crypto::pki::Encryptor;

use crate::digests::streamed::StreamedDigests;
use crate::exchange::halt::Halt;
use crate::file::blocks::Intake;
use crate::file::emit::Emitter;

/// Takes blocks that are sent as they are.
pub(crate) struct InPlace<'t, 'j, F> {
    pub(crate) emitter: &'t mut Emitter<'j>,
    /// Computes the digests of the file while it is read.
    pub(crate) digests: &'t mut StreamedDigests<'j>,
    /// Other digests of the file are batched.
    pub(crate) batched: bool,
    /// Called before each block is read.
    pub(crate) before_each: F,
    /// Position of the present block, including the header of its frame.
    pub(crate) start: usize,
}

impl<F: FnMut()> Intake<Halt> for InPlace<'_, '_, F> {
    fn room(&mut self) -> &mut Vec<u8> {
        (self.before_each)();
        self.start = self.emitter.begin_block(self.batched);
        self.emitter.block_room(self.batched)
    }

    fn take(&mut self, _position: u64, len: usize) -> Result<(), Halt> {
        let room = self.emitter.block_room(self.batched);
        let block = room.get(room.len().saturating_sub(len)..).unwrap_or_default();
        self.digests.update(block);
        self.emitter.end_block(self.batched, self.start)?;
        let tally = &mut self.emitter.piece().tally;
        tally.read_bytes += len as u64;
        tally.job_bytes += len as u64;
        self.emitter.make_room()?;
        Ok(())
    }

    fn leave_out(&mut self) {
        self.emitter.block_room(self.batched).truncate(self.start);
    }
}

/// Transforms and sends blocks.
pub(crate) struct Transform<'t, 'j> {
    /// As in [`InPlace`].
    pub(crate) digests: &'t mut StreamedDigests<'j>,
    pub(crate) compressor: Option<&'t mut Compressor>,
    /// A compressed block.
    pub(crate) compressed: &'t mut Vec<u8>,
    /// Each record begins with its address.
    pub(crate) addresses: bool,
    /// As in [`InPlace`].
    pub(crate) batched: bool,
    /// Set if the data is encrypted.
    pub(crate) encryptor: Option<&'t mut Encryptor>,
}

impl Transform<'_, '_> {
    /// Sends one block (reference 04 §8.7).
    pub(crate) fn send(&mut self, emitter: &mut Emitter<'_>, position: u64, block: &[u8]) -> Result<(), Halt> {
        self.digests.update(block);
        if self.batched {
            emitter.keep_for_batch(block);
        }
        let body = match &mut self.compressor {
            Some(compressor) => {
                self.compressed.clear();
                compressor.compress(block, self.compressed)?;
                self.compressed.as_slice()
            }
            None => block,
        };
        let body = match &mut self.encryptor {
            Some(encryptor) => encryptor.block(body)?,
            None => body,
        };
        let address = position.to_be_bytes();
        let address: &[u8] = if self.addresses { &address } else { &[] };
        if self.addresses {
            emitter.payload(&[address, body])?;
        } else {
            emitter.payload(&[body])?;
        }
        let tally = &mut emitter.piece().tally;
        tally.read_bytes += block.len() as u64;
        tally.job_bytes += (address.len() + body.len()) as u64;
        emitter.make_room()?;
        Ok(())
    }

    /// Sends the rest after the last block.
    pub(crate) fn finish(&mut self, emitter: &mut Emitter<'_>) -> Result<(), Halt> {
        if let Some(encryptor) = &mut self.encryptor {
            let rest = encryptor.finish()?;
            emitter.payload(&[rest])?;
            emitter.piece().tally.job_bytes += rest.len() as u64;
        }
        Ok(())
    }
}
