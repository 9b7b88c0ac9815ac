//! Can the Directors and Storage Daemons be reached that are known here? No password is tried.

use super::case::Case;
use crate::diagnose::finding::Finding;
use crate::diagnose::texts::{self, DIRECTOR, STORAGE};

pub(super) fn check(case: &Case<'_>) -> Vec<Finding> {
    let directors: Vec<_> = case
        .config()
        .directors
        .iter()
        .filter_map(|director| Some((director, (director.address.clone()?, director.port))))
        .collect();
    let places: Vec<_> =
        directors.iter().map(|(_, place)| place.clone()).chain(case.storages.iter().cloned()).collect();
    let mut answers = case.world.reach(&places).into_iter();
    let mut findings = Vec::new();
    for (director, (host, port)) in &directors {
        findings.push(match answers.next() {
            Some(Ok(time)) => Finding::good(DIRECTOR, texts::reached(&director.name, host, *port, time)),
            Some(Err(why)) => {
                let text = texts::not_reached(&director.name, host, *port, &why);
                let make = if director.connect_to_director { Finding::fault } else { Finding::warning };
                make(DIRECTOR, text, texts::HINT_DIRECTOR.to_owned())
            }
            None => continue,
        });
    }
    let unknown = case.config().directors.len().saturating_sub(directors.len());
    if unknown > 0 {
        findings.push(Finding::good(DIRECTOR, texts::directors_call(unknown)));
    }
    for ((host, port), answer) in case.storages.iter().zip(answers) {
        findings.push(match answer {
            Ok(time) => Finding::good(STORAGE, texts::reached("", host, *port, time)),
            Err(why) => Finding::fault(STORAGE, texts::not_reached("", host, *port, &why), texts::HINT_STORAGE),
        });
    }
    if case.storages.is_empty() {
        findings.push(Finding::good(STORAGE, texts::NO_STORAGE));
    }
    findings
}
