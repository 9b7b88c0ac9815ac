//! `verify` (reference 02 §4.11).

use fd_backup::VerifyPlan;
use fd_messages::MessageType;
use fd_plugins::Event;
use fd_restore::verify::Checks;
use fd_session::JobStatus;
use fd_session::command::VerifyLevel;
use fd_walk::{Purpose, WalkSettings};

use super::conversation::{Conversation, Flow};
use super::jobs::RESTORE_TICK;
use crate::job::verify::{self, VolumeLevel};
use crate::shared::job::{JobKind, JobLevel};
use crate::texts;

impl Conversation<'_> {
    pub(super) fn verify(&mut self, level: VerifyLevel) -> Flow {
        let job = self.job();
        job.set_kind(JobKind::Verify);
        job.set_level(JobLevel::Verify(level));
        self.tell_plugins(&Event::Level(level.letter()));
        self.tell_plugins(&Event::StartVerifyJob);
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
        let fileset = self.complete_fileset();
        let snapshots = self.hidden(&fileset);
        let plan = VerifyPlan {
            fileset,
            walk: WalkSettings { purpose: Purpose::Verify, snapshots, ..self.walk_settings() },
            network_buffer: self.daemon.network_buffer(),
            encrypts: self.daemon.jobs.encrypts(),
        };
        // As in the stock daemon there are no heartbeats: the packets keep the connection alive.
        let events = self.job_events();
        self.run_own_thread(&job, None, (), move |job, outbox, ()| {
            verify::of_disk(job, &plan, outbox);
            events.tell(job, outbox, None, &Event::EndVerifyJob);
        });
    }

    /// `false`: there was no session, so that there are no packets and no end of them
    /// (reference 05 §17.1).
    fn verify_volume(&mut self, level: VerifyLevel) -> bool {
        let job = self.job();
        let Some(storage) = self.storage.take() else {
            self.say(MessageType::Fatal, texts::IMPROPER_SEQUENCE);
            return false;
        };
        let checks = Checks::of(&self.complete_fileset());
        let list = self.asked.accurate.clone();
        let (events, options) = (self.job_events(), std::mem::take(&mut self.asked.plugin_options));
        let access = self.plugin_access();
        let parts = (storage, true);
        let ran = self.run_own_thread(&job, Some(RESTORE_TICK), parts, move |job, outbox, (storage, opened)| {
            let level = match level {
                VerifyLevel::Data => VolumeLevel::Data(list.as_deref()),
                _ => VolumeLevel::Files,
            };
            let begin = || events.tell_options(job, outbox, &options);
            *opened = verify::of_volume(job, checks, level, outbox, storage, access.as_ref(), begin);
            events.tell(job, outbox, None, &Event::EndVerifyJob);
        });
        let Some((storage, opened)) = ran else { return true };
        self.storage = Some(storage);
        opened
    }
}
