//! What plugins leave running.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fd_plugins::SavePacket;
use fd_plugins::library::Library;

use crate::Test;
use crate::bed::{Daemon, begun, compiled, confinement, load};

pub(crate) const TESTS: &[Test] = &[
    ("what_a_plugin_has_started_ends_with_its_plugin_host", what_a_plugin_has_started_ends_with_its_plugin_host),
    ("a_killed_daemon_leaves_no_plugin_host", a_killed_daemon_leaves_no_plugin_host),
];

/// With this argument and the path of a plugin the program is a daemon that will be killed.
pub(crate) const DAEMON: &str = "--daemon";

/// What the plugin has started with this command: one that stays in its process group, and one that
/// does not.
fn spawned(plugin: &Library, command: &str) -> [u32; 2] {
    let mut daemon = Daemon::default();
    let mut instance = begun(plugin, &mut daemon, command).unwrap();
    instance.start_backup_file(&mut daemon, command.as_bytes(), true, &mut SavePacket::empty()).unwrap();
    if instance.check_file(&mut daemon, b"/x").is_ok() {
        instance.end(&mut daemon).unwrap();
    }
    let number = |said: &String| said.trim_start_matches("Info ").trim_end().parse().unwrap();
    let numbers: Vec<u32> = daemon.said.iter().map(number).collect();
    numbers.try_into().unwrap()
}

/// Whether a process runs: one that has ended may wait to be reaped by whatever has inherited it.
fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits for the end of a process.
fn must_end(pid: u32) {
    while runs(pid) {
        std::thread::yield_now();
    }
}

fn end(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(pid.try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

fn what_a_plugin_has_started_ends_with_its_plugin_host() {
    let plugin = load(&compiled("spawns", &[]), confinement()).unwrap();
    let [first, free] = spawned(&plugin, "odd: startBackupFile=spawn");
    // The job is over, and both go on, as below the stock daemon.
    assert!(runs(first) && runs(free));
    // The plugin host dies.
    let [second, other] = spawned(&plugin, "odd: startBackupFile=spawn checkFile=segv");
    must_end(first);
    must_end(second);
    // It is replaced, and the new one ends with the daemon.
    let [third, last] = spawned(&plugin, "odd: startBackupFile=spawn");
    assert!(runs(third));
    drop(plugin);
    must_end(third);
    for pid in [free, other, last] {
        assert!(runs(pid), "it has left the group");
        end(pid);
    }
}

fn a_killed_daemon_leaves_no_plugin_host() {
    let loops = compiled("loads", &["-DODD_LOAD=for(;;)pause()"]);
    let path = compiled("killed", &[]);
    let mut daemon = Command::new(std::env::current_exe().unwrap())
        .arg(DAEMON)
        .args([&path, &loops])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    let mut number = || lines.next().unwrap().unwrap().parse::<u32>().unwrap();
    let (grouped, free) = (number(), number());
    // The host of the second plugin does nothing but load it.
    let hosts = loop {
        let hosts = children(daemon.id());
        let is_loading = |pid: &u32| {
            let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            maps.contains(&*loops.to_string_lossy())
        };
        if hosts.iter().any(is_loading) {
            break hosts;
        }
        std::thread::yield_now();
    };
    assert_eq!(hosts.len(), 2);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    hosts.into_iter().chain([grouped]).for_each(must_end);
    assert!(runs(free), "it has left the group");
    end(free);
}

fn children(of: u32) -> Vec<u32> {
    let parent = format!("PPid:\t{of}\n");
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let status = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    processes.filter(|pid| status(pid).contains(&parent)).filter_map(|pid| pid.parse().ok()).collect()
}

/// The daemon of [`a_killed_daemon_leaves_no_plugin_host`], which loads both plugins.
pub(crate) fn daemon(plugin: &Path, loops: &Path) {
    let plugin = load(plugin, confinement()).unwrap();
    if nix::unistd::geteuid().is_root() {
        // The kernel forgets at this what it was to do at the daemon's end.
        plugin.become_user(12_345, 12_345, &[], false).unwrap();
    }
    for pid in spawned(&plugin, "odd: startBackupFile=spawn") {
        println!("{pid}");
    }
    let patient = fd_plugins::library::Confinement { start_timeout: Duration::from_secs(1000), ..confinement() };
    let _never = load(loops, patient);
}
