//! Columns of every kind, in a message and in archives.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::{Archive, IArchive, Tensor, Value};
use tenarc_test_support::OneByte;

use super::files::file;

/// A field of each kind of column.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Row {
    id: u32,
    delta: i16,
    score: f64,
    good: bool,
    nothing: (),
    text: String,
    bytes: ByteBuf,
    maybe: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sometimes: Option<u8>,
    list: Vec<u16>,
    embedding: Vec<f32>,
    tensor: Tensor<Array2<f32>>,
    pair: (u8, String),
    point: Point,
    map: BTreeMap<String, i8>,
    kind: Kind,
    code: Code,
    /// An array of numbers from the second half on: rows that are kept as items.
    mixed: Value,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Point {
    x: f32,
    at: [f32; 2],
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Kind {
    Unit,
    Number(i64),
    Pair(u8, u8),
    Struct { text: String },
}

/// Unit variants only.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Code {
    A,
    B,
}

fn rows() -> Vec<Row> {
    let row = |number: u8| {
        let real = f32::from(number);
        Row {
            id: u32::from(number) * 70_000,
            delta: 5 - i16::from(number),
            score: f64::from(number) / 7.0,
            good: number.is_multiple_of(3),
            nothing: (),
            text: "täxt ".repeat(usize::from(number % 4)),
            bytes: vec![number; usize::from(number % 5)].into(),
            maybe: (number % 2 == 1).then_some(real / 4.0),
            sometimes: (number % 3 == 1).then_some(number),
            list: (0..u16::from(number % 6)).map(|at| at * 300).collect(),
            embedding: vec![real + 0.5, -real],
            tensor: Tensor(Array2::from_elem((2, 3), real)),
            pair: (number, number.to_string()),
            point: Point { x: real, at: [real + 1.0, real + 2.0] },
            map: (0..number % 3).map(|at| (at.to_string(), -1)).collect(),
            kind: match number % 4 {
                0 => Kind::Unit,
                1 => Kind::Number(i64::from(number) << 40),
                2 => Kind::Pair(number, 1),
                _ => Kind::Struct { text: format!("number {number}") },
            },
            code: if number % 5 < 2 { Code::A } else { Code::B },
            mixed: match number {
                0..20 => Value::from(u64::from(number)),
                _ => Value::Array(vec![Value::from(1u64), Value::from("two")]),
            },
        }
    };
    (0..40).map(row).collect()
}

/// Two groups of rows, which take a bit each.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Flag {
    flag: bool,
}

fn flags() -> Vec<Flag> {
    (0..66_000u32).map(|row| Flag { flag: row.is_multiple_of(1000) }).collect()
}

#[test]
fn columns() {
    let bytes = file("columns.tenarc");
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.len(), 4);
    let rows = rows();
    for name in ["default", "as columns"] {
        let segment = archive.named(name).unwrap();
        assert_eq!(segment.load::<Vec<Row>>().unwrap(), rows, "{name}");
        assert_eq!(segment.to_parts().unwrap().load::<Vec<Row>>().unwrap(), rows, "{name}");
        let table = archive.table(name).unwrap();
        assert_eq!(table.len(), 40, "{name}");
        assert_eq!(table.row::<Row>(33).unwrap(), rows[33], "{name}");
        let column: Vec<Option<f32>> = table.column("maybe").unwrap();
        assert!(column.iter().eq(rows.iter().map(|row| &row.maybe)), "{name}");
    }
    let segment = archive.named("as columns").unwrap();
    let embeddings: Array2<f32> = segment.tensor("embedding").unwrap();
    assert_eq!(embeddings.row(7).to_vec(), rows[7].embedding);
    let ids: Array1<u32> = segment.tensor("id").unwrap();
    assert!(ids.iter().eq(rows.iter().map(|row| &row.id)));

    let flags = flags();
    let table = archive.table("two groups").unwrap();
    assert_eq!(table.rows::<Flag>(..).unwrap(), flags);

    let message: ByteBuf = archive.named("message").unwrap().load().unwrap();
    assert_eq!(tenarc::from_slice::<Vec<Row>>(&message).unwrap(), rows);
    assert_eq!(tenarc::from_reader::<_, Vec<Row>>(OneByte(&message)).unwrap(), rows);
    // It has the forms for which it is there.
    let text = tenarc::diag::to_string(&message).unwrap();
    for kind in [
        "unit", "bool", "text", "bytes", "option", "present", "list", "tuple", "map", "enum",
        "array", "dict", "rows",
    ] {
        assert!(text.contains(&format!("[\"{kind}\"")), "{kind}");
    }

    let mut input = IArchive::new(OneByte(&bytes)).unwrap();
    assert_eq!(input.load_as::<Vec<Row>>("default").unwrap(), rows);
    assert_eq!(input.load_as::<Vec<Row>>("as columns").unwrap(), rows);
    assert_eq!(input.load_as::<Vec<Flag>>("two groups").unwrap(), flags);
    assert_eq!(input.load_as::<ByteBuf>("message").unwrap(), message);
}
