//! A path to restore to, cleaned of `.`, `..` and doubled slashes, and with its upper limit.

use std::ops::Range;

/// Longest path that is restored to. The kernel's own limit is 4096 bytes for a path in one call;
/// handles go further.
pub(crate) const LONGEST: usize = 64 * 1024;

/// Most components of a path.
const DEEPEST: usize = 4096;

/// Why a name can't be restored to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum PathError {
    /// A `..` leads out of the directory that everything is to be restored in.
    #[error("the name leads out of the restore directory")]
    Escapes,
    /// More than [`LONGEST`] bytes or [`DEEPEST`] components.
    #[error("the name is too long")]
    TooLong,
    /// There is a NUL in it.
    #[error("the name has a NUL in it")]
    Nul,
}

/// Where a path begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Base {
    /// The root directory.
    Root,
    /// The working directory of the process.
    Current,
}

/// A path below its base: components joined with single slashes, none of them `.`, `..` or empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct OutputPath {
    base: Base,
    path: Vec<u8>,
    /// The length of what the operator gave as `where`: no link below it leads out of that. `None`
    /// without one.
    floor: Option<usize>,
}

impl OutputPath {
    /// Cleans `text`. Its first `anchor` bytes are what the operator gave as `where`; no `..` after
    /// them leads above.
    pub(crate) fn new(text: &[u8], anchor: usize) -> Result<Self, PathError> {
        if text.contains(&0) {
            return Err(PathError::Nul);
        }
        if text.len() > LONGEST {
            return Err(PathError::TooLong);
        }
        let base = if text.starts_with(b"/") { Base::Root } else { Base::Current };
        let (given, recorded) = text.split_at_checked(anchor).unwrap_or((text, &[]));
        let mut path = Vec::with_capacity(text.len());
        // Above the root directory is the root directory; a path above the working directory is
        // refused.
        append(&mut path, given, 0, base == Base::Root)?;
        let limit = path.len();
        append(&mut path, recorded, limit, base == Base::Root && limit == 0)?;
        if path.split(|byte| *byte == b'/').count() > DEEPEST {
            return Err(PathError::TooLong);
        }
        // Nothing lies outside of the root directory.
        let floor = (anchor > 0 && !(base == Base::Root && limit == 0)).then_some(limit);
        Ok(Self { base, path, floor })
    }

    /// Where the path begins.
    pub(crate) const fn base(&self) -> Base {
        self.base
    }

    /// The length of the directory that everything is to be restored in; `None` if there is no
    /// such.
    pub(crate) const fn floor(&self) -> Option<usize> {
        self.floor
    }

    /// Whether it is `directory`, or a path below it.
    pub(crate) fn is_in(&self, directory: &Self) -> bool {
        self.base == directory.base && common_length(&self.path, &directory.path) == directory.path.len()
    }

    /// The components, joined. Empty: the base itself.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.path
    }

    /// The path of the directory that holds it, and its name there; `None` for the base itself.
    pub(crate) fn split(&self) -> Option<(Self, &[u8])> {
        let end = self.path.iter().rposition(|byte| *byte == b'/');
        let name = self.path.get(end.map_or(0, |slash| slash + 1)..).filter(|name| !name.is_empty())?;
        let parent = self.path.get(..end.unwrap_or(0)).unwrap_or_default();
        Some((Self { path: parent.to_vec(), ..*self }, name))
    }
}

/// Appends the components of `text`; `..` removes one, but nothing of the first `limit` bytes.
fn append(path: &mut Vec<u8>, text: &[u8], limit: usize, may_stop_at_limit: bool) -> Result<(), PathError> {
    for component in text.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." if path.len() > limit => {
                let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                path.truncate(end.max(limit));
            }
            b".." if may_stop_at_limit => {}
            b".." => return Err(PathError::Escapes),
            name => {
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(name);
            }
        }
    }
    Ok(())
}

/// The components of a cleaned path after its first `from` bytes, each as its place in the path.
pub(crate) fn components(path: &[u8], from: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = from;
    std::iter::from_fn(move || {
        let rest = path.get(at..)?;
        let start = at + usize::from(rest.starts_with(b"/"));
        let name = path.get(start..).filter(|name| !name.is_empty())?;
        let end = start + name.iter().position(|byte| *byte == b'/').unwrap_or(name.len());
        at = end;
        Some(start..end)
    })
}

/// The longest common beginning of two cleaned paths that ends with a whole component in both.
pub(crate) fn common_length(first: &[u8], second: &[u8]) -> usize {
    let same = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    let ends = |path: &[u8]| path.get(same).is_none_or(|byte| *byte == b'/');
    if ends(first) && ends(second) {
        return same;
    }
    first.get(..same).and_then(|common| common.iter().rposition(|byte| *byte == b'/')).unwrap_or(0)
}

#[cfg(test)]
mod tests;
