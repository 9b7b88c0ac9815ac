//! The choice of kernels for a processor, and the calls of kernels.

use super::algorithm::{Algorithm, NARROW, Run, WIDE, Words};
#[cfg(target_arch = "x86_64")]
use super::{x8, x16_avx2};
use crate::processor::Processor;

/// The kernels for an algorithm, at least one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernels {
    /// For many messages.
    pub(super) wide: Option<Avx2>,
    /// For few messages, or where there is no wide kernel.
    pub(super) narrow: Option<Avx512>,
}

/// The wide kernel, which computes MD5 with AVX2. There is a value only on processors with AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) enum Avx2 {
    #[cfg(target_arch = "x86_64")]
    Found,
}

/// The narrow kernel, with AVX-512F and AVX-512VL. There is a value only on processors with both.
#[derive(Clone, Copy, Debug)]
pub(super) enum Avx512 {
    #[cfg(target_arch = "x86_64")]
    Found,
}

impl Kernels {
    /// The kernels for this algorithm; `None` if OpenSSL is faster. OpenSSL is faster for SHA-256
    /// on processors with instructions for it.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn new(algorithm: Algorithm, processor: Processor) -> Option<Self> {
        let (wide, narrow) = match algorithm {
            Algorithm::Md5 => (processor.has_avx2(), processor.has_avx512()),
            Algorithm::Sha256 => (false, processor.has_avx512() && !processor.has_sha()),
        };
        let kernels = Self { wide: wide.then_some(Avx2::Found), narrow: narrow.then_some(Avx512::Found) };
        (wide || narrow).then_some(kernels)
    }

    /// There are no kernels for this family of processors.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn new(_: Algorithm, _: Processor) -> Option<Self> {
        None
    }

    /// The number of messages that they take at a time.
    pub(super) const fn width(self) -> usize {
        if self.wide.is_some() { WIDE } else { NARROW }
    }

    /// Takes the blocks of these messages, which are `count`, at most [`Self::width`]: as many
    /// blocks as the shortest run has.
    pub(super) fn advance<'a>(
        self,
        algorithm: Algorithm,
        count: usize,
        messages: impl Iterator<Item = (&'a mut Words, Run<'a>)>,
    ) {
        match (self.wide, self.narrow) {
            (_, Some(narrow)) if count <= NARROW => narrow.advance(algorithm, messages),
            (Some(wide), _) => wide.advance(messages),
            (None, _) => {}
        }
    }
}

impl Avx2 {
    /// Takes the blocks of up to [`WIDE`] messages of MD5, as many as the shortest run has.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there are no kernels"))]
    pub(super) fn advance<'a>(self, messages: impl Iterator<Item = (&'a mut Words, Run<'a>)>) {
        advance::<WIDE>(messages, |words, runs| match self {
            #[cfg(target_arch = "x86_64")]
            Self::Found => {
                let word = |number| words.each_ref().map(|words| words.get(number).copied().unwrap_or(0));
                let mut state = std::array::from_fn(word);
                // SAFETY: there is this value only where the processor has AVX2.
                unsafe { x16_avx2::advance(&mut state, runs) }
                *words = std::array::from_fn(|message| state.map(|words| words.get(message).copied().unwrap_or(0)));
            }
        });
    }
}

impl Avx512 {
    /// Takes the blocks of up to [`NARROW`] messages, as many as the shortest run has.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there are no kernels"))]
    pub(super) fn advance<'a>(self, algorithm: Algorithm, messages: impl Iterator<Item = (&'a mut Words, Run<'a>)>) {
        advance::<NARROW>(messages, |words, runs| match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: there is this value only where the processor has AVX-512F and AVX-512VL.
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
