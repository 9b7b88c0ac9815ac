#![no_main]
//! Read sessions of one job after the other into a real directory: whatever the records say, in
//! whatever order, each restore ends, nothing appears outside its directory, and nothing outside of
//! it changes.
//!
//! The input is a list of records: two bytes of stream number, two of length, and so many bytes of
//! data. A stream number with its highest bit is a frame of its own, so that headers may be missing
//! or wrong. The number 0x7fff begins the next job, to which what the one before made is old. FIFOs
//! and devices are made like anything else: below `where` no data goes to them. The place keeps
//! what earlier inputs made of it, for a while.

#[path = "shared/volume.rs"]
mod volume;

use std::fs;
use std::num::NonZeroU16;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use fd_crypto::processor::Processor;
use fd_messages::{CancelToken, Progress};
use fd_records::Replace;
use fd_restore::{LinkRule, OutputNames, RestorePlan, RestoreState, run};
use libfuzzer_sys::fuzz_target;
use volume::{Frames, Silent};

/// This stream number begins the next job.
const NEXT_JOB: u16 = 0x7fff;
/// So many inputs find what those before them have left.
const KEPT: u32 = 200;

/// The frames of each job.
fn jobs(mut data: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut jobs = vec![Vec::new()];
    while let Some((&[s0, s1, l0, l1], rest)) = data.split_first_chunk::<4>() {
        let (stream, length) = (u16::from_be_bytes([s0, s1]), usize::from(u16::from_be_bytes([l0, l1])));
        let (record, rest) = rest.split_at(length.min(rest.len()));
        data = rest;
        if stream == NEXT_JOB {
            jobs.push(Vec::new());
        } else if let Some(frames) = jobs.last_mut() {
            if stream & 0x8000 == 0 {
                frames.push(format!("rechdr 1 2 3 {stream} {}", record.len()).into_bytes());
            }
            frames.push(record.to_vec());
        }
    }
    jobs
}

/// A folder for this process, with a victim, and the place once it is laid out.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("ferrofd-fuzz-restore-{}", std::process::id()));
        fs::create_dir_all(folder.join("victim")).expect("a folder to restore to");
        fs::write(folder.join("victim/f"), b"not yours").expect("a victim");
        folder
    })
}

/// What is in the directory before anything is restored: links that stay and links that lead out.
fn lay_out(place: &Path) {
    fs::create_dir_all(place.join("d")).expect("the place");
    for (target, link) in [("d", "in"), ("../victim", "out"), ("../../victim/f", "d/file"), ("..", "d/up")] {
        symlink(target, place.join(link)).expect("a link");
    }
    fs::write(place.join("f"), b"in place").expect("a file");
}

/// Waits until what was made so far is older than what begins now: the file systems' clock has
/// steps.
fn let_it_be_old(place: &Path) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    let probe = place.join("../probe");
    loop {
        fs::write(&probe, b"").expect("a file beside the place");
        let stat = fs::metadata(&probe).expect("that file");
        fs::remove_file(&probe).expect("no such file any more");
        if i128::from(stat.ctime()) * 1_000_000_000 + i128::from(stat.ctime_nsec()) > i128::try_from(now).unwrap_or(0) {
            return;
        }
    }
}

/// What may change of the victim: owner, mode, names, times, and what it holds.
fn victim() -> Vec<(u32, u32, u64, i64, i64)> {
    let see = |name: &str| {
        let stat = fs::symlink_metadata(folder().join(name)).expect("the victim");
        (stat.uid(), stat.mode(), stat.nlink(), stat.ctime(), stat.ctime_nsec())
    };
    let names = fs::read_dir(folder().join("victim")).expect("the victim").count();
    assert_eq!(names, 1, "something was made there");
    vec![see("victim"), see("victim/f")]
}

fuzz_target!(|data: &[u8]| {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let place = folder().join("place");
    let before = victim();
    if RUNS.fetch_add(1, Ordering::Relaxed) % KEPT == 0 {
        if place.exists() {
            fs::remove_dir_all(&place).expect("what was restored can be removed");
        }
        lay_out(&place);
        let_it_be_old(&place);
    }
    for (number, frames) in jobs(data).into_iter().enumerate() {
        if number > 0 {
            let_it_be_old(&place);
        }
        let plan = RestorePlan {
            output: OutputNames::below(place.to_string_lossy().into_owned().into_bytes()),
            prelinks: number % 2 == 1,
            replace: Replace::Always,
            check_digests: true,
            digests: None,
            keys: None,
            processor: Processor::chosen(),
            // Side by side in every second job.
            writing_depth: NonZeroU16::new(if number % 2 == 0 { 4 } else { 1 }),
            plugins: None,
        };
        let (progress, cancel) = (Progress::default(), CancelToken::new());
        let mut state = RestoreState::new(&plan, LinkRule::from_now());
        let _outcome = run(&plan, &mut state, &progress, &Silent, &cancel, &mut Frames::new(frames));
        assert_eq!(victim(), before);
    }
    for entry in fs::read_dir(folder()).expect("the folder") {
        let name = entry.expect("an entry").file_name();
        assert!(name == "place" || name == "victim", "{name:?}");
    }
});
