//! Records that belong to nothing that is restored here, or not to where they stand: a file is
//! whole, or it is an error and stays private.

use fd_messages::MessageType;
use fd_records::{FileType, Replace, Stream};
use fd_restore::End;

use crate::volume::{Finished, Frame, MTIME, Place, Saved, Volume, let_it_be_old, my_ids};

/// The mode of a file that is not complete.
const UNFINISHED: u32 = 0o101_600;

/// A file that is said to have this many bytes, as a program of its owner's.
fn program(name: &str, size: i64) -> Saved {
    let mut saved = Saved::new(name, FileType::Regular, 0o104_755);
    saved.stat.size = size;
    saved
}

/// A record at an address.
fn at(address: u64, data: &[u8]) -> Vec<u8> {
    [&address.to_be_bytes()[..], data].concat()
}

/// One file as `put` makes it, between two good ones.
fn between(put: impl FnOnce(&mut Volume)) -> (Place, Finished) {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("/before", b"good");
    put(&mut volume);
    volume.file("/after", b"good");
    let finished = place.job().run(&volume);
    assert_eq!(finished.outcome, Ok(End::EndOfData));
    assert_eq!((place.read("before"), place.read("after")), (b"good".to_vec(), b"good".to_vec()));
    assert_eq!((place.mode("before"), place.mode("after")), (0o100_644, 0o100_644));
    (place, finished)
}

/// A record with a header of its own.
pub(crate) fn put_of(volume: &mut Volume, origin: &str, stream: Stream, data: &[u8]) {
    volume.frames.push(Frame::Data(format!("rechdr {origin} {} {}", stream.number(), data.len()).into_bytes()));
    volume.frames.push(Frame::Data(data.to_vec()));
}

#[test]
fn records_of_another_file_or_backup_are_mixed_with_nothing() {
    let mut attributes = Vec::new();
    fd_records::xattr::push(&mut attributes, b"user.of", b"another");
    let records: [(Stream, &[u8]); 4] = [
        (Stream::FILE_DATA, b"other"),
        (Stream::MD5, &[0; 16]),
        (Stream::LINUX_XATTR, &attributes),
        (Stream::LINUX_ACCESS_ACL, b"user::rwx\ngroup::rwx\nother::rwx\n"),
    ];
    // Another session, the same number begun at another time, another file of the session.
    for origin in ["2 1795226230 2", "1 1795226231 2", "1 1795226230 9", "1 1795226230 -2"] {
        for (stream, record) in records {
            let (place, finished) = between(|volume| {
                volume.put(&program("/f", 10)).record(Stream::FILE_DATA, b"hello");
                put_of(volume, origin, stream, record);
                volume.record(Stream::FILE_DATA, b"world");
            });
            let text = format!(
                "File {} may not be complete: a record of another file or backup came among its own.\n",
                place.text("f")
            );
            assert_eq!(finished.only(), (MessageType::Error, text.as_str()), "{origin} {stream}");
            assert_eq!((place.read("f"), place.mode("f")), (b"hello".to_vec(), UNFINISHED), "{origin} {stream}");
        }
    }
}

#[test]
fn a_file_whose_digest_has_come_is_whole_whatever_follows() {
    // Of "hello".
    let md5 = [0x5d, 0x41, 0x40, 0x2a, 0xbc, 0x4b, 0x2a, 0x76, 0xb9, 0x71, 0x9d, 0x91, 0x10, 0x17, 0xc5, 0x92];
    let (place, finished) = between(|volume| {
        volume.put(&program("/f", 5)).record(Stream::FILE_DATA, b"hello").record(Stream::MD5, &md5);
        put_of(volume, "2 1795226230 2", Stream::FILE_DATA, b"other");
    });
    assert_eq!(finished.only().0, MessageType::Error);
    assert_eq!((place.read("f"), place.mode("f")), (b"hello".to_vec(), 0o104_755));
}

#[test]
fn data_that_stands_where_none_is_taken_is_an_error() {
    for stream in [Stream::LINUX_ACCESS_ACL, Stream::LINUX_XATTR, Stream::FILE_EVENT, Stream::RESTORE_OBJECT] {
        let (place, finished) = between(|volume| {
            // It has the size of the first record: only the message tells.
            volume.put(&program("/f", 3)).record(Stream::FILE_DATA, b"one").record(stream, b"");
            volume.record(Stream::FILE_DATA, b"two");
        });
        let text = format!("File {} may not be complete: data of it came out of place.\n", place.text("f"));
        assert_eq!(finished.only(), (MessageType::Error, text.as_str()), "{stream}");
        assert_eq!((place.read("f"), place.mode("f")), (b"one".to_vec(), UNFINISHED), "{stream}");
    }
    let (place, finished) = between(|volume| {
        volume.put(&program("/f", 3)).record(Stream::FILE_DATA, b"one").record(Stream::SPARSE_DATA, &at(3, b"two"));
    });
    assert_eq!(finished.only().0, MessageType::Error);
    assert_eq!((place.read("f"), place.mode("f")), (b"one".to_vec(), UNFINISHED));
}

#[test]
fn addresses_of_sparse_data_never_go_back() {
    for (first, second) in [(0, 0), (0, 4), (7, 0), (5, 9)] {
        for stream in [Stream::SPARSE_DATA, Stream::new(Stream::BIT_OFFSETS | Stream::FILE_DATA.number())] {
            let (place, finished) = between(|volume| {
                volume
                    .put(&program("/f", 10))
                    .record(stream, &at(first, b"hello"))
                    .record(stream, &at(second, b"world"));
            });
            let end = first + 5;
            let text = format!(
                "Sparse data error on file {}. ERR=address {second} is before byte {end}, which is written already\n",
                place.text("f")
            );
            assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
            assert_eq!(place.mode("f"), UNFINISHED);
            assert!(place.read("f").ends_with(b"hello"));
        }
    }
    // A patch may.
    let (place, finished) = between(|volume| {
        let stream = Stream::new(Stream::BIT_OFFSETS | Stream::FILE_DATA.number());
        let mut saved = Saved::file("/f");
        saved.stat.size = 5;
        volume.put(&saved).record(Stream::FILE_DATA, b"hello");
        volume.patch(&saved).record(stream, &at(3, b"X")).record(stream, &at(0, b"Y")).stop();
    });
    finished.assert_quiet();
    assert_eq!(place.read("f"), b"YelXo");
}

/// Content of a part that says nothing is lost, and so is all behind a length that makes no sense.
#[test]
fn windows_data_that_ends_within_a_part_is_an_error() {
    let mut part = [1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
    part.extend_from_slice(b"hello");
    let mut senseless = part.clone();
    senseless[15] = 0x80;
    for more in [&part[..1], &part[..19], &part[..20], &part[..24], &senseless] {
        let (place, finished) = between(|volume| {
            let saved = Saved { data_stream: Stream::WIN32_DATA, ..program("/f", 5) };
            volume.put(&saved).record(Stream::WIN32_DATA, &[&part[..], more].concat());
        });
        let text = format!("Windows data of file {} is damaged, or its end is missing.\n", place.text("f"));
        assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
        assert_eq!(place.mode("f"), UNFINISHED);
    }
}

/// Puts a file that breaks off on the volume.
fn put_torn(volume: &mut Volume, name: &str) {
    let saved = Saved { data_stream: Stream::GZIP_DATA, ..program(name, 5) };
    volume.put(&saved).record(Stream::GZIP_DATA, b"no zlib");
}

#[test]
fn what_is_not_whole_gets_no_second_name_patch_or_update() {
    let others = [
        Saved { file_type: FileType::HardLink, link: b"/f".to_vec(), ..program("/other", 5) },
        Saved { delta_seq: 1, ..program("/f", 5) },
        Saved { stream: Stream::ATTRIBUTES_UPDATE, ..program("/f", 5) },
    ];
    for other in others {
        let (place, finished) = between(|volume| {
            put_torn(volume, "/f");
            if other.delta_seq == 0 {
                volume.put(&other);
            } else {
                volume
                    .patch(&other)
                    .record(Stream::new(Stream::BIT_OFFSETS | Stream::FILE_DATA.number()), &at(4, b"X"))
                    .stop();
            }
        });
        let told = finished.told();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told.iter().all(|(kind, _)| *kind == MessageType::Error), "{told:?}");
        assert!(told.iter().any(|(_, text)| text.ends_with("is not complete.\n")), "{told:?}");
        assert_eq!((place.mode("f"), place.exists("other")), (UNFINISHED, false), "{told:?}");
        assert_eq!(place.stat("f").len(), 0);
        // So the next restore makes it anew in every mode.
        let_it_be_old();
        let mut volume = Volume::new();
        volume.put(&program("/f", 5)).record(Stream::FILE_DATA, b"hello");
        place.job_with(Replace::Never).run(&volume).assert_quiet();
        assert_eq!((place.read("f"), place.mode("f")), (b"hello".to_vec(), 0o104_755));
    }
}

#[test]
fn a_file_that_is_complete_gets_them_also_with_the_mode_of_one_that_is_not() {
    let place = Place::new();
    let mut saved = Saved::new("/f", FileType::Regular, UNFINISHED);
    saved.stat.size = 5;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::FILE_DATA, b"hello");
    let link = Saved { name: b"/link".to_vec(), file_type: FileType::HardLink, link: b"/f".to_vec(), ..saved.clone() };
    let mut update = Saved { stream: Stream::ATTRIBUTES_UPDATE, ..saved };
    update.stat.mode = 0o100_640;
    volume.put(&link).put(&update);
    place.job().run(&volume).assert_quiet();
    assert_eq!((place.read("link"), place.mode("link")), (b"hello".to_vec(), 0o100_640));
}

#[test]
fn a_patch_that_breaks_off_leaves_no_program() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.put(&program("/f", 10)).record(Stream::FILE_DATA, b"0123456789");
    let stream = Stream::new(Stream::BIT_OFFSETS | Stream::FILE_DATA.number());
    volume.patch(&program("/f", 10)).record(stream, &at(2, b"XX")).record(stream, b"cut");
    let finished = place.job().run(&volume);
    assert_eq!(finished.only().0, MessageType::Error);
    assert_eq!((place.read("f"), place.mode("f")), (b"01XX456789".to_vec(), UNFINISHED));
    assert_ne!(std::os::unix::fs::MetadataExt::mtime(&place.stat("f")), MTIME);
}

#[test]
fn an_owner_that_no_system_has_makes_no_program_of_ours() {
    let (user, group) = my_ids();
    for (uid, gid, mode) in [(u32::MAX, group, 0o102_755), (user, u32::MAX, 0o104_755), (u32::MAX, u32::MAX, 0o100_755)]
    {
        let (place, finished) = between(|volume| {
            let mut saved = Saved::new("/f", FileType::Regular, 0o106_755);
            (saved.stat.uid, saved.stat.gid, saved.stat.size) = (uid, gid, 5);
            volume.put(&saved).record(Stream::FILE_DATA, b"hello");
        });
        assert_eq!(place.mode("f"), mode, "{uid} {gid}");
        let text = format!(
            "Set-id bits of {} not restored: its owner or group is not the one that was saved.\n",
            place.text("f")
        );
        assert_eq!(finished.only(), (MessageType::Error, text.as_str()), "{uid} {gid}");
    }
}
