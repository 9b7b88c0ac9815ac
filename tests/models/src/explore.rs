//! Runs a model in many orders.

use std::env;
use std::io::Write as _;
use std::sync::Arc;

use shuttle::rand::Rng as _;
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};

use crate::execution;

/// In how many orders a model runs.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// In all that there are. The model must not [`pick`].
    All,
    /// In so many in `make test`, half of them any, half of them with few switches at the worst
    /// moments. `FERROFD_SCHEDULES` multiplies them.
    Of(usize),
}

/// How many switches at chosen moments are tried.
const SWITCHES: usize = 3;
/// A model that makes more steps goes round in circles.
const MOST_STEPS: usize = 300_000;
/// Bytes of each thread's stack: a whole backup's.
const STACK: usize = 1 << 20;

/// Runs the model in so many orders, and says how many these were.
///
/// # Panics
/// In one of them the model panics, or no thread can go on. The order is printed, for
/// `shuttle::replay`.
pub fn explore(name: &str, count: Count, model: impl Fn() + Send + Sync + 'static) {
    let times = number("FERROFD_SCHEDULES", 1);
    let seed = u64::try_from(number("FERROFD_SEED", 1)).unwrap_or(1);
    let model = Arc::new(move || {
        execution::begin();
        model();
    });
    let schedules = match count {
        Count::All => run(DfsScheduler::new(None, false), &model),
        Count::Of(short) => {
            let each = short.saturating_mul(times) / 2;
            run(RandomScheduler::new_from_seed(seed, each), &model)
                + run(PctScheduler::new_from_seed(seed, SWITCHES, each), &two_threads(model))
        }
    };
    let all = if matches!(count, Count::All) { "all " } else { "" };
    // A test that passes is silent, unless it is told otherwise.
    let _said = writeln!(std::io::stderr(), "model {name}: {all}{schedules} orders");
}

/// A number below `end`, any one.
pub fn pick(end: usize) -> usize {
    shuttle::rand::thread_rng().gen_range(0..end.max(1))
}

/// The scheduler wants two threads in each execution.
fn two_threads(model: Arc<impl Fn() + Send + Sync + 'static>) -> Arc<impl Fn() + Send + Sync + 'static> {
    Arc::new(move || {
        let beside = shuttle::thread::spawn(|| {});
        model();
        drop(beside);
    })
}

fn run(scheduler: impl Scheduler + 'static, model: &Arc<impl Fn() + Send + Sync + 'static>) -> usize {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    config.silence_warnings = true;
    let model = Arc::clone(model);
    Runner::new(scheduler, config).run(move || model())
}

fn number(variable: &str, default: usize) -> usize {
    env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
