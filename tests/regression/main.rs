//! Defects that were found and mended: one file for each.

mod append_right_after_a_save;
mod checkpoints_of_another_type;
