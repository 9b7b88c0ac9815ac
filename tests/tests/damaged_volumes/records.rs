//! Records as a Storage Daemon sends them (reference 05 §2.2, 04), written by hand, and how they
//! are damaged.

use std::io::Write as _;

use bed::LStat;
use bed::peer::packet;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use md5::{Digest as _, Md5};

/// What the undamaged files hold.
pub(crate) const CONTENT: &[u8] = b"hello world\n";
/// When all of them were changed.
pub(crate) const MTIME: i64 = 1_000_000_000;

/// A record: its stream and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) stream: u32,
    pub(crate) data: Vec<u8>,
}

pub(crate) fn record(stream: u32, data: impl Into<Vec<u8>>) -> Record {
    Record { stream, data: data.into() }
}

/// An attribute record.
pub(crate) fn attributes(file_type: u32, name: &str, mode: i64, link: &str, data_stream: i64) -> Record {
    let size = if mode & 0o170_000 == 0o100_000 { CONTENT.len() } else { 0 };
    attributes_of_size(file_type, name, mode, link, data_stream, size)
}

fn attributes_of_size(file_type: u32, name: &str, mode: i64, link: &str, data_stream: i64, size: usize) -> Record {
    let size = i64::try_from(size).unwrap();
    let stat = LStat::text(&[1, 2, mode, 1, 0, 0, 0, size, 4096, 8, MTIME, MTIME, MTIME, 0, 0, data_stream]);
    record(1, format!("1 {file_type} {name}\0{stat}\0{link}\0\0000\0"))
}

fn file(name: &str, data_stream: i64) -> Record {
    attributes(3, name, 0o100_640, "", data_stream)
}

/// The records of one undamaged file.
pub(crate) fn whole_file(name: &str) -> Vec<Record> {
    file_with(name, CONTENT)
}

/// The records of an undamaged file with this content.
pub(crate) fn file_with(name: &str, content: &[u8]) -> Vec<Record> {
    let attributes = attributes_of_size(3, name, 0o100_640, "", 2, content.len());
    vec![attributes, record(2, content), record(3, Md5::digest(content).to_vec())]
}

/// Records as bytes on the wire.
pub(crate) fn session_of(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        push(&mut bytes, record);
    }
    bytes
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// `hello world\n` as liblzo2 packs it, with its header (reference 05 §7.2).
fn lzo() -> Vec<u8> {
    let mut bytes = vec![0x4c, 0x5a, 0x4f, 0x58, 0, 0, 0, 0x10, 0, 0, 0, 1, 0x1d];
    bytes.extend_from_slice(CONTENT);
    bytes.extend_from_slice(&[0x11, 0, 0]);
    bytes
}

fn at_start(data: &[u8]) -> Vec<u8> {
    [&[0; 8][..], data].concat()
}

/// A part of a Windows stream with the file's data.
fn windows() -> Vec<u8> {
    let size = i64::try_from(CONTENT.len()).unwrap();
    [&1_i32.to_le_bytes()[..], &0_i32.to_le_bytes(), &size.to_le_bytes(), &0_i32.to_le_bytes(), CONTENT].concat()
}

/// One extended attribute (reference 05 §10).
fn attribute() -> Vec<u8> {
    [&0x005c_5884_u32.to_be_bytes()[..], &8_u32.to_be_bytes(), b"user.foo", &3_u32.to_be_bytes(), b"bar"].concat()
}

/// A kind of record that is damaged: the records of its file, and which one of them it is.
pub(crate) struct Victim {
    pub(crate) name: &'static str,
    pub(crate) records: Vec<Record>,
    pub(crate) at: usize,
    /// The damage of this record can't be found: nothing on the volume tells what it should be.
    pub(crate) has_no_check: bool,
}

/// All of them. The file is `/m/victim`.
pub(crate) fn victims() -> Vec<Victim> {
    const NAME: &str = "/m/victim";
    const ACL: &[u8] = b"user::rw-\nuser:1234:rw-\ngroup::r--\nmask::rw-\nother::r--\n\0";
    let digest = || record(3, Md5::digest(CONTENT).to_vec());
    let data = |name, stream: u32, bytes: Vec<u8>| Victim {
        name,
        records: vec![file(NAME, i64::from(stream)), record(stream, bytes), digest()],
        at: 1,
        has_no_check: false,
    };
    let plain = |name, records: Vec<Record>, at| Victim { name, records, at, has_no_check: true };
    let with = |name, extra: Record| plain(name, vec![file(NAME, 2), record(2, CONTENT), extra, digest()], 2);
    let mut windows_data = data("Windows data", 11, windows());
    // The digest is that of the whole stream.
    windows_data.records[2].data = Md5::digest(windows()).to_vec();
    let mut offsets = data("data with offsets", 2, at_start(CONTENT));
    offsets.records[1].stream |= 1 << 26;
    let mut session = plain("encryption session", whole_file(NAME), 1);
    session.records.insert(1, record(22, vec![0x30, 0x82, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    vec![
        plain("attributes of a file", whole_file(NAME), 0),
        plain("attributes of a directory", vec![attributes(5, "/m/dir/", 0o040_750, "", 2)], 0),
        plain("attributes of a link", vec![attributes(4, NAME, 0o120_777, "leads/there", 2)], 0),
        plain("attributes of a hard link", vec![attributes(1, NAME, 0o100_640, "/before", 2)], 0),
        plain("attributes of a fifo", vec![attributes(6, NAME, 0o010_640, "", 2)], 0),
        plain("update of attributes", vec![Record { stream: 37, ..file("/before", 2) }], 0),
        data("data", 2, CONTENT.to_vec()),
        data("sparse data", 6, at_start(CONTENT)),
        data("GZIP data", 4, zlib(CONTENT)),
        data("sparse GZIP data", 7, at_start(&zlib(CONTENT))),
        data("LZO data", 29, lzo()),
        data("sparse LZO data", 30, at_start(&lzo())),
        windows_data,
        offsets,
        data("encrypted data", 20, CONTENT.to_vec()),
        with("access ACL", record(1008, ACL)),
        with("extended attributes", record(1998, attribute())),
        with("signature", record(19, vec![0x30, 0x20, 2, 1, 0, 0x31, 0x1b, 1, 2, 3])),
        with("restore object", record(28, b"object".to_vec())),
        with("unknown stream", record(42, b"unknown".to_vec())),
        with("resource fork", record(13, b"fork".to_vec())),
        session,
        plain(
            "default ACL",
            vec![attributes(5, "/m/dir/", 0o040_750, "", 2), record(1007, ACL), record(1998, attribute())],
            1,
        ),
        plain("digest", whole_file(NAME), 2),
        plain(
            "name of a plugin",
            vec![record(26, b"2 1 1 other:/x:y:z\0".to_vec()), file(NAME, 2), record(2, CONTENT)],
            0,
        ),
    ]
}

bed::named! {
    /// What happens to a record.
    pub(crate) Damage {
        None, Truncated, Emptied, FlippedFirst, FlippedMiddle, FlippedLast, Repeated, Missing,
        // It comes before the one before it, or behind the next one; at the end of the session.
        OutOfOrder, Late,
        // The header says one byte more, or less, or as much as its number can hold.
        AnnouncedLonger, AnnouncedShorter, AnnouncedHuge,
        FrameHuge, // The frame says a gigabyte.
        HeaderIsNone, // The header is another packet.
        BrokenOff, // The connection ends in the middle of it.
    }
}

impl Damage {
    /// Whether nothing behind it can be understood.
    pub(crate) fn is_fatal(self) -> bool {
        use Damage::{AnnouncedHuge, AnnouncedLonger, AnnouncedShorter, BrokenOff, FrameHuge, HeaderIsNone};
        matches!(self, AnnouncedLonger | AnnouncedShorter | AnnouncedHuge | FrameHuge | HeaderIsNone | BrokenOff)
    }

    /// The session's bytes: an undamaged file, the victim, another undamaged file.
    pub(crate) fn session(self, victim: &Victim) -> Vec<u8> {
        let before = whole_file("/before");
        let mut records = victim.records.clone();
        let mut after = whole_file("/zz/after");
        let damaged = &mut records[victim.at].data;
        let (middle, last) = (damaged.len() / 2, damaged.len().saturating_sub(1));
        match self {
            Self::Truncated => damaged.truncate(damaged.len() / 2),
            Self::Emptied => damaged.clear(),
            Self::FlippedFirst => flip(damaged, 0),
            Self::FlippedMiddle => flip(damaged, middle),
            Self::FlippedLast => flip(damaged, last),
            Self::Repeated => records.insert(victim.at, records[victim.at].clone()),
            Self::Missing => drop(records.remove(victim.at)),
            Self::OutOfOrder => {
                let moved = records.remove(victim.at);
                records.insert(victim.at.checked_sub(1).unwrap_or(1).min(records.len()), moved);
            }
            Self::Late => after.push(records.remove(victim.at)),
            _ => {}
        }
        let mut bytes = Vec::new();
        for record in &before {
            push(&mut bytes, record);
        }
        for (number, record) in records.iter().enumerate() {
            if self.is_fatal() && number == victim.at {
                self.push_broken(&mut bytes, record);
                if self == Self::BrokenOff {
                    return bytes;
                }
            } else {
                push(&mut bytes, record);
            }
        }
        for record in &after {
            push(&mut bytes, record);
        }
        bytes
    }

    fn push_broken(self, bytes: &mut Vec<u8>, record: &Record) {
        let length = i64::try_from(record.data.len()).unwrap();
        let announced = match self {
            Self::AnnouncedLonger => length + 1,
            Self::AnnouncedShorter => length - 1,
            Self::AnnouncedHuge => i64::MAX,
            _ => length,
        };
        let header = if self == Self::HeaderIsNone {
            "recht 1 2 3".to_owned()
        } else {
            format!("rechdr 1 1000 1 {} {announced}", record.stream)
        };
        bytes.extend(packet(header.as_bytes()));
        match self {
            Self::FrameHuge => bytes.extend(0x3fff_ffff_u32.to_be_bytes()),
            Self::BrokenOff => {
                let whole = packet(&record.data);
                bytes.extend_from_slice(&whole[..whole.len() / 2]);
            }
            _ => bytes.extend(packet(&record.data)),
        }
    }
}

fn flip(data: &mut [u8], at: usize) {
    if let Some(byte) = data.get_mut(at) {
        *byte ^= 0x10;
    }
}

fn push(bytes: &mut Vec<u8>, record: &Record) {
    bytes.extend(packet(format!("rechdr 1 1000 1 {} {}", record.stream, record.data.len()).as_bytes()));
    bytes.extend(packet(&record.data));
}
