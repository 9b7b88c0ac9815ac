//! Includes that plugins add while the FileSet is walked (reference 07 §3.5).

use std::sync::Arc;

use fd_backup::LateIncludes;
use fd_fileset::{Draft, FileSet};
use fd_messages::MessageType;
use fd_os::lock::Mutex;
use fd_plugins::{FileSetChange, Host as _, JobFacts as _, JobPlugins, Status};

use crate::job::job_host::{JobHost, OpenFileSet};
use crate::shared::facts::Facts;

/// See the module.
#[derive(Debug)]
pub(crate) struct LateFileSet {
    /// What has come together since it was taken last.
    open: Mutex<OpenFileSet>,
    facts: Arc<Facts>,
}

impl LateFileSet {
    /// Beside this FileSet.
    pub(crate) fn beside(open: &OpenFileSet, facts: Arc<Facts>) -> Self {
        let (draft, matcher, lists) = (Draft::default(), Arc::clone(&open.matcher), open.lists.clone());
        Self { open: Mutex::new(OpenFileSet { draft, matcher, lists }), facts }
    }
}

impl LateIncludes for LateFileSet {
    fn change(&self, plugin: &[u8], change: FileSetChange<'_>, say: &mut dyn FnMut(MessageType, &[u8])) -> Status {
        let mut open = self.open.lock();
        let wanted = || !self.facts.is_canceled();
        let fileset = Some(open.in_reach(&wanted));
        // Commands do not come here, so that there is no plugin to be told of any.
        JobHost::new(&self.facts, &JobPlugins::default(), say, fileset).change_fileset(plugin, change)
    }

    fn take(&self) -> Option<FileSet> {
        let draft = std::mem::take(&mut self.open.lock().draft);
        let fileset = draft.complete();
        (!fileset.includes().is_empty()).then_some(fileset)
    }
}
