//! What the daemon offers a plugin (`bFuncs`, reference 07 §3.5, §3.6).

use fd_messages::MessageType;
use fd_records::Stat;
use serde::{Deserialize, Serialize};

use super::call::Status;
use super::packets::SavePacket;
use super::stat_form::StatForm;

/// What the daemon offers during one call. Each place that calls plugins has its own: a job that
/// has no FileSet can't add to it, and a restore compares no changes. Functions that a place does
/// not offer answer as the stock daemon's do there.
pub trait Host {
    /// What is the same at every place of the job.
    fn facts(&self) -> &dyn JobFacts;

    /// A message of the plugin to the operator (`JobMessage`), in its order among the others.
    fn message(&mut self, kind: MessageType, text: &[u8]);

    /// A call has taken a moment without anything being said: what was said before need not wait
    /// for its end.
    fn call_goes_on(&mut self) {}

    /// Output for debugging (`DebugMessage`), with its level. The text ends its line itself.
    fn debug(&mut self, level: i32, text: &[u8]) {
        self.facts().debug(level, text);
    }

    /// A variable's value (`getBaculaValue`).
    fn value(&mut self, variable: Variable) -> Option<Value> {
        self.facts().value(variable)
    }

    /// The catalog's record of this file counts as seen (`setBaculaValue`, variable 10).
    fn mark_seen(&mut self, _name: &[u8]) -> Status {
        Status::Error
    }

    /// A change of the FileSet by the plugin of this file. Each plugin of a job has an Exclude
    /// block of its own.
    fn change_fileset(&mut self, _plugin: &[u8], _change: FileSetChange<'_>) -> Status {
        Status::Error
    }

    /// Whether a file has changed: [`Status::Ok`] if it has, [`Status::Seen`] if not. Sets
    /// `delta_seq` and `accurate_found`.
    fn check_changes(&mut self, _file: &mut SavePacket) -> Status {
        Status::Ok
    }

    /// Whether the FileSet takes a file: [`Status::Ok`] or [`Status::Skip`].
    fn accept_file(&mut self, _file: &SavePacket) -> Status {
        Status::Ok
    }

    /// The catalog's record of a file, in an accurate job.
    fn accurate_attributes(&mut self, _name: &[u8]) -> Option<AccurateAttributes> {
        None
    }

    /// Something that the plugin has found in a file.
    fn add_file_event(&mut self, _event: FileEvent) -> Status {
        Status::Ok
    }
}

/// What is the same at every place of a job. Any thread may ask.
pub trait JobFacts: Send + Sync + std::fmt::Debug {
    /// A variable's value; `None` if it has none here.
    fn value(&self, variable: Variable) -> Option<Value>;

    /// Whether the job was canceled.
    fn is_canceled(&self) -> bool;

    /// `Allowed Script Directories`; any program may run if there is none.
    fn allowed_programs(&self) -> &[Vec<u8>];

    /// Output for debugging: the text as it stands, with the daemon's name before it unless the
    /// level is negative.
    fn debug(&self, level: i32, text: &[u8]);

    /// Sets variable 22, which says that a person waits.
    fn set_interactive(&self) {}

    /// Notes a command that the job saves files of: a later restore may run it.
    fn note_command(&self, _command: &[u8]) {}

    /// What a command is that a volume has.
    fn command_of_volume(&self, _command: &[u8]) -> CommandOfVolume {
        CommandOfVolume::Unknown
    }
}

/// What a plugin command is that a volume has. A volume is data, so a command is run only if
/// someone who may order programs has said it, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandOfVolume {
    /// It may be run.
    Ordered,
    /// No Director has said it.
    Unknown,
    /// No command of a volume may be run.
    Never,
}

/// The facts of a job without plugins: none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NoFacts;

impl JobFacts for NoFacts {
    fn value(&self, _variable: Variable) -> Option<Value> {
        None
    }

    fn is_canceled(&self) -> bool {
        false
    }

    fn allowed_programs(&self) -> &[Vec<u8>] {
        &[]
    }

    fn debug(&self, _level: i32, _text: &[u8]) {}
}

/// A variable of the daemon (`bVar…`, reference 07 §3.6): one that has a value on Linux.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Variable {
    /// Number of the job (1).
    JobId,
    /// Name of the `FileDaemon` resource (2).
    FdName,
    /// Letter of the level (3).
    Level,
    /// Letter of the kind of job (4).
    Type,
    /// Name of the client (5).
    Client,
    /// Unique name of the job (6).
    JobName,
    /// Letter of the job's status (7).
    JobStatus,
    /// Since when files count as changed, seconds since 1970 (8).
    SinceTime,
    /// Whether the job is accurate (9).
    Accurate,
    /// The working directory (13).
    WorkingDir,
    /// The plugin directory (14).
    PluginDir,
    /// `where` of a restore (15).
    Where,
    /// `regexwhere` of a restore (16).
    RegexWhere,
    /// The directory of the program, with a final slash (17).
    ExePath,
    /// Version and date (18).
    Version,
    /// The distribution (19).
    DistName,
    /// The job before (20).
    PrevJobName,
    /// A flag of the restore (21).
    PrefixLinks,
    /// Whether a person waits (22).
    InteractiveSession,
    /// Files so far (23).
    FileIndex,
    /// The replace mode (24).
    Replace,
    /// Largest block of deduplication (25).
    MaxDedupBlockSize,
    /// Smallest block of deduplication (26).
    MinDedupBlockSize,
    /// Whether the job was canceled (27).
    IsCanceled,
    /// The directory of the configuration, with a final slash (28).
    SysConfigPath,
    /// Whether it is an estimate (29).
    Estimate,
}

impl Variable {
    const NUMBERED: [(i32, Self); 26] = [
        (1, Self::JobId),
        (2, Self::FdName),
        (3, Self::Level),
        (4, Self::Type),
        (5, Self::Client),
        (6, Self::JobName),
        (7, Self::JobStatus),
        (8, Self::SinceTime),
        (9, Self::Accurate),
        (13, Self::WorkingDir),
        (14, Self::PluginDir),
        (15, Self::Where),
        (16, Self::RegexWhere),
        (17, Self::ExePath),
        (18, Self::Version),
        (19, Self::DistName),
        (20, Self::PrevJobName),
        (21, Self::PrefixLinks),
        (22, Self::InteractiveSession),
        (23, Self::FileIndex),
        (24, Self::Replace),
        (25, Self::MaxDedupBlockSize),
        (26, Self::MinDedupBlockSize),
        (27, Self::IsCanceled),
        (28, Self::SysConfigPath),
        (29, Self::Estimate),
    ];

    /// The variable of this number.
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        Self::NUMBERED.iter().find(|(known, _)| *known == number).map(|(_, variable)| *variable)
    }

    /// Its number.
    pub fn number(self) -> i32 {
        Self::NUMBERED.iter().find(|(_, variable)| *variable == self).map_or(0, |(number, _)| *number)
    }
}

/// A variable's value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Value {
    /// A number.
    Number(i32),
    /// A text; `None` for no text (a null pointer).
    Text(#[serde(with = "serde_bytes")] Option<Vec<u8>>),
}

/// A change of the FileSet (reference 07 §3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSetChange<'a> {
    /// How it changes.
    pub how: Change,
    /// The name, letters, expression, pattern or command that is added; empty for the others.
    pub item: &'a [u8],
    /// Of [`Change::Regex`] and [`Change::Wild`], what they count for: a space for all, `D`, `F`,
    /// and `B`, which only a pattern can have.
    pub kind: u8,
}

impl<'a> FileSetChange<'a> {
    /// A change by this item; an expression or a pattern counts for all entries.
    pub const fn new(how: Change, item: &'a [u8]) -> Self {
        Self { how, item, kind: b' ' }
    }
}

/// How the FileSet changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// `AddExclude`: a name is left out.
    Exclude,
    /// `AddInclude`: a name is saved.
    Include,
    /// `AddOptions`: letters of options.
    Options,
    /// `AddRegex`: an expression.
    Regex,
    /// `AddWild`: a pattern.
    Wild,
    /// `NewOptions`.
    NewOptions,
    /// `NewInclude`.
    NewInclude,
    /// `NewPreInclude`.
    NewPreInclude,
    /// `AddPlugin`: a command.
    Plugin,
}

impl Change {
    /// Its function in the C interface.
    pub const fn function(self) -> &'static str {
        match self {
            Self::Exclude => "AddExclude",
            Self::Include => "AddInclude",
            Self::Options => "AddOptions",
            Self::Regex => "AddRegex",
            Self::Wild => "AddWild",
            Self::NewOptions => "NewOptions",
            Self::NewInclude => "NewInclude",
            Self::NewPreInclude => "NewPreInclude",
            Self::Plugin => "AddPlugin",
        }
    }
}

/// The catalog's record of a file (`accurate_attribs_pkt`).
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct AccurateAttributes {
    /// Its attributes.
    #[serde(with = "StatForm")]
    pub stat: Stat,
    /// Its digest as the catalog has it.
    #[serde(with = "serde_bytes")]
    pub checksum: Option<Vec<u8>>,
    /// Number of the delta.
    pub delta_seq: i32,
    /// Whether this job has it already.
    pub seen: bool,
}

/// What a plugin has found in a file (`fileevent_pkt`, reference 07 §5.10).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileEvent {
    /// The file, as the plugin numbers it.
    pub file_index: i32,
    /// A letter; `a` for a virus.
    pub kind: u8,
    /// From 0 on.
    pub severity: i32,
    /// What found it.
    #[serde(with = "serde_bytes")]
    pub source: Vec<u8>,
    /// What was found.
    #[serde(with = "serde_bytes")]
    pub description: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_has_its_number() {
        for number in 0..31 {
            let variable = Variable::from_number(number);
            assert_eq!(variable.is_some(), !matches!(number, 0 | 10..=12 | 30), "{number}");
            assert!(variable.is_none_or(|variable| variable.number() == number));
        }
    }
}
