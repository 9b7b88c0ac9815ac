//! SHA-256 of one block of eight messages. The words of a block come in the byte order of MD5, the
//! lowest byte first, and are reversed here.

#![expect(clippy::many_single_char_names, reason = "the names of FIPS 180-4")]

use std::arch::x86_64::{
    __m256i as Register, _mm256_add_epi32 as add, _mm256_rol_epi32 as rotate_left, _mm256_ror_epi32 as rotate_right,
    _mm256_set1_epi32 as splat, _mm256_srli_epi32 as shift_right, _mm256_ternarylogic_epi32 as mix,
};

use super::constants::SHA256_ROUNDS;

/// One round of FIPS 180-4 for all messages: sets `$d` and `$h`.
macro_rules! round256 {
    ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident + $word:ident, $constant:ident) => {
        let ready = add($h, add(*$word, splat($constant.cast_signed())));
        // Where e has a one, f, else g.
        let chosen = add(ready, mix::<0xca>($e, $f, $g));
        let first = add(chosen, mix::<0x96>(rotate_right::<6>($e), rotate_right::<11>($e), rotate_right::<25>($e)));
        let sum = mix::<0x96>(rotate_right::<2>($a), rotate_right::<13>($a), rotate_right::<22>($a));
        // The majority of the three.
        let second = add(sum, mix::<0xe8>($a, $b, $c));
        $d = add($d, first);
        $h = add(first, second);
    };
}

/// The word sixteen behind `$w0`, in its place; of the words between, it takes the numbers 1, 9 and
/// 14.
macro_rules! extend256 {
    ($w0:ident $w1:ident $w9:ident $w14:ident) => {
        let low = mix::<0x96>(rotate_right::<7>($w1), rotate_right::<18>($w1), shift_right::<3>($w1));
        let high = mix::<0x96>(rotate_right::<17>($w14), rotate_right::<19>($w14), shift_right::<10>($w14));
        $w0 = add(add($w0, low), add($w9, high));
    };
}

/// Takes one block of each message.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn sha256(start: [Register; 8], mut words: [Register; 16]) -> [Register; 8] {
    for word in &mut words {
        let bytes = splat(0x00ff_00ff);
        *word = mix::<0xca>(bytes, rotate_left::<8>(*word), rotate_left::<24>(*word));
    }
    let mut values = start;
    for (number, constants) in SHA256_ROUNDS.iter().enumerate() {
        if number > 0 {
            words = extended(&words);
        }
        values = sixteen_rounds(values, &words, constants);
    }
    let [a0, b0, c0, d0, e0, f0, g0, h0] = start;
    let [a, b, c, d, e, f, g, h] = values;
    [add(a0, a), add(b0, b), add(c0, c), add(d0, d), add(e0, e), add(f0, f), add(g0, g), add(h0, h)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn sixteen_rounds(values: [Register; 8], words: &[Register; 16], constants: &[u32; 16]) -> [Register; 8] {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = values;
    let (words, _) = words.as_chunks();
    let (constants, _) = constants.as_chunks();
    for ([w0, w1, w2, w3, w4, w5, w6, w7], [k0, k1, k2, k3, k4, k5, k6, k7]) in words.iter().zip(constants) {
        round256!(a b c d e f g h + w0, k0);
        round256!(h a b c d e f g + w1, k1);
        round256!(g h a b c d e f + w2, k2);
        round256!(f g h a b c d e + w3, k3);
        round256!(e f g h a b c d + w4, k4);
        round256!(d e f g h a b c + w5, k5);
        round256!(c d e f g h a b + w6, k6);
        round256!(b c d e f g h a + w7, k7);
    }
    [a, b, c, d, e, f, g, h]
}

/// The next sixteen words.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn extended(words: &[Register; 16]) -> [Register; 16] {
    let [mut w0, mut w1, mut w2, mut w3, mut w4, mut w5, mut w6, mut w7, ..] = *words;
    let [.., mut w8, mut w9, mut w10, mut w11, mut w12, mut w13, mut w14, mut w15] = *words;
    extend256!(w0 w1 w9 w14);
    extend256!(w1 w2 w10 w15);
    extend256!(w2 w3 w11 w0);
    extend256!(w3 w4 w12 w1);
    extend256!(w4 w5 w13 w2);
    extend256!(w5 w6 w14 w3);
    extend256!(w6 w7 w15 w4);
    extend256!(w7 w8 w0 w5);
    extend256!(w8 w9 w1 w6);
    extend256!(w9 w10 w2 w7);
    extend256!(w10 w11 w3 w8);
    extend256!(w11 w12 w4 w9);
    extend256!(w12 w13 w5 w10);
    extend256!(w13 w14 w6 w11);
    extend256!(w14 w15 w7 w12);
    extend256!(w15 w0 w8 w13);
    [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15]
}
