#![no_main]
//! Encrypted data: blocks come back as they went in, however the records are cut; and whatever is
//! taken for encrypted data ends with blocks that are no longer than it, or with an error.

use std::sync::LazyLock;

use fd_crypto::pki::{Certificate, Decryptor, Encryptor, FileKey, Session};
use fd_records::ContentCipher;
use libfuzzer_sys::fuzz_target;

static KEYS: LazyLock<Vec<FileKey>> = LazyLock::new(|| {
    let pem = include_bytes!("../../crates/fd-crypto/testdata/own.pem");
    let certificate = Certificate::from_pem(pem).unwrap();
    let key = |cipher| {
        let session = Session::new(cipher, std::iter::once(&certificate)).unwrap();
        let iv = session.new_iv().unwrap();
        session.file_key(&iv)
    };
    [ContentCipher::Aes128, ContentCipher::Aes192, ContentCipher::Aes256].map(key).into()
});

/// The blocks that come out, joined, and whether the end was good.
fn decrypt(key: &FileKey, data: &[u8], cut: usize) -> (Vec<u8>, bool) {
    let mut decryptor = Decryptor::new(key).unwrap();
    let mut out = Vec::new();
    let mut take = |decryptor: &mut Decryptor| loop {
        match decryptor.next_block() {
            Ok(Some(block)) => out.extend_from_slice(block),
            Ok(None) => return true,
            Err(_) => return false,
        }
    };
    let good = data.chunks(cut).all(|record| decryptor.record(record).is_ok() && take(&mut decryptor));
    let good = good && decryptor.finish().is_ok() && take(&mut decryptor) && decryptor.pending() == 0;
    (out, good)
}

fuzz_target!(|data: &[u8]| {
    let [which, block_len, cut, data @ ..] = data else { return };
    let key = &KEYS[usize::from(*which) % KEYS.len()];
    let (block_len, cut) = (usize::from(*block_len) + 1, usize::from(*cut) + 1);
    let (out, _) = decrypt(key, data, cut);
    assert!(out.len() <= data.len());
    let mut encryptor = Encryptor::new().unwrap();
    encryptor.begin(key).unwrap();
    let mut sealed: Vec<u8> = Vec::new();
    for block in data.chunks(block_len) {
        sealed.extend_from_slice(encryptor.block(block).unwrap());
    }
    sealed.extend_from_slice(encryptor.finish().unwrap());
    assert_eq!(decrypt(key, &sealed, cut), (data.to_vec(), true));
    // Half of it must not pass for the whole.
    let half = &sealed[..sealed.len() / 2];
    assert!(data.is_empty() || !(decrypt(key, half, cut) == (data.to_vec(), true)));
});
