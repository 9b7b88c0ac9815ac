//! `/etc/hosts.allow` and `/etc/hosts.deny`, as Debian's build of the stock daemon honors them
//! (`hosts_access(5)`, `hosts_options(5)`): which clients may connect. The daemon's name in them is
//! that of its resource.
//!
//! Only rules and patterns. What else rules can order (`spawn`, `twist`, `banners`) is not done,
//! and netgroups are not looked up, as in Debian's build. What can't be decided stays so through
//! the whole list of a rule, and its rule then never allows and always denies.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use dns_lookup::LookupErrorKind;

use super::hosts_options::verdict;
use super::{ident, own_file};
use crate::shortage;

const ALLOW: &str = "/etc/hosts.allow";
const DENY: &str = "/etc/hosts.deny";
/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Files of patterns within files of patterns.
const MAX_DEPTH: u32 = 4;
/// Longest line, with its end, in bytes.
const MAX_LINE: usize = 2047;
const SEPARATORS: [char; 5] = [' ', ',', '\t', '\r', '\n'];

/// The client; its name and its user are looked up when a rule asks for them.
#[derive(Debug)]
pub(crate) struct Client {
    address: IpAddr,
    /// Both ends of its connection: its own, then ours.
    ends: [SocketAddr; 2],
    name: OnceCell<Name>,
    /// `None`: its host does not say who it is.
    user: OnceCell<Option<String>>,
}

/// The result of a name lookup.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Name {
    Known(String),
    Unknown,
    /// Who knows it does not answer, or it can't be asked, as without a descriptor.
    NotTold,
    /// The name does not lead back to the address.
    Paranoid,
}

/// Whether something matches. The order makes "one of them" the greatest and "all of them" the
/// least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Answer {
    No,
    /// It can't be decided.
    Unknown,
    Yes,
}

impl Answer {
    const fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
            Self::Yes => Self::No,
        }
    }

    /// Whether one of them matches; none is asked behind one that does.
    fn any(answers: impl Iterator<Item = Self>) -> Self {
        let mut best = Self::No;
        for answer in answers {
            best = best.max(answer);
            if best == Self::Yes {
                break;
            }
        }
        best
    }
}

impl From<bool> for Answer {
    fn from(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }
}

impl Client {
    /// The client at the other end of a connection between these addresses; an IPv4-mapped IPv6
    /// address counts as IPv4.
    pub(crate) fn new(address: SocketAddr, own: SocketAddr) -> Self {
        let ends = [address, own].map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
        Self { address: address.ip().to_canonical(), ends, name: OnceCell::new(), user: OnceCell::new() }
    }

    fn user(&self) -> Option<&str> {
        let [address, own] = self.ends;
        self.user.get_or_init(|| ident::user(address, own)).as_deref()
    }

    /// Whether this is true of its name; unknown if that is not told.
    fn name_is(&self, what: impl FnOnce(&Name) -> bool) -> Answer {
        match self.name.get_or_init(|| look_up(self.address)) {
            Name::NotTold => Answer::Unknown,
            name => what(name).into(),
        }
    }
}

fn look_up(address: IpAddr) -> Name {
    use LookupErrorKind::{Again, Memory, System};
    let name = match dns_lookup::lookup_addr(&address) {
        // A name that looks like an address must not match as one.
        Ok(name) if name.parse::<IpAddr>().is_err() => name,
        Err(error) if matches!(error.kind(), Again | Memory | System) => return Name::NotTold,
        _ => return Name::Unknown,
    };
    let mut addresses = match dns_lookup::getaddrinfo(Some(&name), None, None) {
        Ok(found) => found.flatten().map(|found| found.sockaddr.ip().to_canonical()),
        Err(error) if matches!(error.kind(), Again | Memory | System) => return Name::NotTold,
        Err(_) => return Name::Paranoid,
    };
    if addresses.any(|found| found == address) { Name::Known(name) } else { Name::Paranoid }
}

/// Whether `client` may connect to `daemon`. A missing file allows every client; one that can't be
/// read may deny any.
pub(crate) fn is_allowed(daemon: &str, client: &Client) -> bool {
    is_allowed_by([ALLOW, DENY].map(Path::new), daemon, client)
}

/// The same with the rules of these files.
fn is_allowed_by(files: [&Path; 2], daemon: &str, client: &Client) -> bool {
    let rules = |path| match read(path) {
        Err(error) if own_file::is_missing(&error, path) => Some(String::new()),
        read => read.inspect_err(|error| tracing::error!(%error, ?path, "the rules can't be read: refused")).ok(),
    };
    let [allow, deny] = files;
    let Some(allow) = rules(allow) else { return false };
    let Some(deny) = rules(deny) else { return false };
    decide(&allow, &deny, &|token| is_daemon(token, daemon, client), &|token| is_client(token, client, 0))
}

/// Whether a pattern matches.
type Matches<'m> = &'m dyn Fn(&str) -> Answer;

/// Whether these rules let a caller in.
pub(crate) fn decide(allow: &str, deny: &str, is_daemon: Matches<'_>, is_client: Matches<'_>) -> bool {
    let first_match = |text, file_says| first_match(text, is_daemon, is_client, file_says);
    first_match(allow, true).or_else(|| first_match(deny, false)).unwrap_or(true)
}

/// A longer file than [`MAX_FILE`] is an error: the rules behind may deny.
fn read(path: &Path) -> io::Result<String> {
    let read = || own_file::content(File::open(path)?, MAX_FILE);
    let bytes = shortage::ask_again(read, own_file::lacks_something)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The result of the first rule that matches: that of its file, unless the rule has its own. A rule
/// that may match denies if that is its result; if not, those behind it decide. Behind a line that
/// can't be read, no rule allows, and each client is denied.
fn first_match(text: &str, is_daemon: Matches<'_>, is_client: Matches<'_>, file_says: bool) -> Option<bool> {
    for line in Lines(text) {
        let Some(rule) = line else {
            tracing::warn!(
                "hosts access: a line is too long or has no end; what it and those behind it permit is not known"
            );
            return if file_says { None } else { Some(false) };
        };
        if rule.starts_with('#') || rule.trim().is_empty() {
            continue;
        }
        let mut fields = fields(&rule).into_iter();
        let (Some(daemons), Some(clients)) = (fields.next(), fields.next()) else {
            tracing::warn!(%rule, "hosts access: a rule without a colon is skipped");
            continue;
        };
        let of_daemons = in_list(daemons, is_daemon);
        if of_daemons == Answer::No {
            continue;
        }
        let matches = of_daemons.min(in_list(clients, is_client));
        if matches == Answer::No {
            continue;
        }
        let allows = verdict(fields, file_says);
        if matches == Answer::Yes || !allows {
            return Some(allows);
        }
    }
    None
}

/// The lines of a file as the C library's reader makes them: a backslash before a line's end joins
/// it with the next one, and a NUL byte ends it without its end. `None` is a line that is too long
/// or has no end; what is behind it is not read.
struct Lines<'t>(&'t str);

impl Iterator for Lines<'_> {
    type Item = Option<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        while !self.0.is_empty() {
            let end = self.0.find('\n').map_or(self.0.len(), |at| at.saturating_add(1));
            let (piece, rest) = self.0.split_at_checked(end).unwrap_or((self.0, ""));
            self.0 = rest;
            let piece = piece.split('\0').next().unwrap_or_default();
            if line.len().saturating_add(piece.len()) > MAX_LINE {
                self.0 = "";
                return Some(None);
            }
            match (piece.strip_suffix("\\\n"), piece.strip_suffix('\n')) {
                (Some(head), _) => line.push_str(head),
                (None, Some(head)) => return Some(Some(line + head)),
                (None, None) => line.push_str(piece),
            }
        }
        (!line.is_empty()).then_some(None)
    }
}

/// Splits at colons that are not escaped and not within brackets.
fn fields(rule: &str) -> Vec<&str> {
    let (mut fields, mut start, mut brackets, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in rule.char_indices() {
        match c {
            '[' => brackets = true,
            ']' => brackets = false,
            ':' if !brackets && !escaped => {
                fields.push(rule.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
        escaped = c == '\\';
    }
    fields.push(rule.get(start..).unwrap_or_default());
    fields
}

/// Whether a list matches: one token does, and none of those behind `EXCEPT`.
fn in_list(list: &str, matches: Matches<'_>) -> Answer {
    let tokens: Vec<_> = list.split(SEPARATORS).filter(|token| !token.is_empty()).collect();
    let mut parts = tokens.split(|token| token.eq_ignore_ascii_case("EXCEPT"));
    let mut found = Answer::Yes;
    // `a EXCEPT b EXCEPT c` is a, but not b unless it is c. What can no longer change the answer is
    // not asked: names and users are looked up at other hosts.
    let mut of_parts = Vec::new();
    while found != Answer::No {
        let Some(part) = parts.next() else { break };
        found = Answer::any(part.iter().map(|token| matches(token)));
        of_parts.push(found);
    }
    of_parts.iter().rev().fold(Answer::No, |excepted, found| (*found).min(excepted.not()))
}

/// What is behind an `@` is the host of ours that the client has called.
fn is_daemon(token: &str, daemon: &str, client: &Client) -> Answer {
    let Some((name, host)) = token.split_once('@') else { return is_text(token, daemon).into() };
    if !is_text(name, daemon) {
        return Answer::No;
    }
    let [caller, own] = client.ends;
    is_client(host, &Client::new(own, caller), 0)
}

fn is_client(token: &str, client: &Client, depth: u32) -> Answer {
    if token.starts_with('@') {
        tracing::warn!(%token, "hosts access: netgroups are not looked up");
        return Answer::Unknown;
    }
    if let Some((user, host)) = token.split_once('@') {
        return match is_client(host, client, depth) {
            Answer::No => Answer::No,
            of_host => of_host.min(is_user(user, client)),
        };
    }
    if token.starts_with('/') {
        return match read(Path::new(token)) {
            Ok(text) if depth < MAX_DEPTH => {
                Answer::any(text.split_whitespace().map(|token| is_client(token, client, depth + 1)))
            }
            _ => Answer::Unknown,
        };
    }
    match token.to_ascii_uppercase().as_str() {
        "ALL" => Answer::Yes,
        "KNOWN" => client.name_is(|name| matches!(name, Name::Known(_))),
        "UNKNOWN" => client.name_is(|name| *name == Name::Unknown),
        "PARANOID" => client.name_is(|name| *name == Name::Paranoid),
        "LOCAL" => client.name_is(|name| matches!(name, Name::Known(name) if !name.contains('.'))),
        _ => is_host(token, client),
    }
}

/// Whether a pattern matches the user, as the client's host tells it; unknown if it does not.
fn is_user(pattern: &str, client: &Client) -> Answer {
    if pattern.eq_ignore_ascii_case("ALL") {
        return Answer::Yes;
    }
    let user = client.user();
    match pattern.to_ascii_uppercase().as_str() {
        "KNOWN" => user.is_some().into(),
        "UNKNOWN" => user.is_none().into(),
        _ => user.map_or(Answer::Unknown, |user| is_text(pattern, user).into()),
    }
}

fn is_host(token: &str, client: &Client) -> Answer {
    if let Some((net, mask)) = token.split_once('/') {
        return is_in_net(net, mask, client.address).map_or(Answer::Unknown, Answer::from);
    }
    let in_brackets = bracketed(token);
    if let Ok(address) = in_brackets.unwrap_or(token).parse::<IpAddr>() {
        return match address.to_canonical() == client.address {
            // Brackets are for IPv6: the stock daemon finds no IPv4 address in them.
            true if in_brackets.is_some() && client.address.is_ipv4() => Answer::Unknown,
            is => is.into(),
        };
    }
    if is_text(token, &client.address.to_string()) {
        return Answer::Yes;
    }
    // No name is looked up for a pattern that only addresses can match.
    if token.chars().all(|c| c.is_ascii_digit() || ".*?:[]".contains(c)) {
        return Answer::No;
    }
    client.name_is(|name| matches!(name, Name::Known(name) if is_text(token, name)))
}

/// What is in the brackets around it.
fn bracketed(text: &str) -> Option<&str> {
    text.strip_prefix('[')?.strip_suffix(']')
}

/// `n.n.n.n/m.m.m.m`, `n.n.n.n/mm` or `[n:n:n]/mm`; `None` if it is none of them.
fn is_in_net(net: &str, mask: &str, address: IpAddr) -> Option<bool> {
    let bits = |longest: u32| mask.parse::<u32>().ok().filter(|length| *length <= longest);
    // In the stock daemon a length of 0 is none for IPv4.
    match bracketed(net).unwrap_or(net).parse().ok()? {
        IpAddr::V4(_) if net.starts_with('[') => None,
        IpAddr::V4(net) => {
            let mask = match bits(32).filter(|length| *length > 0) {
                Some(length) => u32::MAX.checked_shl(32 - length).unwrap_or(0),
                None => mask.parse::<Ipv4Addr>().ok()?.into(),
            };
            Some(matches!(address, IpAddr::V4(address) if u32::from(address) & mask == u32::from(net)))
        }
        IpAddr::V6(net) => {
            let mask = u128::MAX.checked_shl(128 - bits(128)?).unwrap_or(0);
            Some(matches!(address, IpAddr::V6(address) if u128::from(address) & mask == u128::from(net) & mask))
        }
    }
}

/// A pattern of text: wild-cards, `.domain`, `net.`, `ALL`, `KNOWN` (it is), or the text itself;
/// without regard to case.
fn is_text(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_ascii_lowercase(), text.to_ascii_lowercase());
    if pattern.contains(['*', '?']) {
        return is_wild(pattern.as_bytes(), text.as_bytes());
    }
    match pattern.as_str() {
        "all" | "known" => true,
        domain if domain.starts_with('.') => text.len() > domain.len() && text.ends_with(domain),
        net if net.ends_with('.') => text.starts_with(net),
        whole => whole == text,
    }
}

/// `*` matches any text, `?` one character. Linear in both, however many stars there are.
fn is_wild(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while let Some(byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(wanted) if *wanted == b'?' || wanted == byte => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                p = after;
                t = from + 1;
            }
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests;
