//! Attribute records of the reference, and damaged ones.

use super::*;
use crate::record::lstat::Stat;
use crate::test_bytes::hex;
use crate::vocabulary::stream::Stream;

const REGULAR: &str = "32302033202f7372762f642f612e747874 00 503441206d776e4e2049476b2042204120412041205020424141204920426c552f454120426c552f454120427241514f6f2041204120430000003000";
const EMPTY: &str = "31312032202f7372762f642f656d70747900503441206d776e4f2049476b2042204120412041204120424141204120426c552f454120426c552f454120427241514f6f2041204120430000003000";
const DIRECTORY: &str = "312035202f7372762f642f656d7074796469722f00503441206d776e542045487420432041204120412042414120424141204920426c552f454120426c552f454120427241514f6f2041204120430000003000";
const SYMLINK: &str = "31332034202f7372762f642f73796d00503441206d776e55204b482f2042204120412041204620424141204120426c552f454120426c552f454120427241514f6f20412041204300612e74787400003000";
const HARD_LINK: &str = "31362031202f7372762f642f683300503441206d776e572049476b2044204120412041205120424141204920427241514f7220426c552f454120427241514f6f204d20412043002f7372762f642f683200003000";

#[test]
fn the_records_of_the_reference_survive_a_round_trip() {
    for text in [REGULAR, EMPTY, DIRECTORY, SYMLINK, HARD_LINK] {
        let record = hex(text);
        let parsed = AttributesRecord::parse(&record).unwrap();
        let mut out = Vec::new();
        Attributes {
            file_index: i32::try_from(parsed.file_index).unwrap(),
            file_type: parsed.file_type().unwrap(),
            name: parsed.name,
            lstat: parsed.lstat,
            link: parsed.link,
            attr_ex: parsed.attr_ex,
            delta_seq: i32::try_from(parsed.delta_seq).unwrap(),
        }
        .encode(&mut out);
        assert_eq!(out, record);
    }
}

#[test]
fn the_fields_of_a_hard_link_are_found() {
    let record = hex(HARD_LINK);
    let parsed = AttributesRecord::parse(&record).unwrap();
    assert_eq!(parsed.file_index, 16);
    assert_eq!(parsed.file_type(), Some(FileType::HardLink));
    assert_eq!(parsed.name, b"/srv/d/h3");
    assert_eq!(parsed.link, b"/srv/d/h2");
    assert_eq!(parsed.lstat.link_fi, 12);
    assert_eq!(parsed.lstat.stat.nlink, 3);
    assert_eq!(parsed.lstat_text, b"P4A mwnW IGk D A A A Q BAA I BrAQOr BlU/EA BrAQOo M A C");
    assert_eq!((parsed.attr_ex, parsed.delta_seq), (&b""[..], 0));
}

#[test]
fn a_metadata_update_has_its_mark_and_its_sequence() {
    let mut out = Vec::new();
    Attributes {
        file_index: 2,
        file_type: FileType::Regular,
        name: b"/srv/d/rand",
        lstat: LStat { data_stream: Stream::FILE_DATA, ..LStat::default() },
        link: b"",
        attr_ex: Attributes::UPDATE_MARK,
        delta_seq: 1,
    }
    .encode(&mut out);
    assert_eq!(out, b"2 3 /srv/d/rand\0A A A A A A A A A A A A A A A C\0\0<NULL>\x001\0");
    assert_eq!(AttributesRecord::parse(&out).unwrap().delta_seq, 1);
}

#[test]
fn a_deleted_file_keeps_two_times() {
    let mut out = Vec::new();
    Attributes {
        file_index: 4,
        file_type: FileType::Deleted,
        name: b"/srv/d/zeros",
        lstat: LStat {
            stat: Stat { mtime: 1_700_000_000, ctime: 1_795_230_330, ..Stat::default() },
            data_stream: Stream::FILE_DATA,
            ..LStat::default()
        },
        link: b"",
        attr_ex: b"",
        delta_seq: 0,
    }
    .encode(&mut out);
    assert!(out.starts_with(b"4 23 /srv/d/zeros\0A A A A A A A A A A A BlU/EA "));
    assert!(out.ends_with(b" A A C\0\0\x000\0"));
}

#[test]
fn directories_end_in_exactly_one_slash_and_other_bytes_pass() {
    for (name, recorded) in
        [(&b"/d"[..], &b"/d/"[..]), (b"/d///", b"/d/"), (b"/", b"/"), (b"//", b"/"), (b"/a \n\xff", b"/a \n\xff/")]
    {
        let mut out = Vec::new();
        let attributes = Attributes {
            file_index: 1,
            file_type: FileType::Directory,
            name,
            lstat: LStat::default(),
            link: b"",
            attr_ex: b"",
            delta_seq: 0,
        };
        attributes.encode(&mut out);
        assert_eq!(AttributesRecord::parse(&out).unwrap().name, recorded);
        out.clear();
        Attributes { file_type: FileType::Regular, ..attributes }.encode(&mut out);
        assert_eq!(AttributesRecord::parse(&out).unwrap().name, name);
    }
}

#[test]
fn records_without_their_separators_are_refused() {
    let record = hex(SYMLINK);
    let nuls: Vec<usize> = (0..record.len()).filter(|at| record[*at] == 0).collect();
    for end in 0..record.len() {
        let parsed = AttributesRecord::parse(&record[..end]);
        assert_eq!(parsed.is_some(), end > nuls[2], "cut at {end}");
    }
    assert_eq!(AttributesRecord::parse(b"13"), None);
    assert_eq!(AttributesRecord::parse(b"13 4"), None);
}

#[test]
fn unknown_types_and_flag_bits_are_kept_apart() {
    let record = b"1 99 /x\0A A A A A A A A A A A A A\0\0\0";
    let parsed = AttributesRecord::parse(record).unwrap();
    assert_eq!((parsed.type_code, parsed.file_type(), parsed.delta_seq), (99, None, 0));
    let record = b"1 65539 /x\0A A A A A A A A A A A A A\0\0\x00C\0";
    let parsed = AttributesRecord::parse(record).unwrap();
    assert_eq!((parsed.file_type(), parsed.delta_seq), (Some(FileType::Regular), 0));
}
