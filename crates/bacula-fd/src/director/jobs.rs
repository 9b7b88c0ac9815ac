//! `storage`, `backup`, `restore`, `endrestore`: where a command becomes a running job.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use fd_messages::MessageType;
use fd_restore::{NameRegex, RestoreState};
use fd_session::JobStatus;
use fd_session::command::{Replace, Where};
use fd_session::texts::{self, BadCommand};
use fd_transport::{Channel, ConnectPlan, IDLE_LIMIT, Peer, PeerKind};

use super::{Conversation, Flow};
use crate::connection::storage::{self, Patience, Rejected, StorageConnection};
use crate::job::backup::LineWatch;
use crate::job::hang_up::HangUp;
use crate::job::matcher::Matcher;
use crate::job::outbox::{Outbox, Outgoing};
use crate::job::packet_check::PacketCheck;
use crate::job::{backup, restore};
use crate::shared::job::{Job, JobKind};

/// How often the Director's heartbeat is looked at (reference 01 §17).
const BACKUP_TICK: Duration = Duration::from_secs(5);
pub(super) const RESTORE_TICK: Duration = Duration::from_secs(30);
/// How long a Storage Daemon may take to call us (reference 01 §13).
const CALL_TIMEOUT: Duration = Duration::from_secs(1800);
/// The brake after a Storage Daemon that does not know us.
const STORAGE_REFUSED_PAUSE: Duration = Duration::from_secs(6);

impl Conversation<'_> {
    pub(super) fn connect_storage(&mut self, address: &[u8], port: u16, authorization: &[u8]) -> Flow {
        self.take_key(authorization);
        let job = self.job();
        if job.status() == JobStatus::Fatal {
            // A FileSet with plugin commands, and no Plugin Directory: the job has been told why it can't go on.
            self.reply(texts::BAD_STORAGE);
            return Flow::End;
        }
        if job.bandwidth.get() == 0 {
            let limit = match self.resource.max_bandwidth_per_job {
                0 => self.daemon.default_bandwidth(),
                limit => limit,
            };
            job.bandwidth.set(limit);
        }
        let host = String::from_utf8_lossy(address).into_owned();
        match self.reach_storage(&job, &host, port) {
            Some(connection) => {
                self.adopt_storage(&job, connection, &host, port);
                self.reply(texts::OK_STORAGE);
                Flow::GoOn
            }
            None => Flow::End,
        }
    }

    fn adopt_storage(&mut self, job: &Job, mut connection: StorageConnection, host: &str, port: u16) {
        let encrypted = connection.is_encrypted();
        job.set_storage(Some((connection.channel().canceller(), encrypted)));
        self.storage = Some(connection);
        self.key.fill(0);
        if job.identity.job_id > 0 && port != 0 {
            self.tell(MessageType::Info, &texts::connected_to_storage(host, port, encrypted));
        }
    }

    fn reach_storage(&mut self, job: &Arc<Job>, host: &str, port: u16) -> Option<StorageConnection> {
        let channel = self.dial_storage(job, host, port)?;
        let daemon = &self.daemon.config().file_daemon;
        // A Storage Daemon may well have our name; the key is one job's, and no other process has it.
        let credentials = self.daemon.credentials(&daemon.name, &self.key, &daemon.tls);
        let (remote, compression) = (self.resource.remote, daemon.comm_compression);
        let certificates = self.daemon.certificates().own().cloned();
        let mut channel = channel;
        channel.set_bandwidth(job.bandwidth.clone());
        // So that a cancel ends the greeting, too.
        job.set_storage(Some((channel.canceller(), false)));
        match StorageConnection::greet(channel, job, credentials, certificates, remote, compression) {
            Ok(connection) => Some(connection),
            Err(_) if job.cancel.is_cancelled() => {
                job.set_storage(None);
                self.reply(texts::BAD_STORAGE);
                None
            }
            Err(Rejected { error, certificate_errors }) => {
                job.set_storage(None);
                tracing::warn!(%error, %host, port, "the Storage daemon's hello failed");
                for problem in certificate_errors {
                    self.say(MessageType::Error, &texts::certificate_error(&problem));
                }
                let text = error.message();
                if text.is_empty() {
                    self.say(MessageType::Warning, &texts::storage_rejected(host, port, &error));
                    job.pause(STORAGE_REFUSED_PAUSE);
                    self.reply(texts::BAD_STORAGE);
                } else {
                    // Trouble with the capabilities has a message but no reply (reference 02 §4.6).
                    self.say(MessageType::Fatal, &text);
                }
                None
            }
        }
    }

    fn dial_storage(&mut self, job: &Arc<Job>, host: &str, port: u16) -> Option<Channel> {
        if port == 0 {
            let director = self.channel.canceller();
            let called = job.await_call(CALL_TIMEOUT, &|| !director.peer_has_left());
            if called.is_none() {
                self.say(MessageType::Fatal, texts::STORAGE_DID_NOT_CALL);
                self.reply(texts::BAD_STORAGE);
            }
            return called;
        }
        let daemon = &self.daemon.config().file_daemon;
        let heartbeat = daemon.heartbeat_interval;
        let plan = ConnectPlan {
            peer: Peer { kind: PeerKind::Storage, host: host.to_owned(), port },
            source: daemon.source_address.map(Into::into),
            retry_every: storage::RETRY_EVERY,
            give_up_after: daemon.sd_connect_timeout,
            keep_idle: (!heartbeat.is_zero()).then_some(heartbeat),
            send_buffer: usize::try_from(daemon.max_network_buffer_size).ok().filter(|size| *size > 0),
        };
        let patience = Patience::new(job, self.channel.canceller());
        let dialled = storage::connect(&plan, &patience);
        for warning in patience.into_warnings() {
            self.say(MessageType::Warning, &texts::storage_retrying(&warning));
        }
        match dialled {
            Ok(channel) => Some(channel),
            Err(error) => {
                if !job.cancel.is_cancelled() {
                    self.say(MessageType::Fatal, format!("{error}\n").as_bytes());
                }
                self.reply(texts::BAD_STORAGE);
                None
            }
        }
    }

    pub(super) fn backup(&mut self, file_index: u32) -> Flow {
        let job = self.job();
        job.set_kind(JobKind::Backup);
        let about = format!("jobid={} job={}", job.identity.job_id, job.name());
        job.change_status(JobStatus::Blocked);
        let Some(storage) = self.storage.take() else {
            self.say(MessageType::Fatal, texts::NO_STORAGE);
            self.reply(texts::BAD_BACKUP);
            // An end without a start, as the stock daemon tells it.
            self.event("FJ0002", "job", &format!("Job End {about}"));
            return Flow::End;
        };
        self.reply(texts::OK_BACKUP);
        self.event("FJ0001", "job", &format!("Job Start {about}"));
        let mut plan = backup::plan(self.daemon, self.fileset.as_ref(), self.walk_settings(), file_index);
        plan.accurate.clone_from(&self.accurate);
        plan.comm_compression = storage.is_compressed();
        let scripts = self.late_scripts();
        let watch = LineWatch {
            packet_check: PacketCheck::new(self.daemon.config().file_daemon.sd_packet_check, Instant::now()),
            hang_up: HangUp::new(self.daemon.debug().hang_up()),
        };
        self.storage = self.run_job(&job, Some(BACKUP_TICK), storage, move |job, outbox, storage| {
            backup::run(job, &plan, outbox, storage, watch, || scripts.run(job, outbox));
        });
        self.event("FJ0002", "job", &format!("Job End {about}"));
        Flow::End
    }

    pub(super) fn restore(&mut self, files: u32, replace: Replace, prelinks: bool, place: &Where) -> Flow {
        let job = self.job();
        if !restore::is_allowed(&self.resource.allowed_restore_directories, place) {
            let (Where::Folder(text) | Where::Regex(text)) = place;
            self.say(MessageType::Fatal, &texts::restore_path_not_allowed(text));
            self.reply(texts::RESTORE_NOT_ALLOWED);
            return Flow::End;
        }
        let keys = self.daemon.protection().map(|protection| Arc::clone(&protection.keys));
        let director = self.channel.canceller();
        let wanted = || !job.cancel.is_cancelled() && !director.peer_has_left();
        let matcher = Matcher::new(Arc::clone(&job));
        let mut compile = |pattern: &[u8], options| -> Option<Box<dyn NameRegex>> {
            Some(Box::new(matcher.compile(pattern, options, &wanted).ok()?))
        };
        let plan = match restore::plan(replace, prelinks, place, keys, &mut compile) {
            Ok(plan) => plan,
            Err(expression) => {
                self.say(MessageType::Fatal, &texts::bad_command(BadCommand::WhereRegex, &expression));
                return Flow::End;
            }
        };
        self.reply(texts::OK_RESTORE);
        job.set_kind(JobKind::Restore);
        job.progress.set_files_expected(files);
        job.change_status(JobStatus::Blocked);
        match self.storage.take() {
            None => self.say(MessageType::Fatal, texts::IMPROPER_SEQUENCE),
            Some(storage) => {
                // What earlier rounds created is remembered: it is ours to change.
                let mut state = self.restored.take().unwrap_or_else(|| RestoreState::new(&plan));
                let has_receiver = restore::has_receiver(self.daemon.job_settings().workers);
                let mut waiting = std::mem::take(&mut self.waiting);
                self.storage = self.run_job(&job, Some(RESTORE_TICK), storage, |job, outbox, storage| {
                    let before = std::mem::take(&mut waiting);
                    waiting = restore::run(job, &plan, &mut state, before, outbox, storage, has_receiver);
                });
                self.waiting = waiting;
                self.restored = Some(state);
            }
        }
        if self.multi_storage {
            self.reply(texts::STORAGE_END);
            if !job.status().is_canceled() {
                return Flow::GoOn;
            }
        }
        self.end_restore()
    }

    /// A restore with errors is a failed one, whatever each step answered. What still waits to be said comes too late to
    /// count, as in the stock daemon: it is said before the end of the job.
    pub(super) fn end_restore(&mut self) -> Flow {
        let job = self.job();
        if job.progress.errors() > 0 {
            job.change_status(JobStatus::Error);
        }
        Flow::End
    }

    /// Runs a job in a thread of its own and passes on what it says. With a `tick` the connection is kept alive, with a
    /// look at the clock that often. What the job works with comes back, unless it panicked.
    pub(super) fn run_job<W: Send>(
        &mut self,
        job: &Arc<Job>,
        tick: Option<Duration>,
        mut works_with: W,
        work: impl FnOnce(&Job, &Outbox, &mut W) + Send,
    ) -> Option<W> {
        let messages = self.daemon.config().file_daemon.messages.clone();
        let (outbox, said) = Outbox::new(Arc::clone(job), messages, Arc::clone(&self.loss));
        let ended = thread::scope(|scope| {
            let worker = thread::Builder::new().name(format!("job {}", job.identity.job_id)).spawn_scoped(scope, {
                let job = Arc::clone(job);
                move || {
                    work(&job, &outbox, &mut works_with);
                    works_with
                }
            });
            let worker = match worker {
                Ok(worker) => worker,
                Err(error) => return Err(format!("no thread for the job: {error}\n")),
            };
            self.said_while_running = true;
            self.pass_on(job, tick, &said);
            self.said_while_running = false;
            worker.join().map_err(|panic| {
                let why = panic.downcast_ref::<String>().cloned();
                let why = why.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
                format!("the job's thread panicked, please report this: {why}\n")
            })
        });
        match ended {
            Ok(works_with) => Some(works_with),
            Err(text) => {
                job.set_storage(None);
                self.say(MessageType::Fatal, text.as_bytes());
                None
            }
        }
    }

    /// Until the job's thread has dropped its end of the line.
    fn pass_on(&mut self, job: &Job, tick: Option<Duration>, said: &Receiver<Outgoing>) {
        loop {
            match said.recv_timeout(tick.unwrap_or(IDLE_LIMIT)) {
                Ok(outgoing) => {
                    match outgoing {
                        Outgoing::Message { kind, time, text } => {
                            self.deliver(job.identity.job_id, kind, time, &text);
                        }
                        Outgoing::Packet(packet) => self.queue(&packet),
                    }
                    if said.is_empty() {
                        self.flush();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if tick.is_some() {
                self.keep_alive(job);
            }
        }
        self.flush();
    }
}
