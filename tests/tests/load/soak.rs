//! Job after job, and many at a time: what a daemon holds does not grow.

use std::fs;

use bed::{
    Bed, BedOptions, ClientOptions, Fd, Noise, PATIENCE, Restore, Result, idle, job_resource, resident, wait_for,
};

const CLIENT: &str = "test";

/// How long it is to last.
struct Form {
    /// Jobs in a row.
    jobs: usize,
    /// Jobs at a time: backups, backups with a script, verify jobs, restores.
    at_a_time: [usize; 4],
    /// What a daemon's memory may grow by between the warm-up and the end, bytes.
    slack: u64,
    /// For the daemons.
    environment: Vec<(String, String)>,
}

impl Form {
    fn wanted() -> Self {
        match std::env::var("SOAK_JOBS") {
            Ok(text) => {
                Self { jobs: text.parse().unwrap(), at_a_time: [12, 3, 3, 2], slack: 16 << 20, environment: Vec::new() }
            }
            // A C library that spreads its memory over one area after the other hides what a few
            // jobs leave behind.
            Err(_) => Self {
                jobs: 3,
                at_a_time: [3, 1, 1, 1],
                // More than two huge pages, which the kernel may give at any time.
                slack: 8 << 20,
                environment: vec![("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())],
            },
        }
    }
}

fn stage(form: &Form) -> Result<Bed> {
    let mut options = BedOptions::new("soak", [])?;
    let mut client = ClientOptions::new(Fd::under_test()?).named(CLIENT);
    client.job = vec!["Maximum Concurrent Jobs = 20".to_owned()];
    client.file_daemon = vec!["Maximum Concurrent Jobs = 60".to_owned()];
    client.environment.clone_from(&form.environment);
    options.clients.push(client);
    let job = |kind: &str, more: &str| job_resource(kind, CLIENT, "Source", more);
    options.director_resources.extend([
        job("row", "Type = Backup\nLevel = Full\nAccurate = yes\nMaximum Concurrent Jobs = 1"),
        job("init", "Type = Verify\nLevel = InitCatalog"),
        job("script", "Type = Backup\nLevel = Incremental\nClient Run Before Job = \"echo before\""),
    ]);
    options.director = vec!["Maximum Concurrent Jobs = 60".to_owned()];
    options.storage = vec!["Maximum Concurrent Jobs = 90".to_owned()];
    options.device = vec!["Maximum Concurrent Jobs = 60".to_owned()];
    let source = options.source()?;
    fs::write(source.join("large"), Noise::new(1).bytes(400_000)).unwrap();
    for number in 0..30 {
        fs::write(source.join(format!("file {number}")), format!("{number}\n").repeat(300)).unwrap();
    }
    Bed::start(options)
}

/// So many backups in a row.
fn in_a_row(bed: &Bed, count: usize) -> Result<Vec<u32>> {
    bed.run_all(&vec!["run job=row yes".to_owned(); count])
}

/// Backups, restores, verify jobs and scripts at a time, and console commands.
fn at_a_time(bed: &Bed, form: &Form, first: u32) -> Result<Vec<u32>> {
    let to = bed.folder().join("restored/soak");
    let restore = Restore { job: first, from: CLIENT, onto: CLIENT, to: &to, replace: "always" }.command();
    let backup = format!("run job=backup-{CLIENT} yes");
    let kinds = [&backup, "run job=script yes", "run job=init yes", &restore];
    let commands: Vec<String> = kinds
        .into_iter()
        .zip(form.at_a_time)
        .flat_map(|(command, count)| std::iter::repeat_n(command.to_owned(), count))
        .collect();
    let jobs = bed.run_all(&commands)?;
    bed.console(&[&format!("estimate job=backup-{CLIENT} listing"), &format!("status client={CLIENT}-fd")])?;
    Ok(jobs)
}

/// Descriptors, threads and memory of the daemon when its last session has ended.
fn held(bed: &mut Bed) -> Result<(usize, usize, u64)> {
    let pid = bed.client(CLIENT)?.pid()?;
    let (descriptors, threads) = idle(pid)?;
    Ok((descriptors, threads, resident(pid)?))
}

#[test]
fn a_thousand_jobs_leak_nothing() -> Result<()> {
    let form = Form::wanted();
    let mut bed = stage(&form)?;
    let first = in_a_row(&bed, 1)?;
    let mut jobs = at_a_time(&bed, &form, first[0])?;
    let before = held(&mut bed)?;
    // A thread that ends is there for a moment after its session.
    let settled = |bed: &mut Bed| {
        wait_for("no more descriptors and threads than before", PATIENCE, || {
            let now = held(bed)?;
            let is_more = now.0 > before.0 || now.1 > before.1;
            Ok(if is_more { Err(format!("{before:?}, then {now:?}")) } else { Ok(now) })
        })
    };
    let mut after = before;
    let mut left = form.jobs;
    while left > 0 {
        let now = left.min(100);
        jobs.extend(in_a_row(&bed, now)?);
        jobs.extend(at_a_time(&bed, &form, first[0])?);
        left -= now;
        after = settled(&mut bed)?;
        println!("{left} to go: {after:?}");
    }
    println!("{} jobs, before them: {before:?}", jobs.len());
    for job in &jobs {
        assert_eq!(bed.catalog().job(*job)?.status, 'T', "{}", bed.catalog().log(*job)?);
    }
    assert!(after.2 <= before.2 + form.slack, "descriptors, threads, memory: {before:?}, then {after:?}");
    Ok(())
}
