//! Parts of segments that are saved again as they are stored.

use std::collections::BTreeMap;

use ndarray::Array1;
use serde::Serialize;
use serde_bytes::{ByteBuf, Bytes};
use tenarc::archive::{SaveOptions, Segment};
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::inspect::Event;
use tenarc::tensor::Order;
use tenarc::value::RawValue;
use tenarc::{Archive, DType, DynTensor, OArchive, Tensor, Value};

use super::samples;

/// A field for each kind of column (`SPEC.md`, section 7).
#[derive(Serialize, Clone)]
struct Row {
    id: u32,
    flag: bool,
    text: String,
    bytes: ByteBuf,
    note: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seldom: Option<String>,
    list: Vec<Inner>,
    map: BTreeMap<String, u16>,
    either: Either,
    pair: (u8, String),
    uniform: [f32; 3],
    unit: (),
    vector: Tensor<Array1<f32>>,
    half: Tensor<DynTensor>,
    complex: Tensor<DynTensor>,
    wide: u128,
}

#[derive(Serialize, Clone)]
struct Inner {
    name: String,
    bits: Vec<bool>,
}

#[derive(Serialize, Clone)]
enum Either {
    Nothing,
    Text(String),
    Numbers { x: f32, y: Option<u64> },
}

fn row(at: usize) -> Row {
    let id = at as u32;
    let inner = |n| Inner { name: format!("inner {n}"), bits: vec![n % 2 == 0; n % 4] };
    let of = |dtype, len| {
        // No NaN, which is not equal to itself.
        DynTensor::new(dtype, &[2], Order::C, vec![at as u8 % 100; len]).unwrap().into()
    };
    Row {
        id,
        flag: at.is_multiple_of(3),
        text: "ü".repeat(at % 5),
        bytes: ByteBuf::from(vec![at as u8; at % 7]),
        note: at.is_multiple_of(2).then_some(0.5),
        seldom: at.is_multiple_of(7).then(|| format!("text {at}")),
        list: (0..at % 4).map(inner).collect(),
        map: (0..at % 3).map(|n| (format!("key {n}"), n as u16)).collect(),
        either: match at % 3 {
            0 => Either::Nothing,
            1 => Either::Text(format!("either {at}")),
            _ => Either::Numbers { x: id as f32, y: at.is_multiple_of(4).then_some(7) },
        },
        pair: (at as u8, format!("second {at}")),
        uniform: [id as f32; 3],
        unit: (),
        vector: Array1::from_elem(4, id as f32).into(),
        half: of(DType::BF16, 4),
        complex: of(DType::C64, 16),
        wide: u128::MAX - at as u128,
    }
}

fn rows() -> Vec<Row> {
    (0..300).map(row).collect()
}

fn to_bytes(value: &(impl Serialize + ?Sized), options: &SaveOptions) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), options.clone()).unwrap();
    out.save(value).unwrap();
    out.finish().unwrap()
}

/// An archive in which each payload has a buffer.
fn in_buffers(value: &(impl Serialize + ?Sized)) -> Archive<Vec<u8>> {
    let options = SaveOptions::default().with_inline_below(1);
    Archive::new(to_bytes(value, &options)).unwrap()
}

fn whole<'a>(segment: &Segment<'a, Vec<u8>>) -> tenarc::archive::Stored<'a, Vec<u8>> {
    segment.stored(0..segment.metadata().unwrap().len()).unwrap()
}

/// A stored value is saved as the value itself is, whatever goes to buffers.
#[track_caller]
fn check(value: &(impl Serialize + ?Sized)) {
    let archive = in_buffers(value);
    let stored = whole(&archive.only().unwrap());
    for dedup in [false, true] {
        for below in [1, 100, 2048, usize::MAX] {
            let options = SaveOptions::default().with_inline_below(below).with_dedup(dedup);
            assert!(
                to_bytes(&stored, &options) == to_bytes(value, &options),
                "in buffers from {below} bytes on, dedup: {dedup}"
            );
            assert!(
                to_bytes(&("beside", &stored), &options) == to_bytes(&("beside", value), &options),
                "in a tuple, in buffers from {below} bytes on, dedup: {dedup}"
            );
        }
    }
    // In a message and as a `Value`, it is what it stands for.
    let expected: Value = archive.load().unwrap();
    let message = tenarc::to_vec(&("beside", &stored)).unwrap();
    assert!(tenarc::from_slice::<(String, Value)>(&message).unwrap().1 == expected);
    assert!(tenarc::to_value(&stored).unwrap() == expected);
}

#[test]
fn columns_of_every_kind() {
    check(&rows());
    #[derive(Serialize)]
    struct Log {
        before: Vec<f32>,
        log: Vec<Row>,
        after: Tensor<Array1<f32>>,
    }
    check(&Log { before: vec![0.5; 1000], log: rows(), after: Array1::zeros(1000).into() });
}

#[test]
fn columns_in_several_groups() {
    #[derive(Serialize)]
    struct Small {
        id: u32,
        text: String,
    }
    let rows: Vec<_> =
        (0..70_000).map(|id| Small { id, text: "t".repeat(id as usize % 3) }).collect();
    check(&rows);
}

#[test]
fn values_without_columns() {
    check(&samples::records());
    check(&samples::scalars());
    check(&samples::options());
    check(&samples::value());
    check(&samples::model());
    check(&samples::dtypes());
    check(&samples::layouts());
    check(&samples::exotic());
    check(&samples::complex());
}

#[test]
fn other_formats_get_the_value() {
    let archive = in_buffers(&rows()[..20]);
    let stored = serde_json::to_value(whole(&archive.only().unwrap())).unwrap();
    let expected = serde_json::to_value(archive.load::<Value>().unwrap()).unwrap();
    assert_eq!((&stored, stored[7]["text"].as_str()), (&expected, Some("üü")));
}

#[test]
fn references_outside_of_columns_to_bytes_behind_a_text_are_no_texts() {
    check(&("text", Bytes::new(&[0xff; 100])));
    check(&(rows(), "text", Bytes::new(&[0xff; 100])));
    // A key in a buffer.
    check(&BTreeMap::from([(ByteBuf::from(vec![0xfe; 100]), 1)]));
}

#[test]
fn each_part_alone() {
    #[derive(Serialize)]
    struct Parts {
        name: String,
        nothing: (),
        log: Vec<Row>,
        weight: Tensor<Array1<f32>>,
    }
    let weight = Array1::from_elem(1000, 1.5).into();
    let archive = in_buffers(&Parts { name: "n".into(), nothing: (), log: rows(), weight });
    let segment = archive.only().unwrap();
    let find = |path: &str| {
        let limits = tenarc::de::Limits::default();
        let range = tenarc::inspect::find(segment.metadata().unwrap(), path, limits).unwrap();
        segment.stored(range).unwrap()
    };
    let options = SaveOptions::default();
    assert!(to_bytes(&find("log"), &options) == to_bytes(&rows(), &options));
    assert!(to_bytes(&find("weight"), &options) == to_bytes(&Tensor(vec![1.5f32; 1000]), &options));
    assert_eq!(tenarc::to_vec(&find("name")).unwrap(), tenarc::to_vec("n").unwrap());
    // "Some null" is not null.
    let nothing = find("nothing");
    assert_eq!(tenarc::to_vec(&Some(&nothing)).unwrap(), tenarc::to_vec(&Some(())).unwrap());
    assert_eq!(tenarc::to_vec(&nothing).unwrap(), [0xf6]);
}

#[test]
fn in_rows_that_become_columns_it_is_inline() {
    #[derive(Serialize)]
    struct Outer<T> {
        id: u8,
        inner: T,
    }
    let archive = in_buffers(&rows());
    let segment = archive.only().unwrap();
    let outer: Vec<_> = (0..20).map(|id| Outer { id, inner: whole(&segment) }).collect();
    let bytes = to_bytes(&outer, &SaveOptions::default().with_columns(true));
    let copy = Archive::new(bytes).unwrap();
    copy.verify().unwrap();
    assert_eq!(copy.only().unwrap().info("id").unwrap().shape(), [20]);
    assert!(copy.get::<Value>("19.inner").unwrap() == archive.load::<Value>().unwrap());
}

#[test]
fn only_ranges_of_one_item() {
    let archive = in_buffers(&("ab", rows()));
    let segment = archive.only().unwrap();
    let len = segment.metadata().unwrap().len();
    let refused = |range: std::ops::Range<usize>| segment.stored(range).unwrap_err().to_string();
    assert!(refused(1..len).starts_with("expected exactly one item"), "{}", refused(1..len));
    let (late, max) = (2, usize::MAX);
    for range in [0..len - 1, 0..0, len..len, 0..len + 1, late..1, max..max] {
        let error = refused(range.clone());
        assert!(error.contains("input ended"), "{range:?}: {error}");
    }
}

#[test]
fn damage_is_found_and_told() {
    let archive = in_buffers(&rows());
    let segment = archive.only().unwrap();
    let mut texts = None;
    // The first byte string in a buffer that follows the name of the kind.
    let mut kind = String::new();
    for item in segment.inspect().unwrap() {
        let item = item.unwrap();
        match item.event {
            Event::Text => {
                let text = &segment.metadata().unwrap()[item.range];
                kind = tenarc::from_slice(text).unwrap();
            }
            Event::Payload(payload) if kind == "text" && payload.meta.dtype == DType::U8 => {
                texts = payload.buffer;
            }
            _ => {}
        }
    }
    let (at, _) = segment.buffers()[texts.unwrap() as usize];
    let mut bytes = archive.source().clone();
    bytes[at as usize] = 0xff;

    let archive = Archive::new(bytes).unwrap();
    let stored = whole(&archive.only().unwrap());
    let mut out = OArchive::new(Vec::new()).unwrap();
    let error = out.save(&stored).unwrap_err();
    assert_eq!(error.category(), Category::Damaged, "{error}");
    assert!(error.to_string().contains("checksum"), "{error}");
    assert_eq!(tenarc::to_vec(&stored).unwrap_err().category(), Category::Damaged);

    // Without checksums, only what is written between other items is looked at.
    let archive = archive.with_options(DecodeOptions::default().with_checksums(false));
    let stored = whole(&archive.only().unwrap());
    let error = tenarc::to_vec(&stored).unwrap_err();
    assert!(error.to_string().contains("a text is not UTF-8"), "{error}");
}

#[test]
fn the_limit_on_nesting_counts_what_is_inside() {
    // The tensor in the innermost array takes three levels.
    fn nested(levels: usize) -> Value {
        let tensor = DynTensor::new(DType::U8, &[100], Order::C, vec![1; 100]).unwrap();
        (0..levels).fold(tensor.into(), |inner, _| Value::Array(vec![inner]))
    }
    let archive = in_buffers(&nested(100));
    let stored = whole(&archive.only().unwrap());
    fn around<T: Serialize>(levels: usize, value: T) -> tenarc::Result<Vec<u8>> {
        struct Around<'a, T>(usize, &'a T);
        impl<T: Serialize> Serialize for Around<'_, T> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.0.checked_sub(1) {
                    Some(fewer) => serializer.collect_seq([Around(fewer, self.1)]),
                    None => self.1.serialize(serializer),
                }
            }
        }
        let mut out = OArchive::new(Vec::new())?;
        out.save(&Around(levels, &value))?;
        out.finish()
    }
    let bytes = around(25, &stored).unwrap();
    assert_eq!(Archive::new(bytes).unwrap().load::<Value>().unwrap(), nested(125));
    let error = around(26, &stored).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
}

#[test]
fn an_encoded_item_and_a_stored_one_are_the_same() {
    let item = tenarc::to_vec(&samples::value()).unwrap();
    let raw = RawValue::from_bytes(&item).unwrap();
    let archive = in_buffers(raw);
    let options = SaveOptions::default();
    assert!(to_bytes(&whole(&archive.only().unwrap()), &options) == to_bytes(raw, &options));
}
