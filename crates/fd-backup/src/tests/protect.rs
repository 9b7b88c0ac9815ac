//! Encrypted and signed files: the order of their records and their contents (reference 04 §4,
//! §12).

use std::fs;
use std::sync::Arc;
use std::thread;

use fd_crypto::Digester;
use fd_crypto::pki::{
    Certificate, Decryptor, KeyPair, KeyRing, PrivateKey, SessionOpener, Signature, SignatureVerdict,
};
use fd_records::{ContentCipher, DigestKind, DigestValue, Stream};

use super::support::{self, Bed};
use crate::Protection;

const OWN: &[u8] = include_bytes!("../../../fd-crypto/testdata/own.pem");

pub(super) fn protection(digest: DigestKind, encryption: Option<ContentCipher>) -> Arc<Protection> {
    let own = KeyPair { certificate: Certificate::from_pem(OWN).unwrap(), private: PrivateKey::from_pem(OWN).unwrap() };
    let keys = Arc::new(KeyRing { own, signers: Vec::new(), masters: Vec::new() });
    Arc::new(Protection { keys, digest, encryption })
}

fn decrypt(protection: &Protection, session: &[u8], messages: &[Vec<u8>]) -> Vec<u8> {
    let mut decryptor = Decryptor::new(&SessionOpener::default().open(session, &protection.keys).unwrap()).unwrap();
    for message in messages {
        decryptor.record(message).unwrap();
    }
    decryptor.finish().unwrap();
    let mut plain = Vec::new();
    while let Some(block) = decryptor.next_block().unwrap() {
        plain.extend_from_slice(block);
    }
    plain
}

#[test]
fn encrypted_records_have_the_stock_order_and_can_be_decrypted() {
    let mut bed = Bed::with_lines(&["I", "O M", "N", "F @/dir", "N", "N"]);
    fs::create_dir(bed.path("dir")).unwrap();
    let data: Vec<u8> = (0..=255).cycle().take(150_000).collect();
    fs::write(bed.path("dir/file"), &data).unwrap();
    fs::write(bed.path("dir/empty"), b"").unwrap();
    bed.plan.protection = Some(protection(DigestKind::Sha256, Some(ContentCipher::Aes192)));
    let outcome = bed.run();
    assert_eq!(outcome.streams(&bed.name("dir/file")), [1, 22, 20, 19, 3]);
    assert_eq!(outcome.streams(&bed.name("dir/empty")), [1, 22, 19, 3]);
    assert_eq!(outcome.streams(&bed.name("dir/")), [1]);
    let records = outcome.of(&bed.name("dir/file"));
    assert_eq!(records[2].messages.iter().map(Vec::len).collect::<Vec<_>>(), [65_536, 65_536, 18_928, 16]);
    let protection = bed.plan.protection.as_ref().unwrap();
    assert_eq!(decrypt(protection, &records[1].data(), &records[2].messages), data);
    let signed = Signature::parse(&records[3].data()).unwrap().verify(&protection.keys, |kind| {
        let mut digester = Digester::new(kind).unwrap();
        digester.update(&data);
        digester.finish().ok()
    });
    assert!(matches!(signed, SignatureVerdict::Good));
    assert_eq!(records[0].attributes().lstat.data_stream, Stream::ENCRYPTED_FILE_DATA);
}

#[test]
fn signatures_without_encryption_do_not_change_the_data() {
    let mut bed = Bed::with_lines(&["I", "O S2", "N", "F @/file", "N", "N"]);
    fs::write(bed.path("file"), b"data").unwrap();
    bed.plan.protection = Some(protection(DigestKind::Sha256, None));
    let outcome = bed.run();
    assert_eq!(outcome.streams(&bed.name("file")), [1, 2, 19, 17]);
    assert_eq!(outcome.of(&bed.name("file"))[1].data(), b"data");
}

fn digest(kind: DigestKind, data: &[u8]) -> DigestValue {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(data);
    digester.finish().unwrap()
}

/// Small files whose digests and signatures are computed together, long ones, one with two names,
/// and one of medium size, with each combination of signed and recorded digests.
#[test]
fn each_file_has_its_own_digest_and_signature() {
    let sizes = (0..70_usize).map(|n| n * 37).chain([100_000, 262_144, 262_145, 0, 64, 700_003, 5]);
    let files: Vec<(String, Vec<u8>)> = sizes
        .enumerate()
        .map(|(number, len)| {
            let data = (0..len).map(|at: usize| (at.wrapping_mul(31 + number) >> 3).to_le_bytes()[0]).collect();
            (format!("dir/{number:02}"), data)
        })
        .collect();
    for (option, recorded) in [
        ("O M", Some(DigestKind::Md5)),
        ("O S2", Some(DigestKind::Sha256)),
        ("O S", Some(DigestKind::Sha1)),
        ("O h", None),
    ] {
        for (signed, encryption) in
            [(DigestKind::Sha256, Some(ContentCipher::Aes256)), (DigestKind::Sha256, None), (DigestKind::Md5, None)]
        {
            let mut bed = Bed::with_lines(&["I", option, "N", "F @/dir", "N", "N"]);
            fs::create_dir(bed.path("dir")).unwrap();
            for (name, data) in &files {
                fs::write(bed.path(name), data).unwrap();
            }
            fs::hard_link(bed.path("dir/50"), bed.path("dir/other")).unwrap();
            bed.plan.workers = 2;
            bed.plan.protection = Some(protection(signed, encryption));
            let records = bed.run().records();
            let keys = &bed.plan.protection.as_ref().unwrap().keys;
            for (name, data) in &files {
                let attributes = records.iter().find(|record| record.stream == 1 && record.name() == bed.name(name));
                let file_index = attributes.unwrap().file_index;
                let records: Vec<_> = records.iter().filter(|record| record.file_index == file_index).collect();
                let what = format!("{name} with {option}, {signed} signed");
                let payload =
                    |stream| records.iter().find(|record| record.stream == stream).map(|record| record.data());
                let record = recorded.map(|kind| digest(kind, data).as_bytes().to_vec());
                assert_eq!(recorded.and_then(|kind| payload(kind.stream().number())), record, "{what}");
                let Some(signature) = payload(19) else {
                    assert!(name == "dir/50", "{what}: not signed");
                    continue;
                };
                let verdict = Signature::parse(&signature).unwrap().verify(keys, |kind| Some(digest(kind, data)));
                assert!(matches!(verdict, SignatureVerdict::Good), "{what}: {verdict:?}");
            }
        }
    }
}

/// The stock daemon sends it in clear (reference 04 §18.4).
#[test]
fn data_of_a_fifo_is_encrypted() {
    let mut bed = Bed::with_lines(&["I", "O rM", "N", "F @/fifo", "N", "N"]);
    support::fifo(&bed.path("fifo"));
    bed.plan.protection = Some(protection(DigestKind::Sha256, Some(ContentCipher::Aes128)));
    let outcome = thread::scope(|scope| {
        let path = bed.path("fifo");
        scope.spawn(move || fs::write(path, b"secret").unwrap());
        bed.run()
    });
    assert_eq!(outcome.streams(&bed.name("fifo")), [1, 22, 20]);
    let records = outcome.of(&bed.name("fifo"));
    let protection = bed.plan.protection.as_ref().unwrap();
    assert_eq!(decrypt(protection, &records[1].data(), &records[2].messages), b"secret");
}

/// No data may leave the host without the configured protection.
#[test]
fn a_digest_that_can_not_be_signed_ends_the_job_before_its_first_file() {
    let mut bed = Bed::with_lines(&["I", "O M", "N", "F @/file", "N", "N"]);
    fs::write(bed.path("file"), b"data").unwrap();
    bed.plan.protection = Some(protection(DigestKind::Xxh64, Some(ContentCipher::Aes128)));
    let outcome = bed.run();
    assert!(outcome.sink.records().is_empty());
    assert!(outcome.result.unwrap_err().to_string().contains("An error occurred while adding signer the stream."));
}
