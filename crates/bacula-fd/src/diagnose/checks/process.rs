//! The daemon: does it run and answer, as whom, with which capabilities?

use super::case::Case;
use crate::diagnose::finding::Finding;
use crate::diagnose::texts::{self, CAPABILITIES, PROCESS};
use crate::diagnose::world::{Answer, Process};

/// Capabilities by their numbers.
const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const DAC_READ_SEARCH: u32 = 2;

/// What a restore of any file needs, with its name.
const RESTORE: [(u32, &str); 6] =
    [(CHOWN, "CHOWN"), (DAC_OVERRIDE, "DAC_OVERRIDE"), (3, "FOWNER"), (4, "FSETID"), (27, "MKNOD"), (31, "SETFCAP")];

pub(super) fn check(case: &Case<'_>) -> Vec<Finding> {
    let own = &case.config().file_daemon;
    let process = case.world.process(&own.pid_directory, own.port());
    let mut findings: Vec<_> = own
        .addresses
        .iter()
        .map(|address| {
            let mut called = *address;
            if called.ip().is_unspecified() {
                called.set_ip(if called.is_ipv4() {
                    std::net::Ipv4Addr::LOCALHOST.into()
                } else {
                    std::net::Ipv6Addr::LOCALHOST.into()
                });
            }
            let only_here = address.ip().is_loopback();
            answers(*address, only_here, &process, &case.world.ping(called))
        })
        .collect();
    findings.push(capabilities(&process));
    findings
}

fn answers(address: std::net::SocketAddr, only_here: bool, process: &Process, answer: &Answer) -> Finding {
    match (answer, process.daemon) {
        (Answer::Pong, daemon) => Finding::good(PROCESS, texts::answers(address, daemon, only_here)),
        (Answer::Silence, daemon) => Finding::fault(PROCESS, texts::silence(address, daemon), texts::HINT_SILENCE),
        (Answer::Nothing(why), Some(pid)) => {
            Finding::fault(PROCESS, texts::does_not_listen(address, pid, why), texts::HINT_SILENCE)
        }
        (Answer::Nothing(_), None) => Finding::warning(PROCESS, texts::no_daemon(address), texts::HINT_NO_DAEMON),
    }
}

fn capabilities(process: &Process) -> Finding {
    let has = |number: u32| process.capabilities >> number & 1 == 1;
    let missing: Vec<_> = RESTORE.iter().filter(|(number, _)| !has(*number)).map(|(_, name)| *name).collect();
    let who = texts::who(process.uid, process.daemon);
    if !has(DAC_OVERRIDE) && !has(DAC_READ_SEARCH) {
        return Finding::fault(CAPABILITIES, texts::can_not_read(&who), texts::HINT_CAN_NOT_READ);
    }
    if process.in_user_namespace {
        return Finding::warning(CAPABILITIES, texts::user_namespace(&who), texts::HINT_USER_NAMESPACE);
    }
    if missing.is_empty() {
        return Finding::good(CAPABILITIES, texts::saves_and_restores(&who));
    }
    let missing_text = missing.join(", ");
    if missing.len() == RESTORE.len() {
        return Finding::good(CAPABILITIES, texts::backup_only(&who, &missing_text));
    }
    Finding::warning(CAPABILITIES, texts::restores_partly(&who, &missing_text), texts::HINT_RESTORES_PARTLY)
}
