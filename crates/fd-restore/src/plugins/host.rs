//! What the daemon offers a plugin that it calls in a restore.

use fd_messages::MessageType;
use fd_plugins::{Host, JobFacts};

use crate::report::Report;

/// What a plugin is offered during one call. There is no FileSet to change and no file to compare.
pub(crate) struct RestoreHost<'a, 'r> {
    facts: &'a dyn JobFacts,
    report: &'a mut Report<'r>,
    /// Whether the plugin has reported an error.
    pub(crate) told_error: bool,
}

impl<'a, 'r> RestoreHost<'a, 'r> {
    pub(crate) fn new(facts: &'a dyn JobFacts, report: &'a mut Report<'r>) -> Self {
        Self { facts, report, told_error: false }
    }
}

impl Host for RestoreHost<'_, '_> {
    fn facts(&self) -> &dyn JobFacts {
        self.facts
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        self.told_error |= matches!(kind, MessageType::Error | MessageType::Fatal);
        self.report.of_plugin(kind, text);
    }
}
