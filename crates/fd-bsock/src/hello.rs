//! The texts of greeting and authentication, read and written (reference 01 §7, §9, §10, §12).
//!
//! Which text comes when is not decided here, nor what the number `tlspsk` means: the conversations
//! do that.

use crate::scan::{Lenient, Strict, WORD_MAX, bash_spaces, unbash_spaces};

/// Our version in the hellos, for Director and Storage Daemon alike.
const FD_VERSION: i32 = 15;
/// The version of the console protocol that we say to a Director.
const CONSOLE_VERSION: i32 = 1;

/// Answer to `Ping`.
pub const PING_OK: &[u8] = b"2000 Ping OK\n";
/// The File Daemon accepts the Director.
pub const DIRECTOR_ACCEPTED: &[u8] = b"2000 OK Hello 15\n";
/// The File Daemon does not.
pub const DIRECTOR_REFUSED: &[u8] = b"2999 Authentication failed.\n";
/// The answer to a challenge was right.
pub const AUTH_OK: &[u8] = b"1000 OK auth\n";
/// The answer to a challenge was wrong, or the challenge was none.
pub const AUTH_FAILED: &[u8] = b"1999 Authorization failed.\n";
/// Second line of a Director that accepts a connection from a File Daemon.
pub const REGISTERED: &[u8] = b"OK\n";

/// Longest name in a hello, in bytes.
const NAME_MAX: usize = 127;
/// Lengths in bytes that a first packet, and any hello, must have; but for `Ping`.
pub const FIRST_PACKET: std::ops::RangeInclusive<usize> = 25..=500;

/// What the first packet on an accepted connection is (reference 01 §6.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstPacket {
    /// A probe, to be answered by [`PING_OK`].
    Ping,
    /// A Storage Daemon calls: see [`StorageCall`].
    StorageCall,
    /// A Director, or a peer that says so: see [`DirectorHello`].
    Director,
    /// Neither; the connection is to be closed.
    Bad,
}

impl FirstPacket {
    /// Looks at the first bytes only; the strict check follows.
    pub fn of(payload: &[u8]) -> Self {
        if payload.starts_with(b"Ping") {
            Self::Ping
        } else if !FIRST_PACKET.contains(&payload.len()) {
            Self::Bad
        } else if payload.starts_with(b"Hello FD: Bacula Sto") {
            Self::StorageCall
        } else if payload.starts_with(b"Hello") {
            Self::Director
        } else {
            Self::Bad
        }
    }
}

/// `Hello Director <name> calling <version> tlspsk=<n>`, and its older forms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectorHello {
    /// Name of the Director resource, with its blanks.
    pub name: Vec<u8>,
    /// Its protocol number: 10002 is 15.0.3, 103 is 9.6.7; 0 where it says nothing.
    pub version: i32,
    /// What encryption it needs; 0 where it says nothing.
    pub tlspsk: i32,
}

impl DirectorHello {
    /// Whether it knows the message type `Events`. Without it, it counts all later types from one
    /// less (reference 01 §7).
    pub const fn knows_events(&self) -> bool {
        self.version >= 10_000
    }

    /// Reads any of the five forms (reference 01 §7).
    pub fn parse(line: &[u8]) -> Option<Self> {
        fn form(line: &[u8], head: &str, fields: u8) -> Option<DirectorHello> {
            let mut scan = Strict::new(line);
            let name = unbash_spaces(scan.text(head)?.word(NAME_MAX)?);
            scan.text(" calling")?;
            let version = if fields > 1 { scan.text(" ")?.i32()? } else { 0 };
            let tlspsk = if fields > 2 { scan.text(" tlspsk=")?.i32()? } else { 0 };
            Some(DirectorHello { name, version, tlspsk })
        }
        form(line, "Hello Director ", 3)
            .or_else(|| form(line, "Hello Director ", 2))
            .or_else(|| form(line, "Hello Director ", 1))
            .or_else(|| form(line, "Hello ", 3))
            .or_else(|| form(line, "Hello ", 2))
    }
}

/// `Hello FD: Bacula Storage calling Start Job <job> <version>`: the Storage Daemon calls
/// (reference 01 §13).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageCall {
    /// Full job name as received: 0x01 is not turned back, for that is how it is compared.
    pub job: Vec<u8>,
}

impl StorageCall {
    /// Reads the line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(line);
        let job = scan.text("Hello FD: Bacula Storage calling Start Job ")?.word(NAME_MAX).to_vec();
        scan.text(" ")?;
        Some(Self { job })
    }
}

/// `Hello Bacula SD: Start Job <job> <version> tlspsk=<n>`, from the File Daemon to the Storage
/// Daemon.
pub fn start_job(job: &[u8], tlspsk: i32) -> Vec<u8> {
    line("Hello Bacula SD: Start Job ", job, " ", FD_VERSION, tlspsk)
}

/// `Hello <name> fdcallsdir <version> tlspsk=<n>`: the File Daemon offers its connection to a
/// Director (reference 01 §14).
pub fn registration(name: &[u8], tlspsk: i32) -> Vec<u8> {
    line("Hello ", name, " fdcallsdir ", CONSOLE_VERSION, tlspsk)
}

/// `Hello <name> calling <version> tlspsk=<n>`: the File Daemon as a console of the Director
/// (command `proxy`).
pub fn console(name: &[u8], tlspsk: i32) -> Vec<u8> {
    line("Hello ", name, " calling ", CONSOLE_VERSION, tlspsk)
}

/// `<head><name><verb><version> tlspsk=<n>`.
fn line(head: &str, name: &[u8], verb: &str, version: i32, tlspsk: i32) -> Vec<u8> {
    let tail = format!("{verb}{version} tlspsk={tlspsk}\n");
    [head.as_bytes(), &bash_spaces(name), tail.as_bytes()].concat()
}

/// `starttls tlspsk=<n>`: TLS comes next, and the sender of this line is its server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartTls {
    /// What encryption the sender needs.
    pub tlspsk: i32,
}

impl StartTls {
    /// Reads the line; `None` means that the packet is something else, such as a challenge.
    pub fn parse(line: &[u8]) -> Option<Self> {
        Some(Self { tlspsk: Strict::new(line).text("starttls tlspsk=")?.i32()? })
    }

    /// Writes the line.
    pub fn encode(self) -> Vec<u8> {
        format!("starttls tlspsk={}\n", self.tlspsk).into_bytes()
    }
}

/// `auth cram-md5 <challenge> ssl=<n>` (reference 01 §9.2, §9.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Challenge {
    /// The text to answer, with its angle brackets.
    pub text: Vec<u8>,
    /// The challenger asks for the compatible encoding (`cram-md5c`).
    pub compatible: bool,
    /// The challenger's need of certificate TLS, 0 to 2; `None` where an old peer does not say.
    pub ssl: Option<i32>,
}

impl Challenge {
    /// Reads any of the three forms.
    pub fn parse(line: &[u8]) -> Option<Self> {
        fn form(line: &[u8], head: &str, with_ssl: bool) -> Option<(Vec<u8>, Option<i32>)> {
            let mut scan = Lenient::new(line);
            let text = scan.text(head)?.word(WORD_MAX).to_vec();
            let ssl = if with_ssl { Some(scan.text(" ssl=")?.i32()) } else { None };
            Some((text, ssl))
        }
        let found = |compatible| move |(text, ssl)| Self { text, compatible, ssl };
        form(line, "auth cram-md5c ", true)
            .map(found(true))
            .or_else(|| form(line, "auth cram-md5 ", true).map(found(false)))
            .or_else(|| form(line, "auth cram-md5 ", false).map(found(false)))
    }

    /// Writes the line.
    pub fn encode(&self) -> Vec<u8> {
        let mut line: Vec<u8> = if self.compatible { b"auth cram-md5c ".to_vec() } else { b"auth cram-md5 ".to_vec() };
        line.extend_from_slice(&self.text);
        if let Some(ssl) = self.ssl {
            line.extend_from_slice(format!(" ssl={ssl}").as_bytes());
        }
        line.push(b'\n');
        line
    }
}

/// The largest and the smallest block of deduplication in the Storage Daemon's capability line,
/// bytes; all five numbers are required (reference 01 §7). Only plugins are told.
pub fn dedup_block_sizes(line: &[u8]) -> Option<(u64, u64)> {
    let mut scan = Lenient::new(line);
    for head in ["sdcaps: dedup=", " hash="] {
        scan.text(head).map(Lenient::i64)?;
    }
    scan.text(" dedup_block=").map(Lenient::u64)?;
    let smallest = scan.text(" min_dedup_block=").map(Lenient::u64)?;
    Some((scan.text(" max_dedup_block=").map(Lenient::u64)?, smallest))
}

/// The File Daemon's capabilities: no deduplication; `proxy` if the Director resource has
/// `Remote = yes`.
pub fn file_daemon_capabilities(proxy: bool) -> Vec<u8> {
    format!("fdcaps: dedup=0 rehydration=0 proxy={}\n", u8::from(proxy)).into_bytes()
}

/// Version in `3000 OK Hello <version>`. Any other text counts as version 0: it is an acceptance
/// too (reference 01 §12).
pub fn storage_accepted(line: &[u8]) -> i32 {
    let mut scan = Lenient::new(line);
    scan.text("3000 OK Hello ").map_or(0, Lenient::i32)
}

/// Whether this is `1000 OK: <version> <director> Version: ...`, the Director's answer to a
/// registration or a console.
pub fn is_director_acceptance(line: &[u8]) -> bool {
    line.starts_with(b"1000 OK:")
}

#[cfg(test)]
mod tests;
