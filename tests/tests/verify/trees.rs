//! The trees of the matrix, and what is done to them and to the catalog.

use std::fs::{self, File, FileTimes};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bed::{Catalog, Noise, Result, make_fifo, set_fixed_times};

/// Files of the tree `data`: one for each kind of damage, and some that stay as they are.
const DATA: [&str; 8] =
    ["bit-in-data", "bit-in-digest", "bit-in-name", "bit-in-size", "bit-in-type", "untouched", "ghost", "forgotten"];

/// Files of the tree `disk` with what is changed about each of them.
const DISK: [&str; 13] = [
    "untouched",
    "content",
    "grown",
    "shrunk",
    "mode",
    "owner",
    "group",
    "accessed",
    "modified",
    "inode",
    "linked",
    "removed",
    "becomes a directory",
];

/// A time that reading does not change: access times lie in the future (see
/// `bed::set_fixed_times`).
const SAVED: Duration = Duration::from_secs(2_064_787_200);

pub(crate) fn build(source: &Path) -> Result<()> {
    let mut noise = Noise::new(11);
    let [disk, data, links] = ["disk", "data", "links"].map(|name| source.join(name));
    for directory in [&disk, &data, &links] {
        fs::create_dir(directory).unwrap();
    }
    for name in DISK {
        fs::write(disk.join(name), format!("{name}, as it was saved\n")).unwrap();
    }
    fs::create_dir_all(disk.join("sub/empty")).unwrap();
    fs::write(disk.join("sub/leaf"), noise.bytes(200_000)).unwrap();
    fs::write(disk.join("empty"), b"").unwrap();
    let private = disk.join("private");
    fs::write(&private, b"").unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    holes(&disk.join("holes"));
    fs::write(disk.join(std::ffi::OsStr::from_bytes(b"odd \xff name")), b"odd\n").unwrap();
    fs::hard_link(disk.join("untouched"), disk.join("second name")).unwrap();
    symlink("untouched", disk.join("link")).unwrap();
    symlink("nowhere", disk.join("dangling")).unwrap();
    make_fifo(&disk.join("fifo"))?;
    drop(UnixListener::bind(disk.join("socket")).unwrap());

    for name in DATA {
        fs::write(data.join(name), format!("{name}, as it was saved\n")).unwrap();
    }
    fs::write(data.join("empty"), b"").unwrap();
    fs::write(data.join("words"), noise.text(20_000)).unwrap();
    fs::write(data.join("blocks"), noise.bytes(150_000)).unwrap();
    holes(&data.join("holes"));

    fs::write(links.join("one"), b"three names\n").unwrap();
    fs::hard_link(links.join("one"), links.join("two")).unwrap();
    fs::hard_link(links.join("one"), links.join("three")).unwrap();
    set_fixed_times(source)
}

/// What a walk meets below each of the names: a directory before and behind what is in it.
pub(crate) fn met(tops: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for top in tops {
        all.push(top.clone());
        if top.is_dir() && !top.is_symlink() {
            all.extend(met(&fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()));
            all.push(top.clone());
        }
    }
    all
}

/// A file of which most is a hole.
fn holes(path: &Path) {
    use std::os::unix::fs::FileExt as _;
    let file = File::create(path).unwrap();
    file.write_all_at(b"front", 0).unwrap();
    file.write_all_at(b"back", 400_000).unwrap();
}

/// Changes the tree `disk`: content with the same size and times, mode, owner, and so on, by the
/// files' names.
pub(crate) fn tamper(source: &Path) {
    let disk = source.join("disk");
    let path = |name: &str| disk.join(name);
    // Each its own: they were made in one second, or were not.
    let modified = |name: &str| fs::metadata(path(name)).unwrap().modified().unwrap();
    let [accessed, changed, inode] = ["accessed", "modified", "inode"].map(modified);
    let directories = [".", "sub"].map(|name| (name, modified(name)));
    let keeping_times = |name: &str, content: &[u8]| {
        let before = fs::metadata(path(name)).unwrap();
        fs::write(path(name), content).unwrap();
        set_times(&path(name), before.accessed().unwrap(), before.modified().unwrap());
    };
    keeping_times("content", b"content, as it WAS saved\n");
    keeping_times("grown", b"grown, and not a little, since it was saved\n");
    keeping_times("shrunk", b"short\n");
    fs::set_permissions(path("mode"), fs::Permissions::from_mode(0o4711)).unwrap();
    chown(path("owner"), Some(1234), None).unwrap();
    chown(path("group"), None, Some(1234)).unwrap();
    let saved = UNIX_EPOCH + SAVED;
    set_times(&path("accessed"), saved + Duration::from_secs(5), accessed);
    set_times(&path("modified"), saved, changed + Duration::from_secs(5));
    fs::copy(path("inode"), path("copy")).unwrap();
    set_times(&path("copy"), saved, inode);
    fs::rename(path("copy"), path("inode")).unwrap();
    fs::hard_link(path("linked"), path("new name")).unwrap();
    fs::remove_file(path("removed")).unwrap();
    fs::remove_file(path("becomes a directory")).unwrap();
    fs::create_dir(path("becomes a directory")).unwrap();
    fs::write(path("new"), b"new\n").unwrap();
    fs::create_dir(path("sub/new")).unwrap();
    // Another inode, since the one before it is still there.
    symlink("elsewhere", path("link elsewhere")).unwrap();
    fs::rename(path("link elsewhere"), path("link")).unwrap();
    for new in ["becomes a directory", "sub/new", "new"] {
        set_times(&path(new), saved, accessed);
    }
    for (name, modified) in directories {
        set_times(&path(name), saved, modified);
    }
}

fn set_times(path: &Path, accessed: SystemTime, modified: SystemTime) {
    let times = FileTimes::new().set_accessed(accessed).set_modified(modified);
    File::open(path).unwrap().set_times(times).unwrap();
}

/// Changes what the catalog has of a job: one file under another name, one gone, one with another
/// digest, one with a text that is no digest, one with the mark for no digest, one with another
/// size.
pub(crate) fn forge(catalog: &Catalog, job: u32) -> Result<()> {
    let of = |name: &str| format!("WHERE JobId = {job} AND Filename = '{name}'");
    catalog.change(&format!("UPDATE File SET Filename = 'never saved' {};", of("ghost")))?;
    catalog.change(&format!("DELETE FROM File {};", of("forgotten")))?;
    catalog.change(&format!("UPDATE File SET MD5 = '1B2M2Y8AsgTpgAmY7PhCfg' {};", of("bit-in-digest")))?;
    catalog.change(&format!("UPDATE File SET MD5 = 'xxx' {};", of("words")))?;
    catalog.change(&format!("UPDATE File SET MD5 = '0' {};", of("bit-in-type")))?;
    let lstat = "P4A m+Qq IGk B A A A BJ BAA Q BrAPp2 BrAPp2 BrAPp2 A A C";
    catalog.change(&format!("UPDATE File SET LStat = '{lstat}' {};", of("bit-in-size")))
}
