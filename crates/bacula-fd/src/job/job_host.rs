//! What the daemon offers plugins outside the walk and the records: when a job begins and ends, and
//! when the Director has said something (reference 07 §3.5).

use std::sync::Arc;

use fd_fileset::{Added, Addition, Draft, LineError, RegexCompiler as _, texts as fileset_texts};
use fd_messages::MessageType;
use fd_os::process::IsWanted;
use fd_plugins::{Change, Event, FileSetChange, Host, JobFacts, JobPlugins, Malformed, Status};

use crate::job::matcher::Matcher;
use crate::job::name_lists::{ListEnd, ListReader, PosixCompiler};
use crate::shared::facts::Facts;

/// A FileSet whose files are not yet looked for.
#[derive(Debug)]
pub(crate) struct OpenFileSet {
    /// What it holds so far.
    pub draft: Draft,
    /// The job's expressions.
    pub matcher: Arc<Matcher>,
    /// Reads the lists that it names.
    pub lists: ListReader,
}

/// The FileSet that plugins may change.
pub(crate) struct FileSetInReach<'h> {
    /// What it holds so far.
    pub draft: &'h mut Draft,
    /// The job's expressions.
    pub matcher: &'h Arc<Matcher>,
    /// Reads the lists that it names.
    pub lists: &'h ListReader,
    /// Whether lists and expressions are still wanted.
    pub wanted: IsWanted<'h>,
}

impl OpenFileSet {
    /// For plugins to change.
    pub(crate) const fn in_reach<'h>(&'h mut self, wanted: IsWanted<'h>) -> FileSetInReach<'h> {
        FileSetInReach { draft: &mut self.draft, matcher: &self.matcher, lists: &self.lists, wanted }
    }
}

/// The host of a call.
pub(crate) struct JobHost<'h> {
    facts: &'h Facts,
    say: &'h mut dyn FnMut(MessageType, &[u8]),
    fileset: Option<FileSetInReach<'h>>,
    /// The job's plugins, which are told of each other's commands.
    plugins: &'h JobPlugins,
    /// Commands of plugins that were busy when they were to be told of them.
    missed: Vec<Vec<u8>>,
}

impl<'h> JobHost<'h> {
    /// A host of these plugins' calls. `say` says something to the operator; the FileSet is there
    /// while it can be changed.
    pub(crate) const fn new(
        facts: &'h Facts,
        plugins: &'h JobPlugins,
        say: &'h mut dyn FnMut(MessageType, &[u8]),
        fileset: Option<FileSetInReach<'h>>,
    ) -> Self {
        Self { facts, say, fileset, plugins, missed: Vec::new() }
    }

    /// Tells plugins of the commands that are new in the FileSet (event 20), also of those that
    /// they add meanwhile.
    pub(crate) fn tell_commands(&mut self) {
        self.tell_new_commands();
        while !self.missed.is_empty() {
            for command in std::mem::take(&mut self.missed) {
                // A malformed one was reported.
                let _malformed = self.plugins.tell_named(self, &command, &Event::PluginCommand(&command));
            }
            self.tell_new_commands();
        }
    }

    fn tell_new_commands(&mut self) {
        while let Some(new) = self.fileset.as_mut().and_then(|fileset| fileset.draft.new_command()) {
            let plugins = self.plugins;
            match plugins.tell_named_unless_busy(self, &new.command, &Event::PluginCommand(&new.command)) {
                Ok(true) => {}
                Ok(false) => self.missed.push(new.command.clone()),
                Err(Malformed) if plugins.is_empty() => {}
                Err(Malformed) => {
                    (self.say)(MessageType::Error, &fileset_texts::malformed_plugin_command(&new.command));
                }
            }
            if let Some(fileset) = &mut self.fileset {
                fileset.draft.accept(new);
            }
        }
    }

    fn change(&mut self, plugin: &[u8], change: FileSetChange<'_>) -> Result<Status, LineError> {
        let Some(fileset) = &mut self.fileset else { return Ok(Status::Error) };
        let draft = &mut *fileset.draft;
        let done = |done: bool| if done { Status::Ok } else { Status::Error };
        let FileSetChange { how, item, kind } = change;
        Ok(match how {
            Change::Include => return self.add(plugin, Addition::Include, item),
            Change::Exclude => return self.add(plugin, Addition::Exclude, item),
            Change::Plugin => return self.add(plugin, Addition::Command, item),
            Change::Options => match draft.add_options(item) {
                None => Status::Error,
                Some(unknown) => {
                    for letter in unknown {
                        (self.say)(MessageType::Error, &fileset_texts::unknown_letter(letter));
                    }
                    Status::Ok
                }
            },
            Change::Regex => {
                let compiler = PosixCompiler { matcher: Arc::clone(fileset.matcher), wanted: fileset.wanted };
                done(draft.add_regex(item, kind, |ignore_case| compiler.compile(item, ignore_case))?)
            }
            Change::Wild => done(draft.add_wild(item, kind)?),
            Change::NewOptions => done(draft.new_options()?),
            Change::NewInclude => draft.new_include(plugin, false).map(|()| Status::Ok)?,
            Change::NewPreInclude => draft.new_include(plugin, true).map(|()| Status::Ok)?,
        })
    }

    fn add(&mut self, plugin: &[u8], addition: Addition, name: &[u8]) -> Result<Status, LineError> {
        let Some(fileset) = &mut self.fileset else { return Ok(Status::Error) };
        let added = match fileset.draft.add(plugin, addition, name)? {
            Added::Done => Ok(Status::Ok),
            Added::NoBlock => Ok(Status::Error),
            Added::List(request) => match fileset.lists.read(fileset.draft, &request, fileset.wanted) {
                Ok(()) => Ok(Status::Ok),
                Err(ListEnd::Told(error)) => Err(error),
                Err(ListEnd::Unwanted) => Ok(Status::Error),
                Err(ListEnd::Nothing(nothing)) => {
                    let (kind, text) = nothing.message();
                    (self.say)(kind, text);
                    Ok(Status::Error)
                }
            },
        };
        if addition == Addition::Command {
            self.tell_new_commands();
        }
        added
    }
}

impl Host for JobHost<'_> {
    fn facts(&self) -> &dyn JobFacts {
        self.facts
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        (self.say)(kind, text);
    }

    fn change_fileset(&mut self, plugin: &[u8], change: FileSetChange<'_>) -> Status {
        if self.fileset.is_none() {
            // Plugins tend to ignore the status, and files would be missing silently.
            (self.say)(MessageType::Warning, &fd_backup::change_refused(plugin, &change));
            return Status::Error;
        }
        let is_regex = change.how == Change::Regex;
        self.change(plugin, change).unwrap_or_else(|error| {
            (self.say)(MessageType::Fatal, &error.text());
            // As the stock daemon: the message is all that tells of a bad expression.
            if is_regex { Status::Ok } else { Status::Error }
        })
    }
}

#[cfg(test)]
mod tests {
    use fd_config::RestoreCommands;

    use super::*;
    use crate::shared::facts::{DaemonFacts, Orders};
    use crate::shared::job::{Identity, Job};
    use crate::shared::known_commands::KnownCommands;

    /// Before the FileSet has come, and when the job is over.
    #[test]
    fn what_a_plugin_changes_where_there_is_no_file_set_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let known = Arc::new(KnownCommands::new(folder.path(), 1));
        let orders = Orders { known, director: b"dir".to_vec(), rule: RestoreCommands::Known };
        let job = Arc::new(Job::new(Identity::default(), 0));
        let facts = Facts::new(Arc::new(DaemonFacts::of_a_test()), job, Vec::new(), orders);
        let (mut said, plugins) = (Vec::new(), JobPlugins::default());
        let mut say = |kind, text: &[u8]| said.push((kind, String::from_utf8_lossy(text).into_owned()));
        let mut host = JobHost::new(&facts, &plugins, &mut say, None);
        assert_eq!(host.change_fileset(b"x-fd.so", FileSetChange::new(Change::Include, b"/lost")), Status::Error);
        let told = "Plugin x-fd.so could not change the FileSet with AddInclude(/lost): ";
        assert!(matches!(&said[..], [(MessageType::Warning, text)] if text.starts_with(told)), "{said:?}");
    }
}
