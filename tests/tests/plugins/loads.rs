//! Which plugins are loaded when a daemon starts, and what it says of the others (reference 07 §2).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use bed::peer::logged_in;
use bed::{
    Bed, BedOptions, ClientOptions, DIRECTOR, Fd, PATIENCE, Plugins, Result, StockRecord, build_plugin,
    in_order_of_names, mount_memory, wait_for,
};

use crate::stage::NAME;
use crate::told;

/// Files of a Plugin Directory and the macros that spoil them.
const BAD: [(&str, &[&str]); 9] = [
    ("magic-fd.so", &["INFO_MAGIC=\"*SDPluginData*\""]),
    ("version-fd.so", &["INFO_VERSION=22"]),
    ("later-fd.so", &["INFO_VERSION=24"]),
    ("license-fd.so", &["INFO_LICENSE=\"Bacula Systems(R) SA\""]),
    ("license2-fd.so", &["INFO_LICENSE=\"agplv3\""]),
    ("size-fd.so", &["BAD_SIZE=48"]),
    ("refuses-fd.so", &["REFUSES"]),
    ("noload-fd.so", &["LOADED=otherName"]),
    ("nounload-fd.so", &["NO_UNLOAD"]),
];

fn fill(directory: &Path, elsewhere: &Path) -> Result<()> {
    for (name, macros) in BAD {
        let mark = format!("MARK=\"{name}\"");
        let macros: Vec<_> = macros.iter().copied().chain([mark.as_str()]).collect();
        build_plugin("bad", &macros, &directory.join(name))?;
    }
    build_plugin("tp", &[], &directory.join("tp-fd.so"))?;
    let copy = |name: &str| fs::copy(directory.join("tp-fd.so"), directory.join(name)).unwrap();
    // The shortest name, one that is too short, and those that end otherwise.
    for name in ["a-fd.so", "-fd.so", "b-fd.so.old", "c-sd.so", "d_fd.so", "e-fd.so-fd.so"] {
        copy(name);
    }
    fs::copy(directory.join("tp-fd.so"), elsewhere.join("outside-fd.so")).unwrap();
    symlink(elsewhere.join("outside-fd.so"), directory.join("link-fd.so")).unwrap();
    fs::create_dir(directory.join("dir-fd.so")).unwrap();
    fs::write(directory.join("garbage-fd.so"), "no shared object\n").unwrap();
    fs::write(directory.join("empty-fd.so"), "").unwrap();
    let whole = fs::read(directory.join("tp-fd.so")).unwrap();
    fs::write(directory.join("head-fd.so"), &whole[..200]).unwrap();
    Ok(())
}

/// What is left of the daemon's log: the messages of its start, and what the calls left.
fn told(bed: &mut Bed, name: &str) -> Result<Vec<String>> {
    let work = bed.folder().join("work").join(name);
    let client = bed.client(name)?;
    client.daemon().start()?;
    let port = client.port();
    let mut peer = logged_in(port, DIRECTOR)?;
    peer.send(b"JobId=7 Job=b.2026-11-21_02.19.56_04 SDid=1 SDtime=2 Authorization=dummy\n")?;
    let job = peer.expect("2000 OK Job 15.0.3 ")?;
    peer.finish()?;
    peer.rest()?;
    let mut lines = vec![job.split_once(';').map_or("no semicolon", |(_, plugins)| plugins).to_owned()];
    let log = work.join("all.log");
    wait_for("the messages of the start", PATIENCE, || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        Ok(if text.matches("Loaded plugin").count() >= 3 { Ok(()) } else { Err(text) })
    })?;
    bed.client(name)?.daemon().stop()?;
    for line in fs::read_to_string(&log).unwrap().lines() {
        // Before the name stands the time.
        let line = line.split_once(&format!("{name}-fd")).map_or(line, |(_, line)| line);
        if line.contains("lugin") {
            lines.push(told::without_clock(line));
        }
    }
    let mut marks: Vec<_> = fs::read_dir(work.join("trace")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    marks.sort();
    lines.extend(marks.iter().map(|mark| mark.to_string_lossy().into_owned()).filter(|mark| mark.contains("unloaded")));
    Ok(lines)
}

/// Says what differs from the start of the stock daemon.
pub(crate) fn differences() -> Result<Vec<String>> {
    let mut options = BedOptions::new("plugin-loads", [ClientOptions::new(Fd::under_test()?).named(NAME)])?.in_clear();
    let (plugins, elsewhere) = (options.folder.make("plugins")?, options.folder.make("elsewhere")?);
    // Loaded in the same order everywhere.
    mount_memory(&plugins)?;
    fill(&plugins, &elsewhere)?;
    in_order_of_names(&plugins)?;
    let trace = options.folder.make(&format!("work/{NAME}/trace"))?;
    let client = &mut options.clients[0];
    client.plugins = Plugins::In(plugins.clone());
    client.settings.push("plugins.bpipe = \"off\"".to_owned());
    client.messages.push("Append = @WORK@/all.log = all".to_owned());
    client.environment.push(("PLUGIN_TRACE".to_owned(), trace.to_string_lossy().into_owned()));
    let mut bed = Bed::prepare(options)?;
    let lines = told(&mut bed, NAME)?;
    assert!(lines.iter().filter(|line| line.contains("Loaded plugin")).count() == 3, "{lines:#?}");
    let input = format!("{BAD:?}");
    StockRecord::open("plugins")?.differences_of_parts(bed.folder(), "loads", &input, vec![("lines", lines)])
}
