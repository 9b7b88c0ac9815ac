//! MD5 of sixteen messages with AVX2, in two sets of registers: one set's steps fill the time until
//! the other's results are there.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_andnot_si256, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_slli_epi32, _mm256_srli_epi32,
    _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
    _mm256_xor_si256,
};

use super::algorithm::{BLOCK, Run, WIDE, ZEROS};
use super::constants::MD5_ROUNDS;

/// Messages of one register.
const HALF: usize = 8;

/// A block of each message.
type Blocks<'b> = [&'b [u8; BLOCK]; WIDE];

/// One word of all messages.
type Pair = [__m256i; 2];

/// The sixteen words of a block, each of all messages.
type Words = [Pair; 16];

/// One step for all messages: `$a` becomes what RFC 1321 makes of it.
macro_rules! step {
    ($mix:ident($a:ident, $b:ident, $c:ident, $d:ident) + $word:expr, $constant:expr, $shift:literal) => {
        let sum = add(add($a, add($word, splat($constant))), $mix($b, $c, $d));
        $a = add($b, rotate::<$shift, { 32 - $shift }>(sum));
    };
}

/// One round: sixteen steps, the words in the order that `$first` and `$stride` make.
macro_rules! round {
    (
        $mix:ident($a:ident, $b:ident, $c:ident, $d:ident), $words:ident[$first:literal, $stride:literal],
        $constants:expr, $s0:literal $s1:literal $s2:literal $s3:literal
    ) => {
        let (fours, _) = $constants.as_chunks::<4>();
        for (four, [k0, k1, k2, k3]) in fours.iter().enumerate() {
            let at = $first + 4 * four * $stride;
            step!($mix($a, $b, $c, $d) + $words[at % 16], *k0, $s0);
            step!($mix($d, $a, $b, $c) + $words[(at + $stride) % 16], *k1, $s1);
            step!($mix($c, $d, $a, $b) + $words[(at + 2 * $stride) % 16], *k2, $s2);
            step!($mix($b, $c, $d, $a) + $words[(at + 3 * $stride) % 16], *k3, $s3);
        }
    };
}

/// Takes the blocks of each message, as many as the shortest run has.
#[target_feature(enable = "avx2")]
pub(super) fn advance(state: &mut [[u32; WIDE]; 8], runs: &[Run<'_>; WIDE]) {
    let steps = runs.iter().map(|run| run.len()).min().unwrap_or_default();
    for step in 0..steps {
        compress(state, runs.map(|run| run.get(step).unwrap_or(&ZEROS)));
    }
}

/// Takes one block of each message.
#[target_feature(enable = "avx2")]
fn compress(state: &mut [[u32; WIDE]; 8], blocks: Blocks<'_>) {
    let words = transpose(&blocks);
    let [a, b, c, d, ..] = &*state;
    let start: [Pair; 4] = [a, b, c, d].map(|words| load_pair(words));
    let [mut a, mut b, mut c, mut d] = start;
    let [k0, k1, k2, k3] = &MD5_ROUNDS;
    round!(choose(a, b, c, d), words[0, 1], k0, 7 12 17 22);
    round!(choose_back(a, b, c, d), words[1, 5], k1, 5 9 14 20);
    round!(parity(a, b, c, d), words[5, 3], k2, 4 11 16 23);
    round!(twist(a, b, c, d), words[0, 7], k3, 6 10 15 21);
    for ((place, start), end) in state.iter_mut().zip(start).zip([a, b, c, d]) {
        store_pair(place, add(start, end));
    }
}

/// F of RFC 1321: where `b` has a one, `c`, else `d`.
#[inline]
#[target_feature(enable = "avx2")]
fn choose(b: Pair, c: Pair, d: Pair) -> Pair {
    xor(and(xor(c, d), b), d)
}

/// G: the same with the roles turned.
#[inline]
#[target_feature(enable = "avx2")]
fn choose_back(b: Pair, c: Pair, d: Pair) -> Pair {
    or(and(d, b), and_not(d, c))
}

/// H.
#[inline]
#[target_feature(enable = "avx2")]
fn parity(b: Pair, c: Pair, d: Pair) -> Pair {
    xor(xor(c, d), b)
}

/// I.
#[inline]
#[target_feature(enable = "avx2")]
fn twist(b: Pair, c: Pair, d: Pair) -> Pair {
    let ones = splat(u32::MAX);
    xor(c, or(b, xor(d, ones)))
}

/// An operation on pairs.
macro_rules! on_pairs {
    ($name:ident, $operation:ident) => {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn $name([a0, a1]: Pair, [b0, b1]: Pair) -> Pair {
            [$operation(a0, b0), $operation(a1, b1)]
        }
    };
}

on_pairs!(add, _mm256_add_epi32);
on_pairs!(and, _mm256_and_si256);
// `b` where `a` has zeros.
on_pairs!(and_not, _mm256_andnot_si256);
on_pairs!(or, _mm256_or_si256);
on_pairs!(xor, _mm256_xor_si256);

/// To the left; the two numbers make 32.
#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const LEFT: i32, const RIGHT: i32>(value: Pair) -> Pair {
    value.map(|set| _mm256_or_si256(_mm256_slli_epi32::<LEFT>(set), _mm256_srli_epi32::<RIGHT>(set)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat(word: u32) -> Pair {
    [_mm256_set1_epi32(word.cast_signed()); 2]
}

/// Word by word what came block by block.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(blocks: &Blocks<'_>) -> Words {
    let mut words = [[_mm256_setzero_si256(); 2]; 16];
    let (sets, _) = blocks.as_chunks::<HALF>();
    for (set, blocks) in sets.iter().enumerate() {
        let (halves, _) = words.as_chunks_mut::<HALF>();
        for (half, words) in halves.iter_mut().enumerate() {
            for (place, word) in words.iter_mut().zip(eight_words(blocks, half)) {
                if let Some(place) = place.get_mut(set) {
                    *place = word;
                }
            }
        }
    }
    words
}

/// The words 0 to 7 or 8 to 15 of eight blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn eight_words(blocks: &[&[u8; BLOCK]; HALF], half: usize) -> [__m256i; HALF] {
    let [r0, r1, r2, r3, r4, r5, r6, r7] = blocks.map(|block| {
        let (halves, _) = block.as_chunks::<32>();
        halves.get(half).map_or_else(|| _mm256_setzero_si256(), |bytes| load(bytes))
    });
    let (upper, lower) = (four_rows(r0, r1, r2, r3), four_rows(r4, r5, r6, r7));
    let mut words = [_mm256_setzero_si256(); HALF];
    let (front, back) = words.split_at_mut(HALF / 2);
    for (((front, back), upper), lower) in front.iter_mut().zip(back).zip(upper).zip(lower) {
        *front = _mm256_permute2x128_si256::<0x20>(upper, lower);
        *back = _mm256_permute2x128_si256::<0x31>(upper, lower);
    }
    words
}

/// Turns four rows of two times four words: number `n` of the answer has the words `n` and `n + 4`
/// of each row.
#[inline]
#[target_feature(enable = "avx2")]
fn four_rows(r0: __m256i, r1: __m256i, r2: __m256i, r3: __m256i) -> [__m256i; 4] {
    let (low01, high01) = (_mm256_unpacklo_epi32(r0, r1), _mm256_unpackhi_epi32(r0, r1));
    let (low23, high23) = (_mm256_unpacklo_epi32(r2, r3), _mm256_unpackhi_epi32(r2, r3));
    [
        _mm256_unpacklo_epi64(low01, low23),
        _mm256_unpackhi_epi64(low01, low23),
        _mm256_unpacklo_epi64(high01, high23),
        _mm256_unpackhi_epi64(high01, high23),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: reads the 32 bytes of the array; any address will do.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_pair(words: &[u32; 2 * HALF]) -> Pair {
    let (sets, _) = words.as_chunks::<HALF>();
    let mut pair = [_mm256_setzero_si256(); 2];
    for (place, set) in pair.iter_mut().zip(sets) {
        // SAFETY: reads the eight words of the array, which are 32 bytes; any address will do.
        *place = unsafe { _mm256_loadu_si256(set.as_ptr().cast()) };
    }
    pair
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_pair(words: &mut [u32; 2 * HALF], pair: Pair) {
    let (sets, _) = words.as_chunks_mut::<HALF>();
    for (set, value) in sets.iter_mut().zip(pair) {
        // SAFETY: writes the eight words of the array, which are 32 bytes; any address will do.
        unsafe { _mm256_storeu_si256(set.as_mut_ptr().cast(), value) }
    }
}
