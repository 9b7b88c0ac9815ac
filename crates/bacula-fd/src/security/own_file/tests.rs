//! Links, FIFOs and other names in places that other users can write to.

use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;

/// A directory with a file `victim`, and with a path where a link to it, a hard link to it or a
/// FIFO stands.
fn traps(label: &str, mode: u32) -> (PathBuf, Vec<PathBuf>) {
    let directory = std::env::temp_dir().join(format!("ferrofd-own-{label}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
    let victim = directory.join("victim");
    fs::write(&victim, "precious").unwrap();
    let traps = ["link", "hard", "fifo", "dangling"].map(|name| directory.join(name));
    let [link, hard, fifo, dangling] = &traps;
    symlink(&victim, link).unwrap();
    fs::hard_link(&victim, hard).unwrap();
    mkfifo(fifo, Mode::from_bits_truncate(0o600)).unwrap();
    symlink(directory.join("made"), dangling).unwrap();
    (directory, traps.to_vec())
}

fn untouched(directory: &Path) {
    assert_eq!(fs::read_to_string(directory.join("victim")).unwrap(), "precious");
    assert!(!directory.join("made").exists());
}

type Open = fn(&Path) -> io::Result<File>;

#[test]
fn files_of_others_are_replaced() {
    let opens: [(&str, Open); 4] = [
        ("own", |path| open(path, 0o600)),
        ("any", |path| open_any_mode(path, 0o600)),
        ("append", |path| open_to_append(path, 0o600)),
        ("create", |path| create(path, 0o600)),
    ];
    for (label, open) in opens {
        let (directory, traps) = traps(label, 0o777);
        for path in &traps {
            open(path).unwrap().write_all(b"ours").unwrap();
            let about = fs::symlink_metadata(path).unwrap();
            assert!(about.is_file() && about.nlink() == 1 && about.mode() & 0o777 == 0o600, "{label} {path:?}");
            assert_eq!(fs::read_to_string(path).unwrap(), "ours");
        }
        untouched(&directory);
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn files_of_the_daemon_are_kept() {
    let (directory, _) = traps("kept", 0o777);
    let path = directory.join("kept");
    open_to_append(&path, 0o600).unwrap().write_all(b"one").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    open_to_append(&path, 0o600).unwrap().write_all(b"two").unwrap();
    assert_eq!(open_any_mode(&path, 0o600).unwrap().metadata().unwrap().len(), 6);
    assert_eq!(io::read_to_string(read(&path).unwrap()).unwrap(), "onetwo");
    assert_eq!(create(&path, 0o600).unwrap().metadata().unwrap().len(), 0);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn only_the_daemons_files_are_read() {
    let (directory, traps) = traps("read", 0o777);
    for path in &traps {
        assert!(read(path).is_err(), "{path:?}");
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn links_and_fifos_are_refused_as_outputs_where_others_can_write() {
    for writing in [Writing::Append, Writing::Anew] {
        let (directory, traps) = traps("output", 0o777);
        for path in &traps {
            assert!(open_output(path, writing, 0o640).is_err(), "{path:?}");
        }
        untouched(&directory);
        let log = directory.join("log");
        for text in ["one", "two"] {
            open_output(&log, writing, 0o640).unwrap().write_all(text.as_bytes()).unwrap();
        }
        let expected = if writing == Writing::Append { "onetwo" } else { "two" };
        assert_eq!(fs::read_to_string(&log).unwrap(), expected);
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn a_file_that_another_user_holds_is_replaced() {
    if !geteuid().is_root() {
        return skip::test("needs root");
    }
    // It needs no name of its own, as what is many programs in one does.
    let perl = Path::new("/usr/bin/perl");
    if !perl.exists() {
        return skip::test("there is no Perl");
    }
    let (directory, _) = traps("held", 0o755);
    let program = directory.join("program");
    // By another process, as what another thread forks meanwhile has open what this one writes.
    assert!(Command::new("cp").arg(perl).arg(&program).status().unwrap().success());
    std::os::unix::fs::chown(&program, Some(65_534), Some(65_534)).unwrap();
    let mut runs = Command::new(&program).args(["-e", "sleep 600"]).spawn().unwrap();
    let busy = OpenOptions::new().append(true).open(&program).map_err(|error| error.raw_os_error());
    let ours = open_to_append(&program, 0o600).and_then(|mut file| file.write_all(b"ours"));
    runs.kill().unwrap();
    runs.wait().unwrap();
    let found = fs::read(&program).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    if busy.is_ok() {
        return skip::test("this kernel lets a program that runs be written to");
    }
    assert_eq!((busy.err(), ours.is_ok()), (Some(Some(Errno::ETXTBSY as i32)), true));
    assert_eq!(found, b"ours");
}

#[test]
fn outputs_may_be_links_and_devices_where_only_the_operator_can_write() {
    let (directory, traps) = traps("trusted", 0o755);
    let [link, hard, fifo, dangling] = &traps[..] else { panic!() };
    for path in [link, hard, dangling] {
        open_output(path, Writing::Append, 0o640).unwrap().write_all(b"!").unwrap();
    }
    assert_eq!(fs::read_to_string(directory.join("victim")).unwrap(), "precious!!");
    assert!(directory.join("made").exists());
    assert!(open_output(fifo, Writing::Append, 0o640).is_err(), "it has no reader");
    let reader = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(fifo).unwrap();
    open_output(fifo, Writing::Anew, 0o640).unwrap().write_all(b"heard").unwrap();
    let mut bytes = [0; 5];
    io::Read::read_exact(&mut &reader, &mut bytes).unwrap();
    // As `/dev/stdout` where that is a pipe; where it is a file it would be emptied here, with all
    // that was told so far.
    let (_reader, writer) = io::pipe().unwrap();
    let pipe = format!("/proc/self/fd/{}", writer.as_raw_fd());
    for device in ["/dev/null", &pipe] {
        for writing in [Writing::Append, Writing::Anew] {
            open_output(Path::new(device), writing, 0o640).unwrap();
        }
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn only_what_is_wrong_with_a_file_is_a_reason_to_replace_it() {
    // A lease, and a working directory on a network.
    for errno in [Errno::EAGAIN, Errno::ETIMEDOUT, Errno::ENOTCONN, Errno::EHOSTDOWN, Errno::EINTR, Errno::EMFILE] {
        assert!(lacks_something(&io::Error::from(errno)), "{errno}");
    }
    for errno in [Errno::ENOENT, Errno::ELOOP, Errno::ENXIO, Errno::EISDIR, Errno::EACCES, Errno::EPERM] {
        assert!(!lacks_something(&io::Error::from(errno)), "{errno}");
    }
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidData] {
        assert!(!lacks_something(&kind.into()), "{kind}");
    }
}
