//! Several beds side by side, each with its share of the rows: the jobs of one bed wait for one
//! Director and for one device of each client.

use bed::{
    Bed, BedOptions, ClientOptions, Fd, Process, Result, StockRecord, argv, in_order_of_names, in_parallel,
    mount_memory, next_second,
};

use crate::plan::Plan;
use crate::restores::{self, Restored};
use crate::row::{Done, Row, Tree};
use crate::told::{Disk, Teller, sessions};
use crate::trees;

/// Full or Base; Incremental, Differential or Full on a base; the next of these.
const PHASES: usize = 3;

/// What comparing a row with the record found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) files: u64,
    pub(crate) records: usize,
    /// Files that came back.
    pub(crate) restored: u64,
    /// Of the daemon under test.
    pub(crate) differences: Vec<String>,
    /// Of a stock daemon beside it, whose record may be stale.
    pub(crate) of_stock: Vec<String>,
}

impl Verdict {
    /// The differences of what these clients have done together.
    fn found(&mut self, clients: &[&ClientOptions]) -> &mut Vec<String> {
        let is_stock = clients.iter().all(|client| client.fd == Fd::Stock);
        if is_stock { &mut self.of_stock } else { &mut self.differences }
    }
}

/// Runs everything, and compares; one verdict for each row.
pub(crate) fn verdicts(plan: &Plan) -> Result<Vec<Verdict>> {
    let record = StockRecord::open("compliance")?;
    let (failing, good): (Vec<_>, Vec<_>) = (0..plan.rows.len()).partition(|&row| plan.rows[row].status == 'f');
    let mut shares: Vec<Vec<usize>> =
        (0..plan.beds).map(|bed| good.iter().copied().skip(bed).step_by(plan.beds).collect()).collect();
    shares.push(failing);
    let of_shares = in_parallel(shares.len(), &shares, |numbers| {
        let rows: Vec<_> = numbers.iter().map(|&number| plan.rows[number].clone()).collect();
        if rows.is_empty() { Ok(Vec::new()) } else { share(plan, &record, &rows) }
    })?;
    let mut verdicts: Vec<_> = plan.rows.iter().map(|_| Verdict::default()).collect();
    for (numbers, of_share) in shares.iter().zip(of_shares) {
        for (&number, verdict) in numbers.iter().zip(of_share) {
            verdicts[number] = verdict;
        }
    }
    Ok(verdicts)
}

/// Runs the rows of one bed.
fn share(plan: &Plan, record: &StockRecord, rows: &[Row]) -> Result<Vec<Verdict>> {
    let mut options = BedOptions::new(plan.label, plan.clients.iter().cloned())?;
    options.every_message = true;
    let source = options.source()?;
    // Read in the same order everywhere.
    mount_memory(&source)?;
    trees::build(&source)?;
    in_order_of_names(&source)?;
    trees::mount(&source)?;
    let here = source.join(Tree::Allowed.name()).display().to_string();
    for line in options.clients.iter_mut().flat_map(|client| &mut client.fd_director) {
        *line = line.replace('@', &here);
    }
    // How many directories more than usual lie above the bed's folder.
    let deeper = options.folder.path().components().count().saturating_sub(3);
    options.file_sets = rows.iter().map(|row| row.file_set(&source.join(row.tree.name()), deeper)).collect();
    let of_clients = |row: &Row| plan.clients_of(row).iter().map(|client| row.jobs(&client.name)).collect::<Vec<_>>();
    options.director_resources = rows.iter().flat_map(of_clients).flatten().collect();
    let mut bed = Bed::start(options)?;
    let (mut done, mut disk) = (Vec::new(), Disk::default());
    for phase in 0..PHASES {
        if !rows.iter().any(|row| row.command(phase, "").is_some()) {
            continue;
        }
        if phase > 0 {
            next_second()?;
            trees::change(&source, phase)?;
        }
        next_second()?;
        done.extend(run_phase(&mut bed, plan, rows, phase, || disk.look(&source))?);
    }
    let mut verdicts: Vec<_> = rows.iter().map(|_| Verdict::default()).collect();
    for (number, client) in plan.clients.iter().enumerate() {
        let sessions = sessions(&bed, &client.name)?;
        for Done { row, phase, jobs } in done.iter().filter(|done| done.jobs.len() > number) {
            let (row, verdict) = (&rows[*row], &mut verdicts[*row]);
            let job = bed.result(jobs[number])?;
            let teller = Teller { bed: &bed, disk: &disk, row, client: &client.name, sessions: &sessions };
            let (records, parts) = teller.told(&job)?;
            (verdict.records, verdict.files) = (verdict.records + records, verdict.files + job.row.files);
            for (part, lines) in parts {
                let what = format!("{phase} {} {part}", row.levels[*phase]);
                verdict.found(&[client]).extend(record.differences(row.name, &what, &row.input(), &lines)?);
            }
        }
    }
    for one in restores::restore(&bed, plan, rows, &done)? {
        let (row, verdict) = (&rows[one.row], &mut verdicts[one.row]);
        verdict.restored += one.files;
        // What comes back is what was saved, whoever restores it; where not, one of them is ours.
        let by = [one.by.0, one.by.1].map(|client| &plan.clients[client]);
        verdict.found(&by).extend(compare(record, row, &one)?);
    }
    Ok(verdicts)
}

/// What a restore has that the stock daemon's has not, and the other way round. That ours keeps
/// times of directories which the stock daemon loses is no difference.
fn compare(record: &StockRecord, row: &Row, restored: &Restored) -> Result<Vec<String>> {
    let mut found = record.differences(row.name, "restored", &row.input(), &restored.lines)?;
    found.retain(|text| {
        let told = text.strip_prefix("restored only of ours: ");
        !told.is_some_and(|told| told.contains(": mtime ") || told.contains(": atime "))
    });
    Ok(found)
}

/// Runs one phase of all rows: those that may run side by side at once, then, after a look at the
/// tree, which they change, the others one by one.
fn run_phase(bed: &mut Bed, plan: &Plan, rows: &[Row], phase: usize, look: impl FnOnce()) -> Result<Vec<Done>> {
    let wanted = |alone: bool| {
        rows.iter().enumerate().filter(move |(_, row)| row.alone == alone && row.command(phase, "").is_some())
    };
    let commands = |row: &Row| -> Vec<_> {
        plan.clients_of(row).iter().map(|client| row.command(phase, &client.name).unwrap()).collect()
    };
    let batch: Vec<_> = wanted(false).collect();
    let ids = bed.queue_all(&batch.iter().flat_map(|(_, row)| commands(row)).collect::<Vec<_>>())?;
    let mut of_rows = ids.iter().copied();
    let mut done: Vec<_> = batch
        .iter()
        .map(|(number, row)| Done {
            row: *number,
            phase,
            jobs: of_rows.by_ref().take(plan.clients_of(row).len()).collect(),
        })
        .collect();
    if rows.iter().any(|row| row.status == 'f') {
        // Told that a job has failed before it came to the Storage Daemon, that one takes up to two
        // minutes to give way. It is there again for a Director that has yet to tell it.
        bed.wait_for_messages(&ids, "Bad response to Include command")?;
        bed.storage().kill()?;
        bed.storage().start()?;
    }
    bed.wait_for_reports(&ids)?;
    look();
    for (number, row) in wanted(true) {
        let mut jobs = Vec::new();
        for command in commands(row) {
            let fifo = bed.folder().join("source").join(Tree::Written.name()).join("fifo");
            let script = format!("yes through the pipe | dd of={} bs=60000 count=1 iflag=fullblock", fifo.display());
            let _writer = Process::start("writer", &argv(["sh", "-c", &script]), &bed.folder().join("log/writer.out"))?;
            jobs.extend(bed.queue_all(&[command])?);
            bed.wait_for_reports(&jobs)?;
        }
        done.push(Done { row: number, phase, jobs });
    }
    Ok(done)
}
