//! The compliance matrix: options of a `FileSet` × trees × levels. Each row is saved by the stock
//! daemon and by the daemon under test; what lands on the volume, in the catalog and in the job's
//! log is compared, line by line and byte by byte. Then each of the two restores what the other
//! saved, and the trees are compared.
//!
//! With `FD_UNDER_TEST=stock` a second stock daemon takes its place, which shows that the
//! comparison itself is sound; only the rows that differ on purpose are then equal.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

mod beds;
mod matrix;
mod restores;
mod row;
mod trees;
mod unpack;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Instant;

use bed::{ClientOptions, Expect, Fd, Result};
use beds::{Plan, verdicts};
use matrix::{KNOWN_FAULTS, allowed_rows, has_all_worker_counts, private_rows, rows};
use row::Row;

/// The stock daemon as `reference`, and those that are compared with it.
fn clients(test: impl IntoIterator<Item = ClientOptions>) -> Vec<ClientOptions> {
    std::iter::once(ClientOptions::new(Fd::Stock).named("reference")).chain(test).collect()
}

/// Runs the plan, prints its table, and fails with the rows that are not as expected.
#[expect(clippy::print_stdout, reason = "the matrix prints its table")]
fn judge(plan: &Plan) -> Result<()> {
    let start = Instant::now();
    let verdicts = verdicts(plan)?;
    let both_stock = Fd::under_test()? == Fd::Stock;
    let known: BTreeMap<_, _> = KNOWN_FAULTS.iter().copied().collect();
    let (mut table, mut wrong, mut equal, mut documented, mut restored) = (String::new(), String::new(), 0, 0, 0);
    for (row, verdict) in plan.rows.iter().zip(&verdicts) {
        let expected =
            if both_stock { verdict.differences.is_empty() } else { row.expect.is_met_by(&verdict.differences) };
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
        restored += verdict.restored;
        let _ =
            writeln!(table, "{:38} {:6} {:7} {:8}  {word}", row.name, verdict.files, verdict.records, verdict.restored);
        if expected == fault.is_some() {
            let _ = writeln!(wrong, "{}: {word}\n    {}", row.name, verdict.differences.join("\n    "));
        }
    }
    let count = plan.rows.len();
    println!("{count} rows: {equal} equal, {documented} differ as documented; {restored} files restored");
    println!("{:?}", start.elapsed());
    // Without the table: a log that is cut has room for what is wrong.
    assert!(wrong.is_empty(), "{wrong}");
    println!("{:38} {:>6} {:>7} {:>8}  verdict\n{table}", "row", "files", "records", "restored");
    Ok(())
}

#[test]
fn every_row_is_that_of_the_stock_daemon_or_differs_as_documented() -> Result<()> {
    let test = ClientOptions::new(Fd::under_test()?).named("test").with_workers(2);
    judge(&Plan { label: "compliance", rows: selected(rows()), clients: clients([test]), beds: 4, restores: true })
}

/// What two workers do, and a walk with one lookup at a time, is part of the whole matrix.
#[test]
fn one_worker_and_eight_and_lookups_ahead_give_the_volumes_of_the_stock_daemon() -> Result<()> {
    let fd = Fd::under_test()?;
    let test = [("worker1", 1, 256), ("worker8", 8, 8)]
        .map(|(name, count, depth)| ClientOptions::new(fd).named(name).with_workers(count).with_depth(depth));
    let rows = selected(rows()).into_iter().filter(has_all_worker_counts).collect();
    judge(&Plan { label: "workers", rows, clients: clients(test), beds: 2, restores: false })
}

/// `AllowedBackupDirectories` and their like are in the File Daemon's own configuration, so each
/// choice of them is a bed.
#[test]
fn allowed_and_excluded_directories_are_those_of_the_stock_daemon() -> Result<()> {
    let fd = Fd::under_test()?;
    let plan = |(directives, rows): (&[&str], Vec<Row>)| {
        let with = |mut client: ClientOptions| {
            client.fd_director = directives.iter().map(|&line| line.to_owned()).collect();
            client
        };
        let clients = clients([ClientOptions::new(fd).named("test")]).into_iter().map(with).collect();
        Plan { label: "allowed", rows, clients, beds: 1, restores: false }
    };
    side_by_side(&allowed_rows().into_iter().map(plan).collect::<Vec<_>>())
}

/// What an ordinary user may not read is reported, and the rest is saved.
#[test]
fn an_unprivileged_daemon_reports_unreadable_files() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return skip::test("needs root to become another user");
    }
    let fd = Fd::under_test()?;
    let clients = clients([ClientOptions::new(fd).named("test")]).into_iter().map(|client| client.as_user("nobody"));
    judge(&Plan { label: "user", rows: private_rows(), clients: clients.collect(), beds: 1, restores: false })
}

/// Judges several plans at once.
fn side_by_side(plans: &[Plan]) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = plans.iter().map(|plan| scope.spawn(|| judge(plan))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// All rows, or those whose names hold one of the words in `COMPLIANCE_ROWS`.
fn selected(rows: Vec<Row>) -> Vec<Row> {
    let Ok(wanted) = std::env::var("COMPLIANCE_ROWS") else { return rows };
    rows.into_iter().filter(|row| wanted.split(' ').any(|word| row.name.contains(word))).collect()
}

#[test]
fn the_matrix_is_large_and_its_differences_are_documented() {
    let more = allowed_rows().into_iter().flat_map(|(_, rows)| rows).chain(private_rows());
    let rows: Vec<_> = rows().into_iter().chain(more).collect();
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
