/// The length of a cache line, in bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// Tells the processor that these bytes will be read soon. It starts to load them into its cache, and goes on with the
/// next instruction at once. Does nothing on processors for which the standard library has no such instruction.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    // Miri does not know the instruction.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        // SAFETY: every x86-64 processor has the instruction, which is part of SSE. It changes no values, and it may be
        // given any address. This one is inside of a slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = bytes;
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn bytes_of_any_length_and_address_can_be_prefetched() {
        let bytes: Vec<u8> = (0..200).collect();
        for start in [0, 1, 63, 64, 200] {
            for end in [start, 200] {
                prefetch(&bytes[start..end]);
            }
        }
        prefetch(&[]);
        assert!(bytes.iter().copied().eq(0..200));
    }
}
