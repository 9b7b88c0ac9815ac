//! The priority of the threads that work for a walk.

use rustix::process::{Pid, getpriority_process, setpriority_process};

/// The priority of a walk's thread (its nice value), which those that work for it have as well. A
/// new thread gets it from the one that starts it, but keeps it when a backup that has given away
/// enough gets a higher one: beside busy programs the walk would wait for threads that they leave
/// next to nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priority {
    of: Pid,
}

impl Priority {
    /// That of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        Self { of: rustix::thread::gettid() }
    }

    /// Gives it to the calling thread, if it is another one. If that thread has ended, or this one
    /// may not get a higher one, it keeps its own.
    pub(crate) fn follow(self) {
        let Ok(wanted) = getpriority_process(Some(self.of)) else { return };
        if getpriority_process(None).is_ok_and(|own| own != wanted) {
            let _may_fail = setpriority_process(None, wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_thread_gets_the_priority_that_another_one_has_now() {
        // A higher one may be refused to the test.
        std::thread::spawn(|| {
            let (priority, before) = (Priority::of_this_thread(), getpriority_process(None).unwrap());
            let ((ask, asked), (tell, told)) = (channel(), channel());
            std::thread::spawn(move || {
                while asked.recv().is_ok() {
                    priority.follow();
                    tell.send(getpriority_process(None).unwrap()).unwrap();
                }
            });
            for nice in [before, (before + 3).min(19)] {
                setpriority_process(None, nice).unwrap();
                ask.send(()).unwrap();
                assert_eq!(told.recv(), Ok(nice));
            }
        })
        .join()
        .unwrap();
    }
}
