//! Walks in many orders of their scouts; and what can happen to these at any call.

use ::models::{Count, allow_threads, explore, pass, pick, running};

use super::*;
use fd_os::sync::thread;

/// Longer than what was found stays fresh.
const LONG: Duration = Duration::from_secs(11);
const STEP: Duration = Duration::from_millis(100);

/// What happens at one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Nothing,
    /// What was found before gets old.
    Pause,
    Cancel,
    /// A scout panics.
    Panic,
    /// It does not return until the walk is over, which is canceled.
    Hang,
    /// From one thread on, no more can be started.
    NoThread,
}

/// Calls of which one meets its fate.
struct Fateful {
    /// So many lookups are late, really: then more are made at a time.
    late: AtomicU64,
    fate: Fate,
    calls: AtomicU64,
    host: Arc<Host>,
    is_over: Arc<AtomicBool>,
}

impl Fateful {
    fn call(&self) {
        thread::yield_now();
        if self.calls.fetch_sub(1, Ordering::Relaxed) != 0 {
            return;
        }
        let is_scout = thread::current().name() == Some("scout");
        match self.fate {
            Fate::Pause => pass(LONG),
            Fate::Cancel => self.host.is_canceled.store(true, Ordering::Relaxed),
            // Not `panic!`: the scheduler would take it for a failure of the model.
            Fate::Panic if is_scout => std::panic::resume_unwind(Box::new("on purpose")),
            Fate::Hang if is_scout => {
                self.host.is_canceled.store(true, Ordering::Relaxed);
                while !self.is_over.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            }
            _ => {}
        }
    }
}

impl Calls for Fateful {
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        if self.late.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |late| late.checked_sub(1)).is_ok() {
            sleep(Duration::from_millis(1));
        }
        self.call();
        Kernel.lstat(at, name)
    }

    fn open(&self, at: BorrowedFd<'_>, name: &[u8], identity: (u64, u64)) -> Result<OwnedFd, Errno> {
        self.call();
        Kernel.open(at, name, identity)
    }
}

fn check(top: &Path, expected: &[String], fate: Fate) {
    let host = Arc::new(Host { is_canceled: false.into() });
    let is_over = Arc::new(AtomicBool::new(false));
    let at = u64::try_from(pick(expected.len() * 2)).unwrap();
    let depth = NonZeroU16::new([0, 2, 3, 8][pick(4)]).map_or(LookupDepth::Adaptive, LookupDepth::Fixed);
    let late = if depth == LookupDepth::Adaptive { 4 } else { 0 }.into();
    let calls = Fateful { late, fate, calls: at.into(), host: Arc::clone(&host), is_over: Arc::clone(&is_over) };
    // One that panics may be the only one.
    if fate == Fate::NoThread || fate == Fate::Panic && pick(2) == 0 {
        allow_threads(1 + pick(2));
    }
    let clock = matches!(fate, Fate::Cancel | Fate::Hang).then(|| {
        let (host, is_over) = (Arc::clone(&host), Arc::clone(&is_over));
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if host.is_canceled.load(Ordering::Relaxed) {
                    pass(STEP);
                }
                thread::yield_now();
            }
        })
    });
    let (found, end) = events_at(top, depth, Arc::new(calls), &host);
    is_over.store(true, Ordering::Relaxed);
    if let Some(clock) = clock {
        clock.join().unwrap();
    }
    // Those that were left behind when the time was over.
    while fate != Fate::Nothing && running() > 0 {
        thread::yield_now();
    }
    assert_eq!(running(), 0, "a thread is left");
    match fate {
        Fate::Nothing | Fate::Pause | Fate::NoThread => assert_eq!(found, expected, "{fate:?}"),
        Fate::Cancel | Fate::Hang if end == WalkEnd::Complete => assert_eq!(found, expected, "{fate:?}"),
        Fate::Cancel | Fate::Hang => assert!(expected.starts_with(&found), "{fate:?}: {found:?}"),
        Fate::Panic => {
            let (known, messages): (Vec<_>, Vec<_>) = found.iter().partition(|event| expected.contains(event));
            let mut rest = expected.iter();
            assert!(known.iter().all(|event| rest.any(|other| other == *event)), "another order: {found:?}");
            assert!(known.len() == expected.len() || !messages.is_empty(), "nothing is said: {found:?}");
        }
    }
}

#[test]
fn scouts_change_nothing_but_the_time() {
    let folder = folders_with(14);
    let expected = events(folder.path(), 1, Arc::new(Kernel));
    explore("scouts", Count::Of(2000), move || {
        let fates = [Fate::Nothing, Fate::Pause, Fate::Cancel, Fate::Panic, Fate::Hang, Fate::NoThread];
        check(folder.path(), &expected, fates[pick(fates.len())]);
    });
}
