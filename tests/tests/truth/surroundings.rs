//! Surroundings in which jobs save and restore all the same: without `/proc`, and with places on
//! which a file system is mounted on access.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, Result, TreeRules, argv, below, compare_trees, posix_acl, run,
    set_fixed_times,
};
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::mkfifo;

/// An object of each type that has attributes or an ACL.
fn build(top: &Path) -> std::io::Result<()> {
    const NOBODY: u32 = u32::MAX;
    fs::create_dir_all(top.join("directory"))?;
    fs::write(top.join("file"), "content\n")?;
    fs::hard_link(top.join("file"), top.join("second name"))?;
    symlink("nowhere", top.join("link"))?;
    mkfifo(&top.join("fifo"), Mode::from_bits_truncate(0o640))?;
    mknod(&top.join("device"), SFlag::S_IFCHR, Mode::from_bits_truncate(0o640), 0x103)?;
    // user::rw-,user:12345:r--,group::r--,mask::r--,other::r--
    let acl = posix_acl(&[(1, 6, NOBODY), (2, 4, 12345), (4, 4, NOBODY), (0x10, 4, NOBODY), (0x20, 4, NOBODY)]);
    for name in ["directory", "file", "link", "fifo", "device"] {
        let path = top.join(name);
        xattr::set(&path, "trusted.of", name.as_bytes())?;
        if name != "link" {
            xattr::set(&path, "system.posix_acl_access", &acl)?;
        }
    }
    Ok(())
}

fn client_without_proc() -> Result<ClientOptions> {
    let mut client = ClientOptions::new(Fd::under_test()?).named("test");
    client.mount_first("umount -l /proc");
    Ok(client)
}

#[test]
fn a_daemon_without_proc_saves_and_restores_all_metadata() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::new("without-proc", [client_without_proc()?])?;
    let source = options.source()?;
    skip::when!(build(&source).is_err(), "no trusted attributes or devices here");
    set_fixed_times(&source)?;
    options.file_sets = vec![FileSet::new("All", &["AclSupport = yes", "XattrSupport = yes"], &[&source])];
    let bed = Bed::start(options)?;
    let job = bed.backup("test", "level=Full fileset=All")?.must_be_good()?;
    let metadata = bed.records(&job.row, "test")?.filter_map(std::result::Result::ok);
    let metadata = metadata.filter(|record| [1998, 1008].contains(&record.stream)).count();
    // The second name has those of the file, too.
    assert_eq!((metadata, job.row.errors), (11, 0), "{}", job.log);
    let to = bed.folder().join("to");
    let restored = bed.restore_own("test", job.row.id, &to)?.must_be_good()?;
    assert_eq!(restored.row.errors, 0, "{}", restored.log);
    let there = below(&to, &source);
    // The backup has read the source.
    let rules = TreeRules { access_times: false, ..TreeRules::restored() };
    assert_eq!(compare_trees(&source, &there, rules)?, Vec::<String>::new(), "{}", restored.log);
    Ok(())
}

/// A daemon whose backups make no digests does not prepare for any: the file has to be read again.
/// It is too long to be made beside others.
#[test]
fn a_daemon_without_proc_compares_digests_that_it_has_not_expected() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::new("digests-without-proc", [client_without_proc()?])?;
    let source = options.source()?;
    fs::write(source.join("file"), vec![b'c'; 400_000]).map_err(bed::BedError::file("write", &source))?;
    let set = |name, options: &[&str]| FileSet::new(name, options, &[&source]);
    options.file_sets = vec![set("Digests", &["Signature = MD5"]), set("None", &[])];
    let mut bed = Bed::start(options)?;
    let first = bed.backup("test", "level=Full fileset=Digests")?.must_be_good()?;
    let daemon = bed.client("test")?.daemon();
    daemon.stop()?;
    daemon.start()?;
    bed.backup("test", "level=Full fileset=None")?.must_be_good()?;
    let to = bed.folder().join("to");
    let restored = bed.restore_own("test", first.row.id, &to)?.must_be_good()?;
    assert_eq!(restored.row.errors, 0, "{}", restored.log);
    assert_eq!(compare_trees(&source, &below(&to, &source), TreeRules::CONTENT)?, Vec::<String>::new());
    Ok(())
}

/// The name takes the place of the handle: elsewhere a user could put a device there.
#[test]
fn without_proc_a_fifo_is_read_where_no_other_user_can_change_names() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let is_ours = Fd::under_test()? == Fd::Ours;
    let mut options = BedOptions::new("fifo-without-proc", [client_without_proc()?])?;
    let source = options.source()?;
    let of_all = source.join("of all");
    let make = || -> std::io::Result<()> {
        fs::create_dir_all(&of_all)?;
        fs::set_permissions(&of_all, fs::Permissions::from_mode(0o777))?;
        mkfifo(&of_all.join("fifo"), Mode::from_bits_truncate(0o600))?;
        mkfifo(&source.join("fifo"), Mode::from_bits_truncate(0o600))?;
        Ok(())
    };
    make().map_err(bed::BedError::file("make", &source))?;
    let names = [source.join("fifo"), of_all.join("fifo")];
    // The stock daemon would wait a minute for a process that writes to the second one.
    let names: Vec<_> = names.iter().take(if is_ours { 2 } else { 1 }).map(PathBuf::as_path).collect();
    options.file_sets = vec![FileSet::new("Fifos", &["ReadFifo = yes"], &names)];
    let bed = Bed::start(options)?;
    let job = bed.queue("run job=backup-test level=Full fileset=Fifos yes")?;
    let open = || OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(names[0]);
    let writer = bed::wait_for("the daemon to open the FIFO", bed::PATIENCE, || {
        let ended = bed.catalog().job(job)?.status == 'T';
        assert!(!ended, "the job has not read the FIFO");
        Ok(open().map_err(|error| error.to_string()))
    })?;
    (&writer).write_all(b"by its name\n").map_err(bed::BedError::file("write", names[0]))?;
    drop(writer);
    let job = bed.wait(job)?;
    let data = bed.records(&job.row, "test")?.filter_map(std::result::Result::ok).filter(|record| record.stream == 2);
    assert_eq!(data.map(|record| record.data).collect::<Vec<_>>(), [b"by its name\n"], "{}", job.log);
    let is_named = job.log.contains(&format!("{}\": ERR=No such device", of_all.join("fifo").display()));
    assert_eq!((job.row.errors, is_named), if is_ours { (1, true) } else { (0, false) }, "{}", job.log);
    Ok(())
}

/// Nobody answers the automounter, which would mount something on `trap` at the first access:
/// what asks it hangs.
#[test]
fn a_place_of_the_automounter_that_is_not_entered_is_not_touched() -> Result<()> {
    let mut options = BedOptions::new("automounter", [ClientOptions::new(Fd::under_test()?).named("test")])?;
    let source = options.source()?;
    let (place, questions) = (source.join("trap"), source.with_file_name("questions"));
    let make = || -> std::io::Result<File> {
        fs::create_dir_all(&place)?;
        fs::write(source.join("file"), "content\n")?;
        symlink("trap", source.join("a link to it"))?;
        mkfifo(&questions, Mode::from_bits_truncate(0o600))?;
        OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&questions)
    };
    let mut asked = make().map_err(bed::BedError::file("make", &source))?;
    // It is there for this daemon only: others of the host would hang, too.
    let script =
        "mount -t autofs -o fd=0,pgrp=1,minproto=5,maxproto=5,direct bed \"$2\" 0<>\"$1\" && shift 2 && exec \"$@\"";
    let mut wrapper = ["unshare", "--mount", "sh", "-c", script, "sh"].map(ToOwned::to_owned).to_vec();
    wrapper.extend([&questions, &place].map(|path| path.display().to_string()));
    let tried = run(&argv(wrapper.iter().map(String::as_str).chain(["true"])), b"")?;
    if !tried.status.success() {
        let why = tried.text().lines().next().unwrap_or_default().to_owned();
        return skip::test(&format!("the automounter can't be used here: {why}"));
    }
    options.clients[0].wrapper = wrapper;
    let letters = ["OneFS = yes", "AclSupport = yes", "XattrSupport = yes", "Signature = MD5", "HonorNoDumpFlag = yes"];
    let set = FileSet::new("All", &letters, &[&source]);
    options.file_sets = vec![set.with("Exclude Dir Containing = .nobackup")];
    let bed = Bed::start(options)?;
    let job = bed.queue("run job=backup-test level=Full fileset=All yes")?;
    let mut was_asked = || asked.read(&mut [0; 300]).is_ok_and(|length| length > 0);
    let hangs = bed::wait_for("the end of the job or a question to the automounter", bed::PATIENCE, || {
        if was_asked() {
            return Ok(Ok(true));
        }
        let status = bed.catalog().job(job)?.status;
        Ok(if "CRBMSmsjcdtplLi".contains(status) { Err(format!("status {status}")) } else { Ok(false) })
    })?;
    let is_ours = Fd::under_test()? == Fd::Ours;
    assert_eq!(hangs, !is_ours, "whether the job has touched what it does not enter");
    if is_ours {
        let job = bed.wait(job)?.must_be_good()?;
        assert!(!was_asked());
        assert!(job.row.files >= 4, "{}", job.log);
    }
    Ok(())
}
