//! Copies blocks that are larger than the caches.

/// From this many bytes on, writing past the caches is faster: the processor does not first read the
/// memory that it overwrites. Smaller blocks may still be in the cache when they are used next.
const STREAM_FROM: usize = 32 << 20;

/// Appends a slice that fits into the vector's capacity, and returns `true`. Otherwise it changes nothing
/// and returns `false`.
#[inline]
#[must_use]
pub fn append_block(buf: &mut Vec<u8>, bytes: &[u8]) -> bool {
    if buf.capacity() - buf.len() < bytes.len() {
        return false;
    }
    if bytes.len() < STREAM_FROM {
        buf.extend_from_slice(bytes);
    } else {
        append_streaming(buf, bytes);
    }
    true
}

#[cfg(not(target_arch = "x86_64"))]
fn append_streaming(buf: &mut Vec<u8>, bytes: &[u8]) {
    buf.extend_from_slice(bytes);
}

#[cfg(target_arch = "x86_64")]
#[cold]
fn append_streaming(buf: &mut Vec<u8>, bytes: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128};
    // Miri does not know these two. Under Miri a plain write, which needs the same alignment, stands in
    // for the first.
    #[cfg(not(miri))]
    use std::arch::x86_64::{_mm_sfence, _mm_stream_si128};
    #[cfg(miri)]
    use std::ptr::write as _mm_stream_si128;

    const WORD: usize = size_of::<__m128i>();

    // The aligned words in the middle of the room are written past the caches, the bytes before and
    // after them as usual.
    let room = buf.spare_capacity_mut();
    let before = room.as_ptr().align_offset(WORD).min(bytes.len());
    let (first, rest) = bytes.split_at(before);
    let (words, last) = rest.as_chunks::<WORD>();
    assert!(bytes.len() <= room.len());
    // SAFETY: `room` is at least as long as `bytes`, by the assertion. The three parts of `bytes` are written to the
    // same places in `room`, so all writes are inside it. `room` is borrowed mutably, so it does not overlap `bytes`.
    // `_mm_stream_si128` needs addresses that are multiples of 16. The address `before` bytes after the start of `room`
    // is such a multiple, and each word has 16 bytes. If no such address is within `bytes`, there are no words. SSE2 is
    // part of every x86-64 processor.
    #[allow(clippy::cast_ptr_alignment)]
    unsafe {
        let start = room.as_mut_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(first.as_ptr(), start, first.len());
        let mut to = start.add(before);
        for word in words {
            _mm_stream_si128(to.cast::<__m128i>(), _mm_loadu_si128(word.as_ptr().cast()));
            to = to.add(WORD);
        }
        std::ptr::copy_nonoverlapping(last.as_ptr(), to, last.len());
        // Makes these writes visible before any later one, which other threads may wait for.
        #[cfg(not(miri))]
        _mm_sfence();
    }
    let len = buf.len() + bytes.len();
    // SAFETY: all bytes up to this length were written, and they fit into the capacity.
    unsafe { buf.set_len(len) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_to_every_alignment() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        // Under Miri each byte takes its time.
        let starts = if cfg!(miri) { 15..18 } else { 0..40 };
        for start in starts {
            for len in [0, 1, 15, 16, 17, 47, 48, 900] {
                let mut buf = Vec::with_capacity(1000);
                buf.resize(start, 9);
                append_streaming(&mut buf, &bytes[start..start + len]);
                assert!(buf[..start].iter().all(|&byte| byte == 9));
                assert_eq!(buf[start..], bytes[start..start + len], "{start} {len}");
            }
        }
    }

    #[test]
    fn appends_only_what_fits() {
        let mut buf = Vec::with_capacity(10);
        let room = buf.capacity();
        assert!(!append_block(&mut buf, &vec![1; room + 1]));
        assert!(buf.is_empty());
        assert!(append_block(&mut buf, &vec![1; room]));
        assert_eq!(buf, vec![1; room]);
        #[cfg(not(miri))]
        {
            let large: Vec<u8> = (0..251).cycle().take(STREAM_FROM + 3).collect();
            let mut buf = Vec::with_capacity(large.len() + 5);
            buf.extend([1, 2, 3]);
            assert!(append_block(&mut buf, &large));
            assert!(buf[3..] == large && buf[..3] == [1, 2, 3]);
        }
    }
}
