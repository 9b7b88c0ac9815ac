//! The ciphers of file data, all of them block ciphers in CBC mode (reference 04 §12.3).

use std::fmt;

use der::asn1::ObjectIdentifier;
use openssl::cipher::Cipher;
use openssl::error::ErrorStack;
use openssl::provider::Provider;

/// `PKI Cipher`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ContentCipher {
    /// AES with a key of 128 bits.
    #[default]
    Aes128,
    /// AES with a key of 192 bits.
    Aes192,
    /// AES with a key of 256 bits.
    Aes256,
    /// Blowfish with a key of 128 bits. OpenSSL 3 has it in its legacy provider only: old backups can be opened where
    /// that is installed, new ones are not made with it.
    Blowfish,
}

impl ContentCipher {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Aes128, Self::Aes192, Self::Aes256, Self::Blowfish];

    /// Length of the key in bytes.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128 | Self::Blowfish => 16,
            Self::Aes192 => 24,
            Self::Aes256 => 32,
        }
    }

    /// Length of a block and of the initialisation vector in bytes.
    pub const fn block_len(self) -> usize {
        match self {
            Self::Aes128 | Self::Aes192 | Self::Aes256 => 16,
            Self::Blowfish => 8,
        }
    }

    /// Its name in the configuration and in status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128 => "aes128",
            Self::Aes192 => "aes192",
            Self::Aes256 => "aes256",
            Self::Blowfish => "blowfish",
        }
    }

    pub(crate) const fn oid(self) -> ObjectIdentifier {
        ObjectIdentifier::new_unwrap(match self {
            Self::Aes128 => "2.16.840.1.101.3.4.1.2",
            Self::Aes192 => "2.16.840.1.101.3.4.1.22",
            Self::Aes256 => "2.16.840.1.101.3.4.1.42",
            Self::Blowfish => "1.3.6.1.4.1.3029.1.2",
        })
    }

    pub(crate) fn from_oid(oid: ObjectIdentifier) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| cipher.oid() == oid)
    }

    /// The algorithm from OpenSSL's default provider.
    pub(crate) fn fetch(self) -> Result<Cipher, ErrorStack> {
        let name = match self {
            Self::Aes128 => "AES-128-CBC",
            Self::Aes192 => "AES-192-CBC",
            Self::Aes256 => "AES-256-CBC",
            Self::Blowfish => "BF-CBC",
        };
        Cipher::fetch(None, name, None)
    }

    /// The algorithm for something that was encrypted long ago: from any provider that this host has.
    pub(crate) fn fetch_for_old_data(self) -> Result<(Cipher, Option<Provider>), ErrorStack> {
        match self.fetch() {
            Err(_) if self == Self::Blowfish => {
                let legacy = Provider::try_load(None, "legacy", true)?;
                Ok((self.fetch()?, Some(legacy)))
            }
            fetched => Ok((fetched?, None)),
        }
    }
}

impl fmt::Display for ContentCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
