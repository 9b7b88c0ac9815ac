//! The threads that make files, in many orders; and what can happen to them at any step.

use std::cell::Cell;
use std::fs;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::models::{Count, allow_threads, at_step, explore, pass, pick, running};
use fd_records::{Stat, Stream};
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

use super::*;
use crate::output_file::Identity;
use crate::overlap::FileData;
use fd_os::sync::thread;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Nothing,
    Cancel,
    /// A thread panics in a file.
    Panic,
    /// It hangs in a file until the restore is over, which is canceled.
    Hang,
    /// From one thread on, no more can be started.
    NoThread,
}

fn data(bytes: &[u8]) -> Arc<FileData> {
    let mut data = FileData::default();
    data.push(Stream::FILE_DATA, bytes.len(), bytes);
    Arc::new(data)
}

/// New files, of which the second names the first one again now and then.
fn tasks(directory: &Arc<OwnedFd>, run: usize, count: usize) -> Vec<Task> {
    let task = |number| Task {
        directory: Arc::clone(directory),
        name: format!("{run}.{number}").into_bytes(),
        data: data(format!("data of {run}.{number}").as_bytes()),
        stat: Stat { mode: Stat::MODE_REGULAR | 0o640, ..Stat::default() },
        behind: None,
        rank: number % 2,
    };
    (0..count).map(task).collect()
}

/// Whether the file is there, whole.
fn is_whole(top: &Path, run: usize, number: usize) -> bool {
    let name = format!("{run}.{number}");
    fs::read(top.join(&name)).is_ok_and(|data| data == format!("data of {name}").as_bytes())
}

fn compare(top: &Path, directory: &OwnedFd, run: usize, answers: &[Answer], (fate, given_up): (Fate, bool)) {
    for (number, answer) in answers.iter().enumerate() {
        let name = format!("{run}.{number}");
        match answer {
            Answer::Made(file) => {
                let there = fstatat(directory, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW).unwrap();
                assert_eq!(
                    file.new_file().map(|file| file.identity),
                    Some(Identity::of(&there)),
                    "{fate:?}: the answer of another file"
                );
                assert!(is_whole(top, run, number), "{fate:?}: {name} is not whole");
            }
            Answer::NotBegun => {
                assert!(matches!(fate, Fate::Cancel | Fate::Hang | Fate::NoThread), "{fate:?}: {name} was not begun");
                assert!(given_up || !top.join(&name).exists(), "{fate:?}: {name} was begun");
            }
            Answer::NotMade(errno) => panic!("{fate:?}: {name}: {errno}"),
        }
    }
}

fn check(top: &Path, fate: Fate) {
    let directory = Arc::new(OwnedFd::from(fs::File::open(top).unwrap()));
    let cancel = CancelToken::new();
    let is_over = Rc::new(Cell::new(false));
    match fate {
        Fate::Nothing => {}
        Fate::NoThread => allow_threads(pick(3)),
        // Not `panic!`: the scheduler would take it for a failure of the model.
        Fate::Panic => at_step("writer", pick(6), || std::panic::resume_unwind(Box::new("on purpose"))),
        Fate::Cancel => {
            let cancel = cancel.clone();
            at_step("writer", pick(6), move || cancel.cancel());
        }
        Fate::Hang => {
            let (cancel, is_over) = (cancel.clone(), Rc::clone(&is_over));
            at_step("writer", pick(6), move || {
                cancel.cancel();
                while !is_over.get() {
                    thread::yield_now();
                }
            });
        }
    }
    let ticks = Arc::new(std::sync::atomic::AtomicBool::new(!matches!(fate, Fate::Nothing | Fate::NoThread)));
    let clock = Arc::clone(&ticks);
    // The threads of a job that is only canceled are given up if they hang, not if they are slow.
    let step = if fate == Fate::Cancel { GLANCE / 100 } else { GLANCE };
    let clock = thread::spawn(move || {
        while clock.load(Ordering::Relaxed) {
            pass(step);
            thread::yield_now();
        }
    });
    let mut writers = Writers::new();
    let mut panicked = false;
    for run in 0..=pick(2) {
        let tasks = tasks(&directory, run, 1 + pick(4));
        let carried = catch_unwind(AssertUnwindSafe(|| writers.carry_out(tasks, 1 + pick(3), &cancel)));
        match carried {
            Ok((answers, _)) => compare(top, &directory, run, &answers, (fate, writers.is_given_up())),
            Err(_panic) => {
                assert_eq!(fate, Fate::Panic);
                panicked = true;
                break;
            }
        }
    }
    assert!(!panicked || !writers.is_given_up());
    let given_up = writers.is_given_up();
    drop(writers);
    is_over.set(true);
    ticks.store(false, Ordering::Relaxed);
    clock.join().unwrap();
    // Those that were left behind when the time was over.
    while given_up && running() > 0 {
        thread::yield_now();
    }
    assert!(running() == 0, "{fate:?}: a thread is left");
    assert!(!given_up || fate == Fate::Hang, "{fate:?}: given up");
}

#[test]
fn files_are_made_once_and_answers_are_theirs() {
    explore("writers", Count::Of(1000), || {
        let top = tempfile::tempdir().unwrap();
        let fates = [Fate::Nothing, Fate::Cancel, Fate::Panic, Fate::Hang, Fate::NoThread];
        check(top.path(), fates[pick(fates.len())]);
    });
}
