//! How much memory this process can have: the host's, or what its control groups leave of it.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::sysinfo::sysinfo;

use crate::mounts::unescaped;

/// The least of the host's memory and of each limit on the path of this process's control group,
/// bytes. In a container or under systemd the kernel ends a process that takes more than that.
pub fn memory() -> u64 {
    let total = sysinfo().map_or(u64::MAX, |host| host.ram_total());
    of_groups(Path::new("/")).map_or(total, |limit| limit.min(total))
}

/// The least limit of this process's groups, as the files below `root` say.
fn of_groups(root: &Path) -> Option<u64> {
    let text = |path: &str| fs::read(root.join(path)).map(|text| String::from_utf8_lossy(&text).into_owned()).ok();
    let (groups, mounts) = (text("proc/self/cgroup")?, text("proc/self/mountinfo")?);
    let of_hierarchy = |hierarchy: &Hierarchy| {
        let group = groups.lines().find_map(|line| hierarchy.group(line))?;
        let (shown, at) = mounts.lines().find_map(|line| hierarchy.mount(line))?;
        hierarchy.least(root, &at, below(group, &shown))
    };
    [Hierarchy::Unified, Hierarchy::Memory].iter().filter_map(of_hierarchy).min()
}

/// Where the limits are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hierarchy {
    /// Version 2.
    Unified,
    /// The memory controller of version 1.
    Memory,
}

impl Hierarchy {
    /// The group in a line of `/proc/self/cgroup`, `NUMBER:CONTROLLERS:GROUP`.
    fn group(self, line: &str) -> Option<&str> {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match self {
            Self::Unified => number == "0" && controllers.is_empty(),
            Self::Memory => controllers.split(',').any(|name| name == "memory"),
        };
        is_it.then_some(group)
    }

    /// What is shown of the hierarchy, and where, from a line of `/proc/self/mountinfo`.
    fn mount(self, line: &str) -> Option<(String, String)> {
        let (before, behind) = line.split_once(" - ")?;
        let mut kind = behind.split(' ');
        let (kind, options) = (kind.next()?, kind.nth(1)?);
        let is_it = match self {
            Self::Unified => kind == "cgroup2",
            Self::Memory => kind == "cgroup" && options.split(',').any(|name| name == "memory"),
        };
        let mut fields = before.split(' ').skip(3);
        let (shown, at) = (fields.next()?, fields.next()?);
        let plain = |field: &str| String::from_utf8_lossy(&unescaped(field.as_bytes())).into_owned();
        is_it.then(|| (plain(shown), plain(at)))
    }

    /// The least limit of the group and of those above it, as far as they are shown.
    fn least(self, root: &Path, mount: &str, group: &Path) -> Option<u64> {
        const UNIFIED: [&str; 2] = ["memory.max", "memory.high"];
        let files = match self {
            Self::Unified => UNIFIED.as_slice(),
            Self::Memory => &["memory.limit_in_bytes"],
        };
        let top = root.join(mount.trim_start_matches('/'));
        let folders = group.ancestors().map(|group| top.join(group));
        let limit = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        folders.flat_map(|folder| files.iter().map(move |file| folder.join(file))).filter_map(limit).min()
    }
}

/// The group relative to what is shown. In a namespace of its own it may be outside of that; then
/// the top of what is shown is what there is.
fn below<'g>(group: &'g str, shown: &str) -> &'g Path {
    let path = Path::new(group).strip_prefix(shown).unwrap_or(Path::new(""));
    let leads_out = path.components().any(|part| part == std::path::Component::ParentDir);
    if leads_out { Path::new("") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with these files.
    fn host(groups: &str, mounts: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [("proc/self/cgroup", groups), ("proc/self/mountinfo", mounts)].iter().chain(files) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_least_limit_on_the_path_counts() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let files = [
            ("sys/fs/cgroup/system.slice/memory.max", "268435456\n"),
            ("sys/fs/cgroup/system.slice/memory.high", "max\n"),
            ("sys/fs/cgroup/system.slice/bacula-fd.service/memory.max", "max\n"),
            ("sys/fs/cgroup/system.slice/bacula-fd.service/memory.high", "300000000\n"),
            ("sys/fs/cgroup/other/memory.max", "4096\n"),
        ];
        let root = host("0::/system.slice/bacula-fd.service\n", mounts, &files);
        assert_eq!(of_groups(root.path()), Some(256 << 20));
    }

    #[test]
    fn version_one_counts_too_and_a_container_shows_its_own_group_as_the_top() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      35 31 0:32 /docker/7 /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
        let files = [("sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n")];
        for group in ["/docker/7", "/docker/7/not-there", "/", "/../other"] {
            let root = host(&format!("5:cpu,cpuacct:/\n4:memory:{group}\n0::/\n"), mounts, &files);
            assert_eq!(of_groups(root.path()), Some(64 << 20), "{group}");
        }
    }

    #[test]
    fn a_host_without_limits_has_its_own_memory() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(of_groups(host("0::/\n", mounts, &[]).path()), None);
        assert_eq!(of_groups(host("nonsense\n", "nonsense\n", &[]).path()), None);
        assert_eq!(of_groups(&host("", "", &[]).path().join("no such root")), None);
        assert!((1..=sysinfo().unwrap().ram_total()).contains(&memory()));
    }
}
