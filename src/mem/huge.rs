//! Large pages for large memory.

/// From this size on memory is fresh from the system, and zero already, more often than not.
pub const LARGE: usize = 1 << 20;

/// Asks the system to back fresh memory that is about to be filled by large pages, as far as it
/// holds any whole: they take a five hundredth of the page faults, which cost more than the copies
/// do. What does not support it goes without.
pub fn prefer_large_pages(memory: &mut [u8]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const PAGE: usize = 2 << 20;
        let head = memory.as_ptr().align_offset(PAGE);
        let Some(inner) = memory.get_mut(head..).filter(|inner| inner.len() >= PAGE) else {
            return;
        };
        let len = inner.len() & !(PAGE - 1);
        // SAFETY: the range lies within memory that is borrowed mutably; the advice changes how
        // it is backed, not what is in it.
        unsafe { libc::madvise(inner.as_mut_ptr().cast(), len, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = memory;
}
