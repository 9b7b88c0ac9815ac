//! `storage`: the job's connection to its Storage Daemon (reference 02 §4.6).

use std::sync::Arc;
use std::time::Duration;

use fd_messages::MessageType;
use fd_session::JobStatus;
use fd_session::command::StorageAddress;
use fd_session::texts::BAD_STORAGE;
use fd_transport::{Channel, ConnectPlan, Limits, Peer, PeerKind, SILENCE};

use super::conversation::{Conversation, Flow};
use crate::connection::storage::{self, End, Patience, Rejected, StorageConnection};
use crate::shared::job::{Job, JobKind};
use crate::texts;

/// Storage Daemons of one session that have still to close their connection.
const MOST_FAREWELLS: usize = 16;
/// How long a Storage Daemon may take to call us (reference 01 §13).
const CALL_TIMEOUT: Duration = Duration::from_secs(1800);
/// The brake after a Storage Daemon that refuses us.
const STORAGE_REFUSED_PAUSE: Duration = Duration::from_secs(6);

impl Conversation<'_> {
    /// A new key closes the old connection; a second one makes the restore one of several storages
    /// (reference 02 §4.1).
    pub(super) fn take_key(&mut self, authorization: &[u8]) {
        if authorization.is_empty() {
            return;
        }
        if let Some(old) = self.storage.take() {
            self.leave_storage(old);
            self.job().set_storage(None);
        }
        self.asked.multi_storage = !self.asked.key.is_empty();
        self.asked.key = authorization.to_vec();
    }

    pub(super) fn connect_storage(&mut self, address: &StorageAddress) -> Flow {
        self.take_key(&address.authorization);
        let job = self.job();
        job.note_aim(JobKind::Restore);
        if job.status() == JobStatus::Fatal {
            // A FileSet with plugin commands, and no Plugin Directory: the job has been told why it
            // can't go on.
            self.reply(BAD_STORAGE);
            return Flow::End;
        }
        if job.bandwidth.get() == 0 {
            let limit = match self.resource.max_bandwidth_per_job {
                0 => self.daemon.jobs.default_bandwidth.get(),
                limit => limit,
            };
            job.bandwidth.set(limit);
        }
        let (host, port) = (String::from_utf8_lossy(&address.host), address.port);
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
        job.set_storage(Some((connection.channel().canceler(), encrypted)));
        let (most, least) = connection.dedup_blocks();
        let number = |size| i32::try_from(size).unwrap_or(i32::MAX);
        self.tell_facts(|told| told.dedup_blocks = (number(most), number(least)));
        self.storage = Some(connection);
        self.asked.key.fill(0);
        if job.identity.job_id > 0 && port != 0 {
            self.tell(MessageType::Info, &texts::connected_to_storage(host, port, encrypted));
        }
    }

    fn reach_storage(&mut self, job: &Arc<Job>, host: &str, port: u16) -> Option<StorageConnection> {
        let channel = self.dial_storage(job, host, port)?;
        let daemon = &self.daemon.config().file_daemon;
        // A Storage Daemon may well have our name; the key is one job's, and no other process has
        // it.
        let credentials = self.daemon.credentials(&daemon.name, &self.asked.key, &daemon.tls);
        let (remote, compression) = (self.resource.remote, daemon.comm_compression);
        let certificates = self.daemon.certificates.own();
        let mut channel = channel;
        channel.set_bandwidth(job.bandwidth.clone());
        // So that a cancel ends the greeting, too.
        job.set_storage(Some((channel.canceler(), false)));
        let mut silent = || {
            if !job.cancel.is_canceled() {
                self.say(MessageType::Warning, texts::storage_does_not_answer(host, port).as_bytes());
            }
        };
        match StorageConnection::greet(channel, job, credentials, certificates, remote, compression, &mut silent) {
            Ok(connection) => Some(connection),
            Err(_) if job.cancel.is_canceled() => {
                job.set_storage(None);
                self.reply(BAD_STORAGE);
                None
            }
            Err(Rejected { error, certificate_errors }) => {
                job.set_storage(None);
                tracing::warn!(%error, %host, port, "the Storage daemon's hello failed");
                for problem in certificate_errors {
                    self.say(MessageType::Error, &texts::CERTIFICATE_ERROR.of(&problem));
                }
                let text = error.message();
                if text.is_empty() {
                    self.say(MessageType::Warning, &texts::storage_rejected(host, port, &error));
                    job.pause(STORAGE_REFUSED_PAUSE);
                    self.reply(BAD_STORAGE);
                } else {
                    // A failure of the capabilities has a message but no reply (reference 02 §4.6).
                    self.say(MessageType::Fatal, &text);
                }
                None
            }
        }
    }

    fn dial_storage(&mut self, job: &Arc<Job>, host: &str, port: u16) -> Option<Channel> {
        if port == 0 {
            let director = self.channel.canceler();
            let wanted = || !director.peer_has_left();
            let mut called = job.storage.await_call(SILENCE, &job.cancel, &wanted);
            if called.is_none() && !job.cancel.is_canceled() && wanted() {
                let text = texts::storage_does_not_call(&self.daemon.config().file_daemon.addresses);
                self.say(MessageType::Warning, text.as_bytes());
                called = job.storage.await_call(CALL_TIMEOUT.saturating_sub(SILENCE), &job.cancel, &wanted);
            }
            if let Some(second) = job.storage.take_turned_away() {
                self.say(MessageType::Warning, &texts::STORAGE_CALLED_TWICE.of(second.to_string()));
            }
            if called.is_none() {
                if !job.cancel.is_canceled() {
                    self.say(MessageType::Fatal, texts::STORAGE_DID_NOT_CALL);
                }
                self.reply(BAD_STORAGE);
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
        let director = self.channel.canceler();
        let mut warn = |warning: &str| self.say(MessageType::Warning, &texts::STORAGE_RETRYING.of(warning));
        match Channel::connect(&plan, Limits::default(), &Patience::new(job, director, &mut warn)) {
            Ok(channel) => Some(channel),
            Err(error) => {
                if !job.cancel.is_canceled() {
                    self.say(MessageType::Fatal, format!("{error}\n").as_bytes());
                }
                self.reply(BAD_STORAGE);
                None
            }
        }
    }

    /// Ends the connection to the Storage Daemon.
    pub(super) fn leave_storage(&mut self, storage: StorageConnection) {
        let end = match self.session.job.get().map(|job| job.status()) {
            Some(JobStatus::Canceled) => End::Canceled,
            Some(JobStatus::Incomplete) => End::Stopped,
            _ => End::Said,
        };
        let (comm, farewell) = storage.terminate(end);
        self.comm = comm;
        self.farewells.extend(farewell);
        // Storage Daemons that don't close must not take a descriptor each. The oldest had the
        // most time to read what was sent last.
        let surplus = self.farewells.len().saturating_sub(MOST_FAREWELLS);
        self.farewells.drain(..surplus);
    }
}
