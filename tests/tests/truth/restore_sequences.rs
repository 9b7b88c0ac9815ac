//! One to four restores onto one target, of versions of a tree in which every path is something
//! else each time. Whatever their order, nothing outside of the target changes, and each file is
//! whole one version.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, Result};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use walkdir::WalkDir;

/// How many kinds of objects there are, and paths in the tree.
const KINDS: usize = 12;
const VERSIONS: usize = 4;

/// What is at a path: type and mode, owner, time of the last write, data or target of a link,
/// attributes.
type Object = (u32, u32, i64, Vec<u8>, Vec<(String, Vec<u8>)>);

/// A number below `end`, and the next state.
fn draw(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap() % end
}

/// Makes the object of this number in this version. `live` is outside of the tree.
fn make(path: &Path, number: usize, version: usize, live: &Path) {
    let data = format!("{number} in version {version}");
    let below = |name: &str| path.join(name);
    match (number + 5 * version) % KINDS {
        0 => fs::write(path, data).unwrap(),
        1 => fs::write(path, "").unwrap(),
        2 => fs::File::create(path).unwrap().write_all_at(data.as_bytes(), 1 << 20).unwrap(),
        3 => {
            fs::create_dir(path).unwrap();
            fs::write(below("inner"), &data).unwrap();
            fs::write(below("x"), &data).unwrap();
            symlink(live.join("x"), below("link")).unwrap();
        }
        4 => symlink(live.join("x"), path).unwrap(),
        5 => symlink(live, path).unwrap(),
        6 => {
            fs::write(path, data).unwrap();
            fs::hard_link(path, path.with_extension("other")).unwrap();
        }
        7 => nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap(),
        8 => mknod(path, SFlag::S_IFCHR, Mode::S_IRUSR, makedev(1, 3)).unwrap(),
        9 => {
            fs::write(path, data).unwrap();
            std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o6755)).unwrap();
        }
        10 => {
            fs::write(path, data).unwrap();
            xattr::set(path, "user.version", version.to_string().as_bytes()).unwrap();
        }
        _ => {
            fs::create_dir(path).unwrap();
            fs::write(below("inner"), &data).unwrap();
            fs::hard_link(below("inner"), path.with_extension("inner")).unwrap();
            xattr::set(path, "user.version", version.to_string().as_bytes()).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        }
    }
}

fn object(path: &Path) -> Object {
    let found = fs::symlink_metadata(path).unwrap();
    let data = match SFlag::from_bits_truncate(found.mode() & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => fs::read(path).unwrap(),
        SFlag::S_IFLNK => fs::read_link(path).unwrap().into_os_string().into_encoded_bytes(),
        _ => found.rdev().to_ne_bytes().to_vec(),
    };
    let names = xattr::list(path).unwrap().map(|name| name.to_string_lossy().into_owned());
    let attributes = names.map(|name| (name.clone(), xattr::get(path, &name).unwrap().unwrap_or_default()));
    (found.mode(), found.uid(), found.mtime(), data, attributes.collect())
}

/// The objects below a folder, by their path in it.
fn objects(top: &Path) -> BTreeMap<PathBuf, Object> {
    let found = WalkDir::new(top).min_depth(1).into_iter().filter_map(std::result::Result::ok);
    found.map(|entry| (entry.path().strip_prefix(top).unwrap().to_owned(), object(entry.path()))).collect()
}

/// All that can be seen of these folders, except when they were read.
fn everything(folders: &[&Path]) -> Vec<String> {
    let mut seen = Vec::new();
    for entry in folders.iter().flat_map(WalkDir::new) {
        let path = entry.unwrap().into_path();
        let found = fs::symlink_metadata(&path).unwrap();
        let changed = (found.ino(), found.nlink(), found.gid(), found.ctime(), found.ctime_nsec());
        seen.push(format!("{} {changed:?} {:?}", path.display(), object(&path)));
    }
    seen
}

/// `RESTORE_SEQUENCES=1000` draws so many.
#[test]
fn restores_in_any_order_change_nothing_outside_and_mix_no_versions() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon follows links out of the target");
    let sequences: u64 = std::env::var("RESTORE_SEQUENCES").map_or(2, |text| text.parse().unwrap());
    let mut options = BedOptions::new("sequences", [ClientOptions::new(Fd::under_test()?).named("test")])?;
    let source = options.source()?;
    let live = options.folder.path().join("live");
    fs::create_dir_all(live.join("link")).unwrap();
    for name in ["x", "inner", "link/x"] {
        fs::write(live.join(name), b"kept").unwrap();
        fs::set_permissions(live.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let letters = ["Signature = MD5", "sparse = yes", "aclsupport = yes", "xattrsupport = yes"];
    options.file_sets = vec![FileSet::new("Tree", &letters, &[&source])];
    let bed = Bed::start(options)?;
    let mut versions = Vec::new();
    for version in 0..VERSIONS {
        fs::remove_dir_all(&source).unwrap();
        fs::create_dir(&source).unwrap();
        (0..KINDS).for_each(|number| make(&source.join(format!("p{number}")), number, version, &live));
        let job = bed.backup("test", "fileset=Tree level=Full")?.must_be_good()?.row.id;
        versions.push((job, objects(&source)));
    }
    // A later name of a hard link becomes one of a file that was kept under the first.
    let known: BTreeSet<_> = versions.iter().flat_map(|(_, objects)| objects.values().cloned()).collect();
    let outside = [source.as_path(), live.as_path()];
    let before = everything(&outside);
    let mut restores = 0;
    for sequence in 0..sequences {
        let mut state = sequence.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let to = bed.folder().join("to");
        let landed = to.join(source.strip_prefix("/").unwrap());
        let mut told = Vec::new();
        for _ in 0..=draw(&mut state, 4) {
            let version = draw(&mut state, VERSIONS);
            let replace = ["always", "always", "ifnewer", "ifolder", "never"][draw(&mut state, 5)];
            told.push(format!("{version} {replace}"));
            let (job, expected) = &versions[version];
            let result = bed.run(&format!(
                "restore jobid={job} client=test-fd restoreclient=test-fd where={} replace={replace} all done yes",
                to.display()
            ))?;
            restores += 1;
            assert!(result.row.status == 'T' || result.row.status == 'E', "{told:?}: {}", result.log);
            assert!(everything(&outside) == before, "sequence {sequence} {told:?}: something outside has changed");
            let found = objects(&landed);
            for (path, object) in &found {
                let is_file = object.0 & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits();
                assert!(!is_file || known.contains(object), "sequence {sequence} {told:?}: {path:?} {object:?}");
            }
            if replace == "always" && result.row.status == 'T' && result.row.errors == 0 {
                for (path, object) in expected {
                    let is_folder = object.0 & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits();
                    let there = found.get(path);
                    let is_it = there.is_some_and(|there| is_folder && there.0 == object.0 || there == object);
                    assert!(is_it, "sequence {sequence} {told:?}: {path:?} {there:?}");
                }
            }
        }
        fs::remove_dir_all(&to).unwrap();
    }
    println!("{sequences} sequences, {restores} restores");
    Ok(())
}
