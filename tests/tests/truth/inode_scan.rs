//! What an Incremental saves does not depend on how it finds what has not changed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, RecordRules, Result, argv, compare_records, next_second, run};

/// Where an ext4 and a btrfs in files are mounted; or why this machine can't make them.
fn mount_both(folder: &Path) -> Result<std::result::Result<Vec<PathBuf>, &'static str>> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(Err("needs root, to mount"));
    }
    if !Path::new("/dev/loop-control").exists() {
        return Ok(Err("there are no loop devices"));
    }
    let mut tops = Vec::new();
    for (name, program, force, len) in [("ext4", "mkfs.ext4", "-F", 32 << 20), ("btrfs", "mkfs.btrfs", "-f", 160 << 20)]
    {
        let (image, top) = (folder.join(format!("{name}.image")), folder.join(name));
        fs::create_dir(&top).unwrap();
        fs::File::create(&image).unwrap().set_len(len).unwrap();
        let [image, place] = [&image, &top].map(|path| path.to_string_lossy());
        let made = run(&argv([program, "-q", force, &*image]), b"")?;
        assert!(made.status.success(), "{}", made.text());
        let mounted = run(&argv(["mount", "-o", "loop", &*image, &*place]), b"")?;
        if !mounted.status.success() && name == "btrfs" {
            skip::part("no btrfs");
            continue;
        }
        assert!(mounted.status.success(), "{}", mounted.text());
        tops.push(top);
    }
    Ok(Ok(tops))
}

/// A change of each kind that an Incremental has to find.
fn change(top: &Path, first: usize) {
    let path = |number: usize| top.join(format!("{}/{}", number % 4, first + number));
    let new = |name: &str| top.join(format!("{name} {first}"));
    fs::write(path(1), "written").unwrap();
    fs::set_permissions(path(2), Permissions::from_mode(0o600)).unwrap();
    fs::rename(path(3), new("2/renamed")).unwrap();
    fs::rename(path(4), path(5)).unwrap();
    fs::hard_link(path(6), new("1/link")).unwrap();
    fs::remove_file(path(7)).unwrap();
    fs::remove_file(path(8)).unwrap();
    fs::write(path(8), "anew").unwrap();
    fs::File::open(path(9)).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    std::os::unix::fs::symlink("target", new("3/symlink")).unwrap();
}

/// Two clients that differ in their setting, and a tree of files on each file system.
fn start(name: &str, job: &[&str]) -> Result<std::result::Result<(Bed, Vec<PathBuf>), &'static str>> {
    let clients = ["off", "always"].map(|setting| {
        let mut client = ClientOptions::new(Fd::Ours).named(setting);
        let settings = [
            format!("job.inode_scan = \"{setting}\""),
            "job.stage_times = true".to_owned(),
            "log.level = \"debug\"".to_owned(),
        ];
        client.settings.extend(settings);
        client.job.extend(job.iter().map(|line| (*line).to_owned()));
        client
    });
    let mut options = BedOptions::new(name, clients)?;
    let tops: Vec<PathBuf> = match mount_both(options.folder.path())? {
        Ok(mounted) => mounted.iter().map(|top| top.join("tree")).collect(),
        Err(why) => return Ok(Err(why)),
    };
    for (top, number) in tops.iter().flat_map(|top| (0..400).map(move |number| (top, number))) {
        let directory = top.join((number % 4).to_string());
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(number.to_string()), "x".repeat(number)).unwrap();
    }
    options.file_sets =
        vec![FileSet::new("Tree", &["Signature = MD5"], &tops.iter().map(PathBuf::as_path).collect::<Vec<_>>())];
    Ok(Ok((Bed::start(options)?, tops)))
}

/// Runs a job of each client after changes, and compares what they have saved.
/// Returns how many files are recorded as deleted.
fn jobs_save_the_same(bed: &Bed, level: &str) -> Result<usize> {
    next_second()?;
    // How many blocks a file has is settled when it is written out.
    nix::unistd::sync();
    next_second()?;
    let [off, always] = ["off", "always"].map(|client| bed.backup(client, &format!("level={level}")));
    let (off, always) = (off?.must_be_good()?, always?.must_be_good()?);
    let words = "entries not looked up after an inode scan";
    assert!(!off.log.contains(words) && always.log.contains(words), "{}\n{}", off.log, always.log);
    let (left, right) = (bed.records(&off.row, "off")?, bed.records(&always.row, "always")?);
    let compared = compare_records(left, right, RecordRules { mask_atime: true })?;
    assert!(compared.is_equal() && compared.records > 10, "{level}: {}", compared.text());
    let records: Vec<_> = bed.records(&always.row, "always")?.collect::<Result<_>>()?;
    let is_deleted =
        |record: &&bed::Record| record.stream == 1 && record.data.split(|byte| *byte == b' ').nth(1) == Some(b"23");
    Ok(records.iter().filter(is_deleted).count())
}

#[test]
fn an_incremental_with_an_inode_scan_saves_the_same_records() -> Result<()> {
    let (mut bed, tops) = match start("inode-scan", &[])? {
        Ok(started) => started,
        Err(why) => return skip::test(why),
    };
    // Each client's job begins in a second of its own, and what was changed in that second counts
    // as changed after it.
    next_second()?;
    for client in ["off", "always"] {
        bed.backup(client, "level=Full")?.must_be_good()?;
    }
    for (round, level) in ["Differential", "Incremental"].into_iter().enumerate() {
        next_second()?;
        for top in &tops {
            change(top, round * 20);
        }
        jobs_save_the_same(&bed, level)?;
    }
    for (client, wanted) in [("off", 0), ("always", 2 * tops.len())] {
        let output = bed.client(client)?.daemon().output();
        let is_scan = |line: &&str| line.contains("inode scan") && !line.contains("no inode scan");
        assert_eq!(output.lines().filter(is_scan).count(), wanted, "{client}: {output}");
    }
    Ok(())
}

#[test]
fn an_accurate_job_with_an_inode_scan_saves_the_same_records_and_names_the_same_deleted_files() -> Result<()> {
    let (bed, tops) = match start("inode-scan-acc", &["Accurate = yes"])? {
        Ok(started) => started,
        Err(why) => return skip::test(why),
    };
    for top in &tops {
        fs::write(top.join("aside"), "restored").unwrap();
    }
    next_second()?;
    for client in ["off", "always"] {
        bed.backup(client, "level=Full")?.must_be_good()?;
    }
    for (round, level) in ["Differential", "Incremental", "Incremental"].into_iter().enumerate() {
        next_second()?;
        for top in &tops {
            change(top, round * 20);
            let old = top.join("3/old times");
            if round == 1 {
                fs::rename(top.join("aside"), &old).unwrap();
                fs::File::open(&old).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            }
        }
        let deleted = jobs_save_the_same(&bed, level)?;
        assert!(deleted >= 3 * tops.len(), "{level}: {deleted}");
        if round == 1 {
            // All in it is new and gone, and back again.
            for (from, to) in [("0", "4"), ("4", "0")] {
                for top in &tops {
                    fs::rename(top.join(from), top.join(to)).unwrap();
                }
                let deleted = jobs_save_the_same(&bed, level)?;
                assert!(deleted > 90 * tops.len(), "{deleted}");
            }
        }
    }
    Ok(())
}
