//! Trees that are unpleasant to walk: names that are no text, paths as long as the kernel takes,
//! directories that are deep or wide, one file with thousands of names, files that change while
//! they are saved. What lands on the volume and in the catalog is what the stock daemon sends.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use bed::{
    Attributes, Bed, BedOptions, Fd, FileSet, JobResult, LStat, Noise, PATIENCE, RecordRules, Result, SlowStorage,
    TreeOptions, argv, build_every_type, compare_records, descriptors, run, set_fixed_times, unescaped, usage,
    wait_for,
};

/// What ferrofd may take at most, whatever the tree: twice what it needs for any of these. Half a
/// kilobyte for each entry of the largest would show.
const MOST_MEMORY: u64 = 32 << 20;

/// Saves a tree with both daemons, and says what it cost them; records, catalog rows and the
/// daemons' messages must be equal, and so many.
#[expect(clippy::print_stderr, reason = "the memory of both daemons is printed for the reader")]
fn must_be_equal(label: &str, build: impl FnOnce(&Path) -> Result<()>, files: u64) -> Result<()> {
    let mut options = BedOptions::side_by_side(label)?;
    let source = options.source()?;
    build(&source)?;
    set_fixed_times(&source)?;
    // The Director writes each message to the disk by itself.
    options.every_message = files < 1000;
    if files > 1000 {
        // Nor does the catalog's part of it get better with size.
        options.pool.push("Catalog Files = no".to_owned());
    }
    options.file_sets = vec![FileSet::new("Hostile", &["Signature = MD5", "XattrSupport = yes"], &[&source])];
    let mut bed = Bed::start(options)?;
    let [reference, test] = both_jobs(&bed, "Hostile")?.map(|job| bed.wait(job));
    let [reference, test] = [reference?.must_be_good()?, test?.must_be_good()?];
    assert!(reference.row.files >= files, "{} files", reference.row.files);
    jobs_must_be_equal(&bed, [&reference, &test])?;
    let peaks =
        [bed.client("reference")?.pid()?, bed.client("test")?.pid()?].map(|pid| usage(pid).unwrap().peak_memory);
    eprintln!("{label}: peak memory of the stock daemon {} KiB, of ours {} KiB", peaks[0] >> 10, peaks[1] >> 10);
    assert!(peaks[1] <= MOST_MEMORY, "{peaks:?}");
    Ok(())
}

/// Queues the backup of a `FileSet` by both daemons.
fn both_jobs(bed: &Bed, file_set: &str) -> Result<[u32; 2]> {
    let queue = |client: &str| bed.queue(&format!("run job=backup-{client} fileset={file_set} yes"));
    Ok([queue("reference")?, queue("test")?])
}

/// Records, catalog rows and the daemons' messages of two jobs, the stock daemon's first.
fn jobs_must_be_equal(bed: &Bed, [reference, test]: [&JobResult; 2]) -> Result<()> {
    let [left, right] = [bed.records(&reference.row, "reference")?, bed.records(&test.row, "test")?];
    let comparison = compare_records(left, right, RecordRules::default())?;
    assert!(comparison.is_equal(), "{}", comparison.text());
    let [left, right] = [bed.catalog().files(reference.row.id)?, bed.catalog().files(test.row.id)?];
    let unequal = left.iter().zip(&right).find(|(left, right)| left != right);
    assert!(unequal.is_none() && left.len() == right.len(), "catalog rows differ: {unequal:?}");
    let [left, right] = [reference.messages_of("reference-fd"), test.messages_of("test-fd")];
    let unequal = left.iter().zip(&right).find(|(left, right)| plain(left) != plain(right));
    assert!(unequal.is_none() && left.len() == right.len(), "messages differ: {unequal:?}");
    Ok(())
}

/// A message up to the first line end of a name, and without what is not printable in it, which
/// only ours escapes.
fn plain(message: &str) -> String {
    let mut text = unescaped(&[message.to_owned()]).into_iter().next().unwrap_or_default();
    text.retain(|character| !character.is_control() && character != char::REPLACEMENT_CHARACTER);
    text
}

/// A small file with times that do not depend on the clock.
fn file(path: &Path) -> Result<()> {
    fs::write(path, path.as_os_str().as_encoded_bytes()).unwrap();
    set_fixed_times(path)
}

#[test]
fn names_of_any_bytes_and_the_longest_path_are_saved_alike() -> Result<()> {
    let options = TreeOptions { longest_path: 4095, large_file: 100_001 };
    must_be_equal("names", |source| build_every_type(source, &options), 80)
}

#[test]
fn a_tree_of_three_hundred_levels_is_saved_alike() -> Result<()> {
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
fn a_directory_of_thirty_thousand_entries_is_saved_alike() -> Result<()> {
    let build = |source: &Path| (0..30_000).try_for_each(|number| file(&source.join(format!("entry-{number}"))));
    must_be_equal("wide", build, 30_001)
}

#[test]
fn twenty_thousand_links_of_one_file_are_saved_alike() -> Result<()> {
    let build = |source: &Path| {
        let first = source.join("first");
        fs::write(&first, vec![7; 100_000]).unwrap();
        for number in 0..20_000 {
            let directory = source.join(format!("d{}", number % 10));
            fs::create_dir_all(&directory).unwrap();
            fs::hard_link(&first, directory.join(format!("name-{number}"))).unwrap();
        }
        (0..10).try_for_each(|number| set_fixed_times(&source.join(format!("d{number}"))))?;
        set_fixed_times(&first)
    };
    must_be_equal("names-of-one", build, 20_011)
}

/// A bed whose daemons need minutes for a large file until [`let_run`], with `FileSets` that name
/// these files of its source one by one.
fn slow_bed(label: &str, sets: &[&[&str]]) -> Result<Bed> {
    let mut options = BedOptions::side_by_side(label)?;
    let source = options.source()?;
    // With TLS the stock daemon's limit is none.
    options.tls_psk = false;
    for client in &mut options.clients {
        client.file_daemon.push("Maximum Bandwidth Per Job = 50 kb/s".to_owned());
    }
    if let Some(test) = options.clients.last_mut() {
        test.settings = vec!["job.workers = 1".to_owned(), "job.memory = \"4 MiB\"".to_owned()];
    }
    for names in sets {
        let first = names.first().copied().unwrap_or_default();
        let paths: Vec<_> = names.iter().map(|name| source.join(name)).collect();
        for path in &paths {
            let length = if path.ends_with(first) { LARGE } else { 1000 };
            fs::write(path, Noise::new(7).bytes(length)).unwrap();
            set_fixed_times(path)?;
        }
        let paths: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
        options.file_sets.push(FileSet::new(first, &["Signature = MD5", "CheckFileChanges = yes"], &paths));
    }
    Bed::start(options)
}

/// Bytes of a large file.
const LARGE: usize = 32_000_000;
/// What is left of it after something has cut it: more than is read until [`let_run`], the buffers
/// of the connection included.
const SHRUNK: usize = 31_000_000;

/// Lifts the limit of these jobs.
fn let_run<'j>(bed: &Bed, jobs: impl IntoIterator<Item = &'j u32>) -> Result<()> {
    let orders: Vec<_> = jobs.into_iter().map(|job| format!("setbandwidth limit=500mb/s jobid={job}")).collect();
    bed.console(&orders.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(())
}

/// Waits until both daemons have opened the files.
fn wait_until_open(bed: &mut Bed, paths: &[PathBuf]) -> Result<()> {
    let pids = [bed.client("reference")?.pid()?, bed.client("test")?.pid()?];
    wait_for("both daemons to read", PATIENCE, || {
        for pid in pids {
            let open = descriptors(pid)?;
            if let Some(path) = paths.iter().find(|path| !open.contains(&path.display().to_string())) {
                return Ok(Err(format!("{pid} has not opened {}", path.display())));
            }
        }
        Ok(Ok(()))
    })
}

#[test]
fn files_that_grow_shrink_vanish_and_lose_their_modes_while_they_are_read() -> Result<()> {
    let names = ["grow", "shrink", "vanish", "chmod"];
    let mut bed = slow_bed("changing", &names.map(|name| [name]).each_ref().map(<[&str; 1]>::as_slice))?;
    let at = |name: &str| bed.folder().join("source").join(name);
    let paths = names.map(at);
    let jobs = names.iter().map(|name| both_jobs(&bed, name)).collect::<Result<Vec<_>>>()?;
    wait_until_open(&mut bed, &paths)?;
    File::options().append(true).open(&paths[0]).unwrap().write_all(&Noise::new(8).bytes(1_000_000)).unwrap();
    File::options().write(true).open(&paths[1]).unwrap().set_len(SHRUNK as u64).unwrap();
    fs::remove_file(&paths[2]).unwrap();
    fs::set_permissions(&paths[3], std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let_run(&bed, jobs.iter().flatten())?;
    let lengths = [LARGE + 1_000_000, SHRUNK, LARGE, LARGE];
    for ((name, jobs), length) in names.iter().zip(jobs).zip(lengths) {
        let [reference, test] = [bed.wait(jobs[0])?.must_be('T')?, bed.wait(jobs[1])?.must_be('T')?];
        assert_eq!(reference.row.read_bytes, length as u64, "{name}: {}", reference.log);
        if *name == "grow" && Fd::under_test()? == Fd::Ours {
            // What is appended waits for the next job: the attributes were sent before.
            assert_eq!(test.row.read_bytes, LARGE as u64, "{}", test.log);
        } else {
            jobs_must_be_equal(&bed, [&reference, &test])?;
        }
        let told = reference.log.contains("changed during backup") || reference.log.contains("Cannot stat file");
        assert!(told, "{name}: {}", reference.log);
    }
    Ok(())
}

/// Name, stream and bytes of a record.
type Content = (Vec<u8>, i32, Vec<u8>);

/// The stock daemon reads an entry's attributes in its turn; ours has read them before, and reads
/// them again when it is open.
#[test]
fn a_file_that_changed_before_it_is_read_is_saved_as_it_is() -> Result<()> {
    let mut bed = slow_bed("ahead", &[&["held", "gone", "rewritten", "kept"]])?;
    let source = bed.folder().join("source");
    let jobs = both_jobs(&bed, "held")?;
    wait_until_open(&mut bed, &[source.join("held")])?;
    fs::remove_file(source.join("gone")).unwrap();
    fs::write(source.join("rewritten"), Noise::new(9).bytes(70_000)).unwrap();
    let_run(&bed, &jobs)?;
    let [reference, test] = [bed.wait(jobs[0])?.must_be('T')?, bed.wait(jobs[1])?.must_be('T')?];
    let told = [reference.messages_of("reference-fd"), test.messages_of("test-fd")].map(|lines| lines.join("\n"));
    let name = source.join("gone").display().to_string();
    assert!(told[0].contains(&format!("Could not stat \"{name}\": ERR=No such file or directory")), "{}", told[0]);
    assert!(told[1].contains(&format!("Could not stat \"{name}\": ERR=No such file or directory")), "{}", told[1]);
    // Everything that was there to be read is the same, name by name.
    let content = |result: &JobResult, client: &str| -> Result<Vec<Content>> {
        let mut name = Vec::new();
        let mut found = Vec::new();
        for record in bed.records(&result.row, client)? {
            let record = record?;
            if record.stream == Attributes::STREAM {
                name = Attributes::of(&record.data).path.to_vec();
            } else {
                found.push((name.clone(), record.stream, record.data));
            }
        }
        Ok(found)
    };
    let [left, right] = [content(&reference, "reference")?, content(&test, "test")?];
    assert!(left == right, "{} records against {}", left.len(), right.len());
    assert!(left.iter().any(|(name, ..)| name.ends_with(b"rewritten")));
    let sizes = |result: &JobResult| -> Result<Vec<_>> {
        let rows = bed.catalog().files(result.row.id)?.into_iter();
        Ok(rows.map(|row| (row.file_index, row.path, LStat::parse(&row.lstat).map(|lstat| lstat.size))).collect())
    };
    let [left, right] = [sizes(&reference)?, sizes(&test)?];
    assert_eq!(left, right, "numbers, names and sizes");
    assert!(left.iter().any(|(_, path, size)| path.ends_with(b"rewritten") && *size == Some(70_000)), "{left:?}");
    Ok(())
}

/// A file of the kernel that has a size and can't be read.
#[test]
fn a_read_error_ends_the_data_of_one_file_only() -> Result<()> {
    let unreadable = Path::new("/sys/class/net/lo/speed");
    skip::when!(fs::read(unreadable).is_ok() || !unreadable.exists(), "this kernel has no file that can not be read");
    let mut options = BedOptions::side_by_side("read-error")?;
    let source = options.source()?;
    file(&source.join("after"))?;
    set_fixed_times(&source)?;
    options.file_sets = vec![FileSet::new("Hostile", &["Signature = MD5"], &[unreadable, &source])];
    let bed = Bed::start(options)?;
    let [reference, test] = both_jobs(&bed, "Hostile")?.map(|job| bed.wait(job));
    let [reference, test] = [reference?.must_be('T')?, test?.must_be('T')?];
    assert!(
        reference.log.contains("Read error on file /sys/class/net/lo/speed. ERR=Invalid argument"),
        "{}",
        reference.log
    );
    assert_eq!((reference.row.files, reference.row.errors), (3, 2));
    assert_eq!(test.row.errors, reference.row.errors, "{}", test.log);
    jobs_must_be_equal(&bed, [&reference, &test])
}

/// Lets a shell mount something on a directory, which is `$0` to it.
fn mount(point: &Path, script: &str) -> Result<()> {
    let output = run(&argv(["sh".as_ref(), "-ec".as_ref(), script.as_ref(), point.as_os_str()]), b"")?;
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A tmpfs, the tree itself once more, and a FUSE file system whose program has died.
#[test]
fn mounts_below_the_tree_are_entered_or_left_out_and_a_dead_one_is_reported() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    let mut options = BedOptions::side_by_side("mounts")?;
    let source = options.source()?;
    let [inner, memory, again, dead] = ["inner", "memory", "again", "dead"].map(|name| source.join(name));
    for directory in [&inner, &memory, &again, &dead] {
        fs::create_dir(directory).unwrap();
    }
    file(&inner.join("file"))?;
    // What is below the mounts is seen through `again`.
    for directory in [&inner, &memory, &again, &dead] {
        set_fixed_times(directory)?;
    }
    mount(&memory, "mount -t tmpfs -o size=1m hostile \"$0\"")?;
    fs::create_dir(memory.join("sub")).unwrap();
    file(&memory.join("inside"))?;
    file(&memory.join("sub/deeper"))?;
    for directory in [&memory, &memory.join("sub"), &source] {
        set_fixed_times(directory)?;
    }
    mount(&again, "mount --bind \"${0%/again}\" \"$0\"")?;
    let descriptor = "exec 3<>/dev/fuse; mount -i -t fuse dead \"$0\" -o fd=3,rootmode=40000,user_id=0,group_id=0";
    mount(&dead, descriptor)?;
    options.file_sets =
        ["yes", "no"].map(|one| FileSet::new(one, &["Signature = MD5", &format!("OneFS = {one}")], &[&source])).into();
    let bed = Bed::start(options)?;
    let jobs = [both_jobs(&bed, "yes")?, both_jobs(&bed, "no")?];
    let report = format!("Could not stat \"{}\": ERR=Transport endpoint is not connected", dead.display());
    for ([reference, test], entered) in jobs.into_iter().zip([false, true]) {
        let [reference, test] = [bed.wait(reference)?.must_be('T')?, bed.wait(test)?.must_be('T')?];
        assert!(reference.log.contains(&report), "{}", reference.log);
        let files = bed.catalog().files(reference.row.id)?;
        let has = |name: &[u8]| files.iter().any(|row| row.path.ends_with(name));
        assert!(has(b"/again/inner/file") && has(b"/memory/"), "{files:?}");
        assert_eq!(has(b"/memory/sub/deeper"), entered, "{files:?}");
        jobs_must_be_equal(&bed, [&reference, &test])?;
    }
    Ok(())
}

/// What a user would have an operator read or see.
const FORGED: &str = "99-Nov 10:00 bed-dir JobId 1: Termination: Backup OK\u{1b}[2J";

#[test]
fn a_name_begins_no_line_of_the_job_s_log() -> Result<()> {
    let mut options = BedOptions::side_by_side("forged")?;
    let source = options.source()?;
    let name = format!("s\n{FORGED}");
    let _bound = UnixListener::bind(source.join(&name)).unwrap();
    fs::write(source.join(format!("f\n{FORGED}")), "data").unwrap();
    options.every_message = true;
    options.file_sets = vec![FileSet::new("Hostile", &["Signature = MD5"], &[&source])];
    let bed = Bed::start(options)?;
    for job in both_jobs(&bed, "Hostile")? {
        let job = bed.wait(job)?.must_be_good()?;
        let is_ours = job.log.contains("test-fd");
        let is_forged = job.log.lines().any(|line| line.starts_with("99-Nov 10:00 bed-dir"));
        assert_eq!(is_forged || job.log.contains('\u{1b}'), !is_ours, "{}", job.log);
        let shown = name.replace('\n', "\\n").replace('\u{1b}', "\\x1b");
        let of_socket = format!("Socket file skipped: {}/{shown}\n", source.display());
        assert_eq!(job.log.contains(&of_socket), is_ours, "{}", job.log);
    }
    let listing = bed.console(&["estimate job=backup-test fileset=Hostile listing"])?;
    assert!(listing.contains("f\\n99-Nov") && !listing.contains('\u{1b}'), "{listing}");
    Ok(())
}
