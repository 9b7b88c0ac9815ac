//! The pipeline with any number of workers, little memory, canceled jobs, lost peers and read
//! errors.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::support::{self, Bed, Collector, Outcome, Record, noise};
use crate::{BackupError, BackupPlan};
use fd_crypto::processor::Processor;
use fd_messages::MessageType;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

/// Small files, empty ones, links of both kinds, and large files between them.
fn plant(bed: &Bed) {
    for n in 0..9 {
        fs::create_dir(bed.path(&format!("d{n}"))).unwrap();
    }
    for n in 0..120_usize {
        let len = [0, 1, 100, 8192, 65_535, 65_536, 65_537][n % 7];
        let path = bed.file(&format!("d{}/f{n}", n % 9), &noise(n as u64, len));
        if n % 11 == 0 {
            fs::hard_link(&path, bed.path(&format!("d{}/h{n}", (n + 4) % 9))).unwrap();
        }
        if n % 13 == 0 {
            symlink("elsewhere", bed.path(&format!("d{}/s{n}", n % 9))).unwrap();
        }
    }
    for n in 0..4_u64 {
        let path = bed.file(&format!("d{n}/large"), &noise(n, 700_000));
        fs::hard_link(path, bed.path(&format!("d{}/large link", n + 4))).unwrap();
    }
    let sparse = fs::File::create(bed.path("d3/sparse")).unwrap();
    sparse.set_len(3_000_000).unwrap();
}

/// Any number of workers with any budget, down to a single piece.
#[test]
fn the_stream_does_not_depend_on_workers_or_memory() {
    for letters in ["MKs", "SKZ1", "KZo"] {
        let mut bed = Bed::new(letters);
        plant(&bed);
        // The first walk changes the access times of new directories and symbolic links.
        assert!(bed.run().result.is_ok());
        let mut expected: Option<Outcome> = None;
        for ((workers, memory_budget, comm_compression), processor) in [
            (1, 24 << 20, false),
            (0, 1, false),
            (2, 24 << 20, false),
            (8, 24 << 20, false),
            (8, 1, false),
            (3, 2 << 20, false),
        ]
        .into_iter()
        .flat_map(|way| Processor::variants().map(move |processor| (way, processor)))
        {
            bed.plan = BackupPlan { workers, memory_budget, comm_compression, processor, ..bed.plan.clone() };
            let outcome = bed.again();
            assert!(outcome.result.is_ok());
            if let Some(expected) = &expected {
                assert!(expected.sink.wire == outcome.sink.wire, "{letters} {workers} {memory_budget} {processor}");
                assert_eq!(expected.sink.count, outcome.sink.count);
                assert_eq!(expected.progress.job_bytes(), outcome.progress.job_bytes());
                assert_eq!(expected.progress.read_bytes(), outcome.progress.read_bytes());
                assert_eq!(expected.progress.files(), outcome.progress.files());
            } else {
                assert!(outcome.records().len() > 250);
                expected = Some(outcome);
            }
        }
    }
}

#[test]
fn messages_come_in_the_order_of_the_files() {
    let mut bed = Bed::new("MK");
    plant(&bed);
    bed.wants_saved = true;
    assert!(bed.run().result.is_ok());
    let mut runs = Vec::new();
    for workers in [1, 8] {
        bed.plan.workers = workers;
        let outcome = bed.again();
        let names: Vec<String> =
            outcome.records().iter().filter(|record| record.stream == 1).map(support::Record::name).collect();
        let lines = outcome.texts(MessageType::Saved);
        assert_eq!(lines.len(), names.len());
        for (line, name) in lines.iter().zip(&names) {
            assert!(line.contains(name.trim_end_matches('/')), "{line} for {name}");
        }
        runs.push(outcome.messages);
    }
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn a_lost_storage_daemon_ends_everything() {
    for (workers, budget, at) in [(1, 24 << 20, 1), (2, 24 << 20, 5), (8, 1, 9), (2, 1 << 20, 15)] {
        let mut bed = Bed::new("MK");
        plant(&bed);
        bed.plan = BackupPlan { workers, memory_budget: budget, ..bed.plan.clone() };
        let outcome = bed.run_with(Collector::with_hook(move |call| call < at));
        assert!(matches!(outcome.result, Err(BackupError::Sink(_))), "{:?}", outcome.result);
        assert_eq!(outcome.texts(MessageType::Fatal), ["backup.c:1056 Network send error to SD. ERR=Broken pipe\n"]);
    }
}

/// The rest of the walk may find nothing to send for hours.
#[test]
fn a_storage_daemon_that_is_lost_when_nothing_comes_ends_the_job_at_once() {
    let mut bed = Bed::with_lines(&["I", "O rM", "N", "F @/file", "F @/fifo", "N", "N"]);
    bed.file("file", b"x");
    // Nothing opens it to write.
    support::fifo(&bed.path("fifo"));
    bed.plan.fifo_timeout = Duration::from_secs(600);
    let (told, flushed) = mpsc::channel();
    drop(flushed);
    let outcome = bed.run_with(Collector::telling(told));
    assert!(matches!(outcome.result, Err(BackupError::Sink(_))), "{:?}", outcome.result);
    assert_eq!(outcome.texts(MessageType::Fatal), ["backup.c:1056 Network send error to SD. ERR=Broken pipe\n"]);
}

#[test]
fn a_canceled_job_stops_all_threads() {
    for (workers, budget, at) in [(1, 24 << 20, 1), (2, 24 << 20, 3), (8, 1, 10)] {
        let mut bed = Bed::new("MK");
        plant(&bed);
        bed.plan = BackupPlan { workers, memory_budget: budget, ..bed.plan.clone() };
        let cancel = bed.cancel.clone();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let hook = move |call| {
            counted.store(call, Ordering::Relaxed);
            if call == at {
                cancel.cancel();
            }
            true
        };
        let outcome = bed.run_with(Collector::with_hook(hook));
        assert!(matches!(outcome.result, Err(BackupError::Canceled)), "{:?}", outcome.result);
        assert!(outcome.texts(MessageType::Fatal).is_empty());
        assert!(calls.load(Ordering::Relaxed) < 100);
    }
}

/// Canceling shuts down the connection to the Storage Daemon, which must not be reported.
#[test]
fn a_connection_cut_by_canceling_is_no_error() {
    let bed = Bed::new("MK");
    plant(&bed);
    let cancel = bed.cancel.clone();
    let outcome = bed.run_with(Collector::with_hook(move |_| {
        cancel.cancel();
        false
    }));
    assert!(matches!(outcome.result, Err(BackupError::Canceled)), "{:?}", outcome.result);
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

#[test]
fn a_job_canceled_before_it_starts_sends_nothing() {
    let bed = Bed::new("MK");
    plant(&bed);
    bed.cancel.cancel();
    let outcome = bed.run();
    assert!(matches!(outcome.result, Err(BackupError::Canceled)));
    assert!(outcome.sink.wire.is_empty());
}

/// A panic of the sink ends the threads of its job only.
#[test]
fn a_panic_ends_all_threads_of_its_job() {
    let bed = Bed::new("MK");
    plant(&bed);
    let sink = Collector::with_hook(|call| if call == 2 { panic!("in the sink") } else { true });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bed.run_with(sink)));
    assert!(result.is_err());
}

/// Files of 4,096 bytes by their attributes that can be opened but not read: the loopback device
/// has no speed.
const UNREADABLE: [&str; 2] = ["/sys/devices/virtual/net/lo/speed", "/sys/devices/virtual/net/lo/duplex"];

fn unreadable(more: &[&str]) -> Bed {
    let [first, second] = UNREADABLE.map(|path| format!("F {path}"));
    let lines = ["I", "O M", "N", &first, &second].into_iter().chain(more.iter().copied()).chain(["N", "N"]);
    Bed::with_lines(&lines.collect::<Vec<_>>())
}

#[test]
fn a_read_error_closes_the_stream_and_counts_twice() {
    let bed = unreadable(&["F @/file"]);
    bed.file("file", b"x");
    let outcome = bed.run();
    assert!(outcome.result.is_ok());
    for path in UNREADABLE {
        assert_eq!(outcome.streams(path), [1, 2, 3]);
    }
    let texts = UNREADABLE.map(|path| format!("Read error on file {path}. ERR=Invalid argument\n"));
    assert_eq!(outcome.texts(MessageType::Error), texts);
    assert_eq!(outcome.progress.errors(), 4);
}

#[test]
fn a_read_error_beyond_the_limit_ends_the_job() {
    let mut bed = unreadable(&[]);
    bed.plan.max_job_errors = 2;
    let outcome = bed.run();
    assert!(matches!(outcome.result, Err(BackupError::Fatal(_))));
    // Each read error counts two. At the second one there are three, and the limit is two.
    assert_eq!(outcome.texts(MessageType::Error).len(), 2);
    assert_eq!(outcome.texts(MessageType::Fatal), ["Too many errors. JobErrors=4.\n"]);
    assert_eq!(outcome.progress.files(), 2, "what was sent counts");
}

#[test]
fn a_job_whose_files_all_fail_to_be_read_fails() {
    let outcome = unreadable(&[]).run();
    assert!(matches!(outcome.result, Err(BackupError::Fatal(_))));
    assert_eq!(outcome.texts(MessageType::Error).len(), 2);
    let text = "No file could be read: of 2 with data, no data is saved.\n";
    assert_eq!(outcome.texts(MessageType::Fatal), [text]);

    let mut resumed = unreadable(&[]);
    resumed.plan.files_before = 1;
    assert!(resumed.run().result.is_ok(), "the part before has its files");
    let empty = Bed::with_lines(&["I", "O M", "N", "F @/empty", "N", "N"]);
    empty.file("empty", b"");
    assert!(empty.run().result.is_ok(), "there was nothing to read");
}

#[test]
fn a_fifo_is_read_to_its_end_without_digest() {
    let bed = Bed::with_lines(&["I", "O rM", "N", "F @/fifo", "N", "N"]);
    support::fifo(&bed.path("fifo"));
    let outcome = thread::scope(|scope| {
        let path = bed.path("fifo");
        scope.spawn(move || {
            let mut writer = OpenOptions::new().write(true).open(path).unwrap();
            writer.write_all(b"from ").unwrap();
            writer.write_all(&noise(1, 100_000)).unwrap();
        });
        bed.run()
    });
    let records = outcome.records();
    assert_eq!(records.iter().map(|record| record.stream).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((records[0].attributes().type_code, records[1].size), (17, 0));
    assert_eq!(records[1].data().len(), 100_005);
    assert!(records[1].messages.iter().all(|message| !message.is_empty() && message.len() <= 65_536));
}

#[test]
fn a_fifo_without_a_writer_is_not_saved() {
    let mut bed = Bed::with_lines(&["I", "O rM", "N", "F @/fifo", "F @/file", "N", "N"]);
    support::fifo(&bed.path("fifo"));
    bed.file("file", b"x");
    bed.plan.fifo_timeout = Duration::from_millis(1);
    let outcome = bed.run();
    let text = format!("     Cannot open \"{}\": ERR=Interrupted system call.\n", bed.name("fifo"));
    assert_eq!(outcome.texts(MessageType::NotSaved), [text]);
    assert_eq!(outcome.streams(&bed.name("fifo")), [1]);
    assert_eq!(outcome.streams(&bed.name("file")), [1, 2, 3]);
    assert_eq!(outcome.progress.errors(), 1);
}

/// Its record would hide the copy of the job before, which has its data.
#[test]
fn a_fifo_or_device_that_cannot_be_opened_is_left_to_the_job_before() {
    let mut bed = Bed::with_lines(&["I", "O rM", "N", "F @/fifo", "F @/device", "F @/file", "N", "N"]);
    support::fifo(&bed.path("fifo"));
    // No driver has this number.
    let made = mknodat(CWD, bed.path("device"), FileType::BlockDevice, Mode::RUSR, makedev(4095, 0));
    let mut expected = vec![format!("     Cannot open \"{}\": ERR=Interrupted system call.\n", bed.name("fifo"))];
    if made.is_ok() {
        expected.push(format!("     Cannot open \"{}\": ERR=No such device or address.\n", bed.name("device")));
    }
    bed.file("file", b"x");
    bed.plan.fifo_timeout = Duration::from_millis(1);
    bed.plan.walk.incremental = true;
    let outcome = bed.run();
    let told = outcome.texts(MessageType::NotSaved);
    assert_eq!(told[..expected.len()], expected);
    assert_eq!(outcome.progress.errors() as usize, expected.len());
    let records = outcome.records();
    let names: Vec<_> = records.iter().filter(|record| record.stream == 1).map(Record::name).collect();
    assert_eq!(names, [bed.name("file")]);
}

#[test]
fn a_wait_for_a_fifo_ends_when_the_job_is_canceled() {
    // Before the fifo is opened, and while it is read.
    for opens in [false, true] {
        let bed = Bed::with_lines(&["I", "O rM", "N", "F @/fifo", "N", "N"]);
        support::fifo(&bed.path("fifo"));
        let (done, wait) = mpsc::channel::<()>();
        let outcome = thread::scope(|scope| {
            let (path, cancel, progress) = (bed.path("fifo"), bed.cancel.clone(), Arc::clone(&bed.progress));
            scope.spawn(move || {
                let _writer = opens.then(|| OpenOptions::new().write(true).open(path).unwrap());
                while progress.files_examined() == 0 {
                    thread::yield_now();
                }
                cancel.cancel();
                let _ended = wait.recv();
            });
            let outcome = bed.run();
            drop(done);
            outcome
        });
        assert!(matches!(outcome.result, Err(BackupError::Canceled)));
    }
}
