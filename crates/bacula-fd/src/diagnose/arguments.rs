//! The command line of `--diagnose`, which must be the first argument: anywhere else it means what
//! it means to the stock daemon.

use std::ffi::OsString;

use crate::daemon::cli::{self, Cli, CliError};
use crate::diagnose::texts;

/// A Storage Daemon's port if none is named.
const STORAGE_PORT: u16 = 9103;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Wish {
    /// The options that the daemon has, too.
    pub(super) cli: Cli,
    pub(super) json: bool,
    /// Storage Daemons that are to be tried.
    pub(super) storages: Vec<(String, u16)>,
}

/// Whether the program is to diagnose.
pub(crate) fn is_meant(arguments: &[OsString]) -> bool {
    arguments.get(1).is_some_and(|argument| argument == "--diagnose")
}

/// Reads the arguments; the first two are the program's name and `--diagnose`.
///
/// # Errors
/// What goes to standard error: the mistake and the usage.
pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Wish, Vec<u8>> {
    let mut arguments = arguments.into_iter();
    let mut of_the_daemon: Vec<OsString> = arguments.next().into_iter().collect();
    let (mut json, mut storages) = (false, Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--diagnose") => {}
            Some("--json") => json = true,
            Some("--storage") => {
                let place = arguments.next().and_then(|place| place.into_string().ok()).and_then(|text| place(&text));
                storages.push(place.ok_or_else(|| texts::USAGE.as_bytes().to_vec())?);
            }
            _ => of_the_daemon.push(argument),
        }
    }
    let cli = cli::parse(of_the_daemon).map_err(|error| match error {
        // The daemon says it in a form that has no usage.
        CliError::KeepWithoutUser => format!("{error}\n{}", texts::USAGE).into_bytes(),
        CliError::Usage { .. } => error.standard_error(texts::USAGE),
    })?;
    Ok(Wish { cli, json, storages })
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or an IPv6 address.
fn place(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':')?)),
        None if text.matches(':').count() == 1 => text.split_once(':').map(|(host, port)| (host, Some(port)))?,
        None => (text, None),
    };
    let port = port.map_or(Some(STORAGE_PORT), |port| port.parse().ok().filter(|port| *port > 0))?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        ["bacula-fd"].iter().chain(words).map(OsString::from).collect()
    }

    #[test]
    fn only_the_first_argument_asks_for_a_diagnosis() {
        assert!(is_meant(&words(&["--diagnose", "-c", "x"])));
        assert!(!is_meant(&words(&["-c", "--diagnose"])) && !is_meant(&words(&[])) && !is_meant(&words(&["--diag"])));
    }

    #[test]
    fn a_storage_daemon_is_named_with_or_without_its_port() {
        for (text, expected) in [
            ("backup", Some(("backup", 9103))),
            ("backup:1", Some(("backup", 1))),
            ("192.0.2.1:9104", Some(("192.0.2.1", 9104))),
            ("::1", Some(("::1", 9103))),
            ("[::1]", Some(("::1", 9103))),
            ("[::1]:1", Some(("::1", 1))),
            ("", None),
            (":1", None),
            ("a:0", None),
            ("a:99999", None),
            ("[::1]x", None),
        ] {
            assert_eq!(place(text), expected.map(|(host, port)| (host.to_owned(), port)), "{text}");
        }
    }

    #[test]
    fn the_daemon_s_own_options_go_with_it() {
        let wish = parse(words(&["--diagnose", "--storage", "a", "-c", "/x", "--json", "--storage", "b:2"])).unwrap();
        assert_eq!((wish.cli.config_file.to_str(), wish.json), (Some("/x"), true));
        assert_eq!(wish.storages, [("a".to_owned(), 9103), ("b".to_owned(), 2)]);
        for bad in [&["--storage"][..], &["--xml"], &["-c"], &["-k"]] {
            let text = String::from_utf8(parse(words(&[&["--diagnose"], bad].concat())).unwrap_err()).unwrap();
            assert!(text.contains("Usage: bacula-fd --diagnose"), "{text}");
            assert_eq!(text.contains("-k option has no meaning without -u option."), bad == ["-k"], "{text}");
        }
    }
}
