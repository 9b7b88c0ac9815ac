//! Words that are nearly those that are known.

/// Longest word that is compared with others.
const MAX_WORD: usize = 64;

/// Whether a word is this one, or misspelt a little.
pub(crate) fn is_nearly(word: &[u8], known: &str) -> bool {
    closest(word, std::iter::once(known)).is_some()
}

/// The word with the fewest changes, if they are few.
pub(super) fn closest<'a>(word: &[u8], known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > MAX_WORD {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let allowed = (word.len() / 4).max(1);
    known
        .map(|candidate| (changes(&word, &candidate.to_ascii_lowercase().into_bytes()), candidate))
        .filter(|(changes, _)| *changes <= allowed)
        .min_by_key(|(changes, _)| *changes)
        .map(|(_, candidate)| candidate)
}

/// How many characters must be inserted, removed or replaced.
fn changes(left: &[u8], right: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, l) in left.iter().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        let mut next = vec![before];
        for (r, above) in right.iter().zip(row.iter().skip(1)) {
            let best = (diagonal + usize::from(l != r)).min(before + 1).min(above + 1);
            diagonal = *above;
            before = best;
            next.push(best);
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        assert_eq!(changes(b"pssword", b"password"), 1);
        assert_eq!(changes(b"", b"abc"), 3);
        assert_eq!(changes(b"kitten", b"sitting"), 3);
        assert_eq!(changes(b"same", b"same"), 0);
    }

    #[test]
    fn a_misspelled_word_gets_a_suggestion() {
        let names = || ["Password", "Address", "Monitor"].into_iter();
        assert_eq!(closest(b"Pssword", names()), Some("Password"));
        assert_eq!(closest(b"adress", names()), Some("Address"));
        assert_eq!(closest(b"Foo", names()), None);
        assert_eq!(closest(&[b'x'; 5000], names()), None);
    }
}
