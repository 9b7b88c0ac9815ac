//! Finds in one pass over a text which of many patterns can match it at all.
//!
//! Most patterns contain some bytes that are in every text that they match: `*/.cache/*.tmp` needs
//! `/.cache/`. All those bytes are searched for at once, and only the patterns whose bytes were
//! found are tried. This is a filter: a candidate must still match.

use std::collections::{HashMap, HashSet};

use aho_corasick::AhoCorasick;

/// With fewer patterns it is quicker to try them all.
const WORTH_A_SEARCH: usize = 8;
/// Shorter literals are in too many texts.
const SHORTEST: usize = 2;

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
    /// For each pattern some literals, all of which are in every text that it matches; none if
    /// nothing is known. With `fold_case` they may be there in another case.
    pub(crate) fn new(literals: &[Vec<Vec<u8>>], fold_case: bool) -> Self {
        if literals.len() < WORTH_A_SEARCH {
            return Self { always: (0..literals.len()).collect(), ..Self::default() };
        }
        // A literal that many patterns share excludes little; of equally rare ones the longest is
        // found least often.
        let mut frequency: HashMap<&[u8], usize> = HashMap::new();
        for literal in literals.iter().flatten() {
            *frequency.entry(literal).or_default() += 1;
        }
        let mut always = Vec::new();
        let mut chosen: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (pattern, literals) in literals.iter().enumerate() {
            let usable = literals.iter().filter(|literal| literal.len() >= SHORTEST);
            let frequency = |literal: &[u8]| frequency.get(literal).copied().unwrap_or_default();
            match usable.min_by_key(|literal| (frequency(literal), std::cmp::Reverse(literal.len()))) {
                Some(literal) => chosen.entry(literal).or_default().push(pattern),
                None => always.push(pattern),
            }
        }
        let (words, by_literal): (Vec<&[u8]>, Vec<Vec<usize>>) = chosen.into_iter().unzip();
        match AhoCorasick::builder().ascii_case_insensitive(fold_case).build(words) {
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
mod tests {
    use super::*;

    /// Numbers of the candidates for a text.
    fn candidates(literals: &[&[&str]], fold_case: bool, text: &str) -> Vec<usize> {
        let literals: Vec<Vec<Vec<u8>>> =
            literals.iter().map(|of| of.iter().map(|literal| literal.as_bytes().to_vec()).collect()).collect();
        let mut asked = Vec::new();
        assert!(!Candidates::new(&literals, fold_case).any(text.as_bytes(), |pattern| {
            asked.push(pattern);
            false
        }));
        asked.sort_unstable();
        asked
    }

    const MANY: [&[&str]; 9] =
        [&["/home/", ".cache"], &["/home/", "abc"], &[], &["x"], &["bcd"], &["abcd"], &["zz"], &["yy"], &["/home/"]];

    #[test]
    fn only_patterns_whose_bytes_are_there_are_tried() {
        assert_eq!(candidates(&MANY, false, "/home/abcde"), [1, 2, 3, 4, 5, 8]);
        assert_eq!(candidates(&MANY, false, "/tmp/.cache"), [0, 2, 3]);
        assert_eq!(candidates(&MANY, false, ""), [2, 3]);
    }

    #[test]
    fn case_counts_unless_folded() {
        assert_eq!(candidates(&MANY, false, "/tmp/ZZ"), [2, 3]);
        assert_eq!(candidates(&MANY, true, "/tmp/ZZ"), [2, 3, 6]);
    }

    #[test]
    fn few_patterns_are_all_tried() {
        assert_eq!(candidates(&[&["ab"], &["cd"]], false, "x"), [0, 1]);
    }

    #[test]
    fn a_pattern_is_tried_once_however_often_its_bytes_are_there() {
        const NESTED: [&[&str]; 9] = [&["ab"], &["ba"], &["ab"], &["zz"], &["aba"], &["ab"], &["yy"], &["Ab"], &["ab"]];
        assert_eq!(candidates(&NESTED, false, &"ab".repeat(2000)), [0, 1, 2, 4, 5, 8]);
    }

    #[test]
    fn one_match_is_enough() {
        let literals = vec![vec![b"ab".to_vec()]; 10];
        let mut asked = 0;
        assert!(Candidates::new(&literals, false).any(b"xabx", |pattern| {
            asked += 1;
            pattern == 3
        }));
        assert_eq!(asked, 4);
    }
}
