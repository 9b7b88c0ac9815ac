//! Restores of what a row's jobs saved, in lines.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bed::{Bed, Result, TreeRules, below, tree_lines};

use crate::plan::Plan;
use crate::row::{Done, Row};
use crate::told::plain;

/// One restore of a row's jobs.
pub(crate) struct Restored {
    /// The row's number in its share.
    pub(crate) row: usize,
    /// Which client has saved it, and which one has restored it.
    pub(crate) by: (usize, usize),
    /// Files that came back.
    pub(crate) files: u64,
    pub(crate) lines: Vec<String>,
}

/// Restores each row's jobs as the plan says.
pub(crate) fn restore(bed: &Bed, plan: &Plan, rows: &[Row], done: &[Done]) -> Result<Vec<Restored>> {
    let begin = now();
    let mut wanted = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        for &by in plan.restores {
            wanted.extend(prepare(bed, plan, (number, row), by, done)?);
        }
    }
    let commands: Vec<_> = wanted.iter().map(|(_, _, command)| command.clone()).collect();
    let jobs = bed.run_all(&commands)?;
    let mut restored = Vec::new();
    for ((mut one, to, _), job) in wanted.into_iter().zip(jobs) {
        let row = &rows[one.row];
        let job = bed.catalog().job(job)?;
        one.files = job.files;
        one.lines.push(format!("status {} files {} bytes {} errors {}", job.status, job.files, job.bytes, job.errors));
        one.lines.extend(tree(bed, row, &to, begin)?);
        restored.push(one);
    }
    Ok(restored)
}

/// A restore, where it goes, and its command; if its jobs left anything that can be restored.
fn prepare(
    bed: &Bed,
    plan: &Plan,
    (number, row): (usize, &Row),
    by: (usize, usize),
    done: &[Done],
) -> Result<Option<(Restored, PathBuf, String)>> {
    // Data of a FIFO can only be restored into one that has a reader.
    if row.alone || row.status != 'T' || (row.is_for_ferrofd_only() && by != (0, 0)) {
        return Ok(None);
    }
    let mut jobs = Vec::new();
    let mut files = 0;
    for done in done.iter().filter(|done| done.row == number) {
        files += bed.catalog().job(done.jobs[by.0])?.files;
        jobs.push(done.jobs[by.0].to_string());
    }
    if files == 0 {
        return Ok(None);
    }
    let [from, onto] = [by.0, by.1].map(|client| &plan.clients[client].name);
    let to = bed.folder().join(format!("restored/{}-from-{from}-by-{onto}", row.name));
    let command = format!(
        "restore jobid={} client={from}-fd restoreclient={onto}-fd where={} replace=always all done yes",
        jobs.join(","),
        to.display()
    );
    Ok(Some((Restored { row: number, by, files: 0, lines: Vec::new() }, to, command)))
}

/// What was restored, without the directories that only lead there. Times of directories are told
/// if they are not those of the restore: the stock daemon leaves that on those that no job holds,
/// and on those into which it put something later.
fn tree(bed: &Bed, row: &Row, to: &Path, begin: i64) -> Result<Vec<String>> {
    // Where nothing was stripped.
    let below_bed = below(to, bed.folder());
    let top = if below_bed.exists() { &below_bed } else { to };
    let mut lines = Vec::new();
    for line in tree_lines(top, TreeRules::restored())? {
        let (name, fact) = line.split_once(": ").unwrap_or((&line, ""));
        let path = top.join(name);
        let is_time = fact.starts_with("mtime ") || fact.starts_with("atime ");
        let is_new = || fs::symlink_metadata(&path).is_ok_and(|status| status.is_dir() && status.mtime() >= begin);
        if !(["(top)", "source"].contains(&name) || is_time && is_new()) {
            lines.push(plain(bed, row, &line));
        }
    }
    Ok(lines)
}

fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs().cast_signed())
}
