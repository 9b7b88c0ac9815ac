//! The compliance matrix: options of a `FileSet` × trees × levels. Each row is saved and restored;
//! what lands on the volume, in the catalog, in the job's log and on the disk is compared with what
//! the stock daemon did (`told.rs`), line by line and byte by byte.
//!
//! `make test-live` also has both daemons save all rows, and restore what the other one saved.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

mod beds;
mod matrix;
mod plan;
mod restores;
mod row;
mod told;
mod trees;
mod unpack;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Instant;

use bed::{ClientOptions, Expect, Fd, Folder, Result, in_parallel, mount_memory};
use beds::verdicts;
use matrix::{KNOWN_FAULTS, allowed_rows, has_all_worker_counts, private_rows, rows};
use nix::unistd::geteuid;
use plan::Plan;
use row::Row;

/// What this host lacks for the trees, if anything.
fn lack() -> Result<Option<&'static str>> {
    if !geteuid().is_root() {
        return Ok(Some("needs root for trees whose order is known"));
    }
    let folder = Folder::new("attributes")?;
    mount_memory(folder.path())?;
    let has_attributes = xattr::set(folder.path(), "user.tried", b"yes").is_ok();
    Ok((!has_attributes).then_some("tmpfs has no attributes of users here: Linux 6.6 and later"))
}

/// Runs the plan, prints its table, and fails with the rows that are not as expected.
#[expect(clippy::print_stdout, reason = "the matrix prints its table")]
fn judge(plan: &Plan) -> Result<()> {
    let start = Instant::now();
    let verdicts = verdicts(plan)?;
    let only_stock = Fd::under_test()? == Fd::Stock;
    let known: BTreeMap<_, _> = KNOWN_FAULTS.iter().copied().collect();
    let (mut table, mut wrong, mut equal, mut documented, mut restored) = (String::new(), String::new(), 0, 0, 0);
    for (row, verdict) in plan.rows.iter().zip(&verdicts) {
        let expected = (only_stock || row.expect.is_met_by(&verdict.differences)) && verdict.of_stock.is_empty();
        let fault = known.get(row.name).filter(|_| !only_stock);
        let word = match (expected, fault, row.expect) {
            (true, None, _) if verdict.differences.is_empty() => "equal",
            (true, None, _) => "differs as documented",
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
            let told = [verdict.differences.join("\n    "), verdict.of_stock.join("\n    stock: ")].concat();
            let _ = writeln!(wrong, "{}: {word}\n    {told}", row.name);
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

/// What two workers do is the whole matrix; some rows are also saved by one worker, with as many
/// lookups ahead as it likes, and by eight.
#[test]
fn every_row_is_that_of_the_stock_daemon_or_differs_as_documented() -> Result<()> {
    skip::lacks!(lack()?);
    let fd = Fd::under_test()?;
    let mut clients = vec![ClientOptions::new(fd).named("test").with_workers(2)];
    if fd == Fd::Ours {
        clients.extend(
            [("worker1", 1, 256), ("worker8", 8, 8)]
                .map(|(name, count, depth)| ClientOptions::new(fd).named(name).with_workers(count).with_depth(depth)),
        );
    }
    let rows = selected(rows());
    judge(&Plan { label: "compliance", rows, clients, by_all: has_all_worker_counts, beds: 4, restores: &[(0, 0)] })
}

#[test]
#[ignore = "`make test-live`: both daemons, live"]
fn each_daemon_restores_what_the_other_one_saved() -> Result<()> {
    skip::lacks!(lack()?);
    let clients =
        [(Fd::Stock, "reference"), (Fd::Ours, "test")].map(|(fd, name)| ClientOptions::new(fd).named(name)).to_vec();
    let rows = selected(rows());
    judge(&Plan { label: "cross", rows, clients, by_all: |_| true, beds: 4, restores: &[(0, 1), (1, 0)] })
}

/// `AllowedBackupDirectories` and their like are in the File Daemon's own configuration, so each
/// choice of them is a bed.
#[test]
fn allowed_and_excluded_directories_are_those_of_the_stock_daemon() -> Result<()> {
    skip::lacks!(lack()?);
    let fd = Fd::under_test()?;
    let plan = |(directives, rows): (&[&str], Vec<Row>)| {
        let mut client = ClientOptions::new(fd).named("test");
        client.fd_director = directives.iter().map(|&line| line.to_owned()).collect();
        Plan { label: "allowed", rows, clients: vec![client], by_all: |_| true, beds: 1, restores: &[] }
    };
    let plans: Vec<_> = allowed_rows().into_iter().map(plan).collect();
    in_parallel(plans.len(), &plans, judge).map(drop)
}

/// What an ordinary user may not read is reported, and the rest is saved.
#[test]
fn an_unprivileged_daemon_reports_unreadable_files() -> Result<()> {
    skip::lacks!(lack()?);
    let clients = vec![ClientOptions::new(Fd::under_test()?).named("test").as_user("nobody")];
    judge(&Plan { label: "user", rows: private_rows(), clients, by_all: |_| true, beds: 1, restores: &[] })
}

/// All rows, or those whose names hold one of the words in `COMPLIANCE_ROWS`.
fn selected(rows: Vec<Row>) -> Vec<Row> {
    let Ok(wanted) = std::env::var("COMPLIANCE_ROWS") else { return rows };
    let rows: Vec<_> = rows.into_iter().filter(|row| wanted.split(' ').any(|word| row.name.contains(word))).collect();
    assert!(!rows.is_empty(), "COMPLIANCE_ROWS={wanted}: no such row");
    rows
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
