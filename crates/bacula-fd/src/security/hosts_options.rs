//! What the options of a rule in `hosts.allow` or `hosts.deny` make of it (`hosts_options(5)`).
//!
//! Only `allow` and `deny` do something here. But an option that is unknown, or whose value is not
//! right, refuses, as in the stock daemon: no caller is let in by a rule that is not understood.

use nix::unistd::{Group, User};

const FACILITIES: [&str; 17] = [
    "auth", "cron", "daemon", "kern", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
    "lpr", "mail", "news", "user", "uucp",
];
const LEVELS: [&str; 8] = ["alert", "crit", "debug", "emerg", "err", "info", "notice", "warning"];

/// What an option is.
enum Meaning {
    Allow,
    Deny,
    /// It changes nothing.
    None,
}

/// The result of a rule with these options: that of its file, if they don't say otherwise.
pub(crate) fn verdict<'r>(options: impl Iterator<Item = &'r str>, file_says: bool) -> bool {
    let mut options = options.peekable();
    while let Some(option) = options.next() {
        match meaning(option) {
            Some(Meaning::Allow) if options.peek().is_none() => return true,
            Some(Meaning::Deny) => return false,
            Some(Meaning::None) => {}
            Some(Meaning::Allow) | None => {
                tracing::warn!(%option, "hosts access: an option that is unknown or not at its place, refusing");
                return false;
            }
        }
    }
    file_says
}

/// What an option with its value means, if both are right.
fn meaning(option: &str) -> Option<Meaning> {
    let option = option.trim();
    let end = option.find(|c: char| c.is_ascii_whitespace() || c == '=').unwrap_or(option.len());
    let (keyword, rest) = option.split_at_checked(end)?;
    let value = rest.trim_start();
    let value = value.strip_prefix('=').unwrap_or(value).trim();
    let keyword = keyword.to_ascii_lowercase();
    let is_right = match keyword.as_str() {
        "allow" | "deny" | "keepalive" => value.is_empty(),
        "severity" => is_severity(value),
        "umask" => u32::from_str_radix(value, 8).is_ok_and(|mask| mask <= 0o777),
        "linger" => is_number(value.strip_prefix('+').unwrap_or(value)),
        "nice" => value.is_empty() || is_number(value.strip_prefix(['+', '-']).unwrap_or(value)),
        "rfc931" => {
            let seconds = value.strip_prefix('+').unwrap_or(value);
            seconds.is_empty() || is_number(seconds) && seconds.contains(|c| c != '0')
        }
        "setenv" => value.split_ascii_whitespace().next().is_some_and(|name| !name.contains('=')),
        "banners" | "spawn" | "twist" => !value.is_empty(),
        "user" => is_user(value),
        "group" => matches!(Group::from_name(value), Ok(Some(_))),
        _ => false,
    };
    if matches!(keyword.as_str(), "spawn" | "user" | "group") {
        tracing::warn!(%option, "hosts access: option without effect");
    }
    match keyword.as_str() {
        _ if !is_right => None,
        "allow" => Some(Meaning::Allow),
        // In place of the daemon another program would answer.
        "deny" | "twist" => Some(Meaning::Deny),
        _ => Some(Meaning::None),
    }
}

/// A level of the host's log, or a facility and a level.
fn is_severity(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let (facility, level) = value.split_once('.').unwrap_or(("auth", &value));
    FACILITIES.contains(&facility) && LEVELS.contains(&level)
}

/// A decimal number of any length.
fn is_number(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A user of this host, or a user and a group.
fn is_user(value: &str) -> bool {
    let (user, group) = value.split_once('.').map_or((value, None), |(user, group)| (user, Some(group)));
    matches!(User::from_name(user), Ok(Some(_)))
        && group.is_none_or(|group| matches!(Group::from_name(group), Ok(Some(_))))
}

#[cfg(test)]
mod tests;
