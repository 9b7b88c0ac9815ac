//! Eight messages in registers of 256 bits, with the instructions of AVX-512. Four in registers of
//! 128 bits, or one by one, would take as long.

use std::arch::x86_64::{
    __m128i as HalfRegister, __m256i as Register, _mm_loadu_si128, _mm_storeu_si128, _mm256_extracti128_si256 as half,
    _mm256_set_m128i as join, _mm256_setzero_si256 as zero, _mm256_unpackhi_epi32 as high,
    _mm256_unpackhi_epi64 as high_pair, _mm256_unpacklo_epi32 as low, _mm256_unpacklo_epi64 as low_pair,
};

use super::algorithm::{Algorithm, NARROW, Run, Words, ZEROS};
use super::x8_md5::md5;
use super::x8_sha256::sha256;

/// Words of half a register: the other half belongs to the message so many further on.
const WIDTH: usize = 4;

/// Takes the blocks of each message, as many as the shortest run has.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn advance(algorithm: Algorithm, chains: &mut [Words; NARROW], runs: &[Run<'_>; NARROW]) {
    // No closures here: what calls them is compiled without AVX-512 and can't take them in.
    let (first, second) = chains.split_at_mut(WIDTH);
    let mut values = [zero(); 8];
    for (number, four) in values.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        let mut rows = [zero(); WIDTH];
        for (row, (one, other)) in rows.iter_mut().zip(first.iter().zip(&*second)) {
            if let (Some(one), Some(other)) = (one.as_chunks().0.get(number), other.as_chunks().0.get(number)) {
                *row = join(load(other), load(one));
            }
        }
        *four = turn(rows);
    }
    let steps = runs.iter().map(|run| run.len()).min().unwrap_or_default();
    for step in 0..steps {
        let words = transpose(runs, step);
        values = match algorithm {
            Algorithm::Md5 => md5(values, &words),
            Algorithm::Sha256 => sha256(values, words),
        };
    }
    for (number, four) in values.as_chunks::<WIDTH>().0.iter().enumerate() {
        for (value, (one, other)) in turn(*four).into_iter().zip(first.iter_mut().zip(&mut *second)) {
            if let Some(words) = one.as_chunks_mut().0.get_mut(number) {
                store(words, half::<0>(value));
            }
            if let Some(words) = other.as_chunks_mut().0.get_mut(number) {
                store(words, half::<1>(value));
            }
        }
    }
}

/// Word by word what came block by block.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn transpose(runs: &[Run<'_>; NARROW], step: usize) -> [Register; 16] {
    let mut words = [zero(); 16];
    let (first, second) = runs.split_at(WIDTH);
    let (fours, _) = words.as_chunks_mut::<WIDTH>();
    for (quarter, four) in fours.iter_mut().enumerate() {
        let mut rows = [zero(); WIDTH];
        for (row, (one, other)) in rows.iter_mut().zip(first.iter().zip(second)) {
            *row = join(load_part(other, step, quarter), load_part(one, step, quarter));
        }
        *four = turn(rows);
    }
    words
}

/// Word by word what came message by message, and back, in each half.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn turn([r0, r1, r2, r3]: [Register; WIDTH]) -> [Register; WIDTH] {
    let (low01, high01, low23, high23) = (low(r0, r1), high(r0, r1), low(r2, r3), high(r2, r3));
    [low_pair(low01, low23), high_pair(low01, low23), low_pair(high01, high23), high_pair(high01, high23)]
}

/// Four words of a block.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn load_part(run: Run<'_>, step: usize, quarter: usize) -> HalfRegister {
    let block = run.get(step).unwrap_or(&ZEROS);
    let part: &[u8; 4 * WIDTH] = block.as_chunks().0.get(quarter).unwrap_or(&[0; 4 * WIDTH]);
    // SAFETY: reads the 16 bytes of the array; any address will do.
    unsafe { _mm_loadu_si128(part.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn load(words: &[u32; WIDTH]) -> HalfRegister {
    // SAFETY: reads the four words of the array, which are 16 bytes; any address will do.
    unsafe { _mm_loadu_si128(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn store(words: &mut [u32; WIDTH], value: HalfRegister) {
    // SAFETY: writes the four words of the array, which are 16 bytes; any address will do.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), value) }
}
