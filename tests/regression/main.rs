//! One module for each defect that was once here.

mod lying_writers;
mod widths_of_rows;
