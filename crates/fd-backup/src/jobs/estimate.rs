//! The console's `estimate`: what a backup would save, counted and listed, without reading it (reference 03 §9).

use std::sync::Arc;

use fd_fileset::FileSet;
use fd_messages::{CancelToken, JobLog, MessageType};
use fd_metadata::NameCache;
use fd_records::FileType;
use fd_walk::{Candidate, Comparison, Entry, Flow, WalkEnd, WalkEvent, WalkHost, WalkSettings};

use crate::accurate::{AccurateList, Token};
use crate::digests::digesters::Digesters;
use crate::file::compare::{Comparer, Decision};
use crate::file::listing::saved_line;
use crate::file::plugins::PluginNames;
use crate::file::source::LeaseClock;
use crate::jobs::plan::BackupError;
use crate::pipeline::piece::Event;
use crate::texts::PluginPlace;

/// Block of data that is compared with the catalog, as in a backup with the usual network buffer.
const RECORD_LEN: usize = 65_536;

/// What is to be estimated.
#[derive(Clone, Debug)]
pub struct EstimatePlan {
    /// What would be saved.
    pub fileset: Arc<FileSet>,
    /// How the tree is walked; its purpose should be [`fd_walk::Purpose::Estimate`].
    pub walk: WalkSettings,
    /// What the catalog knows, in an accurate job.
    pub accurate: Option<Arc<AccurateList>>,
    /// The plugins that there are.
    pub plugins: PluginNames,
    /// Whether each entry gets a line.
    pub listing: bool,
}

/// The result.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Estimate {
    /// Entries that would be saved.
    pub files: u64,
    /// Sizes of the regular files among them.
    pub bytes: u64,
}

/// Estimates a backup. Lines go to `log` as information, and so do the walk's messages with their own types.
///
/// # Errors
/// [`BackupError::Cancelled`].
pub fn estimate(plan: &EstimatePlan, log: &dyn JobLog, cancel: &CancelToken) -> Result<Estimate, BackupError> {
    let host = Host { plan, log, cancel };
    let mut comparer = DataCheck { digesters: Digesters::default(), block: Vec::new(), leases: LeaseClock::default() };
    let mut names = NameCache::new();
    let mut result = Estimate::default();
    let lists = plan.listing && log.wants(MessageType::Info);
    let summary = fd_walk::walk(&plan.fileset, &plan.walk, &host, &mut |event| {
        match event {
            WalkEvent::Entry(entry) if comparer.is_saved(&entry, &host) => {
                result.add(&entry);
                if lists {
                    log.message(MessageType::Info, &saved_line(&entry, &mut names));
                }
            }
            WalkEvent::Message(message) => log.message(message.kind, message.text),
            WalkEvent::Plugin { command, .. } => {
                log.message(MessageType::Fatal, &plan.plugins.lacks_command(PluginPlace::Estimate, command));
            }
            WalkEvent::Entry(_) => {}
        }
        Flow::Continue
    });
    if summary.end == WalkEnd::Complete { Ok(result) } else { Err(BackupError::Cancelled) }
}

impl Estimate {
    fn add(&mut self, entry: &Entry) {
        self.files = self.files.saturating_add(1);
        if entry.file_type == FileType::Regular {
            self.bytes = self.bytes.saturating_add(u64::try_from(entry.stat.size).unwrap_or_default());
        }
    }
}

/// Compares data with the catalog where the FileSet asks for it.
struct DataCheck {
    digesters: Digesters,
    block: Vec<u8>,
    leases: LeaseClock,
}

impl DataCheck {
    /// Whether a backup would save the entry; tells why its data can't be compared.
    fn is_saved(&mut self, entry: &Entry, host: &Host<'_>) -> bool {
        let token = entry.token.map(Token::decode).filter(|token| token.needs_data());
        let (Some(list), Some(token)) = (host.plan.accurate.as_deref(), token) else { return true };
        let is_stopped = || host.cancel.is_cancelled();
        let mut comparer = Comparer {
            list,
            digesters: &mut self.digesters,
            block: &mut self.block,
            record_len: RECORD_LEN,
            is_stopped: &is_stopped,
            leases: &self.leases,
        };
        let Ok(finding) = comparer.examine(entry, token) else { return false };
        for event in finding.events {
            if let Event::Message { kind, text, .. } = event {
                host.log.message(kind, &text);
            }
        }
        !matches!(finding.decision, Decision::Skip)
    }
}

/// What the walk asks.
struct Host<'h> {
    plan: &'h EstimatePlan,
    log: &'h dyn JobLog,
    cancel: &'h CancelToken,
}

impl WalkHost for Host<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn wants(&self, kind: MessageType) -> bool {
        self.log.wants(kind)
    }

    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        let walk = &self.plan.walk;
        match &self.plan.accurate {
            Some(list) => list.compare(candidate, walk.incremental, walk.since),
            None => Comparison::ByTime,
        }
    }
}
