//! Where requests are worked on, and waiting for them until the job is canceled.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::error::S3Error;

/// Most threads that work on requests.
const MOST_THREADS: usize = 4;
/// How long a canceled job waits for what it must still say to a server.
const MOMENT: Duration = Duration::from_secs(1);

/// The threads of this process that work on requests. They are started with the first command, in a
/// plugin host only.
pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let runtime =
        Builder::new_multi_thread().worker_threads(threads).thread_name("s3").enable_io().enable_time().build()?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

/// Waits for this on the calling thread, but no longer than [`MOMENT`].
pub(crate) fn wait_a_moment<T>(work: impl Future<Output = T>) -> Option<T> {
    runtime().ok()?.block_on(async { tokio::time::timeout(MOMENT, work).await.ok() })
}

/// Whether a job was canceled.
#[derive(Clone, Debug)]
pub(crate) struct Cancel(watch::Sender<bool>);

impl Default for Cancel {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Cancel {
    /// The job is canceled.
    pub(crate) fn set(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was.
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for this on the calling thread, but no longer than until the job is canceled.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, S3Error> {
        let runtime = runtime().map_err(|error| S3Error::connection(&fd_os::io_error_text(&error)))?;
        let mut canceled = self.0.subscribe();
        runtime.block_on(async move {
            let mut canceled = pin!(canceled.wait_for(|canceled| *canceled));
            let mut work = pin!(work);
            poll_fn(|context| {
                if canceled.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(S3Error::Canceled));
                }
                work.as_mut().poll(context).map(Ok)
            })
            .await
        })
    }
}
