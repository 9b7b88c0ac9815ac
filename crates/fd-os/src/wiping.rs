//! An allocator that overwrites what threads free that have handled secrets.
//!
//! A password or a key passes through many pieces of memory on its way: the file or frame that it
//! stood in, the words of that, the buffers that grew meanwhile. Types that overwrite themselves
//! cover the ends of the way; this covers the way.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use zeroize::Zeroize as _;

thread_local! {
    /// Whether this thread overwrites what it frees.
    static WIPES: Cell<bool> = const { Cell::new(false) };
}

/// From now on this thread overwrites whatever it frees, until it ends. For threads that handle
/// secrets, and do not work on the contents of files: it costs what writing that memory costs.
pub fn wipe_what_this_thread_frees() {
    WIPES.with(|wipes| wipes.set(true));
}

fn wipes() -> bool {
    WIPES.with(Cell::get)
}

/// The system's allocator, with [`wipe_what_this_thread_frees`].
#[derive(Debug, Default, Clone, Copy)]
pub struct Wiping;

/// Overwrites a piece of memory that is no longer used.
///
/// # Safety
/// `size` bytes at `piece` are allocated, and there is no other reference to them.
unsafe fn wipe(piece: *mut u8, size: usize) {
    // SAFETY: the caller owns the piece; for bytes of `MaybeUninit` it does not matter what they
    // held.
    unsafe { std::slice::from_raw_parts_mut(piece.cast::<std::mem::MaybeUninit<u8>>(), size) }.zeroize();
}

// SAFETY: each call is handed to the system's allocator with the layout that it came with; a piece
// that moves is allocated, copied and freed as the contract of `realloc` demands.
unsafe impl GlobalAlloc for Wiping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if wipes() {
            // SAFETY: the caller gives up the piece, which has the size of the layout.
            unsafe { wipe(piece, layout.size()) };
        }
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(piece, layout) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !wipes() {
            // SAFETY: the caller keeps the contract of `realloc`.
            return unsafe { System.realloc(piece, layout, new_size) };
        }
        // SAFETY: the caller says that the new size, rounded up to the alignment, is a possible one
        // and not 0.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the new layout is a good one and not empty.
        let new = unsafe { System.alloc(new_layout) };
        if !new.is_null() {
            // SAFETY: both pieces have at least so many bytes, and the new one has no other user.
            unsafe { std::ptr::copy_nonoverlapping(piece, new, layout.size().min(new_size)) };
            // SAFETY: the caller gives up the old piece when a new one comes back.
            unsafe { self.dealloc(piece, layout) };
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That nothing stays is for the test of the whole daemon (`secrets_do_not_stay_in_memory`): no
    /// code may read memory that is freed. Here a piece of the test's own is overwritten, and what
    /// grows and shrinks keeps its contents.
    #[test]
    fn freed_memory_is_zero_and_moved_memory_is_kept() {
        let layout = Layout::array::<u8>(64).unwrap();
        let mut pool = [0xAA_u8; 64];
        // SAFETY: the pool is 64 bytes long and has no other user.
        unsafe { wipe(pool.as_mut_ptr(), layout.size()) };
        assert_eq!(pool, [0; 64]);
        let grown = std::thread::spawn(move || {
            assert!(!wipes());
            wipe_what_this_thread_frees();
            assert!(wipes());
            let large = Layout::array::<u8>(4096).unwrap();
            // SAFETY: the layout is not empty.
            let piece = unsafe { Wiping.alloc(layout) };
            // SAFETY: the piece has 64 bytes.
            unsafe { piece.write_bytes(7, 64) };
            // SAFETY: the piece has this layout, and the new size is possible.
            let piece = unsafe { Wiping.realloc(piece, layout, large.size()) };
            // SAFETY: the first 64 bytes are those that were written.
            let seen = unsafe { std::slice::from_raw_parts(piece, 64) }.to_vec();
            // SAFETY: the piece has this layout, and the new size is possible.
            let piece = unsafe { Wiping.realloc(piece, large, layout.size()) };
            // SAFETY: 64 bytes are left.
            let kept = unsafe { std::slice::from_raw_parts(piece, 64) }.to_vec();
            // SAFETY: the piece has this layout and is not used any more.
            unsafe { Wiping.dealloc(piece, layout) };
            (seen, kept)
        });
        assert_eq!(grown.join().unwrap(), (vec![7; 64], vec![7; 64]));
        assert!(!wipes(), "only that thread");
    }
}
