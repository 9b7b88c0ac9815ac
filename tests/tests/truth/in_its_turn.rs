//! Storage that fails while a job waits.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, JobResult, Result, SlowStorage, fifo_writer};

/// Storage that fails between the opening of a file and its turn: the FIFO comes first, and gets
/// its writer when the storage has failed. The stock daemon takes the record without data for the
/// file in each accurate job that follows.
#[test]
fn a_file_that_fails_in_its_turn_is_tried_again_by_accurate_jobs() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    let mut options = BedOptions::side_by_side("in-its-turn")?;
    options.clients.push(ClientOptions::new(Fd::Stock).named("root"));
    let [gate, tree, seen]: [PathBuf; 3] = ["gate", "tree", "seen"].map(|name| options.folder.path().join(name));
    for folder in [&tree, &seen] {
        fs::create_dir(folder).unwrap();
    }
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    options.file_sets = vec![FileSet::new("Source", &["Signature = MD5", "ReadFifo = yes"], &[&gate, &seen])];
    let mut storage = SlowStorage::mount(Path::new(env!("CARGO_BIN_EXE_slowfs")), &[], &tree, &seen)?;
    let mut bed = Bed::start(options)?;
    for client in ["reference", "test"] {
        let keeps = bed.client(client)?.options.fd == Fd::Ours;
        write(&tree, "whole", 0);
        set_later(&gate, 0);
        let full = run(&bed, client, "Full", &gate, || Ok(()))?.must_be_good()?.row.id;
        write(&tree, "newer", 1);
        set_later(&gate, 1);
        // No read is answered from memory.
        storage.order("fault partial:1000000")?;
        storage.order("fault stop-read:lost")?;
        let failed =
            run(&bed, client, "Incremental accurate=yes", &gate, || fail(&mut storage, keeps))?.must_be('T')?;
        assert!(failed.log.contains("/lost. ERR=Input/output error"), "{}", failed.log);
        storage.order("clear")?;
        set_later(&gate, 2);
        let third = run(&bed, client, "Incremental accurate=yes", &gate, || Ok(()))?.must_be_good()?.row.id;
        let jobs = format!("{full},{},{third}", failed.row.id);
        let lost = if keeps { "newer" } else { "" };
        let found = restored(&bed, client, &jobs, &seen)?;
        assert_eq!(found, [lost, "newer"], "{client}");
    }
    storage.take_away();
    drop(bed);
    Ok(())
}

fn write(tree: &Path, text: &str, hours: u64) {
    for name in ["lost", "kept"] {
        fs::write(tree.join(name), text).unwrap();
        set_later(&tree.join(name), hours);
    }
}

fn set_later(path: &Path, hours: u64) {
    let later = SystemTime::now() + Duration::from_secs(3600 * hours);
    fs::File::options().read(true).write(true).open(path).unwrap().set_modified(later).unwrap();
}

/// A backup whose FIFO gets its writer after `meanwhile`.
fn run(bed: &Bed, client: &str, level: &str, gate: &Path, meanwhile: impl FnOnce() -> Result<()>) -> Result<JobResult> {
    let job = bed.queue(&format!("run job=backup-{client} level={level} yes"))?;
    meanwhile()?;
    fifo_writer(gate)?.write_all(b"data").unwrap();
    bed.wait(job)
}

/// From now on the file can't be read, of which ours has read the first byte.
fn fail(storage: &mut SlowStorage, reads_before: bool) -> Result<()> {
    if reads_before {
        storage.order("held")?;
    }
    storage.order("go")?;
    storage.order("fault error-read:lost")
}

/// The two files, without the FIFO, whose data would wait for a reader.
fn restored(bed: &Bed, client: &str, jobs: &str, seen: &Path) -> Result<[String; 2]> {
    let files = ["lost", "kept"].map(|name| seen.join(name).display().to_string());
    let list = bed.folder().join("list");
    fs::write(&list, files.join("\n") + "\n").unwrap();
    let target = bed.folder().join(format!("restored-{client}")).display().to_string();
    bed.run(&format!(
        "restore jobid={jobs} client={client}-fd restoreclient=root-fd where={target} file=<{} yes",
        list.display()
    ))?;
    Ok(files.map(|file| fs::read_to_string(target.clone() + &file).unwrap()))
}
