//! What is written to the pid file, and what may be in its place.

use super::*;

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("ferrofd-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn a_pid_file_holds_the_number_and_goes_at_the_end() {
    let directory = directory("pid");
    let file = PidFile::create(&directory, 9102).unwrap();
    assert_eq!(file.path(), directory.join("bacula-fd.9102.pid"));
    assert_eq!(fs::read_to_string(file.path()).unwrap(), format!("{}\n", std::process::id()));
    let path = file.path().to_owned();
    file.remove().unwrap();
    assert!(!path.exists());
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_stale_file_is_taken_over_and_has_only_the_new_number() {
    let directory = directory("stale");
    let path = directory.join("bacula-fd.9102.pid");
    fs::write(&path, "123456789012\n").unwrap();
    let _file = PidFile::create(&directory, 9102).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn links_and_fifos_in_its_place_are_replaced() {
    let directory = directory("pid-traps");
    let (path, victim) = (directory.join("bacula-fd.9102.pid"), directory.join("victim"));
    fs::write(&victim, "precious").unwrap();
    for trap in ["link", "dangling", "fifo", "hard link"] {
        match trap {
            "link" => std::os::unix::fs::symlink(&victim, &path).unwrap(),
            "dangling" => std::os::unix::fs::symlink(directory.join("made"), &path).unwrap(),
            "fifo" => nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            _ => fs::hard_link(&victim, &path).unwrap(),
        }
        let file = PidFile::create(&directory, 9102).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file(), "{trap}");
        file.remove().unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{trap}");
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    // A link on the way is the host's own business, as /var/run is.
    let alias = directory.with_extension("alias");
    std::os::unix::fs::symlink(&directory, &alias).unwrap();
    PidFile::create(&alias, 9102).unwrap().remove().unwrap();
    fs::remove_file(&alias).unwrap();
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let error = PidFile::create(Path::new("/nonexist"), 20602).unwrap_err();
    let expected = "x-fd: ERROR TERMINATION at bsys.c:705\n\
         Cannot not open pid file. /nonexist/bacula-fd.20602.pid ERR=No such file or directory\n";
    assert_eq!(String::from_utf8_lossy(error.message("x-fd").text()), expected);
}

#[test]
fn a_backup_that_reads_the_file_leaves_its_lock() {
    let directory = directory("pid-read");
    let file = PidFile::create(&directory, 9102).unwrap();
    drop(File::open(file.path()).unwrap());
    let (pid, path) = (std::process::id().cast_signed(), file.path().to_owned());
    assert_eq!(PidFile::create(&directory, 9102).unwrap_err(), PidFileError::AlreadyRunning { pid, path });
    assert_eq!(PidFile::holder(&directory, 9102), Some(pid));
    file.remove().unwrap();
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_locked_file_names_its_owner() {
    let error = PidFileError::AlreadyRunning { pid: 27418, path: PathBuf::from("/run/bacula-fd.20602.pid") };
    assert_eq!(error.to_string(), "bacula-fd is already running. pid=27418, check file /run/bacula-fd.20602.pid");
}

#[test]
fn a_locked_file_without_a_number_is_reported_with_the_system_error() {
    let error = PidFileError::Locked { path: PathBuf::from("/run/x.pid"), errno: Errno::EAGAIN };
    assert_eq!(error.to_string(), "Cannot lock pid file. /run/x.pid ERR=Resource temporarily unavailable");
}
