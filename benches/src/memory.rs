//! An allocator that does the same for everybody.
//!
//! glibc moves the border between its heap and fresh mappings while a program runs, and serves
//! large blocks from holes in the heap where there are any, so whether a block of some megabytes
//! meets page faults would depend on who ran before. Here every block of 128 KiB and more (where
//! glibc's border lies when a program starts) is a mapping of its own, new from the kernel each
//! time and given back when freed; and smaller ones come from a heap that keeps its pages.

#[cfg(target_os = "linux")]
mod linux {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::ptr::null_mut;

    const LARGE: usize = 128 << 10;
    /// The least there is; what wants to be aligned more goes to the heap.
    const PAGE: usize = 4096;

    struct Steady;

    #[global_allocator]
    static STEADY: Steady = Steady;

    fn is_mapped(layout: Layout) -> bool {
        layout.size() >= LARGE && layout.align() <= PAGE
    }

    fn pointer(address: *mut libc::c_void) -> *mut u8 {
        if address == libc::MAP_FAILED { null_mut() } else { address.cast() }
    }

    fn map(size: usize) -> *mut u8 {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping touches no memory that is in use.
        pointer(unsafe { libc::mmap(null_mut(), size, access, kind, -1, 0) })
    }

    // SAFETY: a block's layout alone says whether it is a mapping, so each is given back to where
    // it came from; mappings are aligned to pages and as long as asked for.
    unsafe impl GlobalAlloc for Steady {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if is_mapped(layout) {
                return map(layout.size());
            }
            // SAFETY: the caller's promises are those System asks for.
            unsafe { System.alloc(layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            if is_mapped(layout) {
                return map(layout.size());
            }
            // SAFETY: as above.
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            if is_mapped(layout) {
                // SAFETY: the block is a whole mapping of this size, and no longer used.
                unsafe { libc::munmap(block.cast(), layout.size()) };
                return;
            }
            // SAFETY: as above.
            unsafe { System.dealloc(block, layout) }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: the caller promises that the size is not too large for the alignment.
            let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
            match (is_mapped(layout), is_mapped(new)) {
                // SAFETY: as above.
                (false, false) => unsafe { System.realloc(block, layout, size) },
                // As glibc does: the pages move, not what is in them.
                // SAFETY: the block is a whole mapping of the old size.
                (true, true) => pointer(unsafe {
                    libc::mremap(block.cast(), layout.size(), size, libc::MREMAP_MAYMOVE)
                }),
                // SAFETY: two blocks, of which the shorter's length is copied.
                _ => unsafe {
                    let moved = self.alloc(new);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                },
            }
        }
    }
}

/// Settles what is left to settle, and says what memory is like.
pub fn settle() -> &'static str {
    // Freed memory at the heap's end stays there.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt takes two numbers and is called before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
    }
    if cfg!(target_os = "linux") {
        "Blocks of 128 KiB and more are fresh from the kernel each time, smaller ones recycled."
    } else {
        "Whether fresh memory is fresh from the kernel is up to this platform's allocator."
    }
}
