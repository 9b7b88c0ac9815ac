//! Batched digests of small files, and their signatures.
//!
//! A file's digest and signature follow its data in the stream. Their places are reserved, the data
//! is kept, and before the piece of stream leaves the worker, the digests are computed, filled in
//! and signed.

#[cfg(test)]
mod tests;

use fd_crypto::DigestBatch;
use fd_records::DigestKind;

use crate::digests::protect::Signing;
use crate::exchange::halt::Halt;

/// The places of a file's digests in the frames of the present piece.
#[derive(Clone, Copy, Default)]
pub(crate) struct Places {
    /// Kind and place of the value of its digest record.
    pub(crate) record: Option<(DigestKind, usize)>,
    /// Kind of the signed digest and place of the signature record.
    pub(crate) signature: Option<(DigestKind, usize)>,
}

/// Computes the digests and signatures of all files in the batch and fills them in. After an error
/// the files stay in the batch, so that the next call fails as well and no piece leaves without
/// them.
pub(crate) fn settle(
    batch: &mut DigestBatch<Places>,
    frames: &mut [u8],
    mut signing: Option<&mut Signing>,
) -> Result<(), Halt> {
    batch.finish(|places, values| {
        let value = |kind| values.get(kind).ok_or(Halt::Digest(kind));
        if let Some((kind, at)) = places.record {
            fill_in(frames, at, value(kind)?.as_bytes());
        }
        if let Some((kind, at)) = places.signature {
            let signing = signing.as_mut().ok_or(Halt::Digest(kind))?;
            fill_in(frames, at, signing.sign(&value(kind)?)?);
        }
        Ok(())
    })
}

fn fill_in(frames: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = frames.get_mut(at..at.saturating_add(value.len())) {
        place.copy_from_slice(value);
    }
}
