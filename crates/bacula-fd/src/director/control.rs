//! The job of a connection gets its name; running jobs get another limit, or end
//! (reference 02 §4.1, §4.4, §4.19).

use std::sync::Arc;

use fd_session::command::{NewJob, SetBandwidth};

use super::conversation::{Conversation, Flow};
use crate::shared::held::Held;
use crate::shared::job::{Identity, Job};
use crate::shared::plugins::names_and_versions;
use crate::texts;

impl Conversation<'_> {
    pub(super) fn name_job(&mut self, new: NewJob) -> Flow {
        let NewJob { job_id, name, vol_session_id, vol_session_time, authorization, second } = new;
        let identity = Identity { job_id, name, vol_session_id, vol_session_time };
        if self.session.job.set(Arc::new(Job::new(identity, self.session.connected))).is_err() {
            return self.refuse(second);
        }
        if job_id != 0 {
            tracing::info!(jobid = job_id, name = %self.job().name(), "job begins");
        }
        self.take_key(&authorization);
        self.telling.after_answer = Some(Held::default());
        self.begin_plugins();
        let platform = self.daemon.platform.with_commas();
        let plugins = names_and_versions(&self.daemon.plugins()).join(b",".as_slice());
        self.queue(&texts::ok_job(&platform, &plugins));
        let held = self.telling.after_answer.take().unwrap_or_default();
        held.into_messages().iter().for_each(|(_, text)| self.queue(text));
        self.flush();
        Flow::GoOn
    }

    pub(super) fn set_bandwidth(&mut self, wanted: &SetBandwidth) -> Flow {
        let SetBandwidth { limit, job: name } = wanted;
        let supervisor = &self.daemon.supervisor;
        if name.is_empty() {
            for job in supervisor.sessions().iter().filter_map(|session| session.job.get()) {
                job.bandwidth.set(*limit);
            }
            self.daemon.jobs.default_bandwidth.set(*limit);
        } else {
            match supervisor.job(name) {
                Some(job) => job.bandwidth.set(*limit),
                None => self.queue(&texts::JOB_NOT_FOUND.of(name)),
            }
        }
        self.replied(texts::OK_BANDWIDTH)
    }

    /// `cancel` and `stop`.
    pub(super) fn abort_job(&mut self, name: &[u8], stop: bool) -> Flow {
        let session = self.daemon.supervisor.session_of(name);
        match session.as_ref().and_then(|session| Some((session, session.job.get()?))) {
            Some((session, job)) => {
                let text = format!("Cancel jobid={} job={}", job.identity.job_id, job.name());
                self.event("FC0003", "command", &text);
                session.abort(stop);
                self.queue(&texts::marked(name, stop));
            }
            None => self.queue(&texts::JOB_NOT_FOUND.of(name)),
        }
        self.end_of_data()
    }
}
