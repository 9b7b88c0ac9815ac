//! The restore matrix: replace modes × what is saved × what is in its place, and the forms of
//! names. Each restore is done by the stock daemon and by the daemon under test, from a backup by
//! the stock one, onto the same tree; the trees that result (content, mode, owner, times to the
//! nanosecond, links, ACLs, attributes, holes), the job's messages and its report are compared,
//! cell by cell.
//!
//! With `FD_UNDER_TEST=stock` a second stock daemon takes its place, which shows that the
//! comparison itself is sound.
//!
//! Needs root: owners, devices, flags and mounts are half of it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

mod cells;
mod documented;
mod forms;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use bed::{Bed, BedOptions, ClientOptions, Fd, Result, umask};
use cells::{Flagged, Kind, Mounts, Situation};
use verdict::{Side, Table, compare_cells, compare_form};

const CLIENTS: [&str; 2] = ["reference", "test"];
const MODES: [&str; 4] = ["always", "ifnewer", "ifolder", "never"];

/// Seconds of the wall clock.
fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| i64::try_from(time.as_secs()).unwrap())
}

/// Where a path lands when it is restored with `where=`.
fn below(to: &Path, path: &Path) -> PathBuf {
    to.join(path.strip_prefix("/").unwrap_or(path))
}

/// The bed with its clients, and what is saved.
struct Ground {
    bed: Bed,
    cells: PathBuf,
    forms: PathBuf,
    /// Backups of the cells and of the forms' tree for each client, all by the stock daemon.
    backups: [[u32; 2]; 2],
}

/// Expressions of `RegexWhere` that change every letter change the bed's own folder, too. What was
/// restored there goes with it.
impl Drop for Ground {
    fn drop(&mut self) {
        let folder = self.bed.folder().to_owned();
        let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else { return };
        let end = name.to_string_lossy().replacen("bed", "", 1);
        for found in fs::read_dir(above).into_iter().flatten().flatten() {
            let path = found.path();
            if path != folder && found.file_name().to_string_lossy().ends_with(&end) {
                // It must not hide the test's own result.
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

impl Ground {
    fn raise() -> Result<Self> {
        let mut options = BedOptions::side_by_side("restores")?;
        // With three workers another thread receives. What one does alone the compliance suite
        // shows, which has two.
        options.clients = options.clients.into_iter().map(|client| client.with_workers(3)).collect();
        let limits = options.folder.path().join("allowed");
        let limited = |client: ClientOptions| {
            let mut client = client;
            client.name.push_str("-limited");
            client.fd_director = vec![format!("Allowed Restore Directories = {0}/yes, {0}/some/*", limits.display())];
            client
        };
        let more: Vec<_> = options.clients.iter().cloned().map(limited).collect();
        options.clients.extend(more);
        options.every_message = true;
        let cells = options.source()?.join("cells");
        let forms = options.source()?.join("forms");
        cells::build_source(&cells);
        forms::build_source(&forms);
        options.file_sets = vec![cells::file_set(&cells), bed::FileSet::new("forms", &["Signature = SHA1"], &[&forms])];
        options.director_resources = forms::resources(options.folder.path());
        let bed = Bed::start(options)?;
        let run = |client: &str, set: &str| format!("run job=backup-{client} fileset={set} client=reference-fd yes");
        let commands: Vec<_> = CLIENTS.iter().flat_map(|client| [run(client, "cells"), run(client, "forms")]).collect();
        let ids = bed.queue_all(&commands)?;
        bed.wait_for_reports(&ids)?;
        for id in &ids {
            bed.result(*id)?.must_be_good()?;
        }
        Ok(Self { bed, cells, forms, backups: [[ids[0], ids[1]], [ids[2], ids[3]]] })
    }

    /// All cells in all replace modes.
    fn cells(&self, table: &mut Table) -> Result<()> {
        let (mut flagged, mut mounts) = (Flagged::default(), Mounts::default());
        let place = |mode: &str, client: &str| self.bed.folder().join("restored").join(format!("{mode}-{client}"));
        let mut commands = Vec::new();
        for mode in MODES {
            for (number, client) in CLIENTS.iter().enumerate() {
                let to = place(mode, client);
                let top = below(&to, &self.cells);
                std::fs::create_dir_all(&top).unwrap();
                cells::build_target(&top, &mut flagged, &mut mounts)?;
                commands.push(format!(
                    "restore jobid={} client=reference-fd restoreclient={client}-fd where={} replace={mode} restorejob=restore all done yes",
                    self.backups[number][0],
                    to.display(),
                ));
            }
        }
        cells::freeze(&flagged, &mounts)?;
        let start = now();
        let jobs = self.bed.queue_all(&commands)?;
        self.bed.wait_for_reports(&jobs)?;
        drop(flagged);
        for (mode, pair) in MODES.iter().zip(jobs.chunks(2)) {
            let mut sides = Vec::new();
            for (client, job) in CLIENTS.iter().zip(pair) {
                let to = place(mode, client);
                let top = below(&to, &self.cells);
                cells::level_times(&to, (start, now()));
                sides.push(Side { client: (*client).to_owned(), to, top, job: self.bed.result(*job)? });
            }
            compare_cells(mode, &sides, table)?;
        }
        Ok(())
    }

    /// All forms of names.
    fn forms(&self, table: &mut Table) -> Result<()> {
        let place = |name: &str, client: &str| self.bed.folder().join("formed").join(format!("{name}-{client}"));
        let start = now();
        let (mut jobs, mut beside) = (Vec::new(), Vec::new());
        let rows = forms::rows();
        for row in &rows {
            let mut commands = Vec::new();
            for (number, client) in CLIENTS.iter().enumerate() {
                let to = place(row.name, client);
                row.prepare(&to, &below(&to, &self.forms));
                let client = if row.limited { format!("{client}-limited") } else { (*client).to_owned() };
                let arguments = row.arguments(&to, &self.forms, self.bed.folder());
                let job = self.backups[number][1];
                commands.push(format!(
                    "restore jobid={job} client=reference-fd restoreclient={client}-fd {arguments} all done yes"
                ));
            }
            if row.in_place {
                for (client, command) in CLIENTS.iter().zip(commands) {
                    forms::spoil(&self.forms, row.name);
                    let ids = self.bed.queue_all(&[command])?;
                    self.bed.wait_for_reports(&ids)?;
                    let to = place(row.name, client);
                    std::fs::create_dir_all(&to).unwrap();
                    std::fs::rename(&self.forms, to.join("in-place")).unwrap();
                    forms::build_source(&self.forms);
                    jobs.extend(ids);
                }
            } else {
                beside.push((jobs.len(), commands));
                jobs.extend([0; 2]);
            }
        }
        let ids = self.bed.queue_all(&beside.iter().flat_map(|(_, pair)| pair.clone()).collect::<Vec<_>>())?;
        self.bed.wait_for_reports(&ids)?;
        for ((at, _), pair) in beside.iter().zip(ids.chunks(2)) {
            jobs[*at..*at + 2].copy_from_slice(pair);
        }
        for (row, pair) in rows.iter().zip(jobs.chunks(2)) {
            let mut sides = Vec::new();
            for (client, job) in CLIENTS.iter().zip(pair) {
                let to = place(row.name, client);
                if to.exists() {
                    cells::level_times(&to, (start, now()));
                }
                let client = if row.limited { format!("{client}-limited") } else { (*client).to_owned() };
                sides.push(Side { client, top: to.clone(), to, job: self.bed.result(*job)? });
            }
            compare_form(row.name, &sides, table)?;
        }
        Ok(())
    }
}

/// Which side's daemons have no umask any more. Ours always has one.
fn lost_umasks(bed: &mut Bed) -> Result<[bool; 2]> {
    let mut lost = [false; 2];
    for (lost, client) in lost.iter_mut().zip(CLIENTS) {
        for daemon in [client.to_owned(), format!("{client}-limited")] {
            *lost |= umask(bed.client(&daemon)?.pid()?)? == 0;
        }
    }
    assert!(!lost[1] || Fd::under_test()? == Fd::Stock, "our daemon lost its umask");
    Ok(lost)
}

#[test]
fn every_restore_is_that_of_the_stock_daemon_or_differs_as_documented() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return skip::test("needs root");
    }
    let begun = Instant::now();
    let mut ground = Ground::raise()?;
    let mut table = Table::new(Fd::under_test()? == Fd::Stock);
    println!("backups: {:?}", begun.elapsed());
    ground.cells(&mut table)?;
    println!("cells: {:?}", begun.elapsed());
    ground.forms(&mut table)?;
    table.forgive_lost_umasks(lost_umasks(&mut ground.bed)?);
    println!(
        "{} rows: {} equal, {} differ as documented; {:?}",
        table.rows(),
        table.equal(),
        table.documented(),
        begun.elapsed()
    );
    // Without the table: a log that is cut has room for what is wrong.
    assert!(table.wrong().is_empty(), "{}", table.wrong());
    println!("{table}");
    Ok(())
}

#[test]
fn the_matrix_is_large_and_its_differences_are_documented() {
    let cells = MODES.len() * Situation::ALL.len() * Kind::ALL.len();
    assert!(cells + forms::rows().len() > 1000);
    let documents = include_str!("../../../docs/differences.md");
    for row in documented::DOCUMENTED {
        assert!(documents.contains(row.text), "no row of docs/differences.md says {:?}", row.text);
    }
}
