//! Whatever the bytes of a message or an archive are, reading them gives a correct value or an error
//! that says what is wrong and where, in bounded memory, time and stack.
//!
//! Numbers in these tests are those of `docs/threats.md`: groups A to L and N.

mod archives;
mod error_messages;
mod messages;
mod mutations;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;
