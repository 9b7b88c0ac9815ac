//! One job's figures, and the raw file that keeps all of them: one line a job, written as soon as
//! it has ended.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use bed::{BedError, JobRow, Result};

use crate::cell::Cell;
use crate::statistics::float;
use crate::surroundings::{Stalls, Surroundings};

const HEAD: &str = "cell,daemon,replica,turn,began,outcome,connection_ms,first_file_ms,job_ms,queued_ms,fd_cpu_s,fd_user_s,fd_system_s,sd_cpu_s,\
     dir_cpu_s,peak_rss_bytes,files,bytes,read_bytes,load,resident_before,resident_after,psi_cpu_some_us,\
     psi_io_some_us,psi_io_full_us,psi_memory_some_us,disk_free_bytes,program,harness";

/// The daemon that ran a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The stock File Daemon.
    Stock,
    /// ferrofd.
    Ours,
    /// A client that sends what was recorded.
    Floor,
}

impl Side {
    /// The daemons that are compared.
    pub const BOTH: [Self; 2] = [Self::Stock, Self::Ours];

    /// Its word, which is also the client's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Ours => "ours",
            Self::Floor => "floor",
        }
    }
}

/// What one job took.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Which cell.
    pub cell: Cell,
    /// The daemon that ran the job.
    pub side: Side,
    /// Which replica, from 1.
    pub replica: u32,
    /// Whether it ran first in its replica, second …
    pub turn: u32,
    /// How the job ended, as the catalog says: `T` good, `W` with warnings, `E` error, `f` fatal …
    pub outcome: char,
    /// Life of the Director's connection, milliseconds.
    pub connection: f64,
    /// From its begin to the first file of a restore, milliseconds; in the kernel's ticks.
    pub first: Option<f64>,
    /// From the console's command to the last write of the catalog for the job, milliseconds. Rows
    /// from before it was measured have none.
    pub job: Option<f64>,
    /// The part of it that the Director takes before it calls the Storage Daemon, milliseconds: a
    /// job waits in its queue up to two seconds, by the phase of the Director's poll.
    pub queued: Option<f64>,
    /// CPU time of the File Daemon, seconds; to the nanosecond.
    pub fd: f64,
    /// The part of it in its own code, seconds; in the kernel's ticks.
    pub fd_user: f64,
    /// The part of it in the kernel, seconds; in the kernel's ticks.
    pub fd_system: f64,
    /// CPU time of the Storage Daemon, seconds.
    pub sd: f64,
    /// CPU time of the Director, seconds; its console session is part of it.
    pub dir: f64,
    /// Largest resident memory of the File Daemon during the job, bytes.
    pub rss: f64,
    /// Files in the catalog.
    pub files: u64,
    /// Bytes in the catalog.
    pub bytes: u64,
    /// Bytes that the File Daemon has read.
    pub read_bytes: u64,
    /// What the job found and left.
    pub around: Surroundings,
    /// The first digits of the SHA-256 of the daemon's program.
    pub program: Option<String>,
    /// The newest commit of the harness, with `+` if it was changed since.
    pub harness: Option<String>,
}

/// A number of a sample.
pub type Figure = fn(&Sample) -> f64;

impl Sample {
    /// Whether its figures count: the job ended well, perhaps with warnings.
    pub fn is_good(&self) -> bool {
        matches!(self.outcome, 'T' | 'W')
    }

    /// The letter of a job: the catalog's, and `W` of a good one with errors.
    pub fn outcome_of(job: &JobRow) -> char {
        if job.errors > 0 && job.status == 'T' { 'W' } else { job.status }
    }

    fn line(&self) -> String {
        let Self {
            cell,
            side,
            replica,
            turn,
            outcome,
            connection,
            job,
            queued,
            fd,
            fd_user,
            fd_system,
            sd,
            dir,
            rss,
            ..
        } = self;
        let Self { first, files, bytes, read_bytes, around, program, harness, .. } = self;
        let [program, harness] = [program, harness].map(|word| word.as_deref().unwrap_or_default());
        let Surroundings { began, resident_before, resident_after, stalls, disk_free, load } = around;
        let [first, job, queued] =
            [first, job, queued].map(|time| time.map(|time| format!("{time:.3}")).unwrap_or_default());
        let part = |part: &Option<f64>| part.map(|part| format!("{part:.4}")).unwrap_or_default();
        let count = |count: &Option<u64>| count.map(|count| count.to_string()).unwrap_or_default();
        let Stalls { cpu_some, io_some, io_full, memory_some } = stalls;
        let last = [cpu_some, io_some, io_full, memory_some, disk_free].map(count).join(",");
        format!(
            "{cell},{},{replica},{turn},{began},{outcome},{connection:.3},{first},{job},{queued},{fd:.6},{fd_user},{fd_system},\
             {sd:.6},{dir:.6},{rss},{files},{bytes},{read_bytes},{load},{},{},{last},{program},{harness}\n",
            side.name(),
            part(resident_before),
            part(resident_after),
        )
    }

    /// A line of a file with this head. What the head lacks was not known when the file was begun.
    fn parse(head: &str, line: &str) -> Option<Self> {
        let columns: Vec<&str> = line.split(',').collect();
        let text = |name: &str| columns.get(head.split(',').position(|column| column == name)?).copied();
        let number = |name: &str| text(name)?.parse::<f64>().ok();
        let count = |name: &str| text(name)?.parse::<u64>().ok();
        let word = |name: &str| text(name).filter(|word| !word.is_empty()).map(str::to_owned);
        let (cell, side) = (text("cell")?, text("daemon")?);
        (columns.len() == head.split(',').count()).then_some(())?;
        Some(Self {
            cell: Cell::all().into_iter().find(|known| known.to_string() == cell)?,
            side: [Side::Stock, Side::Ours, Side::Floor].into_iter().find(|known| known.name() == side)?,
            replica: text("replica")?.parse().ok()?,
            turn: text("turn")?.parse().ok()?,
            outcome: text("outcome")?.chars().next()?,
            connection: number("connection_ms")?,
            first: number("first_file_ms"),
            job: number("job_ms"),
            queued: number("queued_ms"),
            fd: number("fd_cpu_s")?,
            fd_user: number("fd_user_s")?,
            fd_system: number("fd_system_s")?,
            sd: number("sd_cpu_s")?,
            dir: number("dir_cpu_s")?,
            rss: number("peak_rss_bytes")?,
            files: count("files")?,
            bytes: count("bytes")?,
            read_bytes: count("read_bytes")?,
            around: Surroundings {
                began: count("began")?,
                load: number("load")?,
                resident_before: number("resident_before"),
                resident_after: number("resident_after"),
                stalls: Stalls {
                    cpu_some: count("psi_cpu_some_us"),
                    io_some: count("psi_io_some_us"),
                    io_full: count("psi_io_full_us"),
                    memory_some: count("psi_memory_some_us"),
                },
                disk_free: count("disk_free_bytes"),
            },
            program: word("program"),
            harness: word("harness"),
        })
    }

    /// CPU time of the File Daemon for each file, microseconds.
    pub fn cpu_per_file(&self) -> f64 {
        self.fd * 1e6 / float(self.files.max(1))
    }
}

/// Adds a sample to the raw file, which gets its head when it is new.
///
/// # Errors
/// The file has another head: its rows would be read wrongly.
pub fn append(path: &Path, sample: &Sample) -> Result<()> {
    let old = if path.exists() { Some(fs::read_to_string(path).map_err(BedError::file("read", path))?) } else { None };
    let head = match old.as_ref().and_then(|text| text.lines().next()) {
        Some(HEAD) => String::new(),
        Some(_) => return Err(BedError::Usage(format!("{}: the rows there have other columns", path.display()))),
        None => format!("{HEAD}\n"),
    };
    let mut out = File::options().append(true).create(true).open(path).map_err(BedError::file("open", path))?;
    out.write_all(format!("{head}{}", sample.line()).as_bytes()).map_err(BedError::file("write", path))
}

/// All samples of a raw file, by the head that it has.
pub fn read(path: &Path) -> Result<Vec<Sample>> {
    let text = fs::read_to_string(path).map_err(BedError::file("read", path))?;
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let head = lines.next().unwrap_or_default();
    let parse = |line: &str| {
        Sample::parse(head, line).ok_or_else(|| BedError::Usage(format!("{}: not a sample: {line}", path.display())))
    };
    lines.map(parse).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A sample of one cell, for the tests of what uses samples.
    pub(crate) fn sample(side: Side, replica: u32) -> Sample {
        Sample {
            cell: Cell::choose("manyfiles10 full default").unwrap()[0],
            side,
            replica,
            turn: 1,
            outcome: 'T',
            connection: 1234.567,
            first: Some(17.25),
            job: Some(2123.5),
            queued: Some(850.125),
            fd: 1.234_567,
            fd_user: 0.5,
            fd_system: 0.73,
            sd: 2.5,
            dir: 0.25,
            rss: 4096.0,
            files: 55_000,
            bytes: 1_000_000_007,
            read_bytes: 1_000_000_000,
            around: Surroundings {
                load: 2.31,
                resident_before: Some(0.5),
                stalls: Stalls { io_full: Some(17), ..Stalls::default() },
                disk_free: Some(1 << 40),
                ..Surroundings::default()
            },
            program: Some("0123456789ab".to_owned()),
            harness: None,
        }
    }

    #[test]
    fn a_sample_is_read_as_it_was_written() {
        let sample = sample(Side::Ours, 3);
        assert_eq!(Sample::parse(HEAD, sample.line().trim_end()), Some(sample));
        assert_eq!(Sample::parse(HEAD, "nonsense"), None);
    }

    #[test]
    fn rows_from_before_a_column_are_read_by_their_own_head() {
        let folder = bed::Folder::new("rows").unwrap();
        let raw = folder.path().join("raw.csv");
        let old = "cell,daemon,replica,turn,began,outcome,connection_ms,first_file_ms,job_s,fd_cpu_s,fd_user_s,\
                   fd_system_s,sd_cpu_s,dir_cpu_s,peak_rss_bytes,files,bytes,read_bytes,load,resident_before,\
                   resident_after,psi_cpu_some_us,psi_io_some_us,psi_io_full_us,psi_memory_some_us,disk_free_bytes\n\
                   manyfiles1 full default,stock,1,2,1764300000,T,1234.500,,2,0.5,0.25,0.25,0.1,0.1,4096,17,18,19,\
                   0.5,1.0000,0.5000,1,2,3,4,5\n";
        fs::write(&raw, old).unwrap();
        let [row] = &read(&raw).unwrap()[..] else { panic!("one row") };
        assert_eq!((row.job, row.connection, row.around.disk_free), (None, 1234.5, Some(5)));
        assert_eq!((&row.program, &row.harness), (&None, &None));
        assert!(append(&raw, row).is_err(), "columns of two kinds in one file");
        fs::remove_file(&raw).unwrap();
        append(&raw, row).unwrap();
        append(&raw, &sample(Side::Ours, 3)).unwrap();
        assert_eq!(read(&raw).unwrap(), [row.clone(), sample(Side::Ours, 3)]);
    }
}
