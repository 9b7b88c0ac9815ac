//! The plugins of one job: their contexts, and which of them a command means (reference 07 §4).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fd_messages::MessageType;
use fd_os::lock::{Mutex, MutexGuard};

use crate::api::call::{Called, Gone};
use crate::api::event::Event;
use crate::api::host::Host;
use crate::api::plugin::{CancelEvent, Instance, Offers, Plugin, PluginInfo};
use crate::texts;

/// One of these as the whole command is for every plugin.
const EVERYBODY: [&[u8]; 2] = [b"job", b"*all*"];

/// The plugins of one job, in the order in which they were loaded.
#[derive(Default)]
pub struct JobPlugins {
    members: Vec<Member>,
    canceled: AtomicBool,
    /// The thread that uses them may have been left behind: nothing waits for it any more.
    is_abandoned: AtomicBool,
}

/// A plugin in the job.
struct Member {
    plugin: Arc<dyn Plugin>,
    /// What cancels it; `None` if it could not begin.
    canceler: Option<Arc<dyn CancelEvent>>,
    /// The job has named it: it has work for it, not only events for all plugins.
    named: AtomicBool,
    /// It has failed although the job has work for it.
    died: AtomicBool,
    /// It is in a call.
    is_called: AtomicBool,
    state: Mutex<State>,
}

/// What there is of a plugin.
enum State {
    /// It can be called.
    Ready(Box<dyn Instance>),
    /// It has refused this job. It is only ended.
    Disabled(Box<dyn Instance>),
    /// It is gone, or was ended.
    Gone,
}

/// The plugin that a command means.
#[derive(Debug)]
pub enum Lookup<'j> {
    /// This one.
    Found(NamedPlugin<'j>),
    /// It takes no part in this job: nothing happens, and nothing is said.
    Disabled,
    /// It has failed in this job, which has been told.
    Failed,
    /// None of the plugins has this name.
    NotFound,
    /// There are no plugins at all.
    NoPlugins,
    /// The command has no name: nothing happens.
    Nameless,
    /// The command has a space before any colon.
    Malformed,
}

/// A plugin that can be called, for as long as this is held.
pub struct NamedPlugin<'j> {
    job: &'j JobPlugins,
    member: &'j Member,
    state: MutexGuard<'j, State>,
}

/// A plugin command with a space before any colon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a plugin command needs a colon after the plugin's name")]
pub struct Malformed;

/// The name in a plugin command: `Ok(None)` if there is none (reference 07 §4).
///
/// # Errors
/// The command is malformed.
pub(crate) fn command_name(command: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    match command.iter().position(|byte| *byte == b':') {
        Some(0) => Ok(None),
        Some(end) => Ok(command.get(..end)),
        None if command.is_empty() => Ok(None),
        None if command.contains(&b' ') => Err(Malformed),
        None => Ok(Some(command)),
    }
}

/// What a message about a missing plugin adds for one that is in a package of ours: where it is.
pub fn package_of(command: &[u8]) -> &'static str {
    match command_name(command) {
        Ok(Some(b"s3")) => texts::IN_FERROFD_S3,
        _ => "",
    }
}

impl JobPlugins {
    /// Begins each plugin's context. A plugin that fails is reported.
    pub fn begin(plugins: &[Arc<dyn Plugin>], host: &mut dyn Host) -> Self {
        let begin = |plugin: &Arc<dyn Plugin>| {
            let (canceler, state) = match plugin.begin(host) {
                Ok((instance, status)) => {
                    let canceler = instance.canceler();
                    let state = if status.is_ok() { State::Ready(instance) } else { State::Disabled(instance) };
                    (Some(canceler), state)
                }
                Err(gone) => {
                    report(host, &gone);
                    (None, State::Gone)
                }
            };
            Member {
                plugin: Arc::clone(plugin),
                canceler,
                named: AtomicBool::new(false),
                died: AtomicBool::new(false),
                is_called: AtomicBool::new(false),
                state: Mutex::new(state),
            }
        };
        Self { members: plugins.iter().map(begin).collect(), ..Self::default() }
    }

    /// Whether there is no plugin.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether one of them is in a call, on any thread. One that has files to restore is not while
    /// the daemon makes them for it.
    pub fn are_busy(&self) -> bool {
        self.members.iter().any(|member| member.is_called.load(Ordering::Relaxed))
    }

    /// The job goes on without a thread that may hold a plugin. That plugin is left to it: it is
    /// not told or ended, and calls by name are refused from here on.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// The lock of a plugin; `None` if a thread that was left behind has it.
    fn take<'j>(&self, member: &'j Member) -> Option<MutexGuard<'j, State>> {
        if self.is_abandoned.load(Ordering::Relaxed) { member.state.try_lock() } else { Some(member.state.lock()) }
    }

    /// The first plugin that has died in this job, which has work for it: that is not done. What
    /// the job does not name, and what does not look at data that is verified, is not missed.
    pub fn dead(&self) -> Option<&PluginInfo> {
        let dead = self.members.iter().find(|member| member.died.load(Ordering::Relaxed))?;
        Some(dead.plugin.info())
    }

    /// The first plugin that this command names.
    pub fn named(&self, command: &[u8]) -> Lookup<'_> {
        let name = match command_name(command) {
            Ok(Some(name)) => name,
            Ok(None) => return Lookup::Nameless,
            Err(Malformed) => return Lookup::Malformed,
        };
        let Some(member) = self.members.iter().find(|member| member.is_meant(command, name)) else {
            return if self.is_empty() { Lookup::NoPlugins } else { Lookup::NotFound };
        };
        let Some(state) = self.take(member) else { return Lookup::Disabled };
        match &*state {
            State::Ready(_) => Lookup::Found(NamedPlugin { job: self, member, state }),
            State::Disabled(_) => Lookup::Disabled,
            State::Gone => Lookup::Failed,
        }
    }

    /// Delivers an event to each plugin. Answers are ignored; a plugin that fails is reported.
    pub fn tell_all(&self, host: &mut dyn Host, event: &Event<'_>) {
        let call = |_: &Member, instance: &mut dyn Instance, host: &mut dyn Host| instance.event(host, event).map(drop);
        self.each(host, |member| self.take(member), call, event.outlives_cancel(), false);
    }

    /// Delivers an event to each plugin that the command names. Answers are ignored; a plugin that
    /// fails is reported.
    ///
    /// # Errors
    /// The command is malformed.
    pub fn tell_named(&self, host: &mut dyn Host, command: &[u8], event: &Event<'_>) -> Result<(), Malformed> {
        let Some(name) = command_name(command)? else { return Ok(()) };
        self.each(
            host,
            |member| if member.is_meant(command, name) { self.take(member) } else { None },
            |_, instance, host| instance.event(host, event).map(drop),
            event.outlives_cancel(),
            true,
        );
        Ok(())
    }

    /// The same from within a call of a plugin. `false`: the plugin is itself in a call, on
    /// whichever thread, and was not told.
    ///
    /// # Errors
    /// The command is malformed.
    pub fn tell_named_unless_busy(
        &self,
        host: &mut dyn Host,
        command: &[u8],
        event: &Event<'_>,
    ) -> Result<bool, Malformed> {
        let Some(name) = command_name(command)? else { return Ok(true) };
        let mut is_told = true;
        self.each(
            host,
            |member| {
                let state = member.is_meant(command, name).then(|| member.state.try_lock())?;
                is_told &= state.is_some();
                state
            },
            |_, instance, host| instance.event(host, event).map(drop),
            event.outlives_cancel(),
            true,
        );
        Ok(is_told)
    }

    /// Calls a function of each plugin that can be called. A plugin that fails is reported, and not
    /// called again.
    pub fn call_each(
        &self,
        host: &mut dyn Host,
        mut call: impl FnMut(&PluginInfo, Offers, &mut dyn Instance, &mut dyn Host) -> Called<()>,
    ) {
        let call = |member: &Member, instance: &mut dyn Instance, host: &mut dyn Host| {
            call(member.plugin.info(), member.plugin.offers(), instance, host)
        };
        self.each(host, |member| self.take(member), call, false, false);
    }

    /// Calls a function of each plugin that can be called, until one has a result.
    ///
    /// # Errors
    /// A plugin could not be reached. It is not called again in this job; the caller reports it.
    pub fn find_map<T>(
        &self,
        host: &mut dyn Host,
        mut call: impl FnMut(Offers, &mut dyn Instance, &mut dyn Host) -> Called<Option<T>>,
    ) -> Called<Option<T>> {
        for member in &self.members {
            let Some(mut state) = self.take(member) else { continue };
            let State::Ready(instance) = &mut *state else { continue };
            match member.call(|| call(member.plugin.offers(), instance.as_mut(), host)) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(gone) => {
                    member.lose(&mut state, &gone, true);
                    return Err(gone);
                }
            }
        }
        Ok(None)
    }

    /// Calls those that can be called and for which `take` returns a lock. Whether the job has
    /// named them: then it needs them.
    fn each<'j>(
        &'j self,
        host: &mut dyn Host,
        mut take: impl FnMut(&'j Member) -> Option<MutexGuard<'j, State>>,
        mut call: impl FnMut(&Member, &mut dyn Instance, &mut dyn Host) -> Called<()>,
        also_canceled: bool,
        is_named: bool,
    ) {
        for member in &self.members {
            if !also_canceled && host.facts().is_canceled() {
                return;
            }
            let Some(mut state) = take(member) else { continue };
            if is_named {
                member.named.store(true, Ordering::Relaxed);
            }
            let State::Ready(instance) = &mut *state else {
                if is_named && matches!(*state, State::Gone) {
                    member.died.store(true, Ordering::Relaxed);
                }
                continue;
            };
            let is_missed = member.named.load(Ordering::Relaxed) || instance.verifies();
            if let Err(gone) = member.call(|| call(member, instance.as_mut(), host)) {
                member.lose(&mut state, &gone, is_missed);
                report(host, &gone);
            }
        }
    }

    /// Tells each plugin once that the job is canceled. Any thread may do so, also while another
    /// one is in a call.
    pub fn cancel(&self, host: &mut dyn Host) {
        if self.canceled.swap(true, Ordering::Relaxed) {
            return;
        }
        for canceler in self.members.iter().filter_map(|member| member.canceler.as_ref()) {
            canceler.cancel(host);
        }
    }

    /// Ends each plugin's context, also that of a disabled one. Done once; later calls do nothing.
    pub fn end(&self, host: &mut dyn Host) {
        for member in &self.members {
            let state = self.take(member).map(|mut state| std::mem::replace(&mut *state, State::Gone));
            if let Some(State::Ready(instance) | State::Disabled(instance)) = state
                && let Err(gone) = instance.end(host)
            {
                report(host, &gone);
            }
        }
    }
}

impl std::fmt::Debug for JobPlugins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.members.iter().map(|member| String::from_utf8_lossy(member.plugin.info().name()));
        f.debug_list().entries(names).finish()
    }
}

impl Member {
    /// `name` is the one in the command.
    fn is_meant(&self, command: &[u8], name: &[u8]) -> bool {
        EVERYBODY.contains(&command) || self.plugin.info().name() == name
    }

    /// Makes a call of it, which [`JobPlugins::are_busy`] sees.
    fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        self.is_called.store(true, Ordering::Relaxed);
        let called = call();
        self.is_called.store(false, Ordering::Relaxed);
        called
    }

    /// It is not called again.
    fn lose(&self, state: &mut State, gone: &Gone, is_missed: bool) {
        *state = State::Gone;
        if is_missed && !gone.canceled {
            self.died.store(true, Ordering::Relaxed);
        }
    }
}

impl NamedPlugin<'_> {
    /// What the plugin says of itself.
    pub fn info(&self) -> &PluginInfo {
        self.member.plugin.info()
    }

    /// Which functions it has.
    pub fn offers(&self) -> Offers {
        self.member.plugin.offers()
    }

    /// Calls one of its functions. After an error it is not called again in this job; the caller
    /// reports it.
    ///
    /// # Errors
    /// It can't be reached.
    pub fn call<T>(&mut self, call: impl FnOnce(&mut dyn Instance) -> Called<T>) -> Called<T> {
        if self.job.is_abandoned.load(Ordering::Relaxed) {
            return Err(Gone { text: Vec::new(), canceled: true });
        }
        let State::Ready(instance) = &mut *self.state else {
            return Err(Gone { text: Vec::new(), canceled: false });
        };
        let called = self.member.call(|| call(instance.as_mut()));
        if let Err(gone) = &called {
            self.member.lose(&mut self.state, gone, true);
        }
        called
    }
}

impl Drop for NamedPlugin<'_> {
    /// Of a job that has gone on without this thread, the plugin is not told or called any more.
    fn drop(&mut self) {
        if self.job.is_abandoned.load(Ordering::Relaxed) {
            *self.state = State::Gone;
        }
    }
}

impl std::fmt::Debug for NamedPlugin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NamedPlugin").field(&String::from_utf8_lossy(self.info().name())).finish()
    }
}

fn report(host: &mut dyn Host, gone: &Gone) {
    if !gone.canceled {
        host.message(MessageType::Error, &gone.text);
    }
}

#[cfg(test)]
mod tests;
