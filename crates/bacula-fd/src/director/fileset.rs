//! The `fileset` command: its lines, and what plugins make of them (reference 03 §1, 07 §3.7).

use std::sync::Arc;

use fd_fileset::{Parser, Reaction, texts as fileset_texts};
use fd_messages::MessageType;
use fd_os::process::IsWanted;
use fd_plugins::Event;

use super::asked::FileSetSoFar;
use super::conversation::{Conversation, Flow};
use crate::job::job_host::{FileSetInReach, JobHost, OpenFileSet};
use crate::job::matcher::Matcher;
use crate::job::name_lists::{ListEnd, ListReader, PosixCompiler};
use crate::shared::job::JobKind;
use crate::texts;

impl Conversation<'_> {
    /// Reads the lines up to a signal. A bad FileSet gets no reply: the command loop just ends.
    pub(super) fn read_fileset(&mut self, snapshot: bool) -> Flow {
        self.asked.snapshot = snapshot;
        if self.asked.fileset.has_come() {
            return Flow::End;
        }
        let (job, director) = (self.job(), self.channel.canceler());
        job.note_aim(JobKind::Verify);
        // A plugin that is not there has failed the job; the lines behind it are told all the same.
        // The order to cancel may have overtaken this command.
        let is_canceled = || job.aborts() > 0;
        let wanted = || !is_canceled() && !director.peer_has_left();
        let matcher = Matcher::new(Arc::clone(&job));
        let lists =
            ListReader { job: Arc::clone(&job), surroundings: self.surroundings(), limits: self.directory_limits() };
        let compiler = PosixCompiler { matcher: Arc::clone(&matcher), wanted: &wanted };
        let mut parser = Parser::new(&compiler);
        if self.daemon.config().file_daemon.plugin_directory.is_none() {
            parser = parser.without_plugins();
        }
        loop {
            let line = match self.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "the FileSet broke off");
                    return Flow::End;
                }
            };
            match self.fileset_line(&mut parser, &line, &lists, &wanted) {
                Ok(()) => {}
                Err(ListEnd::Unwanted) => return Flow::End,
                Err(ListEnd::Nothing(nothing)) => {
                    self.ended::<()>(&job, Err(nothing));
                    return Flow::End;
                }
                Err(ListEnd::Told(_)) if is_canceled() => return Flow::End,
                Err(ListEnd::Told(error)) => self.say(MessageType::Fatal, &error.text()),
            }
            let draft = parser.draft();
            self.tell_commands(FileSetInReach { draft, matcher: &matcher, lists: &lists, wanted: &wanted });
        }
        match parser.into_draft() {
            Ok(draft) => {
                self.asked.fileset = FileSetSoFar::Open(Box::new(OpenFileSet { draft, matcher, lists }));
                self.tell_own_options();
                self.reply(texts::OK_INCLUDE);
                self.tell_plugins(&Event::EndFileSet);
                Flow::GoOn
            }
            Err(error) => {
                tracing::debug!(%error, "a FileSet was refused");
                Flow::End
            }
        }
    }

    fn fileset_line(
        &mut self,
        parser: &mut Parser<'_>,
        line: &[u8],
        lists: &ListReader,
        wanted: IsWanted<'_>,
    ) -> Result<(), ListEnd> {
        match parser.line(line)? {
            Reaction::Accepted => {}
            Reaction::UnknownLetters(letters) => {
                for letter in letters {
                    self.say(MessageType::Error, &fileset_texts::unknown_letter(letter));
                }
            }
            Reaction::List(request) => lists.read(parser.draft(), &request, wanted)?,
        }
        Ok(())
    }

    /// Tells plugins of their commands in the lines so far.
    fn tell_commands(&mut self, fileset: FileSetInReach<'_>) {
        let Some(plugged) = self.session.plugged.get().cloned() else { return };
        let mut say = |kind, text: &[u8]| self.say(kind, text);
        JobHost::new(&plugged.facts, &plugged.plugins, &mut say, Some(fileset)).tell_commands();
    }

    /// Tells plugins of the daemon's *Plugin Options*.
    fn tell_own_options(&mut self) {
        let options = &self.daemon.config().file_daemon.plugin_options;
        self.with_plugins(|plugins, host| {
            for option in options {
                // A name that can't be read is none.
                let _nobody = plugins.tell_named(host, option, &Event::PluginOptions(option));
            }
        });
    }
}
