//! Commands and answers that no current Director sends or gets, and what the two daemons do. Each
//! test shows both.

#![expect(clippy::expect_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs;
use std::io::Write as _;
use std::thread;

use nix::sys::signal::Signal;

use bed::peer::{Frame, Peer, hello, key_of_password, packet};
use bed::{
    Authority, Bed, BedError, BedOptions, DIRECTOR, FD_PASSWORD, Fd, FileSet, Folder, Noise, PATIENCE, Result,
    fifo_writer, make_fifo, wait_for,
};

/// The ports of the stock daemon and of ours, which send Directors everything, and their bed;
/// nothing if there is no second daemon.
fn both(label: &str, file_sets: Vec<FileSet>) -> Result<Option<([u16; 2], Bed)>> {
    if Fd::under_test()? == Fd::Stock {
        return Ok(None);
    }
    let mut options = talkative(label)?.in_clear();
    options.file_sets.extend(file_sets);
    let mut bed = Bed::start(options)?;
    let ports = [bed.client("reference")?.port(), bed.client("test")?.port()];
    Ok(Some((ports, bed)))
}

/// Both daemons with messages for Directors and for a file.
fn talkative(label: &str) -> Result<BedOptions> {
    let mut options = BedOptions::side_by_side(label)?;
    for client in &mut options.clients {
        let to_director = format!("Director = {DIRECTOR} = all, events, !skipped, !restored");
        client.messages = vec![to_director, "Append = @WORK@/heard = all".to_owned()];
        client.file_daemon.push("Maximum Bandwidth Per Job = 10 mb/s".to_owned());
    }
    Ok(options)
}

/// How often a client has told of a wrong password in its file, which is here, too.
fn wrong_passwords(bed: &Bed, client: &str) -> (usize, String) {
    let heard = bed.folder().join("work").join(client).join("heard");
    let heard = fs::read_to_string(heard).unwrap_or_default();
    (heard.matches("Incorrect password given by Director").count(), heard)
}

/// What both daemons say to the same, at the same time: they let bad callers wait.
fn answers(ports: [u16; 2], talk: impl Fn(u16) -> Result<Vec<String>> + Sync) -> Result<[Vec<String>; 2]> {
    let talk = &talk;
    thread::scope(|scope| {
        let [stock, ours] = ports.map(|port| scope.spawn(move || talk(port)));
        let failed = "the talk with a daemon failed";
        Ok([stock.join().expect(failed)?, ours.join().expect(failed)?])
    })
}

/// Everything until the daemon closes.
fn rest(peer: &mut Peer) -> Result<Vec<String>> {
    Ok(peer.rest()?.iter().map(Frame::text).collect())
}

/// A caller that sends one packet.
fn stranger(port: u16, first: &[u8]) -> Result<Vec<String>> {
    let mut peer = Peer::connect("FD", port)?;
    peer.send_bytes(&packet(first))?;
    rest(&mut peer)
}

/// The Director's session of a job, 0 for a console's: these packets, and nothing more. Gives what
/// the daemon says after it has accepted the job.
fn session(port: u16, job: u32, packets: &[&[u8]]) -> Result<Vec<String>> {
    session_of(&hello(DIRECTOR), port, job, packets)
}

/// The same, of a Director with another hello.
fn session_of(hello: &str, port: u16, job: u32, packets: &[&[u8]]) -> Result<Vec<String>> {
    let mut peer = begun(hello, port, job)?;
    for packet in packets {
        peer.send(packet)?;
    }
    peer.finish()?;
    rest(&mut peer)
}

/// A session whose Director waits for the end that this packet brings about.
fn ended_session(port: u16, job: u32, packet: &[u8]) -> Result<Vec<String>> {
    let mut peer = begun(&hello(DIRECTOR), port, job)?;
    peer.send(packet)?;
    rest(&mut peer)
}

/// One whose Director has closed it by then. It is still told here what a real one would not get.
fn left_session(port: u16, job: u32, packet: &[u8]) -> Result<Vec<String>> {
    let mut peer = begun(&hello(DIRECTOR), port, job)?;
    peer.send_last(packet)?;
    rest(&mut peer)
}

/// A Director's session up to the daemon's word about its job.
fn begun(hello: &str, port: u16, job: u32) -> Result<Peer> {
    let mut peer = Peer::connect("FD", port)?;
    peer.send(hello.as_bytes())?;
    peer.log_in(&key_of_password(FD_PASSWORD), DIRECTOR)?;
    peer.send(job_command(job).as_bytes())?;
    // The event of this login may come before.
    while !peer.receive_text()?.starts_with("2000 OK Job ") {}
    Ok(peer)
}

fn job_command(job: u32) -> String {
    format!("JobId={job} Job=odd.2026-01-01_00.00.00_{job:02} SDid=1 SDtime=1 Authorization=dummy\n")
}

/// What ends a job's session at once, and with a word about its end.
const BAD_LEVEL: &[u8] = b"verify level=nonsense\n";
const ALERT: &str = "job.c:592 FD expecting Hello got bad command from 127.0.0.1";

fn hears(said: &[String], what: &str) -> bool {
    said.iter().any(|text| text.contains(what))
}

#[test]
fn events_are_kept_for_the_next_director_that_logs_in() -> Result<()> {
    let Some((ports, _bed)) = both("strangers", Vec::new())? else { return skip::test(bed::ONLY_OURS) };
    let nobody = hello("nobody");
    let [stock, ours] = answers(ports, |port| {
        assert_eq!(stranger(port, b"bad first packet, one")?, [""; 0]);
        stranger(port, nobody.as_bytes())
    })?;
    let refusal = "authenticate.c:100 [FE0027] Connection from unknown Director nobody at 127.0.0.1 rejected.\n";
    assert_eq!(ours, [refusal, "Signal(-4)"]);
    assert_eq!(stock.first().map(String::as_str), Some(refusal));
    assert!(hears(&stock, "code=FS0001") && hears(&stock, ALERT), "{stock:?}");
    let [stock, ours] = answers(ports, |port| {
        assert_eq!(stranger(port, b"bad first packet, two")?, [""; 0]);
        // A console's Director has hung up when its session ends.
        let told = session(port, 0, &[])?;
        assert!(!hears(&told, ALERT), "{told:?}");
        ended_session(port, 1, BAD_LEVEL)
    })?;
    assert!(hears(&stock, "2800 End Job") && !hears(&stock, ALERT), "{stock:?}");
    assert!(hears(&ours, "2800 End Job") && hears(&ours, ALERT), "{ours:?}");
    // So has the Director of a job that was canceled.
    let [stock, ours] = answers(ports, |port| {
        assert_eq!(stranger(port, b"bad first packet, three")?, [""; 0]);
        left_session(port, 2, BAD_LEVEL)
    })?;
    assert!(hears(&stock, "2800 End Job") && hears(&stock, ALERT), "{stock:?}");
    assert!(hears(&ours, "2800 End Job") && !hears(&ours, ALERT), "{ours:?}");
    let [stock, ours] = answers(ports, |port| ended_session(port, 3, BAD_LEVEL))?;
    assert!(hears(&stock, "2800 End Job") && !hears(&stock, ALERT), "{stock:?}");
    assert!(hears(&ours, "2800 End Job") && hears(&ours, ALERT), "{ours:?}");
    Ok(())
}

/// It has said good-bye on the job's connection, and with TLS it may wait for the daemon's before
/// it closes.
#[test]
fn events_are_kept_while_the_director_of_a_canceled_job_leaves_an_encrypted_connection() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, bed::ONLY_OURS);
    let mut options = talkative("canceled-encrypted")?;
    let fifo = options.folder.path().join("fifo");
    make_fifo(&fifo)?;
    options.file_sets.push(FileSet::new("fifo", &["ReadFifo = yes"], &[&fifo]));
    let mut bed = Bed::start(options)?;
    let port = bed.client("test")?.port();
    let job = bed.queue("run job=backup-test fileset=fifo yes")?;
    let writer = fifo_writer(&fifo)?;
    assert_eq!(stranger(port, b"a bad first packet")?, [""; 0]);
    bed.console(&[&format!("cancel jobid={job} yes")])?;
    bed.wait(job)?.must_be('A')?;
    drop(writer);
    bed.wait_for_status("test", "No Jobs running.")?;
    let heard = ended_session(port, job + 1, BAD_LEVEL)?;
    assert!(hears(&heard, ALERT), "{heard:?}");
    Ok(())
}

#[test]
fn a_login_that_fails_is_told_on_the_client() -> Result<()> {
    let Some((ports, mut bed)) = both("failed-login", Vec::new())? else { return skip::test(bed::ONLY_OURS) };
    answers(ports, |port| {
        stranger(port, hello("nobody").as_bytes())?;
        stranger(port, format!("Hello Director {DIRECTOR} callxing 10002 tlspsk=0\n").as_bytes())?;
        for _ in 0..2 {
            let mut peer = Peer::connect("FD", port)?;
            peer.send(hello(DIRECTOR).as_bytes())?;
            assert!(peer.log_in(&key_of_password("another"), DIRECTOR).is_err());
            rest(&mut peer)?;
            stranger(port, b"in between")?;
        }
        Ok(Vec::new())
    })?;
    for (client, times) in [("reference", 2), ("test", 1)] {
        wait_for("the wrong password in the file", PATIENCE, || {
            let (count, heard) = wrong_passwords(&bed, client);
            let begin = format!("{client}-fd: Fatal Error at authenticatebase.cc:538 because:\nIncorrect password");
            Ok(if count == times && heard.contains(&begin) { Ok(()) } else { Err(heard) })
        })?;
        let printed = bed.client(client)?.daemon().output();
        for reason in [
            "[FE0027] Connection from unknown Director nobody at 127.0.0.1 rejected.",
            "Bad Hello command from Director at 127.0.0.1: Hello Director bed-dir callxing 10002 tlspsk=0",
        ] {
            assert!(printed.contains(reason), "{client}: {printed}");
        }
    }
    // The next Director has nothing to do with it, but may be the only one who reads.
    let [stock, ours] = answers(ports, |port| ended_session(port, 1, BAD_LEVEL))?;
    let text = "Security Alert: Message repeated 2 times: Incorrect password given by Director bed-dir at 127.0.0.1.";
    assert!(!hears(&stock, "Incorrect password") && hears(&ours, text), "{stock:?}, {ours:?}");
    let (count, heard) = wrong_passwords(&bed, "test");
    assert_eq!(count, 1, "{heard}");
    Ok(())
}

#[test]
fn a_wrong_password_of_an_encrypted_login_is_told_on_the_client() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, bed::ONLY_OURS);
    let mut options = talkative("encrypted-login")?;
    for client in ["reference", "test"] {
        let (name, port) = (format!("Name = wrong-{client}"), format!("FDPort = @port-of-{client}@"));
        let wrong = ["Client {", &name, "Address = 127.0.0.1", &port, "Password = wrong", "Catalog = Catalog", "}"];
        options.director_resources.extend(wrong.map(str::to_owned));
    }
    let mut bed = Bed::start(options)?;
    let ports = [bed.client("reference")?.port(), bed.client("test")?.port()];
    let commands = ["reference", "test"].map(|client| [format!("status client=wrong-{client}")]);
    thread::scope(|scope| {
        let consoles = commands.each_ref().map(|[status]| scope.spawn(|| bed.console(&[status, status])));
        for console in consoles {
            let said = console.join().expect("the console failed")?;
            assert_eq!(said.matches("TLS Connect failure. Check the passwords.").count(), 2, "{said}");
        }
        Ok::<(), BedError>(())
    })?;
    let [stock, ours] = answers(ports, |port| ended_session(port, 1, BAD_LEVEL))?;
    let text = "times: Incorrect password given by Director bed-dir at 127.0.0.1.";
    assert!(!hears(&stock, "Incorrect password") && hears(&ours, text), "{stock:?}, {ours:?}");
    for (client, times) in [("reference", 0), ("test", 1)] {
        let (count, heard) = wrong_passwords(&bed, client);
        assert_eq!(count, times, "{client}: {heard}");
    }
    Ok(())
}

/// What is wrong with a Director's certificate is told in the stock daemon's words, though not each
/// time; and nobody is sent to look at passwords.
#[test]
fn a_director_whose_certificate_is_refused_is_told_on_the_client() -> Result<()> {
    if Fd::under_test()? == Fd::Stock {
        return skip::test(bed::ONLY_OURS);
    }
    let mut options = talkative("refused-certificate")?;
    let folder = options.folder.path();
    let (ours, other) = (Authority::new(folder, "ca")?, Authority::new(folder, "other-ca")?);
    ours.sign("fd", &["localhost"])?;
    other.sign("stranger", &["localhost"])?;
    other.sign("visitor", &["localhost"])?;
    let tls = |identity: Vec<String>| {
        let lines = ["TLS PSK Enable = no", "TLS Enable = yes", "TLS Require = yes"].map(str::to_owned);
        [lines.to_vec(), vec![ours.trusted()], identity].concat()
    };
    for client in &mut options.clients {
        client.fd_director = tls(ours.identity("fd"));
        let password = format!("Password = {FD_PASSWORD}");
        for caller in ["stranger", "visitor"] {
            let (name, port) =
                (format!("Name = {caller}-{}", client.name), format!("FDPort = @port-of-{}@", client.name));
            let head = ["Client {", &name, "Address = 127.0.0.1", &port, &password, "Catalog = Catalog"];
            options.director_resources.extend(head.map(str::to_owned));
            options.director_resources.extend(tls(other.identity(caller)));
            options.director_resources.push("}".to_owned());
        }
    }
    let mut bed = Bed::start(options)?;
    let commands = ["stranger", "stranger", "visitor"]
        .map(|caller| ["reference", "test"].map(|client| format!("status client={caller}-{client}")));
    let commands: Vec<_> = commands.iter().flatten().map(String::as_str).collect();
    bed.console(&commands)?;
    let line = |client: &str, caller: &str| {
        format!(
            "{client}-fd JobId 0: Error: tls.c:95 Error with certificate at depth: 0, issuer = /CN=other-ca, subject = /CN={caller}, \
             ERR=20:unable to get local issuer certificate\n"
        )
    };
    wait_for("the last certificate in the log", PATIENCE, || {
        let log = bed.client("test")?.daemon().output();
        Ok(if log.contains("subject = /CN=visitor") { Ok(()) } else { Err(log) })
    })?;
    for (client, of_stranger, of_visitor) in [("reference", 2, 1), ("test", 1, 0)] {
        let heard = bed.folder().join("work").join(client).join("heard");
        wait_for("the certificate in the file", PATIENCE, || {
            let heard = fs::read_to_string(&heard).unwrap_or_default();
            let times = |caller| heard.matches(&line(client, caller)).count();
            let is_told = times("stranger") == of_stranger && times("visitor") == of_visitor;
            Ok(if is_told { Ok(()) } else { Err(heard) })
        })?;
    }
    let log = bed.client("test")?.daemon().output();
    assert!(!log.to_lowercase().contains("password"), "{log}");
    Ok(())
}

#[test]
fn a_daemon_that_ends_leaves_a_script_to_its_end() -> Result<()> {
    let Some((ports, mut bed)) = both("script-stays", Vec::new())? else { return skip::test(bed::ONLY_OURS) };
    for (client, port) in ["reference", "test"].into_iter().zip(ports) {
        let [gate, ended, script] =
            ["gate", "ended", "script"].map(|name| bed.folder().join(format!("{client}-{name}")));
        make_fifo(&gate)?;
        let text = format!("cat {} > {}.part\nmv {1}.part {1}\n", gate.display(), ended.display());
        fs::write(&script, text).expect("the script");
        let mut peer = begun(&hello(DIRECTOR), port, 1)?;
        peer.send(format!("RunBeforeJob /bin/sh\u{1}{}\n", script.display()).as_bytes())?;
        let runs = fifo_writer(&gate)?;
        let daemon = bed.client(client)?.daemon().process()?;
        daemon.signal(Signal::SIGTERM)?;
        if client == "test" {
            daemon.wait_exit(PATIENCE)?;
        }
        assert!(!ended.exists(), "{client}: the script waits");
        drop(runs);
        daemon.wait_exit(PATIENCE)?;
        if client == "test" {
            wait_for("the script", PATIENCE, || Ok(if ended.exists() { Ok(()) } else { Err(String::new()) }))?;
        }
        assert!(ended.exists(), "{client} has not waited for its script");
    }
    Ok(())
}

#[test]
fn one_connection_is_one_login_and_one_job() -> Result<()> {
    let Some((ports, _bed)) = both("one-job", Vec::new())? else { return skip::test(bed::ONLY_OURS) };
    let [stock, ours] = answers(ports, |port| session(port, 1, &[hello(DIRECTOR).as_bytes()]))?;
    assert!(hears(&stock, "auth cram-md5 <") && !hears(&ours, "auth cram-md5 <"), "{stock:?}, {ours:?}");
    assert!(ours.starts_with(&["2999 Invalid command\n".to_owned()]), "{ours:?}");
    let [stock, ours] = answers(ports, |port| session(port, 2, &[job_command(3).as_bytes()]))?;
    assert!(hears(&stock, "2000 OK Job ") && !hears(&ours, "2000 OK Job "), "{stock:?}, {ours:?}");
    assert!(hears(&ours, "Bad Job Command: JobId=3 ") && hears(&ours, "2901 Bad Job\n"), "{ours:?}");
    Ok(())
}

#[test]
fn a_bad_verify_level_is_answered_with_the_command() -> Result<()> {
    let Some((ports, _bed)) = both("bad-level", Vec::new())? else { return skip::test(bed::ONLY_OURS) };
    let [stock, ours] = answers(ports, |port| session(port, 1, &[BAD_LEVEL]))?;
    assert_eq!(ours.first().map(String::as_str), Some("2994 Bad verify level: verify level=nonsense\n\n"));
    let answer = stock.first().map(String::as_str).unwrap_or_default();
    // What it has instead is not to be foreseen.
    assert!(answer.starts_with("2994 Bad verify level: ") && !answer.contains("nonsense"), "{answer:?}");
    Ok(())
}

#[test]
fn numbers_in_the_status_have_commas_as_the_stock_daemon_s() -> Result<()> {
    let Some((ports, _bed)) = both("commas", Vec::new())? else { return skip::test(bed::ONLY_OURS) };
    for said in answers(ports, |port| session(port, 0, &[b"status"]))? {
        assert!(hears(&said, " bwlimit=9,765kB/s\n"), "{said:?}");
    }
    Ok(())
}

#[test]
fn only_ours_reports_its_activity() -> Result<()> {
    let folder = Folder::new("activity-fifo")?;
    let fifo = folder.path().join("fifo\u{1b}[2J\u{202e}x");
    // What would change the terminal, or look like another field, is not in the answer.
    let shown = folder.path().join("fifo [2J x");
    make_fifo(&fifo)?;
    let file_set = FileSet::new("fifo", &["ReadFifo = yes"], &[&fifo]);
    let Some((ports, bed)) = both("activity", vec![file_set])? else { return skip::test(bed::ONLY_OURS) };
    let ask = |port| session(port, 0, &[b".status activity api=2 api_opts=j"]);
    let [stock, ours] = answers(ports, ask)?;
    assert!(hears(&stock, "2900 Bad .status command, wrong argument.\n"), "{stock:?}");
    assert_eq!(ours.concat(), "{\"activity\":[\0],\"error\":0,\"errmsg\":\"\"}\n\0Signal(-1)");
    // A job in the middle of its file, for as long as the test holds it there.
    let job = bed.queue("run job=backup-test fileset=fifo yes")?;
    let mut writer = fifo_writer(&fifo)?;
    // More than a pipe and the daemon hold back: the file has been begun when this has been
    // written.
    writer.write_all(&Noise::new(3).bytes(20 * 65536)).expect("a reader");
    let row = wait_for("the file in the activity", PATIENCE, || {
        let said = ask(ports[1])?.concat().replace('\0', "");
        let activity: serde_json::Value = serde_json::from_str(said.trim_end_matches("Signal(-1)")).unwrap_or_default();
        let row = &activity["activity"][0];
        Ok(if row["file"].as_str() == shown.to_str() { Ok(row.clone()) } else { Err(said) })
    })?;
    assert_eq!((row["jobid"].as_u64(), row["phase"].as_str()), (Some(job.into()), Some("files")), "{row}");
    assert!(row["secondssinceprogress"].is_u64() && row["canceled"] == false, "{row}");
    drop(writer);
    bed.wait(job)?.must_be('T')?;
    Ok(())
}

#[test]
fn repeated_commands_are_answered_as_by_the_stock_daemon() -> Result<()> {
    let Some((ports, _bed)) = both("twice", Vec::new())? else { return skip::test(bed::ONLY_OURS) };
    let told = |said: Vec<String>| -> Vec<String> {
        let of_strangers = said.into_iter().filter(|text| text.contains(ALERT));
        // Behind the number and the time of the message, the daemon's name and the time in words.
        of_strangers.map(|text| text.split_once("-fd ").map_or(text.clone(), |(_, rest)| rest.to_owned())).collect()
    };
    let [stock, ours] = answers(ports, |port| {
        for _ in 0..2 {
            assert_eq!(stranger(port, b"a bad first packet")?, [""; 0]);
        }
        ended_session(port, 1, BAD_LEVEL)
    })?;
    let (stock, ours) = (told(stock), told(ours));
    assert!(stock.len() == 1 && hears(&stock, "Message repeated 2 times: "), "{stock:?}");
    assert_eq!(stock, ours);
    Ok(())
}

/// By the numbers of a current Director, its Fatal would be an Error for an old one, and an event
/// Fatal.
#[test]
fn an_old_director_gets_messages_by_its_own_numbers() -> Result<()> {
    let Some((ports, _bed)) = both("numbers", Vec::new())? else { return skip::test(bed::ONLY_OURS) };
    let types = |said: &[String]| -> Vec<(u32, bool)> {
        let numbers = said.iter().filter_map(|text| {
            let (_, rest) = text.split_once("Jmsg JobId=1 type=")?;
            Some((rest.split(' ').next()?.parse().ok()?, rest.contains("Events: code=")))
        });
        numbers.collect()
    };
    let old = format!("Hello Director {DIRECTOR} calling 103\n");
    for (hello, ours_fatal, ours_events) in [(hello(DIRECTOR), 4, true), (old, 3, false)] {
        let bad_storage: &[&[u8]] = &[b"storage nonsense\n"];
        let [stock, ours] = answers(ports, |port| session_of(&hello, port, 1, bad_storage))?;
        let (stock, ours) = (types(&stock), types(&ours));
        assert!(stock.contains(&(4, false)) && stock.contains(&(3, true)), "{hello}: {stock:?}");
        assert!(ours.contains(&(ours_fatal, false)), "{hello}: {ours:?}");
        assert_eq!(ours.contains(&(3, true)), ours_events, "{hello}: {ours:?}");
        assert_eq!(ours.iter().any(|said| said.1), ours_events, "{hello}: {ours:?}");
    }
    Ok(())
}

/// Whichever it names, and once for lines with the same name.
#[test]
fn a_director_gets_each_message_once_for_each_director_that_messages_names() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, bed::ONLY_OURS);
    let mut options = talkative("named-twice")?.in_clear();
    for client in &mut options.clients {
        client.messages.push("Director = another-dir = all".to_owned());
    }
    let mut bed = Bed::start(options)?;
    let ports = [bed.client("reference")?.port(), bed.client("test")?.port()];
    for said in answers(ports, |port| session(port, 1, &[b"storage nonsense\n"]))? {
        let times = |text: &str| said.iter().filter(|frame| frame.starts_with("Jmsg ") && frame.contains(text)).count();
        // The other one takes no events.
        assert_eq!((times("Bad storage command: "), times(" text=Director disconnection")), (2, 1), "{said:?}");
    }
    Ok(())
}
