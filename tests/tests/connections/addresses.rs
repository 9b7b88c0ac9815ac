//! Where a daemon listens, where it calls from, and how long it calls.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};

use bed::peer::{Frame, Peer, director_session, packet};
use bed::{Bed, BedOptions, Relay, ReservedPort, Result, is_listening, wait_for};

use super::{CLIENTS, back_up_and_restore, fill};

/// An address that no daemon has by default.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 5));

/// The daemon at this address answers a `Ping`.
fn assert_pings(address: &str) -> Result<()> {
    let mut peer = Peer::over(address, TcpStream::connect(address).unwrap())?;
    peer.send_bytes(&packet(b"Ping"))?;
    peer.expect("2000 Ping OK\n").map(drop)
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
    let six = TcpListener::bind("[::1]:0").is_ok();
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
        wait_for("the daemon to listen", bed::PATIENCE, || {
            Ok(if is_listening(port)? { Ok(()) } else { Err(String::new()) })
        })?;
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

/// What a daemon reports about a Storage Daemon that doesn't run; times and names left out.
fn calls_in_vain(port: u16, dead: u16) -> Result<Vec<String>> {
    let mut peer = director_session(port, 7)?;
    peer.send(format!("storage address=127.0.0.1 port={dead} ssl=0\n").as_bytes())?;
    let mut said = Vec::new();
    loop {
        let Frame::Data(bytes) = peer.receive()? else { continue };
        let text = String::from_utf8_lossy(&bytes).into_owned();
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
    let mut options = BedOptions::side_by_side("sd-connect")?;
    options.tls_psk = false;
    for client in &mut options.clients {
        client.file_daemon = vec!["SD Connect Timeout = 12 seconds".to_owned()];
    }
    let mut bed = Bed::start(options)?;
    let dead = ReservedPort::new()?;
    let ports = [bed.client("reference")?.port(), bed.client("test")?.port()];
    let said = std::thread::scope(|scope| {
        let calling = ports.map(|port| {
            let dead = dead.number();
            scope.spawn(move || calls_in_vain(port, dead))
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
