//! One job's figures, and the raw file that keeps all of them: one line a job, written as soon as
//! it has ended.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use bed::{BedError, Result};

use crate::cell::Cell;
use crate::statistics::float;
use crate::tree::file;

const HEAD: &str = "cell,daemon,replica,connection_ms,job_s,fd_cpu_s,fd_user_s,fd_system_s,sd_cpu_s,dir_cpu_s,\
     peak_rss_bytes,files,bytes,load";

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
    /// Life of the Director's connection, milliseconds.
    pub connection: f64,
    /// From the catalog's start time to its end time, seconds.
    pub job: f64,
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
    /// Load average of the last minute when it began: what else the machine did.
    pub load: f64,
}

/// A number of a sample.
pub type Figure = fn(&Sample) -> f64;

impl Sample {
    fn line(&self) -> String {
        let Self { cell, side, replica, connection, job, fd, fd_user, fd_system, sd, dir, rss, files, bytes, load } =
            self;
        format!(
            "{cell},{},{replica},{connection:.3},{job},{fd:.6},{fd_user},{fd_system},{sd:.6},{dir:.6},{rss},{files},{bytes},{load}\n",
            side.name()
        )
    }

    fn parse(line: &str) -> Option<Self> {
        let [cell, side, replica, connection, job, fd, fd_user, fd_system, sd, dir, rss, files, bytes, load] =
            line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let number = |text: &str| text.parse::<f64>().ok();
        Some(Self {
            cell: Cell::all().into_iter().find(|known| known.to_string() == cell)?,
            side: [Side::Stock, Side::Ours, Side::Floor].into_iter().find(|known| known.name() == side)?,
            replica: replica.parse().ok()?,
            connection: number(connection)?,
            job: number(job)?,
            fd: number(fd)?,
            fd_user: number(fd_user)?,
            fd_system: number(fd_system)?,
            sd: number(sd)?,
            dir: number(dir)?,
            rss: number(rss)?,
            files: files.parse().ok()?,
            bytes: bytes.parse().ok()?,
            load: number(load)?,
        })
    }

    /// CPU time of the File Daemon for each file, microseconds.
    pub fn cpu_per_file(&self) -> f64 {
        self.fd * 1e6 / float(self.files.max(1))
    }
}

/// Adds a sample to the raw file, which gets its head when it is new.
pub fn append(path: &Path, sample: &Sample) -> Result<()> {
    let new = !path.exists();
    let mut out = File::options().append(true).create(true).open(path).map_err(file("open", path))?;
    let head = if new { format!("{HEAD}\n") } else { String::new() };
    out.write_all(format!("{head}{}", sample.line()).as_bytes()).map_err(file("write", path))
}

/// All samples of a raw file.
pub fn read(path: &Path) -> Result<Vec<Sample>> {
    let text = fs::read_to_string(path).map_err(file("read", path))?;
    let parse = |line: &str| {
        Sample::parse(line).ok_or_else(|| BedError::Usage(format!("{}: not a sample: {line}", path.display())))
    };
    text.lines().filter(|line| *line != HEAD && !line.is_empty()).map(parse).collect()
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
            connection: 1234.567,
            job: 2.0,
            fd: 1.234_567,
            fd_user: 0.5,
            fd_system: 0.73,
            sd: 2.5,
            dir: 0.25,
            rss: 4096.0,
            files: 55_000,
            bytes: 1_000_000_007,
            load: 2.31,
        }
    }

    #[test]
    fn a_sample_is_read_as_it_was_written() {
        let sample = sample(Side::Ours, 3);
        assert_eq!(Sample::parse(sample.line().trim_end()), Some(sample));
        assert_eq!(Sample::parse("nonsense"), None);
    }
}
