//! Compares two trees: what is there, of which type, with which content and which metadata.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use walkdir::WalkDir;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{BedError, Result};

/// How exactly modification times must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// To the nanosecond.
    Nanoseconds,
    /// To the second, as the stock daemon restores them.
    Seconds,
    /// Not compared.
    Ignored,
}

/// What must be equal beside type, content, links and device numbers.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent choice of a test, set by its name")]
pub struct TreeRules {
    /// Modes and owners.
    pub modes_and_owners: bool,
    /// Modification times.
    pub times: Times,
    /// Access times too, to the same exactness.
    pub access_times: bool,
    /// Extended attributes, ACLs among them.
    pub attributes: bool,
    /// Where the files have holes.
    pub holes: bool,
    /// Sockets on the left need not be on the right: a backup never holds them.
    pub sockets_left_out: bool,
}

impl TreeRules {
    /// Everything, to the last nanosecond and hole.
    pub const EXACT: Self = Self {
        modes_and_owners: true,
        times: Times::Nanoseconds,
        access_times: true,
        attributes: true,
        holes: true,
        sockets_left_out: false,
    };

    /// Types, content, links and device numbers alone; of what a backup holds.
    pub const CONTENT: Self = Self {
        modes_and_owners: false,
        times: Times::Ignored,
        access_times: false,
        attributes: false,
        holes: false,
        sockets_left_out: true,
    };

    /// What a restore by the stock daemon gives back.
    pub fn restored() -> Self {
        Self {
            modes_and_owners: true,
            times: Times::Seconds,
            access_times: true,
            attributes: true,
            holes: false,
            sockets_left_out: true,
        }
    }
}

/// Everything about one file but its content.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    kind: &'static str,
    size: u64,
    mode: u32,
    owner: (u32, u32),
    device: u64,
    mtime: (i64, i64),
    atime: (i64, i64),
    target: Option<PathBuf>,
    /// The alphabetically first path of the same inode within the tree, for files with several
    /// names.
    first_name: Option<PathBuf>,
    attributes: BTreeMap<OsString, Vec<u8>>,
    holes: Vec<(u64, u64)>,
}

/// How many differences are put into words; more don't help.
const TOLD: usize = 50;

/// The field with another name of the same file.
const LINKED: &str = "hard link to";

/// The differences between two trees in words, none if they agree. Reading is what it does to both,
/// nothing else.
pub fn compare_trees(left: &Path, right: &Path, rules: TreeRules) -> Result<Vec<String>> {
    let (one, other) = (survey(left, rules)?, survey(right, rules)?);
    let mut differences = Vec::new();
    for (path, facts) in &one {
        match other.get(path) {
            None if rules.sockets_left_out && facts.kind == "socket" => {}
            None => differences.push(format!("{}: missing on the right", shown(path))),
            Some(theirs) => {
                let told = differences.len();
                facts.differences(theirs, &mut differences);
                if differences.len() == told && facts.kind == "file" {
                    differences.extend(content_difference(&entry_path(left, path), &entry_path(right, path))?);
                }
                for difference in differences.iter_mut().skip(told) {
                    *difference = format!("{}: {difference}", shown(path));
                }
            }
        }
    }
    for path in other.keys().filter(|path| !one.contains_key(*path)) {
        differences.push(format!("{}: missing on the left", shown(path)));
    }
    if differences.len() > TOLD {
        let more = differences.len() - TOLD;
        differences.truncate(TOLD);
        differences.push(format!("… and {more} more"));
    }
    Ok(differences)
}

/// A tree in lines, to be compared with a record: what an entry is and has, each a line, in the
/// order of the paths.
pub fn tree_lines(tree: &Path, rules: TreeRules) -> Result<Vec<String>> {
    let all = survey(tree, rules)?;
    let mut lines = Vec::new();
    for (path, facts) in &all {
        let has = |(name, value): &(&str, String)| {
            *name != LINKED && !["None", "{}", "[]", "0", "(0, 0)"].contains(&value.as_str())
        };
        let mut fields: Vec<_> = facts.fields().into_iter().filter(has).collect();
        if facts.kind == "file" {
            let full = entry_path(tree, path);
            let content = fs::read(&full).map_err(BedError::file("read", &full))?;
            fields.push(("content", format!("{:016x}", xxh3_64(&content))));
        }
        // Each by its name, since no name is the first one.
        let is_same = |(other, theirs): &(&PathBuf, &Facts)| {
            facts.first_name.is_some() && facts.first_name == theirs.first_name && *other != path
        };
        fields.extend(all.iter().filter(is_same).map(|(other, _)| (LINKED, shown(other))));
        lines.extend(fields.iter().map(|(name, value)| format!("{}: {name} {value}", shown(path))));
    }
    Ok(lines)
}

/// How many entries and how many bytes of regular files a tree has.
pub fn measure_tree(tree: &Path) -> Result<(u64, u64)> {
    let rules = TreeRules { sockets_left_out: false, ..TreeRules::CONTENT };
    let facts = survey(tree, rules)?;
    let bytes = facts.values().filter(|facts| facts.kind == "file").map(|facts| facts.size).sum();
    Ok((facts.len() as u64, bytes))
}

/// Touches every entry as a backup does, so that `relatime` has set all access times that it is
/// going to set, and a backup after it sees what the backup before it saw.
pub fn read_once(tree: &Path) -> Result<()> {
    let mut first = [0];
    for (path, kind, _) in entries(tree)? {
        let full = tree.join(&path);
        match kind {
            "file" => {
                let mut file = File::open(&full).map_err(BedError::file("open", &full))?;
                let _ = file.read(&mut first).map_err(BedError::file("read", &full))?;
            }
            "link" => drop(fs::read_link(&full).map_err(BedError::file("read", &full))?),
            _ => {}
        }
    }
    Ok(())
}

/// All entries: path within the tree (empty for its top), kind, status.
fn entries(tree: &Path) -> Result<Vec<(PathBuf, &'static str, Metadata)>> {
    let walk = WalkDir::new(tree).follow_root_links(false).into_iter();
    walk.map(|entry| {
        let found = entry.and_then(|entry| entry.metadata().map(|status| (entry, status)));
        let (entry, status) = found.map_err(|error| BedError::file("walk", tree)(error.into()))?;
        let path = entry.path().strip_prefix(tree).unwrap_or(entry.path()).to_owned();
        Ok((path, kind(&status), status))
    })
    .collect()
}

/// Where an entry is. The top may be anything, so no slash may follow it.
fn entry_path(tree: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { tree.to_owned() } else { tree.join(path) }
}

fn kind(status: &Metadata) -> &'static str {
    let kind = status.file_type();
    let kinds = [
        (kind.is_file(), "file"),
        (kind.is_dir(), "directory"),
        (kind.is_symlink(), "link"),
        (kind.is_fifo(), "fifo"),
        (kind.is_socket(), "socket"),
        (kind.is_char_device(), "character device"),
        (kind.is_block_device(), "block device"),
    ];
    kinds.iter().find(|(is, _)| *is).map_or("unknown", |(_, name)| name)
}

/// The facts of every entry by its path.
fn survey(tree: &Path, rules: TreeRules) -> Result<BTreeMap<PathBuf, Facts>> {
    let mut first_names: BTreeMap<(u64, u64), PathBuf> = BTreeMap::new();
    let mut entries = entries(tree)?;
    entries.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
    let mut facts = BTreeMap::new();
    for (path, kind, status) in entries {
        let full = entry_path(tree, &path);
        let several = status.nlink() > 1 && kind != "directory";
        let first_name =
            several.then(|| first_names.entry((status.dev(), status.ino())).or_insert_with(|| path.clone()).clone());
        let time = |seconds: i64, nanoseconds: i64| match rules.times {
            Times::Nanoseconds => (seconds, nanoseconds),
            Times::Seconds => (seconds, 0),
            Times::Ignored => (0, 0),
        };
        let target =
            if kind == "link" { Some(fs::read_link(&full).map_err(BedError::file("read", &full))?) } else { None };
        let one = Facts {
            kind,
            size: if kind == "file" { status.size() } else { 0 },
            mode: if rules.modes_and_owners { status.mode() & 0o7777 } else { 0 },
            owner: if rules.modes_and_owners { (status.uid(), status.gid()) } else { (0, 0) },
            device: status.rdev(),
            mtime: time(status.mtime(), status.mtime_nsec()),
            atime: if rules.access_times { time(status.atime(), status.atime_nsec()) } else { (0, 0) },
            target,
            first_name,
            attributes: if rules.attributes { attributes(&full)? } else { BTreeMap::new() },
            holes: if rules.holes && kind == "file" { holes(&full, status.size())? } else { Vec::new() },
        };
        facts.insert(path, one);
    }
    Ok(facts)
}

impl Facts {
    /// Adds each field that differs, by name, with both values.
    fn differences(&self, other: &Self, differences: &mut Vec<String>) {
        for ((name, left), (_, right)) in self.fields().into_iter().zip(other.fields()) {
            if left != right {
                differences.push(format!("{name} {left} against {right}"));
            }
        }
    }

    /// Each field by name, as text.
    fn fields(&self) -> [(&'static str, String); 11] {
        [
            ("type", self.kind.to_owned()),
            ("size", self.size.to_string()),
            ("mode", format!("{:04o}", self.mode)),
            ("owner", format!("{:?}", self.owner)),
            ("device number", self.device.to_string()),
            ("mtime", format!("{:?}", self.mtime)),
            ("atime", format!("{:?}", self.atime)),
            ("target", format!("{:?}", self.target)),
            (LINKED, format!("{:?}", self.first_name)),
            ("attributes", format!("{:?}", self.attributes)),
            ("holes", format!("{:?}", self.holes)),
        ]
    }
}

/// All extended attributes of an entry itself, ACLs among them.
fn attributes(path: &Path) -> Result<BTreeMap<OsString, Vec<u8>>> {
    let unsupported = |error: &std::io::Error| error.kind() == std::io::ErrorKind::Unsupported;
    let names = match xattr::list(path) {
        Err(error) if unsupported(&error) => return Ok(BTreeMap::new()),
        names => names.map_err(BedError::file("list the attributes of", path))?,
    };
    names
        // XFS shows its access lists by a second name.
        .filter(|name| !name.as_bytes().starts_with(b"trusted.SGI_ACL_"))
        .map(|name| {
            let value = xattr::get(path, &name).map_err(BedError::file("read an attribute of", path))?;
            Ok((name, value.unwrap_or_default()))
        })
        .collect()
}

/// The holes of a file: start and end.
fn holes(path: &Path, size: u64) -> Result<Vec<(u64, u64)>> {
    let file = File::open(path).map_err(BedError::file("open", path))?;
    let seek = |offset: u64, whence| -> Result<u64> {
        let offset = i64::try_from(offset).map_err(|error| BedError::Usage(error.to_string()))?;
        match lseek(&file, offset, whence) {
            Ok(found) => Ok(u64::try_from(found).unwrap_or(size)),
            // No data behind this offset: the hole reaches to the end.
            Err(Errno::ENXIO) => Ok(size),
            Err(errno) => Err(BedError::file_errno("seek in", path)(errno)),
        }
    };
    let (mut holes, mut at) = (Vec::new(), 0);
    while at < size {
        let start = seek(at, Whence::SeekHole)?;
        at = if start < size { seek(start, Whence::SeekData)? } else { size };
        if start < at {
            holes.push((start, at));
        }
    }
    Ok(holes)
}

/// The first difference in two files' bytes.
fn content_difference(left: &Path, right: &Path) -> Result<Option<String>> {
    let open = |path: &Path| File::open(path).map_err(BedError::file("open", path));
    let (one, other) = (open(left)?, open(right)?);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut offset = 0;
    loop {
        for (file, path, buffer) in [(&one, left, &mut ours), (&other, right, &mut theirs)] {
            buffer.clear();
            file.take(1 << 20).read_to_end(buffer).map_err(BedError::file("read", path))?;
        }
        if ours != theirs {
            let common = ours.iter().zip(&theirs).take_while(|(one, other)| one == other).count();
            return Ok(Some(format!("content differs at byte {}", offset + common)));
        }
        if ours.is_empty() {
            return Ok(None);
        }
        offset += ours.len();
    }
}

/// A path for a message, whatever its bytes.
fn shown(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > 200 {
        let tail: Vec<u8> = bytes.iter().skip(bytes.len() - 80).copied().collect();
        return format!("({} bytes) …{}", bytes.len(), tail.escape_ascii());
    }
    if bytes.is_empty() { "(top)".to_owned() } else { bytes.escape_ascii().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;
    use crate::tree::{TreeOptions, build_every_type};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn pair() -> (Folder, PathBuf, PathBuf) {
        let folder = Folder::new("trees").unwrap();
        let (left, right) = (folder.path().join("a"), folder.path().join("b"));
        for tree in [&left, &right] {
            // Both bases have the same length, so the long paths do too.
            build_every_type(tree, &TreeOptions::default()).unwrap();
        }
        (folder, left, right)
    }

    #[test]
    fn one_call_builds_equal_trees_and_reading_changes_nothing() {
        let (_folder, left, right) = pair();
        read_once(&left).unwrap();
        assert_eq!(compare_trees(&left, &right, TreeRules::EXACT).unwrap(), Vec::<String>::new());
        assert_eq!(compare_trees(&left, &right, TreeRules::EXACT).unwrap(), Vec::<String>::new());
        let (entries, bytes) = measure_tree(&left).unwrap();
        assert!(entries > 70 && bytes > 5_000_000, "{entries} {bytes}");
    }

    #[test]
    fn every_kind_of_change_is_noticed_and_named() {
        let (_folder, left, right) = pair();
        let small = right.join("regular/small");
        let change = |what: &str, wanted: &str| {
            let found = compare_trees(&left, &right, TreeRules::EXACT).unwrap().join("\n");
            assert!(found.contains(wanted), "{what}: expected {wanted:?} in:\n{found}");
        };
        fs::set_permissions(right.join("nested"), fs::Permissions::from_mode(0o700)).unwrap();
        change("mode", "nested: mode 0755 against 0700");
        let times = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1));
        File::options().write(true).open(right.join("regular/zeros")).unwrap().set_times(times).unwrap();
        change("time", "regular/zeros: mtime");
        fs::write(&small, b"a few bYtes\n").unwrap();
        let status = left.join("regular/small").metadata().unwrap();
        let times =
            fs::FileTimes::new().set_modified(status.modified().unwrap()).set_accessed(status.accessed().unwrap());
        File::options().write(true).open(&small).unwrap().set_times(times).unwrap();
        change("content", "regular/small: content differs at byte 7");
        fs::remove_file(right.join("links/dangling")).unwrap();
        symlink("elsewhere", right.join("links/dangling")).unwrap();
        change("target", "links/dangling: target");
        fs::remove_file(right.join("links/hard-two")).unwrap();
        fs::copy(right.join("links/hard-one"), right.join("links/hard-two")).unwrap();
        change("hard link", "links/hard-two: hard link to");
        xattr::set(right.join("attributes/user"), "user.one", b"other").unwrap();
        change("attribute", "attributes/user: attributes");
        xattr::remove(right.join("attributes/access-acl"), "system.posix_acl_access").unwrap();
        change("ACL", "attributes/access-acl: attributes");
        fs::write(right.join("sparse/only-hole"), vec![0; 1_000_000]).unwrap();
        change("holes", "sparse/only-hole: holes [(0, 1000000)] against []");
        fs::remove_dir(right.join("empty-directory")).unwrap();
        change("missing", "empty-directory: missing on the right");
        fs::write(right.join("new"), b"").unwrap();
        change("additional", "new: missing on the left");
    }
}
