//! Advice to the operating system about large pieces of memory.

/// For allocations of this size or more, allocators usually get fresh pages from the operating
/// system. These are zero already.
pub const LARGE: usize = 1 << 20;

/// Asks the operating system to back `memory` with pages of 2 MiB, for fresh memory that is about to
/// be filled.
///
/// Large pages cause about a five hundredth of the page faults, and page faults cost more time than
/// the copies that fill the memory. Only the part of `memory` that covers whole large pages is
/// affected. On systems without this feature the function does nothing.
pub fn prefer_large_pages<T>(memory: &mut [T]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const PAGE: usize = 2 << 20;
        let start = memory.as_mut_ptr().cast::<u8>();
        let head = start.align_offset(PAGE);
        let len = size_of_val(memory).saturating_sub(head) & !(PAGE - 1);
        if len == 0 {
            return;
        }
        // SAFETY: the range is inside memory that is borrowed mutably. The advice changes how the
        // system backs the memory, not its contents.
        unsafe { libc::madvise(start.wrapping_add(head).cast(), len, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = memory;
}
