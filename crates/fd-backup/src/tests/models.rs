//! Whole backups in many orders of their threads: walker, workers that come and go, the thread of
//! the digests, the sender; and what can happen to them at any step.

use std::fs::{self, File};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ::models::{Count, allow_threads, explore, pass, pick, running};
use fd_messages::{CancelToken, Progress};
use fd_walk::LookupDepth;

use super::support::{Bed, Collector, Log, noise};
use crate::shared::schedule::{Schedule, Then};
use crate::{BackupError, BackupPlan};
use fd_os::sync::thread;

/// A step of the clock, as long as the shortest wait that it ends.
const STEP: Duration = Duration::from_millis(100);

/// What happens to a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Nothing,
    /// It is canceled at a step of any of its threads.
    Cancel,
    /// A thread panics at a step.
    Panic,
    /// A thread hangs, and the job is canceled.
    Hang,
    /// The Storage Daemon is gone.
    Lost,
    /// From one thread on, no more can be started.
    NoThread,
}

/// The tree, and the stream of a backup of it by one thread after the other.
struct Subject {
    bed: Bed,
    wire: Vec<u8>,
    steps: u64,
    /// A thread of it only looks now and then whether its job has failed.
    glances: bool,
}

/// What a backup of the plan sends.
fn subject(bed: Bed, glances: bool) -> Subject {
    let found = Arc::new(std::sync::Mutex::new(None));
    let (bed, to_find) = (Arc::new(bed), Arc::clone(&found));
    let of_model = Arc::clone(&bed);
    // The first one changes access times.
    explore("backup, alone", Count::Of(4), move || {
        let steps = Arc::new(Schedule::Model { steps: AtomicU64::new(u64::MAX), then: Then::Nothing });
        let plan =
            BackupPlan { workers: 1, reading_depth: 1, schedule: Some(Arc::clone(&steps)), ..of_model.plan.clone() };
        let (progress, cancel, mut sink) = (Arc::default(), CancelToken::new(), Collector::default());
        crate::run(&plan, &progress, &Log::new(Arc::clone(&progress)), &cancel, &mut sink).unwrap();
        if let Schedule::Model { steps, .. } = &*steps {
            *to_find.lock().unwrap() = Some((sink.wire, u64::MAX - steps.load(Ordering::Relaxed)));
        }
    });
    let (wire, steps) = found.lock().unwrap().take().unwrap();
    let bed = Arc::into_inner(bed).unwrap();
    Subject { bed, wire, steps, glances }
}

fn check(subject: &Subject, plan: BackupPlan, fate: Fate) {
    let cancel = CancelToken::new();
    let progress: Arc<Progress> = Arc::default();
    let is_over = Arc::new(AtomicBool::new(false));
    let then = match fate {
        Fate::Hang => Then::Hang { token: cancel.clone(), is_over: Arc::clone(&is_over) },
        Fate::Cancel => Then::Cancel(cancel.clone()),
        Fate::Panic => Then::Panic,
        _ => Then::Nothing,
    };
    let at = u64::try_from(pick(usize::try_from(subject.steps).unwrap())).unwrap();
    let schedule = Some(Arc::new(Schedule::Model { steps: AtomicU64::new(at), then }));
    let plan = BackupPlan { schedule, ..plan };
    if fate == Fate::NoThread {
        // The walker is the first.
        allow_threads(1 + pick(3));
    }
    let ends_by_time = matches!(fate, Fate::Cancel | Fate::Hang) || subject.glances && fate != Fate::Nothing;
    // Not so much that threads are left behind which are only slow.
    let step = if subject.glances || fate == Fate::Hang { STEP / 10 } else { STEP / 100 };
    let clock = ends_by_time.then(|| {
        let is_over = Arc::clone(&is_over);
        let cancel = cancel.clone();
        // Time passes when the job is canceled: until then, nobody may wait for it.
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if !matches!(fate, Fate::Cancel | Fate::Hang) || cancel.is_canceled() {
                    pass(step);
                }
                thread::yield_now();
            }
        })
    });
    let lost_at = (fate == Fate::Lost).then(|| 1 + pick(4));
    let mut sink = Collector::with_hook(move |call| lost_at != Some(call));
    let log = Log::new(Arc::clone(&progress));
    let result = crate::run(&plan, &progress, &log, &cancel, &mut sink);
    is_over.store(true, Ordering::Relaxed);
    if let Some(clock) = clock {
        clock.join().unwrap();
    }
    // Those that were left behind.
    while fate == Fate::Hang && running() > 0 {
        thread::yield_now();
    }
    assert_eq!(running(), 0, "a thread is left");
    assert!(subject.wire.starts_with(&sink.wire), "{fate:?}: another stream");
    match (&result, fate) {
        (Ok(()), _) => assert!(subject.wire == sink.wire, "{fate:?}: a part of the stream is missing"),
        (Err(BackupError::Canceled), Fate::Cancel | Fate::Hang)
        | (Err(BackupError::Panicked), Fate::Panic)
        | (Err(BackupError::Sink(_)), Fate::Lost)
        | (Err(BackupError::Thread { .. }), Fate::NoThread) => {}
        (Err(error), _) => panic!("{fate:?}: {error:?}"),
    }
}

/// Runs backups of this tree.
fn explore_backups(name: &str, orders: usize, bed: Bed, glances: bool) {
    let subject = subject(bed, glances);
    explore(name, Count::Of(orders), move || {
        let mut plan = BackupPlan {
            workers: 1 + pick(3),
            reading_depth: [1, 4, 20][pick(3)],
            memory_budget: [1, 2 << 20, 24 << 20][pick(3)],
            ..subject.bed.plan.clone()
        };
        if let Some(scouts) = NonZeroU16::new([1, 1, 3][pick(3)]) {
            plan.walk.lookup_depth = LookupDepth::Fixed(scouts);
        }
        let fates = [Fate::Nothing, Fate::Cancel, Fate::Panic, Fate::Hang, Fate::Lost, Fate::NoThread];
        let fate = fates[pick(fates.len())];
        check(&subject, plan, fate);
    });
}

#[test]
fn a_backup_sends_the_same_or_says_why_not() {
    let bed = Bed::new("K");
    (0..3).for_each(|n| fs::create_dir(bed.path(&format!("d{n}"))).unwrap());
    for n in 0..10_usize {
        let path = bed.file(&format!("d{}/f{n}", n % 3), &noise(n as u64, [0, 1, 700][n % 3]));
        if n % 5 == 0 {
            fs::hard_link(path, bed.path(&format!("d{}/h{n}", (n + 1) % 3))).unwrap();
        }
    }
    for n in 0..2 {
        File::create(bed.path(&format!("d{n}/large"))).unwrap().set_len(530_000).unwrap();
    }
    explore_backups("backup", 1000, bed, false);
}

/// Large files in the page cache, which a thread of its own digests before the workers read them.
#[test]
fn digests_ahead_change_nothing_but_the_time() {
    let bed = Bed::new("MK");
    for n in 0..5 {
        bed.file(&format!("large {n}"), &noise(n, 530_000));
    }
    explore_backups("backup, digests ahead", 100, bed, true);
}
