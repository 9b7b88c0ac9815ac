//! The watchdog's question: is anything stuck?
//!
//! Stuck is what nothing from outside can resolve: a lock that is never released, a loop that
//! accepts connections or waits for a time and does not come round, a backup whose threads all wait
//! for each other. A job that waits for a Storage Daemon, a Director, a program or a disk is not
//! stuck, however long that takes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::delivery::writer::Writer;
use crate::shared::daemon::Daemon;
use crate::shared::pulses::GRACE;

/// Remembers the last look.
#[derive(Debug)]
pub(crate) struct Probe {
    daemon: Arc<Daemon>,
    standing: Standing,
}

impl Probe {
    /// For this daemon.
    pub(crate) fn new(daemon: Arc<Daemon>) -> Self {
        Self { daemon, standing: Standing::default() }
    }

    /// What is stuck. Does not return if a lock of the registry is never released.
    pub(crate) fn stuck(&mut self) -> Vec<String> {
        self.daemon.supervisor.prove_alive();
        let now = Instant::now();
        let mut stuck = self.daemon.pulses.overdue(now);
        if !Writer::of_the_process().is_alive() {
            stuck.push("host log".to_owned());
        }
        let mut seen = Vec::new();
        for job in self.daemon.supervisor.running_jobs() {
            // The cancel wakes the threads of a job that is to end.
            if let Some(place) = job.progress.stages().standstill().filter(|_| !job.cancel.is_canceled()) {
                seen.push((job.name(), place));
            }
        }
        stuck.extend(self.standing.see(&seen, now));
        stuck
    }
}

/// Backups in which every thread waits for another one: their positions, and since when.
#[derive(Debug, Default)]
struct Standing(HashMap<String, (u64, Instant)>);

impl Standing {
    /// Those whose position has not changed for longer than a busy host takes to wake a thread.
    fn see(&mut self, jobs: &[(String, u64)], now: Instant) -> Vec<String> {
        let since =
            |job: &str, place: u64| self.0.get(job).filter(|(known, _)| *known == place).map_or(now, |(_, at)| *at);
        let seen: HashMap<_, _> = jobs.iter().map(|(job, place)| (job.clone(), (*place, since(job, *place)))).collect();
        self.0 = seen;
        let stuck = self.0.iter().filter(|(_, (_, since))| now.saturating_duration_since(*since) >= GRACE);
        stuck.map(|(job, _)| format!("job {job}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_job_that_stands_at_one_place_is_stuck_and_one_that_moves_is_not() {
        let (mut standing, start) = (Standing::default(), Instant::now());
        let job = |place| [("nightly".to_owned(), place)];
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(standing.see(&job(7), start).is_empty());
        assert!(standing.see(&job(7), after(30)).is_empty());
        assert!(standing.see(&job(8), after(50)).is_empty(), "it has moved");
        assert!(standing.see(&job(8), after(80)).is_empty());
        assert!(standing.see(&[], after(100)).is_empty(), "one of its threads works");
        assert!(standing.see(&job(8), after(120)).is_empty());
        assert_eq!(standing.see(&job(8), after(180)), ["job nightly"]);
        assert_eq!(standing.see(&job(8), after(300)), ["job nightly"]);
    }
}
