//! Group C: recursion while reading.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category::{Data, Limit};
use tenarc::value::RawValue;
use tenarc::{Deserializer, DynTensor, Tensor, Value};

use super::support::{
    Nest, Record, accepts, head, is_well_formed, on_small_stack, quickly, refused, refuses, tensor,
    unhex,
};

const DEEP: [usize; 3] = [129, 100_000, 2_000_000];

/// One level of each kind that can hold another.
const LEVELS: [&str; 13] = [
    "81", "9f", "98ff", "a1", "a100", "bf", "bf00", "c6", "d818", "d9d9f7", "8201", "8181c6",
    "d828",
];

// 17
#[test]
fn deep_nesting_is_refused_open_or_closed() {
    for level in LEVELS {
        let level = unhex(level);
        for times in DEEP {
            let open = level.repeat(times);
            quickly(|| refused_as_deep(&open));
            let breaks = if level.last() == Some(&0x9f) { times } else { 0 };
            let closed = [open, vec![0], vec![0xff; breaks]].concat();
            quickly(|| refused_as_deep(&closed));
        }
    }
}

/// Tag 40 is looked into by some, so that they may find another fault first.
fn refused_as_deep(bytes: &[u8]) {
    let looked_into = bytes.starts_with(&unhex("d828"));
    if bytes.len() > 1 << 20 {
        // One byte at a time takes long where nothing new is tested.
        let from_slice = tenarc::from_slice::<Value>(bytes).unwrap_err();
        assert!(looked_into || from_slice.category() == Limit, "{from_slice}");
        assert_eq!(tenarc::from_slice::<IgnoredAny>(bytes).unwrap_err().category(), Limit);
        assert_eq!(tenarc::from_reader::<_, IgnoredAny>(bytes).unwrap_err().category(), Limit);
        assert_eq!(tenarc::from_reader::<_, Box<RawValue>>(bytes).unwrap_err().category(), Limit);
        assert_eq!(tenarc::diag::to_string(bytes).unwrap_err().category(), Limit);
    } else {
        refused(bytes, if looked_into { &[Limit, Data] } else { &[Limit] });
    }
}

#[derive(Deserialize, Debug)]
#[allow(dead_code)]
enum Tree {
    Leaf,
    New(Box<Tree>),
    Pair(Box<(Tree, Tree)>),
    Named { next: Option<Box<Tree>> },
}

// 17
#[test]
fn deep_values_of_recursive_types_are_refused() {
    let deep = |level: &str| unhex(level).repeat(100_000);
    refuses::<Nest>(&deep("81"), Limit);
    refuses::<Nest>(&deep("9f"), Limit);
    refuses::<Tree>(&deep("a1634e6577"), Limit);
    refuses::<Tree>(&deep("a1645061697282"), Limit);
    refuses::<Tree>(&deep("a1654e616d6564a1646e657874"), Limit);
    refuses::<Tree>(&deep("c6"), Limit);
    refuses::<Option<Box<Tree>>>(&unhex("da54534f4d").repeat(100_000), Limit);
    refuses::<Option<Value>>(&unhex("da54534f4d").repeat(100_000), Limit);
    refuses::<bool>(&unhex("da54534f4d").repeat(100_000), Limit);
    refuses::<f32>(&deep("d9d9f7"), Limit);
    on_small_stack(|| {
        let bytes = [unhex("81").repeat(127), vec![0x80]].concat();
        accepts::<Nest>(&bytes);
    });
}

/// Takes nothing of the input before it calls itself.
#[derive(Deserialize, Debug)]
#[allow(dead_code)]
struct Endless(Option<Box<Endless>>);

#[derive(Deserialize, Debug)]
#[allow(dead_code)]
struct Ping(Option<Box<Pong>>);
#[derive(Deserialize, Debug)]
#[allow(dead_code)]
struct Pong(Option<Ping>);

// 17
#[test]
fn recursive_types_do_not_recurse_on_nothing() {
    for digits in ["05", "80", "a0", "6161", "d84041aa", "c605"] {
        let bytes = unhex(digits);
        refuses::<Endless>(&bytes, Limit);
        refuses::<Ping>(&bytes, Limit);
        let value: Value = accepts(&bytes);
        assert_eq!(Endless::deserialize(&value).unwrap_err().category(), Limit);
        assert_eq!(Ping::deserialize(&value).unwrap_err().category(), Limit);
        assert_eq!(tenarc::from_value::<Endless>(value).unwrap_err().category(), Limit);
    }
    // As an element of a typed array, and as the data of a tensor.
    refuses::<Vec<Endless>>(&unhex("d84041aa"), Limit);
    refuses::<Vec<Endless>>(&unhex("42aabb"), Limit);
    let value: Value = accepts(&unhex("d84041aa"));
    assert_eq!(tenarc::from_value::<Vec<Endless>>(value).unwrap_err().category(), Limit);
    refuses::<Shown>(&tensor(40, &[1], 64, &[7]), Limit);
    let value: Value = accepts(&tensor(40, &[1], 64, &[7]));
    tenarc::from_value::<Shown>(value).unwrap_err();
    on_small_stack(|| {
        assert_eq!(tenarc::from_slice::<Endless>(&[5]).unwrap_err().category(), Limit);
        assert!(tenarc::from_value::<Endless>(Value::Null).unwrap().0.is_none());
    });
}

/// The data of a tensor that is seen as a map.
#[derive(Debug)]
struct Shown;

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Shown;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tensor as a map")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Shown, A::Error> {
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "data" => drop(map.next_value::<Endless>()?),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Shown)
            }
        }

        deserializer.deserialize_any(Entries)
    }
}

// 18
#[test]
fn depth_counts_in_keys_shapes_and_payloads() {
    for times in [200, 100_000] {
        let deep = unhex("81").repeat(times);
        refused(&[unhex("a1"), deep.clone()].concat(), &[Limit]);
        refused(&unhex("a1").repeat(times), &[Limit]);
        refused(&[unhex("a1a1"), deep.clone(), vec![0, 0, 0]].concat(), &[Limit]);
        // Where a tensor is expected the first fault may be another.
        for start in
            ["d82882", "d8288281", "d828828101", "d840", "d84081", "da54454e5384", "d9a7f9"]
        {
            let bytes = [unhex(start), deep.clone(), vec![0]].concat();
            refused(&bytes, &[Limit, Data]);
        }
        // An element of a tensor may stand under tags.
        let tags = [unhex("d82882810181"), unhex("c6").repeat(times), vec![0]].concat();
        refused(&tags, &[Limit]);
    }
}

fn arrays(levels: usize) -> Vec<u8> {
    [vec![0x81; levels - 1], vec![0x80]].concat()
}

// 19
#[test]
fn skipped_content_counts_with_the_same_counter() {
    #[derive(Deserialize, Debug, PartialEq)]
    struct Skipped(IgnoredAny);
    #[derive(Deserialize, Debug, PartialEq)]
    #[allow(clippy::zero_sized_map_values)]
    struct Flat {
        id: u8,
        #[serde(flatten)]
        rest: BTreeMap<String, Skipped>,
    }
    #[derive(Deserialize, Debug, PartialEq)]
    struct Wrapped {
        x: Value,
    }
    #[derive(Deserialize, Debug)]
    struct Raw {
        x: Box<RawValue>,
    }

    accepts::<Value>(&arrays(128));
    is_well_formed(&arrays(128));
    accepts::<Nest>(&arrays(128));
    refused(&arrays(129), &[Limit]);

    let field = |levels| [unhex("a2 626964 01 6178"), arrays(levels)].concat();
    assert_eq!(accepts::<Record>(&field(127)).id, 1);
    refuses::<Record>(&field(128), Limit);
    let field = |levels| [unhex("a1 6178"), arrays(levels)].concat();
    accepts::<Wrapped>(&field(127));
    refuses::<Wrapped>(&field(128), Limit);
    assert_eq!(tenarc::from_slice::<Raw>(&field(127)).unwrap().x.as_bytes(), arrays(127));
    refuses::<Raw>(&field(128), Limit);
    let field = |levels| [unhex("a2 626964 01 6178"), arrays(levels)].concat();
    assert_eq!(accepts::<Flat>(&field(127)).rest.len(), 1);
    refuses::<Flat>(&field(128), Limit);

    // Tags are levels, too.
    accepts::<Value>(&[vec![0xc6; 128], vec![1]].concat());
    is_well_formed(&[vec![0xc6; 128], vec![1]].concat());
    assert_eq!(accepts::<u8>(&[vec![0xc6; 128], vec![1]].concat()), 1);
    refused(&[vec![0xc6; 129], vec![1]].concat(), &[Limit]);
}

// 19
#[test]
fn tensors_count_all_their_levels() {
    let complex = [unhex("d828 82 8101 d9a7f9 d855 48"), vec![0; 8]].concat();
    let own = crate::messages::support::named("bool", &[1], &[1]);
    let plain = unhex("d828 82 8101 8107");
    for (bytes, levels) in [
        (unhex("d84041aa"), 1),
        (tensor(40, &[1], 64, &[7]), 3),
        (plain, 3),
        (own, 3),
        (complex, 4),
        (unhex("c24111"), 1),
    ] {
        let whole = [vec![0x81; 128 - levels], bytes.clone()].concat();
        accepts::<Value>(&whole);
        is_well_formed(&whole);
        let over = [vec![0x81; 129 - levels], bytes.clone()].concat();
        refused(&over, &[Limit]);
        let limits =
            |levels| DecodeOptions::default().with_limits(Limits::default().with_max_depth(levels));
        if bytes[0] != 0xc2 {
            type One = Tensor<DynTensor>;
            tenarc::de::from_slice_with::<One>(&bytes, limits(levels)).unwrap();
            let error = tenarc::de::from_slice_with::<One>(&bytes, limits(levels - 1)).unwrap_err();
            assert_eq!(error.category(), Limit);
        }
    }
}

// 20
#[test]
fn siblings_do_not_add_up() {
    let item = unhex("8181a1818100"); // [[{[[0]]: ...
    let item = [item, unhex("c68101")].concat();
    let bytes = [head(4, 50_000), item.repeat(50_000)].concat();
    accepts::<Value>(&bytes);
    is_well_formed(&bytes);
    let pairs = [head(4, 50_000), unhex("8182 80 9fff").repeat(50_000)].concat();
    assert_eq!(accepts::<Nest>(&pairs).0.len(), 50_000);
}

/// Numbers, and `None` where an element is something else: the error is passed over.
#[derive(Debug, PartialEq)]
struct Lenient(Vec<Option<u8>>);

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forgiving;

        impl<'de> Visitor<'de> for Forgiving {
            type Value = Lenient;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("numbers in arrays")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Lenient, A::Error> {
                let mut all = Vec::new();
                loop {
                    match seq.next_element::<Vec<Vec<u8>>>() {
                        Ok(Some(inner)) => all.push(Some(inner[0][0])),
                        Ok(None) => return Ok(Lenient(all)),
                        Err(_) => all.push(None),
                    }
                }
            }
        }

        deserializer.deserialize_seq(Forgiving)
    }
}

// 20
#[test]
fn levels_are_given_back_behind_errors() {
    // A negative number is read whole before it turns out to be none of u8.
    let bytes = [head(4, 1000), unhex("818120").repeat(999), unhex("818105")].concat();
    let read: Lenient = accepts(&bytes);
    assert_eq!((read.0.len(), read.0[998], read.0[999]), (1000, None, Some(5)));

    let mut deserializer = Deserializer::from_slice(&bytes[3..]);
    for _ in 0..999 {
        Vec::<Vec<u8>>::deserialize(&mut deserializer).unwrap_err();
    }
    assert_eq!(Vec::<Vec<u8>>::deserialize(&mut deserializer).unwrap(), [[5]]);
    deserializer.end().unwrap();

    // What is skipped, kept, or read as any value.
    let broken = unhex("8181ff").repeat(1000);
    let mut deserializer = Deserializer::from_slice(&broken);
    for at in 0..1000 {
        let error = match at % 3 {
            0 => IgnoredAny::deserialize(&mut deserializer).unwrap_err(),
            1 => Value::deserialize(&mut deserializer).unwrap_err(),
            _ => Box::<RawValue>::deserialize(&mut deserializer).unwrap_err(),
        };
        assert_eq!(error.category(), tenarc::error::Category::Syntax, "{error}");
        assert_eq!(error.offset(), Some(at * 3 + 2));
    }
    deserializer.end().unwrap();
}

// 20
#[test]
fn each_value_of_a_stream_has_all_levels() {
    let bytes = arrays(128).repeat(100);
    let stream = Deserializer::from_reader(&bytes[..]).into_iter::<Value>();
    assert_eq!(stream.flatten().count(), 100);
}

/// Values nested as deep as they are read, of every kind.
fn deepest() -> Vec<Value> {
    let scalar = unhex("6161");
    let tensor = tensor(40, &[2, 1], 64, &[1, 2]);
    let mut all = Vec::new();
    for (level, inner) in [
        ("81", &scalar),
        ("a1", &scalar),
        ("a16161", &scalar),
        ("c6", &scalar),
        ("d818", &scalar),
        ("81", &tensor),
        ("a100", &tensor),
    ] {
        let levels = 128 - if *inner == tensor { 3 } else { 0 };
        let open = unhex(level).repeat(levels);
        // The values of maps whose keys were nested.
        let close = vec![0; if level == "a1" { levels } else { 0 }];
        let value = tenarc::from_slice(&[open, inner.clone(), close].concat()).unwrap();
        all.push(value);
    }
    all
}

// 21
#[test]
fn the_deepest_values_live_on_small_stacks() {
    on_small_stack(|| {
        for value in deepest() {
            let copy = value.clone();
            assert!(copy == value);
            assert!(format!("{value:?}").len() > 128);
            assert!(format!("{value:#?}").len() > 128);
            assert!(!value.to_string().is_empty());
            let bytes = tenarc::to_vec(&value).unwrap();
            assert!(tenarc::from_slice::<Value>(&bytes).unwrap() == value);
            assert!(tenarc::to_value(&value).unwrap() == value);
            assert!(tenarc::from_value::<Value>(copy).unwrap() == value);
            IgnoredAny::deserialize(&value).unwrap();
            Dive.deserialize(&value).unwrap();
            let pointer = "/0".repeat(130);
            value.pointer(&pointer);
            let mut json = Vec::new();
            let _ = serde_json::to_writer(&mut json, &value);
            let raw: Box<RawValue> = tenarc::from_slice(&bytes).unwrap();
            assert!(format!("{raw:?}").len() > 128);
            drop(value);
        }
        for levels in [128, 129, 100_000] {
            let read = tenarc::from_slice::<Value>(&arrays(levels));
            assert_eq!(read.is_ok(), levels == 128);
            let read = tenarc::from_slice::<Nest>(&arrays(levels));
            assert_eq!(read.is_ok(), levels == 128);
        }
    });
}

/// Goes down through `deserialize_any`.
struct Dive;

impl<'de> DeserializeSeed<'de> for Dive {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Dive {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Dive)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key_seed(Dive)?.is_some() {
            map.next_value_seed(Dive)?;
        }
        Ok(())
    }
}

// 19
#[test]
fn deserialize_any_counts_levels() {
    let dive = |bytes: &[u8]| Deserializer::from_slice(bytes).deserialize_any(Dive);
    dive(&arrays(128)).unwrap();
    assert_eq!(dive(&arrays(129)).unwrap_err().category(), Limit);
    assert_eq!(dive(&vec![0xc6; 100_000]).unwrap_err().category(), Limit);
}

/// Whether a typed reader and a reader that skips the item need the same number of levels for it.
fn needs_as_many_levels_as_skipping<'de, T: Deserialize<'de> + fmt::Debug>(bytes: &'de [u8]) {
    let read = |levels| {
        let limits = Limits::default().with_max_depth(levels);
        let options = DecodeOptions::default().with_limits(limits);
        let skipped = tenarc::de::from_slice_with::<IgnoredAny>(bytes, options);
        let typed = tenarc::de::from_slice_with::<T>(bytes, options);
        (skipped.map(drop).map_err(|e| e.category()), typed.map(drop).map_err(|e| e.category()))
    };
    let accepted = (0..40).find(|&levels| {
        let (skipped, typed) = read(levels);
        assert_eq!(skipped, typed, "{levels} levels for {bytes:02x?}");
        skipped.is_ok()
    });
    assert!(accepted.is_some(), "{bytes:02x?}");
}

// 19
#[test]
fn tags_are_levels_for_types_too() {
    const SOME: &str = "da54534f4d";
    let runs = ["", "c6", "d9d9f7", "c6c6c6c6c6", SOME];
    let more = [[SOME, SOME].concat(), ["c6", SOME, "c6c6", SOME, "c6"].concat()];
    for tags in runs.into_iter().chain(more.iter().map(String::as_str)) {
        let tagged = |item: &str| unhex(&[tags, item].concat());
        needs_as_many_levels_as_skipping::<bool>(&tagged("f5"));
        needs_as_many_levels_as_skipping::<()>(&tagged("f6"));
        needs_as_many_levels_as_skipping::<()>(&tagged("80"));
        needs_as_many_levels_as_skipping::<()>(&tagged("9fff"));
        needs_as_many_levels_as_skipping::<&str>(&tagged("6161"));
        needs_as_many_levels_as_skipping::<Level>(&tagged("634c6f77"));
        needs_as_many_levels_as_skipping::<Level>(&tagged("a1634d6964c681c605"));
        needs_as_many_levels_as_skipping::<Tensor<Vec<u8>>>(&tagged("d84041aa"));
        needs_as_many_levels_as_skipping::<Tensor<DynTensor>>(&tagged("d828828102c682c60507"));
        if tags.contains(SOME) {
            continue;
        }
        needs_as_many_levels_as_skipping::<u64>(&tagged("05"));
        needs_as_many_levels_as_skipping::<i128>(&tagged("c24105"));
        needs_as_many_levels_as_skipping::<f32>(&tagged("fa3f800000"));
        needs_as_many_levels_as_skipping::<Vec<u8>>(&tagged("820506"));
        needs_as_many_levels_as_skipping::<Vec<u8>>(&tagged("820506"));
        needs_as_many_levels_as_skipping::<Vec<bool>>(&tagged("82f5c6f4"));
        needs_as_many_levels_as_skipping::<Vec<f32>>(&tagged("d855440000803f"));
        needs_as_many_levels_as_skipping::<Nest>(&tagged("81c6c681c680"));
        needs_as_many_levels_as_skipping::<BTreeMap<String, Vec<u8>>>(&tagged("a1c66161c6c68105"));
        needs_as_many_levels_as_skipping::<Point>(&tagged("a16178c6820506"));
        needs_as_many_levels_as_skipping::<Point>(&tagged("81c6820506"));
        needs_as_many_levels_as_skipping::<serde_bytes::ByteBuf>(&tagged("420506"));
        needs_as_many_levels_as_skipping::<serde_bytes::ByteBuf>(&tagged("8205c606"));
        needs_as_many_levels_as_skipping::<Value>(&tagged("81c6c681c680"));
        needs_as_many_levels_as_skipping::<Option<Vec<u8>>>(&tagged("8105"));
    }
}

#[derive(Deserialize, Debug)]
#[allow(dead_code)]
enum Level {
    Low,
    Mid(Vec<u8>),
}

#[derive(Deserialize, Debug)]
#[allow(dead_code)]
struct Point {
    x: Vec<u8>,
}
