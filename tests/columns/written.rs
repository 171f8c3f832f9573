//! The columns that are written for each kind of value (`SPEC.md`, section 7).

// The numbers are only samples.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::manual_is_multiple_of
)]

use std::collections::BTreeMap;

use serde::Serialize;
use tenarc::ser::EncodeOptions;

/// The diagnostic notation of a value that is written as columns.
#[track_caller]
fn written<T: Serialize + ?Sized>(value: &T) -> String {
    let options = EncodeOptions::default().with_columns(true);
    let bytes = tenarc::ser::to_vec_with(value, options).unwrap();
    let mut streamed = Vec::new();
    tenarc::ser::to_writer_with(&mut streamed, value, options).unwrap();
    assert_eq!(bytes, streamed);
    tenarc::diag::to_string(&bytes).unwrap().replace("1413697356", "TCOL")
}

fn of<T: Serialize>(row: impl Fn(u32) -> T) -> String {
    written(&(0..16).map(row).collect::<Vec<_>>())
}

#[derive(Serialize)]
struct One<T> {
    x: T,
}

/// The column of a field.
fn column<T: Serialize>(field: impl Fn(u32) -> T) -> String {
    let whole = of(|i| One { x: field(i) });
    let column = whole.strip_prefix("TCOL([16, {\"x\": ").and_then(|rest| rest.strip_suffix("}])"));
    column.unwrap_or_else(|| panic!("{whole}")).to_owned()
}

#[test]
fn numbers_are_typed_arrays_in_the_narrowest_type() {
    let ones = "01010101010101010101010101010101";
    assert_eq!(column(|_| 1u64), format!("64(h'{ones}')"));
    assert_eq!(column(|_| 1i64), format!("64(h'{ones}')"));
    assert_eq!(column(|_| -1i64), format!("72(h'{}')", "ff".repeat(16)));
    assert_eq!(column(|_| 256u32), format!("69(h'{}')", "0001".repeat(16)));
    assert_eq!(column(|i| if i == 0 { -129i64 } else { 127 })[..12], *"77(h'7fff7f0");
    assert_eq!(column(|_| u64::MAX), format!("71(h'{}')", "ff".repeat(16 * 8)));
    assert_eq!(column(|_| 0.5f32), format!("85(h'{}')", "0000003f".repeat(16)));
    assert_eq!(column(|_| 0.5f64), format!("86(h'{}')", "000000000000e03f".repeat(16)));
    assert_eq!(column(|i| i % 3 == 0), r#"["bool", h'4992']"#);
}

#[derive(Serialize)]
enum Event {
    Start,
    Move(i8, i8),
    Say { text: &'static str, loud: bool },
    Wait(u16),
    Stop,
}

fn event(i: u32) -> Event {
    match i % 4 {
        0 => Event::Stop,
        1 => Event::Move(1, -1),
        2 => Event::Say { text: "hi", loud: i > 8 },
        _ => Event::Wait(300),
    }
}

#[derive(Serialize)]
struct Unit;

#[derive(Clone, Serialize)]
struct Pair(u8, f32);

#[derive(Serialize)]
struct Skipping {
    id: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<u8>,
}

#[test]
fn each_kind_of_value_has_a_kind_of_column() {
    let mut all = Vec::new();
    let mut add = |name: &str, column: String| all.push(format!("{name}: {column}"));
    add("unit", column(|_| ()));
    add("unit struct", column(|_| Unit));
    add("text", column(|i| "a".repeat(i as usize % 3)));
    add("text of one length", column(|_| "ab"));
    add("char", column(|i| if i == 3 { '\u{fc}' } else { 'x' }));
    add("bytes", column(|i| serde_bytes::ByteBuf::from(vec![7; i as usize % 2])));
    add("option", column(|i| (i % 3 == 1).then_some(i as u8)));
    add("option of unit", column(|i| (i % 3 == 1).then_some(())));
    add("option of option", column(|i| (i % 3 > 0).then_some((i % 3 == 1).then_some(5u8))));
    add("only none", column(|_| None::<f32>));
    add("list", column(|i| vec![9u8; i as usize % 3]));
    add("list of one length", column(|_| vec![0.5f32, -1.0]));
    add("empty lists", column(|_| Vec::<u8>::new()));
    add("list of lists", column(|i| vec![vec![i as u8], vec![]]));
    add("array", column(|i| [i as u8, 0, 1]));
    add("array of arrays", column(|i| [[i as u8, 0], [1, 2], [3, 4]]));
    add("empty array", column(|_| [0u8; 0]));
    add("tuple", column(|i| (i as u8, "x", true)));
    add("tuple of one type", column(|i| (i as u8, 3u8)));
    add("tuple struct", column(|i| Pair(i as u8, 1.0)));
    add("map", column(|i| (0..i % 3).map(|i| (i as u8, "v")).collect::<BTreeMap<_, _>>()));
    add("struct", column(|i| One { x: One { x: i as u8 } }));
    add("enum", column(event));
    add("enum of units", column(|i| if i == 3 { Event::Start } else { Event::Stop }));
    add("tensor", column(|i| tenarc::Tensor(ndarray::arr2(&[[i as u8, 2], [3, 4]]))));
    add("tensor of bools", column(|i| tenarc::Tensor(ndarray::arr1(&[i > 4, true]))));
    add("large integers", column(|i| i128::MAX - i128::from(i)));
    add(
        "fields that are missing",
        of(|i| Skipping {
            id: 3,
            note: (i % 4 == 2).then_some("n"),
            tags: vec![1; i as usize % 3],
        }),
    );
    add("values", column(tenarc::Value::from));
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_does_not_fit_its_column_begins_a_group() {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Any {
        Number(u8),
        Text(&'static str),
    }
    let any = |i| if i < 14 { Any::Number(i as u8) } else { Any::Text("t") };
    let ragged = |i: u32| tenarc::Tensor(ndarray::Array1::<u8>::zeros(if i == 15 { 3 } else { 2 }));
    insta::assert_snapshot!([of(|i| One { x: any(i) }), of(|i| (ragged(i), i as u8))].join("\n"));
}

#[test]
fn other_sequences_are_rows() {
    let rows = |text: String| assert!(!text.contains("TCOL"), "{text}");
    rows(of(|i| i));
    rows(of(|i| format!("{i}")));
    rows(of(|i| vec![i]));
    rows(of(|_| Some(3)));
    rows(of(|i| tenarc::Tensor(ndarray::arr1(&[i]))));
    rows(of(|i| BTreeMap::from([(i, i)])));
    rows(written(&vec![Pair(1, 1.0); 15]));
    rows(written(&vec![(); 40]));
    // Columns would only copy these.
    rows(of(|_| One { x: tenarc::Tensor(ndarray::Array1::<u8>::zeros(16385)) }));
    rows(of(|_| One { x: vec![0.5f64; 8193] }));
    // Without the option nothing is a column.
    let bytes = tenarc::to_vec(&vec![Pair(1, 1.0); 16]).unwrap();
    rows(tenarc::diag::to_string(&bytes).unwrap());
}

#[test]
fn only_the_marked_field_is_columns() {
    #[derive(Serialize)]
    struct Two {
        rows: Vec<Pair>,
        #[serde(with = "tenarc::columns")]
        columns: Vec<Pair>,
        more: Vec<Pair>,
    }
    let pairs = || vec![Pair(1, 1.0); 16];
    let bytes = tenarc::to_vec(&Two { rows: pairs(), columns: pairs(), more: pairs() }).unwrap();
    let text = tenarc::diag::to_string(&bytes).unwrap();
    assert_eq!(text.matches("1413697356").count(), 1, "{text}");
    assert!(text.contains(r#""columns": 1413697356([16, "#), "{text}");
    let json =
        serde_json::to_value(Two { rows: pairs(), columns: pairs(), more: pairs() }).unwrap();
    assert_eq!(json["rows"], json["columns"]);
}

/// Each sequence needs columns of its own, so it must be long enough for them. Those in the rows of columns share columns.
#[test]
fn few_rows_inside_a_value_are_written_as_rows() {
    let rows = |count: u32| (0..count).map(|x| One { x: (x, "a") }).collect::<Vec<_>>();
    let columns = |text: &str| text.matches("TCOL").count();
    for (count, expected) in [(15, 0), (16, 1), (127, 1), (128, 1)] {
        assert_eq!(columns(&written(&rows(count))), expected, "the whole value, {count} rows");
        assert_eq!(columns(&written(&Some(rows(count)))), expected);
        let field = Field { before: 1, rows: rows(count) };
        assert_eq!(columns(&written(&field)), expected, "a field that asks, {count} rows");
    }
    for (count, expected) in [(16, 0), (127, 0), (128, 2)] {
        let maps = BTreeMap::from([(1, rows(count)), (2, rows(count))]);
        assert_eq!(columns(&written(&maps)), expected, "in a map, {count} rows");
        let of_fields = BTreeMap::from([(1, Field { before: 1, rows: vec![rows(count)] })]);
        assert_eq!(columns(&written(&of_fields)), expected / 2, "in a field, {count} rows");
    }
    let in_columns: Vec<_> = (0..16).map(|x| One { x: rows(x) }).collect();
    assert_eq!(columns(&written(&in_columns)), 1);
    // The values of the second row do not fit, so they are items.
    let in_items: Vec<_> = (0..16).map(|x| One { x: Either(x, rows(20)) }).collect();
    assert_eq!(columns(&written(&in_items)), 1);
}

#[derive(Serialize)]
struct Field<T: Serialize> {
    before: u32,
    #[serde(with = "tenarc::columns")]
    rows: T,
}

/// A number or a map.
struct Either<T>(u32, T);

impl<T: Serialize> Serialize for Either<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            0 => serializer.serialize_u32(0),
            _ => self.1.serialize(serializer),
        }
    }
}
