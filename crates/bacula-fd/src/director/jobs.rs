//! `backup`, `restore`, `endrestore`: where a command becomes a running job.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use fd_backup::BackupPlan;
use fd_bsock::Signal;
use fd_fileset::texts as fileset_texts;
use fd_messages::{MessageType, one_line};
use fd_os::threads::GLANCE;
use fd_plugins::Event;
use fd_restore::{NameRegex, RestoreState};
use fd_session::JobStatus;
use fd_session::command::{RestoreOrder, Where};
use fd_transport::IDLE_LIMIT;

use super::conversation::{Conversation, Flow, Ticks};
use crate::job::backup::LineWatch;
use crate::job::hang_up::HangUp;
use crate::job::matcher::Matcher;
use crate::job::outbox::{Outbox, Outgoing};
use crate::job::own_thread::{Nothing, OwnThread, ask_storage};
use crate::job::packet_check::PacketCheck;
use crate::job::snapshots::session::Session;
use crate::job::{backup, restore};
use crate::shared::job::{Job, JobKind};
use crate::texts;

/// How often the Director's heartbeat is looked at (reference 01 §17).
const BACKUP_TICK: Duration = Duration::from_secs(5);
pub(super) const RESTORE_TICK: Duration = Duration::from_secs(30);
/// How long the Director may take to answer a question; its catalog may be busy.
const ANSWER_LIMIT: Duration = Duration::from_secs(600);
/// Between two progress lines (reference 02 §6.8).
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);

impl Conversation<'_> {
    pub(super) fn backup(&mut self, file_index: u32) -> Flow {
        let job = self.job();
        job.set_kind(JobKind::Backup);
        let about = format!("jobid={} job={}", job.identity.job_id, job.name());
        job.change_status(JobStatus::Blocked);
        let Some(storage) = self.storage.take() else {
            self.say(MessageType::Fatal, texts::NO_STORAGE);
            self.reply(texts::BAD_BACKUP);
            // An end without a start, as in the stock daemon.
            self.event("FJ0002", "job", &format!("Job End {about}"));
            return Flow::End;
        };
        self.reply(texts::OK_BACKUP);
        self.event("FJ0001", "job", &format!("Job Start {about}"));
        if self.daemon.jobs.protection.as_ref().is_some_and(|protection| !protection.keys.own.is_pair()) {
            self.say(MessageType::Error, texts::KEYS_OF_TWO_PAIRS);
        }
        let mut plan = backup::plan(self.daemon, self.walk_settings(), file_index);
        plan.accurate.clone_from(&self.asked.accurate);
        if let Some(access) = self.plugin_access() {
            (plan.plugins, plan.facts) = (access.plugins, access.facts);
        }
        plan.late = self.late_includes();
        let (events, mut fileset) = (self.job_events(), std::mem::take(&mut self.asked.fileset));
        plan.comm_compression = storage.is_compressed();
        let scripts = self.late_scripts();
        let snapshots = self.snapshot_order();
        let watch = LineWatch {
            packet_check: PacketCheck::new(self.daemon.config().file_daemon.sd_packet_check, Instant::now()),
            hang_up: HangUp::new(self.daemon.debug.hang_up()),
            debug: &self.daemon.debug,
        };
        let (daemon, director) = (self.daemon, &self.resource.name);
        self.storage = self.run_job(&job, Some(BACKUP_TICK), storage, move |job, outbox, storage| {
            let prepare = |plan: &mut BackupPlan| {
                events.tell(job, outbox, fileset.open_mut(), &Event::StartBackupJob);
                plan.fileset = fileset.complete();
                daemon.jobs.digests.note(plan.fileset.digests());
                daemon.own_files.known_commands.note(director.as_bytes(), plan.fileset.plugin_commands());
                let open = |order| Session::open(order, &plan.fileset, job, outbox, &mut plan.walk.snapshots);
                let snapshots = snapshots.as_ref().map(open).transpose()?;
                scripts(job, outbox);
                Ok(snapshots)
            };
            let end = || events.tell(job, outbox, None, &Event::EndBackupJob);
            backup::run(job, plan, outbox, storage, watch, prepare, end);
        });
        self.event("FJ0002", "job", &format!("Job End {about}"));
        Flow::End
    }

    pub(super) fn restore(&mut self, order: &RestoreOrder) -> Flow {
        let RestoreOrder { files, replace, prelinks, place } = order;
        let (job, director) = (self.job(), self.channel.canceler());
        let wanted = || !job.cancel.is_canceled() && !director.peer_has_left();
        let allowed = &self.resource.allowed_restore_directories;
        let links = if allowed.is_empty() {
            restore::links_in(allowed, place)
        } else {
            let (allowed, place) = (allowed.clone(), place.clone());
            let answer = ask_storage(&job, &wanted, move || restore::links_in(&allowed, &place));
            let Some(answer) = self.ended(&job, answer) else { return Flow::End };
            answer
        };
        let Some(links) = links else {
            let (Where::Folder(text) | Where::Regex(text)) = place;
            self.say(MessageType::Fatal, &texts::RESTORE_PATH_NOT_ALLOWED.of(text));
            self.reply(texts::RESTORE_NOT_ALLOWED);
            return Flow::End;
        };
        let keys = self.daemon.jobs.protection.as_ref().map(|protection| Arc::clone(&protection.keys));
        let matcher = Matcher::new(Arc::clone(&job));
        let mut compile = |pattern: &[u8], options| -> Result<Option<NameRegex>, Vec<u8>> {
            match matcher.compile(pattern, options, &wanted) {
                Ok(expression) => Ok(Some(Box::new(move |name| expression.captures(name)))),
                Err(error) if error.is_bad => Ok(None),
                Err(error) => Err(one_line(&[&fileset_texts::bad_regex(pattern, &error.why)])),
            }
        };
        let mut plan = match restore::plan(*replace, *prelinks, place, keys, &mut compile) {
            Ok(plan) => plan,
            Err(message) => {
                self.say(MessageType::Fatal, &message);
                return Flow::End;
            }
        };
        plan.plugins = self.plugin_access();
        plan.check_digests = self.daemon.settings.restore.check_digests;
        plan.writing_depth = self.daemon.settings.job.depth;
        plan.digests = self.daemon.jobs.digests.kinds();
        self.tell_facts(|told| {
            match place {
                Where::Folder(folder) => told.place = Some(folder.clone()),
                Where::Regex(expressions) => told.regex_where = Some(expressions.clone()),
            }
            (told.prefix_links, told.replace) = (*prelinks, replace.letter());
        });
        self.reply(texts::OK_RESTORE);
        job.set_kind(JobKind::Restore);
        if !plan.check_digests && self.restored.is_none() {
            self.say(MessageType::Info, texts::DIGESTS_NOT_CHECKED);
        }
        job.progress.set_files_expected(*files);
        job.change_status(JobStatus::Blocked);
        match self.storage.take() {
            None => self.say(MessageType::Fatal, texts::IMPROPER_SEQUENCE),
            Some(storage) => {
                // This round may change what earlier rounds have created.
                let state = self.restored.take().unwrap_or_else(|| RestoreState::new(&plan, links));
                let events = self.job_events();
                let parts = (storage, state, std::mem::take(&mut self.telling.waiting));
                let parts = self.run_own_thread(&job, Some(RESTORE_TICK), parts, move |job, outbox, parts| {
                    let (storage, state, waiting) = parts;
                    let before = std::mem::take(waiting);
                    let tell = |event: &Event<'_>| events.tell(job, outbox, None, event);
                    *waiting = restore::run(job, &plan, state, before, outbox, storage, &tell);
                });
                if let Some((storage, state, waiting)) = parts {
                    (self.storage, self.restored, self.telling.waiting) = (Some(storage), Some(state), waiting);
                }
            }
        }
        if self.asked.multi_storage {
            self.reply(texts::STORAGE_END);
            if !job.status().is_canceled() {
                return Flow::GoOn;
            }
        }
        self.end_restore()
    }

    /// A restore with errors has failed, whatever its steps answered. Messages that still wait come
    /// too late to count, as in the stock daemon: they are sent before the end of the job.
    pub(super) fn end_restore(&mut self) -> Flow {
        let job = self.job();
        if job.progress.errors() > 0 {
            job.change_status(JobStatus::Error);
        }
        Flow::End
    }

    /// Runs a job in a thread of its own and passes on its messages. With a `tick` the connection
    /// is kept alive, which is checked at that interval. Returns what the job worked with, unless
    /// it panicked.
    fn run_job<W: Send>(
        &mut self,
        job: &Arc<Job>,
        tick: Option<Duration>,
        mut works_with: W,
        work: impl FnOnce(&Job, &Outbox, &mut W) + Send,
    ) -> Option<W> {
        let earlier = self.daemon.supervisor.past().size(&job.identity.name, job.kind().code(), job.level().code());
        job.course.expect(|expected| expected.earlier = earlier);
        let (outbox, said) = self.outbox(job);
        let ended = thread::scope(|scope| {
            let worker = thread::Builder::new().name(thread_name(job)).spawn_scoped(scope, {
                let job = Arc::clone(job);
                move || {
                    work(&job, &outbox, &mut works_with);
                    works_with
                }
            });
            let worker = worker.map_err(|error| Nothing::no_thread(&error))?;
            self.pass_on(job, tick, &said, None);
            worker.join().map_err(|panic| Nothing::panicked(&*panic))
        });
        self.ended(job, ended)
    }

    /// The same for a job whose own thread waits for storage. If the job is canceled and its thread
    /// hangs, it is left behind with what it works with.
    pub(super) fn run_own_thread<W: Send + 'static>(
        &mut self,
        job: &Arc<Job>,
        tick: Option<Duration>,
        mut works_with: W,
        work: impl FnOnce(&Job, &Outbox, &mut W) + Send + 'static,
    ) -> Option<W> {
        let (outbox, said) = self.outbox(job);
        let job_of_thread = Arc::clone(job);
        let worker = OwnThread::start(thread_name(job), move || {
            work(&job_of_thread, &outbox, &mut works_with);
            drop(outbox);
            works_with
        });
        let mut worker = match worker {
            Ok(worker) => worker,
            Err(nothing) => return self.ended(job, Err(nothing)),
        };
        let session = Arc::clone(&self.session);
        let mut is_left = || worker.is_left(job, || session.is_in_plugin());
        if self.pass_on(job, tick, &said, Some(&mut is_left)) {
            return self.ended(job, worker.join());
        }
        self.ended(job, Err(Nothing::Left))
    }

    fn outbox(&self, job: &Arc<Job>) -> (Outbox, Receiver<Outgoing>) {
        let messages = self.daemon.config().file_daemon.messages.clone();
        Outbox::new(Arc::clone(job), messages, Arc::clone(&self.telling.loss))
    }

    /// Passes on messages until the job's thread drops its end of the queue. `false`: its thread is
    /// left behind, as `is_left` has said.
    fn pass_on(
        &mut self,
        job: &Job,
        tick: Option<Duration>,
        said: &Receiver<Outgoing>,
        mut is_left: Option<&mut dyn FnMut() -> bool>,
    ) -> bool {
        self.telling.said_while_running = true;
        let mut last_tick = Instant::now();
        let is_ended = loop {
            let until_tick = tick.unwrap_or(IDLE_LIMIT).saturating_sub(last_tick.elapsed());
            let glance = if is_left.is_some() { GLANCE } else { until_tick };
            match said.recv_timeout(until_tick.min(glance)) {
                Ok(outgoing) => {
                    self.pass_on_one(job, outgoing);
                    if said.is_empty() {
                        self.flush();
                    }
                }
                Err(RecvTimeoutError::Timeout) if is_left.as_mut().is_some_and(|is_left| is_left()) => {
                    said.try_iter().for_each(|outgoing| self.pass_on_one(job, outgoing));
                    break false;
                }
                Err(RecvTimeoutError::Timeout) if !until_tick.is_zero() => continue,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break true,
            }
            last_tick = Instant::now();
            if tick.is_some() {
                self.keep_alive(job);
            }
        };
        self.flush();
        self.telling.said_while_running = false;
        is_ended
    }

    fn pass_on_one(&mut self, job: &Job, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Message { kind, time, text } => self.deliver(job.identity.job_id, kind, time, &text),
            Outgoing::Packet(packet) => self.queue(&packet),
            Outgoing::Question { packet, answer } => self.ask(job, &packet, &answer),
        }
    }

    /// Asks the Director. Without an answer the asker sees that `answer` is dropped.
    fn ask(&mut self, job: &Job, packet: &[u8], answer: &Sender<Vec<u8>>) {
        self.reply(packet);
        if self.is_lost() {
            return;
        }
        match self.telling.answers.wait(&mut self.channel, ANSWER_LIMIT, || !job.cancel.is_canceled()) {
            Ok(Some(frame)) => {
                // A canceled job doesn't wait any more.
                let _gone = answer.send(frame);
            }
            Ok(None) => tracing::debug!("the Director's answer is not waited for any longer"),
            Err(error) => self.note_loss(Err(error)),
        }
    }

    /// Keeps the Director informed while a job runs.
    fn keep_alive(&mut self, job: &Job) {
        let interval = self.daemon.config().file_daemon.heartbeat_interval;
        let due = self.ticks.due(Instant::now(), interval, job.kind());
        if due.heartbeat {
            self.signal(Signal::Heartbeat);
        }
        if due.progress {
            let progress = &job.progress;
            self.reply(&texts::progress(job.identity.job_id, progress.files(), progress.job_bytes()));
        }
    }
}

/// What is to be sent at a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Due {
    heartbeat: bool,
    progress: bool,
}

impl Ticks {
    /// What is due now, and counts as sent: a heartbeat when its interval has passed, which is zero
    /// for none, and progress every 30 s. Of progress the first look only starts the clock.
    fn due(&mut self, now: Instant, interval: Duration, kind: JobKind) -> Due {
        let since = |last| now.saturating_duration_since(last);
        let heartbeat = !interval.is_zero() && since(self.heartbeat) >= interval;
        if heartbeat {
            self.heartbeat = now;
        }
        let last = *self.progress.get_or_insert(now);
        let progress = since(last) >= PROGRESS_INTERVAL && kind != JobKind::System;
        if progress {
            self.progress = Some(now);
        }
        Due { heartbeat, progress }
    }
}

fn thread_name(job: &Job) -> String {
    format!("job {}", job.identity.job_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which a job of this kind, looked at in these steps, sends heartbeats and
    /// progress within 100 s.
    fn sent(kind: JobKind, step: Duration, interval: u64) -> (Vec<u64>, Vec<u64>) {
        let start = Instant::now();
        let mut ticks = Ticks { heartbeat: start, progress: None };
        let looks = (1..).map(|look| step * look).take_while(|passed| passed.as_secs() <= 100);
        let looks: Vec<_> = looks
            .map(|passed| (passed.as_secs(), ticks.due(start + passed, Duration::from_secs(interval), kind)))
            .collect();
        let when = |what: fn(&Due) -> bool| looks.iter().filter(|(_, due)| what(due)).map(|(at, _)| *at).collect();
        (when(|due| due.heartbeat), when(|due| due.progress))
    }

    /// Reference 01 §17, 02 §6.8.
    #[test]
    fn heartbeats_and_progress_are_sent_at_the_first_look_after_their_time() {
        let every_5: Vec<_> = (5..=100).step_by(5).collect();
        let (heartbeats, progress) = sent(JobKind::Backup, BACKUP_TICK, 3);
        assert_eq!((heartbeats, progress), (every_5, vec![35, 65, 95]));
        assert_eq!(sent(JobKind::Backup, BACKUP_TICK, 12).0, [15, 30, 45, 60, 75, 90]);
        assert_eq!(sent(JobKind::Restore, RESTORE_TICK, 3), (vec![30, 60, 90], vec![60, 90]));
        assert_eq!(sent(JobKind::Verify, RESTORE_TICK, 45).0, [60]);
        for interval in [0, 300] {
            assert_eq!(sent(JobKind::System, BACKUP_TICK, interval), (vec![], vec![]));
        }
    }
}
