//! Run scripts (reference 02 §4.8, §10).

use fd_messages::{JobLog as _, MessageType};
use fd_session::command::{RunScript, ScriptCommand};
use fd_session::texts::BAD_RUN_SCRIPT;

use super::conversation::{Conversation, Flow};
use crate::job::outbox::Outbox;
use crate::job::runscript::{self, Moment};
use crate::shared::job::{Job, Phase};
use crate::texts;

/// Scripts of one job that are kept; their memory is the Director's to take.
const MOST_SCRIPTS: usize = 1000;
/// Their command lines together, in bytes.
const MOST_BYTES: usize = 1 << 20;

impl Conversation<'_> {
    pub(super) fn handle_script(&mut self, command: ScriptCommand) -> Flow {
        match command {
            ScriptCommand::BeforeJob(command) => self.in_phase(Phase::Script, |this| this.run_before_job(command)),
            ScriptCommand::BeforeNow => self.in_phase(Phase::Script, Self::run_before_now),
            ScriptCommand::AfterJob(script) => self.keep_script(script, texts::OK_RUN_AFTER),
            ScriptCommand::Run(script) => self.keep_script(script, texts::OK_RUN_SCRIPT),
        }
    }

    fn keep_script(&mut self, script: RunScript, reply: &[u8]) -> Flow {
        let bytes = self.asked.scripts.iter().map(|script| script.command.len()).sum::<usize>() + script.command.len();
        if self.asked.scripts.len() >= MOST_SCRIPTS || bytes > MOST_BYTES {
            self.say(MessageType::Fatal, texts::TOO_MANY_SCRIPTS);
            self.reply(BAD_RUN_SCRIPT);
            return Flow::End;
        }
        self.asked.scripts.push(script);
        self.replied(reply)
    }

    fn run_before_job(&mut self, command: Vec<u8>) -> Flow {
        let job = self.job();
        let failed_before = job.status().is_canceled();
        let when = RunScript::BEFORE;
        let script = RunScript { command, when, on_success: true, on_failure: false, abort_on_error: true };
        self.run_these(&[script], Moment::AtOnce);
        if job.status().is_canceled() && !failed_before {
            self.reply(texts::BAD_RUN_BEFORE);
            return Flow::End;
        }
        self.reply(texts::OK_RUN_BEFORE);
        Flow::GoOn
    }

    fn run_before_now(&mut self) -> Flow {
        self.run_scripts(Moment::Before);
        if self.job().status().is_canceled() {
            self.reply(texts::BAD_RUN_BEFORE_NOW);
            return Flow::End;
        }
        self.reply(texts::OK_RUN_BEFORE_NOW);
        Flow::GoOn
    }

    /// Runs the scripts of this moment, if there are any.
    pub(super) fn run_scripts(&mut self, moment: Moment) {
        let scripts = std::mem::take(&mut self.asked.scripts);
        self.run_these(&scripts, moment);
        self.asked.scripts = scripts;
    }

    fn run_these(&mut self, scripts: &[RunScript], moment: Moment) {
        let (job, surroundings, director) = (self.job(), self.surroundings(), self.channel.canceler());
        let mut say = |kind, text: &[u8]| self.say(kind, text);
        runscript::run_all(scripts, moment, &job, &surroundings, &|| director.peer_has_left(), &mut say);
    }

    /// Runs the scripts of [`Moment::AfterVss`] on the job's own thread; their messages go the way
    /// of the job's.
    pub(super) fn late_scripts(&self) -> impl FnOnce(&Job, &Outbox) + Send + use<> {
        let scripts = self.asked.scripts.clone();
        let (surroundings, director) = (self.surroundings(), self.channel.canceler());
        move |job, outbox| {
            let mut say = |kind, text: &[u8]| outbox.message(kind, text);
            let director_gone = || director.peer_has_left();
            runscript::run_all(&scripts, Moment::AfterVss, job, &surroundings, &director_gone, &mut say);
        }
    }
}
