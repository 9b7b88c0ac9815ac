//! Unit tests of `volume`.

use super::*;
use crate::folder::Folder;

/// A block as the Storage Daemon writes it.
fn block(number: u32, session: Session, records: &[(i32, i32, u32, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (file_index, stream, length, data) in records {
        body.extend(file_index.to_be_bytes());
        body.extend(stream.to_be_bytes());
        body.extend(length.to_be_bytes());
        body.extend(*data);
    }
    let mut bytes = Vec::new();
    for word in [1, u32::try_from(BLOCK_HEADER + body.len()).unwrap(), number] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(b"BB03");
    bytes.extend(session.0.to_be_bytes());
    bytes.extend(session.1.to_be_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes);
    bytes[CHECKSUM_AT..BLOCK_HEADER].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// The same as 9.6.7 writes it.
fn old_block(session: Session, records: &[(i32, i32, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = block(0, session, records);
    bytes.drain(CHECKSUM_AT..BLOCK_HEADER);
    let length = u32::try_from(bytes.len()).unwrap();
    bytes[4..8].copy_from_slice(&length.to_be_bytes());
    bytes[12..16].copy_from_slice(b"BB02");
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.sum().to_be_bytes());
    bytes
}

#[test]
fn blocks_of_9_6_7_are_read_and_checked() {
    let records =
        [old_block((1, 9), &[(1, 1, 4, b"attr"), (1, 2, 6, b"abc")]), old_block((1, 9), &[(1, -2, 3, b"def")])];
    let got = read(&[records.concat()], None).unwrap();
    let got: Vec<_> = got.iter().map(|r| (r.offset, r.stream, &r.data[..])).collect();
    assert_eq!(got, [(24, 1, &b"attr"[..]), (40, 2, b"abcdef")]);
    let mut damaged = records.concat();
    damaged[36] ^= 1;
    let error = read(&[damaged], None).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

fn read(volumes: &[Vec<u8>], wanted: Option<Session>) -> Result<Vec<Record>> {
    let folder = Folder::new("volume").unwrap();
    let paths = volumes.iter().enumerate().map(|(number, bytes)| {
        let path = folder.path().join(number.to_string());
        std::fs::write(&path, bytes).unwrap();
        path
    });
    Records::new(paths.collect(), wanted)?.collect()
}

#[test]
fn split_records_of_two_sessions_are_put_together_over_two_volumes() {
    let (one, two) = ((1, 9), (2, 9));
    let first = [
        block(0, (0, 0), &[(-2, 0, 3, b"vol")]),
        block(1, one, &[(1, 1, 4, b"attr"), (1, 2, 9, b"abc")]),
        block(2, two, &[(1, 1, 2, b"xy"), (1, 2, 4, b"")]),
        block(3, one, &[(1, -2, 6, b"def")]),
    ];
    let second = [block(1, two, &[(1, -2, 4, b"wxyz")]), block(2, one, &[(1, -2, 3, b"ghi"), (2, 1, 0, b"")])];
    let volumes = [first.concat(), second.concat()];
    let got = read(&volumes, Some(one)).unwrap();
    let got: Vec<_> = got.iter().map(|r| (r.file_index, r.stream, &r.data[..])).collect();
    assert_eq!(got, [(1, 1, &b"attr"[..]), (1, 2, b"abcdefghi"), (2, 1, b"")]);
    assert_eq!(read(&volumes, Some(two)).unwrap()[1].data, b"wxyz");
    assert_eq!(read(&volumes, None).unwrap().len(), 5);
    let cut = read(&volumes[..1], Some(two)).unwrap_err().to_string();
    assert!(cut.contains("end inside a record"), "{cut}");
}

#[test]
fn a_changed_volume_is_a_good_one_with_other_content() {
    let folder = Folder::new("rewrite").unwrap();
    let path = folder.path().join("volume");
    let one = (1, 9);
    let blocks = [block(1, one, &[(1, 1, 4, b"attr"), (1, 2, 5, b"abc")]), block(2, one, &[(1, -2, 2, b"de")])];
    std::fs::write(&path, blocks.concat()).unwrap();
    rewrite_volume(&path, |session, file_index, stream, data| {
        assert_eq!((session, file_index), (one, 1));
        if *stream == 1 {
            *stream = 42;
            data[0] = b'A';
        }
    })
    .unwrap();
    let got: Vec<_> = Records::new(vec![path], None).unwrap().map(|record| record.unwrap()).collect();
    let got: Vec<_> = got.iter().map(|r| (r.stream, &r.data[..])).collect();
    assert_eq!(got, [(42, &b"Attr"[..]), (2, b"abcde")]);
}

#[test]
fn the_header_of_the_reference_has_the_checksum_of_the_reference() {
    // Reference 04 §19.1 gives this header; a body of its length with another content must be
    // refused.
    let mut bytes = vec![0, 0, 0, 1, 0, 0, 0, 0xe2, 0, 0, 0, 0];
    bytes.extend(b"BB03");
    bytes.extend([0, 0, 0, 0x0a, 0x6b, 0, 0xfc, 0x7f, 0xf6, 0xc6, 0xfc, 0xf2, 0x78, 0xef, 0x75, 0x64]);
    bytes.resize(0xe2, 0);
    let error = read(&[bytes], None).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

#[test]
fn every_flipped_byte_is_noticed() {
    let good = block(0, (1, 1), &[(1, 1, 4, b"attr")]);
    assert_eq!(read(std::slice::from_ref(&good), None).unwrap().len(), 1);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        assert!(read(&[bad], None).is_err(), "byte {at} flipped, and no error");
    }
    for length in 1..good.len() {
        assert!(read(&[good[..length].to_vec()], None).is_err(), "cut at {length}, and no error");
    }
}

#[test]
fn a_continuation_of_nothing_is_refused() {
    let error = read(&[block(0, (1, 1), &[(1, -2, 3, b"abc")])], None).unwrap_err().to_string();
    assert!(error.contains("does not continue"), "{error}");
}
