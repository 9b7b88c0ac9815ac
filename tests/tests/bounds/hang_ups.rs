//! `setdebug … hangup=N`: the connection to the Storage Daemon ends where it does with the stock
//! daemon, and the incomplete job goes on later.

use std::fs;

use bed::{Bed, BedOptions, Fd, JobResult, Noise, Relay, Result, set_fixed_times};

const CLIENTS: [&str; 2] = ["refer", "under"];

/// What is compared of a job: its end, its counters, what its daemon said, and where the line ends.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    end: (char, u64, u64, u32),
    errors: Option<String>,
    said: Vec<String>,
    records: Vec<String>,
}

/// The heads of the records that went over the line, with the number of packets of each, and what
/// came last.
fn records(mut sent: &[u8]) -> Vec<String> {
    let mut records: Vec<String> = Vec::new();
    let (mut open, mut packets) = (None, 0);
    // What was said before the data is the daemon's own.
    let start = b"append data ";
    let at = sent.windows(start.len()).position(|window| window == start).unwrap();
    let end = sent.iter().skip(at).position(|byte| *byte == b'\n').unwrap();
    sent = sent.get(at + end + 1..).unwrap();
    while let Some((length, rest)) = sent.split_first_chunk::<4>() {
        sent = rest;
        let length = i32::from_be_bytes(*length);
        if length < 0 {
            if let Some(head) = open.take() {
                records.push(format!("{head}: {packets} packets"));
            }
            packets = 0;
            records.push(format!("signal {length}"));
            continue;
        }
        // A bit says that the line's compression was at work.
        let (payload, rest) = sent.split_at(usize::try_from(length & 0x3fff_ffff).unwrap());
        sent = rest;
        if payload.starts_with(b"append ") {
            // The number of the session is the job's own.
            records.push("append".to_owned());
            break;
        }
        match open {
            Some(_) => packets += 1,
            None => open = Some(String::from_utf8_lossy(payload).into_owned()),
        }
    }
    records
}

struct Stage {
    bed: Bed,
    relay: Relay,
}

impl Stage {
    fn set(label: &str, settings: &[&str]) -> Result<Self> {
        let mut options = BedOptions::side_by_side(label)?;
        for (client, name) in options.clients.iter_mut().zip(CLIENTS) {
            name.clone_into(&mut client.name);
            // Else the Director runs the job again in half an hour.
            client.job = vec!["Reschedule Incomplete Jobs = no".to_owned()];
            client.file_daemon = settings.iter().map(ToString::to_string).collect();
        }
        options.tls_psk = false;
        options.every_message = true;
        let relay = Relay::new()?;
        options.storage_port = Some(relay.port());
        let source = options.source()?;
        for number in 0..7 {
            fs::write(source.join(format!("small {number}")), Noise::new(number).bytes(1000)).unwrap();
        }
        fs::write(source.join("words"), Noise::new(8).text(300_000)).unwrap();
        fs::write(source.join("large"), Noise::new(9).bytes(2_000_000)).unwrap();
        set_fixed_times(&source)?;
        let mut bed = Bed::start(options)?;
        relay.aim(bed.storage().port());
        Ok(Self { bed, relay })
    }

    fn say(&self, client: &str, setting: &str) -> Result<()> {
        let said = self.bed.console(&[&format!("setdebug client={client}-fd level=0 {setting}")])?;
        assert!(said.contains(&format!(" {setting} ")), "{said}");
        Ok(())
    }

    fn seen(&self, client: &str, job: &JobResult) -> Seen {
        let line = self.relay.recorded_after(&format!("Hello Bacula SD: Start Job {} ", job.row.job));
        let said = job.plain_messages(client).into_iter().filter(|line| line.contains("hangup"));
        Seen {
            end: (job.row.status, job.row.files, job.row.bytes, job.row.errors),
            errors: job.report().get("Non-fatal FD errors").cloned(),
            said: said.collect(),
            records: line.map(|line| records(&line.sent)).unwrap_or_default(),
        }
    }

    /// A backup of each with this setting.
    fn both(&self, setting: &str) -> Result<[(Seen, JobResult); 2]> {
        let mut seen = Vec::new();
        for client in CLIENTS {
            self.say(client, setting)?;
            let job = self.bed.backup(client, "")?;
            seen.push((self.seen(client, &job), job));
        }
        Ok(seen.try_into().ok().unwrap())
    }
}

#[test]
fn connections_end_where_the_stock_daemon_s_do() -> Result<()> {
    let stage = Stage::set("hang-up", &["Comm Compression = no"])?;
    for setting in ["hangup=3", "hangup=-4", "hangup=-1000", "hangup=-9000"] {
        let [(stock, _), (ours, _)] = stage.both(setting)?;
        assert_eq!(stock, ours, "{setting}");
        assert_eq!(stock.end.0, if setting == "hangup=-9000" { 'T' } else { 'I' }, "{setting}");
    }
    Ok(())
}

/// With the line's compression on, as it is when nothing is said.
#[test]
fn a_job_goes_on_after_its_connection_has_ended_once() -> Result<()> {
    let stage = Stage::set("hang-up-resume", &[])?;
    for setting in ["hangup=5", "hangup=-1000"] {
        let stopped = stage.both(setting)?;
        let mut ended = Vec::new();
        for (client, (seen, job)) in CLIENTS.into_iter().zip(&stopped) {
            assert_eq!(seen.end.0, 'I', "{setting} {client}");
            // It works once: the next job, and this one when it goes on, is not cut off again.
            let shown = stage.bed.console(&[&format!("setdebug client={client}-fd level=0")])?;
            assert!(shown.contains(" hangup=0 "), "{client}: {shown}");
            let reports = stage.bed.reports_of(job.row.id)?;
            stage.bed.console(&[&format!("resume incomplete jobid={} yes", job.row.id)])?;
            let job = stage.bed.wait_again(job.row.id, reports)?.must_be_good()?;
            ended.push((job.row.files, stage.bed.catalog().files(job.row.id)?.len()));
        }
        assert_eq!(stopped[0].0.said, stopped[1].0.said);
        assert_eq!(stopped[0].0.end, stopped[1].0.end, "{setting}");
        assert_eq!(ended[0], ended[1], "{setting}");
    }
    Ok(())
}

/// The stock daemon cuts a restore off, too.
#[test]
fn a_restore_is_not_cut_off() -> Result<()> {
    let stage = Stage::set("hang-up-restore", &[])?;
    let fd = Fd::under_test()?;
    for (client, is_stock) in CLIENTS.into_iter().zip([true, fd == Fd::Stock]) {
        let saved = stage.bed.backup(client, "")?.must_be_good()?;
        stage.say(client, "hangup=3")?;
        let to = stage.bed.folder().join(format!("to-{client}"));
        let restored = stage.bed.restore_own(client, saved.row.id, &to)?;
        assert_eq!(restored.row.status, if is_stock { 'I' } else { 'T' }, "{client}: {}", restored.log);
        let shown = stage.bed.console(&[&format!("setdebug client={client}-fd level=0")])?;
        assert!(shown.contains(if is_stock { " hangup=0 " } else { " hangup=3 " }), "{client}: {shown}");
    }
    Ok(())
}
