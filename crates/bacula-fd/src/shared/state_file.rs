//! The state file: the last ten jobs, kept over a restart (reference 06 §5.9).
//!
//! The format is the memory of a 64-bit little-endian machine, as the stock daemon writes it. Encoding and decoding are
//! pure; reading and writing the file stands at the end.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::security::own_file;

/// Jobs that are kept.
const KEPT: usize = 10;
/// More of them in a file than this, and the file is damaged.
const MOST: usize = 40;
const HEADER_SIZE: usize = 192;
const RECORD_SIZE: usize = 200;
const NAME_SIZE: usize = 128;
const MAGIC: &[u8; 16] = b"Bacula State\n\0\0\0";
const VERSION: u32 = 4;
/// Bytes of the longest file that is worth reading.
const MAX_FILE: u64 = 1 << 20;
/// Who may read it.
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
    /// The file ends before its contents, or the list stands nowhere.
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
    // Two pointers of the stock daemon's memory, which no reader looks at.
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

/// The jobs of a state file, oldest first, at most ten; entries with `JobId` 0 are left out.
///
/// # Errors
/// [`DamagedState`] if the stock daemon would delete the file.
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
        entries.push(decode_entry(&mut fields)?);
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

/// `WORKING_DIRECTORY/bacula-fd.PORT.state`.
pub(crate) fn path(working_directory: &Path, port: u16) -> PathBuf {
    working_directory.join(format!("bacula-fd.{port}.state"))
}

/// The jobs that the daemon before this one left. A damaged file is deleted.
pub(crate) fn load(path: &Path) -> Vec<FinishedJob> {
    let Some(file) = own_file::read(path).and_then(read_whole).ok() else { return Vec::new() };
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

fn read_whole(file: File) -> io::Result<Vec<u8>> {
    if file.metadata()?.len() > MAX_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes the file, mode 0640: over the one that is there, or anew where that is not what the daemon makes. Every job
/// pays for this, and a new file costs it five times as much.
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
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn entry(job_id: u32) -> FinishedJob {
        FinishedJob {
            errors: 3,
            job_type: b'B',
            job_status: b'T',
            job_level: b'F',
            job_id,
            vol_session_id: 1,
            vol_session_time: 0x6b00_f550,
            job_files: 5,
            job_bytes: 12,
            start_time: 0x6b00_f577,
            end_time: 0x6b00_f577,
            job: b"stock.2026-11-21_01.35.49_03".to_vec(),
        }
    }

    #[test]
    fn an_empty_list_has_196_bytes_and_the_stock_header() {
        // reference 06 §5.9
        let file = encode(&[]);
        assert_eq!(file.len(), 196);
        assert_eq!(&file[..14], b"Bacula State\n\0");
        assert_eq!(&file[16..24], [4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&file[24..40], [0xc0, 0, 0, 0, 0, 0, 0, 0, 0xc4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(decode(&file), Ok(Vec::new()));
    }

    #[test]
    fn a_record_stands_where_the_stock_daemon_puts_it() {
        // The dump of reference 06 §5.9: three jobs, the first one shown.
        let file = encode(&[FinishedJob { errors: 0, ..entry(1) }, entry(2), entry(3)]);
        assert_eq!(file.len(), 796);
        assert_eq!(&file[32..34], [0x1c, 0x03]);
        assert_eq!(&file[0xc0..0xc4], [3, 0, 0, 0]);
        let codes =
            [0, 0, 0, 0, 0x42, 0, 0, 0, 0x54, 0, 0, 0, 0x46, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0x50, 0xf5, 0, 0x6b];
        assert_eq!(&file[0xd4..0xf0], codes);
        assert_eq!(&file[0xf0..0xfc], [5, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&file[0x10c..0x110], b"stoc");
    }

    #[test]
    fn the_newest_ten_survive_a_round_trip() {
        let all: Vec<FinishedJob> = (1..=13).map(entry).collect();
        assert_eq!(decode(&encode(&all)).unwrap(), all[3..]);
        let with_console = [entry(0), entry(7)];
        assert_eq!(decode(&encode(&with_console)).unwrap(), [entry(7)]);
        let long = FinishedJob { job: vec![b'x'; 500], ..entry(1) };
        assert_eq!(decode(&encode(&[long])).unwrap()[0].job.len(), 127);
    }

    #[test]
    fn a_link_or_fifo_in_its_place_is_not_read() {
        let directory = std::env::temp_dir().join(format!("ferrofd-state-traps-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (real, file) = (directory.join("real"), directory.join("bacula-fd.1.state"));
        fs::write(&real, encode(&[entry(1)])).unwrap();
        assert_eq!(load(&real), [entry(1)]);
        std::os::unix::fs::symlink(&real, &file).unwrap();
        assert_eq!(load(&file), []);
        fs::remove_file(&file).unwrap();
        // Nobody writes to it: an open that waits would wait for ever.
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(load(&file), []);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn damage_is_named() {
        let good = encode(&[entry(1)]);
        for length in 0..good.len() {
            assert!(decode(&good[..length]).is_err(), "{length}");
        }
        let broken = |at: usize, byte: u8| {
            let mut file = good.clone();
            file[at] = byte;
            decode(&file)
        };
        assert_eq!(broken(0, b'b'), Err(DamagedState::Magic));
        assert_eq!(broken(16, 3), Err(DamagedState::Version(3)));
        assert_eq!(broken(24, 0), Err(DamagedState::Short(396)));
        assert_eq!(broken(31, 0xff), Err(DamagedState::Short(396)));
        assert_eq!(broken(0xc0, 41), Err(DamagedState::Count(41)));
    }

    #[test]
    fn only_what_the_daemon_makes_is_written_over() {
        let directory = std::env::temp_dir().join(format!("ferrofd-state-over-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (file, other) = (path(&directory, 9102), directory.join("other"));
        let ways: [&dyn Fn(); 3] = [
            &|| std::os::unix::fs::symlink(&other, &file).unwrap(),
            &|| fs::hard_link(&other, &file).unwrap(),
            &|| {
                fs::write(&file, "rubbish").unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
            },
        ];
        for way in ways {
            fs::write(&other, "of somebody else").unwrap();
            way();
            save(&file, &[entry(1)]).unwrap();
            assert_eq!(load(&file), [entry(1)]);
            let about = fs::symlink_metadata(&file).unwrap();
            assert!(about.is_file() && about.mode() & 0o7777 == MODE, "{about:?}");
            assert_eq!(fs::read(&other).unwrap(), b"of somebody else");
            let inode = about.ino();
            save(&file, &[entry(1), entry(2)]).unwrap();
            assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "written over");
            fs::remove_file(&file).unwrap();
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_damaged_file_is_deleted_and_a_good_one_read() {
        let directory = std::env::temp_dir().join(format!("ferrofd-state-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = path(&directory, 9102);
        assert!(file.ends_with("bacula-fd.9102.state"));
        assert_eq!(load(&file), []);
        save(&file, &[entry(1)]).unwrap();
        save(&file, &[entry(1), entry(2)]).unwrap();
        assert_eq!(load(&file), [entry(1), entry(2)]);
        save(&file, &[entry(3)]).unwrap();
        assert_eq!(fs::read(&file).unwrap(), encode(&[entry(3)]), "nothing is left behind it");
        fs::write(&file, b"rubbish").unwrap();
        assert_eq!(load(&file), []);
        assert!(!file.exists());
        fs::remove_dir_all(&directory).unwrap();
    }
}
