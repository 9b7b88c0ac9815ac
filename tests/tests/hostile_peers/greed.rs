//! Directors whose sessions take more and more of the daemon.

use std::thread;

use bed::peer::{Frame, Peer, SD_KEY, director_session};
use bed::{Fd, Result, descriptors, usage};

use crate::script::storage_script;
use crate::{assert_serves, bed_in_clear, listen, rest_as_text};

/// More than a Director has for one job.
const SCRIPTS: usize = 1000;

#[test]
fn a_session_has_a_bounded_number_of_run_scripts() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon takes the memory that it needs");
    let mut bed = bed_in_clear("scripts")?;
    let mut peer = director_session(bed.client("test")?.port(), 7)?;
    let both = ["Run OnSuccess=1 OnFailure=0 AbortOnError=0 When=2 Command=/bin/true\n", "RunAfterJob /bin/true\n"];
    for command in both.iter().cycle().take(SCRIPTS) {
        peer.send(command.as_bytes())?;
        peer.expect("2000 OK Run")?;
    }
    for command in both {
        peer.send(command.as_bytes())?;
    }
    let said = rest_as_text(&mut peer)?.concat();
    assert!(said.contains("Too many run scripts") && said.contains("2905 Bad RunScript command.\n"), "{said}");
    assert!(said.contains("2800 End Job TermCode=102 "), "{said}");

    // Eleven of them are more than a megabyte.
    let mut peer = director_session(bed.client("test")?.port(), 7)?;
    let long = format!("RunAfterJob /bin/true\u{1}{}\n", "x".repeat(100_000));
    for _ in 0..10 {
        peer.send(long.as_bytes())?;
        peer.expect("2000 OK Run")?;
    }
    peer.send(long.as_bytes())?;
    let said = rest_as_text(&mut peer)?.concat();
    assert!(said.contains("Too many run scripts") && said.contains("2905 Bad RunScript command.\n"), "{}", said.len());
    assert_serves(&bed)
}

/// The type of an object with options that a user has filled in.
const FILLED_IN: u32 = 28;

#[test]
fn commands_and_options_for_plugins_take_little_memory() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon takes the memory that it needs");
    let mut bed = bed_in_clear("options")?;
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    // What a frame of this size costs, before anything is measured.
    let long = "x".repeat(990_000);
    let fill_in = |peer: &mut Peer, number: u32| {
        peer.send(format!("restoreobject JobId=1 1,1,0,{FILLED_IN},0,1,{number}:{long}").as_bytes())?;
        peer.send(b"name")?;
        peer.send(b"x")
    };
    let mut peer = director_session(port, 7)?;
    fill_in(&mut peer, 0)?;
    peer.send(b"restoreobject end\n")?;
    peer.expect("2000 OK ObjectRestored\n")?;
    let before = usage(pid)?.peak_memory;
    for number in 1..200 {
        fill_in(&mut peer, number)?;
    }
    peer.send(b"restoreobject end\n")?;
    peer.expect("2000 OK ObjectRestored\n")?;
    let more = usage(pid)?.peak_memory.saturating_sub(before);
    assert!(more < 32 << 20, "200 commands cost {more} bytes of memory");
    drop(peer);

    // Eleven of these are more than a megabyte.
    let mut peer = director_session(port, 8)?;
    let options = format!("pluginoptions=bpipe:{}\n", "x".repeat(100_000));
    for _ in 0..11 {
        peer.send(options.as_bytes())?;
        peer.expect("2000 OK plugin options\n")?;
    }
    let said = rest_as_text(&mut peer)?.concat();
    assert!(said.contains("Too many plugin options") && said.contains("2800 End Job TermCode=102 "), "{said}");
    assert_serves(&bed)
}

/// So many times the Director names another Storage Daemon, none of which closes its connection.
const STORAGES: usize = 60;

#[test]
fn storage_daemons_that_do_not_close_take_few_descriptors() -> Result<()> {
    let mut bed = bed_in_clear("storages")?;
    let client = bed.client("test")?;
    let (port, pid) = (client.port(), client.pid()?);
    let (listener, storage_port) = listen();
    let storages = thread::spawn(move || -> Result<Vec<Peer>> {
        let mut held = Vec::new();
        for _ in 0..STORAGES {
            let mut peer = Peer::accepted("FD", &listener)?;
            storage_script().play_with(&mut peer, GREETING)?;
            held.push(peer);
        }
        Ok(held)
    });
    let mut peer = director_session(port, 7)?;
    let before = descriptors(pid)?.len();
    for _ in 0..STORAGES {
        let command = format!("storage address=127.0.0.1 port={storage_port} ssl=0 Authorization={SD_KEY}\n");
        peer.send(command.as_bytes())?;
        while peer.receive()? != Frame::Data(b"2000 OK storage\n".to_vec()) {}
    }
    let held = storages.join().unwrap()?;
    let open = descriptors(pid)?;
    assert!(open.len() < before + STORAGES / 2, "{before}, now {}: {open:?}", open.len());
    drop(held);
    peer.finish()?;
    rest_as_text(&mut peer)?;
    assert_serves(&bed)
}

/// Steps of the script of a Storage Daemon up to the end of the login.
const GREETING: usize = 10;
