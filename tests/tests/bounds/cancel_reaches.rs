//! A job that waits for something on its own host, and is canceled or loses its Director: the wait
//! ends, and so does what was started for it.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use bed::peer::{EOD, Frame, HEARTBEAT, Peer, director_session, job_session, storage_session};
use bed::{
    Bed, BedOptions, ClientOptions, Fd, PATIENCE, Result, children, fifo_writer, make_fifo, thread_names, wait_for,
};

fn bed_in_clear(label: &str) -> Result<Bed> {
    let options = BedOptions::new(label, [ClientOptions::new(Fd::under_test()?).named("test")])?.in_clear();
    options.source()?;
    Bed::start(options)
}

/// The bed, a FIFO without a writer, and the daemon's port and process.
fn stage(label: &str) -> Result<(Bed, PathBuf, u16, u32)> {
    let mut bed = bed_in_clear(label)?;
    let fifo = bed.folder().join("fifo");
    make_fifo(&fifo)?;
    let client = bed.client("test")?;
    let (port, pid) = (client.port(), client.pid()?);
    Ok((bed, fifo, port, pid))
}

fn begin(port: u16, job: u32, packets: &[&[u8]]) -> Result<Peer> {
    let mut peer = job_session(port, job)?;
    packets.iter().try_for_each(|packet| peer.send(packet))?;
    Ok(peer)
}

/// Orders the end of the job on another connection: `cancel` or `stop`.
fn order_end(port: u16, job: u32, order: &str) -> Result<()> {
    let mut console = director_session(port, 0)?;
    console.send(format!("{order} Job=script.2026-01-01_00.00.00_{job:02}\n").as_bytes())?;
    console.expect("2001 Job ")?;
    Ok(())
}

fn cancel(port: u16, job: u32) -> Result<()> {
    order_end(port, job, "cancel")
}

/// Whatever else it says, the job ends as canceled.
fn must_end_canceled(peer: &mut Peer, what: &str) -> Result<()> {
    let said = peer.rest()?;
    let end = said.iter().map(Frame::text).find(|text| text.starts_with("2800 End Job"));
    assert!(end.as_ref().is_some_and(|end| end.starts_with("2800 End Job TermCode=65 ")), "{what}: {said:?}");
    Ok(())
}

fn wait_for_children(pid: u32, wanted: bool) -> Result<()> {
    wait_for("the daemon's programs", PATIENCE, || {
        let found = children(pid)?;
        Ok(if found.is_empty() == wanted { Err(format!("{found:?}")) } else { Ok(()) })
    })
}

/// What makes the daemon wait without an end, and whether it runs a program meanwhile.
fn waits(fifo: &Path) -> Vec<(Vec<Vec<u8>>, bool)> {
    let list = |name: &str| {
        let lines = ["fileset vss=0\n", "I\n", "O M\n", "N\n", &format!("F {name}\n")];
        lines.map(|line| line.as_bytes().to_vec()).to_vec()
    };
    let script = |command: &str| vec![format!("RunBeforeJob {}\n", command.replace(' ', "\u{1}")).into_bytes()];
    vec![
        (list(&format!("<{}", fifo.display())), false),
        (list("|yes"), true),
        (list("|sleep 100000"), true),
        (list("|sh -c \"sleep 100000 & exit 0\""), true),
        (script("yes"), true),
        (script("sleep 100000"), true),
        (script("sh -c \"trap '' TERM; while :; do sleep 100000; done\""), true),
    ]
}

#[test]
fn a_cancel_ends_whatever_the_job_waits_for() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon waits on");
    let (_bed, fifo, port, pid) = stage("cancel-reaches")?;
    for (job, (packets, runs)) in (1..).zip(waits(&fifo)) {
        let what = String::from_utf8_lossy(packets.last().unwrap()).into_owned();
        let mut peer = begin(port, job, &packets.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        if runs {
            wait_for_children(pid, true)?;
        }
        cancel(port, job)?;
        must_end_canceled(&mut peer, &what)?;
        wait_for_children(pid, false)?;
    }
    Ok(())
}

/// The order may overtake the command that makes the job wait.
#[test]
fn a_cancel_before_the_wait_ends_it_too() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon waits on");
    let (_bed, fifo, port, pid) = stage("cancel-before")?;
    for (job, (packets, _)) in (1..).zip(waits(&fifo)) {
        let what = String::from_utf8_lossy(packets.last().unwrap()).into_owned();
        let mut peer = begin(port, job, &[])?;
        cancel(port, job)?;
        packets.iter().try_for_each(|packet| peer.send(packet))?;
        if !what.starts_with("RunBeforeJob") {
            peer.signal(EOD)?;
        }
        let answer = loop {
            let frame = peer.receive()?;
            let said = frame.text();
            if frame == Frame::Closed || said.starts_with("2800 End Job") || said.starts_with("2000 OK Run") {
                break said;
            }
        };
        assert!(
            answer.starts_with("2800 End Job TermCode=65 ") || answer.starts_with("2000 OK RunBefore"),
            "{what}: {answer}"
        );
        drop(peer);
        wait_for_children(pid, false)?;
    }
    Ok(())
}

#[test]
fn a_cancel_ends_the_wait_for_a_storage_daemon() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon waits on");
    let mut bed = bed_in_clear("cancel-storage")?;
    let port = bed.client("test")?.port();
    // One that takes the call and says nothing, and one that is to call and does not.
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let of_silent = silent.local_addr().unwrap().port();
    let cases = [("cancel", 65, of_silent), ("cancel", 65, 0), ("stop", 73, of_silent), ("stop", 73, 0)];
    for (job, (order, code, storage_port)) in (1..).zip(cases) {
        let storage = format!("storage address=127.0.0.1 port={storage_port} ssl=0\n");
        let mut peer = begin(port, job, &[storage.as_bytes()])?;
        let _line = match storage_port {
            0 => None,
            _ => Some(Peer::accepted("FD", &silent)?),
        };
        order_end(port, job, order)?;
        let said: Vec<_> = peer.rest()?.iter().map(Frame::text).collect();
        let is_end = |text: &&String| text.starts_with(&format!("2800 End Job TermCode={code} "));
        let end = said.iter().find(is_end).map(String::as_str).unwrap_or_default();
        // Who has ordered it knows why it ends.
        let is_quiet = end.contains(" Errors=0 ") && !said.iter().any(|text| text.contains("Fatal error"));
        assert!(is_quiet, "{order}, {storage}: {said:?}");
    }
    Ok(())
}

/// It waits until the connection is lost, which ours cuts when the job has not ended by itself
/// after a second.
#[test]
fn a_stopped_job_whose_storage_daemon_opens_no_session_reports_no_error() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut bed = bed_in_clear("stop-opening")?;
    let port = bed.client("test")?.port();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let storage = format!("storage address=127.0.0.1 port={} ssl=0\n", listener.local_addr().unwrap().port());
    let restore = format!("restore files=1 replace=a prelinks=0 where={}\n", bed.folder().join("to").display());
    let cases = [
        ("backup FileIndex=0\n", "append open session", 'B'),
        (restore.as_str(), "read open session = ", 'B'),
        ("verify level=volume\n", "read open session = ", 'C'),
        ("verify level=data\n", "read open session = ", 'C'),
    ];
    for (job, (command, open, state)) in (1..).zip(cases) {
        let mut peer = begin(port, job, &[storage.as_bytes()])?;
        let mut storage = storage_session(&listener)?;
        while peer.receive_text()? != "2000 OK storage\n" {}
        peer.send(command.as_bytes())?;
        storage.expect(open)?;
        let mut console = director_session(port, 0)?;
        console.send(b".status current\n")?;
        console.expect("2000 OK .status\n")?;
        console.expect(&format!("JobId={job} JobStatus={state} JobErrors=0\n"))?;
        order_end(port, job, "stop")?;
        let open = (fd == Fd::Ours).then_some(storage);
        let said: Vec<_> = peer.rest()?.iter().map(Frame::text).collect();
        drop(open);
        let end = said.iter().find(|text| text.starts_with("2800 End Job TermCode=73 ")).map_or("", String::as_str);
        let is_told = said.iter().any(|text| text.contains("Fatal error: ")) && end.contains(" Errors=1 ");
        let is_quiet = !said.iter().any(|text| text.contains("rror: ")) && end.contains(" Errors=0 ");
        assert!(if fd == Fd::Ours { is_quiet } else { is_told }, "{command}: {said:?}");
    }
    Ok(())
}

/// Its connection must not look idle to a router.
#[test]
fn a_director_whose_job_waits_gets_heartbeats() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon sends none before the first file");
    let mut client = ClientOptions::new(Fd::Ours).named("test");
    client.file_daemon.push("Heartbeat Interval = 1".to_owned());
    let mut bed = Bed::start(BedOptions::new("heartbeat", [client])?.in_clear())?;
    let port = bed.client("test")?.port();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let storage_port = listener.local_addr().unwrap().port();
    let mut peer = begin(port, 1, &[format!("storage address=127.0.0.1 port={storage_port} ssl=0\n").as_bytes()])?;
    let mut storage = storage_session(&listener)?;
    while peer.receive_text()? != "2000 OK storage\n" {}
    peer.send(b"backup FileIndex=0\n")?;
    peer.expect("2000 OK backup\n")?;
    storage.expect("append open session")?;
    for _ in 0..2 {
        assert_eq!(peer.receive()?, Frame::Signal(HEARTBEAT));
    }
    cancel(port, 1)?;
    must_end_canceled(&mut peer, "a backup")
}

/// A job that waits looks as if it hung, and only the other side's configuration is wrong, or its
/// process stands still.
#[test]
fn a_storage_daemon_that_is_waited_for_is_told_before_the_wait_is_over() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon says nothing for ten minutes, or half an hour");
    let mut bed = bed_in_clear("no-storage")?;
    let port = bed.client("test")?.port();
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let of_silent = silent.local_addr().unwrap().port();
    let called = format!("127.0.0.1:{of_silent} has taken the call and does not answer. Waiting ...");
    let calls = [" has not called yet. Waiting on ", &format!(":{port} ...")];
    for (job, storage_port, wanted) in [(1, 0, &calls[..]), (2, of_silent, &[called.as_str()])] {
        let mut peer =
            begin(port, job, &[format!("storage address=127.0.0.1 port={storage_port} ssl=0\n").as_bytes()])?;
        let said = peer.receive_text()?;
        assert!(said.starts_with("Jmsg ") && wanted.iter().all(|text| said.contains(text)), "{said}");
        cancel(port, job)?;
        must_end_canceled(&mut peer, &said)?;
    }
    Ok(())
}

#[test]
fn a_job_that_has_not_begun_ends_with_its_director() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon waits on");
    let (bed, fifo, port, pid) = stage("director-gone")?;
    for (job, (packets, runs)) in (1..).zip(waits(&fifo)) {
        let peer = begin(port, job, &packets.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        if runs {
            wait_for_children(pid, true)?;
        }
        drop(peer);
        wait_for_children(pid, false)?;
        bed.wait_for_status("test", "No Jobs running.")?;
    }
    Ok(())
}

/// Without a listing it sends nothing by which it would notice.
#[test]
fn an_estimate_ends_with_its_director() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon goes on");
    let mut bed = bed_in_clear("estimate-alone")?;
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    // Far more than can be looked at while this test waits.
    let names = b"F /usr\n".repeat(100_000);
    let packets = [b"fileset vss=0\n".as_slice(), b"I\n", b"O M\n", b"N\n"];
    let names = names.split_inclusive(|byte| *byte == b'\n');
    let packets: Vec<_> = packets.into_iter().chain(names).chain([b"N\n".as_slice(), b"N\n"]).collect();
    for listing in [0, 1] {
        let mut peer = begin(port, 1, &packets)?;
        peer.signal(EOD)?;
        peer.expect("2000 OK include\n")?;
        peer.send(format!("estimate listing={listing} limit=0\n").as_bytes())?;
        wait_for("the estimate", PATIENCE, || {
            let status = bed.console(&["status client=test-fd"])?;
            Ok(if status.contains("No Jobs running.") { Err(status) } else { Ok(()) })
        })?;
        drop(peer);
        bed.wait_for_status("test", "No Jobs running.")?;
        wait_for("its threads to be gone", PATIENCE, || {
            let mut left = thread_names(pid)?;
            left.retain(|name| ["estimate", "scout"].contains(&name.as_str()));
            Ok(if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) })
        })?;
    }
    Ok(())
}

#[test]
fn a_list_in_a_fifo_is_read_once_it_has_a_writer() -> Result<()> {
    let mut bed = bed_in_clear("list-fifo")?;
    let source = bed.folder().join("source");
    for name in ["one", "two"] {
        fs::write(source.join(name), name).unwrap();
    }
    let fifo = bed.folder().join("fifo");
    make_fifo(&fifo)?;
    let list = format!("F <{}\n", fifo.display());
    let packets = [b"fileset vss=0\n".as_slice(), b"I\n", b"O M\n", b"N\n", list.as_bytes(), b"N\n", b"N\n"];
    let mut peer = begin(bed.client("test")?.port(), 1, &packets)?;
    peer.signal(EOD)?;
    let mut writer = fifo_writer(&fifo)?;
    for name in ["one", "two"] {
        writeln!(writer, "{}", source.join(name).display()).unwrap();
    }
    drop(writer);
    peer.expect("2000 OK include\n")?;
    peer.send(b"estimate listing=0 limit=0\n")?;
    let said = wait_for("the estimate", PATIENCE, || {
        let said = peer.receive_text()?;
        Ok(if said.starts_with("2000 OK estimate") { Ok(said) } else { Err(said) })
    })?;
    assert!(said.starts_with("2000 OK estimate files=2 "), "{said}");
    Ok(())
}
