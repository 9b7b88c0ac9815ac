//! What a user of the host can give to a file takes little memory of the daemon.

use bed::{Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, Memory, Result, reset_peak, usage};

/// Together 377,000,000 bytes. More names than these no file can have.
const ATTRIBUTES: (usize, usize) = (5_800, 65_000);
/// What a job of a small file takes is far less, and the sum of the attributes far more.
const MOST: u64 = 48 << 20;

#[test]
fn a_file_with_hundreds_of_megabytes_of_attributes_takes_little_memory() -> Result<()> {
    if Fd::under_test()? == Fd::Stock {
        return skip::test("the stock daemon loses its connection at such a file");
    }
    let mut options = BedOptions::new("attributes", [ClientOptions::new(Fd::Ours).named("test")])?;
    let source = options.source()?;
    let _memory = Memory::mount(&source)?;
    let file = source.join("f");
    std::fs::write(&file, "content").map_err(BedError::file("write", &file))?;
    let value = vec![7; ATTRIBUTES.1];
    let has_all = (0..ATTRIBUTES.0).all(|number| xattr::set(&file, format!("user.{number}"), &value).is_ok());
    if !has_all {
        return skip::test("no file system here holds so many attributes");
    }
    let lines = ["Signature = MD5", "ACL Support = yes", "XATTR Support = yes"];
    options.file_sets = vec![FileSet::new("Attributes", &lines, &[&source])];
    let mut bed = Bed::start(options)?;
    let pid = bed.client("test")?.pid()?;
    bed.backup("test", "level=Full")?.must_be_good()?;
    reset_peak(pid)?;
    let before = usage(pid)?.peak_memory;
    let job = bed.backup("test", "level=Full")?;
    let taken = usage(pid)?.peak_memory.saturating_sub(before);
    assert!(taken < MOST, "{taken} bytes");
    // Those that fit are saved, and the others are told.
    let saved = bed.records(&job.row, "test")?.filter_map(std::result::Result::ok);
    let saved: usize = saved.filter(|record| record.stream == 1998).map(|record| record.data.len()).sum();
    assert!((900_000..=1_000_000).contains(&saved) && job.log.contains("user."), "{saved}: {}", job.log);
    Ok(())
}
