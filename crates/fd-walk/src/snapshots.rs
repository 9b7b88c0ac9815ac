//! Where the walk reads when file systems have a snapshot: names of the FileSet, and the paths
//! below a snapshot's mount point at which they are read (reference 07 §12.3).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rustix::io::Errno;

use crate::held::Held;
use crate::names::without_slashes;

/// The snapshots of a job, for its walk. The default has none.
///
/// Everything that is stored, matched, compared or shown has the path as it is named; only the
/// system calls have the path in the snapshot.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Snapshots {
    /// Where names of the FileSet are read.
    names: HashMap<Vec<u8>, ReadAt>,
    /// Names that are walked after a name of an Include, by its number. Another Include may have
    /// the same name, and other options.
    sub_mounts: HashMap<usize, HashMap<Vec<u8>, Vec<Vec<u8>>>>,
    /// Directories that hold snapshots, as they are named and as they are read.
    hidden: HashSet<Vec<u8>>,
}

impl Snapshots {
    /// Reads `name`, and what is below it, at `path`, the result of [`path_in_snapshot`] for this
    /// snapshot. `real` is the name without links on the way to it.
    pub fn read_at(&mut self, name: &[u8], real: &[u8], snapshot: &[u8], path: Vec<u8>) {
        self.names.insert(name.to_vec(), ReadAt::new(name, real, snapshot, path));
    }

    /// Walks `mount_point` after `name` of this Include, counted from 0, as if the FileSet had it
    /// there: in the snapshot of the file system that it is mounted on, it is an empty directory.
    pub fn add_sub_mount(&mut self, include: usize, name: &[u8], mount_point: &[u8]) {
        let of_include = self.sub_mounts.entry(include).or_default();
        of_include.entry(name.to_vec()).or_default().push(mount_point.to_vec());
    }

    /// Leaves a directory out, by its path as it is named or as it is read. Names of the FileSet
    /// stay.
    pub fn hide(&mut self, path: &[u8]) {
        self.hidden.insert(without_slashes(path).to_vec());
    }

    pub(crate) fn reader(&self, name: &[u8]) -> ReadAt {
        self.names.get(name).cloned().unwrap_or_default()
    }

    pub(crate) fn sub_mounts(&self, include: usize, name: &[u8]) -> &[Vec<u8>] {
        self.sub_mounts.get(&include).and_then(|of_include| of_include.get(name)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn hides(&self, path: &[u8], read_at: &ReadAt) -> bool {
        !self.hidden.is_empty() && (self.hidden.contains(path) || self.hidden.contains(&*read_at.of(path)))
    }
}

/// The path in a snapshot of `path`, which is on the file system that is mounted on `mount_point`.
/// The mount point itself gets a final slash: that of the snapshot may be a link. `None` if the
/// path is not there.
pub fn path_in_snapshot(path: &[u8], mount_point: &[u8], snapshot: &[u8]) -> Option<Vec<u8>> {
    let rest = path.strip_prefix(without_slashes(mount_point))?;
    let below = match rest.iter().position(|byte| *byte != b'/') {
        None => &[],
        Some(0) => return None,
        Some(slashes) => rest.get(slashes..).unwrap_or_default(),
    };
    Some([without_slashes(snapshot), b"/", below].concat())
}

/// Where the paths below one name of the FileSet are read; the default: where they are named.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct ReadAt(Option<Arc<Place>>);

#[derive(PartialEq, Eq, Debug)]
struct Place {
    /// Length of the name as it is written, without slashes at its end.
    written: usize,
    /// The name without links on the way to it.
    real: Vec<u8>,
    path: Vec<u8>,
    /// Length of the snapshot's mount point in the path, with its slash.
    mount_point: usize,
}

impl ReadAt {
    fn new(name: &[u8], real: &[u8], snapshot: &[u8], path: Vec<u8>) -> Self {
        let (written, mount_point) = (without_slashes(name).len(), without_slashes(snapshot).len() + 1);
        Self(Some(Arc::new(Place { written, real: real.to_vec(), path, mount_point })))
    }

    /// Whether that is where they are named.
    pub(crate) const fn is_the_name(&self) -> bool {
        self.0.is_none()
    }

    /// Holds the directory of this name of the FileSet. In a snapshot the way may lead over a link
    /// where there was none when the name was looked up.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn hold(&self, name: &[u8]) -> Result<Held, Errno> {
        let Some(place) = &self.0 else { return Held::open(name) };
        let (mount_point, below) = place.path.split_at_checked(place.mount_point).ok_or(Errno::NOENT)?;
        Held::open_below(mount_point, below, &place.real)
    }

    /// The path of `path`, which is the name or below it, for system calls.
    pub(crate) fn of<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        let Some(place) = &self.0 else { return Cow::Borrowed(path) };
        match path.get(place.written..) {
            Some([]) | None => Cow::Owned(place.path.clone()),
            Some(below) => Cow::Owned([without_slashes(&place.path), below].concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_rest_behind_one_slash() {
        let at = |path: &[u8], mount_point: &[u8]| {
            path_in_snapshot(path, mount_point, b"/snap/j/").map(|path| String::from_utf8(path).unwrap())
        };
        assert_eq!(at(b"/data/sub/f", b"/data").as_deref(), Some("/snap/j/sub/f"));
        assert_eq!(at(b"/data//sub", b"/data/").as_deref(), Some("/snap/j/sub"));
        assert_eq!(at(b"/data", b"/data").as_deref(), Some("/snap/j/"));
        assert_eq!(at(b"/data/", b"/data").as_deref(), Some("/snap/j/"));
        assert_eq!(at(b"/etc/f", b"/").as_deref(), Some("/snap/j/etc/f"));
        assert_eq!(at(b"/", b"/").as_deref(), Some("/snap/j/"));
        assert_eq!(at(b"/database", b"/data"), None);
        assert_eq!(at(b"/other", b"/data"), None);
    }

    #[test]
    fn what_is_below_a_name_is_read_below_its_path() {
        let mut snapshots = Snapshots::default();
        snapshots.read_at(b"/data//", b"/data", b"/snap", b"/snap/".to_vec());
        let reader = snapshots.reader(b"/data//");
        assert_eq!(&*reader.of(b"/data"), b"/snap/");
        assert_eq!(&*reader.of(b"/data/"), b"/snap/");
        assert_eq!(&*reader.of(b"/data/a/b"), b"/snap/a/b");
        assert_eq!(&*snapshots.reader(b"/data").of(b"/data/a"), b"/data/a");
    }

    #[test]
    fn a_directory_is_hidden_by_its_name_and_by_where_it_is_read() {
        let mut snapshots = Snapshots::default();
        snapshots.read_at(b"/link", b"/data", b"/snap", b"/snap/".to_vec());
        snapshots.hide(b"/data/.snapshots/");
        snapshots.hide(b"/snap/.snapshots");
        let here = ReadAt::default();
        assert!(snapshots.hides(b"/data/.snapshots", &here));
        assert!(snapshots.hides(b"/link/.snapshots", &snapshots.reader(b"/link")));
        assert!(!snapshots.hides(b"/data/.snapshots2", &here) && !snapshots.hides(b"/link/.snapshots", &here));
    }
}
