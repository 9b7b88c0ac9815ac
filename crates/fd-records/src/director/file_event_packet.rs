//! What a plugin has found in a file of a volume, for the catalog (reference 07 §9).

use crate::record::file_event::FileEventRecord;
use crate::text::decimal;

/// The packet of a file event in a Verify job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyFileEvent<'a> {
    /// Number of the job.
    pub job_id: i32,
    /// The file, as the plugin numbers it.
    pub file_index: i32,
    /// What was found.
    pub event: FileEventRecord<'a>,
}

impl VerifyFileEvent<'_> {
    /// The packet, which has no line end.
    pub fn encode(&self) -> Vec<u8> {
        let mut packet = b"CatReq JobId=".to_vec();
        decimal::push_i64(&mut packet, i64::from(self.job_id));
        packet.extend_from_slice(b" FileEvent ");
        decimal::push_i64(&mut packet, i64::from(self.file_index));
        packet.extend_from_slice(b" 0 0 ");
        self.event.encode(&mut packet);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_is_the_stock_daemon_s() {
        let event =
            FileEventRecord { kind: b'a', severity: 100, source: b"some source", description: b"A good description" };
        let packet = VerifyFileEvent { job_id: 9, file_index: 1, event }.encode();
        assert_eq!(packet, b"CatReq JobId=9 FileEvent 1 0 0 a 100 some\x01source A\x01good\x01description 0");
    }
}
