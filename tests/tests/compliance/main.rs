//! The compliance matrix: options of a `FileSet` × trees × levels. Each row is saved by the stock daemon and by the daemon
//! under test, on one bed; what lands on the volume, in the catalog and in the job's log is compared, line by line and
//! byte by byte.
//!
//! With `FD_UNDER_TEST=stock` a second stock daemon stands in, which shows that the comparison itself is sound; only the
//! rows that differ on purpose are then equal.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

mod matrix;
mod row;
mod trees;
mod unpack;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Instant;

use bed::{Bed, BedOptions, Fd, Process, Result, argv, next_second};
use matrix::{KNOWN_FAULTS, rows};
use row::{Expect, Row};
use verdict::{Verdict, compare, sessions};

const CLIENTS: [&str; 2] = ["reference", "test"];
/// Full or Base; Incremental, Differential or Full on a base; the next of these.
const PHASES: usize = 3;

/// A phase of a row, and the numbers of its two jobs.
type Queued = (usize, usize, [u32; 2]);

/// Runs one phase of all rows: those that may run side by side at once, then the others one by one.
fn run_phase(bed: &Bed, rows: &[Row], phase: usize) -> Result<Vec<Queued>> {
    let wanted = |alone: bool| {
        rows.iter().enumerate().filter(move |(_, row)| row.alone == alone && row.command(phase, "").is_some())
    };
    let commands = |row: &Row| CLIENTS.map(|client| row.command(phase, client).unwrap());
    let batch: Vec<_> = wanted(false).collect();
    let ids = bed.queue_all(&batch.iter().flat_map(|(_, row)| commands(row)).collect::<Vec<_>>())?;
    let mut queued: Vec<_> =
        batch.iter().zip(ids.chunks(2)).map(|((number, _), pair)| (*number, phase, [pair[0], pair[1]])).collect();
    bed.wait_for_reports(&ids)?;
    for (number, row) in wanted(true) {
        let mut pair = [0; 2];
        for (id, command) in pair.iter_mut().zip(commands(row)) {
            let fifo = bed.folder().join("source/walk/fifo");
            let script = format!("yes through the pipe | dd of={} bs=60000 count=1 iflag=fullblock", fifo.display());
            let _writer = Process::start("writer", &argv(["sh", "-c", &script]), &bed.folder().join("log/writer.out"))?;
            *id = bed.queue(&command)?;
            bed.wait_for_reports(&[*id])?;
        }
        queued.push((number, phase, pair));
    }
    Ok(queued)
}

/// Runs everything, and compares.
fn verdicts(rows: &[Row]) -> Result<Vec<Verdict>> {
    let mut options = BedOptions::side_by_side("compliance")?;
    options.every_message = true;
    let source = options.source()?;
    let mounts = trees::build(&options)?;
    options.file_sets = rows.iter().map(|row| row.file_set(&source.join(row.tree.name()))).collect();
    options.director_resources = rows.iter().flat_map(|row| CLIENTS.map(|client| row.jobs(client))).flatten().collect();
    let bed = Bed::start(options)?;
    // Dropped before the bed, whose folder can't go while something is mounted in it.
    let mounts = mounts;
    let mut queued = Vec::new();
    for phase in 0..PHASES {
        if phase > 0 {
            next_second()?;
            trees::change(&source, phase)?;
        }
        next_second()?;
        queued.extend(run_phase(&bed, rows, phase)?);
    }
    drop(mounts);
    let volumes = [sessions(&bed, CLIENTS[0])?, sessions(&bed, CLIENTS[1])?];
    let mut verdicts: Vec<_> = rows.iter().map(|_| Verdict::default()).collect();
    for (number, phase, [reference, test]) in queued {
        let jobs = [bed.result(reference)?, bed.result(test)?];
        let verdict = compare(&bed, &rows[number], jobs.each_ref(), volumes.each_ref())?;
        let whole = &mut verdicts[number];
        whole.files += verdict.files;
        whole.records += verdict.records;
        let level = rows[number].levels[phase];
        let tree = source.join(rows[number].tree.name()).display().to_string();
        let told = verdict.differences.into_iter().map(|text| format!("{level}: {}", text.replace(&tree, "@")));
        whole.differences.extend(told);
    }
    Ok(verdicts)
}

/// Whether the differences of a row are those that it says.
fn is_as_expected(row: &Row, differences: &[String]) -> bool {
    match row.expect {
        Expect::Equal => differences.is_empty(),
        Expect::Differs { found, .. } => {
            let known = |text: &String| found.iter().any(|part| text.contains(part));
            differences.iter().all(known) && found.iter().all(|part| differences.iter().any(|text| text.contains(part)))
        }
    }
}

#[test]
fn every_row_is_that_of_the_stock_daemon_or_differs_as_documented() -> Result<()> {
    let start = Instant::now();
    let rows = selected(rows());
    let verdicts = verdicts(&rows)?;
    let both_stock = Fd::under_test()? == Fd::Stock;
    let known: BTreeMap<_, _> = KNOWN_FAULTS.iter().copied().collect();
    let (mut table, mut wrong, mut equal, mut documented) = (String::new(), String::new(), 0, 0);
    for (row, verdict) in rows.iter().zip(&verdicts) {
        let expected =
            if both_stock { verdict.differences.is_empty() } else { is_as_expected(row, &verdict.differences) };
        let fault = known.get(row.name).filter(|_| !both_stock);
        let word = match (expected, fault, row.expect) {
            (true, None, Expect::Equal) => "equal",
            (true, None, Expect::Differs { .. }) => "differs as documented",
            (false, Some(_), _) => "known fault",
            (true, Some(_), _) => "NO LONGER A FAULT",
            (false, None, _) => "WRONG",
        };
        equal += usize::from(word == "equal");
        documented += usize::from(word == "differs as documented");
        let _ = writeln!(table, "{:38} {:6} {:7}  {word}", row.name, verdict.files, verdict.records);
        if expected == fault.is_some() {
            let _ = writeln!(wrong, "{}: {word}\n    {}", row.name, verdict.differences.join("\n    "));
        }
    }
    println!("{:38} {:>6} {:>7}  verdict\n{table}", "row", "files", "records");
    println!("{} rows: {equal} equal, {documented} differ as documented; {:?}", rows.len(), start.elapsed());
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}

/// All rows, or those whose names hold one of the words in `COMPLIANCE_ROWS`.
fn selected(rows: Vec<Row>) -> Vec<Row> {
    let Ok(wanted) = std::env::var("COMPLIANCE_ROWS") else { return rows };
    rows.into_iter().filter(|row| wanted.split(' ').any(|word| row.name.contains(word))).collect()
}

#[test]
fn the_matrix_is_large_and_its_differences_are_documented() {
    let rows = rows();
    let names: BTreeSet<_> = rows.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), rows.len(), "two rows have the same name");
    assert!(KNOWN_FAULTS.iter().all(|(name, reason)| names.contains(name) && !reason.is_empty()));
    let documents = include_str!("../../../docs/differences.md");
    for row in &rows {
        if let Expect::Differs { documented, .. } = row.expect {
            assert!(documents.contains(documented), "{}: no row of docs/differences.md says {documented:?}", row.name);
        }
    }
}
