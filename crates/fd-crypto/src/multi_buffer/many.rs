//! Digests of many messages in memory.

use fd_records::{DigestKind, DigestValue};

use super::algorithm::{Algorithm, WIDE};
use super::kernels::Kernels;
use super::message::Message;
use crate::processor::Processor;

/// The cost of a byte of the longest message in the AVX2 kernel, in percent of its cost in OpenSSL.
const AVX2_COST: usize = 240;

/// Computes digests of one kind, of many messages at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Many {
    algorithm: Algorithm,
    kernels: Kernels,
}

impl Many {
    /// `None` if one by one is faster.
    pub(crate) fn new(kind: DigestKind, processor: Processor) -> Option<Self> {
        let algorithm = Algorithm::of(kind)?;
        Some(Self { algorithm, kernels: Kernels::new(algorithm, processor)? })
    }

    /// The algorithm.
    #[cfg(test)]
    pub(super) const fn algorithm(self) -> Algorithm {
        self.algorithm
    }

    /// Computes the digest of each message. `done` is called once per message with its number,
    /// counted from 0, and its value, in the order in which they are finished.
    pub(crate) fn each<'m>(
        self,
        messages: impl IntoIterator<Item = &'m [u8]>,
        mut done: impl FnMut(usize, DigestValue),
    ) {
        let Self { algorithm, kernels } = self;
        let mut waiting = messages.into_iter().enumerate();
        let mut present: [Message<'m>; WIDE] = std::array::from_fn(|_| Message::default());
        let (present, _) = present.split_at_mut(kernels.width());
        loop {
            for message in present.iter_mut().filter(|message| message.is_finished()) {
                if let Some((number, bytes)) = waiting.next() {
                    *message = Message::new(algorithm, number, bytes);
                }
            }
            let busy = || present.iter().filter(|message| !message.is_finished());
            let (count, steps) = (busy().count(), busy().map(Message::at_hand).min());
            let Some(steps) = steps else { return };
            let busy = present.iter_mut().filter(|message| !message.is_finished()).map(|message| message.next(steps));
            kernels.advance(algorithm, count, busy);
            for (number, words) in present.iter_mut().filter_map(Message::take_finished) {
                done(number, algorithm.value(words));
            }
        }
    }

    /// How many of the messages are faster one by one, given their lengths, the longest first. The
    /// wide kernel runs until the end of its longest message. The narrow one, if there is one,
    /// takes over when few messages are left.
    pub(crate) fn stand_out(self, lengths: impl Iterator<Item = usize> + Clone) -> usize {
        if self.kernels.narrow.is_some() { 0 } else { stand_out_of_avx2(lengths) }
    }
}

/// See [`Many::stand_out`].
pub(super) fn stand_out_of_avx2(lengths: impl Iterator<Item = usize> + Clone) -> usize {
    let total: usize = lengths.clone().fold(0, usize::saturating_add);
    let (mut count, mut alone) = (0, 0_usize);
    let mut best = (0, usize::MAX);
    for length in lengths {
        let longest = length.max(total.saturating_sub(alone) / WIDE);
        let cost = alone.saturating_add(longest.saturating_mul(AVX2_COST) / 100);
        if cost < best.1 {
            best = (count, cost);
        }
        alone = alone.saturating_add(length);
        count += 1;
    }
    if alone < best.1 { count } else { best.0 }
}
