//! Damaged volumes: a scripted Storage Daemon sends the daemon under test every kind of record in
//! every kind of damage, over the wire, on behalf of a scripted Director. Whatever comes, the
//! daemon ends the job with an `End Job` that has its status, restores what was not damaged,
//! reports what is wrong, writes nowhere else, and serves the next job.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

mod hostile_host;
mod kept;
mod orders;
mod records;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;

use bed::peer::{EOD, Frame, HEARTBEAT, Peer, SD_KEY, TERMINATE, logged_in, storage_session};
use bed::{Bed, BedOptions, ClientOptions, DIRECTOR, Fd, Result, descriptors};
use records::{CONTENT, Damage, MTIME, Victim, victims};
use walkdir::WalkDir;

/// The next packet that is neither a job message nor a heartbeat; messages are kept.
fn hear(peer: &mut Peer, messages: &mut Vec<(u32, String)>) -> Result<Frame> {
    loop {
        match peer.receive()? {
            Frame::Signal(HEARTBEAT) => {}
            Frame::Data(bytes) if bytes.starts_with(b"Jmsg ") => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let kind = text.split_once(" type=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
                messages.push((kind.unwrap_or(0), text));
            }
            Frame::Data(bytes) if bytes.starts_with(b"Progress ") => {}
            other => return Ok(other),
        }
    }
}

/// The Storage Daemon: takes one connection, lets it log in, and sends `session`.
fn storage_daemon(listener: &TcpListener, session: &[u8], ends: bool) -> Result<()> {
    let mut peer = storage_session(listener)?;
    peer.expect("read open session = ")?;
    peer.send(b"3000 OK open ticket = 1\n")?;
    peer.expect("read data 1\n")?;
    peer.send(b"3000 OK data\n")?;
    // From here on the daemon may go away at any time.
    let sent = peer.send_bytes(session).is_ok() && (!ends || peer.signal(EOD).is_ok());
    if !ends || !sent {
        return Ok(());
    }
    while let Ok(frame) = peer.receive() {
        match frame {
            Frame::Data(bytes) if bytes.starts_with(b"read close session") => {
                let _gone = peer.send(b"3000 OK close Status = 84\n").and_then(|()| peer.signal(EOD));
            }
            Frame::Closed | Frame::Signal(TERMINATE) => break,
            _ => {}
        }
    }
    Ok(())
}

/// What a job came to.
#[derive(Debug)]
struct Outcome {
    messages: Vec<(u32, String)>,
    end: String,
}

impl Outcome {
    /// Errors, fatal errors and warnings, without the sum of them at the job's end.
    fn complaints(&self) -> usize {
        let is_sum = |text: &str| text.contains("Warning: Encountered ");
        self.messages.iter().filter(|(kind, text)| matches!(kind, 4..=6) && !is_sum(text)).count()
    }

    fn field(&self, key: &str) -> i64 {
        let value = self.end.split_once(&format!(" {key}=")).and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        value.unwrap_or(-1)
    }
}

/// Plays the Director of one restore to `to`.
fn restore(fd: u16, job: usize, to: &Path, session: Vec<u8>, ends: bool) -> Result<Outcome> {
    let mut peer = director(fd, DIRECTOR, job)?;
    let place = format!("where={}", to.display());
    let (storage, mut messages) = begin_round(&mut peer, &place, session, ends)?;
    let end = loop {
        match hear(&mut peer, &mut messages)? {
            Frame::Data(bytes) if bytes.starts_with(b"2000 OK storage end") => {
                // After a fatal error it does not wait for this.
                let _gone = peer.send(b"endrestore");
            }
            Frame::Data(bytes) if bytes.starts_with(b"2800 End Job") => break String::from_utf8(bytes).unwrap(),
            other => {
                let problem = format!("{other:?} after {messages:?}");
                return Err(bed::BedError::Peer { who: "FD".to_owned(), problem });
            }
        }
    };
    storage.join().unwrap()?;
    Ok(Outcome { messages, end })
}

/// Logs in as a Director, and names a job.
fn director(fd: u16, name: &str, job: usize) -> Result<Peer> {
    let mut peer = logged_in(fd, name)?;
    peer.send(
        format!("JobId={job} Job=damage.2026-01-01_00.00.00_{job:02} SDid=1 SDtime=1 Authorization={SD_KEY}\n")
            .as_bytes(),
    )?;
    peer.expect("2000 OK Job ")?;
    Ok(peer)
}

/// A round's Storage Daemon, and what the daemon has said so far.
type Round = (thread::JoinHandle<Result<()>>, Vec<(u32, String)>);

/// Begins a round of a restore with a Storage Daemon that sends `session`.
fn begin_round(peer: &mut Peer, place: &str, session: Vec<u8>, ends: bool) -> Result<Round> {
    let command = format!("restore files=3 replace=a prelinks=0 {place}\n");
    begin_reading(peer, session, ends, &command, b"2000 OK restore\n")
}

/// Begins what reads a Storage Daemon that sends `session`: a command and its answer.
fn begin_reading(peer: &mut Peer, session: Vec<u8>, ends: bool, command: &str, good: &[u8]) -> Result<Round> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let storage = thread::spawn(move || storage_daemon(&listener, &session, ends));
    let mut messages = Vec::new();
    peer.send(format!("storage address=127.0.0.1 port={port} ssl=0 Authorization={SD_KEY}\n").as_bytes())?;
    let answer = hear(peer, &mut messages)?;
    if answer != Frame::Data(b"2000 OK storage\n".to_vec()) {
        let problem = format!("{answer:?} to storage after {messages:?}");
        return Err(bed::BedError::Peer { who: "FD".to_owned(), problem });
    }
    peer.send(command.as_bytes())?;
    assert_eq!(hear(peer, &mut messages)?, Frame::Data(good.to_vec()), "{messages:?}");
    Ok((storage, messages))
}

/// Everything below a directory but access times and the changing of directories: path, mode, size,
/// time, content.
fn survey(top: &Path) -> BTreeMap<String, (u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in WalkDir::new(top) {
        let entry = entry.unwrap();
        let (path, status) = (entry.path(), entry.metadata().unwrap());
        let content = if status.is_file() { fs::read(path).unwrap() } else { Vec::new() };
        let time = if status.is_dir() { 0 } else { status.mtime() };
        found.insert(path.display().to_string(), (status.mode(), time, content));
    }
    found
}

/// What is wrong with the outcome of a case.
fn faults(victim: &Victim, damage: Damage, to: &Path, outcome: &Outcome) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    let whole = |name: &str| {
        let path = to.join(name);
        let status = fs::metadata(&path);
        let is_dressed = status.is_ok_and(|status| status.mtime() == MTIME && status.mode() == 0o100_640);
        is_dressed && fs::read(&path).is_ok_and(|content| content == CONTENT)
    };
    let shared = victim.name == "update of attributes" || victim.name == "attributes of a hard link";
    must(shared || whole("before"), "what came before is damaged");
    let term = outcome.field("TermCode");
    if damage.is_fatal() {
        must(matches!(term, 69 | 102), "a session that makes no sense ended well");
        must(!to.join("zz/after").exists(), "went on behind what makes no sense");
    } else {
        // An ACL behind the last file is taken for its own.
        let moved_there = victim.name == "access ACL" && damage == Damage::Late;
        must(moved_there || whole("zz/after"), "what comes behind is damaged");
        must(matches!(term, 84 | 69), "damage of one file ended the job");
    }
    must((term == 84 && outcome.field("Errors") == 0) || outcome.complaints() > 0, "failed without a word");
    // A record of an unknown stream is reported each time it comes, as by the stock daemon; and so
    // is the data that it costs its file if it comes before.
    let twice = matches!(damage, Damage::Repeated | Damage::OutOfOrder)
        && matches!(victim.name, "unknown stream" | "name of a plugin");
    must(outcome.complaints() <= if twice { 2 } else { 1 }, "more than one message");
    if damage == Damage::None {
        let silent =
            !matches!(victim.name, "encrypted data" | "encryption session" | "unknown stream" | "name of a plugin");
        must(!silent || outcome.complaints() == 0, "complains about nothing");
    } else if !victim.has_no_check && !whole("m/victim") {
        must(outcome.complaints() > 0, "lost data without a word");
        must(!damage.is_fatal() || term != 84, "lost data and ended well");
    }
    faults
}

#[test]
fn damaged_records_fail_only_what_was_damaged_with_a_message() -> Result<()> {
    let options = BedOptions::new("damage", [ClientOptions::new(Fd::under_test()?).named("test")])?.in_clear();
    let mut bed = Bed::start(options)?;
    let outside = bed.folder().join("outside");
    for name in ["before", "m/victim", "zz/after"] {
        fs::create_dir_all(outside.join(name).parent().unwrap()).unwrap();
        fs::write(outside.join(name), b"not yours\n").unwrap();
    }
    let untouched = survey(&outside);
    let (fd, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    let mut wrong = Vec::new();
    let (mut cases, mut held) = (0, 0);
    for victim in victims() {
        for damage in Damage::ALL {
            cases += 1;
            let root = bed.folder().join(format!("cases/{cases}"));
            let to = root.join("to");
            fs::create_dir_all(&root).unwrap();
            let outcome = restore(fd, cases, &to, damage.session(&victim), damage != Damage::BrokenOff)?;
            let mut found = faults(&victim, damage, &to, &outcome);
            // Only the place itself came to be.
            if fs::read_dir(&root).unwrap().any(|entry| entry.unwrap().file_name() != "to") {
                found.push("something beside the place".to_owned());
            }
            if !found.is_empty() {
                let told: Vec<_> = outcome.messages.iter().map(|(_, text)| text.trim_end()).collect();
                wrong.push(format!(
                    "{} {damage:?}: {found:?}\n    {}\n    {}",
                    victim.name,
                    told.join("\n    "),
                    outcome.end
                ));
            }
            fs::remove_dir_all(&root).unwrap();
            if cases == 1 {
                held = descriptors(pid)?.len();
            }
        }
    }
    assert_eq!(survey(&outside), untouched);
    println!("{cases} cases, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // One daemon took all of them, and serves the real Director.
    assert_eq!(bed.client("test")?.pid()?, pid);
    let status = bed.console(&["status client=test-fd"])?;
    assert!(status.contains("Terminated Jobs:"), "{status}");
    idle_again(pid, held)?;
    Ok(())
}

/// Waits until the daemon has as many descriptors as before, or one more for what it keeps; says
/// how many.
fn idle_again(pid: u32, held: usize) -> Result<usize> {
    bed::wait_for("descriptors to be where they were", bed::PATIENCE, || {
        let open = descriptors(pid)?;
        Ok(if open.len() <= held + 1 { Ok(open.len()) } else { Err(format!("{open:?}")) })
    })
}

/// A session of files with this content each.
fn files(names: &[&str], content: &[u8]) -> Vec<u8> {
    names.iter().flat_map(|name| records::session_of(&records::file_with(name, content))).collect()
}

#[test]
fn a_full_disk_and_too_few_descriptors_fail_only_what_needs_them() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    let options = BedOptions::new("shortage", [ClientOptions::new(Fd::under_test()?).named("test")])?.in_clear();
    let mut bed = Bed::start(options)?;
    let (fd, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    let held = descriptors(pid)?.len();
    let to = bed.folder().join("small");
    fs::create_dir(&to).unwrap();
    let words = ["mount", "-t", "tmpfs", "-o", "size=64k", "small"].map(AsRef::as_ref);
    assert!(bed::run(&bed::argv(words.into_iter().chain([to.as_os_str()])), b"")?.status.success());
    let told = restore(fd, 1, &to, files(&["/one", "/two", "/three"], &vec![7; 50_000]), true);
    let one = fs::metadata(to.join("one")).map_or(0, |status| status.len());
    let words = ["umount", "-l"].map(AsRef::as_ref);
    assert!(bed::run(&bed::argv(words.into_iter().chain([to.as_os_str()])), b"")?.status.success());
    let told = told?;
    assert_eq!(one, 50_000);
    for name in ["two", "three"] {
        let about = |(_, text): &&(u32, String)| text.contains(&format!("small/{name}: ERR=No space left on device"));
        assert_eq!(told.messages.iter().filter(about).count(), 1, "{name}: {told:?}");
    }
    assert_eq!((told.field("TermCode"), told.field("JobFiles")), (69, 3), "{told:?}");

    // One descriptor less each time, from plenty to almost none: the job ends, and says why files
    // are missing.
    let idle = idle_again(pid, held)?;
    let mut ended = 0;
    for spare in (2..12).rev() {
        let limit = format!("--nofile={}:4096", idle + spare);
        let words = ["prlimit".to_owned(), format!("--pid={pid}"), limit];
        assert!(bed::run(&bed::argv(words), b"")?.status.success());
        let to = bed.folder().join(format!("few-{spare}"));
        let outcome = restore(fd, 100 + spare, &to, files(&["/a/b/c/one", "/two"], b"content"), true);
        let words = ["prlimit".to_owned(), format!("--pid={pid}"), "--nofile=1024:4096".to_owned()];
        assert!(bed::run(&bed::argv(words), b"")?.status.success());
        // Below a handful the daemon can't even talk to the Storage Daemon, or to the Director.
        let Ok(outcome) = outcome else { break };
        ended += 1;
        let there = ["a/b/c/one", "two"]
            .iter()
            .filter(|name| fs::read(to.join(name)).is_ok_and(|read| read == b"content"))
            .count();
        let missing = 2 - there;
        let named = outcome.messages.iter().filter(|(_, text)| text.contains("Too many open files")).count();
        println!("{spare} descriptors: {missing} files missing, {named} messages");
        assert!(named >= missing, "{outcome:?}");
        // An error that nothing was said behind comes too late for the status, and counts all the
        // same.
        assert_eq!(missing == 0, outcome.field("Errors") == 0, "{outcome:?}");
        assert!(matches!(outcome.field("TermCode"), 69 | 84), "{outcome:?}");
    }
    assert!((4..12).contains(&ended), "{ended} jobs ended");
    assert!(bed.console(&["status client=test-fd"])?.contains("Terminated Jobs:"));
    Ok(())
}

#[test]
fn message_files_and_directories_without_a_record_are_not_for_all_to_write_with_umask_0() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon leaves it to the umask");
    let mut client = ClientOptions::new(Fd::under_test()?).named("test");
    client.wrapper = ["sh", "-c", "umask 0; exec \"$@\"", "sh"].map(str::to_owned).to_vec();
    client.messages = vec!["Append = \"@WORK@/messages\" = all".to_owned()];
    let options = BedOptions::new("umask", [client])?.in_clear();
    let mut bed = Bed::start(options)?;
    let to = bed.folder().join("to");
    let outcome = restore(bed.client("test")?.port(), 1, &to, files(&["/one/two/three"], CONTENT), true)?;
    assert_eq!(outcome.field("TermCode"), 84, "{outcome:?}");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&bed.folder().join("work/test/messages")), 0o640);
    assert_eq!([mode(&to), mode(&to.join("one"))], [0o755; 2]);
    Ok(())
}

#[test]
fn data_is_compared_with_its_digest_unless_the_administrator_says_no() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon compares nothing");
    let client = |name: &str, settings: &[&str]| -> Result<ClientOptions> {
        let mut client = ClientOptions::new(Fd::under_test()?).named(name);
        client.settings = settings.iter().map(|line| (*line).to_owned()).collect();
        Ok(client)
    };
    let unchecked = client("unchecked", &["restore.check_digests = \"no\""])?;
    let options = BedOptions::new("digests", [client("checked", &[])?, unchecked])?.in_clear();
    let mut bed = Bed::start(options)?;
    for (name, differs, status) in [("checked", true, 69), ("unchecked", false, 84)] {
        let mut records = records::file_with("/torn", CONTENT);
        // The first byte of the data.
        records[1].data[0] ^= 1;
        let (to, port) = (bed.folder().join(name), bed.client(name)?.port());
        let outcome = restore(port, 1, &to, records::session_of(&records), true)?;
        assert_eq!(outcome.field("TermCode"), status, "{name}: {outcome:?}");
        let says = |text: &str| outcome.messages.iter().any(|(_, message)| message.contains(text));
        assert_eq!(says("MD5 digest of restored file "), differs, "{name}: {outcome:?}");
        assert_eq!(says("restore.check_digests in bacula-fd.toml is \"no\""), !differs, "{name}: {outcome:?}");
        assert!(to.join("torn").exists(), "{name}: {outcome:?}");
    }
    Ok(())
}
