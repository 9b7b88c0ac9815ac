//! A host that works against the restore: another user's process swaps directories, and a user's
//! quota is used up.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bed::{Bed, BedOptions, ClientOptions, Fd, Result};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

use crate::records::{CONTENT, attributes, record, session_of, whole_file};
use crate::{files, restore};

/// Names the directory to the helper process.
const SWAP: &str = "FERROFD_SWAP_IN";
/// The helper's user.
const NOBODY_OF_US: u32 = 4711;
/// Objects that are restored into the directory that is swapped.
const TRIES: usize = 10_000;

/// The helper process: swaps `d` and `trap` until its input ends, as an ordinary user.
#[test]
fn swaps_where_it_is_told_to() {
    let Some(place) = std::env::var_os(SWAP) else { return skip::unasked() };
    nix::unistd::setgid(NOBODY_OF_US.into()).unwrap();
    nix::unistd::setuid(NOBODY_OF_US.into()).unwrap();
    // Whether its input ends or fails, the test is gone.
    let parent = std::thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let (one, other) = (Path::new(&place).join("d"), Path::new(&place).join("trap"));
    while !parent.is_finished() {
        renameat2(AT_FDCWD, &one, AT_FDCWD, &other, RenameFlags::RENAME_EXCHANGE).unwrap();
    }
}

/// A child that ends with us.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// What can be changed of the victim: name, then owner, mode, change of status, content.
fn look(victim: &Path) -> BTreeMap<String, (u32, u32, i64, i64, Vec<u8>)> {
    let names = fs::read_dir(victim).unwrap().map(|entry| entry.unwrap().path());
    let see = |path: &Path| {
        let status = fs::symlink_metadata(path).unwrap();
        (status.uid(), status.mode(), status.ctime(), status.ctime_nsec(), fs::read(path).unwrap_or_default())
    };
    names.chain([victim.to_owned()]).map(|path| (path.display().to_string(), see(&path))).collect()
}

#[test]
fn a_process_that_swaps_directories_for_links_redirects_nothing() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon follows such links");
    let options = BedOptions::new("swaps", [ClientOptions::new(Fd::under_test()?).named("test")])?.in_clear();
    let mut bed = Bed::start(options)?;
    fs::set_permissions(bed.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let (to, victim) = (bed.folder().join("race"), bed.folder().join("victim"));
    fs::create_dir_all(to.join("d")).unwrap();
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("0"), b"not yours\n").unwrap();
    fs::set_permissions(victim.join("0"), fs::Permissions::from_mode(0o600)).unwrap();
    // The link belongs to the other user, and is where that user may rename.
    symlink(&victim, to.join("trap")).unwrap();
    lchown(to.join("trap"), Some(NOBODY_OF_US), Some(NOBODY_OF_US)).unwrap();
    fs::set_permissions(&to, fs::Permissions::from_mode(0o777)).unwrap();
    let before = look(&victim);

    // After each object the directory is left, so that it has to be found again.
    let objects = (0..TRIES).flat_map(|number| {
        let name = format!("/d/{number}");
        let mut records = match number % 5 {
            0 => whole_file(&name),
            1 => vec![attributes(4, &name, 0o120_777, "x", 2)],
            2 => vec![attributes(6, &name, 0o010_666, "", 2)],
            3 => vec![attributes(5, &format!("{name}/"), 0o040_777, "", 2)],
            _ => vec![attributes(3, &name, 0o106_777, "", 2), record(2, CONTENT)],
        };
        records.extend(whole_file(&format!("/e/{}", number % 10)));
        records
    });
    let session = session_of(&objects.collect::<Vec<_>>());
    let helper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile_host::swaps_where_it_is_told_to", "--nocapture"])
        .env(SWAP, &to)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let mut helper = Helper(helper.unwrap());
    bed::wait_for("the first swap", bed::PATIENCE, || {
        Ok(if fs::symlink_metadata(to.join("d")).unwrap().is_symlink() {
            Ok(())
        } else {
            Err("still itself".to_owned())
        })
    })?;
    let outcome = restore(bed.client("test")?.port(), 1, &to, session, true)?;
    assert!(helper.0.try_wait().unwrap().is_none(), "it swapped to the end");
    drop(helper);
    let refused = outcome.messages.iter().filter(|(kind, _)| matches!(kind, 4 | 5)).count();
    println!("{TRIES} objects, {refused} refused; {}", outcome.end);
    assert_eq!(look(&victim), before);
    assert_eq!(outcome.field("JobFiles"), i64::try_from(TRIES * 2).unwrap());
    // Both happened, the swap in time and the one too late, and the job went on.
    assert!((1..TRIES).contains(&refused), "{refused}");
    assert_eq!(fs::read(to.join("e/9")).unwrap(), CONTENT);
    Ok(())
}

#[test]
fn an_exhausted_quota_fails_one_file_with_a_message() -> Result<()> {
    let options = BedOptions::new("quota", [ClientOptions::new(Fd::under_test()?).named("test")])?.in_clear();
    let mut bed = Bed::start(options)?;
    let (fd, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    let to = bed.folder().join("to");
    // Quotas don't bind root on a local disk, but on a network's; and not every kernel has them. So
    // strace injects the error.
    let helper = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=write", "-e", "inject=write:error=EDQUOT", "-P"])
        .arg(to.join("two"))
        .args(["-p", &pid.to_string()])
        .stdin(Stdio::null())
        .spawn();
    let mut helper = Helper(helper.unwrap());
    let traced = bed::wait_for("strace to look", bed::PATIENCE, || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let traced = status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"));
        let gone = helper.0.try_wait().unwrap().is_some();
        Ok(if traced || gone { Ok(traced) } else { Err(status) })
    })?;
    skip::when!(!traced, "strace may not attach to a process here");
    let outcome = restore(fd, 1, &to, files(&["/one", "/two", "/three"], CONTENT), true)?;
    drop(helper);
    for name in ["one", "three"] {
        assert_eq!(fs::read(to.join(name)).unwrap(), CONTENT, "{name}");
    }
    let complaints: Vec<_> = outcome.messages.iter().filter(|(kind, _)| matches!(kind, 4..=6)).collect();
    let [(5, text)] = complaints[..] else { panic!("{complaints:?}") };
    assert!(text.contains("Write error at byte="), "{text}");
    assert!(text.contains(&format!("{}: ERR=Disk quota exceeded", to.join("two").display())), "{text}");
    assert_eq!((outcome.field("TermCode"), outcome.field("JobFiles")), (69, 3));
    // What could not be written stays private.
    assert_eq!(fs::metadata(to.join("two")).unwrap().mode() & 0o777, 0o600);
    Ok(())
}
