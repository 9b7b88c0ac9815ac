//! `level`: what counts as changed, by the Director's clock and by ours (reference 02 §4.2).

use fd_bsock::Signal;
use fd_messages::MessageType;
use fd_plugins::Event;
use fd_session::clock::{ClockSync, parse_btime};
use fd_session::command::{BackupLevel, Level, LevelFlags, Since};
use fd_session::texts::MALFORMED_LEVEL;
use fd_transport::{IDLE_LIMIT, Received};

use super::conversation::{Conversation, Flow};
use crate::clock;
use crate::shared::job::{JobKind, JobLevel};
use crate::texts;

impl Conversation<'_> {
    pub(super) fn set_level(&mut self, flags: LevelFlags, level: Level) -> Flow {
        self.job().note_aim(JobKind::Backup);
        let known = &mut self.asked.level.flags;
        known.accurate |= flags.accurate;
        known.rerunning |= flags.rerunning;
        let accurate = known.accurate;
        self.tell_facts(|told| told.accurate = accurate);
        match level {
            Level::Whole(level) => {
                self.job().set_level(JobLevel::Backup(level));
                self.tell_plugins(&Event::Level(level.letter()));
                self.replied(texts::OK_LEVEL)
            }
            Level::Awaiting(level) => {
                self.job().set_level(JobLevel::Backup(level));
                Flow::GoOn
            }
            Level::Since(since) => {
                if self.job().level() == JobLevel::None {
                    self.job().set_level(JobLevel::Backup(BackupLevel::Since));
                }
                self.synchronize(since)
            }
        }
    }

    /// Asks the Director for its time and moves `since` to our clock.
    fn synchronize(&mut self, since: Since) -> Flow {
        self.asked.level.previous_job = since.previous_job;
        let mut sync = ClockSync::default();
        while sync.wants_more() {
            let rounds = sync.rounds_at_once();
            let asked = clock::microseconds();
            (0..rounds).for_each(|_| self.queue_signal(Signal::BTime));
            for _ in 0..rounds {
                let answer = match self.channel.recv(IDLE_LIMIT) {
                    Ok(Received::Data(answer)) => answer.to_vec(),
                    _ => return self.refuse(since.clockless),
                };
                let Some(theirs) = parse_btime(&answer) else {
                    self.say(MessageType::Fatal, &MALFORMED_LEVEL.of(&answer));
                    return Flow::End;
                };
                sync.answer(asked, clock::microseconds(), theirs);
            }
        }
        let adjustment = sync.adjustment();
        if adjustment.abs() > 3 {
            let kind = if adjustment.abs() > 600 { MessageType::Warning } else { MessageType::Info };
            self.say(kind, &texts::clocks_differ(adjustment));
        }
        let since = since.time.saturating_add(adjustment);
        self.asked.level.since = Some(since);
        let previous_job = self.asked.level.previous_job.clone();
        self.tell_facts(|told| (told.since, told.previous_job) = (since, previous_job));
        self.tell_plugins(&Event::Since(since));
        self.tell_plugins(&Event::Level(self.job().level().code()));
        self.end_of_data();
        self.replied(texts::OK_LEVEL)
    }
}
