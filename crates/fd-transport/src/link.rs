//! Bytes in and out, clear or encrypted.

use std::io;

use std::time::Duration;

use crate::error::Fault;
use crate::texts;
use crate::tls::{self, TlsLink, TlsSecret, TlsSide};
use crate::wire::{OUTPUT_MAX, ReadBuffer, Wait, Wire, WireStats};

/// A connection below the frames.
#[derive(Debug)]
pub(crate) enum Link {
    Clear(Wire),
    Tls(Box<TlsLink>),
    /// The wire was lost.
    Gone,
}

impl Link {
    pub(crate) const fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// What was received and not used, in clear.
    pub(crate) fn input(&self) -> &[u8] {
        match self {
            Self::Clear(wire) => wire.input.filled(),
            Self::Tls(tls) => tls.input(),
            Self::Gone => &[],
        }
    }

    /// What holds the input.
    pub(crate) fn buffer(&mut self) -> Option<&mut ReadBuffer> {
        match self {
            Self::Clear(wire) => Some(&mut wire.input),
            Self::Tls(tls) => Some(tls.buffer()),
            Self::Gone => None,
        }
    }

    pub(crate) fn consume(&mut self, n: usize) {
        match self {
            Self::Clear(wire) => wire.input.consume(n),
            Self::Tls(tls) => tls.consume(n),
            Self::Gone => {}
        }
    }

    /// Where frames to be sent are put together; afterwards call [`Link::push`].
    pub(crate) fn output(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Clear(wire) => Some(&mut wire.output),
            Self::Tls(tls) => Some(tls.output()),
            Self::Gone => None,
        }
    }

    /// Moves the output on where enough of it is there.
    pub(crate) fn push(&mut self) -> Result<(), Fault> {
        match self {
            Self::Clear(wire) => guarded(wire, Wire::flush_if_full),
            Self::Tls(tls) => tls.push(),
            Self::Gone => Err(Fault::HasErrors),
        }
    }

    /// Sends frames that are encoded already, as far as possible without a copy.
    pub(crate) fn push_frames(&mut self, frames: &[u8]) -> Result<(), Fault> {
        match self {
            Self::Clear(wire) => guarded(wire, |wire| {
                if wire.output.len() + frames.len() > OUTPUT_MAX {
                    wire.flush()?;
                }
                wire.queue(frames)
            }),
            Self::Tls(tls) => tls.push_frames(frames),
            Self::Gone => Err(Fault::HasErrors),
        }
    }

    /// Sends everything.
    pub(crate) fn flush(&mut self) -> Result<(), Fault> {
        match self {
            Self::Clear(wire) => guarded(wire, Wire::flush),
            Self::Tls(tls) => tls.flush(),
            Self::Gone => Err(Fault::HasErrors),
        }
    }

    /// Whether a write stood still, and [`Link::flush`] is to go on with it.
    pub(crate) fn is_stalled(&self) -> bool {
        self.wire().is_some_and(|wire| wire.stalled)
    }

    /// Reads once; 0 is the end, `None` that the wait was too long.
    pub(crate) fn fill(&mut self, wait: Wait) -> Result<Option<usize>, Fault> {
        match self {
            Self::Clear(wire) => match wire.fill(wait) {
                Ok(n) => Ok(Some(n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(Fault::Read(error)),
            },
            Self::Tls(tls) => tls.fill(wait),
            Self::Gone => Err(Fault::HasErrors),
        }
    }

    /// Starts TLS; the bytes received so far belong to the handshake. After a failure the
    /// connection is clear again. Where there is TLS already, the new one takes its place on the
    /// socket.
    pub(crate) fn start_tls(
        &mut self,
        side: TlsSide,
        secret: TlsSecret<'_>,
        host: &str,
        limit: Duration,
    ) -> Result<(), Fault> {
        if self.is_encrypted() {
            self.drop_tls()?;
        }
        let wire = match std::mem::replace(self, Self::Gone) {
            Self::Clear(wire) => wire,
            other => {
                *self = other;
                return Err(Fault::Handshake { reason: texts::TLS_NOT_POSSIBLE.to_owned(), certificates: Vec::new() });
            }
        };
        match tls::handshake(wire, side, secret, host, limit) {
            Ok(session) => {
                *self = Self::Tls(Box::new(TlsLink::new(session)));
                self.flush()
            }
            Err(failure) => {
                *self = failure.wire.map_or(Self::Gone, Self::Clear);
                // The peer waits for our alert, or for the last flight of a handshake that we then
                // did not like. If it can't be sent the next frame says so.
                let _shows_at_the_next_frame = self.flush();
                Err(failure.fault)
            }
        }
    }

    /// Goes back to clear without telling the peer. Bytes behind the last TLS record are clear
    /// frames.
    pub(crate) fn drop_tls(&mut self) -> Result<(), Fault> {
        self.flush()?;
        *self = match std::mem::replace(self, Self::Gone) {
            Self::Tls(tls) => tls.into_wire().map_or(Self::Gone, Self::Clear),
            other => other,
        };
        Ok(())
    }

    /// Sends the rest and says good-bye.
    pub(crate) fn say_goodbye(&mut self) -> Result<(), Fault> {
        if let Self::Tls(tls) = self {
            tls.say_goodbye()?;
        }
        self.flush()?;
        if let Some(wire) = self.wire() {
            wire.end_output();
        }
        Ok(())
    }

    /// Reads what still comes after the good-bye, until the peer has closed too.
    pub(crate) fn linger(&mut self, wait: Wait) {
        loop {
            let n = self.input().len();
            self.consume(n);
            match self.fill(wait) {
                Ok(Some(1..)) => {}
                // The end, a peer that takes too long, or one that has reset the connection: all is
                // said in any case.
                Ok(Some(0) | None) | Err(_) => return,
            }
        }
    }

    pub(crate) fn wire(&self) -> Option<&Wire> {
        match self {
            Self::Clear(wire) => Some(wire),
            Self::Tls(tls) => tls.wire(),
            Self::Gone => None,
        }
    }

    pub(crate) fn wire_mut(&mut self) -> Option<&mut Wire> {
        match self {
            Self::Clear(wire) => Some(wire),
            Self::Tls(tls) => tls.wire_mut().ok(),
            Self::Gone => None,
        }
    }

    pub(crate) fn stats(&self) -> WireStats {
        self.wire().map_or_else(WireStats::default, |wire| wire.stats)
    }

    /// Version and cipher suite, such as `TLSv1.3 TLS_AES_128_GCM_SHA256`.
    pub(crate) fn cipher(&self) -> Option<String> {
        match self {
            Self::Tls(tls) => tls.cipher(),
            Self::Clear(_) | Self::Gone => None,
        }
    }
}

/// Does something that may write, and says how much was to be written if that fails.
fn guarded(wire: &mut Wire, write: impl FnOnce(&mut Wire) -> io::Result<()>) -> Result<(), Fault> {
    let len = wire.output.len();
    write(wire).map_err(|source| Fault::Write { len, source })
}
