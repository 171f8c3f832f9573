//! Writes arbitrary values of serde's data model, with tensors, and checks that they are read back unchanged: from messages,
//! and from archives with and without compression.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::archive::{Compression, SaveOptions};
use tenarc::error::Category;
use tenarc::ser::EncodeOptions;
use tenarc::tensor::Order;
use tenarc::{Archive, DType, DynTensor, IArchive, OArchive, Tensor, Value};

#[derive(Arbitrary, Serialize, Deserialize, Debug)]
enum Item {
    Unit,
    Bool(bool),
    Small(i8),
    Signed(i64),
    Unsigned(u64),
    Wide(i128),
    WideUnsigned(u128),
    Single(f32),
    Double(f64),
    Char(char),
    Text(String),
    Bytes(Blob),
    Nothing(()),
    Option(Option<Option<Box<Item>>>),
    Options(Option<Option<Option<()>>>),
    Pair(Box<Item>, u16),
    Fields { first: Box<Item>, second: Option<f32> },
    Items(Vec<Item>),
    Names(BTreeMap<String, Item>),
    Keys(BTreeMap<(i16, bool), Option<u8>>),
    Singles(Vec<f32>),
    Doubles(Vec<f64>),
    Bytewise(Vec<u8>),
    Integers(Vec<i32>),
    Rows(Vec<Vec<f64>>),
    Mixed((f64, f64, f64, f64, f64)),
    Dynamic(Dynamic),
    Tagged(Tagged),
    Either(Vec<Either>),
}

#[derive(Arbitrary, Serialize, Deserialize, Debug)]
#[serde(tag = "kind", content = "of")]
enum Tagged {
    Empty,
    Tensor(Dynamic),
    Fields { data: Dynamic, text: String },
}

#[derive(Arbitrary, Serialize, Deserialize, Debug)]
#[serde(untagged)]
enum Either {
    Flag(bool),
    Text(String),
    Fields { data: Dynamic },
}

/// A row of numbers of one type. As columns, the numbers of all rows are stored side by side.
#[derive(Arbitrary, Serialize, Deserialize, Debug, Clone)]
struct Point {
    x: f32,
    y: f32,
    z: f32,
}

#[derive(Serialize, Deserialize, Debug)]
struct Blob(ByteBuf);

impl<'a> Arbitrary<'a> for Blob {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Self(ByteBuf::from(Vec::arbitrary(u)?)))
    }
}

/// A tensor of any dtype, shape and order.
#[derive(Serialize, Deserialize, Debug)]
struct Dynamic(Tensor<DynTensor>);

const DTYPES: [&str; 26] = [
    "bool",
    "u8",
    "u16",
    "u32",
    "u64",
    "i8",
    "i16",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f128",
    "c64",
    "c128",
    "f8_e5m2",
    "f8_e4m3",
    "f8_e8m0",
    "f8_e5m2fnuz",
    "f8_e4m3fnuz",
    "f6_e2m3",
    "f6_e3m2",
    "f4",
    "posit8",
    "",
];

impl<'a> Arbitrary<'a> for Dynamic {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let dtype = DType::from_name(u.choose(&DTYPES)?);
        let rank = u.int_in_range(0..=5usize)?;
        let mut shape =
            (0..rank).map(|_| u.int_in_range(0..=4usize)).collect::<Result<Vec<_>, _>>()?;
        if matches!(dtype.bits(), Some(4 | 6)) {
            // Four packed elements fill whole bytes.
            shape.push(4);
        }
        let order = if u.arbitrary()? { Order::C } else { Order::F };
        let count: usize = shape.iter().product();
        let len = match dtype.bits() {
            Some(bits) => count * bits / 8,
            None => u.int_in_range(0..=9)?,
        };
        let seed: u8 = u.arbitrary()?;
        let bytes = (0..len).map(|at| (at as u8).wrapping_mul(31) ^ seed);
        let bytes = bytes.map(|byte| if dtype == DType::Bool { byte & 1 } else { byte }).collect();
        let tensor = DynTensor::new(dtype, &shape, order, bytes);
        Ok(Self(Tensor(tensor.expect("bytes fit dtype and shape"))))
    }
}

/// Options for an archive, from the bits of a byte.
fn options(choice: u8) -> SaveOptions {
    let options = SaveOptions::default()
        // Each compressed buffer takes a hundred times as long as an inline one.
        .with_inline_below(if choice & 0x10 == 0 { 48 } else { 512 })
        .with_dedup(choice & 4 != 0)
        .with_checksums(choice & 8 == 0)
        .with_alignment(8 << (choice >> 6))
        .with_chunk_len(64 << 10);
    match choice & 3 {
        0 => options.with_compression(Compression::zstd()),
        1 => options.with_compression(Compression::lz4()),
        // Some tensors of each kind.
        2 => options.with_compression_by(|tensor| match tensor.byte_len() % 3 {
            0 => Some(Compression::zstd()),
            1 => Some(Compression::lz4()),
            _ => None,
        }),
        _ => options,
    }
}

/// Saves a value in an archive, and a copy of what is stored. `None` if it is nested too deeply for an archive.
fn saved<T: Serialize + ?Sized>(value: &T, options: SaveOptions) -> Option<Vec<u8>> {
    let mut out = OArchive::with_options(Vec::new(), options).expect("valid options");
    match out.save(value) {
        Ok(_) => Some(out.finish().expect("written")),
        Err(error) => {
            assert_eq!(error.category(), Category::Limit, "{error}");
            None
        }
    }
}

/// Checks that an archive with `value`, which is `bytes` as a message, gives it back.
fn through_an_archive<T>(value: &T, bytes: &[u8], choice: u8)
where
    T: Serialize + serde::de::DeserializeOwned,
{
    let Some(archive) = saved(value, options(choice)) else { return };
    let opened = Archive::new(&archive[..]).expect("opened");
    opened.verify().expect("verified");
    let check = |back: tenarc::Result<T>, how: &str| {
        let back = back.unwrap_or_else(|error| panic!("{how}: {error}"));
        assert_eq!(tenarc::to_vec(&back).expect(how), bytes, "{how}");
    };
    check(opened.load(), "an archive");
    check(IArchive::new(&archive[..]).and_then(|mut input| input.load()), "a stream");
    let segment = opened.only().expect("one value");
    let stored = segment.stored(0..segment.metadata().expect("metadata").len()).expect("stored");
    // As it is stored: with the same compression, and with another one.
    let same = options(choice & 0xf0 | 3);
    for options in [same, options(choice ^ 1)] {
        let Some(copy) = saved(&stored, options) else { continue };
        let copy = Archive::new(copy).expect("opened");
        copy.verify().expect("verified");
        check(copy.load(), "a copy");
    }
}

/// Writes points as columns, and checks that they are read back as structs, as tuples and one by one.
fn points(points: &[Point], choice: u8) {
    // Fewer than 16 rows are no columns.
    let count = 16 + usize::from(choice);
    let rows: Vec<Point> = points.iter().cycle().take(count).cloned().collect();
    let plainly = tenarc::to_vec(&rows).expect("rows");
    let options = EncodeOptions::default().with_columns(true);
    let columns = tenarc::ser::to_vec_with(&rows, options).expect("columns");
    let mut written = Vec::new();
    tenarc::ser::to_writer_with(&mut written, &rows, options).expect("columns to a writer");
    assert_eq!(written, columns);
    let back: Vec<Point> = tenarc::from_slice(&columns).expect("points");
    assert_eq!(tenarc::to_vec(&back).expect("points"), plainly);
    let back: Vec<Point> = tenarc::from_reader(&columns[..]).expect("points from a reader");
    assert_eq!(tenarc::to_vec(&back).expect("points"), plainly);
    let bits = |numbers: &[f32; 3]| numbers.map(f32::to_bits);
    let tuples: Vec<(f32, f32, f32)> =
        tenarc::from_slice(&tenarc::to_vec(&tuples_of(&rows)).expect("tuples")).expect("tuples");
    let as_columns =
        tenarc::ser::to_vec_with(&tuples_of(&rows), options).expect("tuples as columns");
    let from_columns: Vec<(f32, f32, f32)> = tenarc::from_slice(&as_columns).expect("tuples");
    for ((x, y, z), (a, b, c)) in tuples.into_iter().zip(from_columns) {
        assert_eq!(bits(&[x, y, z]), bits(&[a, b, c]));
    }
    through_an_archive(&rows, &plainly, choice);
}

fn tuples_of(points: &[Point]) -> Vec<(f32, f32, f32)> {
    points.iter().map(|point| (point.x, point.y, point.z)).collect()
}

fuzz_target!(|input: (Item, u8, Vec<Point>)| {
    let (item, choice, some) = input;
    if !some.is_empty() {
        points(&some, choice);
    }
    let plain = EncodeOptions::default();
    let bytes = match tenarc::ser::to_vec_with(&item, plain) {
        Ok(bytes) => bytes,
        Err(error) => {
            assert_eq!(error.category(), Category::Limit, "{error}");
            return;
        }
    };
    let mut written = Vec::new();
    tenarc::to_writer(&mut written, &item).expect("written");
    assert_eq!(written, bytes);

    // The encodings are compared rather than the values, as a NaN equals nothing.
    let check = |back: Item, how: &str| {
        assert_eq!(tenarc::to_vec(&back).expect(how), bytes, "{how}: {item:?} became {back:?}");
    };
    check(tenarc::from_slice(&bytes).expect("from a slice"), "slice");
    check(tenarc::from_reader(&bytes[..]).expect("from a reader"), "reader");

    let typed =
        tenarc::ser::to_vec_with(&item, plain.with_typed_arrays(true)).expect("typed arrays");
    check(tenarc::from_slice(&typed).expect("typed, from a slice"), "typed, slice");
    check(tenarc::from_reader(&typed[..]).expect("typed, from a reader"), "typed, reader");

    through_an_archive(&item, &bytes, choice);

    // As columns, together with rows of another form.
    let unit = Item::Unit;
    let rows: Vec<&Item> = (0..20).map(|at| if at % 5 == 3 { &unit } else { &item }).collect();
    match tenarc::ser::to_vec_with(&rows, plain.with_columns(true)) {
        Ok(columns) => {
            let back: Vec<Item> = tenarc::from_slice(&columns).expect("columns, from a slice");
            let plainly = tenarc::to_vec(&rows).expect("rows");
            assert_eq!(tenarc::to_vec(&back).expect("columns"), plainly, "{item:?}");
            let back: Value = tenarc::from_reader(&columns[..]).expect("columns, as a value");
            let value: Value = tenarc::from_slice(&plainly).expect("rows, as a value");
            assert_eq!(back.to_string(), value.to_string(), "{item:?}");
            let rows: Vec<Item> = tenarc::from_slice(&plainly).expect("rows");
            through_an_archive(&rows, &plainly, choice);
        }
        Err(error) => assert_eq!(error.category(), Category::Limit, "{error}"),
    }

    let value: Value = tenarc::from_slice(&bytes).expect("as a value");
    assert_eq!(tenarc::to_vec(&value).expect("a value"), bytes, "{value:?}");
    check(Item::deserialize(&value).expect("from a borrowed value"), "borrowed value");
    check(tenarc::from_value(value).expect("from a value"), "value");
    let made = tenarc::to_value(&item).expect("to a value");
    assert_eq!(tenarc::to_vec(&made).expect("a made value"), bytes);
});
