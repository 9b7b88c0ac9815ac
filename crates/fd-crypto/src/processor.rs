//! The vector instructions that digests may use: those of the processor, or fewer in tests.

use std::fmt;
use std::sync::OnceLock;

/// Names the instructions that may be used, as `avx512,sha`. Unknown names are skipped. For tests.
const VARIABLE: &str = "FERROFD_CPU";

/// The vector instructions that may be used. All of them are instructions of this processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processor {
    avx2: bool,
    avx512: bool,
    sha: bool,
}

impl Processor {
    /// Those of this processor, as far as `FERROFD_CPU` names them. Both are read once.
    pub fn chosen() -> Self {
        static CHOSEN: OnceLock<Processor> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let found = Self::detected();
            std::env::var(VARIABLE).map_or(found, |names| found.masked(&names))
        })
    }

    /// Each set that makes a difference to digests, as far as [`Self::chosen`] has it. Without
    /// AVX-512, instructions for SHA-256 make none.
    pub fn variants() -> impl Iterator<Item = Self> {
        let chosen = Self::chosen();
        let names = ["baseline", "avx2", "avx512", "avx512,sha"];
        // With an instruction missing, it would be equal to one of the others.
        names
            .into_iter()
            .map(move |names| (names, chosen.masked(names)))
            .filter_map(|(names, variant)| (variant.to_string() == names).then_some(variant))
    }

    /// AVX2.
    pub(crate) const fn has_avx2(self) -> bool {
        self.avx2
    }

    /// AVX-512F and AVX-512VL.
    pub(crate) const fn has_avx512(self) -> bool {
        self.avx512
    }

    /// Instructions for SHA-256 of one message.
    pub(crate) const fn has_sha(self) -> bool {
        self.sha
    }

    fn detected() -> Self {
        #[cfg(target_arch = "x86_64")]
        let found = {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2");
            Self { avx2, avx512: avx2 && has!("avx512f") && has!("avx512vl"), sha: has!("sha") }
        };
        #[cfg(not(target_arch = "x86_64"))]
        let found = Self { avx2: false, avx512: false, sha: true };
        found
    }

    /// Only those that are named.
    fn masked(self, names: &str) -> Self {
        let has = |name| names.split(',').any(|named| named.trim() == name);
        let avx512 = self.avx512 && has("avx512");
        Self { avx2: avx512 || self.avx2 && has("avx2"), avx512, sha: self.sha && has("sha") }
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vectors = match (self.avx512, self.avx2) {
            (true, _) => "avx512",
            (false, true) => "avx2",
            (false, false) => "baseline",
        };
        text.write_str(vectors)?;
        if self.sha { text.write_str(",sha") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_takes_away_and_never_adds() {
        let all = Processor { avx2: true, avx512: true, sha: true };
        for (names, left) in [
            ("baseline", "baseline"),
            ("", "baseline"),
            ("avx-512", "baseline"),
            ("sha", "baseline,sha"),
            ("avx2", "avx2"),
            ("avx512", "avx512"),
            ("avx2, sha", "avx2,sha"),
            ("avx512,sha", "avx512,sha"),
        ] {
            assert_eq!(all.masked(names).to_string(), left, "{names}");
        }
        let none = all.masked("baseline");
        assert_eq!(none.masked("avx2,avx512,sha"), none);
        assert_eq!(all.masked("avx2").masked("avx512,sha"), none, "AVX-512 does not come back as AVX2");
    }

    #[test]
    fn the_variants_begin_with_none_and_end_with_all_vectors() {
        let variants: Vec<String> = Processor::variants().map(|variant| variant.to_string()).collect();
        assert_eq!(variants.first().map(String::as_str), Some("baseline"));
        let chosen = Processor::chosen();
        let most = chosen.to_string();
        let most = if chosen.has_avx512() { most.as_str() } else { most.trim_end_matches(",sha") };
        assert_eq!(variants.last().map(String::as_str), Some(most));
        assert!(!chosen.has_avx512() || variants.iter().any(|name| name == "avx512"), "{variants:?}");
    }
}
