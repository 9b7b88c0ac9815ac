//! Which file systems a FileSet needs, and where its names are read when some of them have a
//! snapshot (reference 07 §12.2, §12.3). No system call, no helper.

use std::collections::{BTreeMap, HashSet};

use fd_fileset::{EffectiveOptions, FileSet, Flags, Include};
use fd_walk::{Snapshots, path_in_snapshot, without_slashes};

use crate::job::snapshots::mounts::{Mount, MountTable};

/// A name of the FileSet, or a mount below one, with the file system that it is on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Region {
    /// The number of the Include that has the name.
    pub(super) include: usize,
    /// The name of the FileSet that it is or is below.
    pub(super) name: Vec<u8>,
    /// Its path, beginning with the name as it is written.
    pub(super) path: Vec<u8>,
    /// The same without links.
    pub(super) real: Vec<u8>,
    /// Its mount.
    pub(super) mount: usize,
    /// Of a name: its inode number before the snapshots were made.
    pub(super) inode: Option<u64>,
    /// For a mount below a name: the region around it.
    pub(super) around: Option<usize>,
    /// For such a mount: its Include has it as a name, too.
    pub(super) is_listed: bool,
}

/// A name of the FileSet on this host.
#[derive(Clone, Debug)]
pub(super) struct Top<'f> {
    /// Its block, and the number of that.
    pub(super) include: &'f Include,
    pub(super) number: usize,
    /// As it is written.
    pub(super) name: &'f [u8],
    /// Without links on the way to it.
    pub(super) real: Vec<u8>,
    /// `st_dev`.
    pub(super) device_number: u64,
    /// `st_ino`.
    pub(super) inode: u64,
    /// Whether something can be below it.
    pub(super) is_directory: bool,
}

/// What is asked about directories of this host.
pub(super) struct Questions<'q> {
    /// Whether a directory has the file of `ExcludeDirContaining`.
    pub(super) is_marked: &'q dyn Fn(&[u8], &[u8]) -> bool,
    /// Whether `FsType` leaves out the file system that is at a path.
    pub(super) is_left_out: &'q dyn Fn(&EffectiveOptions, &[u8]) -> bool,
}

/// The snapshots by the device numbers of their file systems.
pub(super) type Mounted = BTreeMap<u64, MountedSnapshot>;

/// A snapshot that can be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MountedSnapshot {
    /// Where it is mounted.
    pub(super) point: Vec<u8>,
    /// Whether what is in it has the inode numbers that it has in the file system.
    pub(super) keeps_inodes: bool,
}

/// The regions of a FileSet: its names, each followed by the mounts below it that a walk over the
/// file systems would enter. What `FsType` leaves out is none of them: the walk does not enter it,
/// and what is around it has its mount point.
pub(super) fn regions(
    fileset: &FileSet,
    tops: &[Top<'_>],
    table: &MountTable,
    questions: &Questions<'_>,
) -> Vec<Region> {
    let is_read = |top: &&Top<'_>| !(questions.is_left_out)(top.include.top_level(), top.name);
    let tops: Vec<&Top<'_>> = tops.iter().filter(is_read).collect();
    // Another Include may have other options, and leave out what this one has.
    let listed: HashSet<(usize, &[u8])> = tops.iter().map(|top| (top.number, without_slashes(top.name))).collect();
    // What is around a mount comes before it.
    let mut by_depth: Vec<usize> = (0..table.mounts().len()).collect();
    by_depth.sort_by_key(|at| table.get(*at).map_or(0, |mount| mount.point.len()));
    let mut regions: Vec<Region> = Vec::new();
    for top in tops {
        let holding = table.holding(&top.real);
        let Some(mount) = mount_of(table, holding, top) else { continue };
        let own = regions.len();
        let (name, path, real) = (top.name.to_vec(), top.name.to_vec(), top.real.clone());
        let (include, inode) = (top.number, Some(top.inode));
        regions.push(Region { include, name, path, real, mount, inode, around: None, is_listed: false });
        if !top.is_directory {
            continue;
        }
        for &at in &by_depth {
            let Some(below) = table.get(at) else { continue };
            let Some(rest) = rest_below(&below.point, &top.real) else { continue };
            let outer = table.around(at);
            let is_around = |region: &Region| outer == Some(region.mount);
            let around = match regions.iter().skip(own + 1).position(is_around) {
                Some(later) => own + 1 + later,
                None if outer == holding => own,
                None => continue,
            };
            // That one is walked by itself, with what is below it.
            if regions.get(around).is_some_and(|around| around.is_listed) {
                continue;
            }
            let outer = outer.and_then(|at| table.get(at));
            let crosses = outer.is_none_or(|outer| outer.device_number != below.device_number);
            let path = [without_slashes(top.name), rest].concat();
            if is_walked(fileset, top.include, &path, without_slashes(top.name).len(), crosses, questions) {
                let is_listed = listed.contains(&(top.number, path.as_slice()));
                let (name, real) = (top.name.to_vec(), below.point.clone());
                let (inode, around) = (None, Some(around));
                regions.push(Region { include, name, path, real, mount: at, inode, around, is_listed });
            }
        }
    }
    regions
}

/// The mount of a name: where it lies, if its device number says so; else any of its file system.
fn mount_of(table: &MountTable, holding: Option<usize>, top: &Top<'_>) -> Option<usize> {
    let is_its = |at: &usize| table.get(*at).is_some_and(|mount| mount.device_number == top.device_number);
    holding.filter(is_its).or_else(|| table.main(top.device_number))
}

/// The names on file systems that are not known: in a subvolume that the helper program has not
/// named, below this mount.
pub(super) fn strays<'s>(tops: &'s [Top<'_>], table: &'s MountTable) -> impl Iterator<Item = (&'s [u8], &'s Mount)> {
    let stray = |top: &'s Top<'_>| {
        let holding = table.holding(&top.real);
        let around = holding.and_then(|at| table.get(at)).filter(|mount| mount.has_subvolumes())?;
        mount_of(table, holding, top).is_none().then_some((top.name, around))
    };
    tops.iter().filter_map(stray)
}

/// Those of these names whose file system could have a snapshot; it is asked for once.
pub(super) fn without_snapshot(
    strays: &[(Vec<u8>, Mount)],
    mut has_support: impl FnMut(&Mount) -> bool,
) -> impl Iterator<Item = &(Vec<u8>, Mount)> {
    let mut known = BTreeMap::new();
    strays.iter().filter(move |(_, mount)| *known.entry(mount.device_number).or_insert_with(|| has_support(mount)))
}

/// The file systems of the regions, in the stock daemon's order: that of the names, and below each
/// that of the mounts.
pub(super) fn devices(regions: &[Region], table: &MountTable) -> Vec<u64> {
    let (mut found, mut met) = (Vec::new(), HashSet::new());
    let mut rest = regions;
    while let Some(first) = rest.first() {
        let end = rest.iter().skip(1).position(|region| region.around.is_none()).map_or(rest.len(), |at| at + 1);
        let (own, others) = rest.split_at(end);
        let mut below: Vec<usize> = own.iter().skip(1).map(|region| region.mount).collect();
        below.sort_unstable();
        for mount in std::iter::once(first.mount).chain(below).filter_map(|at| table.get(at)) {
            if met.insert(mount.device_number) && !mount.is_skipped() {
                found.push(mount.device_number);
            }
        }
        rest = others;
    }
    found
}

/// Whether a walk that begins at a name enters `path`, and all directories on the way.
fn is_walked(
    fileset: &FileSet,
    include: &Include,
    path: &[u8],
    top_length: usize,
    crosses: bool,
    questions: &Questions<'_>,
) -> bool {
    let ends = path.iter().enumerate().skip(top_length + 1).filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in ends.chain([path.len()]) {
        let directory = path.get(..end).unwrap_or_default();
        let verdict = fileset.judge(include, directory, true);
        let is_last = end == path.len();
        let has = |flag| verdict.options.has(flag);
        if !verdict.accepted || has(Flags::NO_RECURSION) || is_last && crosses && !has(Flags::MULTI_FS) {
            return false;
        }
        if is_last && crosses && (questions.is_left_out)(verdict.options, directory) {
            return false;
        }
        if include.ignore_dir().is_some_and(|marker| (questions.is_marked)(directory, marker)) {
            return false;
        }
    }
    true
}

/// What the walk has to know. `is_shown` says whether a region is at this path of its snapshot, as
/// its inode numbers show. `without_place` is told each name that its file system's snapshot
/// doesn't show, and that is read as it is now.
pub(super) fn readings(
    regions: &[Region],
    table: &MountTable,
    mounted: &Mounted,
    is_shown: &dyn Fn(&Region, &[u8]) -> bool,
    mut without_place: impl FnMut(&[u8], &Mount),
) -> Snapshots {
    let mut snapshots = Snapshots::default();
    let mut is_snapshot: Vec<bool> = Vec::with_capacity(regions.len());
    let mut below: Vec<&Region> = Vec::new();
    for region in regions {
        let found = table.get(region.mount).and_then(|mount| {
            let snapshot = mounted.get(&mount.device_number)?;
            let main = table.get(table.main(mount.device_number)?)?;
            let path = place(region, mount, main, &snapshot.point);
            let path = path.filter(|path| !snapshot.keeps_inodes || is_shown(region, path));
            if path.is_none() {
                without_place(&region.path, main);
            }
            Some((&snapshot.point, path?))
        });
        let around = match region.around {
            Some(at) => is_snapshot.get(at).copied(),
            None => is_mount_in_snapshot(region, table, mounted).then_some(true),
        };
        // It is walked by itself. A walk over the snapshot around it would save the empty directory
        // there under its name; one over the file system around it would read the file system.
        if around == Some(true) || around == Some(false) && found.is_some() {
            snapshots.hide(&region.path);
            if region.around.is_some() && !region.is_listed {
                below.push(region);
            }
        }
        is_snapshot.push(found.is_some());
        if let Some((snapshot, path)) = found {
            snapshots.read_at(&region.path, &region.real, snapshot, path);
        }
    }
    // In the stock daemon's order.
    below.sort_by_key(|region| std::cmp::Reverse(region.mount));
    // An Include may have a name twice.
    let mut met = HashSet::new();
    for Region { include, name, path, .. } in below {
        if met.insert((include, name, path)) {
            snapshots.add_sub_mount(*include, name, path);
        }
    }
    snapshots
}

/// Whether a name is the top of a mount, and the file system around it has a snapshot.
fn is_mount_in_snapshot(name: &Region, table: &MountTable, mounted: &Mounted) -> bool {
    let is_top = table.get(name.mount).is_some_and(|mount| mount.point == name.real);
    let outer = table.around(name.mount).and_then(|at| table.get(at)).filter(|_| is_top);
    outer.is_some_and(|outer| mounted.contains_key(&outer.device_number))
}

/// Leaves out where snapshots are mounted and the directories that hold them, wherever they are
/// read.
pub(super) fn hide(snapshots: &mut Snapshots, places: &[Vec<u8>], table: &MountTable, mounted: &Mounted) {
    for place in places {
        snapshots.hide(place);
        for (number, snapshot) in mounted {
            let main = table.main(*number).and_then(|at| table.get(at));
            let inside = main.and_then(|main| path_in_snapshot(place, &main.point, &snapshot.point));
            if let Some(inside) = inside {
                snapshots.hide(&inside);
            }
        }
    }
}

/// The path of a region in the snapshot of its file system. Its links and dots are those of this
/// host: in the snapshot they could lead out of it.
fn place(region: &Region, mount: &Mount, main: &Mount, snapshot: &[u8]) -> Option<Vec<u8>> {
    // A file may be mounted, too: it has no slash behind it.
    let inside = path_in_snapshot(&region.real, &mount.point, &mount.root)?;
    let inside = if mount.root == b"/" { &inside } else { without_slashes(&inside) };
    path_in_snapshot(inside, &main.root, snapshot)
}

/// The rest of a path below a directory, with its slash; `None` if it is not below.
fn rest_below<'p>(path: &'p [u8], directory: &[u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(without_slashes(directory))?;
    (rest.len() > 1 && rest.starts_with(b"/")).then_some(rest)
}

#[cfg(test)]
pub(super) mod tests;
