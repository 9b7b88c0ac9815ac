//! What is dropped from the page cache, and that the kernel does it.

use std::cell::RefCell;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;

use super::*;

const MIB: u64 = 1 << 20;
/// Three stretches and a bit.
const SIZE: u64 = 3 * STRETCH + 100;

/// A page cache of which the test decides what is in it: the kernel frees pages when it likes.
struct Fake {
    cached: Range<u64>,
    dropped: RefCell<Vec<Range<u64>>>,
}

impl Pages for Fake {
    fn are_missing(&self, start: u64, len: u64) -> bool {
        self.cached.end <= start || start + len <= self.cached.start
    }

    fn drop(&self, start: u64, len: NonZeroU64) {
        self.dropped.borrow_mut().push(start..start + len.get());
    }
}

/// What is dropped of a file of which this was cached before it was read from begin to end.
fn dropped(cached: Range<u64>) -> Vec<Range<u64>> {
    let file = Fake { cached, dropped: RefCell::default() };
    let mut cache = PageCache::of(&file, SIZE);
    for position in (0..=SIZE).step_by(65_536) {
        cache.reach(&file, position);
    }
    cache.end_stretch(&file);
    file.dropped.into_inner()
}

fn steps(range: Range<u64>) -> Vec<Range<u64>> {
    range.step_by(usize::try_from(STEP).unwrap()).map(|start| start..(start + STEP).min(SIZE)).collect()
}

#[test]
fn what_a_read_brought_is_dropped_in_steps() {
    assert_eq!(dropped(0..0), steps(0..SIZE));
}

#[test]
fn a_stretch_of_which_a_page_was_cached_stays() {
    let others = [steps(0..STRETCH), steps(2 * STRETCH..SIZE)].concat();
    assert_eq!(dropped(STRETCH..2 * STRETCH), others);
    assert_eq!(dropped(STRETCH + MIB..STRETCH + MIB + 1), others);
    assert_eq!(dropped(0..SIZE), []);
}

#[test]
fn a_stretch_that_is_jumped_over_is_left_alone() {
    let file = Fake { cached: 0..0, dropped: RefCell::default() };
    let mut cache = PageCache::of(&file, SIZE);
    for position in [0, MIB, 2 * STRETCH, 2 * STRETCH + MIB] {
        cache.reach(&file, position);
    }
    cache.end_stretch(&file);
    assert_eq!(file.dropped.into_inner(), [0..STRETCH, 2 * STRETCH..3 * STRETCH]);
}

#[test]
fn the_kernel_drops_what_it_is_asked_to() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(SIZE).unwrap();
    file.sync_all().unwrap();
    let ask_to_drop_all = || fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    let resident = |file: &File| resident_pages(file.as_fd(), 0, SIZE).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut [0], 0).unwrap();
    ask_to_drop_all();
    if resident(&file) != 0 {
        return skip::test("this file system keeps pages that it is asked to drop");
    }
    let mut cache = PageCache::new(file.as_fd(), SIZE);
    let (mut buffer, mut total) = (Vec::new(), 0);
    loop {
        buffer.clear();
        match cache.read(file.as_fd(), &mut buffer, 65_536, total).unwrap() as u64 {
            0 => break,
            len => total += len,
        }
    }
    cache.leave(file.as_fd());
    assert_eq!(total, SIZE);
    let left = resident(&file);
    assert!(left * 4096 < STEP, "{left} pages, {cache:?}");
}
