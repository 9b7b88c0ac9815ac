//! The pauses of a job's threads while other programs are short of something.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::exchange::idle;
use crate::manners::courtesy::JobCourtesy;

/// A thread that gives way rests after so much work: short pauses, many of them.
const WORK_BEFORE_REST: Duration = Duration::from_millis(5);
/// A rest is computed for at most this much work. Longer intervals were mostly waiting.
const MOST_WORK_BEFORE_REST: Duration = Duration::from_millis(20);
/// A rest is at most this share of the time, in thousandths.
const MOST_REST: u32 = 900;
/// After so many steps a thread looks at the clock.
const STEPS: u32 = 64;

/// The pauses of one thread.
#[derive(Debug)]
pub(crate) struct Pace {
    courtesy: Option<Arc<JobCourtesy>>,
    /// Since when the thread has worked, while threads are to rest.
    works_since: Option<Instant>,
    steps: u32,
}

impl Pace {
    pub(crate) fn new(courtesy: Option<Arc<JobCourtesy>>) -> Self {
        Self { courtesy, works_since: None, steps: 0 }
    }

    /// To be called between two steps of work; pauses if others need what this thread uses. Costs
    /// next to nothing while they don't.
    pub(crate) fn step(&mut self, is_stopped: &dyn Fn() -> bool) {
        let Some(courtesy) = &self.courtesy else { return };
        let rest = courtesy.rest().min(MOST_REST);
        if rest == 0 {
            self.works_since = None;
            self.steps = self.steps.wrapping_add(1);
            if self.steps.is_multiple_of(STEPS) {
                courtesy.works_on();
            }
            return;
        }
        let now = Instant::now();
        let worked = now.saturating_duration_since(*self.works_since.get_or_insert(now));
        if worked < WORK_BEFORE_REST || is_stopped() {
            return;
        }
        thread::sleep(worked.min(MOST_WORK_BEFORE_REST) * rest / (1000 - rest));
        let end = Instant::now();
        let rested = end.saturating_duration_since(now);
        courtesy.add_rest(rested);
        idle::add(rested);
        self.works_since = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use fd_messages::Pressure;

    use super::*;
    use crate::manners::budget::Manners;
    use crate::manners::courtesy::Courtesy;
    use crate::manners::governor::Decision;

    /// Between two looks at the host.
    const LOOK: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(1);

    #[test]
    fn a_thread_rests_after_work_while_others_need_something() {
        let courtesy = Courtesy::new(Manners::Generous);
        let begun = Instant::now();
        let job = courtesy.begin(&Arc::default(), begun).unwrap();
        let mut pace = Pace::new(Some(Arc::clone(&job)));
        let mut step_rests = |worked| {
            let before = idle::total().time;
            pace.works_since = Instant::now().checked_sub(worked);
            pace.step(&|| false);
            (idle::total().time.saturating_sub(before), pace.works_since)
        };
        assert_eq!(step_rests(LONG).1, None, "nobody needs anything");
        let decision = Decision { rest: 750, reason: Some(Pressure::Io), cpu_is_wanted: false };
        job.take(decision, LOOK, begun + LOOK);
        let before = Instant::now();
        let (rested, since) = step_rests(LONG);
        assert!(rested >= 3 * MOST_WORK_BEFORE_REST, "{rested:?}");
        assert!(since > Some(before), "it works again");
        let (_, since) = step_rests(Duration::ZERO);
        assert!(since > Some(before));
        job.take(Decision { rest: 0, reason: None, ..decision }, LOOK, begun + 2 * LOOK);
        assert_eq!(step_rests(LONG).1, None);
    }
}
