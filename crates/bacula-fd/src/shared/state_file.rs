//! The state file: the last ten jobs, kept over a restart (reference 06 §5.9).
//!
//! The format is the memory of a 64-bit little-endian machine, as the stock daemon writes it.
//! Encoding and decoding are pure functions.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::security::own_file;

/// Jobs that are kept.
const KEPT: usize = 10;
/// A file with more of them is damaged.
const MOST: usize = 40;
const HEADER_SIZE: usize = 192;
const RECORD_SIZE: usize = 200;
const NAME_SIZE: usize = 128;
const MAGIC: &[u8; 16] = b"Bacula State\n\0\0\0";
const VERSION: u32 = 4;
/// Bytes of the longest file that is worth reading.
const MAX_FILE: u64 = 1 << 20;
/// Its mode.
const MODE: u32 = 0o640;

/// A job that ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct FinishedJob {
    /// Number of errors.
    pub(crate) errors: i32,
    /// The code: `B`, `R`, `V` …
    pub(crate) job_type: u8,
    /// The code: `T`, `E`, `f`, `A` …
    pub(crate) job_status: u8,
    /// The code: `F`, `I`, `D` …
    pub(crate) job_level: u8,
    /// Catalog number; never 0 in a file.
    pub(crate) job_id: u32,
    /// The Storage Daemon's session.
    pub(crate) vol_session_id: u32,
    /// The Storage Daemon's session time.
    pub(crate) vol_session_time: u32,
    /// Files saved or restored.
    pub(crate) job_files: u32,
    /// Bytes saved or restored.
    pub(crate) job_bytes: u64,
    /// Seconds since 1970.
    pub(crate) start_time: i64,
    /// Seconds since 1970.
    pub(crate) end_time: i64,
    /// Unique name; more than 127 bytes are cut.
    pub(crate) job: Vec<u8>,
}

/// What is wrong with a state file. The daemon deletes such a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum DamagedState {
    /// Not the first bytes of a state file.
    #[error("it does not begin like a state file")]
    Magic,
    /// Written by another version.
    #[error("version {0} instead of {VERSION}")]
    Version(u32),
    /// More jobs than a daemon ever writes.
    #[error("{0} jobs instead of at most {MOST}")]
    Count(u32),
    /// The file ends too early, or has no list.
    #[error("it ends at byte {0}, before its job list does")]
    Short(usize),
}

/// The bytes of a state file with the last ten of these jobs, oldest first.
pub(crate) fn encode(entries: &[FinishedJob]) -> Vec<u8> {
    let kept = entries.get(entries.len().saturating_sub(KEPT)..).unwrap_or_default();
    let end = HEADER_SIZE + 4 + kept.len() * RECORD_SIZE;
    let mut file = Vec::with_capacity(end);
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&[0; 4]);
    file.extend_from_slice(&(HEADER_SIZE as u64).to_le_bytes());
    file.extend_from_slice(&(end as u64).to_le_bytes());
    file.resize(HEADER_SIZE, 0);
    file.extend_from_slice(&u32::try_from(kept.len()).unwrap_or_default().to_le_bytes());
    for entry in kept {
        encode_entry(entry, &mut file);
    }
    file
}

fn encode_entry(entry: &FinishedJob, file: &mut Vec<u8>) {
    // Two pointers of the stock daemon's memory, which no program reads.
    file.extend_from_slice(&[0; 16]);
    file.extend_from_slice(&entry.errors.to_le_bytes());
    for code in [entry.job_type, entry.job_status, entry.job_level] {
        file.extend_from_slice(&u32::from(code).to_le_bytes());
    }
    for number in [entry.job_id, entry.vol_session_id, entry.vol_session_time, entry.job_files] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(&entry.job_bytes.to_le_bytes());
    file.extend_from_slice(&entry.start_time.to_le_bytes());
    file.extend_from_slice(&entry.end_time.to_le_bytes());
    let name = entry.job.get(..entry.job.len().min(NAME_SIZE - 1)).unwrap_or_default();
    file.extend_from_slice(name);
    file.resize(file.len() + NAME_SIZE - name.len(), 0);
}

/// The jobs of a state file, oldest first, at most ten; entries with `JobId` 0 are left out. Of a
/// file that was cut off those before the cut are left.
///
/// # Errors
/// [`DamagedState`] if it has no list of jobs.
pub(crate) fn decode(file: &[u8]) -> Result<Vec<FinishedJob>, DamagedState> {
    let mut header = Fields { bytes: file, at: 0 };
    if header.take::<16>()?.get(..14) != MAGIC.get(..14) {
        return Err(DamagedState::Magic);
    }
    let version = header.u32()?;
    if version != VERSION {
        return Err(DamagedState::Version(version));
    }
    header.take::<4>()?;
    let list = header.u64()?;
    if file.len() < HEADER_SIZE || list == 0 {
        return Err(DamagedState::Short(file.len()));
    }
    let at = usize::try_from(list).map_err(|_| DamagedState::Short(file.len()))?;
    let mut fields = Fields { bytes: file, at };
    let count = fields.u32()?;
    if usize::try_from(count).map_or(true, |count| count > MOST) {
        return Err(DamagedState::Count(count));
    }
    let mut entries = Vec::new();
    for _ in 0..count {
        let Ok(entry) = decode_entry(&mut fields) else { break };
        entries.push(entry);
    }
    entries.retain(|entry| entry.job_id != 0);
    entries.drain(..entries.len().saturating_sub(KEPT));
    Ok(entries)
}

fn decode_entry(fields: &mut Fields<'_>) -> Result<FinishedJob, DamagedState> {
    fields.take::<16>()?;
    let mut entry = FinishedJob { errors: i32::from_le_bytes(fields.take()?), ..FinishedJob::default() };
    entry.job_type = fields.code()?;
    entry.job_status = fields.code()?;
    entry.job_level = fields.code()?;
    entry.job_id = fields.u32()?;
    entry.vol_session_id = fields.u32()?;
    entry.vol_session_time = fields.u32()?;
    entry.job_files = fields.u32()?;
    entry.job_bytes = fields.u64()?;
    entry.start_time = i64::from_le_bytes(fields.take()?);
    entry.end_time = i64::from_le_bytes(fields.take()?);
    let name = fields.take::<NAME_SIZE>()?;
    entry.job = name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    Ok(entry)
}

/// Reads fields one after the other.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DamagedState> {
        let field = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let field = *field.ok_or(DamagedState::Short(self.bytes.len()))?;
        self.at = self.at.saturating_add(N);
        Ok(field)
    }

    fn u32(&mut self) -> Result<u32, DamagedState> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, DamagedState> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// A character in 32 bits.
    fn code(&mut self) -> Result<u8, DamagedState> {
        let [code, ..] = self.take::<4>()?;
        Ok(code)
    }
}

/// The jobs that the previous daemon left. A damaged file is deleted.
pub(crate) fn load(path: &Path) -> Vec<FinishedJob> {
    let Some(file) = own_file::read(path).and_then(|file| own_file::content(file, MAX_FILE)).ok() else {
        return Vec::new();
    };
    match decode(&file) {
        Ok(entries) => entries,
        Err(damage) => {
            tracing::warn!(%damage, path = %path.display(), "the state file is damaged and is removed");
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!(%error, path = %path.display(), "the damaged state file can't be removed");
            }
            Vec::new()
        }
    }
}

/// Writes the file, mode 0640: over the existing one, or anew where that is not a file of the
/// daemon's. This runs at the end of every job, and a new file costs five times as much.
///
/// # Errors
/// When it can't be created or written.
pub(crate) fn save(path: &Path, entries: &[FinishedJob]) -> io::Result<()> {
    let bytes = encode(entries);
    let file = own_file::open(path, MODE)?;
    file.write_all_at(&bytes, 0)?;
    if file.metadata()?.len() > bytes.len() as u64 { file.set_len(bytes.len() as u64) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
