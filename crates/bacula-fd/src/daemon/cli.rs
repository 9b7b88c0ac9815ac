//! The command line, read as the stock daemon's `getopt` reads it (reference 06 §4).
//!
//! Only parsing: nothing is opened, and no user is looked up.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use fd_config::{StockMessage, getopt};

/// Where a configuration file without `/` in its name is looked for.
pub(crate) const CONFIGURATION_DIRECTORY: &str = "/etc/bacula";
/// The configuration file when none is named.
const DEFAULT_FILE: &str = "bacula-fd.conf";

/// A command line that was understood.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Cli {
    /// `-c` or the positional argument, with the directory put before it if it has no `/`.
    pub(crate) config_file: OsString,
    /// `-d N`: at least 1.
    pub(crate) debug_level: Option<i32>,
    /// `-d N,TAGS`: the part after the first comma, unchecked.
    pub(crate) debug_tags: OsString,
    /// `-dt`: date and time in debug lines.
    pub(crate) debug_timestamps: bool,
    /// `-f`: stay in the foreground.
    pub(crate) foreground: bool,
    /// `-g`: the group to become.
    pub(crate) group: Option<String>,
    /// `-k`: keep the capability to read everything.
    pub(crate) keep_read_all: bool,
    /// `-m`: show the traceback after a crash.
    pub(crate) show_traceback: bool,
    /// `-P`: no pid file.
    pub(crate) no_pid_file: bool,
    /// `-s`: no signal handlers.
    pub(crate) no_signals: bool,
    /// `-t`: check the configuration and end.
    pub(crate) test_only: bool,
    /// `-T`: debug output into the trace file.
    pub(crate) trace: bool,
    /// `-u`: the user to become.
    pub(crate) user: Option<String>,
    /// `-v`: how often.
    pub(crate) verbose: u32,
}

impl Cli {
    /// Whether the program must go to the background.
    pub(crate) const fn wants_background(&self) -> bool {
        !self.foreground && !self.test_only
    }
}

/// A command line that ends the program with status 1.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// `-?`, or a mistake; the complaint is `getopt`'s own line, without LF.
    #[error("{}", String::from_utf8_lossy(complaint))]
    Usage {
        /// Empty: only the usage.
        complaint: Vec<u8>,
    },
    /// `-k` without `-u`.
    #[error("-k option has no meaning without -u option.")]
    KeepWithoutUser,
}

impl CliError {
    /// What goes to standard error, with the program's usage.
    pub(crate) fn standard_error(&self, usage: &str) -> Vec<u8> {
        let Self::Usage { complaint } = self else { return Vec::new() };
        let mut text = complaint.clone();
        if !text.is_empty() {
            text.push(b'\n');
        }
        text.extend_from_slice(usage.as_bytes());
        text
    }

    /// What goes to standard output.
    pub(crate) fn message(&self) -> Option<StockMessage> {
        match self {
            Self::Usage { .. } => None,
            Self::KeepWithoutUser => {
                Some(StockMessage::termination("bacula-fd", "filed.c:198", self.to_string().as_bytes()))
            }
        }
    }
}

/// Reads the arguments; the first one is the program's own name.
///
/// # Errors
/// [`CliError`]; the program ends with status 1.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, CliError> {
    let usage = |complaint| CliError::Usage { complaint };
    let mut apart = getopt::take_apart(arguments, b"cdguD", b"fkmPstTv").map_err(usage)?;
    let mut cli = Cli::default();
    let mut file = None;
    for (option, value) in apart.options {
        match option {
            // -D is declared with a value, and nothing handles it.
            b'D' => return Err(usage(Vec::new())),
            b'c' => file = Some(value),
            b'd' => debug(&mut cli, &value),
            b'g' => cli.group = Some(String::from_utf8_lossy(&value).into_owned()),
            b'u' => cli.user = Some(String::from_utf8_lossy(&value).into_owned()),
            letter => flag(&mut cli, letter),
        }
    }
    if apart.positional.len() > 1 {
        return Err(usage(Vec::new()));
    }
    if cli.keep_read_all && cli.user.is_none() {
        return Err(CliError::KeepWithoutUser);
    }
    cli.config_file = resolve(apart.positional.pop().or(file).unwrap_or_else(default_file));
    Ok(cli)
}

/// The name of the configuration file when none is named.
pub(crate) fn default_file() -> Vec<u8> {
    DEFAULT_FILE.into()
}

/// An option without a value.
const fn flag(cli: &mut Cli, option: u8) {
    match option {
        b'f' => cli.foreground = true,
        b'k' => cli.keep_read_all = true,
        b'm' => cli.show_traceback = true,
        b'P' => cli.no_pid_file = true,
        b's' => cli.no_signals = true,
        b't' => cli.test_only = true,
        b'T' => cli.trace = true,
        _ => cli.verbose = cli.verbose.saturating_add(1),
    }
}

fn debug(cli: &mut Cli, value: &[u8]) {
    if value.starts_with(b"t") {
        cli.debug_timestamps = true;
        return;
    }
    let (level, tags) = match value.iter().position(|byte| *byte == b',') {
        Some(comma) => value.split_at_checked(comma).unwrap_or((value, b"")),
        None => (value, &b""[..]),
    };
    let digits = level.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(level.len());
    let level = level.get(..digits).and_then(|digits| core::str::from_utf8(digits).ok()).unwrap_or_default();
    let level = level.parse().unwrap_or(if level.is_empty() { 1 } else { i32::MAX });
    cli.debug_level = Some(level.max(1));
    cli.debug_tags = OsString::from_vec(tags.get(1..).unwrap_or_default().to_vec());
}

/// A name without `/` is a file of the configuration directory; the empty name is that directory
/// itself, and is shown as empty.
pub(crate) fn resolve(file: Vec<u8>) -> OsString {
    if file.is_empty() || file.contains(&b'/') {
        return OsString::from_vec(file);
    }
    let mut path = OsStr::new(CONFIGURATION_DIRECTORY).as_bytes().to_vec();
    path.push(b'/');
    path.extend_from_slice(&file);
    OsString::from_vec(path)
}

#[cfg(test)]
mod tests;
