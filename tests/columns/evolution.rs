//! Columns of one version of a struct are read by other versions as rows are: with fields that were added, removed,
//! renamed and moved, with aliases, with fields that are borrowed, and with fields that are not allowed.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::ser::EncodeOptions;
use tenarc::{Archive, IArchive, OArchive};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum OldKind {
    Click,
    Key(char),
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum NewKind {
    #[serde(alias = "Key")]
    Pressed(char),
    #[serde(alias = "Click")]
    Clicked,
    Scrolled {
        by: f32,
    },
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Old {
    #[serde(alias = "key")]
    id: u32,
    x: f32,
    y: f32,
    label: String,
    note: Option<String>,
    gone: Vec<u16>,
    kind: OldKind,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct New {
    label: String,
    #[serde(default)]
    added: Option<u8>,
    #[serde(alias = "id")]
    key: u64,
    y: f64,
    x: f32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(alias = "kind")]
    what: NewKind,
    note: Option<String>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Borrowed<'a> {
    note: Option<&'a str>,
    label: &'a str,
}

/// Has all fields of [`Old`], and no other.
#[derive(Deserialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
struct Strict {
    kind: OldKind,
    gone: Vec<u16>,
    #[serde(alias = "label")]
    name: String,
    x: f64,
    y: f64,
    #[serde(rename = "id")]
    number: i64,
    #[serde(default)]
    note: Option<String>,
}

/// Only numbers of one type, which are stored side by side.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Point {
    a: f32,
    b: f32,
    c: f32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Moved {
    c: f32,
    #[serde(alias = "a")]
    first: f32,
    #[serde(default)]
    d: f32,
    b: f32,
}

/// A struct in a row, and in a list of a row.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct OldPlace {
    x: f32,
    y: f32,
    note: Option<String>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct NewPlace {
    #[serde(default)]
    z: Option<f32>,
    y: f64,
    #[serde(alias = "x")]
    east: f64,
    note: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<NewPlace>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct OldTour {
    id: u32,
    home: OldPlace,
    stops: Vec<OldPlace>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct NewTour {
    stops: Vec<NewPlace>,
    #[serde(alias = "home")]
    start: NewPlace,
    id: u64,
}

/// Structs with fewer fields, at both levels.
#[derive(Deserialize, PartialEq, Debug)]
struct Heights {
    #[serde(alias = "home")]
    start: Height,
    stops: Vec<Height>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Height {
    #[serde(default = "unknown")]
    z: Option<f32>,
    y: f32,
}

#[allow(clippy::unnecessary_wraps)] // As serde calls it.
fn unknown() -> Option<f32> {
    Some(-1.0)
}

fn columns<T: Serialize>(rows: &[T]) -> Vec<u8> {
    let options = EncodeOptions::default().with_columns(true);
    let bytes = tenarc::ser::to_vec_with(rows, options).unwrap();
    assert!(bytes.windows(4).any(|four| four == b"TCOL"));
    bytes
}

fn archive<T: Serialize>(rows: &[T]) -> Vec<u8> {
    let options = SaveOptions::default().with_columns(true);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save_as("rows", rows).unwrap();
    out.finish().unwrap()
}

/// What a reader makes of columns, where `expected` is what it makes of rows.
#[track_caller]
fn agree<T: PartialEq + Debug>(read: tenarc::Result<Vec<T>>, expected: &tenarc::Result<Vec<T>>) {
    match (read, expected) {
        (Ok(read), Ok(expected)) => assert_eq!(read, *expected),
        (Err(_), Err(_)) => {}
        (read, expected) => panic!("{read:?}, of rows {expected:?}"),
    }
}

/// Writes rows, and reads them as another type by every way.
#[track_caller]
fn read_as<W: Serialize, R: DeserializeOwned + PartialEq + Debug>(rows: &[W]) -> bool {
    let expected: tenarc::Result<Vec<R>> = tenarc::from_slice(&tenarc::to_vec(rows).unwrap());
    let bytes = columns(rows);
    agree(tenarc::from_slice(&bytes), &expected);
    agree(tenarc::from_reader(&bytes[..]), &expected);
    let bytes = archive(rows);
    agree(IArchive::new(&bytes[..]).unwrap().load(), &expected);
    let archive = Archive::new(&bytes[..]).unwrap();
    agree(archive.load(), &expected);
    let table = archive.table("rows").unwrap();
    agree(table.rows(..), &expected);
    agree(table.iter::<R>().collect(), &expected);
    if let Ok(expected) = &expected {
        for at in [0, 1, rows.len() / 2, rows.len() - 1] {
            assert_eq!(table.row::<R>(at as u64).unwrap(), expected[at]);
        }
    }
    expected.is_ok()
}

/// A table of two versions: what was saved before and after the struct was changed.
#[track_caller]
fn read_both<A: Serialize, B: Serialize, R: DeserializeOwned + PartialEq + Debug>(
    a: &[A],
    b: &[B],
) {
    let options = SaveOptions::default().with_columns(true);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save_as("rows", a).unwrap();
    out.save_as("rows", b).unwrap();
    out.save_as("rows", a).unwrap();
    let bytes = out.finish().unwrap();
    let rows = |bytes: Vec<u8>| tenarc::from_slice::<Vec<R>>(&bytes).unwrap();
    let mut expected = rows(tenarc::to_vec(a).unwrap());
    expected.extend(rows(tenarc::to_vec(b).unwrap()));
    expected.extend(rows(tenarc::to_vec(a).unwrap()));
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("rows").unwrap();
    assert_eq!(table.rows::<R>(..).unwrap(), expected);
    let middle = a.len() as u64 - 1..(a.len() + b.len()) as u64 + 1;
    let found = &expected[a.len() - 1..=a.len() + b.len()];
    assert_eq!(table.rows::<R>(middle).unwrap(), found);
}

fn old() -> impl Strategy<Value = Old> {
    let kind = prop_oneof![Just(OldKind::Click), any::<char>().prop_map(OldKind::Key)];
    let numbers = (any::<u32>(), -9i16..9, -9i16..9);
    (numbers, "[a-zé]{0,5}", option::of("[a-z]{0,3}"), vec(any::<u16>(), 0..3), kind).prop_map(
        |((id, x, y), label, note, gone, kind)| Old {
            id,
            x: x.into(),
            y: y.into(),
            label,
            note,
            gone,
            kind,
        },
    )
}

fn new() -> impl Strategy<Value = New> {
    let what = prop_oneof![
        Just(NewKind::Clicked),
        any::<char>().prop_map(NewKind::Pressed),
        any::<i16>().prop_map(|by| NewKind::Scrolled { by: by.into() }),
    ];
    let numbers = (any::<u32>(), -9i16..9, -9i16..9, option::of(any::<u8>()));
    let tags = vec("[a-z]{0,3}", 0..3);
    (numbers, "[a-zé]{0,5}", option::of("[a-z]{0,3}"), tags, what).prop_map(
        |((key, x, y, added), label, note, tags, what)| New {
            label,
            added,
            key: key.into(),
            y: y.into(),
            x: x.into(),
            tags,
            what,
            note,
        },
    )
}

fn old_tour() -> impl Strategy<Value = OldTour> {
    let place = || {
        (-9i16..9, -9i16..9, option::of("[a-z]{0,3}")).prop_map(|(x, y, note)| OldPlace {
            x: x.into(),
            y: y.into(),
            note,
        })
    };
    (any::<u32>(), place(), vec(place(), 0..4)).prop_map(|(id, home, stops)| OldTour {
        id,
        home,
        stops,
    })
}

fn new_tour() -> impl Strategy<Value = NewTour> {
    let place = |before: Vec<NewPlace>| {
        (option::of(-9i16..9), -9i16..9, -9i16..9, option::of("[a-z]{0,3}")).prop_map(
            move |(z, y, east, note)| NewPlace {
                z: z.map(f32::from),
                y: y.into(),
                east: east.into(),
                note,
                before: before.clone(),
            },
        )
    };
    let nested = || vec(place(Vec::new()), 0..2).prop_flat_map(place);
    (any::<u32>(), nested(), vec(nested(), 0..4)).prop_map(|(id, start, stops)| NewTour {
        stops,
        start,
        id: id.into(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn structs_in_rows_and_lists_change_too(
        olds in vec(old_tour(), 16..40),
        news in vec(new_tour(), 16..40),
    ) {
        prop_assert!(read_as::<OldTour, NewTour>(&olds));
        prop_assert!(read_as::<NewTour, NewTour>(&news));
        prop_assert!(read_as::<OldTour, Heights>(&olds));
        prop_assert!(read_as::<NewTour, Heights>(&news));
        // The old version lacks the new name of `home`.
        prop_assert!(!read_as::<NewTour, OldTour>(&news));
        read_both::<OldTour, NewTour, NewTour>(&olds, &news);
        read_both::<OldTour, NewTour, Heights>(&olds, &news);
        let read: Vec<NewTour> = tenarc::from_slice(&columns(&olds)).unwrap();
        for (found, old) in read.iter().zip(&olds) {
            prop_assert_eq!(found.start.east, f64::from(old.home.x));
            prop_assert_eq!(found.stops.len(), old.stops.len());
            for (found, old) in found.stops.iter().zip(&old.stops) {
                prop_assert_eq!((found.y, &found.note, found.z), (f64::from(old.y), &old.note, None));
            }
        }
    }

    #[test]
    fn versions_read_each_others_columns(
        olds in vec(old(), 16..40),
        news in vec(new(), 16..40),
    ) {
        prop_assert!(read_as::<Old, New>(&olds));
        prop_assert!(read_as::<Old, Old>(&olds));
        prop_assert!(read_as::<New, New>(&news));
        prop_assert!(read_as::<Old, Strict>(&olds));
        // The old version lacks fields and variants of the new one, and the strict one knows fewer fields.
        prop_assert!(!read_as::<New, Old>(&news));
        prop_assert!(!read_as::<New, Strict>(&news));
        read_both::<Old, New, New>(&olds, &news);
        let bytes = columns(&olds);
        let borrowed: Vec<Borrowed<'_>> = tenarc::from_slice(&bytes).unwrap();
        for (found, row) in borrowed.iter().zip(&olds) {
            prop_assert_eq!((found.label, found.note), (&*row.label, row.note.as_deref()));
            prop_assert!(found.label.is_empty() || bytes.as_ptr_range().contains(&found.label.as_ptr()));
        }
    }

    /// Numbers side by side are read by their positions, if the names allow it.
    #[test]
    fn rows_of_numbers_are_read_by_name(points in vec([any::<i16>(); 3], 16..3000)) {
        let points: Vec<_> = points
            .into_iter()
            .map(|[a, b, c]| Point { a: a.into(), b: b.into(), c: c.into() })
            .collect();
        prop_assert!(read_as::<Point, Moved>(&points));
        let moved: Vec<Moved> = tenarc::from_slice(&columns(&points)).unwrap();
        for (found, Point { a, b, c }) in moved.iter().zip(&points) {
            prop_assert_eq!(found, &Moved { c: *c, first: *a, d: 0.0, b: *b });
        }
        // `first` is unknown to the old version, and `a` is missing.
        prop_assert!(!read_as::<Moved, Point>(&moved));
    }
}
