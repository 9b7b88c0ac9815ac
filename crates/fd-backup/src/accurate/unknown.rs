//! What the walk could not examine: what lies there may be gone, or not.

use std::collections::BTreeMap;
use std::ops::Bound;

use fd_fileset::strip_path;
use fd_walk::without_slashes;

/// How many paths of this kind are remembered.
const MOST_UNKNOWN: usize = 1000;

/// Paths that could not be examined, as names of the list. None is or lies below another one.
#[derive(Default)]
pub(super) struct Unknown {
    /// With a slash at the end, so that what lies below a path comes next to it. `true`: a
    /// directory that stands for paths in it, which were too many, or have lost their components.
    paths: BTreeMap<Vec<u8>, bool>,
}

/// A path, or name of the list, with one slash at its end.
fn with_slash(name: &[u8]) -> Vec<u8> {
    [without_slashes(name), b"/"].concat()
}

/// The deepest directory that holds both, with a slash at its end; empty if none does.
fn common_directory<'p>(one: &'p [u8], other: &[u8]) -> &'p [u8] {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let common = one.get(..same).unwrap_or_default();
    let end = common.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    common.get(..end).unwrap_or_default()
}

fn depth(directory: &[u8]) -> usize {
    directory.split(|byte| *byte == b'/').count()
}

impl Unknown {
    /// Adds a path. The list may have it, and what lies below it, without its first `stripped`
    /// components.
    pub(super) fn add(&mut self, path: &[u8], stripped: u32) {
        let path = with_slash(path);
        // Of a directory that is too short itself, what lies below it is stripped.
        if let Some(path) = strip_path(&path, stripped) {
            let path = with_slash(&path);
            let is_all = path == b"/";
            self.insert(path, is_all);
        }
        self.insert(path, false);
        while self.paths.len() > MOST_UNKNOWN {
            self.fold();
        }
    }

    /// Adds everything. `false` if that was added before.
    pub(super) fn add_all(&mut self) -> bool {
        let is_new = !self.holds(b"");
        self.insert(Vec::new(), false);
        is_new
    }

    fn insert(&mut self, path: Vec<u8>, is_folded: bool) {
        if self.holds(&path) {
            return;
        }
        let below = self.paths.range::<[u8], _>((Bound::Included(&*path), Bound::Unbounded));
        let below: Vec<_> =
            below.map(|(known, _)| known).take_while(|known| known.starts_with(&path)).cloned().collect();
        for known in below {
            self.paths.remove(&known);
        }
        self.paths.insert(path, is_folded);
    }

    /// Puts a directory in the place of the paths in it: the deepest one that has several.
    fn fold(&mut self) {
        let pairs = self.paths.keys().zip(self.paths.keys().skip(1));
        let directories = pairs.map(|(one, other)| common_directory(one, other));
        if let Some(deepest) = directories.max_by_key(|directory| depth(directory)).map(<[u8]>::to_vec) {
            self.insert(deepest, true);
        }
    }

    /// Whether the file of this name in the list is or lies below one of them.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        !self.paths.is_empty() && self.holds(&with_slash(name))
    }

    fn holds(&self, path: &[u8]) -> bool {
        let before = self.paths.range::<[u8], _>((Bound::Unbounded, Bound::Included(path))).next_back();
        before.is_some_and(|(known, _)| path.starts_with(known))
    }

    /// The directories that stand for paths in them.
    pub(super) fn folded(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.iter().filter(|(_, is_folded)| **is_folded).map(|(path, _)| &**path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(paths: impl IntoIterator<Item = String>) -> (Unknown, Vec<String>) {
        let mut unknown = Unknown::default();
        for path in paths {
            unknown.add(path.as_bytes(), 0);
        }
        assert!(unknown.paths.len() <= MOST_UNKNOWN);
        let folded = unknown.folded().map(|path| String::from_utf8(path.to_vec()).unwrap()).collect();
        (unknown, folded)
    }

    #[test]
    fn a_path_covers_what_lies_below_it() {
        let (unknown, folded) = folded(["/a/b/c", "/a/b.c", "/a/b", "/a/b/d/e", "/x/", "/y//"].map(str::to_owned));
        assert_eq!(unknown.paths.len(), 4, "what lies below a path is not kept");
        assert!(folded.is_empty());
        for name in ["/a/b", "/a/b/", "/a/b/c", "/a/b/new", "/a/b.c", "/x", "/x/y", "/y", "/y/z"] {
            assert!(unknown.has(name.as_bytes()), "{name}");
        }
        for name in ["/a", "/a/", "/a/b.", "/a/b-c", "/a/bc", "/", "/xy"] {
            assert!(!unknown.has(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_lies_below_a_stripped_path_is_covered_however_short_that_is() {
        for path in ["/mnt/nas", "/mnt/nas/", "/mnt/nas//"] {
            for (stripped, name) in [(0, "/mnt/nas/x"), (1, "/nas/x"), (2, "/x"), (2, "/mnt/nas/"), (3, "/mnt/nas/x")] {
                let mut unknown = Unknown::default();
                unknown.add(path.as_bytes(), stripped);
                assert!(unknown.has(name.as_bytes()), "{path} without {stripped}: {name}");
            }
        }
    }

    #[test]
    fn too_many_paths_are_folded_where_they_are_and_nowhere_else() {
        let of_users = (0..500).map(|user| format!("/home/{user}/.gvfs"));
        let of_one = (0..2000).map(|number| format!("/home/m/deep/d/{number}"));
        let (unknown, folded) = folded(of_users.chain(of_one));
        assert_eq!(folded, ["/home/m/deep/d/"]);
        assert!(unknown.has(b"/home/7/.gvfs/x") && unknown.has(b"/home/m/deep/d/x"));
        assert!(!unknown.has(b"/home/7/x") && !unknown.has(b"/home/m/deep/x"));
    }

    #[test]
    fn only_paths_without_a_common_directory_make_everything_unknown() {
        assert_eq!(folded((0..2000).map(|number| format!("/{number}/x"))).1, ["/"]);
        let (unknown, folded) = folded((0..2000).map(|number| format!("{number}/x")));
        assert_eq!(folded, [""]);
        assert!(unknown.has(b"/etc/x"));
    }
}
