//! How long a call may take, and why it has no answer.

use std::io;
use std::time::{Duration, Instant};

use crate::api::host::Host;
use crate::library::process::{Process, STEP};
use crate::library::wire::Nonsense;

/// Why a call has no answer.
pub(super) enum Failure {
    /// The line was closed.
    Closed,
    /// The plugin host has said what it may not.
    Nonsense(Nonsense),
    /// The call takes longer than it may.
    Late(Duration),
    /// The job was canceled, and the call goes on.
    Canceled,
    /// The system's error.
    System(io::Error),
}

impl From<Nonsense> for Failure {
    fn from(nonsense: Nonsense) -> Self {
        Self::Nonsense(nonsense)
    }
}

/// How long a call may take.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    started: Instant,
    /// At most so long, whatever happens.
    most: Option<Duration>,
    /// At most so long after its job was canceled.
    grace: Duration,
    /// Since when the job is known to be canceled.
    canceled: Option<Instant>,
    looked: Instant,
}

impl Limits {
    pub(super) fn new(most: Option<Duration>, grace: Duration) -> Self {
        let now = Instant::now();
        Self { started: now, most, grace, canceled: None, looked: now }
    }

    /// Looks ten times a second whether the call may go on.
    pub(super) fn look(&mut self, host: &dyn Host, process: &Process) -> Result<(), Failure> {
        let now = Instant::now();
        if now.saturating_duration_since(self.looked) < STEP {
            return Ok(());
        }
        self.looked = now;
        if process.ended().is_some() {
            return Err(Failure::Closed);
        }
        self.hold(now, host.facts().is_canceled())
    }

    fn hold(&mut self, now: Instant, is_canceled: bool) -> Result<(), Failure> {
        if let Some(most) = self.most
            && now.saturating_duration_since(self.started) >= most
        {
            return Err(Failure::Late(most));
        }
        if is_canceled && now.saturating_duration_since(*self.canceled.get_or_insert(now)) >= self.grace {
            return Err(Failure::Canceled);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_call_has_its_time_and_less_after_a_cancel() {
        let begun = Limits::new(Some(30 * SECOND), 5 * SECOND);
        let at = |seconds: u32| begun.started + seconds * SECOND;
        let mut limits = begun;
        assert!(limits.hold(at(29), false).is_ok());
        assert!(matches!(limits.hold(at(30), false), Err(Failure::Late(most)) if most == 30 * SECOND));
        let mut limits = begun;
        assert!(limits.hold(at(10), true).is_ok());
        assert!(limits.hold(at(14), true).is_ok());
        assert!(matches!(limits.hold(at(15), true), Err(Failure::Canceled)));
        let mut limits = Limits { most: None, ..begun };
        assert!(limits.hold(at(1_000_000), false).is_ok());
    }
}
