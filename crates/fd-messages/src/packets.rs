//! Packets for the Director that are no messages but keep their place between them: what a Verify job finds.

/// Sends packets to the Director, between the job's messages.
pub trait PacketSink {
    /// Hands one packet over; it goes behind every message said before.
    ///
    /// # Errors
    /// When the Director can't be reached any more. Perhaps only some packets after the one that was lost.
    fn send(&mut self, packet: Vec<u8>) -> Result<(), SendError>;
}

/// Why a packet could not be sent; the text of the system's error.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SendError(pub String);
