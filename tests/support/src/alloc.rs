//! An allocator that counts what each thread allocates, and can refuse large allocations.
//!
//! A test program that measures installs it:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;
//! ```
//!
//! Every thread has counters of its own, so tests that measure can run beside others. Memory that
//! other threads allocate for a measured piece of code is not counted.

#![allow(unsafe_code)] // A global allocator is unsafe to write.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

/// The system's allocator, and counters.
pub struct Counting;

thread_local! {
    // Constant and without destructors: the allocator can use them at any time.
    /// Bytes allocated and not yet freed. Negative on a thread that frees what another allocated.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// The highest value of `LIVE` since a measurement began.
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// Bytes allocated, whether or not they were freed.
    static OBTAINED: Cell<usize> = const { Cell::new(0) };
    /// Allocations and reallocations of at least `LARGE_FROM` bytes.
    static LARGE: Cell<usize> = const { Cell::new(0) };
    /// Larger allocations are refused.
    static LARGEST: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// From this size on an allocation counts as large.
const LARGE_FROM: usize = 1 << 20;

fn is_allowed(size: usize) -> bool {
    !LARGEST.try_with(Cell::get).is_ok_and(|largest| size > largest)
}

fn change(by: isize) {
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + by);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

fn obtained(grown: usize, size: usize) {
    let _ = OBTAINED.try_with(|cell| cell.set(cell.get() + grown));
    if size >= LARGE_FROM {
        let _ = LARGE.try_with(|cell| cell.set(cell.get() + 1));
    }
}

// SAFETY: all memory comes from the system's allocator and goes back to it, with the arguments of the
// caller; an allocator may refuse. Counting neither allocates nor unwinds: no layout is larger than
// `isize::MAX`, and what a thread allocates in all stays far below `usize::MAX`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        change(layout.size().cast_signed());
        obtained(layout.size(), layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        change(layout.size().cast_signed());
        obtained(layout.size(), layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        change(-layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    // An allocator that cannot grow a block in place copies it, and both exist meanwhile. The peak
    // counts both, whatever the system's allocator does.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_allowed(size) {
            return std::ptr::null_mut();
        }
        change(size.cast_signed());
        change(-layout.size().cast_signed());
        obtained(size.saturating_sub(layout.size()), size);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// A measurement without the allocator would always give zero, and the test could not fail.
#[track_caller]
fn assert_installed() {
    let before = OBTAINED.get();
    drop(black_box(Box::new(0u8)));
    assert!(OBTAINED.get() > before, "`Counting` is not this program's global allocator");
}

/// Runs the code. Returns the most bytes that its thread had allocated at one time meanwhile, beyond
/// those it had before.
#[track_caller]
pub fn peak_of<T>(code: impl FnOnce() -> T) -> (T, usize) {
    assert_installed();
    let before = LIVE.get();
    PEAK.set(before);
    let result = code();
    (result, (PEAK.get() - before).cast_unsigned())
}

/// What a piece of code allocated on its thread.
#[derive(Debug, Clone, Copy)]
pub struct Allocated {
    /// Bytes allocated, whether or not they were freed. A block that grows counts by what it gains.
    pub bytes: usize,
    /// Allocations and reallocations of a mebibyte or more.
    pub large: usize,
}

/// Runs the code and counts what it allocates.
#[track_caller]
pub fn allocated<T>(code: impl FnOnce() -> T) -> (T, Allocated) {
    assert_installed();
    let before = (OBTAINED.get(), LARGE.get());
    let result = code();
    (result, Allocated { bytes: OBTAINED.get() - before.0, large: LARGE.get() - before.1 })
}

/// Runs the code; allocations of more than `largest` bytes fail meanwhile.
#[track_caller]
pub fn refusing_above<T>(largest: usize, code: impl FnOnce() -> T) -> T {
    assert_installed();
    LARGEST.set(largest);
    let result = code();
    LARGEST.set(usize::MAX);
    result
}

#[cfg(test)]
mod tests {
    use super::{Counting, allocated, peak_of, refusing_above};

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn the_peak_is_measured() {
        let (kept, most) = peak_of(|| {
            drop(vec![0u8; 5000]);
            vec![0u8; 3000]
        });
        assert_eq!((kept.len(), most), (3000, 5000));
        let (_, most) = peak_of(|| (vec![1u8; 2000], drop(kept)));
        assert_eq!(most, 2000);
    }

    #[test]
    fn a_block_that_grows_counts_twice_in_the_peak() {
        let mut grown = Vec::<u8>::with_capacity(1000);
        let ((), most) = peak_of(|| grown.reserve_exact(5000));
        assert_eq!((grown.capacity(), most), (5000, 5000));
        let (_, most) = peak_of(|| {
            let mut grown = Vec::<u8>::with_capacity(1000);
            grown.reserve_exact(5000);
            grown
        });
        assert_eq!(most, 6000);
    }

    #[test]
    fn large_allocations_are_refused() {
        assert!(refusing_above(1000, || Vec::<u8>::new().try_reserve_exact(1001).is_err()));
        assert!(refusing_above(1000, || Vec::<u8>::new().try_reserve_exact(1000).is_ok()));
        assert!(Vec::<u8>::new().try_reserve_exact(1001).is_ok());
    }

    #[test]
    fn allocations_are_counted() {
        let (kept, count) = allocated(|| vec![0u8; 2 << 20]);
        assert_eq!((count.bytes, count.large), (2 << 20, 1));
        let (_, count) = allocated(|| (kept.clone(), vec![1u8; 100]));
        assert_eq!((count.bytes, count.large), ((2 << 20) + 100, 1));
        let mut grown = Vec::<u8>::with_capacity(100);
        let ((), count) = allocated(|| grown.reserve_exact(1000));
        assert_eq!((count.bytes, count.large), (900, 0));
    }
}
