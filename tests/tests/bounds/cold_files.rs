//! Files that are not in the page cache are read from the disk once.

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::path::Path;

use bed::{Bed, BedOptions, ClientOptions, Fd, Noise, Result, read_from_disk};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

/// Files, and bytes of each.
const SIZES: [(usize, usize); 3] = [(1, 50_000_000), (30, 1_000_000), (100, 20_000)];

/// Takes a file's pages out of memory, where the file system does that.
fn drop_pages(path: &Path) -> std::io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    posix_fadvise(file.as_fd(), 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    Ok(())
}

#[test]
fn a_cold_full_reads_no_byte_twice_from_the_disk() -> Result<()> {
    let options = BedOptions::new("cold", [ClientOptions::new(Fd::under_test()?).named("test")])?;
    let source = options.source()?;
    let (mut files, mut bytes) = (Vec::new(), 0);
    for (count, size) in SIZES {
        for number in 0..count {
            let path = source.join(format!("{size} {number}"));
            fs::write(&path, Noise::new(number as u64).bytes(size)).unwrap();
            files.push(path);
            bytes += size as u64;
        }
    }
    let mut bed = Bed::start(options)?;
    let pid = bed.client("test")?.pid()?;
    // So that no page of the program itself is read later.
    bed.backup("test", "level=Full")?.must_be_good()?;
    // Inodes and directories are read, too, and what a host with little memory has freed of the
    // program meanwhile.
    let most = bytes + bytes / 10;
    let mut read = Vec::new();
    while read.len() < 3 && read.iter().all(|read| *read >= most) {
        files.iter().try_for_each(|path| drop_pages(path)).unwrap();
        let before = read_from_disk(pid)?;
        bed.backup("test", "level=Full")?.must_be_good()?;
        read.push(read_from_disk(pid)? - before);
    }
    // It is asked, not told: some pages may stay, and a file system may count what is on its disk.
    skip::when!(read.iter().any(|read| *read < bytes / 2), "this file system keeps pages that it is asked to drop");
    assert!(read.iter().any(|read| *read < most), "{read:?} of {bytes}");
    Ok(())
}
