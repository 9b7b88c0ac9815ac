//! Damaged, cut and disordered records: one file is lost, never the job, unless the frames
//! themselves make no sense.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, UNIX_EPOCH};

use fd_messages::MessageType;
use fd_records::{FileType, Replace, Stream};
use fd_restore::{End, SequenceError, SourceError};

use crate::volume::{Frame, MTIME, Place, Saved, Volume, job_below};

/// The mode of a file that is not complete.
const UNFINISHED: u32 = 0o101_600;

/// A volume with something of everything.
pub(crate) fn everything() -> Volume {
    let mut volume = Volume::new();
    let mut acl = b"user::rw-\nuser:12:r--\ngroup::r--\nmask::r--\nother::r--\n\0".to_vec();
    let mut xattrs = Vec::new();
    fd_records::xattr::push(&mut xattrs, b"user.one", b"1");
    volume.file("/d/plain", b"plain data").record(Stream::LINUX_ACCESS_ACL, &acl).record(Stream::LINUX_XATTR, &xattrs);
    volume.record(Stream::MD5, &[7; 16]);
    let mut packed = Saved::file("/d/gzip");
    packed.data_stream = Stream::GZIP_DATA;
    packed.stat.size = 12;
    let gzip = [
        0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0x28, 0xcf, 0x2f, 0xca, 0x49, 0xe1, 0x02, 0, 0x1e, 0x72, 4,
        0x67,
    ];
    volume.put(&packed).record(Stream::GZIP_DATA, &gzip);
    let lzo = b"LZOX\0\0\0\x10\0\0\0\x01\x1dhello world\n\x11\0\0";
    volume.put(&Saved { data_stream: Stream::COMPRESSED_DATA, ..Saved::file("/d/lzo") });
    volume.record(Stream::COMPRESSED_DATA, lzo);
    volume.put(&Saved { data_stream: Stream::SPARSE_DATA, ..Saved::file("/d/sparse") });
    volume.record(Stream::SPARSE_DATA, b"\0\0\0\0\0\0\0\x09sparse");
    volume.symlink("/d/link", "plain").put(&Saved::hard_link("/d/hard", "/d/plain"));
    volume.put(&Saved::new("/d/fifo", FileType::Special, 0o010_600));
    acl.truncate(20);
    volume.directory("/d/").record(Stream::LINUX_DEFAULT_ACL, &acl);
    volume.record(Stream::PLUGIN_NAME, b"9 1 1 bpipe:/x:y:z\0").record(Stream::PLUGIN_NAME, b"9 0");
    volume
        .record(Stream::RESTORE_OBJECT, b"object")
        .record(Stream::new(900), b"?")
        .record(Stream::MACOS_FORK_DATA, b"?");
    volume
}

/// A cheap random sequence, the same each time.
pub(crate) fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

pub(crate) fn pick(seed: &mut u64, count: usize) -> usize {
    usize::try_from(next(seed)).unwrap() % count
}

#[test]
fn a_volume_that_ends_anywhere_does_no_harm() {
    let volume = everything();
    for end in 0..volume.frames.len() {
        let place = Place::new();
        let mut cut = volume.clone();
        cut.frames.truncate(end);
        let finished = place.job().run(&cut);
        if end % 2 == 0 {
            assert_eq!(finished.outcome, Ok(End::EndOfData));
        } else {
            assert_eq!(finished.outcome, Err(SequenceError::NoData(None)));
            // Behind it is only the number of ACLs that could not be set.
            let last = finished.messages.iter().rfind(|(kind, _)| *kind != MessageType::Warning).unwrap();
            let text = "restore.c:491 Data record error. ERR=No data available\n";
            assert_eq!((last.0, last.1.as_str()), (MessageType::Fatal, text));
        }
        cut.frames.push(Frame::Lost);
        let finished = Place::new().job().run(&cut);
        if end % 2 == 0 {
            let lost = SourceError("Connection reset by peer".to_owned());
            assert_eq!(finished.outcome, Ok(End::ConnectionLost(lost)));
        } else {
            let error = SourceError("Connection reset by peer".to_owned());
            assert_eq!(finished.outcome, Err(SequenceError::NoData(Some(error))));
        }
    }
}

#[test]
fn flipped_bits_in_records_never_end_the_job() {
    let volume = everything();
    let mut seed = 1;
    for _ in 0..300 {
        let place = Place::new();
        let mut damaged = volume.clone();
        for _ in 0..=next(&mut seed) % 4 {
            let at = pick(&mut seed, damaged.frames.len() / 2) * 2 + 1;
            if let Frame::Data(data) = &mut damaged.frames[at]
                && !data.is_empty()
            {
                let at = pick(&mut seed, data.len());
                data[at] ^= 1 << (next(&mut seed) % 8);
            }
        }
        let finished = job_below(&place.text("w")).run(&damaged);
        assert_eq!(finished.outcome, Ok(End::EndOfData));
        // Nothing but the restore directory came to be.
        for entry in std::fs::read_dir(place.root()).unwrap() {
            assert_eq!(entry.unwrap().file_name(), "w");
        }
    }
}

#[test]
fn records_in_any_order_and_of_any_stream_do_no_harm() {
    let volume = everything();
    let records: Vec<[Frame; 2]> = volume.frames.chunks(2).map(|pair| [pair[0].clone(), pair[1].clone()]).collect();
    let mut seed = 7;
    for _ in 0..200 {
        let place = Place::new();
        let mut shuffled = Volume::new();
        for _ in 0..records.len() {
            let [header, data] = records[pick(&mut seed, records.len())].clone();
            if next(&mut seed).is_multiple_of(3) {
                let Frame::Data(data) = data else { continue };
                let stream = Stream::new(u32::try_from(next(&mut seed) % 50).unwrap());
                shuffled.record(stream, &data);
            } else {
                shuffled.frames.extend([header, data]);
            }
        }
        let finished = job_below(&place.text("w")).run(&shuffled);
        assert_eq!(finished.outcome, Ok(End::EndOfData));
    }
}

#[test]
fn invalid_record_headers_are_fatal() {
    let place = Place::new();
    let mut saved = Saved::file("/f");
    saved.stat.mode = 0o100_666;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::FILE_DATA, b"data");
    volume.frames.push(Frame::Data(b"reckless 1 2 3".to_vec()));
    volume.file("/g", b"never");
    let finished = place.job().run(&volume);
    assert_eq!(finished.outcome, Err(SequenceError::Header(b"reckless 1 2 3".to_vec())));
    assert_eq!(finished.only(), (MessageType::Fatal, "restore.c:480 Record header scan error: reckless 1 2 3\n"));
    // Nothing is closed after a fatal error.
    assert_eq!((place.read("f"), place.mode("f")), (b"data".to_vec(), UNFINISHED));
    assert!(!place.exists("g"));
}

#[test]
fn wrong_lengths_are_fatal() {
    for (announced, actual) in [(5, 4), (3, 4), (-1, 4), (0, 4), (4, 0)] {
        let place = Place::new();
        let mut volume = Volume::new();
        volume.put(&Saved::file("/f"));
        volume.frames.push(Frame::Data(format!("rechdr 1 1 1 2 {announced}").into_bytes()));
        volume.frames.push(Frame::Data(b"data"[..actual].to_vec()));
        let finished = place.job().run(&volume);
        assert_eq!(finished.outcome, Err(SequenceError::Size { actual, announced }));
        let text = format!("restore.c:498 Actual data size {actual} not same as header {announced}\n");
        assert_eq!(finished.only(), (MessageType::Fatal, text.as_str()));
    }
}

#[test]
fn an_unreadable_attribute_record_loses_one_file() {
    for record in [&b"1"[..], b"1 3 /f", b"", b"1 3 /f\0A A A A A A A A A A A A\0\0\0", b"1 3 /f\0?\0\0\0"] {
        let place = Place::new();
        let mut volume = Volume::new();
        volume.file("/before", b"x").record(Stream::ATTRIBUTES, record).record(Stream::FILE_DATA, b"lost");
        volume.record(Stream::LINUX_XATTR, b"?").file("/after", b"y");
        let finished = place.job().run(&volume);
        let readable = String::from_utf8_lossy(record.split(|byte| *byte == 0).next().unwrap()).into_owned();
        let text = format!("Error scanning attributes: {readable}\n");
        assert_eq!(finished.told(), [(MessageType::Error, text.as_str())]);
        assert_eq!((place.read("before"), place.read("after")), (b"x".to_vec(), b"y".to_vec()));
        assert_eq!(finished.files, 2);
    }
}

#[test]
fn compressed_data_that_is_damaged_loses_one_file() {
    let cases: [(Stream, &[u8], &str); 9] = [
        (Stream::GZIP_DATA, b"", "Uncompression error on file %s. ERR=Zlib data error\n"),
        (Stream::GZIP_DATA, b"rubbish", "Uncompression error on file %s. ERR=Zlib data error\n"),
        (Stream::GZIP_DATA, b"\x78\x9c\xcb\x48", "Uncompression error on file %s. ERR=Zlib data error\n"),
        (Stream::COMPRESSED_DATA, b"LZOX\0\0\0\x01\0\0\0\x02a", "Compressed header version error. Got=0x2 want=0x1\n"),
        (
            Stream::COMPRESSED_DATA,
            b"LZOX\0\0\0\x02\0\0\0\x01a",
            "Compressed header size error. comp_len=2, msglen=13\n",
        ),
        (Stream::COMPRESSED_DATA, b"LZOX\0\0\0\x01\0\0\0\x01a", "LZO uncompression error on file %s. ERR=-4\n"),
        (Stream::COMPRESSED_DATA, b"LZOX", "Compressed header size error. comp_len=0, msglen=4\n"),
        (
            Stream::COMPRESSED_DATA,
            b"GZIP\0\0\0\x01\0\0\0\x01a",
            "Compression algorithm 0x475a4950 found, but not supported!\n",
        ),
        (
            Stream::SPARSE_DATA,
            b"short",
            "Sparse data error on file %s. ERR=record of 5 bytes, its address alone needs 8\n",
        ),
    ];
    for (stream, record, text) in cases {
        let place = Place::new();
        let mut saved = Saved::file("/f");
        saved.data_stream = stream;
        saved.stat.mode = 0o100_666;
        let mut volume = Volume::new();
        volume.put(&saved).record(stream, record).record(stream, b"ignored").record(Stream::MD5, &[0; 16]);
        volume.file("/after", b"y");
        let finished = place.job().run(&volume);
        let text = text.replace("%s", &place.text("f"));
        assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
        // Left as it is: private, without attributes.
        assert_eq!((place.mode("f"), place.read("f").len()), (UNFINISHED, 0));
        assert_eq!(place.read("after"), b"y");
    }
}

#[test]
fn a_record_that_unpacks_to_too_much_loses_one_file() {
    let place = Place::new();
    let mut compressor = fd_compress::Compressor::new(fd_records::Compression::Gzip(9)).unwrap();
    let mut bomb = Vec::new();
    compressor.compress(&vec![0; 100 << 20], &mut bomb).unwrap();
    let mut volume = Volume::new();
    volume.put(&Saved { data_stream: Stream::GZIP_DATA, ..Saved::file("/f") }).record(Stream::GZIP_DATA, &bomb);
    volume.file("/after", b"y");
    let finished = place.job().run(&volume);
    let (kind, text) = finished.only();
    assert_eq!(kind, MessageType::Error);
    assert!(text.starts_with("Uncompression error on file "), "{text}");
    assert_eq!(place.read("after"), b"y");
}

#[test]
fn data_is_taken_only_behind_data_or_attributes() {
    for between in [Stream::LINUX_ACCESS_ACL, Stream::LINUX_XATTR, Stream::MACOS_FORK_DATA, Stream::FILE_EVENT] {
        let place = Place::new();
        let mut volume = Volume::new();
        let mut saved = Saved::file("/f");
        saved.stat.size = 3;
        volume.put(&saved).record(Stream::FILE_DATA, b"one").record(between, b"").record(Stream::FILE_DATA, b"two");
        place.job().run(&volume);
        assert_eq!(place.read("f"), b"one", "{between}");
    }
    for between in [Stream::PLUGIN_META_BLOB, Stream::PLUGIN_META_CATALOG] {
        let place = Place::new();
        let mut volume = Volume::new();
        volume.put(&Saved::file("/f")).record(between, b"").record(Stream::FILE_DATA, b"two");
        place.job().run(&volume).assert_quiet();
        assert_eq!(place.read("f"), b"two");
    }
    // Behind a digest the file is complete.
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("/f", b"one").record(Stream::MD5, &[0; 16]).record(Stream::FILE_DATA, b"two");
    place.job().run(&volume);
    assert_eq!(place.read("f"), b"one");
}

#[test]
fn an_unknown_stream_ends_the_file() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("/f", b"one").record(Stream::new(900), b"?").record(Stream::FILE_DATA, b"two");
    volume.record(Stream::LINUX_XATTR, b"?").record(Stream::new(2001), b"").file("/g", b"x");
    let finished = place.job().run(&volume);
    assert_eq!(
        finished.told(),
        [
            (MessageType::Warning, "Unexpected stream=\"900\" ignored. This shouldn't happen!\n"),
            (MessageType::Warning, "Unexpected stream=\"2001\" ignored. This shouldn't happen!\n"),
        ]
    );
    assert_eq!((place.read("f"), place.mode("f")), (b"one".to_vec(), 0o100_644));
    assert_eq!(place.read("g"), b"x");
}

#[test]
fn wrong_data_is_found_by_its_digest() {
    let place = Place::new();
    let md5 = [0x9d, 0x61, 0xaa, 0xd3, 0x00, 0xb5, 0x69, 0xbb, 0xd6, 0xc0, 0xfa, 0xc3, 0xfb, 0xd1, 0x0d, 0x74];
    let mut volume = Volume::new();
    volume.file("/good", b"Hello, Bacula!\n").record(Stream::MD5, &md5);
    volume.file("/bad", b"Hello, bacula!\n").record(Stream::MD5, &md5);
    volume.put(&Saved::hard_link("/hard", "/good")).record(Stream::MD5, &md5);
    volume.put(&Saved::new("/empty", FileType::EmptyFile, 0o100_444)).record(Stream::MD5, &md5);
    volume.file("/none", b"x");
    let finished = place.job().run(&volume);
    let told = finished.told();
    assert_eq!(told.len(), 2);
    let expected = format!(
        "MD5 digest of restored file {} differs from the backup. Original nWGq0wC1abvWwPrD+9ENdA, restored ",
        place.text("bad")
    );
    assert!(told[0].1.starts_with(&expected), "{}", told[0].1);
    assert!(told[1].1.contains("/empty "), "{}", told[1].1);
    // The file stays, with its attributes.
    assert_eq!(place.mode("bad"), 0o100_644);
    let mut job = place.job();
    job.plan.check_digests = false;
    job.run(&volume).assert_quiet();
}

/// The most bytes that a file of ten bytes may get, as docs/limits.md says.
const MOST_OF_TEN: u64 = (16 << 20) + 16 * 10;

#[test]
fn data_stops_at_a_multiple_of_what_the_attributes_say() {
    let zeros = vec![0; 4 << 20];
    let at = |address: u64, data: &[u8]| [&address.to_be_bytes()[..], data].concat();
    let mut packed = Vec::new();
    fd_compress::Compressor::new(fd_records::Compression::Gzip(9)).unwrap().compress(&zeros, &mut packed).unwrap();
    let far = 1 << 40;
    let cases: [(&str, Stream, Vec<Vec<u8>>); 5] = [
        ("plain", Stream::FILE_DATA, vec![zeros.clone(); 6]),
        ("packed", Stream::GZIP_DATA, vec![packed.clone(); 256]),
        ("sparse", Stream::SPARSE_DATA, vec![at(0, b"0123456789"), at(far, b"far away")]),
        ("sparse-packed", Stream::SPARSE_GZIP_DATA, (0..256).map(|number| at(number << 22, &packed)).collect()),
        ("offsets", Stream::new(Stream::BIT_OFFSETS | Stream::FILE_DATA.number()), vec![at(u64::MAX - 3, b"overflow")]),
    ];
    for (name, stream, records) in cases {
        let place = Place::new();
        let mut volume = Volume::new();
        let mut saved = Saved::file("/f");
        saved.stat.size = 10;
        saved.data_stream = stream.kind();
        volume.put(&saved);
        for record in records {
            volume.record(stream, &record);
        }
        volume.file("/next", b"x");
        let finished = place.job().run(&volume);
        let text = format!(
            "More data than fits file {}, which had 10 bytes when it was saved; stopped at {MOST_OF_TEN}.\n",
            place.text("f")
        );
        if name == "offsets" {
            // No file reaches so far.
            assert_eq!(finished.told().len(), 1);
        } else {
            assert_eq!(finished.only(), (MessageType::Error, text.as_str()), "{name}");
        }
        assert!(place.stat("f").len() <= MOST_OF_TEN && place.mode("f") == UNFINISHED, "{name}");
        assert!(finished.job_bytes <= MOST_OF_TEN + 1, "{name}");
        assert_eq!(place.read("next"), b"x");
    }
}

#[test]
fn a_file_that_grew_during_the_backup_is_restored_with_a_size_error() {
    let place = Place::new();
    let mut volume = Volume::new();
    let mut saved = Saved::file("/log");
    saved.stat.size = 100_000;
    volume.put(&saved);
    for _ in 0..16 {
        volume.record(Stream::FILE_DATA, &vec![b'l'; 100_000]);
    }
    // The size of what a program makes is not known beforehand.
    saved.name = b"/pipe".to_vec();
    saved.stat.size = -1;
    volume.put(&saved);
    for _ in 0..5 {
        volume.record(Stream::FILE_DATA, &vec![b'p'; 4 << 20]);
    }
    let finished = place.job().run(&volume);
    assert!(finished.only().1.starts_with("attribs.c:603 File size of restored file "), "{:?}", finished.told());
    assert_eq!((place.stat("log").len(), place.stat("log").mtime()), (1_600_000, MTIME));
    assert_eq!(place.stat("pipe").len(), 5 << 22);
}

#[test]
fn a_file_whose_data_broke_off_stays_private_and_the_next_restore_replaces_it() {
    for end in [Some(Frame::Lost), Some(Frame::Cancel), None] {
        for replace in [Replace::Always, Replace::IfNewer, Replace::IfOlder, Replace::Never] {
            let place = Place::new();
            let mut saved = Saved::new("/bin/tool", FileType::Regular, 0o106_755);
            saved.stat.size = 8;
            let mut torn = Volume::new();
            torn.file("/bin/before", b"whole").put(&saved).record(Stream::FILE_DATA, b"half");
            torn.frames.extend(end.clone());
            let finished = place.job().run(&torn);
            if matches!(end, Some(Frame::Cancel)) && !place.exists("bin/tool") {
                // A job that looks ahead sees the cancel first.
                continue;
            }
            let text = format!("restored file {} not correct. Original 8, restored 4.", place.text("bin/tool"));
            let told = finished.told();
            let errors = told.iter().filter(|(kind, said)| *kind == MessageType::Error && said.contains(&text));
            assert_eq!(errors.count(), 1, "{told:?}");
            assert_eq!((place.mode("bin/tool"), place.read("bin/tool")), (UNFINISHED, b"half".to_vec()));
            assert_ne!(place.stat("bin/tool").mtime(), MTIME);
            assert_eq!((place.mode("bin/before"), place.stat("bin/before").mtime()), (0o100_644, MTIME));
            let mut whole = Volume::new();
            whole.put(&saved).record(Stream::FILE_DATA, b"half and").file("/bin/before", b"other");
            place.job_with(replace).run(&whole);
            assert_eq!(place.read("bin/tool"), b"half and", "{replace:?}");
            assert_eq!(place.mode("bin/tool"), 0o106_755);
            // What was complete is replaced as the mode says.
            assert_eq!(place.read("bin/before") == b"other", replace == Replace::Always, "{replace:?}");
        }
    }
}

/// The default ACL of a directory takes rights of the owner away from what is made there.
#[test]
fn a_file_that_broke_off_below_a_default_acl_is_replaced_by_the_next_restore() {
    let place = Place::new();
    let mut above = Volume::new();
    above.directory("/d/").record(Stream::LINUX_DEFAULT_ACL, b"user::r--\ngroup::r--\nother::---\n\0");
    place.job().run(&above);
    let mut saved = Saved::file("/d/f");
    saved.stat.size = 8;
    let mut torn = Volume::new();
    torn.put(&saved).record(Stream::FILE_DATA, b"half");
    torn.frames.push(Frame::Lost);
    place.job().run(&torn);
    assert_eq!((place.mode("d/f"), place.read("d/f")), (0o101_400, b"half".to_vec()));
    place.job_with(Replace::Never).run(Volume::new().put(&saved).record(Stream::FILE_DATA, b"half and"));
    assert_eq!((place.mode("d/f"), place.read("d/f")), (0o100_644, b"half and".to_vec()));
}

#[test]
fn only_what_a_restore_has_left_counts_as_not_complete() {
    let mode = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for case in ["private", "linked", "complete", "left"] {
        let place = Place::new();
        fs::write(place.path("f"), "live").unwrap();
        mode(&place.path("f"), if case == "private" { 0o600 } else { 0o1600 });
        if case == "linked" {
            fs::hard_link(place.path("f"), place.path("g")).unwrap();
        }
        if case == "complete" {
            let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(MTIME).unwrap());
            fs::File::options().write(true).open(place.path("f")).unwrap().set_modified(time).unwrap();
        }
        place.job_with(Replace::Never).run(Volume::new().file("/f", b"new"));
        assert_eq!(place.read("f") == b"new", case == "left", "{case}");
    }
}
