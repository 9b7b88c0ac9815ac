//! Signatures that were made, for other files with the same content: many trees hold equal files,
//! and most files are unchanged in the next job. A signature costs as much as reading a hundred
//! small files.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps signatures from job to job. Each signature that it returns is checked.
pub trait SignatureStore: fmt::Debug + Send + Sync {
    /// Fills in the kept signature of this digest, if it has the length of `signature`. Returns
    /// `false` if there is none.
    fn find(&self, digest: &[u8], signature: &mut [u8]) -> bool;

    /// Keeps the signature of this digest, if possible.
    fn keep(&self, digest: &[u8], signature: &[u8]);
}

/// The least number of signatures that are kept, half of the largest one; with keys of 2,048 bits
/// at most about 2 MiB.
const KEPT: usize = 2048;

/// The signatures of one key, by digest, for all signers of a job.
#[derive(Default)]
pub(super) struct SignaturesOfJob(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<Vec<u8>, Vec<u8>>,
    /// Those that were young before. One that is used again is young again.
    old: HashMap<Vec<u8>, Vec<u8>>,
}

impl SignaturesOfJob {
    /// Copies the signature of this digest to `signature`. Returns `false` if there is none.
    pub(super) fn get(&self, digest: &[u8], signature: &mut Vec<u8>) -> bool {
        let mut generations = self.lock();
        if let Some((digest, kept)) = generations.old.remove_entry(digest) {
            generations.keep(digest, kept);
        }
        let Some(kept) = generations.young.get(digest) else { return false };
        kept.clone_into(signature);
        true
    }

    /// Keeps the signature of this digest.
    pub(super) fn keep(&self, digest: &[u8], signature: &[u8]) {
        self.lock().keep(digest.to_vec(), signature.to_vec());
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // A panic of another thread leaves the maps whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn keep(&mut self, digest: Vec<u8>, signature: Vec<u8>) {
        if self.young.len() >= KEPT {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(digest, signature);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(kept: &SignaturesOfJob, number: usize) -> bool {
        let mut signature = Vec::new();
        let found = kept.get(&number.to_le_bytes(), &mut signature);
        assert_eq!(signature, if found { vec![7; number % 256] } else { Vec::new() });
        found
    }

    #[test]
    fn the_last_ones_are_kept_and_those_that_come_again_and_not_all() {
        let kept = SignaturesOfJob::default();
        assert!(!has(&kept, 0));
        for number in 0..10 * KEPT {
            kept.keep(&number.to_le_bytes(), &vec![7; number % 256]);
            assert!(has(&kept, 0), "asked for after {number} others");
        }
        let last = 10 * KEPT - 1;
        let found = (1..=last).filter(|number| has(&kept, *number)).count();
        assert!((KEPT - 2..2 * KEPT).contains(&found), "{found}");
        assert!(has(&kept, last));
        let generations = kept.lock();
        assert!(generations.young.len() <= KEPT && generations.old.len() <= KEPT);
    }
}
