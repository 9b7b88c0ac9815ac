//! Every type of object × every kind of metadata: it is saved and restored, or a message names it.
//! The table of `docs/testing.md` is what this run finds. Each daemon also restores what the other
//! one has saved.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};

use bed::{Bed, BedOptions, Fd, FileSet, JobResult, Restore, Result, posix_acl};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, makedev, mknod, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::mkfifo;

const TYPES: [&str; 9] =
    ["file", "sparse-file", "hard-link", "directory", "link", "fifo", "socket", "character-device", "block-device"];
/// The object itself: type, content, holes, target, device number, names.
const OBJECT: &str = "object";
const METADATA: [&str; 10] = [
    OBJECT,
    "owner",
    "mode",
    "times",
    "acl",
    "default-acl",
    "user-attribute",
    "trusted-attribute",
    "security-attribute",
    "capability",
];
/// Where to: where it was, below an empty directory, and over objects of the same types.
const PLACES: [&str; 3] = ["in place", "elsewhere", "over what exists"];
const BEGIN: &str = "<!-- begin: objects -->\n";
const END: &str = "<!-- end: objects -->";

/// An object, and what of it is looked at.
type Cell = (&'static str, &'static str);

fn cells() -> impl Iterator<Item = Cell> {
    TYPES.into_iter().flat_map(|kind| METADATA.map(|what| (kind, what)))
}

/// The name of a cell's object. No name begins another one.
fn name((kind, what): Cell) -> String {
    format!("{kind}.{what}.x")
}

/// Makes an object in its plainest form.
fn make(kind: &str, path: &Path) {
    let private = Mode::from_bits_truncate(0o600);
    let device = |kind, major, minor| mknod(path, kind, private, makedev(major, minor)).unwrap();
    match kind {
        "file" => fs::write(path, b"content").unwrap(),
        "sparse-file" => File::create(path).unwrap().write_all_at(b"end", 1 << 20).unwrap(),
        "hard-link" => {
            let first = path.with_extension("first");
            fs::write(&first, b"content").unwrap();
            fs::hard_link(first, path).unwrap();
        }
        "directory" => fs::create_dir(path).unwrap(),
        "link" => symlink("where/it/leads", path).unwrap(),
        "fifo" => mkfifo(path, private).unwrap(),
        "socket" => device(SFlag::S_IFSOCK, 0, 0),
        "character-device" => device(SFlag::S_IFCHR, 1, 3),
        _ => device(SFlag::S_IFBLK, 7, 250),
    }
}

/// The extended attribute that is a kind of metadata.
fn attribute(what: &str) -> Option<(&'static str, Vec<u8>)> {
    const NOBODY: u32 = u32::MAX;
    let acl = || posix_acl(&[(1, 7, NOBODY), (2, 5, 1001), (4, 4, NOBODY), (0x10, 5, NOBODY), (0x20, 0, NOBODY)]);
    // Version 2, effective, CAP_NET_RAW.
    let capability = || [&[1, 0, 0, 2, 0, 0x20, 0, 0][..], &[0; 12]].concat();
    match what {
        "acl" => Some(("system.posix_acl_access", acl())),
        "default-acl" => Some(("system.posix_acl_default", acl())),
        "user-attribute" => Some(("user.k", b"value".to_vec())),
        "trusted-attribute" => Some(("trusted.k", b"value".to_vec())),
        "security-attribute" => Some(("security.k", b"value".to_vec())),
        "capability" => Some(("security.capability", capability())),
        _ => None,
    }
}

/// Gives an object a kind of metadata. `false`: this system has none for this type.
fn give(what: &str, path: &Path) -> bool {
    let is_link = path.is_symlink();
    match what {
        OBJECT => true,
        "owner" => lchown(path, Some(1001), Some(1002)).is_ok(),
        "mode" => !is_link && fs::set_permissions(path, fs::Permissions::from_mode(0o6751)).is_ok(),
        "times" => {
            // The access time is in the future, so that reading does not change it.
            let (accessed, modified) = (TimeSpec::new(2_064_787_200, 0), TimeSpec::new(1_000_000_000, 0));
            utimensat(AT_FDCWD, path, &accessed, &modified, UtimensatFlags::NoFollowSymlink).is_ok()
        }
        _ => attribute(what).is_some_and(|(name, value)| xattr::set(path, name, &value).is_ok()),
    }
}

fn kind_of(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    let kinds = [
        (kind.is_file(), "file"),
        (kind.is_dir(), "directory"),
        (kind.is_symlink(), "link"),
        (kind.is_fifo(), "fifo"),
        (kind.is_socket(), "socket"),
        (kind.is_char_device(), "character-device"),
    ];
    kinds.into_iter().find(|(is, _)| *is).map_or("block-device", |(_, name)| name)
}

/// A kind of metadata as it is now; `None` if the object is not there, or has none.
fn state(what: &str, path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(match what {
        OBJECT => {
            let content = found.is_file().then(|| fs::read(path).unwrap().len());
            let names = fs::metadata(path.with_extension("first")).is_ok_and(|first| first.ino() == found.ino());
            let has_holes = found.is_file() && found.blocks() * 512 < found.len();
            let target = fs::read_link(path).ok();
            format!("{} {content:?} {names} {has_holes} {target:?} {}", kind_of(&found), found.rdev())
        }
        "owner" => format!("{}:{}", found.uid(), found.gid()),
        "mode" => format!("{:o}", found.mode()),
        "times" => format!("{} {}", found.atime(), found.mtime()),
        _ => {
            let (name, _) = attribute(what)?;
            format!("{:?}", xattr::get(path, name).ok()??)
        }
    })
}

/// Makes all objects below a directory, with what is to be looked at; returns that.
fn build(top: &Path) -> BTreeMap<Cell, String> {
    fs::create_dir_all(top).unwrap();
    let mut given = BTreeMap::new();
    for cell in cells() {
        let path = top.join(name(cell));
        make(cell.0, &path);
        if give(cell.1, &path) {
            given.insert(cell, state(cell.1, &path).unwrap());
        }
    }
    given
}

/// Whether a job says that something is wrong with an object, or that it was left out. What it
/// restores it lists as well.
fn is_named(job: &JobResult, name: &str) -> bool {
    let complaints = ["Warning", "Error", "skipped"];
    job.log.lines().any(|line| line.contains(name) && complaints.iter().any(|word| line.contains(word)))
}

/// What has become of a cell.
fn outcome(cell: Cell, wanted: &str, top: &Path, jobs: &[&JobResult]) -> &'static str {
    let name = name(cell);
    if state(cell.1, &top.join(&name)).as_deref() == Some(wanted) {
        "yes"
    } else if jobs.iter().any(|job| is_named(job, &name)) {
        "told"
    } else {
        "lost"
    }
}

/// What a daemon makes of each cell, in each place; and its backup.
fn outcomes(
    bed: &Bed,
    client: &str,
    top: &Path,
    given: &BTreeMap<Cell, String>,
) -> Result<(BTreeMap<Cell, [&'static str; 3]>, JobResult)> {
    let saved = bed.backup(client, "level=Full")?;
    let mut found: BTreeMap<Cell, Vec<&'static str>> = BTreeMap::new();
    for place in PLACES {
        let to = bed.folder().join(place.replace(' ', "-")).join(client);
        let (to, restored) = match place {
            "in place" => {
                fs::remove_dir_all(top).unwrap();
                (PathBuf::from("/"), top.to_owned())
            }
            "elsewhere" => (to.clone(), to.join(top.strip_prefix("/").unwrap())),
            _ => {
                let restored = to.join(top.strip_prefix("/").unwrap());
                fs::create_dir_all(&restored).unwrap();
                // What has no record that makes it would be there anyway.
                for cell in cells().filter(|(kind, _)| *kind != "socket") {
                    make(cell.0, &restored.join(name(cell)));
                }
                (to, restored)
            }
        };
        let job = bed.restore_own(client, saved.row.id, &to)?;
        for (cell, wanted) in given {
            found.entry(*cell).or_default().push(outcome(*cell, wanted, &restored, &[&saved, &job]));
        }
    }
    Ok((found.into_iter().map(|(cell, found)| (cell, found.try_into().unwrap())).collect(), saved))
}

/// What a daemon makes of each cell of another one's backup, below an empty directory.
fn crossed(
    bed: &Bed,
    (from, saved): (&str, &JobResult),
    onto: &str,
    top: &Path,
    given: &BTreeMap<Cell, String>,
) -> Result<BTreeMap<Cell, &'static str>> {
    let to = bed.folder().join(format!("of-{from}"));
    let job = bed.restore(&Restore { job: saved.row.id, from, onto, to: &to, replace: "always" })?;
    let restored = to.join(top.strip_prefix("/").unwrap());
    Ok(given.iter().map(|(cell, wanted)| (*cell, outcome(*cell, wanted, &restored, &[saved, &job]))).collect())
}

/// A word for all places, or one for each that is not well.
fn words(found: [&str; 3]) -> String {
    let [first, ..] = found;
    if found.iter().all(|word| *word == first) {
        return first.to_owned();
    }
    let others = PLACES.iter().zip(found).filter(|(_, word)| *word != "yes");
    others.map(|(place, word)| format!("{word} {place}")).collect::<Vec<_>>().join(", ")
}

/// What the table of the page says of each cell.
fn documented() -> BTreeMap<String, String> {
    let page = include_str!("../../../docs/testing.md");
    let (_, table) = page.split_once(BEGIN).unwrap();
    let mut rows = table.split(END).next().unwrap().lines().map(|row| row.split('|').map(str::trim).skip(1));
    let columns: Vec<&str> = rows.next().unwrap().collect();
    let cells = rows.flat_map(|mut row| {
        let kind = row.next().unwrap_or_default();
        columns.iter().skip(1).zip(row).map(move |(what, text)| (format!("{kind}, {what}"), text.to_owned()))
    });
    cells.collect()
}

#[test]
fn each_metadata_of_each_object_is_saved_and_restored_or_named() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root: owners, devices, attributes");
    let mut options = BedOptions::side_by_side("objects")?;
    let top = options.source()?.join("objects");
    let lines = ["Signature = MD5", "ACL Support = yes", "XATTR Support = yes", "Sparse = yes"];
    options.file_sets = vec![FileSet::new("Objects", &lines, &[&top])];
    options.every_message = true;
    let bed = Bed::start(options)?;
    let given = build(&top);
    let (stock, saved_by_stock) = outcomes(&bed, "reference", &top, &given)?;
    fs::remove_dir_all(&top).unwrap();
    assert_eq!(build(&top), given);
    let (ours, saved_by_ours) = outcomes(&bed, "test", &top, &given)?;
    // Whatever a daemon restores of its own, it restores of the other one's.
    let of_stock = crossed(&bed, ("reference", &saved_by_stock), "test", &top, &given)?;
    let of_ours = crossed(&bed, ("test", &saved_by_ours), "reference", &top, &given)?;
    let elsewhere = |found: &BTreeMap<Cell, [&'static str; 3]>| -> BTreeMap<Cell, &'static str> {
        found.iter().map(|(cell, [_, elsewhere, _])| (*cell, *elsewhere)).collect()
    };
    assert_eq!(of_stock, elsewhere(&ours), "ours, of the stock daemon's backup");
    assert_eq!(of_ours, elsewhere(&stock), "the stock daemon, of our backup");
    if Fd::under_test()? == Fd::Stock {
        assert_eq!(ours, stock);
    } else {
        must_be_documented(&ours, &stock);
    }
    Ok(())
}

/// Nothing is lost, and the table says what is found.
fn must_be_documented(ours: &BTreeMap<Cell, [&str; 3]>, stock: &BTreeMap<Cell, [&str; 3]>) {
    let lost: Vec<_> = ours.iter().filter(|(_, found)| found.contains(&"lost")).collect();
    assert!(lost.is_empty(), "{lost:?}");
    // Of what the file systems of this host take; that is most of it.
    assert!(ours.len() > 60, "{ours:?}");
    let documented = documented();
    for ((kind, what), found) in ours {
        let (ours, stock) = (words(*found), words(stock[&(*kind, *what)]));
        let text = if ours == stock { ours } else { format!("{ours} (stock: {stock})") };
        let cell = format!("{kind}, {what}").replace('-', " ");
        assert_eq!(documented.get(&cell), Some(&text), "{cell}");
    }
}
