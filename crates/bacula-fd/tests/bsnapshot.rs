//! `bsnapshot` from outside, with scripts in the place of the programs that it runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// It decides no result.
const PATIENCE: Duration = Duration::from_secs(120);

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

/// Else a typing error would have all jobs save live files without a word.
#[test]
fn a_mistake_in_the_configuration_is_an_error_of_create() {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("conf");
    let write = |text: &str| {
        fs::write(&conf, text).unwrap();
        fs::set_permissions(&conf, fs::Permissions::from_mode(0o644)).unwrap();
    };
    write("debug = 0\nretry = three\n");
    let ask = |action: &str, device: &str| {
        let answer = Command::new(env!("CARGO_BIN_EXE_bsnapshot"))
            .arg("-c")
            .arg(&conf)
            .envs([("SNAPSHOT_ACTION", action), ("SNAPSHOT_NAME", "Nightly.2026-11-21_02.13.24_12")])
            .envs([("SNAPSHOT_DEVICE", device), ("SNAPSHOT_FSTYPE", "zfs"), ("SNAPSHOT_MOUNTPOINT", "/")])
            .output()
            .unwrap();
        String::from_utf8(answer.stdout).unwrap()
    };
    let supported = "status=1 device=\"tank\" type=zfs\nsnapdirectory=\"/.zfs/snapshot\"\n";
    assert_eq!(ask("support", "tank"), supported);
    assert!(ask("support", "/dev/sda").starts_with("status=0 "));
    let why = format!("error=\"{} line 2: \\\"three\\\" is not a number\"\n", conf.display());
    for action in ["create", "mount", "list", "query"] {
        assert_eq!(ask(action, "tank"), format!("status=0 {why}"));
    }
    // What was made before is removed.
    assert_eq!(ask("unmount", "tank"), "status=1\n");
    // What the other lines say of a snapshot that can't be made holds all the same.
    write("debug = 0\nretry = three\nfail_job_on_error = no\n");
    assert_eq!(ask("create", "tank"), format!("status=2 {why}"));
    write("debug = 0\nretry = three\ndisabled = yes\n");
    assert!(ask("support", "tank").starts_with("status=0 "));
}

/// `lvcreate` suspends the volume: ended at that moment, it would leave it so.
#[test]
fn a_program_that_makes_a_snapshot_goes_on_when_its_helper_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let script = |name: &str, text: &str| {
        scripts::write(&here.join(name), &format!("cd {}\n{text}", here.display())).unwrap();
    };
    script("lvs", "echo 'vg0|root|/dev/vg0/root|/dev/mapper/vg0-root|1073741824|owi-aos---|||254|0|1700000000'");
    script("vgs", "echo 5368709120");
    let waits = "trap '' TERM; : > begun; while [ -e conf ] && [ ! -e goes-on ]; do /bin/sleep 0.05; done";
    script("lvcreate", &format!("{waits}\necho made; echo 'a warning' >&2\n: > ended"));
    fs::write(here.join("conf"), format!("path = {}\n", here.display())).unwrap();
    fs::set_permissions(here.join("conf"), fs::Permissions::from_mode(0o644)).unwrap();
    let mut helper = Command::new(env!("CARGO_BIN_EXE_bsnapshot"))
        .arg("-c")
        .arg(here.join("conf"))
        .envs([("SNAPSHOT_ACTION", "create"), ("SNAPSHOT_NAME", "Nightly.2026-11-21_02.13.24_12")])
        .envs([("SNAPSHOT_DEVICE", "/dev/vg0/root"), ("SNAPSHOT_TYPE", "lvm")])
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    wait_until("lvcreate was not run", || here.join("begun").exists());
    let group = Pid::from_raw(helper.id().cast_signed());
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        killpg(group, signal).unwrap();
    }
    assert!(!helper.wait().unwrap().success());
    fs::write(here.join("goes-on"), "").unwrap();
    wait_until("lvcreate was ended", || here.join("ended").exists());
}
