//! Work that waits most of the time, done side by side.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::error::Result;

/// Does the work for each item, for so many at a time; the results in the order of the items, or an
/// error of one.
pub fn in_parallel<T: Sync, R: Send>(
    at_a_time: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)));
    let some = || std::iter::from_fn(take).map(|(at, item)| Ok((at, work(item)?))).collect::<Result<Vec<_>>>();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_a_time).map(|_| scope.spawn(some)).collect();
        let mut done = BTreeMap::new();
        for thread in threads {
            done.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok(done.into_values().collect())
    })
}
