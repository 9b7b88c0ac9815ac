//! `.status statistics`: what the collectors do (reference 02 §11.3, 06 §11.3).

use fd_config::{Statistics, StatisticsKind};

use super::output::Output;
use super::plain::with_nul;
use crate::clock::day_and_time;
use crate::shared::collectors::{Spool, State};
use crate::shared::daemon::Daemon;

const fn status(running: bool) -> &'static str {
    if running { "running" } else { "stopped" }
}

const fn spooling(spool: Spool) -> &'static str {
    match spool {
        Spool::Disabled => "disabled",
        Spool::Unknown => "unknown (enabled)",
        Spool::Enabled => "enabled",
        Spool::InProgress => "in progress",
        Spool::Despooling => "despooling now",
    }
}

/// From API 2 on: one frame. `name` chooses one collector, and leaves the summary out.
pub(crate) fn statistics(daemon: &Daemon, name: &[u8], api_opts: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Output::new(api_opts);
    out.begin_object_group("collector");
    out.begin_named_list("collector_backends");
    for (collector, state) in chosen(daemon, name) {
        out.begin_object();
        out.text("name", collector.name.as_bytes());
        out.text("status", status(state.running).as_bytes());
        out.number("interval", collector.interval.as_secs());
        out.time("lasttimestamp", state.last);
        out.text("spooling", spooling(state.spool).as_bytes());
        out.text("lasterror", state.error.as_bytes());
        out.end_object();
    }
    out.end_named_list();
    if name.is_empty() {
        let update = daemon.collectors.update(&daemon.config().statistics);
        out.begin_named_object("collector_update");
        out.text("status", status(update.interval != 0).as_bytes());
        out.number("interval", update.interval);
        out.time("lasttimestamp", update.last);
        out.end_object();
    }
    out.end_object_group();
    vec![out.frame()]
}

/// For people: one frame a collector, and one for the summary.
pub(crate) fn plain(daemon: &Daemon, name: &[u8]) -> Vec<Vec<u8>> {
    let mut frames: Vec<String> = chosen(daemon, name)
        .map(|(collector, state)| {
            let kind = match collector.kind {
                StatisticsKind::Csv => 1,
                StatisticsKind::Graphite => 2,
            };
            let error = if state.error.is_empty() { String::new() } else { format!(" lasterror={}\n", state.error) };
            format!(
                "Statistics backend: {} is {}\n type={kind} lasttimestamp={}\n interval={} secs\n \
                 spooling={}\n{error}\n",
                collector.name,
                status(state.running),
                day_and_time(state.last),
                collector.interval.as_secs(),
                spooling(state.spool),
            )
        })
        .collect();
    if name.is_empty() {
        let update = daemon.collectors.update(&daemon.config().statistics);
        let (status, last) = (status(update.interval != 0), day_and_time(update.last));
        frames.push(format!("Update Statistics: {status} interval={} secs lastupdate={last}\n\n", update.interval));
    }
    frames.into_iter().map(with_nul).collect()
}

fn chosen<'d>(daemon: &'d Daemon, name: &'d [u8]) -> impl Iterator<Item = (&'d Statistics, State)> {
    let all = daemon.config().statistics.iter().enumerate();
    all.filter(move |(_, collector)| name.is_empty() || collector.name.as_bytes() == name)
        .map(|(number, collector)| (collector, daemon.collectors.state(number)))
}
