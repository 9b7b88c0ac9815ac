//! Can the configuration be read, and does it hold together?

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use fd_config::{AddressFamily, CheckFailure, Config, DestinationKind, Settings, Source, SyntaxError, Unchecked};
use fd_messages::MessageType;
use fd_os::io_error_text;

use super::case::Read;
use crate::daemon::host::{Host, read_settings};
use crate::daemon::start::{own_address_of_metrics, unencrypted};
use crate::diagnose::finding::Finding;
use crate::diagnose::patience::Patience;
use crate::diagnose::texts;
use crate::texts::{empty_password, not_ipv4};

/// Reads configuration and settings as a start does. What can be read is there even if it does not
/// hold together; the findings say so.
pub(in crate::diagnose) fn read(file: &OsStr, patience: &Patience) -> (Vec<Finding>, Option<Read>) {
    let mut findings = Vec::new();
    let settings_file = Settings::path_beside(file);
    let settings = settings(&settings_file, patience, &mut findings);
    let mut source = Noting { patience, files: Vec::new() };
    let document = match fd_config::parse(file.as_bytes(), &mut source) {
        Ok(document) => document,
        Err(error) => {
            let hint = match error.place() {
                _ if patience.is_lost() => texts::HINT_STORAGE_HANGS,
                None => texts::HINT_NO_CONFIGURATION,
                Some(_) => texts::HINT_CONFIGURATION,
            };
            findings.insert(0, not_understood(&error, hint));
            return (findings, None);
        }
    };
    // Keys and directories have checks of their own, which say more.
    // Checks of the text alone. Keys and directories are all good.
    let checked = document.check(&mut Unchecked(fd_session::command::disabled_by));
    match checked {
        Ok(config) => {
            if let Some((kind, name)) = unencrypted(&settings, &config) {
                findings.push(Finding::fault(texts::SETTINGS, texts::never_encrypted(kind, name), texts::HINT_ENCRYPT));
            }
            if let Some((metrics, own)) = own_address_of_metrics(&settings, &config) {
                let text = texts::metrics_on_own_port(metrics, own);
                findings.push(Finding::fault(texts::SETTINGS, text, texts::HINT_METRICS_PORT));
            }
            findings.extend(open_doors(&config));
            findings.extend(unknown_directors(&config));
            findings.extend(unheard_of(&config));
            findings.insert(0, good(file, &config, source.files.len()));
            (findings, Some(Read { config, settings, settings_file, files: source.files }))
        }
        Err(failure) => {
            findings.insert(0, does_not_fit(file, &failure));
            (findings, None)
        }
    }
}

fn good(file: &OsStr, config: &Config, files: usize) -> Finding {
    let text = texts::configuration(file, files, &config.file_daemon.name, config.directors.len());
    Finding::good(texts::CONFIGURATION, text)
}

/// What lets more callers in than it seems.
fn open_doors(config: &Config) -> impl Iterator<Item = Finding> {
    let empty = config.directors.iter().filter(|director| director.password.is_empty()).map(|director| {
        Finding::fault(texts::CONFIGURATION, empty_password(&director.name), texts::HINT_EMPTY_PASSWORD)
    });
    let own = &config.file_daemon;
    let not_ipv4 = own.not_ipv4.iter().map(|(directive, address)| {
        let hint = match *directive {
            "FdAddress" => texts::listen_on(*address, own.port()),
            _ => texts::HINT_SOURCE_ADDRESS.to_owned(),
        };
        Finding::warning(texts::CONFIGURATION, not_ipv4(directive, *address), hint)
    });
    empty.chain(not_ipv4)
}

/// Messages for a Director that the configuration does not have: most likely a name that was
/// forgotten when another one changed.
fn unknown_directors(config: &Config) -> impl Iterator<Item = Finding> {
    let messages = &config.file_daemon.messages;
    let of_directors = messages.destinations.iter().filter(|place| place.kind == DestinationKind::Director);
    let unknown =
        of_directors.filter(|place| config.directors.iter().all(|known| known.name.as_bytes() != place.place));
    unknown.map(|place| {
        let text = texts::unknown_director(&messages.name, &place.place);
        Finding::warning(texts::CONFIGURATION, text, texts::HINT_UNKNOWN_DIRECTOR)
    })
}

/// Kinds of trouble that the resource in use gives to no destination: they do not count for a job,
/// either (reference 06 §7.3).
fn unheard_of(config: &Config) -> Option<Finding> {
    let messages = &config.file_daemon.messages;
    let kinds = [(MessageType::Fatal, "fatal"), (MessageType::Error, "error"), (MessageType::Warning, "warning")];
    let unheard = kinds.into_iter().filter(|(kind, _)| !messages.wants(kind.number()));
    let names: Vec<_> = unheard.map(|(_, name)| name).collect();
    let text = texts::unheard_of(&messages.name, &names);
    (!names.is_empty()).then(|| Finding::warning(texts::CONFIGURATION, text, texts::HINT_UNHEARD_OF))
}

/// A line that can't be understood: its place, the reason, and the hints of the explanation.
fn not_understood(error: &SyntaxError, usual: &str) -> Finding {
    Finding::fault(texts::CONFIGURATION, error.to_string(), hints(&error.explanation(), usual))
}

fn does_not_fit(file: &OsStr, failure: &CheckFailure) -> Finding {
    let mut reasons: Vec<_> = failure.messages().iter().map(|message| texts::reason(message.text())).collect();
    // The last one only asks to correct the file.
    reasons.pop();
    let text = texts::does_not_fit(file, &reasons.join(" "));
    Finding::fault(texts::CONFIGURATION, text, hints(&failure.explanation(), texts::HINT_CONFIGURATION))
}

/// The hints of an explanation, without the quoted line, or else the usual one.
fn hints(explanation: &str, usual: &str) -> String {
    let hints = explanation.lines().filter_map(|line| line.trim().strip_prefix(texts::HINT));
    let found: Vec<_> = hints.map(str::trim).collect();
    if found.is_empty() { usual.to_owned() } else { found.join("; ") }
}

fn settings(file: &Path, patience: &Patience, findings: &mut Vec<Finding>) -> Settings {
    let asked = file.to_owned();
    let (text, hint) = match patience.try_ask(move || read_settings(&asked)) {
        Ok(Some(text)) => match Settings::parse(file, &text) {
            Ok(settings) => {
                let removed = settings.removed().map(|text| Finding::warning(texts::SETTINGS, text, ""));
                findings.extend(removed);
                return settings;
            }
            Err(error) => (error.to_string().trim_end().to_owned(), texts::HINT_SETTINGS),
        },
        Ok(None) => return Settings::default(),
        Err(error) => (texts::unreadable(file, &io_error_text(&error)), texts::hint(&error, texts::HINT_SETTINGS)),
    };
    findings.push(Finding::fault(texts::SETTINGS, text, hint));
    Settings::default()
}

/// The host's files; which of them were asked for is noted.
struct Noting<'p> {
    patience: &'p Patience,
    files: Vec<PathBuf>,
}

impl Source for Noting<'_> {
    fn read_file(&mut self, name: &[u8]) -> Result<Vec<u8>, String> {
        let path = PathBuf::from(OsString::from_vec(name.to_vec()));
        let asked = path.clone();
        let answer = self.patience.ask(move || {
            let content = Host.read_file(asked.as_os_str().as_bytes())?;
            Ok((content, asked.is_dir()))
        });
        let (content, is_directory) = answer.unwrap_or_else(|error| Err(error.to_string()))?;
        if !self.files.contains(&path) && !is_directory {
            self.files.push(path);
        }
        Ok(content)
    }

    fn run_program(&mut self, argv: &[Vec<u8>]) -> Vec<u8> {
        Host.run_program(argv)
    }

    fn run_shell(&mut self, argv: &[Vec<u8>]) -> Option<Vec<u8>> {
        Host.run_shell(argv)
    }

    fn shell(&mut self) -> Option<Vec<u8>> {
        Host.shell()
    }

    fn resolve_host(&mut self, host: &[u8], family: AddressFamily) -> Result<IpAddr, String> {
        Host.resolve_host(host, family)
    }

    fn service_port(&mut self, name: &[u8]) -> Option<u16> {
        Host.service_port(name)
    }
}
