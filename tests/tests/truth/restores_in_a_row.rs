//! Restores by real daemons that come one after the other, and the Director's word for the end of
//! one.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, JobResult, Noise, PATIENCE, Relay, Restore, Result, below,
    set_fixed_times, wait_for,
};
use nix::sys::stat::Mode;

/// What the Director says of the end of a job.
fn ends(result: &JobResult) -> [Option<String>; 4] {
    let report = result.report();
    ["FD Errors", "FD termination status", "Termination", "Files Restored"].map(|key| report.get(key).cloned())
}

#[test]
fn a_restore_whose_last_file_fails_ends_as_with_the_stock_daemon() -> Result<()> {
    // As in Debian's configuration restored files have no lines, which have their effect on what is
    // queued all the same.
    let mut options = BedOptions::side_by_side("last-fails")?;
    let source = options.source()?;
    let [first, second, third] = ["a/first", "b/second", "c/third"].map(|name| source.join(name));
    for path in [&first, &second, &third] {
        fs::create_dir(path.parent().unwrap()).unwrap();
    }
    fs::write(&first, b"data").unwrap();
    fs::hard_link(&first, &second).unwrap();
    fs::write(&third, b"more").unwrap();
    set_fixed_times(&source)?;
    options.file_sets = vec![FileSet::new("Links", &["Signature = MD5"], &[&first, &second, &third])];
    let bed = Bed::start(options)?;
    let job = bed.backup("reference", "")?.must_be_good()?.row.id;
    for (case, files) in [("last", vec![&second]), ("before-another", vec![&second, &third])] {
        let mut seen = Vec::new();
        for client in ["reference", "test"] {
            let to = bed.folder().join(format!("{case}-{client}"));
            let list = bed.folder().join("files");
            let names: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
            fs::write(&list, names.join("\n") + "\n").unwrap();
            let result = bed.run(&format!(
                "restore jobid={job} client=reference-fd restoreclient={client}-fd where={} file=<{} yes",
                to.display(),
                list.display()
            ))?;
            assert!(result.log.contains("create_file.c:360 Could not hard link "), "{}", result.log);
            let told: Vec<_> = result
                .messages_of(&format!("{client}-fd"))
                .into_iter()
                .map(|line| line.replace(&to.display().to_string(), "@"))
                .collect();
            seen.push((ends(&result), told));
        }
        assert_eq!(seen[0], seen[1], "{case}");
        let termination = seen[0].0[2].clone().unwrap_or_default();
        let expected = if case == "before-another" { "*** Restore Error ***" } else { "Restore OK -- with errors" };
        assert_eq!(termination, expected, "{case}");
    }
    Ok(())
}

#[test]
fn consecutive_restores_write_nothing_outside_of_where() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon follows such links");
    let mut options = BedOptions::new("in-a-row", [ClientOptions::new(Fd::under_test()?).named("test")])?;
    let source = options.source()?;
    let live = options.folder.path().join("live");
    fs::create_dir(&live).unwrap();
    fs::write(live.join("x"), b"kept").unwrap();
    fs::set_permissions(live.join("x"), fs::Permissions::from_mode(0o600)).unwrap();
    // The first backup has a link, the second one a directory with a program in its place, and
    // another name of a file.
    let [link, program, first, second, fifo] =
        ["l", "l/x", "stays/first", "moves/second", "fifo"].map(|name| source.join(name));
    symlink(&live, &link).unwrap();
    options.file_sets = vec![
        FileSet::new("Link", &["Signature = MD5"], &[&link]),
        FileSet::new("Program", &["Signature = MD5", "readfifo = yes"], &[&program, &first, &second, &fifo]),
    ];
    let bed = Bed::start(options)?;
    let backup = |set: &str| bed.backup("test", &format!("fileset={set}"))?.must_be_good();
    let job_of_link = backup("Link")?.row.id;
    fs::remove_file(&link).unwrap();
    for directory in ["l", "stays", "moves"] {
        fs::create_dir(source.join(directory)).unwrap();
    }
    fs::write(&program, b"evil").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::write(&first, b"live").unwrap();
    fs::hard_link(&first, &second).unwrap();
    nix::unistd::mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::write(fifo, b"from a program").unwrap()
    });
    let job_of_program = backup("Program")?.row.id;
    writer.join().unwrap();

    let to = bed.folder().join("to");
    let restore = |job: u32, arguments: &str| {
        bed.run(&format!("restore jobid={job} client=test-fd restoreclient=test-fd {arguments} all done yes"))
    };
    let whereto = format!("where={}", to.display());
    // What is where the FIFO's data would go.
    fs::create_dir_all(below(&to, &source)).unwrap();
    fs::write(below(&to, &fifo), b"kept").unwrap();
    restore(job_of_link, &whereto)?.must_be_good()?;
    assert_eq!(fs::read_link(below(&to, &link)).unwrap(), live);
    let before = fs::metadata(live.join("x")).unwrap();
    for _ in 0..2 {
        let result = restore(job_of_program, &whereto)?;
        let refused = format!("symbolic link {}: it leads out of the restore directory.", below(&to, &link).display());
        assert!(result.log.contains(&refused), "{}", result.log);
        assert!(result.log.contains("it is a regular file, the data is that of a FIFO."), "{}", result.log);
        let after = fs::metadata(live.join("x")).unwrap();
        assert_eq!((after.mode(), after.ino(), after.ctime()), (before.mode(), before.ino(), before.ctime()));
        assert_eq!(
            (fs::read(live.join("x")).unwrap(), fs::read(below(&to, &fifo)).unwrap()),
            (b"kept".to_vec(), b"kept".to_vec())
        );
        assert_eq!(fs::read(below(&to, &second)).unwrap(), b"live");
    }

    // Only the further name is moved.
    let regex = format!("regexwhere=!^{}/moves!{}!", source.display(), bed.folder().join("moved").display());
    let before = fs::metadata(&first).unwrap();
    fs::remove_file(&fifo).unwrap();
    let result = restore(job_of_program, &format!("{regex} replace=never"))?;
    assert!(result.log.contains("regexwhere gives it another name"), "{}", result.log);
    let after = fs::metadata(&first).unwrap();
    assert_eq!((after.nlink(), after.ctime()), (before.nlink(), before.ctime()));
    assert!(!bed.folder().join("moved/second").exists());
    Ok(())
}

/// Whether each of these files is below this folder as it is here.
fn all_are_whole(files: &[PathBuf], to: &Path) -> bool {
    files.iter().all(|file| fs::read(below(to, file)).is_ok_and(|data| data == fs::read(file).unwrap()))
}

#[test]
fn what_a_killed_restore_has_left_is_replaced_in_every_replace_mode() -> Result<()> {
    const FILES: u64 = 30;
    const SIZE: usize = 3 << 20;
    // In the middle of one of the files.
    const RECEIVED: usize = 10 * SIZE + SIZE / 2;
    let daemon = Fd::under_test()?;
    let mut options = BedOptions::new("killed", [ClientOptions::new(daemon).named("test")])?;
    let relay = Relay::new()?;
    options.storage_port = Some(relay.port());
    let source = options.source()?;
    let files: Vec<_> = (0..FILES).map(|number| source.join(number.to_string())).collect();
    for (number, file) in (0..).zip(&files) {
        fs::write(file, Noise::new(number).bytes(SIZE)).unwrap();
    }
    set_fixed_times(&source)?;
    options.file_sets = vec![FileSet::new("Large", &["Signature = MD5"], &[&source])];
    let mut bed = Bed::start(options)?;
    relay.aim(bed.storage().port());
    let job = bed.backup("test", "fileset=Large")?.must_be_good()?.row.id;
    for replace in ["ifnewer", "never"] {
        let to = bed.folder().join(replace);
        let restore = Restore { job, from: "test", onto: "test", to: &to, replace };
        relay.stand_after(RECEIVED);
        let killed = bed.queue_restore(&restore)?;
        wait_for("a file that is not complete", PATIENCE, || {
            let seen = files.iter().filter_map(|file| fs::metadata(below(&to, file)).ok());
            let sizes: Vec<_> = seen.map(|file| file.len()).collect();
            Ok(if sizes.iter().any(|size| (1..SIZE as u64).contains(size)) {
                Ok(())
            } else {
                Err(format!("{sizes:?}"))
            })
        })?;
        relay.stand_after(usize::MAX);
        bed.client("test")?.daemon().kill()?;
        assert_eq!(bed.wait(killed)?.row.status, 'f');
        bed.client("test")?.daemon().start()?;
        let again = bed.restore(&restore)?.must_be_good()?;
        // The stock daemon keeps what is torn, and says that all is well.
        assert_eq!(all_are_whole(&files, &to), daemon != Fd::Stock, "{replace}: {}", again.log);
    }
    Ok(())
}
