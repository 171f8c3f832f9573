//! Memory that is in the same state for every peer.
//!
//! The allocator: glibc allocates large blocks with `mmap` and small ones on the heap. It moves the threshold while a
//! program runs, and uses free holes in the heap for large blocks too. So the page faults of a large block
//! would depend on what ran before. Here, every block of 128 KiB or more (glibc's initial threshold) is a
//! mapping of its own: new from the kernel, and returned to it when it is freed. Smaller blocks come from
//! a heap that keeps its pages.

#[cfg(target_os = "linux")]
mod linux {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::ptr::null_mut;

    const LARGE: usize = 128 << 10;
    /// The smallest page size. Blocks with a larger alignment go to the heap.
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

    // SAFETY: a block's layout alone decides whether it is a mapping, so each block is freed in the way it
    // was allocated. Mappings are aligned to pages and have the requested length.
    unsafe impl GlobalAlloc for Steady {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if is_mapped(layout) {
                return map(layout.size());
            }
            // SAFETY: the caller's obligations are those of `System`.
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
                // As in glibc, the kernel moves the pages, without copying their content.
                // SAFETY: the block is a whole mapping of the old size.
                (true, true) => pointer(unsafe {
                    libc::mremap(block.cast(), layout.size(), size, libc::MREMAP_MAYMOVE)
                }),
                // SAFETY: the blocks do not overlap, and the length of the shorter one is copied.
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

/// Uses `len` bytes of memory and gives them back to the system.
///
/// A virtual machine gives large pages that nobody uses back to its host after some time, and waits up to seconds until it
/// gets gigabytes of them again. The first row that needs them would have to wait, and those behind it would not. So call
/// this before each run that allocates very much, outside of the time that is measured.
#[cfg(unix)]
pub fn warm(len: usize) {
    let mut memory = memmap2::MmapMut::map_anon(len).unwrap();
    #[cfg(target_os = "linux")]
    memory.advise(memmap2::Advice::HugePage).unwrap();
    memory.fill(1);
}

/// Configures the heap, and returns a description of how memory is allocated.
pub fn configure() -> &'static str {
    // The heap keeps freed memory at its end.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt takes two numbers and is called before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
    }
    if cfg!(target_os = "linux") {
        "New memory of 128 KiB or more comes from the kernel each time; smaller blocks are reused."
    } else {
        "On this platform, the allocator decides whether new memory comes from the kernel."
    }
}
