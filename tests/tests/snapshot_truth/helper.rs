//! The helper by itself, on a real file system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bed::Result;

use crate::btrfs::{Btrfs, must};
use crate::helper;

/// The name of the job.
const NAME: &str = "Nightly.2026-11-21_02.13.24_12";

/// What the daemon would say, from one action to the next.
struct Daemon {
    variables: BTreeMap<&'static str, Vec<u8>>,
    configuration: PathBuf,
    program: PathBuf,
}

impl Daemon {
    fn new(btrfs: &Btrfs, top: &Path) -> Result<Self> {
        let configuration = btrfs.folder().join("bsnapshot.conf");
        fs::write(&configuration, format!("private_dir = {}/private\n", btrfs.folder().display())).unwrap();
        let mut daemon = Self { variables: BTreeMap::new(), configuration, program: helper()? };
        daemon.say("NAME", NAME.as_bytes());
        daemon.say("FSTYPE", b"btrfs");
        daemon.say("MOUNTPOINT", top.as_os_str().as_bytes());
        Ok(daemon)
    }

    fn say(&mut self, variable: &'static str, value: &[u8]) {
        self.variables.insert(variable, value.to_owned());
    }

    /// Runs the helper.
    fn run(&self, action: &str) -> Output {
        let mut command = Command::new(&self.program);
        command.env("SNAPSHOT_ACTION", action).arg("-c").arg(&self.configuration);
        for (name, value) in &self.variables {
            command.env(format!("SNAPSHOT_{name}"), std::ffi::OsStr::from_bytes(value));
        }
        command.output().unwrap()
    }

    /// The values of the answer, unquoted as the daemon does it, and the exit status.
    fn ask(&mut self, action: &str) -> (BTreeMap<String, Vec<u8>>, Option<i32>) {
        let done = self.run(action);
        let answer = pairs(&done.stdout);
        for (key, variable) in [("volume", "VOLUME"), ("snapmountpoint", "SNAPMOUNTPOINT"), ("type", "TYPE")] {
            if let Some(value) = answer.get(key) {
                self.say(variable, value);
            }
        }
        (answer, done.status.code())
    }

    /// The directory of snapshots that is named where none is wanted.
    fn named_if_disabled(&mut self) -> Option<PathBuf> {
        let configuration = fs::read(&self.configuration).unwrap();
        fs::write(&self.configuration, [&configuration[..], b"disabled = yes\n"].concat()).unwrap();
        let (answer, status) = self.ask("support");
        assert_eq!(status, Some(1), "{answer:?}");
        fs::write(&self.configuration, configuration).unwrap();
        answer.get("snapdirectory").map(|named| path(named))
    }

    fn good(&mut self, action: &str) -> BTreeMap<String, Vec<u8>> {
        let (answer, status) = self.ask(action);
        assert_eq!(status, Some(0), "{action}: {:?}", answer.get("error").map(|text| String::from_utf8_lossy(text)));
        answer
    }

    fn error(&mut self, action: &str) -> String {
        let (answer, status) = self.ask(action);
        assert_eq!(status, Some(1), "{action}: {answer:?}");
        String::from_utf8_lossy(&answer["error"]).into_owned()
    }
}

/// `key="value"`, with `\"` and `\\`; the last of each key.
fn pairs(text: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut bytes = text.iter().copied().peekable();
    loop {
        while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
        let key: Vec<u8> = std::iter::from_fn(|| bytes.next_if(|byte| *byte != b'=')).collect();
        if bytes.next().is_none() {
            return found;
        }
        let mut value = Vec::new();
        if bytes.next_if_eq(&b'"').is_some() {
            while let Some(byte) = bytes.next().filter(|byte| *byte != b'"') {
                value.push(if byte == b'\\' { bytes.next().unwrap() } else { byte });
            }
        } else {
            value.extend(std::iter::from_fn(|| bytes.next_if(|byte| !byte.is_ascii_whitespace())));
        }
        found.insert(String::from_utf8(key).unwrap(), value);
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[test]
fn snapshots_of_btrfs_are_made_used_and_removed() -> Result<()> {
    let btrfs = match Btrfs::make("helper", 256)? {
        Ok(btrfs) => btrfs,
        Err(reason) => return skip::test(reason),
    };
    of_the_top(&btrfs)?;
    that_go_while_they_are_listed(&btrfs)?;
    without_its_program(&btrfs)?;
    of_a_subvolume_with_an_odd_name(&btrfs)?;
    of_a_subvolume_of_another_user(&btrfs)?;
    a_user_can_not_fail_the_job(&btrfs)?;
    only_its_own_is_deleted(&btrfs)
}

fn of_the_top(btrfs: &Btrfs) -> Result<()> {
    let top = btrfs.top();
    fs::write(top.join("file"), "before").unwrap();
    let mut daemon = Daemon::new(btrfs, top)?;
    assert_eq!(daemon.good("support")["device"], top.as_os_str().as_bytes());
    // Where none is wanted, it may be that of another program.
    fs::create_dir_all(top.join(".snapshots/hourly.0")).unwrap();
    assert_eq!(daemon.named_if_disabled(), None);
    fs::remove_dir_all(top.join(".snapshots")).unwrap();
    assert_eq!(path(&daemon.good("create")["volume"]), top.join(".snapshots").join(NAME));
    assert_eq!(daemon.named_if_disabled(), Some(top.join(".snapshots")));
    fs::write(top.join("file"), "after").unwrap();
    assert!(daemon.error("create").ends_with("there is a snapshot of this name already"));
    let mounted = daemon.good("mount");
    let at = path(&mounted["snapmountpoint"]);
    assert_eq!(
        (at.clone(), path(&mounted["snapdirectory"])),
        (top.join(".snapshots").join(NAME), top.join(".snapshots"))
    );
    assert_eq!(fs::read_to_string(at.join("file")).unwrap(), "before");
    assert_eq!(fs::metadata(top.join(".snapshots")).unwrap().mode() & 0o7777, 0o700);
    let listed = daemon.good("list");
    assert_eq!((path(&listed["volume"]), &listed["name"][..]), (at.clone(), NAME.as_bytes()));
    assert_eq!(listed["createdate"].len(), "2026-11-21 02:13:24".len());
    assert_eq!(daemon.good("query")["status"], b"1");
    daemon.good("unmount");
    daemon.good("delete");
    assert!(!at.exists());
    assert!(daemon.error("delete").ends_with("there is no such snapshot"));
    Ok(())
}

/// One whose job ends meanwhile, and one whose date can't be found out: the others are listed.
fn that_go_while_they_are_listed(btrfs: &Btrfs) -> Result<()> {
    let mut daemon = Daemon::new(btrfs, btrfs.top())?;
    for name in ["goes", "undated", NAME] {
        daemon.say("NAME", name.as_bytes());
        daemon.good("create");
    }
    let program = must(&["sh", "-c", "command -v btrfs"]);
    let script = format!(
        "real={}\nif [ \"$1 $2\" = \"subvolume show\" ]; then\n\
         case $(/usr/bin/readlink \"$3\") in\n\
         */goes) $real subvolume delete \"$(/usr/bin/readlink \"$3\")\" >/dev/null; exit 1 ;;\n\
         */undated) exit 1 ;;\nesac\nfi\nexec $real \"$@\"\n",
        program.trim()
    );
    scripts::write(&btrfs.folder().join("btrfs"), &script).unwrap();
    let configuration = fs::read_to_string(&daemon.configuration).unwrap();
    fs::write(&daemon.configuration, format!("{configuration}path = {}\n", btrfs.folder().display())).unwrap();
    let done = daemon.run("list");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let mut listed: Vec<_> = text.lines().map(|line| pairs(line.as_bytes())).collect();
    listed.sort_by_key(|one| one["name"].clone());
    let dated: Vec<_> = listed.iter().map(|one| (&one["name"][..], !one["createdate"].is_empty())).collect();
    assert_eq!(dated, [(NAME.as_bytes(), true), (b"undated", false)], "{text}");
    fs::write(&daemon.configuration, configuration).unwrap();
    for name in ["undated", NAME] {
        daemon.say("NAME", name.as_bytes());
        daemon.say("VOLUME", btrfs.top().join(".snapshots").join(name).as_os_str().as_bytes());
        daemon.good("delete");
    }
    Ok(())
}

/// The job has to fail: read as they are, the files would be saved without a word of the package.
fn without_its_program(btrfs: &Btrfs) -> Result<()> {
    let mut daemon = Daemon::new(btrfs, btrfs.top())?;
    fs::write(&daemon.configuration, "path = /nowhere\n").unwrap();
    assert_eq!(daemon.ask("subvolumes"), (BTreeMap::new(), Some(1)));
    daemon.good("support");
    assert_eq!(daemon.error("create"), "btrfs: command not found: install btrfs-progs");
    Ok(())
}

fn of_a_subvolume_with_an_odd_name(btrfs: &Btrfs) -> Result<()> {
    let odd = btrfs.subvolume("a \"b\"\\\n$(touch x) c");
    fs::create_dir(odd.join("plain")).unwrap();
    let deep = odd.join("plain/deep");
    must(&["btrfs", "subvolume", "create", &deep.to_string_lossy()]);
    fs::write(odd.join("file"), "odd").unwrap();
    let mut daemon = Daemon::new(btrfs, btrfs.top())?;
    daemon.good("create");
    // The snapshot of the first job is none of them.
    let below = daemon.good("subvolumes");
    assert_eq!(path(&below["mountpoint"]), odd);
    assert_eq!(below["dev"], fs::metadata(&odd).unwrap().dev().to_string().as_bytes());
    assert_eq!(below["fstype"], b"btrfs");
    daemon.good("delete");
    let mut daemon = Daemon::new(btrfs, &odd)?;
    assert_eq!(path(&daemon.good("subvolumes")["mountpoint"]), deep);
    assert_eq!(path(&daemon.good("support")["device"]), odd);
    daemon.good("create");
    let at = path(&daemon.good("mount")["snapmountpoint"]);
    assert_eq!(at, odd.join(".snapshots").join(NAME));
    assert_eq!(fs::read_to_string(at.join("file")).unwrap(), "odd");
    daemon.good("unmount");
    daemon.good("delete");
    assert!(!at.exists());
    // A directory is no subvolume, and a mount point has no link in it.
    let mut daemon = Daemon::new(btrfs, &odd.join("plain"))?;
    assert!(daemon.error("support").ends_with("it is not the top directory of a subvolume"));
    symlink(&odd, btrfs.top().join("link")).unwrap();
    assert!(Daemon::new(btrfs, &btrfs.top().join("link"))?.error("create").ends_with("Not a directory"));
    Ok(())
}

fn of_a_subvolume_of_another_user(btrfs: &Btrfs) -> Result<()> {
    let theirs = btrfs.subvolume("theirs");
    fs::write(theirs.join("file"), "theirs").unwrap();
    chown(&theirs, Some(1234), Some(1234)).unwrap();
    let mut daemon = Daemon::new(btrfs, &theirs)?;
    daemon.good("create");
    let at = path(&daemon.good("mount")["snapmountpoint"]);
    assert!(at.starts_with(btrfs.folder().join("private")), "{}", at.display());
    assert_eq!(fs::read_to_string(at.join("file")).unwrap(), "theirs");
    assert_eq!(fs::write(at.join("file"), "").unwrap_err().raw_os_error(), Some(30), "it must be read-only");
    // The owner exchanges the directory: the daemon still reads the snapshot, and nothing else is
    // deleted.
    let other = btrfs.subvolume("other");
    fs::create_dir(other.join("precious")).unwrap();
    must(&[
        "btrfs",
        "subvolume",
        "snapshot",
        "-r",
        &other.to_string_lossy(),
        &btrfs.top().join(NAME).to_string_lossy(),
    ]);
    fs::rename(theirs.join(".snapshots"), theirs.join("moved")).unwrap();
    symlink(btrfs.top(), theirs.join(".snapshots")).unwrap();
    assert_eq!(fs::read_to_string(at.join("file")).unwrap(), "theirs");
    assert!(daemon.error("delete").ends_with("Not a directory"));
    assert!(btrfs.top().join(NAME).join("precious").exists());
    fs::remove_file(theirs.join(".snapshots")).unwrap();
    fs::create_dir(theirs.join(".snapshots")).unwrap();
    chown(theirs.join(".snapshots"), Some(1234), Some(1234)).unwrap();
    assert!(daemon.error("delete").ends_with("it belongs to user 1234, and must belong to root"));
    fs::remove_dir(theirs.join(".snapshots")).unwrap();
    fs::rename(theirs.join("moved"), theirs.join(".snapshots")).unwrap();
    daemon.good("unmount");
    assert!(!at.exists());
    // Again is no error: what died may have done it.
    daemon.good("unmount");
    daemon.good("delete");
    assert!(!theirs.join(".snapshots").exists());
    Ok(())
}

/// It is read as it is now, with an error; so is what is read-only, without one.
fn a_user_can_not_fail_the_job(btrfs: &Btrfs) -> Result<()> {
    let theirs = btrfs.subvolume("prepared");
    fs::create_dir(theirs.join(".snapshots")).unwrap();
    for path in [&theirs, &theirs.join(".snapshots")] {
        chown(path, Some(1234), Some(1234)).unwrap();
    }
    let mut daemon = Daemon::new(btrfs, &theirs)?;
    daemon.good("support");
    let (answer, status) = daemon.ask("create");
    assert_eq!((&answer["status"][..], status), (&b"2"[..], Some(1)));
    assert!(answer["error"].ends_with(b"it belongs to user 1234, and must belong to root"));
    let read_only = |is: &str| must(&["btrfs", "property", "set", "-ts", &theirs.to_string_lossy(), "ro", is]);
    fs::remove_dir(theirs.join(".snapshots")).unwrap();
    read_only("true");
    assert!(daemon.error("support").ends_with("it is a read-only subvolume, which stays as it is"));
    // After the question.
    assert_eq!(daemon.ask("create").0["status"], b"2");
    read_only("false");
    // Where only root can cause it, the job fails.
    let ours = btrfs.subvolume("ours");
    fs::create_dir(ours.join(".snapshots")).unwrap();
    chown(ours.join(".snapshots"), Some(1234), Some(1234)).unwrap();
    assert_eq!(Daemon::new(btrfs, &ours)?.ask("create").0["status"], b"0");
    Ok(())
}

fn only_its_own_is_deleted(btrfs: &Btrfs) -> Result<()> {
    let top = btrfs.top();
    let mut daemon = Daemon::new(btrfs, top)?;
    daemon.good("create");
    let directory = top.join(".snapshots");
    let writable = directory.join("writable");
    must(&["btrfs", "subvolume", "create", &writable.to_string_lossy()]);
    fs::create_dir(directory.join("plain")).unwrap();
    daemon.say("NAME", b"");
    for (volume, why) in [
        (writable.clone(), "it is writable, so it was not made for a backup"),
        (directory.join("plain"), "it is no subvolume"),
        (top.join("other"), "it is not in a directory of snapshots"),
        (directory.join("../other"), "it is not in a directory of snapshots"),
        (PathBuf::from("/"), "it is no path of a snapshot"),
    ] {
        daemon.say("VOLUME", volume.as_os_str().as_bytes());
        let error = daemon.error("delete");
        assert!(error.ends_with(why), "{}: {error}", volume.display());
    }
    assert!(writable.exists() && top.join("other").exists());
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o770)).unwrap();
    daemon.say("VOLUME", directory.join(NAME).as_os_str().as_bytes());
    assert!(daemon.error("delete").ends_with("other users may write it; chmod go-w"));
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    daemon.good("delete");
    Ok(())
}
