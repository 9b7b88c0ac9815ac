//! Digests of a batch against those of a digester alone.

use super::*;
use crate::Digester;

const KINDS: [DigestKind; 3] = [DigestKind::Md5, DigestKind::Sha256, DigestKind::Sha1];

fn set(kind: DigestKind) -> DigestSet {
    DigestSet::EMPTY.with(kind)
}

fn digest(kind: DigestKind, bytes: &[u8]) -> DigestValue {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(bytes);
    digester.finish().unwrap()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + len).to_le_bytes()[0]).collect()
}

/// Messages of these lengths, one or two kinds of each in turn, finished after each `finish_every`;
/// `part` bytes come at a time.
fn all(processor: Processor, lengths: &[usize], finish_every: usize, part: usize) {
    let mut batch = DigestBatch::new(processor);
    let mut found = Vec::new();
    let mut keep = |number: &usize, values: &DigestValues| {
        found.push((*number, *values));
        Ok::<_, ()>(())
    };
    let kinds = |number: usize| {
        let kind = |number: usize| KINDS[number / 3 % KINDS.len()];
        if number % 4 == 3 { set(kind(number)).with(kind(number + 3)) } else { set(kind(number)) }
    };
    for (number, length) in lengths.iter().enumerate() {
        batch.begin(kinds(number));
        for (count, part) in bytes(*length).chunks(part).enumerate() {
            batch.push(part);
            if count == 1 {
                // The present message is not affected.
                batch.finish(&mut keep).unwrap();
            }
        }
        batch.end(kinds(number), number);
        if number % finish_every == 0 {
            batch.finish(&mut keep).unwrap();
        }
    }
    batch.finish(&mut keep).unwrap();
    assert!(batch.kept.is_empty() && !batch.has_messages());
    assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..lengths.len()).collect::<Vec<_>>());
    for ((number, values), length) in found.iter().zip(lengths) {
        for kind in DigestKind::ALL {
            let expected = kinds(*number).contains(kind).then(|| digest(kind, &bytes(*length)));
            assert_eq!(values.get(kind), expected, "{kind} of {length} with {processor}");
        }
    }
}

#[test]
fn each_message_has_its_own_digests_in_each_variant() {
    let even: Vec<usize> = (0..70).collect();
    let mixed: Vec<usize> = (0..70).map(|n| if n % 9 == 0 { 90_000 + n } else { n * 37 }).collect();
    for processor in Processor::variants() {
        for finish_every in [1, 17, 1000] {
            all(processor, &even, finish_every, 65_536);
            all(processor, &mixed, finish_every, 65_536);
            all(processor, &mixed, finish_every, 1000);
        }
        all(processor, &[600_000, 5, 1_200_000, 0, 524_288, 524_289], 1000, 65_536);
    }
}

#[test]
fn a_message_that_is_given_up_leaves_nothing_behind() {
    for processor in Processor::variants() {
        for kind in KINDS {
            let mut batch = DigestBatch::new(processor);
            for given_up in [70, LONGEST + 1] {
                batch.begin(set(kind));
                batch.push(&bytes(given_up));
                batch.begin(set(kind));
                batch.push(b"abc");
                batch.end(set(kind), ());
                let check = |(): &(), values: &DigestValues| {
                    assert_eq!(values.get(kind), Some(digest(kind, b"abc")));
                    Ok::<_, ()>(())
                };
                batch.finish(check).unwrap();
            }
        }
    }
}

#[test]
fn a_kind_known_only_at_the_end_is_made_of_the_kept_data() {
    for processor in Processor::variants() {
        let mut batch = DigestBatch::new(processor);
        for (length, is_there) in [(100, true), (LONGEST, true), (LONGEST + 1, false)] {
            let data = bytes(length);
            batch.begin(set(DigestKind::Md5));
            batch.push(&data);
            assert_eq!(batch.can_make(DigestKind::Xxh64), is_there);
            batch.end(set(DigestKind::Xxh64), ());
            let expected = is_there.then(|| digest(DigestKind::Xxh64, &data));
            batch.begin(set(DigestKind::Md5));
            batch.push(&data);
            assert_eq!(batch.end_alone(DigestKind::Xxh64), expected);
            let check = |(): &(), values: &DigestValues| {
                assert_eq!(values.get(DigestKind::Xxh64), expected);
                assert_eq!(values.get(DigestKind::Md5), None);
                Ok::<_, ()>(())
            };
            batch.finish(check).unwrap();
            batch.begin(set(DigestKind::Md5));
            batch.push(&data);
            assert_eq!(batch.end_alone(DigestKind::Md5), Some(digest(DigestKind::Md5, &data)));
        }
    }
}

#[test]
fn after_an_error_all_messages_stay() {
    let mut batch = DigestBatch::new(Processor::chosen());
    batch.begin(set(DigestKind::Md5));
    batch.end(set(DigestKind::Md5), ());
    let mut failures = 2;
    let mut each = |(): &(), _: &DigestValues| {
        let is_over = failures == 0;
        failures -= i32::from(!is_over);
        is_over.then_some(()).ok_or(())
    };
    for is_over in [false, false, true] {
        assert_eq!(batch.finish(&mut each).is_ok(), is_over);
        assert_eq!(batch.has_messages(), !is_over);
    }
}

#[test]
fn a_batch_is_full_with_so_many_bytes_or_messages() {
    let mut batch = DigestBatch::new(Processor::chosen());
    for length in [LONGEST, 0] {
        for count in 1.. {
            batch.begin(set(DigestKind::Md5));
            batch.push(&vec![0; length]);
            batch.end(set(DigestKind::Md5), ());
            if batch.is_full() {
                assert_eq!(count, if length == 0 { MOST_MESSAGES } else { MOST_BYTES / LONGEST });
                break;
            }
        }
        batch.clear();
        assert!(!batch.is_full());
    }
}
