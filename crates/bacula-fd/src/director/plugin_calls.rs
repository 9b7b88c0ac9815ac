//! Calls of plugins from a Director's connection, and from the thread of its job (reference 07
//! §3.7).

use std::sync::Arc;

use fd_backup::LateIncludes;
use fd_messages::{JobLog as _, MessageType};
use fd_plugins::{Event, Host, JobFacts, JobPlugins};
use fd_restore::PluginAccess;
use fd_transport::Canceler;

use super::conversation::Conversation;
use crate::job::job_host::{JobHost, OpenFileSet};
use crate::job::late_fileset::LateFileSet;
use crate::job::outbox::Outbox;
use crate::shared::facts::{Facts, Told};
use crate::shared::job::Job;
use crate::shared::plugins::Plugged;

impl Conversation<'_> {
    /// Begins the plugins' contexts for this connection, and tells them so.
    pub(super) fn begin_plugins(&mut self) {
        let loaded = self.daemon.plugins();
        let (job, daemon) = (self.job(), Arc::clone(&self.daemon.facts));
        let orders = self.daemon.orders(&self.resource.name);
        let facts = Arc::new(Facts::new(daemon, job, self.resource.allowed_script_directories.clone(), orders));
        let (mut say, none) = (|kind, text: &[u8]| self.tell(kind, text), JobPlugins::default());
        let plugins = JobPlugins::begin(&loaded, &mut JobHost::new(&facts, &none, &mut say, None));
        let plugged = Arc::new(Plugged::new(plugins, facts));
        if self.session.plugged.set(Arc::clone(&plugged)).is_err() {
            return;
        }
        let job = self.job();
        // Checked only now: an earlier cancel didn't see them.
        if job.aborts() > 0 {
            plugged.cancel();
        }
        let text = [format!("JobId={} Job=", job.identity.job_id).as_bytes(), &job.identity.name].concat();
        self.tell_plugins(&Event::JobStart(&text));
    }

    /// Delivers an event to all plugins.
    pub(super) fn tell_plugins(&mut self, event: &Event<'_>) {
        self.with_plugins(|plugins, host| plugins.tell_all(host, event));
    }

    /// Ends the plugins' contexts.
    pub(super) fn end_plugins(&mut self) {
        self.tell_plugins(&Event::JobEnd);
        self.with_plugins(|plugins, host| plugins.end(host));
    }

    /// Calls plugins on this thread.
    pub(super) fn with_plugins(&mut self, call: impl FnOnce(&JobPlugins, &mut dyn Host)) {
        let Some(plugged) = self.session.plugged.get().cloned().filter(|plugged| !plugged.plugins.is_empty()) else {
            return;
        };
        // Meanwhile `say` has the rest of the conversation.
        let mut fileset = std::mem::take(&mut self.asked.fileset);
        let (job, director) = (self.job(), self.channel.canceler());
        let wanted = || !job.cancel.is_canceled() && !director.peer_has_left();
        let mut say = |kind, text: &[u8]| self.tell(kind, text);
        let open = fileset.open_mut().map(|open| open.in_reach(&wanted));
        let mut host = JobHost::new(&plugged.facts, &plugged.plugins, &mut say, open);
        call(&plugged.plugins, &mut host);
        host.tell_commands();
        self.asked.fileset = fileset;
        self.flush();
    }

    /// Notes what plugins may ask about the job.
    pub(super) fn tell_facts(&self, change: impl FnOnce(&mut Told)) {
        if let Some(plugged) = self.session.plugged.get() {
            plugged.facts.tell(change);
        }
    }

    /// The plugins, for a restore or the verify of a volume.
    pub(super) fn plugin_access(&self) -> Option<PluginAccess> {
        let plugged = self.session.plugged.get().filter(|plugged| !plugged.plugins.is_empty())?;
        let facts: Arc<dyn JobFacts> = Arc::clone(&plugged.facts) as _;
        Some(PluginAccess { plugins: Arc::clone(&plugged.plugins), facts })
    }

    /// What plugins add to the FileSet while it is walked; `None` without plugins.
    pub(super) fn late_includes(&self) -> Option<Arc<dyn LateIncludes>> {
        let plugged = self.session.plugged.get().filter(|plugged| !plugged.plugins.is_empty())?;
        let open = self.asked.fileset.open()?;
        Some(Arc::new(LateFileSet::beside(open, Arc::clone(&plugged.facts))))
    }

    /// For calls by the job's own thread.
    pub(super) fn job_events(&self) -> JobEvents {
        JobEvents { plugged: self.session.plugged.get().cloned(), director: self.channel.canceler() }
    }
}

/// Tells plugins what happens in a job, on the job's own thread.
pub(super) struct JobEvents {
    plugged: Option<Arc<Plugged>>,
    director: Canceler,
}

impl JobEvents {
    /// Delivers an event to all plugins, which may change the FileSet.
    pub(super) fn tell(&self, job: &Job, outbox: &Outbox, open: Option<&mut OpenFileSet>, event: &Event<'_>) {
        self.with(job, outbox, open, |plugins, host| plugins.tell_all(host, event));
    }

    /// Tells the plugins that they name of these options.
    pub(super) fn tell_options(&self, job: &Job, outbox: &Outbox, options: &[Vec<u8>]) {
        self.with(job, outbox, None, |plugins, host| {
            for option in options {
                // A name that can't be read is none.
                let _nobody = plugins.tell_named(host, option, &Event::PluginOptions(option));
            }
        });
    }

    fn with(
        &self,
        job: &Job,
        outbox: &Outbox,
        open: Option<&mut OpenFileSet>,
        call: impl FnOnce(&JobPlugins, &mut dyn Host),
    ) {
        let Some(plugged) = self.plugged.as_ref().filter(|plugged| !plugged.plugins.is_empty()) else { return };
        let wanted = || !job.cancel.is_canceled() && !self.director.peer_has_left();
        let fileset = open.map(|open| open.in_reach(&wanted));
        let mut say = |kind: MessageType, text: &[u8]| outbox.message(kind, text);
        let mut host = JobHost::new(&plugged.facts, &plugged.plugins, &mut say, fileset);
        call(&plugged.plugins, &mut host);
        host.tell_commands();
    }
}
