//! What a plugin says by `DebugMessage`, in the trace file.

use std::fs;

use bed::{Bed, BedOptions, ClientOptions, Fd, PATIENCE, Plugins, Result, StockRecord, build_plugin, wait_for};

use crate::jobs::set;
use crate::stage::NAME;

/// What the plugin says in a job at this level, in the trace that is emptied before.
fn said(bed: &Bed, name: &str, level: u32) -> Result<Vec<String>> {
    bed.console(&[&format!("setdebug client={name}-fd level={level} trace=1 options=c")])?;
    let job = bed.backup(name, "level=Full")?.must_be_good()?.row.id;
    let path = bed.folder().join("work").join(name).join(format!("{name}-fd.trace"));
    let trace = wait_for("the plugin's last call", PATIENCE, || {
        let trace = fs::read_to_string(&path).unwrap_or_default();
        Ok(if level == 0 || trace.contains(&format!("-{job} freePlugin")) { Ok(trace) } else { Err(trace) })
    })?;
    // These stand without a head behind whatever was said before.
    let headless = ["headless at 10\n", "headless at 11\n"];
    let counts = headless.map(|text| [trace.matches(text).count(), trace.matches(&format!("\n{text}")).count()]);
    let trace = headless.iter().fold(trace, |trace, text| trace.replace(text, ""));
    // Not every text ends its line.
    let (name, number) = (format!("{name}-fd: "), format!("-{job} "));
    let is_of_plugin = |text: &&str| text.contains("inc.c:") || text.contains("in another place");
    let texts = trace.split(&name).filter(|text| text.contains(&number)).filter(is_of_plugin);
    let plain = texts.map(|text| text.replace(&number, "-JOB ").escape_debug().to_string());
    let head = format!("headless {counts:?}, of an earlier job: {}", level < 150 && trace.contains("hello     1"));
    Ok([head].into_iter().chain(plain).collect())
}

/// What differs from the stock daemon's trace, as far as the plugin has filled it.
pub(crate) fn differences() -> Result<Vec<String>> {
    let mut options = BedOptions::new("plugin-traces", [ClientOptions::new(Fd::under_test()?).named(NAME)])?;
    let plugins = options.folder.make("plugins")?;
    build_plugin("inc", &[], &plugins.join("inc-fd.so"))?;
    options.clients[0].plugins = Plugins::In(plugins);
    options.file_sets = vec![set("debug", &["inc:debug=hello".to_owned()])];
    let bed = Bed::start(options)?;
    let record = StockRecord::open("plugins")?;
    let mut wrong = Vec::new();
    // Number of texts at each level, counts included.
    for (level, texts) in [(150, 25), (10, 12), (0, 2)] {
        let said = said(&bed, NAME, level)?;
        assert_eq!(said.len(), texts, "{said:#?}");
        wrong.extend(record.differences("trace", &format!("level {level}"), "inc:debug=hello", &said)?);
    }
    Ok(wrong)
}
