//! The log of what is done, for `debug` above 0. It goes to a file only: standard output is the
//! answer.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use fd_os::local_time::local_time;
use nix::fcntl::OFlag;

use crate::request::Request;
use crate::settings::Settings;

/// An open log, or none.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    file: Option<File>,
    level: u32,
}

impl Trace {
    /// Opens the log, if one is wanted. One that can't be opened is no reason to make no snapshot.
    pub(crate) fn open(settings: &Settings) -> Self {
        let path = settings.trace.as_ref().filter(|_| settings.debug > 0);
        let file = path.and_then(|path| {
            let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
            OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path).ok()
        });
        Self { file, level: settings.debug }
    }

    /// Writes a line, if so much is wanted.
    pub(crate) fn line(&self, level: u32, text: &[u8]) {
        let Some(mut file) = self.file.as_ref().filter(|_| level <= self.level) else { return };
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let at = local_time(i64::try_from(seconds).unwrap_or(i64::MAX));
        let (year, month, day, hour, minute, second) = (at.year, at.month, at.day, at.hour, at.minute, at.second);
        let head = format!(
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} bsnapshot[{}]: ",
            std::process::id()
        );
        let _ = file.write_all(&[head.as_bytes(), text.trim_ascii_end(), b"\n"].concat());
    }

    /// What the daemon wants.
    pub(crate) fn request(&self, request: &Request) {
        self.line(1, format!("{request:?}").as_bytes());
    }

    /// A program that is run.
    pub(crate) fn program(&self, words: &[&OsStr]) {
        let words: Vec<String> =
            words.iter().map(|word| format!("{:?}", String::from_utf8_lossy(word.as_bytes()))).collect();
        self.line(1, format!("run {}", words.join(" ")).as_bytes());
    }
}
