//! Statistics resources: what the daemon writes to files and to Graphite servers, and what it
//! reports about it, compared with what the stock daemon did.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use bed::{Bed, BedOptions, ClientOptions, Fd, PATIENCE, ReservedPort, Result, StockRecord, undated, wait_for};

/// The client.
const NAME: &str = "under";

/// What is said of a server whose name has no address. With blanks in it no other host is asked.
const UNKNOWN: &str = "nect to no host has this name:";

/// A Graphite server: what it has heard so far.
type Heard = Arc<Mutex<String>>;

fn listen(listener: TcpListener) -> Heard {
    let heard = Heard::default();
    let kept = Arc::clone(&heard);
    let hear = move |mut stream: TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        kept.lock().unwrap().push_str(&text);
    };
    thread::spawn(move || listener.incoming().map_while(std::io::Result::ok).for_each(hear));
    heard
}

/// The collectors of a client. `@` is replaced by its working directory.
fn collectors(server: u16, later: u16) -> String {
    let collector = |name: &str, more: &str| format!("Statistics {{\nName = {name}\nInterval = 2\n{more}\n}}\n");
    [
        collector("csv", "Type = CSV\nFile = @/csv"),
        collector(
            "filter",
            "Type = CSV\nPrefix = a.b\nMangleMetric = yes\nMetrics = \"*.memory.*\", \"!*.heap\"\nFile = @/filter",
        ),
        collector("nothing", "Type = CSV\nMetrics = \"!*.heap\"\nFile = @/nothing"),
        collector("nowhere", "Type = CSV\nFile = /no/such/file"),
        collector("full", "Type = CSV\nFile = /dev/full"),
        collector("nofile", "Type = CSV"),
        collector("nohost", "Type = Graphite"),
        collector("server", &format!("Type = Graphite\nHost = 127.0.0.1\nPort = {server}\nPrefix = pre")),
        collector("later", &format!("Type = Graphite\nHost = 127.0.0.1\nPort = {later}")),
        collector("unknown", "Type = Graphite\nHost = \"no host has this name\""),
    ]
    .concat()
}

fn stage(server: u16, later: u16) -> Result<Bed> {
    let mut client = ClientOptions::new(Fd::under_test()?).named(NAME);
    client.messages = vec!["Append = @WORK@/all.log = all".to_owned()];
    let mut bed = Bed::prepare(BedOptions::new("collectors", [client])?)?;
    let client = bed.client(NAME)?;
    let text = fs::read_to_string(&client.config).unwrap();
    let collectors = collectors(server, later).replace('@', &client.work.display().to_string());
    fs::write(&client.config, text + &collectors).unwrap();
    bed.storage().start()?;
    bed.director().start()?;
    bed.client(NAME)?.daemon().start()?;
    Ok(bed)
}

/// Without moments and values.
fn normal(text: &str) -> String {
    let text = undated(text);
    let mut out = String::new();
    let mut digits = false;
    for c in text.chars() {
        if c.is_ascii_digit() {
            if !digits {
                out.push('N');
            }
            digits = true;
        } else {
            digits = false;
            out.push(c);
        }
    }
    out
}

/// The lines of one collection from a file of several.
fn one(text: &str) -> Vec<String> {
    let first = text.lines().next().and_then(|line| line.split(", ").next()).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(first)).map(ToOwned::to_owned).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Waits until a collector has collected three times.
fn wait_for_samples(file: &Path) -> Result<()> {
    wait_for(&format!("three samples in {}", file.display()), PATIENCE, || {
        let text = read(file);
        let mut moments: Vec<&str> = text.lines().filter_map(|line| line.split(", ").next()).collect();
        moments.dedup();
        Ok(if moments.len() >= 3 { Ok(()) } else { Err(text.clone()) })
    })
}

/// Waits until `.status statistics` says all of this.
fn wait_for_status(bed: &Bed, wanted: &[&str]) -> Result<String> {
    wait_for(&format!("{wanted:?}"), PATIENCE, || {
        let status = bed.console(&[&format!(".status client={NAME}-fd statistics")])?;
        let missing = wanted.iter().any(|wanted| !status.contains(wanted));
        Ok(if missing { Err(status) } else { Ok(status) })
    })
}

/// What a daemon writes to its log of collectors that can't go on. Dates and names are left out;
/// sorted, because which collector is first is chance. Of two messages at the same time the stock
/// daemon may lose one, as it did in one of 24 starts: it is started again until it has written
/// each.
fn logged(bed: &mut Bed) -> Result<Vec<String>> {
    let log = bed.client(NAME)?.work.join("all.log");
    let stock = Fd::under_test()? == Fd::Stock;
    wait_for("a line for each of three collectors", PATIENCE, || {
        wait_for_status(bed, &["nowhere is stopped", "full is stopped", "nofile is stopped"])?;
        let log = read(&log);
        let mut lines: Vec<String> =
            log.lines().filter_map(|line| line.split_once("-fd: ")).map(|(_, text)| text.to_owned()).collect();
        lines.retain(|line| line.contains("data file"));
        lines.sort_unstable();
        if stock {
            lines.dedup();
        }
        if lines.len() >= 3 {
            return Ok(Ok(lines));
        }
        if stock {
            bed.client(NAME)?.daemon().stop()?;
            bed.client(NAME)?.daemon().start()?;
        }
        Ok(Err(log))
    })
}

#[test]
fn collectors_write_what_the_stock_daemon_s_write() -> Result<()> {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let later = ReservedPort::new()?;
    let mut bed = stage(server.local_addr().unwrap().port(), later.number())?;
    let heard = listen(server);
    let work = bed.client(NAME)?.work.clone();
    let mut parts = vec![("log", logged(&mut bed)?)];
    let printed = bed.client(NAME)?.daemon().output();
    assert!(printed.contains("Error opening collector data file: /no/such/file"), "{printed}");
    let mut modes = Vec::new();
    for file in ["csv", "filter"] {
        wait_for_samples(&work.join(file))?;
        parts.push((file, one(&read(&work.join(file)))));
        modes.push(format!("{file} {:o}", fs::metadata(work.join(file)).unwrap().permissions().mode()));
    }
    modes.push(format!("nothing {}", fs::metadata(work.join("nothing")).unwrap().len()));
    let wanted = [&format!("nect to 127.0.0.1:{}", later.number()), "nect to <NULL>:0", UNKNOWN, "spooling=enabled"];
    let lines = |text: &str| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>();
    parts.push(("status", lines(&wait_for_status(&bed, &wanted)?)));
    let status = bed.console(&[".api 2 api_opts=j", &format!(".status client={NAME}-fd statistics")])?;
    parts.push(("status as JSON", lines(&status)));
    let spool = work.join("bacula-fd.collector.later.spool");
    modes.push(format!("spool {:o}", fs::metadata(&spool).unwrap().permissions().mode()));
    parts.push(("modes", modes));
    parts.push(("spool", read(&spool).lines().take(5).map(ToOwned::to_owned).collect()));
    let sent = wait_for("five lines at the Graphite server", PATIENCE, || {
        let heard = heard.lock().unwrap().clone();
        let whole = heard.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let sent: Vec<_> = whole.take(5).map(|line| line.trim_end().to_owned()).collect();
        Ok(if sent.len() == 5 { Ok(sent) } else { Err(heard) })
    })?;
    parts.push(("Graphite", sent));
    // A first sample that is true.
    let csv = read(&work.join("csv"));
    let heap = one(&csv).into_iter().find(|line| line.contains(".heap, ")).unwrap_or_default();
    assert!(Fd::under_test()? == Fd::Stock || !heap.ends_with(".heap, 0"), "{csv}");
    let record = StockRecord::open("collectors")?;
    let folder = bed.folder().display().to_string();
    let mut wrong = Vec::new();
    for (what, lines) in parts {
        let lines: Vec<_> = lines.iter().map(|line| line.replace(&folder, "@")).collect();
        // Modes are exact.
        let lines: Vec<_> = if what == "modes" { lines } else { lines.iter().map(|line| normal(line)).collect() };
        wrong.extend(record.differences("collectors", what, &collectors(0, 0), &lines)?);
    }
    if Fd::under_test()? == Fd::Ours {
        // Only ours says why a name has no address.
        let reasons = ["Success", "Name or service not known", "Temporary failure in name resolution"];
        wrong.retain(|text| !reasons.iter().any(|reason| text.contains(&format!("{UNKNOWN}N Err={reason}"))));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    what_has_waited_comes_first(&bed, later.number())
}

/// A server that was away gets what has waited, before what is new.
fn what_has_waited_comes_first(bed: &Bed, port: u16) -> Result<()> {
    let spool = bed.folder().join("work").join(NAME).join("bacula-fd.collector.later.spool");
    let waited = read(&spool);
    let heard = listen(TcpListener::bind(("127.0.0.1", port)).unwrap());
    wait_for("the spool file to go", PATIENCE, || Ok(if spool.exists() { Err(String::new()) } else { Ok(()) }))?;
    let later = "Statistics backend: later is running\n";
    wait_for("the collector to be content", PATIENCE, || {
        let status = bed.console(&[&format!(".status client={NAME}-fd statistics")])?;
        let own = status.split(later).nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
        Ok(if own.ends_with("spooling=enabled") { Ok(()) } else { Err(status) })
    })?;
    wait_for("what has waited", PATIENCE, || {
        let own = heard.lock().unwrap().clone();
        let good = own.starts_with(&waited) && own.len() > waited.len() && waited.lines().count() >= 5;
        Ok(if good { Ok(()) } else { Err(format!("{waited}\n{own}")) })
    })
}
