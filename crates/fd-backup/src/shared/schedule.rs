//! For tests: what happens to the threads of a job at moments that a seed determines. Each time a
//! thread asks whether its job is stopped, before each file and each read, it may be delayed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

#[cfg(feature = "models")]
use {
    fd_messages::CancelToken,
    std::sync::{Arc, atomic::AtomicBool},
};

use fd_os::sync::thread;

/// See the module.
#[derive(Debug)]
pub(crate) enum Schedule {
    /// Delays of up to 200 µs, and numbers of workers that change.
    Random { seed: u64, steps: AtomicU64 },
    /// Each step of a worker takes so long.
    Late(Duration),
    /// Workers hang after so many steps, until they are let go.
    Hanging {
        steps: AtomicU64,
        /// How many hang; `None` once they are let go.
        hanging: Mutex<Option<usize>>,
        news: Condvar,
    },
    /// Something happens at one step, and the number of workers changes.
    #[cfg(feature = "models")]
    Model { steps: AtomicU64, then: Then },
}

/// What happens at a step of a model.
#[cfg(feature = "models")]
#[derive(Debug)]
pub(crate) enum Then {
    Nothing,
    Cancel(CancelToken),
    Panic,
    /// The thread hangs until the job is over, which is canceled.
    Hang {
        token: CancelToken,
        is_over: Arc<AtomicBool>,
    },
}

impl Schedule {
    pub(crate) fn random(seed: u64) -> Self {
        Self::Random { seed, steps: AtomicU64::new(0) }
    }

    pub(crate) fn hanging(after: u64) -> Self {
        Self::Hanging { steps: AtomicU64::new(after), hanging: Mutex::new(Some(0)), news: Condvar::new() }
    }

    /// A step of a thread. Returns how many workers are wanted from now on, if that changes.
    pub(crate) fn step(&self) -> Option<usize> {
        let is_worker = thread::current().name() == Some("worker");
        match self {
            Self::Random { seed, steps } => {
                let number = mixed(seed ^ steps.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9));
                if number.is_multiple_of(4) {
                    thread::sleep(Duration::from_micros(number / 4 % 200));
                }
                let wanted = [1, 2, 5, 20][usize::try_from(number / 1024 % 4).unwrap()];
                (number / 4096).is_multiple_of(8).then_some(wanted)
            }
            Self::Late(delay) => {
                if is_worker {
                    thread::sleep(*delay);
                }
                None
            }
            Self::Hanging { steps, hanging, news } => {
                let left = steps.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                if is_worker && left.is_err() {
                    let mut hanging = hanging.lock().unwrap();
                    hanging.iter_mut().for_each(|number| *number += 1);
                    news.notify_all();
                    let _go_on = news.wait_while(hanging, |number| number.is_some()).unwrap();
                }
                None
            }
            #[cfg(feature = "models")]
            Self::Model { steps, then } => {
                if steps.fetch_sub(1, Ordering::Relaxed) == 0 {
                    match then {
                        Then::Nothing => {}
                        Then::Cancel(token) => token.cancel(),
                        Then::Hang { token, is_over } => {
                            token.cancel();
                            while !is_over.load(Ordering::Relaxed) {
                                thread::yield_now();
                            }
                        }
                        // Not `panic!`: the scheduler would take it for a failure of the model.
                        Then::Panic => std::panic::resume_unwind(Box::new("on purpose")),
                    }
                }
                (models::pick(4) == 0).then(|| [1, 2, 5, 20][models::pick(4)])
            }
        }
    }

    /// From now on, each worker hangs at its next step.
    pub(crate) fn hang(&self) {
        if let Self::Hanging { steps, .. } = self {
            steps.store(0, Ordering::Relaxed);
        }
    }

    /// Waits until a worker hangs.
    pub(crate) fn wait_until_one_hangs(&self) {
        if let Self::Hanging { hanging, news, .. } = self {
            let _hangs = news.wait_while(hanging.lock().unwrap(), |number| *number == Some(0)).unwrap();
        }
    }

    /// Lets all workers go on.
    pub(crate) fn let_go(&self) {
        if let Self::Hanging { hanging, news, .. } = self {
            *hanging.lock().unwrap() = None;
            news.notify_all();
        }
    }
}

/// A number that has nothing in common with the neighbours' ones.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
