//! The command loop: reads commands, names the handler of each, and ends the session
//! (reference 02 §1.3, §1.4, §4).

use fd_bsock::Signal;
use fd_messages::MessageType;
use fd_session::command::{self, Access, Command};
use fd_transport::{Channel, Farewell, IDLE_LIMIT, Received};

use super::conversation::{Conversation, Flow};
use crate::job::runscript::Moment;
use crate::shared::job::{Job, JobKind, Phase};
use crate::texts::{self, EndJob};

/// What remains to be done after a connection.
pub(super) struct Remains {
    /// Peers that have still to close.
    pub(super) farewells: Vec<Farewell>,
    /// A connection to a Director that is to be served like one that the Director has made.
    pub(super) handed_over: Option<Channel>,
}

impl Conversation<'_> {
    /// The command loop and what follows it. The caller waits for the peers to close when nothing
    /// else is left to do.
    pub(super) fn run(mut self) -> Remains {
        self.event("FC0002", "connection", "Director connection");
        loop {
            let frame = match self.channel.recv(IDLE_LIMIT) {
                Ok(Received::Data(frame)) if self.telling.answers.is_late(frame) => continue,
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
        let (daemon, resource) = (self.daemon, self.resource);
        let access = Access { monitor: resource.monitor, remote: resource.remote };
        let disabled = [&daemon.config().file_daemon.disabled_commands, &resource.disabled_commands];
        match command::read(frame, access, |name| disabled.iter().any(|list| list.contains(&name))) {
            Ok(command) => {
                let flow = self.obey(command);
                self.tell_failure();
                flow
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn obey(&mut self, command: Command) -> Flow {
        match command {
            Command::Accurate(files) => self.in_phase(Phase::AccurateList, |this| this.read_accurate_list(files)),
            Command::Backup(file_index) => self.in_phase(Phase::Files, |this| this.backup(file_index)),
            Command::Cancel(job) => self.abort_job(&job, false),
            Command::Diagnose(command) => self.diagnose(command),
            Command::EndRestore => self.end_restore(),
            Command::Estimate(order) => self.in_phase(Phase::Files, |this| this.estimate(order)),
            Command::FileSet(snapshot) => self.read_fileset(snapshot),
            Command::Job(job) => self.name_job(job),
            Command::Level(flags, level) => self.set_level(flags, level),
            Command::Plugin(command) => self.serve_plugins(command),
            Command::Proxy => self.proxy(),
            Command::Restore(order) => self.in_phase(Phase::Files, |this| this.restore(&order)),
            Command::Script(command) => self.handle_script(command),
            Command::Session => self.replied(texts::OK_SESSION),
            Command::SetBandwidth(wanted) => self.set_bandwidth(&wanted),
            Command::Snapshot(order) => self.snapshot(order),
            Command::Status => self.status(),
            Command::StatusGroup(query) => self.status_group(&query),
            Command::Stop(job) => self.abort_job(&job, true),
            Command::Storage(address) => self.in_phase(Phase::Connecting, |this| this.connect_storage(&address)),
            Command::Verify(level) => self.in_phase(Phase::Files, |this| this.verify(level)),
        }
    }

    /// What follows the command loop, in the order of reference 02 §1.4. It waits for no peer.
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
        self.end_plugins();
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
            vss: job.has_snapshots() || self.asked.snapshot && job.kind() == JobKind::Verify,
            encrypt: self.daemon.config().file_daemon.pki.encryption,
            comm_bytes: self.comm.plain,
            compress_comm_bytes: self.comm.sent,
        }
    }

    /// What the daemon had to say goes to this Director, as security messages of no job
    /// (reference 01 §16.4), unless it has left, as after a cancel: it would be taken for sent.
    fn deliver_daemon_messages(&mut self) {
        if self.is_lost() || self.channel.canceler().peer_has_left() {
            return;
        }
        for message in self.daemon.supervisor.take_waiting() {
            let kind = match message.kind {
                MessageType::Fatal | MessageType::Error => MessageType::Security,
                other => other,
            };
            let text = match message.times {
                0 | 1 => message.text,
                times => [texts::repeated(times).as_bytes(), &message.text].concat(),
            };
            if message.is_told_here {
                let line = texts::job_line(&self.daemon.config().file_daemon.name, 0, kind, &text);
                self.send_line(0, kind.number(), message.time, &line);
            } else if self.daemon.config().file_daemon.messages.wants(kind.number()) {
                self.deliver(0, kind, message.time, &text);
            }
        }
    }
}
