//! What jobs do where a host is not as usual: programs that write odd lines, files whose size is
//! not told, names with odd addresses. Beside the stock daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, JobResult, Result, SlowStorage, in_order_of_names, mount_memory,
};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

/// The clients of a bed with both daemons.
const BOTH: [&str; 2] = ["reference", "test"];

/// The messages of a job with these words, without what differs from client to client.
fn said(job: &JobResult, client: &str, what: &str) -> Vec<String> {
    job.plain_messages(client).into_iter().filter(|line| line.contains(what)).collect()
}

#[test]
fn what_a_run_script_prints_is_cut_into_the_stock_daemon_s_lines() -> Result<()> {
    let mut options = BedOptions::side_by_side("odd-lines")?;
    options.source()?;
    let odd = options.folder.path().join("odd");
    let lines = r"10%%\r50%%\rdone\ndos line\r\nnul\0tail\n\n\r\r\n\r\nx\n\0\n";
    let (long, full) = ("x".repeat(600), "y".repeat(499));
    scripts::write(&odd, &format!(r"printf '{lines}'; printf '{long}\n{full}\rz\nno end'")).unwrap();
    for client in &mut options.clients {
        client.job = vec![format!("Client Run Before Job = {}", odd.display())];
    }
    let bed = Bed::start(options)?;
    let [stock, ours] = BOTH.map(|client| bed.backup(client, "").map(|job| said(&job, client, "RunBeforeJob: ")));
    let (stock, ours) = (stock?, ours?);
    assert!(stock.len() > 15, "{stock:?}");
    assert_eq!(stock, ours);
    Ok(())
}

#[test]
fn what_a_list_program_says_on_standard_error_is_in_the_job_s_log() -> Result<()> {
    let mut options = BedOptions::side_by_side("list-errors")?;
    let file = options.source()?.join("f");
    fs::write(&file, "x").unwrap();
    let program = options.folder.path().join("program");
    scripts::write(&program, &format!("echo {}; echo disk is nearly full >&2; printf 'no end' >&2", file.display()))
        .unwrap();
    let listed = format!("File = \"\\\\|{}\"", program.display());
    options.file_sets = vec![FileSet::new("Listed", &["Signature = MD5"], &[]).with(listed)];
    let bed = Bed::start(options)?;
    let [stock, ours] = BOTH.map(|client| bed.backup(client, "").map(|job| (said(&job, client, "fd: "), job)));
    let ((stock, _), (ours, job)) = (stock?, ours?);
    assert_eq!(without_address(&stock), without_address(&ours));
    assert!(job.log.contains("disk is nearly full") && job.log.contains("no end"), "{}", job.log);
    assert_eq!(job.row.files, 1);
    Ok(())
}

#[test]
fn a_carriage_return_ends_a_line_of_a_list() -> Result<()> {
    let mut options = BedOptions::side_by_side("list-returns")?;
    let source = options.source()?;
    let names = ["a", "b", "c", "d"].map(|name| source.join(name).display().to_string());
    for name in &names {
        fs::write(name, "x").unwrap();
    }
    let [a, b, c, d] = names;
    let list = options.folder.path().join("list");
    fs::write(&list, format!("{a}\r{b}\r{c}\r\n{d}\r")).unwrap();
    let listed = [format!("\\\\<{}", list.display()), format!("\\\\|/bin/cat {}", list.display())];
    options.file_sets = (0..)
        .zip(listed)
        .map(|(number, listed)| {
            let set = FileSet::new(&format!("List{number}"), &["Signature = MD5"], &[]);
            set.with(format!("File = \"{listed}\""))
        })
        .collect();
    let bed = Bed::start(options)?;
    for set in ["fileset=List0", "fileset=List1"] {
        for client in BOTH {
            let job = bed.backup(client, set)?.must_be_good()?;
            assert_eq!(job.row.files, 4, "{client} {set}: {}", job.log);
        }
    }
    Ok(())
}

/// The messages but that of the Storage Daemon's address.
fn without_address(said: &[String]) -> Vec<&String> {
    said.iter().filter(|line| !line.contains("Connected to Storage")).collect()
}

#[test]
fn a_file_whose_size_is_not_known_is_named() -> Result<()> {
    let mut options = BedOptions::side_by_side("no-size")?;
    options.file_sets = ["/proc/version", "/proc/sys/kernel"]
        .map(|place| FileSet::new(place.rsplit('/').next().unwrap(), &["Signature = MD5"], &[Path::new(place)]))
        .into();
    let bed = Bed::start(options)?;
    let [stock, ours] = BOTH.map(|client| bed.backup(client, ""));
    let (stock, ours) = (stock?, ours?);
    assert_eq!((stock.row.files, stock.row.bytes, ours.row.files, ours.row.bytes), (1, 0, 1, 0));
    assert!(!stock.log.contains("/proc/version"), "{}", stock.log);
    let told = "Warning: /proc/version is saved without data";
    // As the daemon under test, the stock one says nothing.
    assert_eq!(ours.log.contains(told), Fd::under_test()? != Fd::Stock, "{}", ours.log);
    if Fd::under_test()? == Fd::Ours {
        // Of many, some are named, and all are counted.
        let job = bed.backup("test", "fileset=kernel")?;
        let named = job.log.lines().filter(|line| line.contains("/proc/sys/kernel/") && line.contains(" is saved"));
        assert_eq!(named.count(), 25, "{}", job.log);
        assert!(job.log.contains(" files are saved without data: their file systems"), "{}", job.log);
    }
    Ok(())
}

#[test]
fn an_empty_file_that_can_t_be_read_is_named_where_sizes_are_not_known() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    let client = ClientOptions::new(Fd::under_test()?).named("test");
    let mut options = BedOptions::new("no-read", [client])?;
    let (tree, mount) = (options.folder.make("tree")?, options.folder.make("mount")?);
    for name in ["refused", "empty"] {
        fs::write(tree.join(name), "").unwrap();
    }
    options.file_sets = vec![FileSet::new("Empty", &["Signature = MD5"], &[&mount])];
    let faults = ["--fault", "error-open:refused"];
    let _storage = SlowStorage::mount(Path::new(env!("CARGO_BIN_EXE_slowfs")), &faults, &tree, &mount)?;
    let bed = Bed::start(options)?;
    let job = bed.backup("test", "")?;
    assert_eq!((job.row.status, job.row.files), ('T', 3), "{}", job.log);
    // The stock daemon names none.
    let is_ours = Fd::under_test()? == Fd::Ours;
    for (name, told) in [("refused", is_ours), ("empty", false)] {
        let is_named = job.log.contains(&format!("/{name} is saved without data"));
        assert_eq!(is_named, told, "{name}: {}", job.log);
    }
    Ok(())
}

#[test]
fn mtime_only_holds_in_accurate_jobs_unless_the_letters_say_else() -> Result<()> {
    let mut options = BedOptions::new("mtime-only", [ClientOptions::new(Fd::under_test()?).named("test")])?;
    let source = options.source()?;
    fs::write(source.join("f"), "x").unwrap();
    let lines = ["Signature = MD5", "Mtime Only = yes"];
    options.file_sets = vec![
        // The Director sends digests only if the job's own FileSet compares them.
        FileSet::new("Content", &[&lines[..], &["Accurate = so5"]].concat(), &[&source]),
        FileSet::new("Mtime", &lines, &[&source]),
        FileSet::new("Letters", &[&lines[..], &["Accurate = mcs"]].concat(), &[&source]),
    ];
    options.clients[0].job = vec!["Accurate = yes".to_owned()];
    let bed = Bed::start(options)?;
    let sets = ["fileset=Mtime", "fileset=Letters", "fileset=Content"];
    for set in sets {
        bed.backup("test", &format!("level=Full {set}"))?.must_be_good()?;
    }
    fs::set_permissions(source.join("f"), fs::Permissions::from_mode(0o600)).unwrap();
    let is_stock = Fd::under_test()? == Fd::Stock;
    for (set, saved) in sets.into_iter().zip([is_stock, true, false]) {
        let job = bed.backup("test", &format!("level=Incremental {set}"))?;
        assert_eq!(job.row.files, u64::from(saved), "{set}: {}", job.log);
    }
    fs::write(source.join("f"), "y").unwrap();
    fs::File::open(source.join("f")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(bed.backup("test", "level=Incremental fileset=Mtime")?.row.files, 1);
    // With `o`, the stock daemon compares no data while the size is the same.
    assert_eq!(bed.backup("test", "level=Incremental fileset=Content")?.row.files, u64::from(!is_stock));
    Ok(())
}

#[test]
fn a_heavy_expression_needs_neither_proc_nor_dev_null() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::side_by_side("no-proc")?;
    let source = options.source()?;
    for name in ["aa", "ab"] {
        fs::write(source.join(name), name).unwrap();
    }
    let lines = ["Regex = \"/(.)\\\\1$\"", "Exclude = yes"];
    options.file_sets = vec![FileSet::new("Twice", &lines, &[&source])];
    for client in &mut options.clients {
        client.mount_first("mount -t tmpfs none /proc && mount -t tmpfs none /dev && mknod /dev/urandom c 1 9");
        client.job = vec!["Client Run Before Job = \"echo run\"".to_owned()];
    }
    let bed = Bed::start(options)?;
    let [stock, ours] = BOTH.map(|client| bed.backup(client, "").map(|job| (said(&job, client, "fd: "), job)));
    let ((stock, _), (ours, job)) = (stock?, ours?);
    assert_eq!(without_address(&stock), without_address(&ours));
    // `ab`, and the directory.
    assert_eq!((job.row.status, job.row.files), ('T', 2), "{}", job.log);
    Ok(())
}

#[test]
fn a_storage_daemon_whose_name_is_known_for_ipv6_only_is_reached() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::side_by_side("ipv6-name")?;
    options.source()?;
    let hosts = options.folder.path().join("hosts");
    fs::write(&hosts, "127.0.0.1 localhost\n::1 storage.test\n").unwrap();
    for client in &mut options.clients {
        client.mount_first(&format!("mount --bind '{}' /etc/hosts", hosts.display()));
        client.dir_client = vec!["FD Storage Address = storage.test".to_owned()];
    }
    let bed = Bed::start(options)?;
    for client in BOTH {
        bed.backup(client, "")?.must_be_good()?;
    }
    Ok(())
}

/// Seconds since 1970 of files: years before 1900 and beyond 2038, 2446 and 9999.
const FAR_TIMES: [i64; 13] = [
    -2_208_988_801,
    -1_000_000_000_000_000,
    -62_167_219_201,
    -62_200_000_000_000,
    -1,
    0,
    i32::MAX as i64 + 1,
    u32::MAX as i64 + 1,
    15_032_385_535,
    253_402_300_799,
    253_402_300_800,
    9_000_000_000_000_000,
    i64::MAX / 2,
];

/// In an estimate's list, and in what a restore says. No job may end of them.
#[test]
fn times_beyond_32_bits_are_told_as_by_the_stock_daemon() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::side_by_side("far-times")?;
    options.every_message = true;
    let source = options.source()?;
    mount_memory(&source)?;
    for (number, time) in FAR_TIMES.iter().enumerate() {
        let path = source.join(format!("file{number:02}"));
        fs::write(&path, "x").unwrap();
        let time = TimeSpec::new(*time, 0);
        utimensat(AT_FDCWD, &path, &time, &time, UtimensatFlags::NoFollowSymlink).unwrap();
    }
    in_order_of_names(&source)?;
    let bed = Bed::start(options)?;
    let lines = |text: &str| text.lines().filter(|line| line.contains("/file")).map(str::to_owned).collect::<Vec<_>>();
    let mut told = Vec::new();
    for client in BOTH {
        let listed = lines(&bed.console(&[&format!("estimate job=backup-{client} listing")])?);
        let saved = bed.backup(client, "level=Full")?.must_be_good()?;
        let to = bed.folder().join(format!("to-{client}"));
        let restored = bed.restore_own(client, saved.row.id, &to)?;
        let said = lines(&restored.plain_messages(client).join("\n").replace(&format!("to-{client}"), "to"));
        assert_eq!((listed.len(), said.len()), (FAR_TIMES.len(), FAR_TIMES.len()), "{listed:#?} {said:#?}");
        told.push((listed, said));
    }
    assert_eq!(told[0], told[1]);
    Ok(())
}

#[test]
fn a_daemon_starts_saves_and_restores_where_its_own_disk_is_full() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::new("full-disk", [ClientOptions::new(Fd::under_test()?).named("test")])?;
    fs::write(options.source()?.join("f"), "f").unwrap();
    let work = options.folder.path().join("work/test").display().to_string();
    let commands = format!("mount -t tmpfs -o size=16k none '{work}' && ! head -c 20000 /dev/zero >'{work}/full'");
    options.clients.iter_mut().for_each(|client| client.mount_first(&commands));
    let bed = Bed::start(options)?;
    let job = bed.backup("test", "")?.must_be_good()?;
    let to = bed.folder().join("restored/here");
    bed.restore_own("test", job.row.id, &to)?.must_be_good()?;
    let source = bed.folder().join("source/f");
    assert_eq!(fs::read(to.join(source.strip_prefix("/").unwrap())).unwrap(), b"f");
    Ok(())
}
