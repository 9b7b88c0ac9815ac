//! `setdebug … hangup=N`: the line to the Storage Daemon ends in the middle of a backup, so that an
//! operator can try how incomplete jobs go on (reference 02 §4.20).
//!
//! N above 0: before the record of file N + 1. N below 0: before the packet of data that brings the
//! bytes read above −N KiB.

use fd_records::{DataLayout, Packing};

use crate::job::sent_records::{Head, Sent, SentRecords};

/// Bytes that are read for a packet, where the packet doesn't show it.
const BLOCK: u64 = 65_536;

/// When the line ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// After so many files.
    Files(u32),
    /// After so many KiB were read.
    Kilobytes(u64),
}

/// Counts what is sent.
#[derive(Debug)]
pub(crate) struct HangUp {
    /// The number in force when the job began.
    pub(crate) number: i64,
    limit: Limit,
    records: SentRecords,
    /// What the job's counters are where the line ends.
    pub(crate) files: u32,
    /// Bytes of files that were read.
    pub(crate) read: u64,
    /// Bytes of data that were sent.
    pub(crate) written: u64,
    /// Bytes of the current file that are still to be read.
    left: u64,
}

impl HangUp {
    /// For the number in force; `None` for 0, which ends nothing.
    pub(crate) fn new(number: i64) -> Option<Self> {
        let limit = match number {
            0 => return None,
            1.. => Limit::Files(u32::try_from(number).unwrap_or(u32::MAX)),
            _ => Limit::Kilobytes(number.unsigned_abs()),
        };
        Some(Self { number, limit, records: SentRecords::default(), files: 0, read: 0, written: 0, left: 0 })
    }

    /// The limit.
    pub(crate) const fn limit(&self) -> Limit {
        self.limit
    }

    /// The bytes of whole frames that still go before the line ends; `None` if all of them do.
    pub(crate) fn due(&mut self, frames: &[u8]) -> Option<usize> {
        let mut at = 0_usize;
        while let Some((sent, consumed)) = self.records.next(frames.get(at..).unwrap_or_default()) {
            match sent {
                Sent::Head(head) => {
                    self.files = self.files.max(head.file_index);
                    self.left = head.size;
                    if matches!(self.limit, Limit::Files(most) if self.files > most) {
                        return Some(at);
                    }
                }
                Sent::Packet { head, payload, compressed } if head.is_of_data() => {
                    let len = self.records.plain(payload, compressed).len() as u64;
                    self.read = self.read.saturating_add(self.read_for(head, len));
                    if matches!(self.limit, Limit::Kilobytes(most) if self.read >> 10 > most) {
                        return Some(at);
                    }
                    self.written = self.written.saturating_add(len);
                }
                Sent::Packet { .. } | Sent::Other => {}
            }
            at = at.saturating_add(consumed);
        }
        None
    }

    /// How much of a file was read for a packet of so many bytes.
    fn read_for(&mut self, head: Head, len: u64) -> u64 {
        let read = match head.stream.layout() {
            DataLayout { packing: Packing::Plain, is_encrypted: false, has_address, .. } => {
                len.saturating_sub(if has_address { DataLayout::ADDRESS_LEN as u64 } else { 0 })
            }
            // Compressed or encrypted: block by block.
            _ => BLOCK.min(self.left.max(1)),
        };
        self.left = self.left.saturating_sub(read);
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::job::sent_records::tests::record;

    /// A file of so many packets of 1,000 bytes under this number.
    fn file(number: u32, packets: usize, compress: bool) -> Vec<u8> {
        let attributes = record(&format!("{number} 1 0"), 1, 100, compress);
        let data = record(&format!("{number} 2 {}", packets * 1000), packets, 1000, compress);
        [attributes, data, record(&format!("{number} 3 0"), 1, 16, compress)].concat()
    }

    #[test]
    fn after_three_files_the_fourth_is_not_sent() {
        let mut hang_up = HangUp::new(3).unwrap();
        let three: Vec<u8> = (1..=3).flat_map(|number| file(number, 1, false)).collect();
        assert_eq!(hang_up.due(&three), None);
        assert_eq!(hang_up.due(&file(4, 1, false)), Some(0));
        assert_eq!((hang_up.files, hang_up.read, hang_up.written), (4, 3000, 3000));
        assert!(HangUp::new(0).is_none());
    }

    #[test]
    fn after_four_kilobytes_the_sixth_thousand_is_not_sent() {
        for compress in [false, true] {
            let mut hang_up = HangUp::new(-4).unwrap();
            assert_eq!(hang_up.due(&file(1, 4, compress)), None);
            let second = file(2, 3, compress);
            let one = record("2 2 3000", 1, 1000, compress).len() - 4;
            let before = record("2 1 0", 1, 100, compress).len();
            assert_eq!(hang_up.due(&second), Some(before + one), "{compress}");
            assert_eq!((hang_up.files, hang_up.read, hang_up.written), (2, 6000, 5000));
        }
    }

    #[test]
    fn compressed_data_counts_by_blocks() {
        let mut hang_up = HangUp::new(-1000).unwrap();
        // 16 blocks are 1,024 KiB.
        let data = record("1 4 2000000", 20, 5, false);
        assert_eq!(hang_up.due(&data), Some(4 + "1 4 2000000".len() + 15 * 9));
        assert_eq!(hang_up.written, 75);
    }
}
