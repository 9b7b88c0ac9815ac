//! Verify jobs of all levels: the Director's report, the job's log and its status after a Verify of
//! a tree or of a volume, compared with what the stock daemon did. Trees, volumes and catalog are
//! first as they were saved, then changed.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "what helps a test fails the test, like the test itself"
)]

mod cancel;
mod damage;
mod deleted;
mod matrix;
mod row;
mod told;
mod trees;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use bed::{
    Bed, BedOptions, ClientOptions, Expect, Fd, JobResult, Result, StockRecord, in_order_of_names, mount_memory,
    next_second,
};
use matrix::rows;
use row::{Level, PHASES, Phase, Row};

/// A device serves one reader at a time: rows are spread over so many clients.
const CLIENTS: usize = 4;

/// The client of a row.
fn client(row: usize) -> String {
    format!("test{}", row % CLIENTS)
}

/// A level of a row, the number of its job, and the names that a walk meets.
struct Ran {
    row: usize,
    phase: Phase,
    level: Level,
    job: u32,
    met: Vec<PathBuf>,
}

/// Runs one phase of all rows: what reads no volume at once, the rest so that no device has two
/// readers.
fn run_phase(bed: &Bed, rows: &[Row], phase: Phase) -> Result<Vec<Ran>> {
    let all = || rows.iter().enumerate().flat_map(|(row, of)| of.levels(phase).map(move |level| (row, level)));
    let mut rounds = vec![all().filter(|(_, level)| !level.reads()).collect::<Vec<_>>()];
    let mut waiting = [const { Vec::new() }; CLIENTS];
    all().filter(|(_, level)| level.reads()).for_each(|job| waiting[job.0 % CLIENTS].push(job));
    while waiting.iter().any(|jobs| !jobs.is_empty()) {
        rounds.push(waiting.iter_mut().filter_map(Vec::pop).collect());
    }
    let mut ran = Vec::new();
    for round in rounds.into_iter().filter(|round| !round.is_empty()) {
        let command = |&(row, level): &(usize, Level)| rows[row].command(level, &client(row));
        let jobs = bed.run_all(&round.iter().map(command).collect::<Vec<_>>())?;
        for (&(row, level), job) in round.iter().zip(jobs) {
            let met = trees::met(&rows[row].tops(&bed.folder().join("source").join(rows[row].tree.name())));
            ran.push(Ran { row, phase, level, job, met });
        }
    }
    Ok(ran)
}

/// The results of the rows' backups.
fn backups(bed: &Bed, ran: &[Ran]) -> Result<Vec<(usize, JobResult)>> {
    let backups = ran.iter().filter(|ran| ran.level == Level::Backup);
    backups.map(|ran| Ok((ran.row, bed.result(ran.job)?))).collect()
}

/// Makes the changes between a phase and the one before.
fn prepare(bed: &Bed, rows: &[Row], phase: Phase, ran: &[Ran]) -> Result<()> {
    match phase {
        Phase::Backup | Phase::Init | Phase::Clean => {}
        Phase::Tampered => trees::tamper(&bed.folder().join("source")),
        Phase::Damaged => {
            let mut sessions: HashMap<String, HashMap<_, _>> = HashMap::new();
            for (row, job) in backups(bed, ran)? {
                sessions.entry(client(row)).or_default().insert(job.row.session, rows[row].damage);
            }
            for (client, sessions) in sessions {
                damage::damage(bed, &client, &sessions)?;
            }
        }
        Phase::Forged => {
            for (row, job) in backups(bed, ran)? {
                if rows[row].levels(Phase::Forged).next().is_some() {
                    trees::forge(bed.catalog(), job.row.id)?;
                }
            }
        }
    }
    next_second()
}

/// Runs everything, and says for each row how many jobs were compared and what differs.
fn differences(rows: &[Row]) -> Result<Vec<(usize, Vec<String>)>> {
    let record = StockRecord::open("verify")?;
    let fd = Fd::under_test()?;
    let mut options =
        BedOptions::new("verify", (0..CLIENTS).map(|number| ClientOptions::new(fd).named(&client(number))))?;
    options.every_message = true;
    let source = options.source()?;
    // Read in the same order everywhere.
    mount_memory(&source)?;
    trees::build(&source)?;
    in_order_of_names(&source)?;
    let deeper = options.folder.path().components().count().saturating_sub(3);
    options.file_sets = rows.iter().map(|row| row.file_set(&source.join(row.tree.name()), deeper)).collect();
    options.director_resources = rows.iter().enumerate().flat_map(|(number, row)| row.jobs(&client(number))).collect();
    let bed = Bed::start(options)?;
    let mut ran: Vec<Ran> = Vec::new();
    for phase in PHASES {
        prepare(&bed, rows, phase, &ran)?;
        ran.extend(run_phase(&bed, rows, phase)?);
    }
    let mut found: Vec<_> = rows.iter().map(|_| (0, Vec::new())).collect();
    for Ran { row: number, phase, level, job, met } in ran.iter().filter(|ran| ran.level != Level::Backup) {
        let (row, job) = (&rows[*number], bed.result(*job)?);
        let tree = source.join(row.tree.name()).display().to_string();
        let mut lines = told::told(&job, &client(*number), row, *phase);
        lines.extend(told::out_of_order(&lines, met));
        if *level == Level::Init {
            lines.extend(bed.catalog().files(job.row.id)?.iter().map(told::kept));
        }
        if std::env::var_os("VERIFY_LOGS").is_some() {
            println!("{} {phase:?} {level:?}:\n{}", row.name, job.log);
        }
        let folder = bed.folder();
        let name = folder.file_name().unwrap_or_default().display().to_string();
        let lines = told::sorted(lines.iter().map(|line| line.replace(&tree, "@").replace(&name, "BED")));
        found[*number].0 += 1;
        found[*number].1.extend(record.differences(
            &row.name,
            &format!("{phase:?} {level:?}"),
            &row.input(),
            &lines,
        )?);
    }
    Ok(found)
}

/// All rows, or those whose names hold one of the words in `VERIFY_ROWS`.
fn selected() -> Vec<Row> {
    let Ok(wanted) = std::env::var("VERIFY_ROWS") else { return rows() };
    let rows: Vec<_> = rows().into_iter().filter(|row| wanted.split(' ').any(|word| row.name.contains(word))).collect();
    assert!(!rows.is_empty(), "VERIFY_ROWS={wanted}: no such row");
    rows
}

#[test]
fn every_verify_is_that_of_the_stock_daemon_or_differs_as_documented() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    let start = Instant::now();
    let rows = selected();
    let both_stock = Fd::under_test()? == Fd::Stock;
    let (mut table, mut wrong, mut compared) = (String::new(), String::new(), 0);
    for (row, (jobs, differences)) in rows.iter().zip(differences(&rows)?) {
        let expect = if both_stock { Expect::Equal } else { row.expect };
        let word = match (expect.is_met_by(&differences), expect) {
            (true, Expect::Equal) => "equal",
            (true, Expect::Differs { .. }) => "differs as documented",
            (false, _) => "WRONG",
        };
        compared += jobs;
        let _ = writeln!(table, "{:24} {jobs:2} jobs  {word}", row.name);
        if word == "WRONG" {
            let _ = writeln!(wrong, "{}:\n    {}", row.name, differences.join("\n    "));
        }
    }
    println!("{} rows, {compared} jobs compared, {:?}", rows.len(), start.elapsed());
    // Without the table: a log that is cut has room for what is wrong.
    assert!(wrong.is_empty(), "{wrong}");
    println!("{table}");
    Ok(())
}

#[test]
fn the_differences_of_the_rows_are_documented() {
    let rows = rows();
    let names: BTreeSet<_> = rows.iter().map(|row| &row.name).collect();
    assert_eq!(names.len(), rows.len(), "two rows have the same name");
    let documents = include_str!("../../../docs/differences.md");
    for row in &rows {
        if let Expect::Differs { documented, .. } = row.expect {
            assert!(documents.contains(documented), "{}: no row of docs/differences.md says {documented:?}", row.name);
        }
    }
}
