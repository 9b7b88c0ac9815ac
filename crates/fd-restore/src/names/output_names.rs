//! Under which name a file is restored: `where`, `regexwhere` and the targets of links
//! (reference 05 §5).

use fd_records::FileType;

use crate::names::{RegexWhere, Undecided};

/// Where everything goes.
#[derive(Debug)]
pub enum OutputNames {
    /// To its original path.
    Original,
    /// Below this directory, which is not empty.
    Where(Vec<u8>),
    /// To the path that these expressions turn the saved one into.
    Regex(RegexWhere),
}

/// A name to restore to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OutputName {
    /// The name.
    pub(crate) text: Vec<u8>,
    /// The length of the part that the operator gave; the rest must not lead above it.
    pub(crate) given: usize,
}

impl OutputNames {
    /// Below a directory; an empty one is none.
    pub fn below(directory: Vec<u8>) -> Self {
        if directory.is_empty() { Self::Original } else { Self::Where(directory) }
    }

    /// The name for a file that was saved as `name`; `modified` is its recorded mtime.
    pub(crate) fn output(&self, name: &[u8], modified: i64) -> Result<OutputName, Undecided> {
        Ok(match self {
            Self::Original => OutputName { text: name.to_vec(), given: 0 },
            Self::Where(directory) => below(directory, name),
            Self::Regex(expressions) => OutputName { text: expressions.apply(name, modified)?, given: 0 },
        })
    }

    /// The target of a link that was saved with the target `link`. Hard links always follow their
    /// first name; symbolic ones keep their target but for `prelinks`.
    pub(crate) fn link_target(
        &self,
        file_type: FileType,
        link: &[u8],
        prelinks: bool,
        modified: i64,
    ) -> Result<OutputName, Undecided> {
        let is_first_name = file_type == FileType::HardLink;
        let is_changed = is_first_name || (prelinks && file_type == FileType::Symlink);
        Ok(match self {
            Self::Where(directory) if is_changed && (is_first_name || link.starts_with(b"/")) => below(directory, link),
            Self::Regex(expressions) if is_changed => OutputName { text: expressions.apply(link, modified)?, given: 0 },
            _ => OutputName { text: link.to_vec(), given: 0 },
        })
    }
}

fn below(directory: &[u8], name: &[u8]) -> OutputName {
    let mut text = directory.to_vec();
    if !directory.ends_with(b"/") && !name.starts_with(b"/") {
        text.push(b'/');
    }
    text.extend_from_slice(name);
    OutputName { text, given: directory.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(directory: &str, name: &str) -> String {
        let names = OutputNames::below(directory.as_bytes().to_vec());
        String::from_utf8(names.output(name.as_bytes(), 0).unwrap().text).unwrap()
    }

    fn target(directory: &str, file_type: FileType, link: &str, prelinks: bool) -> String {
        let names = OutputNames::below(directory.as_bytes().to_vec());
        String::from_utf8(names.link_target(file_type, link.as_bytes(), prelinks, 0).unwrap().text).unwrap()
    }

    #[test]
    fn where_is_put_before_the_name() {
        for (directory, name, expected) in [
            ("", "/a", "/a"),
            ("/x", "/a", "/x/a"),
            ("/x/", "/a", "/x//a"),
            ("/x", "a", "/x/a"),
            ("/x/", "a", "/x/a"),
            ("/x", "C:/f", "/x/C:/f"),
            ("/x", "/../a", "/x/../a"),
            ("/a b", "/c d", "/a b/c d"),
        ] {
            assert_eq!(output(directory, name), expected);
        }
    }

    #[test]
    fn targets_follow_the_type_and_prelinks() {
        for (file_type, link, prelinks, expected) in [
            (FileType::HardLink, "/a", false, "/x/a"),
            (FileType::HardLink, "a", false, "/x/a"),
            (FileType::Symlink, "/a", false, "/a"),
            (FileType::Symlink, "/a", true, "/x/a"),
            (FileType::Symlink, "a", true, "a"),
            (FileType::Symlink, "", true, ""),
        ] {
            assert_eq!(target("/x", file_type, link, prelinks), expected);
        }
        assert_eq!(target("", FileType::HardLink, "/a", false), "/a");
    }
}
