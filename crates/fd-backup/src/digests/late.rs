//! Digests of small files, made many at a time, which costs a fifth of making them one by one.
//!
//! A file's digest and its signature stand behind its data. Room is left for them there, the data is kept, and before the
//! piece of stream leaves the worker the digests are made and filled in, and what is to be signed is signed. Only where the
//! processor has lanes for the kind of digest.

use fd_records::{DigestKind, DigestValue};
use std::ops::Range;

use fd_crypto::DigestError;
use fd_crypto::processor::Processor;

use crate::digests::chains::algorithm;
use crate::digests::digesters::Digesters;
use crate::digests::protect::Signing;
use crate::pipeline::halt::Halt;

/// A file that turns out to be longer than this is digested while it is read, as large ones are.
const MOST_OF_ONE: usize = 512 << 10;
/// With so many bytes kept, the digests are made at once.
const MOST: usize = 2 << 20;
/// What can be late.
const KINDS: [DigestKind; 2] = [DigestKind::Md5, DigestKind::Sha256];

/// See the module.
pub(crate) struct LateDigests {
    processor: Processor,
    /// The data of the files whose digests are promised, and of the one that is being read.
    kept: Vec<u8>,
    /// Where that of the file that is being read begins.
    begun: usize,
    /// What will be promised of that file.
    kinds: [Option<DigestKind>; 2],
    promises: Vec<Promise>,
    /// For a file that stands out among the others.
    alone: Digesters,
    /// For the file that is being read, once it is too long to be kept.
    long: Digesters,
    is_long: bool,
}

/// Where the digests of a file belong in the frames of the present piece.
#[derive(Clone, Copy, Default)]
pub(crate) struct Places {
    /// The value of its digest record, of this kind.
    pub(crate) record: Option<(DigestKind, usize)>,
    /// Its signature record, over a digest of this kind.
    pub(crate) signature: Option<(DigestKind, usize)>,
}

struct Promise {
    data: Range<usize>,
    places: Places,
    /// The digest to be signed, once it is made.
    to_sign: Option<DigestValue>,
}

impl LateDigests {
    /// The largest file whose digest waits, in bytes as far as its attributes tell.
    pub(crate) const LARGEST: i64 = 256 << 10;

    /// For this processor.
    pub(crate) fn new(processor: Processor) -> Self {
        Self {
            processor,
            kept: Vec::new(),
            begun: 0,
            kinds: [None; 2],
            promises: Vec::new(),
            alone: Digesters::default(),
            long: Digesters::default(),
            is_long: false,
        }
    }

    /// Whether a digest of this kind over a file of this size can wait.
    pub(crate) fn suits(kind: DigestKind, size: i64, processor: Processor) -> bool {
        let has_lanes = || algorithm(kind).is_some_and(|algorithm| algorithm.lanes(processor).is_some());
        (0..=Self::LARGEST).contains(&size) && has_lanes()
    }

    /// The data of a file comes next of which digests of these kinds are wanted.
    pub(crate) fn begin(&mut self, kinds: [Option<DigestKind>; 2]) {
        self.kept.truncate(self.begun);
        self.kinds = kinds;
        self.is_long = false;
    }

    /// A block of it.
    pub(crate) fn keep(&mut self, block: &[u8]) -> Result<(), DigestError> {
        self.kept.extend_from_slice(block);
        self.keep_read()
    }

    /// A block of it may be read to the end of this, so that it need not be copied there.
    pub(crate) const fn room(&mut self) -> &mut Vec<u8> {
        &mut self.kept
    }

    /// A block of it was.
    pub(crate) fn keep_read(&mut self) -> Result<(), DigestError> {
        if !self.is_long && self.kept.len() - self.begun <= MOST_OF_ONE {
            return Ok(());
        }
        for kind in self.kinds.into_iter().flatten() {
            let long = self.long.ready(kind)?;
            if !self.is_long {
                long.restart();
            }
            long.update(self.kept.get(self.begun..).unwrap_or_default());
        }
        self.is_long = true;
        self.kept.truncate(self.begun);
        Ok(())
    }

    /// All of it has come. What belongs to these places will be there when the frames are settled.
    pub(crate) fn end(&mut self, frames: &mut [u8], places: Places, signing: Option<&mut Signing>) -> Result<(), Halt> {
        let mut promise = Promise { data: self.begun..self.kept.len(), places, to_sign: None };
        if self.is_long {
            self.is_long = false;
            for kind in self.kinds.into_iter().flatten() {
                promise.keep(frames, self.long.ready(kind)?.finish()?);
            }
            return promise.sign(frames, signing);
        }
        self.promises.push(promise);
        self.begun = self.kept.len();
        if self.kept.len() >= MOST { self.settle(frames, signing) } else { Ok(()) }
    }

    /// Fills in what was promised. What was read of the present file stays. After an error all is still promised.
    pub(crate) fn settle(&mut self, frames: &mut [u8], signing: Option<&mut Signing>) -> Result<(), Halt> {
        if self.promises.is_empty() {
            return Ok(());
        }
        let mut promises = std::mem::take(&mut self.promises);
        promises.sort_unstable_by_key(|promise| std::cmp::Reverse(promise.data.len()));
        let result = self.keep_promises(&mut promises, frames, signing);
        if result.is_ok() {
            promises.clear();
            self.kept.drain(..self.begun);
            self.begun = 0;
        }
        self.promises = promises;
        result
    }

    fn keep_promises(
        &mut self,
        promises: &mut [Promise],
        frames: &mut [u8],
        mut signing: Option<&mut Signing>,
    ) -> Result<(), Halt> {
        for kind in KINDS {
            self.digest(kind, promises, frames)?;
        }
        // Behind the lanes, not between them: they make the processor slower for a moment.
        promises.iter().try_for_each(|promise| promise.sign(frames, signing.as_deref_mut()))
    }

    /// Makes the digests of this kind, all of them.
    fn digest(&mut self, kind: DigestKind, promises: &mut [Promise], frames: &mut [u8]) -> Result<(), Halt> {
        let mut wanted: Vec<&mut Promise> = promises.iter_mut().filter(|promise| promise.places.want(kind)).collect();
        // `suits` has seen that there are lanes. Without, all would be made one by one.
        let lanes = algorithm(kind).and_then(|algorithm| algorithm.lanes(self.processor));
        let lengths = wanted.iter().map(|promise| promise.data.len());
        let apart = lanes.map_or(wanted.len(), |lanes| lanes.stand_out(lengths));
        let mut left = wanted.len();
        let (apart, together) = wanted.split_at_mut_checked(apart).ok_or(Halt::Digest(kind))?;
        let kept = &self.kept;
        let data = |promise: &Promise| kept.get(promise.data.clone()).unwrap_or_default();
        for promise in apart {
            let digester = self.alone.ready(kind)?;
            digester.update(data(promise));
            promise.keep(frames, digester.finish()?);
            left -= 1;
        }
        if let Some(lanes) = lanes {
            let messages: Vec<&[u8]> = together.iter().map(|promise| data(promise)).collect();
            lanes.each(messages, |number, value| {
                if let Some(promise) = together.get_mut(number)
                    && let Some(value) = DigestValue::from_bytes(kind, value.as_bytes())
                {
                    promise.keep(frames, value);
                    left -= 1;
                }
            });
        }
        if left == 0 { Ok(()) } else { Err(Halt::Digest(kind)) }
    }
}

impl Places {
    fn want(self, kind: DigestKind) -> bool {
        [self.record, self.signature].into_iter().flatten().any(|(wanted, _)| wanted == kind)
    }
}

impl Promise {
    /// One of the digests is made.
    fn keep(&mut self, frames: &mut [u8], value: DigestValue) {
        if let Some((_, at)) = self.places.record.filter(|(kind, _)| *kind == value.kind()) {
            fill_in(frames, at, value.as_bytes());
        }
        if self.places.signature.is_some_and(|(kind, _)| kind == value.kind()) {
            self.to_sign = Some(value);
        }
    }

    /// All of them are.
    fn sign(&self, frames: &mut [u8], signing: Option<&mut Signing>) -> Result<(), Halt> {
        let Some((kind, at)) = self.places.signature else { return Ok(()) };
        let (Some(value), Some(signing)) = (&self.to_sign, signing) else { return Err(Halt::Digest(kind)) };
        fill_in(frames, at, signing.sign(value)?);
        Ok(())
    }
}

fn fill_in(frames: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = frames.get_mut(at..at.saturating_add(value.len())) {
        place.copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests;
