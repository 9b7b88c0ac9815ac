//! Digests of small files, made many at a time, which costs a fifth of making them one by one.
//!
//! A file's digest stands behind its data. Room is left for it there, the data is kept, and before the piece of stream
//! leaves the worker the digests are made and filled in. Only MD5, and only where the processor has the lanes for it.

use std::ops::Range;

use fd_crypto::{DigestError, DigestKind, Digester};
use fd_os::md5_lanes::{has_lanes, md5_each, stand_out};

/// A file that turns out to be longer than this is digested while it is read, as large ones are.
const MOST_OF_ONE: usize = 512 << 10;
/// With so many bytes kept, the digests are made at once.
const MOST: usize = 2 << 20;

/// See the module.
#[derive(Default)]
pub(crate) struct LateDigests {
    /// The data of the files whose digests are promised, and of the one that is being read.
    kept: Vec<u8>,
    /// Where that of the file that is being read begins.
    begun: usize,
    promises: Vec<Promise>,
    /// For a file that stands out among the others.
    alone: Option<Digester>,
    /// For the file that is being read, once it is too long to be kept.
    long: Option<Digester>,
    is_long: bool,
}

struct Promise {
    data: Range<usize>,
    /// Where its digest belongs in the piece.
    at: usize,
}

impl LateDigests {
    /// The largest file whose digest waits, in bytes as far as its attributes tell.
    pub(crate) const LARGEST: i64 = 256 << 10;

    /// Whether a digest of this kind over a file of this size can wait.
    pub(crate) fn suits(kind: DigestKind, size: i64) -> bool {
        kind == DigestKind::Md5 && (0..=Self::LARGEST).contains(&size) && has_lanes()
    }

    /// A file's data comes next.
    pub(crate) fn begin(&mut self) {
        self.kept.truncate(self.begun);
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
        let long = ready(&mut self.long)?;
        if !self.is_long {
            long.restart();
            self.is_long = true;
        }
        long.update(self.kept.get(self.begun..).unwrap_or_default());
        self.kept.truncate(self.begun);
        Ok(())
    }

    /// All of it has come. Its digest belongs to `at` in the frames of the present piece; it will be there when they are
    /// settled.
    pub(crate) fn end(&mut self, frames: &mut [u8], at: usize) -> Result<(), DigestError> {
        if self.is_long {
            self.is_long = false;
            let value = ready(&mut self.long)?.finish()?;
            fill_in(frames, at, value.as_bytes());
            return Ok(());
        }
        self.promises.push(Promise { data: self.begun..self.kept.len(), at });
        self.begun = self.kept.len();
        if self.kept.len() >= MOST { self.settle(frames) } else { Ok(()) }
    }

    /// Fills in what was promised. What was read of the present file stays.
    pub(crate) fn settle(&mut self, frames: &mut [u8]) -> Result<(), DigestError> {
        if self.promises.is_empty() {
            return Ok(());
        }
        let mut promises = std::mem::take(&mut self.promises);
        promises.sort_unstable_by_key(|promise| std::cmp::Reverse(promise.data.len()));
        let apart = stand_out(promises.iter().map(|promise| promise.data.len()));
        let (apart, together) = promises.split_at_checked(apart).unwrap_or((&promises, &[]));
        let kept = &self.kept;
        let data = |promise: &Promise| kept.get(promise.data.clone()).unwrap_or_default();
        if !apart.is_empty() {
            let digester = ready(&mut self.alone)?;
            for promise in apart {
                digester.update(data(promise));
                fill_in(frames, promise.at, digester.finish()?.as_bytes());
            }
        }
        // `suits` has seen that there are lanes.
        md5_each(together.iter().map(data), |number, value| {
            if let Some(promise) = together.get(number) {
                fill_in(frames, promise.at, &value);
            }
        });
        promises.clear();
        self.promises = promises;
        self.kept.drain(..self.begun);
        self.begun = 0;
        Ok(())
    }
}

fn ready(digester: &mut Option<Digester>) -> Result<&mut Digester, DigestError> {
    match digester {
        Some(digester) => Ok(digester),
        None => Ok(digester.insert(Digester::new(DigestKind::Md5)?)),
    }
}

fn fill_in(frames: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = frames.get_mut(at..at.saturating_add(value.len())) {
        place.copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use fd_os::md5_lanes::VALUE_LEN;

    use super::*;

    fn md5(bytes: &[u8]) -> Vec<u8> {
        let mut digester = Digester::new(DigestKind::Md5).unwrap();
        digester.update(bytes);
        digester.finish().unwrap().as_bytes().to_vec()
    }

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 7 + len).to_le_bytes()[0]).collect()
    }

    /// Files of these sizes, settled after each `settle_every`; `blocks` bytes come at a time.
    fn all(sizes: &[usize], settle_every: usize, blocks: usize) {
        if !has_lanes() {
            return;
        }
        let mut late = LateDigests::default();
        let mut frames = vec![0; sizes.len() * VALUE_LEN];
        for (number, size) in sizes.iter().enumerate() {
            let at = number * VALUE_LEN;
            late.begin();
            for (count, block) in bytes(*size).chunks(blocks).enumerate() {
                late.keep(block).unwrap();
                if count == 1 {
                    // In the middle of a file a piece may be full.
                    late.settle(&mut frames).unwrap();
                }
            }
            late.end(&mut frames, at).unwrap();
            if number % settle_every == 0 {
                late.settle(&mut frames).unwrap();
            }
        }
        late.settle(&mut frames).unwrap();
        assert!(late.kept.is_empty());
        for (number, size) in sizes.iter().enumerate() {
            assert_eq!(frames[number * VALUE_LEN..][..VALUE_LEN], md5(&bytes(*size)), "{size}");
        }
    }

    #[test]
    fn every_file_gets_its_own_digest() {
        let even: Vec<usize> = (0..70).collect();
        let mixed: Vec<usize> = (0..70).map(|n| if n % 9 == 0 { 90_000 + n } else { n * 37 }).collect();
        for settle_every in [1, 17, 1000] {
            all(&even, settle_every, 65_536);
            all(&mixed, settle_every, 65_536);
            all(&mixed, settle_every, 1000);
        }
        all(&[600_000, 5, 1_200_000, 0, 524_288, 524_289], 1000, 65_536);
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing_behind() {
        if !has_lanes() {
            return;
        }
        let mut late = LateDigests::default();
        let mut frames = vec![0; VALUE_LEN];
        late.begin();
        late.keep(b"the beginning of a file that can't be read on").unwrap();
        late.begin();
        late.keep(b"abc").unwrap();
        late.end(&mut frames, 0).unwrap();
        late.settle(&mut frames).unwrap();
        assert_eq!(frames, md5(b"abc"));
    }
}
