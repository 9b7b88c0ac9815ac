//! Files that can't be opened or read any more, in jobs that build on an earlier one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, Result, SlowStorage, job_resource};

/// Saves two files of `tree`, which the jobs see at `seen`, with both daemons, and once more with
/// newer contents; `fail` takes the data of `lost` away in between, and each try is so many
/// `errors`.
///
/// The stock daemon sends a record without data, and a restore of the newest copies makes an empty
/// file of it. In an accurate job it takes that record for the file, and does not try it again.
fn judge(
    mut options: BedOptions,
    [tree, seen]: [&Path; 2],
    fail: impl FnOnce(&Path) -> Result<()>,
    (said, errors): (&str, u32),
) -> Result<Bed> {
    options.clients.push(ClientOptions::new(Fd::Stock).named("root"));
    let names = ["lost", "kept"];
    let write = |text: &str| {
        for name in names {
            fs::write(tree.join(name), text).unwrap();
        }
    };
    write("whole");
    // Where the first name has no data, the second is tried.
    fs::hard_link(tree.join("lost"), tree.join("lost-too")).unwrap();
    options.file_sets = vec![FileSet::new("Source", &["Signature = MD5"], &[seen])];
    let mut bed = Bed::start(options)?;
    let fulls = ["reference", "test"].map(|client| bed.backup(client, "level=Full"));
    write("newer");
    // Newer than the Full, in whichever second that has begun.
    for name in names {
        let later = SystemTime::now() + Duration::from_secs(3600);
        fs::File::options().append(true).open(tree.join(name)).unwrap().set_modified(later).unwrap();
    }
    fail(&tree.join("lost"))?;
    for (client, full) in ["reference", "test"].into_iter().zip(fulls) {
        let full = full?.must_be_good()?.row.id;
        let keeps = bed.client(client)?.options.fd == Fd::Ours;
        let mut jobs = format!("{full}");
        for accurate in ["no", "yes"] {
            let job = bed.backup(client, &format!("level=Incremental accurate={accurate}"))?;
            let is_tried = job.log.contains(said);
            assert_eq!(is_tried, keeps || accurate == "no", "accurate={accurate}: {}", job.log);
            let tries = if is_tried { if keeps { 2 } else { 1 } } else { 0 };
            assert_eq!((job.row.status, job.row.errors), ('T', tries * errors), "{}", job.log);
            jobs = format!("{jobs},{}", job.row.id);
            let restored = restored(&bed, client, &jobs, seen, &["lost", "lost-too", "kept"])?;
            let lost = if keeps { "whole" } else { "" };
            assert_eq!(restored, [lost, lost, "newer"], "{client}, accurate={accurate}");
        }
    }
    Ok(bed)
}

/// What a restore of these jobs makes of these files.
fn restored(bed: &Bed, client: &str, jobs: &str, seen: &Path, names: &[&str]) -> Result<Vec<String>> {
    let target = bed.folder().join(format!("restored-{client}-{jobs}"));
    bed.run(&format!(
        "restore jobid={jobs} client={client}-fd restoreclient=root-fd where={} replace=always all done yes",
        target.display()
    ))?;
    let read = |name: &&str| {
        let path = target.join(seen.strip_prefix("/").unwrap()).join(name);
        fs::read_to_string(path).unwrap()
    };
    Ok(names.iter().map(read).collect())
}

#[test]
fn a_file_that_can_t_be_opened_keeps_its_copy_of_an_earlier_job() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "only root can start a daemon that becomes another user");
    let mut options = BedOptions::side_by_side("not-opened")?;
    for client in &mut options.clients {
        client.user = Some("nobody".to_owned());
    }
    let source = options.source()?;
    let close = |file: &Path| {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
        Ok(())
    };
    judge(options, [&source, &source], close, ("ERR=Permission denied.", 1)).map(drop)
}

/// The stock daemon restores an empty file.
#[test]
fn a_file_that_was_saved_without_data_replaces_none() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "only root can start a daemon that becomes another user");
    let mut options = BedOptions::side_by_side("no-data")?;
    for client in &mut options.clients {
        client.user = Some("nobody".to_owned());
    }
    let source = options.source()?;
    let file = source.join("file");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(source.join("other"), "readable").unwrap();
    options.file_sets = vec![FileSet::new("Source", &["Signature = MD5"], &[&source])];
    let mut bed = Bed::start(options)?;
    for client in ["reference", "test"] {
        let keeps = bed.client(client)?.options.fd == Fd::Ours;
        // Root's own: a daemon that is not root gives what it makes to itself.
        let _none_yet = fs::remove_file(&file);
        fs::write(&file, "precious").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let full = bed.backup(client, "level=Full")?.must_be('T')?.row.id;
        let log = bed.run(&format!("restore jobid={full} client={client}-fd where=/ replace=always all done yes"))?.log;
        let left = fs::read_to_string(&file).unwrap();
        assert_eq!(left, if keeps { "precious" } else { "" }, "{client}: {log}");
        let said = format!("File {} is kept as it is.", file.display());
        assert_eq!(log.contains(&said), keeps, "{client}: {log}");
    }
    Ok(())
}

#[test]
fn a_file_that_can_t_be_read_keeps_its_copy_of_an_earlier_job() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    let options = BedOptions::side_by_side("not-read")?;
    let [tree, seen]: [PathBuf; 2] = ["tree", "seen"].map(|name| options.folder.path().join(name));
    for folder in [&tree, &seen] {
        fs::create_dir(folder).unwrap();
    }
    let mut storage = SlowStorage::mount(Path::new(env!("CARGO_BIN_EXE_slowfs")), &[], &tree, &seen)?;
    let fail = |_file: &Path| storage.order("fault error-read:lost");
    let bed = judge(options, [&tree, &seen], fail, ("ERR=Input/output error", 2))?;
    // Before the bed removes its folder.
    storage.take_away();
    drop(bed);
    Ok(())
}

/// In a Full there is no earlier copy to be hidden, so the file has a record without data. The
/// stock daemon takes that for the file in each accurate job that follows.
#[test]
fn a_file_that_a_full_could_not_open_is_tried_again_by_accurate_jobs() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    let mut options = BedOptions::side_by_side("try-again")?;
    options.clients.push(ClientOptions::new(Fd::Stock).named("root"));
    let [tree, seen]: [PathBuf; 2] = ["tree", "seen"].map(|name| options.folder.path().join(name));
    for folder in [&tree, &seen] {
        fs::create_dir(folder).unwrap();
    }
    for name in ["lost", "kept"] {
        fs::write(tree.join(name), "whole").unwrap();
    }
    let mut base = Vec::new();
    for client in ["reference", "test"] {
        for (job, line) in [("base", "Level = Base".to_owned()), ("on-base", format!("Base = base-{client}"))] {
            let more = format!("Type = Backup\nLevel = Full\nAccurate = yes\n{line}");
            base.push(job_resource(&format!("{job}-{client}"), client, "Source", &more));
        }
    }
    options.director_resources = base;
    options.file_sets = vec![FileSet::new("Source", &["Signature = MD5"], &[&seen])];
    let mut storage = SlowStorage::mount(Path::new(env!("CARGO_BIN_EXE_slowfs")), &[], &tree, &seen)?;
    let mut bed = Bed::start(options)?;
    for client in ["reference", "test"] {
        let keeps = bed.client(client)?.options.fd == Fd::Ours;
        storage.order("fault error-open:lost")?;
        let full = bed.backup(client, "level=Full")?.must_be('T')?;
        assert!(full.log.contains("/lost\": ERR=Input/output error."), "{}", full.log);
        storage.order("clear")?;
        let accurate = bed.backup(client, "level=Incremental accurate=yes")?.must_be_good()?;
        let jobs = format!("{},{}", full.row.id, accurate.row.id);
        let lost = if keeps { "whole" } else { "" };
        assert_eq!(restored(&bed, client, &jobs, &seen, &["lost", "kept"])?, [lost, "whole"], "{client}");

        // A base is an earlier job, too. Its copy is named where the file of today can't be had.
        bed.run(&format!("run job=base-{client} yes"))?.must_be_good()?;
        fs::write(tree.join("lost"), "newer").unwrap();
        storage.order("fault error-open:lost")?;
        let full = bed.run(&format!("run job=on-base-{client} yes"))?.must_be('T')?;
        storage.order("clear")?;
        let jobs = full.row.id.to_string();
        assert_eq!(restored(&bed, client, &jobs, &seen, &["lost", "kept"])?, [lost, "whole"], "{client}, on a base");
        fs::write(tree.join("lost"), "whole").unwrap();
    }
    storage.take_away();
    drop(bed);
    Ok(())
}
