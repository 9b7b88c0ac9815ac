//! A Director's connection from its hello to its end: the command loop of reference 02.
//!
//! One thread serves it and owns its channel. While a job runs, the job has a thread of its own and this one passes on
//! its messages and keeps the connection alive.

mod commands;
mod diagnostics;
mod estimate;
mod fileset;
mod greet;
mod jobs;
mod network_test;
mod plugins;
mod proxy;
mod scripts;

mod verify;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_backup::AccurateList;
use fd_bsock::{CommCount, Signal};
use fd_config::{DestinationKind, Director};
use fd_fileset::FileSet;
use fd_messages::MessageType;
use fd_restore::{QueuedMessage, RestoreState};
use fd_session::JobStatus;
use fd_session::command::{Access, Command, LevelFlags, Refusal, RunScript, Word};
use fd_session::texts::{self, EndJob};
use fd_transport::{Channel, ChannelError, Farewell, IDLE_LIMIT, Received};

use crate::clock;
use crate::connection::storage::{End, StorageConnection};
use crate::delivery::local::Expand;
use crate::job::outbox::Loss;
use crate::job::runscript::Moment;
use crate::shared::daemon::Daemon;
use crate::shared::job::{Identity, Job, JobKind, Phase};
use crate::shared::supervisor::Session;
use crate::texts as lines;

pub(crate) use greet::{serve, serve_channel};

/// Whether the command loop goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flow {
    GoOn,
    End,
}

/// What `level` commands have said.
#[derive(Clone, Debug, Default)]
struct Level {
    flags: LevelFlags,
    /// Set by `since_utime`: seconds since 1970 by our clock.
    since: Option<i64>,
    previous_job: Vec<u8>,
}

/// One authenticated connection.
struct Conversation<'d> {
    daemon: &'d Daemon,
    channel: Channel,
    resource: &'d Director,
    session: Arc<Session>,
    /// The Director has gone; what is said goes nowhere, and a running job ends in peace (reference 02 §9.4).
    loss: Loss,
    /// The FileSet asks for snapshots.
    snapshot: bool,
    key: Vec<u8>,
    multi_storage: bool,
    level: Level,
    fileset: Option<Arc<FileSet>>,
    accurate: Option<Arc<AccurateList>>,
    scripts: Vec<RunScript>,
    storage: Option<StorageConnection>,
    restored: Option<RestoreState>,
    /// What a restore has to say with the next message, or before the end of the job.
    waiting: Vec<QueuedMessage>,
    comm: CommCount,
    /// Connections on which all is said; waiting for the other side to close them comes last.
    farewells: Vec<Farewell>,
    /// A Director's connection that came over this one, to be served when this one is over.
    handed_over: Option<Channel>,
    last_heartbeat: Instant,
    last_progress: Option<Instant>,
    /// What is delivered now was said while the job ran, whatever has become of it since.
    said_while_running: bool,
}

/// What is left of a connection that is over.
struct Remains {
    /// Other sides that have still to close.
    farewells: Vec<Farewell>,
    /// A connection to a Director that is to be served like one that he has made.
    handed_over: Option<Channel>,
}

impl<'d> Conversation<'d> {
    fn new(daemon: &'d Daemon, channel: Channel, resource: &'d Director, session: Arc<Session>) -> Self {
        Self {
            daemon,
            channel,
            resource,
            session,
            loss: Loss::default(),
            snapshot: false,
            key: Vec::new(),
            multi_storage: false,
            level: Level::default(),
            fileset: None,
            accurate: None,
            scripts: Vec::new(),
            storage: None,
            restored: None,
            waiting: Vec::new(),
            comm: CommCount::default(),
            farewells: Vec::new(),
            handed_over: None,
            last_heartbeat: Instant::now(),
            last_progress: None,
            said_while_running: false,
        }
    }

    /// The command loop and what follows it. The caller waits for the other sides to close when nothing else is left to
    /// be done.
    fn run(mut self) -> Remains {
        self.event("FC0002", "connection", "Director connection");
        loop {
            let frame = match self.channel.recv(IDLE_LIMIT) {
                Ok(Received::Data(frame)) => frame.to_vec(),
                // Any signal between commands ends the connection (reference 01 §3.1).
                Ok(Received::Empty | Received::Signal(_)) => break,
                Err(error) => {
                    tracing::debug!(%error, "the Director's connection ended");
                    break;
                }
            };
            if self.command(&frame) == Flow::End {
                break;
            }
        }
        self.finish()
    }

    fn command(&mut self, frame: &[u8]) -> Flow {
        let Some(word) = Word::of(frame) else {
            self.reply(texts::INVALID_COMMAND);
            return Flow::End;
        };
        if !word.is_permitted(Access { monitor: self.resource.monitor, remote: self.resource.remote }) {
            self.reply(texts::NOT_PERMITTED);
            self.end_of_data();
            return Flow::GoOn;
        }
        let disabled = self.daemon.config().file_daemon.disabled_commands.union(self.resource.disabled_commands);
        if disabled.contains(word.prefix()) {
            self.say(MessageType::Fatal, &texts::command_disabled(word.prefix()));
            return Flow::End;
        }
        match Command::parse(word, frame) {
            Ok(command) => {
                let flow = self.obey(command, frame);
                self.tell_failure();
                flow
            }
            Err(refusal) => self.refuse(word, frame, refusal),
        }
    }

    /// What has failed the job where nobody could say so.
    fn tell_failure(&mut self) {
        let Some(job) = self.session.job.get().cloned() else { return };
        if let Some(text) = job.take_failure() {
            self.say(MessageType::Fatal, &text);
        }
    }

    fn refuse(&mut self, word: Word, frame: &[u8], refusal: Refusal) -> Flow {
        if word == Word::JobId {
            self.name_partial_job(frame);
        }
        if let Some(text) = refusal.fatal {
            self.say(MessageType::Fatal, &text);
        }
        if let Some(reply) = refusal.reply {
            self.reply(&reply);
        }
        if matches!(word, Word::Cancel | Word::Stop | Word::DotStatus | Word::Statistics | Word::Snapshot) {
            self.end_of_data();
        }
        if matches!(word, Word::Cancel | Word::Stop | Word::RestoreFileList) { Flow::GoOn } else { Flow::End }
    }

    /// The job of this connection; without `JobId=` it is one without a number, like a console's.
    fn job(&self) -> Arc<Job> {
        let nameless = || Arc::new(Job::new(Identity::default(), self.session.connected));
        Arc::clone(self.session.job.get_or_init(nameless))
    }

    /// Does one thing of the job, and says so to `.status activity`.
    fn in_phase<T>(&mut self, phase: Phase, work: impl FnOnce(&mut Self) -> T) -> T {
        let job = self.job();
        job.enter(phase, clock::seconds());
        let done = work(self);
        job.enter(Phase::Waiting, clock::seconds());
        done
    }

    /// Sends one frame to the Director and flushes.
    fn reply(&mut self, frame: &[u8]) {
        self.queue(frame);
        self.flush();
    }

    /// Sends one frame; it may wait for the next flush.
    fn queue(&mut self, frame: &[u8]) {
        if !self.is_lost() {
            let sent = self.channel.send(frame);
            self.note_loss(sent);
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.queue_signal(signal);
        self.flush();
    }

    /// Sends a signal; it may wait for the next flush.
    fn queue_signal(&mut self, signal: Signal) {
        if !self.is_lost() {
            let sent = self.channel.signal(signal);
            self.note_loss(sent);
        }
    }

    /// Ends an answer of many frames. It may wait for the next flush, which comes before the next command is waited for.
    fn end_of_data(&mut self) {
        self.queue_signal(Signal::Eod);
    }

    fn flush(&mut self) {
        if !self.is_lost() {
            let sent = self.channel.flush();
            self.note_loss(sent);
        }
    }

    fn is_lost(&self) -> bool {
        self.loss.get().is_some()
    }

    fn note_loss(&mut self, sent: Result<(), ChannelError>) {
        if let Err(error) = sent {
            tracing::debug!(%error, "the Director can't be reached any more");
            let _told_before = self.loss.set(error.cause());
        }
    }

    /// Says something to the operator, now.
    fn say(&mut self, kind: MessageType, text: &[u8]) {
        self.tell(kind, text);
        self.flush();
    }

    /// Says something to the operator; it may wait for the next flush. On a console's connection it is the bare text
    /// (reference 02 §6.5).
    fn tell(&mut self, kind: MessageType, text: &[u8]) {
        self.tell_waiting();
        let job = self.job();
        if job.identity.job_id == 0 && !matches!(kind, MessageType::Security | MessageType::Events) {
            self.queue(text);
        } else if job.note(kind, &self.daemon.config().file_daemon.messages) {
            self.deliver(job.identity.job_id, kind, clock::seconds(), text);
        }
    }

    /// Says what a restore has left for the next message.
    fn tell_waiting(&mut self) {
        for (kind, text) in std::mem::take(&mut self.waiting) {
            self.tell(kind, &text);
        }
    }

    /// Brings a message to every destination that takes its type. What it does to the job has been done.
    fn deliver(&mut self, job_id: u32, kind: MessageType, time: i64, text: &[u8]) {
        let line = lines::job_line(&self.daemon.config().file_daemon.name, job_id, kind, text);
        self.deliver_line(job_id, kind.number(), time, &line);
    }

    fn deliver_line(&mut self, job_id: u32, type_number: u8, time: i64, line: &[u8]) {
        let takers = self.daemon.config().file_daemon.messages.destinations_of(type_number);
        let to_director = takers.filter(|destination| destination.kind == DestinationKind::Director).count();
        for _destination in 0..to_director {
            self.queue(&lines::jmsg(job_id, type_number, time, line));
        }
        let expand = |command: &[u8], recipients: &[u8]| self.operator_command(command, recipients);
        let has_job = job_id != 0 && self.session.job.get().is_some();
        let job: Option<&Expand<'_>> = if has_job { Some(&expand) } else { None };
        self.daemon.supervisor().deliver_locally(type_number, time, line, job);
    }

    /// Tells of an event of this session (reference 06 §9).
    fn event(&mut self, code: &str, kind: &str, text: &str) {
        let daemon = &self.daemon.config().file_daemon;
        let number = daemon.messages.event_number(kind.as_bytes());
        if !daemon.messages.wants(number) {
            return;
        }
        let line = lines::event(code, &daemon.name, self.session.number, kind, &self.resource.name, text);
        let job_id = self.session.job.get().map_or(0, |job| job.identity.job_id);
        if job_id == 0 && number != MessageType::Events.number() {
            // A type of one's own is a text like any other, and on a console's connection that is a bare one.
            self.queue(&line);
        } else {
            self.deliver_line(job_id, number, clock::seconds(), &line);
        }
        self.flush();
    }

    /// Says good-bye to the Storage Daemon.
    fn leave_storage(&mut self, storage: StorageConnection) {
        let end = match self.session.job.get().map(|job| job.status()) {
            Some(JobStatus::Canceled) => End::Canceled,
            Some(JobStatus::Incomplete) => End::Stopped,
            _ => End::Said,
        };
        let (comm, farewell) = storage.terminate(end);
        self.comm = comm;
        self.farewells.extend(farewell);
    }

    /// What follows the command loop, in the order of reference 02 §1.4. Nobody is waited for.
    fn finish(mut self) -> Remains {
        self.flush();
        if let Some(storage) = self.storage.take() {
            self.leave_storage(storage);
        }
        if let Some(job) = self.session.job.get().cloned() {
            job.set_storage(None);
            self.in_phase(Phase::Script, |this| this.run_scripts(Moment::After));
            self.tell_waiting();
            if job.identity.job_id != 0 {
                let end = self.end_job(&job).frame();
                self.queue(&end);
            }
        }
        self.event("FC0001", "connection", "Director disconnection");
        self.deliver_daemon_messages();
        if !self.is_lost() {
            let said = self.channel.signal(Signal::Terminate);
            self.note_loss(said);
        }
        match self.channel.leave() {
            Ok(farewell) => self.farewells.push(farewell),
            Err(error) => tracing::debug!(%error, "the Director's connection did not end cleanly"),
        }
        Remains { farewells: self.farewells, handed_over: self.handed_over }
    }

    fn end_job(&self, job: &Job) -> EndJob {
        EndJob {
            term_code: job.status().code(),
            files: job.progress.files(),
            read_bytes: job.progress.read_bytes(),
            job_bytes: job.progress.job_bytes(),
            errors: job.progress.errors(),
            // A Verify job makes none, but reports what was asked for (reference 02 §8.2).
            vss: self.snapshot && job.kind() == JobKind::Verify,
            encrypt: self.daemon.config().file_daemon.pki.encryption,
            comm_bytes: self.comm.plain,
            compress_comm_bytes: self.comm.sent,
        }
    }

    /// What the daemon had to say goes to this Director, as security messages of no job (reference 01 §16.4).
    fn deliver_daemon_messages(&mut self) {
        if self.is_lost() {
            return;
        }
        for message in self.daemon.supervisor().take_waiting() {
            let kind = match message.kind {
                MessageType::Fatal | MessageType::Error => MessageType::Security,
                other => other,
            };
            let text = match message.times {
                0 | 1 => message.text,
                times => [lines::repeated(times).as_bytes(), &message.text].concat(),
            };
            if self.daemon.config().file_daemon.messages.wants(kind.number()) {
                self.deliver(0, kind, message.time, &text);
            }
        }
    }

    /// Keeps the Director informed while a job runs: a heartbeat when its interval has passed, progress every 30 s.
    fn keep_alive(&mut self, job: &Job) {
        let interval = self.daemon.config().file_daemon.heartbeat_interval;
        if !interval.is_zero() && self.last_heartbeat.elapsed() >= interval {
            self.last_heartbeat = Instant::now();
            self.signal(Signal::Heartbeat);
        }
        match self.last_progress {
            None => self.last_progress = Some(Instant::now()),
            Some(last) if last.elapsed() >= PROGRESS_INTERVAL && job.kind() != JobKind::System => {
                self.last_progress = Some(Instant::now());
                let progress = &job.progress;
                self.reply(&texts::progress(job.identity.job_id, progress.files(), progress.job_bytes()));
            }
            Some(_) => {}
        }
    }
}

/// Between two progress lines (reference 02 §6.8).
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);
