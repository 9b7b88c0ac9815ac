//! What runs, what ran, and the daemon's own messages. Sessions register here; status reads
//! snapshots.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fd_config::{Config, Destination};
use fd_messages::MessageType;
use fd_os::lock::Mutex;

use crate::clock;
use crate::delivery::local::{self, Expand, LocalDestinations};
use crate::delivery::writer::Writer;
use crate::shared::job::{Job, JobKind};
use crate::shared::past_jobs::{PastJobs, Seen, is_good};
use crate::shared::plugins::Plugged;
use crate::shared::state_file::FinishedJob;
use crate::texts;

/// Jobs that the history keeps (reference 02 §13.1).
const HISTORY: usize = 10;
/// How long mail and other messages may take at the end of the daemon: what one mail program has.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(120);
/// How long what was said before may take until it is their turn. A disk may have much to write.
const LAST_TURN: Duration = Duration::from_secs(10);
/// Daemon messages that wait for a Director; further ones are dropped, and are in the host's log
/// only.
const WAITING_MESSAGES: usize = 1000;

/// One authenticated connection of a Director.
#[derive(Debug)]
pub(crate) struct Session {
    /// Different for every session.
    pub number: u64,
    /// Seconds since 1970.
    pub connected: i64,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
    /// The job, as soon as `JobId=` named it.
    pub job: OnceLock<Arc<Job>>,
    /// Its plugins, as soon as they know of the job.
    pub plugged: OnceLock<Arc<Plugged>>,
}

impl Session {
    /// The operator's `cancel` or `stop`, which its plugins are told, too.
    pub(crate) fn abort(&self, stop: bool) {
        if let Some(job) = self.job.get() {
            job.abort(stop);
        }
        if let Some(plugged) = self.plugged.get() {
            plugged.cancel();
        }
    }

    /// Whether one of its plugins is at work.
    pub(crate) fn is_in_plugin(&self) -> bool {
        self.plugged.get().is_some_and(|plugged| plugged.plugins.are_busy())
    }
}

/// A message without a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DaemonMessage {
    /// Its type; fatal and error ones are shown as security (reference 01 §16.4).
    pub kind: MessageType,
    /// When it was said first, seconds since 1970.
    pub time: i64,
    /// Its text.
    pub text: Vec<u8>,
    /// How often it was said.
    pub times: u32,
    /// This host's destinations have it.
    pub is_told_here: bool,
}

/// The registry of sessions, finished jobs and daemon messages.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// The configuration, never changed.
    pub config: Config,
    /// When the daemon started, seconds since 1970.
    pub started: i64,
    next: AtomicU64,
    sessions: Mutex<BTreeMap<u64, Arc<Session>>>,
    history: Mutex<VecDeque<FinishedJob>>,
    finished: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
    past: Mutex<PastJobs>,
    seen: AtomicI64,
    waiting: Mutex<Vec<DaemonMessage>>,
    /// Locked by the writer of the process only.
    local: Arc<Mutex<LocalDestinations>>,
}

impl Supervisor {
    /// A daemon that has just started, with the history of the previous one.
    pub(crate) fn new(config: Config, history: Vec<FinishedJob>) -> Self {
        let own = &config.file_daemon;
        let local = LocalDestinations::new(own.messages.clone(), &own.name, own.working_directory.clone());
        let started = clock::seconds();
        let past = PastJobs::of_history(&history);
        let seen = history.iter().map(|job| job.end_time).max().unwrap_or(started);
        Self {
            config,
            started,
            next: AtomicU64::new(1),
            sessions: Mutex::default(),
            history: Mutex::new(history.into_iter().collect()),
            finished: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            past: Mutex::new(past),
            seen: AtomicI64::new(seen),
            waiting: Mutex::default(),
            local: Arc::new(Mutex::new(local)),
        }
    }

    /// A number that no other session has.
    pub(crate) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A Director has authenticated.
    pub(crate) fn enter(&self, encrypted: bool) -> Arc<Session> {
        let number = self.next_number();
        self.seen.store(clock::seconds(), Ordering::Relaxed);
        let session =
            Session { number, connected: clock::seconds(), encrypted, job: OnceLock::new(), plugged: OnceLock::new() };
        let session = Arc::new(session);
        self.sessions.lock().insert(number, Arc::clone(&session));
        session
    }

    /// A Director's connection has ended. A job of a kind that counts goes into the history first:
    /// a status in between shows it twice rather than never.
    pub(crate) fn leave(&self, session: &Session) {
        self.note_end(session);
        self.sessions.lock().remove(&session.number);
    }

    /// Counts a session's job, if it has one, and keeps it.
    fn note_end(&self, session: &Session) {
        let is_job = |job: &&Arc<Job>| job.identity.job_id != 0 && job.aim() != JobKind::System;
        let Some(job) = session.job.get().filter(is_job) else { return };
        self.ended.fetch_add(1, Ordering::Relaxed);
        let ended = entry(job);
        log_end(&ended, job);
        if !is_good(&ended) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        self.past.lock().note(&ended, Seen { examined: job.progress.files_examined(), warnings: job.warnings() });
        if job.kind() == JobKind::System {
            // It did not come to its command: the stock daemon neither counts nor keeps it.
            return;
        }
        self.finished.fetch_add(1, Ordering::Relaxed);
        let mut history = self.history.lock();
        history.push_back(ended);
        while history.len() > HISTORY {
            history.pop_front();
        }
    }

    /// The connections of now, oldest first.
    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.lock().values().cloned().collect()
    }

    /// The jobs of now that have a number, oldest first.
    pub(crate) fn running_jobs(&self) -> Vec<Arc<Job>> {
        let sessions = self.sessions();
        sessions
            .iter()
            .filter_map(|session| session.job.get().filter(|job| job.identity.job_id != 0).cloned())
            .collect()
    }

    /// The running job of this full name.
    pub(crate) fn job(&self, name: &[u8]) -> Option<Arc<Job>> {
        self.session_of(name)?.job.get().cloned()
    }

    /// The session of the running job of this full name.
    pub(crate) fn session_of(&self, name: &[u8]) -> Option<Arc<Session>> {
        let is_meant = |session: &&Arc<Session>| session.job.get().is_some_and(|job| job.identity.name == name);
        self.sessions.lock().values().find(is_meant).cloned()
    }

    /// The jobs that ended, oldest first, at most ten.
    pub(crate) fn history(&self) -> Vec<FinishedJob> {
        self.history.lock().iter().cloned().collect()
    }

    /// Jobs that ended since the daemon started, as the status counts them: those that came to
    /// their command.
    pub(crate) fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    /// Jobs that ended since the daemon started, also before their command.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Those of them that were not good.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// What became of earlier jobs: a copy.
    pub(crate) fn past(&self) -> PastJobs {
        self.past.lock().clone()
    }

    /// When a Director has logged in last, seconds since 1970. After a start, until the first one
    /// comes: the end of the last job before, or else the start.
    pub(crate) fn director_seen(&self) -> i64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Says something that belongs to no job: to the host's log now, and to the destinations with
    /// the next Director's session (reference 01 §16.4).
    pub(crate) fn say(&self, kind: MessageType, place: &str, text: Vec<u8>) {
        let line = texts::daemon_line(&self.config.file_daemon.name, kind, place, &text);
        self.log_on_host(kind, line);
        self.keep(kind, text, false);
    }

    /// The same, with this host's destinations now, if one takes it: no Director may come. What a
    /// stranger can have said again and again is said there once, until a Director has it.
    pub(crate) fn say_here(&self, kind: MessageType, place: &str, text: Vec<u8>) {
        let line = texts::daemon_line(&self.config.file_daemon.name, kind, place, &text);
        self.say_lines_here(kind, &[line], text);
    }

    /// The same for what is wrong with a peer's certificates outside jobs, if anything is, as
    /// messages of job 0. A stranger chooses the names in it, and so other ones are no news.
    pub(crate) fn say_certificate_errors(&self, errors: &[String]) {
        if !errors.is_empty() {
            let (own, kind) = (&self.config.file_daemon.name, MessageType::Error);
            let line = |error: &String| texts::job_line(own, 0, kind, &texts::CERTIFICATE_ERROR.of(error));
            let lines: Vec<_> = errors.iter().map(line).collect();
            self.say_lines_here(kind, &lines, texts::certificate_errors(errors));
        }
    }

    fn say_lines_here(&self, kind: MessageType, lines: &[Vec<u8>], text: Vec<u8>) {
        for line in lines {
            self.log_on_host(kind, line.clone());
        }
        let is_taken = self.local_destinations(kind.number()).next().is_some();
        if self.keep(kind, text, is_taken) {
            for line in lines {
                self.deliver_locally(kind.number(), clock::seconds(), line, None);
            }
        }
    }

    /// Keeps a message for the next Director; whether it is none that waits already.
    fn keep(&self, kind: MessageType, text: Vec<u8>, is_told_here: bool) -> bool {
        let mut waiting = self.waiting.lock();
        let is_same = |before: &&mut DaemonMessage| before.kind == kind && texts::says_the_same(&before.text, &text);
        // What is told here once may not be told again for what came between.
        let before = if is_told_here { waiting.iter_mut().find(is_same) } else { waiting.last_mut().filter(is_same) };
        if let Some(before) = before {
            before.times = before.times.saturating_add(1);
            return false;
        }
        let has_room = waiting.len() < WAITING_MESSAGES;
        if has_room {
            waiting.push(DaemonMessage { kind, time: clock::seconds(), text, times: 1, is_told_here });
        }
        has_room
    }

    /// Writes a line to the host's log, as an error. A host without a log daemon keeps its messages
    /// in the destinations.
    pub(crate) fn log_on_host(&self, kind: MessageType, line: Vec<u8>) {
        self.in_order(move |_| {
            let _logged = local::syslog_of_daemon(kind.number(), &line);
        });
    }

    /// Says something about the daemon itself, at once and on this host only.
    pub(crate) fn announce(&self, kind: MessageType, place: &str, text: &[u8]) {
        let line = texts::daemon_line(&self.config.file_daemon.name, kind, place, text);
        self.deliver_locally(kind.number(), clock::seconds(), &line, None);
        Writer::of_the_process().flush();
    }

    /// Says something in the form of a job's message, under number 0, on this host only.
    pub(crate) fn tell_here(&self, kind: MessageType, text: &[u8]) {
        let line = texts::job_line(&self.config.file_daemon.name, 0, kind, text);
        self.deliver_locally(kind.number(), clock::seconds(), &line, None);
    }

    /// Delivers an event on this host (reference 06 §9).
    pub(crate) fn event(&self, code: &str, kind: &str, reference: u64, source: &str, text: &str) {
        let own = &self.config.file_daemon;
        let number = own.messages.event_number(kind.as_bytes());
        if own.messages.wants(number) {
            let line = texts::event(code, &own.name, reference, kind, source, text);
            self.deliver_locally(number, clock::seconds(), &line, None);
        }
    }

    /// Returns if no lock of the registry is held for ever.
    pub(crate) fn prove_alive(&self) {
        drop(self.sessions.lock());
        drop(self.history.lock());
        drop(self.past.lock());
        drop(self.waiting.lock());
    }

    /// Takes the messages that wait for a Director.
    pub(crate) fn take_waiting(&self) -> Vec<DaemonMessage> {
        std::mem::take(&mut *self.waiting.lock())
    }

    /// The destinations of this host that take messages of a type.
    fn local_destinations(&self, type_number: u8) -> impl Iterator<Item = &Destination> {
        let destinations = &self.config.file_daemon.messages.destinations;
        destinations.iter().filter(move |destination| destination.types.contains(type_number))
    }

    /// Writes a line to this host's destinations; `job` is for the operator's command.
    pub(crate) fn deliver_locally(&self, type_number: u8, time: i64, line: &[u8], job: Option<&Expand<'_>>) {
        if self.local_destinations(type_number).next().is_none() {
            return;
        }
        // What a command's codes stand for is known here only.
        let commands: Option<Vec<_>> = job.map(|expand| {
            let with_command = self.local_destinations(type_number).filter_map(|destination| {
                destination.command.as_ref().map(|command| (command.clone(), destination.place.clone()))
            });
            with_command.map(|(command, place)| (expand(&command, &place), command, place)).collect()
        });
        let line = line.to_vec();
        self.in_order(move |local| {
            let expanded = commands.map(|commands| {
                move |command: &[u8], place: &[u8]| {
                    let it = commands.iter().find(|(_, of, at)| of == command && at == place);
                    it.map(|(expanded, ..)| expanded.clone()).unwrap_or_default()
                }
            });
            local.deliver(type_number, time, &line, expanded.as_ref().map(|expand| expand as &Expand<'_>));
        });
    }

    /// The daemon ends: the last mail is sent, within [`LAST_WORDS`], unless this host's
    /// destinations have no reader.
    pub(crate) fn finish_local(&self) {
        let (tells, heard) = sync_channel(2);
        let taken = self.in_order(move |local| {
            // The daemon waits for both, or not any more.
            let _begun = tells.send(());
            local.finish();
            let _ended = tells.send(());
        });
        if taken && heard.recv_timeout(LAST_TURN).is_ok() {
            let _finished = heard.recv_timeout(LAST_WORDS);
        }
    }

    /// A session ended: file destinations are closed until the next message. What the session had
    /// to say is written, if that takes no longer than a moment.
    pub(crate) fn close_local(&self) {
        self.in_order(LocalDestinations::close);
        Writer::of_the_process().flush();
    }

    /// Does something with this host's destinations, behind all that was to be done before; `false`
    /// if it is lost.
    fn in_order(&self, work: impl FnOnce(&mut LocalDestinations) + Send + 'static) -> bool {
        let local = Arc::clone(&self.local);
        Writer::of_the_process().hand_over(move || {
            let mut local = local.lock();
            let lost = Writer::of_the_process().take_lost();
            if lost > 0 {
                local.deliver_lost(lost);
            }
            work(&mut local);
        })
    }
}

/// One line of the daemon's own log for the end of a job; its beginning has another.
fn log_end(ended: &FinishedJob, job: &Job) {
    tracing::info!(
        jobid = ended.job_id,
        name = %String::from_utf8_lossy(&ended.job),
        kind = job.aim().words(),
        level = %char::from(ended.job_level),
        status = job.words().status,
        files = ended.job_files,
        bytes = ended.job_bytes,
        errors = ended.errors,
        warnings = job.warnings(),
        seconds = ended.end_time.saturating_sub(ended.start_time),
        "job ends"
    );
}

fn entry(job: &Job) -> FinishedJob {
    FinishedJob {
        errors: i32::try_from(job.progress.errors()).unwrap_or(i32::MAX),
        job_type: job.aim().code(),
        job_status: job.status().code(),
        job_level: job.level().code(),
        job_id: job.identity.job_id,
        vol_session_id: job.identity.vol_session_id,
        vol_session_time: job.identity.vol_session_time,
        job_files: job.progress.files(),
        job_bytes: job.progress.job_bytes(),
        start_time: job.started,
        end_time: clock::seconds(),
        job: job.identity.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::write;
    use std::os::unix::ffi::OsStrExt as _;
    use std::thread;

    use super::*;
    use crate::daemon::host::Host;
    use crate::shared::job::Identity;

    /// A status looks at what runs, then at what has run. Here it comes in the middle of an end.
    #[test]
    fn a_job_that_ends_is_in_the_history_before_it_stops_running() {
        let folder = tempfile::tempdir().unwrap();
        let (file, place) = (folder.path().join("fd.conf"), folder.path().display());
        let resources = format!(
            "FileDaemon {{\n Name = x-fd\n WorkingDirectory = {place}\n PidDirectory = {place}\n}}\n\
             Director {{\n Name = d\n Password = p\n}}\nMessages {{\n Name = m\n Director = d = all\n}}\n"
        );
        write(&file, resources).unwrap();
        let config = fd_config::load(file.as_os_str().as_bytes(), &mut Host, &mut Host).unwrap();
        let supervisor = Supervisor::new(config, Vec::new());
        let session = supervisor.enter(false);
        let job = Job::new(Identity { job_id: 7, ..Identity::default() }, 0);
        job.set_kind(JobKind::Backup);
        session.job.set(Arc::new(job)).unwrap();
        // The end is counted, and waits here.
        let history = supervisor.history.lock();
        thread::scope(|scope| {
            scope.spawn(|| supervisor.leave(&session));
            while supervisor.finished() == 0 {
                thread::yield_now();
            }
            let running = supervisor.running_jobs().len();
            drop(history);
            assert_eq!(running, 1);
        });
        assert_eq!((supervisor.running_jobs().len(), supervisor.history().len()), (0, 1));
    }
}
