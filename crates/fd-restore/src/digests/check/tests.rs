//! Tests of how the digest of the current file is made.

use fd_records::DigestValue;
use nix::errno::Errno;

use super::*;
use crate::digests::expected::PATIENCE;

/// Longer than what is kept.
const LONG: usize = 700_001;

/// The kinds that are made of the first data if it can't be read again.
fn guessed() -> Vec<DigestKind> {
    DigestKind::ALL.into_iter().filter(|kind| *kind != DigestKind::Sha512).collect()
}

fn digest(kind: DigestKind, data: &[u8]) -> DigestValue {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(data);
    digester.finish().unwrap()
}

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 3).to_le_bytes()[1] ^ at.to_le_bytes()[0]).collect()
}

/// Restores a file; it can be opened for reading, or not.
fn restore(check: &mut DigestCheck, data: &[u8], in_order: bool, is_readable: bool) -> OutputFile {
    let mut file = OutputFile::empty(tempfile::tempfile().unwrap().into(), is_readable);
    check.begin(i64::try_from(data.len()).unwrap(), Some(&file));
    for piece in data.chunks(70_001) {
        check.update(piece, in_order, Some(&file));
        file.write(piece).unwrap();
    }
    file
}

/// What comes out for the file that was restored last.
fn finding(check: &mut DigestCheck, kind: DigestKind, recorded: Recorded, file: &OutputFile) -> Finding {
    match check.check(kind, recorded, b"name", Some(file)) {
        Answer::Now(_, finding) => finding,
        Answer::Later(ticket) => {
            check.leave();
            check.finish();
            let mut found = None;
            check.settle(|checked| found = (checked.ticket == ticket).then_some(checked.finding));
            assert!(!check.is_unknown(ticket));
            found.unwrap()
        }
    }
}

/// What comes out for the file that was restored last, once its digest record has come.
fn found(check: &mut DigestCheck, kind: DigestKind, file: &OutputFile) -> Finding {
    check.expected().record(kind);
    finding(check, kind, Recorded::Digest(digest(kind, b"recorded")), file)
}

/// A signature, of which these tests need nothing.
fn signature() -> Recorded {
    // SEQUENCE of the version and of no signers.
    Recorded::Signature(fd_crypto::pki::Signature::parse(&[0x30, 5, 2, 1, 0, 0x31, 0]).unwrap())
}

#[test]
fn small_files_are_digested_for_a_record_of_any_kind() {
    for processor in Processor::variants() {
        let mut check = DigestCheck::new(true, None, false, processor);
        for kind in DigestKind::ALL.into_iter().chain(DigestKind::ALL) {
            for data in [&b"one"[..], b"", b"three"] {
                let file = restore(&mut check, data, true, false);
                assert_eq!(found(&mut check, kind, &file), Finding::Has(digest(kind, data)), "{kind}");
            }
        }
    }
}

#[test]
fn the_first_file_is_digested_for_any_kind_if_small_or_readable() {
    for processor in Processor::variants() {
        for kind in DigestKind::ALL {
            for (length, in_order) in [(0, false), (65_537, false), (LONG, true)] {
                let mut check = DigestCheck::new(true, None, false, processor);
                let data = data(length);
                for turn in 0..2 {
                    let file = restore(&mut check, &data, in_order, true);
                    let value = digest(kind, &data);
                    assert_eq!(found(&mut check, kind, &file), Finding::Has(value), "{kind} {length} {turn}");
                }
            }
        }
    }
}

#[test]
fn a_long_file_that_cannot_be_read_is_digested_if_its_kind_is_expected() {
    let data = data(LONG);
    for processor in Processor::variants() {
        for kind in DigestKind::ALL {
            let mut check = DigestCheck::new(true, None, false, processor);
            for turn in 0..2 {
                let file = restore(&mut check, &data, false, false);
                let is_expected = turn > 0 || guessed().contains(&kind);
                let expected = if is_expected { Finding::Has(digest(kind, &data)) } else { Finding::None };
                assert_eq!(found(&mut check, kind, &file), expected, "{kind} {turn}");
            }
        }
    }
}

#[test]
fn the_first_data_of_a_plugin_is_digested_in_the_kinds_that_its_backups_have() {
    let data = data(LONG);
    let known = vec![DigestKind::Sha512];
    for (kinds, expected) in [(None, guessed()), (Some(known.clone()), known)] {
        for kind in DigestKind::ALL {
            let mut check = DigestCheck::new(true, kinds.clone(), false, Processor::chosen());
            for turn in 0..2 {
                check.begin(-1, None);
                check.update(&data, true, None);
                check.expected().record(kind);
                let is_checked = turn > 0 || expected.contains(&kind);
                let expected = if is_checked { Finding::Has(digest(kind, &data)) } else { Finding::None };
                assert_eq!(check.make_now(kind, None), expected, "{kind} {turn}");
            }
        }
    }
}

#[test]
fn a_file_that_was_left_is_digested_when_its_order_changes() {
    let data = data(LONG);
    let takes = |processor: &Processor| LongFiles::new(*processor).can_take(DigestKind::Md5, LONG as u64);
    let mut has_any = false;
    for processor in Processor::variants().filter(takes) {
        has_any = true;
        for (written, is_checked) in [(400_000, true), (399_999, false)] {
            let mut check = DigestCheck::new(true, None, false, processor);
            let mut file = OutputFile::empty(tempfile::tempfile().unwrap().into(), true);
            check.begin(i64::try_from(LONG).unwrap(), Some(&file));
            assert_eq!(check.basis, Basis::ReadBack);
            check.update(&data[..400_000], true, Some(&file));
            file.write(&data[..written]).unwrap();
            check.update(&data[400_000..], false, Some(&file));
            let expected = if is_checked { Finding::Has(digest(DigestKind::Md5, &data)) } else { Finding::None };
            assert_eq!(found(&mut check, DigestKind::Md5, &file), expected);
        }
    }
    if !has_any {
        skip::test::<()>("needs AVX2");
    }
}

#[test]
fn a_file_of_another_length_than_came_is_not_checked_by_reading_it() {
    for processor in Processor::variants() {
        let mut check = DigestCheck::new(true, None, false, processor);
        let mut file = restore(&mut check, &data(LONG), true, true);
        file.write(b"more").unwrap();
        let found = [&data(LONG), &b"more"[..]].concat();
        let changed = Finding::Changed(digest(DigestKind::Sha512, &found));
        assert_eq!(check.make_now(DigestKind::Sha512, Some(&file)), changed);
    }
}

#[test]
fn a_file_that_cannot_be_read_again_is_told_from_a_job_that_is_canceled() {
    let data = data(LONG);
    for processor in Processor::variants() {
        for is_canceled in [false, true] {
            let mut check = DigestCheck::new(true, None, false, processor);
            let cancel = CancelToken::default();
            check.belong_to(&cancel);
            // Open for writing only, which it is not known to be.
            let path = tempfile::NamedTempFile::new().unwrap();
            let only_written = std::fs::OpenOptions::new().write(true).open(path.path()).unwrap();
            let mut file = OutputFile::empty(only_written.into(), true);
            check.begin(i64::try_from(LONG).unwrap(), Some(&file));
            check.update(&data, true, Some(&file));
            file.write(&data).unwrap();
            if is_canceled {
                cancel.cancel();
            }
            let expected = if is_canceled { Finding::Canceled } else { Finding::Unreadable(Errno::EBADF) };
            assert_eq!(check.make_now(DigestKind::Sha512, Some(&file)), expected);
        }
    }
}

#[test]
fn a_file_is_not_read_again_if_it_is_too_long_or_of_unknown_length() {
    for processor in Processor::variants() {
        for size in [-1, i64::MAX] {
            let mut check = DigestCheck::new(true, None, false, processor);
            check.begin(size, Some(&OutputFile::empty(tempfile::tempfile().unwrap().into(), true)));
            assert!(!check.is_readable);
            assert_eq!(check.basis, Basis::Taken);
            assert_eq!(check.expected.kinds(false), guessed());
        }
    }
}

#[test]
fn signed_files_are_digested_for_their_signature_or_their_record() {
    for processor in Processor::variants() {
        for (records_count, length) in [(false, LONG), (true, LONG), (true, 5)] {
            let data = data(length);
            let mut check = DigestCheck::new(records_count, None, true, processor);
            for turn in 0..4 {
                let file = restore(&mut check, &data, true, true);
                if turn == 1 && records_count {
                    // It has no signature that counts, so its digest record does.
                    assert_eq!(found(&mut check, DigestKind::Md5, &file), Finding::Has(digest(DigestKind::Md5, &data)));
                    continue;
                }
                check.expected().signature();
                let sha256 = finding(&mut check, DigestKind::Sha256, signature(), &file);
                assert_eq!(sha256, Finding::Has(digest(DigestKind::Sha256, &data)));
                // One that is given up leaves nothing behind.
                restore(&mut check, &data, true, true);
                check.abandon();
            }
        }
    }
}

#[test]
fn a_job_without_digests_prepares_for_none_until_one_comes() {
    for processor in Processor::variants() {
        let mut check = DigestCheck::new(true, None, false, processor);
        for _ in 0..PATIENCE {
            restore(&mut check, b"data", true, true);
            assert_eq!(check.basis, Basis::Taken);
        }
        prepares_for_none_until_one_comes(check);
        // A file that is not small tells as much as many small ones.
        let mut check = DigestCheck::new(true, None, false, processor);
        restore(&mut check, &data(LONG), true, true);
        prepares_for_none_until_one_comes(check);
        // And so do the backups.
        let mut check = DigestCheck::new(true, Some(Vec::new()), false, processor);
        // Of data that can't be read again, too.
        check.begin(-1, None);
        assert_eq!(check.basis, Basis::Unprepared);
        prepares_for_none_until_one_comes(check);
    }
}

fn prepares_for_none_until_one_comes(mut check: DigestCheck) {
    for (kind, before) in [(DigestKind::Sha1, Basis::Unprepared), (DigestKind::Md5, Basis::Taken)] {
        let file = restore(&mut check, b"data", true, true);
        assert_eq!(check.basis, before);
        assert_eq!(found(&mut check, kind, &file), Finding::Has(digest(kind, b"data")));
    }
    // Of data that a plugin takes, too.
    check.begin(-1, None);
    assert_eq!(check.basis, Basis::Taken);
}

#[test]
fn a_file_of_a_known_kind_is_not_read_again_when_its_order_changes() {
    let data = data(LONG);
    for processor in Processor::variants() {
        let mut check = DigestCheck::new(true, None, false, processor);
        check.expected().record(DigestKind::Sha1);
        let file = OutputFile::empty(tempfile::tempfile().unwrap().into(), true);
        check.begin(i64::try_from(LONG).unwrap(), Some(&file));
        if check.basis == Basis::ReadBack {
            continue;
        }
        // Nothing of it is in the file, so that reading it again would find that.
        check.update(&data[..400_000], true, Some(&file));
        check.update(&data[400_000..], false, Some(&file));
        assert_eq!(check.make_now(DigestKind::Sha1, Some(&file)), Finding::Has(digest(DigestKind::Sha1, &data)));
    }
}

#[test]
fn what_can_not_be_read_again_is_prepared_for_behind_a_long_file_without_a_digest() {
    let data = data(LONG);
    let long = i64::try_from(LONG).unwrap();
    let value = Finding::Has(digest(DigestKind::Md5, &data));
    for processor in Processor::variants() {
        let mut check = DigestCheck::new(true, None, false, processor);
        check.begin(long, None);
        // Data that a plugin takes.
        check.begin(long, None);
        check.update(&data, true, None);
        assert_eq!(check.make_now(DigestKind::Md5, None), value);
        // A file whose order changes.
        let mut file = OutputFile::empty(tempfile::tempfile().unwrap().into(), true);
        check.begin(long, Some(&file));
        assert_eq!(check.basis, Basis::Unprepared);
        check.update(&data[..400_000], true, Some(&file));
        file.write(&data[..400_000]).unwrap();
        check.update(&data[400_000..], false, Some(&file));
        assert_eq!(check.make_now(DigestKind::Md5, Some(&file)), value);
    }
}

#[test]
fn the_first_file_is_expected_to_have_the_digest_that_backups_want() {
    for processor in Processor::variants() {
        for (wanted, expected) in [(None, DigestKind::Md5), (Some(DigestKind::Sha512), DigestKind::Sha512)] {
            let wanted = wanted.map(|kind| [kind].into_iter().collect());
            let mut check = DigestCheck::new(true, wanted, false, processor);
            let file = restore(&mut check, &data(LONG), true, true);
            assert_eq!(check.expected.kinds(true), [expected]);
            // Another one is made of the file itself.
            let value = digest(DigestKind::Xxh64, &data(LONG));
            assert_eq!(found(&mut check, DigestKind::Xxh64, &file), Finding::Has(value));
        }
    }
}

#[test]
fn an_abandoned_file_and_a_disabled_check_have_no_digest() {
    for processor in Processor::variants() {
        for (records_count, length) in [(true, 4), (true, LONG), (false, 4), (false, LONG)] {
            let mut check = DigestCheck::new(records_count, None, false, processor);
            let file = restore(&mut check, &data(length), true, true);
            if records_count {
                check.abandon();
            }
            assert_eq!(found(&mut check, DigestKind::Md5, &file), Finding::None);
        }
    }
}

#[test]
fn digests_of_many_small_files_are_each_that_of_their_file() {
    for processor in Processor::variants() {
        let mut check = DigestCheck::new(true, None, false, processor);
        let file = restore(&mut check, b"first", true, true);
        found(&mut check, DigestKind::Md5, &file);
        // Sizes around those of blocks, one that is longer than announced, and some that stand out.
        let sizes = [0, 1, 63, 64, 65, 5000, 20_000, 600_000, 250_000, 17, 524_288, 524_289, 524_288];
        for _ in 0..3 {
            let mut expected = Vec::new();
            for (number, size) in sizes.into_iter().enumerate() {
                let data: Vec<u8> = (0..size).map(|at: usize| (at * 7 + number).to_le_bytes()[0]).collect();
                let kind = if number % 5 == 2 { DigestKind::Sha256 } else { DigestKind::Md5 };
                check.begin(0, Some(&file));
                data.chunks(65_536).for_each(|piece| check.update(piece, true, Some(&file)));
                check.expected().record(DigestKind::Md5);
                let recorded = Recorded::Digest(digest(DigestKind::Md5, b""));
                match check.check(kind, recorded, number.to_string().as_bytes(), Some(&file)) {
                    Answer::Later(ticket) => expected.push((ticket, number, Finding::Has(digest(kind, &data)))),
                    Answer::Now(_, finding) => {
                        assert!(size > 524_288, "{size}");
                        assert!(kind != DigestKind::Md5 || finding == Finding::Has(digest(kind, &data)));
                    }
                }
            }
            // In the middle of a file.
            check.begin(0, Some(&file));
            check.update(b"one", true, Some(&file));
            let mut settled = Vec::new();
            check.settle(|checked| {
                let name = String::from_utf8(checked.name.to_vec()).unwrap();
                settled.push((checked.ticket, name.parse().unwrap(), checked.finding));
            });
            settled.sort_unstable_by_key(|(ticket, ..)| *ticket);
            assert_eq!(settled, expected);
            assert!(!check.has_small());
            check.update(b"more", true, Some(&file));
            let value = check.make_now(DigestKind::Md5, Some(&file));
            assert_eq!(value, Finding::Has(digest(DigestKind::Md5, b"onemore")));
        }
    }
}

#[test]
fn of_a_first_file_that_can_be_read_again_only_the_likely_digest_is_made() {
    let data = data(LONG);
    for likely in guessed() {
        let mut kinds = guessed();
        kinds.sort_by_key(|kind| *kind != likely);
        let mut check = DigestCheck::new(true, Some(kinds), false, Processor::chosen());
        let _file = restore(&mut check, &data, true, false);
        let made: Vec<_> = guessed().into_iter().filter(|kind| check.taken.make_now(*kind).is_some()).collect();
        assert_eq!(made, [likely]);
    }
}
