//! How a thread of the pipeline begins and ends: none ends unexpectedly without the others.

use std::io;
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::pipeline::batch::Batch;
use crate::pipeline::exchange::Exchange;
use crate::pipeline::job::Job;

/// Starts a thread of the pipeline, which takes the others down with it if it panics.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    job: &'scope Job<'_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let guarded = move || {
        let _taking_part = job.times.take_part();
        let stop = StopOnLeaving(&job.exchange);
        let result = work();
        stop.disarm();
        result
    };
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, guarded)
}

/// Takes the pipeline down when a thread leaves it unexpectedly.
pub(crate) struct StopOnLeaving<'e>(pub(crate) &'e Exchange<Batch>);

impl StopOnLeaving<'_> {
    /// The thread has left as it should.
    fn disarm(self) {
        let _no_drop = std::mem::ManuallyDrop::new(self);
    }
}

impl Drop for StopOnLeaving<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
