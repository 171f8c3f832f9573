//! Tables of many segments become tables of few, with the same rows.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
#[cfg(feature = "compression")]
use tenarc::archive::Compression;
use tenarc::archive::{Compaction, SaveOptions, col};
use tenarc::error::Category;
use tenarc::tensor::Order;
use tenarc::types::{Parameter, TimeUnit, TypeName, Typed};
use tenarc::{Archive, DType, DynTensor, OArchive, Tensor, Value};
use tenarc_test_support::builder::{Built, Seg, array, bytes, map, tag, text, unsigned};

use crate::build::{Style, Writer, columns, kind as column, texts, u8s};
use crate::same_as_rows::{adjacent, everything, internal, kind, numbers, untagged};

/// Writes an archive anew and checks the new one.
#[track_caller]
fn compacted(archive: &Archive<Vec<u8>>, compaction: &Compaction) -> Archive<Vec<u8>> {
    with_options(archive, compaction, SaveOptions::default())
}

#[track_caller]
fn refused(archive: &Archive<Vec<u8>>, compaction: &Compaction) -> tenarc::Error {
    let mut out = OArchive::new(Vec::new()).unwrap();
    compaction.write_to(archive, &mut out).unwrap_err()
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
    // Values without rows are copied.
    assert_eq!(segments(&new), if rows.is_empty() { segments(&archive) } else { 1 });
    // What was merged is merged again to the same bytes.
    let again = compacted(&new, &Compaction::new().named("t"));
    assert!(rows.is_empty() || again.source() == new.source());
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

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Event {
    id: u32,
    day: String,
    score: Option<f64>,
    image: Tensor<Vec<u8>>,
}

fn events(ids: std::ops::Range<u32>) -> Vec<Event> {
    let event = |id: u32| Event {
        id,
        day: format!("2026-11-{:02}", 1 + id * 7 % 30),
        score: (!id.is_multiple_of(5)).then(|| f64::from(id * 37 % 101)),
        image: Tensor(vec![id.to_le_bytes()[0]; 16]),
    };
    ids.map(event).collect()
}

/// Appends of 20 rows each.
fn appends(count: u32) -> Archive<Vec<u8>> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    for first in 0..count {
        out.save_as("t", &events(first * 20..first * 20 + 20)).unwrap();
        if first == count / 2 {
            out.save_as("other", &Tensor(vec![0.5f32; 1000])).unwrap();
        }
    }
    Archive::new(out.finish().unwrap()).unwrap()
}

#[test]
fn many_appends_take_as_many_bytes_as_one_save() {
    let archive = appends(300);
    let new = compacted(&archive, &Compaction::new());
    let rows = events(0..6000);
    let options = SaveOptions::default().with_statistics(true);
    let mut once = OArchive::with_options(Vec::new(), options).unwrap();
    once.save_as("t", &rows).unwrap().save_as("other", &Tensor(vec![0.5f32; 1000])).unwrap();
    let once = once.finish().unwrap();
    // Not only about as many: it is what is written at once, with statistics.
    assert!(*new.source() == once);
    assert!(2 * archive.byte_len() > 3 * new.byte_len());
    assert_eq!(new.table("t").unwrap().rows::<Event>(..).unwrap(), rows);
}

#[test]
fn rows_that_meet_a_condition_are_deleted() {
    let archive = appends(20);
    let rows = events(0..400);
    // A score that is null is neither more nor less.
    let without = || Compaction::new().named("t").without(col("score").gt(50.0));
    let new = compacted(&archive, &without());
    let kept = |event: &&Event| event.score.is_none_or(|score| score <= 50.0);
    let expected: Vec<Event> = rows.iter().filter(kept).cloned().collect();
    assert!(expected.len() > 100 && expected.iter().any(|event| event.score.is_none()));
    assert_eq!(new.table("t").unwrap().rows::<Event>(..).unwrap(), expected);
    assert_eq!(segments(&new), 2);
    assert_eq!(new.tensor_named("other"), [0.5; 1000]);
    // A table without rows stays one.
    let none = compacted(&archive, &Compaction::new().named("t").without(col("id").gt_eq(0)));
    assert!(none.table("t").unwrap().is_empty());
    assert_eq!(segments(&none), 2);
}

trait TensorNamed {
    fn tensor_named(&self, name: &str) -> Vec<f32>;
}

impl TensorNamed for Archive<Vec<u8>> {
    fn tensor_named(&self, name: &str) -> Vec<f32> {
        self.named(name).unwrap().tensor("").unwrap()
    }
}

#[test]
fn rows_are_sorted() {
    let archive = appends(20);
    let rows = events(0..400);
    let read = |compaction: &Compaction| -> Vec<Event> {
        compacted(&archive, compaction).table("t").unwrap().rows(..).unwrap()
    };
    let mut expected = rows.clone();
    expected.sort_by(|one, other| one.day.cmp(&other.day));
    assert_eq!(read(&Compaction::new().named("t").sorted_by("day")), expected);
    let (mut expected, nulls): (Vec<Event>, Vec<Event>) =
        rows.into_iter().filter(|event| event.id >= 100).partition(|event| event.score.is_some());
    expected.sort_by(|one, other| one.score.partial_cmp(&other.score).unwrap());
    expected.extend(nulls);
    let compaction = Compaction::new().named("t").sorted_by("score").without(col("id").lt(100));
    assert_eq!(read(&compaction), expected);
}

#[test]
fn sorting_keeps_rows_of_every_kind() {
    // The first field says where the row belongs.
    let rows: Vec<Value> = (0..60u32)
        .map(|n| {
            let wild = match n % 4 {
                0 => Value::Null,
                1 => Value::Array(vec![n.into(), "x".repeat(n as usize % 7).into()]),
                2 => Value::Map(vec![("a".into(), n.into()), ("b".into(), Value::Null)]),
                _ => Value::F64(f64::from(n)),
            };
            Value::Map(vec![("at".into(), (n * 37 % 60).into()), ("wild".into(), wild)])
        })
        .collect();
    let mut built = Built::new();
    for (part, style) in rows.chunks(13).zip([
        Style::default(),
        Style { rich: true, ..Style::default() },
        Style { wide: true, ..Style::default() },
        Style { tuples: true, group: 4, ..Style::default() },
        Style { rich: true, group: 5, ..Style::default() },
    ]) {
        let metadata = Writer::new(style).document(part);
        built = built.segment(&Seg::new(metadata, &[]).named("t"));
    }
    let archive = Archive::new(built.end().bytes).unwrap();
    let new = compacted(&archive, &Compaction::new().sorted_by("at"));
    let mut expected = rows;
    expected.sort_by_key(|row| row.get("at").unwrap().as_i128());
    let expected: Vec<String> = expected.iter().map(Value::to_string).collect();
    assert_eq!(shown(&new, "t"), expected);
}

#[test]
fn nan_comes_after_numbers_and_null_last() {
    let rows = [Some(f64::NAN), None, Some(1.5), Some(f64::NEG_INFINITY), None, Some(f64::NAN)];
    #[derive(Serialize)]
    struct Row<T> {
        score: T,
        id: u8,
    }
    let rows: Vec<_> = rows.into_iter().zip(0..).map(|(score, id)| Row { score, id }).collect();
    let archive = saved(&[&rows[..2], &rows[2..]], SaveOptions::default());
    let new = compacted(&archive, &Compaction::new().sorted_by("score"));
    let order: Vec<u8> = new.table("t").unwrap().column("id").unwrap();
    assert_eq!(order, [3, 2, 0, 5, 1, 4]);
    let mixed = [Row { score: "1", id: 1 }];
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("t", &rows).unwrap().save_as("t", &mixed[..]).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let failed = |compaction: &Compaction| refused(&archive, compaction).to_string();
    let error = failed(&Compaction::new().sorted_by("score"));
    assert!(error.contains("a text is beside a number"), "{error}");
    let error = failed(&Compaction::new().sorted_by("scores"));
    assert!(error.contains("`t.scores`"), "{error}");
}

/// An enum whose variants differ from part to part, and a field that comes and goes.
#[test]
fn fields_and_variants_that_some_parts_lack_are_in_one_column() {
    #[derive(Serialize)]
    struct Old {
        a: u8,
        c: u8,
    }
    #[derive(Serialize)]
    struct New {
        a: u8,
        b: Option<&'static str>,
        c: u8,
        d: Kind,
    }
    #[derive(Serialize)]
    enum Kind {
        Quit,
        Click(u8),
    }
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("t", &[Old { a: 1, c: 2 }][..]).unwrap();
    out.save_as("t", &[New { a: 3, b: Some("x"), c: 4, d: Kind::Quit }][..]).unwrap();
    out.save_as("t", &[Old { a: 5, c: 6 }, Old { a: 7, c: 8 }][..]).unwrap();
    out.save_as("t", &[New { a: 9, b: None, c: 10, d: Kind::Click(11) }][..]).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let new = compacted(&archive, &Compaction::new());
    assert_eq!(shown(&new, "t"), shown(&archive, "t"));
    let metadata = tenarc::diag::to_string(new.only().unwrap().metadata().unwrap()).unwrap();
    // One group of five rows.
    assert!(metadata.contains("[5, {"), "{metadata}");
    assert_eq!(metadata.matches("\"present\"").count(), 2, "{metadata}");
    // Rows of other types are groups of their own, because a column keeps its type.
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("t", &[(1u8, 2i64)][..]).unwrap().save_as("t", &[(1u32, 2i64)][..]).unwrap();
    out.save_as("t", &[(3u32, 4i64)][..]).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let new = compacted(&archive, &Compaction::new());
    assert_eq!(shown(&new, "t"), shown(&archive, "t"));
    assert_eq!(segments(&new), 1);
}

#[test]
fn types_with_names_and_halves_are_kept() {
    let wide = TypeName::new("a.b", vec![Parameter::Integer(i128::from(u64::MAX))]).unwrap();
    for of in [TypeName::timestamp(TimeUnit::Second, "Z").unwrap(), wide] {
        let rows = [(Typed::new(&of, &7i64), 1.5f32), (Typed::new(&of, &8), 2.5)];
        let archive = saved(&[&rows, &rows], SaveOptions::default());
        let once = saved(&[&[rows, rows].concat()[..]], SaveOptions::default());
        assert!(compacted(&archive, &Compaction::new()).source() == once.source());
    }
    let halves = |numbers: &[u8]| columns(&[(2, tag(84, &bytes(numbers)))]);
    let built = Built::new()
        .segment(&Seg::new(halves(&[0, 0x3c, 0, 0x40]), &[]).named("t"))
        .segment(&Seg::new(halves(&[0, 0x44, 1, 0x44]), &[]).named("t"));
    let archive = Archive::new(built.end().bytes).unwrap();
    let new = compacted(&archive, &Compaction::new());
    assert_eq!(shown(&new, "t"), shown(&archive, "t"));
    let metadata = new.only().unwrap().metadata().unwrap().to_vec();
    assert!(metadata.windows(8).any(|eight| eight == [0, 0x3c, 0, 0x40, 0, 0x44, 1, 0x44]));
}

/// The names of a category that are ordered stay ordered where their dict can say so.
#[test]
fn categories_stay_dicts() {
    let category = |ordered: u64, codes: &[u8], names: &[&str]| {
        let lengths: Vec<u8> = names.iter().map(|name| u8::try_from(name.len()).unwrap()).collect();
        let dict = column(
            "dict",
            &[u8s(codes), unsigned(names.len() as u64), texts(u8s(&lengths), &names.concat())],
        );
        let rows = codes.len() as u64;
        let of = [text("category"), array(&[unsigned(ordered)]), dict];
        columns(&[(rows, column("type", &of))])
    };
    let merged = |parts: &[Vec<u8>], compaction: &Compaction| {
        let mut built = Built::new();
        for part in parts {
            built = built.segment(&Seg::new(part.clone(), &[]).named("t"));
        }
        let archive = Archive::new(built.end().bytes).unwrap();
        let new = compacted(&archive, compaction);
        tenarc::diag::to_string(new.only().unwrap().metadata().unwrap()).unwrap()
    };
    let parts = [category(0, &[0, 1], &["b", "aa"]), category(0, &[0, 1, 0], &["c", "aa"])];
    let shown = merged(&parts, &Compaction::new());
    // Codes are numbered anew, in the order of their first occurrence.
    assert!(shown.contains("h'0001020102'"), "{shown}");
    assert!(shown.contains("\"baac\""), "{shown}");
    let parts = [category(1, &[0, 1], &["low", "top"]), category(1, &[0, 0, 1], &["low", "top"])];
    let shown = merged(&parts, &Compaction::new());
    assert_eq!(shown.matches("\"category\", [1]").count(), 1, "{shown}");
    let parts = [category(1, &[0, 1], &["low", "top"]), category(1, &[0, 1], &["low", "mid"])];
    let shown = merged(&parts, &Compaction::new());
    assert_eq!(shown.matches("\"category\", [1]").count(), 2, "{shown}");
    // If the first row is no longer there, `top` occurs before `low`.
    let struct_of = |codes: &[u8]| {
        let dict = column("dict", &[u8s(codes), unsigned(2), texts(unsigned(3), "lowtop")]);
        let of = column("type", &[text("category"), array(&[unsigned(1)]), dict]);
        columns(&[(3, map(&[("id", u8s(&[0, 1, 2])), ("level", of)]))])
    };
    let without = |id: u8| Compaction::new().without(col("id").eq(id));
    let shown = merged(&[struct_of(&[0, 1, 0])], &without(2));
    assert!(shown.contains("\"category\", [1]") && shown.contains("lowtop"), "{shown}");
    let shown = merged(&[struct_of(&[0, 1, 0])], &without(0));
    assert!(shown.contains("\"category\", [0]") && shown.contains("toplow"), "{shown}");
}

#[test]
fn what_is_no_table_of_columns_is_copied() {
    let notes = |note: &str| SaveOptions::default().with_note("day", note);
    let mut out = OArchive::with_options(Vec::new(), notes("1")).unwrap();
    out.save_as("words", &["a", "b"]).unwrap().save_as("words", &["c"]).unwrap();
    out.save_as("layers", &vec![Tensor(vec![0.5f32; 1000]); 2]).unwrap();
    out.save_as("layers", &vec![Tensor(vec![1.5f32; 900]); 2]).unwrap();
    out.save_as("number", &1).unwrap().save_as("number", &vec![(1u8, 2u8)]).unwrap();
    out.save_as("number", &vec![(1u8, 2u8)]).unwrap().save(&vec![(1u8, 2u8)]).unwrap();
    out.save(&vec![(1u8, 2u8)]).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(bytes.clone()).unwrap();
    let new = compacted(&archive, &Compaction::new());
    assert!(*new.source() == bytes);
    // Rows that are stored as arrays are merged if they are named, with their tensors in buffers.
    let new = compacted(&archive, &Compaction::new().named("words").named("layers"));
    assert_eq!(segments(&new), 7);
    assert_eq!(new.named("words").unwrap().load::<Vec<String>>().unwrap(), ["a", "b", "c"]);
    let layers: Vec<Tensor<Vec<f32>>> = new.named("layers").unwrap().load().unwrap();
    assert_eq!(layers.iter().map(|layer| layer.len()).collect::<Vec<_>>(), [1000, 1000, 900, 900]);
    assert_eq!(new.named("layers").unwrap().buffers().len(), 4);
    assert_eq!(new.named("layers").unwrap().notes()["day"], "1");
    let failed = |compaction: &Compaction| refused(&archive, compaction).to_string();
    let error = failed(&Compaction::new().named("number"));
    assert!(error.contains("not a sequence"), "{error}");
    let error = failed(&Compaction::new().named("word"));
    assert!(error.contains("did you mean `words`"), "{error}");
    let error = failed(&Compaction::new().without(col("0").eq("a")));
    assert!(error.contains("several tables, `layers`, `words`"), "{error}");
    let error = failed(&Compaction::new().named("words").sorted_by("0"));
    assert!(
        error.contains("cannot sort a table of which a value is stored as an array"),
        "{error}"
    );
}

#[test]
fn segments_with_other_notes_are_not_merged() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    for note in ["1", "1", "2"] {
        let options = SaveOptions::default().with_note("day", note);
        let mut one = OArchive::with_options(Vec::new(), options).unwrap();
        one.save_as("t", &vec![(1u8, 0.5f32); 3]).unwrap();
        let one = Archive::new(one.finish().unwrap()).unwrap();
        out.save_segment(&one.only().unwrap()).unwrap();
    }
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let new = compacted(&archive, &Compaction::new());
    let found: Vec<_> = new
        .segments()
        .map(|segment| {
            let segment = segment.unwrap();
            (segment.notes()["day"].clone(), segment.table("").unwrap().len())
        })
        .collect();
    assert_eq!(found, [("1".to_owned(), 6), ("2".to_owned(), 3)]);
}

#[cfg(feature = "compression")]
#[test]
fn compressed_tables_stay_compressed() {
    let rows: Vec<(u64, f32)> = (0..4000u16).map(|n| (n.into(), 0.5)).collect();
    let options = SaveOptions::default().with_compression(Compression::lz4());
    let archive = saved(&[&rows[..1500], &rows[1500..]], options);
    let new = compacted(&archive, &Compaction::new());
    assert_eq!(new.only().unwrap().compressed(0).unwrap().codec(), "lz4");
    let none = SaveOptions::default().with_compression(Compression::none());
    let plain = with_options(&archive, &Compaction::new(), none);
    assert!(plain.only().unwrap().compressed(0).is_none());
    assert_eq!(plain.table("t").unwrap().rows::<(u64, f32)>(..).unwrap(), rows);
}

/// Groups end after 65,536 rows, or before they take much more than 16 MiB.
#[test]
fn groups_have_the_usual_sizes() {
    let rows = |archive: &Archive<Vec<u8>>| {
        let segment = archive.only().unwrap();
        segment.buffers().iter().map(|(_, len)| *len).collect::<Vec<_>>()
    };
    let numbers: Vec<(u8,)> = (0..100_000u32).map(|n| (n.to_le_bytes()[0],)).collect();
    let parts: Vec<_> = numbers.chunks(7001).collect();
    let new = compacted(&saved(&parts, SaveOptions::default()), &Compaction::new());
    assert_eq!(rows(&new), [65_536, 100_000 - 65_536]);
    #[derive(Serialize, Clone)]
    struct Image {
        image: Tensor<Vec<u8>>,
    }
    let tensors = vec![Image { image: Tensor(vec![7; 16 << 10]) }; 3000];
    let parts: Vec<_> = tensors.chunks(700).collect();
    let new = compacted(&saved(&parts, SaveOptions::default()), &Compaction::new());
    let found = rows(&new);
    assert_eq!(found.iter().sum::<u64>(), 3000 * (16 << 10));
    assert!(found.iter().all(|len| *len <= 17 << 20) && found.len() == 3, "{found:?}");
    // Short rows say nothing of those behind them, whoever writes the rows.
    let text = |n: u32| if n % 18 < 3 { String::new() } else { format!("{n:08}").repeat(1 << 17) };
    let texts: Vec<(String,)> = (0..54).map(|n| (text(n),)).collect();
    let once = saved(&[&texts], SaveOptions::default());
    let parts: Vec<_> = texts.chunks(18).collect();
    let new = compacted(&saved(&parts, SaveOptions::default()), &Compaction::new());
    for archive in [once, new] {
        let found = rows(&archive);
        assert!(found.iter().all(|len| *len <= 17 << 20) && found.len() == 3, "{found:?}");
    }
}

#[test]
fn a_damaged_table_is_an_error() {
    let mut bytes = appends(20).source().clone();
    let archive = Archive::new(bytes.clone()).unwrap();
    let at = archive.named("other").unwrap().buffers()[0].0;
    bytes[usize::try_from(at).unwrap()] ^= 1;
    let archive = Archive::new(bytes).unwrap();
    assert_eq!(refused(&archive, &Compaction::new()).category(), Category::Damaged);
}

#[test]
fn tensors_of_other_dtypes_and_shapes_are_kept() {
    let row = |dtype: DType, shape: &[usize], bytes: usize| {
        Tensor(DynTensor::new(dtype, shape, Order::C, vec![1; bytes]).unwrap())
    };
    let parts = [
        vec![(1u8, row(DType::BF16, &[2, 2], 8)); 3],
        vec![(1u8, row(DType::BF16, &[2, 2], 8)); 2],
        vec![(1u8, row(DType::BF16, &[3], 6)); 2],
        vec![(1u8, row(DType::Bool, &[3], 3)); 2],
        vec![(1u8, row(DType::C64, &[], 8)); 2],
    ];
    let parts: Vec<_> = parts.iter().map(|part| &part[..]).collect();
    let archive = saved(&parts, SaveOptions::default().with_columns(true));
    let new = compacted(&archive, &Compaction::new());
    assert_eq!(shown(&new, "t"), shown(&archive, "t"));
    assert_eq!(segments(&new), 1);
}
