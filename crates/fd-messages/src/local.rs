//! Messages that stay on this host: standard output, files, the system's log.
//!
//! Not here: the Director, who gets his messages from the session that serves him.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixDatagram;

use fd_config::{Destination, DestinationKind, Messages};

use crate::{MessageType, texts};

/// The local destinations of the daemon's Messages resource, with the files that are open.
#[derive(Debug)]
pub struct LocalDestinations {
    messages: Messages,
    open: HashMap<Vec<u8>, File>,
}

impl LocalDestinations {
    /// For this resource; nothing is opened yet.
    pub fn new(messages: Messages) -> Self {
        Self { messages, open: HashMap::new() }
    }

    /// Writes a line of this type number to every local destination that takes it. `time` in seconds since 1970.
    pub fn deliver(&mut self, type_number: u8, time: i64, line: &[u8]) {
        let takers: Vec<Destination> = self.messages.destinations_of(type_number).cloned().collect();
        for destination in takers {
            let dated = [texts::date_prefix(time).as_bytes(), line].concat();
            let delivered = match destination.kind {
                DestinationKind::Stdout => write_all(&mut io::stdout().lock(), &dated),
                DestinationKind::Stderr => write_all(&mut io::stderr().lock(), &dated),
                DestinationKind::Syslog => syslog(type_number, line),
                DestinationKind::Append | DestinationKind::File => self.append(&destination, &dated),
                _ => Ok(()),
            };
            if let Err(error) = delivered {
                let path = String::from_utf8_lossy(&destination.place).into_owned();
                let said = texts::delivery_error(time, &texts::open_failed(&path, &reason(&error)));
                // Nobody is left to tell if even this fails.
                let _undeliverable = write_all(&mut io::stdout().lock(), said.as_bytes());
                let _undeliverable = syslog(MessageType::Error.number(), said.as_bytes());
            }
        }
    }

    /// A session ended: files are closed; the next message opens them anew (log rotation, reference 06 §7.9).
    pub fn close(&mut self) {
        self.open.clear();
    }

    fn append(&mut self, destination: &Destination, dated: &[u8]) -> io::Result<()> {
        if let Some(file) = self.open.get_mut(&destination.place) {
            if file.write_all(dated).is_ok() {
                return Ok(());
            }
            self.open.remove(&destination.place);
        }
        let append = destination.kind == DestinationKind::Append;
        let mut options = OpenOptions::new();
        options.create(true).write(true).append(append).truncate(!append);
        let mut file = options.open(OsStr::from_bytes(&destination.place))?;
        file.write_all(dated)?;
        self.open.insert(destination.place.clone(), file);
        Ok(())
    }
}

fn write_all(out: &mut dyn Write, text: &[u8]) -> io::Result<()> {
    out.write_all(text)?;
    out.flush()
}

/// The C library's words without Rust's `(os error 2)`.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Facility daemon; priority by type; one datagram a line (reference 06 §7.5). A host without a log daemon is no error.
pub fn syslog(type_number: u8, text: &[u8]) -> io::Result<()> {
    const DAEMON: u8 = 3 << 3;
    let priority = match type_number {
        1 | 12 => 3,
        4 | 5 | 6 | 15 => 5,
        _ => 6,
    };
    let socket = UnixDatagram::unbound()?;
    if socket.connect("/dev/log").is_err() {
        return Ok(());
    }
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        for piece in line.chunks(1023) {
            let head = format!("<{}>bacula-fd: ", DAEMON | priority);
            socket.send(&[head.as_bytes(), piece].concat())?;
        }
    }
    Ok(())
}
