//! What PKI adds to a file: its session record, the encryption of its data, its signature
//! (reference 04 §12).
//!
//! A worker has an [`Encryption`]. Its [`Signing`] is part of the emitter, because signatures are
//! made together with batched digests.

use std::sync::Arc;

use fd_crypto::pki::{DataError, Encryptor, KeyRing, OpenSslErrors, Session, Signer, SigningError};
use fd_crypto::{DigestError, Digester};
use fd_records::{ContentCipher, DigestKind, DigestValue, FileType};

use crate::digests::signature_file::SignatureFile;
use crate::exchange::halt::ProtectionError;
use crate::source::kinds::is_digested;
use crate::texts;

/// The PKI directives of the configuration.
#[derive(Clone, Debug)]
pub struct Protection {
    /// The key that signs, and the keys that data is encrypted for.
    pub keys: Arc<KeyRing>,
    /// `PKI Digest`: the kind of digest that is signed.
    pub digest: DigestKind,
    /// `PKI Cipher` where `PKI Encryption` is on.
    pub encryption: Option<ContentCipher>,
}

impl ProtectionError {
    fn new(what: &str, errors: &OpenSslErrors, fatal: &str) -> Self {
        Self { errors: errors.lines().map(|line| texts::openssl(what, line)).collect(), fatal: fatal.into() }
    }
}

/// The session and the signer of a job, which its workers share.
#[derive(Debug)]
pub(crate) struct JobProtection {
    plan: Arc<Protection>,
    session: Option<Session>,
    /// Signers of the workers are made from this one, so that they share signatures.
    signer: Signer,
}

impl JobProtection {
    /// Makes the session, and tries each operation that a file needs. `store` has the signatures of
    /// earlier jobs.
    pub(crate) fn new(plan: Arc<Protection>, store: Option<&Arc<SignatureFile>>) -> Result<Self, ProtectionError> {
        let session =
            plan.encryption.map(|cipher| Session::new(cipher, plan.keys.recipients())).transpose().map_err(
                |error| ProtectionError { errors: Vec::new(), fatal: texts::no_session(&error.to_string()) },
            )?;
        let nothing = Digester::new(plan.digest)?.finish()?;
        let signer = Signer::new(&plan.keys.own, plan.digest)?;
        let mut protection = Self { plan, session, signer };
        Signing::new(&protection)?.sign(&nothing)?;
        if let Some(mut encryption) = Encryption::new(&protection)? {
            encryption.begin_file()?;
        }
        if let Some(store) = store {
            protection.signer.use_store(Arc::<SignatureFile>::clone(store));
        }
        Ok(protection)
    }

    /// The kind of digest that is signed for an entry of this type.
    pub(crate) fn signs(&self, file_type: FileType) -> Option<DigestKind> {
        is_digested(file_type).then_some(self.plan.digest)
    }
}

/// Encrypts files of a worker, one after the other.
pub(crate) struct Encryption<'p> {
    session: &'p Session,
    encryptor: Encryptor,
    /// The session record of the present file.
    record: Vec<u8>,
}

impl<'p> Encryption<'p> {
    /// `None` if data is not encrypted.
    pub(crate) fn new(protection: &'p JobProtection) -> Result<Option<Self>, ProtectionError> {
        let Some(session) = &protection.session else { return Ok(None) };
        let encryptor = Encryptor::new()?;
        Ok(Some(Self { session, encryptor, record: Vec::new() }))
    }

    /// Begins a file's encryption. Returns its session record.
    pub(crate) fn begin_file(&mut self) -> Result<&[u8], ProtectionError> {
        let failed = |error| ProtectionError { errors: Vec::new(), fatal: texts::no_session(&format!("{error}")) };
        let iv = self.session.new_iv().map_err(failed)?;
        self.record.clear();
        self.session.record(&iv, &mut self.record);
        self.encryptor.begin(&self.session.file_key(&iv))?;
        Ok(&self.record)
    }

    /// The encryptor for the file's data.
    pub(crate) fn encryptor(&mut self) -> &mut Encryptor {
        &mut self.encryptor
    }
}

/// Signs files of a worker, one after the other.
pub(crate) struct Signing {
    signer: Signer,
    /// The signature record of the last file.
    record: Vec<u8>,
}

impl Signing {
    pub(crate) fn new(protection: &JobProtection) -> Result<Self, ProtectionError> {
        let signer = protection.signer.another()?;
        Ok(Self { signer, record: Vec::new() })
    }

    /// The length of a signature record in bytes.
    pub(crate) fn record_len(&self) -> usize {
        self.signer.record_len()
    }

    /// The signature record of a file with this digest.
    pub(crate) fn sign(&mut self, digest: &DigestValue) -> Result<&[u8], ProtectionError> {
        self.record.clear();
        self.signer.record(digest, &mut self.record)?;
        Ok(&self.record)
    }
}

impl From<DataError> for ProtectionError {
    fn from(error: DataError) -> Self {
        match &error {
            DataError::Cipher(errors) => Self::new(texts::CIPHER_CONTEXT, errors, texts::NO_ENCRYPTION_CONTEXT),
            DataError::Data(errors) => Self::new(texts::CIPHER_UPDATE, errors, texts::ENCRYPTION_ERROR),
            DataError::Length(_) => Self { errors: Vec::new(), fatal: texts::ENCRYPTION_ERROR.into() },
        }
    }
}

impl From<SigningError> for ProtectionError {
    fn from(error: SigningError) -> Self {
        match &error {
            SigningError::OpenSsl(errors) => Self::new(texts::SIGNATURE_CREATION, errors, texts::SIGNING_ERROR),
            SigningError::Digest(_) | SigningError::Encoding(_) => {
                Self { errors: Vec::new(), fatal: texts::ADDING_SIGNER_ERROR.into() }
            }
        }
    }
}

impl From<DigestError> for ProtectionError {
    fn from(error: DigestError) -> Self {
        Self { errors: Vec::new(), fatal: texts::no_signature(&error) }
    }
}
