//! The Director's catalog (SQLite): made by the package's own script, read back for the tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::error::{BedError, Result};
use crate::folder::Folder;
use crate::memory::roomy_memory;
use crate::root::Root;

/// Bytes that must be free in memory, where the catalogs of many beds need not wait for a disk: the
/// Director has each synchronized many times a job.
const ROOM: u64 = 1 << 30;

/// The catalog of one bed.
#[derive(Debug)]
pub struct Catalog {
    database: Mutex<Connection>,
    /// Where the Director's working directory is if that is only a link.
    _memory: Option<Folder>,
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
    /// Makes the Director's working directory, with the tables in `directory/bacula.db`; in memory
    /// if there is enough.
    pub(crate) fn create(root: &Root, directory: &Path) -> Result<Self> {
        let memory = roomy_memory(ROOM).map(|memory| Folder::below(memory, "catalog")).transpose()?;
        match &memory {
            Some(memory) => symlink(memory.path(), directory),
            None => fs::create_dir(directory),
        }
        .map_err(BedError::file("make", directory))?;
        let script = root.inside("usr/share/bacula-director/make_sqlite3_tables");
        let text = fs::read_to_string(&script).map_err(BedError::file("read", &script))?;
        // The script changes to /var/lib/bacula of the host and calls the host's sqlite3: only its
        // SQL is used.
        let sql = text
            .split_once("<<END-OF-DATA\n")
            .and_then(|(_, rest)| rest.split_once("\nEND-OF-DATA"))
            .map(|(sql, _)| sql)
            .ok_or_else(|| problem(&script.display().to_string(), "no here-document in the script"))?;
        let database = Connection::open(directory.join("bacula.db")).map_err(sqlite("open"))?;
        // The Director writes the same file; wait for it.
        database.busy_timeout(Duration::from_secs(60)).map_err(sqlite("busy_timeout"))?;
        // A catalog that is not complete yet need not survive anything.
        let sql =
            format!("PRAGMA synchronous = OFF;\nPRAGMA journal_mode = OFF;\n{sql}\nPRAGMA journal_mode = DELETE;\n");
        let catalog = Self { database: Mutex::new(database), _memory: memory };
        catalog.change(&sql)?;
        Ok(catalog)
    }

    /// Runs a query; each column of each row as bytes: names may hold any.
    pub fn rows(&self, columns: &[&str], rest: &str) -> Result<Vec<Vec<Vec<u8>>>> {
        let query = format!("SELECT {} {rest}", columns.join(", "));
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = database.prepare(&query).map_err(sqlite(&query))?;
        let row = |row: &rusqlite::Row<'_>| (0..columns.len()).map(|column| row.get_ref(column).map(bytes)).collect();
        let rows = statement.query_map([], row).map_err(sqlite(&query))?;
        rows.collect::<rusqlite::Result<_>>().map_err(sqlite(&query))
    }

    /// Changes the catalog behind the Director's back.
    pub fn change(&self, sql: &str) -> Result<()> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner).execute_batch(sql).map_err(sqlite(sql))
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
        let row = rows.first().ok_or_else(|| problem(&rest, "no such job"))?;
        let [job, status, level, files, bytes, read_bytes, errors, session_id, session_time] = &row[..] else {
            return Err(problem(&rest, "expected nine columns"));
        };
        let letter = |bytes: &[u8]| bytes.first().map_or(' ', |&byte| char::from(byte));
        let narrow = |bytes: &[u8]| -> Result<u32> {
            u32::try_from(number(bytes)?).map_err(|error| problem(&rest, &error.to_string()))
        };
        Ok(JobRow {
            id,
            job: String::from_utf8_lossy(job).into_owned(),
            status: letter(status),
            level: letter(level),
            files: number(files)?,
            bytes: number(bytes)?,
            read_bytes: number(read_bytes)?,
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
            text.parse().map_err(|_| problem(&rest, &format!("expected a number, got {text:?}")))
        };
        self.rows(&["FileIndex", "Path", "Filename", "LStat", "MD5", "DeltaSeq"], &rest)?
            .into_iter()
            .map(|row| {
                let [file_index, path, name, lstat, digest, delta_seq] = &row[..] else {
                    return Err(problem(&rest, "expected six columns"));
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
}

fn number(bytes: &[u8]) -> Result<u64> {
    let text = String::from_utf8_lossy(bytes);
    // A column that the Director has not filled yet is empty.
    if text.is_empty() { Ok(0) } else { text.parse().map_err(|_| problem("a number", &format!("got {text:?}"))) }
}

/// A column as SQLite shows it.
fn bytes(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Null => Vec::new(),
        ValueRef::Integer(number) => number.to_string().into_bytes(),
        ValueRef::Real(number) => number.to_string().into_bytes(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
    }
}

fn sqlite(query: &str) -> impl Fn(rusqlite::Error) -> BedError {
    move |error| problem(query, &error.to_string())
}

fn problem(query: &str, problem: &str) -> BedError {
    let query = query.chars().take(300).collect();
    BedError::Catalog { query, problem: problem.to_owned() }
}
