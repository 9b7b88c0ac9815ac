//! A console that reaches the Director only through a File Daemon (`proxy`), and a Director that
//! takes such a connection over. Everything is sent to the stock daemon as well, and the answers
//! are compared.

use std::net::TcpListener;
use std::thread;

use bed::peer::{EOD, Frame, Peer, TERMINATE, answer, hello, key_of_password, logged_in};
use bed::{
    Bed, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, PATIENCE, RecordRules, ReservedPort, Result,
    compare_records, wait_for,
};

use super::CLIENTS;

/// Directors of the File Daemon's configuration that may do little but `proxy`.
const NAMED: &str = "names-a-console";
const FIRST: &str = "takes-the-first";
const ITSELF: &str = "is-the-console";
const WRONG: &str = "has-no-password";
const DEAD: &str = "calls-nobody";
/// The console may prompt.
const MAIN_PROMPT: i32 = -18;
/// The Director uses the connection itself.
const FD_CALLED: i32 = -30;

/// A resource in lines that follow the `FileDaemon` resource, which they end. The last one is ended
/// by the next.
fn another(kind: &str, name: &str, more: &[&str]) -> Vec<String> {
    let head = ["}", &format!("{kind} {{"), &format!("Name = {name}")].map(ToOwned::to_owned);
    head.into_iter().chain(more.iter().map(ToString::to_string)).collect()
}

fn remote(name: &str, password: &str, more: &[&str]) -> Vec<String> {
    let password = format!("Password = \"{password}\"");
    another("Director", name, &[&[password.as_str(), "Remote = yes"], more].concat())
}

/// Everything that comes, as lines, until the console may say something again.
fn hear(peer: &mut Peer) -> Result<Vec<String>> {
    let mut heard = Vec::new();
    loop {
        let frame = peer.receive()?;
        heard.push(line(&frame));
        if matches!(frame, Frame::Signal(MAIN_PROMPT) | Frame::Closed) {
            return Ok(heard);
        }
    }
}

fn line(frame: &Frame) -> String {
    match frame {
        Frame::Data(bytes) => bytes.escape_ascii().to_string(),
        other => format!("{other:?}"),
    }
}

/// The same with both daemons at once: the stock daemon's side and that of the daemon under test.
fn both<T: Send>(ports: [u16; 2], talk: impl Fn(u16) -> Result<T> + Sync) -> Result<[T; 2]> {
    let talk = &talk;
    thread::scope(|scope| {
        let [stock, ours] = ports.map(|port| scope.spawn(move || talk(port)));
        Ok([stock.join().unwrap()?, ours.join().unwrap()?])
    })
}

/// What a console receives through a File Daemon from the real Director.
fn console(port: u16, director: &str) -> Result<Vec<String>> {
    let mut peer = logged_in(port, director)?;
    peer.send(b"proxy\n")?;
    let mut heard = hear(&mut peer)?;
    for command in [".api 1", ".clients", "version", "list nosuch"] {
        peer.send(command.as_bytes())?;
        heard.extend(hear(&mut peer)?);
    }
    peer.send(b"quit")?;
    heard.extend(peer.rest()?.iter().map(line));
    Ok(heard)
}

/// What it receives where no Director can be reached, and what the daemon does next.
fn in_vain(port: u16, director: &str) -> Result<Vec<String>> {
    let mut peer = logged_in(port, director)?;
    peer.send(b"proxy\n")?;
    let mut heard = hear(&mut peer)?;
    peer.send(b"caps\n")?;
    heard.extend([line(&peer.receive()?), line(&peer.receive()?)]);
    Ok(heard)
}

fn ports(bed: &mut Bed) -> Result<[u16; 2]> {
    Ok([bed.client(CLIENTS[0])?.port(), bed.client(CLIENTS[1])?.port()])
}

#[test]
fn a_console_reaches_the_director_through_the_file_daemon() -> Result<()> {
    let mut options = BedOptions::side_by_side("proxy")?;
    let dead = ReservedPort::new()?;
    let dead = format!("DIR Port = {}", dead.number());
    let here = ["Address = 127.0.0.1", "DIR Port = @director-port@"];
    let with = |more: &[&'static str]| [&here, more].concat();
    for client in &mut options.clients {
        client.file_daemon = [
            remote(NAMED, FD_PASSWORD, &with(&["Console = second"])),
            remote(FIRST, FD_PASSWORD, &here),
            remote(WRONG, FD_PASSWORD, &with(&["Console = wrong"])),
            remote(DEAD, FD_PASSWORD, &["Console = dead"]),
            another("Console", "first", &with(&["Password = \"of first\""])),
            another("Console", "second", &with(&["Password = \"of second\""])),
            another("Console", "wrong", &with(&["Password = \"wrong\""])),
            another("Console", "dead", &["Password = \"of second\"", "Address = 127.0.0.1", &dead]),
        ]
        .concat();
    }
    for (name, password) in [("first", "of first"), ("second", "of second"), ("wrong", "right")] {
        let text = format!(
            "Console {{\nName = {name}\nPassword = \"{password}\"\nCommandACL = *all*\nClientACL = *all*\nJobACL = *all*\n}}"
        );
        options.director_resources.extend(text.lines().map(ToOwned::to_owned));
    }
    let mut bed = Bed::start(options)?;
    let ports = ports(&mut bed)?;
    for director in [NAMED, FIRST] {
        let [stock, ours] = both(ports, |port| console(port, director))?;
        assert!(stock.contains(&"test-fd\\n".to_owned()) && stock.len() > 20, "{director}: {stock:#?}");
        assert_eq!(stock, ours, "{director}");
    }
    let [wrong, dead] = thread::scope(|scope| {
        let ports = &ports;
        let trying = [WRONG, DEAD].map(|director| scope.spawn(move || both(*ports, |port| in_vain(port, director))));
        trying.map(|trying| trying.join().unwrap())
    });
    for (told, [stock, ours]) in [("[FE0064] TLS Connect failure.", wrong?), ("[FE0019] Unable to connect", dead?)] {
        assert!(stock[1].starts_with("2999 proxy error. ERR=") && stock[1].contains(told), "{stock:#?}");
        // The library's words for an alert end in a blank or not.
        assert_eq!(stock, ours.iter().map(|line| line.replace("error\\n", "error \\n")).collect::<Vec<_>>());
    }
    Ok(())
}

/// What both ends receive: the console, then the Director.
type Heard = [Vec<String>; 2];

/// What a scripted Director does with a console's connection.
type Script = fn(&mut Peer, &mut Peer) -> Result<Heard>;

fn rest(peer: &mut Peer) -> Result<Vec<String>> {
    Ok(peer.rest()?.iter().map(line).collect())
}

/// The Director does this instead of taking the caller for a console.
fn refuses(console: &mut Peer, director: &mut Peer, then: impl Fn(&mut Peer) -> Result<()>) -> Result<Heard> {
    then(director)?;
    director.finish()?;
    let heard = rest(director)?;
    Ok([hear(console)?, heard])
}

fn does_not_know_him(console: &mut Peer, director: &mut Peer) -> Result<Heard> {
    refuses(console, director, |director| {
        director.receive().and_then(|_| director.send(b"1999 You are not authorized.\n"))
    })
}

fn leaves_at_once(console: &mut Peer, director: &mut Peer) -> Result<Heard> {
    refuses(console, director, |director| director.receive().map(drop))
}

fn wants_another_password(console: &mut Peer, director: &mut Peer) -> Result<Heard> {
    refuses(console, director, |director| {
        director.receive()?;
        director.send(b"auth cram-md5 <1.1@bed-dir> ssl=0\n")?;
        director.receive()?;
        director.send(b"1999 Authorization failed.\n")
    })
}

fn has_another_password(console: &mut Peer, director: &mut Peer) -> Result<Heard> {
    refuses(console, director, |director| {
        director.receive()?;
        director.send(b"auth cram-md5 <1.1@bed-dir> ssl=0\n")?;
        director.receive()?;
        director.send(b"1000 OK auth\n")?;
        let challenge = director.expect("auth cram-md5")?;
        director.send(&answer("another key", &challenge))
    })
}

fn greets_with_nonsense(console: &mut Peer, director: &mut Peer) -> Result<Heard> {
    refuses(console, director, |director| {
        accept(director)?;
        director.send(b"2999 nonsense\n")
    })
}

/// Hears the hello, and lets the caller log in.
fn accept(director: &mut Peer) -> Result<()> {
    let key = key_of_password(FD_PASSWORD);
    let challenge = format!("auth cram-md5 <7654321.7654321@{DIRECTOR}> ssl=0\n");
    let called = director.expect("Hello console-")?;
    assert!(called.ends_with(" calling 1 tlspsk=0\n"), "{called}");
    director.send(challenge.as_bytes())?;
    director.hear_answer(&key, &challenge)?;
    director.send(b"1000 OK auth\n")?;
    let challenge = director.expect("auth cram-md5")?;
    director.send(&answer(&key, &challenge))?;
    director.expect("1000 OK auth\n").map(drop)
}

/// The connection is made; what the console has heard.
fn connected(console: &mut Peer, director: &mut Peer) -> Result<Vec<String>> {
    accept(director)?;
    director.send(format!("1000 OK: 10002 {DIRECTOR} Version: 15.0.3 (25 March 2025)\n").as_bytes())?;
    hear(console)
}

fn talks_until_the_console_leaves(console: &mut Peer, director: &mut Peer) -> Result<Heard> {
    let mut heard = connected(console, director)?;
    for frame in [b"with a\0byte".as_slice(), b"", b"more"] {
        console.send(frame)?;
    }
    console.signal(EOD)?;
    let mut far = Vec::new();
    for _frame in 0..4 {
        far.push(line(&director.receive()?));
    }
    // More than the daemon takes at a time.
    for number in 0..1000 {
        director.send(format!("{number}\n").as_bytes())?;
    }
    for frame in [b"with a\0byte".as_slice(), b"", &vec![b'x'; 300_000]] {
        director.send(frame)?;
    }
    director.signal(MAIN_PROMPT)?;
    heard.extend(hear(console)?);
    console.signal(TERMINATE)?;
    console.finish()?;
    far.extend(rest(director)?);
    heard.extend(rest(console)?);
    Ok([heard, far])
}

fn loses_the_console(console: &mut Peer, director: &mut Peer) -> Result<Heard> {
    let mut heard = connected(console, director)?;
    console.finish()?;
    let far = rest(director)?;
    heard.extend(rest(console)?);
    Ok([heard, far])
}

fn leaves_the_console(console: &mut Peer, director: &mut Peer) -> Result<Heard> {
    let mut heard = connected(console, director)?;
    director.signal(TERMINATE)?;
    director.finish()?;
    heard.extend(rest(console)?);
    Ok([heard, rest(director)?])
}

/// The connection becomes one that the Director might have made himself.
fn calls_back(console: &mut Peer, director: &mut Peer) -> Result<Heard> {
    let mut heard = connected(console, director)?;
    director.send(b"wait for the job\n")?;
    director.signal(FD_CALLED)?;
    heard.extend(rest(console)?);
    director.send(hello(DIRECTOR).as_bytes())?;
    director.log_in(&key_of_password(FD_PASSWORD), DIRECTOR)?;
    let commands = [
        "caps\n",
        "JobId=7 Job=b.2026-11-21_02.19.56_04 SDid=1 SDtime=2 Authorization=dummy\n",
        "setbandwidth=1000 Job=nobody\n",
        "level = bogus\n",
    ];
    for command in commands {
        director.send(command.as_bytes())?;
    }
    let far = rest(director)?;
    assert!(far.len() > 5 && far.iter().any(|line| line.starts_with("2800 End Job TermCode=")), "{far:#?}");
    // Each daemon has its own name, machine and plugins, and the lengths of all count; a message
    // holds the time.
    let alike = |line: String| {
        let text = line.split(" CommBytes=").next().unwrap_or_default();
        let text = text.rsplit("-fd JobId 7: ").next().unwrap_or_default();
        if text.starts_with("2000 OK Job 15.0.3 ") { "2000 OK Job 15.0.3 ".to_owned() } else { text.to_owned() }
    };
    Ok([heard, far.into_iter().map(alike).collect()])
}

#[test]
fn a_director_may_take_over_a_proxied_connection() -> Result<()> {
    let scripts: [(&str, Script); 9] = [
        ("does not know him", does_not_know_him),
        ("leaves at once", leaves_at_once),
        ("wants another password", wants_another_password),
        ("has another password", has_another_password),
        ("greets with nonsense", greets_with_nonsense),
        ("talks until the console leaves", talks_until_the_console_leaves),
        ("loses the console", loses_the_console),
        ("leaves the console", leaves_the_console),
        ("calls back", calls_back),
    ];
    let mut options = BedOptions::side_by_side("fd-called")?.in_clear();
    // A Director for each script and daemon, which is its own console.
    let mut listeners = Vec::new();
    for client in &mut options.clients {
        client.file_daemon.push("TLS PSK Enable = no".to_owned());
        for number in 0..scripts.len() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = format!("DIR Port = {}", listener.local_addr().unwrap().port());
            let more = ["Address = 127.0.0.1", "TLS PSK Enable = no", &port];
            client.file_daemon.extend(remote(&format!("console-{number}"), FD_PASSWORD, &more));
            listeners.push(listener);
        }
    }
    let mut bed = Bed::start(options)?;
    let ports = ports(&mut bed)?;
    let play = |number: usize, side: usize| -> Result<Heard> {
        let mut console = logged_in(ports[side], &format!("console-{number}"))?;
        console.send(b"proxy\n")?;
        let listener = &listeners[side * scripts.len() + number];
        (scripts[number].1)(&mut console, &mut Peer::accepted("FD as a console", listener)?)
    };
    let play = &play;
    thread::scope(|scope| {
        let playing: Vec<_> =
            (0..scripts.len()).map(|number| [0, 1].map(|side| scope.spawn(move || play(number, side)))).collect();
        for ((name, _), sides) in scripts.iter().zip(playing) {
            let [stock, ours] = sides.map(|side| side.join().unwrap());
            let (stock, ours) = (stock?, ours?);
            assert!(stock.iter().any(|side| !side.is_empty()), "{name}: nothing was said");
            assert_eq!(stock, ours, "{name}");
        }
        Ok(())
    })
}

/// After how much time without a word the kernel asks the other end of the connections to this port
/// of the host whether it is still there; in hundredths of a second.
fn keepalive(port: u16) -> Option<u32> {
    const ESTABLISHED: &str = "01";
    const KEEPALIVE: &str = "02";
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!("0100007F:{port:04X}");
    table.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (timer, left) = fields.get(5)?.split_once(':')?;
        let is_it = fields.get(2..4)? == [remote.as_str(), ESTABLISHED] && timer == KEEPALIVE;
        is_it.then(|| u32::from_str_radix(left, 16).unwrap())
    })
}

/// A Director that vanishes must not keep its place for the kernel's two hours.
#[test]
fn the_kernel_asks_for_a_director_that_a_console_has_reached_or_that_has_taken_over() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut client = ClientOptions::new(Fd::Ours).named("test");
    client.file_daemon = ["TLS PSK Enable = no", "Heartbeat Interval = 100"].map(ToOwned::to_owned).to_vec();
    let there = format!("DIR Port = {port}");
    client.file_daemon.extend(remote(
        "console-0",
        FD_PASSWORD,
        &["Address = 127.0.0.1", "TLS PSK Enable = no", &there],
    ));
    let mut bed = Bed::start(BedOptions::new("keepalive", [client])?.in_clear())?;
    let mut console = logged_in(bed.client("test")?.port(), "console-0")?;
    console.send(b"proxy\n")?;
    let mut director = Peer::accepted("FD as a console", &listener)?;
    let is_asked_for = || {
        wait_for("the kernel to ask for the Director after 100 s", PATIENCE, || {
            let left = keepalive(port);
            Ok(if left.is_some_and(|left| left <= 100 * 100) { Ok(()) } else { Err(format!("{left:?}")) })
        })
    };
    connected(&mut console, &mut director)?;
    is_asked_for()?;
    director.signal(FD_CALLED)?;
    director.send(hello(DIRECTOR).as_bytes())?;
    director.log_in(&key_of_password(FD_PASSWORD), DIRECTOR)?;
    is_asked_for()
}

/// Wants its own client to be backed up, over the connection that it has.
fn wants_a_job(port: u16, client: &str) -> Result<Vec<String>> {
    let mut peer = logged_in(port, ITSELF)?;
    peer.send(b"proxy\n")?;
    let mut heard = hear(&mut peer)?;
    peer.send(format!("run job=backup-{client} fdcalled=yes yes").as_bytes())?;
    heard.extend(rest(&mut peer)?);
    Ok(heard)
}

#[test]
fn a_console_backs_up_an_unreachable_client() -> Result<()> {
    let mut options = BedOptions::side_by_side("fd-called-job")?;
    super::fill(&options)?;
    let nowhere = ReservedPort::new()?;
    for client in &mut options.clients {
        client.director_port = Some(nowhere.number());
        client.file_daemon = remote(ITSELF, FD_PASSWORD, &["Address = 127.0.0.1", "DIR Port = @director-port@"]);
    }
    let acls = ["Command", "Client", "Job", "Pool", "Storage", "Catalog", "FileSet", "Where"];
    let acls = acls.map(|acl| format!("{acl}ACL = *all*\n")).concat();
    let text = format!("Console {{\nName = {ITSELF}\nPassword = \"{FD_PASSWORD}\"\n{acls}}}");
    options.director_resources.extend(text.lines().map(ToOwned::to_owned));
    let mut bed = Bed::start(options)?;
    let ports = ports(&mut bed)?;
    let mut jobs = Vec::new();
    // One after the other, for the Director numbers them.
    for (number, (client, port)) in CLIENTS.into_iter().zip(ports).enumerate() {
        let heard = wants_a_job(port, client)?;
        let queued = format!("Job queued. JobId={}\\n", number + 1);
        let wanted = ["2000 proxy OK.\\n", "Signal(-18)", "Using Catalog \\\"Catalog\\\"\\n", &queued, "Signal(-4)"];
        assert_eq!(heard, wanted, "{client}");
        jobs.push(bed.wait(u32::try_from(number).unwrap() + 1)?.must_be_good()?);
    }
    let records = |number: usize| bed.records(&jobs[number].row, CLIENTS[number]);
    let comparison = compare_records(records(0)?, records(1)?, RecordRules::default())?;
    assert!(comparison.is_equal(), "{}", comparison.text());
    assert_eq!(jobs[0].messages_of("reference-fd"), jobs[1].messages_of("test-fd"));
    Ok(())
}
