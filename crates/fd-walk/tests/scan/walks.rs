//! Walks, and what they say.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fd_fileset::{FileSet, Parser, Regex, RegexCompiler};
use fd_walk::{Flow, InodeScan, LookupDepth, WalkEvent, WalkHost, WalkSettings, WalkSummary, walk};

struct NoExpressions;

impl RegexCompiler for NoExpressions {
    fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
        Err("no regular expressions here".to_owned())
    }
}

#[derive(Default)]
pub(crate) struct Host {
    pub(crate) scans: std::cell::RefCell<Vec<Result<u64, String>>>,
    /// After so many questions.
    pub(crate) is_canceled_after: Option<u32>,
    pub(crate) asked: std::cell::Cell<u32>,
}

impl WalkHost for Host {
    fn is_canceled(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.is_canceled_after.is_some_and(|questions| self.asked.get() > questions)
    }

    fn compares_by_time(&self) -> bool {
        true
    }

    fn scanned(&self, _: u64, found: Result<(u64, Duration), String>) {
        self.scans.borrow_mut().push(found.map(|(inodes, _)| inodes));
    }
}

pub(crate) fn fileset(lines: &[&str], tops: &[&Path]) -> FileSet {
    let mut parser = Parser::new(&NoExpressions);
    let names: Vec<String> = tops.iter().map(|top| format!("F {}", top.display())).collect();
    for line in lines.iter().copied().chain(names.iter().map(String::as_str)) {
        let _reaction = parser.line(line.as_bytes()).expect("a good line");
    }
    parser.finish().expect("a good FileSet")
}

/// All that a walk says, but the time of the last access.
pub(crate) fn events(fileset: &FileSet, settings: &WalkSettings, host: &dyn WalkHost) -> (Vec<String>, WalkSummary) {
    events_seen_by(fileset, settings, host, &mut |_| {})
}

/// As [`events`], with somebody who sees what was said so far each time.
pub(crate) fn events_seen_by(
    fileset: &FileSet,
    settings: &WalkSettings,
    host: &dyn WalkHost,
    see: &mut dyn FnMut(&[String]),
) -> (Vec<String>, WalkSummary) {
    let mut events = Vec::new();
    let summary = walk(fileset, settings, host, &mut |event| {
        events.push(match event {
            WalkEvent::Entry(mut entry) => {
                entry.stat.atime = 0;
                let (path, link) = (String::from_utf8_lossy(&entry.path), String::from_utf8_lossy(&entry.link));
                format!("{path} {:?} {:?} {link}", entry.file_type, entry.stat)
            }
            WalkEvent::Message(message) => format!("{:?} {}", message.kind, String::from_utf8_lossy(message.text)),
            WalkEvent::Plugin(_) => "plugin".to_owned(),
        });
        see(&events);
        Flow::Continue
    });
    (events, summary)
}

pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time")
}

pub(crate) fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).expect("a time")
}

/// Waits until the clock shows the next second, and returns it.
pub(crate) fn next_second() -> i64 {
    let before = now().as_secs();
    while now().as_secs() == before {
        std::thread::yield_now();
    }
    seconds(now())
}

pub(crate) fn settings(since: i64, inode_scan: InodeScan, depth: u16) -> WalkSettings {
    let lookup_depth = LookupDepth::Fixed(depth.try_into().expect("a depth"));
    WalkSettings { incremental: true, since, inode_scan, lookup_depth, ..WalkSettings::default() }
}
