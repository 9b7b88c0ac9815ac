//! The address of the metrics: one that is the daemon's own is refused, and one that is taken is
//! waited for.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use bed::{Bed, BedOptions, ClientOptions, Fd, PATIENCE, ReservedPort, Result, our_program, run, wait_for};

use crate::metrics::get;

#[test]
fn the_metrics_come_when_their_address_becomes_free() -> Result<()> {
    // Reserved to the end: what another program got between its two users would be no daemon.
    let reserved = ReservedPort::new()?;
    let (port, other) = (reserved.number(), TcpListener::bind(reserved.address()).unwrap());
    let mut client = ClientOptions::new(Fd::Ours).named("test");
    client.settings = vec![format!("metrics.address = \"127.0.0.1:{port}\"")];
    let mut bed = Bed::start(BedOptions::new("metrics-address", [client])?)?;
    // The daemon runs without them, and says so.
    wait_for("the daemon's word about them", PATIENCE, || {
        let said = bed.client("test")?.daemon().output();
        let is_told = said.contains("metrics can't be served yet") && said.contains("Address already in use");
        Ok(if is_told { Ok(()) } else { Err(said) })
    })?;
    assert!(bed.console(&["status client=test-fd"])?.contains("No Jobs running."));
    drop(other);
    // It is the daemon's word that counts: a program that another test is just starting may listen
    // with a copy of `other` for a moment.
    wait_for("the metrics", PATIENCE, || {
        let said = bed.client("test")?.daemon().output();
        Ok(if said.contains("metrics are served now") { Ok(()) } else { Err(said) })
    })?;
    assert!(get(port, "/metrics").contains("bacula_fd_build_info{version="));
    let mut peer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    peer.write_all(b"HEAD /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut head = String::new();
    peer.read_to_string(&mut head).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head:?}");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    assert!(length.parse::<usize>().unwrap() > 1000, "{head:?}");
    Ok(())
}

#[test]
fn an_address_of_metrics_that_is_the_daemon_s_own_is_refused() -> Result<()> {
    let folder = bed::Folder::new("metrics-own")?;
    let work = folder.path().display();
    let config = folder.path().join("bacula-fd.conf");
    fs::write(
        &config,
        format!(
            "Director {{ Name = d; Password = x }}\n\
             FileDaemon {{ Name = f; FDport = 9102; WorkingDirectory = {work}; Pid Directory = {work} }}\n\
             Messages {{ Name = m; director = d = all }}\n"
        ),
    )
    .unwrap();
    let test = |address: &str| {
        fs::write(folder.path().join("bacula-fd.toml"), format!("metrics.address = \"{address}\"\n")).unwrap();
        run(&[our_program()?.into(), "-t".into(), "-c".into(), config.clone().into()], b"")
    };
    let refused = test("127.0.0.1:9102")?;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.text());
    let said = refused.text();
    assert!(said.contains("bacula-fd.toml: metrics.address") && said.contains("another one, such as"), "{said}");
    let good = test("127.0.0.1:19102")?;
    assert_eq!((good.status.code(), good.text().as_str()), (Some(0), ""));
    Ok(())
}
