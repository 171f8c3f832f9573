//! One module for each defect that was once here.

mod lying_writers;
mod memory_of_tensors;
mod plain_sequences_in_untagged_enums;
mod singles_from_doubles;
mod wide_integers;
mod widths_of_rows;

#[path = "../common/peak.rs"]
mod peak;
