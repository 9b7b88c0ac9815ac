//! Fingerprints: whether data has changed.

use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Makes fingerprints that can't be predicted: XXH3 with 128 bits and a random seed. So it is not
/// possible to prepare other data with the same fingerprint. One costs a twentieth of an MD5.
#[derive(Clone, Copy)]
pub struct Fingerprints {
    seed: u64,
}

impl Fingerprints {
    /// With a new seed. Only fingerprints with the same one can be compared.
    pub fn new() -> Self {
        Self { seed: RandomState::new().hash_one(()) }
    }

    /// The fingerprint of this data.
    pub fn of(&self, data: &[u8]) -> u128 {
        xxh3_128_with_seed(data, self.seed)
    }
}

impl Default for Fingerprints {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_data_has_equal_fingerprints_and_other_data_others() {
        let fingerprints = Fingerprints::new();
        let mut data = vec![7; 65_536];
        let before = fingerprints.of(&data);
        assert_eq!(fingerprints.of(&data.clone()), before);
        data[40_000] ^= 1;
        assert_ne!(fingerprints.of(&data), before);
        data[40_000] ^= 1;
        assert_ne!(Fingerprints::new().of(&data), before, "another seed");
    }
}
