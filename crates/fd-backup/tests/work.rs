//! Work that is counted, not timed: system calls, allocations and copies of one more file (limits
//! in `docs/limits.md`).
//!
//! Each backup runs in a process of its own: this very test program again, under `strace` where
//! system calls are counted. The cost of one file is the difference between many files and few.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::alloc::System;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use fd_backup::{AccurateLevel, AccurateList, BackupPlan, FrameSink, MemoryBudget, SinkError};
use fd_bsock::CommCount;
use fd_fileset::{Parser, Regex, RegexCompiler};
use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_records::{LStat, Stat};
use fd_walk::{LookupDepth, WalkSettings};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The arguments of the child: option letters, which files count as changed, the directory.
const TASK: &str = "FERROFD_MEASURED_BACKUP";

/// The calls that belong to files. Threads and memory cause others in varying number, and so does
/// the standard library, which calls `fcntl` before it closes a file in debug builds.
const CALLS: [&str; 18] = [
    "newfstatat",
    "statx",
    "fstat",
    "lstat",
    "openat",
    "openat2",
    "open",
    "read",
    "pread64",
    "preadv2",
    "lseek",
    "close",
    "fadvise64",
    "llistxattr",
    "flistxattr",
    "lgetxattr",
    "fgetxattr",
    "readlinkat",
];

struct Nothing;

impl FrameSink for Nothing {
    fn send_encoded(&mut self, _: &[u8], _: CommCount) -> Result<(), SinkError> {
        Ok(())
    }
}

impl JobLog for Nothing {
    fn message(&self, kind: MessageType, text: &[u8]) {
        panic!("{kind:?}: {}", String::from_utf8_lossy(text));
    }

    fn wants(&self, kind: MessageType) -> bool {
        !matches!(kind, MessageType::Saved | MessageType::Skipped)
    }
}

impl RegexCompiler for Nothing {
    fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
        Err("no regular expressions here".to_owned())
    }
}

/// No test of its own: the others start it.
#[test]
fn a_measured_backup() {
    let Ok(task) = std::env::var(TASK) else { return skip::unasked() };
    let words: Vec<&str> = task.splitn(3, ' ').collect();
    let (letters, kind, directory) = (words[0], words[1], words[2]);
    let mut parser = Parser::new(&Nothing);
    for line in ["I", &format!("O {letters}"), "N", &format!("F {directory}"), "N", "N"] {
        let _accepted = parser.line(line.as_bytes()).unwrap();
    }
    // A tracer makes all calls slow, which is no reason for more threads.
    let lookup_depth = LookupDepth::Fixed(NonZeroU16::MIN);
    let incremental = kind != "full";
    let since = if kind == "changed" { 0 } else { i64::MAX };
    let walk = WalkSettings { incremental, since, lookup_depth, ..WalkSettings::default() };
    let plan = BackupPlan { workers: 2, reading_depth: 2, ..BackupPlan::new(Arc::new(parser.finish().unwrap()), walk) };
    let region = Region::new(ALLOCATOR);
    fd_backup::run(&plan, &Arc::<Progress>::default(), &Nothing, &CancelToken::new(), &mut Nothing).unwrap();
    let change = region.change();
    println!("\nallocations {}", change.allocations + change.reallocations);
}

/// What all accurate lists may have in the measured one's process, bytes.
const LISTS: usize = 36 << 20;

/// No test of its own: the next one starts it.
#[test]
fn a_measured_list() {
    let Ok(_) = std::env::var(TASK) else { return skip::unasked() };
    let level = AccurateLevel { full: false, rerun: false };
    let fileset = Parser::new(&Nothing).finish().unwrap();
    let region = Region::new(ALLOCATOR);
    let held = || region.change().bytes_allocated - region.change().bytes_deallocated;
    let budget = MemoryBudget::of(2 * LISTS as u64);
    let mut list = AccurateList::new(level, 0, &fileset).within(budget.list());
    let mut attributes = Vec::new();
    LStat { stat: Stat { mtime: 1_700_000_000, ..Stat::default() }, ..LStat::default() }.encode(&mut attributes);
    let mut message = Vec::new();
    let mut number = 0;
    while {
        message.clear();
        // Names are long: most of the memory is for records.
        write!(message, "/srv/{number:0150}\0").unwrap();
        message.extend_from_slice(&attributes);
        message.extend_from_slice(b"\0\x000");
        list.add(&message)
    } {
        number += 1;
    }
    list.complete();
    let mut most = 0;
    list.unseen(|_| most = most.max(held()));
    println!("\nheld {most}");
}

#[test]
fn a_list_takes_what_it_has_from_the_memory_for_lists() {
    let output = measured(&[], "a_measured_list", "list").unwrap();
    let most: usize = output.lines().find_map(|line| line.strip_prefix("held ")).unwrap().parse().unwrap();
    assert!((LISTS / 2..LISTS + (1 << 20)).contains(&most), "{most} bytes of {LISTS}");
}

fn tree(files: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..files {
        fs::write(directory.path().join(format!("file {number}")), format!("{number:400}")).unwrap();
    }
    directory
}

/// A file of so many blocks of a record's length that can't be compressed.
fn file_of(blocks: usize) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let data: Vec<u8> = (0..blocks << 16).map(|at| (at.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]).collect();
    fs::write(directory.path().join("file"), data).unwrap();
    directory
}

/// Runs a measured backup under the command `under` and returns its standard output.
fn measured_backup(under: &[&str], letters: &str, kind: &str, directory: &Path) -> Option<String> {
    measured(under, "a_measured_backup", &format!("{letters} {kind} {}", directory.display()))
}

/// Runs this test for `task` in a process of its own.
fn measured(under: &[&str], test: &str, task: &str) -> Option<String> {
    let program = std::env::current_exe().unwrap();
    let mut words = under.to_vec();
    words.extend([program.to_str().unwrap(), "--exact", test, "--nocapture"]);
    let output = Command::new(words[0]).args(&words[1..]).env(TASK, task).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn allocations(kind: &str, files: u32) -> f64 {
    let output = measured_backup(&[], "M", kind, tree(files).path()).unwrap();
    let number = output.lines().find_map(|line| line.strip_prefix("allocations ")).unwrap();
    number.parse().unwrap()
}

/// The number of allocations of one more file.
fn allocations_of_a_file(kind: &str) -> f64 {
    let (few, many) = (allocations(kind, 100), allocations(kind, 2100));
    assert!(few > 0.0, "nothing was counted");
    (many - few) / 2000.0
}

/// How often each call that belongs to files was made; `None` where tracing is not allowed.
fn calls(letters: &str, kind: &str, files: u32) -> Option<HashMap<String, f64>> {
    let all = all_calls(letters, kind, files)?;
    Some(all.into_iter().filter(|(name, _)| CALLS.contains(&name.as_str())).collect())
}

fn all_calls(letters: &str, kind: &str, files: u32) -> Option<HashMap<String, f64>> {
    let counts = tempfile::NamedTempFile::new().unwrap();
    let under = ["strace", "-f", "-qq", "-c", "-o", counts.path().to_str().unwrap()];
    let tree = tree(files);
    // What fails under strace for another reason than strace, fails here.
    measured_backup(&[], letters, kind, tree.path()).unwrap();
    let _output = measured_backup(&under, letters, kind, tree.path())?;
    let table = fs::read_to_string(counts.path()).unwrap();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        Some(((*words.last()?).to_owned(), words.get(3)?.parse().ok()?))
    };
    Some(table.lines().filter_map(row).collect())
}

const NO_STRACE: &str = "strace is not here or may not trace";

/// The calls of one more file, by name and in total.
fn calls_of_a_file(letters: &str, kind: &str) -> Option<(HashMap<&'static str, f64>, f64)> {
    let (Some(few), Some(many)) = (calls(letters, kind, 100), calls(letters, kind, 1100)) else {
        return None;
    };
    let cost = |name: &str| (many.get(name).unwrap_or(&0.0) - few.get(name).unwrap_or(&0.0)) / 1000.0;
    let costs: HashMap<_, _> = CALLS.into_iter().map(|name| (name, cost(name))).collect();
    let sum = costs.values().sum();
    Some((costs, sum))
}

#[test]
fn a_small_file_costs_five_system_calls_and_its_attributes_a_sixth() {
    for (letters, kind, limit) in [("M", "full", 5.1), ("MAX", "full", 6.1), ("M", "changed", 7.1)] {
        let Some((costs, sum)) = calls_of_a_file(letters, kind) else { return skip::test(NO_STRACE) };
        assert!(sum < limit, "{letters} {kind}: {sum} calls a file, {costs:?}");
        assert!(costs["openat2"] > 0.9, "nothing was counted: {costs:?}");
    }
}

/// How many threads a backup and the test that measures it start; `None` where tracing is not
/// allowed.
fn threads(kind: &str, files: u32) -> Option<f64> {
    let all = all_calls("M", kind, files)?;
    Some(["clone", "clone3"].into_iter().filter_map(|name| all.get(name)).sum())
}

#[test]
fn a_small_job_starts_no_worker() {
    let (Some(nothing), Some(few), Some(many)) = (threads("unchanged", 20), threads("full", 20), threads("full", 2000))
    else {
        return skip::test(NO_STRACE);
    };
    assert!(nothing > 0.0, "nothing was counted");
    assert!((few - nothing).abs() < 0.1, "{few} threads instead of {nothing}");
    assert!((nothing + 0.9..=nothing + 2.1).contains(&many), "{many} threads, {nothing} without anything to do");
}

#[test]
fn an_unchanged_file_costs_one_system_call() {
    let Some((costs, sum)) = calls_of_a_file("MAX", "unchanged") else { return skip::test(NO_STRACE) };
    assert!((0.9..1.1).contains(&sum), "{sum} calls a file, {costs:?}");
}

#[test]
fn an_unchanged_file_costs_no_allocation() {
    let each = allocations_of_a_file("unchanged");
    assert!(each < 0.02, "{each} allocations an unchanged file");
}

#[test]
fn a_saved_file_costs_few_allocations() {
    let each = allocations_of_a_file("full");
    assert!(each < 3.0, "{each} allocations a file");
}

/// The library that counts copies, made from `copies.c`.
fn copy_counter(directory: &Path) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/copies.c");
    let library = directory.join("copies.so");
    let flags = ["-O1", "-fno-builtin", "-shared", "-fPIC", "-o"];
    assert!(Command::new("cc").args(flags).arg(&library).arg(source).status().unwrap().success());
    format!("LD_PRELOAD={}", library.display())
}

/// How often one more byte of a file is copied in memory.
fn copies_of_a_byte(preload: &str, letters: &str, small: &Path, large: &Path, more: u32) -> f64 {
    let copied = |tree| {
        let output = measured_backup(&["env", preload], letters, "full", tree).unwrap();
        let number = output.lines().find_map(|line| line.strip_prefix("copied ")).unwrap();
        number.parse::<f64>().unwrap()
    };
    (copied(large) - copied(small)) / f64::from(more)
}

#[test]
fn data_is_read_directly_into_its_frame() {
    let place = tempfile::tempdir().unwrap();
    let preload = copy_counter(place.path());
    let (small, large) = (file_of(32), file_of(96));
    let of = |letters| copies_of_a_byte(&preload, letters, small.path(), large.path(), 64 << 16);
    let (bare, signed) = (of("f"), of("M"));
    assert!(bare < 0.05, "{bare} copies of a byte that is not digested");
    assert!(signed < 0.05, "{signed} copies of a byte that is digested");
}
