//! Arbitrary values against ciborium, both ways, and against the crate itself.

use std::collections::BTreeMap;

use ciborium::Value as Peer;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::ByteBuf;
use tenarc::Value;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::ser::EncodeOptions;
use tenarc_test_support::{Ragged, hex};

/// A single-precision float that is compared by its bits.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Single(u32);

/// A double-precision float that is compared by its bits.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Double(u64);

macro_rules! by_bits {
    ($($name:ident $float:ty, $serialize:ident;)*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.$serialize(<$float>::from_bits(self.0))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$float>::deserialize(deserializer).map(|value| Self(value.to_bits()))
            }
        }

        impl $name {
            /// Of NaNs only the usual one: ciborium loses the payload of others.
            fn any() -> impl Strategy<Value = Self> {
                any::<$float>().prop_map(|value| {
                    Self(if value.is_nan() { <$float>::NAN } else { value }.to_bits())
                })
            }
        }
    )*};
}

by_bits! {
    Single f32, serialize_f32;
    Double f64, serialize_f64;
}

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
struct Unit;

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
struct Newtype(i16);

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
struct Record {
    id: u64,
    name: String,
    flag: bool,
    unit: Unit,
    tuple: (i8, char, Newtype),
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    list: Vec<u32>,
    option: Option<i32>,
}

/// A tree of everything that both libraries keep. (ciborium does not tell `Some(None)` from
/// `None`.)
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
enum Tree {
    Unit,
    Bool(bool),
    Small(i8),
    Signed(i64),
    Unsigned(u64),
    Wide(i128),
    Huge(u128),
    Char(char),
    Text(String),
    Bytes(ByteBuf),
    Single(Single),
    Double(Double),
    Record(Record),
    Numbers(Vec<i32>),
    Singles(Vec<Single>),
    Pair(Box<Tree>, Option<u16>),
    Fields { left: Box<Tree>, right: Option<Box<Tree>> },
    List(Vec<Tree>),
    ByName(BTreeMap<String, Tree>),
    ByNumber(BTreeMap<i64, Tree>),
    ByTuple(BTreeMap<(bool, Option<u8>), Tree>),
}

/// Integers of all magnitudes alike.
fn integer() -> impl Strategy<Value = i128> {
    (any::<i128>(), 0..128u32).prop_map(|(value, shift)| value >> shift)
}

fn record() -> impl Strategy<Value = Record> {
    let tuple = (any::<i8>(), any::<char>(), any::<i16>().prop_map(Newtype));
    let fields = (any::<u64>(), ".{0,30}", any::<bool>(), tuple, vec(any::<u32>(), 0..4));
    (fields, any::<Option<i32>>()).prop_map(|((id, name, flag, tuple, list), option)| Record {
        id,
        name,
        flag,
        unit: Unit,
        tuple,
        list,
        option,
    })
}

fn leaf() -> BoxedStrategy<Tree> {
    prop_oneof![
        Just(Tree::Unit),
        any::<bool>().prop_map(Tree::Bool),
        any::<i8>().prop_map(Tree::Small),
        (any::<i64>(), 0..64).prop_map(|(value, shift)| Tree::Signed(value >> shift)),
        (any::<u64>(), 0..64).prop_map(|(value, shift)| Tree::Unsigned(value >> shift)),
        integer().prop_map(Tree::Wide),
        (any::<u128>(), 0..128).prop_map(|(value, shift)| Tree::Huge(value >> shift)),
        any::<char>().prop_map(Tree::Char),
        ".{0,40}".prop_map(Tree::Text),
        vec(any::<u8>(), 0..300).prop_map(|bytes| Tree::Bytes(ByteBuf::from(bytes))),
        record().prop_map(Tree::Record),
        vec(any::<i32>(), 0..300).prop_map(Tree::Numbers),
    ]
    .boxed()
}

fn float() -> BoxedStrategy<Tree> {
    prop_oneof![
        Single::any().prop_map(Tree::Single),
        Double::any().prop_map(Tree::Double),
        // Doubles that ciborium shortens.
        Single::any().prop_map(|Single(bits)| {
            Tree::Double(Double(f64::from(f32::from_bits(bits)).to_bits()))
        }),
        any::<i16>().prop_map(|value| Tree::Double(Double(f64::from(value).to_bits()))),
        vec(Single::any(), 0..40).prop_map(Tree::Singles),
    ]
    .boxed()
}

fn tree(leaf: BoxedStrategy<Tree>) -> impl Strategy<Value = Tree> {
    leaf.prop_recursive(6, 40, 6, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            (boxed.clone(), any::<Option<u16>>()).prop_map(|(tree, id)| Tree::Pair(tree, id)),
            (boxed.clone(), proptest::option::of(boxed))
                .prop_map(|(left, right)| Tree::Fields { left, right }),
            vec(inner.clone(), 0..6).prop_map(Tree::List),
            btree_map(".{0,10}", inner.clone(), 0..6).prop_map(Tree::ByName),
            btree_map(any::<i64>(), inner.clone(), 0..6).prop_map(Tree::ByNumber),
            btree_map(any::<(bool, Option<u8>)>(), inner, 0..6).prop_map(Tree::ByTuple),
        ]
    })
}

fn any_tree() -> impl Strategy<Value = Tree> {
    tree(prop_oneof![2 => leaf(), 1 => float()].boxed())
}

/// Tags without a meaning to either library.
fn tag() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 4..=24u64, 100..=1000u64, Just(55_799), Just(u64::MAX)]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        integer().prop_map(Value::Integer),
        Single::any().prop_map(|Single(bits)| Value::F32(f32::from_bits(bits))),
        Double::any().prop_map(|Double(bits)| Value::F64(f64::from_bits(bits))),
        vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        ".{0,20}".prop_map(Value::Text),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec((inner.clone(), inner.clone()), 0..6).prop_map(Value::Map),
            (tag(), inner).prop_map(|(tag, inner)| Value::Tag(tag, Box::new(inner))),
        ]
    })
}

/// The same value for ciborium.
fn to_peer(value: &Value) -> Peer {
    match value {
        Value::Null => Peer::Null,
        Value::Bool(value) => Peer::Bool(*value),
        Value::Integer(value) => {
            if let Ok(value) = ciborium::value::Integer::try_from(*value) {
                return Peer::Integer(value);
            }
            let (tag, arg) = if *value < 0 { (3, !*value) } else { (2, *value) };
            let digits = arg.to_be_bytes().into_iter().skip_while(|byte| *byte == 0);
            Peer::Tag(tag, Box::new(Peer::Bytes(digits.collect())))
        }
        Value::F32(value) => Peer::Float((*value).into()),
        Value::F64(value) => Peer::Float(*value),
        Value::Bytes(bytes) => Peer::Bytes(bytes.clone()),
        Value::Text(text) => Peer::Text(text.clone()),
        Value::Array(items) => Peer::Array(items.iter().map(to_peer).collect()),
        Value::Map(entries) => {
            Peer::Map(entries.iter().map(|(key, value)| (to_peer(key), to_peer(value))).collect())
        }
        Value::Tag(tag, inner) => Peer::Tag(*tag, Box::new(to_peer(inner))),
        other => panic!("not generated: {other:?}"),
    }
}

/// Whether ciborium has the same value. It knows but one width of floats.
fn same(value: &Value, peer: &Peer) -> bool {
    let same_float = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    match (value, peer) {
        (Value::F32(a), Peer::Float(b)) => same_float((*a).into(), *b),
        (Value::F64(a), Peer::Float(b)) => same_float(*a, *b),
        (Value::Array(a), Peer::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Map(a), Peer::Map(b)) => {
            let mut entries = a.iter().zip(b);
            a.len() == b.len() && entries.all(|(a, b)| same(&a.0, &b.0) && same(&a.1, &b.1))
        }
        (Value::Tag(a, inner), Peer::Tag(b, content)) => a == b && same(inner, content),
        (Value::F32(_) | Value::F64(_) | Value::Array(_) | Value::Map(_) | Value::Tag(..), _) => {
            false
        }
        (plain, peer) => to_peer(plain) == *peer,
    }
}

fn written_by_peer<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

fn read_by_peer<T: DeserializeOwned>(bytes: &[u8]) -> T {
    let mut rest = bytes;
    let value = ciborium::from_reader(&mut rest).unwrap_or_else(|e| panic!("{e}: {}", hex(bytes)));
    assert!(rest.is_empty(), "ciborium left {} bytes of {}", rest.len(), hex(bytes));
    value
}

fn packed() -> EncodeOptions {
    EncodeOptions::default().with_typed_arrays(true)
}

/// Bytes under typed arrays come back as they were, to each number type as wide.
fn packs<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    values: &[T],
    tag: u64,
    le_bytes: &[u8],
    least: usize,
) -> TestCaseResult {
    let bytes = tenarc::ser::to_vec_with(values, packed()).unwrap();
    prop_assert_eq!(tenarc::from_slice::<Vec<T>>(&bytes).unwrap(), values);
    prop_assert_eq!(tenarc::from_reader::<_, Vec<T>>(Ragged::new(&bytes, 5)).unwrap(), values);
    match read_by_peer::<Peer>(&bytes) {
        Peer::Tag(found, content) => {
            prop_assert!(le_bytes.len() >= least);
            prop_assert_eq!((found, *content), (tag, Peer::Bytes(le_bytes.to_vec())));
        }
        Peer::Array(items) => {
            prop_assert_eq!(items.len(), values.len());
            prop_assert!(le_bytes.len() < least, "{} bytes not packed", le_bytes.len());
        }
        other => prop_assert!(false, "{:?}", other),
    }
    Ok(())
}

macro_rules! le_bytes {
    ($values:expr) => {
        &$values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()
    };
}

/// A reader does not know what is to come, so by default its limits are others than a slice's.
fn unlimited() -> DecodeOptions {
    DecodeOptions::default().with_limits(Limits::default().with_max_alloc(u64::MAX))
}

fn config() -> ProptestConfig {
    // No files beside the sources: a failure prints what it takes to write a test of it.
    ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn ciborium_reads_what_is_written(tree in any_tree()) {
        let bytes = tenarc::to_vec(&tree).unwrap();
        prop_assert_eq!(read_by_peer::<Tree>(&bytes), tree);
    }

    #[test]
    fn what_ciborium_writes_is_read(tree in any_tree(), seed: u64) {
        let bytes = written_by_peer(&tree);
        prop_assert_eq!(&tenarc::from_slice::<Tree>(&bytes).unwrap(), &tree);
        prop_assert_eq!(&tenarc::from_reader::<_, Tree>(&bytes[..]).unwrap(), &tree);
        prop_assert_eq!(&tenarc::from_reader::<_, Tree>(Ragged::new(&bytes, seed)).unwrap(), &tree);
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        prop_assert_eq!(tenarc::from_value::<Tree>(value).unwrap(), tree);
    }

    #[test]
    fn without_floats_the_bytes_are_those_of_ciborium(tree in tree(leaf())) {
        prop_assert_eq!(hex(&tenarc::to_vec(&tree).unwrap()), hex(&written_by_peer(&tree)));
    }

    #[test]
    fn trees_come_back_in_every_way(tree in any_tree(), seed: u64) {
        let bytes = tenarc::to_vec(&tree).unwrap();
        prop_assert_eq!(&tenarc::from_slice::<Tree>(&bytes).unwrap(), &tree);
        prop_assert_eq!(&tenarc::from_reader::<_, Tree>(Ragged::new(&bytes, seed)).unwrap(), &tree);

        let value = tenarc::to_value(&tree).unwrap();
        prop_assert_eq!(hex(&tenarc::to_vec(&value).unwrap()), hex(&bytes));
        prop_assert_eq!(&Tree::deserialize(&value).unwrap(), &tree);
        prop_assert_eq!(&tenarc::from_value::<Tree>(value).unwrap(), &tree);

        let packed = tenarc::ser::to_vec_with(&tree, packed()).unwrap();
        prop_assert_eq!(&tenarc::from_slice::<Tree>(&packed).unwrap(), &tree);
        prop_assert_eq!(&tenarc::from_reader::<_, Tree>(Ragged::new(&packed, seed)).unwrap(), &tree);
        let value: Value = tenarc::from_slice(&packed).unwrap();
        prop_assert_eq!(tenarc::from_value::<Tree>(value).unwrap(), tree);
    }

    #[test]
    fn ciborium_reads_values_that_are_written(value in value()) {
        let bytes = tenarc::to_vec(&value).unwrap();
        let peer: Peer = read_by_peer(&bytes);
        prop_assert!(same(&value, &peer), "{:?}", peer);
    }

    #[test]
    fn values_that_ciborium_writes_are_read(value in value(), seed: u64) {
        let peer = to_peer(&value);
        let bytes = written_by_peer(&peer);
        let back: Value = tenarc::from_slice(&bytes).unwrap();
        prop_assert!(same(&back, &peer), "{:?}", back);
        let back: Value = tenarc::from_reader(Ragged::new(&bytes, seed)).unwrap();
        prop_assert!(same(&back, &peer), "{:?}", back);
        // Written again, ciborium still sees the same; floats take more bytes.
        let again: Peer = read_by_peer(&tenarc::to_vec(&back).unwrap());
        prop_assert!(same(&back, &again), "{:?}", again);
    }

    #[test]
    fn values_keep_their_bytes(value in value()) {
        let bytes = tenarc::to_vec(&value).unwrap();
        let back: Value = tenarc::from_slice(&bytes).unwrap();
        prop_assert_eq!(hex(&tenarc::to_vec(&back).unwrap()), hex(&bytes));
        prop_assert_eq!(hex(&tenarc::to_vec(&tenarc::to_value(&value).unwrap()).unwrap()), hex(&bytes));
        let raw: &tenarc::value::RawValue = tenarc::from_slice(&bytes).unwrap();
        prop_assert_eq!(raw.as_bytes(), &bytes[..]);
        prop_assert_eq!(hex(&tenarc::to_vec(&raw.get::<Value>().unwrap()).unwrap()), hex(&bytes));
        tenarc::from_slice::<serde::de::IgnoredAny>(&bytes).unwrap();
    }

    #[test]
    fn numbers_are_packed_as_rfc_8746_has_it(
        singles in vec(any::<f32>().prop_filter("equal itself", |f| !f.is_nan()), 0..40),
        doubles in vec(any::<f64>().prop_filter("equal itself", |f| !f.is_nan()), 0..20),
        shorts in vec(any::<u16>(), 0..1000),
        longs in vec(any::<i64>(), 0..300),
    ) {
        packs(&singles, 85, le_bytes!(singles), 32)?;
        packs(&doubles, 86, le_bytes!(doubles), 32)?;
        packs(&shorts, 69, le_bytes!(shorts), 1024)?;
        packs(&longs, 79, le_bytes!(longs), 1024)?;
    }

    #[test]
    fn every_source_says_the_same_of_damaged_documents(
        tree in any_tree(),
        at: prop::sample::Index,
        byte: u8,
        cut in proptest::option::weighted(0.3, any::<prop::sample::Index>()),
        seed: u64,
    ) {
        let mut bytes = tenarc::to_vec(&tree).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let from_slice = tenarc::from_slice::<Tree>(&bytes);
        let from_reader = tenarc::de::from_reader_with::<_, Tree>(Ragged::new(&bytes, seed), unlimited());
        match (from_slice, from_reader) {
            (Ok(one), Ok(other)) => prop_assert_eq!(one, other),
            (Err(one), Err(other)) => {
                prop_assert_eq!(one.category(), other.category());
                prop_assert_eq!(one.offset(), other.offset(), "{} / {}", one, other);
                // A reader keeps the start of a long key only.
                if bytes.len() < 32 {
                    prop_assert_eq!(one.to_string(), other.to_string());
                }
                prop_assert!(one.offset().unwrap() <= bytes.len() as u64);
            }
            (one, other) => prop_assert!(false, "slice: {:?}, reader: {:?}", one, other),
        }
        let value = tenarc::from_slice::<Value>(&bytes).map(|value| tenarc::to_vec(&value).unwrap());
        let other = tenarc::de::from_reader_with::<_, Value>(Ragged::new(&bytes, seed), unlimited());
        match (value, other) {
            (Ok(one), Ok(other)) => prop_assert_eq!(hex(&one), hex(&tenarc::to_vec(&other).unwrap())),
            (Err(one), Err(other)) => {
                prop_assert_eq!(one.category(), other.category());
                prop_assert_eq!(one.offset(), other.offset(), "{} / {}", one, other);
            }
            (one, other) => prop_assert!(false, "slice: {:?}, reader: {:?}", one, other),
        }
    }
}
