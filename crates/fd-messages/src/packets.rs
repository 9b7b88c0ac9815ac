//! Packets for the Director that are not messages but keep their place between them: the findings
//! of a Verify job.

/// Sends packets to the Director, between the job's messages.
pub trait PacketSink {
    /// Hands one packet over; it goes behind every message said before.
    ///
    /// # Errors
    /// When the Director can't be reached any more. The error may come some packets after the one
    /// that was lost.
    fn send(&mut self, packet: Vec<u8>) -> Result<(), SendError>;
}

/// Why a packet could not be sent; the text of the system's error.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SendError(pub String);
