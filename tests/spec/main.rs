//! tenarc writes and reads the bytes that `SPEC.md` describes, on hosts of either byte order and any
//! word size. `.ci/run` interprets these tests with Miri for three such targets, so they are small.

mod columns;
mod tensor_bytes;
mod worked_example;
