//! One module for each defect that was once here.

mod lying_writers;
mod plain_sequences_in_untagged_enums;
mod widths_of_rows;
