//! Peers that reach a port, or a place between two daemons, without a password. The stock daemon
//! beside ours shows what they can do to it.

use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc;

use bed::peer::{Frame, Peer, director_session, hello, key_of_password};
use bed::{
    Bed, BedError, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, ONLY_OURS, PATIENCE, Relay, Result,
    thread_names, usage, wait_for,
};

use super::{bed_in_clear, footprint_when_idle};

/// A Director of the File Daemon's configuration that is called, and in whose place a stranger
/// answers.
const CALLED: &str = "called-dir";

/// The reference and the daemon under test, with TLS as it is when nothing is said; nothing if
/// there is no second daemon.
fn both(label: &str) -> Result<Option<BedOptions>> {
    if Fd::under_test()? == Fd::Stock { Ok(None) } else { BedOptions::side_by_side(label).map(Some) }
}

/// What follows a `FileDaemon` resource, which it ends: a Director that the daemon calls at this
/// port. The resource that comes next ends it.
fn called(port: u16) -> Vec<String> {
    let port = format!("DIR Port = {port}");
    ["}", "Director {", &format!("Name = {CALLED}"), "Password = \"nobody knows it\"", "Connect To Director = yes"]
        .into_iter()
        .chain(["Address = 127.0.0.1", &port])
        .map(ToOwned::to_owned)
        .collect()
}

/// The stranger's two connections: the daemon's own challenge of one is sent back to it on the
/// other.
///
/// What the daemon says last: that it has let the stranger in, or why not.
fn reflect(port: u16, listener: &TcpListener) -> Result<String> {
    let mut made = Peer::connect("FD", port)?;
    made.send(hello(CALLED).as_bytes())?;
    let challenge = made.expect("auth cram-md5 <")?;
    let mut taken = Peer::accepted("FD that calls", listener)?;
    taken.expect("Hello ")?;
    taken.send(challenge.as_bytes())?;
    let answered = taken.receive_text()?;
    made.send(answered.as_bytes())?;
    if made.receive_text()? != "1000 OK auth\n" {
        return Ok(answered);
    }
    made.send(format!("auth cram-md5 <1.1@{CALLED}> ssl=0\n").as_bytes())?;
    made.receive()?;
    made.send(b"1000 OK auth\n")?;
    made.receive_text()
}

#[test]
fn a_reflected_challenge_logs_in_to_the_stock_daemon_only() -> Result<()> {
    let Some(mut options) = both("reflection")? else { return skip::test("both sides are the stock daemon") };
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    for (client, listener) in options.clients.iter_mut().zip(&listeners) {
        client.file_daemon = called(listener.local_addr().unwrap().port());
    }
    let mut bed = Bed::start(options)?;
    let ports = [bed.client("reference")?.port(), bed.client("test")?.port()];
    let [stock, ours] = [0, 1].map(|side| reflect(ports[side], &listeners[side]));
    assert_eq!(stock?, "2000 OK Hello 15\n");
    assert_eq!(ours?, "1999 Authorization failed.\n");
    // The operator gets a message.
    let told = format!("Director {CALLED} at 127.0.0.1 refused: the peer sent our own challenge back to us");
    wait_for("the message", PATIENCE, || {
        let mut peer = director_session(ports[1], 1)?;
        peer.send(b"verify level=nonsense\n")?;
        let said: Vec<_> = peer.rest()?.iter().map(Frame::text).collect();
        Ok(if said.iter().any(|line| line.contains(&told)) { Ok(()) } else { Err(format!("{said:?}")) })
    })
}

/// Whether anything of a job went over one of these relays in clear.
fn read_by(relay: &Relay, text: &str) -> bool {
    relay.recorded().iter().any(|line| line.shows(text))
}

#[test]
fn a_relay_that_strips_tls_reads_everything_unless_tls_is_required() -> Result<()> {
    let Some(mut options) = both("downgrade")? else { return skip::test("both sides are the stock daemon") };
    let mut strict = ClientOptions::new(Fd::Ours).named("strict");
    strict.settings.push("tls.require = true".to_owned());
    options.clients.push(strict);
    std::fs::write(options.source()?.join("file"), "the data that nobody else may read\n".repeat(100)).unwrap();
    let names = ["reference", "test", "strict"];
    let relays = [Relay::new()?, Relay::new()?, Relay::new()?];
    for (client, relay) in options.clients.iter_mut().zip(&relays) {
        client.director_port = Some(relay.port());
    }
    let storage = Relay::new()?;
    options.storage_port = Some(storage.port());
    let mut bed = Bed::start(options)?;
    storage.aim(bed.storage().port());
    for (name, relay) in names.into_iter().zip(&relays) {
        relay.aim(bed.client(name)?.port());
        relay.change("tlspsk=100", "tlspsk=000");
    }
    // What a File Daemon says to the Storage Daemon, whose key the relay has read on its way from
    // the Director.
    storage.change("tlspsk=100", "tlspsk=000");
    storage.change("tlspsk=200", "tlspsk=000");
    for (name, relay) in names.into_iter().zip(&relays).take(2) {
        bed.backup(name, "")?.must_be_good()?;
        assert!(read_by(relay, &format!("Job=backup-{name}.")), "{name}: the Director's commands are encrypted");
        assert!(read_by(&storage, &format!("Start Job backup-{name}.")), "{name}: no Storage Daemon was called");
    }
    assert!(read_by(&storage, "append open session"), "the data is encrypted");
    // A daemon that requires encryption does not let the Director in …
    let refused = bed.console(&["status client=strict-fd"])?;
    assert!(!refused.contains("Daemon started"), "{refused}");
    let [.., relay] = &relays;
    assert!(!read_by(relay, "auth cram-md5") && !read_by(relay, "JobId="), "something is proven in clear");
    // … and does not call a Storage Daemon in clear. It says why.
    relay.change_nothing();
    let failed = bed.backup("strict", "")?.must_be('f')?;
    let wanted = "the connection is not encrypted, and tls.require in bacula-fd.toml refuses that";
    assert!(failed.log.contains(wanted), "{}", failed.log);
    let log = bed.client("strict")?.daemon().output();
    assert!(log.contains("a Director failed to authenticate") && log.contains(wanted), "{log}");
    let lines = storage.recorded();
    let line = lines.iter().find(|line| line.shows("Start Job backup-strict.")).unwrap();
    assert!(!line.shows("append open session"), "the data is in clear");
    let asked = line.received.windows(14).any(|window| window == b"auth cram-md5 ");
    assert!(asked && !line.shows("1000 OK auth"), "the Storage Daemon's challenge was answered in clear");
    storage.change_nothing();
    bed.backup("strict", "")?.must_be_good()?;
    Ok(())
}

/// Says hello as the Director does and leaves it at that.
fn stranger(port: u16) -> Result<Peer> {
    let mut peer = Peer::connect("FD", port)?;
    peer.send(hello(DIRECTOR).as_bytes())?;
    Ok(peer)
}

/// As many as the stock daemon serves at a time, and more than ours lets wait for their login.
const STRANGERS: usize = 60;
/// `Maximum Concurrent Jobs` of the bed's daemons.
const SERVED: usize = 20;

#[test]
fn unauthenticated_hellos_lock_the_director_out_of_the_stock_daemon_only() -> Result<()> {
    let Some(mut options) = both("hellos")? else { return skip::test("both sides are the stock daemon") };
    options.tls_psk = false;
    for client in &mut options.clients {
        // The strangers' own time is not what lets the Director in.
        client.settings.push("connection.login = 3600".to_owned());
    }
    let mut bed = Bed::start(options)?;
    let ports = [bed.client("reference")?.port(), bed.client("test")?.port()];
    let mut strangers = Vec::new();
    for port in ports {
        for _ in 0..STRANGERS {
            strangers.push(stranger(port)?);
        }
    }
    let mut waiting = stranger(ports[0])?;
    let mut sessions = (0..SERVED).map(|_| director_session(ports[1], 0)).collect::<Result<Vec<_>>>()?;
    // A Director that has logged in when all places are taken waits, as with the stock daemon, and
    // keeps its place.
    let mut next = stranger(ports[1])?;
    next.log_in(&key_of_password(FD_PASSWORD), DIRECTOR)?;
    for _ in 0..STRANGERS {
        strangers.push(stranger(ports[1])?);
    }
    let mut told_to_go = stranger(ports[1])?;
    told_to_go.expect("auth cram-md5 <")?;
    // Who came later was heard, and it waits.
    next.must_be_silent()?;
    sessions.pop();
    next.expect("2000 OK Hello 15\n")?;
    // All this time the stock daemon has not come to a caller that it would have let in.
    waiting.must_be_silent()
}

/// Strangers that the daemon refuses, and of which it tells the log.
fn refuse(port: u16, strangers: usize) -> Result<()> {
    let mut peers = (0..strangers).map(|_| stranger(port)).collect::<Result<Vec<_>>>()?;
    for peer in &mut peers {
        peer.expect("auth cram-md5 <")?;
        peer.send(b"a wrong answer")?;
    }
    peers.iter_mut().try_for_each(|peer| peer.expect("1999 Authorization failed").map(drop))
}

#[test]
fn a_host_log_that_is_not_read_keeps_no_director_out() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon waits for the log");
    let mut options = BedOptions::new("stopped-log", [ClientOptions::new(Fd::under_test()?).named("test")])?.in_clear();
    let place = options.folder.path().join("log.socket");
    let (log, full) = (UnixDatagram::bind(&place).unwrap(), UnixDatagram::unbound().unwrap());
    options.clients[0].messages = vec!["Syslog = all".to_owned()];
    options.clients[0].wrapper = bed::with_log(options.folder.path(), &place);
    let mut bed = Bed::start(options)?;
    let port = bed.client("test")?.port();
    for socket in [&log, &full] {
        socket.set_nonblocking(true).unwrap();
    }
    while full.send_to(b"full", &place).is_ok() {}
    refuse(port, STRANGERS)?;
    super::assert_serves(&bed)?;
    let mut line = [0; 4096];
    while log.recv(&mut line).is_ok() {}
    // Whoever reads again learns that it was not told everything.
    refuse(port, 1)?;
    wait_for("the number of lost messages", PATIENCE, || {
        let told = log.recv(&mut line).map_or_else(|_| "".into(), |length| String::from_utf8_lossy(&line[..length]));
        Ok(if told.contains(" are lost: their reader on this host did not read") {
            Ok(())
        } else {
            Err(told.into_owned())
        })
    })
}

/// The stock daemon writes it as it came, to whoever reads the log at a terminal, and closes at
/// once.
#[test]
fn a_call_for_a_job_that_is_not_there_orders_no_terminal_about_and_waits() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::new("odd-call", [ClientOptions::new(Fd::Ours).named("test")])?;
    let place = options.folder.path().join("log.socket");
    let log = UnixDatagram::bind(&place).unwrap();
    log.set_nonblocking(true).unwrap();
    options.clients[0].messages = vec!["Syslog = all".to_owned()];
    options.clients[0].wrapper = bed::with_log(options.folder.path(), &place);
    let mut bed = Bed::start(options)?;
    let mut peer = Peer::connect("FD", bed.client("test")?.port())?;
    peer.send(b"Hello FD: Bacula Storage calling Start Job \x1b]0;x\x07\x1b[2J 30008\n")?;
    let mut line = [0; 4096];
    wait_for("the line about the call", PATIENCE, || {
        let told = log.recv(&mut line).map_or_else(|_| "".into(), |length| String::from_utf8_lossy(&line[..length]));
        let is_it = told.contains(r"SD connect failed: Job name not found: \x1b]0;x\x07\x1b[2J");
        Ok(if is_it { Ok(()) } else { Err(told.into_owned()) })
    })?;
    peer.must_be_silent()
}

/// Whoever knows the name of a job can call in the Storage Daemon's place.
#[test]
fn a_call_for_a_job_is_that_of_a_stranger_until_the_login_and_a_second_one_is_told() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let mut bed = bed_in_clear("storage-calls")?;
    let port = bed.client("test")?.port();
    let mut director = director_session(port, 7)?;
    let (tell, told) = mpsc::channel();
    for _ in 0..2 {
        let mut peer = Peer::connect("FD", port)?;
        peer.send(b"Hello FD: Bacula Storage calling Start Job script.2026-01-01_00.00.00_07 30008\n")?;
        let tell = tell.clone();
        std::thread::spawn(move || {
            let frame = peer.receive();
            tell.send((frame, peer)).unwrap();
        });
    }
    let (frame, _second) = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(frame?, Frame::Closed);
    director.send(b"storage address=127.0.0.1 port=0 ssl=0\n")?;
    let (frame, mut first) = told.recv_timeout(PATIENCE).unwrap();
    assert!(frame?.text().starts_with("Hello Bacula SD: Start Job script."));
    first.send(&[b'x'; 501])?;
    assert!(director.receive_text()?.contains(" tried to connect two times."));
    let refused = director.receive_text()?;
    let why = "Recv caps from SD failed. ERR=Packet size=501 too big from \"client:";
    assert!(refused.contains(why), "{refused}");
    Ok(())
}

#[test]
fn a_login_takes_no_longer_than_the_setting_says() -> Result<()> {
    let mut client = ClientOptions::new(Fd::Ours).named("test");
    // Longer than a host stands still: a login that answers has to be in time.
    client.settings.push("connection.login = 10".to_owned());
    let mut bed = Bed::start(BedOptions::new("slow-login", [client])?)?;
    let port = bed.client("test")?.port();
    // Before the first packet, in the middle of it, before the answer, and before TLS begins.
    let mut silent = Peer::connect("FD", port)?;
    let mut half = Peer::connect("FD", port)?;
    half.send_bytes(&[0, 0, 0, 60, b'H'])?;
    let mut clear = stranger(port)?;
    clear.expect("auth cram-md5 <")?;
    let mut encrypted = Peer::connect("FD", port)?;
    encrypted.send(hello(DIRECTOR).replace("tlspsk=0", "tlspsk=100").as_bytes())?;
    encrypted.expect("starttls tlspsk=100\n")?;
    for peer in [&mut silent, &mut half] {
        assert_eq!(peer.rest()?, []);
    }
    for peer in [&mut clear, &mut encrypted] {
        peer.expect("2999 Authentication failed.\n")?;
        peer.rest()?;
    }
    // After the login there is no such limit.
    let answered = bed.console(&["status client=test-fd"])?;
    assert!(answered.contains("Daemon started"), "{answered}");
    Ok(())
}

/// A frame of 16 KB that unpacks to nearly four million zeros, announced as compressed.
fn bomb() -> Vec<u8> {
    // One literal, then the longest match with it that the block has room for, then the literals
    // that end every block.
    let mut block = vec![0x1f, 0, 1, 0];
    block.resize(15_600, 0xff);
    block.extend([0, 0x50, 0, 0, 0, 0, 0]);
    let length = u32::try_from(block.len()).unwrap();
    [&(0x4000_0000 | length).to_be_bytes()[..], &block].concat()
}

#[test]
fn a_first_packet_is_not_decompressed_to_megabytes() -> Result<()> {
    let mut bed = Bed::start(BedOptions::new("bomb", [ClientOptions::new(Fd::Ours).named("test")])?)?;
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    // What a login costs, before anything is measured.
    drop(stranger(port)?.expect("starttls").err());
    let before = usage(pid)?.peak_memory;
    let mut strangers = (0..SERVED).map(|_| Peer::connect("FD", port)).collect::<Result<Vec<_>>>()?;
    for peer in &mut strangers {
        peer.send_bytes(&bomb())?;
    }
    for peer in &mut strangers {
        assert_eq!(peer.rest()?, []);
    }
    let more = usage(pid)?.peak_memory.saturating_sub(before);
    assert!(more < 16 << 20, "{SERVED} packets of 16 KB cost {more} bytes of memory");
    Ok(())
}

/// The package restarts an upgraded daemon when it has no thread whose name begins so.
const SESSION: &str = "session ";

#[test]
fn a_caller_is_a_session_when_it_has_logged_in() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let mut bed = bed_in_clear("caller")?;
    footprint_when_idle(&mut bed)?;
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    let is_there = |kind: &str| Ok::<_, BedError>(thread_names(pid)?.iter().any(|name| name.starts_with(kind)));
    let _stranger = Peer::connect("FD", port)?;
    wait_for("the caller's thread", PATIENCE, || {
        Ok(if is_there("caller ")? { Ok(()) } else { Err(format!("{:?}", thread_names(pid)?)) })
    })?;
    assert!(!is_there(SESSION)?);
    let _director = director_session(port, 0)?;
    assert!(is_there(SESSION)? && is_there("caller ")?);
    Ok(())
}
