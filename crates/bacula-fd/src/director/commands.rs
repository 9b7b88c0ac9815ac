//! What each command does (reference 02 §4).

use std::sync::Arc;

use fd_bsock::Signal;
use fd_bsock::hello::{self, FileDaemonCaps};
use fd_messages::MessageType;
use fd_session::clock::{ClockSync, parse_btime};
use fd_session::command::{self, BackupLevel, Command, Level, LevelFlags, Word};
use fd_session::texts::{self, BadCommand};
use fd_transport::{IDLE_LIMIT, Received};

use super::{Conversation, Flow};
use crate::clock;
use crate::shared::job::{Identity, Job, Phase};
use crate::status;

impl Conversation<'_> {
    pub(super) fn obey(&mut self, command: Command, frame: &[u8]) -> Flow {
        match command {
            Command::Job { job_id, job, vol_session_id, vol_session_time, authorization } => {
                self.name_job(Identity { job_id, name: job, vol_session_id, vol_session_time }, &authorization, frame)
            }
            Command::Level(flags, level) => self.set_level(flags, level, frame),
            Command::FileSet { snapshot } => {
                self.snapshot = snapshot;
                self.read_fileset()
            }
            Command::SetBandwidth { limit, job } => self.set_bandwidth(limit, &job),
            Command::Storage { address, port, authorization } => {
                self.in_phase(Phase::Connecting, |this| this.connect_storage(&address, port, &authorization))
            }
            Command::Backup { file_index } => self.in_phase(Phase::Files, |this| this.backup(file_index)),
            Command::Restore { files, replace, prelinks, place } => {
                self.in_phase(Phase::Files, |this| this.restore(files, replace, prelinks, &place))
            }
            Command::Verify(level) => self.in_phase(Phase::Files, |this| this.verify(level)),
            Command::PluginOptions(options) => self.plugin_options(&options),
            Command::RestoreObject(object) => self.read_restore_object(&object),
            Command::RestoreObjectsEnd => self.replied(texts::OK_RESTORE_OBJECTS),
            Command::RestoreFileList { plugin } => self.skip_restore_file_list(&plugin),
            Command::Cancel { job, stop } => self.abort_job(&job, stop),
            Command::DotStatus { what, argument, api, api_opts } => {
                self.dot_status(&what, &argument, api, &api_opts, frame)
            }
            Command::RunBeforeJob(command) => self.in_phase(Phase::Script, |this| this.run_before_job(&command)),
            Command::Run(script, word) => {
                self.scripts.push(script);
                self.replied(if word == Word::Run { texts::OK_RUN_SCRIPT } else { texts::OK_RUN_AFTER })
            }
            Command::Session => self.replied(texts::OK_SESSION),
            Command::Accurate { files } => self.in_phase(Phase::AccurateList, |this| this.read_accurate_list(files)),
            Command::Estimate { listing, limit } => self.in_phase(Phase::Files, |this| this.estimate(listing, limit)),
            Command::Plain(word) => self.plain_command(word, frame),
            tool => self.obey_tool(tool),
        }
    }

    /// The commands beside backup and restore.
    fn obey_tool(&mut self, command: Command) -> Flow {
        match command {
            Command::SetDebug(wanted) => self.set_debug(&wanted),
            Command::Statistics { format, names } => self.statistics(format, names.as_deref()),
            Command::Query { parameter, plugin, .. } => self.query(&parameter, &plugin),
            Command::TestNetwork(wanted) => self.test_network(wanted),
            Command::Snapshot(wish) => self.snapshot(wish),
            _ => self.not_built_in(),
        }
    }

    fn plain_command(&mut self, word: Word, frame: &[u8]) -> Flow {
        match word {
            Word::EndRestore => self.end_restore(),
            Word::RunBeforeNow => self.in_phase(Phase::Script, Self::run_before_now),
            Word::Status => self.plain_status(),
            Word::Caps => {
                self.queue(&FileDaemonCaps { proxy: self.resource.remote }.encode());
                self.signal(Signal::CmdOk);
                Flow::GoOn
            }
            Word::SmDump => self.replied(texts::OK_SM_DUMP),
            // No plugin has features to tell.
            Word::PluginFeatures => {
                self.end_of_data();
                Flow::GoOn
            }
            Word::Component => {
                self.skip_list();
                self.replied(texts::OK_COMPONENT)
            }
            Word::Hello => self.second_hello(frame),
            Word::Proxy => self.proxy(),
            _ => self.not_built_in(),
        }
    }

    pub(super) fn replied(&mut self, reply: &[u8]) -> Flow {
        self.reply(reply);
        Flow::GoOn
    }

    /// A command of the protocol that this daemon does not do yet: an honest refusal, as for an unknown one.
    fn not_built_in(&mut self) -> Flow {
        self.reply(texts::INVALID_COMMAND);
        Flow::End
    }

    /// Reads and forgets the frames up to a signal.
    pub(super) fn skip_list(&mut self) {
        while let Ok(Received::Data(_) | Received::Empty) = self.channel.recv(IDLE_LIMIT) {}
    }

    fn name_job(&mut self, identity: Identity, authorization: &[u8], frame: &[u8]) -> Flow {
        let job = Arc::new(Job::new(identity, self.session.connected));
        if self.session.job.set(Arc::clone(&job)).is_err() {
            self.say(MessageType::Fatal, &texts::bad_command(BadCommand::Job, frame));
            self.reply(texts::BAD_JOB);
            return Flow::End;
        }
        self.take_key(authorization);
        let platform = self.daemon.platform().with_commas();
        self.replied(&texts::ok_job(&platform, ""))
    }

    /// A `JobId=` that does not scan has named the job all the same, as far as it went (reference 02 §4.1).
    pub(super) fn name_partial_job(&mut self, frame: &[u8]) {
        let (job_id, name) = command::partial_job(frame);
        let identity = Identity { job_id, name, ..Identity::default() };
        self.session.job.get_or_init(|| Arc::new(Job::new(identity, self.session.connected)));
    }

    /// A Director that has authenticated has no reason to greet again. The stock daemon would authenticate him anew.
    fn second_hello(&mut self, frame: &[u8]) -> Flow {
        if hello::FIRST_PACKET.contains(&frame.len()) {
            return self.not_built_in();
        }
        self.reply(&texts::bad_hello_length("client", frame.len()));
        Flow::End
    }

    /// A new key closes the old connection; a second one makes the restore one of several storages (reference 02 §4.1).
    pub(super) fn take_key(&mut self, authorization: &[u8]) {
        if authorization.is_empty() {
            return;
        }
        if let Some(old) = self.storage.take() {
            self.leave_storage(old);
            self.job().set_storage(None);
        }
        self.multi_storage = !self.key.is_empty();
        self.key = authorization.to_vec();
    }

    fn set_level(&mut self, flags: LevelFlags, level: Level, frame: &[u8]) -> Flow {
        let known = &mut self.level.flags;
        known.accurate |= flags.accurate;
        known.rerunning |= flags.rerunning;
        known.estimate |= flags.estimate;
        match level {
            Level::Whole(level) => {
                self.job().set_level(level.letter());
                self.replied(texts::OK_LEVEL)
            }
            Level::Awaiting(level) => {
                self.job().set_level(level.letter());
                Flow::GoOn
            }
            Level::Since { since, previous_job } => {
                if self.job().level() == b' ' {
                    self.job().set_level(BackupLevel::Since.letter());
                }
                self.level.previous_job = previous_job;
                self.synchronise(since, frame)
            }
        }
    }

    /// Asks the Director for his time and moves `since` to our clock.
    fn synchronise(&mut self, since: i64, frame: &[u8]) -> Flow {
        let mut sync = ClockSync::default();
        while sync.wants_more() {
            let rounds = sync.rounds_at_once();
            let asked = clock::microseconds();
            (0..rounds).for_each(|_| self.queue_signal(Signal::BTime));
            for _ in 0..rounds {
                let answer = match self.channel.recv(IDLE_LIMIT) {
                    Ok(Received::Data(answer)) => answer.to_vec(),
                    _ => frame.to_vec(),
                };
                let Some(his) = parse_btime(&answer) else {
                    self.say(MessageType::Fatal, &texts::bad_command(BadCommand::Level, &answer));
                    return Flow::End;
                };
                sync.answer(asked, clock::microseconds(), his);
            }
        }
        let adjustment = sync.adjustment();
        if adjustment.abs() > 3 {
            let kind = if adjustment.abs() > 600 { MessageType::Warning } else { MessageType::Info };
            self.say(kind, &texts::clocks_differ(adjustment));
        }
        self.level.since = Some(since.saturating_add(adjustment));
        self.end_of_data();
        self.replied(texts::OK_LEVEL)
    }

    fn set_bandwidth(&mut self, limit: u64, name: &[u8]) -> Flow {
        let supervisor = self.daemon.supervisor();
        if name.is_empty() {
            for job in supervisor.sessions().iter().filter_map(|session| session.job.get()) {
                job.bandwidth.set(limit);
            }
            self.daemon.set_default_bandwidth(limit);
        } else {
            match supervisor.job(name) {
                Some(job) => job.bandwidth.set(limit),
                None => self.queue(&texts::job_not_found(name)),
            }
        }
        self.replied(texts::OK_BANDWIDTH)
    }

    fn abort_job(&mut self, name: &[u8], stop: bool) -> Flow {
        match self.daemon.supervisor().job(name) {
            Some(job) => {
                let text = format!("Cancel jobid={} job={}", job.identity.job_id, job.name());
                self.event("FC0003", "command", &text);
                job.abort(stop);
                self.queue(&texts::marked(name, stop));
            }
            None => self.queue(&texts::job_not_found(name)),
        }
        self.end_of_data();
        Flow::GoOn
    }

    fn plain_status(&mut self) -> Flow {
        self.queue(b"\n");
        for frame in status::plain(self.daemon) {
            self.queue(&frame);
        }
        self.end_of_data();
        Flow::GoOn
    }

    fn dot_status(&mut self, what: &[u8], argument: &[u8], api: i32, api_opts: &[u8], frame: &[u8]) -> Flow {
        let supervisor = self.daemon.supervisor();
        let frames = match what {
            b"header" => status::header(self.daemon, api_opts),
            b"running" => status::running(self.daemon, api_opts),
            b"terminated" if api > 1 => status::api_terminated(&supervisor.history(), api_opts),
            b"resources" => status::resources(self.daemon, api_opts),
            b"statistics" if api > 1 => status::statistics(self.daemon, argument, api_opts),
            b"statistics" => status::plain_statistics(self.daemon, argument),
            b"activity" => status::activity(self.daemon, api_opts),
            b"current" => [vec![texts::OK_DOT_STATUS.to_vec()], status::current(supervisor)].concat(),
            b"last" => [vec![texts::OK_DOT_STATUS.to_vec()], status::last(supervisor)].concat(),
            b"terminated" => status::terminated(&supervisor.history()),
            _ => {
                let refusal = command::refused_dot_status(frame);
                self.refuse(Word::DotStatus, frame, refusal);
                return Flow::End;
            }
        };
        for frame in frames {
            self.queue(&frame);
        }
        self.end_of_data();
        Flow::GoOn
    }
}
