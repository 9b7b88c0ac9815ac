//! One authenticated connection: what its commands have said so far, and how it talks to the
//! Director.

use std::sync::Arc;
use std::time::Instant;

use fd_bsock::{CommCount, Signal};
use fd_config::{DestinationKind, Director};
use fd_fileset::FileSet;
use fd_messages::{JobCodes, MessageType, Numbering, expand_job_codes};
use fd_restore::{QueuedMessage, RestoreState};
use fd_session::JobStatus;
use fd_session::command::Refusal;
use fd_transport::{Channel, ChannelError, Farewell, Fault, IDLE_LIMIT, Received};
use fd_walk::DirectoryLimits;

use super::answers::Answers;
use super::asked::{Asked, FileSetSoFar};
use crate::clock;
use crate::connection::storage::StorageConnection;
use crate::delivery::local::Expand;
use crate::job::job_codes::Surroundings;
use crate::job::outbox::Loss;
use crate::job::own_thread::Nothing;
use crate::shared::daemon::Daemon;
use crate::shared::held::Held;
use crate::shared::job::{Identity, Job, Phase, status_words};
use crate::shared::supervisor::Session;
use crate::texts;

/// Whether the command loop goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    GoOn,
    End,
}

/// How messages go to the Director.
pub(super) struct Telling {
    /// By which numbers it knows the types of messages.
    numbering: Numbering,
    /// Why it can't be reached any more. Messages are dropped then, and a running job goes on to
    /// its end (reference 02 §9.4).
    pub(super) loss: Loss,
    /// What it answers.
    pub(super) answers: Answers,
    /// Messages of a restore that go out with the next one, or before the end of the job.
    pub(super) waiting: Vec<QueuedMessage>,
    /// Bare texts to a console that wait until the command has its answer, which the Director takes
    /// from the next frame; `None`: they go out at once.
    pub(super) after_answer: Option<Held>,
    /// The messages that are delivered now are from the time when the job ran.
    pub(super) said_while_running: bool,
}

/// When a running job last sent what it sends from time to time.
pub(super) struct Ticks {
    pub(super) heartbeat: Instant,
    pub(super) progress: Option<Instant>,
}

/// One authenticated connection.
pub(super) struct Conversation<'d> {
    pub(super) daemon: &'d Daemon,
    pub(super) channel: Channel,
    pub(super) resource: &'d Director,
    pub(super) session: Arc<Session>,
    pub(super) telling: Telling,
    pub(super) ticks: Ticks,
    pub(super) asked: Asked,
    pub(super) storage: Option<StorageConnection>,
    pub(super) restored: Option<RestoreState>,
    pub(super) comm: CommCount,
    /// Connections that are shut down on our side. Waiting for the peers to close them comes last.
    pub(super) farewells: Vec<Farewell>,
    /// A Director's connection that came over this one, to be served when this one is over.
    pub(super) handed_over: Option<Channel>,
}

impl<'d> Conversation<'d> {
    pub(super) fn new(
        daemon: &'d Daemon,
        channel: Channel,
        resource: &'d Director,
        session: Arc<Session>,
        numbering: Numbering,
    ) -> Self {
        let telling = Telling {
            numbering,
            loss: Loss::default(),
            answers: Answers::default(),
            waiting: Vec::new(),
            after_answer: None,
            said_while_running: false,
        };
        Self {
            daemon,
            channel,
            resource,
            session,
            telling,
            ticks: Ticks { heartbeat: Instant::now(), progress: None },
            asked: Asked::default(),
            storage: None,
            restored: None,
            comm: CommCount::default(),
            farewells: Vec::new(),
            handed_over: None,
        }
    }

    /// The job of this connection; without `JobId=` it is one without a number, like a console's.
    pub(super) fn job(&self) -> Arc<Job> {
        let nameless = || Arc::new(Job::new(Identity::default(), self.session.connected));
        Arc::clone(self.session.job.get_or_init(nameless))
    }

    /// Where this Director may look.
    pub(super) fn directory_limits(&self) -> DirectoryLimits {
        let resource = self.resource;
        DirectoryLimits::new(&resource.allowed_backup_directories, &resource.excluded_backup_directories)
    }

    /// Does one thing of the job, and says so to `.status activity`.
    pub(super) fn in_phase<T>(&mut self, phase: Phase, work: impl FnOnce(&mut Self) -> T) -> T {
        let job = self.job();
        job.course.enter(phase, clock::seconds());
        let done = work(self);
        job.course.enter(Phase::Waiting, clock::seconds());
        done
    }

    /// Refuses what the Director has sent.
    pub(super) fn refuse(&mut self, refusal: Refusal) -> Flow {
        if let Some((job_id, name)) = refusal.named {
            let identity = Identity { job_id, name, ..Identity::default() };
            self.session.job.get_or_init(|| Arc::new(Job::new(identity, self.session.connected)));
        }
        if let Some(text) = refusal.fatal {
            self.say(MessageType::Fatal, &text);
        }
        if let Some(reply) = refusal.reply {
            self.reply(&reply);
        }
        if refusal.ends_list {
            self.end_of_data();
        }
        if refusal.goes_on { Flow::GoOn } else { Flow::End }
    }

    /// Sends one frame to the Director, and the next command may come.
    pub(super) fn replied(&mut self, reply: &[u8]) -> Flow {
        self.reply(reply);
        Flow::GoOn
    }

    /// Sends one frame to the Director and flushes.
    pub(super) fn reply(&mut self, frame: &[u8]) {
        self.queue(frame);
        self.flush();
    }

    /// Sends one frame; it may wait for the next flush.
    pub(super) fn queue(&mut self, frame: &[u8]) {
        if !self.is_lost() {
            let sent = self.channel.send(frame);
            self.note_loss(sent);
        }
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        self.queue_signal(signal);
        self.flush();
    }

    /// Sends a signal; it may wait for the next flush.
    pub(super) fn queue_signal(&mut self, signal: Signal) {
        if !self.is_lost() {
            let sent = self.channel.signal(signal);
            self.note_loss(sent);
        }
    }

    /// An answer of many frames, and its end.
    pub(super) fn list(&mut self, frames: &[Vec<u8>]) -> Flow {
        for frame in frames {
            self.queue(frame);
        }
        self.end_of_data()
    }

    /// Ends an answer of many frames, and the next command may come. It may wait for the next
    /// flush, which comes before that is waited for.
    pub(super) fn end_of_data(&mut self) -> Flow {
        self.queue_signal(Signal::Eod);
        Flow::GoOn
    }

    /// The next of the lines that follow a command; `None` at the signal that ends them.
    pub(super) fn next_line(&mut self) -> Result<Option<Vec<u8>>, ChannelError> {
        Ok(match self.channel.recv(IDLE_LIMIT)? {
            Received::Data(line) => Some(line.to_vec()),
            Received::Empty => Some(Vec::new()),
            Received::Signal(_) => None,
        })
    }

    pub(super) fn flush(&mut self) {
        if !self.is_lost() {
            let sent = self.channel.flush();
            self.note_loss(sent);
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.telling.loss.get().is_some()
    }

    pub(super) fn note_loss(&mut self, sent: Result<(), ChannelError>) {
        let Err(error) = sent else { return };
        if matches!(error.fault, Fault::Oversized { .. }) {
            // Nothing of the frame was sent, and the connection is as good as before.
            return self.say(MessageType::Error, &texts::OVERSIZED_FRAME.of(error.to_string()));
        }
        tracing::debug!(%error, "the Director can't be reached any more");
        let _told_before = self.telling.loss.set(error.cause());
    }

    /// What the thread has worked with or found. If that is nothing, the operator is told why.
    pub(super) fn ended<W>(&mut self, job: &Job, ended: Result<W, Nothing>) -> Option<W> {
        ended
            .inspect_err(|nothing| {
                job.set_storage(None);
                // Before anything else calls plugins.
                if matches!(nothing, Nothing::Left)
                    && let Some(plugged) = self.session.plugged.get()
                {
                    plugged.plugins.abandon();
                }
                let (kind, text) = nothing.message();
                self.say(kind, text);
            })
            .ok()
    }

    /// Says something to the operator, now.
    pub(super) fn say(&mut self, kind: MessageType, text: &[u8]) {
        self.tell(kind, text);
        self.flush();
    }

    /// Says something to the operator; it may wait for the next flush. On a console's connection it
    /// is the bare text (reference 02 §6.5).
    pub(super) fn tell(&mut self, kind: MessageType, text: &[u8]) {
        self.tell_waiting();
        let job = self.job();
        if job.identity.job_id == 0 && !matches!(kind, MessageType::Security | MessageType::Events) {
            match &mut self.telling.after_answer {
                Some(held) => held.push(kind, text),
                None => self.queue(text),
            }
        } else if job.note(kind, &self.daemon.config().file_daemon.messages) {
            self.deliver(job.identity.job_id, kind, clock::seconds(), text);
        }
    }

    /// Says what has failed the job in a place that can't send messages.
    pub(super) fn tell_failure(&mut self) {
        let Some(job) = self.session.job.get().cloned() else { return };
        if let Some(text) = job.take_failure() {
            self.say(MessageType::Fatal, &text);
        }
    }

    /// Says what a restore has left for the next message, and what plugins have said on other
    /// threads.
    pub(super) fn tell_waiting(&mut self) {
        let said = self.session.plugged.get().map(|plugged| plugged.take_said()).unwrap_or_default();
        self.telling.waiting.extend(said);
        for (kind, text) in std::mem::take(&mut self.telling.waiting) {
            self.tell(kind, &text);
        }
    }

    /// Sends a message to every destination that takes its type. Its effect on the job has been
    /// noted.
    pub(super) fn deliver(&mut self, job_id: u32, kind: MessageType, time: i64, text: &[u8]) {
        let line = texts::job_line(&self.daemon.config().file_daemon.name, job_id, kind, text);
        self.deliver_line(job_id, kind.number(), time, &line);
    }

    /// Sends a line to the Director, as often as it is a destination for it.
    pub(super) fn send_line(&mut self, job_id: u32, type_number: u8, time: i64, line: &[u8]) {
        let takers = self.daemon.config().file_daemon.messages.destinations_of(type_number);
        let to_director = takers.filter(|destination| destination.kind == DestinationKind::Director).count();
        if let Some(directors_number) = self.telling.numbering.of(type_number) {
            for _destination in 0..to_director {
                self.queue(&texts::jmsg(job_id, directors_number, time, line));
            }
        }
    }

    fn deliver_line(&mut self, job_id: u32, type_number: u8, time: i64, line: &[u8]) {
        self.send_line(job_id, type_number, time, line);
        let expand = |command: &[u8], recipients: &[u8]| self.operator_command(command, recipients);
        let has_job = job_id != 0 && self.session.job.get().is_some();
        let job: Option<&Expand<'_>> = if has_job { Some(&expand) } else { None };
        self.daemon.supervisor.deliver_locally(type_number, time, line, job);
    }

    /// Reports an event of this session (reference 06 §9).
    pub(super) fn event(&mut self, code: &str, kind: &str, text: &str) {
        let daemon = &self.daemon.config().file_daemon;
        let number = daemon.messages.event_number(kind.as_bytes());
        if !daemon.messages.wants(number) {
            return;
        }
        let line = texts::event(code, &daemon.name, self.session.number, kind, &self.resource.name, text);
        let job_id = self.session.job.get().map_or(0, |job| job.identity.job_id);
        if job_id == 0 && number != MessageType::Events.number() {
            // A custom event type is a text like any other; on a console's connection it is sent
            // bare.
            self.queue(&line);
        } else {
            self.deliver_line(job_id, number, clock::seconds(), &line);
        }
        self.flush();
    }

    /// The FileSet, which is complete from now on.
    pub(super) fn complete_fileset(&mut self) -> Arc<FileSet> {
        if !self.asked.fileset.has_come() {
            return Arc::default();
        }
        let fileset = std::mem::take(&mut self.asked.fileset).complete();
        self.daemon.own_files.known_commands.note(self.resource.name.as_bytes(), fileset.plugin_commands());
        self.asked.fileset = FileSetSoFar::Complete(Arc::clone(&fileset));
        fileset
    }

    /// An operator's command with the codes of the job (reference 06 §7.8). Two codes are those of
    /// run scripts only.
    fn operator_command(&self, command: &[u8], recipients: &[u8]) -> Vec<u8> {
        let (job, surroundings) = (self.job(), self.surroundings());
        let words = job.words();
        let codes = surroundings.codes(&job, &words);
        let mut codes = JobCodes { recipients, director: b"%D", previous_job: b"%S", ..codes };
        if self.telling.said_while_running {
            codes.status = status_words(JobStatus::Running).as_bytes();
        }
        expand_job_codes(command, &codes).unwrap_or_default()
    }

    /// What the programs of this connection depend on.
    pub(super) fn surroundings(&self) -> Surroundings {
        Surroundings {
            client: self.daemon.config().file_daemon.name.clone().into_bytes(),
            director: self.resource.name.clone().into_bytes(),
            previous_job: self.asked.level.previous_job.clone(),
            allowed: self.resource.allowed_script_directories.clone(),
        }
    }
}
