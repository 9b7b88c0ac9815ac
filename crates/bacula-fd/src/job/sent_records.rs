//! The packets of a backup's stream: heads of records, and their contents.
//!
//! For the counters of packets on their way out. Each packet is looked at once, in the order in
//! which it is sent.

use fd_bsock::{Parsed, Signal, parse};
use fd_records::{Stream, StreamClass};

/// The head of a record, `FileIndex Stream Size` as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// Number of the file.
    pub(crate) file_index: u32,
    /// What the packets behind it are.
    pub(crate) stream: Stream,
    /// Bytes of the file, where there is data; 0 where that is unknown.
    pub(crate) size: u64,
}

impl Head {
    /// A missing number counts as 0.
    fn parse(text: &[u8]) -> Self {
        let mut words = text.split(|byte| *byte == b' ').map(|word| std::str::from_utf8(word).unwrap_or_default());
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
        let (file_index, stream, size) = (number(), number(), number());
        let narrow = |number| u32::try_from(number).unwrap_or_default();
        Self { file_index: narrow(file_index), stream: Stream::new(narrow(stream)), size }
    }

    /// Whether the packets behind it are a file's data.
    pub(crate) fn is_of_data(&self) -> bool {
        matches!(self.stream.class(), StreamClass::Data(_) | StreamClass::PluginData)
    }
}

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent<'f> {
    /// A record begins.
    Head(Head),
    /// A packet of the record with this head.
    Packet {
        /// The record's head.
        head: Head,
        /// Its contents.
        payload: &'f [u8],
        /// The payload is an LZ4 block.
        compressed: bool,
    },
    /// A signal, or an empty frame.
    Other,
}

/// Follows a stream.
#[derive(Debug, Default)]
pub(crate) struct SentRecords {
    /// The record that is being sent.
    head: Option<Head>,
    plain: Vec<u8>,
}

impl SentRecords {
    /// The first of these frames, and how many bytes it takes; `None` if there is none, or no whole
    /// one.
    pub(crate) fn next<'f>(&mut self, frames: &'f [u8]) -> Option<(Sent<'f>, usize)> {
        match parse(frames).ok()? {
            Parsed::Need(_) => None,
            Parsed::Data { payload, compressed, consumed } => {
                let sent = if let Some(head) = self.head {
                    Sent::Packet { head, payload, compressed }
                } else {
                    let head = Head::parse(self.plain(payload, compressed));
                    self.head = Some(head);
                    Sent::Head(head)
                };
                Some((sent, consumed))
            }
            Parsed::Signal { signal, consumed } => {
                if signal == Signal::Eod {
                    self.head = None;
                }
                Some((Sent::Other, consumed))
            }
            Parsed::Empty { consumed } => Some((Sent::Other, consumed)),
        }
    }

    /// A payload as it was before the line's compression.
    pub(crate) fn plain<'p>(&'p mut self, payload: &'p [u8], compressed: bool) -> &'p [u8] {
        // What we have compressed ourselves can be read.
        if compressed && fd_bsock::decompress(payload, &mut self.plain).is_ok() { &self.plain } else { payload }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fd_bsock::Encoder;

    use super::*;

    /// A record with this head and so many packets of so many bytes.
    pub(crate) fn record(head: &str, packets: usize, len: usize, compress: bool) -> Vec<u8> {
        let (mut encoder, mut out) = (Encoder::new(compress), Vec::new());
        encoder.data(&mut out, head.as_bytes()).unwrap();
        for _ in 0..packets {
            encoder.data(&mut out, &vec![b'x'; len]).unwrap();
        }
        encoder.signal(&mut out, Signal::Eod);
        out
    }

    #[test]
    fn heads_packets_and_signals_are_distinguished() {
        for compress in [false, true] {
            let frames = [record("1 1 0", 1, 50, compress), record("1 2 3000", 2, 1500, compress)].concat();
            let (mut records, mut at, mut seen) = (SentRecords::default(), 0, Vec::new());
            while let Some((sent, consumed)) = records.next(&frames[at..]) {
                seen.push(match sent {
                    Sent::Head(head) => (head.file_index, head.stream.number(), head.size, head.is_of_data()),
                    Sent::Packet { head, payload, compressed } => {
                        (0, head.stream.number(), records.plain(payload, compressed).len() as u64, head.is_of_data())
                    }
                    Sent::Other => (0, 0, 0, false),
                });
                at += consumed;
            }
            let attributes = [(1, 1, 0, false), (0, 1, 50, false), (0, 0, 0, false)];
            let data = [(1, 2, 3000, true), (0, 2, 1500, true), (0, 2, 1500, true), (0, 0, 0, false)];
            assert_eq!(seen, [&attributes[..], &data].concat(), "{compress}");
            assert_eq!(at, frames.len());
        }
    }
}
