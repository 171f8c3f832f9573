//! One module for each defect that was once here.

mod lying_writers;
