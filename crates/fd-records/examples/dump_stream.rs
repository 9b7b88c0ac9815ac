//! Prints the records of a restore's stream, one line for each.
//!
//! `cargo run -p fd-records --example dump_stream` prints a stream of its own, and with a file's
//! name the stream in that file. A stream is what a Storage Daemon sends in a restore (reference 05
//! §2.2): frames, each of them a length of four bytes, big endian, and as many bytes. The frame of
//! a record follows the frame of its header. A negative length is a signal and has no bytes.

use std::io::{self, Write};

use fd_records::{
    Attributes, AttributesRecord, FileType, LStat, MetadataKind, RecordHeader, Stat, Stream, StreamClass, digest_text,
    xattr,
};

fn main() -> io::Result<()> {
    let stream = match std::env::args_os().nth(1) {
        Some(file) => std::fs::read(file)?,
        None => example()?,
    };
    dump(&stream, &mut io::stdout().lock())
}

/// Prints each record of a stream, up to the first damage.
fn dump(stream: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut rest = stream;
    let mut header = None;
    while let Some((length, after)) = rest.split_first_chunk() {
        rest = after;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else { continue };
        let Some((frame, after)) = rest.split_at_checked(length) else {
            return writeln!(out, "the stream ends within a frame");
        };
        rest = after;
        match header.take() {
            Some(header) => print(&header, frame, out)?,
            None => match RecordHeader::parse(frame) {
                Some(found) => header = Some(found),
                None => return writeln!(out, "no record header: {}", frame.escape_ascii()),
            },
        }
    }
    Ok(())
}

fn print(header: &RecordHeader, record: &[u8], out: &mut impl Write) -> io::Result<()> {
    write!(out, "file {}, {}, {} bytes", header.file_index, header.stream, record.len())?;
    match header.stream.class() {
        StreamClass::Attributes | StreamClass::AttributesUpdate => match AttributesRecord::parse(record) {
            Some(AttributesRecord { name, lstat: LStat { stat: Stat { mode, size, .. }, .. }, .. }) => {
                write!(out, ": {} with mode {mode:o} and size {size}", name.escape_ascii())?;
            }
            None => write!(out, ": damaged")?,
        },
        StreamClass::Data(layout) => write!(out, ": {layout:?}")?,
        StreamClass::Digest(kind) => {
            write!(out, ": {kind} {}", digest_text::of(record).escape_ascii())?;
        }
        StreamClass::Metadata(MetadataKind::Acl) => write!(out, ": {}", record.escape_ascii())?,
        StreamClass::Metadata(MetadataKind::Xattr) => {
            for attribute in xattr::entries(record) {
                write!(out, ": {}={}", attribute.name.escape_ascii(), attribute.value.escape_ascii())?;
            }
        }
        _ => {}
    }
    writeln!(out)
}

/// A stream with the records of one file.
fn example() -> io::Result<Vec<u8>> {
    const DATA: &[u8] = b"Hello, Bacula!\n";
    const MD5: [u8; 16] = 0x9d61_aad3_00b5_69bb_d6c0_fac3_fbd1_0d74_u128.to_be_bytes();
    let (mut attributes, mut xattrs, mut stream) = (Vec::new(), Vec::new(), Vec::new());
    Attributes {
        file_index: 1,
        file_type: FileType::Regular,
        name: b"/srv/hello.txt",
        lstat: LStat {
            stat: Stat { mode: 0o100_644, nlink: 1, size: 15, ..Stat::default() },
            data_stream: Stream::FILE_DATA,
            ..LStat::default()
        },
        link: b"",
        attr_ex: b"",
        delta_seq: 0,
    }
    .encode(&mut attributes);
    xattr::push(&mut xattrs, b"user.greeting", b"yes");
    for (kind, record) in [
        (Stream::ATTRIBUTES, attributes.as_slice()),
        (Stream::FILE_DATA, DATA),
        (Stream::LINUX_XATTR, &xattrs),
        (Stream::MD5, &MD5),
    ] {
        let header = format!("rechdr 1 1795226230 1 {} {}", kind.number(), record.len());
        for frame in [header.as_bytes(), record] {
            let length = i32::try_from(frame.len()).map_err(io::Error::other)?;
            stream.write_all(&length.to_be_bytes())?;
            stream.write_all(frame)?;
        }
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dumped(stream: &[u8]) -> String {
        let mut out = Vec::new();
        dump(stream, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_example_s_own_stream_is_printed_record_by_record() {
        let expected = "\
            file 1, Unix attributes, 57 bytes: /srv/hello.txt with mode 100644 and size 15\n\
            file 1, File data, 15 bytes: \
            DataLayout { has_address: false, packing: Plain, is_encrypted: false, is_win32: false }\n\
            file 1, Linux Extended attribs, 28 bytes: user.greeting=yes\n\
            file 1, MD5 digest, 16 bytes: MD5 nWGq0wC1abvWwPrD+9ENdA\n";
        assert_eq!(dumped(&example().unwrap()), expected);
    }

    #[test]
    fn a_damaged_stream_ends_the_output() {
        assert_eq!(dumped(b"\xff\xff\xff\xff\0\0\0\x09no header"), "no record header: no header\n");
        assert_eq!(dumped(b"\0\0\0\x09rech"), "the stream ends within a frame\n");
    }
}
