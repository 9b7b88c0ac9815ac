//! Batched digests: those of many small messages, computed together with the kernels of
//! [`crate::multi_buffer`].

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::ops::Range;

use fd_records::{DigestKind, DigestValue};

use crate::digesters::Digesters;
use crate::multi_buffer::Many;
use crate::processor::Processor;
use crate::set::{DigestSet, DigestValues};

/// A longer message is digested while its data arrives.
const LONGEST: usize = 512 << 10;
/// A batch with so many bytes is full. Messages of very different lengths fill the kernels only if
/// there are many of them: with 512 KiB MD5 takes twice as long. More bytes than this do not stay
/// in the processor's cache.
const MOST_BYTES: usize = 2 << 20;
/// A batch with so many messages is full: whatever depends on their digests is held as long.
const MOST_MESSAGES: usize = 1024;

/// Whether a digest of this kind over a small message costs less in a batch than alone.
pub fn suits_batch(kind: DigestKind, processor: Processor) -> bool {
    Many::new(kind, processor).is_some()
}

/// Keeps messages until their digests are computed together. `T` belongs to a message and is handed
/// out with its digests.
///
/// Each message is begun, pushed in parts, and ended. Memory is used again for the next ones.
pub struct DigestBatch<T> {
    processor: Processor,
    /// The data of the messages that were ended, and of the present one.
    kept: Vec<u8>,
    /// Where the present message begins.
    begun: usize,
    messages: Vec<Message<T>>,
    /// For messages that are faster one by one.
    single: Digesters,
    /// For the present message, once it is too long to be kept.
    long: Digesters,
    is_long: bool,
    /// The kinds that the present message was begun with.
    kinds: DigestSet,
}

struct Message<T> {
    data: Range<usize>,
    kinds: DigestSet,
    values: DigestValues,
    tag: T,
}

impl<T> DigestBatch<T> {
    /// An empty batch, for the kernels of this processor.
    pub fn new(processor: Processor) -> Self {
        Self {
            processor,
            kept: Vec::new(),
            begun: 0,
            messages: Vec::new(),
            single: Digesters::default(),
            long: Digesters::default(),
            is_long: false,
            kinds: DigestSet::EMPTY,
        }
    }

    /// Begins a message. If it turns out to be longer than 512 KiB, digests of these kinds are
    /// computed while its data arrives. A message that was not ended is dropped.
    pub fn begin(&mut self, kinds: DigestSet) {
        self.kept.truncate(self.begun);
        self.is_long = false;
        self.kinds = kinds;
    }

    /// The next bytes of the message.
    pub fn push(&mut self, data: &[u8]) {
        self.kept.extend_from_slice(data);
        self.pushed();
    }

    /// The next bytes may be appended to this instead of being copied; then [`Self::pushed`] is
    /// called.
    pub const fn room(&mut self) -> &mut Vec<u8> {
        &mut self.kept
    }

    /// Bytes of the message were appended to [`Self::room`].
    pub fn pushed(&mut self) {
        if !self.is_long {
            if self.kept.len() - self.begun <= LONGEST {
                return;
            }
            self.is_long = true;
            // A kind that OpenSSL refuses is missing at the end.
            let _refused = self.long.begin(self.kinds);
        }
        self.long.update(self.kept.get(self.begun..).unwrap_or_default());
        self.kept.truncate(self.begun);
    }

    /// The bytes of the present message that are kept: all of them, unless it is longer than
    /// 512 KiB.
    pub fn present(&self) -> &[u8] {
        self.kept.get(self.begun..).unwrap_or_default()
    }

    /// Whether a digest of this kind can be computed for the present message: not if it is longer
    /// than 512 KiB and was begun with other kinds.
    const fn can_make(&self, kind: DigestKind) -> bool {
        !self.is_long || self.kinds.contains(kind)
    }

    /// Ends the message. Its digests of these kinds, at most two, are computed by [`Self::finish`].
    /// One of a message that is longer than 512 KiB is missing unless it was begun with it.
    pub fn end(&mut self, kinds: DigestSet, tag: T) {
        let mut values = DigestValues::default();
        let is_long = std::mem::take(&mut self.is_long);
        if is_long {
            let made = self.kinds.iter().filter(|kind| kinds.contains(*kind));
            made.filter_map(|kind| self.long.finish(kind).ok()).for_each(|value| values.set(value));
        }
        let kinds = if is_long { DigestSet::EMPTY } else { kinds };
        self.messages.push(Message { data: self.begun..self.kept.len(), kinds, values, tag });
        self.begun = self.kept.len();
    }

    /// Ends the message and computes its digest at once. Returns `None` if the message is longer
    /// than 512 KiB and was begun with other kinds, or OpenSSL fails.
    pub fn end_alone(&mut self, kind: DigestKind) -> Option<DigestValue> {
        if !self.can_make(kind) {
            return None;
        }
        let value = if self.is_long {
            self.long.finish(kind)
        } else {
            self.single.digest(kind, self.kept.get(self.begun..).unwrap_or_default())
        };
        self.begin(DigestSet::EMPTY);
        value.ok()
    }

    /// Whether there are messages that were ended and not finished.
    pub const fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Whether it is time for [`Self::finish`].
    pub const fn is_full(&self) -> bool {
        self.kept.len() >= MOST_BYTES || self.messages.len() >= MOST_MESSAGES
    }

    /// Computes the digests of all messages that were ended, and hands them to `each`, in the order
    /// of the messages. A digest is missing if OpenSSL fails. The present message stays. After an
    /// error all messages stay, so that the next call fails as well.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn finish<E>(&mut self, mut each: impl FnMut(&T, &DigestValues) -> Result<(), E>) -> Result<(), E> {
        if self.messages.is_empty() {
            return Ok(());
        }
        for kind in DigestKind::ALL {
            self.digest(kind);
        }
        // Not between the kernels: processors lower their clock for a moment after AVX-512.
        self.messages.iter().try_for_each(|message| each(&message.tag, &message.values))?;
        self.clear();
        Ok(())
    }

    /// Drops the messages that were ended, but not the present one.
    fn clear(&mut self) {
        self.messages.clear();
        self.kept.drain(..self.begun);
        self.begun = 0;
    }

    /// Computes the digests of this kind.
    fn digest(&mut self, kind: DigestKind) {
        let mut wanted: Vec<_> = self.messages.iter_mut().filter(|message| message.kinds.contains(kind)).collect();
        wanted.sort_unstable_by_key(|message| Reverse(message.data.len()));
        let kept = &self.kept;
        let data = |message: &Message<T>| kept.get(message.data.clone()).unwrap_or_default();
        let many = Many::new(kind, self.processor);
        let lengths = wanted.iter().map(|message| message.data.len());
        let single = many.map_or(wanted.len(), |many| many.stand_out(lengths));
        let (single, together) = wanted.split_at_mut_checked(single).unwrap_or_default();
        for message in single {
            if let Ok(value) = self.single.digest(kind, data(message)) {
                message.values.set(value);
            }
        }
        if let Some(many) = many {
            let messages: Vec<&[u8]> = together.iter().map(|message| data(message)).collect();
            many.each(messages, |number, value| {
                if let Some(message) = together.get_mut(number) {
                    message.values.set(value);
                }
            });
        }
    }
}
