//! LVM.

use std::fs;

use super::host::{Host, NAME};

const ROOT: &str = "  vg0|root|/dev/vg0/root|/dev/mapper/vg0-root|10737418240|owi-aos---|||@ROOT@|1700000000\n";
const SNAPSHOT: &str = "  vg0|root_Nightly.2026-11-21_02.13.24_12|/dev/vg0/root_Nightly.2026-11-21_02.13.24_12|\
    /dev/mapper/vg0-root_Nightly.2026--11--21_02.13.24_12|1073741824|swi-aos---|root||254|7|1763691204\n";
const OTHERS: &str = "  vg0|swap|/dev/vg0/swap|/dev/mapper/vg0-swap|1073741824|-wi-ao----|||254|1|1700000001\n  \
    vg0|[pool_tdata]||/dev/mapper/vg0-pool_tdata|1073741824|Twi-ao----|||254|3|1700000001\n  \
    vg0|pool|/dev/vg0/pool||1073741824|twi-aotz--|||254|4|1700000001\n  \
    vg0|thin|/dev/vg0/thin|/dev/mapper/vg0-thin|5368709120|Vwi-aotz--||pool|254|5|1700000001\n  \
    vg0|hand|/dev/vg0/hand|/dev/mapper/vg0-hand|1073741824|swi-a-s---|root||254|6|1700000001\n";

/// ext4 on /dev/vg0/root.
fn host() -> Host {
    let mut host = Host::new("ext4");
    let numbers = host.is_lvm();
    host.answers("lvs", &format!("{}{OTHERS}{SNAPSHOT}", ROOT.replace("@ROOT@", &numbers)));
    host.answers("vgs", "  5368709120\n");
    host.request.device = "/dev/vg0/root".into();
    host.request.volume = format!("/dev/vg0/root_{NAME}").into();
    host
}

#[test]
fn a_volume_goes_through_all_actions() {
    let mut host = host();
    let top = host.request.mount_point.clone();
    // As /proc/mounts has it.
    host.request.device = "/dev/mapper/vg0-root".into();
    assert_eq!(host.good("support"), "status=1 device=\"/dev/vg0/root\" type=lvm\n");
    let columns =
        "vg_name,lv_name,lv_path,lv_dm_path,lv_size,lv_attr,origin,pool_lv,lv_kernel_major,lv_kernel_minor,lv_time";
    let config = "[--config] [report { time_format=\"%s\" }]";
    let form = "[--noheadings] [--nosuffix] [--units] [b] [--separator] [|]";
    assert_eq!(host.log(), format!("lvs {form} {config} [-o] [{columns}]\n"));
    host.request.device = "/dev/vg0/root".into();
    let created = host.good("create");
    let volume = format!("/dev/vg0/root_{NAME}");
    assert!(created.starts_with(&format!("status=1 volume=\"{volume}\" createtdate=\"")), "{created}");
    assert!(created.ends_with("\" type=lvm\n"));
    let directory = top.join(".snapshots");
    let at = directory.join(NAME);
    let mounted = format!("status=1 snapmountpoint=\"{}\" snapdirectory=\"{}\"\n", at.display(), directory.display());
    assert_eq!(host.good("mount"), mounted);
    assert!(at.is_dir());
    host.request.snapshot_mount_point = at.clone();
    fs::write(host.path("mountinfo"), format!("1 0 254:7 / {} ro - ext4 x ro\n", at.display())).unwrap();
    assert_eq!(host.good("unmount"), "status=1\n");
    assert!(!at.exists());
    // Once more changes nothing.
    fs::write(host.path("mountinfo"), "").unwrap();
    assert_eq!(host.good("unmount"), "status=1\n");
    assert_eq!(host.good("delete"), "status=1\n");
    let wanted = [
        format!("lvcreate [-s] [-n] [root_{NAME}] [-L] [1073741824b] [/dev/vg0/root]"),
        format!("mount [-o] [ro,errors=continue] [-t] [ext4] [{volume}] [{}]", at.display()),
        format!("umount [--] [{}]", at.display()),
        format!("lvremove [-f] [{volume}]"),
    ];
    assert_eq!(host.changes(), wanted);
}

/// Where none is wanted, it may be that of another program; kept ones are not seen in it.
#[test]
fn the_directory_of_snapshots_is_named_where_one_can_be_made() {
    let mut host = host();
    let directory = host.request.mount_point.join(".snapshots").display().to_string();
    assert_eq!(host.named_directory().as_ref(), Some(&directory));
    host.settings.skip_volume = vec!["/dev/vg0/root".into()];
    host.request.device = "/dev/mapper/vg0-root".into();
    assert!(!host.run("support").is_success());
    assert_eq!(host.named_directory(), None);
    (host.settings.skip_volume, host.settings.disabled) = (Vec::new(), true);
    let asked = host.log();
    assert!(!host.run("support").is_success());
    assert_eq!((host.named_directory(), host.log()), (None, asked), "no program has to be asked");
    host.settings.disabled = false;
    // What is another user's stays in the job.
    std::os::unix::fs::symlink("/elsewhere", &directory).unwrap();
    assert_eq!(host.named_directory(), None);
    fs::remove_file(&directory).unwrap();
    // So does what lies on a plain partition.
    let plain = Host::new("ext4");
    assert_eq!((plain.error("support"), plain.named_directory()), ("Not detected as LVM".to_owned(), None));
}

#[test]
fn a_directory_that_is_mounted_without_its_file_system_has_no_snapshots() {
    let host = host();
    let at = host.request.mount_point.display().to_string();
    fs::write(host.path("mountinfo"), format!("1 0 254:7 /srv/www {at} rw - ext4 /dev/mapper/vg0-root rw\n")).unwrap();
    assert_eq!(host.error("support"), format!("{at}: refused: only a directory of its file system is mounted here"));
    fs::write(host.path("mountinfo"), format!("1 0 254:7 / {at} rw - ext4 /dev/mapper/vg0-root rw\n")).unwrap();
    assert_eq!(host.good("support"), "status=1 device=\"/dev/vg0/root\" type=lvm\n");
}

#[test]
fn a_file_system_on_no_volume_is_not_detected() {
    let mut host = Host::new("xfs");
    host.request.device = "/dev/sda1".into();
    assert_eq!(host.error("support"), "Not detected as LVM");
    assert_eq!(host.log(), "", "no program has to be asked");
    assert_eq!(host.run("subvolumes").text(), b"");
    assert!(!host.run("subvolumes").is_success());
}

/// Else the daemon would save the live files without a word.
#[test]
fn a_volume_that_lvs_does_not_show_is_an_error_of_create() {
    let host = host();
    host.answers("lvs.err", "Volume group vg1 is missing\n");
    host.answers("lvs.err.2", "Volume group vg1 is missing\n");
    assert_eq!(host.good("support"), "status=1 device=\"/dev/vg0/root\" type=lvm\n");
    assert_eq!(host.error("create"), "lvs: Volume group vg1 is missing");
    fs::remove_file(host.path("bin/lvs")).unwrap();
    assert_eq!(host.good("support"), "status=1 device=\"/dev/vg0/root\" type=lvm\n");
    for action in ["create", "check"] {
        assert_eq!(host.error(action), "lvs: command not found: install lvm2");
    }
}

#[test]
fn xfs_is_mounted_without_its_number_and_with_what_is_configured() {
    let mut host = host();
    host.request.file_system = "xfs".into();
    host.settings.mountopts = vec![
        (None, "nouuid".into()),
        (None, "noatime".into()),
        (Some("/dev/vg0/root".into()), "nosuid,norecovery".into()),
        (Some("/dev/vg0/home".into()), "nodev".into()),
    ];
    host.good("mount");
    let options = "mount [-o] [ro,nouuid,noatime,nosuid,norecovery] [-t] [xfs] ";
    assert!(host.changes()[0].starts_with(options), "{:?}", host.changes());
}

#[test]
fn a_size_is_taken_from_the_configuration() {
    use crate::settings::SnapshotSize::{Bytes, Percent};
    for (named, size, bytes) in [
        ("/dev/vg0/root", Percent(5), 536_870_912_u64),
        ("/dev/mapper/vg0-root", Bytes(1_000_000), 999_936),
        ("/dev/vg0/root", Bytes(1), 512),
        ("/dev/vg0/other", Percent(5), 1_073_741_824),
    ] {
        let mut host = host();
        host.settings.lvm_snapshot_size = vec![(named.into(), size)];
        host.good("create");
        assert!(host.changes()[0].contains(&format!(" [-L] [{bytes}b] ")), "{:?}", host.changes());
    }
}

#[test]
fn a_full_group_is_reported_with_what_to_do() {
    let mut host = host();
    host.answers("vgs", "  4194304\n");
    let wanted = "volume group vg0 has 4194304 bytes free, and a snapshot of /dev/vg0/root needs 1073741824: extend the group \
                  (vgextend), or set a smaller lvm_snapshot_size";
    assert_eq!(host.error("create"), wanted);
    host.settings.fail_job_on_error = false;
    assert_eq!(host.run("create").text(), format!("status=2 error=\"{wanted}\"\n").as_bytes());
    assert_eq!(host.changes(), [""; 0]);
    host.answers("vgs", "nonsense\n");
    host.settings.fail_job_on_error = true;
    assert_eq!(host.error("create"), "vgs: no free space of vg0 in its output");
}

#[test]
fn a_thin_volume_takes_its_space_from_the_pool() {
    let mut host = host();
    host.request.device = "/dev/vg0/thin".into();
    host.answers("vgs", "  0\n");
    host.good("create");
    let wanted = format!("lvcreate [-s] [-n] [thin_{NAME}] [-k] [n] [-a] [y] [/dev/vg0/thin]");
    assert_eq!(host.changes(), [wanted]);
}

#[test]
fn what_can_have_no_snapshot_is_named() {
    for (device, why) in [("/dev/vg0/hand", "it is itself a snapshot"), ("/dev/vg0/pool", "it is a pool")] {
        let mut host = host();
        host.request.device = device.into();
        assert_eq!(host.error("create"), format!("{device}: refused: {why}"));
    }
    let mut host = host();
    host.request.device = "/dev/vg0/none".into();
    assert_eq!(host.error("create"), "SNAPSHOT_DEVICE=\"/dev/vg0/none\": lvs lists no such logical volume");
}

#[test]
fn what_this_program_has_not_made_is_not_removed() {
    for (volume, why) in [
        ("/dev/vg0/root", "it is no snapshot"),
        ("/dev/vg0/swap", "it is no snapshot"),
        ("/dev/vg0/hand", "its name does not begin with that of its origin"),
        ("/dev/vg0/none", "there is no such logical volume"),
        ("/dev/sda", "there is no such logical volume"),
    ] {
        let mut host = host();
        host.request.volume = volume.into();
        for action in ["delete", "mount", "query"] {
            let error = host.error(action);
            assert!(error.contains(why), "{volume}: {error}");
        }
        assert_eq!(host.changes(), [""; 0]);
    }
    let mut host = host();
    host.request.name = "Other.2026-11-21_02.13.24_13".into();
    assert!(host.error("delete").contains("it is not the name of the volume"));
}

#[test]
fn a_busy_volume_is_tried_again() {
    let host = host();
    host.answers("lvremove.err", "  Logical volume vg0/root_x contains a filesystem in use.\n");
    host.answers("lvremove.err.2", "  Logical volume vg0/root_x in use.\n");
    assert_eq!(host.good("delete"), "status=1\n");
    assert_eq!(host.changes().len(), 3);
}

#[test]
fn a_failed_mount_leaves_no_directory() {
    let host = host();
    host.answers("mount.err", "mount: wrong fs type, bad option, bad superblock\n");
    assert_eq!(host.error("mount"), "mount: mount: wrong fs type, bad option, bad superblock");
    assert_eq!(fs::read_dir(host.request.mount_point.join(".snapshots")).unwrap().count(), 0);
}

#[test]
fn a_file_system_of_another_user_is_mounted_in_a_directory_of_ours() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut host = host();
    // Any user may exchange what is in it.
    fs::set_permissions(&host.request.mount_point, fs::Permissions::from_mode(0o777)).unwrap();
    // It is not touched.
    let theirs = host.request.mount_point.join(".snapshots");
    fs::write(&theirs, "theirs").unwrap();
    let mounted = host.good("mount");
    let private = fs::read_dir(host.path("run/bsnapshot")).unwrap().next().unwrap().unwrap().path();
    assert!(private.file_name().unwrap().to_string_lossy().starts_with(&format!("{NAME}.")), "{private:?}");
    let directory = host.path("run/bsnapshot");
    let wanted =
        format!("status=1 snapmountpoint=\"{}\" snapdirectory=\"{}\"\n", private.display(), directory.display());
    assert_eq!(mounted, wanted);
    assert_eq!(fs::read_to_string(theirs).unwrap(), "theirs");
    host.request.snapshot_mount_point = private.clone();
    fs::write(host.path("mountinfo"), format!("1 0 254:7 / {} ro - ext4 x ro\n", private.display())).unwrap();
    host.answers("umount.err", "umount: target is busy.\n");
    assert_eq!(host.good("unmount"), "status=1\n");
    assert!(!private.exists());
    assert_eq!(
        host.changes()[1..],
        [format!("umount [--] [{}]", private.display()), format!("umount [--] [{}]", private.display())]
    );
}

/// As one that is read-only or full.
#[test]
fn a_file_system_that_takes_no_directory_is_mounted_in_a_directory_of_ours() {
    let host = host();
    fs::write(host.request.mount_point.join(".snapshots"), "").unwrap();
    assert!(host.good("mount").contains(&format!("snapdirectory=\"{}\"", host.path("run/bsnapshot").display())));
    assert_eq!(fs::read_dir(host.path("run/bsnapshot")).unwrap().count(), 1);
    assert_eq!(host.good("unmount"), "status=1\n");
    assert_eq!(fs::read_dir(host.path("run/bsnapshot")).unwrap().count(), 0);
}

#[test]
fn snapshots_are_listed_with_their_state() {
    let mut host = host();
    let entry = format!(
        "volume=\"/dev/vg0/root_{NAME}\" name=\"{NAME}\" device=\"/dev/vg0/root\" createtdate=\"1763691204\" size=1073741824 "
    );
    assert_eq!(host.good("list"), format!("{entry}status=1 error=\"\" type=lvm\n"));
    assert_eq!(host.good("query"), "status=1 error=\"\" size=1073741824 createtdate=\"1763691204\" type=lvm\n");
    host.answers(
        "lvs",
        &format!("{}{}", ROOT.replace("@ROOT@", "254|0"), SNAPSHOT.replace("swi-aos---", "swi-Ios---")),
    );
    let full =
        "status=0 error=\"the snapshot is full, and its data is lost: set a larger lvm_snapshot_size\" type=lvm\n";
    assert_eq!(host.good("list"), format!("{entry}{full}"));
    host.request.device = "/dev/vg0/none".into();
    assert!(host.error("list").contains("lvs lists no such logical volume"));
}

#[test]
fn long_and_odd_names_become_permitted_ones() {
    let mut host = host();
    host.request.name = format!("A very, very long-winded name {}.2026-11-21_02.13.24_12", "x".repeat(80)).into();
    host.good("create");
    let made = host.changes()[0].split('[').nth(3).unwrap().trim_end_matches("] ").to_owned();
    assert!(made.starts_with("root__name_xxxxx") && made.ends_with(".2026-11-21_02.13.24_12"), "{made}");
    assert!(made.len() < 120);
}

#[test]
fn a_snapshot_of_a_job_is_found_by_the_name_of_the_job() {
    // What died after `create` knows no volume.
    let mut host = host();
    host.request.name = "Nightly 2026-11-21,02.13.24_12".into();
    host.request.volume = "".into();
    let root = ROOT.replace("@ROOT@", "254|0");
    let made = SNAPSHOT.replace("Nightly.2026-11-21_", "Nightly_2026-11-21_");
    host.answers("lvs", &format!("{root}{made}"));
    assert!(host.good("list").contains(" name=\"Nightly 2026-11-21,02.13.24_12\" "), "{}", host.good("list"));
    // Its volume is mounted, perhaps.
    let at = host.request.mount_point.join(".snapshots").join(&host.request.name);
    fs::create_dir_all(&at).unwrap();
    let escaped = at.to_string_lossy().replace(' ', "\\040");
    fs::write(host.path("mountinfo"), format!("1 0 254:7 / {escaped} ro - ext4 x ro\n")).unwrap();
    host.request.volume = "/dev/vg0/root_Nightly_2026-11-21_02.13.24_12".into();
    host.good("delete");
    assert_eq!(host.changes().len(), 2, "{:?}", host.changes());
    assert!(host.changes()[0].starts_with("umount [--] "));
}

/// As the console does, which knows no mount point.
#[test]
fn a_snapshot_that_is_still_mounted_is_unmounted_and_removed() {
    let mut host = host();
    let at = host.request.mount_point.join(".snapshots").join(NAME);
    fs::create_dir_all(&at).unwrap();
    let mount = |at: &std::path::Path| format!("1 0 254:7 / {} ro - ext4 x ro\n", at.display());
    // An operator looks at it.
    fs::write(host.path("mountinfo"), mount(&host.path("mnt/by-hand")) + &mount(&at)).unwrap();
    host.request.mount_point = "".into();
    assert_eq!(host.good("delete"), "status=1\n");
    assert_eq!(
        host.changes(),
        [format!("umount [--] [{}]", at.display()), format!("lvremove [-f] [/dev/vg0/root_{NAME}]")]
    );
    assert!(!at.exists());
}

#[test]
fn nonsense_of_the_programs_is_no_volume() {
    for odd in [
        "",
        "\n\n",
        "||||||||||\n",
        "vg0|root\n",
        "vg0|root|relative|x|1|o|||1|1|1\n",
        "vg0|root|/dev/vg0/root|x|much|o|||1|1|1\n",
        "\u{fffd}|\n",
    ] {
        let host = host();
        host.answers("lvs", odd);
        assert_eq!(host.good("support"), "status=1 device=\"/dev/vg0/root\" type=lvm\n", "{odd:?}");
        assert_eq!(host.error("create"), "SNAPSHOT_DEVICE=\"/dev/vg0/root\": lvs lists no such logical volume");
    }
}
