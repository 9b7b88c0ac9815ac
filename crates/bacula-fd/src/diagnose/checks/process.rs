//! The daemon: does it run and answer, as whom, with which capabilities?

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::case::Case;
use crate::diagnose::finding::Finding;
use crate::diagnose::rights::{self, DAC_OVERRIDE, DAC_READ_SEARCH};
use crate::diagnose::texts::{self, CAPABILITIES, METRICS, PROCESS};
use crate::diagnose::world::{Answer, Process};

/// The ports of a Director and a Storage Daemon.
const OTHER_DAEMONS: [u16; 2] = [9101, 9103];

pub(super) fn check(case: &Case<'_>) -> Vec<Finding> {
    let own = &case.config().file_daemon;
    let process = case.world.process();
    let calls: Vec<_> = own.addresses.iter().map(|address| (*address, case.world.ping(called(*address)))).collect();
    let runs = calls.iter().any(|(_, answer)| *answer == Answer::Pong);
    let mut findings: Vec<_> = calls.iter().map(|(address, answer)| answers(*address, &process, answer)).collect();
    findings.push(capabilities(&process, runs));
    findings.extend(metrics(case, runs));
    findings
}

/// The address to call one that listens by.
fn called(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

/// Does the address of the metrics work, and is it a good one?
fn metrics(case: &Case<'_>, runs: bool) -> Option<Finding> {
    let address = case.read.settings.metrics.address?;
    // The Director and the Storage Daemon can't start on a host where their port is taken.
    if OTHER_DAEMONS.contains(&address.port()) {
        return Some(Finding::warning(METRICS, texts::port_of_another_daemon(address), texts::HINT_METRICS_PORT));
    }
    Some(match (case.world.metrics(called(address)), runs) {
        (Answer::Pong, true) => Finding::good(METRICS, texts::metrics_answer(address)),
        (Answer::Pong, false) | (Answer::Silence, _) => {
            Finding::warning(METRICS, texts::other_at_metrics(address), texts::HINT_METRICS_PORT)
        }
        (Answer::Nothing(why), true) => {
            Finding::warning(METRICS, texts::no_metrics(address, &why), texts::HINT_NO_METRICS)
        }
        (Answer::Nothing(_), false) => Finding::good(METRICS, texts::metrics_free(address)),
    })
}

fn answers(address: SocketAddr, process: &Process, answer: &Answer) -> Finding {
    let only_here = address.ip().is_loopback();
    match (answer, process.daemon()) {
        (Answer::Pong, daemon) => Finding::good(PROCESS, texts::answers(address, daemon, only_here)),
        (Answer::Silence, daemon) => Finding::fault(PROCESS, texts::silence(address, daemon), texts::HINT_SILENCE),
        (Answer::Nothing(why), Some(pid)) => {
            Finding::fault(PROCESS, texts::does_not_listen(address, pid, why), texts::HINT_SILENCE)
        }
        (Answer::Nothing(_), None) => Finding::warning(PROCESS, texts::no_daemon(address), texts::HINT_NO_DAEMON),
    }
}

fn capabilities(process: &Process, runs: bool) -> Finding {
    let has = |number: u32| process.rights.has(number);
    // What a restore of any file needs.
    let needed: Vec<_> = rights::CAPABILITIES.into_iter().filter(|(_, number)| *number != DAC_READ_SEARCH).collect();
    let missing: Vec<_> = needed.iter().filter(|(_, number)| !has(*number)).map(|(name, _)| *name).collect();
    let who = texts::who(process, runs);
    if !has(DAC_OVERRIDE) && !has(DAC_READ_SEARCH) {
        return Finding::fault(CAPABILITIES, texts::can_not_read(&who), texts::HINT_CAN_NOT_READ);
    }
    if process.rights.in_user_namespace {
        return Finding::warning(CAPABILITIES, texts::user_namespace(&who), texts::HINT_USER_NAMESPACE);
    }
    if missing.is_empty() {
        return Finding::good(CAPABILITIES, texts::saves_and_restores(&who));
    }
    let missing_text = missing.join(", ");
    if missing.len() == needed.len() {
        return Finding::good(CAPABILITIES, texts::backup_only(&who, &missing_text));
    }
    Finding::warning(CAPABILITIES, texts::restores_partly(&who, &missing_text), texts::HINT_RESTORES_PARTLY)
}
