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

/// Compiles an expression; `None` for one that can't be used. An error says why that can't be told.
pub type CompileName<'c> = dyn FnMut(&[u8], RegexOptions) -> Result<Option<NameRegex>, Vec<u8>> + 'c;

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

/// An expression in its text, and what is behind it.
struct Written<'t> {
    pattern: Vec<u8>,
    options: RegexOptions,
    replacement: Vec<u8>,
    behind: &'t [u8],
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
    ///
    /// # Errors
    /// What `compile` says. Without an expression, files would be restored to other places.
    pub fn parse(text: &[u8], compile: &mut CompileName<'_>) -> Result<Option<Self>, Vec<u8>> {
        let mut expressions = Vec::new();
        let mut rest = text;
        while let Some(Written { pattern, options, replacement, behind }) = Written::first(rest) {
            let Some(regex) = compile(&pattern, options)? else { break };
            expressions.push(Expression { regex, replacement: pieces(&replacement) });
            rest = behind;
        }
        Ok((!expressions.is_empty()).then_some(Self { expressions }))
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

impl<'t> Written<'t> {
    /// The one at the front.
    fn first(text: &'t [u8]) -> Option<Self> {
        let (separator, rest) = text.split_first()?;
        if !SEPARATORS.contains(separator) {
            return None;
        }
        let (pattern, rest) = take_part(rest, *separator)?;
        let (replacement, mut behind) = take_part(rest, *separator)?;
        let mut options = RegexOptions { ignore_case: false, newline: true };
        while let Some((flag, next)) = behind.split_first() {
            behind = next;
            match flag {
                b'i' => options.ignore_case = true,
                b'g' => {}
                other if other == separator => {}
                // Any other character, a comma as a rule: the next expression begins after it.
                _ => break,
            }
        }
        Some(Self { pattern, options, replacement, behind })
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
