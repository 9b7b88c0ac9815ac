//! Four lanes in the narrow registers of AVX-512. Sixteen take as long a chain of instructions, and twice as many to
//! bring their words in order: with few messages this is faster, and with one it is faster than a program for one.

use std::arch::x86_64::{
    __m128i as Register, _mm_add_epi32 as add, _mm_loadu_si128, _mm_rol_epi32 as rotate, _mm_set1_epi32 as splat,
    _mm_setzero_si128 as zero, _mm_storeu_si128, _mm_ternarylogic_epi32 as mix, _mm_unpackhi_epi32 as high,
    _mm_unpackhi_epi64 as high_pair, _mm_unpacklo_epi32 as low, _mm_unpacklo_epi64 as low_pair,
};

use super::{BLOCK, Chain, FEW};

/// Words of a register.
const WIDTH: usize = 4;

compression!("avx512f,avx512vl");

/// Takes the blocks of each lane, as many as the shortest run has.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn advance(chains: &mut [Chain; FEW], runs: &[&[[u8; BLOCK]]; FEW]) {
    // No closures here: what calls them is compiled without AVX-512 and can't take them in.
    let [a, b, c, d] = &*chains;
    let mut values = turn([load(&a.0), load(&b.0), load(&c.0), load(&d.0)]);
    let steps = runs.iter().map(|run| run.len()).min().unwrap_or_default();
    for step in 0..steps {
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
        values = compress(values, words);
    }
    for (chain, value) in chains.iter_mut().zip(turn(values)) {
        // SAFETY: writes the four words of the array, which are 16 bytes; any address will do.
        unsafe { _mm_storeu_si128(chain.0.as_mut_ptr().cast(), value) }
    }
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
