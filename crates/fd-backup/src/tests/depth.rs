//! Storage that answers late, or not at all: the number of workers, and what stays the same.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fd_messages::MessageType;

use super::support::{Bed, Outcome, noise};
use crate::shared::schedule::Schedule;
use crate::{BackupError, BackupPlan};

/// Files around the lengths of blocks, some with two names.
fn plant(bed: &Bed, files: usize) {
    (0..3).for_each(|n| fs::create_dir(bed.path(&format!("d{n}"))).unwrap());
    for n in 0..files {
        let len = [0, 1, 700, 5000, 65_537][n % 5];
        let path = bed.file(&format!("d{}/f{n}", n % 3), &noise(n as u64, len));
        if n % 7 == 0 {
            fs::hard_link(&path, bed.path(&format!("d{}/h{n}", (n + 1) % 3))).unwrap();
        }
    }
}

/// How many workers there were at most, by the last message of the job.
fn workers(outcome: &Outcome) -> usize {
    let texts = outcome.texts(MessageType::Info);
    let words: Vec<&str> = texts.last().unwrap().split(' ').collect();
    words[words.iter().position(|word| *word == "workers:").unwrap() - 1].parse().unwrap()
}

/// `FERROFD_SCHEDULES=100000` tries more of them.
#[test]
fn any_schedule_gives_the_same_stream() {
    let schedules = std::env::var("FERROFD_SCHEDULES").map_or(1000, |text| text.parse().unwrap());
    let mut bed = Bed::new("MKs");
    plant(&bed, 16);
    bed.file("d0/large", &noise(99, 600_000));
    bed.wants_saved = true;
    assert!(bed.run().result.is_ok());
    let expected = bed.again();
    assert!(expected.records().len() > 50);
    let sent = |outcome: &Outcome| (outcome.progress.job_bytes(), outcome.progress.files(), outcome.sink.count);
    for seed in 0..schedules {
        let workers = [1, 2, 8, 256][usize::try_from(seed % 4).unwrap()];
        let reading_depth = [1, 8, 64, 256, 256][usize::try_from(seed % 5).unwrap()];
        let memory_budget = [1, 2 << 20, 24 << 20][usize::try_from(seed % 3).unwrap()];
        let schedule = Some(Arc::new(Schedule::random(seed)));
        bed.plan = BackupPlan { workers, reading_depth, memory_budget, schedule, ..bed.plan.clone() };
        let outcome = bed.again();
        assert!(outcome.result.is_ok(), "{seed}: {:?}", outcome.result);
        assert!(expected.sink.wire == outcome.sink.wire, "schedule {seed}");
        assert_eq!((sent(&expected), &expected.messages), (sent(&outcome), &outcome.messages), "schedule {seed}");
    }
}

#[test]
fn the_stream_does_not_depend_on_the_depth() {
    let mut bed = Bed::new("MKs");
    plant(&bed, 400);
    assert!(bed.run().result.is_ok());
    let expected = bed.again();
    for depth in [1, 8, 256] {
        bed.plan = BackupPlan { workers: depth, reading_depth: depth, ..bed.plan.clone() };
        let outcome = bed.again();
        assert!(outcome.result.is_ok());
        assert!(expected.sink.wire == outcome.sink.wire, "depth {depth}");
    }
}

#[test]
fn more_workers_share_storage_that_answers_late() {
    // A disk may be busy with something else, and is not what answers late.
    let mut bed = Bed::in_memory("M");
    plant(&bed, 1500);
    bed.plan.report_times = true;
    assert!(bed.run().result.is_ok());
    let runs: Vec<Outcome> = (0..4).map(|_| bed.again()).collect();
    assert!(runs.iter().any(|warm| workers(warm) <= 2), "{:?}", runs[0].messages);
    let warm = &runs[0];
    let saved = warm.progress.files();
    // Three steps a file, so 9 s for one worker alone.
    let schedule = Some(Arc::new(Schedule::Late(Duration::from_millis(2))));
    bed.plan = BackupPlan { workers: 1, reading_depth: 16, schedule, ..bed.plan.clone() };
    let outcome = bed.again();
    assert!(outcome.sink.wire == warm.sink.wire);
    assert_eq!(outcome.progress.files(), saved);
    // How many it comes to depends on how often the host stands still.
    assert!((5..=16).contains(&workers(&outcome)), "{:?}", outcome.messages);
    bed.plan.reading_depth = 1;
    bed.plan.schedule = None;
    assert_eq!(workers(&bed.again()), 1);
}

#[test]
fn a_canceled_job_leaves_workers_behind_that_hang() {
    let mut bed = Bed::new("M");
    plant(&bed, 300);
    let schedule = Arc::new(Schedule::hanging(200));
    bed.plan = BackupPlan { schedule: Some(Arc::clone(&schedule)), grace: Duration::ZERO, ..bed.plan };
    let cancel = bed.cancel.clone();
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            schedule.wait_until_one_hangs();
            cancel.cancel();
        });
        bed.run()
    });
    // It has ended although a thread still hangs.
    assert!(matches!(outcome.result, Err(BackupError::Canceled)), "{:?}", outcome.result);
    let warnings = outcome.texts(MessageType::Warning);
    assert!(
        matches!(warnings[..], [text] if text.starts_with("A file system of the host does not answer: ")),
        "{warnings:?}"
    );
    let (here, plan) = (1, 1);
    assert!(Arc::strong_count(&schedule) > here + plan, "no thread hangs");
    schedule.let_go();
    while Arc::strong_count(&schedule) > here + plan {
        thread::yield_now();
    }
}
