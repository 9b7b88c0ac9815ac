//! What the program prints on standard output and standard error, before and beside its log.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use fd_config::StockMessage;
use serde_json::json;

use crate::clock;

/// Whether messages of this host are lines of JSON on standard error, as the daemon's log is.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on [`message_as_json`] prints.
pub(crate) fn use_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// Whether [`message_as_json`] prints.
pub(crate) fn is_json() -> bool {
    AS_JSON.load(Ordering::Relaxed)
}

/// Prints a message for this host's log as JSON on standard error; `false`: not in this form. The
/// level is a word as in the daemon's log.
pub(crate) fn message_as_json(level: &str, text: &[u8]) -> bool {
    let as_json = is_json();
    if as_json {
        print(&mut io::stderr().lock(), &json_line(level, &clock::iso_date(clock::seconds()), text));
    }
    as_json
}

fn json_line(level: &str, date: &str, text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let line =
        json!({ "timestamp": date, "level": level, "fields": { "message": text.trim_end() }, "target": "message" });
    format!("{line}\n").into_bytes()
}

/// Prints a message of the stock daemon's, with the date.
pub(crate) fn say(message: Option<StockMessage>) {
    if let Some(message) = message {
        tell("ERROR", &message.print(&clock::short_date(clock::seconds())));
    }
}

/// Prints a message for this host on standard output, or as JSON.
pub(crate) fn tell(level: &str, text: &[u8]) {
    if !message_as_json(level, text) {
        print(&mut io::stdout(), text);
    }
}

/// Prints what the stock daemon does not say on standard error, or as JSON.
pub(crate) fn explain(text: &[u8]) {
    if !text.is_empty() && !message_as_json("ERROR", text) {
        print(&mut io::stderr(), text);
    }
}

/// Prints a text; an output that is closed is no error.
pub(crate) fn print(out: &mut dyn io::Write, text: &[u8]) {
    // A closed output is no error.
    let _unread = out.write_all(text).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_json_whatever_is_in_it() {
        let line = String::from_utf8(json_line("WARN", "2026-11-25 17:00:00", b"a \"b\"\nc \xff\n")).unwrap();
        assert_eq!(line.matches('\n').count(), 1);
        let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (parsed["level"].as_str(), parsed["timestamp"].as_str()),
            (Some("WARN"), Some("2026-11-25 17:00:00"))
        );
        assert_eq!(parsed["fields"]["message"].as_str(), Some("a \"b\"\nc \u{fffd}"));
    }
}
