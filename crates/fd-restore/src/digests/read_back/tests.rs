//! Tests of the digests of long files.

use std::io::Write as _;

use fd_crypto::Digester;

use super::*;

fn value(kind: DigestKind, data: &[u8]) -> DigestValue {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(data);
    digester.finish().unwrap()
}

fn md5(data: &[u8]) -> DigestValue {
    value(DigestKind::Md5, data)
}

fn file(data: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(data).unwrap();
    file
}

/// In each variant of the processor that has the kernel.
fn each_variant(check: impl Fn(LongFiles)) {
    let all: Vec<_> = Processor::variants().map(LongFiles::new).collect();
    assert!(all.iter().all(|files| !files.can_take(DigestKind::Sha1, 0)));
    let all: Vec<_> = all.into_iter().filter(|files| files.can_take(DigestKind::Md5, 1)).collect();
    if all.is_empty() {
        return skip::test("needs AVX2");
    }
    all.into_iter().for_each(check);
}

fn add(files: &mut LongFiles, file: &File, length: usize, kind: DigestKind, ticket: Ticket) {
    let recorded = Recorded::Digest(value(kind, b"recorded"));
    files.add(ticket, file.try_clone().unwrap(), length as u64, kind, recorded, b"name");
    files.leave();
}

/// What was found out by now.
fn known(files: &mut LongFiles) -> Vec<(Ticket, Finding)> {
    let mut known = Vec::new();
    files.settle(&mut |checked| known.push((checked.ticket, checked.finding)));
    assert!(known.iter().all(|(ticket, _)| !files.is_unknown(*ticket)));
    known
}

/// What was found out in the end, in the order of the files.
fn findings(files: &mut LongFiles) -> Vec<Finding> {
    files.finish();
    let known = known(files);
    assert!(files.is_empty());
    known.into_iter().map(|(_, finding)| finding).collect()
}

#[test]
fn each_file_has_its_own_finding_in_its_place() {
    each_variant(|mut files| {
        // Of no length, around blocks and pieces, and longer.
        let lengths = [0, 1, 63, 64, 65, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 64, 700_001, 1_000_000];
        let mut expected = Vec::new();
        let mut found = Vec::new();
        for (number, length) in lengths.into_iter().cycle().take(45).enumerate() {
            let data: Vec<u8> = (0..length).map(|at| (at * 7 / 3 + number).to_le_bytes()[0]).collect();
            let sha256 = number % 4 == 1 && files.can_take(DigestKind::Sha256, 0);
            let right = value(if sha256 { DigestKind::Sha256 } else { DigestKind::Md5 }, &data);
            add(&mut files, &file(&data), length, right.kind(), number as Ticket);
            assert!(files.is_unknown(number as Ticket));
            expected.push((number as Ticket, Finding::Has(right)));
            if files.go_on() {
                found.extend(known(&mut files));
            }
        }
        assert!(found.len() >= MOST_FILES, "a group was done before the next one");
        files.finish();
        found.extend(known(&mut files));
        assert!(files.is_empty());
        assert_eq!(found, expected);
    });
}

#[test]
fn as_few_files_as_are_digested_one_by_one_have_their_own_findings() {
    each_variant(|mut files| {
        for count in 1..=WORTH_IT {
            let contents: Vec<_> = (0..count).map(|number| vec![5; 3 * PIECE * number + 1000 + number]).collect();
            for data in &contents {
                add(&mut files, &file(data), data.len(), DigestKind::Md5, 0);
            }
            let expected: Vec<_> = contents.iter().map(|data| Finding::Has(md5(data))).collect();
            assert_eq!(findings(&mut files), expected);
        }
    });
}

#[test]
fn a_file_that_is_written_to_meanwhile_is_reported_as_changed() {
    each_variant(|mut files| {
        let data = vec![9; 200_000];
        let (same, longer, other, cut) = (file(&data), file(&data), file(&data), file(&data));
        for (number, file) in [&same, &longer, &other, &cut].into_iter().enumerate() {
            add(&mut files, file, data.len(), DigestKind::Md5, number as Ticket);
        }
        longer.write_at(b"more", 200_000).unwrap();
        other.write_at(b"other", 100_000).unwrap();
        other.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        cut.set_len(199_999).unwrap();
        let is = md5(&data);
        let mut changed = data.clone();
        changed[100_000..100_005].copy_from_slice(b"other");
        let [other, cut] = [md5(&changed), md5(&data[1..])].map(Finding::Changed);
        assert_eq!(findings(&mut files), [Finding::Has(is), Finding::Changed(is), other, cut]);
    });
}

#[test]
fn a_file_that_cannot_be_read_is_reported_and_the_others_are_checked() {
    each_variant(|mut files| {
        let data = vec![5; 70_000];
        add(&mut files, &file(&data), data.len(), DigestKind::Md5, 0);
        add(&mut files, &File::open("/").unwrap(), 100, DigestKind::Md5, 1);
        add(&mut files, &file(&data), data.len(), DigestKind::Md5, 2);
        let has = Finding::Has(md5(&data));
        assert_eq!(findings(&mut files), [has, Finding::Unreadable(Errno::EISDIR), has]);
    });
}

#[test]
fn a_canceled_job_makes_no_more_digests() {
    each_variant(|mut files| {
        let cancel = CancelToken::new();
        files.belong_to(&cancel);
        cancel.cancel();
        add(&mut files, &file(b"data"), 4, DigestKind::Md5, 0);
        assert_eq!(findings(&mut files), [Finding::Canceled]);
    });
}

#[test]
fn the_bytes_and_files_that_wait_are_bounded() {
    each_variant(|mut files| {
        let most = files.most_bytes;
        assert!(!files.can_take(DigestKind::Md5, most + 1));
        for turn in 0..3 {
            add(&mut files, &file(b""), usize::try_from(most / 2).unwrap(), DigestKind::Md5, turn as Ticket);
            files.go_on();
            assert_eq!(files.waiting.len(), (turn + 1) % 2);
        }
        for _ in 0..MOST_FILES * 2 {
            add(&mut files, &file(b""), 0, DigestKind::Md5, 9);
            files.go_on();
            assert!(files.waiting.len() < MOST_FILES);
        }
        assert_eq!(findings(&mut files).len(), 3 + 2 * MOST_FILES);
    });
}
