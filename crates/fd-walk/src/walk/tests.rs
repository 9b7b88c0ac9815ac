//! Walks whose lookups are late, hang, or meet changes.

#[cfg(feature = "models")]
mod models;

use std::fs;
use std::num::NonZeroU16;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::sleep;
use std::time::Duration;

use fd_fileset::{Parser, Regex, RegexCompiler};
use fd_os::lock::Mutex;
use rustix::io::Errno;

use super::*;
use crate::attributes::Found;
use crate::limits::DirectoryLimits;
use crate::settings::LookupDepth;

struct NoExpressions;

impl RegexCompiler for NoExpressions {
    fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
        Err("no regular expressions here".to_owned())
    }
}

struct Host {
    is_canceled: AtomicBool,
}

impl WalkHost for Host {
    fn is_canceled(&self) -> bool {
        self.is_canceled.load(Ordering::Relaxed)
    }
}

fn events(top: &Path, depth: u16, calls: Arc<dyn Calls>) -> Vec<String> {
    events_until(top, depth, calls, &Host { is_canceled: false.into() }).0
}

fn events_until(top: &Path, depth: u16, calls: Arc<dyn Calls>, host: &Host) -> (Vec<String>, WalkEnd) {
    let depth = LookupDepth::Fixed(NonZeroU16::new(depth).unwrap());
    events_at(top, depth, calls, host)
}

fn events_at(top: &Path, lookup_depth: LookupDepth, calls: Arc<dyn Calls>, host: &Host) -> (Vec<String>, WalkEnd) {
    events_with(top, &WalkSettings { lookup_depth, ..WalkSettings::default() }, calls, host)
}

fn events_with(top: &Path, settings: &WalkSettings, calls: Arc<dyn Calls>, host: &Host) -> (Vec<String>, WalkEnd) {
    events_of(&["I", &format!("F {}", top.display())], top, settings, calls, host)
}

fn parsed(lines: &[&str]) -> FileSet {
    let mut parser = Parser::new(&NoExpressions);
    for line in lines {
        let _reaction = parser.line(line.as_bytes()).unwrap();
    }
    parser.finish().unwrap()
}

fn events_of(
    lines: &[&str],
    top: &Path,
    settings: &WalkSettings,
    calls: Arc<dyn Calls>,
    host: &Host,
) -> (Vec<String>, WalkEnd) {
    let mut events = Vec::new();
    let mut sink = |event: WalkEvent<'_>| {
        events.push(match event {
            WalkEvent::Entry(entry) => {
                let name = String::from_utf8_lossy(&entry.path).replace(top.to_str().unwrap(), "/t");
                format!("{name} {:?} {:?} {:?}", entry.file_type, entry.stat.ino, entry.link)
            }
            WalkEvent::Message(message) => String::from_utf8_lossy(message.text).into_owned(),
            WalkEvent::Plugin(plugin) => format!("{plugin:?}"),
        });
        Flow::Continue
    };
    let summary = walk_with(&parsed(lines), settings, host, &LinkTable::default(), &mut sink, calls);
    (events, summary.end)
}

/// Waits for a time that seed, name and number of the call decide.
struct Late {
    seed: u64,
    calls: AtomicU64,
}

impl Late {
    fn wait(&self, name: &[u8]) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mixed = name.iter().chain(&call.to_le_bytes()).fold(self.seed, |mixed, byte| {
            (mixed ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        });
        match mixed % 8 {
            0 => sleep(Duration::from_micros(mixed >> 32 & 0xff)),
            1 => std::thread::yield_now(),
            _ => {}
        }
    }
}

impl Calls for Late {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        self.wait(name);
        Kernel.lstat(at, name)
    }

    fn open(&self, at: BorrowedFd<'_>, name: &[u8], identity: (u64, u64)) -> Result<OwnedFd, Errno> {
        self.wait(name);
        Kernel.open(at, name, identity)
    }
}

/// Folders with so many files, some with a link beside them and a second name.
fn folders_with(files: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..files {
        let below = folder.path().join(["a", "b/c", "b/d/e", "f"][number % 4]);
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(format!("{number}")), "x").unwrap();
        if number % 9 == 0 {
            std::os::unix::fs::symlink("nowhere", below.join(format!("link {number}"))).unwrap();
            fs::hard_link(below.join(format!("{number}")), folder.path().join(format!("hard {number}"))).unwrap();
        }
    }
    folder
}

#[test]
fn whatever_the_order_of_answers_the_events_are_the_same() {
    let folder = folders_with(60);
    let expected = events(folder.path(), 1, Arc::new(Kernel));
    assert!(expected.len() > 70, "{expected:?}");
    for seed in 0..300_u64 {
        let depth = [2, 8, 64][usize::try_from(seed).unwrap() % 3];
        let calls = Late { seed: seed.wrapping_mul(0x2545_f491_4f6c_dd1d), calls: AtomicU64::default() };
        assert_eq!(events(folder.path(), depth, Arc::new(calls)), expected, "seed {seed}");
    }
}

/// As a file system of another user that root may not enter.
struct Unknown;

impl Calls for Unknown {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        if name.starts_with(b"closed") { Err(Errno::ACCESS) } else { Kernel.lstat(at, name) }
    }

    fn open(&self, at: BorrowedFd<'_>, name: &[u8], identity: (u64, u64)) -> Result<OwnedFd, Errno> {
        Kernel.open(at, name, identity)
    }
}

#[test]
fn what_cannot_be_examined_is_excluded_as_what_its_directory_says_that_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    fs::create_dir(top.join("closed directory")).unwrap();
    fs::write(top.join("closed file"), "x").unwrap();
    let file_set = format!("F {}", top.display());
    let host = Host { is_canceled: false.into() };
    for (pattern, told) in
        [("WD */closed*", ["file"].as_slice()), ("WF */closed*", &["directory"]), ("W */closed*", &[])]
    {
        let lines = ["I", "O e", pattern, "N", &file_set];
        let (events, _) = events_of(&lines, top, &WalkSettings::default(), Arc::new(Unknown), &host);
        let found: Vec<&str> =
            ["directory", "file"].into_iter().filter(|kind| events.iter().any(|event| event.contains(kind))).collect();
        assert_eq!(found, told, "{pattern}: {events:?}");
    }
}

/// Does something to the tree before a directory of this name is opened for the first time.
struct Meddles {
    name: &'static [u8],
    change: Box<dyn Fn() + Send + Sync>,
    done: AtomicBool,
}

impl Calls for Meddles {
    fn open(&self, at: BorrowedFd<'_>, name: &[u8], identity: (u64, u64)) -> Result<OwnedFd, Errno> {
        if name == self.name && !self.done.swap(true, Ordering::Relaxed) {
            (self.change)();
        }
        Kernel.open(at, name, identity)
    }
}

#[test]
fn a_directory_that_is_replaced_before_it_is_opened_is_looked_at_again() {
    for replaced_by_link in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join("t").join(name);
        fs::create_dir_all(path("d")).unwrap();
        fs::write(path("d/old"), "").unwrap();
        let other = folder.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("new"), "").unwrap();
        let (from, to, aside) = (other.clone(), path("d"), folder.path().join("aside"));
        let change = Box::new(move || {
            fs::rename(&to, &aside).unwrap();
            if replaced_by_link {
                std::os::unix::fs::symlink(&from, &to).unwrap();
            } else {
                fs::rename(&from, &to).unwrap();
            }
        });
        let meddles = Meddles { name: b"d", change, done: false.into() };
        let found = events(&path(""), 8, Arc::new(meddles));
        let has = |what: &str| found.iter().any(|event| event.contains(what));
        assert!(!has("d/old"), "{found:?}");
        if replaced_by_link {
            assert!(!has("d/new") && has("d Symlink"), "{found:?}");
        } else {
            assert!(has("d/new"), "{found:?}");
        }
    }
}

/// What opens ahead meets a moment in which a directory is not there, or holds a marker.
struct Unlucky(Errno);

impl Calls for Unlucky {
    fn open(&self, _: BorrowedFd<'_>, _: &[u8], _: (u64, u64)) -> Result<OwnedFd, Errno> {
        Err(self.0)
    }

    fn exists(&self, _: &[u8]) -> bool {
        true
    }
}

/// What is looked up ahead is not there in that moment.
#[derive(Default)]
struct Early(Mutex<std::collections::HashSet<Vec<u8>>>);

impl Calls for Early {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        let is_first = !name.starts_with(b"/") && self.0.lock().insert(name.to_vec());
        if is_first { Err(Errno::NOENT) } else { Kernel.lstat(at, name) }
    }
}

#[test]
fn what_leaves_a_directory_out_has_to_be_so_when_its_turn_has_come() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    for name in ["a", "b", "c"] {
        let below = top.join(name).join(format!("{name}d"));
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(format!("{name}f")), "x").unwrap();
    }
    let (file_set, host) = (format!("F {}", top.display()), Host { is_canceled: false.into() });
    let of = |marker: &[&str], depth: u16, calls: Arc<dyn Calls>| {
        let lookup_depth = LookupDepth::Fixed(NonZeroU16::new(depth).unwrap());
        let settings = WalkSettings { lookup_depth, ..WalkSettings::default() };
        events_of(&[&["I"], marker, &[&file_set]].concat(), top, &settings, calls, &host).0
    };
    for marker in [["Z .nobackup"].as_slice(), &[]] {
        let expected = of(marker, 1, Arc::new(Kernel));
        assert_eq!(expected.len(), 10, "{expected:?}");
        for errno in [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::MFILE] {
            assert_eq!(of(marker, 8, Arc::new(Unlucky(errno))), expected, "{marker:?} {errno}");
        }
        assert_eq!(of(marker, 8, Arc::<Early>::default()), expected, "{marker:?}");
    }
}

/// Takes directories for symbolic links, when it is asked for the first time.
#[derive(Default)]
struct Pretends(Mutex<std::collections::HashSet<Vec<u8>>>);

impl Calls for Pretends {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        let (mut stat, nanoseconds) = Kernel.lstat(at, name)?;
        let was_directory = name.starts_with(b"was link");
        if was_directory && self.0.lock().insert(name.to_vec()) {
            stat.mode = stat.mode & 0o7777 | fd_records::Stat::MODE_SYMLINK;
        }
        Ok((stat, nanoseconds))
    }
}

#[test]
fn what_has_become_a_directory_is_walked_and_then_what_follows_it() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..200 {
        let name = folder.path().join(format!("was link {number}"));
        if number % 8 == 0 {
            fs::create_dir(&name).unwrap();
            fs::write(name.join("inside"), "x").unwrap();
        } else {
            fs::write(folder.path().join(format!("{number}")), "x").unwrap();
        }
    }
    let expected = events(folder.path(), 1, Arc::new(Kernel));
    for depth in [2, 8] {
        assert_eq!(events(folder.path(), depth, Arc::<Pretends>::default()), expected, "depth {depth}");
    }
}

/// Puts a link into the path of a name of the FileSet, before the kernel is asked about it.
struct Redirects {
    change: Box<dyn Fn() + Send + Sync>,
}

impl Calls for Redirects {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        if name.ends_with(b"f") || name.ends_with(b"f/.") || name == b"." {
            (self.change)();
        }
        Kernel.lstat(at, name)
    }
}

#[test]
fn a_link_that_is_put_into_the_path_of_a_name_does_not_lead_out_of_the_limits() {
    for name in ["a/f", "a/./f", "a/f/."] {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for directory in ["ok/a", "secret"] {
            fs::create_dir_all(root.join(directory)).unwrap();
            if name.ends_with('.') {
                fs::create_dir(root.join(directory).join("f")).unwrap();
                fs::write(root.join(directory).join("f").join(directory.replace('/', "-")), "").unwrap();
            } else {
                fs::write(root.join(directory).join("f"), directory).unwrap();
            }
        }
        let inode = |path: &str| fs::metadata(root.join(path)).unwrap().ino();
        let (secret, own) = (inode("secret/f"), inode("ok/a/f"));
        let (a, aside, target) = (root.join("ok/a"), root.join("ok/aside"), root.join("secret"));
        let change = Box::new(move || {
            if fs::rename(&a, &aside).is_ok() {
                std::os::unix::fs::symlink(&target, &a).unwrap();
            }
        });
        let allowed = root.join("ok").into_os_string().into_encoded_bytes();
        let settings = WalkSettings { limits: DirectoryLimits::new(&[allowed], &[]), ..WalkSettings::default() };
        let (host, calls) = (Host { is_canceled: false.into() }, Arc::new(Redirects { change }));
        let (found, _) = events_with(&root.join("ok").join(name), &settings, calls, &host);
        assert!(found.iter().any(|event| event.contains(&own.to_string())), "{name}: {found:?}");
        let is_secret = |event: &String| event.contains(&secret.to_string()) || event.contains("secret");
        assert!(!found.iter().any(is_secret), "{name}: {found:?}");
    }
}

/// Every regular file is a block device: a node that a restore has made.
struct Nodes;

impl Calls for Nodes {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        let (mut stat, nanoseconds) = Kernel.lstat(at, name)?;
        if stat.mode_type() == fd_records::Stat::MODE_REGULAR {
            stat.mode = fd_records::Stat::MODE_BLOCK | 0o600;
        }
        Ok((stat, nanoseconds))
    }
}

#[test]
fn with_limits_a_device_is_read_only_where_it_is_named_or_in_dev() {
    let folder = tempfile::tempdir().unwrap();
    let node = fs::canonicalize(folder.path()).unwrap().join("node");
    fs::write(&node, "").unwrap();
    let of = |allowed: &[&Path], excluded: &[&Path]| {
        let bytes = |list: &[&Path]| list.iter().map(|path| path.as_os_str().as_encoded_bytes().to_vec()).collect();
        let (allowed, excluded): (Vec<_>, Vec<_>) = (bytes(allowed), bytes(excluded));
        let settings = WalkSettings { limits: DirectoryLimits::new(&allowed, &excluded), ..WalkSettings::default() };
        let (found, _) = events_with(&node, &settings, Arc::new(Nodes), &Host { is_canceled: false.into() });
        found.join(" ").replace(node.to_str().unwrap(), "/t")
    };
    for found in [of(&[], &[]), of(&[&node], &[])] {
        assert!(found.starts_with("/t Raw"), "{found}");
    }
    for found in [of(&[folder.path()], &[]), of(&[], &[Path::new("/secret")])] {
        assert!(found.contains("/t Special") && !found.contains("Raw"), "{found}");
        assert!(found.starts_with("The data of the device /t is not saved: "), "{found}");
    }
}

/// What has this name can be looked up so often.
struct Fails {
    name: &'static [u8],
    after: AtomicU64,
}

impl Calls for Fails {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        let less = |left: u64| left.checked_sub(1);
        let fails = name == self.name && self.after.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err();
        if fails { Err(Errno::IO) } else { Kernel.lstat(at, name) }
    }
}

/// The messages of a walk with these scans, and whether they are errors.
fn told_with(top: &Path, scans: Scans, calls: Arc<dyn Calls>) -> Vec<(bool, String)> {
    let (fileset, settings) = (parsed(&["I", &format!("F {}", top.display())]), WalkSettings::default());
    let (host, links, mut told) = (Host { is_canceled: false.into() }, LinkTable::default(), Vec::new());
    let mut sink = |event: WalkEvent<'_>| {
        if let WalkEvent::Message(message) = event {
            let text = String::from_utf8_lossy(message.text).replace(top.to_str().unwrap(), "/t");
            told.push((message.error, text));
        }
        Flow::Continue
    };
    let mut walker = walker(&fileset, &settings, &host, &links, &mut sink, calls);
    walker.sparing.scans = scans;
    assert_eq!(walker.all(), Ok(()));
    drop(walker);
    told
}

#[test]
fn an_error_of_the_walk_after_a_wrong_scan_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("later")).unwrap();
    let mut scans = Scans::of_test(0, vec![crate::scan::Known::of_test(u64::MAX, &[1], std::time::SystemTime::now())]);
    // Another inode than the scan has found there, which has not changed for long.
    let other = Ok((fd_records::Stat::default(), crate::attributes::Nanoseconds::default()));
    assert_eq!(scans.found(Some((u64::MAX, 1)), &other), Some(u64::MAX));
    let told = told_with(folder.path(), scans, Arc::new(Fails { name: b"later", after: 1.into() }));
    assert_eq!(told, [(true, "     Could not stat \"/t/later\": ERR=Input/output error\n".to_owned())]);
}

#[test]
fn a_file_that_cannot_be_looked_up_is_not_said_to_be_another_than_the_scan_has_found() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("broken"), "").unwrap();
    let found = fs::metadata(folder.path().join("broken")).unwrap();
    let known = crate::scan::Known::of_test(found.dev(), &[found.ino()], std::time::SystemTime::now());
    let calls = Arc::new(Fails { name: b"broken", after: 0.into() });
    let told = told_with(folder.path(), Scans::of_test(0, vec![known]), calls);
    let why = "The inode scan of the file system of /t/broken is not used: the file can't be looked up. \
        All files are looked up.\n";
    let failed = "     Could not stat \"/t/broken\": ERR=Input/output error\n";
    assert_eq!(told, [(false, why.to_owned()), (true, failed.to_owned())]);
}

/// Counts the lookups of this thread.
struct Counts {
    thread: std::thread::ThreadId,
    lookups: AtomicU64,
}

impl Calls for Counts {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        let is_its = std::thread::current().id() == self.thread;
        self.lookups.fetch_add(is_its.into(), Ordering::Relaxed);
        Kernel.lstat(at, name)
    }
}

#[test]
fn once_the_clock_was_set_back_names_are_looked_up_ahead_again() {
    const FILES: u64 = 1000;
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = (0..FILES).map(|number| folder.path().join(number.to_string())).collect();
    for file in &files {
        fs::write(file, "").unwrap();
    }
    let inodes: Vec<u64> = files.iter().map(|file| fs::metadata(file).unwrap().ino()).collect();
    let fileset = parsed(&["I", &format!("F {}", folder.path().display())]);
    let settings = WalkSettings {
        incremental: true,
        lookup_depth: LookupDepth::Fixed(NonZeroU16::new(8).unwrap()),
        ..WalkSettings::default()
    };
    let calls = Arc::new(Counts { thread: std::thread::current().id(), lookups: AtomicU64::default() });
    let (host, links) = (Host { is_canceled: false.into() }, LinkTable::default());
    let mut sink = |_: WalkEvent<'_>| Flow::Continue;
    let mut walker = walker(&fileset, &settings, &host, &links, &mut sink, Arc::<Counts>::clone(&calls));
    let dev = fs::metadata(folder.path()).unwrap().dev();
    let later = std::time::SystemTime::now() + Duration::from_secs(100);
    walker.sparing.scans = Scans::of_test(i64::MAX, vec![crate::scan::Known::of_test(dev, &inodes, later)]);
    let known = Arc::clone(walker.sparing.scans.known(dev).unwrap());
    walker.ahead.add_scan(&known);
    assert_eq!(walker.all(), Ok(()));
    assert_eq!((walker.report.summary.entries, walker.report.summary.not_looked_up), (FILES + 1, 0));
    assert!(calls.lookups.load(Ordering::Relaxed) < FILES / 2, "{:?}", calls.lookups);
}

/// Notes the nice values of threads that help the walk, whose thread this is.
struct Helpers {
    walk: std::thread::ThreadId,
    nice: Mutex<Vec<i32>>,
}

impl Calls for Helpers {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        if std::thread::current().id() != self.walk {
            self.nice.lock().push(rustix::process::getpriority_process(None)?);
        }
        Kernel.lstat(at, name)
    }
}

#[test]
fn threads_that_look_up_ahead_get_the_priority_that_the_walk_gets() {
    let folder = tempfile::tempdir().unwrap();
    // No more than 1,024 are looked up ahead.
    for number in 0..4000 {
        fs::write(folder.path().join(number.to_string()), "").unwrap();
    }
    // In a thread whose priority nobody else uses; it only gets a lower one.
    let walk = std::thread::spawn(move || {
        let before = rustix::process::getpriority_process(None).unwrap();
        let later = (before + 3).min(19);
        let calls = Arc::new(Helpers { walk: std::thread::current().id(), nice: Mutex::new(Vec::new()) });
        let mut sink = |_: WalkEvent<'_>| {
            rustix::process::setpriority_process(None, later).unwrap();
            Flow::Continue
        };
        let (fileset, links) = (parsed(&["I", &format!("F {}", folder.path().display())]), LinkTable::default());
        let lookup_depth = LookupDepth::Fixed(NonZeroU16::new(8).unwrap());
        let settings = WalkSettings { lookup_depth, ..WalkSettings::default() };
        let host = Host { is_canceled: false.into() };
        let end = walk_with(&fileset, &settings, &host, &links, &mut sink, Arc::<Helpers>::clone(&calls)).end;
        assert_eq!(end, WalkEnd::Complete);
        let nice = calls.nice.lock();
        assert_eq!((nice.first(), nice.last()), (Some(&before), Some(&later)));
    });
    walk.join().unwrap();
}

/// Never answers about one name, until it is let go.
struct Hangs {
    hangs: Mutex<Sender<()>>,
    let_go: Mutex<Receiver<()>>,
}

impl Calls for Hangs {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        if name == b"hangs" {
            let _told = self.hangs.lock().send(());
            let _end = self.let_go.lock().recv();
        }
        Kernel.lstat(at, name)
    }
}

#[test]
fn a_canceled_walk_does_not_wait_for_a_lookup_that_hangs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hangs"), "").unwrap();
    let ((tell, hanging), (let_go, wait)) = (channel(), channel());
    let calls = Arc::new(Hangs { hangs: Mutex::new(tell), let_go: Mutex::new(wait) });
    let host = Host { is_canceled: false.into() };
    let known = Arc::new(crate::scan::Known::of_test(u64::MAX, &[], std::time::SystemTime::now()));
    let lookup_depth = LookupDepth::Fixed(NonZeroU16::new(8).unwrap());
    std::thread::scope(|scope| {
        let walk = scope.spawn(|| {
            let fileset = parsed(&["I", &format!("F {}", folder.path().display())]);
            let settings = WalkSettings { lookup_depth, ..WalkSettings::default() };
            let (links, mut sink) = (LinkTable::default(), |event: WalkEvent<'_>| panic!("{event:?}"));
            let mut walker = walker(&fileset, &settings, &host, &links, &mut sink, Arc::<Hangs>::clone(&calls));
            walker.ahead.add_scan(&known);
            walker.all()
        });
        hanging.recv().unwrap();
        host.is_canceled.store(true, Ordering::Relaxed);
        assert_eq!(walk.join().unwrap(), Err(WalkEnd::Canceled));
    });
    // It has ended before the thread, which holds the calls until it is let go; but no scan, which
    // has a directory of its file system open.
    assert!(Arc::strong_count(&calls) > 1);
    assert_eq!(Arc::strong_count(&known), 1);
    drop(let_go);
    while Arc::strong_count(&calls) > 1 {
        std::thread::yield_now();
    }
}

/// A union of file systems: its files have one number, and two names each. The first `changes`
/// answers are from before a file was last written to.
struct Union {
    changes: AtomicU64,
}

impl Calls for Union {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        let (mut stat, mut nanoseconds) = crate::ahead::Kernel.lstat(at, name)?;
        if stat.mode_type() == fd_records::Stat::MODE_REGULAR {
            let is_early =
                self.changes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
            stat.mtime = if is_early { 1 } else { 2 };
            (stat.ino, stat.nlink, stat.ctime, nanoseconds) =
                (7, 2, stat.mtime, crate::attributes::Nanoseconds::default());
        }
        Ok((stat, nanoseconds))
    }
}

#[test]
fn two_files_of_one_number_are_both_saved_and_a_changed_one_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let types = |b: &str, changes: u64| {
        fs::write(folder.path().join("a"), "12345").unwrap();
        fs::write(folder.path().join("b"), b).unwrap();
        let events = events(folder.path(), 1, Arc::new(Union { changes: changes.into() }));
        let words = events.iter().map(|event| event.split(' ').nth(1).unwrap_or_default().to_owned());
        words.filter(|word| word != "Directory").collect::<Vec<_>>()
    };
    assert_eq!(types("12345", 0), ["Regular", "HardLink"]);
    assert_eq!(types("123456", 0), ["Regular", "Regular"]);
    assert_eq!(types("12345", 1), ["Regular", "HardLink"], "it was written to after its first name was met");
}
