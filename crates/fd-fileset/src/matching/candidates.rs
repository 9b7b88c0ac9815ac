//! Finds in one pass over a text which of many patterns can match it at all.
//!
//! Most patterns contain some bytes that are in every text that they match: `*/.cache/*.tmp` needs
//! `/.cache/`. All those bytes are searched for at once, and only the patterns whose bytes were
//! found are tried. This is a filter: a candidate must still match.

use std::collections::{HashMap, HashSet};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// With fewer patterns it is quicker to try them all.
const WORTH_A_SEARCH: usize = 8;
/// Shorter literals are in too many texts.
const SHORTEST: usize = 2;
/// Of a longer literal one part is looked for. The finder holds for each of its bytes every other
/// literal that ends there, of which there are as many as there are lengths.
const LONGEST: usize = 8;
/// Memory of the finder, while it is made, for a pattern: 1 KiB for the first byte, and 128 bytes
/// for each.
const COST_OF_A_PATTERN: usize = 2048;
/// Memory of the literals for a byte of a pattern, which may have one in each three.
const COST_OF_A_BYTE: usize = 32;

/// The patterns of a set as numbers from 0.
#[derive(Default)]
pub(crate) struct Candidates {
    /// Patterns that must always be tried.
    always: Vec<usize>,
    finder: Option<AhoCorasick>,
    /// For each literal of the finder, the patterns that need it.
    by_literal: Vec<Vec<usize>>,
}

impl Candidates {
    /// About the memory that a pattern takes here, in bytes.
    pub(crate) fn memory(pattern: &[u8]) -> usize {
        pattern.len().saturating_mul(COST_OF_A_BYTE) + COST_OF_A_PATTERN
    }

    /// For each pattern some literals, all of which are in every text that it matches; none if
    /// nothing is known. With `fold_case` they may be there in another case.
    pub(crate) fn new<'l>(literals: &'l [Vec<Vec<u8>>], fold_case: bool) -> Self {
        if literals.len() < WORTH_A_SEARCH {
            return Self { always: (0..literals.len()).collect(), ..Self::default() };
        }
        // A literal that many patterns share excludes little; of equally rare ones the longest is
        // found least often.
        let parts = |of: &'l [Vec<u8>]| of.iter().flat_map(|literal| literal.rchunks(LONGEST));
        let mut frequency: HashMap<&[u8], usize> = HashMap::new();
        for part in literals.iter().flat_map(|of| parts(of)) {
            *frequency.entry(part).or_default() += 1;
        }
        let mut always = Vec::new();
        let mut chosen: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (pattern, literals) in literals.iter().enumerate() {
            let usable = parts(literals).filter(|part| part.len() >= SHORTEST);
            let frequency = |part: &[u8]| frequency.get(part).copied().unwrap_or_default();
            match usable.min_by_key(|part| (frequency(part), std::cmp::Reverse(part.len()))) {
                Some(part) => chosen.entry(part).or_default().push(pattern),
                None => always.push(pattern),
            }
        }
        let (words, by_literal): (Vec<&[u8]>, Vec<Vec<usize>>) = chosen.into_iter().unzip();
        // The kind for few patterns takes up to 1 KiB for each byte. A prefilter finds not all.
        let finder = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .dense_depth(1)
            .prefilter(false)
            .ascii_case_insensitive(fold_case)
            .build(words);
        match finder {
            Ok(finder) => Self { always, finder: Some(finder), by_literal },
            Err(_) => Self { always: (0..literals.len()).collect(), ..Self::default() },
        }
    }

    /// Whether `matches` returns true for any pattern that can match `text`. It is called at most
    /// once for each: users can make names in which the same bytes are found again and again.
    pub(crate) fn any(&self, text: &[u8], mut matches: impl FnMut(usize) -> bool) -> bool {
        if self.always.iter().any(|pattern| matches(*pattern)) {
            return true;
        }
        let Some(finder) = &self.finder else { return false };
        // In most texts there is one literal at most, which needs no memory.
        let (mut first, mut others) = (None, HashSet::new());
        finder
            .find_overlapping_iter(text)
            .map(|at| at.pattern().as_usize())
            .filter(|literal| match first {
                None => {
                    first = Some(*literal);
                    true
                }
                Some(first) => first != *literal && others.insert(*literal),
            })
            .filter_map(|literal| self.by_literal.get(literal))
            .any(|patterns| patterns.iter().any(|pattern| matches(*pattern)))
    }
}

#[cfg(test)]
mod tests;
