//! Hostile records in a Verify: cut, damaged, in any order, of any stream. What the Director gets
//! stays well-formed.

use fd_messages::MessageType;
use fd_records::{DigestKind, FileType, Stream};
use fd_restore::verify::{Checks, VerifyError};
use fd_restore::{End, SequenceError};

use crate::damage::{everything, next, pick};
use crate::verify::{MD5, Verified, md5, verify_data, verify_volume};
use crate::volume::{Frame, Saved, Volume};

/// Both levels.
const LEVELS: [fn(&Volume) -> Verified; 2] = [verify_volume, |volume| verify_data(volume, MD5, None)];

/// Each packet is one that a Director takes: attributes with a number of their own, or the digest
/// of the attributes right before.
fn check_packets(packets: &[Vec<u8>], files: u32) {
    let mut last = None;
    for packet in packets {
        let text = String::from_utf8_lossy(packet);
        let mut words = text.split(' ');
        let (number, stream) = (words.next().unwrap().parse::<u32>().unwrap(), words.next().unwrap());
        if stream == "1" {
            assert_eq!(words.next(), Some("pinsug5"), "{text:?}");
            assert_eq!(packet.split(|byte| *byte == 0).count(), 4, "{text:?}");
            assert!(number == 0 || last.is_none_or(|last| number > last), "{text:?} after {last:?}");
            assert!(number <= files, "{text:?} of {files} files");
            last = Some(number.max(last.unwrap_or(0)));
        } else {
            let stream = Stream::new(stream.parse().unwrap());
            assert!(DigestKind::ALL.into_iter().any(|kind| kind.stream() == stream), "{text:?}");
            let digest = words.next().unwrap();
            let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
            assert!(digest.len() <= 86 && digest.bytes().all(is_base64), "{text:?}");
            assert!(text.ends_with(&format!("-{number}*")), "{text:?}");
            assert!(last.is_some(), "{text:?} before any file");
        }
    }
}

#[test]
fn a_verified_volume_may_end_anywhere() {
    let volume = everything();
    for end in 0..volume.frames.len() {
        for level in LEVELS {
            let mut cut = volume.clone();
            cut.frames.truncate(end);
            let told = level(&cut);
            if end % 2 == 0 {
                assert_eq!(told.outcome.as_ref().unwrap().end, End::EndOfData);
            } else {
                assert_eq!(told.outcome.as_ref().unwrap_err(), &VerifyError::Sequence(SequenceError::NoData(None)));
                let text = "verify_vol.c:390 Data record error. ERR=No data available\n";
                assert_eq!(told.findings().last(), Some(&(MessageType::Fatal, text)));
            }
            cut.frames.push(Frame::Cancel);
            assert_eq!(level(&cut).outcome.unwrap().end, End::Canceled);
        }
    }
}

#[test]
fn flipped_bits_leave_the_packets_well_formed() {
    let volume = everything();
    let mut seed = 3;
    for _ in 0..400 {
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
        let told = verify_volume(&damaged);
        assert_eq!(told.outcome.as_ref().unwrap().end, End::EndOfData);
        check_packets(&told.packets, told.files);
        // Only data that can't be unpacked ends the other level, with a message.
        match verify_data(&damaged, MD5, None).outcome {
            Ok(outcome) => assert_eq!(outcome.end, End::EndOfData),
            Err(error) => assert!(matches!(error, VerifyError::Data(_)), "{error}"),
        }
    }
}

#[test]
fn records_in_any_order_leave_the_packets_well_formed() {
    let volume = everything();
    let records: Vec<_> = volume.frames.chunks(2).map(|pair| [pair[0].clone(), pair[1].clone()]).collect();
    let mut seed = 5;
    for _ in 0..300 {
        let mut shuffled = Volume::new();
        for _ in 0..records.len() {
            let [header, data] = records[pick(&mut seed, records.len())].clone();
            if next(&mut seed).is_multiple_of(3) {
                let Frame::Data(data) = data else { continue };
                shuffled.record(Stream::new(u32::try_from(next(&mut seed) % 50).unwrap()), &data);
            } else {
                shuffled.frames.extend([header, data]);
            }
        }
        let told = verify_volume(&shuffled);
        assert_eq!(told.outcome.as_ref().unwrap().end, End::EndOfData);
        check_packets(&told.packets, told.files);
        let _any_end_but_a_panic = verify_data(&shuffled, MD5, None).outcome;
    }
}

#[test]
fn digests_without_a_file_or_of_a_wrong_length_do_no_harm() {
    let mut volume = Volume::new();
    volume.record(Stream::MD5, &[1; 16]).record(Stream::RESTORE_OBJECT, b"?").record(Stream::SHA1, &[1; 20]);
    volume.file("/f", b"x").record(Stream::MD5, b"").record(Stream::MD5, &[1; 1000]).record(Stream::SHA512, b"short");
    let told = verify_volume(&volume);
    check_packets(&told.packets, told.files);
    assert_eq!(told.packets.len(), 4, "{:?}", told.packets);
    assert_eq!(told.packets[1], b"2 3  *MD5-2*");
    let told = verify_data(&volume, MD5, None);
    assert!(told.differs());
    assert_eq!(told.outcome.unwrap().end, End::EndOfData);
}

#[test]
fn lengths_and_addresses_do_not_overflow() {
    let mut volume = Volume::new();
    let mut sparse = Saved { data_stream: Stream::SPARSE_DATA, ..Saved::file("/sparse") };
    sparse.stat.size = i64::MAX;
    volume.put(&sparse);
    for address in [u64::MAX, u64::MAX - 1, 1 << 63] {
        volume.record(Stream::SPARSE_DATA, &[&address.to_be_bytes()[..], b"end"].concat());
    }
    volume.record(Stream::MD5, &md5(b"endendend"));
    let mut negative = Saved::new("/negative", FileType::Regular, 0o100_644);
    negative.stat.size = -1;
    volume.put(&negative).record(Stream::FILE_DATA, b"").record(Stream::MD5, &md5(b""));
    let told = verify_data(&volume, MD5, None);
    assert_eq!(
        told.findings(),
        [
            (
                MessageType::Info,
                "   st_size  differs on \"/sparse\". Vol: 18446744073709551615 File: 9223372036854775807\n"
            ),
            (MessageType::Info, "   st_size  differs on \"/negative\". Vol: 0 File: -1\n"),
        ]
    );
    assert!(told.differs());
}

#[test]
fn a_record_that_unpacks_to_too_much_ends_the_verify_with_a_message() {
    let bomb = {
        let mut packed = Vec::new();
        let mut compressor = fd_compress::Compressor::new(fd_records::Compression::Gzip(9)).unwrap();
        compressor.compress(&vec![0; 20 << 20], &mut packed).unwrap();
        packed
    };
    assert!(bomb.len() < 100_000);
    let mut volume = Volume::new();
    volume.put(&Saved { data_stream: Stream::GZIP_DATA, ..Saved::file("/bomb") }).record(Stream::GZIP_DATA, &bomb);
    let told = verify_data(&volume, MD5, None);
    assert_eq!(told.outcome.as_ref().unwrap_err(), &VerifyError::Data("/bomb".to_owned()));
    assert!(told.findings()[0].1.starts_with("Uncompression error on file /bomb. ERR="), "{:?}", told.findings());
}

/// It is what a verify of data is for.
#[test]
fn a_file_of_which_no_data_comes_differs() {
    let mut saved = Saved::file("/f");
    saved.stat.size = 5;
    let mut volume = Volume::new();
    volume.put(&saved).file("/after", b"good");
    let verified = verify_data(&volume, MD5, None);
    let text = "   st_size  differs on \"/f\". Vol: 0 File: 5\n";
    assert_eq!((verified.findings(), verified.differs()), (vec![(MessageType::Info, text)], true));
    // Also where sizes are not asked for, if its digest is lost as well.
    let digests = Checks { size: false, ..MD5 };
    let verified = verify_data(&volume, digests, None);
    assert_eq!((verified.findings(), verified.differs()), (vec![(MessageType::Info, text)], true));
    // It was emptied while it was saved.
    let mut emptied = Volume::new();
    emptied.put(&saved).record(Stream::MD5, &md5(b""));
    for (volume, checks) in [(&emptied, digests), (&volume, Checks::default())] {
        assert_eq!(verify_data(volume, checks, None).findings(), []);
    }
    // The record that ends a plugin's file was lost before it.
    let mut volume = Volume::new();
    volume.start("tp:x").put(&Saved::file("/one")).put(&saved);
    assert!(verify_data(&volume, digests, None).differs());
    // What a plugin has saved may have no data, links and encrypted files have none to compare.
    let mut volume = Volume::new();
    volume.start("tp:x").put(&saved).stop();
    saved.file_type = FileType::HardLink;
    volume.put(&saved);
    for checks in [MD5, digests] {
        assert!(!verify_data(&volume, checks, None).differs());
    }
}

#[test]
fn data_behind_its_digest_differs_and_is_not_taken_for_the_next_file() {
    let mut volume = Volume::new();
    volume.file("/f", b"one").record(Stream::MD5, &md5(b"one")).record(Stream::FILE_DATA, b"two");
    volume.record(Stream::FILE_DATA, b"three");
    volume.file("/after", b"good").record(Stream::MD5, &md5(b"good"));
    let verified = verify_data(&volume, MD5, None);
    let text = "Data of /f came out of place: it is not compared.\n";
    assert_eq!((verified.findings(), verified.differs()), (vec![(MessageType::Info, text)], true));
}
