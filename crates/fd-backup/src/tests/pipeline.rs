//! The pipeline under load and under attack: any number of workers, little memory, cancelled jobs, lost peers, files
//! that change while they are saved.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::support::{self, Bed, Collector, Outcome, noise};
use crate::{BackupError, BackupPlan};
use fd_messages::MessageType;

/// Some of everything: small files, empty ones, links of both kinds, large files between them.
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

/// Every worker has to get along with any budget, down to a single piece of memory.
#[test]
fn the_stream_does_not_depend_on_workers_or_memory() {
    for letters in ["MKs", "SKZ1", "KZo"] {
        let mut bed = Bed::new(letters);
        plant(&bed);
        // Walking changes the access times of new directories and symbolic links, once.
        assert!(bed.run().result.is_ok());
        let mut expected: Option<Outcome> = None;
        for (workers, memory_budget, comm_compression) in [
            (1, 24 << 20, false),
            (0, 1, false),
            (2, 24 << 20, false),
            (8, 24 << 20, false),
            (8, 1, false),
            (3, 2 << 20, false),
        ] {
            bed.plan = BackupPlan { workers, memory_budget, comm_compression, ..bed.plan.clone() };
            let outcome = bed.again();
            assert!(outcome.result.is_ok());
            if let Some(expected) = &expected {
                assert!(expected.sink.wire == outcome.sink.wire, "{letters} {workers} {memory_budget}");
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

#[test]
fn a_cancelled_job_ends_soon() {
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
        assert!(matches!(outcome.result, Err(BackupError::Cancelled)), "{:?}", outcome.result);
        assert!(outcome.texts(MessageType::Fatal).is_empty());
        assert!(calls.load(Ordering::Relaxed) < 100);
    }
}

/// Cancelling cuts the connection to the Storage Daemon, which is no error to be told of.
#[test]
fn a_connection_cut_by_cancelling_is_no_error() {
    let bed = Bed::new("MK");
    plant(&bed);
    let cancel = bed.cancel.clone();
    let outcome = bed.run_with(Collector::with_hook(move |_| {
        cancel.cancel();
        false
    }));
    assert!(matches!(outcome.result, Err(BackupError::Cancelled)), "{:?}", outcome.result);
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

#[test]
fn a_job_cancelled_before_it_starts_sends_nothing() {
    let bed = Bed::new("MK");
    plant(&bed);
    bed.cancel.cancel();
    let outcome = bed.run();
    assert!(matches!(outcome.result, Err(BackupError::Cancelled)));
    assert!(outcome.sink.wire.is_empty());
}

/// A panic of the sink takes the threads down, and only them.
#[test]
fn a_panic_does_not_leave_threads_behind() {
    let bed = Bed::new("MK");
    plant(&bed);
    let sink = Collector::with_hook(|call| if call == 2 { panic!("in the sink") } else { true });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bed.run_with(sink)));
    assert!(result.is_err());
}

/// A backup that stands still in front of its first data until everything was walked: a fifo that nobody writes to
/// comes first, and there is one worker. `change` alters the tree then, and opens the gate.
fn change_during_backup(letters: &str, plant: impl FnOnce(&Bed), change: impl FnOnce(&Bed) + Send) -> Outcome {
    let mut bed = Bed::with_lines(&["I", &format!("O r{letters}"), "N", "F @/gate", "F @/tree", "N", "N"]);
    support::fifo(&bed.path("gate"));
    fs::create_dir(bed.path("tree")).unwrap();
    plant(&bed);
    let expected = 1 + count_entries(&bed.path("tree"));
    bed.plan.workers = 1;
    let progress = Arc::clone(&bed.progress);
    thread::scope(|scope| {
        let bed = &bed;
        scope.spawn(move || {
            while progress.files_examined() < expected {
                thread::yield_now();
            }
            change(bed);
            drop(OpenOptions::new().write(true).open(bed.path("gate")).unwrap());
        });
        bed.run()
    })
}

fn count_entries(path: &std::path::Path) -> u64 {
    let below: u64 = if path.is_dir() {
        fs::read_dir(path).unwrap().map(|entry| count_entries(&entry.unwrap().path())).sum()
    } else {
        0
    };
    below + 1
}

fn data_of(outcome: &Outcome, end_of_name: &str) -> Vec<u8> {
    let records = outcome.records();
    let attributes = records.iter().find(|record| record.stream == 1 && record.name().ends_with(end_of_name)).unwrap();
    records.iter().find(|record| record.file_index == attributes.file_index && record.stream == 2).unwrap().data()
}

fn streams_of(outcome: &Outcome, end_of_name: &str) -> Vec<u32> {
    let records = outcome.records();
    let attributes = records.iter().find(|record| record.stream == 1 && record.name().ends_with(end_of_name)).unwrap();
    records.iter().filter(|record| record.file_index == attributes.file_index).map(|record| record.stream).collect()
}

#[test]
fn files_that_grow_and_shrink_are_read_to_their_end() {
    let outcome = change_during_backup(
        "M",
        |bed| {
            bed.file("tree/grows", &[1; 1000]);
            bed.file("tree/grows over a block", &vec![1; 65_536]);
            bed.file("tree/shrinks", &vec![2; 100_000]);
            bed.file("tree/is emptied", &[3; 1000]);
        },
        |bed| {
            OpenOptions::new().append(true).open(bed.path("tree/grows")).unwrap().write_all(&vec![4; 70_000]).unwrap();
            OpenOptions::new()
                .append(true)
                .open(bed.path("tree/grows over a block"))
                .unwrap()
                .write_all(&[4; 5])
                .unwrap();
            OpenOptions::new().write(true).open(bed.path("tree/shrinks")).unwrap().set_len(70_000).unwrap();
            fs::write(bed.path("tree/is emptied"), b"").unwrap();
        },
    );
    assert_eq!(data_of(&outcome, "/grows").len(), 71_000);
    assert_eq!(data_of(&outcome, "/grows over a block").len(), 65_541);
    assert_eq!(data_of(&outcome, "/shrinks").len(), 70_000);
    assert_eq!(data_of(&outcome, "/is emptied").len(), 0);
    let sizes: Vec<i64> =
        outcome.records().iter().filter(|record| record.stream == 2).map(|record| record.size).collect();
    for size in [1000, 65_536, 100_000] {
        assert!(sizes.contains(&size), "the header has the size from before, {sizes:?}");
    }
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

#[test]
fn changes_are_told_if_somebody_asks() {
    let outcome = change_during_backup(
        "Mc",
        |bed| {
            bed.file("tree/stays", &[1; 1000]);
            bed.file("tree/modified", &[1; 1000]);
            bed.file("tree/chmod", &[1; 1000]);
            bed.file("tree/gone", b"");
        },
        |bed| {
            let past = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000);
            let file = OpenOptions::new().append(true).open(bed.path("tree/modified")).unwrap();
            file.set_modified(past).unwrap();
            // The change time has whole seconds in the record: wait until it must differ.
            while fs::metadata(bed.path("tree/chmod")).is_ok_and(|before| {
                use std::os::unix::fs::{MetadataExt, PermissionsExt};
                fs::set_permissions(bed.path("tree/chmod"), fs::Permissions::from_mode(0o600)).unwrap();
                fs::metadata(bed.path("tree/chmod")).unwrap().ctime() == before.mtime()
            }) {
                thread::yield_now();
            }
            fs::remove_file(bed.path("tree/gone")).unwrap();
        },
    );
    let errors = outcome.texts(MessageType::Error);
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().any(|text| text.ends_with("/modified mtime changed during backup.\n")));
    assert!(errors.iter().any(|text| text.ends_with("/chmod ctime changed during backup.\n")));
    assert_eq!(outcome.progress.errors(), 2);
}

#[test]
fn what_cannot_be_opened_has_attributes_only() {
    let outcome = change_during_backup(
        "MAX",
        |bed| {
            bed.file("tree/vanishes", &[1; 1000]);
            bed.file("tree/large and gone", &vec![1; 1_000_000]);
        },
        |bed| {
            fs::remove_file(bed.path("tree/vanishes")).unwrap();
            fs::remove_file(bed.path("tree/large and gone")).unwrap();
        },
    );
    assert_eq!(streams_of(&outcome, "/vanishes"), [1]);
    assert_eq!(streams_of(&outcome, "/large and gone"), [1]);
    let texts = outcome.texts(MessageType::NotSaved);
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(|text| text.starts_with("     Cannot open \"/")));
    assert!(texts.iter().any(|text| text.ends_with("/tree/vanishes\": ERR=No such file or directory.\n")));
    // Gate, two files, and their directory.
    assert_eq!((outcome.progress.files(), outcome.progress.errors()), (4, 2));
}

#[test]
fn a_hard_link_whose_first_name_vanished_has_its_data() {
    let outcome = change_during_backup(
        "M",
        |bed| {
            let first = bed.file("tree/a", b"data of three names");
            fs::hard_link(&first, bed.path("tree/b")).unwrap();
            fs::hard_link(&first, bed.path("tree/c")).unwrap();
        },
        |bed| {
            // Whichever comes first in the directory.
            let first = fs::read_dir(bed.path("tree")).unwrap().next().unwrap().unwrap();
            fs::remove_file(first.path()).unwrap();
        },
    );
    let records = outcome.records();
    let data: Vec<_> = records.iter().filter(|record| record.stream == 2 && record.size > 0).collect();
    assert_eq!(data.len(), 2);
    assert!(data.iter().all(|record| record.data() == b"data of three names"));
    let attributes = |fi: i64| records.iter().find(|record| record.file_index == fi).unwrap().attributes();
    for record in data {
        assert_eq!(attributes(record.file_index).type_code, 3);
        assert_eq!((attributes(record.file_index).link, attributes(record.file_index).lstat.link_fi), (&b""[..], 0));
    }
    assert_eq!(outcome.progress.errors(), 1);
}

/// A directory that took the place of a file can be opened but not read.
fn with_read_error(letters: &str) -> (impl FnOnce(&Bed), impl FnOnce(&Bed) + Send, String) {
    let plant = |bed: &Bed| {
        bed.file("tree/f", &[1; 1000]);
    };
    let change = |bed: &Bed| {
        fs::remove_file(bed.path("tree/f")).unwrap();
        fs::create_dir(bed.path("tree/f")).unwrap();
    };
    (plant, change, letters.to_owned())
}

#[test]
fn a_read_error_closes_the_stream_and_counts_twice() {
    let (plant, change, letters) = with_read_error("M");
    let outcome = change_during_backup(&letters, plant, change);
    assert_eq!(streams_of(&outcome, "/tree/f"), [1, 2, 3]);
    let texts = outcome.texts(MessageType::Error);
    assert_eq!(texts.len(), 1);
    assert!(texts[0].starts_with("Read error on file /"));
    assert!(texts[0].ends_with("/tree/f. ERR=Is a directory\n"));
    assert_eq!(outcome.progress.errors(), 2);
}

#[test]
fn one_error_too_many_ends_the_job() {
    let mut bed = Bed::with_lines(&["I", "O rM", "N", "F @/gate", "F @/tree", "N", "N"]);
    support::fifo(&bed.path("gate"));
    for n in 0..5 {
        bed.file(&format!("tree/f{n}"), &[1; 1000]);
    }
    bed.plan.workers = 1;
    bed.plan.max_job_errors = 3;
    let progress = Arc::clone(&bed.progress);
    let outcome = thread::scope(|scope| {
        let bed = &bed;
        scope.spawn(move || {
            while progress.files_examined() < 7 {
                thread::yield_now();
            }
            for n in 0..5 {
                fs::remove_file(bed.path(&format!("tree/f{n}"))).unwrap();
                fs::create_dir(bed.path(&format!("tree/f{n}"))).unwrap();
            }
            drop(OpenOptions::new().write(true).open(bed.path("gate")).unwrap());
        });
        bed.run()
    });
    assert!(matches!(outcome.result, Err(BackupError::Fatal(_))));
    // Each read error counts two; the third finds five against three.
    assert_eq!(outcome.texts(MessageType::Error).len(), 2 + usize::from(outcome.progress.errors() > 4));
    assert_eq!(outcome.texts(MessageType::Fatal).len(), 1);
    assert!(outcome.texts(MessageType::Fatal)[0].starts_with("Too many errors. JobErrors="));
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
fn a_fifo_without_writer_is_given_up() {
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

#[test]
fn a_job_that_waits_for_a_fifo_can_be_cancelled() {
    // Once in front of the open, once in the middle of reading.
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
        assert!(matches!(outcome.result, Err(BackupError::Cancelled)));
    }
}
