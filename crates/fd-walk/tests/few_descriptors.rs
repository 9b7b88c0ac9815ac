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

/// Leaves so many descriptors between the first and the second question of a walk, which enters the
/// name of the FileSet meanwhile.
struct FewDescriptors {
    asked: Cell<u32>,
    left: i32,
    most: Option<u64>,
}

fn set_limit(current: Option<u64>, maximum: Option<u64>) {
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("a limit");
}

impl WalkHost for FewDescriptors {
    fn is_canceled(&self) -> bool {
        let is_first = self.asked.replace(self.asked.get() + 1) == 0;
        let next = || File::open("/dev/null").expect("a descriptor").as_raw_fd();
        set_limit(if is_first { u64::try_from(next() + self.left).ok() } else { self.most }, self.most);
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
    let settings = WalkSettings { lookup_depth: LookupDepth::Fixed(NonZeroU16::MIN), ..WalkSettings::default() };
    let most = getrlimit(Resource::Nofile).maximum;
    // A directory is opened to be walked, a file that is named is not.
    for (name, left, files) in [(folder.path(), 1, 2), (&*folder.path().join("a"), 0, 1)] {
        let fileset = walks::fileset(&["I"], &[name]);
        let mut opened = Vec::new();
        walk(&fileset, &settings, &FewDescriptors { asked: Cell::new(0), left, most }, &mut |event| {
            match event {
                WalkEvent::Entry(entry) if entry.file_type == FileType::Regular => {
                    set_limit(most, most);
                    opened.push(entry.open().map(drop));
                }
                WalkEvent::Entry(_) | WalkEvent::Plugin(_) => {}
                WalkEvent::Message(message) => panic!("{}", String::from_utf8_lossy(message.text)),
            }
            Flow::Continue
        });
        assert_eq!(opened, vec![Ok(()); files], "{}", name.display());
    }
}
