//! The ciphers of file data by their object identifiers, and from OpenSSL (reference 04 §12.3).

use der::asn1::ObjectIdentifier;
use fd_records::ContentCipher;
use openssl::cipher::Cipher;
use openssl::error::ErrorStack;
use openssl::provider::Provider;

pub(crate) const fn oid(cipher: ContentCipher) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(match cipher {
        ContentCipher::Aes128 => "2.16.840.1.101.3.4.1.2",
        ContentCipher::Aes192 => "2.16.840.1.101.3.4.1.22",
        ContentCipher::Aes256 => "2.16.840.1.101.3.4.1.42",
        ContentCipher::Blowfish => "1.3.6.1.4.1.3029.1.2",
    })
}

pub(crate) fn from_oid(wanted: ObjectIdentifier) -> Option<ContentCipher> {
    ContentCipher::ALL.into_iter().find(|cipher| oid(*cipher) == wanted)
}

/// The algorithm from OpenSSL's default provider.
pub(crate) fn fetch(cipher: ContentCipher) -> Result<Cipher, ErrorStack> {
    let name = match cipher {
        ContentCipher::Aes128 => "AES-128-CBC",
        ContentCipher::Aes192 => "AES-192-CBC",
        ContentCipher::Aes256 => "AES-256-CBC",
        ContentCipher::Blowfish => "BF-CBC",
    };
    Cipher::fetch(None, name, None)
}

/// The algorithm for what was encrypted long ago: from any provider that this host has.
pub(crate) fn fetch_for_old_data(cipher: ContentCipher) -> Result<(Cipher, Option<Provider>), ErrorStack> {
    match fetch(cipher) {
        Err(_) if cipher == ContentCipher::Blowfish => {
            let legacy = Provider::try_load(None, "legacy", true)?;
            Ok((fetch(cipher)?, Some(legacy)))
        }
        fetched => Ok((fetched?, None)),
    }
}
