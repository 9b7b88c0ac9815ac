//! The findings as text, for one screen, and as JSON.

use serde_json::json;

use crate::diagnose::finding::{Finding, State};
use crate::diagnose::texts;

/// The findings for people: a line each, with a hint below where something is wrong.
pub(super) fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.area.len()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for Finding { area, state, text: found, hint } in findings {
        lines.push(format!("{:<8} {area:<width$}  {}\n", word(*state), one_line(found)));
        if !hint.is_empty() {
            lines.push(format!("{:<8} {:<width$}  {} {}\n", "", "", texts::HINT, one_line(hint)));
        }
    }
    lines.push(texts::summary(count(findings, State::Fault), count(findings, State::Warning)));
    lines.concat()
}

/// The findings for programs.
pub(super) fn json(daemon: &str, findings: &[Finding]) -> String {
    let checks: Vec<_> = findings
        .iter()
        .map(|Finding { area, state, text, hint }| {
            json!({ "check": area, "state": word(*state).to_lowercase(), "finding": text, "hint": hint })
        })
        .collect();
    let whole = json!({
        "daemon": daemon,
        "faults": count(findings, State::Fault),
        "warnings": count(findings, State::Warning),
        "checks": checks,
    });
    format!("{whole:#}\n")
}

const fn word(state: State) -> &'static str {
    match state {
        State::Good => "ok",
        State::Warning => "WARNING",
        State::Fault => "FAULT",
    }
}

fn count(findings: &[Finding], state: State) -> usize {
    findings.iter().filter(|finding| finding.state == state).count()
}

/// Names of files may have line breaks and escape sequences.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_and_its_hint_another() {
        let findings = [Finding::good("clock", "right"), Finding::fault("plugins", "gone\n\x1b[2J", "make it")];
        let expected = "ok       clock    right\nFAULT    plugins  gone  [2J\n                  hint: make it\n\nFaults: 1, warnings: 0.\n";
        assert_eq!(text(&findings), expected);
    }

    #[test]
    fn programs_get_the_same_as_json() {
        let parsed: serde_json::Value =
            serde_json::from_str(&json("x-fd", &[Finding::warning("clock", "a \"b\"", "c")])).unwrap();
        let expected = json!({ "daemon": "x-fd", "faults": 0, "warnings": 1, "checks": [
            { "check": "clock", "state": "warning", "finding": "a \"b\"", "hint": "c" } ] });
        assert_eq!(parsed, expected);
    }
}
