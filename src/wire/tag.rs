//! Tag numbers.
//!
//! Own tags are four ASCII letters read as a 32-bit big-endian number, in the first-come range of
//! the registry (RFC 8949, section 9.2), as RFC 9277 does for file magic.

/// Unsigned bignum (RFC 8949, section 3.4.3).
pub const BIGNUM: u64 = 2;
/// Negative bignum (RFC 8949, section 3.4.3).
pub const NEGATIVE_BIGNUM: u64 = 3;
/// Reference to the n-th string before: needs what was read earlier, so it cannot be skipped.
pub const STRING_REFERENCE: u64 = 25;
/// Reference to a shared value before, as 25.
pub const SHARED_REFERENCE: u64 = 29;
/// Multi-dimensional array, row-major (RFC 8746, section 3.1.1).
pub const ROW_MAJOR: u64 = 40;
/// Multi-dimensional array, column-major (RFC 8746, section 3.1.2).
pub const COLUMN_MAJOR: u64 = 1040;
/// Complex numbers as interleaved parts in a typed array.
pub const COMPLEX: u64 = 43001;
/// `[dtype name, shape, order, bytes]`.
pub const TENSOR: u64 = own(*b"TENS");
/// `Some` of what would otherwise be read as `None`.
pub const SOME: u64 = own(*b"TSOM");
/// Reference to a buffer of an archive; nothing a message can hold.
pub const BUFFER: u64 = own(*b"TBUF");

/// Whether a tag stands for a tensor or a sequence of numbers: the own tags and those of RFC 8746, of
/// which 76 is reserved.
pub const fn is_array(tag: u64) -> bool {
    matches!(tag, ROW_MAJOR | COLUMN_MAJOR | COMPLEX | TENSOR | BUFFER | 64..=75 | 77..=87)
}

const fn own(name: [u8; 4]) -> u64 {
    u32::from_be_bytes(name) as u64
}
