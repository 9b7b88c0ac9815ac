//! What programs tell of themselves by Prometheus' conventions, whatever they do: `process_…`.

use std::fs;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};

/// The kernel tells times in hundredths of a second, on each processor that we are built for.
const TICKS: f64 = 100.0;

/// Name, kind, what it is, and its value if it is known.
pub(super) type Metric = (&'static str, &'static str, &'static str, Option<f64>);

/// The numbers of this process. `proc` is `/proc`: where it isn't mounted, there are few.
pub(super) fn numbers(proc: &Path) -> [Metric; 6] {
    let read = |name: &str| fs::read_to_string(proc.join(name)).ok();
    let stat = read("self/stat");
    // The program's name stands in parentheses, and the numbers behind it count from 3.
    let fields: Vec<&str> =
        stat.as_deref().and_then(|stat| stat.rsplit_once(") ")).map_or("", |(_, rest)| rest).split(' ').collect();
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<f64>().ok();
    let ticks = |number| field(number).map(|ticks| ticks / TICKS);
    let line = |text: Option<String>, key: &str| {
        text?.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse::<f64>().ok())
    };
    let boot = line(read("stat"), "btime ");
    let resident = line(read("self/status"), "VmRSS:").map(|kilobytes| kilobytes * 1024.0);
    [
        ("cpu_seconds_total", "counter", "Processor time of the daemon.", add(ticks(14), ticks(15))),
        ("start_time_seconds", "gauge", "When the daemon began.", add(boot, ticks(22))),
        ("resident_memory_bytes", "gauge", "Memory of the daemon.", resident),
        ("virtual_memory_bytes", "gauge", "Its address space.", field(23)),
        ("open_fds", "gauge", "Its open files and connections.", open_files(&proc.join("self/fd"))),
        ("max_fds", "gauge", "How many it may have.", most_files()),
    ]
}

fn add(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? + other?)
}

fn open_files(folder: &Path) -> Option<f64> {
    let count = fs::read_dir(folder).ok()?.count();
    // Without the folder itself.
    u32::try_from(count.saturating_sub(1)).ok().map(f64::from)
}

#[expect(clippy::cast_precision_loss, reason = "a metric is no more precise")]
fn most_files() -> Option<f64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(proc: &str) -> Vec<&'static str> {
        numbers(Path::new(proc))
            .iter()
            .filter(|metric| metric.3.is_some_and(|value| value > 0.0))
            .map(|m| m.0)
            .collect()
    }

    #[test]
    fn what_proc_tells_is_left_out_where_it_is_not_mounted() {
        let all = known("/proc");
        for name in ["start_time_seconds", "resident_memory_bytes", "virtual_memory_bytes", "open_fds", "max_fds"] {
            assert!(all.contains(&name), "{name} in {all:?}");
        }
        assert_eq!(known("/nowhere"), ["max_fds"]);
    }

    #[test]
    fn a_name_with_parentheses_shifts_no_number() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("self")).unwrap();
        let stat =
            "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 1000 4096000 200 18446744073709551615\n";
        fs::write(folder.path().join("self/stat"), stat).unwrap();
        fs::write(folder.path().join("stat"), "cpu 1 2\nbtime 1000000\n").unwrap();
        let numbers = numbers(folder.path());
        let value = |name| numbers.iter().find(|metric| metric.0 == name).and_then(|metric| metric.3);
        assert_eq!(value("cpu_seconds_total"), Some(3.0));
        assert_eq!(value("start_time_seconds"), Some(1_000_010.0));
        assert_eq!(value("virtual_memory_bytes"), Some(4_096_000.0));
        assert_eq!(value("open_fds"), None);
    }
}
