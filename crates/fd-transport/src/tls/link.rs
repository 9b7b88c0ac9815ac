//! The bytes inside a TLS session.

use std::io;

use openssl::ssl::ErrorCode;

use crate::error::Fault;
use crate::texts;
use crate::tls::{self, TlsSession};
use crate::wire::{ReadBuffer, Wait, Wire};

/// Payload of a full TLS record in bytes. Before the end of the output only whole records are made.
const RECORD: usize = 16 * 1024;
/// Bytes that are gathered before they are encrypted unasked.
const PLAIN_MAX: usize = 4 * RECORD;

/// A TLS session with what was decrypted and what is to be encrypted.
#[derive(Debug)]
pub(crate) struct TlsLink {
    session: TlsSession,
    input: ReadBuffer,
    output: Vec<u8>,
}

impl TlsLink {
    pub(crate) fn new(session: TlsSession) -> Self {
        Self { session, input: ReadBuffer::default(), output: Vec::new() }
    }

    pub(crate) fn input(&self) -> &[u8] {
        self.input.filled()
    }

    pub(crate) const fn buffer(&mut self) -> &mut ReadBuffer {
        &mut self.input
    }

    pub(crate) fn consume(&mut self, n: usize) {
        self.input.consume(n);
    }

    pub(crate) const fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Encrypts whole records once enough is there.
    pub(crate) fn push(&mut self) -> Result<(), Fault> {
        if self.output.len() < PLAIN_MAX {
            return Ok(());
        }
        let mut output = std::mem::take(&mut self.output);
        let whole = output.len() - output.len() % RECORD;
        let result = self.encrypt(output.get(..whole).unwrap_or_default());
        output.drain(..whole);
        self.output = output;
        result
    }

    /// Encrypts the output and then `frames` in whole records; what remains becomes the output.
    pub(crate) fn push_frames(&mut self, frames: &[u8]) -> Result<(), Fault> {
        if self.output.len() + frames.len() < PLAIN_MAX {
            self.output.extend_from_slice(frames);
            return Ok(());
        }
        let missing = (RECORD - self.output.len() % RECORD) % RECORD;
        let (head, rest) = frames.split_at_checked(missing).unwrap_or((frames, &[]));
        let mut output = std::mem::take(&mut self.output);
        output.extend_from_slice(head);
        let result = self.encrypt(&output);
        output.clear();
        self.output = output;
        result?;
        let (records, tail) = rest.split_at_checked(rest.len() - rest.len() % RECORD).unwrap_or((rest, &[]));
        self.encrypt(records)?;
        self.output.extend_from_slice(tail);
        Ok(())
    }

    /// Encrypts and sends everything.
    pub(crate) fn flush(&mut self) -> Result<(), Fault> {
        let mut output = std::mem::take(&mut self.output);
        let mut result = self.encrypt(&output);
        if result.is_ok() {
            result = self.wire_mut().and_then(Wire::flush).map_err(|source| Fault::Write { len: output.len(), source });
        }
        output.clear();
        self.output = output;
        result
    }

    fn encrypt(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let n = self.session.ssl_write(bytes).map_err(|error| match error.into_io_error() {
                Ok(source) => Fault::Write { len: bytes.len(), source },
                Err(error) => Fault::Tls { reason: texts::tls_text(&error) },
            })?;
            bytes = bytes.get(n..).unwrap_or_default();
        }
        Ok(())
    }

    /// Reads and decrypts once; 0 is the end, `None` that the wait was too long.
    pub(crate) fn fill(&mut self, wait: Wait) -> Result<Option<usize>, Fault> {
        self.wire_mut().map_err(Fault::Read)?.wait = wait;
        match self.session.ssl_read(self.input.space()) {
            Ok(n) => {
                self.input.advance(n);
                Ok(Some(n))
            }
            Err(error) if error.code() == ErrorCode::ZERO_RETURN => Ok(Some(0)),
            Err(error) if error.code() == ErrorCode::WANT_READ => Ok(None),
            // A close without `close_notify` is no error: whether something is missing shows in the
            // frames.
            Err(_) if self.wire().is_some_and(|wire| wire.eof) => Ok(Some(0)),
            Err(error) => Err(match error.into_io_error() {
                Ok(source) => Fault::Read(source),
                Err(error) => Fault::Tls { reason: texts::tls_text(&error) },
            }),
        }
    }

    /// Encrypts the rest and `close_notify` behind it, to leave with the next flush.
    pub(crate) fn say_goodbye(&mut self) -> Result<(), Fault> {
        let output = std::mem::take(&mut self.output);
        self.encrypt(&output)?;
        // A failure here means that the peer is gone already, which is as good.
        let _ignored = self.session.shutdown();
        Ok(())
    }

    pub(crate) fn into_wire(self) -> Option<Wire> {
        tls::take_wire(self.session)
    }

    pub(crate) fn wire(&self) -> Option<&Wire> {
        tls::wire_ref(&self.session)
    }

    pub(crate) fn wire_mut(&mut self) -> io::Result<&mut Wire> {
        tls::wire_of(&mut self.session)
    }

    /// Version and cipher suite, such as `TLSv1.3 TLS_AES_128_GCM_SHA256`.
    pub(crate) fn cipher(&self) -> Option<String> {
        let ssl = self.session.ssl();
        Some(format!("{} {}", ssl.version_str(), ssl.current_cipher()?.name()))
    }
}
