//! A network in which every packet is acknowledged at once, for programs that don't ask for it.
//! The stock daemons hold a small packet back until the last one is acknowledged, for which the
//! kernel takes 40 ms in a dialogue. Over a real line it may be less, so a phase shows both daemons
//! without that wait.

use std::path::Path;
use std::process::Command;

use bed::{Result, argv, run};

/// Both routes of the loopback device: the kernel takes the narrower one.
const SCRIPT: &str = "ip link set lo up && for to in 127.0.0.0/8 127.0.0.1; do \
     ip route replace local $to dev lo table local proto kernel scope host src 127.0.0.1 quickack 1 || exit 1; \
     done && exec \"$@\"";
/// What runs a command, whose words follow, in a network of its own.
const WORDS: [&str; 6] = ["unshare", "--net", "sh", "-c", SCRIPT, "sh"];

/// A program that will run in such a network.
pub(crate) fn command(program: &Path) -> Command {
    let [first, rest @ ..] = WORDS;
    let mut command = Command::new(first);
    command.args(rest).arg(program);
    command
}

/// Why this host can't have one.
pub(crate) fn missing() -> Result<Option<String>> {
    let done = run(&argv(WORDS.iter().chain(&["true"])), b"")?;
    Ok((!done.status.success()).then(|| format!("no network of its own: {}", done.text().trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_acknowledges_at_once() {
        if let Some(missing) = missing().unwrap() {
            return skip::test(&missing);
        }
        let routes = command(Path::new("ip")).args(["route", "show", "table", "local"]).output().unwrap();
        let text = String::from_utf8(routes.stdout).unwrap();
        let quick = text.lines().filter(|line| line.starts_with("local ")).map(|line| line.contains("quickack 1"));
        assert_eq!(quick.collect::<Vec<_>>(), [true, true], "{text}");
    }
}
