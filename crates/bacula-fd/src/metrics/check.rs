//! `check_ferrofd`: whether a host's backups are well, for Nagios, Icinga and what else runs their
//! checks. The same program under another name. It asks the metrics of a daemon, here or elsewhere,
//! so it needs no rights.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use fd_config::getopt;

use crate::clock;
use crate::print::print;
use crate::texts;

/// The most that is read of an answer. Metrics of 100 jobs take a tenth of a megabyte.
const LONGEST_ANSWER: u64 = 8 << 20;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// A certificate that ends within this time is worth a warning, in seconds.
const SOON: i64 = 14 * DAY;

/// How it is, as the exit status says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// All is well.
    Ok = 0,
    /// Someone should look at it.
    Warning = 1,
    /// Someone must look at it.
    Critical = 2,
    /// It could not be found out.
    Unknown = 3,
}

impl State {
    /// The worst first, as an administrator sees it: what is known to be bad before what is not
    /// known.
    const fn rank(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Unknown => 1,
            Self::Warning => 2,
            Self::Critical => 3,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        })
    }
}

/// What the command line asks for.
#[derive(PartialEq, Eq, Debug)]
struct Wish {
    host: String,
    port: u16,
    /// Ages of the last good backup, in seconds.
    warning: i64,
    critical: i64,
    /// Only backups of this name.
    name: Option<String>,
    timeout: Duration,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 19102,
            warning: 26 * HOUR,
            critical: 50 * HOUR,
            name: None,
            timeout: Duration::from_secs(10),
        }
    }
}

impl Wish {
    /// `None`: something is not understood, or help is asked for.
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let apart = getopt::take_apart(arguments, b"Hpwcnt", b"h").ok()?;
        let mut wish = Self::default();
        for (letter, value) in apart.options {
            let value = String::from_utf8(value).ok()?;
            let hours = || value.parse::<u32>().ok().map(|hours| i64::from(hours) * HOUR);
            match letter {
                b'H' => wish.host = value,
                b'p' => wish.port = value.parse().ok()?,
                b'w' => wish.warning = hours()?,
                b'c' => wish.critical = hours()?,
                b'n' => wish.name = Some(value),
                b't' => wish.timeout = Duration::from_secs(value.parse::<u16>().ok().filter(|time| *time > 0)?.into()),
                _ => return None,
            }
        }
        (apart.positional.is_empty() && wish.warning <= wish.critical).then_some(wish)
    }
}

/// What was found: a line for each finding, the worst first, and numbers for graphs.
#[derive(Debug, Default)]
struct Report {
    findings: Vec<(State, String)>,
    /// `label=value` with its thresholds, by the Monitoring Plugins' guidelines.
    numbers: Vec<String>,
}

impl Report {
    fn of(state: State, text: String) -> Self {
        Self { findings: vec![(state, text)], numbers: Vec::new() }
    }

    fn add(&mut self, state: State, text: String) {
        self.findings.push((state, text));
    }

    /// What is printed, and the exit status.
    fn finish(mut self) -> (String, u8) {
        self.findings.sort_by_key(|(state, _)| std::cmp::Reverse(state.rank()));
        let worst = self.findings.first().map_or(State::Unknown, |(state, _)| *state);
        // A bar begins the numbers. Names may have any character.
        let mut lines = self.findings.iter().map(|(_, text)| text.replace(|c: char| c.is_control() || c == '|', "/"));
        let mut out = format!("FERROFD {worst} - {}", lines.next().unwrap_or_default());
        if !self.numbers.is_empty() {
            out.push_str(" | ");
            out.push_str(&self.numbers.join(" "));
        }
        out.push('\n');
        lines.for_each(|line| out.extend([line.as_str(), "\n"]));
        (out, worst as u8)
    }
}

/// Runs the program; returns its exit status.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let Some(wish) = Wish::parse(arguments) else {
        print(&mut io::stdout(), texts::CHECK_USAGE.as_bytes());
        return State::Unknown as u8;
    };
    let report = match fetch(&wish) {
        Ok(text) => judge(&text, clock::seconds(), &wish),
        Err(error) => Report::of(State::Critical, texts::no_metrics_at(&wish.host, wish.port, &error)),
    };
    let (text, status) = report.finish();
    print(&mut io::stdout(), text.as_bytes());
    status
}

/// What the daemon answers.
fn fetch(wish: &Wish) -> io::Result<String> {
    let until = Instant::now() + wish.timeout;
    let mut peer = connect(wish)?;
    peer.set_write_timeout(Some(wish.timeout))?;
    peer.write_all(texts::REQUEST_FOR_METRICS.as_bytes())?;
    let mut answer = Vec::new();
    let mut piece = [0; 16 << 10];
    // Not `read_to_end`: an answer that comes byte by byte must not take for ever.
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        peer.set_read_timeout(Some(left))?;
        match peer.read(&mut piece)? {
            0 if is_cut_off(&answer) => return Err(io::ErrorKind::UnexpectedEof.into()),
            0 => return Ok(String::from_utf8_lossy(&answer).into_owned()),
            count => answer.extend_from_slice(piece.get(..count).unwrap_or_default()),
        }
        if answer.len() as u64 > LONGEST_ANSWER {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// Whether there is less of an answer than its head says: what is missing may be a failed backup.
fn is_cut_off(answer: &[u8]) -> bool {
    const END: &[u8] = b"\r\n\r\n";
    let end = answer.windows(END.len()).position(|end| end == END);
    let Some((head, body)) = end.and_then(|end| answer.split_at_checked(end + END.len())) else { return false };
    let head = String::from_utf8_lossy(head);
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("Content-Length"));
    length.is_some_and(|(_, length)| length.trim().parse().is_ok_and(|length: usize| body.len() < length))
}

/// The first address of the host that accepts a connection.
fn connect(wish: &Wish) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = (wish.host.as_str(), wish.port).to_socket_addrs()?.collect();
    let mut failed = io::ErrorKind::AddrNotAvailable.into();
    for address in addresses {
        match TcpStream::connect_timeout(&address, wish.timeout) {
            Ok(peer) => return Ok(peer),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A line of the metrics.
struct Sample<'t> {
    /// Without the beginning that all names have.
    metric: &'t str,
    labels: Vec<(&'t str, String)>,
    value: i64,
}

impl<'t> Sample<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let line = line.strip_prefix("bacula_fd_")?;
        let (head, value) = line.rsplit_once(' ')?;
        // Those that are looked at are whole numbers.
        let value = value.parse().ok()?;
        let Some((metric, labels)) = head.split_once('{') else {
            return Some(Self { metric: head, labels: Vec::new(), value });
        };
        Some(Self { metric, labels: parse_labels(labels)?, value })
    }

    fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(label, _)| *label == name).map_or("", |(_, value)| value)
    }
}

/// `name="value",…}`, with a backslash before `\`, `"`, and `n` for an end of line.
fn parse_labels(mut text: &str) -> Option<Vec<(&str, String)>> {
    let mut labels = Vec::new();
    while text != "}" {
        let (name, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.push((name, value));
        let behind = rest.get(end + 1..)?;
        text = behind.strip_prefix(',').unwrap_or(behind);
    }
    Some(labels)
}

/// What this answer means at this time.
fn judge(answer: &str, now: i64, wish: &Wish) -> Report {
    let samples: Vec<_> = answer.lines().filter_map(Sample::parse).collect();
    let of_daemon = |metric: &str| samples.iter().find(|sample| sample.metric == metric).map(|sample| sample.value);
    let Some(started) = of_daemon("start_time_seconds") else {
        return Report::of(State::Unknown, texts::other_answer(&wish.host, wish.port));
    };
    let is_wanted = |sample: &&Sample<'_>| {
        sample.label("type") == "Backup" && wish.name.as_ref().is_none_or(|name| sample.label("name") == name)
    };
    let of_backups =
        |metric: &'static str| samples.iter().filter(move |sample| sample.metric == metric).filter(is_wanted);
    let mut report = Report::default();
    judge_age(&mut report, of_backups("last_good_job_end_time_seconds"), now, started, wish);
    let canceled: Vec<_> =
        of_backups("last_job_canceled").filter(|sample| sample.value != 0).map(|sample| sample.label("name")).collect();
    for failed in of_backups("last_job_good").filter(|sample| sample.value == 0) {
        let name = failed.label("name");
        let is_canceled = canceled.contains(&name);
        let state = if is_canceled { State::Warning } else { State::Critical };
        report.add(state, texts::last_backup_failed(name, is_canceled));
    }
    for (metric, what) in [("last_job_errors", "errors"), ("last_job_warnings", "warnings")] {
        let mut sum = 0_i64;
        for sample in of_backups(metric).filter(|sample| sample.value > 0) {
            sum = sum.saturating_add(sample.value);
            report.add(State::Warning, texts::last_backup_had(sample.label("name"), sample.value, what));
        }
        report.numbers.push(format!("'{what}'={sum};0;;0"));
    }
    for sample in samples.iter().filter(|sample| sample.metric == "certificate_end_time_seconds") {
        let left = sample.value.saturating_sub(now);
        if left < SOON {
            let state = if left < 0 { State::Critical } else { State::Warning };
            report.add(
                state,
                texts::certificate_ends(sample.label("resource"), sample.label("name"), left.div_euclid(DAY)),
            );
        }
    }
    report.numbers.push(format!("'running'={};;;0", of_daemon("jobs_running").unwrap_or_default()));
    report
}

/// Judges the age of the last good backup, whatever its name.
fn judge_age<'s>(report: &mut Report, ends: impl Iterator<Item = &'s Sample<'s>>, now: i64, started: i64, wish: &Wish) {
    let last = ends.max_by_key(|sample| sample.value);
    // A daemon without one has been without one since its start.
    let age = now.saturating_sub(last.map_or(started, |sample| sample.value)).max(0);
    let state = match age {
        age if age >= wish.critical => State::Critical,
        age if age >= wish.warning => State::Warning,
        _ => State::Ok,
    };
    let hours = age / HOUR;
    let text = match last {
        Some(sample) => texts::last_good_backup(sample.label("name"), hours),
        None => texts::no_good_backup(wish.name.as_deref(), hours),
    };
    report.add(state, text);
    report.numbers.push(format!("'age'={age}s;{};{};0", wish.warning, wish.critical));
}

#[cfg(test)]
mod tests;
