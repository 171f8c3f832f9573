//! An allocator that counts, for each thread by itself.

#![allow(unsafe_code)] // A global allocator is unsafe to write.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counter;

#[global_allocator]
static COUNTER: Counter = Counter;

thread_local! {
    // Constant and without a destructor: usable from inside the allocator.
    static OBTAINED: Cell<usize> = const { Cell::new(0) };
    static LARGE: Cell<usize> = const { Cell::new(0) };
}

/// From this size on an allocation counts as large.
const LARGE_FROM: usize = 1 << 20;

fn count(grown: usize, size: usize) {
    let _ = OBTAINED.try_with(|cell| cell.set(cell.get() + grown));
    if size >= LARGE_FROM {
        let _ = LARGE.try_with(|cell| cell.set(cell.get() + 1));
    }
}

// SAFETY: every call is handed on to the system's allocator with the arguments it came with;
// counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()), size);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// What a piece of code allocated on its thread.
#[derive(Debug, Clone, Copy)]
pub struct Allocated {
    /// Bytes obtained, whether or not they were given back; growth counts by what it adds.
    pub bytes: usize,
    /// Allocations and reallocations of a mebibyte or more.
    pub large: usize,
}

/// Runs the code and counts.
pub fn allocated<T>(code: impl FnOnce() -> T) -> (T, Allocated) {
    let before = (OBTAINED.get(), LARGE.get());
    let result = code();
    (result, Allocated { bytes: OBTAINED.get() - before.0, large: LARGE.get() - before.1 })
}

#[test]
fn the_counter_counts() {
    let (kept, count) = allocated(|| vec![0u8; 2 << 20]);
    assert_eq!((count.bytes, count.large), (2 << 20, 1));
    let (_, count) = allocated(|| (kept.clone(), vec![1u8; 100]));
    assert_eq!((count.bytes, count.large), ((2 << 20) + 100, 1));
    let mut grown = Vec::<u8>::with_capacity(100);
    let ((), count) = allocated(|| grown.reserve_exact(1000));
    assert_eq!((count.bytes, count.large), (900, 0));
}
