//! One module for each defect that was found and mended.

mod item_len_overflow;
mod key_twice_in_a_map;
mod many_dots_in_keys;
mod paths_of_all_keys;
