//! The console's `estimate`: counts and lists what a backup would save, without reading it
//! (reference 03 §9).

use std::sync::Arc;

use fd_crypto::Digesters;
use fd_fileset::FileSet;
use fd_messages::{CancelToken, JobLog, MessageType};
use fd_metadata::NameCache;
use fd_plugins::{JobFacts, JobPlugins};
use fd_records::FileType;
use fd_walk::{
    Candidate, Comparison, Entry, Flow, HardLink, LinkState, LinkTable, WalkEnd, WalkEvent, WalkHost, WalkSettings,
};

use crate::accurate::AccurateList;
use crate::exchange::piece::Event;
use crate::file::compare::Comparer;
use crate::file::fate::Fate;
use crate::file::listing::saved_line;
use crate::file::prepare::prepare_link;
use crate::plugins::estimate::estimate_command;
use crate::shared::backup_host::Surroundings;
use crate::shared::changes::{LateChanges, LateIncludes};
use crate::shared::plan::{BackupError, block_len};
use crate::source::{LeaseClock, OpenLimits};

/// What is estimated.
#[derive(Clone, Debug)]
pub struct EstimatePlan {
    /// What would be saved.
    pub fileset: Arc<FileSet>,
    /// How the tree is walked; its purpose should be [`fd_walk::Purpose::Estimate`].
    pub walk: WalkSettings,
    /// The catalog's files, in an accurate job.
    pub accurate: Option<Arc<AccurateList>>,
    /// `Maximum Network Buffer Size`: the size of a full data record in bytes; 0 for 65,536.
    pub network_buffer: usize,
    /// Whether the job would encrypt.
    pub encrypts: bool,
    /// The job's plugins.
    pub plugins: Arc<JobPlugins>,
    /// What plugins may ask about the job.
    pub facts: Arc<dyn JobFacts>,
    /// Makes the Includes that plugins add during the walk; `None`: they can't.
    pub late: Option<Arc<dyn LateIncludes>>,
    /// Whether each entry gets a line.
    pub listing: bool,
}

/// The result.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EstimateTotals {
    /// Entries that would be saved.
    pub files: u64,
    /// Sizes of the regular files among them.
    pub bytes: u64,
}

/// Estimates a backup. Lines go to `log` as information, the walk's messages with their own types.
///
/// # Errors
/// [`BackupError::Canceled`].
pub fn estimate(plan: &EstimatePlan, log: &dyn JobLog, cancel: &CancelToken) -> Result<EstimateTotals, BackupError> {
    let host = Host { plan, log, cancel, changes: LateChanges::new(plan.late.clone()) };
    let (leases, is_stopped) = (LeaseClock::default(), || cancel.is_canceled());
    let mut comparer = Comparer {
        list: plan.accurate.as_deref(),
        digesters: &mut Digesters::default(),
        block: &mut Vec::new(),
        before_each: &mut || {},
        record_len: block_len(plan.network_buffer),
        encrypts: plan.encrypts,
        open_limits: OpenLimits::new(&is_stopped, &leases),
    };
    let mut names = NameCache::new();
    let mut result = EstimateTotals::default();
    let lists = plan.listing && log.wants(MessageType::Info);
    let mut sink = |event: WalkEvent<'_>| {
        match event {
            WalkEvent::Entry(mut entry) => {
                if is_saved(&mut entry, &mut comparer, log) {
                    result.add(&entry);
                    if lists {
                        log.message(MessageType::Info, &saved_line(&entry, &mut names));
                    }
                }
            }
            WalkEvent::Message(message) => log.message(message.kind, message.text),
            WalkEvent::Plugin(plugin) => {
                let surroundings = Surroundings {
                    facts: plan.facts.as_ref(),
                    list: plan.accurate.as_deref(),
                    fileset: &plan.fileset,
                    walk: &plan.walk,
                    changes: &host.changes,
                };
                let files = result.files;
                let say = |kind, text: &[u8]| log.message(kind, text);
                estimate_command(&plan.plugins, surroundings, plugin, files, &say, &mut |entry| {
                    result.add_of_plugin(entry);
                    if lists {
                        log.message(MessageType::Info, &saved_line(entry, &mut names));
                    }
                });
            }
        }
        Flow::Continue
    };
    let links = LinkTable::default();
    let mut summary = fd_walk::walk_again(&plan.fileset, &plan.walk, &host, &links, &mut sink);
    while let Some(more) = host.changes.take_includes().filter(|_| summary.end == WalkEnd::Complete) {
        summary = fd_walk::walk_again(&more, &plan.walk, &host, &links, &mut sink);
    }
    if summary.end == WalkEnd::Complete { Ok(result) } else { Err(BackupError::Canceled) }
}

impl EstimateTotals {
    fn add(&mut self, entry: &Entry) {
        self.files = self.files.saturating_add(1);
        if entry.file_type == FileType::Regular {
            self.bytes = self.bytes.saturating_add(u64::try_from(entry.stat.size).unwrap_or_default());
        }
    }

    /// Adds a file of a plugin (reference 07 §8.1).
    fn add_of_plugin(&mut self, entry: &Entry) {
        self.files = self.files.saturating_add(1);
        if entry.file_type != FileType::HardLink {
            self.bytes = self.bytes.saturating_add(u64::try_from(entry.stat.size).unwrap_or_default());
        }
    }
}

/// Whether a backup would save the entry. An error in comparing its data goes to `log`.
fn is_saved(entry: &mut Entry, comparer: &mut Comparer<'_>, log: &dyn JobLog) -> bool {
    prepare_link(entry);
    let Ok(prepared) = comparer.examine(entry) else { return false };
    for event in prepared.events {
        if let Event::Message { kind, text, .. } = event {
            log.message(kind, &text);
        }
    }
    let is_unchanged = matches!(prepared.fate, Fate::Unchanged);
    if is_unchanged && let Some(HardLink::First(slot)) = &entry.hard_link {
        slot.set(LinkState::NotSaved);
    }
    !is_unchanged
}

/// Answers the walk's questions.
struct Host<'h> {
    plan: &'h EstimatePlan,
    log: &'h dyn JobLog,
    cancel: &'h CancelToken,
    changes: LateChanges,
}

impl WalkHost for Host<'_> {
    fn is_canceled(&self) -> bool {
        self.cancel.is_canceled()
    }

    fn wants(&self, kind: MessageType) -> bool {
        self.log.wants(kind)
    }

    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        let list = self.plan.accurate.as_ref();
        list.map_or(Comparison::ByTime, |list| list.compare(candidate, &self.plan.walk))
    }

    fn excludes(&self, path: &[u8]) -> bool {
        self.changes.excludes(path)
    }

    fn begins_include(&self, include: usize) {
        self.changes.begin_include(include);
    }

    fn added_command(&self) -> Option<Vec<u8>> {
        self.changes.take_command()
    }
}
