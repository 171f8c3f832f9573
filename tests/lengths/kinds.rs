//! The types that are tried.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::CString;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::ops::{Bound, Range};
use std::path::PathBuf;
use std::time::Duration;

use half::{bf16, f16};
use ndarray::{Array1, Array2, Array3, Array4};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::value::RawValue;
use tenarc::{DynTensor, Tensor, Value};

use crate::{Make, Random, some};

/// A type whose values have parts of a length.
pub trait MakeOf {
    fn make_of(random: &mut Random, len: usize) -> Self;
}

macro_rules! make {
    ($($type:ty: $random:ident => $value:expr;)*) => {$(
        impl Make for $type {
            fn make($random: &mut Random) -> Self {
                $value
            }
        }
    )*};
}

macro_rules! make_of {
    ($($type:ty: $random:ident, $len:ident => $value:expr;)*) => {$(
        impl MakeOf for $type {
            fn make_of($random: &mut Random, $len: usize) -> Self {
                $value
            }
        }
    )*};
}

/// Small numbers are as frequent as large ones, because they have other encodings.
macro_rules! integers {
    ($($type:ty)*) => {
        make! {$($type: random => {
            let wide = u128::from(random.bits()) << 64 | u128::from(random.bits());
            let width = random.below(<$type>::BITS as usize + 1) as u32;
            let kept = wide.checked_shr(128 - width).unwrap_or(0) as $type;
            if random.below(3) == 0 { !kept } else { kept }
        };)*}
    };
}

integers! { u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize }

make! {
    f32: random => match random.below(5) {
        0 => [f32::NAN, -f32::NAN, f32::from_bits(0x7fa0_1234), f32::INFINITY, -0.0, 0.0, 1.5][random.below(7)],
        _ => f32::from_bits(random.bits() as u32),
    };
    f64: random => match random.below(5) {
        0 => [f64::NAN, f64::from_bits(0xfff4_5678_9abc_def0), -0.0, 0.1, 0.5][random.below(5)],
        _ => f64::from_bits(random.bits()),
    };
    bool: random => random.below(2) == 1;
    char: random => ['a', '\0', 'é', '日', '😀', '"', '9'][random.below(7)];
    (): _random => ();
    String: random => {
        let len = random.below(12);
        some::<char, String>(random, len)
    };
    [f32; 3]: random => std::array::from_fn(|_| f32::make(random));
    [u8; 4]: random => std::array::from_fn(|_| u8::make(random));
    Bytes: random => {
        let len = random.below(6);
        Bytes::make_of(random, len)
    };
    Vec<u8>: random => {
        let len = random.below(6);
        some(random, len)
    };
}

impl<T: Make> Make for Option<T> {
    fn make(random: &mut Random) -> Self {
        (random.below(3) != 0).then(|| T::make(random))
    }
}

impl<A: Make, B: Make> Make for Result<A, B> {
    fn make(random: &mut Random) -> Self {
        if bool::make(random) { Ok(A::make(random)) } else { Err(B::make(random)) }
    }
}

impl<A: Make> Make for (A,) {
    fn make(random: &mut Random) -> Self {
        (A::make(random),)
    }
}

impl<A: Make, B: Make> Make for (A, B) {
    fn make(random: &mut Random) -> Self {
        (A::make(random), B::make(random))
    }
}

/// Defines types, and makes values whose fields are random.
macro_rules! types {
    ($($(#[$attributes:meta])* struct $name:ident { $($(#[$field:meta])* $part:ident: $type:ty,)* })*) => {$(
        #[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
        $(#[$attributes])*
        pub struct $name {
            $($(#[$field])* $part: $type,)*
        }

        make! { $name: random => Self { $($part: Make::make(random),)* }; }
    )*};
}

/// A float that has an order.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct Float(f32);

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for Float {}
impl PartialOrd for Float {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Float {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

make! { Float: random => Float(f32::make(random)); }

types! {
    struct Structure {
        id: u64,
        name: String,
        level: Option<u8>,
        score: Float,
        on: bool,
        data: Vec<u8>,
    }

    struct Nested {
        inner: Structure,
        pair: (i16, Option<Structure>),
        unit: (),
        wide: i128,
    }

    struct Skipping {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        maybe: Option<u32>,
        always: char,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        bytes: Vec<u8>,
    }

    #[serde(default, rename_all = "camelCase")]
    #[derive(Default)]
    struct Defaults {
        first_field: u16,
        second_field: Option<Option<bool>>,
    }
}

#[derive(Serialize, Deserialize)]
pub struct Pair(u32, String);
#[derive(Serialize, Deserialize)]
pub struct Newtype(f64);
#[derive(Serialize, Deserialize)]
pub struct Unit;
#[derive(Serialize, Deserialize)]
pub struct Wrapped<T>(T);

make! {
    Pair: random => Self(u32::make(random), String::make(random));
    Newtype: random => Self(f64::make(random));
    Unit: _random => Self;
    Wrapped<Vec<u8>>: random => Self(Make::make(random));
}

#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
pub enum Simple {
    First,
    Second,
    Third,
}

make! { Simple: random => [Self::First, Self::Second, Self::Third][random.below(3)]; }

#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum External {
    Unit,
    Newtype(u8),
    Float(Float),
    Bytes(Vec<u8>),
    Tuple(u8, String),
    Struct { a: Option<u8>, b: Vec<Float> },
    Optional(Option<()>),
}

make! {
    External: random => match random.below(7) {
        0 => Self::Unit,
        1 => Self::Newtype(u8::make(random)),
        2 => Self::Float(Float::make(random)),
        3 => Self::Bytes(Make::make(random)),
        4 => Self::Tuple(Make::make(random), Make::make(random)),
        5 => {
            let len = random.below(40);
            Self::Struct { a: Make::make(random), b: some(random, len) }
        }
        _ => Self::Optional(Make::make(random)),
    };
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Internal {
    Unit,
    Newtype(Structure),
    Struct {
        a: Option<u8>,
        b: Vec<Float>,
        c: Vec<u8>,
    },
    Map(BTreeMap<String, u8>),
    Flat {
        name: String,
        #[serde(flatten)]
        rest: BTreeMap<u8, u16>,
    },
}

make! {
    Internal: random => match random.below(5) {
        0 => Self::Unit,
        1 => Self::Newtype(Make::make(random)),
        2 => {
            let len = random.below(40);
            Self::Struct { a: Make::make(random), b: some(random, len), c: some(random, len) }
        }
        3 => Self::Map(some(random, 3)),
        _ => Self::Flat { name: Make::make(random), rest: some(random, 3) },
    };
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
pub enum Adjacent {
    Unit,
    Newtype(f64),
    Wide(u128),
    Tuple(u8, Vec<u8>),
    Struct { a: Option<Option<u8>>, b: Bytes },
}

make! {
    Adjacent: random => match random.below(5) {
        0 => Self::Unit,
        1 => Self::Newtype(Make::make(random)),
        2 => Self::Wide(Make::make(random)),
        3 => Self::Tuple(Make::make(random), Make::make(random)),
        _ => Self::Struct { a: Make::make(random), b: Make::make(random) },
    };
}

/// A byte string.
#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Default, Clone)]
#[serde(transparent)]
pub struct Bytes(ByteBuf);

/// A field of bytes that may borrow.
#[derive(Serialize, Deserialize)]
pub struct BorrowedBytes {
    #[serde(deserialize_with = "owned_bytes")]
    data: Cow<'static, [u8]>,
}

/// Reads as a `Cow<[u8]>` that may borrow is read.
fn owned_bytes<'de, D: serde::Deserializer<'de>>(de: D) -> Result<Cow<'static, [u8]>, D::Error> {
    #[derive(Deserialize)]
    struct Borrowing<'a>(#[serde(borrow)] Cow<'a, [u8]>);
    Borrowing::deserialize(de).map(|found| found.0.into_owned().into())
}

/// A sequence of numbers that is read as a byte string.
#[derive(Serialize, Deserialize)]
pub struct BytesOfVec {
    #[serde(deserialize_with = "serde_bytes::deserialize")]
    data: Vec<u8>,
    #[serde(deserialize_with = "as_bytes")]
    shorts: Vec<u16>,
}

/// Small numbers of any type are bytes.
fn as_bytes<'de, D: serde::Deserializer<'de>>(de: D) -> Result<Vec<u16>, D::Error> {
    let bytes: Vec<u8> = serde_bytes::deserialize(de)?;
    Ok(bytes.into_iter().map(u16::from).collect())
}

#[derive(Serialize, Deserialize)]
pub struct CText(CString);

#[derive(Serialize, Deserialize)]
pub struct Text(String);

#[derive(Serialize, Deserialize)]
pub struct BorrowedText {
    text: Cow<'static, str>,
    boxed: Box<str>,
}

fn text(random: &mut Random, len: usize) -> String {
    (0..len).map(|_| ['x', 'y', ' '][random.below(3)]).collect()
}

make_of! {
    Vec<u8>: random, len => some(random, len);
    Bytes: random, len => Self(ByteBuf::from(some::<u8, Vec<u8>>(random, len)));
    Box<[u8]>: random, len => some(random, len);
    BorrowedBytes: random, len => Self { data: some::<u8, Vec<u8>>(random, len).into() };
    BytesOfVec: random, len => {
        let shorts = some::<u8, Vec<u8>>(random, len).into_iter().map(u16::from).collect();
        Self { data: some(random, len), shorts }
    };
    CText: random, len => Self(CString::new(text(random, len)).unwrap());
    Text: random, len => Self(text(random, len));
    BorrowedText: random, len => Self { text: text(random, len).into(), boxed: text(random, len).into() };
}

/// A map with keys of this type.
#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "K: Deserialize<'de> + Ord"))]
pub struct Keys<K> {
    map: BTreeMap<K, u16>,
}

impl<K: Make + Ord> MakeOf for Keys<K> {
    fn make_of(random: &mut Random, len: usize) -> Self {
        Self { map: some(random, len) }
    }
}

/// Entries between the fields of a struct.
#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "K: Deserialize<'de> + Ord"))]
pub struct Flat<K: Serialize> {
    id: u8,
    #[serde(flatten)]
    rest: BTreeMap<K, Float>,
    last: String,
}

impl<K: Make + Ord + Serialize> MakeOf for Flat<K> {
    fn make_of(random: &mut Random, len: usize) -> Self {
        let mut rest: BTreeMap<K, Float> = some(random, len);
        // No key is the name of a field.
        rest.retain(|key, _| !matches!(&*tenarc::to_vec(key).unwrap(), b"\x62id" | b"\x64last"));
        Self { id: 7, rest, last: String::make(random) }
    }
}

#[derive(Serialize, Deserialize)]
pub struct FlatStruct {
    before: u8,
    #[serde(flatten)]
    inner: Structure,
    #[serde(flatten)]
    perhaps: Option<Second>,
    list: Vec<Float>,
}

#[derive(Serialize, Deserialize)]
struct Second {
    second: Vec<u8>,
    deep: Option<Option<bool>>,
}

#[derive(Serialize, Deserialize)]
pub struct FlatEnum {
    before: Vec<u32>,
    #[serde(flatten)]
    one: External,
    #[serde(flatten)]
    other: Internal,
}

#[derive(Serialize, Deserialize)]
pub struct FlatBytes {
    #[serde(flatten)]
    entries: BTreeMap<String, Vec<u8>>,
}

make_of! {
    FlatStruct: random, len => Self {
        before: 1,
        inner: Make::make(random),
        perhaps: len.is_multiple_of(2).then(|| Second { second: some(random, len), deep: Make::make(random) }),
        list: some(random, len),
    };
    FlatEnum: random, len => Self {
        before: some(random, len),
        one: match External::make(random) {
            // serde flattens no unit variants.
            External::Unit => External::Newtype(1),
            other => other,
        },
        other: Internal::Unit,
    };
    FlatBytes: random, len => Self {
        entries: BTreeMap::from([("a".to_owned(), some(random, len)), ("b".to_owned(), vec![])]),
    };
}

#[derive(Serialize, Deserialize)]
pub struct Deque(VecDeque<u8>, VecDeque<f64>, VecDeque<Simple>);

#[derive(Serialize, Deserialize)]
pub struct Set(BTreeSet<i32>, BTreeSet<u8>, BTreeSet<String>);

#[derive(Serialize, Deserialize)]
pub struct Standard {
    duration: Duration,
    path: PathBuf,
    bound: Bound<u8>,
    range: Range<i8>,
    number: NonZeroU16,
    boxed: Box<[Option<Float>]>,
    result: Vec<Result<Float, String>>,
}

#[derive(Serialize, Deserialize)]
pub struct Addresses(Vec<IpAddr>);

make_of! {
    Deque: random, len => Self(some(random, len), some(random, len), some(random, len));
    Set: random, len => Self(some(random, len), some(random, len), some(random, len));
    Standard: random, len => Self {
        duration: Duration::from_nanos(random.bits()),
        path: text(random, len).into(),
        bound: Bound::Excluded(u8::make(random)),
        range: -1..i8::make(random),
        number: NonZeroU16::MAX,
        boxed: some(random, len),
        result: some(random, len),
    };
    Addresses: random, len => Self(
        (0..len).map(|at| match at % 2 {
            0 => IpAddr::from(<[u8; 4]>::make(random)),
            _ => IpAddr::from(u128::make(random).to_be_bytes()),
        }).collect()
    );
}

#[derive(Serialize, Deserialize)]
pub struct Floats(Tensor<Array1<f32>>, Tensor<Array2<f32>>);
#[derive(Serialize, Deserialize)]
pub struct Doubles {
    rows: Tensor<Array2<f64>>,
    name: String,
    more: Vec<Tensor<Array1<f64>>>,
}
#[derive(Serialize, Deserialize)]
pub struct Bools(Tensor<Array1<bool>>);
#[derive(Serialize, Deserialize)]
pub struct Halves(Tensor<Array1<f16>>, Tensor<Array3<bf16>>);
#[derive(Serialize, Deserialize)]
pub struct Complexes(Tensor<Array1<Complex<f32>>>, Tensor<Vec<Complex<f64>>>);
#[derive(Serialize, Deserialize)]
pub struct Small(Tensor<Vec<u8>>, Tensor<Vec<i16>>, Tensor<Array1<u64>>);
#[derive(Serialize, Deserialize)]
pub struct Dynamic {
    any: Tensor<DynTensor>,
    rows: Tensor<DynTensor>,
}
/// A `Vec` that is read as a tensor.
#[derive(Serialize, Deserialize)]
pub struct Plain(Tensor<Vec<f32>>);
#[derive(Serialize, Deserialize)]
pub struct Image {
    pixels: Tensor<Array4<u8>>,
    mask: Option<Tensor<Array2<bool>>>,
}

make_of! {
    Floats: random, len => Self(
        some::<f32, Array1<f32>>(random, len).into(),
        Array2::from_shape_fn((len / 3, 3), |_| f32::make(random)).into(),
    );
    Doubles: random, len => Self {
        rows: Array2::from_shape_fn((2, len), |_| f64::make(random)).into(),
        name: String::make(random),
        more: vec![some::<f64, Array1<f64>>(random, len).into(), Array1::zeros(0).into()],
    };
    Bools: random, len => Self(some::<bool, Array1<bool>>(random, len).into());
    Halves: random, len => Self(
        (0..len).map(|_| f16::from_bits(random.bits() as u16)).collect::<Array1<_>>().into(),
        Array3::from_shape_fn((1, len / 2, 2), |_| bf16::from_bits(random.bits() as u16)).into(),
    );
    Complexes: random, len => Self(
        (0..len).map(|_| Complex::new(f32::make(random), 0.0)).collect::<Array1<_>>().into(),
        Tensor((0..len).map(|_| Complex::new(f64::make(random), 0.0)).collect()),
    );
    Small: random, len => Self(
        Tensor(some(random, len)),
        Tensor(some(random, len)),
        some::<u64, Array1<u64>>(random, len).into(),
    );
    Dynamic: random, len => Self {
        any: Tensor(some::<f32, Array1<f32>>(random, len).into()),
        rows: Tensor(Array2::from_shape_fn((len, 2), |_| i32::make(random)).into()),
    };
    Plain: random, len => Self(Tensor(some(random, len)));
    Image: random, len => Self {
        pixels: Array4::from_shape_fn((1, 3, len / 3, 2), |_| u8::make(random)).into(),
        mask: len.is_multiple_of(2).then(|| Array2::from_shape_fn((len / 3, 2), |_| bool::make(random)).into()),
    };
}

#[derive(Serialize, Deserialize)]
pub struct Raw(Vec<Box<RawValue>>);

make_of! {
    Value: random, len => Value::Array((0..len).map(|_| value(random, 2)).collect());
    Raw: random, len => Self(
        (0..len).map(|_| {
            let bytes = tenarc::to_vec(&Structure::make(random)).unwrap();
            tenarc::from_slice::<Box<RawValue>>(&bytes).unwrap()
        }).collect()
    );
}

fn value(random: &mut Random, depth: usize) -> Value {
    let kinds = if depth == 0 { 9 } else { 12 };
    match random.below(kinds) {
        0 => Value::Null,
        1 => Value::Bool(bool::make(random)),
        2 => Value::Integer(i128::make(random)),
        3 => Value::F32(f32::make(random)),
        4 => Value::F64(f64::make(random)),
        5 => Value::Bytes(Make::make(random)),
        6 => Value::Text(Make::make(random)),
        7 => Value::Simple(99),
        8 => Value::Numbers(Box::new(some::<u16, Vec<u16>>(random, 3).into())),
        9 => Value::Array((0..3).map(|_| value(random, depth - 1)).collect()),
        10 => Value::Map((0..3).map(|at| (Value::Integer(at), value(random, depth - 1))).collect()),
        _ => Value::Tag(1000, Box::new(value(random, depth - 1))),
    }
}

/// Parts of all kinds, whose lengths have nothing to do with each other.
#[derive(Serialize, Deserialize)]
pub struct Everything {
    texts: Vec<String>,
    bytes: Vec<u8>,
    string: Bytes,
    floats: Vec<f32>,
    records: Vec<Structure>,
    enums: Vec<External>,
    tensor: Tensor<Array1<f64>>,
    tensors: Vec<Tensor<Array1<f32>>>,
    options: Vec<Option<Vec<u8>>>,
    flat: Flat<i64>,
    maps: Vec<BTreeMap<u8, Vec<u16>>>,
}

make_of! {
    Everything: random, len => Self {
        texts: { let len = random.length(); some(random, len) },
        bytes: some(random, len),
        string: { let len = random.length(); Bytes::make_of(random, len) },
        floats: { let len = random.length(); some(random, len) },
        records: { let len = random.length(); some(random, len) },
        enums: { let len = random.length(); some(random, len) },
        tensor: some::<f64, Array1<f64>>(random, len).into(),
        tensors: (0..random.length()).map(|_| Array1::from_elem(3, 0.5).into()).collect(),
        options: { let len = random.length(); some(random, len) },
        flat: { let len = random.length(); Flat::make_of(random, len) },
        maps: (0..random.length()).map(|_| BTreeMap::from([(1, some(random, 3)), (2, vec![])])).collect(),
    };
}
