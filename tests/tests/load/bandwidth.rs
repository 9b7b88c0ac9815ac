//! A job sends as much per second to the Storage Daemon as its limit says, wherever that is set.
//! The limits are so far apart that a host which stands still makes none look like another one, nor
//! like none; how exact they are is shown with a virtual clock (`fd-transport`).
//!
//! A relay takes the time.

use std::fs;

use bed::{
    Bed, BedOptions, ClientOptions, Fd, JobResult, JobRow, Noise, PATIENCE, Relay, Result, job_resource, wait_for,
};

/// What a job sends.
const SIZE: usize = 6_000_000;
/// The first part, which may come at once, and the last, which may not come in one piece, are not
/// counted.
const COUNTED: (usize, usize) = (1_200_000, 5_800_000);
/// After this much the operator changes the limit, and what is counted then.
const CHANGE: usize = 300_000;
const CHANGED: (usize, usize) = (2_800_000, COUNTED.1);
/// By how much of it a time may be too short, and by how many seconds more: the relay may stand
/// still at the beginning.
const TOLERANCE: f64 = 0.05;
const STANDSTILL: f64 = 1.0;
/// A host that stands still makes a job late in some of these parts, and not in all of them. With
/// half of the limit, which another place has, each would take twice as long.
const PARTS: usize = 8;
const LATEST: f64 = 1.5;

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

/// Two clients: one whose `FileDaemon` resource limits, and one where the Director resource does.
fn stage(tls_psk: bool) -> Result<(Bed, Relay)> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("bandwidth", [client(fd, "test"), client(fd, "test-dir")])?;
    options.tls_psk = tls_psk;
    let relay = Relay::new()?;
    options.storage_port = Some(relay.port());
    let more = "Type = Backup\nLevel = Full\nMaximum Bandwidth = 2800 kb/s";
    options.director_resources.push(job_resource("job-test", "test", "Source", more));
    fs::write(options.source()?.join("noise"), Noise::new(1).bytes(SIZE)).unwrap();
    let mut bed = Bed::start(options)?;
    relay.aim(bed.storage().port());
    Ok((bed, relay))
}

/// What a job says first to the Storage Daemon; this much is never encrypted.
fn hello(job: &JobRow) -> String {
    format!("Hello Bacula SD: Start Job {} ", job.job)
}

/// What is wrong with the rate of these bytes of a job.
fn wrong(what: &str, relay: &Relay, job: &JobResult, limit: f64, (from, to): (usize, usize)) -> Option<String> {
    let recorded = relay.recorded_after(&hello(&job.row)).unwrap();
    let rate = recorded.rate(from, to).unwrap();
    let part = (to - from) / PARTS;
    let rates = (0..PARTS).filter_map(|number| recorded.rate(from + number * part, from + (number + 1) * part));
    let fastest = rates.fold(0.0, f64::max);
    let bytes = f64::from(u32::try_from(to - from).unwrap());
    let is_off = bytes / rate < bytes / limit * (1.0 - TOLERANCE) - STANDSTILL || fastest < limit / LATEST;
    is_off.then(|| format!("{what}: limit {limit}, rate {rate:.0}, of the fastest part {fastest:.0}"))
}

#[test]
fn a_job_keeps_to_its_bandwidth() -> Result<()> {
    let (bed, relay) = stage(false)?;
    let places =
        [("FileDaemon", "backup-test", 700e3), ("Director", "backup-test-dir", 1400e3), ("Job", "job-test", 2800e3)];
    let jobs = bed.queue_all(&places.map(|(_, job, _)| format!("run job={job} yes")))?;
    // And one whose limit the operator changes while it runs.
    let changed = bed.queue("run job=backup-test yes")?;
    let hello = hello(&bed.catalog().job(changed)?);
    wait_for("the job to send", PATIENCE, || {
        let sent = relay.sent_after(&hello).unwrap_or(0);
        Ok(if sent >= CHANGE { Ok(()) } else { Err(format!("{sent} bytes")) })
    })?;
    bed.console(&[&format!("setbandwidth limit=1400kb/s jobid={changed}")])?;
    let mut found = Vec::new();
    for ((place, _, limit), job) in places.iter().zip(jobs) {
        found.extend(wrong(place, &relay, &bed.wait(job)?.must_be_good()?, *limit, COUNTED));
    }
    found.extend(wrong("changed", &relay, &bed.wait(changed)?.must_be_good()?, 1400e3, CHANGED));
    assert!(found.is_empty(), "{found:#?}");
    Ok(())
}

#[test]
fn an_encrypted_job_keeps_to_its_bandwidth() -> Result<()> {
    let (bed, relay) = stage(true)?;
    let job = bed.backup("test", "")?.must_be_good()?;
    assert!(!relay.recorded_after(&hello(&job.row)).unwrap().shows("/noise"), "in clear");
    assert_eq!(wrong("encrypted", &relay, &job, 700e3, COUNTED), None);
    Ok(())
}
