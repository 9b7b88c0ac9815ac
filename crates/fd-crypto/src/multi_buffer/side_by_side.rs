//! Digests of long messages whose data arrives in parts.

use fd_records::DigestKind;

use super::algorithm::{Algorithm, BLOCK, NARROW, Run, Words};
use super::kernels::{Avx512, Kernels};
use crate::processor::Processor;
use crate::set::{DigestSet, DigestValues};

/// Running digests of a long message, computed side by side with those of other messages. A copy in
/// the middle of the message goes on on its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SideBySide {
    kernel: Avx512,
    /// The state of each digest, in the order of [`Algorithm::ALL`].
    words: [Option<Words>; Algorithm::ALL.len()],
}

/// A message and its next blocks.
type Part<'m> = (&'m mut SideBySide, Run<'m>);

impl SideBySide {
    /// The number of messages that cost hardly more than one.
    pub const WIDTH: usize = NARROW;

    /// Whether digests of this kind are faster side by side on this processor than one by one.
    pub fn suits(kind: DigestKind, processor: Processor) -> bool {
        Self::begin(DigestSet::EMPTY.with(kind), processor).is_some()
    }

    /// The digests of these kinds at the beginning of a message. `None` if the set is empty, or
    /// [`Self::suits`] is false for a kind.
    pub fn begin(kinds: DigestSet, processor: Processor) -> Option<Self> {
        let mut found = None;
        for kind in kinds.iter() {
            let algorithm = Algorithm::of(kind)?;
            let kernel = Kernels::new(algorithm, processor)?.narrow?;
            let message = found.get_or_insert(Self { kernel, words: [None; Algorithm::ALL.len()] });
            if let Some(words) = message.words.get_mut(algorithm as usize) {
                *words = Some(algorithm.start());
            }
        }
        found
    }

    /// Takes the blocks of these messages, [`Self::WIDTH`] messages at a time.
    pub fn advance<'m>(messages: impl IntoIterator<Item = (&'m mut Self, &'m [[u8; BLOCK]])>) {
        let mut messages = messages.into_iter().fuse();
        loop {
            let mut group: [Option<Part<'m>>; Self::WIDTH] = std::array::from_fn(|_| messages.next());
            if group.iter().all(Option::is_none) {
                return;
            }
            for algorithm in Algorithm::ALL {
                advance_all(algorithm, &mut group);
            }
        }
    }

    /// The digests of a message of `length` bytes whose last bytes are `rest`, less than a block.
    pub fn finish(mut self, rest: &[u8], length: u64) -> DigestValues {
        let mut values = DigestValues::default();
        for (algorithm, words) in Algorithm::ALL.into_iter().zip(&mut self.words) {
            if let Some(words) = words {
                let (tail, blocks) = algorithm.padded(rest, length);
                let tail = tail.get(..blocks).unwrap_or_default();
                self.kernel.advance(algorithm, std::iter::once((&mut *words, tail)));
                values.set(algorithm.value(*words));
            }
        }
        values
    }
}

/// Takes all blocks of the messages that have a digest of this algorithm.
fn advance_all(algorithm: Algorithm, messages: &mut [Option<Part<'_>>; SideBySide::WIDTH]) {
    let mut left = messages.each_ref().map(|part| part.as_ref().map_or(&[][..], |(_, blocks)| *blocks));
    loop {
        let mut found = None;
        let mut wanted = [const { None }; SideBySide::WIDTH];
        for ((place, part), blocks) in wanted.iter_mut().zip(messages.iter_mut()).zip(&mut left) {
            let Some((SideBySide { kernel, words }, _)) = part else { continue };
            if let Some(Some(words)) = words.get_mut(algorithm as usize)
                && !blocks.is_empty()
            {
                let (_, steps) = found.unwrap_or((*kernel, usize::MAX));
                found = Some((*kernel, steps.min(blocks.len())));
                *place = Some((words, blocks));
            }
        }
        let Some((kernel, steps)) = found else { return };
        let parts = wanted.into_iter().flatten().map(|(words, blocks)| {
            let (now, later) = blocks.split_at_checked(steps).unwrap_or((blocks, &[]));
            *blocks = later;
            (words, now)
        });
        kernel.advance(algorithm, parts);
    }
}
