//! `hosts.allow` and `hosts.deny`: each daemon in a mount namespace with an `/etc` of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use bed::peer::{Frame, Peer, logged_in, packet};
use bed::{Bed, BedOptions, ClientOptions, DIRECTOR, Fd, PATIENCE, Result, wait_for};

use socket2::{Domain, Socket, Type};

use super::with_own_etc;

/// `hosts.allow`, `hosts.deny`, and whether 127.0.0.1 may connect. The name of both daemons is put
/// in for `@`, and an `@` for `%`. The host says that the user is `tester`.
const RULES: [(&str, &str, bool); 52] = [
    ("", "", true),
    ("", "ALL: ALL\n", false),
    ("@: ALL\n", "ALL: ALL\n", true),
    ("bacula-fd: ALL\n", "ALL: ALL\n", false),
    ("@: 127.0.0.1\n", "ALL: ALL\n", true),
    ("@: 127.0.0.2\n", "ALL: ALL\n", false),
    ("@: 127.\n", "ALL: ALL\n", true),
    ("@: 127.0.0.0/8\n", "ALL: ALL\n", true),
    ("@: 127.0.0.0/255.0.0.0\n", "ALL: ALL\n", true),
    ("@: 10.0.0.0/8\n", "ALL: ALL\n", false),
    ("@: localhost\n", "ALL: ALL\n", true),
    ("@: local*\n", "ALL: ALL\n", true),
    ("@: LOCAL\n", "ALL: ALL\n", true),
    ("@: .example.org\n", "ALL: ALL\n", false),
    ("@: ALL EXCEPT 127.0.0.1\n", "ALL: ALL\n", false),
    ("@: ALL EXCEPT 127.0.0.0/8 EXCEPT localhost\n", "ALL: ALL\n", true),
    ("ALL EXCEPT @: ALL\n", "ALL: ALL\n", false),
    ("# @: ALL\n@ \\\n: ALL : ALLOW\n", "ALL: ALL\n", true),
    ("@: ALL : DENY\n", "", false),
    ("", "@: UNKNOWN\n", true),
    ("@: tester%127.0.0.1\n", "ALL: ALL\n", true),
    ("@: TEST*%localhost\n", "ALL: ALL\n", true),
    ("@: other%127.0.0.1\n", "ALL: ALL\n", false),
    ("@%127.0.0.1: ALL\n", "ALL: ALL\n", true),
    ("@%127.0.0.2: ALL\n", "ALL: ALL\n", false),
    ("@%localhost: ALL\n", "ALL: ALL\n", true),
    ("", "ALL%127.0.0.2: ALL\n", true),
    ("@: UNKNOWN%127.0.0.1\n", "ALL: ALL\n", false),
    ("@: %group\n", "ALL: ALL\n", false),
    ("", "@: tester%127.0.0.1\n", false),
    ("", "@: other%127.0.0.1\n", true),
    // A line without an end, or one that is too long, ends its file: nothing more is allowed, and
    // everything is denied.
    ("@: ALL", "ALL: ALL\n", false),
    ("@: ALL\nsshd: ALL", "ALL: ALL\n", true),
    ("", "sshd: ALL", false),
    ("", "# comment", false),
    ("", "sshd: ALL\\\n", false),
    ("@: ALL \\\n", "ALL: ALL\n", false),
    ("", "@: 10.0.0.1\0\n", false),
    ("", "KNOWN: ALL\n", false),
    ("@: 0.0.0.0/0\n", "ALL: ALL\n", false),
    ("@: 0.0.0.0/0.0.0.0\n", "ALL: ALL\n", true),
    ("@: [127.0.0.1]\n", "ALL: ALL\n", false),
    // An option that is not right refuses.
    ("@: ALL :\n", "", false),
    ("@: ALL : allow : deny\n", "", false),
    ("@: ALL : allow x\n", "", false),
    ("@: ALL : grant\n", "", false),
    ("@: ALL : severity auth.info : umask 022 : nice : setenv A b : user root : keepalive\n", "ALL: ALL\n", true),
    ("@: ALL : severity auth.warn\n", "", false),
    ("@: ALL : umask 022 allow\n", "", false),
    ("@: ALL : user nosuch\n", "", false),
    ("@: ALL : keepalive yes\n", "", false),
    ("", "@: ALL : umask 0777 : ALLOW\n", true),
];

/// Whether the daemon serves us: it answers a `Ping`, or closes without a byte.
fn is_served(port: u16) -> Result<bool> {
    let mut peer = Peer::connect("FD", port)?;
    // The daemon may have closed already.
    let _ = peer.send_bytes(&packet(b"Ping"));
    match peer.receive()? {
        Frame::Data(answer) => {
            assert_eq!(answer, b"2000 Ping OK\n");
            Ok(true)
        }
        other => {
            assert_eq!(other, Frame::Closed);
            Ok(false)
        }
    }
}

fn write_rules(etc: &Path, name: &str, allow: &str, deny: &str) {
    for (file, text) in [("hosts.allow", allow), ("hosts.deny", deny)] {
        fs::write(etc.join(file), text.replace('@', name).replace('%', "@")).unwrap();
    }
}

/// Says that the user of each connection is `tester` (RFC 1413).
fn name_users() -> Result<()> {
    let listener = at_port_of_users(Ipv4Addr::LOCALHOST)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut ports = String::new();
            // A daemon that does not wait for its answer will be seen by what it decides.
            let _ = BufReader::new(&stream).read_line(&mut ports);
            let _ = writeln!(&stream, "{} : USERID : UNIX : tester\r", ports.trim());
        }
    });
    Ok(())
}

/// The number of the port is fixed, and another run of this test may have it.
fn at_port_of_users(address: Ipv4Addr) -> Result<TcpListener> {
    wait_for("port 113", PATIENCE, || Ok(TcpListener::bind((address, 113)).map_err(|error| error.to_string())))
}

/// The host of the strangers: it takes each question who a connection's user is, and answers a byte
/// a second, without an end.
fn name_no_users() -> Result<()> {
    let listener = at_port_of_users(STRANGERS)?;
    std::thread::spawn(move || {
        let (keeps_open, closes) = mpsc::channel::<()>();
        let mut asked = Vec::new();
        listener.set_nonblocking(true).unwrap();
        while closes.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            asked.extend(std::iter::from_fn(|| listener.accept().ok()));
            asked.retain(|(stream, _)| (&mut &*stream).write_all(b"x").is_ok());
        }
        drop(keeps_open);
    });
    Ok(())
}

/// More callers than have a place before their login.
const MANY: usize = 60;
const STRANGERS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

#[test]
fn strangers_whose_host_never_ends_its_answer_keep_no_director_out() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::new("slow-names", [ClientOptions::new(Fd::Ours).named("test")])?.in_clear();
    with_own_etc(&mut options.clients[0], options.folder.path(), "127.0.0.1 localhost\n")?;
    let folder = options.folder.path().to_owned();
    let mut bed = Bed::start(options)?;
    write_rules(&folder.join("etc-test"), "test-fd", "@: user%127.0.0.2, 127.0.0.1\n", "ALL: ALL\n");
    name_no_users()?;
    let port = bed.client("test")?.port();
    let strangers: Vec<TcpStream> = (0..MANY)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::from((STRANGERS, 0)).into()).unwrap();
            socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()).unwrap();
            socket.into()
        })
        .collect();
    assert!(is_served(port)?);
    assert_eq!(strangers.len(), MANY);
    Ok(())
}

/// What the daemon sends a Director at the end of its connection.
fn last_words(port: u16) -> Result<Vec<String>> {
    let mut peer = logged_in(port, DIRECTOR)?;
    peer.send(b"no such command\n")?;
    Ok(peer.rest()?.iter().map(Frame::text).collect())
}

#[test]
fn hosts_access_is_that_of_the_stock_daemon() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::side_by_side("hosts-access")?.in_clear();
    for client in &mut options.clients {
        // Rules name localhost.
        with_own_etc(client, options.folder.path(), "127.0.0.1 localhost\n")?;
    }
    name_users()?;
    let folder = options.folder.path().to_owned();
    let mut bed = Bed::start(options)?;
    // A line may have 2,047 bytes, with its end.
    let long = [(2046, true), (2047, false)].map(|(length, wanted)| ("#".repeat(length) + "\n", wanted));
    let long = long.iter().map(|(deny, wanted)| ("", deny.as_str(), *wanted));
    for (allow, deny, wanted) in RULES.into_iter().chain(long) {
        for client in super::CLIENTS {
            write_rules(&folder.join(format!("etc-{client}")), &format!("{client}-fd"), allow, deny);
            let served = is_served(bed.client(client)?.port())?;
            assert_eq!(served, wanted, "{client}: allow {allow:?}, deny {deny:?}");
        }
    }
    for client in super::CLIENTS {
        write_rules(&folder.join(format!("etc-{client}")), client, "", "");
        let told = last_words(bed.client(client)?.port())?;
        let head = format!("{client}-fd JobId 0: Security Alert: bnet_server.c:201 Connection from 127.0.0.1:");
        let refusals = told.iter().filter(|line| line.contains(&head) && line.ends_with(" refused by hosts.access\n"));
        assert!(refusals.count() > 0, "{client}: {told:?}");
    }
    Ok(())
}
