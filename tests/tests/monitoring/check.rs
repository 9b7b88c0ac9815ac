//! `check_ferrofd` beside a daemon, as Nagios and Icinga run it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, Folder, PATIENCE, ReservedPort, Result, is_listening, our_program,
    run, wait_for,
};

/// The exit status and what is printed. It runs as a user without rights.
fn check(program: &Path, port: u16, more: &[&str]) -> Result<(i32, String)> {
    let (user, port) = ("--reuid=65534", port.to_string());
    let mut argv: Vec<OsString> = ["setpriv", user, "--regid=65534", "--clear-groups"].map(OsString::from).to_vec();
    argv.push(program.into());
    argv.extend(["-p", &port].into_iter().chain(more.iter().copied()).map(OsString::from));
    let done = run(&argv, b"")?;
    Ok((done.status.code().unwrap(), String::from_utf8(done.stdout).unwrap()))
}

#[test]
fn a_check_tells_how_a_host_s_backups_are() -> Result<()> {
    let port = ReservedPort::new()?;
    let mut client = ClientOptions::new(Fd::Ours).named("test");
    client.settings = vec![format!("metrics.address = \"127.0.0.1:{}\"", port.number())];
    let mut options = BedOptions::new("check", [client])?;
    let source = options.source()?;
    fs::write(source.join("f"), "data").unwrap();
    let gone = source.join("gone");
    let sets = [("All", &source), ("Gone", &gone)];
    options.file_sets = sets.map(|(name, path)| FileSet::new(name, &["Signature = MD5"], &[path])).to_vec();
    // Where the other user can reach it.
    let folder = Folder::new("check-program")?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(our_program()?, folder.path().join("bacula-fd")).unwrap();
    let program = folder.path().join("check_ferrofd");
    symlink("bacula-fd", &program).unwrap();
    let number = port.number();
    let mut bed = Bed::start(options)?;
    wait_for("the metrics", PATIENCE, || {
        Ok(if is_listening(number)? { Ok(()) } else { Err("nothing listens".to_owned()) })
    })?;

    // A host that is new is given the same time.
    let (status, text) = check(&program, number, &[])?;
    assert!(status == 0 && text.contains("no backup has ended well since the daemon began 0 hours ago"), "{text}");
    bed.backup("test", "level=Full")?.must_be_good()?;
    let (status, text) = check(&program, number, &[])?;
    assert!(status == 0 && text.starts_with("FERROFD OK - the last good backup, backup-test, ended 0 hours"), "{text}");
    assert!(text.contains(" | 'age'=") && text.contains("'running'=0;;;0"), "{text}");

    // Too old, and of another name.
    let (status, text) = check(&program, number, &["-w", "0", "-c", "0"])?;
    assert!(status == 2 && text.starts_with("FERROFD CRITICAL - the last good backup, "), "{text}");
    let (status, text) = check(&program, number, &["-n", "other", "-w", "0", "-c", "1"])?;
    assert!(status == 1 && text.contains("no backup other has ended well"), "{text}");

    // One that can't save what it is to.
    bed.backup("test", "level=Full fileset=Gone")?.must_be('T')?;
    let (status, text) = check(&program, number, &[])?;
    assert!(status == 1 && text.starts_with("FERROFD WARNING - the last backup backup-test had 1 errors"), "{text}");

    // No daemon, and an address that is something else's.
    let director = bed.director().port();
    bed.client("test")?.daemon().stop()?;
    let (status, text) = check(&program, number, &[])?;
    assert!(status == 2 && text.contains(&format!("no metrics of ferrofd at 127.0.0.1:{number}: Connection refused")));
    let (status, text) = check(&program, director, &["-t", "1"])?;
    assert!(status >= 2, "{text}");
    let (status, text) = check(&program, number, &["-w", "many"])?;
    assert!(status == 3 && text.contains("Usage: check_ferrofd [-H HOST]"), "{text}");
    Ok(())
}
