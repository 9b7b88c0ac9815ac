//! Digests of long messages whose data arrives in parts.

use fd_records::DigestKind;

use super::algorithm::{Algorithm, BLOCK, NARROW, Run, WIDE, Words};
use super::kernels::Kernels;
use crate::processor::Processor;
use crate::set::{DigestSet, DigestValues};

/// Running digests of a long message, computed side by side with those of other messages. A copy in
/// the middle of the message goes on on its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SideBySide {
    processor: Processor,
    /// The state of each digest, in the order of [`Algorithm::ALL`].
    words: [Option<Words>; Algorithm::ALL.len()],
}

/// A message and its next blocks.
type Part<'m> = (&'m mut SideBySide, Run<'m>);

impl SideBySide {
    /// The largest [`Self::width`].
    pub const WIDEST: usize = WIDE;

    /// The number of messages that cost hardly more than one on this processor. More of them would
    /// cost less each, but then each one takes longer.
    pub const fn width(processor: Processor) -> usize {
        if processor.has_avx512() { NARROW } else { WIDE }
    }

    /// Whether digests of this kind are faster side by side on this processor than one by one.
    pub fn suits(kind: DigestKind, processor: Processor) -> bool {
        Self::begin(DigestSet::EMPTY.with(kind), processor).is_some()
    }

    /// The digests of these kinds at the beginning of a message. `None` if the set is empty, or
    /// [`Self::suits`] is false for a kind.
    pub fn begin(kinds: DigestSet, processor: Processor) -> Option<Self> {
        let mut words = [None; Algorithm::ALL.len()];
        for kind in kinds.iter() {
            let algorithm = Algorithm::of(kind)?;
            Kernels::new(algorithm, processor)?;
            if let Some(words) = words.get_mut(algorithm as usize) {
                *words = Some(algorithm.start());
            }
        }
        words.iter().any(Option::is_some).then_some(Self { processor, words })
    }

    /// Takes the blocks of these messages, which are for one processor: [`Self::width`] messages at
    /// a time.
    pub fn advance<'m>(messages: impl IntoIterator<Item = (&'m mut Self, &'m [[u8; BLOCK]])>) {
        let mut messages = messages.into_iter().peekable();
        while let Some((Self { processor, .. }, _)) = messages.peek() {
            let processor = *processor;
            let mut group: [Option<Part<'m>>; Self::WIDEST] = [const { None }; Self::WIDEST];
            group.iter_mut().zip(messages.by_ref().take(Self::width(processor))).for_each(|(place, part)| {
                *place = Some(part);
            });
            for algorithm in Algorithm::ALL {
                if let Some(kernels) = Kernels::new(algorithm, processor) {
                    advance_all(algorithm, kernels, &mut group);
                }
            }
        }
    }

    /// The digests of a message of `length` bytes whose last bytes are `rest`, less than a block.
    pub fn finish(mut self, rest: &[u8], length: u64) -> DigestValues {
        let mut values = DigestValues::default();
        for (algorithm, words) in Algorithm::ALL.into_iter().zip(&mut self.words) {
            if let (Some(words), Some(kernels)) = (words, Kernels::new(algorithm, self.processor)) {
                let (tail, blocks) = algorithm.padded(rest, length);
                let tail = tail.get(..blocks).unwrap_or_default();
                kernels.advance(algorithm, 1, std::iter::once((&mut *words, tail)));
                values.set(algorithm.value(*words));
            }
        }
        values
    }
}

/// Takes all blocks of the messages that have a digest of this algorithm.
fn advance_all(algorithm: Algorithm, kernels: Kernels, messages: &mut [Option<Part<'_>>; SideBySide::WIDEST]) {
    let mut left = messages.each_ref().map(|part| part.as_ref().map_or(&[][..], |(_, blocks)| *blocks));
    loop {
        let (mut count, mut steps) = (0, usize::MAX);
        let mut wanted = [const { None }; SideBySide::WIDEST];
        for ((place, part), blocks) in wanted.iter_mut().zip(messages.iter_mut()).zip(&mut left) {
            let words = part.as_mut().and_then(|(message, _)| message.words.get_mut(algorithm as usize)?.as_mut());
            if let Some(words) = words.filter(|_| !blocks.is_empty()) {
                (count, steps) = (count + 1, steps.min(blocks.len()));
                *place = Some((words, blocks));
            }
        }
        if count == 0 {
            return;
        }
        let parts = wanted.into_iter().flatten().map(|(words, blocks)| {
            let (now, later) = blocks.split_at_checked(steps).unwrap_or((blocks, &[]));
            *blocks = later;
            (words, now)
        });
        kernels.advance(algorithm, count, parts);
    }
}
