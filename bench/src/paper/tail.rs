//! Transactions beside a backup: the raw rows and their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bed::{BedError, Fd, Folder, Result};

use crate::beside::{self, Beside, Setup};
use crate::connection::Watch;
use crate::order::turns;
use crate::paper::folders::most;
use crate::sample::Side;
use crate::statistics::{float, median};
use crate::surroundings::load;
use crate::tree::{Kind, Tree, file};

const HEAD: &str = "daemon,replica,turn,outcome,job_s,transactions,slow,p50_ms,p90_ms,p99_ms,load";

/// What is measured of the transactions beside a job, and its digits.
const FIGURES: [(&str, usize, usize); 6] =
    [("job", 4, 2), ("transactions", 5, 0), ("slow", 6, 0), ("p50", 7, 1), ("p90", 8, 1), ("p99", 9, 1)];

/// Where and how often.
#[derive(Debug, Clone)]
pub struct Wanted {
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
pub fn measure(wanted: &Wanted, raw: &Path, watch: &Watch, interrupted: &AtomicBool) -> Result<()> {
    let there: BTreeSet<String> = read(raw)?.into_iter().filter_map(|row| row.get(1).cloned()).collect();
    let tree = Tree { kind: Kind::Mixed, scale: wanted.scale }.stand(&wanted.trees)?;
    for replica in (1..=wanted.replicas).filter(|replica| !there.contains(&replica.to_string())) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(BedError::Usage("interrupted".to_owned()));
        }
        let ours_first = turns(wanted.seed, "tail", replica).first() == Some(&Side::Ours);
        let folder = Folder::below(&wanted.home, "tail")?;
        let load = load();
        let rows = beside::measure(&Setup::round(ours_first), &tree, folder.path(), watch)?;
        append(raw, replica, &rows, load)?;
    }
    Ok(())
}

fn append(path: &Path, replica: u32, rows: &[Beside], load: f64) -> Result<()> {
    let mut text = if path.exists() { String::new() } else { format!("{HEAD}\n") };
    for (turn, row) in (1..).zip(rows) {
        let Beside { fd, job, transactions, slow, quantiles: [p50, p90, p99] } = row;
        let name = fd.name();
        let _ = writeln!(
            text,
            "{name},{replica},{turn},T,{job:.3},{transactions},{slow},{p50:.3},{p90:.3},{p99:.3},{load}"
        );
    }
    let mut out = File::options().append(true).create(true).open(path).map_err(file("open", path))?;
    out.write_all(text.as_bytes()).map_err(file("write", path))
}

/// The rows, each as its columns; none if there is no file.
fn read(path: &Path) -> Result<Vec<Vec<String>>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).map_err(file("read", path))?;
    let rows: Vec<Vec<String>> =
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect();
    let whole = HEAD.split(',').count();
    if rows.iter().any(|row| row.len() != whole) {
        return Err(BedError::Usage(format!("{}: a row has not {whole} columns", path.display())));
    }
    Ok(rows)
}

/// The numbers of the folder with most rows; of several, of the last by name.
pub fn numbers(data: &Path, unknown: &str) -> Result<BTreeMap<String, String>> {
    let (_, best) = most(data, "tail", None, read)?;
    let mut numbers = BTreeMap::new();
    for name in [Fd::Stock, Fd::Ours].map(Fd::name) {
        let rows: Vec<_> = best.iter().filter(|row| row.first().is_some_and(|daemon| daemon == name)).collect();
        numbers.insert(format!("tail.{name}.n"), float(rows.len() as u64).to_string());
        for (word, column, digits) in FIGURES {
            let values: Vec<f64> = rows.iter().filter_map(|row| row.get(column)?.parse().ok()).collect();
            let text = if rows.is_empty() { unknown.to_owned() } else { format!("{:.digits$}", median(&values)) };
            numbers.insert(format!("tail.{name}.{word}"), text);
        }
    }
    Ok(numbers)
}

/// The table.
pub fn table(numbers: &BTreeMap<String, String>) -> String {
    let mut text = String::from(
        "| daemon | jobs | job, s | transactions | slow | median, ms | P90, ms | P99, ms |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    for name in [Fd::Stock, Fd::Ours].map(Fd::name) {
        let get = |word: &str| numbers.get(&format!("tail.{name}.{word}")).cloned().unwrap_or_default();
        let columns = ["n", "job", "transactions", "slow", "p50", "p90", "p99"].map(get);
        let _ = writeln!(text, "| {name} | {} |", columns.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_medians() {
        let folder = Folder::new("tail").unwrap();
        let here = folder.make("tail/here").unwrap();
        assert_eq!(numbers(folder.path(), "?").unwrap()["tail.ours.p99"], "?");
        for (replica, p99) in [(1, 10.0), (2, 30.0)] {
            let row = |fd| Beside { fd, job: 1.0, transactions: 100, slow: 2, quantiles: [1.0, 2.0, p99] };
            append(&here.join("raw.csv"), replica, &[row(Fd::Ours), row(Fd::Stock)], 0.5).unwrap();
        }
        let numbers = numbers(folder.path(), "?").unwrap();
        assert_eq!((numbers["tail.ours.p99"].as_str(), numbers["tail.stock.n"].as_str()), ("20.0", "2"));
        assert!(table(&numbers).contains("| ours | 2 | 1.00 | 100 | 2 | 1.0 | 2.0 | 20.0 |"));
    }
}
