//! Tag numbers.
//!
//! The number of a tag that this crate defines is four ASCII letters, read as a 32-bit big-endian
//! number. RFC 9277 makes numbers for file magic in the same way. They are in the range that the
//! registry assigns first come, first served (RFC 8949, section 9.2).

/// Unsigned bignum (RFC 8949, section 3.4.3).
pub const BIGNUM: u64 = 2;
/// Negative bignum (RFC 8949, section 3.4.3).
pub const NEGATIVE_BIGNUM: u64 = 3;
/// Reference to an earlier string, by its number. Such references are not supported, and ignoring the
/// tag would give a wrong value.
pub const STRING_REFERENCE: u64 = 25;
/// Reference to an earlier value that was marked as shared. Not supported, like 25.
pub const SHARED_REFERENCE: u64 = 29;
/// Multi-dimensional array, row-major (RFC 8746, section 3.1.1).
pub const ROW_MAJOR: u64 = 40;
/// Multi-dimensional array, column-major (RFC 8746, section 3.1.2).
pub const COLUMN_MAJOR: u64 = 1040;
/// Complex numbers, as a typed array of real and imaginary parts in turn.
pub const COMPLEX: u64 = 43001;
/// A tensor that RFC 8746 cannot express: `[dtype name, shape, order, bytes]`.
pub const TENSOR: u64 = own(*b"TENS");
/// `Some` around a value that would otherwise be read as `None`, such as `Some(())`.
pub const SOME: u64 = own(*b"TSOM");
/// Reference to a buffer of an archive. Not allowed in messages.
pub const BUFFER: u64 = own(*b"TBUF");
/// A sequence written as columns: `[rows, column, ...]`. See `SPEC.md`, section 7.
pub const COLUMNS: u64 = own(*b"TCOL");

/// A value of a type that is named: `[name, parameters, item]`. See `SPEC.md`, section 7.2.
pub const TYPE: u64 = own(*b"TTYP");

/// Whether the tag marks a tensor, a sequence of numbers or a reference to a buffer. Of the tags of
/// RFC 8746 for typed arrays, 76 is reserved and has no meaning.
pub const fn is_array(tag: u64) -> bool {
    matches!(tag, ROW_MAJOR | COLUMN_MAJOR | COMPLEX | TENSOR | BUFFER | 64..=75 | 77..=87)
}

/// Whether the tag does not occur in metadata: big-endian and clamped numbers, and the reserved tag between them.
pub const fn is_only_in_messages(tag: u64) -> bool {
    matches!(tag, 65..=68 | 73..=76 | 80..=83)
}

/// Whether the tag may mark a packed sequence: a typed array without a shape, or a reference to a buffer.
pub const fn may_be_packed(tag: u64) -> bool {
    is_array(tag) && !matches!(tag, ROW_MAJOR | COLUMN_MAJOR | TENSOR)
}

/// Whether a tagged item has no items inside that a path can lead to: a tensor, a sequence of numbers, a
/// reference to a buffer, columns, or a big integer.
pub const fn is_leaf(tag: u64) -> bool {
    matches!(tag, BIGNUM | NEGATIVE_BIGNUM | COLUMNS) || is_array(tag)
}

/// Whether a typed reader must know the tag to read its content. Any other tag only adds a meaning to an item that can
/// be read without it.
pub const fn has_meaning(tag: u64) -> bool {
    matches!(tag, SOME | STRING_REFERENCE | SHARED_REFERENCE) || is_leaf(tag)
}

const fn own(name: [u8; 4]) -> u64 {
    u32::from_be_bytes(name) as u64
}
