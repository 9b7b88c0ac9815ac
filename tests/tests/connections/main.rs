//! The directions of calls: the File Daemon calls the Director, the Storage Daemon calls the File
//! Daemon. With the stock daemon beside the one under test.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

mod addresses;
mod hosts_access;
mod nat;
mod proxy;

use std::path::Path;

use bed::peer::EOD;
use bed::{
    Bed, BedOptions, ClientOptions, Fd, Noise, PATIENCE, RecordRules, Relay, ReservedPort, Result, TreeRules, argv,
    below, compare_records, compare_trees, read_once, run, wait_for,
};

const CLIENTS: [&str; 2] = ["reference", "test"];

/// The source tree of these tests: a few files, one of them large.
fn fill(options: &BedOptions) -> Result<()> {
    let source = options.source()?;
    std::fs::write(source.join("large"), Noise::new(1).bytes(3_000_000)).unwrap();
    for number in 0..20 {
        std::fs::write(source.join(format!("file {number}")), format!("{number}\n")).unwrap();
    }
    // The first read moves the time of access, further ones do not.
    read_once(&source)
}

/// Backs up with both clients, compares the volumes, and restores what the one under test has
/// saved.
fn back_up_and_restore(bed: &Bed) -> Result<()> {
    let [reference, test] = CLIENTS.map(|client| bed.backup(client, "").and_then(bed::JobResult::must_be_good));
    let (reference, test) = (reference?, test?);
    let records = |job: &bed::JobResult, client: &str| bed.records(&job.row, client);
    let comparison =
        compare_records(records(&reference, "reference")?, records(&test, "test")?, RecordRules::default())?;
    assert!(comparison.is_equal(), "{}", comparison.text());
    assert_eq!(reference.messages_of("reference-fd"), test.messages_of("test-fd"));
    let target = bed.folder().join("restored/here");
    bed.restore_own("test", test.row.id, &target)?.must_be_good()?;
    let source = bed.folder().join("source");
    let restored = below(&target, &source);
    let differences = compare_trees(&source, &restored, TreeRules::restored())?;
    assert!(differences.is_empty(), "{differences:?}");
    Ok(())
}

/// Gives a client an `/etc` of its own, `etc-NAME` in the bed's folder, with these hosts. A fresh
/// host has none. Only root can.
fn with_own_etc(client: &mut ClientOptions, folder: &Path, hosts: &str) -> Result<()> {
    let etc = folder.join(format!("etc-{}", client.name));
    run(&argv(["cp", "-a", "/etc", etc.to_str().unwrap()]), b"")?;
    std::fs::write(etc.join("hosts"), hosts).unwrap();
    client.mount_first(&format!("mount --bind '{}' /etc", etc.display()));
    Ok(())
}

/// A client that can't be called has called the Director, and waits.
fn wait_until_registered(bed: &Bed, client: &str) -> Result<()> {
    bed.wait_for_status(client, "Daemon started ").map(drop)
}

#[test]
fn an_unreachable_client_calls_the_director() -> Result<()> {
    let mut options = BedOptions::side_by_side("calls-director")?;
    fill(&options)?;
    let nowhere = ReservedPort::new()?;
    for client in &mut options.clients {
        client.director_port = Some(nowhere.number());
        client.dir_client = vec!["Allow FD Connections = yes".to_owned()];
        client.fd_director = ["Connect To Director = yes", "Address = 127.0.0.1", "DIR Port = @director-port@"]
            .map(ToOwned::to_owned)
            .to_vec();
    }
    let mut bed = Bed::start(options)?;
    for client in CLIENTS {
        wait_until_registered(&bed, client)?;
    }
    back_up_and_restore(&bed)?;
    // Each use takes the connection, and the next one comes at once: with the five seconds of a
    // call that has failed between two, there would be fewer.
    let mut used = 0;
    wait_for("the client to call after each use", PATIENCE, || {
        let status = bed.console(&["status client=test-fd"])?;
        used += u32::from(status.contains("Daemon started "));
        Ok(if used == 30 { Ok(()) } else { Err(format!("{used} uses: {status}")) })
    })?;
    // A Director that was away is called again by the client itself.
    bed.director().stop()?;
    bed.director().start()?;
    for client in CLIENTS {
        wait_until_registered(&bed, client)?;
    }
    Ok(())
}

#[test]
fn a_storage_daemon_that_calls_the_client_gets_the_data() -> Result<()> {
    let mut options = BedOptions::side_by_side("sd-calls")?;
    fill(&options)?;
    for client in &mut options.clients {
        client.dir_client = vec!["SD Calls Client = yes".to_owned()];
    }
    let bed = Bed::start(options)?;
    back_up_and_restore(&bed)
}

/// `tls.require`, in each direction of calls: unmodified Directors and Storage Daemons encrypt, so
/// nothing changes for them.
#[test]
fn calls_of_clients_work_where_encryption_is_required() -> Result<()> {
    let client = |name: &str| {
        let mut client = ClientOptions::new(Fd::Ours).named(name);
        client.settings.push("tls.require = true".to_owned());
        client
    };
    let mut options = BedOptions::new("required", [client("calls"), client("called")])?;
    fill(&options)?;
    let nowhere = ReservedPort::new()?;
    if let [calls, called] = &mut options.clients[..] {
        calls.director_port = Some(nowhere.number());
        calls.dir_client = vec!["Allow FD Connections = yes".to_owned()];
        calls.fd_director = ["Connect To Director = yes", "Address = 127.0.0.1", "DIR Port = @director-port@"]
            .map(ToOwned::to_owned)
            .to_vec();
        called.dir_client = vec!["SD Calls Client = yes".to_owned()];
    }
    let bed = Bed::start(options)?;
    for client in ["calls", "called"] {
        wait_until_registered(&bed, client)?;
        let job = bed.backup(client, "")?.must_be_good()?;
        assert!(!job.log.contains("without encryption"), "{}", job.log);
    }
    Ok(())
}

#[test]
fn packets_between_polls_are_as_many_as_in_the_stock_daemon() -> Result<()> {
    let mut options = BedOptions::side_by_side("packet-check")?;
    // Without a heartbeat the stock daemon waits for its first answer for ever (reference 04 §1.4).
    options.clients.push(ClientOptions::new(Fd::Ours).named("quiet"));
    fill(&options)?;
    let relay = Relay::new()?;
    options.storage_port = Some(relay.port());
    options.tls_psk = false;
    for client in &mut options.clients {
        client.file_daemon = ["SD Packet Check = 2", "Comm Compression = no"].map(ToOwned::to_owned).to_vec();
        if client.name == "quiet" {
            client.file_daemon.push("Heartbeat Interval = 0".to_owned());
        }
    }
    let mut bed = Bed::start(options)?;
    relay.aim(bed.storage().port());
    back_up_and_restore(&bed)?;
    bed.backup("quiet", "")?.must_be_good()?;
    let lines = relay.recorded();
    for daemon in ["reference", "test", "quiet"] {
        let hello = format!("Hello Bacula SD: Start Job backup-{daemon}");
        let mut asked = lines.iter().filter(|line| line.shows(&hello)).map(|line| packets_before_polls(&line.sent));
        let (Some(polls), None) = (asked.next(), asked.next()) else { panic!("not one line of {daemon}") };
        let distances: Vec<_> = polls.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!((polls[0], distances.len() >= 2), (3, true), "{daemon}: {polls:?}");
        let mut before = polls[0];
        for distance in distances {
            // Doubled if less than three seconds have passed, which is for the host to decide.
            assert!(distance == before || distance == 2 * before - 1, "{daemon}: {polls:?}");
            before = distance;
        }
    }
    Ok(())
}

/// How many packets of file data go before each `POLL` of a stream.
fn packets_before_polls(mut sent: &[u8]) -> Vec<usize> {
    const POLL: i32 = -5;
    let (mut polls, mut packets) = (Vec::new(), 0);
    // Whether a record's head comes next, and whether its packets are a file's data.
    let (mut head, mut is_data) = (true, false);
    while let Some((length, rest)) = sent.split_first_chunk::<4>() {
        sent = rest;
        match i32::from_be_bytes(*length) {
            EOD => head = true,
            POLL => polls.push(packets),
            length @ 1.. => {
                let (payload, rest) = sent.split_at(usize::try_from(length).unwrap());
                sent = rest;
                if std::mem::replace(&mut head, false) {
                    is_data = payload.split(|byte| *byte == b' ').nth(1) == Some(b"2");
                } else if is_data {
                    packets += 1;
                }
            }
            _ => {}
        }
    }
    polls
}
