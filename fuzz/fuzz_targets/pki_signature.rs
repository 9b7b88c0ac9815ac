#![no_main]
//! Signature records: only the signature of our key over this very digest is good.

use std::sync::LazyLock;

use fd_crypto::Digester;
use fd_crypto::pki::{Certificate, KeyPair, KeyRing, PrivateKey, Signature, SignatureVerdict, Signer};
use fd_records::{DigestKind, DigestValue};
use libfuzzer_sys::fuzz_target;

static KEYS: LazyLock<KeyRing> = LazyLock::new(|| {
    let pem = include_bytes!("../../crates/fd-crypto/testdata/own.pem");
    let own = KeyPair { certificate: Certificate::from_pem(pem).unwrap(), private: PrivateKey::from_pem(pem).unwrap() };
    KeyRing { own, signers: Vec::new(), masters: Vec::new() }
});

/// The signatures of all kinds that are good; those of the seeds are over the same text.
static GOOD: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let sign = |kind| {
        let mut record = Vec::new();
        Signer::new(&KEYS.own, kind).unwrap().record(&digest(kind), &mut record).unwrap();
        record[record.len() - 256..].to_vec()
    };
    [DigestKind::Md5, DigestKind::Sha1, DigestKind::Sha256].map(sign).to_vec()
});

fn digest(kind: DigestKind) -> DigestValue {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(b"data");
    digester.finish().unwrap()
}

fuzz_target!(|data: &[u8]| {
    let Ok(signature) = Signature::parse(data) else { return };
    if let SignatureVerdict::Good = signature.verify(&KEYS, |kind| Some(digest(kind))) {
        assert!(GOOD.iter().any(|good| data.windows(256).any(|part| part == good)));
    }
});
