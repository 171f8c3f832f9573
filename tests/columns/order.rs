//! Fields of structs that have the names and the order of the type are passed to its visitor in order, as a sequence. What
//! a visitor does with that must not show: columns give the values, and the kinds of errors, that rows give.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess,
    Visitor,
};
use serde::{Deserialize as Derive, Serialize};
use tenarc::ser::{EncodeOptions, to_vec_with};

/// Decodes a value that was written as rows, and as columns, into another type.
fn both<T: DeserializeOwned>(written: &impl Serialize) -> [tenarc::Result<T>; 2] {
    [false, true].map(|columns| {
        let options = EncodeOptions::default().with_columns(columns);
        let bytes = to_vec_with(written, options).unwrap();
        let is_columns = bytes.windows(4).any(|word| word == b"TCOL");
        assert_eq!(is_columns, columns, "the bytes are not as the test needs them");
        tenarc::from_slice(&bytes)
    })
}

fn same<T: DeserializeOwned + PartialEq + fmt::Debug>(written: &impl Serialize, expected: &T) {
    for decoded in both::<T>(written) {
        assert_eq!(&decoded.unwrap(), expected);
    }
}

#[derive(Serialize, Derive, Clone, PartialEq, Debug)]
struct Pair {
    a: u32,
    b: String,
}

fn pairs() -> Vec<Pair> {
    (0..20).map(|a| Pair { a, b: format!("{a}") }).collect()
}

/// A type whose visitor takes a map and no sequence.
#[derive(PartialEq, Debug)]
struct OnlyMap(u32, String);

impl<'de> Deserialize<'de> for OnlyMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;

        impl<'de> Visitor<'de> for Take {
            type Value = OnlyMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<OnlyMap, M::Error> {
                let mut found = OnlyMap(0, String::new());
                while let Some(key) = map.next_key::<String>()? {
                    match &*key {
                        "a" => found.0 = map.next_value()?,
                        _ => found.1 = map.next_value()?,
                    }
                }
                Ok(found)
            }
        }

        deserializer.deserialize_struct("Pair", &["a", "b"], Take)
    }
}

fn only_maps() -> Vec<OnlyMap> {
    pairs().into_iter().map(|Pair { a, b }| OnlyMap(a, b)).collect()
}

#[test]
fn derived_types_are_read() {
    same(&pairs(), &pairs());
}

#[test]
fn a_visitor_that_takes_no_sequence_is_given_a_map() {
    same(&pairs(), &only_maps());
}

/// Like `serde_with::DefaultOnError`: no error comes out of it.
#[derive(PartialEq, Debug)]
struct Lenient(Option<OnlyMap>);

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(OnlyMap::deserialize(deserializer).ok()))
    }
}

#[test]
fn a_type_that_hides_errors_loses_nothing() {
    let lenient: Vec<_> = only_maps().into_iter().map(|pair| Lenient(Some(pair))).collect();
    same(&pairs(), &lenient);
}

#[derive(Serialize, Derive, PartialEq, Debug)]
struct Around<T> {
    one: T,
    some: Option<T>,
    list: Vec<T>,
    map: BTreeMap<String, T>,
    boxed: Box<T>,
    variant: Variant<T>,
    pair: (T, T),
}

#[derive(Serialize, Derive, PartialEq, Debug)]
enum Variant<T> {
    Unit,
    New(T),
    Struct { a: T },
}

fn around<T>(next: impl Fn(u32) -> T) -> Vec<Around<T>> {
    let around = |row: u32| Around {
        one: next(row),
        some: row.is_multiple_of(2).then(|| next(row + 1)),
        list: (0..row % 4).map(&next).collect(),
        map: (0..row % 3).map(|number| (number.to_string(), next(number))).collect(),
        boxed: Box::new(next(row)),
        variant: match row % 3 {
            0 => Variant::Unit,
            1 => Variant::New(next(row)),
            _ => Variant::Struct { a: next(row) },
        },
        pair: (next(1), next(row)),
    };
    (0..20).map(around).collect()
}

#[test]
fn it_is_so_wherever_the_struct_is() {
    let written = around(|a| Pair { a, b: a.to_string() });
    same(&written, &written);
    same(&written, &around(|a| OnlyMap(a, a.to_string())));
    same(&written, &around(|a| Lenient(Some(OnlyMap(a, a.to_string())))));
}

#[derive(Derive, PartialEq, Debug)]
struct Alias {
    #[serde(alias = "b")]
    a: serde::de::IgnoredAny,
}

#[derive(Derive, PartialEq, Debug)]
struct AliasAndMore {
    #[serde(alias = "b")]
    a: u32,
    c: u32,
}

#[derive(Serialize)]
struct Three {
    a: u32,
    b: u32,
    c: u32,
}

#[test]
fn aliases_are_names_and_not_further_fields() {
    for error in both::<Vec<Alias>>(&pairs()).map(Result::unwrap_err) {
        assert!(error.to_string().contains("duplicate field `a`"), "{error}");
    }
    let three: Vec<_> = (0..20).map(|a| Three { a, b: 1, c: 2 }).collect();
    for error in both::<Vec<AliasAndMore>>(&three).map(Result::unwrap_err) {
        assert!(error.to_string().contains("duplicate field `a`"), "{error}");
    }
}

#[derive(Serialize, Derive, PartialEq, Debug, Default)]
#[serde(default)]
struct Sometimes {
    a: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<u32>,
    #[serde(skip)]
    never: u32,
    c: u32,
}

#[derive(Derive, PartialEq, Debug)]
struct OtherOrder {
    b: String,
    a: u32,
}

#[derive(Derive, PartialEq, Debug)]
struct Flat {
    a: u32,
    #[serde(flatten)]
    rest: BTreeMap<String, String>,
}

#[test]
fn other_fields_go_by_name() {
    let some = |row| Sometimes { a: row, b: (row % 2 > 0).then_some(row), never: 0, c: row + 1 };
    let some: Vec<_> = (0..20).map(some).collect();
    same(&some, &some);
    let other: Vec<_> = pairs().into_iter().map(|Pair { a, b }| OtherOrder { b, a }).collect();
    same(&pairs(), &other);
    let flat = |Pair { a, b }| Flat { a, rest: [("b".to_owned(), b)].into() };
    same(&pairs(), &pairs().into_iter().map(flat).collect::<Vec<_>>());
}

/// Takes a sequence, but looks at the first element only.
#[derive(Debug)]
struct First;

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;

        impl<'de> Visitor<'de> for Take {
            type Value = First;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<M: MapAccess<'de>>(self, _: M) -> Result<First, M::Error> {
                Err(de::Error::custom("this map is wrong"))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<First, S::Error> {
                seq.next_element::<u32>().map(|_| First)
            }
        }

        deserializer.deserialize_struct("Pair", &["a", "b"], Take)
    }
}

#[test]
fn a_visitor_that_leaves_fields_is_given_a_map() {
    for error in both::<Vec<First>>(&pairs()).map(Result::unwrap_err) {
        assert!(error.to_string().contains("this map is wrong"), "{error}");
    }
}

/// A seed cannot be used twice, so its struct is read by names.
struct Seed<'s>(&'s mut Vec<OnlyMap>);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.push(OnlyMap::deserialize(deserializer)?);
        Ok(())
    }
}

#[test]
fn seeds_are_used_once() {
    struct All;

    impl<'de> Visitor<'de> for All {
        type Value = Vec<OnlyMap>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a sequence")
        }

        fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
            let mut all = Vec::new();
            while seq.next_element_seed(Seed(&mut all))?.is_some() {}
            Ok(all)
        }
    }

    for columns in [false, true] {
        let options = EncodeOptions::default().with_columns(columns);
        let bytes = to_vec_with(&pairs(), options).unwrap();
        let mut decoder = tenarc::Deserializer::from_slice(&bytes);
        assert_eq!((&mut decoder).deserialize_seq(All).unwrap(), only_maps());
    }
}

#[derive(Serialize, Derive, Debug)]
struct Wrong {
    #[allow(dead_code)]
    a: u32,
    #[allow(dead_code)]
    b: u8,
}

#[test]
fn an_error_in_a_field_has_its_path() {
    for error in both::<Vec<Wrong>>(&pairs()).map(Result::unwrap_err) {
        assert_eq!(error.path(), "0.b", "{error}");
    }
    let nested: Vec<_> = around(|a| Pair { a, b: a.to_string() });
    for error in both::<Vec<Around<Wrong>>>(&nested).map(Result::unwrap_err) {
        assert_eq!(error.path(), "0.one.b", "{error}");
    }
}
