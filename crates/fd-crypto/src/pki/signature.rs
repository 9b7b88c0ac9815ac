//! Signature records (reference 04 §12.4, 05 §11.3).

use std::fmt;
use std::sync::Arc;

use der::asn1::{ObjectIdentifier, OctetStringRef, SetOfVec};
use der::{Decode, Encode};
use fd_records::{DigestKind, DigestValue};
use openssl::error::ErrorStack;
use openssl::md::Md;
use openssl::pkey::{HasPublic, PKey, PKeyRef, Private};
use openssl::pkey_ctx::PkeyCtx;
use openssl::rsa::Padding;

use super::error::OpenSslErrors;
use super::keys::{KeyPair, KeyRing};
use super::records::{self, SignatureData, SignerInfo, VERSION};

/// The digests that can be signed: kind, its object identifier, that of its signature with RSA.
const DIGESTS: [(DigestKind, ObjectIdentifier, ObjectIdentifier); 3] = [
    (
        DigestKind::Md5,
        ObjectIdentifier::new_unwrap("1.2.840.113549.2.5"),
        ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.4"),
    ),
    (
        DigestKind::Sha1,
        ObjectIdentifier::new_unwrap("1.3.14.3.2.26"),
        ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5"),
    ),
    (
        DigestKind::Sha256,
        ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1"),
        ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11"),
    ),
];

/// Why a digest can't be signed.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// RSA signatures are defined over MD5, SHA-1 and SHA-256 only.
    #[error("a {0} digest can't be signed")]
    Digest(DigestKind),
    /// OpenSSL refuses the key or the digest.
    #[error("signing failed: {0}")]
    OpenSsl(OpenSslErrors),
    /// The key is longer than any structure may be.
    #[error("the signature can't be encoded: {0}")]
    Encoding(der::Error),
}

impl From<ErrorStack> for SigningError {
    fn from(stack: ErrorStack) -> Self {
        Self::OpenSsl(OpenSslErrors::from(stack))
    }
}

/// Keeps the signatures that were made, for other files with the same content: many trees hold
/// equal files, and most files are unchanged in the next job. A signature costs as much as reading
/// a hundred small files. Each one that a store returns is checked.
pub trait SignatureStore: fmt::Debug + Send + Sync {
    /// Fills in the kept signature of this digest, if it has the length of `signature`. Returns
    /// `false` if there is none.
    fn find(&self, digest: &[u8], signature: &mut [u8]) -> bool;

    /// Keeps the signature of this digest, if possible.
    fn keep(&self, digest: &[u8], signature: &[u8]);
}

/// Makes signature records. Each thread has its own signer.
pub struct Signer {
    context: PkeyCtx<Private>,
    key: PKey<Private>,
    key_id: Vec<u8>,
    kind: DigestKind,
    oids: (ObjectIdentifier, ObjectIdentifier),
    signature: Vec<u8>,
    record_len: usize,
    store: Option<Arc<dyn SignatureStore>>,
}

impl Signer {
    /// Signs digests of this kind with this key.
    ///
    /// # Errors
    /// When the kind can't be signed, or OpenSSL refuses the key.
    pub fn new(pair: &KeyPair, kind: DigestKind) -> Result<Self, SigningError> {
        let oids = DIGESTS.iter().find(|(known, ..)| *known == kind).ok_or(SigningError::Digest(kind))?;
        let key = pair.private.key().clone();
        let mut signer = Self {
            context: signing_context(&key, kind)?,
            key_id: pair.certificate.key_id().to_vec(),
            kind,
            oids: (oids.1, oids.2),
            // A signature is as long as the key, whatever is signed.
            signature: vec![0; key.size()],
            record_len: 0,
            store: None,
            key,
        };
        let mut record = Vec::new();
        signer.encode(&mut record).map_err(SigningError::Encoding)?;
        signer.record_len = record.len();
        Ok(signer)
    }

    /// Another signer for another thread, with the same store.
    ///
    /// # Errors
    /// When OpenSSL refuses the key this time.
    pub fn another(&self) -> Result<Self, SigningError> {
        Ok(Self {
            context: signing_context(&self.key, self.kind)?,
            key: self.key.clone(),
            key_id: self.key_id.clone(),
            kind: self.kind,
            oids: self.oids,
            signature: Vec::new(),
            record_len: self.record_len,
            store: self.store.clone(),
        })
    }

    /// Uses the signatures of this store, and keeps new ones there. Signers made by
    /// [`Self::another`] do the same.
    pub fn use_store(&mut self, store: Arc<dyn SignatureStore>) {
        self.store = Some(store);
    }

    /// Bytes of each signature record.
    pub const fn record_len(&self) -> usize {
        self.record_len
    }

    /// The kind of digest that is signed.
    pub const fn kind(&self) -> DigestKind {
        self.kind
    }

    /// Appends the signature record of a file with this digest.
    ///
    /// # Errors
    /// When the digest is of another kind, or OpenSSL fails.
    pub fn record(&mut self, digest: &DigestValue, out: &mut Vec<u8>) -> Result<(), SigningError> {
        if digest.kind() != self.kind {
            return Err(SigningError::Digest(digest.kind()));
        }
        if !self.find(digest.as_bytes()) {
            self.sign(digest.as_bytes())?;
        }
        self.encode(out).map_err(SigningError::Encoding)
    }

    /// Uses the signature in the store, if there is a valid one.
    fn find(&mut self, digest: &[u8]) -> bool {
        let Some(store) = &self.store else { return false };
        self.signature.resize(self.key.size(), 0);
        store.find(digest, &mut self.signature)
            && is_signature(&self.key, self.kind, digest, &self.signature).unwrap_or(false)
    }

    fn sign(&mut self, digest: &[u8]) -> Result<(), ErrorStack> {
        self.signature.clear();
        self.context.sign_to_vec(digest, &mut self.signature)?;
        if let Some(store) = &self.store {
            store.keep(digest, &self.signature);
        }
        Ok(())
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), der::Error> {
        let mut signers = SetOfVec::new();
        signers.insert(SignerInfo {
            version: VERSION,
            key_id: OctetStringRef::new(&self.key_id)?,
            digest: self.oids.0,
            algorithm: self.oids.1,
            signature: OctetStringRef::new(&self.signature)?,
        })?;
        SignatureData { version: VERSION, signers }.encode_to_vec(out)?;
        Ok(())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.kind)
    }
}

fn message_digest(kind: DigestKind) -> &'static openssl::md::MdRef {
    match kind {
        DigestKind::Md5 => Md::md5(),
        DigestKind::Sha1 => Md::sha1(),
        _ => Md::sha256(),
    }
}

/// Whether this is the signature of the digest. Callers treat an error like `false`.
fn is_signature<T: HasPublic>(
    key: &PKeyRef<T>,
    kind: DigestKind,
    digest: &[u8],
    signature: &[u8],
) -> Result<bool, ErrorStack> {
    let mut context = PkeyCtx::new(key)?;
    context.verify_init()?;
    context.set_rsa_padding(Padding::PKCS1)?;
    context.set_signature_md(message_digest(kind))?;
    context.verify(digest, signature)
}

fn signing_context(key: &PKey<Private>, kind: DigestKind) -> Result<PkeyCtx<Private>, ErrorStack> {
    let mut context = PkeyCtx::new(key)?;
    context.sign_init()?;
    context.set_rsa_padding(Padding::PKCS1)?;
    context.set_signature_md(message_digest(kind))?;
    Ok(context)
}

/// A record that can't be parsed as a signature record.
#[derive(Debug, thiserror::Error)]
#[error("Signature decoding failed: {0}")]
pub struct SignatureError(der::Error);

/// The result of checking a signature.
#[derive(Debug)]
pub enum SignatureVerdict {
    /// The data is what a known signer has signed.
    Good,
    /// The data is not what was signed.
    Bad(OpenSslErrors),
    /// No known signer has signed it.
    UnknownSigner,
    /// The algorithm of the signature is unknown.
    UnsupportedDigest,
    /// There is no digest of the signed kind.
    NoDigest,
}

/// A parsed signature record.
#[derive(Clone, Debug)]
pub struct Signature {
    signers: Vec<OneSignature>,
}

#[derive(Clone, Debug)]
struct OneSignature {
    key_id: Vec<u8>,
    /// `None` if the algorithm is unknown.
    kind: Option<DigestKind>,
    signature: Vec<u8>,
}

impl Signature {
    /// Reads a record.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn parse(record: &[u8]) -> Result<Self, SignatureError> {
        let data = SignatureData::from_der(record).map_err(SignatureError)?;
        records::check_versions(data.version, data.signers.iter().map(|info| info.version)).map_err(SignatureError)?;
        let one = |info: &SignerInfo<'_>| OneSignature {
            key_id: info.key_id.as_bytes().to_vec(),
            kind: DIGESTS.iter().find(|(_, oid, _)| *oid == info.digest).map(|(kind, ..)| *kind),
            signature: info.signature.as_bytes().to_vec(),
        };
        Ok(Self { signers: data.signers.iter().map(one).collect() })
    }

    /// The kind of digest that the first known signer has signed.
    pub fn digest_kind(&self, keys: &KeyRing) -> Option<DigestKind> {
        self.signers.iter().find(|one| keys.signer(&one.key_id).is_some())?.kind
    }

    /// Checks the signature against the digest of the data. `digest` computes it, at most once.
    pub fn verify(&self, keys: &KeyRing, digest: impl FnOnce(DigestKind) -> Option<DigestValue>) -> SignatureVerdict {
        let known = self.signers.iter().find_map(|one| Some((one, keys.signer(&one.key_id)?)));
        let Some((one, certificate)) = known else { return SignatureVerdict::UnknownSigner };
        let Some(kind) = one.kind else { return SignatureVerdict::UnsupportedDigest };
        let Some(value) = digest(kind).filter(|value| value.kind() == kind) else { return SignatureVerdict::NoDigest };
        match is_signature(certificate.key(), kind, value.as_bytes(), &one.signature) {
            Ok(true) => SignatureVerdict::Good,
            Ok(false) => SignatureVerdict::Bad(OpenSslErrors::default()),
            Err(stack) => SignatureVerdict::Bad(OpenSslErrors::from(stack)),
        }
    }
}
