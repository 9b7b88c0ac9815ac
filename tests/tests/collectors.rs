//! Statistics resources: what both daemons write to files and to Graphite servers, and what they
//! report about it.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use bed::{Bed, BedOptions, ClientOptions, Fd, PATIENCE, ReservedPort, Result, line_differences, wait_for};

/// As long as each other.
const CLIENTS: [&str; 2] = ["refer", "under"];

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
    let clients = CLIENTS.into_iter().zip([Fd::Stock, Fd::under_test()?]).map(|(name, fd)| {
        let mut client = ClientOptions::new(fd).named(name);
        client.messages = vec!["Append = @WORK@/all.log = all".to_owned()];
        client
    });
    let mut bed = Bed::prepare(BedOptions::new("collectors", clients)?)?;
    for name in CLIENTS {
        let client = bed.client(name)?;
        let text = fs::read_to_string(&client.config).unwrap();
        let collectors = collectors(server, later).replace('@', &client.work.display().to_string());
        fs::write(&client.config, text + &collectors).unwrap();
    }
    bed.storage().start()?;
    bed.director().start()?;
    for client in CLIENTS {
        bed.client(client)?.daemon().start()?;
    }
    Ok(bed)
}

/// Without names, moments and values, and without the reason why a server could not be reached: the
/// stock daemon's differs from time to time.
fn normal(text: &str, client: &str) -> String {
    let text = ["Connection refused", "Interrupted system call"]
        .iter()
        .fold(text.to_owned(), |text, reason| text.replace(reason, "REASON"));
    let text = text.replace(client, "CLIENT");
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
fn wait_for_status(bed: &Bed, client: &str, wanted: &[&str]) -> Result<String> {
    wait_for(&format!("{wanted:?}"), PATIENCE, || {
        let status = bed.console(&[&format!(".status client={client}-fd statistics")])?;
        let missing = wanted.iter().any(|wanted| !status.contains(wanted));
        Ok(if missing { Err(status) } else { Ok(status) })
    })
}

/// What a daemon writes to its log of collectors that can't go on. Dates and names are left out;
/// sorted, because which collector is first is chance. Of two messages at the same time the stock
/// daemon may lose one, as it did in one of 24 starts: it is started again until it has written
/// each.
fn logged(bed: &mut Bed, client: &str) -> Result<Vec<String>> {
    let log = bed.client(client)?.work.join("all.log");
    let stock = client == CLIENTS[0] || Fd::under_test()? == Fd::Stock;
    wait_for("a line for each of three collectors", PATIENCE, || {
        wait_for_status(bed, client, &["nowhere is stopped", "full is stopped", "nofile is stopped"])?;
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
            bed.client(client)?.daemon().stop()?;
            bed.client(client)?.daemon().start()?;
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
    let mut sides = Vec::new();
    for client in CLIENTS {
        let work = bed.client(client)?.work.clone();
        let (mut said, mut exact) = (Vec::new(), logged(&mut bed, client)?);
        for file in ["csv", "filter"] {
            wait_for_samples(&work.join(file))?;
            said.extend(one(&read(&work.join(file))));
            exact.push(format!("{file} {:o}", fs::metadata(work.join(file)).unwrap().permissions().mode()));
        }
        exact.push(format!("nothing {}", fs::metadata(work.join("nothing")).unwrap().len()));
        let wanted =
            [&format!("nect to 127.0.0.1:{}", later.number()), "nect to <NULL>:0", UNKNOWN, "spooling=enabled"];
        said.push(wait_for_status(&bed, client, &wanted)?);
        said.push(bed.console(&[".api 2 api_opts=j", &format!(".status client={client}-fd statistics")])?);
        let spool = work.join("bacula-fd.collector.later.spool");
        exact.push(format!("spool {:o}", fs::metadata(&spool).unwrap().permissions().mode()));
        said.extend(read(&spool).lines().take(5).map(ToOwned::to_owned));
        sides.push(said.iter().map(|text| normal(text, client)).chain(exact).collect::<Vec<_>>());
    }
    let heard = heard.lock().unwrap().clone();
    for (client, said) in CLIENTS.into_iter().zip(&mut sides) {
        let lines: Vec<&str> = heard.lines().filter(|line| line.contains(client)).take(5).collect();
        assert_eq!(lines.len(), 5, "{heard}");
        said.push(normal(&lines.join("\n"), client));
    }
    // A first sample that is true.
    let csv = read(&bed.client(CLIENTS[1])?.work.join("csv"));
    let heap = one(&csv).into_iter().find(|line| line.contains(".heap, ")).unwrap_or_default();
    assert!(Fd::under_test()? == Fd::Stock || !heap.ends_with(".heap, 0"), "{csv}");
    let [stock, ours] = &mut sides[..] else { panic!("two sides") };
    // Only ours says why a name has no address.
    assert!(stock.iter().any(|text| text.contains(&format!("{UNKNOWN}N Err=Success"))), "{stock:#?}");
    if Fd::under_test()? == Fd::Ours {
        for text in ours.iter_mut() {
            for reason in ["Name or service not known", "Temporary failure in name resolution"] {
                *text = text.replace(&format!("{UNKNOWN}N Err={reason}"), &format!("{UNKNOWN}N Err=Success"));
            }
        }
    }
    let differences = line_differences("collectors", stock, ours);
    assert!(differences.is_empty(), "{differences:#?}");
    assert_eq!(stock.iter().filter(|line| line.contains("ERROR in bcollector.c")).count(), 3, "{stock:#?}");
    what_has_waited_comes_first(&mut bed, later.number())
}

/// A server that was away gets what has waited, before what is new.
fn what_has_waited_comes_first(bed: &mut Bed, port: u16) -> Result<()> {
    let waited = CLIENTS.map(|client| {
        let work = bed.folder().join("work").join(client);
        read(&work.join("bacula-fd.collector.later.spool"))
    });
    let heard = listen(TcpListener::bind(("127.0.0.1", port)).unwrap());
    for (client, waited) in CLIENTS.into_iter().zip(waited) {
        let spool = bed.client(client)?.work.join("bacula-fd.collector.later.spool");
        wait_for("the spool file to go", PATIENCE, || Ok(if spool.exists() { Err(String::new()) } else { Ok(()) }))?;
        let later = "Statistics backend: later is running\n";
        wait_for("the collector to be content", PATIENCE, || {
            let status = bed.console(&[&format!(".status client={client}-fd statistics")])?;
            let own = status.split(later).nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
            Ok(if own.ends_with("spooling=enabled") { Ok(()) } else { Err(status) })
        })?;
        wait_for("what has waited", PATIENCE, || {
            let heard = heard.lock().unwrap().clone();
            let own: String =
                heard.lines().filter(|line| line.contains(client)).flat_map(|line| [line, "\n"]).collect();
            let good = own.starts_with(&waited) && own.len() > waited.len() && waited.lines().count() >= 5;
            Ok(if good { Ok(()) } else { Err(format!("{waited}\n{own}")) })
        })?;
    }
    Ok(())
}
