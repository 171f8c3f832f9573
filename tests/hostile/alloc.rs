//! An allocator that counts for each thread, and can refuse.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn allowed(size: usize) -> bool {
    size <= LARGEST.get()
}

fn count(change: isize) {
    LIVE.set(LIVE.get() + change);
    PEAK.set(PEAK.get().max(LIVE.get()));
}

// SAFETY: all memory comes from and goes back to the system's allocator; refusing is allowed.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !allowed(size) {
            return std::ptr::null_mut();
        }
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// How many bytes were allocated at most, at one time, beyond what was before.
pub fn peak_of<R>(act: impl FnOnce() -> R) -> (R, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = act();
    (result, (PEAK.get() - before).cast_unsigned())
}

/// Refuses larger allocations meanwhile.
pub fn refusing_above<R>(largest: usize, act: impl FnOnce() -> R) -> R {
    LARGEST.set(largest);
    let result = act();
    LARGEST.set(usize::MAX);
    result
}

#[test]
fn counts_and_refuses() {
    let (kept, peak) = peak_of(|| {
        drop(vec![1u8; 100_000]);
        vec![1u8; 10]
    });
    assert_eq!(kept.len(), 10);
    assert!((100_000..110_000).contains(&peak), "{peak}");
    let refused = refusing_above(1000, || Vec::<u8>::new().try_reserve_exact(1001).is_err());
    assert!(refused);
    assert!(Vec::<u8>::new().try_reserve_exact(1001).is_ok());
}
