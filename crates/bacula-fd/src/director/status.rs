//! `status` and `.status` (reference 02 §4.18). Neither waits for a job.

use fd_session::command::{StatusGroup, StatusQuery};

use super::conversation::{Conversation, Flow};
use crate::status;
use crate::texts;

impl Conversation<'_> {
    pub(super) fn status(&mut self) -> Flow {
        self.queue(b"\n");
        self.list(&status::plain(self.daemon))
    }

    pub(super) fn status_group(&mut self, query: &StatusQuery) -> Flow {
        let StatusQuery { group, api, api_opts } = query;
        let supervisor = &self.daemon.supervisor;
        let frames = match group {
            StatusGroup::Header => status::header(self.daemon, api_opts),
            StatusGroup::Running => status::running(self.daemon, api_opts),
            StatusGroup::Terminated if *api > 1 => status::api_terminated(&supervisor.history(), api_opts),
            StatusGroup::Terminated => status::terminated(&supervisor.history()),
            StatusGroup::Resources => status::resources(self.daemon, api_opts),
            StatusGroup::Statistics(name) if *api > 1 => status::statistics(self.daemon, name, api_opts),
            StatusGroup::Statistics(name) => status::plain_statistics(self.daemon, name),
            StatusGroup::Activity => status::activity(self.daemon, api_opts),
            StatusGroup::Current => [vec![texts::OK_DOT_STATUS.to_vec()], status::current(supervisor)].concat(),
            StatusGroup::Last => [vec![texts::OK_DOT_STATUS.to_vec()], status::last(supervisor)].concat(),
        };
        self.list(&frames)
    }
}
