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

/// Linux reads only part of a longer range, and says nothing of the rest. How much it reads depends on the drive and is
/// at least as much as this, its default for reading ahead.
#[cfg(all(target_os = "linux", not(miri)))]
const READ_AHEAD: usize = 128 << 10;

/// Asks the operating system to read these bytes from their file now, if they are mapped from one. Does not wait
/// for them, but may wait until the drive takes more requests. On systems without this feature the function does nothing.
pub fn read_ahead(bytes: &[u8]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // Pages have this length or a multiple of it. The advice must start at the start of a page.
        // SAFETY: `sysconf` has no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let before = bytes.as_ptr() as usize % page;
        let (start, len) = (bytes.as_ptr().wrapping_sub(before), before + bytes.len());
        for at in (0..len).step_by(READ_AHEAD.next_multiple_of(page)) {
            let piece = (len - at).min(READ_AHEAD.next_multiple_of(page));
            // SAFETY: the pages belong to one mapping, or one allocation, which is borrowed. The advice changes neither
            // their contents nor their protection, and the system accepts it for any memory.
            unsafe {
                libc::madvise(start.wrapping_add(at).cast_mut().cast(), piece, libc::MADV_WILLNEED)
            };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = bytes;
}
