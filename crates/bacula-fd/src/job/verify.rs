//! A Verify job between its `2000 OK verify` and the end of its packets.

use fd_backup::{AccurateList, VerifyDiskError, VerifyPlan};
use fd_messages::{JobLog as _, MessageType};
use fd_records::digest_text;
use fd_restore::PluginAccess;
use fd_restore::verify::{self, CatalogFile, CatalogList, Checks, VerifyError, VerifyJob, VerifyOutcome};
use fd_session::JobStatus;

use crate::connection::dialogue;
use crate::connection::storage::StorageConnection;
use crate::job::outbox::Outbox;
use crate::job::record_feed::RecordFeed;
use crate::shared::job::Job;
use crate::texts;

/// Looks at the disk: `init`, `catalog` and `disk_to_catalog`.
pub(crate) fn of_disk(job: &Job, plan: &VerifyPlan, outbox: &Outbox) {
    let mut director = outbox.clone();
    match fd_backup::verify_disk(plan, &job.progress, outbox, &job.cancel, &mut director) {
        Ok(()) => job.change_status(JobStatus::Terminated),
        Err(error @ (VerifyDiskError::Canceled | VerifyDiskError::Director(_) | VerifyDiskError::Plugin)) => {
            tracing::debug!(%error, "the verify ended early");
            job.change_status(JobStatus::Error);
        }
    }
}

/// What is compared with a volume.
#[derive(Clone, Copy)]
pub(crate) enum VolumeLevel<'l> {
    /// Which files with which attributes and digests it holds.
    Files,
    /// The data of the files, and what the catalog has of them in an accurate job.
    Data(Option<&'l AccurateList>),
}

/// Looks at a volume; `begin` is done when its records come. `false`: the Storage Daemon did not
/// open the session.
pub(crate) fn of_volume(
    job: &Job,
    checks: Checks,
    level: VolumeLevel<'_>,
    outbox: &Outbox,
    storage: &mut StorageConnection,
    plugins: Option<&PluginAccess>,
    begin: impl FnOnce(),
) -> bool {
    let ticket = match storage.open_read(job) {
        Ok(ticket) => ticket,
        Err(error) => {
            if !job.has_ended() {
                outbox.message(MessageType::Fatal, &error.message());
            }
            job.change_status(JobStatus::Error);
            return false;
        }
    };
    job.change_status(JobStatus::Running);
    begin();
    let mut source = RecordFeed::new(storage, dialogue::reason);
    let mut parts =
        VerifyJob { progress: &job.progress, log: outbox, cancel: &job.cancel, source: &mut source, plugins };
    let verified = match level {
        VolumeLevel::Files => verify::volume(&mut parts, checks, &mut outbox.clone()),
        VolumeLevel::Data(list) => {
            let mut catalog = list.map(Catalog);
            let catalog = catalog.as_mut().map(|catalog| catalog as &mut dyn CatalogList);
            verify::data(&mut parts, checks, catalog, &mut outbox.clone())
        }
    };
    if let Some(dead) = plugins.and_then(|access| access.plugins.dead()) {
        // What it was to search is not searched.
        outbox.message(MessageType::Fatal, &texts::plugin_died_in_job(&dead.file));
        job.change_status(JobStatus::Error);
    }
    conclude(job, outbox, verified);
    if let Err(error) = storage.close_read(ticket) {
        tracing::debug!(%error, "the Storage daemon did not say good-bye");
    }
    true
}

/// The job's status after a verify of a volume.
fn conclude(job: &Job, outbox: &Outbox, verified: Result<VerifyOutcome, VerifyError>) {
    match verified {
        Ok(outcome) => {
            for (kind, text) in outcome.queued {
                outbox.message(kind, &text);
            }
            if outcome.missing || outcome.damaged {
                job.change_status(JobStatus::Error);
            }
            if outcome.differs {
                job.change_status(JobStatus::Differences);
            }
            job.change_status(JobStatus::Terminated);
        }
        Err(error) => {
            tracing::debug!(%error, "the verify ended early");
            job.change_status(JobStatus::Error);
        }
    }
}

/// The accurate list as a Verify job asks it.
struct Catalog<'l>(&'l AccurateList);

impl CatalogList for Catalog<'_> {
    fn find(&mut self, name: &[u8]) -> Option<CatalogFile> {
        let file = self.0.find(name)?;
        Some(CatalogFile { size: file.size, digest: file.digest.map(|bytes| digest_text::of(&bytes)) })
    }

    fn missing(&mut self, tell: &mut dyn FnMut(&[u8])) {
        self.0.unseen(tell);
    }
}
