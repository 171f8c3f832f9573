//! Defects that were fixed stay fixed: one module for each.

// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
#![allow(clippy::float_cmp)]

mod all_reads_of_cut_segments;
mod append_right_after_a_save;
mod budget_of_rows_without_bytes;
mod byte_strings_of_cut_segments;
mod categories_pass_through_serde;
mod checkpoints_of_another_type;
mod columns_that_break_rules;
mod cut_columns;
mod cut_segments;
mod elements_of_packed_sequences;
mod fields_that_are_numbers;
mod item_len_overflow;
mod key_twice_in_a_map;
mod keys_of_flattened_maps;
mod lying_writers;
mod many_dots_in_keys;
mod memory_of_tensors;
mod metadata_in_one_way;
mod paths_of_all_keys;
mod plain_sequences_in_untagged_enums;
mod prefetch_of_large_tensors;
mod references_beside_buffers;
mod references_that_nobody_reads;
mod rows_of_compressed_tables;
mod sequences_in_buffers;
mod shared_directory_blocks;
mod singles_from_doubles;
mod tensors_from_columns;
mod texts_of_json;
mod unfinished_appends;
mod values_that_do_not_decode;
mod wide_integers;
mod widths_of_rows;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;
