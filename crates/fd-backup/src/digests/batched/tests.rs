//! Digests and signatures that are filled in when their piece is complete.

use fd_crypto::processor::Processor;
use fd_crypto::{DigestSet, Digester};

use super::*;

const KIND: DigestKind = DigestKind::Md5;

fn digest(bytes: &[u8]) -> Vec<u8> {
    let mut digester = Digester::new(KIND).unwrap();
    digester.update(bytes);
    digester.finish().unwrap().as_bytes().to_vec()
}

fn save(batch: &mut DigestBatch<Places>, data: &[u8], places: Places) {
    let kinds = DigestSet::EMPTY.with(KIND);
    batch.begin(kinds);
    batch.push(data);
    batch.end(kinds, places);
}

/// Each file's digest goes to its own place, also that of a file that was too long to be kept.
#[test]
fn each_digest_is_filled_in_at_its_place() {
    let contents = [b"abc".to_vec(), Vec::new(), vec![7; 600_000], vec![9; 70_000]];
    for processor in Processor::variants() {
        let mut batch = DigestBatch::new(processor);
        let mut frames = vec![0xee; contents.len() * 20];
        for (number, content) in contents.iter().enumerate() {
            save(&mut batch, content, Places { record: Some((KIND, number * 20 + 2)), signature: None });
        }
        settle(&mut batch, &mut frames, None).unwrap();
        for (place, content) in frames.chunks(20).zip(&contents) {
            assert_eq!(place, [&[0xee; 2], digest(content).as_slice(), &[0xee; 2]].concat(), "{processor}");
        }
        frames.fill(0);
        settle(&mut batch, &mut frames, None).unwrap();
        assert!(frames.iter().all(|byte| *byte == 0), "nothing is filled in twice");
    }
}

/// Nothing may leave unsigned, and a second attempt is no better.
#[test]
fn a_signature_that_can_not_be_made_is_an_error_each_time() {
    for processor in Processor::variants() {
        let mut batch = DigestBatch::new(processor);
        save(&mut batch, b"abc", Places { record: None, signature: Some((KIND, 0)) });
        for _ in 0..2 {
            assert!(matches!(settle(&mut batch, &mut [0; 400], None), Err(Halt::Digest(KIND))));
        }
    }
}
