//! A sequence that is written as columns is read as the same sequence, whatever its elements are.

mod same_as_rows;
mod written;
