//! The host that was measured on: `host.json` beside the raw rows, and the name of their folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bed::setup;
use bed::{BedError, Result, argv, our_program, run};
use serde_json::{Value, json};

use crate::origin::{hex, newest, sha256_of};
use crate::paper::folders::names;

/// What the kernel is told about memory that it takes back.
const MEMORY_SETTINGS: [&str; 14] = [
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/vfs_cache_pressure",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_expire_centisecs",
    "/proc/sys/vm/dirty_writeback_centisecs",
    "/proc/sys/vm/min_free_kbytes",
    "/proc/sys/vm/watermark_scale_factor",
    "/proc/sys/vm/zone_reclaim_mode",
    "/sys/kernel/mm/lru_gen/enabled",
    "/sys/kernel/mm/lru_gen/min_ttl_ms",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/module/damon_reclaim/parameters/enabled",
    "/sys/module/damon_reclaim/parameters/min_age",
];
/// Of a processor's lines, those that say what it is.
const PROCESSOR: [&str; 7] = ["vendor_id", "model name", "cpu family", "model", "stepping", "microcode", "cache size"];

/// What a sitting's rows have in common, of `host.json`.
const SAME: [&str; 7] = ["binaries", "kernel", "machine", "packages", "processor", "processor_flags", "processors"];
/// What all rows of a folder have in common of it.
const OF_A_FOLDER: [&str; 3] = ["binaries", "machine", "packages"];

/// With it begins what a compiler says of itself in a program.
const RUSTC: &[u8] = b"rustc version ";

/// Behind the commit if the program is not that of a commit.
const CHANGED: &str = " and changes";

/// The host, and the programs that are measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// The folder's name: host and commit.
    pub name: String,
    /// What stands in `host.json`.
    pub described: Value,
}

impl Host {
    /// This host and the programs that will run on it. `repository` is the one of ferrofd;
    /// `volumes` is where the beds are.
    pub fn here(repository: &Path, volumes: &Path) -> Result<Self> {
        let commit = commit(repository);
        let cpu = read("/proc/cpuinfo");
        let field = |name: &str| {
            let found = cpu.lines().find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == name));
            found.map_or_else(String::new, |(_, value)| value.trim().to_owned())
        };
        let processors = cpu.lines().filter(|line| line.starts_with("processor")).count();
        let processor: BTreeMap<_, _> = PROCESSOR.iter().map(|name| (*name, field(name))).collect();
        let (flags, kernel) = (field("flags"), read("/proc/sys/kernel/osrelease"));
        let stable = format!("{processor:?} {processors} {flags} {kernel}");
        let mark: String = hex(stable.as_bytes()).chars().take(8).collect();
        let short: String = commit.chars().filter(|letter| *letter != ' ').take(7).collect();
        let root = setup::root(&mut |_| {})?;
        let (ours, stock) = (our_program()?, root.inside("usr/sbin/bacula-fd"));
        let settings: BTreeMap<_, _> = MEMORY_SETTINGS.iter().map(|path| (*path, read(path))).collect();
        let described = json!({
            "binaries": {
                "ours": { "path": "bacula-fd of ferrofd", "sha256": sha256_of(&ours)? },
                "stock": { "path": "/usr/sbin/bacula-fd", "sha256": sha256_of(&stock)?, "version": bed::VERSION },
            },
            // Whether two phases were measured on one machine, and without a restart between.
            "boot": mark_of("/proc/sys/kernel/random/boot_id"),
            "built": built(&ours)?,
            "machine": mark_of("/etc/machine-id"),
            "clock_source": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            "command_line": read("/proc/cmdline"),
            "commit": commit,
            "disk": disk(volumes),
            "kernel": read("/proc/version"),
            "memory": first_lines(&read("/proc/meminfo"), 1),
            "packages": { "host": packages("/"), "stock": packages(&root.path().to_string_lossy()) },
            "page_cache": settings,
            "processor": processor,
            "processor_flags": flags,
            "processors": processors,
            "system": first_lines(&read("/etc/os-release"), 1),
        });
        // What was changed has no commit, so its rows stand apart from those that have one.
        let changed = if commit.ends_with(CHANGED) { "-changed" } else { "" };
        Ok(Self { name: format!("{}-{mark}-{short}{changed}", slug(&field("model name"))), described })
    }

    /// With the name and the commit of the sitting that has measured these programs on this host,
    /// if there is one: a program that was kept is still of its commit when the repository has
    /// others.
    pub fn as_measured(mut self, data: &Path) -> Result<Self> {
        for phase in names(data)? {
            for name in names(&data.join(&phase))? {
                let known = described(&data.join(&phase).join(&name));
                if SAME.iter().all(|key| known.get(key) == self.described.get(key)) {
                    if let (Some(own), Some(theirs)) = (self.described.get_mut("commit"), known.get("commit")) {
                        own.clone_from(theirs);
                    }
                    return Ok(Self { name, ..self });
                }
            }
        }
        Ok(self)
    }

    /// The folder of a phase's rows of this host and commit, made if it is missing.
    pub fn folder(&self, data: &Path, phase: &str) -> Result<PathBuf> {
        let folder = data.join(phase).join(&self.name);
        fs::create_dir_all(&folder).map_err(BedError::file("create", &folder))?;
        self.write(&folder)?;
        Ok(folder)
    }

    /// Writes it beside the raw rows. Fails if there are rows of other programs.
    fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join("host.json");
        let known = described(folder);
        for key in OF_A_FOLDER {
            let [before, now] = [&known, &self.described].map(|described| described.get(key).cloned());
            if before.is_some() && before != now {
                return Err(BedError::Usage(format!(
                    "{}: these rows are of other {key}: {before:?}, and not of {now:?}",
                    path.display()
                )));
            }
        }
        let text = serde_json::to_string_pretty(&self.described).unwrap_or_default();
        fs::write(&path, format!("{text}\n")).map_err(BedError::file("write", &path))
    }
}

/// The `host.json` of a folder; nothing if it has none.
fn described(folder: &Path) -> Value {
    let text = fs::read(folder.join("host.json")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// The newest commit that has changed the program, with a mark if it has been changed since.
fn commit(repository: &Path) -> String {
    match newest(repository, &["crates"]) {
        None => "unknown".to_owned(),
        Some((commit, true)) => format!("{commit}{CHANGED}"),
        Some((commit, false)) => commit,
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// A few digits of the digest of what is in a file, which itself is nobody's business.
fn mark_of(path: &str) -> String {
    hex(read(path).as_bytes()).chars().take(12).collect()
}

/// The profile that a program was built with, by its folder, and the compiler, as the program says.
fn built(program: &Path) -> Result<Value> {
    let bytes = fs::read(program).map_err(BedError::file("read", program))?;
    let compiler = bytes.windows(RUSTC.len()).position(|some| some == RUSTC).and_then(|at| bytes.get(at..));
    let compiler = compiler.and_then(|rest| rest.split(|byte| *byte == 0).next()).unwrap_or_default();
    let folder = program.parent().and_then(Path::file_name).unwrap_or_default();
    Ok(json!({ "folder": folder.to_string_lossy(), "compiler": String::from_utf8_lossy(compiler) }))
}

fn first_lines(text: &str, count: usize) -> String {
    text.lines().take(count).collect::<Vec<_>>().join("\n")
}

/// Letters and digits in lower case, with dashes between.
fn slug(text: &str) -> String {
    let plain: String =
        text.chars().map(|one| if one.is_ascii_alphanumeric() { one.to_ascii_lowercase() } else { ' ' }).collect();
    plain.split_whitespace().take(4).collect::<Vec<_>>().join("-")
}

/// The mount that holds a path, and its device.
fn disk(path: &Path) -> Value {
    let mut words = argv(["findmnt", "--noheadings", "--output", "SOURCE,FSTYPE,OPTIONS,SIZE", "--target"]);
    words.push(path.as_os_str().to_owned());
    let mount =
        run(&words, b"").map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned()).unwrap_or_default();
    let device = mount.split_whitespace().next().unwrap_or_default().trim_start_matches("/dev/").to_owned();
    let queue = |name: &str| read(&format!("/sys/block/{device}/queue/{name}"));
    json!({
        "mount": mount.split_whitespace().collect::<Vec<_>>().join(" "),
        "rotational": queue("rotational"),
        "scheduler": queue("scheduler"),
        "write_cache": queue("write_cache"),
    })
}

/// Versions of the packages that matter for times, in a root.
fn packages(root: &str) -> BTreeMap<String, String> {
    let names = ["bacula-*", "libc6", "libssl3*", "libsqlite3-0", "liblzo2-2", "zlib1g", "libzstd1", "liblz4-1"];
    let mut words = argv(["dpkg-query", &format!("--admindir={root}/var/lib/dpkg"), "-W"]);
    words.extend(argv(["-f=${Package} ${Version} ${db:Status-Status}\n"]));
    words.extend(argv(names));
    let text = run(&words, b"").map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).unwrap_or_default();
    let line = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        [name, version, "installed"] => Some((name.to_owned(), version.to_owned())),
        _ => None,
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_folder_are_of_the_same_programs() {
        let folder = bed::Folder::new("host").unwrap();
        let host = |sha: &str| Host {
            name: "host".to_owned(),
            described: json!({ "binaries": { "ours": { "sha256": sha } }, "kernel": sha }),
        };
        host("one").write(folder.path()).unwrap();
        host("one").write(folder.path()).unwrap();
        let problem = host("other").write(folder.path()).unwrap_err().to_string();
        assert!(problem.contains("host.json: these rows are of other binaries"), "{problem}");
        assert!(fs::read_to_string(folder.path().join("host.json")).unwrap().contains("one"));
    }

    #[test]
    fn rows_of_one_folder_are_of_one_machine_with_the_same_packages() {
        let folder = bed::Folder::new("machine").unwrap();
        let host = |machine: &str, ssl: &str| Host {
            name: "host".to_owned(),
            described: json!({ "machine": machine, "packages": { "host": { "libssl3": ssl } } }),
        };
        host("one", "3.0.22").write(folder.path()).unwrap();
        for (other, what) in [(host("two", "3.0.22"), "machine"), (host("one", "3.0.19"), "packages")] {
            let problem = other.write(folder.path()).unwrap_err().to_string();
            assert!(problem.contains(&format!("of other {what}")), "{problem}");
        }
    }

    #[test]
    fn a_program_says_which_compiler_has_built_it() {
        let built = built(&std::env::current_exe().unwrap()).unwrap();
        assert!(built["compiler"].as_str().unwrap().starts_with("rustc version "), "{built}");
    }

    #[test]
    fn a_program_that_was_kept_goes_on_in_its_sitting() {
        let data = bed::Folder::new("sitting").unwrap();
        let host = |name: &str, sha: &str, commit: &str| Host {
            name: name.to_owned(),
            described: json!({ "binaries": { "ours": { "sha256": sha } }, "kernel": "6.18", "commit": commit }),
        };
        let first = host("host-first", "one", "first");
        first.write(&data.make("nine/host-first").unwrap()).unwrap();
        assert_eq!(host("host-later", "one", "later").as_measured(data.path()).unwrap(), first);
        let other = host("host-later", "other", "later");
        assert_eq!(other.clone().as_measured(data.path()).unwrap(), other);
    }

    #[test]
    fn a_processors_name_becomes_a_folders_name() {
        assert_eq!(slug("Intel(R) Xeon(R) Gold 6140 CPU @ 2.30GHz"), "intel-r-xeon-r");
        assert_eq!(slug("AMD EPYC"), "amd-epyc");
    }

    #[test]
    fn the_commit_is_that_of_the_program() {
        let commit = commit(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
        assert!(commit == "unknown" || commit.split(' ').next().is_some_and(|hash| hash.len() == 40), "{commit}");
    }
}
