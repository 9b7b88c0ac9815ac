//! A session and its job's own thread, in many orders.

use ::models::{Count, explore, pass, running};

use super::*;
use crate::shared::job::Identity;
use crate::sync::thread;

/// A canceled job whose time of grace ends while its thread does.
fn cancel_one(ends: impl FnOnce() -> u32 + Send + 'static) -> bool {
    let job = Job::new(Identity::default(), 0);
    let mut own = OwnThread::start("job".to_owned(), ends).unwrap();
    job.cancel.cancel();
    assert!(!own.is_left(&job, || false));
    pass(GRACE);
    let is_left = own.is_left(&job, || false);
    assert_eq!(is_left, job.cancel.is_abandoned(), "only a thread that is left is told so");
    // The session doesn't; here it shows that the thread ends.
    let result = own.join();
    assert!(result.is_err() || result.is_ok_and(|number| number == 7));
    is_left
}

#[test]
fn a_thread_is_left_behind_or_joined() {
    explore("own thread", Count::All, || {
        cancel_one(|| {
            thread::yield_now();
            7
        });
        assert_eq!((LEFT.load(Ordering::Relaxed), running()), (0, 0));
    });
    explore("own thread that panics", Count::All, || {
        // Not `panic!`: the scheduler would take it for a failure of the model.
        cancel_one(|| std::panic::resume_unwind(Box::new("on purpose")));
        assert_eq!((LEFT.load(Ordering::Relaxed), running()), (0, 0));
    });
    explore("own threads, one place", Count::Of(2000), || {
        LEFT.store(MOST_LEFT - 1, Ordering::Relaxed);
        let sessions = [(); 3].map(|()| {
            thread::spawn(|| {
                let left = cancel_one(|| {
                    thread::yield_now();
                    7
                });
                assert!(LEFT.load(Ordering::Relaxed) <= MOST_LEFT, "too many are left");
                left
            })
        });
        for session in sessions {
            let _is_left = session.join().unwrap();
        }
        assert_eq!(LEFT.load(Ordering::Relaxed), MOST_LEFT - 1);
        LEFT.store(0, Ordering::Relaxed);
    });
}
