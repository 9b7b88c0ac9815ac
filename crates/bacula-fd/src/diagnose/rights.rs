//! Whose rights count: those of the running daemon, or of the unit that starts it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;

use fd_os::process::command;
use nix::unistd::User;

/// What starts the daemon.
pub(super) const UNIT: &str = "bacula-fd.service";
/// Overrides all permissions.
pub(super) const DAC_OVERRIDE: u32 = 1;
/// Overrides those that forbid to read.
pub(super) const DAC_READ_SEARCH: u32 = 2;
/// Capabilities that the checks ask for, by their names.
pub(super) const CAPABILITIES: [(&str, u32); 7] = [
    ("CHOWN", 0),
    ("DAC_OVERRIDE", DAC_OVERRIDE),
    ("DAC_READ_SEARCH", DAC_READ_SEARCH),
    ("FOWNER", 3),
    ("FSETID", 4),
    ("MKNOD", 27),
    ("SETFCAP", 31),
];
/// The state of a socket that listens, in the kernel's tables.
const LISTENS: &str = "0A";
/// systemd runs if this is there.
const MANAGER: &str = "/run/systemd/system";

/// What a process may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Rights {
    pub(super) uid: u32,
    /// Its group; `None`: the user's own.
    pub(super) gid: Option<u32>,
    /// Effective capabilities, a bit each.
    pub(super) capabilities: u64,
    /// Whether its root is not that of the host.
    pub(super) in_user_namespace: bool,
}

impl Rights {
    /// Whether this capability is among them.
    pub(super) const fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }
}

/// Those of the process of this directory in `/proc`.
pub(super) fn of_process(directory: &str) -> Option<Rights> {
    let status = fs::read_to_string(format!("{directory}/status")).ok()?;
    let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let effective = |key: &str| field(key)?.split_whitespace().nth(1)?.parse().ok();
    let (uid, gid) = (effective("Uid:")?, effective("Gid:"));
    let capabilities = u64::from_str_radix(field("CapEff:")?, 16).ok()?;
    let map = fs::read_to_string(format!("{directory}/uid_map")).unwrap_or_default();
    let is_whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    Some(Rights { uid, gid, capabilities, in_user_namespace: !map.is_empty() && !is_whole })
}

/// The daemon that listens on this port, if this process may see it: a daemon of a unit has no pid
/// file.
pub(super) fn listener(port: u16) -> Option<i32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<_> = tables.iter().flat_map(|table| sockets(table, port)).collect();
    if sockets.is_empty() {
        return None;
    }
    let pids = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_the_program(*pid)).find(|pid| holds(*pid, &sockets))
}

/// The sockets that listen on this port, as links of `/proc/PID/fd` name them.
fn sockets(table: &str, port: u16) -> Vec<String> {
    let end = format!(":{port:04X}");
    let socket = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (address, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        (address.ends_with(&end) && *state == LISTENS).then(|| format!("socket:[{inode}]"))
    };
    table.lines().filter_map(socket).collect()
}

fn is_the_program(pid: i32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // The file may have been replaced by an upgrade since.
    name.split(' ').next() == Some("bacula-fd")
}

fn holds(pid: i32, sockets: &[String]) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let mut links = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

/// Those that systemd would give the daemon.
///
/// # Errors
/// There is no systemd, no such unit, or no answer.
pub(super) fn of_unit() -> io::Result<Rights> {
    if !Path::new(MANAGER).exists() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let asked = ["LoadState", "User", "CapabilityBoundingSet", "AmbientCapabilities"].map(|name| format!("-p{name}"));
    let answer =
        command("systemctl").arg("show").args(asked).arg(UNIT).stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    let uid = |name: &str| User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
    shown(&String::from_utf8_lossy(&answer.stdout), uid).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The rights in an answer of `systemctl show`.
fn shown(answer: &str, uid: impl Fn(&str) -> Option<u32>) -> Option<Rights> {
    let field = |key: &str| answer.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    if field("LoadState") != Some("loaded") {
        return None;
    }
    let uid = match field("User")? {
        "" => 0,
        user => user.parse().ok().or_else(|| uid(user))?,
    };
    // A process that isn't root has the ambient ones only.
    let set = field(if uid == 0 { "CapabilityBoundingSet" } else { "AmbientCapabilities" })?;
    let names: Vec<_> = set.split_whitespace().map(str::to_uppercase).collect();
    let is_set = |name: &str| names.iter().any(|set| set.strip_prefix("CAP_") == Some(name));
    let capabilities = CAPABILITIES.iter().filter(|(name, _)| is_set(name)).fold(0, |all, (_, one)| all | 1 << one);
    Some(Rights { uid, gid: None, capabilities, in_user_namespace: false })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn the_unit_says_what_the_daemon_may_do() {
        let uid = |name: &str| (name == "bacula").then_some(113);
        let root = "LoadState=loaded\nUser=root\nCapabilityBoundingSet=cap_chown cap_dac_override cap_kill\n\
                    AmbientCapabilities=\n";
        let named = |name: &str| if name == "root" { Some(0) } else { uid(name) };
        let rights = |capabilities, uid| Some(Rights { uid, capabilities, ..Rights::default() });
        assert_eq!(shown(root, named), rights(0b11, 0));
        assert_eq!(shown(&root.replace("User=root", "User="), named), rights(0b11, 0));
        let only_backups = "LoadState=loaded\nUser=bacula\nCapabilityBoundingSet=cap_dac_read_search\n\
                            AmbientCapabilities=cap_dac_read_search\n";
        assert_eq!(shown(only_backups, uid), rights(0b100, 113));
        assert_eq!(shown(&only_backups.replace("=bacula", "=gone"), uid), None);
        assert_eq!(shown("LoadState=not-found\nUser=\n", uid), None);
        assert_eq!(shown("", uid), None);
    }

    #[test]
    fn a_socket_that_listens_is_found_by_its_port_in_both_tables() {
        let table = |address: &str| {
            format!(
                "  sl  local_address rem_address   st\n   0: {address}:238E 00000000:0000 0A 0:0 0:0 0 0 0 4711 1 0\n   \
                 1: {address}:238E 0100007F:1 01 0:0 0:0 0 0 0 4712 1 0\n"
            )
        };
        for address in ["0100007F", "00000000000000000000000000000000"] {
            assert_eq!(sockets(&table(address), 9102), ["socket:[4711]"]);
            assert_eq!(sockets(&table(address), 9103), Vec::<String>::new());
        }
        assert_eq!(sockets("nonsense\n", 9102), Vec::<String>::new());
    }

    #[test]
    fn another_program_that_listens_is_not_the_daemon() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = other.local_addr().unwrap().port();
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(holds(own, &sockets(&table, port)));
        assert_eq!(listener(port), None);
    }
}
