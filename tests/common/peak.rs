//! An allocator that keeps the peak, for each thread by itself.

#![allow(unsafe_code)] // A global allocator is unsafe to write.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Peak;

#[global_allocator]
static ALLOCATOR: Peak = Peak;

thread_local! {
    // Constant and without a destructor: usable from inside the allocator. Below zero on a thread that
    // frees what another allocated.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn change(by: isize) {
    let _ = NOW.try_with(|now| {
        now.set(now.get() + by);
        let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
    });
}

// SAFETY: every call is handed on to the system's allocator with the arguments it came with;
// counting neither allocates nor unwinds. No layout is larger than `isize::MAX`.
unsafe impl GlobalAlloc for Peak {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size().cast_signed());
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        change(layout.size().cast_signed());
        // SAFETY: as promised by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        change(-layout.size().cast_signed());
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    // While an allocator that cannot grow in place moves a block, both are there.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        change(size.cast_signed());
        change(-layout.size().cast_signed());
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Runs the code; the most that its thread had allocated meanwhile beyond what it had before.
pub fn peak<T>(code: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    MOST.set(before);
    let result = code();
    (result, (MOST.get() - before).unsigned_abs())
}

#[test]
fn the_peak_is_told() {
    let (kept, most) = peak(|| {
        drop(vec![0u8; 5000]);
        vec![0u8; 3000]
    });
    assert_eq!((kept.len(), most), (3000, 5000));
    let (_, most) = peak(|| (vec![1u8; 2000], drop(kept)));
    assert_eq!(most, 2000);
}
