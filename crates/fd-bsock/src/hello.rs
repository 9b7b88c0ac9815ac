//! The texts of greeting and authentication, as types that write and read themselves (reference 01 §7, §9, §10, §12).
//!
//! Which text comes when is not decided here. The number `tlspsk` stays a number: what it means is the business of the
//! conversations.

use crate::scan::{Lenient, Strict, WORD_MAX, bash_spaces, unbash_spaces};

/// Our version in the hellos, for Director and Storage Daemon alike.
pub const FD_VERSION: i32 = 15;
/// The version that a 15.0.3 Director says.
pub const DIR_VERSION: i32 = 10002;
/// The version that a 15.0.3 Storage Daemon says.
pub const SD_VERSION: i32 = 30008;
/// The version of the console protocol that we say to a Director.
pub const CONSOLE_VERSION: i32 = 1;

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
    /// A Director, or somebody who says so: see [`DirectorHello`].
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
    /// Version of the Director, 0 where it says none.
    pub version: i32,
    /// What encryption it needs; 0 where it says nothing.
    pub tlspsk: i32,
}

impl DirectorHello {
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

    /// The form that a 15.0.3 Director sends.
    pub fn encode(&self) -> Vec<u8> {
        line("Hello Director ", &self.name, " calling ", self.version, self.tlspsk)
    }
}

/// `Hello Bacula SD: Start Job <job> <version> tlspsk=<n>`, from the File Daemon to the Storage Daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartJobHello {
    /// Full job name.
    pub job: Vec<u8>,
    /// Version of the File Daemon.
    pub version: i32,
    /// What encryption it needs.
    pub tlspsk: i32,
}

impl StartJobHello {
    /// Reads the line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut scan = Strict::new(line);
        let job = unbash_spaces(scan.text("Hello Bacula SD: Start Job ")?.word(NAME_MAX)?);
        let version = scan.text(" ")?.i32()?;
        let tlspsk = scan.text(" tlspsk=")?.i32()?;
        Some(Self { job, version, tlspsk })
    }

    /// Writes the line.
    pub fn encode(&self) -> Vec<u8> {
        line("Hello Bacula SD: Start Job ", &self.job, " ", self.version, self.tlspsk)
    }
}

/// `Hello FD: Bacula Storage calling Start Job <job> <version>`: the Storage Daemon calls (reference 01 §13).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageCall {
    /// Full job name as received: 0x01 is not turned back, for that is how it is compared.
    pub job: Vec<u8>,
    /// Version of the Storage Daemon.
    pub version: i32,
}

impl StorageCall {
    /// Reads the line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(line);
        let job = scan.text("Hello FD: Bacula Storage calling Start Job ")?.word(NAME_MAX).to_vec();
        let version = scan.text(" ")?.i32();
        Some(Self { job, version })
    }

    /// Writes the line.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = b"Hello FD: Bacula Storage calling Start Job ".to_vec();
        text.extend_from_slice(&bash_spaces(&self.job));
        text.extend_from_slice(format!(" {}\n", self.version).as_bytes());
        text
    }
}

/// `Hello <name> fdcallsdir <version> tlspsk=<n>`: the File Daemon offers its connection to a Director (reference 01
/// §14).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegistrationHello {
    /// Name of the File Daemon.
    pub name: Vec<u8>,
    /// Version of the console protocol.
    pub version: i32,
    /// What encryption the File Daemon needs.
    pub tlspsk: i32,
}

impl RegistrationHello {
    /// Reads the line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let (name, version, tlspsk) = parse_named(line, " fdcallsdir ")?;
        Some(Self { name, version, tlspsk })
    }

    /// Writes the line.
    pub fn encode(&self) -> Vec<u8> {
        line("Hello ", &self.name, " fdcallsdir ", self.version, self.tlspsk)
    }
}

/// `Hello <name> calling <version> tlspsk=<n>`: the File Daemon as a console of the Director (command `proxy`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConsoleHello {
    /// Name of the console or Director resource.
    pub name: Vec<u8>,
    /// Version of the console protocol.
    pub version: i32,
    /// What encryption the File Daemon needs.
    pub tlspsk: i32,
}

impl ConsoleHello {
    /// Reads the line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let (name, version, tlspsk) = parse_named(line, " calling ")?;
        Some(Self { name, version, tlspsk })
    }

    /// Writes the line.
    pub fn encode(&self) -> Vec<u8> {
        line("Hello ", &self.name, " calling ", self.version, self.tlspsk)
    }
}

/// `Hello <name><verb><version> tlspsk=<n>`.
fn parse_named(line: &[u8], verb: &str) -> Option<(Vec<u8>, i32, i32)> {
    let mut scan = Strict::new(line);
    let name = unbash_spaces(scan.text("Hello ")?.word(NAME_MAX)?);
    let version = scan.text(verb)?.i32()?;
    let tlspsk = scan.text(" tlspsk=")?.i32()?;
    Some((name, version, tlspsk))
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
    /// The challenger wants the compatible encoding (`cram-md5c`).
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

/// The Storage Daemon's capabilities; all five numbers are required, none is used (reference 01 §7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StorageCaps {
    /// Deduplication is possible.
    pub dedup: i64,
    /// Kind of hash.
    pub hash: i64,
    /// Block size in bytes.
    pub dedup_block: u64,
    /// Smallest block in bytes.
    pub min_dedup_block: u64,
    /// Largest block in bytes.
    pub max_dedup_block: u64,
}

impl StorageCaps {
    /// Reads the line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(line);
        Some(Self {
            dedup: scan.text("sdcaps: dedup=")?.i64(),
            hash: scan.text(" hash=")?.i64(),
            dedup_block: scan.text(" dedup_block=")?.u64(),
            min_dedup_block: scan.text(" min_dedup_block=")?.u64(),
            max_dedup_block: scan.text(" max_dedup_block=")?.u64(),
        })
    }

    /// Writes the line.
    pub fn encode(self) -> Vec<u8> {
        let Self { dedup, hash, dedup_block, min_dedup_block, max_dedup_block } = self;
        format!(
            "sdcaps: dedup={dedup} hash={hash} dedup_block={dedup_block} min_dedup_block={min_dedup_block} \
             max_dedup_block={max_dedup_block}\n"
        )
        .into_bytes()
    }
}

/// The File Daemon's capabilities: no deduplication, perhaps `proxy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileDaemonCaps {
    /// The Director resource has `Remote = yes`.
    pub proxy: bool,
}

impl FileDaemonCaps {
    /// Reads the line; where `proxy` is missing it counts as no.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(line);
        scan.text("fdcaps: dedup=")?.i64();
        scan.text(" rehydration=")?.i64();
        let proxy = scan.text(" proxy=").is_some_and(|scan| scan.i64() != 0);
        Some(Self { proxy })
    }

    /// Writes the line.
    pub fn encode(self) -> Vec<u8> {
        format!("fdcaps: dedup=0 rehydration=0 proxy={}\n", u8::from(self.proxy)).into_bytes()
    }
}

/// Version in `3000 OK Hello <version>`. Any other text counts as version 0, for the Storage Daemon is not asked to be
/// right here (reference 01 §12).
pub fn storage_accepted(line: &[u8]) -> i32 {
    let mut scan = Lenient::new(line);
    scan.text("3000 OK Hello ").map_or(0, Lenient::i32)
}

/// `3000 OK Hello <version>`.
pub fn encode_storage_accepted(version: i32) -> Vec<u8> {
    format!("3000 OK Hello {version}\n").into_bytes()
}

/// Version in `1000 OK: <version> <director> Version: ...`, the Director's answer to a registration or a console; 0
/// where it says none, `None` if the line is no acceptance.
pub fn director_accepted(line: &[u8]) -> Option<i32> {
    let rest = line.strip_prefix(b"1000 OK:")?;
    Some(Lenient::new(rest).text(" ").map_or(0, Lenient::i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_five_hellos_of_a_director() {
        let hello = |name: &[u8], version, tlspsk| Some(DirectorHello { name: name.to_vec(), version, tlspsk });
        for (line, expected) in [
            (&b"Hello Director w-dir calling 10002 tlspsk=100\n"[..], hello(b"w-dir", 10002, 100)),
            (b"Hello Director w-dir calling 10002\n", hello(b"w-dir", 10002, 0)),
            (b"Hello Director w-dir calling\n", hello(b"w-dir", 0, 0)),
            (b"Hello w-dir calling 10002 tlspsk=2\n", hello(b"w-dir", 10002, 2)),
            (b"Hello w-dir calling 10002\n", hello(b"w-dir", 10002, 0)),
            (b"Hello Director my\x01dir calling 10002 tlspsk=0\n", hello(b"my dir", 10002, 0)),
            (b"Hello w-dir calling\n", None),
            (b"Hello Director w-dir callxing 10002 tlspsk=0\n", None),
        ] {
            assert_eq!(DirectorHello::parse(line), expected, "{}", line.escape_ascii());
        }
        let long = [b"Hello Director ", &[b'n'; 128][..], b" calling 10002 tlspsk=0\n"].concat();
        assert_eq!(DirectorHello::parse(&long), None);
        assert_eq!(hello(b"w-dir", 10002, 100).unwrap().encode(), b"Hello Director w-dir calling 10002 tlspsk=100\n");
    }

    #[test]
    fn first_packets() {
        assert_eq!(FirstPacket::of(b"Ping"), FirstPacket::Ping);
        assert_eq!(FirstPacket::of(b"Hello w-dir calling 1234"), FirstPacket::Bad);
        assert_eq!(FirstPacket::of(b"Hello w-dir calling 12345"), FirstPacket::Director);
        assert_eq!(FirstPacket::of(b"Hello FD: Bacula Storage calling Start Job x 1\n"), FirstPacket::StorageCall);
        assert_eq!(FirstPacket::of(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), FirstPacket::Bad);
        let mut long = b"Hello ".to_vec();
        long.resize(500, b'x');
        assert_eq!(FirstPacket::of(&long), FirstPacket::Director);
        long.push(b'x');
        assert_eq!(FirstPacket::of(&long), FirstPacket::Bad);
        assert_eq!(FirstPacket::of(b""), FirstPacket::Bad);
    }

    #[test]
    fn hellos_of_reference_chapter_21_survive_reading_and_writing() {
        let start = b"Hello Bacula SD: Start Job b1.2026-11-21_02.56.53_03 15 tlspsk=0\n";
        let hello = StartJobHello::parse(start).unwrap();
        assert_eq!(hello.job, b"b1.2026-11-21_02.56.53_03");
        assert_eq!((hello.version, hello.tlspsk), (FD_VERSION, 0));
        assert_eq!(hello.encode(), start);

        let call = b"Hello FD: Bacula Storage calling Start Job b1.2026-11-21_02.30.16_03 30008\n";
        assert_eq!(StorageCall::parse(call).unwrap().version, SD_VERSION);
        assert_eq!(StorageCall::parse(call).unwrap().encode(), call);

        let registration = b"Hello w-fd fdcallsdir 1 tlspsk=100\n";
        assert_eq!(RegistrationHello::parse(registration).unwrap().encode(), registration);
        assert_eq!(ConsoleHello::parse(registration), None);

        let console = b"Hello my\x01console calling 1 tlspsk=100\n";
        assert_eq!(ConsoleHello::parse(console).unwrap().name, b"my console");
        assert_eq!(ConsoleHello::parse(console).unwrap().encode(), console);
    }

    #[test]
    fn starttls_and_challenges() {
        assert_eq!(StartTls::parse(b"starttls tlspsk=100\n"), Some(StartTls { tlspsk: 100 }));
        assert_eq!(StartTls { tlspsk: 100 }.encode(), b"starttls tlspsk=100\n");
        let line = b"auth cram-md5 <1796554246.1795229815@w-fd> ssl=0\n";
        assert_eq!(StartTls::parse(line), None);
        let text = b"<1796554246.1795229815@w-fd>".to_vec();
        let challenge = Challenge { text: text.clone(), compatible: false, ssl: Some(0) };
        assert_eq!(Challenge::parse(line), Some(challenge.clone()));
        assert_eq!(challenge.encode(), line);
        assert_eq!(
            Challenge::parse(b"auth cram-md5c <1796554246.1795229815@w-fd> ssl=2\n"),
            Some(Challenge { text: text.clone(), compatible: true, ssl: Some(2) })
        );
        assert_eq!(
            Challenge::parse(b"auth cram-md5 <1796554246.1795229815@w-fd>\n"),
            Some(Challenge { text, compatible: false, ssl: None })
        );
        assert_eq!(Challenge::parse(b"1000 OK auth\n"), None);
    }

    #[test]
    fn capabilities() {
        let line = b"sdcaps: dedup=0 hash=1 dedup_block=65536 min_dedup_block=1024 max_dedup_block=66556\n";
        let caps = StorageCaps::parse(line).unwrap();
        assert_eq!((caps.hash, caps.max_dedup_block), (1, 66_556));
        assert_eq!(caps.encode(), line);
        assert_eq!(StorageCaps::parse(b"sdcaps: dedup=0 hash=1 dedup_block=65536\n"), None);
        let line = b"fdcaps: dedup=0 rehydration=0 proxy=1\n";
        assert_eq!(FileDaemonCaps::parse(line), Some(FileDaemonCaps { proxy: true }));
        assert_eq!(FileDaemonCaps { proxy: true }.encode(), line);
        assert_eq!(FileDaemonCaps::parse(b"fdcaps: dedup=0 rehydration=0\n"), Some(FileDaemonCaps { proxy: false }));
    }

    #[test]
    fn acceptance_by_storage_daemon_and_director() {
        assert_eq!(storage_accepted(b"3000 OK Hello 30008\n"), 30008);
        assert_eq!(storage_accepted(b"3999 No go\n"), 0);
        assert_eq!(encode_storage_accepted(30008), b"3000 OK Hello 30008\n");
        assert_eq!(director_accepted(b"1000 OK: 10002 w-dir Version: 15.0.3 (25 March 2025)\n"), Some(10002));
        assert_eq!(director_accepted(b"1999 You are not authorized.\n"), None);
    }
}
