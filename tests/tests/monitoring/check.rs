//! `check_ferrofd` beside a daemon, as Nagios and Icinga run it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, Folder, PATIENCE, ReservedPort, Result, argv, is_listening,
    our_program, run, wait_for,
};

/// The program, where another user can reach it.
pub(crate) struct Check {
    folder: Folder,
    port: u16,
}

impl Check {
    pub(crate) fn new(port: u16) -> Result<Self> {
        let folder = Folder::new("check-program")?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(our_program()?, folder.path().join("bacula-fd")).unwrap();
        symlink("bacula-fd", folder.path().join("check_ferrofd")).unwrap();
        Ok(Self { folder, port })
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What starts it.
    pub(crate) fn words(&self) -> [String; 3] {
        let program = self.folder().join("check_ferrofd");
        [program.display().to_string(), "-p".to_owned(), self.port.to_string()]
    }

    /// Runs it as a user without rights. Its exit status and what it prints must be these.
    fn must_say(&self, more: &[&str], status: i32, words: &[&str]) -> Result<()> {
        let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"].map(str::to_owned);
        let more = more.iter().map(|&word| word.to_owned());
        let done = run(&argv(user.into_iter().chain(self.words()).chain(more)), b"")?;
        let text = done.text();
        assert_eq!(done.status.code(), Some(status), "{text}");
        for word in words {
            assert!(text.contains(word), "{word:?} in {text}");
        }
        Ok(())
    }
}

#[test]
fn a_check_tells_how_a_host_s_backups_are() -> Result<()> {
    let port = ReservedPort::new()?;
    let mut client = ClientOptions::new(Fd::Ours).named("test");
    client.settings = vec![format!("metrics.address = \"127.0.0.1:{}\"", port.number())];
    let mut options = BedOptions::new("check", [client])?;
    let ready = options.folder.path().join("ready");
    fs::write(&ready, "").unwrap();
    options.clients[0].job = vec![format!("Client Run Before Job = \"/usr/bin/test -e {}\"", ready.display())];
    let source = options.source()?;
    fs::write(source.join("f"), "data").unwrap();
    let gone = source.join("gone");
    let sets = [("All", &source), ("Gone", &gone)];
    options.file_sets = sets.map(|(name, path)| FileSet::new(name, &["Signature = MD5"], &[path])).to_vec();
    let check = Check::new(port.number())?;
    let mut bed = Bed::start(options)?;
    wait_for("the metrics", PATIENCE, || {
        Ok(if is_listening(port.number())? { Ok(()) } else { Err("nothing listens".to_owned()) })
    })?;

    // A host that is new is given the same time.
    check.must_say(&[], 0, &["OK - no backup has ended well since the daemon began 0 hours ago"])?;
    bed.backup("test", "level=Full")?.must_be_good()?;
    let good = "FERROFD OK - the last good backup, backup-test, ended 0 hours ago | 'age'=";
    check.must_say(&[], 0, &[good, "'running'=0;;;0"])?;

    // Too old, and of another name.
    check.must_say(&["-w", "0", "-c", "0"], 2, &["FERROFD CRITICAL - the last good backup, "])?;
    let other = ["-n", "other", "-w", "0", "-c", "1"];
    check.must_say(&other, 1, &["FERROFD WARNING - no backup other has ended well"])?;

    // One that can't save what it is to.
    bed.backup("test", "level=Full fileset=Gone")?.must_be('T')?;
    check.must_say(&[], 1, &["FERROFD WARNING - the last backup backup-test had 1 errors"])?;

    // One whose script fails, so that its command does not even come.
    fs::remove_file(&ready).unwrap();
    bed.backup("test", "level=Full")?.must_be('f')?;
    check.must_say(&[], 2, &["FERROFD CRITICAL - the last backup backup-test failed"])?;

    // No daemon, and an option that is not understood.
    bed.client("test")?.daemon().stop()?;
    let nobody = format!("no metrics of ferrofd at 127.0.0.1:{}: Connection refused", port.number());
    check.must_say(&[], 2, &["FERROFD CRITICAL", &nobody])?;
    check.must_say(&["-w", "many"], 3, &["Usage: check_ferrofd [-H HOST]"])
}
