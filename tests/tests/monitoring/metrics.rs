//! The metrics: their page, and what is in the files of packaging/monitoring.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Begins the name of every metric of ours.
const PREFIX: &str = "bacula_fd_";
/// Begins the names that every program has for the same.
const OF_PROCESSES: &str = "process_";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The body of the answer to a `GET`, which must be good.
pub(crate) fn get(port: u16, path: &str) -> String {
    let mut peer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    write!(peer, "GET {path} HTTP/1.0\r\nHost: test\r\n\r\n").unwrap();
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.lines().next().unwrap().ends_with(" 200 OK"), "{path}: {answer}");
    body.to_owned()
}

/// The names in a text, each once.
fn names_in(text: &str) -> BTreeSet<String> {
    let of_a_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c| !of_a_name(c));
    words.filter(|word| word.starts_with(PREFIX)).map(str::to_owned).collect()
}

/// What the daemon has is what the page says, by name and kind; the alerts and the dashboard use
/// nothing else.
pub(crate) fn names_agree(exposition: &str) {
    let kinds = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let rendered: BTreeSet<_> = kinds.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect();
    let page = fs::read_to_string(root().join("docs/monitoring.md")).unwrap();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let (name, kind) = (cells.next()?.trim().trim_end_matches('`'), cells.next()?.trim());
        let is_metric = name.starts_with(PREFIX) || name.starts_with(OF_PROCESSES);
        is_metric.then(|| (name.to_owned(), kind.to_owned()))
    };
    let documented: BTreeSet<_> = page.lines().filter_map(row).collect();
    assert_eq!(documented, rendered, "the page on the left, the daemon on the right");
    let known: BTreeSet<_> = rendered.into_iter().map(|(name, _)| name).collect();
    for file in ["ferrofd.rules.yml", "ferrofd.rules.test.yml", "grafana-dashboard.json", "zabbix.yaml"] {
        let used = names_in(&fs::read_to_string(root().join("packaging/monitoring").join(file)).unwrap());
        let unknown: Vec<_> = used.difference(&known).collect();
        assert!(!used.is_empty() && unknown.is_empty(), "{file}: the daemon has no {unknown:?}");
    }
    // Each sample belongs to a described metric, and no label is one of Prometheus' own.
    for line in exposition.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(known.contains(name), "{line}");
        assert!(!line.contains("{job=") && !line.contains(",job=") && !line.contains("instance="), "{line}");
    }
}

/// The value of the sample that begins like this.
pub(crate) fn sample<T: FromStr<Err: Debug>>(exposition: &str, beginning: &str) -> T {
    let line = exposition.lines().find(|line| line.starts_with(beginning));
    let line = line.unwrap_or_else(|| panic!("no {beginning} in:\n{exposition}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
