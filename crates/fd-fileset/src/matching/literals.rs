//! Bytes that are in every text that an expression matches, for [`crate::matching::candidates`].
//!
//! Only the parts of a POSIX extended expression are read whose meaning is certain; anything else
//! ends a literal. A literal that is too short costs time only.

/// Runs of ASCII bytes that every match of `pattern` contains; none if nothing is certain. The
/// pattern is one that the C library has compiled.
pub(crate) fn of_regex(pattern: &[u8], ignore_case: bool) -> Vec<Vec<u8>> {
    let mut pattern = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
    // In some locales an ASCII byte can be the second half of a character.
    if !pattern.is_ascii() {
        return Vec::new();
    }
    let mut runs = vec![Vec::new()];
    while let Some((&byte, after)) = pattern.split_first() {
        pattern = after;
        let literal = match byte {
            // A match of one side need not contain what the other side needs.
            b'|' => return Vec::new(),
            b'(' => match after_group(after) {
                Some(rest) => {
                    pattern = rest;
                    None
                }
                None => return Vec::new(),
            },
            b'[' => match after_set(after) {
                Some(rest) => {
                    pattern = rest;
                    None
                }
                None => return Vec::new(),
            },
            b'\\' => {
                let Some((&quoted, rest)) = after.split_first() else { return Vec::new() };
                pattern = rest;
                // Escaped letters, digits and these four signs have a meaning of their own.
                (quoted.is_ascii_punctuation() && !b"<>`'".contains(&quoted)).then_some(quoted)
            }
            // The part before may be absent; with `+`, too, if another of them follows.
            b'*' | b'?' | b'+' | b'{' => {
                if let Some(run) = runs.last_mut() {
                    run.pop();
                }
                if byte == b'{' {
                    let Some(end) = after.iter().position(|byte| *byte == b'}') else { return Vec::new() };
                    pattern = after.get(end + 1..).unwrap_or_default();
                }
                None
            }
            b'.' | b'^' | b'$' | b')' | b'}' => None,
            other => Some(other),
        };
        match literal.filter(|byte| !ignore_case || !has_strange_case(*byte)) {
            Some(byte) => runs.last_mut().into_iter().for_each(|run| run.push(byte)),
            None => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// Letters that, in some locales, are the other case of a character beyond ASCII: long s, dotless
/// and dotted i, the Kelvin sign.
fn has_strange_case(byte: u8) -> bool {
    matches!(byte.to_ascii_lowercase(), b'i' | b'k' | b's')
}

/// What follows the `)` of a group whose `(` was read.
fn after_group(mut text: &[u8]) -> Option<&[u8]> {
    let mut depth = 1_usize;
    while depth > 0 {
        let (&byte, after) = text.split_first()?;
        text = match byte {
            b'\\' => after.get(1..)?,
            b'[' => after_set(after)?,
            _ => after,
        };
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
    }
    Some(text)
}

/// What follows the `]` of a set whose `[` was read.
fn after_set(mut text: &[u8]) -> Option<&[u8]> {
    text = text.strip_prefix(b"^").unwrap_or(text);
    // A bracket in the first place is a member.
    text = text.strip_prefix(b"]").unwrap_or(text);
    loop {
        let (&byte, after) = text.split_first()?;
        text = match (byte, after) {
            (b']', _) => return Some(after),
            (b'[', [sign @ (b':' | b'.' | b'='), inner @ ..]) => {
                let end = inner.windows(2).position(|pair| pair == [*sign, b']'])?;
                inner.get(end + 2..)?
            }
            _ => after,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(pattern: &str, ignore_case: bool) -> Vec<String> {
        of_regex(pattern.as_bytes(), ignore_case).into_iter().map(|run| String::from_utf8(run).unwrap()).collect()
    }

    #[test]
    fn runs_of_ordinary_characters_are_needed() {
        assert_eq!(literals(r"^/home/[a-z]+/\.cache/.*\.tmp$", false), ["/home/", "/.cache/", ".tmp"]);
        assert_eq!(literals("abc", false), ["abc"]);
        assert_eq!(literals("", false), [""; 0]);
    }

    #[test]
    fn what_may_be_absent_is_not_needed() {
        assert_eq!(literals("abc*d", false), ["ab", "d"]);
        assert_eq!(literals("abc?d", false), ["ab", "d"]);
        assert_eq!(literals("abc{0,2}d", false), ["ab", "d"]);
        assert_eq!(literals("abc+d", false), ["ab", "d"]);
        assert_eq!(literals("abc+?d", false), ["ab", "d"]);
        assert_eq!(literals("abc+{0,2}d", false), ["ab", "d"]);
        assert_eq!(literals(r"ab\.*d", false), ["ab", "d"]);
        assert_eq!(literals("ab(cd|ef)*gh", false), ["ab", "gh"]);
        assert_eq!(literals("abcd|efgh", false), [""; 0]);
    }

    #[test]
    fn sets_and_groups_end_at_their_closing_bracket() {
        assert_eq!(literals("ab[]x]cd", false), ["ab", "cd"]);
        assert_eq!(literals("ab[^]x]cd", false), ["ab", "cd"]);
        assert_eq!(literals("ab[[:alpha:]]cd", false), ["ab", "cd"]);
        assert_eq!(literals(r"ab[\]cd", false), ["ab", "cd"]);
        assert_eq!(literals(r"ab(x[)]y\)(z))cd", false), ["ab", "cd"]);
        assert_eq!(literals("ab)cd", false), ["ab", "cd"]);
        assert_eq!(literals("ab[cd", false), [""; 0]);
    }

    #[test]
    fn escapes_of_the_c_library_are_not_literals() {
        assert_eq!(literals(r"ab\bcd\<ef\>gh\wij\1kl", false), ["ab", "cd", "ef", "gh", "ij", "kl"]);
        assert_eq!(literals(r"a\\b\$c", false), [r"a\b$c"]);
        assert_eq!(literals("abc\0def", false), ["abc"]);
        assert_eq!(literals("abcé", false), [""; 0]);
    }

    #[test]
    fn letters_with_strange_case_end_a_run() {
        assert_eq!(literals("backup/disk", true), ["bac", "up/d"]);
        assert_eq!(literals("ABC", true), ["ABC"]);
    }
}
