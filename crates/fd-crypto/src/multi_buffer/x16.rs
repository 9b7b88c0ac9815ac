//! Sixteen messages in registers of 512 bits, with AVX-512.

use std::arch::x86_64::{
    __m512i as Register, _mm512_add_epi32 as add, _mm512_loadu_si512, _mm512_rol_epi32 as rotate_left,
    _mm512_ror_epi32 as rotate_right, _mm512_set1_epi32 as splat, _mm512_setzero_si512 as zero,
    _mm512_shuffle_i32x4 as shuffle, _mm512_srli_epi32 as shift_right, _mm512_storeu_si512,
    _mm512_ternarylogic_epi32 as mix, _mm512_unpackhi_epi32 as high, _mm512_unpackhi_epi64 as high_pair,
    _mm512_unpacklo_epi32 as low, _mm512_unpacklo_epi64 as low_pair,
};

use super::algorithm::{Algorithm, BLOCK, Run};
use super::kernels::WIDE;

/// The sixteen words of a block, each of all messages.
type Words = [Register; 16];

md5!("avx512f");
sha256!("avx512f");

/// Takes the blocks of each message, as many as the shortest run has.
#[target_feature(enable = "avx512f")]
pub(super) fn advance(algorithm: Algorithm, state: &mut [[u32; WIDE]; 8], runs: &[Run<'_>; WIDE]) {
    // No closures here: what calls them is compiled without AVX-512 and can't take them in.
    let mut values = [zero(); 8];
    for (value, words) in values.iter_mut().zip(&*state) {
        *value = load_words(words);
    }
    let steps = runs.iter().map(|run| run.len()).min().unwrap_or_default();
    for step in 0..steps {
        let words = transpose(runs, step);
        values = match algorithm {
            Algorithm::Md5 => md5(values, words),
            Algorithm::Sha256 => sha256(values, words),
        };
    }
    for (place, value) in state.iter_mut().zip(values) {
        // SAFETY: writes the sixteen words of the array, which are 64 bytes; any address will do.
        unsafe { _mm512_storeu_si512(place.as_mut_ptr().cast(), value) }
    }
}

/// Word by word what came block by block.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(runs: &[Run<'_>; WIDE], step: usize) -> Words {
    let mut rows = [zero(); WIDE];
    for (row, run) in rows.iter_mut().zip(runs) {
        if let Some(block) = run.get(step) {
            *row = load(block);
        }
    }
    let mut words = [zero(); 16];
    let (fours, _) = rows.as_chunks::<4>();
    if let [first, second, third, last] = fours {
        let groups = [four_rows(first), four_rows(second), four_rows(third), four_rows(last)];
        let [[a0, a1, a2, a3], [b0, b1, b2, b3], [c0, c1, c2, c3], [d0, d1, d2, d3]] = groups;
        let columns = [[a0, b0, c0, d0], [a1, b1, c1, d1], [a2, b2, c2, d2], [a3, b3, c3, d3]];
        for (number, column) in columns.iter().enumerate() {
            for (place, word) in words.iter_mut().skip(number).step_by(4).zip(four_quarters(column)) {
                *place = word;
            }
        }
    }
    words
}

/// Turns four rows of four times four words: number `n` of the answer has the words `n`, `n + 4`,
/// `n + 8` and `n + 12` of each row.
#[inline]
#[target_feature(enable = "avx512f")]
fn four_rows([r0, r1, r2, r3]: &[Register; 4]) -> [Register; 4] {
    let (low01, high01) = (low(*r0, *r1), high(*r0, *r1));
    let (low23, high23) = (low(*r2, *r3), high(*r2, *r3));
    [low_pair(low01, low23), high_pair(low01, low23), low_pair(high01, high23), high_pair(high01, high23)]
}

/// Turns four registers of four quarters: number `n` of the answer has the quarter `n` of each.
#[inline]
#[target_feature(enable = "avx512f")]
fn four_quarters([a, b, c, d]: &[Register; 4]) -> [Register; 4] {
    const EVEN: i32 = 0x88;
    const ODD: i32 = 0xdd;
    let (even_ab, odd_ab) = (shuffle::<EVEN>(*a, *b), shuffle::<ODD>(*a, *b));
    let (even_cd, odd_cd) = (shuffle::<EVEN>(*c, *d), shuffle::<ODD>(*c, *d));
    [
        shuffle::<EVEN>(even_ab, even_cd),
        shuffle::<EVEN>(odd_ab, odd_cd),
        shuffle::<ODD>(even_ab, even_cd),
        shuffle::<ODD>(odd_ab, odd_cd),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; BLOCK]) -> Register {
    // SAFETY: reads the 64 bytes of the array; any address will do.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_words(words: &[u32; WIDE]) -> Register {
    // SAFETY: reads the sixteen words of the array, which are 64 bytes; any address will do.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}
