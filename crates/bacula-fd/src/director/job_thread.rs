//! What the thread of a job has come to, and what is said if that is nothing good.

use std::any::Any;
use std::io;

use fd_messages::MessageType;

use super::conversation::Conversation;
use crate::shared::job::Job;

impl Conversation<'_> {
    /// What the thread has worked with or found. If there was no thread, or it has panicked, the
    /// job has failed.
    pub(super) fn ended<W>(&mut self, job: &Job, ended: Result<W, String>) -> Option<W> {
        match ended {
            Ok(found) => Some(found),
            Err(text) => {
                job.set_storage(None);
                self.say(MessageType::Fatal, text.as_bytes());
                None
            }
        }
    }
}

pub(super) fn no_thread(error: &io::Error) -> String {
    format!("no thread for the job: {error}\n")
}

pub(super) fn why_panicked(panic: &(dyn Any + Send)) -> String {
    let why = panic.downcast_ref::<String>().cloned();
    let why = why.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
    format!("the job's thread panicked, please report this: {why}\n")
}
