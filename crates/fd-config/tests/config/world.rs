//! A small world for the parser: files in memory, a few programs, the shell of this host, two
//! hosts, three services.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use fd_config::{AddressFamily, DirectoryState, KeyProblem, Source, Surroundings, Tls};

/// Where the corpus was recorded.
pub(crate) const DIRECTORY: &str = "/tmp/conf-corpus";

#[derive(Default, Debug)]
pub(crate) struct World {
    pub(crate) files: HashMap<Vec<u8>, Vec<u8>>,
    /// What the program `once` prints for an argument, the first time.
    pub(crate) once: HashMap<Vec<u8>, Vec<u8>>,
}

impl Source for World {
    fn read_file(&mut self, name: &[u8]) -> Result<Vec<u8>, String> {
        self.files.get(name).cloned().ok_or_else(|| "No such file or directory".to_owned())
    }

    /// `cat`, `echo` and `once`; everything else prints nothing.
    fn run_program(&mut self, argv: &[Vec<u8>]) -> Vec<u8> {
        match argv {
            [name, file] if name == b"cat" => self.files.get(file).cloned().unwrap_or_default(),
            [name, file] if name == b"once" => self.once.remove(file).unwrap_or_default(),
            [name, words @ ..] if name == b"echo" => [words.join(&b' '), b"\n".to_vec()].concat(),
            _ => Vec::new(),
        }
    }

    fn run_shell(&mut self, argv: &[Vec<u8>]) -> Option<Vec<u8>> {
        let output = Command::new(OsStr::from_bytes(&argv[0]))
            .args(argv[1..].iter().map(|argument| OsStr::from_bytes(argument)))
            .env_clear()
            .env("HOME", "/root")
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        output.status.success().then_some(output.stdout)
    }

    fn shell(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn resolve_host(&mut self, host: &[u8], family: AddressFamily) -> Result<IpAddr, String> {
        match (host, family) {
            (b"localhost", AddressFamily::V4) => Ok(Ipv4Addr::LOCALHOST.into()),
            (b"localhost", AddressFamily::V6) => Ok(Ipv6Addr::LOCALHOST.into()),
            _ => Err("Name or service not known".to_owned()),
        }
    }

    fn service_port(&mut self, name: &[u8]) -> Option<u16> {
        match name {
            b"http" => Some(80),
            b"bacula-fd" => Some(9102),
            _ => None,
        }
    }
}

impl Surroundings for World {
    fn tls_context(&mut self, _tls: &Tls) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn certificate(&mut self, _file: &Path) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn private_key(&mut self, _file: &Path) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn mentions_private_key(&mut self, _file: &Path) -> bool {
        false
    }

    fn directory(&mut self, path: &Path) -> DirectoryState {
        let text = path.to_string_lossy();
        let known = [DIRECTORY.to_owned() + "/work", DIRECTORY.to_owned() + "/run", "/tmp".to_owned()];
        if known.iter().any(|directory| *directory == text) {
            DirectoryState::Directory
        } else if text == "/etc/passwd" {
            DirectoryState::NotADirectory
        } else {
            DirectoryState::Missing
        }
    }

    /// The daemon has more questions.
    fn disabled_by(&mut self, item: &[u8]) -> Vec<&'static str> {
        let begins =
            |name: &&str| name.as_bytes().get(..item.len()).is_some_and(|head| head.eq_ignore_ascii_case(item));
        ["backup", "cancel", "restore ", "RunBeforeNow", "RunAfterJob", "sm_dump"]
            .into_iter()
            .find(begins)
            .into_iter()
            .collect()
    }
}
