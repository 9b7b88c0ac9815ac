//! The configuration file: every setting, every mistake.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn parse(text: &str) -> Settings {
    let (settings, understood) = Settings::parse(text.as_bytes());
    understood.unwrap();
    settings
}

fn mistake(text: &str) -> (usize, String) {
    Settings::parse(text.as_bytes()).1.unwrap_err()
}

#[test]
fn a_file_of_the_manual_is_read() {
    let read = parse(
        "trace=/tmp/snap.log\ndebug=10\n\n# sizes\nlvm_snapshot_size=/dev/ubuntu-vg/root:5%\n\
         mountopts=nouuid\nmountopts=/dev/ubuntu-vg/root:nouuid,nosuid\n",
    );
    assert_eq!((read.trace.as_deref(), read.debug), (Some(Path::new("/tmp/snap.log")), 10));
    assert_eq!(read.lvm_snapshot_size, [("/dev/ubuntu-vg/root".into(), SnapshotSize::Percent(5))]);
    let options = [(None, "nouuid".into()), (Some("/dev/ubuntu-vg/root".into()), "nouuid,nosuid".into())];
    assert_eq!(read.mountopts, options);
}

#[test]
fn each_setting_is_read() {
    let read = parse(
        "SUDO = Yes\n disabled=1\nretry = 10 # times\nsnapshot_dir = \".snap \\\"dir\\\"\" # odd\n\
         fail_job_on_error = no\nskip_volume = /dev/vg/swap, /home\nskip_volume=tank/x\n\
         lvm_snapshot_size = /dev/a/b:10G,/dev/a/c:4096\npath = /opt/zfs/sbin:/usr/sbin\nprivate_dir = /srv/snap\n",
    );
    assert!(read.sudo && read.disabled && !read.fail_job_on_error);
    assert_eq!((read.retry, read.snapshot_dir), (10, ".snap \"dir\"".into()));
    assert_eq!(read.skip_volume, ["/dev/vg/swap", "/home", "tank/x"]);
    let sizes = [("/dev/a/b".into(), SnapshotSize::Bytes(10 << 30)), ("/dev/a/c".into(), SnapshotSize::Bytes(4096))];
    assert_eq!(read.lvm_snapshot_size, sizes);
    assert_eq!(read.path, [Path::new("/opt/zfs/sbin"), Path::new("/usr/sbin")]);
    assert_eq!(read.private_dir, Path::new("/srv/snap"));
}

#[test]
fn without_lines_there_are_the_defaults() {
    let read = parse("");
    assert_eq!(read, Settings::default());
    assert!(read.fail_job_on_error && !read.sudo && !read.disabled);
    assert_eq!((read.retry, read.snapshot_dir.to_str()), (3, Some(".snapshots")));
}

#[test]
fn the_example_that_is_installed_says_the_defaults() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/files/bsnapshot.conf");
    let text = fs::read_to_string(example).unwrap();
    assert_eq!(parse(&text), Settings::default());
    // Without the marks of the comments it is a configuration, too, and names each setting.
    let settings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix('#')).collect();
    let settings: Vec<&str> =
        settings.into_iter().filter(|line| !line.starts_with(' ') && line.contains('=')).collect();
    let read = parse(&settings.join("\n"));
    assert_eq!((read.retry, read.snapshot_dir, read.private_dir), (3, ".snapshots".into(), "/run/bsnapshot".into()));
    for name in
        "trace debug sudo disabled retry lvm_snapshot_size skip_volume snapshot_dir fail_job_on_error mountopts \
                 path private_dir"
            .split(' ')
    {
        assert!(settings.iter().any(|line| line.starts_with(&format!("{name} = "))), "{name} is missing");
    }
}

#[test]
fn a_mistake_is_named_with_its_line() {
    assert_eq!(mistake("\nretri = 3"), (2, "there is no setting retri".to_owned()));
    assert_eq!(mistake("sudo"), (1, "no \"=\"".to_owned()));
    assert_eq!(mistake("sudo = maybe").1, "\"maybe\" is neither yes nor no");
    assert_eq!(mistake("retry = many").1, "\"many\" is not a number");
    assert_eq!(mistake("trace = \"x").1, "the closing quote is missing");
    for bad in ["../x", "/x", "", ".", ".."] {
        assert_eq!(mistake(&format!("snapshot_dir = {bad}")).1, "the name of one directory is needed, without \"/\"");
    }
    for bad in ["/dev/a/b", "/dev/a/b:x", "/dev/a/b:101%", "/dev/a/b:0", "/dev/a/b:99999999999t", "/dev/a/b:1q"] {
        let wrong = format!("{bad:?} is not VOLUME:SIZE or VOLUME:PERCENT%");
        assert_eq!(mistake(&format!("lvm_snapshot_size = {bad}")).1, wrong);
    }
    assert_eq!(mistake("path = bin").1, "bin is not an absolute path");
}

#[test]
fn a_file_that_others_may_write_or_that_a_link_leads_to_in_vain_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bsnapshot.conf");
    let (settings, understood) = Settings::read(&path, false);
    understood.unwrap();
    assert_eq!(settings, Settings::default());
    assert!(Settings::read(&path, true).1.unwrap_err().to_string().ends_with(": No such file or directory"));
    symlink(folder.path().join("not mounted"), &path).unwrap();
    assert!(Settings::read(&path, false).1.unwrap_err().to_string().ends_with(": No such file or directory"));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "retry = 5\n").unwrap();
    for (mode, good) in [(0o644, true), (0o600, true), (0o664, false), (0o646, false)] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert_eq!(Settings::read(&path, true).1.is_ok(), good, "{mode:o}");
    }
}
