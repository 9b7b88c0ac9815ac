//! `.status statistics`: what the collectors do (reference 02 §11.3, 06 §11.3). There are none yet, so each Statistics
//! resource is shown as stopped.

use fd_config::StatisticsKind;

use super::output::Output;
use super::plain::day_and_time;
use crate::daemon::Daemon;

/// A collector that does not run.
const STOPPED: &str = "stopped";
/// It keeps nothing for later.
const NO_SPOOL: &str = "disabled";

/// From API 2 on: one frame. `name` chooses one collector, and leaves the summary out.
pub(crate) fn statistics(daemon: &Daemon, name: &[u8], api_opts: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Output::new(api_opts);
    out.begin_object_group("collector");
    out.begin_named_list("collector_backends");
    for collector in chosen(daemon, name) {
        out.begin_object();
        out.text("name", collector.name.as_bytes());
        out.text("status", STOPPED.as_bytes());
        out.number("interval", collector.interval.as_secs());
        out.time("lasttimestamp", 0);
        out.text("spooling", NO_SPOOL.as_bytes());
        out.text("lasterror", b"");
        out.end_object();
    }
    out.end_named_list();
    if name.is_empty() {
        out.begin_named_object("collector_update");
        out.text("status", STOPPED.as_bytes());
        out.number("interval", 0);
        out.time("lasttimestamp", 0);
        out.end_object();
    }
    out.end_object_group();
    vec![out.frame()]
}

/// For people: one frame a collector, and one for the summary.
pub(crate) fn plain(daemon: &Daemon, name: &[u8]) -> Vec<Vec<u8>> {
    let mut frames: Vec<String> = chosen(daemon, name)
        .map(|collector| {
            let kind = match collector.kind {
                StatisticsKind::Csv => 1,
                StatisticsKind::Graphite => 2,
            };
            format!(
                "Statistics backend: {} is {STOPPED}\n type={kind} lasttimestamp={}\n interval={} secs\n \
                 spooling={NO_SPOOL}\n\n",
                collector.name,
                day_and_time(0),
                collector.interval.as_secs()
            )
        })
        .collect();
    if name.is_empty() {
        frames.push(format!("Update Statistics: {STOPPED} interval=0 secs lastupdate={}\n\n", day_and_time(0)));
    }
    let with_nul = |text: String| [text.as_bytes(), &[0]].concat();
    frames.into_iter().map(with_nul).collect()
}

fn chosen<'d>(daemon: &'d Daemon, name: &'d [u8]) -> impl Iterator<Item = &'d fd_config::Statistics> {
    let all = daemon.config().statistics.iter();
    all.filter(move |collector| name.is_empty() || collector.name.as_bytes() == name)
}
