//! What a plugin may, by its settings.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use fd_plugins::SavePacket;
use fd_plugins::library::{Confinement, Library};

use crate::Test;
use crate::bed::{Daemon, begun, compiled, confinement, load};

pub(crate) const TESTS: &[Test] = &[
    ("a_plugin_gets_no_more_memory_than_it_may", a_plugin_gets_no_more_memory_than_it_may),
    ("an_instance_that_can_t_begin_leaves_the_others_alone", an_instance_that_can_t_begin_leaves_the_others_alone),
    ("a_plugin_runs_as_its_user_with_its_groups", a_plugin_runs_as_its_user_with_its_groups),
    ("a_plugin_without_network_has_no_device_that_is_up", a_plugin_without_network_has_no_device_that_is_up),
];

fn a_plugin_gets_no_more_memory_than_it_may() {
    // As much memory as the program needs to begin is less than this.
    let little = Confinement { memory: Some(1 << 20), ..confinement() };
    assert!(load(&compiled("little", &[]), little).is_err());
    let enough = Confinement { memory: Some(1 << 30), ..confinement() };
    assert!(load(&compiled("enough", &[]), enough).is_ok());
}

/// Each instance has a stack, for which there is no memory in the end.
fn an_instance_that_can_t_begin_leaves_the_others_alone() {
    let limited = Confinement { memory: Some(256 << 20), ..confinement() };
    let plugin = load(&compiled("limited", &[]), limited).unwrap();
    let mut daemon = Daemon::default();
    let mut instances = Vec::new();
    let gone = loop {
        match begun(&plugin, &mut daemon, "odd: none") {
            Ok(instance) => instances.push(instance),
            Err(gone) => break gone,
        }
        assert!(instances.len() < 1000, "there is always memory");
    };
    assert!(String::from_utf8_lossy(&gone.text).contains("has closed its line in newPlugin"), "{gone:?}");
    assert!(!instances.is_empty());
    for mut instance in instances {
        assert_eq!(instance.end_backup_file(&mut daemon).err(), None);
        assert_eq!(instance.end(&mut daemon), Ok(()));
    }
}

/// What a plugin with this confinement says when it is to tell this.
fn told(library: &Path, what: &str, confinement: Confinement) -> Vec<String> {
    told_by(&load(library, confinement).unwrap(), what)
}

fn told_by(plugin: &Library, what: &str) -> Vec<String> {
    let mut daemon = Daemon::default();
    let command = format!("odd: startBackupFile={what}");
    let mut instance = begun(plugin, &mut daemon, &command).unwrap();
    instance.start_backup_file(&mut daemon, command.as_bytes(), true, &mut SavePacket::empty()).unwrap();
    instance.end_backup_file(&mut daemon).unwrap();
    instance.end(&mut daemon).unwrap();
    daemon.said.iter().map(|said| said.trim_start_matches("Info ").trim_end().to_owned()).collect()
}

fn a_plugin_runs_as_its_user_with_its_groups() {
    if !nix::unistd::geteuid().is_root() {
        return skip::test("needs root");
    }
    // Only root may enter the folders above the usual place, perhaps.
    let folder = std::env::temp_dir().join(format!("ferrofd-confined-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let library = folder.join("odd-fd.so");
    fs::copy(compiled("user", &[]), &library).unwrap();
    fs::set_permissions(&library, Permissions::from_mode(0o755)).unwrap();
    let of = |user: Option<(Option<u32>, Vec<u32>)>| Confinement { user, ..confinement() };
    let with = |user| told(&library, "user", of(user));
    let only_group = || Some((None, vec![23_456]));
    let (own, both, group) = (with(None), with(Some((Some(12_345), vec![23_456, 34_567]))), with(only_group()));
    // The daemon becomes another user.
    let plugins = [Some((Some(45_678), vec![34_567])), only_group()].map(|user| load(&library, of(user)).unwrap());
    let later = plugins.map(|plugin| {
        plugin.become_user(12_345, 12_345, &[12_345, 34_567], false).unwrap();
        told_by(&plugin, "user")
    });
    fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(&own[..], [text] if text.starts_with("user 0 0 0, group ")), "{own:?}");
    assert_eq!(both, ["user 12345 12345 12345, group 23456 23456 23456, groups 23456 34567"]);
    assert_eq!(group, ["user 0 0 0, group 23456 23456 23456, groups 23456"]);
    assert_eq!(later[0], ["user 45678 45678 45678, group 34567 34567 34567, groups 34567"]);
    assert_eq!(later[1], ["user 12345 12345 12345, group 23456 23456 23456, groups 23456"]);
}

fn a_plugin_without_network_has_no_device_that_is_up() {
    let may = Command::new("unshare").args(["--net", "true"]).output().is_ok_and(|done| done.status.success());
    if !nix::unistd::geteuid().is_root() || !may {
        return skip::test("needs root that may make networks");
    }
    let library = compiled("network", &[]);
    let own = fs::read_link("/proc/self/ns/net").unwrap().to_str().unwrap().to_owned();
    let with = |network| told(&library, "network", Confinement { network, ..confinement() });
    assert_eq!(with(true).first(), Some(&own));
    let without = with(false);
    let Some((network, devices)) = without.split_first() else { panic!("it says nothing") };
    assert!(network.starts_with("net:[") && *network != own, "{without:?}");
    // Some kernels have ends of tunnels in every network.
    assert!(devices.contains(&"lo is down".to_owned()), "{without:?}");
    assert!(devices.iter().all(|device| device.ends_with(" is down")), "{without:?}");
}
