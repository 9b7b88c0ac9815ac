//! Digests of small files, made together.

use fd_crypto::Digester;

use super::*;

/// Each variant of the processor. Where it has no lanes for a kind, its digests are made one by one.
fn each_variant(check: impl Fn(Processor)) {
    Processor::variants().for_each(check);
}

fn digest(kind: DigestKind, bytes: &[u8]) -> Vec<u8> {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(bytes);
    digester.finish().unwrap().as_bytes().to_vec()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + len).to_le_bytes()[0]).collect()
}

/// Files of these sizes, the digest of each of the kinds in turn, settled after each `settle_every`; `blocks` bytes come
/// at a time.
fn all(processor: Processor, sizes: &[usize], settle_every: usize, blocks: usize) {
    let kinds = KINDS;
    let mut late = LateDigests::new(processor);
    let mut frames = vec![0; sizes.len() * 32];
    for (number, size) in sizes.iter().enumerate() {
        let kind = kinds[number / 3 % kinds.len()];
        late.begin([None, Some(kind)]);
        for (count, block) in bytes(*size).chunks(blocks).enumerate() {
            late.keep(block).unwrap();
            if count == 1 {
                // In the middle of a file a piece may be full.
                late.settle(&mut frames, None).unwrap();
            }
        }
        let places = Places { record: Some((kind, number * 32)), signature: None };
        late.end(&mut frames, places, None).unwrap();
        if number % settle_every == 0 {
            late.settle(&mut frames, None).unwrap();
        }
    }
    late.settle(&mut frames, None).unwrap();
    assert!(late.kept.is_empty());
    for (number, size) in sizes.iter().enumerate() {
        let kind = kinds[number / 3 % kinds.len()];
        let expected = digest(kind, &bytes(*size));
        assert_eq!(frames[number * 32..][..kind.len()], expected, "{kind} of {size} with {processor}");
    }
}

#[test]
fn every_file_gets_its_own_digest() {
    let even: Vec<usize> = (0..70).collect();
    let mixed: Vec<usize> = (0..70).map(|n| if n % 9 == 0 { 90_000 + n } else { n * 37 }).collect();
    each_variant(|processor| {
        for settle_every in [1, 17, 1000] {
            all(processor, &even, settle_every, 65_536);
            all(processor, &mixed, settle_every, 65_536);
            all(processor, &mixed, settle_every, 1000);
        }
        all(processor, &[600_000, 5, 1_200_000, 0, 524_288, 524_289], 1000, 65_536);
    });
}

#[test]
fn a_file_that_is_given_up_leaves_nothing_behind() {
    each_variant(|processor| {
        for kind in KINDS {
            let mut late = LateDigests::new(processor);
            let mut frames = vec![0; kind.len()];
            late.begin([Some(kind), None]);
            late.keep(b"the beginning of a file that can't be read on").unwrap();
            late.begin([Some(kind), None]);
            late.keep(b"abc").unwrap();
            late.end(&mut frames, Places { record: Some((kind, 0)), signature: None }, None).unwrap();
            late.settle(&mut frames, None).unwrap();
            assert_eq!(frames, digest(kind, b"abc"));
        }
    });
}

/// Nothing may leave unsigned.
#[test]
fn a_signature_that_nobody_can_make_is_an_error() {
    each_variant(|processor| {
        for kind in KINDS {
            let mut late = LateDigests::new(processor);
            late.begin([Some(kind), None]);
            late.end(&mut [0; 400], Places { record: None, signature: Some((kind, 0)) }, None).unwrap();
            assert!(matches!(late.settle(&mut [0; 400], None), Err(Halt::Digest(_))));
        }
    });
}
