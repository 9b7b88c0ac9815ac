//! The one thread that writes to what others read or own: the host's log, standard output and
//! error output, files of the operator.
//!
//! Whoever reads there may stop reading, and then a write takes as long as that lasts. So no other
//! thread writes: it hands over what is to be done, in order. If too much waits, it waits a moment,
//! and then what it had is lost and counted; the count is told when the writer gets on.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};

/// Texts that may wait.
const WAITING: usize = 1000;
/// How long a thread waits for room, or for what it has handed over. A writer that has not got on
/// for so long is not waited for again until it does.
const PATIENCE: Duration = Duration::from_millis(250);

type Work = Box<dyn FnOnce() + Send>;

/// See the module.
#[derive(Default)]
pub(crate) struct Writer {
    line: OnceLock<Sender<Work>>,
    /// It has not got on for [`PATIENCE`].
    stands: AtomicBool,
    lost: AtomicU64,
}

/// That of the process.
static WRITER: Writer = Writer { line: OnceLock::new(), stands: AtomicBool::new(false), lost: AtomicU64::new(0) };

impl Writer {
    /// That of the process.
    pub(crate) fn of_the_process() -> &'static Self {
        &WRITER
    }

    /// To its thread; `None` if there is none, and the system has none now.
    fn line(&'static self) -> Option<&'static Sender<Work>> {
        self.line.get().or_else(|| self.start(Builder::new().name("host log".to_owned())))
    }

    fn start(&'static self, thread: Builder) -> Option<&'static Sender<Work>> {
        let (sender, works) = bounded::<Work>(WAITING);
        let write = move || {
            for work in works {
                work();
                self.stands.store(false, Ordering::Relaxed);
            }
        };
        thread.spawn(write).ok()?;
        // If another thread was faster, its line counts, and the thread of this one ends at once.
        Some(self.line.get_or_init(|| sender))
    }

    /// Does this behind what was handed over before; `false` if it is lost.
    pub(crate) fn hand_over(&'static self, work: impl FnOnce() + Send + 'static) -> bool {
        let taken = self.send(Box::new(work));
        if !taken {
            self.lose();
        }
        taken
    }

    fn send(&'static self, work: Work) -> bool {
        let taken = self.line().is_some_and(|line| line.send_timeout(work, self.patience()).is_ok());
        if !taken {
            self.stands.store(true, Ordering::Relaxed);
        }
        taken
    }

    fn patience(&self) -> Duration {
        if self.stands.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE }
    }

    /// Waits a moment until all that was handed over is done; whether it is.
    pub(crate) fn flush(&'static self) -> bool {
        let (done, is_done) = bounded(1);
        let tell = move || {
            // The asker may have gone.
            let _gone = done.send(());
        };
        let is_done = self.send(Box::new(tell)) && is_done.recv_timeout(self.patience()).is_ok();
        if !is_done {
            self.stands.store(true, Ordering::Relaxed);
        }
        is_done
    }

    /// How much was lost since the last time.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// One more is lost, in the writer itself.
    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether its thread is there, or not needed yet. That it waits for a reader is nothing that a
    /// new start of the daemon would cure.
    pub(crate) fn is_alive(&self) -> bool {
        // A thread that has ended has dropped its end, and nothing can be sent any more.
        self.line
            .get()
            .is_none_or(|line| !matches!(line.try_send(Box::new(|| ())), Err(error) if error.is_disconnected()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn writer() -> &'static Writer {
        Box::leak(Box::default())
    }

    /// Returns when all is done that was handed over before. Not by `flush`: one that does not wait
    /// may ask again faster than the thread gets on.
    fn wait_for(writer: &'static Writer) {
        let (done, is_done) = channel();
        let tell = || {
            let done = done.clone();
            writer.hand_over(move || done.send(()).unwrap())
        };
        while !tell() {
            std::thread::yield_now();
        }
        is_done.recv().unwrap();
    }

    #[test]
    fn what_is_handed_over_is_done_in_order() {
        let (writer, (done, order)) = (writer(), channel());
        assert!(writer.is_alive());
        for number in 0..WAITING {
            let done = done.clone();
            assert!(writer.hand_over(move || done.send(number).unwrap()));
        }
        wait_for(writer);
        drop(done);
        assert!(order.try_iter().eq(0..WAITING));
        assert!(writer.is_alive() && writer.take_lost() == 0);
    }

    #[test]
    fn a_thread_that_could_not_be_started_is_started_for_the_next_text() {
        let writer = writer();
        assert!(writer.start(Builder::new().stack_size(1 << 60)).is_none());
        assert!(writer.is_alive(), "a new start of the daemon would cure nothing");
        wait_for(writer);
        assert!(writer.is_alive());
    }

    #[test]
    fn a_reader_that_has_stopped_costs_a_moment_and_the_texts_are_counted() {
        let writer = writer();
        let (reads_again, reader) = channel::<()>();
        assert!(writer.hand_over(move || reader.recv().unwrap()));
        let mut taken = 0_u64;
        while writer.hand_over(|| ()) {
            taken += 1;
        }
        assert!(taken <= WAITING as u64, "{taken}");
        // Each of these would wait for ever, or take a moment: there are minutes of them.
        for _ in 0..10_000 {
            assert!(!writer.hand_over(|| ()) && !writer.flush());
        }
        assert!(writer.is_alive(), "it waits, which is no fault of its own");
        assert_eq!(writer.take_lost(), 10_001);
        reads_again.send(()).unwrap();
        wait_for(writer);
        assert!(writer.hand_over(|| ()));
    }
}
