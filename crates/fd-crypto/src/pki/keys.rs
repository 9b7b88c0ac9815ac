//! Certificates and private keys, from the text of PEM files (reference 04 §12.1, §12.2).

use std::fmt;

use openssl::pkey::{Id, PKey, Private, Public};
use openssl::x509::X509;

use super::error::OpenSslErrors;
use crate::texts;

/// Why a file's content can't be used. Displayed in the stock daemon's words, without the leading
/// `openssl.c:108 `.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// OpenSSL can't read it.
    #[error("{step}: {errors}")]
    Unreadable {
        /// The failed step, in the stock daemon's words.
        step: &'static str,
        /// The errors of OpenSSL.
        errors: OpenSslErrors,
    },
    /// The certificate has no name for its key.
    #[error("Provided certificate does not include the required subjectKeyIdentifier extension.")]
    NoKeyId,
    /// Neither signatures nor session keys are made with this type of key.
    #[error("Unsupported key type provided: {0}")]
    KeyType(i32),
}

impl KeyError {
    /// One line per error, in the stock daemon's words.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Unreadable { step, errors } => errors.lines().map(|line| texts::step_failed(step, line)).collect(),
            other => vec![other.to_string()],
        }
    }
}

/// A certificate with an RSA key. Data can be encrypted for its owner, whose signatures can be
/// checked with it.
#[derive(Clone)]
pub struct Certificate {
    key_id: Vec<u8>,
    key: PKey<Public>,
}

impl Certificate {
    /// The first certificate of a PEM file.
    ///
    /// # Errors
    /// When there is none, when it has no `subjectKeyIdentifier`, or when its key is not an RSA
    /// key.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let failed = |step| move |stack| KeyError::Unreadable { step, errors: OpenSslErrors::from(stack) };
        let certificate = X509::from_pem(pem).map_err(failed("Unable to read certificate from file"))?;
        let key = certificate.public_key().map_err(failed("Unable to extract public key from certificate"))?;
        if key.id() != Id::RSA {
            return Err(KeyError::KeyType(key.id().as_raw()));
        }
        let key_id = certificate.subject_key_id().ok_or(KeyError::NoKeyId)?.as_slice().to_vec();
        Ok(Self { key_id, key })
    }

    /// The content of the `subjectKeyIdentifier` extension, usually 20 bytes: the name of a key in
    /// records.
    pub(crate) fn key_id(&self) -> &[u8] {
        &self.key_id
    }

    pub(crate) fn key(&self) -> &PKey<Public> {
        &self.key
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate ")?;
        self.key_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A private key. OpenSSL overwrites its memory when it is dropped; it is never shown.
#[derive(Clone)]
pub struct PrivateKey(PKey<Private>);

impl PrivateKey {
    /// The first private key of a PEM file. It must not have a pass phrase, which a daemon can't
    /// ask for.
    ///
    /// # Errors
    /// When there is none that can be read.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let no_pass_phrase = |_: &mut [u8]| Ok(0);
        let key = PKey::private_key_from_pem_callback(pem, no_pass_phrase).map_err(|stack| KeyError::Unreadable {
            step: "Unable to read private key from file",
            errors: OpenSslErrors::from(stack),
        })?;
        Ok(Self(key))
    }

    pub(crate) fn key(&self) -> &PKey<Private> {
        &self.0
    }

    /// Whether it opens what is encrypted for this certificate.
    pub(crate) fn is_of(&self, certificate: &Certificate) -> bool {
        certificate.key.public_eq(&self.0)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// `PKI Keypair`: the identity of this File Daemon.
#[derive(Clone, Debug)]
pub struct KeyPair {
    /// Names this File Daemon in signatures; data is encrypted for it.
    pub certificate: Certificate,
    /// Signs, and decrypts data that was encrypted for the certificate.
    pub private: PrivateKey,
}

impl KeyPair {
    /// Whether the private key is that of the certificate. If not, nothing that is encrypted for
    /// the certificate can be decrypted, and no signature is good.
    pub fn is_pair(&self) -> bool {
        self.private.is_of(&self.certificate)
    }
}

/// `PKI Signer`: another signer whose signatures can be checked.
#[derive(Clone, Debug)]
pub struct TrustedSigner {
    /// Checks the signatures.
    pub certificate: Certificate,
    /// If the same file holds a private key, it decrypts data that was encrypted for the signer.
    pub private: Option<PrivateKey>,
}

/// Every key that the configuration names.
#[derive(Clone, Debug)]
pub struct KeyRing {
    /// `PKI Keypair`.
    pub own: KeyPair,
    /// `PKI Signer`.
    pub signers: Vec<TrustedSigner>,
    /// `PKI Master Key`: data is encrypted for these, too.
    pub masters: Vec<Certificate>,
}

impl KeyRing {
    /// The certificates that data is encrypted for.
    pub fn recipients(&self) -> impl Iterator<Item = &Certificate> {
        std::iter::once(&self.own.certificate).chain(&self.masters)
    }

    /// The private keys beside certificates with this name.
    pub(crate) fn private(&self, key_id: &[u8]) -> impl Iterator<Item = (&Certificate, &PrivateKey)> {
        let own = std::iter::once((&self.own.certificate, Some(&self.own.private)));
        let signers = self.signers.iter().map(|signer| (&signer.certificate, signer.private.as_ref()));
        let named = own.chain(signers).filter(move |(certificate, _)| certificate.key_id == key_id);
        named.filter_map(|(certificate, key)| key.map(|key| (certificate, key)))
    }

    /// The certificate of a known signer.
    pub(crate) fn signer(&self, key_id: &[u8]) -> Option<&Certificate> {
        let own = std::iter::once(&self.own.certificate);
        own.chain(self.signers.iter().map(|signer| &signer.certificate)).find(|known| known.key_id == key_id)
    }
}
