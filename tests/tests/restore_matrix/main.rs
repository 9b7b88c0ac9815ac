//! The restore matrix: replace modes × what is saved × what is in its place, and the forms of
//! names. The daemon under test saves and restores; the trees that result (content, mode, owner,
//! times to the nanosecond, links, ACLs, attributes, holes), the job's messages and its report are
//! compared with what the stock daemon did, cell by cell.
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
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, Result, StockRecord, below, in_order_of_names, level_times, mount_memory, umask,
};
use cells::{Flagged, Kind, Situation};
use verdict::{Side, Table, compare_cells, compare_form};

/// The client, and one that may only restore to some places.
const CLIENTS: [&str; 2] = ["test", "test-limited"];
const MODES: [&str; 4] = ["always", "ifnewer", "ifolder", "never"];

/// Seconds of the wall clock.
fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| i64::try_from(time.as_secs()).unwrap())
}

/// The bed with its clients, and what is saved.
struct Ground {
    bed: Bed,
    cells: PathBuf,
    forms: PathBuf,
    /// Backups of the cells and of the forms' tree.
    backups: [u32; 2],
}

impl Ground {
    fn raise() -> Result<Self> {
        // With three workers another thread receives. What one does alone the compliance suite
        // shows, which has two.
        let fd = Fd::under_test()?;
        let clients = CLIENTS.map(|name| ClientOptions::new(fd).named(name).with_workers(3));
        let mut options = BedOptions::new("restores", clients)?;
        let limits = options.folder.path().join("allowed");
        options.clients[1].fd_director =
            vec![format!("Allowed Restore Directories = {0}/yes, {0}/some/*", limits.display())];
        options.every_message = true;
        let source = options.source()?;
        // Read in the same order everywhere.
        mount_memory(&source)?;
        let (cells, forms) = (source.join("cells"), source.join("forms"));
        cells::build_source(&cells);
        forms::build_source(&forms);
        in_order_of_names(&source)?;
        options.file_sets = vec![cells::file_set(&cells), bed::FileSet::new("forms", &["Signature = SHA1"], &[&forms])];
        options.director_resources = forms::resources(options.folder.path());
        let bed = Bed::start(options)?;
        let backup = |set: &str| bed.backup("test", &format!("fileset={set}"))?.must_be_good();
        let backups = [backup("cells")?.row.id, backup("forms")?.row.id];
        Ok(Self { bed, cells, forms, backups })
    }

    /// Runs restores; those of the stock daemon one by one, since two at a time can lose its umask
    /// for good.
    fn restore(&self, commands: &[String]) -> Result<Vec<u32>> {
        let at_a_time = if Fd::under_test()? == Fd::Stock { 1 } else { commands.len().max(1) };
        let mut all = Vec::new();
        for some in commands.chunks(at_a_time) {
            all.extend(self.bed.run_all(some)?);
        }
        Ok(all)
    }

    /// All cells in all replace modes.
    fn cells(&self, table: &mut Table) -> Result<()> {
        let (mut flagged, mut frozen) = (Flagged::default(), Vec::new());
        let place = |mode: &str| self.bed.folder().join("restored").join(mode);
        let mut commands = Vec::new();
        for mode in MODES {
            let to = place(mode);
            let top = below(&to, &self.cells);
            fs::create_dir_all(&top).unwrap();
            cells::build_target(&top, &mut flagged, &mut frozen)?;
            commands.push(format!(
                "restore jobid={} client=test-fd where={} replace={mode} restorejob=restore all done yes",
                self.backups[0],
                to.display(),
            ));
        }
        cells::freeze(&flagged, &frozen)?;
        let start = now();
        let jobs = self.restore(&commands)?;
        drop(flagged);
        for (mode, job) in MODES.into_iter().zip(jobs) {
            let to = place(mode);
            let top = below(&to, &self.cells);
            level_times(&to, (start, now()))?;
            let side = Side { client: CLIENTS[0], to, top, source: self.cells.clone(), job: self.bed.result(job)? };
            compare_cells(mode, &side, table)?;
        }
        Ok(())
    }

    /// All forms of names.
    fn forms(&self, table: &mut Table) -> Result<()> {
        let place = |name: &str| self.bed.folder().join("formed").join(name);
        let start = now();
        let rows = forms::rows();
        let client = |row: &forms::Form| CLIENTS[usize::from(row.limited)];
        let command = |row: &forms::Form| {
            let (to, client) = (place(row.name), client(row));
            row.prepare(&to, &below(&to, &self.forms));
            let arguments = row.arguments(&to, &self.forms, self.bed.folder());
            let job = self.backups[1];
            format!("restore jobid={job} client=test-fd restoreclient={client}-fd {arguments} all done yes")
        };
        let (in_place, beside): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.in_place);
        let mut jobs = Vec::new();
        for row in &in_place {
            forms::spoil(&self.forms);
            jobs.extend(self.restore(&[command(row)])?);
            fs::rename(&self.forms, self.forms.with_file_name(row.name)).unwrap();
            forms::build_source(&self.forms);
        }
        jobs.extend(self.restore(&beside.iter().map(|row| command(row)).collect::<Vec<_>>())?);
        for (row, job) in in_place.into_iter().chain(beside).zip(jobs) {
            let to = place(row.name);
            let top = if row.in_place { self.forms.with_file_name(row.name) } else { to.clone() };
            if top.exists() {
                level_times(&top, (start, now()))?;
            }
            let (client, source) = (client(row), self.forms.clone());
            compare_form(row, &Side { client, to, top, source, job: self.bed.result(job)? }, table)?;
        }
        Ok(())
    }
}

#[test]
fn every_restore_is_that_of_the_stock_daemon_or_differs_as_documented() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    let begun = Instant::now();
    let mut ground = Ground::raise()?;
    let mut table = Table::new(StockRecord::open("restore_matrix")?, Fd::under_test()? == Fd::Stock);
    println!("backups: {:?}", begun.elapsed());
    ground.cells(&mut table)?;
    println!("cells: {:?}", begun.elapsed());
    ground.forms(&mut table)?;
    for client in CLIENTS {
        let [own, its] = [std::process::id(), ground.bed.client(client)?.pid()?].map(umask);
        assert_eq!(its?, own?, "the daemon lost its umask");
    }
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
