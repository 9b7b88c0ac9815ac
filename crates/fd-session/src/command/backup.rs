//! The commands that say what a backup saves: its level, and the numbers in `accurate`, `backup`
//! and `estimate` (reference 02 §4.2, §4.9, §4.10, §4.17).

use fd_bsock::scan::Lenient;

use super::job::JOB_MAX;
use super::refusal::Refusal;
use crate::texts;

/// Level of a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackupLevel {
    /// `F`.
    Full,
    /// `B`.
    Base,
    /// `D`.
    Differential,
    /// `I`.
    Incremental,
    /// `S`: a time without a level before it.
    Since,
}

impl BackupLevel {
    /// The level's letter in the catalog.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Full => b'F',
            Self::Base => b'B',
            Self::Differential => b'D',
            Self::Incremental => b'I',
            Self::Since => b'S',
        }
    }
}

/// Marks that any `level` command may carry; once set they stay set for the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LevelFlags {
    /// The job is accurate.
    pub accurate: bool,
    /// The job resumes an incomplete one.
    pub rerunning: bool,
}

/// What a `level` command says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Level {
    /// The whole level; to be answered at once.
    Whole(BackupLevel),
    /// The level; its time comes with the next command, which is the one that is answered.
    Awaiting(BackupLevel),
    /// The time that changed files are compared with.
    Since(Since),
}

/// `level = since_utime`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Since {
    /// Seconds since 1970 by the Director's clock.
    pub time: i64,
    /// Name of the job that the time comes from; empty if not said.
    pub previous_job: Vec<u8>,
    /// What follows if the Director does not say what its clock shows.
    pub clockless: Refusal,
}

pub(super) fn level(frame: &[u8]) -> Option<(LevelFlags, Level)> {
    // The marks may be anywhere (reference 02 §4.2), but not in the name of the previous job.
    let name = b" prev_job=";
    let marks = frame.windows(name.len()).position(|window| window == name).and_then(|end| frame.get(..end));
    let marks = marks.unwrap_or(frame);
    let flags = LevelFlags { accurate: contains(marks, b"accurate"), rerunning: contains(marks, b"rerunning") };
    let word = level_word(frame);
    let level = if word.eq_ignore_ascii_case(b"base") {
        Level::Whole(BackupLevel::Base)
    } else if word.eq_ignore_ascii_case(b"full") {
        Level::Whole(BackupLevel::Full)
    } else if contains(word, b"differential") {
        Level::Awaiting(BackupLevel::Differential)
    } else if contains(word, b"incremental") {
        Level::Awaiting(BackupLevel::Incremental)
    } else {
        Level::Since(since(frame)?)
    };
    Some((flags, level))
}

fn level_word(frame: &[u8]) -> &[u8] {
    Lenient::new(frame).text("level = ").map_or(&[], |scan| scan.word(1000))
}

fn is_since(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"since_utime")
}

pub(super) fn level_refused(frame: &[u8]) -> Refusal {
    let word = level_word(frame);
    let text = if is_since(word) { texts::MALFORMED_LEVEL.of(frame) } else { texts::UNKNOWN_LEVEL.of(word) };
    Refusal::fatal(text)
}

fn since(frame: &[u8]) -> Option<Since> {
    let mut scan = Lenient::new(frame);
    let text = scan.text("level = since_utime ")?.word(1000);
    let time = Lenient::new(text).i64();
    scan.text(" mtime_only=")?.i32();
    let previous_job = scan.text(" prev_job=").map(|scan| scan.word(JOB_MAX).to_vec()).unwrap_or_default();
    Some(Since { time, previous_job, clockless: level_refused(frame) })
}

/// Whether a `fileset` asks for snapshots.
pub(super) fn wants_snapshot(frame: &[u8]) -> bool {
    contains(frame, b"snap=1")
}

/// The FileIndex in `backup`. A frame that does not fit leaves 0 (reference 02 §4.10), and so does
/// a negative number.
pub(super) fn file_index(frame: &[u8]) -> u32 {
    let index = Lenient::new(frame).text("backup FileIndex=").map_or(0, Lenient::i64);
    u32::try_from(index).unwrap_or(0)
}

/// About how many files an accurate list has.
pub(super) fn accurate_files(frame: &[u8]) -> Option<u64> {
    Lenient::new(frame).text("accurate files=").map(Lenient::u64)
}

/// `estimate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EstimateOrder {
    /// Each file is listed.
    pub listing: bool,
    /// Stop after about so many files; 0: no limit.
    pub limit: u64,
}

impl EstimateOrder {
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(frame);
        let listing = scan.text("estimate listing=")?.i32() != 0;
        let limit = scan.text(" limit=").map_or(0, Lenient::i64);
        Some(Self { listing, limit: u64::try_from(limit).unwrap_or(0) })
    }
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}
