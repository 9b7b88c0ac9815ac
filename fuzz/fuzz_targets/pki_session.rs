#![no_main]
//! Session records of encrypted files: what opens has a key that fits or is refused, and nothing
//! else happens.

use std::sync::LazyLock;

use fd_crypto::pki::{Certificate, Decryptor, KeyPair, KeyRing, PrivateKey, SessionOpener};
use libfuzzer_sys::fuzz_target;

static KEYS: LazyLock<KeyRing> = LazyLock::new(|| {
    let pem = include_bytes!("../../crates/fd-crypto/testdata/own.pem");
    let own = KeyPair { certificate: Certificate::from_pem(pem).unwrap(), private: PrivateKey::from_pem(pem).unwrap() };
    KeyRing { own, signers: Vec::new(), masters: Vec::new() }
});

fuzz_target!(|data: &[u8]| {
    if let Ok(key) = SessionOpener::default().open(data, &KEYS)
        && let Ok(mut decryptor) = Decryptor::new(&key)
    {
        decryptor.record(data).unwrap();
        assert!(decryptor.pending() <= data.len());
    }
});
