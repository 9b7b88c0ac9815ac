//! Digest kinds, the running digest and its value.
//!
//! MD5 and the SHA family come from OpenSSL, which is linked for TLS anyway: measured on the project's machine, blocks
//! of 64 KiB, it makes 567 MB/s of MD5 (the `md-5` crate 470, with its assembler 431), 781 of SHA-1 (383), 364 of
//! SHA-256 (176) and 538 of SHA-512 (329). The xxHash family is `xxhash-rust`, at 10 GB/s.

use std::fmt;

use openssl::error::ErrorStack;
use openssl::md::Md;
use openssl::md_ctx::MdCtx;
use xxhash_rust::xxh3::Xxh3Default;
use xxhash_rust::xxh64::Xxh64;

/// Longest digest in bytes (SHA-512).
const LONGEST: usize = 64;

/// What can go wrong with a digest: only OpenSSL refusing an algorithm (MD5 under a FIPS policy, for example).
#[derive(Debug, thiserror::Error)]
#[error("{kind}: OpenSSL could not {action}: {source}")]
pub struct DigestError {
    kind: DigestKind,
    action: &'static str,
    source: ErrorStack,
}

impl DigestError {
    /// Which digest can't be made.
    pub const fn kind(&self) -> DigestKind {
        self.kind
    }
}

/// The digest algorithms of the `Signature` option.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DigestKind {
    /// MD5, 16 bytes, stream 3.
    Md5,
    /// SHA-1, 20 bytes, stream 10.
    Sha1,
    /// SHA-256, 32 bytes, stream 17.
    Sha256,
    /// SHA-512, 64 bytes, stream 18.
    Sha512,
    /// XXH64 with seed 0, 8 bytes, stream 39.
    Xxh64,
    /// XXH3 with 64 bits, 8 bytes, stream 40.
    Xxh3_64,
    /// XXH3 with 128 bits, 16 bytes, stream 41.
    Xxh3_128,
}

impl DigestKind {
    /// Every kind, in the order in which the first one asked for wins (reference 04 §9).
    pub const ALL: [Self; 7] =
        [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512, Self::Xxh64, Self::Xxh3_64, Self::Xxh3_128];

    /// The stream number of the digest record.
    pub const fn stream(self) -> u32 {
        match self {
            Self::Md5 => 3,
            Self::Sha1 => 10,
            Self::Sha256 => 17,
            Self::Sha512 => 18,
            Self::Xxh64 => 39,
            Self::Xxh3_64 => 40,
            Self::Xxh3_128 => 41,
        }
    }

    /// The kind whose record has this stream number (without high bits).
    pub fn from_stream(stream: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.stream() == stream)
    }

    /// The algorithm's name in messages, without the word "digest".
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
            Self::Xxh64 => "XXHASH64",
            Self::Xxh3_64 => "XXH3_64",
            Self::Xxh3_128 => "XXH3_128",
        }
    }

    /// What the reference calls it in messages.
    pub const fn message_name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5 digest",
            Self::Sha1 => "SHA1 digest",
            Self::Sha256 => "SHA256 digest",
            Self::Sha512 => "SHA512 digest",
            Self::Xxh64 => "XXHASH64 digest",
            Self::Xxh3_64 => "XXH3_64 digest",
            Self::Xxh3_128 => "XXH3_128 digest",
        }
    }

    /// Length of the value in bytes.
    #[expect(clippy::len_without_is_empty, reason = "the length of a digest is never zero")]
    pub const fn len(self) -> usize {
        match self {
            Self::Xxh64 | Self::Xxh3_64 => 8,
            Self::Md5 | Self::Xxh3_128 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

impl fmt::Display for DigestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A finished digest: its bytes in the order of the record.
#[derive(Clone, Copy)]
pub struct DigestValue {
    kind: DigestKind,
    bytes: [u8; LONGEST],
}

impl DigestValue {
    /// The value of `kind` that `bytes` (raw, in record order) are, `None` when their number is not the kind's.
    pub fn from_bytes(kind: DigestKind, bytes: &[u8]) -> Option<Self> {
        (bytes.len() == kind.len()).then(|| Self::filled(kind, bytes))
    }

    /// Which algorithm made it.
    pub const fn kind(&self) -> DigestKind {
        self.kind
    }

    /// The bytes, [`DigestKind::len`] of them.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.kind.len()).unwrap_or(&self.bytes)
    }

    fn filled(kind: DigestKind, value: &[u8]) -> Self {
        let mut bytes = [0; LONGEST];
        for (slot, byte) in bytes.iter_mut().zip(value) {
            *slot = *byte;
        }
        Self { kind, bytes }
    }
}

impl PartialEq for DigestValue {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.as_bytes() == other.as_bytes()
    }
}

impl Eq for DigestValue {}

impl fmt::Debug for DigestValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind)?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A running digest, made once per thread and kind and used for one file after the other.
pub struct Digester {
    kind: DigestKind,
    state: State,
    /// What went wrong in an update; told at the end, so that the caller's read loop need not care.
    failure: Option<ErrorStack>,
}

enum State {
    OpenSsl { md: Md, context: MdCtx },
    Xxh64(Xxh64),
    Xxh3(Box<Xxh3Default>),
}

impl Digester {
    /// A digest over no bytes yet.
    pub fn new(kind: DigestKind) -> Result<Self, DigestError> {
        let state = match kind {
            DigestKind::Md5 => openssl_state(kind, "MD5"),
            DigestKind::Sha1 => openssl_state(kind, "SHA1"),
            DigestKind::Sha256 => openssl_state(kind, "SHA2-256"),
            DigestKind::Sha512 => openssl_state(kind, "SHA2-512"),
            DigestKind::Xxh64 => Ok(State::Xxh64(Xxh64::new(0))),
            DigestKind::Xxh3_64 | DigestKind::Xxh3_128 => Ok(State::Xxh3(Box::default())),
        }?;
        Ok(Self { kind, state, failure: None })
    }

    /// Which algorithm runs.
    pub const fn kind(&self) -> DigestKind {
        self.kind
    }

    /// Takes the next bytes. A failure of OpenSSL (none is known) is told by [`Self::finish`].
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::OpenSsl { context, .. } => {
                if let Err(error) = context.digest_update(bytes) {
                    self.failure = Some(error);
                }
            }
            State::Xxh64(state) => state.update(bytes),
            State::Xxh3(state) => state.update(bytes),
        }
    }

    /// The digest of everything since the start or the last `finish`; the digester is ready for the next file then.
    pub fn finish(&mut self) -> Result<DigestValue, DigestError> {
        let kind = self.kind;
        if let Some(source) = self.failure.take() {
            self.restart();
            return Err(DigestError { kind, action: "update", source });
        }
        let value = match &mut self.state {
            State::OpenSsl { md, context } => {
                let mut bytes = [0; LONGEST];
                context
                    .digest_final(&mut bytes)
                    .and_then(|_length| context.digest_init(md))
                    .map_err(|source| DigestError { kind, action: "finish", source })?;
                DigestValue { kind, bytes }
            }
            State::Xxh64(state) => {
                let value = state.digest();
                state.reset(0);
                DigestValue::filled(kind, &value.to_be_bytes())
            }
            State::Xxh3(state) => {
                let value = match kind {
                    DigestKind::Xxh3_64 => DigestValue::filled(kind, &state.digest().to_be_bytes()),
                    _ => DigestValue::filled(kind, &state.digest128().to_be_bytes()),
                };
                state.reset();
                value
            }
        };
        Ok(value)
    }

    /// Forgets the bytes seen so far.
    pub fn restart(&mut self) {
        self.failure = None;
        match &mut self.state {
            State::OpenSsl { md, context } => self.failure = context.digest_init(md).err(),
            State::Xxh64(state) => state.reset(0),
            State::Xxh3(state) => state.reset(),
        }
    }
}

/// Fetches the algorithm once, so that each file costs a re-initialisation only, not a search in OpenSSL's providers.
fn openssl_state(kind: DigestKind, algorithm: &str) -> Result<State, DigestError> {
    let failed = |action| move |source| DigestError { kind, action, source };
    let md = Md::fetch(None, algorithm, None).map_err(failed("provide the algorithm"))?;
    let mut context = MdCtx::new().map_err(failed("make a context"))?;
    context.digest_init(&md).map_err(failed("initialise"))?;
    Ok(State::OpenSsl { md, context })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &[u8] = b"Hello, Bacula!\n";

    fn hex(value: &DigestValue) -> String {
        value.as_bytes().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    fn digest(kind: DigestKind, bytes: &[u8]) -> String {
        let mut digester = Digester::new(kind).unwrap();
        digester.update(bytes);
        hex(&digester.finish().unwrap())
    }

    /// The values that the stock daemon put on a volume (reference 04 §9).
    #[test]
    fn known_values_of_the_example_file() {
        let expected = [
            (DigestKind::Md5, "9d61aad300b569bbd6c0fac3fbd10d74"),
            (DigestKind::Sha1, "c5060b62ef2d131242144df49e484e063d9aa1b9"),
            (DigestKind::Sha256, "5c4e8258afa022f9c7e5d3d1fb3905b95d43a61d48daa1e94f9e354e387a86a5"),
            (
                DigestKind::Sha512,
                "ba72e2de2bc2b6d6a34c787cd3ec4a0a21add3aefbd736361705dd57641f37f2\
                 082c9ba59af221dc2f524bc2e3e753fbeca2ccf1238657c1914c249ebb27eca8",
            ),
            (DigestKind::Xxh64, "c7ae58c933d142ec"),
            (DigestKind::Xxh3_128, "fac0b2449d777006525069b187a16877"),
        ];
        for (kind, value) in expected {
            assert_eq!(digest(kind, HELLO), value, "{kind}");
        }
    }

    #[test]
    fn known_values_of_no_bytes() {
        let expected = [
            (DigestKind::Md5, "d41d8cd98f00b204e9800998ecf8427e"),
            (DigestKind::Sha1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            (DigestKind::Sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (DigestKind::Xxh64, "ef46db3751d8e999"),
            (DigestKind::Xxh3_64, "2d06800538d394c2"),
            (DigestKind::Xxh3_128, "99aa06d3014798d86001c324468d497f"),
        ];
        for (kind, value) in expected {
            assert_eq!(digest(kind, b""), value, "{kind}");
        }
    }

    #[test]
    fn a_digester_serves_many_files_and_any_split_of_the_bytes() {
        let data: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        for kind in DigestKind::ALL {
            let mut digester = Digester::new(kind).unwrap();
            digester.update(&data);
            let whole = digester.finish().unwrap();
            assert_eq!(whole.as_bytes().len(), kind.len());
            data.chunks(977).for_each(|part| digester.update(part));
            assert_eq!(digester.finish().unwrap(), whole, "{kind}");
            digester.update(b"the beginning of a file that is given up");
            digester.restart();
            digester.update(&data);
            assert_eq!(digester.finish().unwrap(), whole, "{kind}");
        }
    }

    #[test]
    fn streams_and_kinds_belong_together() {
        for kind in DigestKind::ALL {
            assert_eq!(DigestKind::from_stream(kind.stream()), Some(kind));
        }
        assert_eq!(DigestKind::from_stream(19), None);
    }

    #[test]
    fn a_value_needs_its_kind_s_number_of_bytes() {
        assert!(DigestValue::from_bytes(DigestKind::Md5, &[0; 15]).is_none());
        assert_eq!(DigestValue::from_bytes(DigestKind::Md5, &[7; 16]).unwrap().as_bytes(), [7; 16]);
    }
}
