//! Files with several names, whose first one is that which the file system gives first.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Names that stand for each other in what a walk leaves: each file's names are called as if they
/// were met in the order of the alphabet.
#[derive(Debug, Clone, Default)]
pub struct HardLinks(BTreeMap<String, String>);

impl HardLinks {
    /// Notes the files below a tree that have several names, in the order in which a walk has met
    /// them. What was noted earlier keeps its name.
    #[must_use]
    pub fn and(mut self, tree: &Path, met: &[PathBuf]) -> Self {
        let mut same: BTreeMap<(u64, u64), Vec<String>> = BTreeMap::new();
        for path in met {
            let Ok(status) = path.symlink_metadata() else { continue };
            let Ok(name) = path.strip_prefix(tree) else { continue };
            if status.nlink() > 1 && !status.is_dir() {
                same.entry((status.dev(), status.ino())).or_default().push(format!("/{}", name.display()));
            }
        }
        for names in same.into_values() {
            let mut sorted = names.clone();
            sorted.sort();
            sorted.dedup();
            let new: Vec<_> = names.into_iter().zip(sorted).filter(|(name, _)| !self.0.contains_key(name)).collect();
            self.0.extend(new);
        }
        self
    }

    /// A line with the names replaced.
    pub fn rename(&self, line: &str) -> String {
        let mut text = String::new();
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            let ends = |behind: &str| behind.chars().next().is_none_or(|next| "/: \"".contains(next));
            let found = self.0.iter().find(|(name, _)| rest.strip_prefix(name.as_str()).is_some_and(ends));
            let (old, new) = match found {
                Some((old, new)) => (old.as_str(), new.as_str()),
                None => (rest.split_at(next.len_utf8()).0, rest.split_at(next.len_utf8()).0),
            };
            text.push_str(new);
            rest = rest.get(old.len()..).unwrap_or_default();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_replaced() {
        let names = [("/d/b", "/a"), ("/a", "/d/b")].map(|(old, new)| (old.to_owned(), new.to_owned()));
        let links = HardLinks(BTreeMap::from(names));
        assert_eq!(links.rename("@/d/b: link to @/a"), "@/a: link to @/d/b");
        assert_eq!(links.rename("@/d/bc and @/d/b/c"), "@/d/bc and @/a/c");
    }
}
