//! What a plugin may ask and change during a backup or an estimate (reference 07 §3.5, §3.6).

use std::sync::Arc;

use fd_fileset::{EffectiveOptions, FileSet, strip_path};
use fd_messages::MessageType;
use fd_plugins::{AccurateAttributes, FileEvent, FileSetChange, Host, JobFacts, SavePacket, Status, Value, Variable};
use fd_records::Stat;
use fd_walk::{Candidate, Comparison, WalkSettings};

use crate::accurate::AccurateList;
use crate::shared::changes::LateChanges;
use crate::texts;

/// So many events of one file are kept.
const MOST_EVENTS: usize = 1000;
/// And so many bytes of their texts.
const MOST_EVENT_BYTES: usize = 4 << 20;
/// With so many messages, or so many bytes of them, they are handed on while the call goes on.
const MANY: (usize, usize) = (16, 64 << 10);
/// So many messages, and bytes of them, are kept where they can't be handed on before the call is
/// over.
const MOST_KEPT: (usize, usize) = (1000, 1 << 20);

/// Where messages go that a plugin says within a call.
#[derive(Clone, Copy)]
pub(crate) enum Way<'h> {
    /// Nowhere: they are kept until the call is over.
    Kept,
    /// Into the stream, many at a time, before what its worker has not published.
    Stream(&'h dyn Fn(Vec<(MessageType, Vec<u8>)>)),
    /// To the operator, each at once.
    Direct(&'h dyn Fn(MessageType, &[u8])),
}

/// What is the same for all calls of a job.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'h> {
    pub(crate) facts: &'h dyn JobFacts,
    pub(crate) list: Option<&'h AccurateList>,
    pub(crate) fileset: &'h FileSet,
    pub(crate) walk: &'h WalkSettings,
    pub(crate) changes: &'h LateChanges,
}

/// See the module.
pub(crate) struct BackupHost<'h> {
    surroundings: Surroundings<'h>,
    /// The number of the Include of the command or file.
    include: usize,
    /// Its options.
    options: &'h Arc<EffectiveOptions>,
    way: Way<'h>,
    /// Files of the job so far.
    pub(crate) files: u32,
    /// Messages since they were taken last.
    pub(crate) messages: Vec<(MessageType, Vec<u8>)>,
    /// Their bytes.
    bytes: usize,
    /// The text of the first fatal message: it ends the job.
    pub(crate) fatal: Option<Vec<u8>>,
    /// Whether there was an error or a fatal message since the present file was asked for.
    pub(crate) told_error: bool,
    /// Events of the present file.
    pub(crate) file_events: Vec<FileEvent>,
}

impl<'h> BackupHost<'h> {
    pub(crate) fn new(
        surroundings: Surroundings<'h>,
        include: usize,
        options: &'h Arc<EffectiveOptions>,
        way: Way<'h>,
    ) -> Self {
        Self {
            surroundings,
            include,
            options,
            way,
            files: 0,
            messages: Vec::new(),
            bytes: 0,
            fatal: None,
            told_error: false,
            file_events: Vec::new(),
        }
    }

    /// Takes the messages that were not handed on.
    pub(crate) fn take_messages(&mut self) -> Vec<(MessageType, Vec<u8>)> {
        self.bytes = 0;
        std::mem::take(&mut self.messages)
    }

    /// Hands messages on while the call goes on. The plugin waits as long as the sender has enough
    /// of them. Behind a fatal one they wait for the end of the file.
    fn hand_on(&mut self) {
        if let Way::Stream(hand_on) = self.way
            && !self.messages.is_empty()
            && self.fatal.is_none()
        {
            hand_on(self.take_messages());
        }
    }

    /// The options of the present files.
    pub(crate) fn options(&self) -> &Arc<EffectiveOptions> {
        self.options
    }

    /// Whether the job is canceled.
    pub(crate) fn is_canceled(&self) -> bool {
        self.surroundings.facts.is_canceled()
    }

    /// Compares a file with the catalog's list, or its times with the job before. Where its data
    /// would have to be compared, it has changed: only the plugin can read it.
    fn is_changed(&self, name: &[u8], stat: &Stat) -> bool {
        let Surroundings { list, walk, .. } = self.surroundings;
        let candidate = Candidate { path: name, stat, options: self.options, accepted: true };
        match list.map_or(Comparison::ByTime, |list| list.compare(&candidate, walk)) {
            Comparison::ByTime => !walk.is_old(stat, self.options),
            Comparison::Unchanged => false,
            Comparison::Changed { .. } => true,
        }
    }
}

impl Host for BackupHost<'_> {
    fn facts(&self) -> &dyn JobFacts {
        self.surroundings.facts
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        self.told_error |= matches!(kind, MessageType::Error | MessageType::Fatal);
        if kind == MessageType::Fatal && self.fatal.is_none() {
            self.fatal = Some(text.to_vec());
        }
        if let Way::Direct(say) = self.way {
            return say(kind, text);
        }
        if self.messages.len() >= MOST_KEPT.0 || self.bytes > MOST_KEPT.1 {
            return;
        }
        self.bytes = self.bytes.saturating_add(text.len());
        self.messages.push((kind, text.to_vec()));
        if self.messages.len() >= MANY.0 || self.bytes >= MANY.1 {
            self.hand_on();
        }
        if self.messages.len() == MOST_KEPT.0 || self.bytes > MOST_KEPT.1 {
            self.messages.push((MessageType::Warning, texts::MESSAGES_LEFT_OUT.into()));
        }
    }

    fn call_goes_on(&mut self) {
        self.hand_on();
    }

    fn value(&mut self, variable: Variable) -> Option<Value> {
        match variable {
            Variable::FileIndex => Some(Value::Number(i32::try_from(self.files).unwrap_or(i32::MAX))),
            other => self.surroundings.facts.value(other),
        }
    }

    fn mark_seen(&mut self, name: &[u8]) -> Status {
        let is_known = self.surroundings.list.is_some_and(|list| list.mark_seen(name, self.options.strip_path));
        if is_known { Status::Ok } else { Status::Error }
    }

    fn change_fileset(&mut self, plugin: &[u8], change: FileSetChange<'_>) -> Status {
        let changes = self.surroundings.changes;
        let status = changes.change(plugin, change, &mut |kind, text| self.message(kind, text));
        if !status.is_ok() {
            // Plugins tend to ignore it, and files would be missing silently.
            self.message(MessageType::Warning, &texts::change_refused(plugin, &change));
        }
        status
    }

    fn check_changes(&mut self, file: &mut SavePacket) -> Status {
        let Some(name) = file.name.as_deref() else {
            self.message(MessageType::Fatal, texts::PLUGIN_NO_NAME_TO_CHECK.as_bytes());
            return Status::Error;
        };
        let is_changed = self.is_changed(name, &file.stat);
        let candidate = Candidate { path: name, stat: &file.stat, options: self.options, accepted: true };
        let known = self.surroundings.list.and_then(|list| list.attributes(&candidate.key()));
        file.accurate_found = known.is_some();
        file.delta_seq = known.map_or(0, |known| u32::try_from(known.delta_seq).unwrap_or_default());
        if is_changed { Status::Ok } else { Status::Seen }
    }

    fn accept_file(&mut self, file: &SavePacket) -> Status {
        let Surroundings { fileset, walk, changes, .. } = self.surroundings;
        let (Some(name), Some(include)) = (file.name.as_deref(), fileset.includes().get(self.include)) else {
            return Status::Error;
        };
        let is_directory = file.stat.mode_type() == Stat::MODE_DIRECTORY;
        let verdict = fileset.judge_also(include, name, is_directory, |path| changes.excludes(path));
        if verdict.accepted && walk.limits.accepts(name) { Status::Ok } else { Status::Skip }
    }

    fn accurate_attributes(&mut self, name: &[u8]) -> Option<AccurateAttributes> {
        let list = self.surroundings.list?;
        list.attributes(name).or_else(|| list.attributes(&strip_path(name, self.options.strip_path)?))
    }

    fn add_file_event(&mut self, event: FileEvent) -> Status {
        let bytes = |event: &FileEvent| event.source.len().saturating_add(event.description.len());
        let all = self.file_events.iter().map(bytes).fold(bytes(&event), usize::saturating_add);
        if self.file_events.len() >= MOST_EVENTS || all > MOST_EVENT_BYTES {
            return Status::Error;
        }
        self.file_events.push(event);
        Status::Ok
    }
}
