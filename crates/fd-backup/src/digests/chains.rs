//! Digests on their way in the lanes of vector registers.

use fd_crypto::multi_buffer::{Algorithm, Chain, FewLanes};
use fd_crypto::processor::Processor;
use fd_records::DigestKind;

/// What the lanes of vector registers call this kind, if they know it.
pub(crate) const fn algorithm(kind: DigestKind) -> Option<Algorithm> {
    match kind {
        DigestKind::Md5 => Some(Algorithm::Md5),
        DigestKind::Sha256 => Some(Algorithm::Sha256),
        _ => None,
    }
}

/// The digests of a file on their way, those that are wanted, in the order of [`Algorithm::ALL`].
pub(crate) type Chains = [Option<Chain>; 2];

/// The beginning of such digests, as far as the processor has lanes for them.
pub(crate) fn begin_chains(kinds: [Option<DigestKind>; 2], processor: Processor) -> Chains {
    let wanted = kinds.map(|kind| kind.and_then(algorithm));
    let lanes = |known: Algorithm| wanted.contains(&Some(known)).then(|| known.few_lanes(processor)).flatten();
    Algorithm::ALL.map(|known| lanes(known).map(FewLanes::begin))
}

/// Whether the processor has lanes for some digest of long files.
pub(crate) fn has_some(processor: Processor) -> bool {
    Algorithm::ALL.into_iter().any(|algorithm| algorithm.few_lanes(processor).is_some())
}
