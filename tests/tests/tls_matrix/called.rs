//! Storage Daemons call the File Daemon (`SD Calls Client`): it is the client of TLS all the same.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use bed::{Bed, BedOptions, ClientOptions, Fd, Folder, ReservedPort, Result, in_parallel};

use crate::states::{SIDES, State};
use crate::{daemon_of, papers, storage};

/// The addresses of the sockets that they call. On one of IPv6 they have the address
/// `::ffff:127.0.0.1`.
const SOCKETS: [(&str, &str); 2] = [("v4", "127.0.0.1"), ("v6", "::")];

#[test]
fn a_storage_daemon_that_calls_has_its_certificate_judged_by_its_address() -> Result<()> {
    skip::when!(TcpListener::bind("[::1]:0").is_err(), "this host has no IPv6");
    let folder = Folder::new("tls-called")?;
    let papers = papers(&folder)?;
    let mut clients = Vec::new();
    for side in SIDES {
        for (socket, _) in SOCKETS {
            let mut client = ClientOptions::new(daemon_of(side)?).named(&format!("{side}-{socket}"));
            client.file_daemon = State::of("certreq").lines(&papers, "fd");
            client.dir_client = vec!["SD Calls Client = yes".to_owned()];
            clients.push(client);
        }
    }
    let mut options = BedOptions::new("tls-called", clients)?;
    options.storage = storage::lines(State::of("certreq"), &papers);
    fs::write(options.source()?.join("file"), "data\n").unwrap();
    let mut bed = Bed::prepare(options)?;
    let calls = SIDES.map(|side| SOCKETS.map(|(socket, address)| (format!("{side}-{socket}"), address))).concat();
    let mut ports = Vec::new();
    for (name, address) in &calls {
        let (called, client) = (ReservedPort::new()?, bed.client(name)?);
        let (port, called_port) = (client.port(), called.number());
        ports.push(called);
        let new = format!(
            "FDAddresses = {{ ip = {{ addr = 127.0.0.1; port = {port} }}\n\
             ip = {{ addr = {address}; port = {called_port} }} }}\n"
        );
        replace(&client.config, &format!("FDPort = {port}\nFDAddress = 127.0.0.1\n"), &new);
        let director = bed.folder().join("etc/bacula-dir.conf");
        replace(&director, &format!("FDPort = {port}\n"), &format!("FDPort = {called_port}\n"));
    }
    bed.storage().start()?;
    bed.director().start()?;
    for (name, _) in &calls {
        bed.client(name)?.daemon().start()?;
    }
    let jobs = in_parallel(calls.len(), &calls, |(name, _)| bed.backup(name, ""))?;
    for ((name, _), job) in calls.iter().zip(jobs) {
        // The stock daemon refuses it, and says nothing of the reason.
        let is_refused = name.ends_with("v6") && (name.starts_with("reference") || Fd::under_test()? == Fd::Stock);
        assert_eq!(job.row.status, if is_refused { 'f' } else { 'T' }, "{name}: {}", job.log);
    }
    Ok(())
}

fn replace(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "{text}");
    fs::write(file, text.replace(old, new)).unwrap();
}
