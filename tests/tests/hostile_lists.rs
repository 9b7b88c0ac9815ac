//! `FileSet`s and accurate lists that are truncated, huge, or in the wrong order, as a Director
//! sends them: the daemon answers what the stock daemon answers where that one survives, holds
//! nothing afterwards, and serves the next Director.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs;
use std::path::Path;

use bed::peer::{EOD, Frame, Peer, job_session, packet};
use bed::{
    Bed, BedOptions, Fd, LStat, PATIENCE, Result, descriptors, reset_peak, set_fixed_times, threads, usage, wait_for,
};

const CLIENTS: [&str; 2] = ["reference", "test"];

/// Both daemons without TLS, so that scripts can talk to them.
fn bed_in_clear(label: &str) -> Result<Bed> {
    let options = BedOptions::side_by_side(label)?.in_clear();
    let source = options.source()?;
    for name in ["one", "two", "three"] {
        fs::write(source.join(name), name).unwrap();
    }
    set_fixed_times(&source)?;
    Bed::start(options)
}

/// Descriptors, threads and resident memory of a daemon.
fn footprint(pid: u32) -> Result<(usize, usize, u64)> {
    reset_peak(pid)?;
    Ok((descriptors(pid)?.len(), threads(pid)?, usage(pid)?.peak_memory))
}

/// After the session is gone, so is what it held: but for a few MiB that the allocator may keep.
fn wait_until_back(pid: u32, before: (usize, usize, u64), kept: u64) -> Result<()> {
    wait_for("descriptors, threads and memory to be where they were", PATIENCE, || {
        let now = footprint(pid)?;
        let back = now.0 <= before.0 && now.1 <= before.1 && now.2 <= before.2 + kept;
        Ok(if back { Ok(()) } else { Err(format!("{before:?}, now {now:?}")) })
    })
}

/// What a daemon says from here on, up to its end or to the text of `last`; without times and its
/// own name.
fn transcript(peer: &mut Peer, client: &str, last: &str) -> Result<Vec<String>> {
    let mut said = Vec::new();
    loop {
        let frame = peer.receive()?;
        if frame == Frame::Closed {
            return Ok(said);
        }
        let text = frame.text();
        // What the daemon has to say about other connections comes with the end of any.
        if text.starts_with("Jmsg JobId=0 ") {
            continue;
        }
        let plain = text.replace(&format!("{client}-fd"), "fd");
        let plain = match plain.split_once(" level=") {
            Some((head, rest)) => format!("{head} {}", rest.split_once(' ').map_or("", |(_, rest)| rest)),
            None => plain,
        };
        let found = !last.is_empty() && plain.starts_with(last);
        said.push(plain);
        if found {
            return Ok(said);
        }
    }
}

/// A `FileSet` that no Director sends.
struct Odd {
    name: &'static str,
    lines: Vec<Vec<u8>>,
    /// Only of ours: here the stock daemon dies or takes more memory than there is.
    ours_only: bool,
}

fn odd(name: &'static str, lines: &[&[u8]]) -> Odd {
    Odd { name, lines: lines.iter().map(|&line| line.to_vec()).collect(), ours_only: false }
}

fn odd_file_sets(source: &Path) -> Vec<Odd> {
    let file = format!("F {}", source.display());
    let file = file.as_bytes();
    let many = |line: &[u8], count: usize| vec![line.to_vec(); count];
    vec![
        odd("unknown code", &[b"I\n", b"Q foo bar\n", b"N\n"]),
        odd("empty line", &[b"I\n", b"\n", file]),
        odd("empty packet", &[b"I\n", b"", file]),
        odd("nothing at all", &[]),
        odd("only N", &[b"N\n", b"N\n", b"N\n"]),
        odd("no N at the end", &[b"I\n", b"O M\n", file]),
        odd("Include with sub-code", &[b"Ix\n", file, b"N\n"]),
        odd("unknown sub-code of R", &[b"I\n", b"RX a\n", b"N\n", file]),
        odd("unknown sub-code of W", &[b"I\n", b"WX a\n", b"N\n", file]),
        odd("bad expression", &[b"I\n", b"R (\n", b"N\n", file, b"N\n", b"N\n"]),
        odd("bad expression after bad code", &[b"I\n", b"Q\n", b"R (\n", b"N\n"]),
        odd("Exclude first", &[b"E\n", b"F *.o\n", b"N\n", b"N\n", b"I\n", file, b"N\n", b"N\n"]),
        odd("unknown letters", &[b"I\n", b"O MqQq\n", b"N\n", file, b"N\n", b"N\n"]),
        odd("O after F", &[b"I\n", file, b"O M\n", b"N\n", file, b"N\n", b"N\n"]),
        odd("bytes that are no text", &[b"I\n", b"F \xff\xfe\n", b"N\n", b"N\n"]),
        odd("code that is no text", &[b"I\n", b"\xff\xfe\n", b"N\n"]),
        odd("list that is missing", &[b"I\n", b"F </no/such/list\n", b"N\n", b"N\n"]),
        odd("program that is missing", &[b"I\n", b"F |/no/such/program\n", b"N\n", b"N\n"]),
        odd("program without a name", &[b"I\n", b"F |\n", b"N\n", b"N\n"]),
        Odd { lines: [many(b"I\n", 20_000), vec![file.to_vec()]].concat(), ..odd("twenty thousand Includes", &[]) },
        Odd {
            lines: [vec![b"I\n".to_vec()], many(b"O M\n", 1), many(b"W *.none\n", 20_000), vec![b"N\n".to_vec()]]
                .concat(),
            ..odd("twenty thousand patterns", &[])
        },
        Odd {
            lines: vec![b"I\n".to_vec(), [b"F /", &[b'x'; 900_000][..]].concat()],
            ..odd("a name of 900,000 bytes", &[])
        },
        Odd { ours_only: true, ..odd("options before Include", &[b"O M\n", b"N\n", b"I\n", file]) },
        Odd { ours_only: true, ..odd("file before Include", &[file, b"N\n", b"I\n"]) },
        Odd { ours_only: true, ..odd("letters without their end", &[b"I\n", b"O Cmcs\n", b"N\n", file, b"N\n"]) },
    ]
}

#[test]
fn odd_file_sets_are_answered_as_by_the_stock_daemon() -> Result<()> {
    let mut bed = bed_in_clear("odd-file-sets")?;
    let odd_ones = odd_file_sets(&bed.folder().join("source"));
    let both_stock = Fd::under_test()? == Fd::Stock;
    let mut transcripts = Vec::new();
    for client in CLIENTS {
        let (port, pid) = (bed.client(client)?.port(), bed.client(client)?.pid()?);
        let before = footprint(pid)?;
        for odd in &odd_ones {
            if odd.ours_only && (client == "reference" || both_stock) {
                continue;
            }
            let mut peer = job_session(port, 7)?;
            let mut bytes = packet(b"fileset vss=1\n");
            odd.lines.iter().for_each(|line| bytes.extend(packet(line)));
            bytes.extend(EOD.to_be_bytes());
            peer.send_bytes(&bytes)?;
            // What follows shows that the daemon has kept in step.
            transcripts.push((client, odd.name, transcript(&mut peer, client, "2000 OK include\n")?));
        }
        // Broken off within a line, after a line, and before any.
        for end in [&packet(b"F /some/where")[..9], &packet(b"I\n"), b""] {
            let mut peer = job_session(port, 7)?;
            peer.send_bytes(&[&packet(b"fileset vss=1\n"), end].concat())?;
        }
        if client == "test" {
            wait_until_back(pid, before, 16 << 20)?;
        }
        assert!(bed.console(&[&format!("status client={client}-fd")])?.contains("Daemon started"), "{client}");
    }
    for odd in &odd_ones {
        let of = |wanted: &str| {
            let told = transcripts.iter().find(|(client, name, _)| *client == wanted && *name == odd.name);
            told.map(|(.., told)| told.clone())
        };
        match (of("reference"), of("test")) {
            (Some(stock), Some(ours)) => assert_eq!(stock, ours, "{}", odd.name),
            (None, Some(ours)) => {
                let last = ours.iter().rfind(|text| text.starts_with('2')).map_or("", String::as_str);
                assert!(
                    last.starts_with("2800 End Job") || last.starts_with("2000 OK include"),
                    "{}: {ours:?}",
                    odd.name
                );
            }
            _ => assert!(both_stock, "{}", odd.name),
        }
    }
    Ok(())
}

/// Sends ten million names: the daemon says that it is too much, and is well afterwards.
#[test]
fn a_file_set_of_ten_million_lines_is_refused_with_its_size() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon takes the memory that it needs");
    let mut bed = bed_in_clear("ten-million")?;
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    let before = footprint(pid)?;
    let mut peer = job_session(port, 7)?;
    peer.send(b"fileset vss=1\n")?;
    peer.send(b"I\n")?;
    let thousand = packet(b"F /home/somebody/some/directory").repeat(1000);
    for _ in 0..10_000 {
        peer.send_bytes(&thousand)?;
    }
    peer.signal(EOD)?;
    let said = transcript(&mut peer, "test", "")?;
    assert!(said.iter().any(|text| text.contains("FileSet is too large")), "{said:?}");
    assert!(said.iter().any(|text| text.starts_with("2800 End Job TermCode=102 ")), "{said:?}");
    let peak = usage(pid)?.peak_memory;
    assert!(peak < 512 << 20, "{} MiB", peak >> 20);
    wait_until_back(pid, before, 16 << 20)
}

/// Names and patterns of which each byte, or each part, could take many times its size once they
/// are compiled.
#[test]
fn the_patterns_of_a_file_set_take_no_more_memory_than_a_file_set_may() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon takes the memory that it needs");
    let mut bed = bed_in_clear("patterns")?;
    let (port, pid) = (bed.client("test")?.port(), bed.client("test")?.pid()?);
    let include = format!("F {}", bed.folder().join("source").display());
    let names = (10..50).map(|name| format!("F {name}{}", "x".repeat(900_000)));
    let names = ["I", &include, "N", "E", "O i", "N"].map(str::to_owned).into_iter().chain(names);
    let nested = (2..600).chain([200_000]).map(|length| format!("W *{}", "a".repeat(length)));
    let nested = ["I".to_owned()].into_iter().chain(nested).chain(["N", &include, "N"].map(str::to_owned));
    for lines in [names.collect::<Vec<_>>(), nested.collect()] {
        let before = footprint(pid)?;
        let mut peer = job_session(port, 7)?;
        peer.send(b"fileset vss=1\n")?;
        for line in &lines {
            peer.send(line.as_bytes())?;
        }
        peer.signal(EOD)?;
        peer.expect("2000 OK include\n")?;
        peer.send(b"estimate listing=0\n")?;
        let said = transcript(&mut peer, "test", "2000 OK estimate")?;
        assert!(said.iter().any(|text| text.starts_with("2000 OK estimate files=4 ")), "{said:?}");
        let peak = usage(pid)?.peak_memory;
        assert!(peak < 512 << 20, "{} MiB", peak >> 20);
        drop(peer);
        wait_until_back(pid, before, 16 << 20)?;
    }
    Ok(())
}

fn lstat(numbers: [i64; 13]) -> String {
    LStat::text(&numbers) + " A A C"
}

fn lstat_of(path: &Path) -> String {
    lstat(LStat::of(&fs::symlink_metadata(path).unwrap()))
}

/// Gives a `FileSet` of the source and the list, and asks for an estimate; what the daemon says to
/// it.
fn estimate(port: u16, client: &str, source: &Path, command: &[u8], list: &[Vec<u8>]) -> Result<Vec<String>> {
    let mut peer = job_session(port, 7)?;
    let file = format!("F {}", source.display());
    let lines: [&[u8]; 7] = [b"fileset vss=1\n", b"I\n", b"O M\n", b"N\n", file.as_bytes(), b"N\n", b"N\n"];
    peer.send_bytes(&lines.map(packet).concat())?;
    peer.signal(EOD)?;
    peer.expect("2000 OK include\n")?;
    let list = list.iter().map(|line| packet(line)).collect::<Vec<_>>().concat();
    peer.send_bytes(&[packet(command), list, EOD.to_be_bytes().to_vec()].concat())?;
    // A daemon that has hung up need not take it.
    let _ = peer.send(b"estimate listing=0 limit=0\n");
    transcript(&mut peer, client, "2000 OK estimate")
}

/// Name, command, and lines of a list.
type Case<'a> = (&'a str, &'a [u8], Vec<Vec<u8>>);

#[test]
fn odd_accurate_lists_are_taken_as_by_the_stock_daemon() -> Result<()> {
    let mut bed = bed_in_clear("odd-lists")?;
    let source = bed.folder().join("source");
    let path = |name: &str| source.join(name).display().to_string();
    let known = |name: &str| format!("{}\0{}\0\0", path(name), lstat_of(&source.join(name))).into_bytes();
    let line = |name: &str, rest: &str| format!("{}\0{rest}", path(name)).into_bytes();
    let good = lstat_of(&source.join("one"));
    let top = format!("{}/\0{}\0\x000", source.display(), lstat_of(&source)).into_bytes();
    let normal: &[u8] = b"accurate files=4\n";
    let cases: Vec<Case<'_>> = vec![
        ("all known", normal, vec![known("one"), known("two"), known("three"), top]),
        ("empty", normal, vec![]),
        ("one known", normal, vec![[&known("one")[..], b"0"].concat()]),
        ("no second field", normal, vec![path("one").into_bytes()]),
        ("two fields", normal, vec![line("one", &good)]),
        ("second field is empty", normal, vec![line("one", "\0\0")]),
        ("second field is no number", normal, vec![line("one", "?? !!\0\x000")]),
        ("few numbers", normal, vec![line("one", "P4A mwnN\0\x000")]),
        ("huge numbers", normal, vec![line("one", &format!("{}\0\x000", "/".repeat(500)))]),
        ("many numbers", normal, vec![line("one", &format!("{}\0\x000", "A ".repeat(500)))]),
        ("more fields", normal, vec![line("one", &format!("{good}\0\x000\0more\0and more"))]),
        ("negative delta", normal, vec![line("one", &format!("{good}\0\0-5"))]),
        ("delta is no number", normal, vec![line("one", &format!("{good}\0\0x"))]),
        ("twice, the first is right", normal, vec![known("one"), line("one", "A A A A A A A A A A A A A\0\x000")]),
        ("twice, the second is right", normal, vec![line("one", "A A A A A A A A A A A A A\0\x000"), known("one")]),
        ("empty packet between", normal, vec![Vec::new(), known("one")]),
        ("only NULs", normal, vec![vec![0; 1000], known("one")]),
        ("path of 900,000 bytes", normal, vec![vec![b'x'; 900_000], [&[b'x'; 900_000][..], b"\0A\0\x000"].concat()]),
        ("negative count", b"accurate files=-5\n", vec![known("one")]),
        ("count of a million", b"accurate files=1000000\n", vec![known("one")]),
        ("count of none", b"accurate files=0\n", vec![known("one"), known("two")]),
        ("no count", b"accurate files=\n", vec![]),
        ("count is no number", b"accurate files=x\n", vec![]),
    ];
    let mut before = None;
    for (name, command, list) in &cases {
        let said = CLIENTS.map(|client| estimate(bed.client(client)?.port(), client, &source, command, list));
        let [stock, ours] = said;
        assert_eq!(stock?, ours?, "{name}");
        let pid = bed.client("test")?.pid()?;
        // The first session has made what stays.
        before = before.map_or_else(|| footprint(pid).map(Some), |before| Ok(Some(before)))?;
    }
    // Broken off within the list.
    let mut peer = job_session(bed.client("test")?.port(), 7)?;
    peer.send_bytes(&[packet(normal), packet(&known("one"))[..9].to_vec()].concat())?;
    drop(peer);
    // A count that no table could have: a hint, and taken as one. The stock daemon reserves as
    // much.
    let port = bed.client("test")?.port();
    let said = estimate(port, "test", &source, b"accurate files=4000000000\n", &[known("one")])?;
    assert!(said.iter().any(|text| text.starts_with("2000 OK estimate files=")), "{said:?}");
    wait_until_back(bed.client("test")?.pid()?, before.unwrap_or_default(), 16 << 20)
}

/// How many files the accurate list has whose memory is measured: enough that what a session costs
/// besides counts for little. `ACCURATE_FILES` names another number.
const FILES: u64 = 500_000;

#[test]
fn an_accurate_list_takes_a_quarter_of_the_stock_daemon_s_memory() -> Result<()> {
    let files = std::env::var("ACCURATE_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(FILES);
    let mut bed = bed_in_clear("accurate-memory")?;
    let source = bed.folder().join("source");
    // As a home server has them: some directories of some files each, times and sizes that differ.
    let list: Vec<Vec<u8>> = (0..files)
        .map(|n| {
            let n = n.cast_signed();
            let path = format!("/home/user{:03}/project/src/module{:04}/file_{n:07}.txt", n / 10_000, n / 20);
            let (size, mtime) = (n * 37 % 90_000, 1_700_000_000 + n * 977 % 100_000_000);
            let lstat = lstat([65024, 1_000_000 + n, 0o100_644, 1, 1000, 1000, 0, size, 4096, 8, mtime, mtime, mtime]);
            format!("{path}\0{lstat}\0\x000").into_bytes()
        })
        .collect();
    let mut used = Vec::new();
    for client in CLIENTS {
        let (port, pid) = (bed.client(client)?.port(), bed.client(client)?.pid()?);
        let warm = estimate(port, client, &source, b"accurate files=1\n", &list[..1])?;
        let before = footprint(pid)?;
        let command = format!("accurate files={files}\n");
        let mut peer = job_session(port, 7)?;
        let lines: [&[u8]; 3] = [b"fileset vss=1\n", b"I\n", b"F /no/such/name"];
        peer.send_bytes(&lines.map(packet).concat())?;
        peer.signal(EOD)?;
        peer.expect("2000 OK include\n")?;
        peer.send(command.as_bytes())?;
        for some in list.chunks(1000) {
            peer.send_bytes(&some.iter().map(|line| packet(line)).collect::<Vec<_>>().concat())?;
        }
        peer.signal(EOD)?;
        // The answer comes when the list has been read.
        peer.send(b"estimate listing=0 limit=0\n")?;
        let said = transcript(&mut peer, client, "2000 OK estimate")?;
        assert_eq!(said.last().map(String::as_str), Some("2000 OK estimate files=0 bytes=0\n"), "{warm:?}");
        // The most that it had: the stock daemon frees the list before it answers.
        let held = usage(pid)?.peak_memory - before.2;
        drop(peer);
        if client == "test" {
            wait_until_back(pid, before, held / 4 + (16 << 20))?;
        }
        used.push(held);
    }
    let [stock, ours] = used[..] else { panic!("two sides, not {used:?}") };
    println!("{files} files: stock {} bytes a file, ours {} bytes a file", stock / files, ours / files);
    if Fd::under_test()? == Fd::Ours {
        assert!(ours * 4 <= stock, "{ours} bytes against {stock}");
    }
    Ok(())
}
