//! Encrypted file data: a stream of blocks, each with its length in front, in one run of the cipher
//! over the whole file. Where a record ends means nothing (reference 04 §8.8, 05 §11.2).

use fd_records::ContentCipher;
use openssl::cipher_ctx::CipherCtx;
use openssl::error::ErrorStack;

use super::cipher;
use super::error::OpenSslErrors;
use super::session::FileKey;

/// The length in front of a block.
const LENGTH_LEN: usize = 4;
/// Longest block that is believed: more than any record can hold, compressed or not.
const LONGEST: usize = 4 << 20;
/// More than any cipher keeps back or adds.
const ROOM: usize = 64;

/// Why data can't be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The cipher does not exist here, or the key does not fit.
    #[error("the cipher can't be set up: {0}")]
    Cipher(OpenSslErrors),
    /// OpenSSL refuses the data.
    #[error("the cipher failed: {0}")]
    Data(OpenSslErrors),
    /// A block has a length that no File Daemon writes.
    #[error("a block of {0} bytes")]
    Length(u32),
}

/// Encrypts one file after the other.
pub struct Encryptor {
    context: CipherCtx,
    cipher: Option<(ContentCipher, openssl::cipher::Cipher)>,
    out: Vec<u8>,
}

impl Encryptor {
    /// One that has no key yet.
    ///
    /// # Errors
    /// When OpenSSL has no memory.
    pub fn new() -> Result<Self, DataError> {
        Ok(Self { context: CipherCtx::new().map_err(cipher_failed)?, cipher: None, out: Vec::new() })
    }

    /// Begins a file.
    ///
    /// # Errors
    /// When OpenSSL does not have the cipher.
    pub fn begin(&mut self, file_key: &FileKey) -> Result<(), DataError> {
        let cipher = match self.cipher.take() {
            Some((which, cipher)) if which == file_key.cipher => cipher,
            _ => cipher::fetch(file_key.cipher).map_err(cipher_failed)?,
        };
        let begun = self.context.encrypt_init(Some(&cipher), Some(&file_key.key), Some(&file_key.iv));
        self.cipher = Some((file_key.cipher, cipher));
        begun.map_err(cipher_failed)
    }

    /// What can be sent once this block is encrypted; may be nothing.
    ///
    /// # Errors
    /// When the cipher fails, or the block is longer than its length field allows.
    pub fn block(&mut self, block: &[u8]) -> Result<&[u8], DataError> {
        let length = u32::try_from(block.len()).map_err(|_| DataError::Length(u32::MAX))?;
        self.make_room(block.len());
        let mut filled = self.update(0, &length.to_be_bytes())?;
        filled += self.update(filled, block)?;
        Ok(self.out.get(..filled).unwrap_or_default())
    }

    /// The last bytes of the file: always one block of the cipher.
    ///
    /// # Errors
    /// When the cipher fails.
    pub fn finish(&mut self) -> Result<&[u8], DataError> {
        self.make_room(0);
        let filled = self.context.cipher_final(&mut self.out).map_err(data_failed)?;
        Ok(self.out.get(..filled).unwrap_or_default())
    }

    fn update(&mut self, filled: usize, part: &[u8]) -> Result<usize, DataError> {
        let out = self.out.get_mut(filled..).unwrap_or_default();
        self.context.cipher_update(part, Some(out)).map_err(data_failed)
    }

    fn make_room(&mut self, len: usize) {
        if self.out.len() < len + LENGTH_LEN + ROOM {
            self.out.resize(len + LENGTH_LEN + ROOM, 0);
        }
    }
}

/// Decrypts one file.
pub struct Decryptor {
    context: CipherCtx,
    /// Blocks as they were encrypted, with their lengths.
    plain: Vec<u8>,
    /// How much of `plain` was given away.
    taken: usize,
    /// Keeps an old cipher alive.
    _provider: Option<openssl::provider::Provider>,
}

impl Decryptor {
    /// Begins a file.
    ///
    /// # Errors
    /// When OpenSSL does not have the cipher, or when key or initialization vector have the wrong
    /// length.
    pub fn new(file_key: &FileKey) -> Result<Self, DataError> {
        let wrong = |what| Err(DataError::Cipher(OpenSslErrors::other(what)));
        if file_key.key.len() != file_key.cipher.key_len() {
            return wrong("Encryption session provided an invalid symmetric key");
        }
        if file_key.iv.len() != file_key.cipher.block_len() {
            return wrong("Encryption session provided an invalid IV");
        }
        let (cipher, provider) = cipher::fetch_for_old_data(file_key.cipher).map_err(cipher_failed)?;
        let mut context = CipherCtx::new().map_err(cipher_failed)?;
        context.decrypt_init(Some(&cipher), Some(&file_key.key), Some(&file_key.iv)).map_err(cipher_failed)?;
        Ok(Self { context, plain: Vec::new(), taken: 0, _provider: provider })
    }

    /// Takes a record. Ask for [`Self::next_block`] until there is none before the next one.
    ///
    /// # Errors
    /// When the cipher fails.
    pub fn record(&mut self, record: &[u8]) -> Result<(), DataError> {
        self.grow(record.len(), |context, out| context.cipher_update(record, Some(out)))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When the end is damaged or missing. Blocks may have come out of the last record all the
    /// same.
    pub fn finish(&mut self) -> Result<(), DataError> {
        self.grow(0, |context, out| context.cipher_final(out))
    }

    /// The next block that is complete, as it was before it was encrypted.
    ///
    /// # Errors
    /// When its length is beyond reason: the data is damaged, or the key is wrong.
    pub fn next_block(&mut self) -> Result<Option<&[u8]>, DataError> {
        let Some(length) = self.next_length()? else { return Ok(None) };
        let begin = self.taken + LENGTH_LEN;
        let Some(block) = self.plain.get(begin..begin + length) else { return Ok(None) };
        self.taken = begin + length;
        Ok(Some(block))
    }

    /// Whether the next block is complete.
    pub fn has_block(&self) -> bool {
        self.next_length().is_ok_and(|length| length.is_some_and(|length| self.pending() >= LENGTH_LEN + length))
    }

    /// Whether there is reason in the next block, as far as its length has come.
    ///
    /// # Errors
    /// Those of [`Self::next_block`].
    pub fn check_next(&self) -> Result<(), DataError> {
        self.next_length().map(drop)
    }

    /// The length of the next block, once that has come.
    fn next_length(&self) -> Result<Option<usize>, DataError> {
        let rest = self.plain.get(self.taken..).unwrap_or_default();
        let Some((length, _)) = rest.split_first_chunk::<LENGTH_LEN>() else { return Ok(None) };
        let announced = u32::from_be_bytes(*length);
        let length = usize::try_from(announced).unwrap_or(usize::MAX);
        if length > LONGEST { Err(DataError::Length(announced)) } else { Ok(Some(length)) }
    }

    /// Bytes that belong to a block whose end has not come.
    pub fn pending(&self) -> usize {
        self.plain.len() - self.taken
    }

    fn grow(
        &mut self,
        len: usize,
        step: impl FnOnce(&mut CipherCtx, &mut [u8]) -> Result<usize, ErrorStack>,
    ) -> Result<(), DataError> {
        self.plain.drain(..self.taken);
        self.taken = 0;
        let filled = self.plain.len();
        self.plain.resize(filled + len + ROOM, 0);
        let out = self.plain.get_mut(filled..).unwrap_or_default();
        let done = step(&mut self.context, out);
        self.plain.truncate(filled + done.as_ref().copied().unwrap_or(0));
        done.map(|_| ()).map_err(data_failed)
    }
}

fn cipher_failed(stack: ErrorStack) -> DataError {
    DataError::Cipher(OpenSslErrors::from(stack))
}

fn data_failed(stack: ErrorStack) -> DataError {
    DataError::Data(OpenSslErrors::from(stack))
}
