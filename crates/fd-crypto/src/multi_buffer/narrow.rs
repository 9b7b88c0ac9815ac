//! Four lanes in the narrow registers of AVX-512. Sixteen take as long a chain of instructions, and twice as many to
//! bring their words in order: with few messages this is faster, and MD5 of one is faster than by a program for one.

use std::arch::x86_64::{
    __m128i as Register, _mm_add_epi32 as add, _mm_loadu_si128, _mm_rol_epi32 as rotate_left,
    _mm_ror_epi32 as rotate_right, _mm_set1_epi32 as splat, _mm_setzero_si128 as zero, _mm_srli_epi32 as shift_right,
    _mm_storeu_si128, _mm_ternarylogic_epi32 as mix, _mm_unpackhi_epi32 as high, _mm_unpackhi_epi64 as high_pair,
    _mm_unpacklo_epi32 as low, _mm_unpacklo_epi64 as low_pair,
};

use super::{Algorithm, BLOCK, FEW, Words};

/// Words of a register.
const WIDTH: usize = 4;

md5!("avx512f,avx512vl");
sha256!("avx512f,avx512vl");

/// Takes the blocks of each lane, as many as the shortest run has.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn advance(algorithm: Algorithm, chains: &mut [Words; FEW], runs: &[&[[u8; BLOCK]]; FEW]) {
    // No closures here: what calls them is compiled without AVX-512 and can't take them in.
    let mut values = [zero(); 8];
    for (number, half) in values.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        let mut rows = [zero(); FEW];
        for (row, chain) in rows.iter_mut().zip(&*chains) {
            if let Some(words) = chain.as_chunks().0.get(number) {
                *row = load(words);
            }
        }
        *half = turn(rows);
    }
    let steps = runs.iter().map(|run| run.len()).min().unwrap_or_default();
    for step in 0..steps {
        let words = transpose(runs, step);
        values = match algorithm {
            Algorithm::Md5 => md5(values, words),
            Algorithm::Sha256 => sha256(values, words),
        };
    }
    for (number, half) in values.as_chunks::<WIDTH>().0.iter().enumerate() {
        for (chain, value) in chains.iter_mut().zip(turn(*half)) {
            if let Some(words) = chain.as_chunks_mut().0.get_mut(number) {
                store(words, value);
            }
        }
    }
}

/// Word by word what came block by block.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn transpose(runs: &[&[[u8; BLOCK]]; FEW], step: usize) -> [Register; 16] {
    let mut words = [zero(); 16];
    let (fours, _) = words.as_chunks_mut::<WIDTH>();
    for (quarter, four) in fours.iter_mut().enumerate() {
        let mut rows = [zero(); FEW];
        for (row, run) in rows.iter_mut().zip(runs) {
            if let Some(part) = run.get(step).and_then(|block| block.as_chunks().0.get(quarter)) {
                *row = load_bytes(part);
            }
        }
        *four = turn(rows);
    }
    words
}

/// Word by word what came lane by lane, and back.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn turn([r0, r1, r2, r3]: [Register; 4]) -> [Register; 4] {
    let (low01, high01, low23, high23) = (low(r0, r1), high(r0, r1), low(r2, r3), high(r2, r3));
    [low_pair(low01, low23), high_pair(low01, low23), low_pair(high01, high23), high_pair(high01, high23)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn load_bytes(bytes: &[u8; 4 * WIDTH]) -> Register {
    // SAFETY: reads the 16 bytes of the array; any address will do.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn load(words: &[u32; WIDTH]) -> Register {
    // SAFETY: reads the four words of the array, which are 16 bytes; any address will do.
    unsafe { _mm_loadu_si128(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn store(words: &mut [u32; WIDTH], value: Register) {
    // SAFETY: writes the four words of the array, which are 16 bytes; any address will do.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), value) }
}
