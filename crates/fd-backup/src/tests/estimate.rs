//! The console's estimate (reference 03 §9).

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_plugins::NoFacts;
use fd_walk::{Purpose, WalkSettings};

use super::accurate::{Accurate, CHANGES, HELLO, HELLO_DIGEST};
use super::support::{Bed, Log};
use crate::{BackupError, EstimatePlan, EstimateTotals, estimate};

fn plan(bed: &Bed, walk: WalkSettings, listing: bool) -> EstimatePlan {
    EstimatePlan {
        fileset: Arc::clone(&bed.plan.fileset),
        walk,
        accurate: None,
        network_buffer: 0,
        encrypts: false,
        plugins: Arc::default(),
        facts: Arc::new(NoFacts),
        late: None,
        listing,
    }
}

fn run(bed: &Bed, listing: bool, limit: u64) -> (EstimateTotals, Vec<String>) {
    let walk = WalkSettings { purpose: Purpose::Estimate { limit }, ..WalkSettings::default() };
    let log = Log::new(Arc::new(Progress::default()));
    let result = estimate(&plan(bed, walk, listing), &log, &CancelToken::new()).unwrap();
    let lines = log.lines.into_inner().unwrap();
    assert!(lines.iter().all(|(kind, _)| *kind == MessageType::Info));
    (result, lines.into_iter().map(|(_, line)| line).collect())
}

#[test]
fn files_are_counted_and_listed_but_not_read() {
    let bed = Bed::new("M");
    let first = bed.file("one", &[1; 1000]);
    fs::hard_link(&first, bed.path("two")).unwrap();
    symlink("one", bed.path("link")).unwrap();
    let _listener = UnixListener::bind(bed.path("socket")).unwrap();
    let (result, lines) = run(&bed, true, 0);
    // Sockets count, and later names of a file have no size.
    assert_eq!(result, EstimateTotals { files: 5, bytes: 1000 });
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().any(|line| line.starts_with("lrwxrwxrwx") && line.ends_with("/link -> one\n")));
    assert!(lines.iter().any(|line| line.starts_with('s')));
    assert_eq!(run(&bed, false, 0), (result, Vec::new()));
}

#[test]
fn a_canceled_estimate_has_no_result() {
    let bed = Bed::new("M");
    let plan = plan(&bed, WalkSettings::default(), false);
    let cancel = CancelToken::new();
    cancel.cancel();
    let log: &dyn JobLog = &Log::new(Arc::default());
    assert!(matches!(estimate(&plan, log, &cancel), Err(BackupError::Canceled)));
}

/// No other name has the data in this job, so it is sent.
#[test]
fn a_new_name_of_an_unchanged_file_counts_with_its_bytes() {
    let mut accurate = Accurate::new("MCmcs5:", CHANGES, 4);
    let old = accurate.bed.file("d/m", HELLO);
    for name in ["d/a", "d/z"] {
        fs::hard_link(&old, accurate.bed.path(name)).unwrap();
    }
    accurate.list("d/m", HELLO_DIGEST);
    accurate.list.complete();
    let bed = &mut accurate.bed;
    bed.plan.accurate = Some(Arc::new(accurate.list));
    let walk = WalkSettings { purpose: Purpose::Estimate { limit: 0 }, ..bed.plan.walk.clone() };
    let plan = EstimatePlan { accurate: bed.plan.accurate.clone(), ..plan(bed, walk, false) };
    let result = estimate(&plan, &Log::new(Arc::default()), &CancelToken::new()).unwrap();
    let sent = bed.run().records().into_iter().filter(|record| record.stream == 2).count();
    assert_eq!((result.bytes, sent), (2 * HELLO.len() as u64, 2));
}
