//! What the collectors of Statistics resources are doing, for `.status statistics`
//! (reference 06 §11.3).

use std::sync::OnceLock;
use std::time::Duration;

use fd_config::Statistics;
use fd_os::lock::Mutex;

use crate::clock;

/// The longest time between two updates of the metrics.
const DAY: Duration = Duration::from_secs(86_400);

/// All collectors, in the order of their resources.
#[derive(Debug, Default)]
pub(crate) struct Collectors {
    states: Vec<Mutex<State>>,
    /// When the collectors began.
    since: OnceLock<i64>,
}

/// What a collector is doing.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// Whether it goes on.
    pub running: bool,
    /// When it last collected, seconds since 1970.
    pub last: i64,
    /// What it keeps for later.
    pub spool: Spool,
    /// What went wrong last.
    pub error: String,
}

/// What a collector keeps for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Spool {
    /// It never does.
    #[default]
    Disabled,
    /// It has not called yet.
    Unknown,
    /// Nothing, but it could.
    Enabled,
    /// Lines that the server has not read.
    InProgress,
    /// They are on their way.
    Despooling,
}

/// When the metrics were brought up to date.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Update {
    /// Seconds between two updates; 0 if there are none.
    pub interval: u64,
    /// The last one, seconds since 1970.
    pub last: i64,
}

impl Collectors {
    /// For so many resources; none of them runs yet.
    pub(crate) fn new(count: usize) -> Self {
        Self { states: (0..count).map(|_| Mutex::default()).collect(), since: OnceLock::new() }
    }

    /// What the collector of this resource is doing.
    pub(crate) fn state(&self, number: usize) -> State {
        self.states.get(number).map(|state| state.lock().clone()).unwrap_or_default()
    }

    /// Whether and when the metrics are brought up to date. Ours are always current; the times are
    /// those at which the stock daemon would have done it.
    pub(crate) fn update(&self, resources: &[Statistics]) -> Update {
        let shortest = resources.iter().map(|resource| resource.interval).min().map(|shortest| shortest.min(DAY));
        let (Some(interval), Some(since)) = (shortest, self.since.get()) else { return Update::default() };
        let interval = interval.as_secs();
        let step = i64::try_from(interval).unwrap_or(i64::MAX).max(1);
        let passed = clock::seconds().saturating_sub(*since).max(0);
        Update { interval, last: since.saturating_add(passed - passed % step) }
    }

    /// The collectors begin now.
    pub(crate) fn begin(&self) {
        self.since.get_or_init(clock::seconds);
    }

    /// Notes what the collector of this resource is doing.
    pub(crate) fn change(&self, number: usize, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.states.get(number) {
            change(&mut state.lock());
        }
    }
}
