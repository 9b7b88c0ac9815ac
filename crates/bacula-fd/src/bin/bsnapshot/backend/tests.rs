//! LVM and ZFS through recorded tools: programs in a folder that log their arguments and answer in
//! the real ones' form.

mod host;
mod lvm;
mod zfs;

use std::fs;

use host::{Host, NAME};

#[test]
fn a_file_system_without_a_backend_is_no_failure() {
    let host = Host::new("nfs4");
    let answer = host.run("support");
    assert_eq!(answer.text(), b"status=0 error=\"Unable to detect snapshot backend\"\n");
    assert!(answer.is_success());
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let mut host = Host::new("zfs");
    fs::remove_file(host.path("bin/zfs")).unwrap();
    host.request.device = "tank/data".into();
    // Else the daemon would save the live files without a word.
    assert_eq!(host.good("support"), "status=1 device=\"tank/data\" type=zfs\n");
    assert_eq!(host.run("create").text(), b"status=0 error=\"zfs: command not found: install zfsutils-linux\"\n");
    host.settings.fail_job_on_error = false;
    assert_eq!(host.run("create").text(), b"status=2 error=\"zfs: command not found: install zfsutils-linux\"\n");
}

#[test]
fn a_skipped_volume_has_no_snapshots() {
    let mut host = Host::new("zfs");
    host.request.device = "tank/data".into();
    assert!(host.run("support").is_success());
    host.settings.skip_volume.push(host.request.mount_point.clone().into());
    let wanted = format!("{} is in skip_volume of the configuration", host.request.mount_point.display());
    assert_eq!((host.error("support"), host.error("create")), (wanted.clone(), wanted));
}

#[test]
fn a_disabled_helper_still_removes() {
    let mut host = Host::new("zfs");
    host.request.device = "tank/data".into();
    host.good("create");
    host.request.volume = format!("tank/data@{NAME}").into();
    host.settings.disabled = true;
    for action in ["support", "create", "mount"] {
        assert_eq!(host.error(action), "snapshots are disabled in bsnapshot.conf");
    }
    assert_eq!((host.good("unmount"), host.good("delete")), ("status=1\n".to_owned(), "status=1\n".to_owned()));
}

#[test]
fn a_name_that_is_a_path_is_refused() {
    for kind in ["btrfs", "zfs"] {
        for name in ["", "..", "a/b", "../../etc"] {
            let mut host = Host::new(kind);
            host.request.device = "tank".into();
            host.request.name = name.into();
            assert_eq!(
                host.error("create"),
                format!("SNAPSHOT_NAME={name:?}: it must be the name of one file"),
                "{kind}"
            );
            assert_eq!(host.log(), "");
        }
    }
}

#[test]
fn a_snapshot_directory_of_another_user_or_a_link_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let host = Host::new("btrfs");
    let directory = host.request.mount_point.join(".snapshots");
    let elsewhere = host.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &directory).unwrap();
    let error = host.error("create");
    assert!(error.contains("it is no directory, or a link; remove it, or name another one as snapshot_dir"), "{error}");
    fs::remove_file(&directory).unwrap();
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(host.error("create"), format!("{}: refused: other users may write it; chmod go-w", directory.display()));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    host.script("btrfs", "");
    assert!(host.error("create").starts_with("btrfs: no snapshot came to be at "));
}

/// The daemon would forget a snapshot that is not listed.
#[test]
fn a_btrfs_that_is_not_mounted_lists_nothing() {
    let host = Host::new("btrfs");
    let why = "it is not the top directory of a subvolume";
    assert_eq!(host.error("list"), format!("{}: refused: {why}", host.request.mount_point.display()));
}

#[test]
fn a_path_with_a_link_in_it_is_refused() {
    let mut host = Host::new("zfs");
    host.request.device = "tank".into();
    let link = host.path("link");
    std::os::unix::fs::symlink(&host.request.mount_point, &link).unwrap();
    host.request.mount_point = link.clone();
    assert_eq!(host.error("support"), format!("can't open {}: Not a directory", link.display()));
    host.request.mount_point = "relative".into();
    assert_eq!(host.error("support"), "relative: refused: it is not an absolute path");
    host.request.mount_point = host.path("mnt/../mnt");
    assert!(host.error("support").ends_with("refused: it has \"..\" in it"));
}

#[test]
fn a_program_that_prints_without_end_or_is_killed_is_reported() {
    let mut host = Host::new("zfs");
    host.request.device = "tank".into();
    host.script("zfs", "kill -9 $$");
    // Else the daemon would save the live files without a word.
    assert_eq!(host.good("support"), "status=1 device=\"tank\" type=zfs\n");
    for action in ["create", "list", "check"] {
        assert_eq!(host.error(action), "zfs: it ended with signal: 9 (SIGKILL)");
    }
    host.script("zfs", "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done");
    assert_eq!(host.error("list"), "zfs: it prints more than 16777216 bytes");
    host.script("zfs", "printf 'a\\nERROR: b\\n\\n' >&2; exit 1");
    assert_eq!(host.error("create"), "zfs: a; b");
}

#[test]
fn each_file_system_is_checked_at_once() {
    let host = Host::new("");
    let plain = "1 0 8:1 / /boot rw - ext4 /dev/sda1 rw\n2 0 0:5 / /proc rw - proc proc rw\n3 0 0:6 / /run rw - tmpfs tmpfs rw\n";
    fs::write(host.path("mountinfo"), plain).unwrap();
    let answer = host.check();
    let text = String::from_utf8_lossy(answer.text()).into_owned();
    assert!(text.starts_with("mountpoint=\"/boot\" fstype=\"ext4\" backend=lvm status=0 error=\""), "{text}");
    assert_eq!(text.lines().count(), 1);
    assert!(!answer.is_success());
}
