//! A tree of many small folders, its *units*, each of which has one race of its own in a job; and
//! what another user needs to make it.
//!
//! Every regular file says in each of its lines which file it is. So do an extended attribute and
//! an ACL. Nothing is ever removed during a job, so a file's inode number tells which one it is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use bed::{Acted, Bed, BedOptions, ClientOptions, Counted, Fd, FileSet, Racer, Result, Rule, posix_acl, verify_job};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// The other user.
pub(crate) const OTHER: u32 = 4321;
/// What only root may read.
pub(crate) const SECRET: &str = "SECRET-of-root";

/// What the other user can do at a call.
pub(crate) const ACTS: [&str; 16] = [
    "link",
    "dangling",
    "hardlink",
    "fifo",
    "directory",
    "socket",
    "replace",
    "rename-over",
    "exchange",
    "remove",
    "parent-link",
    "parent-exchange",
    "parent-away",
    "truncate",
    "append",
    "touch",
];

/// What is in a unit, with the least size of the regular files.
const FILES: [(&str, usize); 6] = [("f", 3000), ("b", 70_000), ("e", 0), ("h1", 500), ("s", 600), ("d/g", 800)];
/// All names in a unit, below its own.
pub(crate) const NAMES: [&str; 10] = ["f", "b", "e", "h1", "h2", "l", "p", "s", "d", "d/g"];

/// The folders of a race.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    /// The units.
    pub(crate) tree: PathBuf,
    /// What the other user puts into other places.
    pub(crate) spare: PathBuf,
    /// What has been replaced.
    pub(crate) grave: PathBuf,
    /// Where links lead.
    pub(crate) lure: PathBuf,
}

impl Scene {
    /// The folders, made new. `tree` is where the units are to be.
    pub(crate) fn lay(folder: &Path, tree: PathBuf) -> Self {
        let [spare, grave, lure] = ["spare", "grave", "lure"].map(|name| folder.join(name));
        let scene = Self { tree, spare, grave, lure };
        for path in [&scene.tree, &scene.spare, &scene.grave] {
            remove(path);
            fs::create_dir_all(path).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        if !scene.lure.exists() {
            fs::create_dir_all(scene.lure.join("d")).unwrap();
            for name in ["f", "b", "e", "h1", "h2", "l", "p", "s", "g", "d/g", "file"] {
                let path = scene.lure.join(name);
                fs::write(&path, format!("{SECRET}\n").repeat(50)).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
                xattr::set(&path, "user.id", SECRET.as_bytes()).unwrap();
            }
            xattr::set(scene.lure.join("d"), "user.id", SECRET.as_bytes()).unwrap();
            fs::write(scene.lure.join("anyones"), "anyones file\n".repeat(50)).unwrap();
            fs::set_permissions(scene.lure.join("anyones"), fs::Permissions::from_mode(0o666)).unwrap();
        }
        // The other user must get there.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711)).unwrap();
        scene
    }

    /// The folder of a unit.
    pub(crate) fn unit(&self, number: usize) -> PathBuf {
        self.tree.join(name_of(number))
    }

    /// Makes a unit, or only its folder, and what the other user may put into it.
    pub(crate) fn lay_unit(&self, number: usize, whole: bool) {
        directory(&self.unit(number));
        if whole {
            Self::fill_unit(&self.unit(number));
        }
        let spare = self.spare.join(name_of(number));
        directory(&spare);
        file(&spare.join("file"), 1700);
        directory(&spare.join("dir"));
        for name in ["f", "b", "e", "h1", "s", "g", "l"] {
            file(&spare.join("dir").join(name), 900);
        }
    }

    fn fill_unit(unit: &Path) {
        directory(&unit.join("d"));
        for (name, size) in FILES {
            file(&unit.join(name), size);
        }
        fs::hard_link(unit.join("h1"), unit.join("h2")).unwrap();
        symlink(unit.join("own-target"), unit.join("l")).unwrap();
        lchown(unit.join("l"), Some(OTHER), Some(OTHER)).unwrap();
        mkfifo(&unit.join("p"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        chown(unit.join("p"), Some(OTHER), Some(OTHER)).unwrap();
        for name in ["l", "p"] {
            mark(&unit.join(name), "trusted.id");
        }
        chown(unit.join("s"), Some(0), Some(0)).unwrap();
        fs::set_permissions(unit.join("s"), fs::Permissions::from_mode(0o4755)).unwrap();
    }

    /// Watches the daemon of a client, with a rule for each unit.
    pub(crate) fn watch(&self, bed: &mut Bed, client: &str, rules: &[Rule]) -> Result<Racer> {
        let words = [("--spare", &self.spare), ("--grave", &self.grave), ("--lure", &self.lure)];
        let mut arguments: Vec<OsString> = vec!["--uid".into(), OTHER.to_string().into()];
        arguments.extend(words.iter().flat_map(|(name, path)| [OsString::from(name), path.as_os_str().to_owned()]));
        let pid = bed.client(client)?.pid()?;
        let folder = bed.folder().to_owned();
        Racer::attach(Path::new(env!("CARGO_BIN_EXE_racer")), &arguments, pid, rules, &folder)
    }
}

/// As `u0012`.
pub(crate) fn name_of(number: usize) -> String {
    format!("u{number:04}")
}

/// What was to happen to a unit, and what has happened.
pub(crate) struct Planned {
    pub(crate) what: &'static str,
    pub(crate) nth: usize,
    pub(crate) acted: Option<Acted>,
}

impl std::fmt::Display for Planned {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} at call {}: {:?}", self.what, self.nth, self.acted)
    }
}

/// Adds to each problem with a unit what has happened to that, and what was said about it.
pub(crate) fn with_cause(problems: Vec<String>, planned: &[Planned], said: &str) -> Vec<String> {
    let cause = |problem: &str| planned.iter().enumerate().find(|(at, _)| problem.contains(&name_of(*at)));
    let told = |problem: String| match cause(&problem) {
        Some((number, planned)) => {
            let about: Vec<_> = said.lines().filter(|line| line.contains(&name_of(number))).collect();
            format!("{problem} ({planned}); said: {about:#?}")
        }
        None => problem,
    };
    problems.into_iter().map(told).collect()
}

fn directory(path: &Path) {
    fs::create_dir(path).unwrap();
    finish(path, 0o755);
}

fn file(path: &Path, size: usize) {
    let line = line_of(path);
    fs::write(path, line.repeat(size.div_ceil(line.len()))).unwrap();
    finish(path, 0o640);
}

/// What a file consists of.
fn line_of(path: &Path) -> String {
    let names: Vec<_> = path.iter().rev().take(4).map(|name| name.to_string_lossy()).collect();
    format!("this is {}\n", names.join(" of "))
}

/// Its owner and mode, and what tells which file it is.
fn finish(path: &Path, mode: u32) {
    chown(path, Some(OTHER), Some(OTHER)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mark(path, "user.id");
}

/// An extended attribute and an ACL that tell which file it is; of a link only the attribute.
fn mark(path: &Path, attribute: &str) {
    xattr::set(path, attribute, line_of(path).trim_end().as_bytes()).unwrap();
    let stat = fs::symlink_metadata(path).unwrap();
    if !stat.is_symlink() {
        let id = user_of(stat.ino());
        let acl = posix_acl(&[(1, 7, !0), (2, 4, id), (4, 4, !0), (0x10, 4, !0), (0x20, 0, !0)]);
        xattr::set(path, "system.posix_acl_access", &acl).unwrap();
    }
}

/// The user in the ACL of an inode.
pub(crate) fn user_of(inode: u64) -> u32 {
    100_000 + u32::try_from(inode % 1_000_000_000).unwrap()
}

/// What is known of an inode after a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Inode {
    /// Its line, as far as it has one, its extended attribute, and its length.
    File(Vec<u8>, Option<Vec<u8>>, usize),
    /// Its extended attribute.
    Directory(Option<Vec<u8>>),
    /// Its target.
    Link(PathBuf),
    Other,
}

/// Every inode below these folders.
pub(crate) fn inodes(folders: &[&Path]) -> BTreeMap<u64, Inode> {
    let mut inodes = BTreeMap::new();
    for entry in folders.iter().flat_map(walkdir::WalkDir::new) {
        let entry = entry.unwrap();
        let path = entry.path();
        let attribute = || xattr::get(path, "user.id").unwrap();
        let inode = if entry.file_type().is_file() {
            let content = fs::read(path).unwrap();
            let line = content.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
            Inode::File(line.to_vec(), attribute(), content.len())
        } else if entry.file_type().is_dir() {
            Inode::Directory(attribute())
        } else if entry.file_type().is_symlink() {
            Inode::Link(fs::read_link(path).unwrap())
        } else {
            Inode::Other
        };
        inodes.insert(fs::symlink_metadata(path).unwrap().ino(), inode);
    }
    inodes
}

/// A bed whose `FileSet` is the folder of the units; its folder, and that of the units.
pub(crate) fn bed_of_units(label: &str) -> Result<(Bed, PathBuf, PathBuf)> {
    let mut client = ClientOptions::new(Fd::under_test()?).named("test");
    // The Director waits a minute for a daemon that has died.
    let at_once = "Maximum Concurrent Jobs = 20";
    client.job.push(at_once.to_owned());
    let mut options = BedOptions::new(label, [client])?;
    options.device.push(at_once.to_owned());
    let folder = options.folder.path().to_owned();
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    let all = ["Signature = MD5", "aclsupport = yes", "xattrsupport = yes"];
    let all = [&all[..], &["Verify = pinsug5"]].concat();
    options.file_sets = vec![FileSet::new("Tree", &all, &[&tree])];
    options.director_resources = vec![verify_job("test", "Tree", "")];
    Ok((Bed::start(options)?, folder, tree))
}

/// Removes a folder, if it is there.
pub(crate) fn remove(path: &Path) {
    if path.exists() {
        fs::remove_dir_all(path).unwrap();
    }
}

/// How many of what there is to enumerate are taken: as many as the variable says.
pub(crate) fn wanted(variable: &str, usually: usize) -> usize {
    std::env::var(variable).map_or(usually, |text| text.parse().unwrap())
}

/// The number of the `turn`-th choice of `total`, so that few turns are spread over all of them
/// and `total` turns take each once.
pub(crate) fn spread(turn: usize, total: usize) -> usize {
    let divides = |step: usize| (2..=step).any(|part| step.is_multiple_of(part) && total.is_multiple_of(part));
    let step = (total * 618 / 1000..total).find(|step| *step > 0 && !divides(*step)).unwrap_or(1);
    turn % total * step % total
}

/// What the rules have done, counted by call and outcome.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<String, usize>);

impl Tally {
    /// Adds what a rule has done under this name.
    pub(crate) fn add(&mut self, what: &str, counted: &Counted) {
        if let Some(Acted { call, outcome, .. }) = &counted.acted {
            *self.0.entry(format!("{what} {outcome}")).or_default() += 1;
            *self.0.entry(format!("at {call}")).or_default() += 1;
        }
    }

    /// How many have acted as they should: those whose outcome is one of these.
    pub(crate) fn done(&self, outcomes: &[&str]) -> usize {
        let is_done = |name: &str| outcomes.iter().any(|outcome| name.ends_with(&format!(" {outcome}")));
        self.0.iter().filter(|(name, _)| is_done(name)).map(|(_, count)| count).sum()
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|(name, count)| format!("{name}: {count}")).collect();
        write!(formatter, "{}", parts.join(", "))
    }
}
