//! A set of wild-cards: plain names are looked up, and of the patterns only those are tried whose
//! fixed parts are in the text.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::matching::candidates::Candidates;
use crate::matching::wildcard::{Wildcard, WildcardFlags};

/// Many wild-cards, any of which may match.
#[derive(Default)]
pub(crate) struct PatternSet {
    /// Patterns that match exactly one text, ordered by [`by_length`]; in lower case if case is
    /// folded.
    names: Vec<Box<[u8]>>,
    patterns: Vec<Wildcard>,
    fold_case: bool,
    candidates: Candidates,
}

impl PatternSet {
    /// Compiles the patterns.
    pub(crate) fn new(patterns: impl IntoIterator<Item = Vec<u8>>, flags: WildcardFlags) -> Self {
        let mut set = Self { fold_case: flags.fold_case, ..Self::default() };
        for mut pattern in patterns {
            if Wildcard::is_plain(&pattern) {
                if flags.fold_case {
                    pattern.make_ascii_lowercase();
                }
                set.names.push(pattern.into_boxed_slice());
            } else {
                set.patterns.push(Wildcard::new(&pattern, flags));
            }
        }
        set.names.sort_unstable_by(|a, b| by_length(a, b));
        let literals: Vec<_> = set.patterns.iter().map(|pattern| pattern.literals().collect()).collect();
        set.candidates = Candidates::new(&literals, flags.fold_case);
        set
    }

    /// About the memory that a pattern is compiled to, in bytes.
    pub(crate) fn memory(pattern: &[u8]) -> usize {
        if Wildcard::is_plain(pattern) { 0 } else { Wildcard::memory(pattern) + Candidates::memory(pattern) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.patterns.is_empty()
    }

    /// Whether any pattern matches the whole text.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.is_name(text)
            || self.candidates.any(text, |at| self.patterns.get(at).is_some_and(|pattern| pattern.is_match(text)))
    }

    fn is_name(&self, text: &[u8]) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let text = if self.fold_case { Cow::Owned(text.to_ascii_lowercase()) } else { Cow::Borrowed(text) };
        self.names.binary_search_by(|name| by_length(name, &text)).is_ok()
    }
}

/// Length first: most comparisons end before the bytes, which share long prefixes.
fn by_length(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(patterns: &[&str], fold_case: bool) -> PatternSet {
        let flags = WildcardFlags { fold_case, path_name: false };
        PatternSet::new(patterns.iter().map(|p| p.as_bytes().to_vec()), flags)
    }

    #[test]
    fn names_and_patterns_are_both_found() {
        let set = set(&["/t/doc", "*.o", "/t/a", ""], false);
        for hit in ["/t/doc", "/t/a", "x.o", ""] {
            assert!(set.is_match(hit.as_bytes()), "{hit}");
        }
        for miss in ["/t/doc/", "/t/b", "x.c", "/t/DOC"] {
            assert!(!set.is_match(miss.as_bytes()), "{miss}");
        }
    }

    #[test]
    fn names_fold_case_when_asked() {
        let folded = set(&["/t/Doc", "/t/a"], true);
        assert!(folded.is_match(b"/T/dOC") && folded.is_match(b"/t/A") && !folded.is_match(b"/t/b"));
        assert!(folded.patterns.is_empty(), "a compiled name takes many times its bytes");
        assert!(!set(&["/t/Doc"], false).is_match(b"/T/dOC"));
    }

    #[test]
    fn a_set_matches_what_any_of_its_patterns_matches() {
        let words = ["a", "b", "ab", "ba", "*", "?", "[ab]", "[!a]", "/", "\\*"];
        let mut patterns = Vec::new();
        for first in words {
            for second in words {
                for third in words {
                    patterns.push(format!("{first}{second}{third}x"));
                }
            }
        }
        for (fold_case, path_name) in [(false, false), (true, false), (false, true), (true, true)] {
            let flags = WildcardFlags { fold_case, path_name };
            for ten in patterns.chunks(10) {
                let set = PatternSet::new(ten.iter().map(|p| p.as_bytes().to_vec()), flags);
                for text in
                    ["abax", "ABAX", "a/bx", "aa*x", "bbx", "babax", "/x", "x", "", "ababababx", "*ax", "ab/ba/x"]
                {
                    let one = ten.iter().any(|p| Wildcard::new(p.as_bytes(), flags).is_match(text.as_bytes()));
                    assert_eq!(set.is_match(text.as_bytes()), one, "{ten:?} {text} {flags:?}");
                }
            }
        }
    }

    #[test]
    fn the_empty_set_matches_nothing() {
        let set = set(&[], false);
        assert!(set.is_empty());
        assert!(!set.is_match(b""));
    }
}
