//! The random numbers of the bootstrap and of the order of jobs: `SplitMix64`, whose seed is a
//! number and a text. They are specified, so that another program can draw the same.

/// A sequence of random numbers.
#[derive(Debug, Clone)]
pub struct Draws(u64);

/// FNV-1a of a text, 64 bits, beginning with the basis exclusive-or `seed`.
pub fn seed_of(seed: u64, text: &str) -> u64 {
    let basis = 0xcbf2_9ce4_8422_2325 ^ seed;
    text.bytes().fold(basis, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Draws {
    /// Begins with this state.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of the first `limit` numbers: the upper half of the product of the next number and
    /// `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        let product = u128::from(self.number()) * limit as u128;
        usize::try_from(product >> 64).unwrap_or_default()
    }

    /// Puts items into an order that is drawn.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Rosetta Code's page on `SplitMix64`.
    #[test]
    fn numbers_are_those_that_are_published() {
        let mut draws = Draws::new(1_234_567);
        let got = [draws.number(), draws.number(), draws.number()];
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    /// The test vectors of the authors of FNV.
    #[test]
    fn seeds_are_those_of_fnv_1a() {
        assert_eq!(seed_of(0, ""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(seed_of(0, "a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(seed_of(0, "foobar"), 0x8594_4171_f739_67e8);
    }
}
