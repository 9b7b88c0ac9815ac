//! Run scripts, and what the codes in their command lines stand for (reference 02 §4.8, §10.2).

use fd_fileset::{JobCodes, expand_job_codes};
use fd_session::{JobStatus, texts};

use fd_config::Director;
use fd_messages::JobLog as _;
use fd_session::command::RunScript;
use fd_transport::Canceller;

use super::{Conversation, Flow};
use crate::job::outbox::Outbox;
use crate::job::runscript::{self, Moment, Surroundings};
use crate::shared::job::{Job, Words, status_words};

impl<'d> Conversation<'d> {
    pub(super) fn run_before_job(&mut self, command: &[u8]) -> Flow {
        let job = self.job();
        let failed_before = job.status().is_canceled();
        self.with_surroundings(&job, |surroundings, say| {
            runscript::run(command, Moment::AtOnce, true, &job, surroundings, say);
        });
        if job.status().is_canceled() && !failed_before {
            self.reply(texts::BAD_RUN_BEFORE);
            return Flow::End;
        }
        self.reply(texts::OK_RUN_BEFORE);
        Flow::GoOn
    }

    pub(super) fn run_before_now(&mut self) -> Flow {
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
        let scripts = std::mem::take(&mut self.scripts);
        if !scripts.is_empty() {
            let job = self.job();
            self.with_surroundings(&job, |surroundings, say| {
                runscript::run_all(&scripts, moment, &job, surroundings, say);
            });
        }
        self.scripts = scripts;
    }

    /// A command line with its job codes replaced.
    pub(super) fn expanded(&self, command: &[u8]) -> Vec<u8> {
        let job = self.job();
        let words = job.words();
        expand_job_codes(command, &self.codes(&job, &words))
    }

    /// An operator's command with the codes of the job (reference 06 §7.8). Two codes are those of run scripts only.
    pub(super) fn operator_command(&self, command: &[u8], recipients: &[u8]) -> Vec<u8> {
        let job = self.job();
        let words = job.words();
        let mut codes = JobCodes { recipients, director: b"%D", previous_job: b"%S", ..self.codes(&job, &words) };
        if self.said_while_running {
            codes.status = status_words(JobStatus::Running).as_bytes();
        }
        expand_job_codes(command, &codes)
    }

    /// What the job's own thread needs to run the scripts of [`Moment::AfterVss`].
    pub(super) fn late_scripts(&self) -> LateScripts<'d> {
        LateScripts {
            scripts: self.scripts.clone(),
            client: &self.daemon.config().file_daemon.name,
            director: self.resource,
            previous_job: self.level.previous_job.clone(),
            connection: self.channel.canceller(),
        }
    }

    fn with_surroundings(
        &mut self,
        job: &Job,
        work: impl FnOnce(&Surroundings<'_>, &mut dyn FnMut(fd_messages::MessageType, &[u8])),
    ) {
        let words = job.words();
        let (client, previous_job) = (self.daemon.config().file_daemon.name.clone(), self.level.previous_job.clone());
        let resource = self.resource;
        let codes = job_codes(job, &words, client.as_bytes(), resource.name.as_bytes(), &previous_job);
        let director = self.channel.canceller();
        let director_gone = || director.peer_has_left();
        let allowed = &resource.allowed_script_directories;
        let surroundings = Surroundings { codes, allowed, director_gone: &director_gone };
        work(&surroundings, &mut |kind, text| self.say(kind, text));
    }

    fn codes<'a>(&'a self, job: &'a Job, words: &'a Words) -> JobCodes<'a> {
        let client = self.daemon.config().file_daemon.name.as_bytes();
        job_codes(job, words, client, self.resource.name.as_bytes(), &self.level.previous_job)
    }
}

/// The scripts of a moment that comes while the job's own thread runs.
pub(super) struct LateScripts<'d> {
    scripts: Vec<RunScript>,
    client: &'d str,
    director: &'d Director,
    previous_job: Vec<u8>,
    connection: Canceller,
}

impl LateScripts<'_> {
    /// Runs them; what they say goes the way of the job's messages.
    pub(super) fn run(&self, job: &Job, outbox: &Outbox) {
        let words = job.words();
        let (client, director) = (self.client.as_bytes(), self.director.name.as_bytes());
        let codes = job_codes(job, &words, client, director, &self.previous_job);
        let allowed = &self.director.allowed_script_directories;
        let surroundings = Surroundings { codes, allowed, director_gone: &|| self.connection.peer_has_left() };
        let mut say = |kind, text: &[u8]| outbox.message(kind, text);
        runscript::run_all(&self.scripts, Moment::AfterVss, job, &surroundings, &mut say);
    }
}

fn job_codes<'a>(
    job: &'a Job,
    words: &'a Words,
    client: &'a [u8],
    director: &'a [u8],
    previous_job: &'a [u8],
) -> JobCodes<'a> {
    JobCodes {
        client,
        director,
        status: words.status.as_bytes(),
        errors: job.progress.errors(),
        job_id: job.identity.job_id,
        job: &job.identity.name,
        level: words.level.as_bytes(),
        since: b"*none*",
        previous_job,
        files: job.progress.files(),
        bytes: job.progress.job_bytes(),
        read_bytes: job.progress.read_bytes(),
        job_type: words.kind.as_bytes(),
        volume: b"",
        priority: 0,
        process: std::process::id(),
        recipients: b"",
    }
}
