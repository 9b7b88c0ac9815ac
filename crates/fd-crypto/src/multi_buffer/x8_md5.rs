//! MD5 of one block of eight messages. AVX-512 has single instructions for what takes two or three
//! in AVX2.

use std::arch::x86_64::{
    __m256i as Register, _mm256_add_epi32 as add, _mm256_rol_epi32 as rotate_left, _mm256_set1_epi32 as splat,
    _mm256_ternarylogic_epi32 as mix,
};

use super::constants::MD5_ROUNDS;

/// One step of RFC 1321 for all messages: sets `$a`. `$truth` is the truth table of its function.
macro_rules! step {
    ($truth:literal($a:ident, $b:ident, $c:ident, $d:ident) + $word:expr, $constant:expr, $shift:literal) => {
        let ready = add($a, add($word, splat($constant.cast_signed())));
        let sum = add(ready, mix::<$truth>($b, $c, $d));
        $a = add($b, rotate_left::<$shift>(sum));
    };
}

/// One round: sixteen steps, the words in the order given by `$first` and `$stride`.
macro_rules! round {
    (
        $truth:literal($a:ident, $b:ident, $c:ident, $d:ident), $words:ident[$first:literal, $stride:literal],
        $constants:expr, $s0:literal $s1:literal $s2:literal $s3:literal
    ) => {
        let (fours, _) = $constants.as_chunks::<4>();
        for (four, [k0, k1, k2, k3]) in fours.iter().enumerate() {
            let at = $first + 4 * four * $stride;
            step!($truth($a, $b, $c, $d) + $words[at % 16], *k0, $s0);
            step!($truth($d, $a, $b, $c) + $words[(at + $stride) % 16], *k1, $s1);
            step!($truth($c, $d, $a, $b) + $words[(at + 2 * $stride) % 16], *k2, $s2);
            step!($truth($b, $c, $d, $a) + $words[(at + 3 * $stride) % 16], *k3, $s3);
        }
    };
}

/// Takes one block of each message. MD5 has four words only; the others stay.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn md5(start: [Register; 8], words: &[Register; 16]) -> [Register; 8] {
    let [a0, b0, c0, d0, ..] = start;
    let [mut a, mut b, mut c, mut d] = [a0, b0, c0, d0];
    let [k0, k1, k2, k3] = &MD5_ROUNDS;
    // Where b has a one, c, else d; where d has a one, b, else c; the parity; and c turned
    // where b or not d.
    round!(0xca(a, b, c, d), words[0, 1], k0, 7 12 17 22);
    round!(0xe4(a, b, c, d), words[1, 5], k1, 5 9 14 20);
    round!(0x96(a, b, c, d), words[5, 3], k2, 4 11 16 23);
    round!(0x39(a, b, c, d), words[0, 7], k3, 6 10 15 21);
    let mut end = start;
    for (word, sum) in end.iter_mut().zip([add(a0, a), add(b0, b), add(c0, c), add(d0, d)]) {
        *word = sum;
    }
    end
}
