//! One module for each defect that was found and mended.

mod cut_segments;
mod shared_directory_blocks;
mod unfinished_appends;
