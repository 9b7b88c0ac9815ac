//! The Director's commands as types (reference 02 §3, §4).
//!
//! [`Command::parse`] turns a frame into a command, or into the refusal that the stock daemon gives. Who may use which
//! command is decided by [`Word::is_permitted`]. Doing it is not our business.

mod diagnostics;

use fd_bsock::scan::{Lenient, Strict, unbash_spaces};

use crate::texts::{self, BadCommand};

pub use diagnostics::{MetricFormat, SetDebug, SnapshotWish};

/// The commands, in the order in which a frame is compared with them: the first prefix wins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is named after the text in the table below")]
pub enum Word {
    Backup,
    Cancel,
    SetDebug,
    SetBandwidth,
    Snapshot,
    Estimate,
    Hello,
    FileSet,
    JobId,
    Level,
    Restore,
    EndRestore,
    Session,
    Status,
    DotStatus,
    Storage,
    Verify,
    Component,
    RunBeforeNow,
    RunBeforeJob,
    RunAfterJob,
    Run,
    Accurate,
    RestoreObject,
    SmDump,
    Stop,
    Proxy,
    Caps,
    TestNetwork,
    PluginFeatures,
    RestoreFileList,
    Statistics,
    Query,
    PluginOptions,
}

struct Entry {
    prefix: &'static str,
    word: Word,
    monitor: bool,
    remote: bool,
}

const fn entry(prefix: &'static str, word: Word, monitor: bool, remote: bool) -> Entry {
    Entry { prefix, word, monitor, remote }
}

/// Prefix, command, whether a Monitor Director may use it, whether a Remote one may.
const TABLE: [Entry; 34] = [
    entry("backup", Word::Backup, false, false),
    entry("cancel", Word::Cancel, false, true),
    entry("setdebug=", Word::SetDebug, false, false),
    entry("setbandwidth=", Word::SetBandwidth, false, true),
    entry("snapshot", Word::Snapshot, false, false),
    entry("estimate", Word::Estimate, false, false),
    entry("Hello", Word::Hello, true, false),
    entry("fileset", Word::FileSet, false, false),
    entry("JobId=", Word::JobId, false, false),
    entry("level = ", Word::Level, false, false),
    entry("restore ", Word::Restore, false, false),
    entry("endrestore", Word::EndRestore, false, false),
    entry("session", Word::Session, false, false),
    entry("status", Word::Status, true, true),
    entry(".status", Word::DotStatus, true, true),
    entry("storage ", Word::Storage, false, false),
    entry("verify", Word::Verify, false, false),
    entry("component", Word::Component, false, false),
    entry("RunBeforeNow", Word::RunBeforeNow, false, false),
    entry("RunBeforeJob", Word::RunBeforeJob, false, false),
    entry("RunAfterJob", Word::RunAfterJob, false, false),
    entry("Run", Word::Run, false, false),
    entry("accurate", Word::Accurate, false, false),
    entry("restoreobject", Word::RestoreObject, false, false),
    entry("sm_dump", Word::SmDump, false, false),
    entry("stop", Word::Stop, false, true),
    entry("proxy", Word::Proxy, false, true),
    entry("caps", Word::Caps, true, true),
    entry("testnetwork", Word::TestNetwork, false, false),
    entry("PluginFeatures", Word::PluginFeatures, false, false),
    entry("restorefilelist", Word::RestoreFileList, false, false),
    entry("statistics", Word::Statistics, false, false),
    entry("query", Word::Query, false, false),
    entry("pluginoptions", Word::PluginOptions, false, false),
];

/// What a Director resource allows its Director.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// `Monitor = yes`.
    pub monitor: bool,
    /// `Remote = yes`.
    pub remote: bool,
}

impl Word {
    /// The first command that `frame` begins with.
    pub fn of(frame: &[u8]) -> Option<Self> {
        TABLE.iter().find(|entry| frame.starts_with(entry.prefix.as_bytes())).map(|entry| entry.word)
    }

    /// The text of the table, as messages and `DisableCommand` name the command.
    pub fn prefix(self) -> &'static str {
        TABLE.iter().find(|entry| entry.word == self).map_or("", |entry| entry.prefix)
    }

    /// Whether a Director with this access may use the command (reference 02 §1.5).
    pub fn is_permitted(self, access: Access) -> bool {
        let Some(entry) = TABLE.iter().find(|entry| entry.word == self) else { return false };
        (entry.monitor && access.monitor) || (entry.remote && access.remote) || access == Access::default()
    }
}

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
    /// The job is an estimate.
    pub estimate: bool,
}

/// What a `level` command says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Level {
    /// The whole level; to be answered at once.
    Whole(BackupLevel),
    /// The level; its time comes with the next command, which is the one that is answered.
    Awaiting(BackupLevel),
    /// The time that changed files are compared with, seconds since 1970 by the Director's clock.
    Since {
        /// Seconds since 1970.
        since: i64,
        /// Name of the job that the time comes from; empty if not said.
        previous_job: Vec<u8>,
    },
}

/// When an existing object is replaced by a restore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replace {
    /// `a`, and every letter that is none of the others.
    Always,
    /// `w`.
    IfNewer,
    /// `o`.
    IfOlder,
    /// `n`.
    Never,
}

/// What a Verify job compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerifyLevel {
    /// The disk, for the Director to keep.
    Init,
    /// The disk with what an `init` has kept.
    Catalog,
    /// The volume with the catalog.
    Volume,
    /// The data on the volume with its digests.
    Data,
    /// The disk with what a backup has saved.
    DiskToCatalog,
}

impl VerifyLevel {
    /// The level's letter in the catalog.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Init => b'V',
            Self::Catalog => b'C',
            Self::Volume => b'O',
            Self::Data => b'A',
            Self::DiskToCatalog => b'd',
        }
    }

    fn of(word: &[u8]) -> Option<Self> {
        match word.to_ascii_lowercase().as_slice() {
            b"init" => Some(Self::Init),
            b"catalog" => Some(Self::Catalog),
            b"volume" => Some(Self::Volume),
            b"data" => Some(Self::Data),
            b"disk_to_catalog" => Some(Self::DiskToCatalog),
            _ => None,
        }
    }
}

/// Where a restore puts what it restores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Where {
    /// Below this folder; empty: in place.
    Folder(Vec<u8>),
    /// At names made by this list of expressions.
    Regex(Vec<u8>),
}

/// A program that the Director wants run on this host (reference 02 §4.8).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunScript {
    /// Run if the job is well.
    pub on_success: bool,
    /// Run if the job has failed.
    pub on_failure: bool,
    /// A program that fails makes the job fail.
    pub abort_on_error: bool,
    /// When: the sum of [`RunScript::AFTER`], [`RunScript::BEFORE`], [`RunScript::AFTER_VSS`].
    pub when: u32,
    /// The command line, with job codes.
    pub command: Vec<u8>,
}

impl RunScript {
    /// At the end of the job.
    pub const AFTER: u32 = 1;
    /// At `RunBeforeNow`.
    pub const BEFORE: u32 = 2;
    /// When snapshots are made, before the first file.
    pub const AFTER_VSS: u32 = 4;
}

/// What a plugin saved for itself and gets back before a restore (reference 02 §4.16, 05 §1.6).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RestoreObject {
    /// The backup that it comes from.
    pub job_id: u32,
    /// Bytes as they are sent.
    pub length: i32,
    /// Bytes of the object itself.
    pub full_length: i32,
    /// Number among the objects of its plugin.
    pub index: i32,
    /// Its type in the catalog.
    pub object_type: i32,
    /// 1: what is sent is a zlib stream.
    pub compression: i32,
    /// The record's FileIndex.
    pub file_index: i32,
    /// The plugin; empty if not said.
    pub plugin: Vec<u8>,
}

/// A command with its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// `JobId=`: who this job is.
    Job {
        /// 0 for console commands.
        job_id: u32,
        /// Full job name.
        job: Vec<u8>,
        /// The Storage Daemon's session.
        vol_session_id: u32,
        /// The Storage Daemon's session time.
        vol_session_time: u32,
        /// Key towards the Storage Daemon; may be empty.
        authorization: Vec<u8>,
    },
    /// `level = `.
    Level(LevelFlags, Level),
    /// `fileset`; its lines follow.
    FileSet {
        /// Snapshots are asked for.
        snapshot: bool,
    },
    /// `setbandwidth=`.
    SetBandwidth {
        /// Bytes per second, 0 for no limit.
        limit: u64,
        /// Full job name; empty for all.
        job: Vec<u8>,
    },
    /// `storage `.
    Storage {
        /// Host name or address.
        address: Vec<u8>,
        /// 0: the Storage Daemon calls us.
        port: u16,
        /// A new key, if one came.
        authorization: Vec<u8>,
    },
    /// `backup`.
    Backup {
        /// The first file gets the FileIndex after this one.
        file_index: u32,
    },
    /// `restore `.
    Restore {
        /// How many files the Director expects.
        files: u32,
        /// What to do about existing objects.
        replace: Replace,
        /// Targets of absolute symbolic links move too.
        prelinks: bool,
        /// The place.
        place: Where,
    },
    /// `verify`.
    Verify(VerifyLevel),
    /// `pluginoptions=`: options for the plugins of a Verify job.
    PluginOptions(Vec<u8>),
    /// `restorefilelist`: a list for this plugin follows.
    RestoreFileList {
        /// The plugin's file name.
        plugin: Vec<u8>,
    },
    /// `restoreobject`: the object's name and its bytes follow.
    RestoreObject(RestoreObject),
    /// `restoreobject end`.
    RestoreObjectsEnd,
    /// `cancel` or `stop`.
    Cancel {
        /// Full job name.
        job: Vec<u8>,
        /// The job is stopped, to be resumed.
        stop: bool,
    },
    /// `accurate`; its list follows.
    Accurate {
        /// About how many files.
        files: u64,
    },
    /// `estimate`.
    Estimate {
        /// Each file is listed.
        listing: bool,
        /// Stop after about so many files; 0: no limit.
        limit: u64,
    },
    /// `.status`.
    DotStatus {
        /// The word, in lower case.
        what: Vec<u8>,
        /// What stands behind its `=`.
        argument: Vec<u8>,
        /// API version.
        api: i32,
        /// API options.
        api_opts: Vec<u8>,
    },
    /// `RunBeforeJob`: a command line to be run now.
    RunBeforeJob(Vec<u8>),
    /// `RunAfterJob` or `Run`: a script to be run later.
    Run(RunScript, Word),
    /// `session`, which nobody sends any more.
    Session,
    /// `snapshot`.
    Snapshot(SnapshotWish),
    /// `setdebug=`.
    SetDebug(SetDebug),
    /// `statistics`.
    Statistics {
        /// How metrics are written.
        format: MetricFormat,
        /// Which ones; `None`: all.
        names: Option<Vec<Vec<u8>>>,
    },
    /// `query`: a plugin is asked.
    Query {
        /// What for.
        parameter: Vec<u8>,
        /// Its name.
        plugin: Vec<u8>,
        /// More about it.
        value: Vec<u8>,
    },
    /// `testnetwork`: bytes to send and receive, and how many small packets; `None` if it does not scan.
    TestNetwork(Option<(u64, u64)>),
    /// A command without values, or one that somebody else parses.
    Plain(Word),
}

/// Why a frame is no good command: the fatal message, if there is one, and the reply, if there is one. The command loop
/// ends after it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Refusal {
    /// Text of the fatal message.
    pub fatal: Option<Vec<u8>>,
    /// Reply.
    pub reply: Option<Vec<u8>>,
}

impl Command {
    /// Reads the values of `frame`, which [`Word::of`] says is `word`.
    pub fn parse(word: Word, frame: &[u8]) -> Result<Self, Refusal> {
        let bad = |kind| Refusal { fatal: Some(texts::bad_command(kind, frame)), reply: None };
        match word {
            Word::JobId => job(frame).ok_or_else(|| bad(BadCommand::Job).replying(texts::BAD_JOB)),
            Word::Level => level(frame),
            Word::FileSet => Ok(Self::FileSet { snapshot: contains(frame, b"snap=1") }),
            Word::SetBandwidth => {
                set_bandwidth(frame).ok_or_else(|| Refusal { fatal: None, reply: Some(texts::bad_bandwidth(frame)) })
            }
            Word::Storage => storage(frame).ok_or_else(|| bad(BadCommand::Storage).replying(texts::BAD_STORAGE)),
            Word::Backup => Ok(Self::Backup { file_index: file_index(frame) }),
            Word::Restore => restore(frame).ok_or_else(|| bad(BadCommand::Replace)),
            Word::Verify => verify(frame),
            Word::Cancel | Word::Stop => cancel(frame, word == Word::Stop)
                .ok_or_else(|| Refusal { fatal: None, reply: Some(texts::BAD_CANCEL.to_vec()) }),
            Word::Accurate => {
                let files = Lenient::new(frame).text("accurate files=").map(Lenient::u64);
                let refusal = || Refusal { fatal: None, reply: Some(texts::BAD_ACCURATE.to_vec()) };
                files.map(|files| Self::Accurate { files }).ok_or_else(refusal)
            }
            Word::Estimate => estimate(frame).ok_or_else(|| bad(BadCommand::Estimate).replying(texts::BAD_ESTIMATE)),
            Word::DotStatus => dot_status(frame).ok_or_else(|| refused_dot_status(frame)),
            Word::Session => {
                let session = Lenient::new(frame).text("session ").map(|_| Self::Session);
                session.ok_or_else(|| bad(BadCommand::Session))
            }
            Word::RunBeforeJob | Word::RunAfterJob | Word::Run => Self::parse_script(word, frame),
            Word::PluginOptions | Word::RestoreFileList | Word::RestoreObject => Self::parse_for_plugins(word, frame),
            other => Self::parse_tool(other, frame),
        }
    }
}

impl Command {
    /// What a restore brings for plugins.
    fn parse_for_plugins(word: Word, frame: &[u8]) -> Result<Self, Refusal> {
        match word {
            Word::PluginOptions => {
                let refusal = || Refusal { fatal: None, reply: Some(texts::BAD_PLUGIN_OPTIONS.to_vec()) };
                let options = Strict::new(frame).text("pluginoptions=").and_then(|scan| scan.word(usize::MAX));
                options.map(|options| Self::PluginOptions(unbash_spaces(options))).ok_or_else(refusal)
            }
            Word::RestoreFileList => {
                let refusal = || Refusal { fatal: None, reply: Some(texts::BAD_RESTORE_FILE_LIST.to_vec()) };
                let mut scan = Lenient::new(frame);
                let plugin = scan.text("restorefilelist plugin=").map(|scan| unbash_spaces(scan.word(JOB_MAX)));
                plugin.map(|plugin| Self::RestoreFileList { plugin }).ok_or_else(refusal)
            }
            Word::RestoreObject if frame.starts_with(b"restoreobject end") => Ok(Self::RestoreObjectsEnd),
            _ => restore_object(frame).map(Self::RestoreObject).ok_or_else(|| {
                let fatal = Some(texts::bad_command(BadCommand::RestoreObject, frame));
                Refusal { fatal, reply: None }.replying(texts::BAD_RESTORE_OBJECT)
            }),
        }
    }

    /// The commands that bring a command line.
    fn parse_script(word: Word, frame: &[u8]) -> Result<Self, Refusal> {
        match word {
            Word::RunBeforeJob => Ok(Self::RunBeforeJob(script_text(frame, "RunBeforeJob "))),
            Word::RunAfterJob => Ok(Self::Run(
                RunScript {
                    on_success: true,
                    on_failure: false,
                    abort_on_error: true,
                    when: RunScript::AFTER,
                    command: script_text(frame, "RunAfterJob "),
                },
                word,
            )),
            _ => {
                let bad = || Refusal { fatal: Some(texts::bad_command(BadCommand::RunScript, frame)), reply: None };
                let script = run_script(frame).map(|script| Self::Run(script, word));
                script.ok_or_else(|| bad().replying(texts::BAD_RUN_SCRIPT))
            }
        }
    }
}

impl Refusal {
    fn replying(mut self, reply: &[u8]) -> Self {
        self.reply = Some(reply.to_vec());
        self
    }
}

/// What a `JobId=` that does not scan says nevertheless: the stock daemon has stored the number and the name by then.
pub fn partial_job(frame: &[u8]) -> (u32, Vec<u8>) {
    let mut scan = Lenient::new(frame);
    let job_id = scan.text("JobId=").map_or(0, Lenient::u32);
    let job = scan.text(" Job=").map(|scan| scan.word(JOB_MAX).to_vec()).unwrap_or_default();
    (job_id, job)
}

/// What an unusable `.status` is answered with, besides an `EOD`.
pub fn refused_dot_status(frame: &[u8]) -> Refusal {
    Refusal { fatal: Some(texts::bad_command(BadCommand::DotStatus, frame)), reply: None }
        .replying(texts::BAD_DOT_STATUS)
}

/// Longest job name, in bytes.
const JOB_MAX: usize = 127;
/// Longest key, in bytes.
const KEY_MAX: usize = 100;
/// Longest level of a Verify job, in bytes.
const LEVEL_MAX: usize = 30;

fn job(frame: &[u8]) -> Option<Command> {
    let mut scan = Lenient::new(frame);
    let job_id = scan.text("JobId=")?.u32();
    let job = scan.text(" Job=")?.word(JOB_MAX).to_vec();
    let vol_session_id = scan.text(" SDid=")?.u32();
    let vol_session_time = scan.text(" SDtime=")?.u32();
    let authorization = scan.text(" Authorization=")?.word(KEY_MAX).to_vec();
    Some(Command::Job { job_id, job, vol_session_id, vol_session_time, authorization })
}

fn level(frame: &[u8]) -> Result<Command, Refusal> {
    // The marks are looked for in the whole frame, the name of the previous job included (reference 02 §4.2).
    let flags = LevelFlags {
        accurate: contains(frame, b"accurate"),
        rerunning: contains(frame, b"rerunning"),
        estimate: contains(frame, b"estimate"),
    };
    let mut scan = Lenient::new(frame);
    let word = scan.text("level = ").map_or(&[][..], |scan| scan.word(1000));
    let level = if word.eq_ignore_ascii_case(b"base") {
        Level::Whole(BackupLevel::Base)
    } else if word.eq_ignore_ascii_case(b"full") {
        Level::Whole(BackupLevel::Full)
    } else if contains(word, b"differential") {
        Level::Awaiting(BackupLevel::Differential)
    } else if contains(word, b"incremental") {
        Level::Awaiting(BackupLevel::Incremental)
    } else if word.eq_ignore_ascii_case(b"since_utime") {
        let bad = || Refusal { fatal: Some(texts::bad_command(BadCommand::Level, frame)), reply: None };
        since(frame).ok_or_else(bad)?
    } else {
        return Err(Refusal { fatal: Some(texts::bad_command(BadCommand::UnknownLevel, word)), reply: None });
    };
    Ok(Command::Level(flags, level))
}

fn since(frame: &[u8]) -> Option<Level> {
    let mut scan = Lenient::new(frame);
    let text = scan.text("level = since_utime ")?.word(1000);
    let since = Lenient::new(text).i64();
    scan.text(" mtime_only=")?.i32();
    let previous_job = scan.text(" prev_job=").map(|scan| scan.word(JOB_MAX).to_vec()).unwrap_or_default();
    Some(Level::Since { since, previous_job })
}

fn set_bandwidth(frame: &[u8]) -> Option<Command> {
    let mut scan = Lenient::new(frame);
    let limit = u64::try_from(scan.text("setbandwidth=")?.i64()).ok()?;
    let job = scan.text(" Job=")?.word(JOB_MAX).to_vec();
    Some(Command::SetBandwidth { limit, job })
}

fn storage(frame: &[u8]) -> Option<Command> {
    let mut scan = Lenient::new(frame);
    let address = scan.text("storage address=")?.word(1000).to_vec();
    let port = u16::try_from(scan.text(" port=")?.i32()).ok()?;
    scan.text(" ssl=")?.i32();
    let authorization = scan.text(" Authorization=").map(|scan| scan.word(KEY_MAX).to_vec()).unwrap_or_default();
    Some(Command::Storage { address, port, authorization })
}

/// A frame that does not fit leaves 0 (reference 02 §4.10), and so does a negative number.
fn file_index(frame: &[u8]) -> u32 {
    let index = Lenient::new(frame).text("backup FileIndex=").map_or(0, Lenient::i64);
    u32::try_from(index).unwrap_or(0)
}

fn restore(frame: &[u8]) -> Option<Command> {
    fn form(frame: &[u8], with_files: bool) -> Option<Command> {
        let mut scan = Lenient::new(frame);
        scan.text("restore ")?;
        let files = if with_files { u32::try_from(scan.text("files=")?.i32()).unwrap_or(0) } else { 0 };
        let replace = match scan.text(" replace=")?.byte() {
            b'w' => Replace::IfNewer,
            b'o' => Replace::IfOlder,
            b'n' => Replace::Never,
            _ => Replace::Always,
        };
        let prelinks = scan.text(" prelinks=")?.i32() != 0;
        scan.text(" ")?;
        let mut regex = scan.clone();
        let place = if let Some(scan) = scan.text("where=") {
            Where::Folder(decoded(scan.word(usize::MAX)))
        } else {
            Where::Regex(decoded(regex.text("regexwhere=")?.word(usize::MAX)))
        };
        Some(Command::Restore { files, replace, prelinks, place })
    }
    form(frame, true).or_else(|| form(frame, false))
}

/// A lone `/` means nothing; blanks come back (reference 05 §1.2).
fn decoded(place: &[u8]) -> Vec<u8> {
    if place == b"/" { Vec::new() } else { unbash_spaces(place) }
}

fn verify(frame: &[u8]) -> Result<Command, Refusal> {
    let mut scan = Lenient::new(frame);
    let reply = match scan.text("verify level=").map(|scan| VerifyLevel::of(scan.word(LEVEL_MAX))) {
        Some(Some(level)) => return Ok(Command::Verify(level)),
        Some(None) => texts::bad_verify_level(frame),
        None => texts::bad_verify_command(frame),
    };
    Err(Refusal { fatal: None, reply: Some(reply) })
}

/// `restoreobject JobId=%u %d,%d,%d,%d,%d,%d,%s`; the plugin's name may be missing, and its comma with it.
fn restore_object(frame: &[u8]) -> Option<RestoreObject> {
    let mut scan = Lenient::new(frame);
    let job_id = scan.text("restoreobject JobId=")?.u32();
    let length = scan.text(" ")?.i32();
    let full_length = scan.text(",")?.i32();
    let index = scan.text(",")?.i32();
    let object_type = scan.text(",")?.i32();
    let compression = scan.text(",")?.i32();
    let file_index = scan.text(",")?.i32();
    let plugin = scan.text(",").map(|scan| unbash_spaces(scan.word(JOB_MAX))).unwrap_or_default();
    Some(RestoreObject { job_id, length, full_length, index, object_type, compression, file_index, plugin })
}

fn script_text(frame: &[u8], head: &str) -> Vec<u8> {
    Lenient::new(frame).text(head).map(|scan| unbash_spaces(scan.word(1000))).unwrap_or_default()
}

fn run_script(frame: &[u8]) -> Option<RunScript> {
    let mut scan = Lenient::new(frame);
    let on_success = scan.text("Run OnSuccess=")?.u32() != 0;
    let on_failure = scan.text(" OnFailure=")?.u32() != 0;
    let abort_on_error = scan.text(" AbortOnError=")?.u32() != 0;
    let when = scan.text(" When=")?.u32();
    let command = unbash_spaces(scan.text(" Command=")?.word(1000));
    Some(RunScript { on_success, on_failure, abort_on_error, when, command })
}

fn cancel(frame: &[u8], stop: bool) -> Option<Command> {
    let mut scan = Lenient::new(frame);
    let job = scan.text(if stop { "stop Job=" } else { "cancel Job=" })?.word(JOB_MAX).to_vec();
    Some(Command::Cancel { job, stop })
}

fn estimate(frame: &[u8]) -> Option<Command> {
    let mut scan = Lenient::new(frame);
    let listing = scan.text("estimate listing=")?.i32() != 0;
    let limit = scan.text(" limit=").map_or(0, Lenient::i64);
    Some(Command::Estimate { listing, limit: u64::try_from(limit).unwrap_or(0) })
}

fn dot_status(frame: &[u8]) -> Option<Command> {
    let mut scan = Lenient::new(frame);
    let word = scan.text(".status ")?.word(1000);
    let (what, argument) = match word.iter().position(|byte| *byte == b'=') {
        Some(at) => (word.get(..at)?, word.get(at + 1..)?),
        None => (word, &[][..]),
    };
    let (what, argument) = (what.to_ascii_lowercase(), unbash_spaces(argument));
    // The last one is ours.
    let known: [&[u8]; 8] =
        [b"current", b"last", b"header", b"running", b"terminated", b"statistics", b"resources", b"activity"];
    if !known.contains(&what.as_slice()) {
        return None;
    }
    let api = scan.text(" api=").map_or(0, Lenient::i32);
    let api_opts = scan.text(" api_opts=").map(|scan| scan.word(1000).to_vec()).unwrap_or_default();
    Some(Command::DotStatus { what, argument, api, api_opts })
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(frame: &[u8]) -> Result<Command, Refusal> {
        Command::parse(Word::of(frame).expect("a known command"), frame)
    }

    fn refused(frame: &[u8]) -> (String, String) {
        let refusal = parse(frame).expect_err("refused");
        let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap_or_default()).unwrap();
        (text(refusal.fatal), text(refusal.reply))
    }

    #[test]
    fn the_first_prefix_wins() {
        assert_eq!(Word::of(b"statusfoo"), Some(Word::Status));
        assert_eq!(Word::of(b"restoreobject end\n"), Some(Word::RestoreObject));
        assert_eq!(Word::of(b"restorefilelist plugin=x\n"), Some(Word::RestoreFileList));
        assert_eq!(Word::of(b"restore"), None);
        assert_eq!(Word::of(b"RunBeforeJob x\n"), Some(Word::RunBeforeJob));
        assert_eq!(Word::of(b"Runxyz"), Some(Word::Run));
        assert_eq!(Word::of(b"bootstrap\n"), None);
        assert_eq!(Word::of(b"jobid=1"), None);
        assert_eq!(Word::of(b""), None);
    }

    #[test]
    fn monitors_and_remote_directors_may_little() {
        let monitor = Access { monitor: true, remote: false };
        let remote = Access { monitor: false, remote: true };
        assert!(Word::Status.is_permitted(monitor) && Word::Status.is_permitted(remote));
        assert!(Word::Cancel.is_permitted(remote) && !Word::Cancel.is_permitted(monitor));
        assert!(!Word::JobId.is_permitted(monitor) && !Word::JobId.is_permitted(remote));
        assert!(TABLE.iter().all(|entry| entry.word.is_permitted(Access::default())));
    }

    #[test]
    fn a_real_job_command() {
        let frame = b"JobId=39 Job=b1.2026-11-21_02.56.53_03 SDid=1 SDtime=1795229812 Authorization=PPNB-AOMF\n";
        assert_eq!(
            parse(frame),
            Ok(Command::Job {
                job_id: 39,
                job: b"b1.2026-11-21_02.56.53_03".to_vec(),
                vol_session_id: 1,
                vol_session_time: 1_795_229_812,
                authorization: b"PPNB-AOMF".to_vec(),
            })
        );
        let (fatal, reply) = refused(b"JobId=5 Job=x SDid=1\n");
        assert_eq!((fatal.as_str(), reply.as_str()), ("Bad Job Command: JobId=5 Job=x SDid=1\n", "2901 Bad Job\n"));
        assert!(matches!(
            parse(b"JobId=5 Job=x SDid=1 SDtime=3 Authorization=\n"),
            Ok(Command::Job { authorization, .. }) if authorization.is_empty()
        ));
    }

    #[test]
    fn levels() {
        let plain = LevelFlags::default();
        assert_eq!(parse(b"level = full  mtime_only=0 \n"), Ok(Command::Level(plain, Level::Whole(BackupLevel::Full))));
        assert_eq!(
            parse(b"level = accurate_incremental  mtime_only=0 \n"),
            Ok(Command::Level(LevelFlags { accurate: true, ..plain }, Level::Awaiting(BackupLevel::Incremental)))
        );
        assert_eq!(
            parse(b"level = since_utime 1795227600 mtime_only=0 prev_job=acc.2026-11-21_02.19.56_04\n"),
            Ok(Command::Level(
                plain,
                Level::Since { since: 1_795_227_600, previous_job: b"acc.2026-11-21_02.19.56_04".to_vec() }
            ))
        );
        assert_eq!(refused(b"level = bogus\n").0, "job.c:2756 Unknown backup level: bogus\n");
        assert!(refused(b"level = since_utime 12\n").0.starts_with("job.c:2769 Bad level command: "));
    }

    #[test]
    fn storage_with_and_without_a_key() {
        let storage = |authorization: &[u8], port| {
            Ok(Command::Storage { address: b"127.0.0.1".to_vec(), port, authorization: authorization.to_vec() })
        };
        assert_eq!(parse(b"storage address=127.0.0.1 port=20113 ssl=0\n"), storage(b"", 20113));
        assert_eq!(parse(b"storage address=127.0.0.1 port=0 ssl=0 Authorization=IC-PC\n"), storage(b"IC-PC", 0));
        let refusal = ("Bad storage command: storage x\n".to_owned(), "2902 Bad storage\n".to_owned());
        assert_eq!(refused(b"storage x\n"), refusal);
        assert!(parse(b"storage address=h port=70000 ssl=0\n").is_err());
    }

    #[test]
    fn restores() {
        let restore = |replace, prelinks, place, files| Ok(Command::Restore { files, replace, prelinks, place });
        let folder = |path: &[u8]| Where::Folder(path.to_vec());
        assert_eq!(
            parse(b"restore files=16 replace=a prelinks=0 where=/tmp/r1\n"),
            restore(Replace::Always, false, folder(b"/tmp/r1"), 16)
        );
        assert_eq!(
            parse(b"restore files=16 replace=n prelinks=1 where=/tmp/r\x016\n"),
            restore(Replace::Never, true, folder(b"/tmp/r 6"), 16)
        );
        assert_eq!(
            parse(b"restore files=1 replace=w prelinks=0 regexwhere=!^/src!/x!i\n"),
            restore(Replace::IfNewer, false, Where::Regex(b"!^/src!/x!i".to_vec()), 1)
        );
        assert_eq!(parse(b"restore replace=o prelinks=0 where=/\n"), restore(Replace::IfOlder, false, folder(b""), 0));
        assert_eq!(
            parse(b"restore files=0 replace=a prelinks=0 where=\n"),
            restore(Replace::Always, false, folder(b""), 0)
        );
        assert_eq!(refused(b"restore x\n").0, "Bad replace command. CMD=restore x\n\n");
    }

    #[test]
    fn verify_levels_ignore_case() {
        let levels = [
            (&b"verify level=init\n"[..], VerifyLevel::Init, b'V'),
            (b"verify level=catalog\n", VerifyLevel::Catalog, b'C'),
            (b"verify level=volume\n", VerifyLevel::Volume, b'O'),
            (b"verify level=Data", VerifyLevel::Data, b'A'),
            (b"verify  level=DISK_TO_CATALOG\n", VerifyLevel::DiskToCatalog, b'd'),
        ];
        for (frame, level, letter) in levels {
            assert_eq!((parse(frame), level.letter()), (Ok(Command::Verify(level)), letter));
        }
        let refusal = |text: &str| (String::new(), text.to_owned());
        assert_eq!(refused(b"verify level=disk\n"), refusal("2994 Bad verify level: verify level=disk\n\n"));
        assert_eq!(refused(b"verify level=\n"), refusal("2994 Bad verify level: verify level=\n\n"));
        assert_eq!(refused(b"verify all\n"), refusal("2994 Bad verify command: verify all\n\n"));
    }

    #[test]
    fn what_plugins_get() {
        let options = parse(b"pluginoptions=tp:\x01abc=1\x01def=\"two\x01words\"\n");
        assert_eq!(options, Ok(Command::PluginOptions(b"tp: abc=1 def=\"two words\"".to_vec())));
        assert_eq!(refused(b"pluginoptions\n").1, "2992 Bad pluginoptions command\n");
        let list = Command::RestoreFileList { plugin: b"tp-fd.so".to_vec() };
        assert_eq!(parse(b"restorefilelist plugin=tp-fd.so\n"), Ok(list));
        assert_eq!(refused(b"restorefilelist x\n").1, "2999 restorefilelist command error\n");
        let object = RestoreObject {
            job_id: 4,
            length: 111,
            full_length: 112,
            index: 1,
            object_type: 28,
            compression: 0,
            file_index: 1,
            plugin: b"bpipe:/a b".to_vec(),
        };
        assert_eq!(
            parse(b"restoreobject JobId=4 111,112,1,28,0,1,bpipe:/a\x01b\n"),
            Ok(Command::RestoreObject(object.clone()))
        );
        let old = RestoreObject { plugin: Vec::new(), ..object };
        assert_eq!(parse(b"restoreobject JobId=4 111,112,1,28,0,1\n"), Ok(Command::RestoreObject(old)));
        assert_eq!(parse(b"restoreobject end\n"), Ok(Command::RestoreObjectsEnd));
        let (fatal, reply) = refused(b"restoreobject JobId=4 1,2\n");
        assert_eq!(fatal, "job.c:1340 Bad RestoreObject command: restoreobject JobId=4 1,2\n\n");
        assert_eq!(reply, "2909 Bad RestoreObject command.\n");
    }

    #[test]
    fn cancel_and_stop() {
        assert_eq!(parse(b"cancel Job=big.1\n"), Ok(Command::Cancel { job: b"big.1".to_vec(), stop: false }));
        assert_eq!(parse(b"stop Job=big.1\n"), Ok(Command::Cancel { job: b"big.1".to_vec(), stop: true }));
        assert_eq!(refused(b"cancel big\n").1, "2902 Error scanning cancel command.\n");
    }

    #[test]
    fn status_words_ignore_case() {
        assert!(matches!(
            parse(b".status Running api=2 api_opts=j"),
            Ok(Command::DotStatus { what, api: 2, api_opts, .. }) if what == b"running" && api_opts == b"j"
        ));
        let (fatal, reply) = refused(b".status bogus api=1 api_opts=");
        assert_eq!(fatal, "status.c:607 Bad .status command: .status bogus api=1 api_opts=\n");
        assert_eq!(reply, "2900 Bad .status command, wrong argument.\n");
    }

    #[test]
    fn bandwidth_must_not_be_negative() {
        assert_eq!(
            parse(b"setbandwidth=204800 Job=big.1\n"),
            Ok(Command::SetBandwidth { limit: 204_800, job: b"big.1".to_vec() })
        );
        let frame = b"setbandwidth=-1 Job=x\n";
        assert_eq!(refused(frame).1, "2991 Bad setbandwidth command: setbandwidth=-1 Job=x\n\n");
    }

    #[test]
    fn run_scripts() {
        assert_eq!(
            parse(b"Run OnSuccess=1 OnFailure=0 AbortOnError=1 When=2 Command=/bin/echo\x01%j\n"),
            Ok(Command::Run(
                RunScript {
                    on_success: true,
                    on_failure: false,
                    abort_on_error: true,
                    when: RunScript::BEFORE,
                    command: b"/bin/echo %j".to_vec()
                },
                Word::Run
            ))
        );
        assert_eq!(parse(b"RunBeforeJob /bin/true\x01x\n"), Ok(Command::RunBeforeJob(b"/bin/true x".to_vec())));
        assert!(matches!(
            parse(b"RunAfterJob /bin/true\n"),
            Ok(Command::Run(RunScript { on_success: true, on_failure: false, when: 1, .. }, Word::RunAfterJob))
        ));
        assert_eq!(refused(b"Run x\n").1, "2905 Bad RunScript command.\n");
    }

    #[test]
    fn the_first_file_index() {
        assert_eq!(parse(b"backup FileIndex=0\n"), Ok(Command::Backup { file_index: 0 }));
        assert_eq!(parse(b"backup FileIndex=12\n"), Ok(Command::Backup { file_index: 12 }));
        assert_eq!(parse(b"backup\n"), Ok(Command::Backup { file_index: 0 }));
    }
}
