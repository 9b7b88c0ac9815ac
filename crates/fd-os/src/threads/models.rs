//! Threads that end while they are left behind, in many orders.

use ::models::{Count, explore, pass, running};

use super::*;

fn taken() -> usize {
    OF_DAEMON.0.load(Ordering::Relaxed)
}

fn is_its_result(ended: &thread::Result<u32>) -> bool {
    ended.as_ref().map_or(true, |number| *number == 7)
}

/// The owner doesn't join a thread that is left; here it shows that it ends.
fn leave_one(work: impl FnOnce() -> u32 + Send + 'static) {
    let thread = start("thread", work).unwrap();
    let _may_have_ended = thread.leave();
    assert!(is_its_result(&thread.join()));
    assert_eq!((taken(), running()), (0, 0));
}

/// Not `panic!`: the scheduler would take it for a failure of the model.
fn panics() -> u32 {
    std::panic::resume_unwind(Box::new("on purpose"))
}

fn works() -> u32 {
    thread::yield_now();
    7
}

#[test]
fn a_thread_is_left_behind_or_joined() {
    explore("thread", Count::All, || leave_one(works));
    explore("thread that panics", Count::All, || leave_one(panics));
    explore("thread that has some time", Count::Of(2000), || {
        let thread = start("thread", works).unwrap();
        let mut glances = 0;
        let ended = thread.end(|| {
            pass(GLANCE);
            glances += 1;
            glances < 3
        });
        assert!(ended.is_none_or(|ended| is_its_result(&ended)));
        while running() > 0 {
            thread::yield_now();
        }
        assert_eq!(taken(), 0);
    });
    explore("threads, one place", Count::Of(2000), || {
        OF_DAEMON.0.store(MOST - 1, Ordering::Relaxed);
        let owners = [(); 3].map(|()| {
            thread::spawn(|| {
                let thread = start("thread", works).unwrap();
                let _may_have_ended = thread.leave();
                assert!(taken() <= MOST, "too many are left");
                assert!(is_its_result(&thread.join()));
            })
        });
        for owner in owners {
            owner.join().unwrap();
        }
        assert_eq!(taken(), MOST - 1);
        OF_DAEMON.0.store(0, Ordering::Relaxed);
    });
}
