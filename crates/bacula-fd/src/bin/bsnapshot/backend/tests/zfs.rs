//! ZFS.

use std::fs;

use super::host::{Host, NAME};

fn host() -> Host {
    let mut host = Host::new("zfs");
    host.request.device = "tank/my data".into();
    host
}

fn with_volume(volume: &str) -> Host {
    let mut host = host();
    host.request.volume = volume.into();
    host
}

#[test]
fn a_dataset_goes_through_all_actions() {
    let mut host = host();
    let top = host.request.mount_point.clone();
    let volume = format!("tank/my data@{NAME}");
    assert_eq!(host.good("support"), "status=1 device=\"tank/my data\" type=zfs\n");
    assert_eq!(host.log(), "");
    let created = host.good("create");
    assert!(created.starts_with(&format!("status=1 volume=\"{volume}\" createtdate=")), "{created}");
    assert!(created.ends_with(" type=zfs\n"));
    host.request.volume = volume.clone().into();
    let directory = top.join(".zfs/snapshot");
    let at = directory.join(NAME);
    assert_eq!(host.error("mount"), format!("can't enter the snapshot {}: No such file or directory", at.display()));
    fs::create_dir_all(&at).unwrap();
    let mounted = format!("status=1 snapmountpoint=\"{}\" snapdirectory=\"{}\"\n", at.display(), directory.display());
    assert_eq!(host.good("mount"), mounted);
    assert_eq!(host.good("unmount"), "status=1\n");
    assert_eq!(host.good("delete"), "status=1\n");
    assert_eq!(host.changes(), [format!("zfs [snapshot] [{volume}]"), format!("zfs [destroy] [{volume}]")]);
}

#[test]
fn what_is_no_snapshot_of_this_program_is_not_destroyed() {
    for (volume, why) in [
        ("tank/my data", "it is no snapshot"),
        ("tank/my data@", "it is not the name of a snapshot of this program"),
        ("tank/my data@a%b", "it is not the name of a snapshot of this program"),
        ("tank/my data@a,b", "it is not the name of a snapshot of this program"),
        ("-r@a", "it is not the name of a snapshot of this program"),
        ("tank@a@b", "it is no snapshot"),
        ("tank/my data@other", "SNAPSHOT_NAME"),
        ("rpool@Nightly.2026-11-21_02.13.24_12", "SNAPSHOT_DEVICE"),
    ] {
        let host = with_volume(volume);
        let error = host.error("delete");
        assert!(error.contains(why), "{volume}: {error}");
        assert_eq!(host.changes(), [""; 0]);
    }
}

#[test]
fn a_busy_snapshot_is_tried_again_and_then_reported() {
    let volume = format!("tank/my data@{NAME}");
    let mut host = with_volume(&volume);
    let busy = format!("cannot destroy snapshot {volume}: dataset is busy\n");
    host.answers("zfs.err", &busy);
    host.answers("zfs.err.2", &busy);
    assert_eq!(host.good("delete"), "status=1\n");
    assert_eq!(host.changes().len(), 3);
    host.settings.retry = 1;
    host.answers("zfs.err", &busy);
    host.answers("zfs.err.2", &busy);
    assert_eq!(host.error("delete"), format!("zfs: {}", busy.trim_end()));
}

#[test]
fn an_error_of_the_program_is_passed_on_at_once() {
    let volume = format!("tank/my data@{NAME}");
    let host = with_volume(&volume);
    host.answers("zfs.err", "cannot create snapshot 'tank/my data@x': out of space\nno snapshots were created\n");
    let wanted = "zfs: cannot create snapshot 'tank/my data@x': out of space; no snapshots were created";
    assert_eq!(host.error("create"), wanted);
    assert_eq!(host.changes().len(), 1);
}

#[test]
fn odd_job_names_become_permitted_ones() {
    let mut host = host();
    host.request.name = "My Job, 50%@home.2026-11-21_02.13.24_12".into();
    let created = host.good("create");
    assert!(created.contains("volume=\"tank/my data@My_Job__50__home.2026-11-21_02.13.24_12\""), "{created}");
    host.request.volume = "tank/my data@My_Job__50__home.2026-11-21_02.13.24_12".into();
    assert_eq!(host.good("delete"), "status=1\n");
}

#[test]
fn snapshots_are_listed_and_asked_about() {
    let mut host = host();
    host.answers(
        "zfs",
        "tank/my data@Nightly.2026-11-21_02.13.24_12\t1763691204\t81920\n\
         tank/my data/child@x\t1\t2\ntank/my data@odd name\t1\t2\nnonsense\n",
    );
    let entry = "volume=\"tank/my data@Nightly.2026-11-21_02.13.24_12\" name=\"Nightly.2026-11-21_02.13.24_12\" \
                 device=\"tank/my data\" createtdate=\"1763691204\" size=81920 status=1 error=\"\" type=\"zfs\"\n";
    assert_eq!(host.good("list"), entry);
    host.answers("zfs", "81920\n");
    host.request.volume = format!("tank/my data@{NAME}").into();
    assert_eq!(host.good("query"), "status=1 size=81920 error=\"\" type=zfs\n");
}

#[test]
fn what_is_no_dataset_has_no_support() {
    for odd in ["", "a\nb", "/tank", "-o", "tank@a"] {
        let mut host = host();
        host.request.device = odd.into();
        assert!(host.error("support").ends_with("it is no dataset"), "{odd:?}");
    }
}
