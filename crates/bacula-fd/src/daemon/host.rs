//! The configuration's questions to this host: files, programs, names, directories, keys.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt};
use std::path::Path;
use std::process::Stdio;

use fd_config::{AddressFamily, DirectoryState, KeyProblem, MAX_FILE, Source, Surroundings, Tls};
use fd_os::{io_error_text, resolver_text};
use fd_transport::ConnectError;

use crate::security::{certificates, own_file, pki_keys};

/// Bytes that are read: one more than a file may have, which shows that it is too large.
const MOST: u64 = MAX_FILE as u64 + 1;

/// The host that the daemon runs on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Host;

/// The text of the optional settings file; `None` if there is no such file.
///
/// # Errors
/// What the system says.
pub(crate) fn read_settings(path: &Path) -> io::Result<Option<String>> {
    let file = match fs::File::open(path) {
        Err(error) if own_file::is_missing(&error, path) => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text)?;
    // Without what is behind its end, it would say less than the administrator wants.
    if text.len() > MAX_FILE { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(Some(text)) }
}

impl Source for Host {
    fn read_file(&mut self, name: &[u8]) -> Result<Vec<u8>, String> {
        let path = Path::new(OsStr::from_bytes(name));
        let file = fs::File::open(path).map_err(|error| io_error_text(&error))?;
        let mut content = Vec::new();
        match file.take(MOST).read_to_end(&mut content) {
            Ok(_) => Ok(content),
            Err(_) if path.is_dir() => Ok(Vec::new()),
            Err(error) => Err(io_error_text(&error)),
        }
    }

    fn run_program(&mut self, argv: &[Vec<u8>]) -> Vec<u8> {
        output(argv).map(|(printed, _)| printed).unwrap_or_default()
    }

    fn run_shell(&mut self, argv: &[Vec<u8>]) -> Option<Vec<u8>> {
        output(argv).filter(|(_, good)| *good).map(|(printed, _)| printed)
    }

    fn shell(&mut self) -> Option<Vec<u8>> {
        std::env::var_os("SHELL").map(OsStringExt::into_vec)
    }

    fn resolve_host(&mut self, host: &[u8], family: AddressFamily) -> Result<IpAddr, String> {
        const NOT_KNOWN: &str = "Name or service not known";
        let name = std::str::from_utf8(host).map_err(|_| NOT_KNOWN.to_owned())?;
        let found = fd_transport::resolve(name, 0).map_err(|error| match error {
            ConnectError::Resolve { source, .. } => resolver_text(&source),
            other => other.to_string(),
        })?;
        let wanted = |address: &IpAddr| address.is_ipv4() == (family == AddressFamily::V4);
        found.into_iter().map(|address| address.ip()).find(wanted).ok_or_else(|| NOT_KNOWN.to_owned())
    }

    fn service_port(&mut self, name: &[u8]) -> Option<u16> {
        let services = fs::read("/etc/services").ok()?;
        let name = std::str::from_utf8(name).ok()?;
        String::from_utf8_lossy(&services).lines().find_map(|line| {
            let line = line.split('#').next()?;
            let mut fields = line.split_whitespace();
            let (official, place) = (fields.next()?, fields.next()?);
            let port = place.strip_suffix("/tcp")?;
            (official == name || fields.any(|alias| alias == name)).then(|| port.parse().ok())?
        })
    }
}

/// What a program printed, [`MOST`] bytes at most, and whether it succeeded.
fn output(argv: &[Vec<u8>]) -> Option<(Vec<u8>, bool)> {
    let (name, arguments) = argv.split_first()?;
    let mut child = fd_os::process::command(OsStr::from_bytes(name))
        .args(arguments.iter().map(|argument| OsStr::from_bytes(argument)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut printed = Vec::new();
    // A program that prints more gets a closed pipe.
    let read = child.stdout.take().map(|output| output.take(MOST).read_to_end(&mut printed));
    let status = child.wait().ok()?;
    read?.ok()?;
    Some((printed, status.success()))
}

impl Surroundings for Host {
    fn tls_context(&mut self, tls: &Tls) -> Result<(), KeyProblem> {
        match certificates::certificates(tls) {
            Ok(_) => Ok(()),
            Err(problem) => Err(KeyProblem { lines: problem.lines, hint: problem.hint.to_owned() }),
        }
    }

    fn certificate(&mut self, file: &Path) -> Result<(), KeyProblem> {
        pki_keys::certificate(file).map(|_| ())
    }

    fn private_key(&mut self, file: &Path) -> Result<(), KeyProblem> {
        pki_keys::private_key(file).map(|_| ())
    }

    fn mentions_private_key(&mut self, file: &Path) -> bool {
        pki_keys::holds_private_key(file)
    }

    fn directory(&mut self, path: &Path) -> DirectoryState {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => DirectoryState::Directory,
            Ok(_) => DirectoryState::NotADirectory,
            Err(_) => DirectoryState::Missing,
        }
    }

    fn disabled_by(&mut self, item: &[u8]) -> Vec<&'static str> {
        fd_session::command::disabled_by(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_reads_as_an_empty_file_and_a_missing_file_says_why() {
        assert_eq!(Host.read_file(b"/"), Ok(Vec::new()));
        assert_eq!(Host.read_file(b"/no/such/file"), Err("No such file or directory".to_owned()));
    }

    #[test]
    fn programs_print() {
        let argv = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        assert_eq!(Host.run_program(&argv(&["echo", "x"])), b"x\n");
        assert_eq!(Host.run_shell(&argv(&["sh", "-c", "echo x; exit 1"])), None);
        assert_eq!(Host.run_program(&argv(&["/no/such/program"])), b"");
        assert_eq!(Host.run_program(&argv(&["yes"])).len() as u64, MOST);
    }

    #[test]
    fn what_is_too_large_is_not_cut_to_what_is_allowed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().as_os_str().as_bytes();
        for (length, error) in [(MOST - 1, None), (MOST, Some(io::ErrorKind::FileTooLarge))] {
            file.as_file().set_len(length).unwrap();
            assert_eq!(read_settings(file.path()).err().map(|error| error.kind()), error);
            assert_eq!(Host.read_file(name).map(|content| content.len() as u64), Ok(length));
        }
    }

    #[test]
    fn the_own_host_has_an_address() {
        // A fresh host may have no /etc/hosts and so no localhost; numbers are always understood.
        let own = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(Host.resolve_host(b"127.0.0.1", AddressFamily::V4), Ok(own));
        match Host.resolve_host(b"localhost", AddressFamily::V4) {
            Ok(found) => assert_eq!(found, own),
            Err(_) => skip::part("localhost has no address here"),
        }
        let unknown = Host.resolve_host(b"no host has this name", AddressFamily::V4).unwrap_err();
        assert!(unknown.starts_with("Name or service") || unknown.starts_with("Temporary failure"), "{unknown}");
        assert!(Host.resolve_host(b"::1", AddressFamily::V4).is_err());
    }
}
