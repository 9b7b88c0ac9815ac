//! The encoder: literals only for the moment.

/// Compresses blocks, each on its own; keeps its buffers.
#[derive(Debug, Default)]
pub struct Encoder {
    buffer: Vec<u8>,
}

impl Encoder {
    /// An encoder with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The LZO1X stream of `src`: at most `n + n/16 + 67` bytes (§5).
    pub fn compress(&mut self, src: &[u8]) -> &[u8] {
        self.buffer.clear();
        let len = src.len();
        match u8::try_from(len.saturating_add(17)) {
            Ok(17) => {}
            Ok(first) => self.buffer.push(first),
            Err(_) => {
                let mut excess = len - 18;
                self.buffer.push(0);
                while excess > 255 {
                    self.buffer.push(0);
                    excess -= 255;
                }
                self.buffer.push(u8::try_from(excess).unwrap_or(255));
            }
        }
        self.buffer.extend_from_slice(src);
        self.buffer.extend_from_slice(&[0x11, 0, 0]);
        &self.buffer
    }
}
