//! A job sends as much per second to the Storage Daemon as its limit says, wherever that is set.
//! The limits are so far apart that a host which stands still for a second makes none look like
//! another one, nor like none; how exact they are is shown with a virtual clock (`fd-transport`).
//!
//! A relay takes the time.

use std::fs;

use bed::{Bed, BedOptions, ClientOptions, Fd, JobResult, JobRow, Noise, PATIENCE, Relay, Result, wait_for};

/// What a job sends.
const SIZE: usize = 6_000_000;
/// The first part, which may come at once, and the last, which may not come in one piece, are not
/// counted.
const COUNTED: (usize, usize) = (1_200_000, 5_800_000);
/// After this much the operator changes the limit, and what is counted then.
const CHANGE: usize = 300_000;
const CHANGED: (usize, usize) = (2_800_000, COUNTED.1);
/// By how much a time may be off, and by how many seconds more: the relay or the daemon may stand
/// still.
const TOLERANCE: f64 = 0.05;
const STANDSTILL: f64 = 1.0;

/// A client whose daemon has a limit in its own configuration, and one of whose jobs the Director
/// limits.
fn client(fd: Fd, name: &str) -> ClientOptions {
    let mut client = ClientOptions::new(fd).named(name);
    client.file_daemon = vec!["Maximum Bandwidth Per Job = 700 kb/s".to_owned()];
    if name.ends_with("-dir") {
        client.fd_director = vec!["Maximum Bandwidth Per Job = 1400 kb/s".to_owned()];
    }
    client
}

/// Two clients of each daemon: one whose `FileDaemon` resource limits, and one where the Director
/// resource does.
fn stage(fds: &[(&str, Fd)], tls_psk: bool) -> Result<(Bed, Relay)> {
    let clients = fds.iter().flat_map(|&(name, fd)| [client(fd, name), client(fd, &format!("{name}-dir"))]);
    let mut options = BedOptions::new("bandwidth", clients)?;
    options.tls_psk = tls_psk;
    let relay = Relay::new()?;
    options.storage_port = Some(relay.port());
    for (name, _) in fds {
        options.director_resources.push(format!(
            "Job {{\nName = job-{name}\nType = Backup\nLevel = Full\nClient = {name}-fd\nFileSet = Source\n\
             Storage = {name}\nPool = {name}\nMessages = Standard\nMaximum Bandwidth = 2800 kb/s\n}}"
        ));
    }
    fs::write(options.source()?.join("noise"), Noise::new(1).bytes(SIZE)).unwrap();
    let mut bed = Bed::start(options)?;
    relay.aim(bed.storage().port());
    Ok((bed, relay))
}

/// What a job says first to the Storage Daemon; this much is never encrypted.
fn hello(job: &JobRow) -> String {
    format!("Hello Bacula SD: Start Job {} ", job.job)
}

fn rate(relay: &Relay, job: &JobResult, (from, to): (usize, usize)) -> f64 {
    relay.recorded_after(&hello(&job.row)).unwrap().rate(from, to).unwrap()
}

/// Whether the rate of these bytes is the limit.
fn is(rate: f64, limit: f64, (from, to): (usize, usize)) -> bool {
    let bytes = f64::from(u32::try_from(to - from).unwrap());
    let (time, right) = (bytes / rate, bytes / limit);
    (time - right).abs() <= right * TOLERANCE + STANDSTILL
}

#[test]
fn a_job_keeps_to_its_bandwidth() -> Result<()> {
    let (bed, relay) = stage(&[("stock", Fd::Stock), ("test", Fd::under_test()?)], false)?;
    let places = [("FileDaemon", "backup-@", 700e3), ("Director", "backup-@-dir", 1400e3), ("Job", "job-@", 2800e3)];
    let mut wrong = Vec::new();
    let commands: Vec<String> = places
        .iter()
        .flat_map(|(_, job, _)| ["stock", "test"].map(|name| format!("run job={} yes", job.replace('@', name))))
        .collect();
    let jobs = bed.queue_all(&commands)?;
    // And one whose limit the operator changes while it runs.
    let changed = bed.queue_all(&["stock", "test"].map(|name| format!("run job=backup-{name} yes")))?;
    for job in &changed {
        let hello = hello(&bed.catalog().job(*job)?);
        wait_for("the job to send", PATIENCE, || {
            let sent = relay.sent_after(&hello).unwrap_or(0);
            Ok(if sent >= CHANGE { Ok(()) } else { Err(format!("{sent} bytes")) })
        })?;
        bed.console(&[&format!("setbandwidth limit=1400kb/s jobid={job}")])?;
    }
    for ((place, _, limit), jobs) in places.iter().zip(jobs.chunks(2)) {
        let mut rates = Vec::new();
        for job in jobs {
            rates.push(rate(&relay, &bed.wait(*job)?.must_be_good()?, COUNTED));
        }
        println!("{place}: limit {limit}, stock {:.0}, ours {:.0}", rates[0], rates[1]);
        wrong.extend((!is(rates[1], *limit, COUNTED)).then(|| format!("{place}: {rates:?}, limit {limit}")));
    }
    let mut rates = Vec::new();
    for job in changed {
        let job = bed.wait(job)?.must_be_good()?;
        rates.push(rate(&relay, &job, CHANGED));
    }
    println!("changed: limit 1400000, stock {:.0}, ours {:.0}", rates[0], rates[1]);
    wrong.extend((!is(rates[1], 1400e3, CHANGED)).then(|| format!("changed: {rates:?}")));
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[test]
fn an_encrypted_job_keeps_to_its_bandwidth() -> Result<()> {
    let mut rates = Vec::new();
    for (name, fd) in [("stock", Fd::Stock), ("test", Fd::under_test()?)] {
        let (bed, relay) = stage(&[(name, fd)], true)?;
        let job = bed.backup(name, "")?.must_be_good()?;
        let line = relay.recorded_after(&hello(&job.row)).unwrap();
        assert!(!line.shows("/noise"), "in clear");
        rates.push(rate(&relay, &job, COUNTED));
    }
    println!("encrypted: limit 700000, stock {:.0}, ours {:.0}", rates[0], rates[1]);
    assert!(is(rates[1], 700e3, COUNTED), "{rates:?}");
    Ok(())
}
