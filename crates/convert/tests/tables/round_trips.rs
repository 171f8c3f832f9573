//! Records to Parquet and Arrow, and back.

use std::collections::BTreeMap;
use std::path::Path;

use half::f16;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::{Archive, OArchive, Tensor, Value};
use tenarc_convert::arrow::{self, Container};
use tenarc_convert::parquet::{self, Compression, Options, ParquetFile};
use tenarc_convert::{Format, Losses};

/// An archive of these values under one name.
pub fn archive<T: Serialize>(values: &[T]) -> Archive<Vec<u8>> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    for value in values {
        out.save_as("t", value).unwrap();
    }
    Archive::new(out.finish().unwrap()).unwrap()
}

pub fn written(archive: &Archive<Vec<u8>>, options: &Options) -> (Vec<u8>, Losses) {
    let mut bytes = Vec::new();
    let losses = parquet::to_writer(archive, &mut bytes, options).unwrap();
    (bytes, losses)
}

/// What a Parquet file is as an archive.
pub fn read(bytes: Vec<u8>) -> Archive<Vec<u8>> {
    let file = ParquetFile::new(bytes).unwrap();
    let groups: Vec<_> = (0..file.row_groups()).map(|group| file.rows(group).unwrap()).collect();
    archive(&groups)
}

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(rows: &[T]) {
    let (bytes, losses) = written(&archive(&[rows]), &Options::default());
    assert!(losses.is_empty(), "{losses}");
    let mut all = vec![read(bytes)];
    for container in [Container::File, Container::Stream] {
        let options = Options::default().with_container(container).with_rows_per_batch(300);
        let (bytes, losses) = super::arrow::written(&archive(&[rows]), &options);
        assert!(losses.is_empty(), "{losses}");
        all.push(super::arrow::read(bytes));
    }
    // Files are compared with the archive when they are written.
    let segments = archive(&[rows]);
    let segments = || segments.segments().collect::<tenarc::Result<Vec<_>>>().unwrap();
    let options = Options::default().with_rows_per_group(70).with_rows_per_batch(30);
    for write in [parquet::segments_to_file, arrow::segments_to_file] {
        let file = tempfile::tempfile().unwrap();
        let losses = write(segments(), &file, Path::new("t.arrow"), &options).unwrap();
        assert!(losses.is_empty() && file.metadata().unwrap().len() > 0, "{losses}");
    }
    for again in all {
        assert_eq!(again.table("t").unwrap().rows::<T>(..).unwrap(), rows);
        if again.len() == 1 {
            assert_eq!(again.load::<Vec<T>>().unwrap(), rows);
        }
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Numbers {
    u8: u8,
    u16: u16,
    u32: u32,
    u64: u64,
    i8: i8,
    i16: i16,
    i32: i32,
    i64: i64,
    f32: f32,
    f64: f64,
    bool: bool,
}

fn numbers(n: u32) -> Numbers {
    let wide = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Numbers {
        u8: wide.to_le_bytes()[0],
        u16: u16::from_le_bytes([wide.to_le_bytes()[1], wide.to_le_bytes()[2]]),
        u32: u32::try_from(wide >> 32).unwrap(),
        u64: wide,
        i8: i8::from_le_bytes([wide.to_le_bytes()[3]]),
        i16: if n == 0 { i16::MIN } else { 5 },
        i32: if n == 1 { i32::MIN } else { 6 },
        i64: if n == 2 { i64::MIN } else { i64::MAX },
        f32: f32::from_bits(0x3f80_0000 + n),
        f64: if n == 3 { f64::NEG_INFINITY } else { f64::from(n) / 3.0 },
        bool: n.is_multiple_of(3),
    }
}

#[test]
fn numbers_keep_their_types() {
    let rows: Vec<_> = (0..1000).map(numbers).collect();
    round_trip(&rows);
    // Types of columns are those of the struct, not those that the values need.
    let (bytes, _) = written(&archive(&[&rows[..]]), &Options::default());
    let again = read(bytes);
    let table = again.table("t").unwrap();
    for column in table.columns().unwrap() {
        assert_eq!(column.dtype().unwrap().to_string(), column.path());
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone, Copy)]
enum Level {
    Low,
    High,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Inner {
    x: Option<i32>,
    tags: Vec<String>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Nested {
    text: String,
    maybe: Option<String>,
    never: Option<u16>,
    bytes: serde_bytes::ByteBuf,
    list: Vec<f32>,
    lists: Vec<Vec<Option<u8>>>,
    inner: Inner,
    maybe_inner: Option<Inner>,
    inners: Vec<Inner>,
    array: [i16; 3],
    grid: [[f64; 2]; 2],
    maybe_array: Option<[u8; 4]>,
    tuple: (u8, String, Option<bool>),
    map: BTreeMap<String, Option<f64>>,
    level: Level,
    maybe_level: Option<Level>,
    unit: (),
    embedding: Tensor<[f32; 4]>,
    half: Tensor<Vec<f16>>,
}

fn nested(n: usize) -> Nested {
    let some = !n.is_multiple_of(3);
    let small = u8::try_from(n % 200).unwrap();
    let inner = Inner {
        x: some.then_some(i32::from(small)),
        tags: (0..n % 4).map(|tag| format!("tag {tag} ü")).collect(),
    };
    Nested {
        text: format!("row {n}"),
        maybe: some.then(|| "x".repeat(n % 7)),
        never: None,
        bytes: vec![small; n % 5].into(),
        list: vec![0.5; n % 6],
        lists: vec![vec![Some(1), None]; n % 3],
        inner: inner.clone(),
        maybe_inner: some.then(|| inner.clone()),
        inners: vec![inner; n % 2],
        array: [-1, 0, i16::from(small)],
        grid: [[0.5, 1.0], [f64::from(small), -2.0]],
        maybe_array: some.then_some([1, 2, 3, small]),
        tuple: (small, "t".into(), some.then_some(n.is_multiple_of(2))),
        map: (0..n % 3).map(|key| (format!("k{key}"), some.then_some(0.25))).collect(),
        level: if n.is_multiple_of(2) { Level::Low } else { Level::High },
        maybe_level: some.then_some(Level::High),
        unit: (),
        embedding: Tensor([0.5, f32::from(small), -1.0, 0.0]),
        half: Tensor(vec![f16::from_f32(0.5), f16::from_f32(-2.0)]),
    }
}

#[test]
fn nested_records_come_back() {
    for count in [1, 2, 17, 1000] {
        let rows: Vec<_> = (0..count).map(nested).collect();
        round_trip(&rows);
    }
    // The first rows have no value in them, the next ones have.
    let rows: Vec<_> = (0..300).map(|n| nested(if n < 100 { 0 } else { n })).collect();
    round_trip(&rows);
}

#[test]
fn every_codec_gives_the_same_rows() {
    let rows: Vec<_> = (0..2000).map(numbers).collect();
    let codecs = [
        Compression::None,
        Compression::Snappy,
        Compression::Gzip,
        Compression::Lz4,
        #[cfg(feature = "parquet-zstd")]
        Compression::Zstd(3),
    ];
    let mut lengths = Vec::new();
    for codec in codecs {
        let options = Options::default().with_page_compression(codec);
        let (bytes, _) = written(&archive(&[&rows[..]]), &options);
        lengths.push(bytes.len());
        assert_eq!(read(bytes).load::<Vec<Numbers>>().unwrap(), rows, "{codec:?}");
    }
    assert!(lengths.iter().skip(1).all(|len| *len < lengths[0]), "{lengths:?}");
}

#[test]
fn values_become_row_groups_and_back() {
    let days: Vec<Vec<_>> =
        [3, 0, 100, 70_000, 1].iter().map(|&count| (0..count).map(numbers).collect()).collect();
    let of_days = archive(&days);
    let (bytes, _) = written(&of_days, &Options::default());
    let file = ParquetFile::new(bytes.clone()).unwrap();
    // A value without rows has no row group.
    assert_eq!((file.row_groups(), file.table()), (4, Some("t")));
    let counts: Vec<_> = (0..4).map(|group| file.rows(group).unwrap().len()).collect();
    assert_eq!(counts, [3, 100, 70_000, 1]);
    let again = read(bytes);
    assert_eq!(again.len(), 4);
    let all: Vec<_> = days.into_iter().flatten().collect();
    assert_eq!(again.table("t").unwrap().rows::<Numbers>(..).unwrap(), all);

    let options = Options::default().with_rows_per_group(30_000);
    let (bytes, _) = written(&of_days, &options);
    let file = ParquetFile::new(bytes.clone()).unwrap();
    let counts: Vec<_> = (0..file.row_groups()).map(|n| file.rows(n).unwrap().len()).collect();
    assert_eq!(counts, [30_000, 30_000, 10_104]);
    assert_eq!(read(bytes).table("t").unwrap().rows::<Numbers>(..).unwrap(), all);
}

#[test]
fn types_that_grew_hold_what_was_there() {
    #[derive(Serialize)]
    struct Old {
        id: u8,
        x: f32,
        list: [u8; 2],
        level: Level,
        gone: bool,
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct New {
        id: i32,
        x: f64,
        list: Vec<u16>,
        level: String,
        gone: Option<bool>,
        added: Option<String>,
    }
    let old = Old { id: 200, x: 0.1, list: [1, 255], level: Level::High, gone: true };
    let new = || New {
        id: -7,
        x: 0.1,
        list: vec![65535],
        level: "other".into(),
        gone: None,
        added: Some("a".into()),
    };
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("t", &[old]).unwrap();
    out.save_as("t", &[new(), new()]).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let (bytes, losses) = written(&archive, &Options::default());
    // The file says that a null of `added` is a field that is missing.
    assert!(losses.is_empty() && losses.notes().is_empty(), "{losses:?}");
    let (of_arrow, _) = super::arrow::written(&archive, &Options::default());
    let of_arrow = super::arrow::read(of_arrow).table("t").unwrap().rows::<New>(..).unwrap();
    let rows = read(bytes).table("t").unwrap().rows::<New>(..).unwrap();
    let old = New {
        id: 200,
        x: f64::from(0.1f32),
        list: vec![1, 255],
        level: "High".into(),
        gone: Some(true),
        added: None,
    };
    assert_eq!(rows, [old, new(), new()]);
    assert_eq!(rows, of_arrow);

    // Beside other nulls, it is not told apart.
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("t", &[Spare { id: 1 }]).unwrap();
    out.save_as("t", &[New { added: None, ..new() }, new()]).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let (_, losses) = written(&archive, &Options::default());
    assert!(losses.notes().iter().any(|note| note.contains("`added`")), "{losses:?}");
}

#[test]
fn rows_that_are_no_columns_are_read_too() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Image {
        name: Option<String>,
        pixels: serde_bytes::ByteBuf,
        weights: Vec<f32>,
        tensor: Tensor<Vec<u16>>,
        size: BTreeMap<String, i64>,
    }
    // Rows of more than 64 KiB are no columns.
    let image = |n: u8| Image {
        name: (n > 1).then(|| format!("{n}")),
        pixels: vec![n; 100_000].into(),
        weights: vec![f32::from(n); 2000],
        tensor: Tensor(vec![u16::from(n); 3]),
        size: [("w".to_owned(), 10), ("h".to_owned(), i64::from(n))].into(),
    };
    let images: Vec<_> = (0..20).map(image).collect();
    let archive = archive(&[&images]);
    assert!(archive.table("t").unwrap().columns().unwrap().is_empty());
    let (bytes, losses) = written(&archive, &Options::default());
    assert!(losses.is_empty(), "{losses}");
    assert_eq!(read(bytes).table("t").unwrap().rows::<Image>(..).unwrap(), images);
    let (bytes, losses) = super::arrow::written(&archive, &Options::default());
    assert!(losses.is_empty(), "{losses}");
    let again = super::arrow::read(bytes);
    assert_eq!(again.table("t").unwrap().rows::<Image>(..).unwrap(), images);
}

#[test]
fn optional_tensors_come_back() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Row {
        tensor: Option<Tensor<[i8; 2]>>,
        tuple: (u8, String, Option<bool>),
        level: Option<Level>,
        list: Vec<Option<f64>>,
        inner: Inner,
    }
    let row = |n: u8| Row {
        tensor: (!n.is_multiple_of(3)).then_some(Tensor([i8::MIN, 7])),
        tuple: (n, "x".into(), (!n.is_multiple_of(2)).then_some(true)),
        level: (!n.is_multiple_of(3)).then_some(Level::Low),
        list: vec![Some(0.1), None, Some(1.5)],
        inner: Inner {
            x: (n.is_multiple_of(2)).then_some(7),
            tags: vec!["a".into(); usize::from(n % 3)],
        },
    };
    let rows: Vec<_> = (0..255).chain(0..255).map(row).collect();
    let archive = archive(&[&rows]);
    // Such tensors are in no column that has a path, so the archive has an array of rows.
    assert!(archive.table("t").unwrap().columns().unwrap().is_empty());
    round_trip(&rows);
}

#[test]
fn enums_with_data_come_back() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    enum Event {
        Open,
        Click {
            x: f32,
            y: Option<i64>,
        },
        // The name of the field with the names of the variants.
        #[serde(rename = "variant")]
        Key(String),
        Moved(u8, String),
        Batch(Vec<u16>),
        Note(Option<u32>),
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Row {
        id: u32,
        event: Event,
        last: Option<Event>,
        all: Vec<Event>,
    }
    let event = |n: u32| match n % 7 {
        0 => Event::Open,
        1 => Event::Click { x: 0.5, y: n.is_multiple_of(2).then_some(-7) },
        2 => Event::Key(format!("key {n}")),
        3 => Event::Moved(7, "x".into()),
        4 => Event::Batch(vec![1; n as usize % 4]),
        5 => Event::Note(n.is_multiple_of(2).then_some(n)),
        _ => Event::Note(None),
    };
    let row = |n: u32| Row {
        id: n,
        event: event(n),
        last: (!n.is_multiple_of(3)).then(|| event(n / 3)),
        all: (0..n % 3).map(|more| event(n + more)).collect(),
    };
    round_trip(&(0..500).map(row).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_kept_is_named() {
    #[derive(Serialize)]
    enum Shape {
        Circle(f32),
        Square { side: f32 },
    }
    #[derive(Serialize)]
    #[allow(clippy::option_option)]
    struct Row {
        id: u32,
        shape: Shape,
        twice: Option<Option<u8>>,
        complex: Tensor<Vec<num_complex::Complex<f32>>>,
        mixed: Value,
    }
    let row = |n: u32| Row {
        id: n,
        shape: if n.is_multiple_of(2) { Shape::Circle(1.0) } else { Shape::Square { side: 2.0 } },
        twice: [None, Some(None), Some(Some(1))][n as usize % 3],
        complex: Tensor(vec![num_complex::Complex::default()]),
        mixed: if n.is_multiple_of(2) { Value::from(1) } else { Value::from("text") },
    };
    let rows: Vec<_> = (0..100).map(row).collect();
    let archive = archive(&[rows]);
    let mut bytes = Vec::new();
    let error = parquet::to_writer(&archive, &mut bytes, &Options::default()).unwrap_err();
    assert!(Losses::of(&error).is_some() && bytes.is_empty(), "{error}");
    let (bytes, losses) = written(&archive, &Options::default().with_losses(true));
    let paths: Vec<_> = losses.listed().iter().map(tenarc_convert::Loss::path).collect();
    assert_eq!(paths, ["twice", "complex", "mixed"]);
    let again = read(bytes);
    let table = again.table("t").unwrap();
    assert_eq!(table.columns().unwrap().iter().filter(|c| !c.path().contains('.')).count(), 2);
    assert_eq!(table.column::<Vec<u32>>("id").unwrap(), (0..100).collect::<Vec<u32>>());
}

#[test]
fn what_is_no_table_is_refused() {
    let error = |archive: &Archive<Vec<u8>>, options: &Options| {
        parquet::to_writer(archive, Vec::new(), options).unwrap_err().to_string()
    };
    let default = Options::default();
    let of = error(&archive(&[vec!["text"; 100]]), &default);
    assert!(of.contains("structs"), "{of}");
    let of = error(&archive(&[vec![1.5; 100]]), &default);
    assert!(of.contains("sequence"), "{of}");
    let of = error(&archive(&["text"]), &default);
    assert!(of.contains("sequence"), "{of}");
    let of = error(&archive(&[Vec::<Inner>::new()]), &default);
    assert!(of.contains("no column is left"), "{of}");
    let of = error(&archive::<u8>(&[]), &default);
    assert!(of.contains("no values"), "{of}");
    let of = error(&archive(&[[numbers(1)]]), &default.clone().with_table("other"));
    assert!(of.contains("`other`"), "{of}");

    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("a", &[numbers(1)]).unwrap();
    out.save_as("b", &[numbers(2)]).unwrap();
    let both = Archive::new(out.finish().unwrap()).unwrap();
    let of = error(&both, &default);
    assert!(of.contains("`a`") && of.contains("`b`"), "{of}");
    let (bytes, _) = written(&both, &Options::default().with_table("b"));
    assert_eq!(read(bytes).load::<Vec<Numbers>>().unwrap(), [numbers(2)]);
}

/// The names of files are those of tables, whose notes are texts of the files.
#[test]
fn texts_of_a_file_are_notes_of_an_archive() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let texts = [("pandas", "{}".to_owned()), ("title", "rows".to_owned())];
    let save = |name: &str, notes: &[&[(&str, String)]]| {
        let out = OArchive::create(path(name), SaveOptions::default()).unwrap();
        out.finish().unwrap();
        for notes in notes {
            let options = notes.iter().fold(SaveOptions::default(), |options, (key, text)| {
                options.with_note(*key, text.as_str())
            });
            let mut out = OArchive::append_with(path(name), options).unwrap();
            out.save_as("t", &[Spare { id: 1 }]).unwrap();
            out.finish().unwrap();
        }
    };
    let notes = |name: &str| tenarc::open(path(name)).unwrap().segment(0).unwrap().notes();
    let options = Options::default();
    save("a", &[&texts, &texts[..1]]);
    for is_parquet in [true, false] {
        let lost = if is_parquet {
            parquet::from_archive(path("a"), path("t"), &options).unwrap();
            parquet::to_archive(path("t"), path("b"), &options).unwrap()
        } else {
            Format::Arrow.from_archive(path("a"), path("t"), &options).unwrap();
            Format::Arrow.to_archive(path("t"), path("b"), &options).unwrap()
        };
        assert!(lost.is_empty() && lost.notes().is_empty(), "{lost:?}");
        let expected = texts.iter().map(|(key, text)| ((*key).to_owned(), text.clone()));
        assert_eq!(notes("b"), expected.collect());
    }
    // Values that differ say nothing about the table.
    save("c", &[&texts, &[("title", "more".to_owned())]]);
    parquet::from_archive(path("c"), path("c.parquet"), &options).unwrap();
    parquet::to_archive(path("c.parquet"), path("d"), &options).unwrap();
    assert_eq!(notes("d").into_keys().collect::<Vec<_>>(), ["pandas"]);
    save("e", &[&[("long", "x".repeat(40_000)), ("short", "y".to_owned())]]);
    parquet::from_archive(path("e"), path("e.parquet"), &options).unwrap();
    let lost = parquet::to_archive(path("e.parquet"), path("f"), &options).unwrap();
    assert!(
        lost.notes()[0].starts_with("the metadata `long` of the file are left out"),
        "{lost:?}"
    );
    assert_eq!(notes("f").into_keys().collect::<Vec<_>>(), ["short"]);
}

#[derive(Serialize)]
struct Spare {
    id: u8,
}
