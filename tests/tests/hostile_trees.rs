//! Trees that are unpleasant to walk: names that are no text, paths as long as the kernel takes, directories that are
//! deep or wide, one file with thousands of names. What lands on the volume and in the catalog is what the stock daemon
//! sends.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs;
use std::path::Path;

use bed::{
    Bed, BedOptions, FileSet, RecordRules, Result, TreeOptions, build_every_type, compare_records, set_fixed_times,
};

/// Saves a tree with both daemons; records, catalog rows and the daemons' messages must be equal, and so many.
fn must_be_equal(label: &str, build: impl FnOnce(&Path) -> Result<()>, files: u64) -> Result<()> {
    let mut options = BedOptions::side_by_side(label)?;
    let source = options.source()?;
    build(&source)?;
    set_fixed_times(&source)?;
    // The Director writes each message to the disk by itself.
    options.every_message = files < 1000;
    options.file_sets = vec![FileSet::new("Hostile", &["Signature = MD5", "XattrSupport = yes"], &[&source])];
    let bed = Bed::start(options)?;
    let jobs = [bed.queue("run job=backup-reference yes")?, bed.queue("run job=backup-test yes")?];
    let [reference, test] = [bed.wait(jobs[0])?.must_be_good()?, bed.wait(jobs[1])?.must_be_good()?];
    let [left, right] = [bed.records(&reference.row, "reference")?, bed.records(&test.row, "test")?];
    let comparison = compare_records(left, right, RecordRules::default())?;
    assert!(comparison.is_equal(), "{}", comparison.text());
    assert!(reference.row.files >= files, "{} files", reference.row.files);
    let [left, right] = [bed.catalog().files(reference.row.id)?, bed.catalog().files(test.row.id)?];
    let unequal = left.iter().zip(&right).find(|(left, right)| left != right);
    assert!(unequal.is_none() && left.len() == right.len(), "catalog rows differ: {unequal:?}");
    let [left, right] = [reference.messages_of("reference-fd"), test.messages_of("test-fd")];
    let unequal = left.iter().zip(&right).find(|(left, right)| left != right);
    assert!(unequal.is_none() && left.len() == right.len(), "messages differ: {unequal:?}");
    Ok(())
}

/// A small file with times that do not depend on the clock.
fn file(path: &Path) -> Result<()> {
    fs::write(path, path.as_os_str().as_encoded_bytes()).unwrap();
    set_fixed_times(path)
}

#[test]
fn names_that_are_no_text_and_the_longest_path() -> Result<()> {
    let options = TreeOptions { longest_path: 4095, large_file: 100_001 };
    must_be_equal("names", |source| build_every_type(source, &options), 80)
}

#[test]
fn three_hundred_levels() -> Result<()> {
    let build = |source: &Path| {
        let levels: Vec<_> = (1..=300).map(|depth| source.join(vec!["d"; depth].join("/"))).collect();
        for level in &levels {
            fs::create_dir(level).unwrap();
            file(&level.join("f"))?;
        }
        levels.iter().rev().try_for_each(|level| set_fixed_times(level))
    };
    must_be_equal("levels", build, 601)
}

#[test]
fn twenty_thousand_entries_in_one_directory() -> Result<()> {
    let build = |source: &Path| (0..20_000).try_for_each(|number| file(&source.join(format!("entry-{number}"))));
    must_be_equal("wide", build, 20_001)
}

#[test]
fn five_thousand_names_of_one_file() -> Result<()> {
    let build = |source: &Path| {
        let first = source.join("first");
        fs::write(&first, vec![7; 100_000]).unwrap();
        for number in 0..5000 {
            let directory = source.join(format!("d{}", number % 10));
            fs::create_dir_all(&directory).unwrap();
            fs::hard_link(&first, directory.join(format!("name-{number}"))).unwrap();
        }
        (0..10).try_for_each(|number| set_fixed_times(&source.join(format!("d{number}"))))?;
        set_fixed_times(&first)
    };
    must_be_equal("names-of-one", build, 5011)
}
