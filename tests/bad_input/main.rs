//! Whatever the bytes of a message or an archive are, reading them gives a correct value or an error
//! that says what is wrong and where, in bounded memory, time and stack.
//!
//! Numbers in these tests are those of `docs/threats.md`: groups A to L and N.

mod archives;
mod error_messages;
mod messages;
mod mutations;

use tenarc::error::Category;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;

/// Whether an error has one of these categories. Where `Data` is expected, the type that is asked for may notice first that the
/// bytes are of another type, or that it cannot be had: `error_messages.rs` checks which of them it is.
fn is_one_of(error: &tenarc::Error, expected: &[Category]) -> bool {
    let is_other_type = matches!(error.category(), Category::Mismatch | Category::Unsupported);
    expected.contains(&error.category()) || is_other_type && expected.contains(&Category::Data)
}
