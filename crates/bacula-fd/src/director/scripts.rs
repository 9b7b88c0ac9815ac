//! Run scripts (reference 02 §4.8, §10).

use fd_config::Director;
use fd_messages::{JobLog as _, MessageType};
use fd_session::command::{RunScript, ScriptCommand};
use fd_session::texts::BAD_RUN_SCRIPT;
use fd_transport::Canceler;

use super::conversation::{Conversation, Flow};
use crate::job::outbox::Outbox;
use crate::job::runscript::{self, Moment, Surroundings};
use crate::shared::job::{Job, Phase};
use crate::texts;

/// Scripts of one job that are kept; their memory is the Director's to take.
const MOST_SCRIPTS: usize = 1000;
/// Their command lines together, in bytes.
const MOST_BYTES: usize = 1 << 20;

impl<'d> Conversation<'d> {
    pub(super) fn handle_script(&mut self, command: ScriptCommand) -> Flow {
        match command {
            ScriptCommand::BeforeJob(command) => self.in_phase(Phase::Script, |this| this.run_before_job(&command)),
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

    fn run_before_job(&mut self, command: &[u8]) -> Flow {
        let job = self.job();
        let failed_before = job.status().is_canceled();
        self.with_surroundings(|surroundings, say| {
            runscript::run(command, Moment::AtOnce, true, &job, surroundings, say);
        });
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
        if !scripts.is_empty() {
            let job = self.job();
            self.with_surroundings(|surroundings, say| {
                runscript::run_all(&scripts, moment, &job, surroundings, say);
            });
        }
        self.asked.scripts = scripts;
    }

    /// What the job's own thread needs to run the scripts of [`Moment::AfterVss`].
    pub(super) fn late_scripts(&self) -> LateScripts<'d> {
        LateScripts {
            scripts: self.asked.scripts.clone(),
            client: &self.daemon.config().file_daemon.name,
            director: self.resource,
            previous_job: self.asked.level.previous_job.clone(),
            connection: self.channel.canceler(),
        }
    }

    fn with_surroundings(&mut self, work: impl FnOnce(&Surroundings<'_>, &mut dyn FnMut(MessageType, &[u8]))) {
        let (client, previous_job) =
            (self.daemon.config().file_daemon.name.clone(), self.asked.level.previous_job.clone());
        let director = self.channel.canceler();
        let surroundings = Surroundings {
            client: client.as_bytes(),
            director: self.resource.name.as_bytes(),
            previous_job: &previous_job,
            allowed: &self.resource.allowed_script_directories,
            director_gone: &|| director.peer_has_left(),
        };
        work(&surroundings, &mut |kind, text| self.say(kind, text));
    }
}

/// The scripts of a moment that comes while the job's own thread runs.
pub(super) struct LateScripts<'d> {
    scripts: Vec<RunScript>,
    client: &'d str,
    director: &'d Director,
    previous_job: Vec<u8>,
    connection: Canceler,
}

impl LateScripts<'_> {
    /// Runs them; their messages go the way of the job's.
    pub(super) fn run(&self, job: &Job, outbox: &Outbox) {
        let surroundings = Surroundings {
            client: self.client.as_bytes(),
            director: self.director.name.as_bytes(),
            previous_job: &self.previous_job,
            allowed: &self.director.allowed_script_directories,
            director_gone: &|| self.connection.peer_has_left(),
        };
        let mut say = |kind, text: &[u8]| outbox.message(kind, text);
        runscript::run_all(&self.scripts, Moment::AfterVss, job, &surroundings, &mut say);
    }
}
