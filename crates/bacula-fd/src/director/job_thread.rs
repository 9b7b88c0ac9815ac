//! What the thread of a job has come to, and what is said if that is nothing good.

use super::conversation::Conversation;
use crate::job::own_thread::Nothing;
use crate::shared::job::Job;

impl Conversation<'_> {
    /// What the thread has worked with or found. If that is nothing, the operator is told why.
    pub(super) fn ended<W>(&mut self, job: &Job, ended: Result<W, Nothing>) -> Option<W> {
        ended
            .inspect_err(|nothing| {
                job.set_storage(None);
                let (kind, text) = nothing.message();
                self.say(kind, text);
            })
            .ok()
    }
}
