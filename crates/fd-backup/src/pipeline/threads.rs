//! How threads of the pipeline begin and end. If one ends unexpectedly, all others end, too.

use std::io;
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::pipeline::batch::Batch;
use crate::pipeline::exchange::Exchange;
use crate::pipeline::job::Job;

/// Starts a thread of the pipeline. If it panics, it stops the others.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    job: &'scope Job<'_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let guarded = move || {
        let _taking_part = job.times.take_part();
        let _priority = job.courtesy.as_ref().map(|courtesy| courtesy.join(true));
        let stop = StopOnDrop(&job.exchange);
        let result = work();
        stop.disarm();
        result
    };
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, guarded)
}

/// Stops the pipeline when it is dropped.
pub(crate) struct StopOnDrop<'e>(pub(crate) &'e Exchange<Batch>);

impl StopOnDrop<'_> {
    /// To be called at the regular end of a thread.
    fn disarm(self) {
        let _no_drop = std::mem::ManuallyDrop::new(self);
    }
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
