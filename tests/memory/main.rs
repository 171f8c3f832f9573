//! Saving, loading and sending take little memory beside the value itself, and copy tensors no more
//! often than they must.

mod archives;
mod copies;
mod deferred;
mod hostile;
mod pages;
mod parts;
mod rows;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;
