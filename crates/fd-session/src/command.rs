//! The Director's commands as types (reference 02 §3, §4).
//!
//! `TABLE` has a row for each command. [`read`] finds the row of a frame and makes a [`Command`]
//! of it, or the [`Refusal`] that the stock daemon would send. Doing what is commanded is the
//! program's part.

mod backup;
mod diagnostics;
mod job;
mod plugin;
mod refusal;
mod restore;
mod script;
mod snapshot;
mod status;
mod verify;

pub use backup::{BackupLevel, EstimateOrder, Level, LevelFlags, Since};
pub use diagnostics::{DiagnosticCommand, MetricFormat, MetricsQuery, NetworkTest, SetDebug};
pub use job::{NewJob, SetBandwidth, StorageAddress};
pub use plugin::{PluginCommand, PluginQuery, RestoreObject};
pub use refusal::Refusal;
pub use restore::{RestoreOrder, Where};
pub use script::{RunScript, ScriptCommand};
pub use snapshot::{NamedSnapshot, SnapshotOrder};
pub use status::{StatusGroup, StatusQuery};
pub use verify::VerifyLevel;

use fd_bsock::hello;
use fd_bsock::scan::Lenient;

use crate::texts::{self, Quote};

/// A command with its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// `accurate`: about how many files the list has that follows.
    Accurate(u64),
    /// `backup`: the first file gets the FileIndex after this one.
    Backup(u32),
    /// `cancel`: full job name.
    Cancel(Vec<u8>),
    /// What an operator looks into the daemon with.
    Diagnose(DiagnosticCommand),
    /// `endrestore`.
    EndRestore,
    /// `estimate`.
    Estimate(EstimateOrder),
    /// `fileset`: whether it asks for snapshots. Its lines follow.
    FileSet(bool),
    /// `JobId=`.
    Job(NewJob),
    /// `level = `.
    Level(LevelFlags, Level),
    /// What is for plugins.
    Plugin(PluginCommand),
    /// `proxy`.
    Proxy,
    /// `restore `.
    Restore(RestoreOrder),
    /// What runs programs on this host.
    Script(ScriptCommand),
    /// `session`, which is not sent any more.
    Session,
    /// `setbandwidth=`.
    SetBandwidth(SetBandwidth),
    /// `snapshot`.
    Snapshot(SnapshotOrder),
    /// `status`.
    Status,
    /// `.status`.
    StatusGroup(StatusQuery),
    /// `stop`: full name of the job that is to be resumed later.
    Stop(Vec<u8>),
    /// `storage `.
    Storage(StorageAddress),
    /// `verify`.
    Verify(VerifyLevel),
}

/// What a Director resource allows its Director.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// `Monitor = yes`.
    pub monitor: bool,
    /// `Remote = yes`.
    pub remote: bool,
}

/// One command.
struct Row {
    /// What a frame begins with; also the command's name in messages and in `DisableCommand`.
    name: &'static str,
    /// Reads the values; `None`: the frame is refused.
    parse: fn(&[u8]) -> Option<Command>,
    /// Which restricted Directors may send it, beside those without a restriction.
    also: Access,
    /// The fatal message of a refusal.
    fatal: Option<Quote>,
    /// The reply of a refusal.
    reply: Option<&'static [u8]>,
    /// The command's answer is a list, and so is a refusal.
    ends_list: bool,
    /// A refusal does not end the session.
    goes_on: bool,
    /// In place of these four, where the refusal depends on the frame.
    refuse: Option<fn(&[u8]) -> Refusal>,
}

const fn row(name: &'static str, parse: fn(&[u8]) -> Option<Command>) -> Row {
    Row { name, parse, also: NONE, fatal: None, reply: None, ends_list: false, goes_on: false, refuse: None }
}

impl Row {
    const fn also(self, also: Access) -> Self {
        Self { also, ..self }
    }

    const fn fatal(self, fatal: Quote) -> Self {
        Self { fatal: Some(fatal), ..self }
    }

    const fn reply(self, reply: &'static [u8]) -> Self {
        Self { reply: Some(reply), ..self }
    }

    const fn ends_list(self) -> Self {
        Self { ends_list: true, ..self }
    }

    const fn goes_on(self) -> Self {
        Self { goes_on: true, ..self }
    }

    const fn refuse(self, refuse: fn(&[u8]) -> Refusal) -> Self {
        Self { refuse: Some(refuse), ..self }
    }

    fn refusal(&self, frame: &[u8]) -> Refusal {
        let Self { ends_list, goes_on, .. } = *self;
        let (fatal, reply) = (self.fatal.map(|quote| quote.of(frame)), self.reply.map(<[u8]>::to_vec));
        self.refuse.map_or(Refusal { fatal, reply, ends_list, goes_on, named: None }, |refuse| refuse(frame))
    }
}

const NONE: Access = Access { monitor: false, remote: false };
const MONITOR: Access = Access { monitor: true, remote: false };
const REMOTE: Access = Access { monitor: false, remote: true };
const BOTH: Access = Access { monitor: true, remote: true };

/// All commands, in the order in which a frame is compared with them: the first prefix wins
/// (reference 02 §3). Rows without a refusal take every frame.
const TABLE: &[Row] = &[
    row("backup", |frame| Some(Command::Backup(backup::file_index(frame)))),
    row("cancel", |frame| job::name_behind("cancel Job=", frame).map(Command::Cancel))
        .also(REMOTE)
        .reply(texts::BAD_CANCEL)
        .ends_list()
        .goes_on(),
    row("setdebug=", |frame| DiagnosticCommand::set_debug(frame).map(Command::Diagnose))
        .refuse(|frame| Refusal::reply(texts::BAD_SETDEBUG.of(frame))),
    row("setbandwidth=", |frame| SetBandwidth::parse(frame).map(Command::SetBandwidth))
        .also(REMOTE)
        .refuse(|frame| Refusal::reply(texts::BAD_BANDWIDTH.of(frame))),
    row("snapshot", |frame| SnapshotOrder::parse(frame).map(Command::Snapshot)).reply(texts::BAD_SNAPSHOT).ends_list(),
    row("estimate", |frame| EstimateOrder::parse(frame).map(Command::Estimate))
        .fatal(texts::MALFORMED_ESTIMATE)
        .reply(texts::BAD_ESTIMATE),
    // A Director that has authenticated has no reason to greet again. The stock daemon would
    // authenticate it anew.
    row("Hello", |_| None).also(MONITOR).refuse(second_hello),
    row("fileset", |frame| Some(Command::FileSet(backup::wants_snapshot(frame)))),
    row("JobId=", |frame| NewJob::parse(frame).map(Command::Job)).refuse(job::refused),
    row("level = ", |frame| backup::level(frame).map(|(flags, level)| Command::Level(flags, level)))
        .refuse(backup::level_refused),
    row("restore ", |frame| RestoreOrder::parse(frame).map(Command::Restore)).fatal(texts::MALFORMED_RESTORE),
    row("endrestore", |_| Some(Command::EndRestore)),
    row("session", |frame| Lenient::new(frame).text("session ").map(|_| Command::Session))
        .fatal(texts::MALFORMED_SESSION),
    row("status", |_| Some(Command::Status)).also(BOTH),
    row(".status", |frame| StatusQuery::parse(frame).map(Command::StatusGroup))
        .also(BOTH)
        .fatal(texts::MALFORMED_DOT_STATUS)
        .reply(texts::BAD_DOT_STATUS)
        .ends_list(),
    row("storage ", |frame| StorageAddress::parse(frame).map(Command::Storage))
        .fatal(texts::MALFORMED_STORAGE)
        .reply(texts::BAD_STORAGE),
    row("verify", |frame| VerifyLevel::parse(frame).map(Command::Verify)).refuse(verify::refused),
    row("component", |_| Some(Command::Plugin(PluginCommand::Components))),
    row("RunBeforeNow", |_| Some(Command::Script(ScriptCommand::BeforeNow))),
    row("RunBeforeJob", |frame| Some(Command::Script(ScriptCommand::before_job(frame)))),
    row("RunAfterJob", |frame| Some(Command::Script(ScriptCommand::after_job(frame)))),
    row("Run", |frame| ScriptCommand::run(frame).map(Command::Script))
        .fatal(texts::MALFORMED_RUN_SCRIPT)
        .reply(texts::BAD_RUN_SCRIPT),
    row("accurate", |frame| backup::accurate_files(frame).map(Command::Accurate)).reply(texts::BAD_ACCURATE),
    row("restoreobject", |frame| PluginCommand::object(frame).map(Command::Plugin))
        .fatal(texts::MALFORMED_RESTORE_OBJECT)
        .reply(texts::BAD_RESTORE_OBJECT),
    row("sm_dump", |_| Some(Command::Diagnose(DiagnosticCommand::MemoryDump))),
    row("stop", |frame| job::name_behind("stop Job=", frame).map(Command::Stop))
        .also(REMOTE)
        .reply(texts::BAD_CANCEL)
        .ends_list()
        .goes_on(),
    row("proxy", |_| Some(Command::Proxy)).also(REMOTE),
    row("caps", |_| Some(Command::Diagnose(DiagnosticCommand::Capabilities))).also(BOTH),
    row("testnetwork", |frame| Some(Command::Diagnose(DiagnosticCommand::test_network(frame)))),
    row("PluginFeatures", |_| Some(Command::Plugin(PluginCommand::Features))),
    row("restorefilelist", |frame| PluginCommand::file_list(frame).map(Command::Plugin))
        .reply(texts::BAD_RESTORE_FILE_LIST)
        .goes_on(),
    row("statistics", |frame| DiagnosticCommand::statistics(frame).map(Command::Diagnose))
        .fatal(texts::MALFORMED_STATISTICS)
        .reply(texts::BAD_STATISTICS)
        .ends_list(),
    row("query", |frame| PluginCommand::query(frame).map(Command::Plugin)).reply(texts::BAD_QUERY),
    row("pluginoptions", |frame| PluginCommand::options(frame).map(Command::Plugin)).reply(texts::BAD_PLUGIN_OPTIONS),
];

fn second_hello(frame: &[u8]) -> Refusal {
    match frame.len() {
        len if hello::FIRST_PACKET.contains(&len) => Refusal::reply(texts::INVALID_COMMAND.to_vec()),
        len => Refusal::reply(texts::bad_hello_length("client", len)),
    }
}

/// The commands that a word of `DisableCommand` disables: the first one whose name begins with it,
/// ignoring case (reference 06 §3.7), and the one of that very name, which can't be disabled
/// otherwise (`Run`). Trailing blanks and `=` belong to a name.
pub fn disabled_by(item: &[u8]) -> Vec<&'static str> {
    let begins = |name: &[u8]| name.get(..item.len()).is_some_and(|head| head.eq_ignore_ascii_case(item));
    let mut names = TABLE.iter().map(|row| row.name).filter(|name| begins(name.as_bytes()));
    let first = names.next();
    first.into_iter().chain(names.find(|name| name.len() == item.len())).collect()
}

/// What `frame` commands, if a Director with this access may send it and the configuration has not
/// disabled it.
///
/// # Errors
/// How the frame is refused.
pub fn read(frame: &[u8], access: Access, is_disabled: impl Fn(&str) -> bool) -> Result<Command, Refusal> {
    let Some(row) = TABLE.iter().find(|row| frame.starts_with(row.name.as_bytes())) else {
        return Err(Refusal::reply(texts::INVALID_COMMAND.to_vec()));
    };
    let Access { monitor, remote } = access;
    if access != NONE && !(monitor && row.also.monitor || remote && row.also.remote) {
        let reply = Some(texts::NOT_PERMITTED.to_vec());
        return Err(Refusal { reply, ends_list: true, goes_on: true, ..Refusal::default() });
    }
    if is_disabled(row.name) {
        return Err(Refusal::fatal(texts::COMMAND_DISABLED.of(row.name)));
    }
    (row.parse)(frame).ok_or_else(|| row.refusal(frame))
}

#[cfg(test)]
mod tests;
