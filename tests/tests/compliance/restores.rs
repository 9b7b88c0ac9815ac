//! Cross-restores: what a row saved through one daemon is restored through the other, and the trees
//! are compared.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bed::{Bed, Expect, JobRow, Result, TreeRules, compare_trees, set_fixed_times};

use crate::row::{Done, Row};
use crate::verdict::Verdict;

/// One restore of a row's jobs.
struct Side {
    to: PathBuf,
    command: String,
}

/// The two restores of a row whose trees must be the same.
struct Pair {
    row: usize,
    sides: [Side; 2],
}

fn job_name(client: &str) -> String {
    format!("restore-from-{client}")
}

/// The restore job for what a client saved. One at a time: the Storage Daemon lets a second reader
/// of a volume ask again in 30 s, whereas the Director begins the next job of its queue at once.
pub(crate) fn job(client: &str, file_set: &str) -> Vec<String> {
    let lines = [
        "Job {",
        &format!("Name = {}", job_name(client)),
        "Type = Restore",
        &format!("Client = {client}-fd"),
        &format!("Storage = {client}"),
        &format!("Pool = {client}"),
        &format!("FileSet = {file_set}"),
        "Messages = Standard",
        "Maximum Concurrent Jobs = 1",
        "}",
    ];
    lines.map(str::to_owned).to_vec()
}

/// Restores each row's jobs both ways and notes in its verdict how many files came back and what
/// differs.
pub(crate) fn cross(bed: &Bed, rows: &[Row], done: &[Done], verdicts: &mut [Verdict]) -> Result<()> {
    let begin = now();
    let mut pairs = Vec::new();
    for (row, of_row) in rows.iter().enumerate() {
        pairs.extend(pair(bed, row, of_row, done)?);
    }
    let commands: Vec<_> = pairs.iter().flat_map(|pair| &pair.sides).map(|side| side.command.clone()).collect();
    let jobs = bed.queue_all(&commands)?;
    bed.wait_for_reports(&jobs)?;
    for (pair, jobs) in pairs.iter().zip(jobs.chunks(2)) {
        let verdict = &mut verdicts[pair.row];
        let [left, right] = [bed.catalog().job(jobs[0])?, bed.catalog().job(jobs[1])?];
        verdict.restored = right.files;
        let count = |job: &JobRow| (job.status, job.files, job.bytes, job.errors);
        if count(&left) != count(&right) {
            let logs = [bed.catalog().log(jobs[0])?, bed.catalog().log(jobs[1])?].concat();
            verdict.differences.push(format!("restores: {left:?} and {right:?}\n{logs}"));
        }
        settle(&pair.sides[0].to, &pair.sides[1].to, begin)?;
        let told = compare_trees(&pair.sides[0].to, &pair.sides[1].to, TreeRules::restored())?;
        verdict.differences.extend(told.into_iter().map(|text| format!("restored trees: {text}")));
    }
    Ok(())
}

/// The restores of a row, if its jobs left anything that can be restored.
fn pair(bed: &Bed, number: usize, row: &Row, done: &[Done]) -> Result<Option<Pair>> {
    // Data of a FIFO can only be restored into one that has a reader.
    if row.alone {
        return Ok(None);
    }
    let jobs: Vec<_> = done.iter().filter(|done| done.row == number).collect();
    let list = |client: usize| jobs.iter().map(|done| done.jobs[client].to_string()).collect::<Vec<_>>().join(",");
    let mut files = 0;
    for done in &jobs {
        files += bed.catalog().job(done.jobs[1])?.files;
    }
    if files == 0 || row.status != 'T' {
        return Ok(None);
    }
    let side = |client: usize, from: &str, onto: &str| {
        let to = bed.folder().join(format!("restored/{}-from-{from}-by-{onto}", row.name));
        let command = format!(
            "restore jobid={} client={from}-fd restoreclient={onto}-fd restorejob={} where={} replace=always all done yes",
            list(client),
            job_name(from),
            to.display()
        );
        Side { to, command }
    };
    let sides = match row.expect {
        Expect::Equal => [side(0, "reference", "test"), side(1, "test", "reference")],
        // What the stock daemon saved is not the same, so ours must give back what it saved itself.
        Expect::Differs { .. } if row.is_for_ferrofd_only() => return Ok(None),
        Expect::Differs { .. } => [side(1, "test", "test"), side(1, "test", "reference")],
    };
    Ok(Some(Pair { row: number, sides }))
}

/// Gives fixed times to the directories that have the time of the restore when the stock daemon (on
/// the right) has restored them: those that no job holds, and those into which it put something
/// later. If only ferrofd left that time on a directory, it still is a difference.
fn settle(left: &Path, right: &Path, begin: i64) -> Result<()> {
    for entry in fs::read_dir(left).unwrap() {
        let entry = entry.unwrap();
        let other = right.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() && other.is_dir() {
            settle(&entry.path(), &other, begin)?;
        }
    }
    if right.metadata().unwrap().mtime() >= begin {
        set_fixed_times(left)?;
        set_fixed_times(right)?;
    }
    Ok(())
}

fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs().cast_signed())
}
