//! Values in memory, without an archive.

use bytemuck::{Pod, Zeroable};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use tenarc::ser::EncodeOptions;
use tenarc::value::RawValue;
use tenarc::{Tensor, Value};

use crate::{Borrowed, Everything};

#[test]
fn everything_comes_back() {
    let value = Everything { nested: Some(Everything::new().into()), ..Everything::new() };
    let plain = tenarc::to_vec(&value).unwrap();
    let options = EncodeOptions::default().with_typed_arrays(true);
    let packed = tenarc::ser::to_vec_with(&value, options).unwrap();
    for bytes in [&plain, &packed] {
        assert_eq!(tenarc::from_slice::<Everything>(bytes).unwrap(), value);
    }
    assert_eq!(tenarc::from_reader::<_, Everything>(&plain[..]).unwrap(), value);
    let mut written = Vec::new();
    tenarc::to_writer(&mut written, &value).unwrap();
    assert!(written == plain);
}

#[test]
fn everything_passes_through_a_value() {
    let expected = Everything::new();
    let bytes = tenarc::to_vec(&expected).unwrap();
    let made = tenarc::to_value(&expected).unwrap();
    let read: Value = tenarc::from_slice(&bytes).unwrap();
    assert!(tenarc::to_vec(&read).unwrap() == tenarc::to_vec(&made).unwrap());
    assert_eq!(Everything::deserialize(&made).unwrap(), expected);
    assert_eq!(tenarc::from_value::<Everything>(read).unwrap(), expected);
}

/// Tensors and texts at each of 16 addresses.
#[test]
fn values_are_borrowed_from_every_address() {
    let expected = Everything::new();
    let bytes = tenarc::to_vec(&expected).unwrap();
    for start in 0..if cfg!(miri) { 4 } else { 16 } {
        let moved = [&vec![0; start], &bytes[..]].concat();
        tenarc::from_slice::<Borrowed>(&moved[start..]).unwrap().check(&expected);
    }
}

#[derive(Serialize)]
struct Record {
    number: u32,
    name: &'static str,
    list: [u16; 3],
    weights: Tensor<Vec<f32>>,
    point: Option<f64>,
}

/// Small items are written without asking for memory if they fit. Here each item is once the first that does not.
#[test]
fn values_are_appended_to_vectors_of_every_capacity() {
    let record = Record {
        number: 70_000,
        name: "a name",
        list: [1, 24, 256],
        weights: Tensor(vec![0.5; 3]),
        point: Some(0.1),
    };
    let expected = tenarc::to_vec(&record).unwrap();
    for capacity in 0..expected.len() + 12 {
        let mut out = Vec::with_capacity(capacity);
        tenarc::append_to(&mut out, &record).unwrap();
        assert!(out == expected, "{capacity}");
    }
}

#[test]
fn cut_messages_are_errors() {
    let bytes = tenarc::to_vec(&Everything::new()).unwrap();
    for cut in (0..bytes.len()).step_by(if cfg!(miri) { 67 } else { 1 }) {
        assert!(tenarc::from_slice::<Everything>(&bytes[..cut]).is_err());
        assert!(tenarc::from_slice::<Borrowed>(&bytes[..cut]).is_err());
        assert!(tenarc::from_reader::<_, IgnoredAny>(&bytes[..cut]).is_err());
    }
}

/// Vectors of numbers whose elements change their type at each place.
#[test]
fn numbers_that_do_not_fit_are_errors_wherever_they_are() {
    for at in 0..10 {
        let mut numbers = vec![Value::from(1u8); 10];
        numbers[at] = Value::from("text");
        let bytes = tenarc::to_vec(&numbers).unwrap();
        assert!(tenarc::from_slice::<Vec<u8>>(&bytes).is_err());
        assert!(tenarc::from_slice::<Vec<f64>>(&bytes).is_err());
        assert_eq!(tenarc::from_slice::<Vec<Value>>(&bytes).unwrap(), numbers);
        let options = EncodeOptions::default().with_typed_arrays(true);
        assert!(tenarc::ser::to_vec_with(&numbers, options).unwrap() == bytes);
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Tensor(Tensor<Vec<f32>>),
    Numbers(Vec<f32>),
    Text(String),
}

/// serde's own buffer keeps what a deserializer has passed on, and gives it to several visitors.
#[test]
fn tensors_pass_through_the_buffer_of_serde() {
    let values = vec![
        Untagged::Tensor(Tensor(vec![1.0, 2.0])),
        Untagged::Numbers(vec![0.5; 9]),
        Untagged::Text("text".into()),
    ];
    let bytes = tenarc::to_vec(&values).unwrap();
    assert_eq!(tenarc::from_slice::<Vec<Untagged>>(&bytes).unwrap(), values);
    assert_eq!(tenarc::from_reader::<_, Vec<Untagged>>(&bytes[..]).unwrap(), values);
}

/// Serializes a tensor while another one is being serialized, fails, or panics.
struct Within(fn());

impl Serialize for Within {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0();
        Tensor(vec![1u16, 2]).serialize(serializer)
    }
}

#[test]
fn a_tensor_is_written_while_another_is() {
    fn inner() {
        let value = tenarc::to_value(&Tensor(vec![1u8, 2])).unwrap();
        assert_eq!(tenarc::from_value::<Tensor<Vec<u8>>>(value).unwrap().0, [1, 2]);
    }

    let bytes = tenarc::to_vec(&[Within(inner), Within(inner)]).unwrap();
    let found: Vec<Tensor<Vec<u16>>> = tenarc::from_slice(&bytes).unwrap();
    assert!(found.iter().all(|tensor| tensor.0 == [1, 2]));
    let run = || tenarc::to_value(&(Tensor(vec![0.5f32]), Within(|| panic!("on purpose"))));
    assert!(std::panic::catch_unwind(run).is_err());
    inner();
}

#[test]
fn raw_values_are_borrowed_and_owned() {
    let bytes = tenarc::to_vec(&(1, vec!["two"], Tensor(vec![3.0f32]))).unwrap();
    let (_, borrowed, owned): (u8, &RawValue, Box<RawValue>) = tenarc::from_slice(&bytes).unwrap();
    let kept = owned.clone();
    drop(owned);
    assert_eq!(tenarc::to_vec(&(1, borrowed, &kept)).unwrap(), bytes);
    assert_eq!(tenarc::from_slice::<Tensor<Vec<f32>>>(kept.as_bytes()).unwrap().0, [3.0]);
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Point {
    x: u16,
    y: u16,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Points(#[serde(with = "tenarc::tensor::Rows::<u16>")] Vec<Point>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wider(#[serde(with = "tenarc::tensor::cast")] Vec<f64>);

#[test]
fn rows_and_conversions() {
    let points = Points((0..5).map(|at| Point { x: at, y: at + 1 }).collect());
    let bytes = tenarc::to_vec(&points).unwrap();
    assert_eq!(tenarc::from_slice::<Points>(&bytes).unwrap(), points);
    assert_eq!(tenarc::from_reader::<_, Points>(&bytes[..]).unwrap(), points);
    let bytes = tenarc::to_vec(&Tensor(vec![1u8, 2, 3])).unwrap();
    assert_eq!(tenarc::from_slice::<Wider>(&bytes).unwrap().0, [1.0, 2.0, 3.0]);
}

#[test]
fn bytes_that_are_no_bools_are_refused() {
    let mut bytes = tenarc::to_vec(&Tensor(vec![true; 5])).unwrap();
    *bytes.last_mut().unwrap() = 2;
    assert!(tenarc::from_slice::<Tensor<Vec<bool>>>(&bytes).is_err());
    assert!(tenarc::from_slice::<Tensor<ndarray::ArrayView1<bool>>>(&bytes).is_err());
    assert!(tenarc::from_reader::<_, Tensor<Box<[bool]>>>(&bytes[..]).is_err());
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    id: u32,
    name: String,
    flag: bool,
    point: (i16, f64),
    maybe: Option<u8>,
    numbers: Vec<u16>,
    floats: [f32; 2],
    tensor: Tensor<Vec<f32>>,
}

#[test]
fn rows_come_back_from_columns() {
    let row = |id: u32| Row {
        id: id * 1000,
        name: "ab".repeat(id as usize % 3),
        flag: id.is_multiple_of(2),
        point: (-3, 0.5),
        maybe: id.is_multiple_of(3).then_some(7),
        numbers: vec![500; id as usize % 3],
        floats: [id as f32, 1.5],
        tensor: Tensor(vec![2.5; 3]),
    };
    let rows: Vec<Row> = (0..18).map(row).collect();
    let floats: Vec<[f32; 3]> = (0..18).map(|id| [id as f32; 3]).collect();
    let options = EncodeOptions::default().with_columns(true);
    let bytes = tenarc::ser::to_vec_with(&(&rows, &floats), options).unwrap();
    let back: (Vec<Row>, Vec<[f32; 3]>) = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(back, (rows, floats));
    let back: (Vec<Row>, Vec<[f32; 3]>) = tenarc::from_reader(&bytes[..]).unwrap();
    assert_eq!(back.1.len(), 18);
}

/// Rows of a struct of floats are read from columns.
#[test]
fn packed_rows_come_back_from_columns() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Vertex {
        x: f32,
        y: f32,
        z: f32,
    }
    let vertex = |id: u32| Vertex { x: id as f32, y: 0.5, z: -(id as f32) };
    let rows: Vec<Vertex> = (0..40).map(vertex).collect();
    let options = EncodeOptions::default().with_columns(true);
    let bytes = tenarc::ser::to_vec_with(&rows, options).unwrap();
    // TCOL, and a group of 40 rows.
    assert!(bytes.starts_with(b"\xdaTCOL\x82\x18\x28"));
    assert_eq!(tenarc::from_slice::<Vec<Vertex>>(&bytes).unwrap(), rows);
    assert_eq!(tenarc::from_reader::<_, Vec<Vertex>>(&bytes[..]).unwrap(), rows);
}
