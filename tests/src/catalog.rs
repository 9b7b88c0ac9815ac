//! The Director's catalog (SQLite): made by the package's own script, read back for the tests.
//!
//! It is read with the root's `sqlite3` program, every column in hexadecimal: names may hold any
//! byte.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{BedError, Result};
use crate::process::run;
use crate::root::Root;

/// The catalog of one bed.
#[derive(Debug, Clone)]
pub struct Catalog {
    root: Root,
    database: PathBuf,
}

/// One row of the `Job` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// `JobId`.
    pub id: u32,
    /// The unique name, `<name>.<date>_<time>_<n>`.
    pub job: String,
    /// State: `T` good, `W` good with warnings, `E` error, `f` fatal, `A` canceled, `I` incomplete
    /// …
    pub status: char,
    /// `F`, `I`, `D`, blank …
    pub level: char,
    /// Files, as the File Daemon reported.
    pub files: u64,
    /// Bytes, as the File Daemon reported.
    pub bytes: u64,
    /// Bytes read, as the File Daemon reported.
    pub read_bytes: u64,
    /// Errors counted.
    pub errors: u32,
    /// `VolSessionId` and `VolSessionTime`: which records on the volumes are this job's.
    pub session: (u32, u32),
}

/// One row of the `File` table with its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileRow {
    /// `FileIndex`.
    pub file_index: i64,
    /// Directory with its final slash, and name (empty for a directory).
    pub path: Vec<u8>,
    /// The `LStat` text.
    pub lstat: Vec<u8>,
    /// The digest in base 64, or `0`.
    pub digest: Vec<u8>,
    /// `DeltaSeq`.
    pub delta_seq: i64,
}

impl Catalog {
    /// Creates the tables in `directory/bacula.db`.
    pub(crate) fn create(root: &Root, directory: &Path) -> Result<Self> {
        let catalog = Self { root: root.clone(), database: directory.join("bacula.db") };
        let script = root.inside("usr/share/bacula-director/make_sqlite3_tables");
        let text = fs::read_to_string(&script).map_err(BedError::file("read", &script))?;
        // The script changes to /var/lib/bacula of the host and calls the host's sqlite3: only its
        // SQL is used.
        let sql = text
            .split_once("<<END-OF-DATA\n")
            .and_then(|(_, rest)| rest.split_once("\nEND-OF-DATA"))
            .map(|(sql, _)| sql)
            .ok_or_else(|| catalog.problem(&script.display().to_string(), "no here-document in the script"))?;
        // A catalog that is not complete yet need not survive anything.
        catalog.sqlite(&format!("PRAGMA synchronous = OFF;\nPRAGMA journal_mode = OFF;\n{sql}\n"))?;
        Ok(catalog)
    }

    /// Runs a query; each column of each row as bytes.
    pub fn rows(&self, columns: &[&str], rest: &str) -> Result<Vec<Vec<Vec<u8>>>> {
        let hex: Vec<_> = columns.iter().map(|column| format!("hex({column})")).collect();
        let query = format!("SELECT {} {rest};\n", hex.join(", "));
        let answer = self.sqlite(&query)?;
        let text = String::from_utf8_lossy(&answer);
        text.lines()
            .map(|line| {
                let row = line.split('|').map(unhex).collect::<Option<Vec<_>>>();
                row.ok_or_else(|| self.problem(&query, "a column is not hexadecimal"))
            })
            .collect()
    }

    /// Changes the catalog behind the Director's back.
    pub fn change(&self, sql: &str) -> Result<()> {
        self.sqlite(sql).map(drop)
    }

    /// The row of a job.
    pub fn job(&self, id: u32) -> Result<JobRow> {
        let columns = [
            "Job",
            "JobStatus",
            "Level",
            "JobFiles",
            "JobBytes",
            "ReadBytes",
            "JobErrors",
            "VolSessionId",
            "VolSessionTime",
        ];
        let rest = format!("FROM Job WHERE JobId = {id}");
        let rows = self.rows(&columns, &rest)?;
        let row = rows.first().ok_or_else(|| self.problem(&rest, "no such job"))?;
        let [job, status, level, files, bytes, read_bytes, errors, session_id, session_time] = &row[..] else {
            return Err(self.problem(&rest, "expected nine columns"));
        };
        let letter = |bytes: &[u8]| bytes.first().map_or(' ', |&byte| char::from(byte));
        let narrow = |bytes: &[u8]| -> Result<u32> {
            u32::try_from(self.number(bytes)?).map_err(|error| self.problem(&rest, &error.to_string()))
        };
        Ok(JobRow {
            id,
            job: String::from_utf8_lossy(job).into_owned(),
            status: letter(status),
            level: letter(level),
            files: self.number(files)?,
            bytes: self.number(bytes)?,
            read_bytes: self.number(read_bytes)?,
            errors: narrow(errors)?,
            session: (narrow(session_id)?, narrow(session_time)?),
        })
    }

    /// The file rows of a job in the order of their file indexes.
    pub fn files(&self, job: u32) -> Result<Vec<FileRow>> {
        let rest = format!(
            "FROM File JOIN Path ON Path.PathId = File.PathId WHERE File.JobId = {job} ORDER BY FileIndex, Path, Filename"
        );
        let signed = |bytes: &[u8]| -> Result<i64> {
            let text = String::from_utf8_lossy(bytes);
            text.parse().map_err(|_| self.problem(&rest, &format!("expected a number, got {text:?}")))
        };
        self.rows(&["FileIndex", "Path", "Filename", "LStat", "MD5", "DeltaSeq"], &rest)?
            .into_iter()
            .map(|row| {
                let [file_index, path, name, lstat, digest, delta_seq] = &row[..] else {
                    return Err(self.problem(&rest, "expected six columns"));
                };
                Ok(FileRow {
                    file_index: signed(file_index)?,
                    path: [&path[..], &name[..]].concat(),
                    lstat: lstat.clone(),
                    digest: digest.clone(),
                    delta_seq: signed(delta_seq)?,
                })
            })
            .collect()
    }

    /// The job's log: everything that Director, Storage Daemon and File Daemon said about it, in
    /// order.
    pub fn log(&self, job: u32) -> Result<String> {
        let rows = self.rows(&["LogText"], &format!("FROM Log WHERE JobId = {job} ORDER BY LogId"))?;
        // The Director stores each text with a backslash behind its final newline.
        let plain = |text: &Vec<u8>| String::from_utf8_lossy(text.strip_suffix(b"\\").unwrap_or(text)).into_owned();
        Ok(rows.iter().flatten().map(plain).collect())
    }

    /// The names of the volumes that hold a job, in the order of writing.
    pub fn volumes(&self, job: u32) -> Result<Vec<String>> {
        let rest = format!(
            "FROM JobMedia JOIN Media ON Media.MediaId = JobMedia.MediaId WHERE JobMedia.JobId = {job} \
             GROUP BY VolumeName ORDER BY MIN(JobMediaId)"
        );
        let rows = self.rows(&["VolumeName"], &rest)?;
        Ok(rows.iter().flatten().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn number(&self, bytes: &[u8]) -> Result<u64> {
        let text = String::from_utf8_lossy(bytes);
        // A column that the Director has not filled yet is empty.
        if text.is_empty() {
            Ok(0)
        } else {
            text.parse().map_err(|_| self.problem("a number", &format!("got {text:?}")))
        }
    }

    fn sqlite(&self, sql: &str) -> Result<Vec<u8>> {
        let argv = self
            .root
            .argv("/usr/bin/sqlite3", ["-batch".into(), "-bail".into(), self.database.clone().into_os_string()])?;
        // The Director writes the same file; wait for it.
        let done = run(&argv, format!(".timeout 60000\n{sql}").as_bytes())?;
        if done.status.success() { Ok(done.stdout) } else { Err(self.problem(sql, &done.text())) }
    }

    #[expect(clippy::unused_self, reason = "reads better at its many callers")]
    fn problem(&self, query: &str, problem: &str) -> BedError {
        let query = query.chars().take(300).collect();
        BedError::Catalog { query, problem: problem.to_owned() }
    }
}

/// The bytes behind hexadecimal digits.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}
