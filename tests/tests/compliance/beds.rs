//! Several beds side by side, each with its share of the rows: the jobs of one bed wait for one
//! Director and for one device of each client.

use std::thread;

use bed::{Bed, BedOptions, ClientOptions, Process, Result, argv, next_second};

use crate::restores;
use crate::row::{Done, Row, Tree};
use crate::trees;
use crate::verdict::{Verdict, compare, sessions};

/// Full or Base; Incremental, Differential or Full on a base; the next of these.
const PHASES: usize = 3;

/// What is to be run.
pub(crate) struct Plan {
    pub(crate) label: &'static str,
    pub(crate) rows: Vec<Row>,
    /// The first one is what the others are compared with.
    pub(crate) clients: Vec<ClientOptions>,
    /// How many beds share the rows.
    pub(crate) beds: usize,
    /// Whether each of the first two clients restores what the other saved.
    pub(crate) restores: bool,
}

/// Runs everything, and compares; one verdict for each row.
pub(crate) fn verdicts(plan: &Plan) -> Result<Vec<Verdict>> {
    let (failing, good): (Vec<_>, Vec<_>) = (0..plan.rows.len()).partition(|&row| plan.rows[row].status == 'f');
    let mut shares: Vec<Vec<usize>> =
        (0..plan.beds).map(|bed| good.iter().copied().skip(bed).step_by(plan.beds).collect()).collect();
    shares.push(failing);
    let of_shares = thread::scope(|scope| {
        let share = |numbers: &[usize]| {
            let rows: Vec<_> = numbers.iter().map(|&number| plan.rows[number].clone()).collect();
            scope.spawn(move || if rows.is_empty() { Ok(Vec::new()) } else { share(plan, &rows) })
        };
        let threads: Vec<_> = shares.iter().map(|numbers| share(numbers)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<_>>>()
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
fn share(plan: &Plan, rows: &[Row]) -> Result<Vec<Verdict>> {
    let mut options = BedOptions::new(plan.label, plan.clients.iter().cloned())?;
    options.every_message = true;
    let source = options.source()?;
    let mounts = trees::build(&options)?;
    let here = source.join(Tree::Allowed.name()).display().to_string();
    for line in options.clients.iter_mut().flat_map(|client| &mut client.fd_director) {
        *line = line.replace('@', &here);
    }
    options.file_sets = rows.iter().map(|row| row.file_set(&source.join(row.tree.name()))).collect();
    let of_clients = |row: &Row| plan.clients.iter().map(|client| row.jobs(&client.name)).collect::<Vec<_>>();
    options.director_resources = rows.iter().flat_map(of_clients).flatten().collect();
    if plan.restores {
        let file_set = rows.first().map_or("", |row| row.name);
        options.director_resources.extend(plan.clients.iter().flat_map(|client| restores::job(&client.name, file_set)));
    }
    let mut bed = Bed::start(options)?;
    // Dropped before the bed, whose folder can't go while something is mounted in it.
    let mounts = mounts;
    let mut done = Vec::new();
    for phase in 0..PHASES {
        if !rows.iter().any(|row| row.command(phase, "").is_some()) {
            continue;
        }
        if phase > 0 {
            next_second()?;
            trees::change(&source, phase)?;
        }
        next_second()?;
        done.extend(run_phase(&mut bed, plan, rows, phase)?);
    }
    drop(mounts);
    let mut verdicts: Vec<_> = rows.iter().map(|_| Verdict::default()).collect();
    let names: Vec<_> = plan.clients.iter().map(|client| client.name.as_str()).collect();
    let volumes = names.iter().map(|name| sessions(&bed, name)).collect::<Result<Vec<_>>>()?;
    for Done { row: number, phase, jobs } in &done {
        let jobs = jobs.iter().map(|&id| bed.result(id)).collect::<Result<Vec<_>>>()?;
        let level = rows[*number].levels[*phase];
        let tree = source.join(rows[*number].tree.name()).display().to_string();
        let whole = &mut verdicts[*number];
        for other in 1..names.len() {
            let pair = [(names[0], &jobs[0], &volumes[0]), (names[other], &jobs[other], &volumes[other])];
            let verdict = compare(&bed, &rows[*number], pair)?;
            whole.files += verdict.files;
            whole.records += verdict.records;
            let told = verdict.differences.into_iter().map(|text| format!("{level}: {}", text.replace(&tree, "@")));
            whole.differences.extend(told);
        }
    }
    if plan.restores {
        restores::cross(&bed, rows, &done, &mut verdicts)?;
    }

    Ok(verdicts)
}

/// Runs one phase of all rows: those that may run side by side at once, then the others one by one.
fn run_phase(bed: &mut Bed, plan: &Plan, rows: &[Row], phase: usize) -> Result<Vec<Done>> {
    let wanted = |alone: bool| {
        rows.iter().enumerate().filter(move |(_, row)| row.alone == alone && row.command(phase, "").is_some())
    };
    let commands =
        |row: &Row| -> Vec<_> { plan.clients.iter().map(|client| row.command(phase, &client.name).unwrap()).collect() };
    let batch: Vec<_> = wanted(false).collect();
    let ids = bed.queue_all(&batch.iter().flat_map(|(_, row)| commands(row)).collect::<Vec<_>>())?;
    let jobs = ids.chunks(plan.clients.len()).map(<[u32]>::to_vec);
    let mut done: Vec<_> = batch.iter().zip(jobs).map(|((row, _), jobs)| Done { row: *row, phase, jobs }).collect();
    if rows.iter().any(|row| row.status == 'f') {
        // Told that a job has failed before it came to the Storage Daemon, that one takes up to two
        // minutes to give way.
        bed.wait_for_messages(&ids, "Bad response to Include command")?;
        bed.storage().kill()?;
    }
    bed.wait_for_reports(&ids)?;
    for (number, row) in wanted(true) {
        let mut jobs = Vec::new();
        for command in commands(row) {
            let fifo = bed.folder().join("source/walk/fifo");
            let script = format!("yes through the pipe | dd of={} bs=60000 count=1 iflag=fullblock", fifo.display());
            let _writer = Process::start("writer", &argv(["sh", "-c", &script]), &bed.folder().join("log/writer.out"))?;
            jobs.extend(bed.queue_all(&[command])?);
            bed.wait_for_reports(&jobs)?;
        }
        done.push(Done { row: number, phase, jobs });
    }
    Ok(done)
}
