//! Reading hostile bytes from every source into many types, with memory, time and stack bounded.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::time::{Duration, Instant};

use ndarray::{Array1, Array2, ArrayD};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::value::RawValue;
use tenarc::{DynTensor, Error, Tensor, Value};

use tenarc_test_support::alloc::peak_of;

use crate::is_one_of;
pub use tenarc_test_support::{OneByte, hex, unhex};

pub const MIB: usize = 1 << 20;

/// Memory per byte of input: a [`Value`] takes 32, and a growing vector doubles.
const FACTOR: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    Slice,
    Reader,
    OneByte,
}

const SOURCES: [Source; 3] = [Source::Slice, Source::Reader, Source::OneByte];

/// A type that is read into, without the type.
pub struct Target {
    name: &'static str,
    read: fn(&[u8], Source) -> Result<(), Error>,
}

pub fn read<T: DeserializeOwned>(bytes: &[u8], source: Source) -> Result<T, Error> {
    match source {
        Source::Slice => tenarc::from_slice(bytes),
        Source::Reader => tenarc::from_reader(bytes),
        Source::OneByte => tenarc::from_reader(OneByte(bytes)),
    }
}

const fn target<T: DeserializeOwned>(name: &'static str) -> Target {
    Target { name, read: |bytes, source| read::<T>(bytes, source).map(drop) }
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
pub struct Record {
    pub id: u64,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub weight: Option<Tensor<Array2<f32>>>,
    #[serde(default)]
    pub kind: Option<Kind>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
pub enum Kind {
    Unit,
    New(u8),
    Tuple(u8, String),
    Struct { a: f64 },
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
#[serde(untagged)]
pub enum Either {
    Number(f64),
    Many(Vec<Either>),
    Tensor(Tensor<ArrayD<f32>>),
}

/// Arrays in arrays, as deep as the input has them.
#[derive(Serialize, Deserialize, Debug, PartialEq)]
pub struct Nest(pub Vec<Nest>);

/// Types that take every well-formed item, as long as its tags are what they say.
pub const ANY: &[Target] =
    &[target::<Value>("Value"), target::<IgnoredAny>("IgnoredAny"), target::<Box<RawValue>>("raw")];

/// Types that take few.
pub const TYPED: &[Target] = &[
    target::<Record>("Record"),
    target::<Kind>("Kind"),
    target::<Either>("Either"),
    target::<Nest>("Nest"),
    target::<Tensor<Array1<f32>>>("Array1<f32>"),
    target::<Tensor<Array2<u64>>>("Array2<u64>"),
    target::<Tensor<Vec<bool>>>("tensor of bool"),
    target::<Tensor<DynTensor>>("DynTensor"),
    target::<Option<Tensor<DynTensor>>>("Option<DynTensor>"),
    target::<Vec<u64>>("Vec<u64>"),
    target::<Vec<f32>>("Vec<f32>"),
    target::<Vec<String>>("Vec<String>"),
    target::<Vec<[f64; 16]>>("Vec<[f64; 16]>"),
    target::<HashMap<u64, u64>>("HashMap<u64, u64>"),
    target::<BTreeMap<String, Value>>("BTreeMap<String, Value>"),
    target::<serde_bytes::ByteBuf>("ByteBuf"),
    target::<String>("String"),
    target::<u128>("u128"),
    target::<i64>("i64"),
    target::<f64>("f64"),
    target::<bool>("bool"),
    target::<char>("char"),
    target::<()>("()"),
];

/// What each source makes of the bytes for each type; memory stays bounded by their number.
#[track_caller]
pub fn outcomes(bytes: &[u8], targets: &[Target]) -> Vec<(String, Result<(), Error>)> {
    let mut outcomes = Vec::new();
    for target in targets {
        for source in SOURCES {
            let (outcome, peak) = peak_of(|| (target.read)(bytes, source));
            let place = format!("{} as {} from {source:?}", start(bytes), target.name);
            let most = MIB + FACTOR * bytes.len();
            assert!(peak <= most, "{place}: {peak} bytes were allocated");
            outcomes.push((place, outcome));
        }
    }
    outcomes
}

fn start(bytes: &[u8]) -> String {
    let (start, rest) = bytes.split_at(bytes.len().min(40));
    let dots = if rest.is_empty() { "" } else { "..." };
    format!("{}{dots} ({} bytes)", hex(start), bytes.len())
}

/// No type takes the bytes from any source; those that would take anything say so by one of these
/// categories.
#[track_caller]
pub fn refused(bytes: &[u8], categories: &[Category]) {
    let mut all = outcomes(bytes, ANY);
    let raw = tenarc::from_slice::<&RawValue>(bytes).map(drop);
    all.push((format!("{} as &RawValue", start(bytes)), raw));
    for (place, outcome) in all {
        let Err(error) = outcome else { panic!("{place} was accepted") };
        assert!(is_one_of(&error, categories), "{place}: {error:?}");
    }
    assert!(tenarc::diag::to_string(bytes).is_err(), "{} as text", start(bytes));
    refused_by(bytes, TYPED);
}

#[track_caller]
pub fn refused_by(bytes: &[u8], targets: &[Target]) {
    for (place, outcome) in outcomes(bytes, targets) {
        assert!(outcome.is_err(), "{place} was accepted");
    }
}

/// Hexadecimal, then as [`refused`].
#[track_caller]
pub fn refused_hex(digits: &str, categories: &[Category]) {
    refused(&unhex(digits), categories);
}

/// The type refuses the bytes from every source, with this category. The error is the slice's.
#[track_caller]
pub fn refuses<T: DeserializeOwned>(bytes: &[u8], category: Category) -> Error {
    let mut errors = SOURCES.map(|source| {
        let (result, peak) = peak_of(|| read::<T>(bytes, source));
        assert!(peak <= MIB + FACTOR * bytes.len(), "{source:?}: {peak} bytes were allocated");
        let Err(error) = result else { panic!("{} from {source:?} was accepted", start(bytes)) };
        assert!(is_one_of(&error, &[category]), "{} from {source:?}: {error:?}", start(bytes));
        Some(error)
    });
    errors[0].take().unwrap()
}

/// The type takes the bytes from every source, and all give the same.
#[track_caller]
pub fn accepts<T: DeserializeOwned + Debug + PartialEq>(bytes: &[u8]) -> T {
    let mut values = SOURCES.map(|source| {
        let (result, peak) = peak_of(|| read::<T>(bytes, source));
        assert!(peak <= MIB + FACTOR * bytes.len(), "{source:?}: {peak} bytes were allocated");
        match result {
            Ok(value) => Some(value),
            Err(error) => panic!("{} from {source:?}: {error}", start(bytes)),
        }
    });
    assert_eq!(values[0], values[1], "slice and reader");
    assert_eq!(values[0], values[2], "slice and one-byte reader");
    values[0].take().unwrap()
}

/// Well-formed, whatever it means.
#[track_caller]
pub fn is_well_formed(bytes: &[u8]) {
    for source in SOURCES {
        read::<IgnoredAny>(bytes, source).unwrap();
        assert_eq!(read::<Box<RawValue>>(bytes, source).unwrap().as_bytes(), bytes);
    }
    tenarc::diag::to_string(bytes).unwrap();
}

/// A head with an eight-byte argument.
pub fn wide(major: u8, arg: u64) -> Vec<u8> {
    let mut head = vec![(major << 5) | 0x1b];
    head.extend(arg.to_be_bytes());
    head
}

/// A head in the fewest bytes.
pub fn head(major: u8, arg: u64) -> Vec<u8> {
    let wide = wide(major, arg);
    let (info, from) = match arg {
        0..0x18 => return vec![(major << 5) | wide[8]],
        0x18..0x100 => (24, 8),
        0x100..0x1_0000 => (25, 7),
        0x1_0000..0x1_0000_0000 => (26, 5),
        _ => (27, 1),
    };
    [&[major << 5 | info], &wide[from..]].concat()
}

/// `tag([dims, typed array])`.
pub fn tensor(tag: u64, dims: &[u64], typed: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [head(6, tag), head(4, 2), head(4, dims.len() as u64)].concat();
    bytes.extend(dims.iter().flat_map(|&dim| head(0, dim)));
    bytes.extend([head(6, typed), head(2, payload.len() as u64)].concat());
    bytes.extend(payload);
    bytes
}

/// The own tag: `TENS([name, dims, order, bytes])`.
pub fn named(name: &str, dims: &[u64], payload: &[u8]) -> Vec<u8> {
    let mut bytes = [head(6, 0x5445_4e53), head(4, 4), head(3, name.len() as u64)].concat();
    bytes.extend(name.as_bytes());
    bytes.extend(head(4, dims.len() as u64));
    bytes.extend(dims.iter().flat_map(|&dim| head(0, dim)));
    bytes.extend(b"\x61C");
    bytes.extend(head(2, payload.len() as u64));
    bytes.extend(payload);
    bytes
}

/// Fails where the time taken cannot be that of a linear walk; generous, as machines are busy.
#[track_caller]
pub fn quickly<R>(act: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = act();
    let taken = start.elapsed();
    assert!(taken < Duration::from_secs(20), "took {taken:?}");
    result
}

/// Runs on a stack as small as threads of servers have. Without optimisation, frames take more.
pub fn on_small_stack<R: Send + 'static>(act: impl FnOnce() -> R + Send + 'static) -> R {
    on_stack(if cfg!(debug_assertions) { 640 } else { 512 } << 10, act)
}

/// Runs on a stack of so many bytes.
pub fn on_stack<R: Send + 'static>(bytes: usize, act: impl FnOnce() -> R + Send + 'static) -> R {
    let thread = std::thread::Builder::new().stack_size(bytes).spawn(act).unwrap();
    thread.join().unwrap()
}
