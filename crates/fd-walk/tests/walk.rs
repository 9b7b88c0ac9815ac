//! Walks over real trees: order, types, hard links, barriers, messages (reference 03 §5, §8 to §11).

#![expect(clippy::expect_used, clippy::panic, reason = "a test that can't go on fails")]

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use fd_fileset::{FileSet, Parser, Regex, RegexCompiler};
use fd_os::regex::{PosixRegex, RegexOptions};
use fd_records::FileType;
use fd_walk::{
    Candidate, Comparison, DirectoryLimits, Flow, HardLink, LinkState, Purpose, WalkEnd, WalkEvent, WalkHost,
    WalkSettings, WalkSummary, walk,
};

struct Posix;
struct Compiled(PosixRegex);

impl RegexCompiler for Posix {
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String> {
        let options = RegexOptions { ignore_case, newline: false };
        let regex = PosixRegex::new(pattern, options).map_err(|error| error.to_string())?;
        Ok(Box::new(Compiled(regex)))
    }
}

impl Regex for Compiled {
    fn is_match(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }
}

#[derive(Default)]
struct Host {
    examined: Cell<u64>,
    cancel_after: Option<u64>,
    unchanged: Option<&'static str>,
}

impl WalkHost for Host {
    fn is_cancelled(&self) -> bool {
        self.cancel_after.is_some_and(|limit| self.examined.get() >= limit)
    }

    fn examined(&self, _path: &[u8]) {
        self.examined.set(self.examined.get() + 1);
    }

    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        match self.unchanged {
            Some(name) if candidate.path.ends_with(name.as_bytes()) => Comparison::Unchanged,
            _ => Comparison::ByTime,
        }
    }
}

struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    /// Files, each with its own name as content; a name with a final slash is an empty directory.
    fn new(names: &[&str]) -> Self {
        let tree = Self { folder: tempfile::tempdir().expect("a folder") };
        for name in names {
            let path = tree.path(name);
            let parent = if name.ends_with('/') { path.as_path() } else { path.parent().expect("a parent") };
            fs::create_dir_all(parent).expect("directories");
            if !name.ends_with('/') {
                fs::write(&path, name).expect("a file");
            }
        }
        tree
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn fileset(&self, lines: &[&str]) -> FileSet {
        let root = self.folder.path().to_str().expect("a plain temporary folder");
        let mut parser = Parser::new(&Posix);
        for line in lines {
            let _reaction = parser.line(line.replace("/t", root).as_bytes()).expect("a good line");
        }
        parser.finish().expect("a good FileSet")
    }

    /// What a walk finds, one word an event, paths relative to the tree; directories end in a slash, messages are in
    /// brackets.
    fn walk(&self, lines: &[&str], settings: &WalkSettings, host: &Host) -> (Vec<String>, WalkSummary) {
        let fileset = self.fileset(lines);
        let root = self.folder.path().to_str().expect("a plain temporary folder").to_owned();
        let mut found = Vec::new();
        let mut file_index = 0;
        let summary = walk(&fileset, settings, host, &mut |event| {
            match event {
                WalkEvent::Entry(entry) => {
                    file_index += 1;
                    let mut word = String::from_utf8_lossy(&entry.record_names().name).replace(&root, "/t");
                    match &entry.hard_link {
                        Some(HardLink::First(slot)) => slot.set(LinkState::Saved { file_index, digest: None }),
                        Some(HardLink::Later { slot, .. }) => {
                            let link = String::from_utf8_lossy(&entry.link).replace(&root, "/t");
                            let LinkState::Saved { file_index, .. } = slot.get() else { panic!("first was saved") };
                            write!(word, "={link}#{file_index}").expect("a string");
                        }
                        None if entry.file_type == FileType::Symlink => {
                            write!(word, "->{}", String::from_utf8_lossy(&entry.link)).expect("a string");
                        }
                        None => {}
                    }
                    found.push(word);
                }
                WalkEvent::Message(message) => {
                    let text = String::from_utf8_lossy(message.text).replace(&root, "/t");
                    let mark = if message.error { "!" } else { "" };
                    found.push(format!("[{mark}{:?} {}]", message.kind, text.trim_end()));
                }
                WalkEvent::Plugin { command, .. } => found.push(String::from_utf8_lossy(command).into_owned()),
            }
            Flow::Continue
        });
        (found, summary)
    }

    fn full(&self, lines: &[&str]) -> Vec<String> {
        self.walk(lines, &WalkSettings::default(), &Host::default()).0
    }

    fn sorted(&self, lines: &[&str]) -> Vec<String> {
        let mut found = self.full(lines);
        found.sort();
        found
    }
}

fn incremental(since: i64) -> WalkSettings {
    WalkSettings { incremental: true, since, ..WalkSettings::default() }
}

#[test]
fn a_directory_comes_after_its_contents_and_names_come_in_the_kernels_order() {
    let tree = Tree::new(&["d1/d2/f3", "d1/f2", "top", "empty/"]);
    let found = tree.full(&["I", "F /t"]);
    assert_eq!(found.last().map(String::as_str), Some("/t/"));
    let position =
        |name: &str| found.iter().position(|entry| entry == name).unwrap_or_else(|| panic!("{name} in {found:?}"));
    assert!(position("/t/d1/d2/f3") < position("/t/d1/d2/"));
    assert!(position("/t/d1/d2/") < position("/t/d1/"));
    let kernel: Vec<_> =
        fs::read_dir(tree.path("")).expect("readable").map(|e| e.expect("entry").file_name()).collect();
    let top: Vec<_> = found
        .iter()
        .filter_map(|path| path.strip_prefix("/t/"))
        .filter(|path| !path.is_empty() && !path.trim_end_matches('/').contains('/'))
        .map(|path| path.trim_end_matches('/').into())
        .collect::<Vec<std::ffi::OsString>>();
    assert_eq!(top, kernel);
}

#[test]
fn sockets_are_skipped_in_backups_and_counted_in_estimates() {
    let tree = Tree::new(&[]);
    let _listener = UnixListener::bind(tree.path("sk")).expect("a socket");
    assert_eq!(tree.full(&["I", "F /t"]), ["[Skipped      Socket file skipped: /t/sk]", "/t/"]);
    let estimate = WalkSettings { purpose: Purpose::Estimate { limit: 0 }, ..WalkSettings::default() };
    let (found, summary) = tree.walk(&["I", "F /t"], &estimate, &Host::default());
    assert_eq!((found, summary.entries), (vec!["/t/sk".to_owned(), "/t/".to_owned()], 2));
}

#[test]
fn links_are_not_followed_and_further_names_of_an_inode_refer_to_the_first() {
    let tree = Tree::new(&["a/f"]);
    fs::hard_link(tree.path("a/f"), tree.path("z")).expect("a hard link");
    symlink("a", tree.path("l")).expect("a symlink");
    let found = tree.full(&["I", "F /t/a", "F /t/z", "F /t/l", "F /t/a"]);
    assert_eq!(found, ["/t/a/f", "/t/a/", "/t/z=/t/a/f#1", "/t/l->a", "/t/a/"]);
    assert_eq!(tree.full(&["I", "O H", "N", "F /t/a", "F /t/z"]), ["/t/a/f", "/t/a/", "/t/z"]);
}

#[test]
fn a_name_that_is_left_out_never_stands_for_another_one() {
    let tree = Tree::new(&["a/x.o"]);
    fs::create_dir(tree.path("b")).expect("a directory");
    fs::hard_link(tree.path("a/x.o"), tree.path("b/y")).expect("a hard link");
    let found = tree.full(&["I", "O e", "WF *.o", "N", "F /t/a", "F /t/b"]);
    assert_eq!(found, ["/t/a/", "/t/b/y", "/t/b/"]);
}

#[test]
fn rejected_directories_are_not_entered_but_names_of_the_fileset_are_never_filtered() {
    let tree = Tree::new(&["src/a.o", "src/a.c", "doc/n.txt"]);
    assert_eq!(
        tree.sorted(&["I", "O e", "WF *.o", "N", "F /t"]),
        ["/t/", "/t/doc/", "/t/doc/n.txt", "/t/src/", "/t/src/a.c"]
    );
    assert_eq!(tree.sorted(&["I", "O e", "WD */src", "N", "F /t"]), ["/t/", "/t/doc/", "/t/doc/n.txt"]);
    assert_eq!(tree.full(&["I", "F /t/src/a.o", "N", "N", "E", "F *.o"]), ["/t/src/a.o"]);
    assert_eq!(tree.full(&["I", "F /t", "N", "N", "E", "F /t*"]), ["/t/"]);
}

#[test]
fn a_marker_file_leaves_its_directory_out() {
    let tree = Tree::new(&["a/f", "a/.nobackup", "b/f"]);
    let found = tree.sorted(&["I", "Z .nobackup", "F /t"]);
    assert_eq!(
        found,
        [
            "/t/",
            "/t/b/",
            "/t/b/f",
            "[Skipped Skipping ignored directory /t/a (found file with ExcludeDirContaining pattern)]"
        ]
    );
}

#[test]
fn recursion_off_saves_the_directories_but_not_what_is_in_them() {
    let tree = Tree::new(&["d/f"]);
    assert_eq!(
        tree.full(&["I", "O h", "N", "F /t"]),
        ["[Info      Recursion turned off. Will not descend from /t into /t/d]", "/t/d/", "/t/"]
    );
}

#[test]
fn what_is_not_there_is_told_and_counted() {
    let tree = Tree::new(&["f"]);
    assert_eq!(
        tree.full(&["I", "F /t/no", "F /t/f/"]),
        [
            "[!NotSaved      Could not stat \"/t/no\": ERR=No such file or directory]",
            "[!NotSaved      Could not stat \"/t/f/\": ERR=Not a directory]"
        ]
    );
}

#[test]
fn paths_that_the_kernel_does_not_take_are_told_whole() {
    let tree = Tree::new(&[]);
    let root = tree.folder.path().to_path_buf();
    let name = "n".repeat(250);
    // Built step by step: no single path may be longer than the kernel takes.
    let mut directory = fs::File::open(&root).expect("open");
    for _ in 0..17 {
        rustix::fs::mkdirat(&directory, &*name, rustix::fs::Mode::RWXU).expect("mkdir");
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        directory = rustix::fs::openat(&directory, &*name, flags, rustix::fs::Mode::empty()).expect("open").into();
    }
    let found = tree.full(&["I", "F /t"]);
    let told: Vec<_> = found.iter().filter(|word| word.contains("File name too long")).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("[!NotSaved      Could not stat \"/t/nnn"));
    assert_eq!(found.len(), 1 + 16 + 1, "the message, the directories above it, the tree");
}

/// Notes the most descriptors that were open at once.
struct Counting<'c>(&'c Cell<usize>);

impl WalkHost for Counting<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.set(self.0.get().max(fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)));
        false
    }
}

#[test]
fn deep_trees_need_few_descriptors() {
    let tree = Tree::new(&[]);
    let depth = 1000;
    let path = (0..depth).fold(tree.path(""), |path, _| path.join("d"));
    fs::create_dir_all(&path).expect("a deep tree");
    fs::write(path.join("f"), "x").expect("a file");
    let opened = Cell::new(0);
    let mut entries = 0;
    let fileset = tree.fileset(&["I", "F /t"]);
    walk(&fileset, &WalkSettings::default(), &Counting(&opened), &mut |_| {
        entries += 1;
        Flow::Continue
    });
    assert_eq!(entries, depth + 2);
    assert!(opened.get() < 400, "{} descriptors", opened.get());
}

#[test]
fn unchanged_directories_are_reported_before_and_after_their_contents() {
    let tree = Tree::new(&["f"]);
    let (found, _) = tree.walk(&["I", "F /t"], &incremental(i64::MAX), &Host::default());
    assert_eq!(
        found,
        [
            "[Skipped      Unchanged file skipped: /t]",
            "[Skipped      Unchanged file skipped: /t/f]",
            "[Skipped      Unchanged file skipped: /t]"
        ]
    );
}

#[test]
fn the_second_of_the_last_backup_counts_as_changed() {
    let tree = Tree::new(&["f"]);
    let mtime = fs::metadata(tree.path("f")).map(|found| std::os::unix::fs::MetadataExt::mtime(&found)).expect("stat");
    let (found, _) = tree.walk(&["I", "F /t/f"], &incremental(mtime), &Host::default());
    assert_eq!(found, ["/t/f"]);
}

#[test]
fn an_accurate_list_overrules_the_times() {
    let tree = Tree::new(&["a", "b"]);
    let host = Host { unchanged: Some("/a"), ..Host::default() };
    let (mut found, _) = tree.walk(&["I", "F /t"], &WalkSettings::default(), &host);
    found.sort();
    assert_eq!(found, ["/t/", "/t/b", "[Skipped      Unchanged file skipped: /t/a]"]);
}

#[test]
fn limits_of_the_director() {
    let tree = Tree::new(&["a/f", "a/in/g", "ab/h", "o/p/i", "rootf"]);
    let root = tree.folder.path().to_str().expect("plain").to_owned();
    let limits = |allowed: &[&str], excluded: &[&str]| {
        let list = |list: &[&str]| list.iter().map(|path| path.replace("/t", &root).into_bytes()).collect();
        WalkSettings {
            limits: DirectoryLimits { allowed: list(allowed), excluded: list(excluded) },
            ..WalkSettings::default()
        }
    };
    let walked = |settings: &WalkSettings, lines: &[&str]| {
        let (mut found, summary) = tree.walk(lines, settings, &Host::default());
        found.sort();
        (found.join(" "), summary.skipped_directories)
    };
    assert_eq!(
        walked(&limits(&["/t/a"], &[]), &["I", "F /t"]),
        (
            "/t/ /t/a/ /t/a/f /t/a/in/ /t/a/in/g /t/ab/ /t/ab/h [Skipped Skipping directory /t/o, it's out of allowed ones]"
                .to_owned(),
            1
        )
    );
    assert_eq!(walked(&limits(&[], &["/t/a"]), &["I", "F /t"]).0, "/t/ /t/o/ /t/o/p/ /t/o/p/i /t/rootf");
    assert_eq!(walked(&limits(&[], &["/t/a"]), &["I", "F /t/a", "F /t/ab/h"]).0, "");
}

#[test]
fn an_estimate_stops_at_its_limit() {
    let tree = Tree::new(&["d/1", "d/2", "d/3"]);
    let counted = |limit| {
        let settings = WalkSettings { purpose: Purpose::Estimate { limit }, ..WalkSettings::default() };
        tree.walk(&["I", "F /t"], &settings, &Host::default()).1.entries
    };
    assert_eq!(counted(0), 5);
    assert_eq!(counted(1), 3, "one file and the two directories that are open");
    assert_eq!(counted(2), 4);
}

#[test]
fn verify_announces_everything() {
    let tree = Tree::new(&["f"]);
    let settings = WalkSettings { purpose: Purpose::Verify, ..WalkSettings::default() };
    let (found, _) = tree.walk(&["I", "F /t"], &settings, &Host::default());
    assert_eq!(
        found,
        ["[Verified Veryfying: /t]", "[Verified Veryfying: /t/f]", "/t/f", "[Verified Veryfying: /t]", "/t/"]
    );
}

#[test]
fn a_cancelled_walk_ends_at_the_next_entry() {
    let tree = Tree::new(&["a", "b", "c"]);
    let host = Host { cancel_after: Some(1), ..Host::default() };
    let (found, summary) = tree.walk(&["I", "F /t"], &WalkSettings::default(), &host);
    assert_eq!((found.len(), summary.end), (1, WalkEnd::Cancelled));
}

#[test]
fn strange_names_and_slashes() {
    let tree = Tree::new(&["d/nl\nname", "d/ blank"]);
    let bytes = std::ffi::OsStr::new("d").to_owned();
    let odd = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"bad\xff");
    fs::write(tree.folder.path().join(bytes).join(odd), "x").expect("a file");
    let found = tree.sorted(&["I", "F /t/d//"]);
    assert_eq!(found, ["/t/d/", "/t/d/ blank", "/t/d/bad\u{fffd}", "/t/d/nl\nname"]);
}

#[test]
fn empty_files_by_who_may_read_them() {
    let tree = Tree::new(&[]);
    for (name, mode) in [("all", 0o644), ("owner", 0o600)] {
        fs::write(tree.path(name), "").expect("a file");
        fs::set_permissions(tree.path(name), fs::Permissions::from_mode(mode)).expect("chmod");
    }
    let kind = |name: &str| {
        let mut found = None;
        let fileset = tree.fileset(&["I", &format!("F /t/{name}")]);
        walk(&fileset, &WalkSettings::default(), &Host::default(), &mut |event| {
            if let WalkEvent::Entry(entry) = event {
                found = Some(entry.file_type);
            }
            Flow::Continue
        });
        found.expect("an entry")
    };
    assert_eq!((kind("all"), kind("owner")), (FileType::EmptyFile, FileType::Regular));
}

#[test]
fn a_file_system_type_that_is_not_listed() {
    let tree = Tree::new(&["f"]);
    let found = tree.full(&["I", "O ", "X nosuchfs", "N", "F /t"]);
    assert!(found[0].starts_with("[Info Top level directory \"/t\" has unlisted fstype \""), "{found:?}");
    assert_eq!(found.len(), 1);
    let found = tree.full(&["I", "O ", "XD fixed", "N", "F /t"]);
    assert_eq!(found, ["[Info Top level directory \"/t\" has an unlisted drive type \"unknown\"]"]);
}
