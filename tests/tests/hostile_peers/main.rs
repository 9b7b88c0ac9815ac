//! Peers that are wrong, slow, or gone: whatever they do, the daemon answers as the reference says
//! (01 §20, §21.6), and serves the next one as before.
//!
//! No delay of the daemon is part of any expectation.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

mod greed;
mod script;
mod sequences;
mod strangers;

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use bed::peer::{EOD, Frame, HEARTBEAT, Peer, TERMINATE, answer, director_session, hello, key_of_password, packet};
use bed::{
    Bed, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, Footprint, Noise, PATIENCE, Result, descriptors, idle,
    in_parallel, threads, usage, wait_for,
};
use script::{Script, Step, director_script, storage_script, whole_job};

/// A bed with one client, named `test`, of the daemon under test, and without TLS so that scripts
/// can talk to it.
fn bed_in_clear(label: &str) -> Result<Bed> {
    let options = BedOptions::new(label, [ClientOptions::new(Fd::under_test()?).named("test")])?.in_clear();
    std::fs::write(options.source()?.join("file"), Noise::new(1).bytes(1_000_000)).unwrap();
    Bed::start(options)
}

/// What the real Director sees, and what the daemon holds after it has been served.
fn footprint_when_idle(bed: &mut Bed) -> Result<Footprint> {
    assert_serves(bed)?;
    idle(bed.client("test")?.pid()?)
}

/// `status client` of the real Director works, and sessions that have lost their peer end.
fn assert_serves(bed: &Bed) -> Result<()> {
    wait_for("a status without jobs", PATIENCE, || {
        let status = bed.console(&["status client=test-fd"])?;
        let wanted = ["test-fd Version: ", "Daemon started ", "Running Jobs:", "No Jobs running.", "Terminated Jobs:"];
        let missing = wanted.into_iter().find(|wanted| !status.contains(wanted));
        Ok(missing.map_or(Ok(()), |wanted| Err(format!("expected {wanted:?} in:\n{status}"))))
    })
}

/// The daemon serves the real Director, and holds no more than before.
fn assert_unharmed(bed: &mut Bed, before: Footprint) -> Result<()> {
    assert_serves(bed)?;
    let pid = bed.client("test")?.pid()?;
    wait_for("descriptors and threads to be where they were", PATIENCE, || {
        let open = descriptors(pid)?;
        let now = (open.len(), threads(pid)?);
        let back = now.0 <= before.0 && now.1 <= before.1;
        Ok(if back { Ok(()) } else { Err(format!("before {before:?}, now {now:?}: {open:?}")) })
    })
}

/// What a daemon sent until it closed, as text; queued daemon messages for the Director left out
/// (they are about other connections).
fn rest_as_text(peer: &mut Peer) -> Result<Vec<String>> {
    let frames = peer.rest()?;
    Ok(frames.iter().map(Frame::text).filter(|text| !text.starts_with("Jmsg JobId=0 ")).collect())
}

/// A first packet and everything that the daemon says to it until it closes.
struct Refusal {
    what: &'static str,
    first: Vec<u8>,
    /// The peer has nothing more to say and says so.
    finishes: bool,
    answer: Vec<&'static str>,
}

fn refusals() -> Vec<Refusal> {
    let says = |what, first: &[u8], answer: &[&'static str]| Refusal {
        what,
        first: first.to_vec(),
        finishes: false,
        answer: answer.to_vec(),
    };
    let breaks_off = |what, first: &[u8]| Refusal { finishes: true, ..says(what, first, &[]) };
    let unknown = "authenticate.c:100 [FE0027] Connection from unknown Director nobody at 127.0.0.1 rejected.\n";
    let malformed = "authenticate.c:81 Bad Hello command from Director at 127.0.0.1: \
                     Hello Director bed-dir callxing 10002 tlspsk=0\n\n";
    vec![
        says("ping", &packet(b"Ping"), &["2000 Ping OK\n"]),
        says("unknown Director", &packet(hello("nobody").as_bytes()), &[unknown, "Signal(-4)"]),
        says(
            "malformed Hello",
            &packet(b"Hello Director bed-dir callxing 10002 tlspsk=0\n"),
            &[malformed, "Signal(-4)"],
        ),
        says("garbage", &packet(&Noise::new(5).bytes(100)), &[]),
        says("short Hello", &packet(b"Hello Director"), &[]),
        says("long Hello", &packet(hello(&"x".repeat(500)).as_bytes()), &[]),
        says("empty packet", &packet(b""), &[]),
        says("signal", &EOD.to_be_bytes(), &[]),
        says("length of half a GiB", &[0x1f, 0xff, 0xff, 0xff], &[]),
        says("length just above the limit", &1_000_001_u32.to_be_bytes(), &[]),
        breaks_off("length of 2 GiB", &[0x7f, 0xff, 0xff, 0xff]),
        breaks_off("end in the header", &[0, 0]),
        breaks_off("end in the packet", &[0, 0, 0, 60, b'H', b'e']),
        breaks_off("nothing at all", &[]),
    ]
}

#[test]
fn a_bad_first_packet_is_refused_with_the_reference_s_words() -> Result<()> {
    let mut bed = bed_in_clear("refusals")?;
    let before = footprint_when_idle(&mut bed)?;
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    let memory = usage(pid)?.peak_memory;
    let talk = |refusal: &Refusal| -> Result<Vec<String>> {
        let mut peer = Peer::connect(refusal.what, port)?;
        peer.send_bytes(&refusal.first)?;
        if refusal.finishes {
            peer.finish()?;
        }
        rest_as_text(&mut peer)
    };
    let refusals = refusals();
    thread::scope(|scope| -> Result<()> {
        let talks: Vec<_> = refusals.iter().map(|refusal| (refusal, scope.spawn(|| talk(refusal)))).collect();
        for (refusal, talk) in talks {
            assert_eq!(talk.join().unwrap()?, refusal.answer, "{}", refusal.what);
        }
        Ok(())
    })?;
    let more = usage(pid)?.peak_memory.saturating_sub(memory);
    assert!(more < 32 << 20, "announced lengths cost {more} bytes of memory");
    assert_unharmed(&mut bed, before)
}

#[test]
fn a_wrong_password_is_refused_with_the_reference_s_words() -> Result<()> {
    let mut bed = bed_in_clear("password")?;
    let before = footprint_when_idle(&mut bed)?;
    let port = bed.client("test")?.port();
    // Wrong, empty, and of the wrong form.
    let answers = [answer(&key_of_password("wrong"), "auth cram-md5 <1.1@x> ssl=0\n"), b"\0".to_vec(), vec![b'A'; 400]];
    // Each waits for the daemon's brake.
    in_parallel(AT_A_TIME, &answers, |wrong| {
        let mut peer = Peer::connect("FD", port)?;
        peer.send(hello(DIRECTOR).as_bytes())?;
        let challenge = peer.expect("auth cram-md5 <")?;
        assert!(challenge.ends_with("@test-fd> ssl=0\n"), "{challenge:?}");
        peer.send(wrong)?;
        let said = rest_as_text(&mut peer)?;
        assert_eq!(said, ["1999 Authorization failed.\n", "2999 Authentication failed.\n", "Signal(-4)"]);
        Ok(())
    })?;
    assert_unharmed(&mut bed, before)
}

#[test]
fn a_hello_may_come_byte_by_byte_and_with_the_next_packet() -> Result<()> {
    let mut bed = bed_in_clear("bytes")?;
    let port = bed.client("test")?.port();
    let mut peer = Peer::connect("FD", port)?;
    for byte in packet(hello(DIRECTOR).as_bytes()) {
        peer.send_bytes(&[byte])?;
    }
    let key = key_of_password(FD_PASSWORD);
    let challenge = peer.expect("auth cram-md5 <")?;
    for byte in packet(&answer(&key, &challenge)) {
        peer.send_bytes(&[byte])?;
    }
    peer.expect("1000 OK auth\n")?;
    let ours = format!("auth cram-md5 <1.1@{DIRECTOR}> ssl=0\n");
    peer.send(ours.as_bytes())?;
    peer.hear_answer(&key, &ours)?;
    // The rest in one write: what follows a packet must not be lost.
    let job = "JobId=0 Job=-Console-.2026-01-01_00.00.00_01 SDid=0 SDtime=0 Authorization=dummy\n";
    let together =
        [packet(b"1000 OK auth\n"), packet(job.as_bytes()), packet(b"status"), TERMINATE.to_be_bytes().to_vec()];
    peer.send_bytes(&together.concat())?;
    peer.expect("2000 OK Hello 15\n")?;
    peer.expect("2000 OK Job 15.0.3 ")?;
    let status = rest_as_text(&mut peer)?.concat();
    assert!(status.contains("test-fd Version: 15.0.3 ") && status.contains("Terminated Jobs:"), "{status}");
    Ok(())
}

#[test]
fn after_login_a_packet_beyond_the_limit_ends_the_connection() -> Result<()> {
    let mut bed = bed_in_clear("limit")?;
    let before = footprint_when_idle(&mut bed)?;
    let port = bed.client("test")?.port();
    let mut peer = director_session(port, 0)?;
    peer.send_bytes(&1_000_001_u32.to_be_bytes())?;
    let said = rest_as_text(&mut peer)?;
    assert_eq!(said, Vec::<String>::new(), "nothing more is sent, reference 01 §1.3");
    // Exactly a million is a packet, if a strange one.
    let mut peer = director_session(port, 0)?;
    peer.send(&vec![b'x'; 1_000_000])?;
    peer.expect("2999 Invalid command\n")?;
    drop(peer);
    assert_unharmed(&mut bed, before)
}

#[test]
fn failed_handshakes_leave_other_connections_alone() -> Result<()> {
    let mut options = BedOptions::new("tls", [ClientOptions::new(Fd::under_test()?).named("test")])?;
    // The same daemon under another name, with a password that is not its own.
    let wrong = "Client {\nName = wrong-fd\nAddress = 127.0.0.1\nFDPort = @port-of-test@\nPassword = wrong\nCatalog = Catalog\n}";
    options.director_resources = vec![wrong.to_owned()];
    let mut bed = Bed::start(options)?;
    let before = footprint_when_idle(&mut bed)?;
    let port = bed.client("test")?.port();
    let start_tls = || -> Result<Peer> {
        let mut peer = Peer::connect("FD", port)?;
        peer.send(hello(DIRECTOR).replace("tlspsk=0", "tlspsk=100").as_bytes())?;
        peer.expect("starttls tlspsk=100\n")?;
        Ok(peer)
    };
    let stalled = start_tls()?;
    let mut gone = start_tls()?;
    gone.finish()?;
    let mut garbage = start_tls()?;
    garbage.send_bytes(&Noise::new(9).bytes(3000))?;
    garbage.finish()?;
    for peer in [&mut gone, &mut garbage] {
        let said = peer.rest()?;
        eprintln!("{said:?}");
    }
    let refused = bed.console(&["status client=wrong-fd"])?;
    assert!(refused.contains("TLS Connect failure") && !refused.contains("Daemon started"), "{refused}");
    assert_serves(&bed)?;
    drop(stalled);
    assert_unharmed(&mut bed, before)
}

/// A port of a scripted Storage Daemon.
fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// How many scripted peers are at work at a time; each takes a place in the daemon's own limit
/// of 20.
const AT_A_TIME: usize = 8;

#[test]
fn the_daemon_survives_a_director_lost_at_every_point() -> Result<()> {
    let mut bed = bed_in_clear("director-gone")?;
    let before = footprint_when_idle(&mut bed)?;
    let port = bed.client("test")?.port();
    let source = bed.folder().join("source").display().to_string();
    let ends: Vec<_> = director_script(1, 0, "").ends().enumerate().collect();
    in_parallel(AT_A_TIME, &ends, |&(number, (count, half))| {
        let (listener, storage_port) = listen();
        let script = director_script(1000 + number, storage_port, &source);
        thread::scope(|scope| {
            // The daemon may or may not have come to the point of calling the storage.
            listener.set_nonblocking(true).unwrap();
            let (gone, is_gone) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                let _ = serve_storage_until(&listener, &is_gone);
            });
            let played = script.play(Peer::connect("FD", port)?, count, half);
            drop(gone);
            played
        })
    })?;
    assert_unharmed(&mut bed, before)
}

/// Plays the whole storage script for one caller, if one comes before the Director is gone.
fn serve_storage_until(listener: &TcpListener, gone: &std::sync::mpsc::Receiver<()>) -> Result<()> {
    use std::sync::mpsc::TryRecvError;
    let script = storage_script();
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            return script.play(Peer::over("FD", stream)?, script.steps.len(), false);
        }
        if gone.try_recv() == Err(TryRecvError::Disconnected) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_daemon_survives_a_storage_daemon_lost_at_every_point() -> Result<()> {
    let mut bed = bed_in_clear("storage-gone")?;
    let before = footprint_when_idle(&mut bed)?;
    let port = bed.client("test")?.port();
    let source = bed.folder().join("source").display().to_string();
    let closing = storage_script().steps.len() - 1;
    let ends: Vec<_> = storage_script().ends().enumerate().collect();
    in_parallel(AT_A_TIME, &ends, |&(number, (count, half))| {
        let (listener, storage_port) = listen();
        thread::scope(|scope| {
            let storage = scope.spawn(move || storage_script().play(Peer::accepted("FD", &listener)?, count, half));
            let mut peer = Peer::connect("FD", port)?;
            let said = whole_job(&mut peer, &director_script(2000 + number, storage_port, &source))?;
            storage.join().unwrap()?;
            let place = format!("storage gone after step {count}, half of the next: {half}");
            let end: Vec<_> = said.iter().filter(|text| text.starts_with("2800 End Job TermCode=")).collect();
            // Lost in the login the job was only created, lost before or after it the job has
            // failed.
            let code = match count {
                2..=9 => 67,
                _ if count < closing => 102,
                _ => 84,
            };
            let wanted = format!("2800 End Job TermCode={code} ");
            assert!(
                end.len() == 1 && end.iter().all(|text| text.starts_with(&wanted)),
                "{place}: {wanted:?} in {said:?}"
            );
            assert_eq!(said.last().map(String::as_str), Some("Signal(-4)"), "{place}");
            Ok(())
        })
    })?;
    assert_unharmed(&mut bed, before)
}

#[test]
fn what_a_storage_daemon_says_while_it_gets_data_is_no_answer() -> Result<()> {
    let mut bed = bed_in_clear("storage-talks")?;
    let before = footprint_when_idle(&mut bed)?;
    let source = bed.folder().join("source").display().to_string();
    let (listener, storage_port) = listen();
    thread::scope(|scope| -> Result<()> {
        let storage = scope.spawn(move || -> Result<()> {
            let Script { key, mut steps } = storage_script();
            let ready = steps.iter().position(|step| matches!(step, Step::Say(text) if text == "3000 OK data\n"));
            let rest = Script { key: key.clone(), steps: steps.split_off(ready.unwrap()).split_off(1) };
            let mut peer = Peer::accepted("FD", &listener)?;
            let count = steps.len();
            Script { key, steps }.play_with(&mut peer, count)?;
            // In one write, so that all of it is there before the first record is sent.
            let talk = [packet(b"3000 OK data\n"), packet(b"waiting for a volume\n"), packet(b"")];
            let signals = [HEARTBEAT, EOD, HEARTBEAT].map(i32::to_be_bytes);
            peer.send_bytes(&[talk.concat(), signals.concat()].concat())?;
            rest.play_with(&mut peer, rest.steps.len())
        });
        let mut peer = Peer::connect("FD", bed.client("test")?.port())?;
        let said = whole_job(&mut peer, &director_script(3000, storage_port, &source))?;
        storage.join().unwrap()?;
        assert!(said.iter().any(|text| text.starts_with("2800 End Job TermCode=84 ")), "{said:?}");
        Ok(())
    })?;
    assert_unharmed(&mut bed, before)
}
