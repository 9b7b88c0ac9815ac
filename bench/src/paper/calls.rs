//! How many system calls a job takes: the kernel's trace point for their begin, counted by `perf`
//! for both daemons while a pair of jobs runs. Times are not taken meanwhile.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bed::{BedError, Folder, PATIENCE, Process, Result, argv, say};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::cell::{Cell, Level};
use crate::connection::Watch;
use crate::group::Replica;
use crate::order::turns;
use crate::paper::analysis::{Numbers, UNKNOWN};
use crate::paper::folders::{append, columns};
use crate::paper::plan::Calls;
use crate::programs::is_on_path;
use crate::restored::Restored;
use crate::sample::Side;
use crate::stage::Stage;
use crate::statistics::{float, median, quotient};

const HEAD: &str = "cell,daemon,replica,entries,calls,switches,faults";
/// What is counted, by its name for `perf`.
const EVENTS: [&str; 3] = ["raw_syscalls:sys_enter", "context-switches", "page-faults"];
/// The words of these in keys, and their columns.
const COUNTS: [(&str, usize); 3] = [("calls", 4), ("switches", 5), ("faults", 6)];

/// A counter of one process.
struct Counter {
    perf: Process,
    report: PathBuf,
}

impl Counter {
    /// Counts from now on.
    fn of(pid: u32, folder: &Path) -> Result<Self> {
        let path = |name: &str| folder.join(format!("{name}-{pid}"));
        let (control, answer, report) = (path("control"), path("answer"), path("report"));
        // Open for both directions, because perf wants a reader of its answers before it begins.
        let open = |fifo: &Path| -> Result<File> {
            let made = mkfifo(fifo, Mode::S_IRUSR | Mode::S_IWUSR);
            made.map_err(|source| BedError::System { what: "mkfifo", source })?;
            File::options().read(true).write(true).open(fifo).map_err(BedError::file("open", fifo))
        };
        let (mut tells, hears) = (open(&control)?, open(&answer)?);
        let pid = pid.to_string();
        let mut words = argv(["perf", "stat", "-x,", "-D", "-1", "-e", &EVENTS.join(","), "-p", &pid, "-o"]);
        words.push(report.clone().into_os_string());
        words.push(format!("--control=fifo:{},{}", control.display(), answer.display()).into());
        let perf = Process::start("perf", &words, &path("output"))?;
        let counter = Self { perf, report };
        tells.write_all(b"enable\n").map_err(BedError::file("write", &control))?;
        let timeout = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
        let mut ready = [PollFd::new(hears.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, timeout) {
            Ok(1) => Ok(counter),
            Ok(_) => {
                Err(BedError::Program { program: "perf".to_owned(), problem: format!("no answer in {PATIENCE:?}") })
            }
            Err(source) => Err(BedError::System { what: "poll", source }),
        }
    }

    /// Stops counting; the counts in the order of [`EVENTS`].
    fn end(mut self) -> Result<[u64; 3]> {
        self.perf.signal(Signal::SIGINT)?;
        self.perf.wait_exit(PATIENCE)?;
        let text = fs::read_to_string(&self.report).map_err(BedError::file("read", &self.report))?;
        counts(&text).ok_or_else(|| BedError::Program { program: "perf".to_owned(), problem: text })
    }
}

/// The counts of a report of `perf stat -x,`: the value is a line's first column, the event its
/// third.
fn counts(text: &str) -> Option<[u64; 3]> {
    let of = |event: &str| {
        let columns = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        columns.into_iter().find(|line| line.get(2) == Some(&event))?.first()?.parse().ok()
    };
    let [calls, switches, faults] = EVENTS.map(of);
    Some([calls?, switches?, faults?])
}

/// What a host without the means has not.
pub fn missing() -> Option<&'static str> {
    (!is_on_path("perf")).then_some("perf is not on PATH")
}

/// Counts the replicas that are missing of each cell.
pub fn measure(
    wanted: &Calls,
    (seed, trees): (u64, &Path),
    raw: &Path,
    (watch, restored): (&Watch, &mut Restored),
    interrupted: &AtomicBool,
) -> Result<()> {
    let there = if raw.exists() { rows(raw)? } else { Vec::new() };
    for cell in wanted.cells()? {
        let is_there = |replica: u32| {
            let mine = there.iter().filter(|row| row.first() == Some(&cell.to_string()));
            mine.filter(|row| row.get(2) == Some(&replica.to_string())).count() == Side::BOTH.len()
        };
        let missing: Vec<u32> = (1..=wanted.replicas).filter(|replica| !is_there(*replica)).collect();
        if missing.is_empty() || interrupted.load(Ordering::Relaxed) {
            continue;
        }
        let tree = cell.tree.stand(trees)?;
        let mut stage = Stage::start(cell, &[], &tree, watch, restored)?;
        // The entries are those of a Full, also for a job that saves none of them.
        let full = Cell { level: Level::Full, ..cell };
        let Replica { samples, .. } = stage.replica(full, 1, &Side::BOTH)?;
        let entries = samples.first().map_or(0, |sample| sample.files);
        for replica in missing {
            let folder = Folder::new("calls")?;
            let counters = Side::BOTH.map(|side| stage.pid(side).and_then(|pid| Counter::of(pid, folder.path())));
            let done = stage.replica(cell, replica, &turns(seed, &cell.to_string(), replica));
            let mut text = String::new();
            for (side, counter) in Side::BOTH.into_iter().zip(counters) {
                let [calls, switches, faults] = counter?.end()?;
                let _ = writeln!(text, "{cell},{},{replica},{entries},{calls},{switches},{faults}", side.name());
                say(&format!("{cell} #{replica}: {} {calls} calls", side.name()));
            }
            if let Some(problem) = done?.problems.first() {
                return Err(BedError::Usage(problem.reason.clone()));
            }
            append(raw, HEAD, &text)?;
        }
    }
    Ok(())
}

/// The rows, each as its columns.
pub fn rows(raw: &Path) -> Result<Vec<Vec<String>>> {
    columns(raw, HEAD)
}

/// The key of a cell.
fn key(cell: &str) -> String {
    format!("calls.{}", cell.replace(" default", "").replace(' ', "."))
}

/// Medians for each entry of the tree, and their ratios.
pub fn numbers(wanted: &Calls, rows: &[Vec<String>]) -> Numbers {
    let mut numbers = Numbers::new();
    for cell in &wanted.cells {
        for (word, column) in COUNTS {
            let of = |side: Side| -> Option<f64> {
                let mine = rows.iter().filter(|row| row.first() == Some(cell));
                let mine = mine.filter(|row| row.get(1).is_some_and(|daemon| daemon == side.name()));
                let number = |row: &Vec<String>, at: usize| row.get(at)?.parse::<u64>().ok().map(float);
                let each: Vec<f64> =
                    mine.filter_map(|row| Some(quotient(number(row, column)?, number(row, 3)?))).collect();
                (!each.is_empty()).then(|| median(&each))
            };
            let [stock, ours] = Side::BOTH.map(of);
            let shown =
                |value: Option<f64>, digits: usize| value.map_or(UNKNOWN.to_owned(), |one| format!("{one:.digits$}"));
            let name = format!("{}.{word}", key(cell));
            numbers.insert(format!("{name}.stock"), shown(stock, 2));
            numbers.insert(format!("{name}.ours"), shown(ours, 2));
            numbers
                .insert(format!("{name}.ratio"), shown(ours.zip(stock).map(|(ours, stock)| quotient(ours, stock)), 2));
        }
    }
    numbers
}

/// The table.
pub fn table(wanted: &Calls, numbers: &Numbers) -> String {
    let mut text = String::from(
        "| for each file | system calls: stock | ours | ratio | context switches: stock | ours | page faults: stock | ours |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    for cell in &wanted.cells {
        let get = |word: &str| numbers.get(&format!("{}.{word}", key(cell))).map_or(UNKNOWN, String::as_str);
        let words = [
            "calls.stock",
            "calls.ours",
            "calls.ratio",
            "switches.stock",
            "switches.ours",
            "faults.stock",
            "faults.ours",
        ];
        let _ = writeln!(text, "| {} | {} |", cell.replace(" default", ""), words.map(get).join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_perfs_report() {
        let text = "# started\n\n144,,raw_syscalls:sys_enter,1,100.00,,\n4,,context-switches,1,100.00,,\n\
                    101,,page-faults,1,100.00,,\n";
        assert_eq!(counts(text), Some([144, 4, 101]));
        assert_eq!(counts("<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n"), None);
    }

    #[test]
    fn counts_are_told_for_each_entry() {
        let wanted = Calls { replicas: 1, minutes: 1, cells: vec!["mixed1 full default".to_owned()] };
        let row = |side: &str, calls: &str| {
            ["mixed1 full default", side, "1", "100", calls, "50", "7"].map(str::to_owned).into()
        };
        let numbers = numbers(&wanted, &[row("stock", "1900"), row("ours", "570")]);
        let get = |word: &str| numbers[&format!("calls.mixed1.full.{word}")].as_str();
        assert_eq!((get("calls.stock"), get("calls.ours"), get("calls.ratio")), ("19.00", "5.70", "0.30"));
        assert!(table(&wanted, &numbers).contains("| mixed1 full | 19.00 | 5.70 | 0.30 | 0.50 | 0.50 | 0.07 | 0.07 |"));
        assert_eq!(super::numbers(&wanted, &[])["calls.mixed1.full.calls.ours"], UNKNOWN);
    }
}
