//! A moment without a free descriptor costs no file. A program of its own: the limit is that of its
//! process.

#![expect(clippy::expect_used, reason = "a test that can't go on fails")]
#![expect(dead_code, reason = "not all that helps the other programs is needed here")]

#[path = "scan/walks.rs"]
mod walks;

use std::cell::Cell;
use std::fs::{self, File};
use std::num::NonZeroU16;
use std::os::fd::AsRawFd as _;

use fd_records::FileType;
use fd_walk::{Flow, LookupDepth, WalkEvent, WalkHost, WalkSettings, walk};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Leaves one descriptor between the first and the second question of a walk, which enters the name
/// of the FileSet meanwhile.
struct FewDescriptors {
    asked: Cell<u32>,
    most: Option<u64>,
}

impl WalkHost for FewDescriptors {
    fn is_canceled(&self) -> bool {
        let is_first = self.asked.replace(self.asked.get() + 1) == 0;
        let next = || File::open("/dev/null").expect("a descriptor").as_raw_fd();
        let current = if is_first { u64::try_from(next() + 1).ok() } else { self.most };
        setrlimit(Resource::Nofile, Rlimit { current, maximum: self.most }).expect("a limit");
        false
    }
}

#[test]
fn a_moment_without_descriptors_costs_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("d")).expect("a directory");
    for name in ["a", "d/b"] {
        fs::write(folder.path().join(name), "x").expect("a file");
    }
    let fileset = walks::fileset(&["I"], &[folder.path()]);
    let settings = WalkSettings { lookup_depth: LookupDepth::Fixed(NonZeroU16::MIN), ..WalkSettings::default() };
    let most = getrlimit(Resource::Nofile).maximum;
    let mut opened = Vec::new();
    walk(&fileset, &settings, &FewDescriptors { asked: Cell::new(0), most }, &mut |event| {
        match event {
            WalkEvent::Entry(entry) if entry.file_type == FileType::Regular => opened.push(entry.open().map(drop)),
            WalkEvent::Entry(_) | WalkEvent::Plugin(_) => {}
            WalkEvent::Message(message) => panic!("{}", String::from_utf8_lossy(message.text)),
        }
        Flow::Continue
    });
    assert_eq!(opened, [Ok(()), Ok(())]);
}
