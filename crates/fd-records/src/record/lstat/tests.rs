//! LStat texts of the reference, and damaged ones.

use super::*;

fn example() -> LStat {
    LStat {
        stat: Stat {
            dev: 65024,
            ino: 10_160_589,
            mode: 0o100_644,
            nlink: 1,
            size: 15,
            blksize: 4096,
            blocks: 8,
            atime: 1_700_000_000,
            mtime: 1_700_000_000,
            ctime: 1_795_228_584,
            ..Stat::default()
        },
        link_fi: 0,
        flags: 0,
        data_stream: Stream::FILE_DATA,
    }
}

#[test]
fn the_example_of_the_reference_encodes_and_decodes() {
    let text = b"P4A mwnN IGk B A A A P BAA I BlU/EA BlU/EA BrAQOo A A C";
    let mut out = Vec::new();
    example().encode(&mut out);
    assert_eq!(out, text);
    assert_eq!(LStat::decode(text), Some(example()));
}

#[test]
fn flag_bits_of_the_stream_are_not_recorded() {
    let mut out = Vec::new();
    LStat { data_stream: Stream::new(Stream::BIT_OFFSETS | 2), ..example() }.encode(&mut out);
    assert!(out.ends_with(b" A A C"));
}

#[test]
fn old_records_lack_the_last_numbers() {
    let lstat = LStat::decode(b"P4A mwnN IGk B A A A P BAA I BlU/EA BlU/EA BrAQOo").unwrap();
    assert_eq!((lstat.link_fi, lstat.flags, lstat.data_stream), (0, 0, Stream::NONE));
    let lstat = LStat::decode(b"P4A mwnN IGk B A A A P BAA I BlU/EA BlU/EA BrAQOo M").unwrap();
    assert_eq!((lstat.link_fi, lstat.flags, lstat.data_stream), (12, 0, Stream::NONE));
}

#[test]
fn damaged_texts_are_refused() {
    assert_eq!(LStat::decode(b""), None);
    assert_eq!(LStat::decode(b"A B C"), None);
    assert_eq!(LStat::decode(b"A B ? A A A A A A A A A A"), None);
    assert_eq!(LStat::decode(b"A B -B A A A A A A A A A A"), None);
    assert_eq!(LStat::decode(b"A B A A A A A A A A A A A JstdsA"), None);
}

#[test]
fn every_bit_of_the_wide_fields_survives() {
    let lstat = LStat {
        stat: Stat {
            dev: u64::MAX,
            ino: 1 << 63,
            mode: u32::MAX,
            nlink: u64::MAX,
            uid: u32::MAX,
            gid: u32::MAX - 1,
            rdev: u64::MAX,
            size: -1,
            blksize: i64::MIN,
            blocks: i64::MAX,
            atime: -1,
            mtime: i64::MIN,
            ctime: i64::MAX,
        },
        link_fi: i32::MAX,
        flags: -1,
        data_stream: Stream::new(2047),
    };
    let mut out = Vec::new();
    lstat.encode(&mut out);
    assert_eq!(LStat::decode(&out), Some(lstat));
}

#[test]
fn a_signed_owner_reads_as_its_unsigned_number() {
    let lstat = LStat::decode(b"A A A A -B -C A A A A A A A").unwrap();
    assert_eq!((lstat.stat.uid, lstat.stat.gid), (u32::MAX, u32::MAX - 1));
}
