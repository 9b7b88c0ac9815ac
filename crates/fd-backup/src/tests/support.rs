//! A backup into memory: a tree, a FileSet, a sink that decodes the stream, a log that keeps
//! messages.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use crate::{BackupError, BackupPlan, FrameSink, SinkError};
use fd_bsock::{CommCount, Parsed, Signal, decompress, parse};
use fd_fileset::{FileSet, Parser, Regex, RegexCompiler};
use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_records::AttributesRecord;
use fd_walk::WalkSettings;

/// A record of the stream: its header, and its messages up to the end-of-data signal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) file_index: i64,
    pub(crate) stream: u32,
    pub(crate) size: i64,
    pub(crate) messages: Vec<Vec<u8>>,
}

impl Record {
    /// All messages together.
    pub(crate) fn data(&self) -> Vec<u8> {
        self.messages.concat()
    }

    /// The decoded attribute record.
    pub(crate) fn attributes(&self) -> AttributesRecord<'_> {
        assert!([1, 37].contains(&self.stream), "no attributes: {self:?}");
        AttributesRecord::parse(&self.messages[0]).unwrap()
    }

    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(self.attributes().name).into_owned()
    }
}

/// Keeps frames in memory.
#[derive(Default)]
pub(crate) struct Collector {
    pub(crate) wire: Vec<u8>,
    pub(crate) count: CommCount,
    /// Called with the number of each call before its frames are taken; `false` refuses them.
    hook: Option<Box<dyn FnMut(usize) -> bool>>,
    calls: usize,
    /// Gets all that was sent when it is flushed. If it is closed, flushing fails.
    flushed: Option<Sender<Vec<u8>>>,
}

impl FrameSink for Collector {
    fn send_encoded(&mut self, frames: &[u8], count: CommCount) -> Result<(), SinkError> {
        self.calls += 1;
        if let Some(hook) = &mut self.hook
            && !hook(self.calls)
        {
            return Err(broken_pipe());
        }
        self.wire.extend_from_slice(frames);
        self.count += count;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.flushed.as_ref().map_or(Ok(()), |flushed| flushed.send(self.wire.clone()).map_err(|_| broken_pipe()))
    }
}

fn broken_pipe() -> SinkError {
    SinkError { reason: "Broken pipe".to_owned() }
}

impl Collector {
    /// A collector that tells what it has when it is flushed.
    pub(crate) fn telling(flushed: Sender<Vec<u8>>) -> Self {
        Self { flushed: Some(flushed), ..Self::default() }
    }

    /// How many frames are without data. Each would end a stream.
    pub(crate) fn empty_frames(&self) -> usize {
        let (mut rest, mut empty) = (self.wire.as_slice(), 0);
        while !rest.is_empty() {
            let (is_empty, consumed) = match parse(rest).unwrap() {
                Parsed::Empty { consumed } => (true, consumed),
                Parsed::Data { consumed, .. } | Parsed::Signal { consumed, .. } => (false, consumed),
                Parsed::Need(_) => panic!("a part of a frame"),
            };
            empty += usize::from(is_empty);
            rest = &rest[consumed..];
        }
        empty
    }

    /// A collector that calls `hook` before each call.
    pub(crate) fn with_hook(hook: impl FnMut(usize) -> bool + 'static) -> Self {
        Self { hook: Some(Box::new(hook)), ..Self::default() }
    }

    /// The records of the stream, in order. Panics on anything that a Storage Daemon would refuse.
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = Vec::new();
        let mut open = false;
        let mut rest = self.wire.as_slice();
        let mut plain = 0;
        while !rest.is_empty() {
            let consumed = match parse(rest).unwrap() {
                Parsed::Data { payload, compressed, consumed } => {
                    let mut message = payload.to_vec();
                    if compressed {
                        decompress(payload, &mut message).unwrap();
                    }
                    plain += i64::try_from(message.len()).unwrap();
                    if open {
                        records.last_mut().unwrap().messages.push(message);
                    } else {
                        records.push(parse_header(&message));
                        open = true;
                    }
                    consumed
                }
                Parsed::Signal { signal: Signal::Eod, consumed } => {
                    assert!(open, "end of data without header");
                    open = false;
                    plain -= 1;
                    consumed
                }
                other => panic!("not expected in a backup: {other:?}"),
            };
            rest = &rest[consumed..];
        }
        assert!(!open, "the last stream is not closed");
        assert_eq!(self.count.plain, plain);
        let mut last = 0;
        for record in &records {
            assert!(last == 0 || [last, last + 1].contains(&record.file_index), "FileIndex {record:?} after {last}");
            last = record.file_index;
        }
        records
    }
}

fn parse_header(message: &[u8]) -> Record {
    let text = std::str::from_utf8(message).unwrap();
    let numbers: Vec<i64> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    let [file_index, stream, size] = numbers[..] else { panic!("header {text}") };
    assert!(file_index > 0);
    Record { file_index, stream: u32::try_from(stream).unwrap(), size, messages: Vec::new() }
}

/// Keeps messages and counts errors, as a job's log does.
pub(crate) struct Log {
    pub(crate) lines: Mutex<Vec<(MessageType, String)>>,
    pub(crate) wants_saved: bool,
    progress: Arc<Progress>,
}

impl Log {
    pub(crate) fn new(progress: Arc<Progress>) -> Self {
        Self { lines: Mutex::default(), wants_saved: false, progress }
    }
}

impl JobLog for Log {
    fn message(&self, kind: MessageType, text: &[u8]) {
        if kind == MessageType::Error {
            self.progress.add_error();
        }
        self.lines.lock().unwrap().push((kind, String::from_utf8_lossy(text).into_owned()));
    }

    fn wants(&self, kind: MessageType) -> bool {
        kind != MessageType::Saved || self.wants_saved
    }
}

struct NoRegex;

impl RegexCompiler for NoRegex {
    fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
        Err("no regular expressions here".to_owned())
    }
}

/// The FileSet of these lines. `@` stands for the directory.
pub(crate) fn fileset(directory: &Path, lines: &[&str]) -> Arc<FileSet> {
    let mut parser = Parser::new(&NoRegex);
    for line in lines {
        let line = line.replace('@', directory.to_str().unwrap());
        let _reaction = parser.line(line.as_bytes()).unwrap();
    }
    Arc::new(parser.finish().unwrap())
}

/// A tree on the disk, and the plan of its backup.
pub(crate) struct Bed {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) plan: BackupPlan,
    pub(crate) cancel: CancelToken,
    pub(crate) progress: Arc<Progress>,
    pub(crate) wants_saved: bool,
}

/// The result of a backup.
pub(crate) struct Outcome {
    pub(crate) result: Result<(), BackupError>,
    pub(crate) sink: Collector,
    pub(crate) messages: Vec<(MessageType, String)>,
    pub(crate) progress: Arc<Progress>,
}

impl Bed {
    /// An empty directory, saved whole with these option letters.
    pub(crate) fn new(letters: &str) -> Self {
        let options = format!("O {letters}");
        Self::with_lines(&["I", &options, "N", "F @", "N", "N"])
    }

    /// An empty directory with a FileSet; `@` stands for the directory.
    pub(crate) fn with_lines(lines: &[&str]) -> Self {
        Self::of(tempfile::tempdir().unwrap(), lines)
    }

    fn of(directory: tempfile::TempDir, lines: &[&str]) -> Self {
        let plan = BackupPlan::new(fileset(directory.path(), lines), WalkSettings::default());
        Self {
            directory,
            plan: BackupPlan { workers: 2, ..plan },
            cancel: CancelToken::new(),
            progress: Arc::default(),
            wants_saved: false,
        }
    }

    /// An empty directory, saved whole with these option letters, in memory where that is possible.
    pub(crate) fn in_memory(letters: &str) -> Self {
        let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self::of(memory.unwrap(), &["I", &format!("O {letters}"), "N", "F @", "N", "N"])
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn file(&self, name: &str, data: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, data).unwrap();
        path
    }

    pub(crate) fn raw_file(&self, name: &[u8], data: &[u8]) {
        let path = self.directory.path().join(OsString::from_vec(name.to_vec()));
        std::fs::write(path, data).unwrap();
    }

    pub(crate) fn run(&self) -> Outcome {
        self.run_with(Collector::default())
    }

    pub(crate) fn run_with(&self, mut sink: Collector) -> Outcome {
        let log = Log { wants_saved: self.wants_saved, ..Log::new(Arc::clone(&self.progress)) };
        let result = crate::run(&self.plan, &self.progress, &log, &self.cancel, &mut sink);
        let messages = log.lines.into_inner().unwrap();
        Outcome { result, sink, messages, progress: Arc::clone(&self.progress) }
    }

    /// Repeats the backup with new counters.
    pub(crate) fn again(&mut self) -> Outcome {
        self.progress = Arc::default();
        self.run()
    }
}

impl Outcome {
    pub(crate) fn records(&self) -> Vec<Record> {
        assert!(self.result.is_ok(), "{:?} {:?}", self.result, self.messages);
        self.sink.records()
    }

    /// The records of the entry with this name (a directory's with its slash).
    pub(crate) fn of(&self, name: &str) -> Vec<Record> {
        let records = self.records();
        let wanted: Vec<i64> = records
            .iter()
            .filter(|record| [1, 37].contains(&record.stream) && record.name() == name)
            .map(|record| record.file_index)
            .collect();
        assert_eq!(wanted.len(), 1, "{name}: {wanted:?}");
        records.into_iter().filter(|record| record.file_index == wanted[0]).collect()
    }

    /// The streams of an entry, in order.
    pub(crate) fn streams(&self, name: &str) -> Vec<u32> {
        self.of(name).iter().map(|record| record.stream).collect()
    }

    pub(crate) fn texts(&self, kind: MessageType) -> Vec<&str> {
        self.messages.iter().filter(|(found, _)| *found == kind).map(|(_, text)| text.as_str()).collect()
    }
}

/// Bytes that can't be compressed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_be_bytes());
    }
    bytes.truncate(len);
    bytes
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Makes a fifo.
pub(crate) fn fifo(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o644.into()).unwrap();
}
