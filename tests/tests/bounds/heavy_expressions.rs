//! Regular expressions that may cost any memory, stack or time: they match as in the stock daemon,
//! are refused when they cost too much, and never harm the daemon or another job.

use std::fs;
use std::path::Path;

use bed::peer::{EOD, Frame, Peer, director_session, job_session};
use bed::{Bed, BedOptions, Fd, PATIENCE, Result, children, reset_peak, usage, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const JOB: u32 = 7;
const NAME: &str = "script.2026-01-01_00.00.00_07";
/// Matching this takes more time than anybody has, where a name has some hundred `a`.
const ENDLESS: &str = r"(((a*)*)*)*\1\2%";

/// Both daemons without TLS, so that scripts can talk to them, and some files.
fn bed_in_clear(label: &str, files: &[&str]) -> Result<Bed> {
    let options = BedOptions::side_by_side(label)?.in_clear();
    let source = options.source()?;
    for name in files {
        fs::write(source.join(name), name).unwrap();
    }
    Bed::start(options)
}

/// A session with a `FileSet` of the source that leaves out what the expressions match; and what is
/// said of it.
fn session(port: u16, source: &Path, expressions: &[&str]) -> Result<(Peer, String)> {
    session_of(JOB, port, source, expressions)
}

fn session_of(job: u32, port: u16, source: &Path, expressions: &[&str]) -> Result<(Peer, String)> {
    let mut peer = job_session(port, job)?;
    peer.send(b"fileset vss=0\n")?;
    peer.send(b"I\n")?;
    peer.send(b"O e\n")?;
    for expression in expressions {
        peer.send(format!("R {expression}\n").as_bytes())?;
    }
    for line in ["N\n", &format!("F {}\n", source.display()), "N\n", "N\n"] {
        peer.send(line.as_bytes())?;
    }
    peer.signal(EOD)?;
    let said = peer.receive_text()?;
    let plain = said.split_once(" REGEX ").map_or(said.clone(), |(_, rest)| format!("REGEX {rest}"));
    Ok((peer, plain))
}

/// Everything up to the end of an estimate, without what differs between the daemons.
fn listing(peer: &mut Peer) -> Result<Vec<String>> {
    peer.send(b"estimate listing=1 limit=0\n")?;
    let mut said = Vec::new();
    loop {
        let text = peer.receive_text()?;
        let last = text.starts_with("2000 OK estimate");
        let name = text.rsplit('/').next().unwrap_or_default().to_owned();
        said.push(if last { text } else { name });
        if last {
            said.sort();
            return Ok(said);
        }
    }
}

#[test]
fn heavy_expressions_match_as_in_the_stock_daemon() -> Result<()> {
    let names = ["aab", "abab", "abcabc", "AbbA", "none", "x.tmp", "yyyyyz", "zyyyy", "aaaaaaaaaaaaaaaaaaaaaaaac"];
    let mut bed = bed_in_clear("heavy", &names)?;
    let source = bed.folder().join("source");
    let deep = format!("{}yz{}", "(".repeat(2000), ")".repeat(2000));
    let mut left_out = 0;
    for expressions in [
        vec![r"/([a-c]+)\1$"],
        vec![r"(.)\1b", r"\.tmp$"],
        vec![r"(b)\1|^/.*/(a+)c$", "(y?){600}z$"],
        vec!["[xyz]*y[xyz]{30}q|/none$", r"/(.)(.)\2\1$", "/yyy{1,2}"],
        vec![deep.as_str()],
    ] {
        let [stock, ours] = ["reference", "test"].map(|client| {
            let (mut peer, said) = session(bed.client(client)?.port(), &source, &expressions)?;
            assert_eq!(said, "2000 OK include\n", "{client}: {expressions:?}");
            listing(&mut peer)
        });
        let stock = stock?;
        assert_eq!(stock, ours?, "{expressions:?}");
        left_out += names.len() + 2 - stock.len();
    }
    assert!(left_out >= 10, "{left_out}");
    Ok(())
}

#[test]
fn expensive_expressions_are_refused_and_the_daemon_stays_up() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon takes the memory that it needs, or ends");
    let mut bed = bed_in_clear("too-heavy", &["file"])?;
    let source = bed.folder().join("source");
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    reset_peak(pid)?;
    let before = usage(pid)?.peak_memory;
    // Another job, which is in the middle of something.
    let (mut other, said) = session(port, &source, &[r"\.none$"])?;
    assert_eq!(said, "2000 OK include\n");
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    for expression in ["((a{1,200}){1,200}){1,20}", "((a?){1,300}){1,300}\\1", &nested(400_000)] {
        let (mut peer, said) = session(port, &source, &[expression])?;
        // Which of its bounds the other process meets first is its own affair. A message is cut
        // when it is long.
        let refused = ["Memory exhausted", "Regular expression too big"]
            .map(|words| format!("REGEX {expression} compile error. ERR={words}\n"));
        let is_cut = said.len() > 4000 && refused[0].starts_with(said.trim_end());
        assert!(is_cut || refused.contains(&said), "{said}");
        let frames = peer.rest()?;
        let end = |frame: &Frame| matches!(frame, Frame::Data(text) if text.starts_with(b"2800 End Job TermCode=102 "));
        assert!(frames.iter().any(end), "{frames:?}");
    }
    // What would be too much for a thread's stack, or takes tens of MiB, is good.
    for expression in [&nested(5000), r"((a)\2){32767}"] {
        let (_peer, said) = session(port, &source, &[expression])?;
        assert_eq!(said, "2000 OK include\n");
    }
    let peak = usage(pid)?.peak_memory;
    assert!(peak < before + (64 << 20), "{} MiB before, {} MiB now", before >> 20, peak >> 20);
    assert_eq!(listing(&mut other)?.len(), 3);
    Ok(())
}

/// Without its second expression, the files would be restored to other places.
#[test]
fn a_restore_whose_expression_is_too_heavy_fails() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon takes the memory that it needs, or ends");
    let mut bed = bed_in_clear("too-heavy-where", &["file"])?;
    let mut peer = job_session(bed.client("test")?.port(), JOB)?;
    let expressions = r"!a!b!,!((a?){1,300}){1,300}\1!c!,!^!/tmp/r!";
    peer.send(format!("restore files=1 replace=a prelinks=0 regexwhere={expressions}\n").as_bytes())?;
    let said = peer.receive_text()?;
    assert!(said.contains(r" REGEX ((a?){1,300}){1,300}\1 compile error. ERR="), "{said}");
    let end = |frame: &Frame| matches!(frame, Frame::Data(text) if text.starts_with(b"2800 End Job TermCode=102 "));
    let frames = peer.rest()?;
    assert!(frames.iter().any(end), "{frames:?}");
    Ok(())
}

#[test]
fn a_cancel_ends_an_endless_match() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon goes on");
    let mut bed = bed_in_clear("endless-match", &[&"a".repeat(250)])?;
    let source = bed.folder().join("source");
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    let (mut peer, said) = session(port, &source, &[ENDLESS])?;
    assert_eq!(said, "2000 OK include\n");
    peer.send(b"estimate listing=0 limit=0\n")?;
    wait_for("the match to take its time", PATIENCE, || {
        let numbers = children(pid)?.into_iter().chain([pid]);
        let spent = numbers.filter_map(|number| usage(number).ok()).map(|usage| usage.cpu()).max().unwrap_or_default();
        Ok(if spent.as_millis() > 300 { Ok(()) } else { Err(format!("{spent:?}")) })
    })?;
    let mut console = director_session(port, 0)?;
    console.send(format!("cancel Job={NAME}\n").as_bytes())?;
    console.expect("2001 Job ")?;
    // As in the stock daemon the estimate of a canceled job gets its last line.
    peer.expect("2000 OK estimate")?;
    drop(peer);
    wait_for("the guest to be gone", PATIENCE, || {
        let left = children(pid)?;
        Ok(if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) })
    })
}

/// A console's Director reads an estimate up to its end, and nothing behind that.
#[test]
fn an_estimate_that_fails_says_so_before_its_answer() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon goes on");
    let mut bed = bed_in_clear("failed-estimate", &[&"a".repeat(250)])?;
    let source = bed.folder().join("source");
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    let (mut peer, said) = session_of(0, port, &source, &[ENDLESS])?;
    assert_eq!(said, "2000 OK include\n");
    peer.send(b"estimate listing=0 limit=0\n")?;
    // One that has died is started once more.
    let mut killed = 0;
    for _ in 0..2 {
        killed = wait_for("another guest", PATIENCE, || {
            let found = children(pid)?;
            Ok(found.iter().copied().find(|number| *number != killed).ok_or_else(|| format!("{found:?}")))
        })?;
        kill(Pid::from_raw(killed.cast_signed()), Signal::SIGKILL).unwrap();
    }
    let mut said = Vec::new();
    while let Frame::Data(text) = peer.receive()? {
        said.push(String::from_utf8_lossy(&text).into_owned());
    }
    let is_right = matches!(&said[..], [why, answer]
        if why.contains(" can't be matched with ") && answer.starts_with("2000 OK estimate "));
    assert!(is_right, "{said:?}");
    Ok(())
}
