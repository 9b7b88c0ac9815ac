//! `testnetwork`: how fast the line to the Storage Daemon is (reference 02 §4.26).

use std::time::{Duration, Instant};

use fd_bsock::Signal;
use fd_session::command::NetworkTest;
use fd_transport::{Channel, ChannelError, IDLE_LIMIT, Received};

use super::conversation::{Conversation, Flow};
use crate::connection::dialogue;
use crate::status::with_suffix;
use crate::texts;

/// What is sent; no zeros, so that nothing on the way can make it smaller.
const FILL: u8 = 0xaa;
/// Bytes in one frame of the bulk test.
const FRAME: usize = 4096;
/// Bytes in one small packet.
const SMALL: [u8; 8] = [FILL; 8];

impl Conversation<'_> {
    /// Without a Storage Daemon nothing is said at all.
    pub(super) fn test_network(&mut self, wanted: Option<NetworkTest>) -> Flow {
        let bandwidth = self.job().bandwidth.get();
        let Some(mut storage) = self.storage.take() else { return Flow::GoOn };
        let Some(NetworkTest { bytes, rounds }) = wanted else {
            let told = storage.channel().send(texts::BAD_TEST_NETWORK).and_then(|()| storage.channel().flush());
            if let Err(error) = told {
                tracing::debug!(%error, "the Storage daemon has gone");
            }
            self.storage = Some(storage);
            return Flow::GoOn;
        };
        let compressed = storage.is_compressed();
        let channel = storage.channel();
        channel.set_compression(false);
        let tested = measure(channel, bytes, rounds, bandwidth, &mut |line| self.reply(line));
        channel.set_compression(compressed);
        self.storage = Some(storage);
        match tested {
            Ok(()) => self.signal(Signal::CmdOk),
            Err(error) => {
                self.reply(&texts::NETWORK_FAILED.of(error.cause()));
                self.signal(Signal::CmdFailed);
            }
        }
        Flow::GoOn
    }
}

fn measure(
    channel: &mut Channel,
    bytes: u64,
    rounds: u64,
    bandwidth: u64,
    tell: &mut dyn FnMut(&[u8]),
) -> Result<(), ChannelError> {
    channel.send(&texts::test_network(bytes, rounds, bandwidth))?;
    channel.flush()?;
    if bytes > 0 {
        let start = Instant::now();
        write(channel, bytes)?;
        let (milliseconds, speed) = speed(bytes, start.elapsed());
        tell(&texts::network_written(bytes, milliseconds, &speed));
        let start = Instant::now();
        let read = read(channel)?;
        let (milliseconds, speed) = self::speed(read, start.elapsed());
        tell(&texts::network_read(read, milliseconds, &speed));
    }
    if rounds > 0 {
        let start = Instant::now();
        let (mut least, mut most) = (Duration::MAX, Duration::ZERO);
        for _round in 0..rounds {
            let sent = Instant::now();
            channel.send(&SMALL)?;
            channel.recv(IDLE_LIMIT)?;
            least = least.min(sent.elapsed());
            most = most.max(sent.elapsed());
        }
        let total = start.elapsed();
        dialogue::end_of_data(channel)?;
        channel.flush()?;
        tell(&texts::network_rounds(rounds, total, least, most));
    }
    Ok(())
}

fn write(channel: &mut Channel, bytes: u64) -> Result<(), ChannelError> {
    let block = [FILL; FRAME];
    let mut left = bytes;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(FRAME).min(FRAME);
        channel.send(block.get(..length).unwrap_or(&block))?;
        left = left.saturating_sub(u64::try_from(length).unwrap_or(left));
    }
    dialogue::end_of_data(channel)?;
    channel.flush()
}

/// Everything up to a signal; how much that was.
fn read(channel: &mut Channel) -> Result<u64, ChannelError> {
    let mut bytes = 0_u64;
    loop {
        match channel.recv(IDLE_LIMIT)? {
            Received::Data(frame) => bytes = bytes.saturating_add(u64::try_from(frame.len()).unwrap_or(0)),
            Received::Empty => {}
            Received::Signal(_) => return Ok(bytes),
        }
    }
}

/// Milliseconds, at least one, and bytes per second with their unit.
fn speed(bytes: u64, time: Duration) -> (u64, String) {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    (milliseconds, with_suffix(bytes.saturating_mul(1000) / milliseconds))
}
