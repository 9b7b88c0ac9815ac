//! `verify` (reference 02 §4.11).

use fd_backup::VerifyPlan;
use fd_messages::MessageType;
use fd_restore::verify::Checks;
use fd_session::JobStatus;
use fd_session::command::VerifyLevel;
use fd_session::texts;
use fd_walk::{Purpose, WalkSettings};

use super::conversation::{Conversation, Flow};
use super::jobs::RESTORE_TICK;
use crate::job::verify::{self, VolumeLevel};
use crate::shared::job::JobKind;

impl Conversation<'_> {
    pub(super) fn verify(&mut self, level: VerifyLevel) -> Flow {
        let job = self.job();
        job.set_kind(JobKind::Verify);
        job.set_level(level.letter());
        self.reply(texts::OK_VERIFY);
        let has_packets = match level {
            VerifyLevel::Init | VerifyLevel::Catalog | VerifyLevel::DiskToCatalog => {
                self.verify_disk();
                true
            }
            VerifyLevel::Volume | VerifyLevel::Data => self.verify_volume(level),
        };
        if has_packets {
            self.end_of_data();
        }
        Flow::End
    }

    fn verify_disk(&mut self) {
        let job = self.job();
        job.change_status(JobStatus::Running);
        let buffer = self.daemon.config().file_daemon.max_network_buffer_size;
        let plan = VerifyPlan {
            fileset: self.fileset.clone().unwrap_or_default(),
            walk: WalkSettings { purpose: Purpose::Verify, ..self.walk_settings() },
            network_buffer: usize::try_from(buffer).unwrap_or(0),
        };
        // As in the stock daemon there are no heartbeats: the packets keep the connection alive.
        self.run_job(&job, None, (), |job, outbox, ()| verify::of_disk(job, &plan, outbox));
    }

    /// `false`: there was no session, so that there are no packets and no end of them
    /// (reference 05 §17.1).
    fn verify_volume(&mut self, level: VerifyLevel) -> bool {
        let job = self.job();
        let Some(storage) = self.storage.take() else {
            self.say(MessageType::Fatal, texts::IMPROPER_SEQUENCE);
            return false;
        };
        job.change_status(JobStatus::Blocked);
        let checks = self.fileset.as_deref().map(Checks::of).unwrap_or_default();
        let list = self.accurate.clone();
        let ran = self.run_job(&job, Some(RESTORE_TICK), (storage, true), |job, outbox, (storage, opened)| {
            let level = match level {
                VerifyLevel::Data => VolumeLevel::Data(list.as_deref()),
                _ => VolumeLevel::Files,
            };
            *opened = verify::of_volume(job, checks, level, outbox, storage);
        });
        let Some((storage, opened)) = ran else { return true };
        self.storage = Some(storage);
        opened
    }
}
