//! Transactions beside a backup: the raw rows and their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bed::{BedError, Fd, Folder, Result};

use crate::beside::{self, Beside, Setup};
use crate::connection::Watch;
use crate::order::turns;
use crate::paper::analysis::{UNKNOWN, probability};
use crate::paper::curves::longer;
use crate::paper::folders::{self, Sitting, columns};
use crate::paper::plan::Tail;
use crate::sample::Side;
use crate::statistics::{float, median, sign_test};
use crate::surroundings::load;
use crate::tree::{Kind, Tree};

const HEAD: &str = "daemon,replica,turn,outcome,job_s,transactions,slow,p50_ms,p90_ms,p99_ms,load";

/// The folder with the times of each replica, and the head of its files.
const TIMES: &str = "times";
const TIMES_HEAD: &str = "daemon,up_to_ms,transactions";

/// What is measured of the transactions beside a job, and its digits.
const FIGURES: [(&str, usize, usize); 6] =
    [("job", 4, 2), ("transactions", 5, 0), ("slow", 6, 0), ("p50", 7, 3), ("p90", 8, 2), ("p99", 9, 2)];

/// Of these each replica's two values are compared.
const SIGNS: [(&str, usize); 3] = [("p50", 7), ("p90", 8), ("p99", 9)];

/// Of these the sum of all replicas, of the others the median.
const SUMS: [&str; 2] = ["transactions", "slow"];

/// What, where and how often.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Which transactions.
    pub tail: &'a Tail,
    /// So many replicas.
    pub replicas: u32,
    /// Of Mixed, so many times.
    pub scale: usize,
    /// Draws which daemon is first.
    pub seed: u64,
    /// Where trees are.
    pub trees: PathBuf,
    /// Where the transactions have their files.
    pub home: PathBuf,
}

/// Measures the replicas that are missing.
pub fn measure(wanted: &Wanted<'_>, raw: &Path, watch: &Watch, interrupted: &AtomicBool) -> Result<()> {
    let there: BTreeSet<String> = read(raw)?.into_iter().filter_map(|row| row.get(1).cloned()).collect();
    let tree = Tree { kind: Kind::Mixed, scale: wanted.scale }.stand(&wanted.trees)?;
    for replica in (1..=wanted.replicas).filter(|replica| !there.contains(&replica.to_string())) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(BedError::Usage("interrupted".to_owned()));
        }
        let Tail { name, work, elsewhere, .. } = wanted.tail;
        let ours_first = turns(wanted.seed, name, replica).first() == Some(&Side::Ours);
        let folder = Folder::below(&wanted.home, "tail")?;
        let load = load();
        let rows = beside::measure(&Setup::round(*work, *elsewhere, ours_first), &tree, folder.path(), watch)?;
        append(raw, replica, &rows, load)?;
    }
    Ok(())
}

/// The times first: without its rows a replica is measured again.
fn append(path: &Path, replica: u32, rows: &[Beside], load: f64) -> Result<()> {
    let folder = path.with_file_name(TIMES);
    fs::create_dir_all(&folder).map_err(BedError::file("create", &folder))?;
    let times = folder.join(format!("{replica}.csv"));
    fs::write(&times, counted(rows)).map_err(BedError::file("write", &times))?;
    let mut text = String::new();
    for (turn, row) in (1..).zip(rows) {
        let Beside { fd, job, times, slow, quantiles: [p50, p90, p99] } = row;
        let (name, transactions) = (fd.name(), times.len());
        let _ = writeln!(
            text,
            "{name},{replica},{turn},T,{job:.3},{transactions},{slow},{p50:.3},{p90:.3},{p99:.3},{load}"
        );
    }
    folders::append(path, HEAD, &text)
}

/// Bounds of times in milliseconds: twenty to a power of ten, to ten seconds.
fn bounds() -> impl Iterator<Item = f64> {
    (-20..=80).map(|step| 10f64.powf(f64::from(step) / 20.0))
}

/// How many transactions took up to each bound, and more than the one before; those that took
/// longer than all count at the last.
fn counted(rows: &[Beside]) -> String {
    let mut text = format!("{TIMES_HEAD}\n");
    for Beside { fd, times, .. } in rows {
        let mut rest = times.as_slice();
        let mut bounds = bounds().peekable();
        while let Some(bound) = bounds.next() {
            let is_last = bounds.peek().is_none();
            let (here, later) =
                rest.split_at(if is_last { rest.len() } else { rest.partition_point(|time| *time <= bound) });
            if !here.is_empty() {
                let _ = writeln!(text, "{},{bound:.4},{}", fd.name(), here.len());
            }
            rest = later;
        }
    }
    text
}

/// The part of all transactions beside a daemon that took longer than each bound, as long as there
/// are any.
fn slower(folder: &Path, name: &str) -> Result<Vec<(f64, f64)>> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let files = fs::read_dir(folder.join(TIMES)).into_iter().flatten().flatten();
    for path in files.map(|entry| entry.path()) {
        let text = fs::read_to_string(&path).map_err(BedError::file("read", &path))?;
        for line in text.lines().filter(|line| *line != TIMES_HEAD) {
            let problem = || BedError::Usage(format!("{}: not a count: {line}", path.display()));
            let [daemon, bound, count] = line.split(',').collect::<Vec<_>>().try_into().map_err(|_| problem())?;
            let count: u64 = count.parse().map_err(|_| problem())?;
            if daemon == name {
                *counts.entry(bound.to_owned()).or_default() += count;
            }
        }
    }
    let all: u64 = counts.values().sum();
    let mut left = all;
    let mut points = Vec::new();
    for bound in bounds() {
        left -= counts.get(&format!("{bound:.4}")).copied().unwrap_or_default();
        if left > 0 {
            points.push((bound, float(left) / float(all)));
        }
    }
    Ok(points)
}

/// A figure of each: which part of the transactions took longer than so many milliseconds.
pub fn figures(sitting: &Sitting, tails: &[Tail]) -> Result<Vec<(String, String)>> {
    let mut figures = Vec::new();
    for Tail { name, .. } in tails {
        let folder = sitting.folder(name);
        let both = [slower(&folder, Fd::Stock.name())?, slower(&folder, Fd::Ours.name())?];
        figures.push((format!("{name}-slower.svg"), longer(&both)));
    }
    Ok(figures)
}

/// The rows, each as its columns; none if there is no file.
fn read(path: &Path) -> Result<Vec<Vec<String>>> {
    if path.exists() { columns(path, HEAD) } else { Ok(Vec::new()) }
}

/// The numbers of each.
pub fn numbers(sitting: &Sitting, tails: &[Tail]) -> Result<BTreeMap<String, String>> {
    let mut numbers = BTreeMap::new();
    for Tail { name: tail, .. } in tails {
        let best = sitting.rows(tail, read)?;
        for name in Fd::BOTH.map(Fd::name) {
            let rows: Vec<_> = best.iter().filter(|row| row.first().is_some_and(|daemon| daemon == name)).collect();
            numbers.insert(format!("{tail}.{name}.n"), rows.len().to_string());
            let known = |text: String| if rows.is_empty() { UNKNOWN.to_owned() } else { text };
            for (word, column, digits) in FIGURES {
                let values: Vec<f64> = rows.iter().filter_map(|row| row.get(column)?.parse().ok()).collect();
                let value = if SUMS.contains(&word) { values.iter().sum() } else { median(&values) };
                numbers.insert(format!("{tail}.{name}.{word}"), known(format!("{value:.digits$}")));
            }
            let all = slower(&sitting.folder(tail), name)?;
            let bound = |part: f64| all.iter().rfind(|(_, left)| *left > 1.0 - part).map(|(bound, _)| *bound);
            // The class behind the last one that more than that part took longer than.
            let p99 = bound(0.99).and_then(|last| bounds().find(|bound| *bound > last));
            let text = p99.map_or(UNKNOWN.to_owned(), |p99| format!("{p99:.1}"));
            numbers.insert(format!("{tail}.{name}.all.p99"), known(text));
        }
        numbers.extend(compared(tail, &best));
    }
    Ok(numbers)
}

/// In how many replicas a time is longer beside ours, and how likely such signs are by chance.
fn compared(tail: &str, rows: &[Vec<String>]) -> BTreeMap<String, String> {
    let mut numbers = BTreeMap::new();
    for (word, column) in SIGNS {
        let of = |name: &str| -> BTreeMap<&str, f64> {
            let mine = rows.iter().filter(|row| row.first().is_some_and(|daemon| daemon == name));
            mine.filter_map(|row| Some((row.get(1)?.as_str(), row.get(column)?.parse().ok()?))).collect()
        };
        let (stock, ours) = (of(Fd::Stock.name()), of(Fd::Ours.name()));
        let more: Vec<f64> =
            ours.iter().filter_map(|(replica, time)| Some(time - stock.get(replica).copied()?)).collect();
        let known = |text: String| if more.is_empty() { UNKNOWN.to_owned() } else { text };
        let longer = more.iter().filter(|one| **one > 0.0).count();
        numbers.insert(format!("{tail}.{word}.longer"), known(longer.to_string()));
        numbers.insert(format!("{tail}.{word}.sign"), known(probability(sign_test(&more))));
    }
    numbers
}

/// The table of signs.
pub fn signs(tails: &[Tail], numbers: &BTreeMap<String, String>) -> String {
    let mut text = String::from(
        "| what | pairs | median longer beside ours | p | P90 longer | p | P99 longer | p |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    for Tail { name: tail, title, .. } in tails {
        let get = |word: &str| numbers.get(&format!("{tail}.{word}")).cloned().unwrap_or_default();
        let words = ["ours.n", "p50.longer", "p50.sign", "p90.longer", "p90.sign", "p99.longer", "p99.sign"];
        let _ = writeln!(text, "| {title} | {} |", words.map(get).join(" | "));
    }
    text
}

/// The table.
pub fn table(tails: &[Tail], numbers: &BTreeMap<String, String>) -> String {
    let mut text = String::from(
        "| what | daemon | jobs | job, s | transactions of all | slow of all | median, ms | P90, ms | P99, ms \
         | P99 of all, ms, at most |\n| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    for Tail { name: tail, title, .. } in tails {
        for name in Fd::BOTH.map(Fd::name) {
            let get = |word: &str| numbers.get(&format!("{tail}.{name}.{word}")).cloned().unwrap_or_default();
            let columns = ["n", "job", "transactions", "slow", "p50", "p90", "p99", "all.p99"].map(get);
            let _ = writeln!(text, "| {title} | {name} | {} |", columns.join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::plan::tests::plan;

    #[test]
    fn rows_become_medians() {
        let folder = Folder::new("tail").unwrap();
        let here = folder.make("tail/here").unwrap();
        let tails = plan().tail;
        let numbers = || numbers(&Sitting::find(folder.path(), None).unwrap(), &tails).unwrap();
        assert_eq!(numbers()["tail.ours.p99"], UNKNOWN);
        for (replica, p99) in [(1, 10.0), (2, 30.0)] {
            let times = vec![1.0; 100];
            let row = |fd| Beside { fd, job: 1.0, times: times.clone(), slow: 2, quantiles: [1.0, 2.0, p99] };
            append(&here.join("raw.csv"), replica, &[row(Fd::Ours), row(Fd::Stock)], 0.5).unwrap();
        }
        let numbers = numbers();
        assert_eq!((numbers["tail.ours.p99"].as_str(), numbers["tail.stock.n"].as_str()), ("20.00", "2"));
        assert!(table(&tails, &numbers).contains("| ours | 2 | 1.00 | 200 | 4 | 1.000 | 2.00 | 20.00 | 1.0 |"));
    }

    #[test]
    fn times_are_compared_replica_by_replica() {
        let row = |fd: Fd, replica: &str, p99: &str| -> Vec<String> {
            [fd.name(), replica, "1", "T", "1", "100", "0", "1.0", "2.0", p99, "0.5"].map(str::to_owned).into()
        };
        let rows = [
            row(Fd::Ours, "1", "10.0"),
            row(Fd::Stock, "1", "9.0"),
            row(Fd::Stock, "2", "9.0"),
            row(Fd::Ours, "2", "11.0"),
            row(Fd::Ours, "3", "11.0"),
        ];
        let numbers = compared("tail", &rows);
        assert_eq!((numbers["tail.p99.longer"].as_str(), numbers["tail.p99.sign"].as_str()), ("2", "0.500"));
        assert_eq!((numbers["tail.p50.longer"].as_str(), numbers["tail.p50.sign"].as_str()), ("0", "1.000"));
        assert_eq!(compared("tail", &[])["tail.p90.sign"], UNKNOWN);
        let tails: Vec<Tail> = plan().tail.into_iter().take(1).collect();
        let text = signs(&tails, &numbers);
        assert!(text.ends_with("|  | 0 | 1.000 | 0 | 1.000 | 2 | 0.500 |\n"), "{text}");
    }

    #[test]
    fn the_part_that_took_longer_falls_to_nothing() {
        let folder = Folder::new("times").unwrap();
        let times = vec![0.05, 0.2, 0.2, 90.0, 1e6];
        let row = Beside { fd: Fd::Ours, job: 1.0, times, slow: 2, quantiles: [0.0; 3] };
        append(&folder.path().join("raw.csv"), 1, &[row], 0.5).unwrap();
        let points = slower(folder.path(), Fd::Ours.name()).unwrap();
        let after = |bound: f64| points.iter().rfind(|(at, _)| *at <= bound).map(|(_, part)| *part);
        assert_eq!([0.105, 50.0, 5000.0].map(after), [Some(0.8), Some(0.4), Some(0.2)]);
        assert!(slower(folder.path(), Fd::Stock.name()).unwrap().is_empty());
    }
}
