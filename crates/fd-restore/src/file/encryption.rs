//! The protection of the current file: its keys, its decryption, its signature (reference 05 §11).
//! Only the job's content key is kept longer than the file.

use std::sync::Arc;

use fd_crypto::pki::{
    DataError, Decryptor, FileKey, KeyRing, SessionError, SessionOpener, Signature, SignatureVerdict,
};
use fd_messages::MessageType;
use fd_records::{DigestKind, DigestValue, Stream};

use crate::report::{QueuedMessage, Report};
use crate::texts;

/// Data of the current file can't be restored; a message has said why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DataLost;

/// Reports why data is lost.
fn lost(report: &mut Report<'_>, text: &[u8]) -> DataLost {
    report.now(MessageType::Error, text);
    DataLost
}

/// The keys, decryption and signature of the current file.
pub(crate) struct Encryption {
    keys: Option<Arc<KeyRing>>,
    opener: SessionOpener,
    file_key: Option<FileKey>,
    decryptor: Option<Decryptor>,
    /// All records have come.
    finished: bool,
    /// The stream of the encrypted records.
    stream: Stream,
    signature: HeldSignature,
    /// Files of the job whose signature is by an unknown signer.
    unknown_signers: u64,
    /// How many of them a message has told of.
    told_signers: u64,
}

/// The signature of the current file.
enum HeldSignature {
    None,
    One(Signature),
    /// There were several, so none counts.
    Dropped,
}

impl Encryption {
    pub(crate) fn new(keys: Option<Arc<KeyRing>>) -> Self {
        Self {
            keys,
            opener: SessionOpener::default(),
            file_key: None,
            decryptor: None,
            finished: false,
            stream: Stream::NONE,
            signature: HeldSignature::None,
            unknown_signers: 0,
            told_signers: 0,
        }
    }

    /// Drops what belongs to the current file.
    pub(crate) fn forget(&mut self) {
        self.file_key = None;
        self.decryptor = None;
        self.finished = false;
        self.signature = HeldSignature::None;
    }

    /// A session record (reference 05 §11.1).
    pub(crate) fn session(&mut self, record: &[u8], report: &mut Report<'_>) -> Result<(), DataLost> {
        let Some(keys) = &self.keys else {
            return Err(lost(report, &texts::no_private_keys()));
        };
        if self.file_key.is_some() {
            return Err(lost(report, &texts::second_session()));
        }
        match self.opener.open(record, keys) {
            Ok(file_key) => {
                self.file_key = Some(file_key);
                Ok(())
            }
            Err(error) => {
                for line in session_lines(&error) {
                    report.later(MessageType::Error, line);
                }
                Err(lost(report, &texts::session_refused(&error)))
            }
        }
    }

    /// The stream of the encrypted records.
    pub(super) const fn stream(&self) -> Stream {
        self.stream
    }

    /// An encrypted record; [`Self::next_block`] then returns its contents.
    pub(crate) fn record(
        &mut self,
        stream: Stream,
        record: &[u8],
        path: &[u8],
        report: &mut Report<'_>,
    ) -> Result<(), DataLost> {
        self.stream = stream;
        let decryptor = match &mut self.decryptor {
            Some(decryptor) => decryptor,
            none => {
                let Some(file_key) = &self.file_key else {
                    return Err(lost(report, &texts::no_session_data(path)));
                };
                match Decryptor::new(file_key) {
                    Ok(decryptor) => none.insert(decryptor),
                    Err(error) => {
                        if let DataError::Cipher(errors) = &error {
                            for line in errors.lines() {
                                report.later(MessageType::Error, texts::cipher_context(line));
                            }
                        }
                        return Err(lost(report, &texts::no_decryption_context(path)));
                    }
                }
            }
        };
        decryptor
            .record(record)
            .and_then(|()| decryptor.check_next())
            .map_err(|error| lost(report, &texts::decryption_error(path, &error)))
    }

    /// The next block that was decrypted.
    pub(crate) fn next_block(&mut self, path: &[u8], report: &mut Report<'_>) -> Result<Option<&[u8]>, DataLost> {
        let Some(decryptor) = &mut self.decryptor else { return Ok(None) };
        decryptor.next_block().map_err(|error| lost(report, &texts::decryption_error(path, &error)))
    }

    /// Whether a block has been decrypted that was not taken yet.
    pub(crate) fn has_block(&self) -> bool {
        self.decryptor.as_ref().is_some_and(Decryptor::has_block)
    }

    /// All records have come; blocks may come out of the last one. Fails if it is damaged. `None`:
    /// there is nothing to decrypt.
    pub(crate) fn finish(&mut self, path: &[u8], report: &mut Report<'_>) -> Option<Result<(), DataLost>> {
        let decryptor = self.decryptor.as_mut()?;
        if std::mem::replace(&mut self.finished, true) {
            return Some(Ok(()));
        }
        let waiting = decryptor.pending();
        Some(decryptor.finish().map_err(|_damaged| lost(report, &texts::decryption_end(path, waiting, 0))))
    }

    /// Reports what is left when all blocks have been taken: the beginning of an incomplete block.
    pub(crate) fn check_rest(&self, path: &[u8], report: &mut Report<'_>) -> Result<(), DataLost> {
        match self.decryptor.as_ref().map(Decryptor::pending) {
            None | Some(0) => Ok(()),
            Some(rest) => Err(lost(report, &texts::decryption_end(path, rest, 0))),
        }
    }

    /// A signature record (reference 05 §11.3).
    pub(crate) fn signature(&mut self, record: &[u8], path: &[u8], report: &mut Report<'_>) {
        if self.keys.is_none() {
            return;
        }
        if !matches!(self.signature, HeldSignature::None) {
            report.now(MessageType::Error, &texts::second_signature());
            self.signature = HeldSignature::Dropped;
            return;
        }
        match Signature::parse(record) {
            Ok(signature) => self.signature = HeldSignature::One(signature),
            Err(error) => {
                report.later(MessageType::Error, texts::openssl(&error.to_string()));
                report.now(MessageType::Error, &texts::signature_unreadable(path));
            }
        }
    }

    /// The kind of digest that the signature of the current file is over, if it is by a known
    /// signer.
    fn known_kind(&self) -> Option<DigestKind> {
        let (Some(keys), HeldSignature::One(signature)) = (&self.keys, &self.signature) else { return None };
        signature.digest_kind(keys)
    }

    /// Whether the current file has a signature that can be checked.
    pub(crate) fn has_known_signature(&self) -> bool {
        self.known_kind().is_some()
    }

    /// The signature of the current file, and the kind of digest that it is over, if it can be
    /// checked.
    pub(crate) fn take_known_signature(&mut self) -> Option<(DigestKind, Signature)> {
        let kind = self.known_kind()?;
        match std::mem::replace(&mut self.signature, HeldSignature::None) {
            HeldSignature::One(signature) => Some((kind, signature)),
            HeldSignature::None | HeldSignature::Dropped => None,
        }
    }

    /// Reports why a file has no signature that can be checked. With `is_wanted` there must be one.
    pub(crate) fn report_unsigned(&mut self, is_wanted: bool, path: &[u8], report: &mut Report<'_>) {
        let Some(keys) = &self.keys else { return };
        let HeldSignature::One(signature) = &self.signature else {
            if is_wanted {
                report.now(MessageType::Error, &texts::signature_missing(path));
            }
            return;
        };
        let verdict = signature.verify(keys, |_| None);
        if matches!(verdict, SignatureVerdict::UnknownSigner) {
            self.unknown_signers += 1;
            if self.unknown_signers > 1 {
                return;
            }
            self.told_signers = 1;
        }
        for (kind, text) in said_of_signature(verdict, path) {
            report.now(kind, &text);
        }
    }

    /// How many files of the job have a signature by an unknown signer, if there are more than
    /// messages have told of.
    pub(crate) fn unknown_signers(&mut self) -> Option<u64> {
        let count = self.unknown_signers;
        (std::mem::replace(&mut self.told_signers, count) < count).then_some(count)
    }

    /// The messages about the signature, by a known signer, of a file with this digest: none if it
    /// is good. The digest is `None` if there is none of its kind.
    pub(crate) fn verify(&self, signature: &Signature, digest: Option<DigestValue>, path: &[u8]) -> Vec<QueuedMessage> {
        let Some(keys) = &self.keys else { return Vec::new() };
        said_of_signature(signature.verify(keys, |_| digest), path)
    }
}

/// The messages about a signature, the most important one last.
fn said_of_signature(verdict: SignatureVerdict, path: &[u8]) -> Vec<QueuedMessage> {
    let invalid = |why| (MessageType::Error, texts::signature_invalid(path, why));
    match verdict {
        SignatureVerdict::Good => Vec::new(),
        SignatureVerdict::Bad(errors) => {
            let lines = errors.lines().map(|line| (MessageType::Error, texts::signature_differs(line)));
            lines.chain([invalid("Signature is invalid")]).collect()
        }
        SignatureVerdict::UnsupportedDigest => vec![invalid("Unsupported digest algorithm")],
        SignatureVerdict::UnknownSigner => vec![(MessageType::Warning, texts::unknown_signer(path))],
        SignatureVerdict::NoDigest => vec![(MessageType::Error, texts::signature_unchecked(path))],
    }
}

fn session_lines(error: &SessionError) -> Vec<Vec<u8>> {
    match error {
        SessionError::Malformed(errors) => errors.lines().map(texts::session_decoding).collect(),
        SessionError::Key(errors) => errors.lines().map(texts::key_decryption).collect(),
        SessionError::Cipher | SessionError::NoPrivateKey => Vec::new(),
    }
}
