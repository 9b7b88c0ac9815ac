//! The expressions of `regexwhere`, which change names one after the other (reference 05 §5.3).
//!
//! `<sep>regex<sep>replacement<sep>[flags][,<sep>…]`, with the stock daemon's peculiar idea of
//! escapes.

use fd_os::regex::{Captures, RegexOptions};

use crate::tree::LONGEST;

/// What may separate the parts of an expression.
const SEPARATORS: &[u8] = b"!:;|,&%=~/<#";

/// A compiled regular expression: the first match in a name, and its groups. If that can't be
/// decided, the file must not be restored under the name that it has so far.
pub type NameRegex = Box<dyn Fn(&[u8]) -> Result<Option<Captures>, Undecided> + Send + Sync>;

/// Whether an expression matches a name could not be decided, which has been reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("whether an expression matches a name could not be decided")]
pub struct Undecided;

/// Compiles an expression; `None` for one that can't be used.
pub type CompileName<'c> = dyn FnMut(&[u8], RegexOptions) -> Option<NameRegex> + 'c;

/// Expressions, at least one.
#[derive(Debug)]
pub struct RegexWhere {
    expressions: Vec<Expression>,
}

struct Expression {
    regex: NameRegex,
    replacement: Vec<Piece>,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expression").field("replacement", &self.replacement).finish_non_exhaustive()
    }
}

/// A piece of a replacement.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(Vec<u8>),
    /// What this group matched, 0 to 9.
    Group(usize),
    /// The file's mtime in decimal seconds.
    Modified,
}

impl RegexWhere {
    /// Reads a list of expressions. One that can't be used ends the list silently, as in the
    /// reference; `None` if not even the first one can.
    pub fn parse(text: &[u8], compile: &mut CompileName<'_>) -> Option<Self> {
        let mut expressions = Vec::new();
        let mut rest = text;
        while let Some((expression, behind)) = Expression::take(rest, compile) {
            expressions.push(expression);
            rest = behind;
        }
        (!expressions.is_empty()).then_some(Self { expressions })
    }

    /// The name that a file saved as `name` gets; `modified` is its recorded mtime. One that gets
    /// longer than any path is the beginning of its name, and still too long.
    pub(crate) fn apply(&self, name: &[u8], modified: i64) -> Result<Vec<u8>, Undecided> {
        let mut current = name.to_vec();
        for expression in &self.expressions {
            if let Some(groups) = (expression.regex)(&current)?
                && let Some(changed) = expression.replace(&groups, &current, modified)
            {
                current = changed;
                if current.len() > LONGEST {
                    break;
                }
            }
        }
        Ok(current)
    }
}

impl Expression {
    /// Takes one expression off the front.
    fn take<'t>(text: &'t [u8], compile: &mut CompileName<'_>) -> Option<(Self, &'t [u8])> {
        let (separator, rest) = text.split_first()?;
        if !SEPARATORS.contains(separator) {
            return None;
        }
        let (pattern, rest) = take_part(rest, *separator)?;
        let (replacement, mut rest) = take_part(rest, *separator)?;
        let mut ignore_case = false;
        while let Some((flag, behind)) = rest.split_first() {
            rest = behind;
            match flag {
                b'i' => ignore_case = true,
                b'g' => {}
                other if other == separator => {}
                // Any other character, a comma as a rule: the next expression begins after it.
                _ => break,
            }
        }
        let regex = compile(&pattern, RegexOptions { ignore_case, newline: true })?;
        Some((Self { regex, replacement: pieces(&replacement) }, rest))
    }

    /// The name with this match replaced, up to the piece with which it is too long.
    fn replace(&self, groups: &Captures, name: &[u8], modified: i64) -> Option<Vec<u8>> {
        let whole = groups.first()?.clone()?;
        let mut changed = name.get(..whole.start)?.to_vec();
        for piece in &self.replacement {
            if changed.len() > LONGEST {
                return Some(changed);
            }
            match piece {
                Piece::Text(text) => changed.extend_from_slice(text),
                Piece::Group(group) => {
                    let place = groups.get(*group).cloned().flatten();
                    changed.extend_from_slice(place.and_then(|place| name.get(place)).unwrap_or_default());
                }
                Piece::Modified => changed.extend_from_slice(modified.to_string().as_bytes()),
            }
        }
        changed.extend_from_slice(name.get(whole.end..)?);
        Some(changed)
    }
}

/// Takes a part and the separator after it. An escaped separator belongs to the part and still ends
/// it, whatever is before its backslash.
fn take_part(text: &[u8], separator: u8) -> Option<(Vec<u8>, &[u8])> {
    let mut part = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [b'\\', next, behind @ ..] if *next == separator => {
                part.push(separator);
                return Some((part, behind));
            }
            [byte, behind @ ..] => {
                rest = behind;
                if *byte == separator {
                    return Some((part, rest));
                }
                part.push(*byte);
            }
            [] => return None,
        }
    }
}

/// The pieces of a replacement: `$0` to `$9`, `\0` to `\9`, `$m`, and text.
fn pieces(replacement: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = replacement;
    loop {
        let (piece, behind) = match rest {
            [b'$' | b'\\', digit @ b'0'..=b'9', behind @ ..] => (Piece::Group(usize::from(digit - b'0')), behind),
            [b'$', b'm', behind @ ..] => (Piece::Modified, behind),
            [byte, behind @ ..] => {
                rest = behind;
                match pieces.last_mut() {
                    Some(Piece::Text(text)) => text.push(*byte),
                    _ => pieces.push(Piece::Text(vec![*byte])),
                }
                continue;
            }
            [] => return pieces,
        };
        pieces.push(piece);
        rest = behind;
    }
}

#[cfg(test)]
mod tests;
