//! Tables of many segments become tables of few, with the same rows.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::archive::{Compaction, Compression, SaveOptions, col};
use tenarc::error::Category;
use tenarc::tensor::Order;
use tenarc::types::{Parameter, TimeUnit, TypeName, Typed};
use tenarc::{Archive, DType, DynTensor, OArchive, Tensor, Value};
use tenarc_test_support::builder::{Built, Seg, array, text, unsigned};

use crate::build::{Style, Writer, columns, f32s, kind as column, texts, u8s};
use crate::same_as_rows::{adjacent, everything, internal, kind, numbers, untagged};

/// Writes an archive anew and checks the new one.
#[track_caller]
fn compacted(archive: &Archive<Vec<u8>>, compaction: &Compaction) -> Archive<Vec<u8>> {
    with_options(archive, compaction, SaveOptions::default())
}

#[track_caller]
fn with_options(
    archive: &Archive<Vec<u8>>,
    compaction: &Compaction,
    options: SaveOptions,
) -> Archive<Vec<u8>> {
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    let done = compaction.write_to(archive, &mut out).unwrap();
    let new = Archive::new(out.finish().unwrap()).unwrap();
    new.verify_decoded().unwrap();
    for table in done.tables() {
        let Some(name) = table.name() else { continue };
        let before = archive.table(name).unwrap();
        let after = new.table(name).unwrap();
        assert_eq!((table.rows_before(), table.rows()), (before.len(), after.len()));
        let named = |archive: &Archive<Vec<u8>>| {
            archive.entries().filter(|entry| entry.as_ref().unwrap().name() == Some(name)).count()
        };
        let segments = (named(archive) as u64, named(&new) as u64);
        assert_eq!((table.segments_before(), table.segments()), segments);
    }
    new
}

/// The rows of a table, so that they can be compared: a NaN equals itself.
fn shown(archive: &Archive<Vec<u8>>, name: &str) -> Vec<String> {
    let rows = archive.table(name).unwrap().rows::<Value>(..).unwrap();
    rows.iter().map(Value::to_string).collect()
}

fn segments(archive: &Archive<Vec<u8>>) -> u64 {
    archive.len()
}

/// Saves these parts of rows under one name.
fn saved<T: Serialize>(parts: &[&[T]], options: SaveOptions) -> Archive<Vec<u8>> {
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    for part in parts {
        out.save_as("t", part).unwrap();
    }
    Archive::new(out.finish().unwrap()).unwrap()
}

/// Merges rows that are written by hand, in each style, and with and without buffers.
#[track_caller]
pub fn merges(rows: &[Value], styles: &[Style]) {
    let mut built = Built::new();
    for (number, style) in styles.iter().enumerate() {
        for buffers in [false, true] {
            let rows = &rows[rows.len() * number / styles.len() / 2..];
            // Metadata has definite lengths.
            let mut writer = Writer::new(Style { buffers, indefinite: false, ..*style });
            let metadata = writer.document(rows);
            let buffers: Vec<&[u8]> = writer.buffers.iter().map(|buffer| &buffer[..]).collect();
            built = built.segment(&Seg::new(metadata, &buffers).named("t"));
        }
    }
    let archive = Archive::new(built.end().bytes).unwrap();
    let new = compacted(&archive, &Compaction::new());
    assert_eq!(shown(&new, "t"), shown(&archive, "t"));
    assert_eq!(segments(&new), 1);
    // What was merged is merged again to the same bytes.
    let again = compacted(&new, &Compaction::new().named("t"));
    assert!(again.source() == new.source());
}

/// Merges rows that are saved in two parts and in one, and compares them with all rows that are saved at once.
#[track_caller]
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(rows: &[T], at: usize) {
    for inline_below in [0, 2048] {
        let options = SaveOptions::default().with_columns(true).with_inline_below(inline_below);
        let (one, other) = rows.split_at(at);
        let archive = saved(&[one, other, &[], rows], options.clone());
        let new = with_options(&archive, &Compaction::new(), options.clone());
        let read: Vec<T> = new.table("t").unwrap().rows(..).unwrap();
        assert_eq!(read[..rows.len()], *rows);
        assert_eq!(read[rows.len()..], *rows);
        assert_eq!(shown(&new, "t"), shown(&archive, "t"));
        assert_eq!(segments(&new), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 16 } else { 256 }))]

    #[test]
    fn rows_of_everything(rows in vec(everything(), 2..20), at in 0usize..20) {
        same(&rows, at.min(rows.len()));
    }

    #[test]
    fn rows_of_numbers(rows in vec(numbers(), 2..60), at in 0usize..60) {
        same(&rows, at.min(rows.len()));
    }

    #[test]
    fn enums(rows in vec(kind(), 2..40), at in 0usize..40) {
        same(&rows, at.min(rows.len()));
    }

    #[test]
    fn enums_in_other_representations(
        untagged in vec(untagged(), 16..24),
        internal in vec(internal(), 16..24),
        adjacent in vec(adjacent(), 16..24),
        at in 0usize..16,
    ) {
        let rows: Vec<_> = untagged.into_iter().zip(internal).zip(adjacent).collect();
        same(&rows, at);
    }
}
