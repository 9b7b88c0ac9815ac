//! A volume in memory, a place to restore to, and the log of a job.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_os::regex::PosixRegex;
use fd_records::{Attributes, FileType, LStat, Replace, Stat, Stream};
use fd_restore::{
    End, LinkRule, Outcome, OutputNames, RecordSource, RegexWhere, RestorePlan, RestoreState, SequenceError,
    SourceError, Undecided, run,
};

/// When the files of the tests were changed.
pub(crate) const MTIME: i64 = 1_000_000_000;
/// And last read.
pub(crate) const ATIME: i64 = 900_000_000;

/// What a source gives, one after the other.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Data(Vec<u8>),
    Lost,
    /// The job is canceled while the next frame is awaited.
    Cancel,
    /// Somebody renames a file while the next frame is awaited.
    Rename(PathBuf, PathBuf),
    /// Something must have this owner and these permissions while the next frame is awaited, if it
    /// is made by then.
    Owned(PathBuf, (u32, u32)),
}

/// The records of a read session.
#[derive(Clone, Default, Debug)]
pub(crate) struct Volume {
    pub(crate) frames: Vec<Frame>,
    file_index: i32,
}

/// A file to be put on the volume.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pub(crate) name: Vec<u8>,
    pub(crate) file_type: FileType,
    pub(crate) stat: Stat,
    pub(crate) link: Vec<u8>,
    pub(crate) stream: Stream,
    pub(crate) data_stream: Stream,
    pub(crate) delta_seq: i32,
}

pub(crate) fn my_ids() -> (u32, u32) {
    (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw())
}

pub(crate) fn is_root() -> bool {
    my_ids().0 == 0
}

/// The names that these expressions of a `regexwhere` make.
pub(crate) fn regex_where(expressions: &str) -> OutputNames {
    let expressions = RegexWhere::parse(expressions.as_bytes(), &mut |pattern, options| {
        let regex = PosixRegex::new(pattern, options).unwrap();
        Ok(Some(Box::new(move |name| regex.captures(name).map_err(|_| Undecided))))
    });
    OutputNames::Regex(expressions.unwrap().unwrap())
}

impl Saved {
    pub(crate) fn new(name: &str, file_type: FileType, mode: u32) -> Self {
        let (uid, gid) = my_ids();
        let stat = Stat { mode, nlink: 1, uid, gid, atime: ATIME, mtime: MTIME, ..Stat::default() };
        Self {
            name: name.as_bytes().to_vec(),
            file_type,
            stat,
            link: Vec::new(),
            stream: Stream::ATTRIBUTES,
            data_stream: Stream::FILE_DATA,
            delta_seq: 0,
        }
    }

    pub(crate) fn file(name: &str) -> Self {
        Self::new(name, FileType::Regular, 0o100_644)
    }

    pub(crate) fn directory(name: &str) -> Self {
        Self::new(name, FileType::Directory, 0o040_750)
    }

    pub(crate) fn symlink(name: &str, target: &str) -> Self {
        Self { link: target.as_bytes().to_vec(), ..Self::new(name, FileType::Symlink, 0o120_777) }
    }

    pub(crate) fn hard_link(name: &str, first: &str) -> Self {
        Self { link: first.as_bytes().to_vec(), ..Self::new(name, FileType::HardLink, 0o100_644) }
    }
}

impl Volume {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A record as the Storage Daemon sends it.
    pub(crate) fn record(&mut self, stream: Stream, data: &[u8]) -> &mut Self {
        self.record_of(self.file_index, stream, data)
    }

    fn record_of(&mut self, file_index: i32, stream: Stream, data: &[u8]) -> &mut Self {
        let header = format!("rechdr 1 1795226230 {file_index} {} {}", stream.number(), data.len());
        self.frames.push(Frame::Data(header.into_bytes()));
        self.frames.push(Frame::Data(data.to_vec()));
        self
    }

    /// An attribute record.
    pub(crate) fn put(&mut self, saved: &Saved) -> &mut Self {
        self.file_index += 1;
        let mut record = Vec::new();
        Attributes {
            file_index: self.file_index,
            file_type: saved.file_type,
            name: &saved.name,
            lstat: LStat { stat: saved.stat, data_stream: saved.data_stream, ..LStat::default() },
            link: &saved.link,
            attr_ex: b"",
            delta_seq: saved.delta_seq,
        }
        .encode(&mut record);
        self.record(saved.stream, &record)
    }

    /// The records of a plugin begin.
    pub(crate) fn start(&mut self, command: &str) -> &mut Self {
        let next = self.file_index + 1;
        self.record_of(next, Stream::PLUGIN_NAME, format!("{next} 1 1 {command}\0").as_bytes())
    }

    /// The records of a plugin end.
    pub(crate) fn stop(&mut self) -> &mut Self {
        self.record(Stream::PLUGIN_NAME, b"1 0")
    }

    /// The attribute record of a patch, which only a plugin saves.
    pub(crate) fn patch(&mut self, saved: &Saved) -> &mut Self {
        self.start("tp:patch").put(&Saved { delta_seq: 1, ..saved.clone() })
    }

    /// A regular file with its data in one record.
    pub(crate) fn file(&mut self, name: &str, data: &[u8]) -> &mut Self {
        let mut saved = Saved::file(name);
        saved.stat.size = i64::try_from(data.len()).unwrap();
        self.put(&saved).record(Stream::FILE_DATA, data)
    }

    pub(crate) fn directory(&mut self, name: &str) -> &mut Self {
        self.put(&Saved::directory(name))
    }

    pub(crate) fn symlink(&mut self, name: &str, target: &str) -> &mut Self {
        self.put(&Saved::symlink(name, target))
    }
}

/// Gives the frames of a volume.
pub(crate) struct Reader<'a> {
    pub(crate) frames: std::slice::Iter<'a, Frame>,
    pub(crate) cancel: &'a CancelToken,
}

impl RecordSource for Reader<'_> {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError> {
        match self.frames.next() {
            None => Ok(None),
            Some(Frame::Data(data)) => Ok(Some(data)),
            Some(Frame::Rename(from, to)) => {
                fs::rename(from, to).unwrap();
                self.next_frame()
            }
            Some(Frame::Owned(path, expected)) => {
                if let Ok(found) = fs::symlink_metadata(path) {
                    assert_eq!((found.uid(), found.mode() & 0o7777), *expected, "{}", path.display());
                }
                self.next_frame()
            }
            Some(Frame::Lost) => Err(SourceError("Connection reset by peer".to_owned())),
            Some(Frame::Cancel) => {
                self.cancel.cancel();
                Err(SourceError("Bad file descriptor".to_owned()))
            }
        }
    }
}

/// Collects messages.
pub(crate) struct Log {
    pub(crate) messages: Mutex<Vec<(MessageType, String)>>,
    pub(crate) restored: bool,
}

impl JobLog for Log {
    fn message(&self, kind: MessageType, text: &[u8]) {
        self.messages.lock().unwrap().push((kind, String::from_utf8_lossy(text).into_owned()));
    }

    fn wants(&self, kind: MessageType) -> bool {
        self.restored || kind != MessageType::Restored
    }
}

/// What a job did.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: Result<End, SequenceError>,
    /// Messages that were delivered.
    pub(crate) messages: Vec<(MessageType, String)>,
    /// Messages that wait at the end.
    pub(crate) queued: Vec<(MessageType, String)>,
    pub(crate) files: u32,
    pub(crate) read_bytes: u64,
    pub(crate) job_bytes: u64,
}

impl Finished {
    /// All messages but the lines of restored files, delivered or not.
    pub(crate) fn told(&self) -> Vec<(MessageType, &str)> {
        let all = self.messages.iter().chain(&self.queued);
        all.filter(|(kind, _)| *kind != MessageType::Restored).map(|(kind, text)| (*kind, text.as_str())).collect()
    }

    /// The only message.
    pub(crate) fn only(&self) -> (MessageType, &str) {
        let told = self.told();
        assert_eq!(told.len(), 1, "{told:?}");
        told[0]
    }

    pub(crate) fn assert_quiet(&self) {
        assert_eq!(self.told(), []);
        assert_eq!(self.outcome, Ok(End::EndOfData));
    }
}

/// A job: how and whereto it restores.
pub(crate) struct Job {
    pub(crate) plan: RestorePlan,
    pub(crate) restored_lines: bool,
}

impl Job {
    /// Runs one round.
    pub(crate) fn run(&self, volume: &Volume) -> Finished {
        self.run_round(&mut RestoreState::new(&self.plan, LinkRule::from_now()), volume)
    }

    pub(crate) fn run_round(&self, state: &mut RestoreState, volume: &Volume) -> Finished {
        self.run_round_with(state, &CancelToken::new(), volume)
    }

    /// Runs one round that another thread may cancel.
    pub(crate) fn run_with(&self, cancel: &CancelToken, volume: &Volume) -> Finished {
        self.run_round_with(&mut RestoreState::new(&self.plan, LinkRule::from_now()), cancel, volume)
    }

    pub(crate) fn run_round_with(&self, state: &mut RestoreState, cancel: &CancelToken, volume: &Volume) -> Finished {
        let log = Log { messages: Mutex::default(), restored: self.restored_lines };
        let progress = Progress::default();
        let mut reader = Reader { frames: volume.frames.iter(), cancel };
        let outcome = run(&self.plan, state, &progress, &log, cancel, &mut reader);
        let text = |(kind, text): (MessageType, Vec<u8>)| (kind, String::from_utf8_lossy(&text).into_owned());
        let (outcome, queued) = match outcome {
            Ok(Outcome { end, queued }) => (Ok(end), queued.into_iter().map(text).collect()),
            Err(error) => (Err(error), Vec::new()),
        };
        Finished {
            outcome,
            messages: log.messages.into_inner().unwrap(),
            queued,
            files: progress.files(),
            read_bytes: progress.read_bytes(),
            job_bytes: progress.job_bytes(),
        }
    }
}

/// A job that restores below a directory.
pub(crate) fn job_below(below: &str) -> Job {
    Job {
        plan: RestorePlan {
            output: OutputNames::below(below.as_bytes().to_vec()),
            prelinks: false,
            replace: Replace::Always,
            check_digests: true,
            digests: None,
            keys: None,
            processor: fd_crypto::processor::Processor::chosen(),
            writing_depth: crate::DEPTH,
            plugins: None,
        },
        restored_lines: false,
    }
}

/// A directory to restore to, which is not on the way of any link of the system.
#[derive(Debug)]
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in(fs::canonicalize(std::env::temp_dir()).unwrap()).unwrap();
        Self { folder }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of a name as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn job(&self) -> Job {
        job_below(self.root().to_str().unwrap())
    }

    pub(crate) fn job_with(&self, replace: Replace) -> Job {
        let mut job = self.job();
        job.plan.replace = replace;
        job
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn stat(&self, name: &str) -> fs::Metadata {
        fs::symlink_metadata(self.path(name)).unwrap()
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        self.stat(name).mode()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok()
    }
}

/// Waits until the clock of the file systems has gone on, so that what was made before is older
/// than a job that begins now.
pub(crate) fn let_it_be_old() {
    let now = || {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_REALTIME_COARSE).unwrap();
        (now.tv_sec(), now.tv_nsec())
    };
    let start = nix::time::clock_gettime(nix::time::ClockId::CLOCK_REALTIME).unwrap();
    while now() <= (start.tv_sec(), start.tv_nsec()) {
        std::thread::yield_now();
    }
}
