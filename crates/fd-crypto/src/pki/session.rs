//! Session records: the content key of a file, encrypted for each recipient
//! (reference 04 §12.3, 05 §11.1).

use std::fmt;

use der::asn1::{OctetStringRef, SetOfVec};
use der::{Decode, Encode};
use fd_records::ContentCipher;
use openssl::error::ErrorStack;
use openssl::pkey_ctx::PkeyCtx;
use openssl::rsa::Padding;
use zeroize::Zeroizing;

use super::cipher;
use super::error::OpenSslErrors;
use super::keys::{Certificate, KeyRing, PrivateKey};
use super::records::{self, CryptoData, RSA_ENCRYPTION, Recipient, VERSION};

/// Longest block of any [`ContentCipher`].
const LONGEST_BLOCK: usize = 16;

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The record is damaged.
    #[error("CryptoData decoding failed: {0}")]
    Malformed(OpenSslErrors),
    /// The record names an unknown cipher.
    #[error("unsupported cipher")]
    Cipher,
    /// There is no private key for any recipient.
    #[error("no private key for any recipient")]
    NoPrivateKey,
    /// The content key can't be decrypted or encrypted.
    #[error("the content key: {0}")]
    Key(OpenSslErrors),
}

impl From<der::Error> for SessionError {
    fn from(error: der::Error) -> Self {
        Self::Malformed(OpenSslErrors::other(&error.to_string()))
    }
}

/// An initialization vector. Each file of a job has another one, so that equal files differ when
/// they are encrypted.
#[derive(Clone, Copy, Debug)]
pub struct Iv([u8; LONGEST_BLOCK]);

/// How a file's data is encrypted. The key is overwritten when it is dropped.
pub struct FileKey {
    pub(crate) cipher: ContentCipher,
    pub(crate) key: Zeroizing<Vec<u8>>,
    pub(crate) iv: Vec<u8>,
}

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileKey({}, …)", self.cipher)
    }
}

/// The content key of a backup job, with its copies for the recipients. Encrypting those costs an
/// RSA operation each, so that is done once a job and not for each file.
pub struct Session {
    cipher: ContentCipher,
    key: Zeroizing<Vec<u8>>,
    recipients: usize,
    /// The session record of any file, but for its initialization vector, which begins at `iv_at`.
    record: Vec<u8>,
    iv_at: usize,
}

impl Session {
    /// A new random key for these recipients.
    ///
    /// # Errors
    /// When OpenSSL has no random numbers, or can't use a recipient's key.
    pub fn new<'k>(
        cipher: ContentCipher,
        recipients: impl Iterator<Item = &'k Certificate>,
    ) -> Result<Self, SessionError> {
        let failed = |stack| SessionError::Key(OpenSslErrors::from(stack));
        let mut key = Zeroizing::new(vec![0; cipher.key_len()]);
        openssl::rand::rand_priv_bytes(&mut key).map_err(failed)?;
        let copy = |certificate: &Certificate| Ok((certificate.key_id().to_vec(), encrypt_key(certificate, &key)?));
        let copies = recipients.map(copy).collect::<Result<Vec<_>, ErrorStack>>().map_err(failed)?;
        let (record, iv_at) = record_without_iv(cipher, &copies)?;
        Ok(Self { cipher, key, recipients: copies.len(), record, iv_at })
    }

    /// A new random initialization vector.
    ///
    /// # Errors
    /// When OpenSSL has no random numbers.
    pub fn new_iv(&self) -> Result<Iv, SessionError> {
        let mut iv = Iv([0; LONGEST_BLOCK]);
        openssl::rand::rand_bytes(&mut iv.0).map_err(|stack| SessionError::Key(OpenSslErrors::from(stack)))?;
        Ok(iv)
    }

    /// Appends the session record of a file with this initialization vector.
    pub fn record(&self, iv: &Iv, out: &mut Vec<u8>) {
        let iv = self.iv(iv);
        let (front, back) = self.record.split_at_checked(self.iv_at).unwrap_or_default();
        out.extend_from_slice(front);
        out.extend_from_slice(iv);
        out.extend_from_slice(back.get(iv.len()..).unwrap_or_default());
    }

    /// The key of a file with this initialization vector.
    pub fn file_key(&self, iv: &Iv) -> FileKey {
        FileKey { cipher: self.cipher, key: self.key.clone(), iv: self.iv(iv).to_vec() }
    }

    fn iv<'i>(&self, iv: &'i Iv) -> &'i [u8] {
        iv.0.get(..self.cipher.block_len()).unwrap_or(&iv.0)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({}, {} recipients)", self.cipher, self.recipients)
    }
}

/// Opens session records. All files of a job have one key, and opening a copy of it costs an RSA
/// operation, so the last one is remembered; it is overwritten when it is dropped.
#[derive(Default)]
pub struct SessionOpener {
    last: Option<OpenedKey>,
}

struct OpenedKey {
    recipient: Vec<u8>,
    encrypted: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

impl SessionOpener {
    /// Opens a session record with one of our private keys, always the same ones.
    ///
    /// # Errors
    /// When the record is damaged, or not for us.
    pub fn open(&mut self, record: &[u8], keys: &KeyRing) -> Result<FileKey, SessionError> {
        let data = CryptoData::from_der(record)?;
        records::check_versions(data.version, data.recipients.iter().map(|recipient| recipient.version))?;
        let cipher = cipher::from_oid(data.cipher).ok_or(SessionError::Cipher)?;
        let ours = data.recipients.iter().flat_map(|one| {
            let named = keys.private(one.key_id.as_bytes());
            named.map(move |(certificate, private)| (one, private, private.is_of(certificate)))
        });
        // One that is not that of its certificate is tried only if there is no other.
        let ours = ours.min_by_key(|(_, _, is_pair)| !is_pair);
        let (ours, private, _) = ours.ok_or(SessionError::NoPrivateKey)?;
        let (recipient, encrypted) = (ours.key_id.as_bytes(), ours.key.as_bytes());
        let key = match &self.last {
            Some(last) if last.recipient == recipient && last.encrypted == encrypted => last.key.clone(),
            _ => {
                let key = decrypt_key(private, encrypted);
                let key = key.map_err(|stack| SessionError::Key(OpenSslErrors::from(stack)))?;
                let (recipient, encrypted) = (recipient.to_vec(), encrypted.to_vec());
                self.last.insert(OpenedKey { recipient, encrypted, key }).key.clone()
            }
        };
        Ok(FileKey { cipher, key, iv: data.iv.as_bytes().to_vec() })
    }
}

impl fmt::Debug for SessionOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionOpener(…)")
    }
}

/// A session record, and where its initialization vector begins. `copies` are key names and
/// encrypted keys.
fn record_without_iv(cipher: ContentCipher, copies: &[(Vec<u8>, Vec<u8>)]) -> Result<(Vec<u8>, usize), der::Error> {
    let mut recipients = SetOfVec::new();
    for (key_id, key) in copies {
        recipients.insert(Recipient {
            version: VERSION,
            key_id: OctetStringRef::new(key_id)?,
            algorithm: RSA_ENCRYPTION,
            key: OctetStringRef::new(key)?,
        })?;
    }
    // The recipients stand last, right behind the vector.
    let behind = usize::try_from(recipients.encoded_len()?)?;
    let iv = [0; LONGEST_BLOCK];
    let iv = iv.get(..cipher.block_len()).unwrap_or(&iv);
    let record = CryptoData { version: VERSION, cipher: cipher::oid(cipher), iv: OctetStringRef::new(iv)?, recipients }
        .to_der()?;
    let iv_at = record.len().saturating_sub(behind + iv.len());
    Ok((record, iv_at))
}

fn encrypt_key(certificate: &Certificate, key: &[u8]) -> Result<Vec<u8>, ErrorStack> {
    let mut context = PkeyCtx::new(certificate.key())?;
    context.encrypt_init()?;
    context.set_rsa_padding(Padding::PKCS1)?;
    let mut encrypted = Vec::new();
    context.encrypt_to_vec(key, &mut encrypted)?;
    Ok(encrypted)
}

fn decrypt_key(private: &PrivateKey, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, ErrorStack> {
    let mut context = PkeyCtx::new(private.key())?;
    context.decrypt_init()?;
    context.set_rsa_padding(Padding::PKCS1)?;
    // Room for the longest that can come out, so that no copy of the key is left behind by a
    // growing vector.
    let mut key = Zeroizing::new(vec![0; context.decrypt(encrypted, None)?]);
    let len = context.decrypt(encrypted, Some(&mut key))?;
    key.truncate(len);
    Ok(key)
}
