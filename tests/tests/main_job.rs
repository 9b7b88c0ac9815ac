//! The main job: what the daemon under test saves is, byte by byte, what the stock daemon saves.
//!
//! With `FD_UNDER_TEST=stock` a second stock daemon takes its place, which shows that the
//! comparison itself is sound.

use std::fs;
use std::path::Path;

use bed::{
    Bed, BedOptions, COUNTS_OF_A_REPORT, FileSet, JobResult, RecordRules, Result, TreeOptions, build_every_type,
    build_many_files, compare_records, posix_acl, set_fixed_times,
};

/// `FileSets` that between them use every digest and every choice about metadata and holes.
fn file_sets(source: &Path) -> Vec<FileSet> {
    let set = |name, options: &[&str]| FileSet::new(name, options, &[source]);
    vec![
        set("everything", &["Signature = MD5", "AclSupport = yes", "XattrSupport = yes"]),
        set("attributes-without-acl", &["Signature = SHA256", "XattrSupport = yes"]),
        set("acl-only", &["Signature = SHA1", "AclSupport = yes"]),
        set("sparse", &["Signature = SHA512", "Sparse = yes"]),
        set("no-hard-links", &["Signature = XXHASH64", "HardLinks = no"]),
        set("plain", &["Signature = XXH3_128"]),
        set("nothing", &[]),
    ]
}

/// Queues a backup of each file set by each client, all at once, and waits for them.
fn backups(bed: &Bed, sets: &[&str]) -> Result<Vec<[JobResult; 2]>> {
    let queue = |client: &str, set: &str| bed.queue(&format!("run job=backup-{client} fileset={set} yes"));
    let queued: Vec<_> =
        sets.iter().map(|set| Ok([queue("reference", set)?, queue("test", set)?])).collect::<Result<_>>()?;
    let wait = |job: u32| bed.wait(job)?.must_be_good();
    queued.into_iter().map(|[reference, test]| Ok([wait(reference)?, wait(test)?])).collect()
}

#[test]
fn volumes_catalog_and_report_are_those_of_the_stock_daemon() -> Result<()> {
    let mut options = BedOptions::side_by_side("volumes")?;
    let source = options.source()?;
    build_every_type(&source.join("types"), &TreeOptions::default())?;
    build_many_files(&source.join("many"), 2, 1000, 4000)?;
    set_fixed_times(&source)?;
    options.file_sets = file_sets(&source);
    let names: Vec<_> = options.file_sets.iter().map(|set| set.name.clone()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let bed = Bed::start(options)?;
    for (name, [reference, test]) in names.iter().zip(backups(&bed, &names)?) {
        let left = bed.records(&reference.row, "reference")?;
        let right = bed.records(&test.row, "test")?;
        let comparison = compare_records(left, right, RecordRules::default())?;
        assert!(comparison.is_equal(), "{name}: {}", comparison.text());
        assert!(comparison.records > 2000 && comparison.bytes > 5_000_000, "{name}: {comparison:?}");

        let (left, right) = (bed.catalog().files(reference.row.id)?, bed.catalog().files(test.row.id)?);
        assert_eq!(left.len() as u64, reference.row.files, "{name}");
        let unequal = left.iter().zip(&right).find(|(left, right)| left != right);
        assert!(unequal.is_none() && left.len() == right.len(), "{name}: catalog rows differ: {unequal:?}");

        let counts = |result: &JobResult| {
            let report = result.report();
            COUNTS_OF_A_REPORT.map(|key| (key, report.get(key).cloned()))
        };
        assert_eq!(counts(&reference), counts(&test), "{name}");
        let counts = |result: &JobResult| (result.row.files, result.row.bytes, result.row.read_bytes, result.row.level);
        assert_eq!(counts(&reference), counts(&test), "{name}");
        let told = |result: &JobResult, client: &str| result.messages_of(&format!("{client}-fd"));
        assert_eq!(told(&reference, "reference"), told(&test, "test"), "{name}: messages differ");
    }
    Ok(())
}

#[test]
fn the_rights_that_a_mask_leaves_stand_in_acls_as_with_the_stock_daemon() -> Result<()> {
    const ALL: u32 = u32::MAX;
    let mut options = BedOptions::side_by_side("masks")?;
    let source = options.source()?;
    for mask in 0..8 {
        let directory = source.join(format!("mask {mask}"));
        fs::create_dir_all(&directory).map_err(bed::BedError::file("make", &directory))?;
        let path = directory.join("file");
        fs::write(&path, "content\n").map_err(bed::BedError::file("write", &path))?;
        // Users and groups with short and long names, and without one.
        let users = [(1, 7), (2, 5), (33, 3), (1234, 6), (1_234_567_890, 0)].map(|(uid, rights)| (2, rights, uid));
        let groups = [(1, 4), (2, 7), (43, 2), (1234, 1), (1_234_567_890, 7)].map(|(gid, rights)| (8, rights, gid));
        let group = (4, 5, ALL);
        let entries = [&[(1, 7, ALL)][..], &users, &[group], &groups, &[(16, mask, ALL), (32, 4, ALL)]].concat();
        let acl = posix_acl(&entries);
        let set = |path: &Path, name| xattr::set(path, name, &acl).map_err(bed::BedError::file("set an ACL of", path));
        set(&path, "system.posix_acl_access")?;
        set(&directory, "system.posix_acl_default")?;
    }
    set_fixed_times(&source)?;
    options.file_sets = vec![FileSet::new("masks", &["AclSupport = yes"], &[&source])];
    let bed = Bed::start(options)?;
    let [reference, test] = backups(&bed, &["masks"])?.remove(0);
    let left = bed.records(&reference.row, "reference")?;
    let right = bed.records(&test.row, "test")?;
    let comparison = compare_records(left, right, RecordRules { mask_atime: true })?;
    assert!(comparison.is_equal() && comparison.records > 30, "{}", comparison.text());
    assert_eq!(reference.row.bytes, test.row.bytes);
    Ok(())
}
