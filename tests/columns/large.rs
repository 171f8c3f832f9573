//! A group in which most bytes belong to one column. In memory, that column is collected behind a gap for what is
//! written before it. A stream gets the columns one after the other.

use std::cell::Cell;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use tenarc::Tensor;
use tenarc::ser::EncodeOptions;

/// More than a MiB in all rows.
const ROWS: u32 = 1500;
const FLOATS: usize = 256;

fn options() -> EncodeOptions {
    EncodeOptions::default().with_columns(true)
}

/// Rows of it do not fit into one column.
#[derive(Serialize)]
#[serde(untagged)]
enum Either {
    Number(u32),
    Text(String),
}

impl Either {
    fn of(row: u32) -> Self {
        if row.is_multiple_of(2) { Self::Number(row) } else { Self::Text("*".repeat(150)) }
    }
}

#[derive(Serialize)]
struct Row<A, B, C> {
    before: A,
    large: B,
    behind: C,
}

#[track_caller]
fn check<A: Serialize, B: Serialize, C: Serialize>(
    rows: u32,
    row: impl Fn(u32) -> (A, B, C),
) -> Vec<u8> {
    let rows = (0..rows).map(row);
    let value: Vec<_> = rows.map(|(before, large, behind)| Row { before, large, behind }).collect();
    let mut streamed = Vec::new();
    tenarc::ser::to_writer_with(&mut streamed, &("first", &value, "last"), options()).unwrap();
    let mut appended = b"before".to_vec();
    tenarc::ser::append_to_with(&mut appended, &("first", &value, "last"), options()).unwrap();
    assert_eq!(&appended[..6], b"before");
    assert!(appended[6..] == streamed);
    assert!(tenarc::ser::to_vec_with(&("first", &value, "last"), options()).unwrap() == streamed);
    streamed
}

#[allow(clippy::cast_precision_loss)] // The numbers are only samples.
fn floats(row: u32) -> Vec<f32> {
    (0..FLOATS).map(|n| row as f32 * 7.5 + n as f32).collect()
}

#[test]
fn memory_gets_the_same_bytes_as_a_stream() {
    // What is before the large column is as the first rows let expect,
    check(ROWS, |row| (70_000 + row, floats(row), row));
    check(ROWS, |row| ((format!("row {row:6}"), 0.5, [1.5f64, 2.5]), floats(row), "behind"));
    // longer,
    check(ROWS, |row| (row, floats(row), row));
    check(ROWS, |row| ("*".repeat(row as usize / 9), floats(row), row));
    check(ROWS, |row| ((row > 400).then_some(row), floats(row), row));
    // beside another column of more than a MiB, of numbers or of items,
    check(20_000, |row| ([f64::from(row); 16], "*".repeat(200), row));
    check(20_000, |row| ("*".repeat(200), floats(row), [f64::from(row); 16]));
    check(20_000, |row| (Either::of(row), "*".repeat(200), row));
    // or shorter.
    check(ROWS, |row| ("*".repeat((ROWS - row) as usize / 9), floats(row), row));
    check(ROWS, |row| (vec![1.0; if row < 20 { 100 } else { 0 }], floats(row), [row; 3]));
}

#[test]
fn each_kind_of_large_column() {
    check(ROWS, |row| (row, floats(row)[..(row % 250) as usize + 5].to_vec(), row));
    check(ROWS, |row| (row, "text ".repeat((row % 200) as usize + 150), row));
    check(ROWS, |row| (row, serde_bytes::ByteBuf::from(vec![7; 900 + (row % 200) as usize]), row));
    check(ROWS, |row| (row, Tensor(ndarray::Array1::from(floats(row))), row));
    check(ROWS, |row| (row, Some(floats(row)).filter(|_| row % 5 > 0), row));
    check(ROWS, |row| (row, vec![[7u8; 600].to_vec(), [8; 300].to_vec()], row));
    check(ROWS, |row| (row, (floats(row), "*".repeat(600)), row));
    check(ROWS, |row| (row, vec![row; 300], row));
    check(ROWS, |row| (floats(row), floats(row), floats(row)));
}

#[test]
fn several_groups() {
    check(40_000, |row| (70_000 + row, floats(row), row));
    check(40_000, |row| ("*".repeat(row as usize / 5000), vec![1u8; 900], row));
}

/// A number, and in one row something else.
#[derive(Serialize)]
#[serde(untagged)]
enum Mixed {
    Number(u32),
    Text(&'static str),
    Floats(Vec<f32>),
}

#[test]
fn a_value_that_does_not_fit() {
    let number = |row, at| if row == at { Mixed::Text("text") } else { Mixed::Number(row) };
    for at in [3, 15, 16, 17, 800, ROWS - 1] {
        check(ROWS, |row| (number(row, at), floats(row), row));
        check(ROWS, |row| (row, floats(row), number(row, at)));
        check(ROWS, |row| {
            let large = if row == at { Mixed::Text("text") } else { Mixed::Floats(floats(row)) };
            (row, large, row)
        });
    }
}

/// An iterator's elements, of which one may fail.
struct Failing {
    at: u32,
    announced: usize,
    calls: Cell<u32>,
}

struct Fails(bool);

impl Serialize for Fails {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 { Err(S::Error::custom("fails")) } else { serializer.serialize_u8(1) }
    }
}

struct Announced<I>(I, usize);

impl<I: Iterator> Iterator for Announced<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.1, Some(self.1))
    }
}

impl Serialize for Failing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = (0..ROWS).map(|row| {
            self.calls.set(row);
            Row { before: row, large: floats(row), behind: Fails(row == self.at) }
        });
        serializer.collect_seq(Announced(rows, self.announced))
    }
}

#[test]
fn after_an_error_the_buffer_is_as_before() {
    let rows = ROWS as usize;
    for (at, announced, message) in [
        (10, rows, "fails"),
        (17, rows, "fails"),
        (ROWS - 1, rows, "fails"),
        (ROWS, rows - 1, "more elements than it announced"),
        (ROWS, rows + 1, "1 fewer elements than it announced"),
    ] {
        let value = Failing { at, announced, calls: Cell::new(0) };
        let mut buffer = b"before".to_vec();
        let error = tenarc::ser::append_to_with(&mut buffer, &("first", &value), options());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(value.calls.get(), at.min(ROWS - 1), "{message}");
        assert_eq!(buffer, b"before");
    }
}
