#![no_main]
//! `bacula-fd.conf` (and `bacula-fd.toml`): any file parses to a configuration or to an error that
//! can say itself, with includes, programs and host names answered in memory.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use fd_config::{AddressFamily, JsonOptions, LoadError, Settings, Source, Unchecked, load, parse, parse_for_json};
use libfuzzer_sys::fuzz_target;

/// Knows the file itself, one small include, and a program that prints a line.
struct Memory<'a> {
    file: &'a [u8],
    asked: usize,
}

impl Source for Memory<'_> {
    fn read_file(&mut self, name: &[u8]) -> Result<Vec<u8>, String> {
        self.asked += 1;
        match name {
            // A file that includes itself comes to an end somewhere, outside as here.
            _ if self.asked > 30 => Err("Too many open files".to_owned()),
            b"bacula-fd.conf" => Ok(self.file.to_vec()),
            b"part" => Ok(b"Name = part\n".to_vec()),
            _ => Err("No such file or directory".to_owned()),
        }
    }

    fn run_program(&mut self, argv: &[Vec<u8>]) -> Vec<u8> {
        assert!(!argv.is_empty());
        b"Name = printed\n".to_vec()
    }

    fn run_shell(&mut self, _: &[Vec<u8>]) -> Option<Vec<u8>> {
        Some(b"/expanded\n".to_vec())
    }

    fn shell(&mut self) -> Option<Vec<u8>> {
        Some(b"/bin/sh".to_vec())
    }

    fn resolve_host(&mut self, host: &[u8], _: AddressFamily) -> Result<IpAddr, String> {
        if host == b"localhost" { Ok(Ipv4Addr::LOCALHOST.into()) } else { Err("Name or service not known".to_owned()) }
    }

    fn service_port(&mut self, name: &[u8]) -> Option<u16> {
        (name == b"bacula-fd").then_some(9102)
    }
}

fuzz_target!(|file: &[u8]| {
    if let Ok(text) = std::str::from_utf8(file) {
        let _ = Settings::parse(Path::new("bacula-fd.toml"), text);
    }
    if let Ok(document) = parse_for_json(b"bacula-fd.conf", &mut Memory { file, asked: 0 }) {
        let all = JsonOptions::default();
        assert!(document.to_json(&all).ends_with(b"\n"));
    }
    match load(b"bacula-fd.conf", &mut Memory { file, asked: 0 }, &mut Unchecked(|_| vec![""])) {
        Ok(config) => drop(format!("{config:?}")),
        Err(error) => {
            let messages = error.messages();
            assert!(!messages.is_empty(), "fails without a word");
            drop((error.to_string(), error.explanation()));
            if let LoadError::Syntax(error) = &error {
                assert!(parse(b"bacula-fd.conf", &mut Memory { file, asked: 0 }).is_err(), "{error}");
            }
        }
    }
});
