//! Where a daemon listens, where it calls from, and how long it calls.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc;

use bed::peer::{Frame, Peer, director_session, packet};
use bed::{Bed, BedOptions, Relay, ReservedPort, Result};

use super::{CLIENTS, back_up_and_restore, fill, with_own_etc};

/// An address that no daemon has by default.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 5));

/// The daemon at this address answers a `Ping`.
fn assert_pings(address: &str) -> Result<()> {
    let mut peer = Peer::over(address, TcpStream::connect(address).unwrap())?;
    peer.send_bytes(&packet(b"Ping"))?;
    peer.expect("2000 Ping OK\n").map(drop)
}

fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

#[test]
fn every_address_is_bound_and_calls_have_their_source_address() -> Result<()> {
    let mut options = BedOptions::side_by_side("addresses")?;
    fill(&options)?;
    let relay = Relay::new()?;
    options.storage_port = Some(relay.port());
    for client in &mut options.clients {
        client.file_daemon = vec![format!("FD Source Address = {SOURCE}")];
    }
    let mut bed = Bed::prepare(options)?;
    let six = has_ipv6();
    for name in CLIENTS {
        let client = bed.client(name)?;
        let port = client.port();
        let text = fs::read_to_string(&client.config).unwrap();
        let old = format!("FDPort = {port}\nFDAddress = 127.0.0.1\n");
        assert!(text.contains(&old), "{text}");
        let mut new = format!(
            "FDAddresses = {{ ipv4 = {{ addr = 127.0.0.1; port = {port} }}\nip = {{ addr = 127.0.0.2; port = {port} }}\n"
        );
        if six {
            new.push_str("ipv6 = { addr = ::1; port = PORT }\n");
        }
        let new = new.replace("PORT", &port.to_string());
        fs::write(&client.config, text.replace(&old, &(new + "}\n"))).unwrap();
        // The Director comes by IPv6.
        let director = bed.folder().join("etc/bacula-dir.conf");
        let text = fs::read_to_string(&director).unwrap();
        let old = format!("Address = 127.0.0.1\nFDPort = {port}\n");
        assert!(text.contains(&old), "{text}");
        if six {
            fs::write(&director, text.replace(&old, &format!("Address = ::1\nFDPort = {port}\n"))).unwrap();
        }
    }
    bed.storage().start()?;
    relay.aim(bed.storage().port());
    bed.director().start()?;
    for name in CLIENTS {
        bed.client(name)?.daemon().start()?;
        let port = bed.client(name)?.port();
        let addresses = ["127.0.0.1", "127.0.0.2", "[::1]"];
        for address in addresses.iter().take(if six { 3 } else { 2 }) {
            assert_pings(&format!("{address}:{port}"))?;
        }
    }
    back_up_and_restore(&bed)?;
    // Two backups and a restore by File Daemons, beside what the Director says to the Storage
    // Daemon.
    let from_there = relay.recorded().iter().filter(|line| line.from == Some(SOURCE)).count();
    assert_eq!(from_there, 3);
    Ok(())
}

/// What a daemon reports about a Storage Daemon that doesn't run there; times and names left out.
fn calls_in_vain(port: u16, host: &str, dead: u16) -> Result<Vec<String>> {
    let mut peer = director_session(port, 7)?;
    peer.send(format!("storage address={host} port={dead} ssl=0\n").as_bytes())?;
    let mut said = Vec::new();
    loop {
        let text = match peer.receive()? {
            Frame::Data(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Frame::Closed => return Ok(said),
            Frame::Signal(_) => continue,
        };
        let done = text.starts_with("2902 ");
        // `level=` holds the time.
        said.push(text.split(" level=").map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit())).collect());
        if done {
            return Ok(said);
        }
    }
}

#[test]
fn an_absent_storage_daemon_is_called_for_the_configured_time() -> Result<()> {
    let mut options = BedOptions::side_by_side("sd-connect")?.in_clear();
    for client in &mut options.clients {
        client.file_daemon = vec!["SD Connect Timeout = 12 seconds".to_owned()];
    }
    let mut bed = Bed::start(options)?;
    let dead = ReservedPort::new()?;
    let ports = [bed.client("reference")?.port(), bed.client("test")?.port()];
    let said = std::thread::scope(|scope| {
        let calling = ports.map(|port| {
            let dead = dead.number();
            scope.spawn(move || calls_in_vain(port, "127.0.0.1", dead))
        });
        calling.map(|calling| calling.join().unwrap())
    });
    let [stock, ours] = said;
    let (stock, ours) = (stock?, ours?);
    let names = |said: Vec<String>| -> Vec<String> {
        said.into_iter().map(|line| line.replace("reference-fd", "test-fd")).collect()
    };
    let (stock, ours) = (names(stock), names(ours));
    assert!(stock.iter().any(|line| line.contains("[FE0039] Unable to connect to Storage daemon")), "{stock:#?}");
    assert_eq!(stock, ours);
    Ok(())
}

/// `::1` comes first, but no socket of IPv6 can have a source address of IPv4; and the kernel takes
/// no keepalive time of a day.
#[test]
fn what_the_kernel_refuses_keeps_no_client_from_its_storage_daemon() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::side_by_side("refused-options")?.in_clear();
    for client in &mut options.clients {
        client.file_daemon = vec![format!("FD Source Address = {SOURCE}"), "Heartbeat Interval = 1 day".to_owned()];
        let six = if has_ipv6() { "::1 both\n" } else { "" };
        with_own_etc(client, options.folder.path(), &format!("{six}127.0.0.1 both\n"))?;
    }
    let mut bed = Bed::start(options)?;
    for name in CLIENTS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (called, callers) = mpsc::channel();
        std::thread::spawn(move || {
            while let Ok((_, from)) = listener.accept() {
                called.send(from.ip()).unwrap();
            }
        });
        let said = calls_in_vain(bed.client(name)?.port(), "both", port)?;
        assert_eq!(callers.try_iter().collect::<Vec<_>>(), [SOURCE], "{name}: {said:#?}");
    }
    Ok(())
}
