//! The rules of a run: which calls count, and what is done at which of them.

use std::fs;
use std::io;
use std::path::Path;

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// The call fails with this number.
    Errno(i32),
    /// The call moves at most so many bytes.
    Short(u64),
    /// The process is killed.
    Kill,
    /// The other user does this.
    Act(Vec<u8>),
}

/// A line of the file, and what came of it.
#[derive(Debug)]
struct Rule {
    /// Empty: whatever the call is about.
    below: Vec<u8>,
    nth: u64,
    /// Empty: any.
    calls: Vec<String>,
    action: Action,
    /// At how many calls it acts.
    times: u64,
    counted: u64,
    /// The call, its outcome and its path.
    acted: Option<(&'static str, Vec<u8>, Vec<u8>)>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Rules(Vec<Rule>);

/// What is to be done now.
#[derive(Debug)]
pub(crate) struct Due {
    /// The number of the rule.
    rule: usize,
    /// What.
    pub(crate) action: Action,
    /// The directory of the rule.
    pub(crate) below: Vec<u8>,
    /// What the call is about.
    pub(crate) path: Vec<u8>,
}

impl Rules {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        let wrong = |line: &str| io::Error::other(format!("not a rule: {line:?}"));
        text.lines().map(|line| Rule::parse(line).ok_or_else(|| wrong(line))).collect::<io::Result<_>>().map(Self)
    }

    /// Whether any rule is about a call of this name.
    pub(crate) fn want(&self, call: &str) -> bool {
        self.0.iter().any(|rule| rule.wants(call))
    }

    /// Counts a call, and gives what is to be done now: at most one thing.
    pub(crate) fn count(&mut self, call: &'static str, objects: &[Vec<u8>]) -> Option<Due> {
        let mut due = None;
        for (number, rule) in self.0.iter_mut().enumerate().filter(|(_, rule)| rule.wants(call)) {
            let Some(path) = rule.object(objects) else { continue };
            rule.counted += 1;
            if rule.acts() && due.is_none() {
                rule.acted.get_or_insert((call, b"-".to_vec(), path.clone()));
                due = Some(Due { rule: number, action: rule.action.clone(), below: rule.below.clone(), path });
            }
        }
        due
    }

    /// Notes what came of it.
    pub(crate) fn note(&mut self, due: &Due, outcome: Vec<u8>) {
        if let Some((_, noted, _)) = self.0.get_mut(due.rule).and_then(|rule| rule.acted.as_mut()) {
            *noted = outcome;
        }
    }

    /// A line for each rule.
    pub(crate) fn report(&self) -> Vec<u8> {
        let mut report = Vec::new();
        for (number, rule) in self.0.iter().enumerate() {
            report.extend(format!("rule {number} {}", rule.counted).into_bytes());
            if let Some((call, outcome, path)) = &rule.acted {
                report.extend([b" ", call.as_bytes(), b" ", outcome, b" ", path].concat());
            }
            report.push(b'\n');
        }
        report
    }
}

impl Rule {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let below = words.next().filter(|word| !word.is_empty())?;
        let nth = words.next()?.parse().ok()?;
        let calls = words.next()?;
        let mut times = 1;
        let action = match (words.next()?, words.next()) {
            ("errno", Some(number)) => {
                times = words.next().map_or(Some(1), |word| word.parse().ok())?;
                Action::Errno(number.parse().ok()?)
            }
            ("short", Some(count)) => Action::Short(count.parse().ok()?),
            ("kill", None) => Action::Kill,
            ("do", Some(what)) => Action::Act(what.into()),
            _ => return None,
        };
        let calls = if calls == "*" { Vec::new() } else { calls.split(',').map(str::to_owned).collect() };
        let below = if below == "*" { Vec::new() } else { below.into() };
        Some(Self { below, nth, calls, action, times, counted: 0, acted: None })
    }

    /// Whether the call that has just been counted is one of its own.
    fn acts(&self) -> bool {
        self.nth > 0 && self.counted.checked_sub(self.nth).is_some_and(|after| after < self.times)
    }

    fn wants(&self, call: &str) -> bool {
        self.calls.is_empty() || self.calls.iter().any(|name| name == call)
    }

    /// The object of a call that this rule is about.
    fn object(&self, objects: &[Vec<u8>]) -> Option<Vec<u8>> {
        if self.below.is_empty() {
            return Some(objects.first().cloned().unwrap_or_default());
        }
        let is_below = |path: &&Vec<u8>| {
            path.strip_prefix(&self.below[..]).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        objects.iter().find(is_below).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_acts_once_at_its_call_and_counts_on() {
        let mut rules = Rules(vec![
            Rule::parse("/tree/a 2 open,read errno 5").unwrap(),
            Rule::parse("* 0 * kill").unwrap(),
            Rule::parse("/tree/b 1 read do link").unwrap(),
        ]);
        let mut count = |call, path: &str| rules.count(call, &[path.into()]).map(|due| (due.action, due.path));
        assert_eq!(count("open", "/tree/a/f"), None);
        assert_eq!(count("statx", "/tree/a/f"), None);
        assert_eq!(count("open", "/tree/ab"), None);
        assert_eq!(count("read", "/tree/a"), Some((Action::Errno(5), b"/tree/a".to_vec())));
        assert_eq!(count("read", "/tree/a"), None);
        assert_eq!(count("read", "/tree/b"), Some((Action::Act(b"link".to_vec()), b"/tree/b".to_vec())));
        let report = String::from_utf8(rules.report()).unwrap();
        assert_eq!(report, "rule 0 3 read - /tree/a\nrule 1 6\nrule 2 1 read - /tree/b\n");
        let mut rules = Rules(vec![Rule::parse("* 2 * errno 24 2").unwrap()]);
        let mut fails = || rules.count("openat", &[]).is_some();
        assert_eq!([fails(), fails(), fails(), fails()], [false, true, true, false]);
        assert!(Rule::parse("/tree 1 * explode").is_none() && Rule::parse("/tree x * kill").is_none());
    }
}
