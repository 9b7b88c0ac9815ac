//! The commands about a job as a whole: its name and keys, its Storage Daemon, its limits, its end
//! (reference 02 §4.1, §4.4, §4.6, §4.19).

use fd_bsock::scan::Lenient;

use super::refusal::Refusal;
use crate::texts;

/// Longest job name, in bytes.
pub(super) const JOB_MAX: usize = 127;
/// Longest key, in bytes.
const KEY_MAX: usize = 100;

/// `JobId=`: the job of this connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewJob {
    /// 0 for console commands.
    pub job_id: u32,
    /// Full job name.
    pub name: Vec<u8>,
    /// The Storage Daemon's session.
    pub vol_session_id: u32,
    /// The Storage Daemon's session time.
    pub vol_session_time: u32,
    /// Key towards the Storage Daemon; may be empty.
    pub authorization: Vec<u8>,
    /// The answer if the connection has a job already.
    pub second: Refusal,
}

impl NewJob {
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(frame);
        let job_id = scan.text("JobId=")?.u32();
        let name = scan.text(" Job=")?.word(JOB_MAX).to_vec();
        let vol_session_id = scan.text(" SDid=")?.u32();
        let vol_session_time = scan.text(" SDtime=")?.u32();
        let authorization = scan.text(" Authorization=")?.word(KEY_MAX).to_vec();
        Some(Self { job_id, name, vol_session_id, vol_session_time, authorization, second: refused(frame) })
    }
}

/// A `JobId=` that does not scan has named the job nevertheless, as far as it went
/// (reference 02 §4.1).
pub(super) fn refused(frame: &[u8]) -> Refusal {
    let mut scan = Lenient::new(frame);
    let job_id = scan.text("JobId=").map_or(0, Lenient::u32);
    let name = scan.text(" Job=").map(|scan| scan.word(JOB_MAX).to_vec()).unwrap_or_default();
    let (fatal, reply) = (Some(texts::MALFORMED_JOB.of(frame)), Some(texts::BAD_JOB.to_vec()));
    Refusal { fatal, reply, named: Some((job_id, name)), ..Refusal::default() }
}

/// `storage `: where the job's Storage Daemon is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageAddress {
    /// Host name or address.
    pub host: Vec<u8>,
    /// 0: the Storage Daemon calls us.
    pub port: u16,
    /// A new key; empty if none came.
    pub authorization: Vec<u8>,
}

impl StorageAddress {
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(frame);
        let host = scan.text("storage address=")?.word(1000).to_vec();
        let port = u16::try_from(scan.text(" port=")?.i32()).ok()?;
        scan.text(" ssl=")?.i32();
        let authorization = scan.text(" Authorization=").map(|scan| scan.word(KEY_MAX).to_vec()).unwrap_or_default();
        Some(Self { host, port, authorization })
    }
}

/// `setbandwidth=`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetBandwidth {
    /// Bytes per second, 0 for no limit.
    pub limit: u64,
    /// Full job name; empty for all.
    pub job: Vec<u8>,
}

impl SetBandwidth {
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(frame);
        let limit = u64::try_from(scan.text("setbandwidth=")?.i64()).ok()?;
        let job = scan.text(" Job=")?.word(JOB_MAX).to_vec();
        Some(Self { limit, job })
    }
}

/// The full job name behind `head`, which is `cancel Job=` or `stop Job=`.
pub(super) fn name_behind(head: &str, frame: &[u8]) -> Option<Vec<u8>> {
    Some(Lenient::new(frame).text(head)?.word(JOB_MAX).to_vec())
}
