//! `accurate` and `estimate`: the catalog's list of files, and what a backup would save
//! (reference 02 §4.9, §4.17).

use std::sync::Arc;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fd_backup::{AccurateLevel, AccurateList, EstimatePlan, EstimateTotals};
use fd_config::Messages;
use fd_fileset::FileSet;
use fd_messages::{JobLog, MessageType};
use fd_os::threads::GLANCE;
use fd_plugins::{JobFacts, NoFacts};
use fd_session::JobStatus;
use fd_session::command::{BackupLevel, EstimateOrder};
use fd_transport::{ChannelError, IDLE_LIMIT, Received};
use fd_walk::{LookupDepth, Purpose, WalkSettings};

use super::conversation::{Conversation, Flow};
use crate::job::own_thread::{Nothing, OwnThread};
use crate::shared::job::JobLevel;
use crate::texts;

/// Lines that may wait for the Director.
const WAITING: usize = 256;

/// An accurate list of so many files is received many frames at a time.
const MANY: u64 = 1000;

impl Conversation<'_> {
    /// Reads the list up to a signal. There is no reply, whatever it says.
    pub(super) fn read_accurate_list(&mut self, announced: u64) -> Flow {
        let level = self.job().level();
        let full = matches!(level, JobLevel::Backup(BackupLevel::Full | BackupLevel::Base));
        self.asked.level.flags.accurate = true;
        self.job().course.expect(|expected| expected.listed = announced);
        self.tell_facts(|told| told.accurate = true);
        // Only a Verify job has a list and no level yet.
        let mut list = if level == JobLevel::None {
            AccurateList::for_verify(announced)
        } else {
            let level = AccurateLevel { full, rerun: self.asked.level.flags.rerunning };
            AccurateList::new(level, announced, &self.fileset_outline())
        };
        list = list.within(self.daemon.jobs.memory.list());
        self.channel.expect_many(announced >= MANY);
        let received = self.receive_accurate_list(&mut list);
        self.channel.expect_many(false);
        match received {
            Ok(true) => list.complete(),
            Ok(false) => {
                self.say(MessageType::Fatal, &texts::list_too_large(list.count()));
                return Flow::End;
            }
            Err(error) => {
                tracing::debug!(%error, "the accurate list broke off");
                return Flow::End;
            }
        }
        self.asked.accurate = Some(Arc::new(list));
        Flow::GoOn
    }

    /// What the FileSet has so far of options.
    fn fileset_outline(&self) -> FileSet {
        self.asked.fileset.open().map(|open| open.draft.outline()).unwrap_or_default()
    }

    /// `false`: there was no memory for all of it. The Director listens only when it has sent all.
    fn receive_accurate_list(&mut self, list: &mut AccurateList) -> Result<bool, ChannelError> {
        let mut fits = true;
        loop {
            match self.channel.recv(IDLE_LIMIT)? {
                Received::Data(message) if fits => fits = list.add(message),
                Received::Data(_) | Received::Empty => {}
                Received::Signal(_) => return Ok(fits),
            }
        }
    }

    /// How the tree is walked: what counts as changed, and where this Director may look.
    pub(super) fn walk_settings(&self) -> WalkSettings {
        // An accurate job without a list takes every file for changed (reference 02 §4.9).
        let by_list = self.asked.level.flags.accurate && self.asked.accurate.is_none();
        WalkSettings {
            incremental: self.asked.level.since.is_some() && !by_list,
            since: self.asked.level.since.unwrap_or(0),
            limits: self.directory_limits(),
            lookup_depth: self.daemon.settings.job.depth.map_or(LookupDepth::Adaptive, LookupDepth::Fixed),
            ..WalkSettings::default()
        }
    }

    pub(super) fn estimate(&mut self, order: EstimateOrder) -> Flow {
        let EstimateOrder { listing, limit } = order;
        let job = self.job();
        job.change_status(JobStatus::Running);
        self.tell_facts(|told| told.estimate = true);
        let access = self.plugin_access();
        let late = self.late_includes();
        let fileset = self.complete_fileset();
        let snapshots = self.hidden(&fileset);
        let plan = EstimatePlan {
            fileset,
            walk: WalkSettings { purpose: Purpose::Estimate { limit }, snapshots, ..self.walk_settings() },
            accurate: self.asked.accurate.clone(),
            network_buffer: self.daemon.network_buffer(),
            encrypts: self.daemon.jobs.encrypts(),
            plugins: access.as_ref().map(|access| Arc::clone(&access.plugins)).unwrap_or_default(),
            facts: access.map_or_else(|| Arc::new(NoFacts) as Arc<dyn JobFacts>, |access| access.facts),
            late,
            listing,
        };
        let (line, lines) = bounded(WAITING);
        let log = Lines { line, messages: self.daemon.config().file_daemon.messages.clone() };
        let cancel = job.cancel.clone();
        let walker = OwnThread::start("estimate".to_owned(), move || {
            fd_backup::estimate(&plan, &log, &cancel).unwrap_or_default()
        });
        let estimate = match walker {
            Ok(walker) => self.pass_lines_on(walker, &lines),
            Err(nothing) => self.ended(&job, Err(nothing)),
        };
        // Behind the end of the answer the Director reads nothing more.
        self.tell_failure();
        // Canceled or not, the Director gets the line that it waits for (reference 02 §4.17).
        let estimate = estimate.unwrap_or_default();
        job.progress.set_files(u32::try_from(estimate.files).unwrap_or(u32::MAX));
        job.progress.add_job_bytes(estimate.bytes);
        self.queue(&texts::ok_estimate(estimate.files, estimate.bytes));
        self.end_of_data()
    }

    /// Passes an estimate's lines on until it ends, and cancels it when its Director has gone;
    /// `None` if it is left behind, or has panicked.
    fn pass_lines_on(
        &mut self,
        mut walker: OwnThread<EstimateTotals>,
        lines: &Receiver<(MessageType, Vec<u8>)>,
    ) -> Option<EstimateTotals> {
        let job = self.job();
        let director = self.channel.canceler();
        let mut has_left = false;
        loop {
            if has_left && !job.cancel.is_canceled() {
                // What follows would be for no peer, and has a place and threads meanwhile.
                self.session.abort(false);
            }
            match lines.recv_timeout(GLANCE) {
                Ok((kind, text)) => {
                    self.tell(kind, &text);
                    if lines.is_empty() {
                        self.flush();
                    }
                    has_left = self.is_lost();
                }
                Err(RecvTimeoutError::Timeout) if walker.is_left(&job, || self.session.is_in_plugin()) => {
                    return self.ended(&job, Err(Nothing::Left));
                }
                Err(RecvTimeoutError::Timeout) => has_left = director.peer_has_left(),
                Err(RecvTimeoutError::Disconnected) => {
                    return self.ended(&job, walker.join());
                }
            }
        }
    }
}

/// Passes the walk's messages to the session's thread, which sends them, to a console as bare text.
struct Lines {
    line: Sender<(MessageType, Vec<u8>)>,
    messages: Messages,
}

impl JobLog for Lines {
    fn message(&self, kind: MessageType, text: &[u8]) {
        // Without a session there is no reader left.
        let _session_gone = self.line.send((kind, text.to_vec()));
    }

    fn wants(&self, kind: MessageType) -> bool {
        kind != MessageType::Info || self.messages.wants(kind.number())
    }
}
