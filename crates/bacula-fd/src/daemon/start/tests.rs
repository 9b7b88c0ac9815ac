//! Addresses that are taken, and the last words.

use std::fs::{read_to_string, write};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::mpsc::channel;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::*;
use crate::alone::alone;

#[test]
fn the_init_script_waits_as_long_as_systemd() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/files/bacula-fd.init");
    let wait = format!(" --retry TERM/{}/KILL/", LAST_WORDS.saturating_add(MARGIN).as_secs());
    assert!(read_to_string(script).unwrap().contains(&wait), "{wait}");
}

/// The writer belongs to the process, so there is one for this.
#[test]
fn the_last_mail_waits_for_a_writer_that_is_busy() {
    const NAME: &str = "daemon::start::tests::the_last_mail_waits_for_a_writer_that_is_busy";
    alone(NAME, |_, _| {}, last_mail);
}

/// That of a daemon with these destinations of messages.
fn supervisor(folder: &Path, destinations: &str) -> Supervisor {
    let (file, place) = (folder.join("fd.conf"), folder.display());
    let resources = format!(
        "FileDaemon {{\n Name = x-fd\n WorkingDirectory = {place}\n PidDirectory = {place}\n}}\n\
         Director {{\n Name = d\n Password = p\n}}\nMessages {{\n Name = m\n {destinations}\n}}\n",
    );
    write(&file, resources).unwrap();
    let config = fd_config::load(file.as_os_str().as_bytes(), &mut Host, &mut Host).unwrap();
    Supervisor::new(config, Vec::new())
}

fn last_mail(folder: &Path) {
    let mail = folder.join("mail");
    let supervisor = supervisor(folder, &format!("MailCommand = \"tee {}\"\n Mail = root = all", mail.display()));
    // A disk that has much else to write takes the log's line after a second.
    let (_disk, written) = channel::<()>();
    let busy = move || {
        let _never = written.recv_timeout(Duration::from_secs(1));
    };
    assert!(Writer::of_the_process().hand_over(busy));
    supervisor.tell_here(MessageType::Info, b"last words\n");
    supervisor.finish_local();
    let sent = read_to_string(&mail).unwrap_or_default();
    assert!(sent.ends_with("last words\n"), "{sent:?}");
}

/// Output and mounts belong to the process, so there is one for this.
#[test]
fn a_port_that_stays_taken_is_told_twice_on_standard_output_and_once_in_the_host_s_log() {
    const NAME: &str = "daemon::start::tests::\
        a_port_that_stays_taken_is_told_twice_on_standard_output_and_once_in_the_host_s_log";
    let may = Command::new("unshare").args(["--mount", "true"]).output().is_ok_and(|done| done.status.success());
    skip::when!(!may, "a process can't have mounts of its own here");
    let told = alone(NAME, |_, _| {}, taken_port);
    let message = "x-fd: ABORTING via segfault due to ERROR in bnet_server.c:135\nCannot bind port ";
    if let Some(told) = told {
        assert_eq!(told.matches(message).count(), 2, "{told}");
        assert_eq!(told.matches(&format!(" {message}")).count(), 1, "with the date: {told}");
    }
}

/// With a destination for standard output, which the stock daemon does not tell once more.
fn taken_port(folder: &Path) {
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    mount(none, "/dev", Some("tmpfs"), MsFlags::empty(), none).unwrap();
    let log = UnixDatagram::bind("/dev/log").unwrap();
    // It decides no result.
    log.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let supervisor = supervisor(folder, "director = d = all\n stdout = all");
    assert!(bind(&supervisor, "x-fd", address, None, Duration::ZERO).is_err());
    let logged = || {
        let mut line = [0; 200];
        let length = log.recv(&mut line).unwrap();
        String::from_utf8_lossy(&line[..length]).into_owned()
    };
    assert_eq!(logged(), "<27>bacula-fd: x-fd: ABORTING via segfault due to ERROR in bnet_server.c:135");
    let text = format!("<27>bacula-fd: Cannot bind port {}: ERR=Address already in use.", address.port());
    assert_eq!(logged(), text);
}

#[test]
fn addresses_overlap_if_one_of_them_takes_the_calls_of_the_other() {
    for (one, other, expected) in [
        ("127.0.0.1:9102", "127.0.0.1:9102", true),
        ("127.0.0.1:9102", "127.0.0.1:19102", false),
        ("127.0.0.1:9102", "127.0.0.2:9102", false),
        ("127.0.0.1:9102", "0.0.0.0:9102", true),
        ("[::1]:9102", "0.0.0.0:9102", false),
        ("[::]:9102", "127.0.0.1:9102", true),
        ("[::]:9102", "0.0.0.0:9102", true),
    ] {
        let [one, other] = [one, other].map(|text| text.parse().unwrap());
        assert_eq!((overlap(one, other), overlap(other, one)), (expected, expected), "{one} {other}");
    }
}
