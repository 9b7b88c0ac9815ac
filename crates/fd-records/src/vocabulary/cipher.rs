//! The ciphers of file data, all of them block ciphers in CBC mode (reference 04 §12.3).

use std::fmt;

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
    /// Blowfish with a key of 128 bits. OpenSSL 3 has it in its legacy provider only: old backups
    /// can be opened where that is installed, new ones are not made with it.
    Blowfish,
}

impl ContentCipher {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Aes128, Self::Aes192, Self::Aes256, Self::Blowfish];

    /// Name, length of the key, length of a block.
    const fn facts(self) -> (&'static str, usize, usize) {
        match self {
            Self::Aes128 => ("aes128", 16, 16),
            Self::Aes192 => ("aes192", 24, 16),
            Self::Aes256 => ("aes256", 32, 16),
            Self::Blowfish => ("blowfish", 16, 8),
        }
    }

    /// Its name in the configuration and in status.
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// Length of the key in bytes.
    pub const fn key_len(self) -> usize {
        self.facts().1
    }

    /// Length of a block and of the initialization vector in bytes.
    pub const fn block_len(self) -> usize {
        self.facts().2
    }
}

impl fmt::Display for ContentCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
