//! Verify jobs of all levels: the Director's report, the job's log and its status after a Verify by
//! the stock daemon and by the daemon under test, of the same tree or of volumes with the same
//! records, in one bed. Trees, volumes and catalog are first as they were saved, then changed.
//!
//! With `FD_UNDER_TEST=stock` a second stock daemon takes its place, which shows that the
//! comparison itself is sound; every row is then equal.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "what helps a test fails the test, like the test itself"
)]

mod cancel;
mod damage;
mod matrix;
mod row;
mod told;
mod trees;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::time::Instant;

use bed::{Bed, BedOptions, ClientOptions, Expect, Fd, JobResult, Result, line_differences, next_second};
use matrix::rows;
use row::{Level, PHASES, Phase, Row};

/// A device serves one reader at a time: rows are spread over so many pairs of clients.
const PAIRS: usize = 4;

/// The clients of a row: the stock daemon, and the daemon under test.
fn clients(row: usize) -> [String; 2] {
    ["reference", "test"].map(|side| format!("{side}{}", row % PAIRS))
}

/// A level of a row, and the numbers of its two jobs.
struct Ran {
    row: usize,
    phase: Phase,
    level: Level,
    jobs: [u32; 2],
}

/// Runs one phase of all rows: what reads no volume at once, the rest so that no device has two
/// readers.
fn run_phase(bed: &Bed, rows: &[Row], phase: Phase) -> Result<Vec<Ran>> {
    let all = || rows.iter().enumerate().flat_map(|(row, of)| of.levels(phase).map(move |level| (row, level)));
    let mut rounds = vec![all().filter(|(_, level)| !level.reads()).collect::<Vec<_>>()];
    let mut waiting = [const { Vec::new() }; PAIRS];
    all().filter(|(_, level)| level.reads()).for_each(|job| waiting[job.0 % PAIRS].push(job));
    while waiting.iter().any(|jobs| !jobs.is_empty()) {
        rounds.push(waiting.iter_mut().filter_map(Vec::pop).collect());
    }
    let mut ran = Vec::new();
    for round in rounds.into_iter().filter(|round| !round.is_empty()) {
        let commands = |&(row, level): &(usize, Level)| clients(row).map(|client| rows[row].command(level, &client));
        let jobs = bed.queue_all(&round.iter().flat_map(commands).collect::<Vec<_>>())?;
        bed.wait_for_reports(&jobs)?;
        let pairs = round.iter().zip(jobs.chunks(2));
        ran.extend(pairs.map(|(&(row, level), pair)| Ran { row, phase, level, jobs: [pair[0], pair[1]] }));
    }
    Ok(ran)
}

/// The results of the rows' backups.
fn backups(bed: &Bed, ran: &[Ran]) -> Result<Vec<(usize, [JobResult; 2])>> {
    let backups = ran.iter().filter(|ran| ran.level == Level::Backup);
    backups.map(|ran| Ok((ran.row, [bed.result(ran.jobs[0])?, bed.result(ran.jobs[1])?]))).collect()
}

/// Makes the changes between a phase and the one before.
fn prepare(bed: &Bed, rows: &[Row], phase: Phase, ran: &[Ran]) -> Result<()> {
    match phase {
        Phase::Backup | Phase::Init | Phase::Clean => {}
        Phase::Tampered => trees::tamper(&bed.folder().join("source")),
        Phase::Damaged => {
            let mut sessions: HashMap<String, HashMap<_, _>> = HashMap::new();
            for (row, jobs) in backups(bed, ran)? {
                for (client, job) in clients(row).into_iter().zip(jobs) {
                    sessions.entry(client).or_default().insert(job.row.session, rows[row].damage);
                }
            }
            for (client, sessions) in sessions {
                damage::damage(bed, &client, &sessions)?;
            }
        }
        Phase::Forged => {
            for (row, jobs) in backups(bed, ran)? {
                if rows[row].levels(Phase::Forged).next().is_some() {
                    jobs.iter().try_for_each(|job| trees::forge(bed.catalog(), job.row.id))?;
                }
            }
        }
    }
    next_second()
}

/// Runs everything, and says for each row how many jobs were compared and what differs.
fn differences(rows: &[Row]) -> Result<Vec<(usize, Vec<String>)>> {
    let client = |fd: Fd, side: &str, pair: usize| ClientOptions::new(fd).named(&format!("{side}{pair}"));
    let under_test = Fd::under_test()?;
    let pairs = (0..PAIRS).flat_map(|pair| [client(Fd::Stock, "reference", pair), client(under_test, "test", pair)]);
    let mut options = BedOptions::new("verify", pairs)?;
    options.every_message = true;
    let source = options.source()?;
    trees::build(&source)?;
    options.file_sets = rows.iter().map(|row| row.file_set(&source.join(row.tree.name()))).collect();
    let jobs = rows.iter().enumerate().flat_map(|(number, row)| clients(number).map(|client| row.jobs(&client)));
    options.director_resources = jobs.flatten().collect();
    let bed = Bed::start(options)?;
    let mut ran = Vec::new();
    for phase in PHASES {
        prepare(&bed, rows, phase, &ran)?;
        ran.extend(run_phase(&bed, rows, phase)?);
    }
    let mut found: Vec<_> = rows.iter().map(|_| (0, Vec::new())).collect();
    for Ran { row, phase, level, jobs } in ran.iter().filter(|ran| ran.level != Level::Backup) {
        let [stock, ours] = [bed.result(jobs[0])?, bed.result(jobs[1])?];
        let [left, right] = clients(*row);
        let what = format!("{phase:?} {level:?}:");
        let told_by = |job, client: &str| told::told(job, client, &rows[*row], *phase);
        let mut told = line_differences(&what, &told_by(&stock, &left), &told_by(&ours, &right));
        if *level == Level::Init {
            let kept =
                |job: u32| bed.catalog().files(job).map(|files| files.iter().map(told::kept).collect::<Vec<_>>());
            told.extend(line_differences(&what, &kept(jobs[0])?, &kept(jobs[1])?));
        }
        if std::env::var_os("VERIFY_LOGS").is_some() {
            println!("{} {what}\n{}\n{}", rows[*row].name, stock.log, ours.log);
        }
        found[*row].0 += 1;
        let tree = bed.folder().join("source").display().to_string();
        found[*row].1.extend(told.into_iter().map(|text| text.replace(&tree, "@")));
    }
    Ok(found)
}

/// All rows, or those whose names hold one of the words in `VERIFY_ROWS`.
fn selected() -> Vec<Row> {
    let Ok(wanted) = std::env::var("VERIFY_ROWS") else { return rows() };
    rows().into_iter().filter(|row| wanted.split(' ').any(|word| row.name.contains(word))).collect()
}

#[test]
fn every_verify_is_that_of_the_stock_daemon_or_differs_as_documented() -> Result<()> {
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
