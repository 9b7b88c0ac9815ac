//! The choice of kernels for a processor, and the calls of kernels.

#[cfg(target_arch = "x86_64")]
use super::{x8, x16, x16_avx2};

use super::algorithm::{Algorithm, Run, Words};
use crate::processor::Processor;

/// Messages that the wide kernels take at a time.
pub(super) const WIDE: usize = 16;

/// Messages that the narrow kernel takes at a time.
pub(super) const NARROW: usize = 8;

/// The kernels for an algorithm. [`Kernels::new`] returns a value only if the processor can run
/// them. On processors of other families there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kernels {
    /// The wide kernel of AVX2, which makes MD5 only.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// The wide and the narrow kernel of AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

/// Proof that the processor has AVX-512F and AVX-512VL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Avx512 {
    #[cfg(target_arch = "x86_64")]
    Found,
}

impl Kernels {
    /// The kernels for this algorithm; `None` if OpenSSL is faster. OpenSSL is faster for SHA-256
    /// on processors with instructions for it.
    #[cfg(target_arch = "x86_64")]
    pub(super) const fn new(algorithm: Algorithm, processor: Processor) -> Option<Self> {
        match algorithm {
            Algorithm::Sha256 if processor.has_sha() => None,
            Algorithm::Md5 | Algorithm::Sha256 if processor.has_avx512() => Some(Self::Avx512(Avx512::Found)),
            Algorithm::Md5 if processor.has_avx2() => Some(Self::Avx2),
            Algorithm::Md5 | Algorithm::Sha256 => None,
        }
    }

    /// There are no kernels for this family of processors.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) const fn new(_: Algorithm, _: Processor) -> Option<Self> {
        None
    }

    /// The narrow kernel, if there is one.
    pub(super) const fn narrow(self) -> Option<Avx512> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => None,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(found) => Some(found),
        }
    }

    /// Takes the blocks of up to [`WIDE`] messages, as many as the shortest run has.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there are no kernels"))]
    pub(super) fn advance<'a>(self, algorithm: Algorithm, messages: impl Iterator<Item = (&'a mut Words, Run<'a>)>) {
        advance::<WIDE>(messages, |words, runs| {
            let mut state =
                std::array::from_fn(|word| words.each_ref().map(|words| words.get(word).copied().unwrap_or(0)));
            match self {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: there is this value only where the processor has AVX-512.
                Self::Avx512(_) => unsafe { x16::advance(algorithm, &mut state, runs) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: there is this value only where the processor has AVX2, and only for MD5.
                Self::Avx2 => unsafe { x16_avx2::advance(&mut state, runs) },
            }
            *words = std::array::from_fn(|message| state.map(|words| words.get(message).copied().unwrap_or(0)));
        });
    }
}

impl Avx512 {
    /// Takes the blocks of up to [`NARROW`] messages, as many as the shortest run has.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there are no kernels"))]
    pub(super) fn advance<'a>(self, algorithm: Algorithm, messages: impl Iterator<Item = (&'a mut Words, Run<'a>)>) {
        advance::<NARROW>(messages, |words, runs| match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: there is this value only where the processor has AVX-512.
            Self::Found => unsafe { x8::advance(algorithm, words, runs) },
        });
    }
}

/// Gathers the states and runs of up to `N` messages for a kernel. Elements without a message
/// repeat the first message; their states are dropped.
fn advance<'a, const N: usize>(
    messages: impl Iterator<Item = (&'a mut Words, Run<'a>)>,
    kernel: impl FnOnce(&mut [Words; N], &[Run<'a>; N]),
) {
    let mut states: [Option<&mut Words>; N] = std::array::from_fn(|_| None);
    let (mut words, mut runs) = ([[0; 8]; N], [&[][..]; N]);
    let places = states.iter_mut().zip(&mut words).zip(&mut runs);
    for (((state, words), run), (known, blocks)) in places.zip(messages) {
        (*words, *run) = (*known, blocks);
        *state = Some(known);
    }
    let first = runs.first().copied().unwrap_or_default();
    let idle = states.iter().zip(&mut runs).filter(|(state, _)| state.is_none());
    idle.for_each(|(_, run)| *run = first);
    kernel(&mut words, &runs);
    for (state, words) in states.into_iter().zip(words) {
        if let Some(state) = state {
            *state = words;
        }
    }
}
