//! Rows are read into every type that the item could be read into.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, forward_to_deserialize_any};
use tenarc::Value;
use tenarc::value::RawValue;
use tenarc_test_support::builder::{array, bytes, map, tag, text, unsigned};
use tenarc_test_support::{decode, refuse};

use crate::build::{f32s, f64s, kind, one, texts, u8s, u16s};

fn people() -> Vec<u8> {
    one(
        3,
        map(&[
            ("name", texts(u8s(&[1, 2, 1]), "abbc")),
            ("age", u8s(&[7, 8, 9])),
            ("tags", kind("list", &[u8s(&[0, 2, 1]), texts(u8s(&[1, 2, 1]), "xyyz")])),
            ("raw", kind("bytes", &[unsigned(1), bytes(&[1, 2, 3])])),
        ]),
    )
}

#[test]
fn texts_and_bytes_are_borrowed_from_slices() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Person<'a> {
        name: &'a str,
        #[serde(borrow)]
        tags: Vec<Cow<'a, str>>,
        raw: &'a [u8],
    }
    let document = people();
    let found: Vec<Person<'_>> = tenarc::from_slice(&document).unwrap();
    assert_eq!(found[1], Person { name: "bb", tags: vec!["x".into(), "yy".into()], raw: &[2] });
    let range = document.as_ptr_range();
    assert!(range.contains(&found[2].name.as_ptr()) && range.contains(&found[2].raw.as_ptr()));

    let items = kind("rows", &[array(&[text("ab"), text("c")])]);
    let items = one(2, items);
    assert_eq!(tenarc::from_slice::<Vec<&str>>(&items).unwrap(), ["ab", "c"]);
    assert_eq!(decode::<Vec<String>>(&items), ["ab", "c"]);
}

#[test]
fn keys_are_borrowed_from_slices() {
    let document = one(2, map(&[("a", u8s(&[1, 2])), ("b", u8s(&[3, 4]))]));
    let found: Vec<HashMap<&str, u8>> = tenarc::from_slice(&document).unwrap();
    assert_eq!(found[1]["b"], 4);
    assert_eq!(decode::<Vec<BTreeMap<String, u8>>>(&document)[0]["a"], 1);
}

#[test]
fn keys_have_any_type_that_a_text_can_have() {
    #[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct New(String);
    #[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
    enum Letter {
        A,
        B,
    }
    let document = one(1, map(&[("A", u8s(&[1])), ("B", u8s(&[3]))]));
    assert_eq!(decode::<Vec<BTreeMap<New, u8>>>(&document)[0][&New("A".into())], 1);
    assert_eq!(decode::<Vec<BTreeMap<Letter, u8>>>(&document)[0][&Letter::B], 3);
    assert_eq!(decode::<Vec<BTreeMap<char, u8>>>(&document)[0][&'A'], 1);
    assert_eq!(decode::<Vec<BTreeMap<Option<String>, u8>>>(&document)[0][&Some("B".into())], 3);
    let raw: Vec<HashMap<String, Box<RawValue>>> = decode_raw(&document);
    assert_eq!(raw[0]["B"].as_bytes(), [3]);
    let error = refuse::<Vec<BTreeMap<u8, u8>>>(&document);
    assert!(error.to_string().starts_with("expected u8, found text string"), "{error}");
}

fn decode_raw<'de, T: Deserialize<'de>>(document: &'de [u8]) -> T {
    tenarc::from_slice(document).unwrap()
}

#[test]
fn fields_in_another_order_unknown_fields_and_missing_ones() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Person {
        age: u64,
        #[serde(rename = "name")]
        called: String,
        #[serde(default)]
        size: u8,
        nothing: Option<u8>,
    }
    let found = decode::<Vec<Person>>(&people());
    let second = Person { age: 8, called: "bb".into(), size: 0, nothing: None };
    assert_eq!(found[1], second);

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Strict {
        name: String,
        age: u8,
    }
    let error = refuse::<Vec<Strict>>(&people());
    assert!(error.to_string().contains("unknown field `tags`"), "{error}");
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct More {
        name: String,
        size: u8,
    }
    let error = refuse::<Vec<More>>(&people());
    assert!(error.to_string().starts_with("missing field `size` at `0`"), "{error}");
}

/// A deserializer that passes a visitor of its own around the one of the type, as `serde_ignored` and
/// `serde_path_to_error` do. The visitor takes structs by name only.
struct Around<D>(D);
struct AroundVisitor<V>(V);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Around<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, AroundVisitor(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for AroundVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(map)
    }
}

#[test]
fn visitors_around_derived_ones_get_the_names_of_fields() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Plain {
        a: u8,
        b: u8,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    struct Generic<T> {
        a: T,
        b: T,
    }
    /// A row that is read by way of [`Around`].
    #[derive(PartialEq, Debug)]
    struct Inside<T>(T);
    impl<'de, T: Deserialize<'de>> Deserialize<'de> for Inside<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            T::deserialize(Around(deserializer)).map(Inside)
        }
    }
    let document = one(2, map(&[("a", u8s(&[1, 2])), ("b", u8s(&[3, 4]))]));
    assert_eq!(decode::<Vec<Inside<Plain>>>(&document)[1], Inside(Plain { a: 2, b: 4 }));
    assert_eq!(decode::<Vec<Inside<Generic<u8>>>>(&document)[1], Inside(Generic { a: 2, b: 4 }));
}

#[test]
fn a_field_that_some_rows_do_not_ask_for() {
    // The column of names is left behind in the first two rows, and then caught up with.
    thread_local!(static ROW: Cell<u8> = const { Cell::new(0) });
    struct Row(Option<String>, Vec<String>, Option<String>);
    impl<'de> Deserialize<'de> for Row {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct RowVisitor;
            impl<'de> Visitor<'de> for RowVisitor {
                type Value = Row;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a row")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
                    let asks = ROW.replace(ROW.get() + 1) >= 2;
                    let mut row = Row(None, Vec::new(), None);
                    while let Some(key) = map.next_key::<String>()? {
                        match &*key {
                            "text" if asks => row.0 = Some(map.next_value()?),
                            "list" if asks => row.1 = map.next_value()?,
                            "option" if asks => row.2 = map.next_value()?,
                            _ => drop(map.next_value::<IgnoredAny>()?),
                        }
                    }
                    Ok(row)
                }
            }
            deserializer.deserialize_map(RowVisitor)
        }
    }
    let lists = kind("list", &[u8s(&[1, 2, 1, 0]), texts(u8s(&[1, 1, 1, 1]), "pqrs")]);
    let document = one(
        4,
        map(&[
            ("text", texts(u8s(&[1, 0, 2, 1]), "abcd")),
            ("list", lists),
            ("option", kind("option", &[bytes(&[0b1011]), texts(unsigned(1), "xyz")])),
        ]),
    );
    let rows: Vec<Row> = tenarc::from_slice(&document).unwrap();
    let texts: Vec<_> = rows.iter().map(|row| row.0.as_deref()).collect();
    assert_eq!(texts, [None, None, Some("bc"), Some("d")]);
    assert_eq!(rows[2].1, ["s"]);
    assert!(rows[3].1.is_empty());
    assert_eq!((rows[2].2.as_deref(), rows[3].2.as_deref()), (None, Some("z")));
}

#[test]
fn structs_are_read_from_arrays_and_tuples_from_lists() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Pair {
        a: u8,
        b: f64,
    }
    let tuple = kind("tuple", &[array(&[u8s(&[1, 2]), f64s(&[0.5, 1.5])])]);
    assert_eq!(decode::<Vec<Pair>>(&one(2, tuple))[1], Pair { a: 2, b: 1.5 });
    let list = kind("array", &[unsigned(2), u8s(&[1, 2, 3, 4])]);
    assert_eq!(decode::<Vec<Pair>>(&one(2, list.clone()))[1], Pair { a: 3, b: 4.0 });
    assert_eq!(decode::<Vec<(u8, i32)>>(&one(2, list.clone()))[1], (3, 4));
    assert_eq!(decode::<Vec<[u64; 2]>>(&one(2, list.clone())), [[1, 2], [3, 4]]);
    let error = refuse::<Vec<(u8, u8, u8)>>(&one(2, list.clone()));
    assert!(error.to_string().contains("invalid length 2"), "{error}");
    let error = refuse::<Vec<(u8,)>>(&one(2, list));
    assert!(error.to_string().contains("found 1 more elements"), "{error}");
    // All rows as a struct, as an array of its fields.
    assert_eq!(decode::<Pair>(&one(2, u8s(&[1, 2]))), Pair { a: 1, b: 2.0 });
}

#[test]
fn numbers_are_exact_or_refused() {
    let error = refuse::<Vec<u8>>(&one(2, u16s(&[1, 256])));
    assert_eq!(error.path(), "1");
    assert!(error.to_string().starts_with("expected u8, found integer 256"), "{error}");
    assert_eq!(error.offset(), Some(7));
    assert_eq!(decode::<Vec<u8>>(&one(1, f32s(&[3.0]))), [3]);
    let error = refuse::<Vec<u8>>(&one(1, f32s(&[3.5])));
    assert!(error.to_string().contains("single-precision float 3.5"), "{error}");
    // A double is rounded where a single is asked for.
    assert_eq!(decode::<Vec<f32>>(&one(1, f64s(&[0.1]))), [0.1]);
    let error = refuse::<Vec<f32>>(&one(1, f64s(&[1e39])));
    assert!(error.to_string().contains("double-precision float"), "{error}");
    let list = kind("array", &[unsigned(1), f64s(&[0.1])]);
    assert_eq!(decode::<Vec<Vec<f32>>>(&one(1, list)), [[0.1]]);
    let error = refuse::<Vec<bool>>(&one(1, u8s(&[1])));
    assert!(error.to_string().contains("expected a boolean, found integer 1"), "{error}");
    let error = refuse::<Vec<String>>(&one(1, map(&[("a", u8s(&[1]))])));
    assert!(error.to_string().contains("expected a string, found map"), "{error}");
    let error = refuse::<Vec<u8>>(&one(1, kind("option", &[bytes(&[0]), u8s(&[])])));
    assert!(error.to_string().contains("expected u8, found null"), "{error}");
}

#[test]
fn errors_name_row_and_field() {
    let inner = map(&[("b", kind("array", &[unsigned(2), u8s(&[1, 2, 3, 4])]))]);
    let document = one(2, map(&[("a", inner)]));
    let error = refuse::<Vec<BTreeMap<String, BTreeMap<String, (u8, bool)>>>>(&document);
    assert_eq!(error.path(), "0.a.b.1");
    let entries = [unsigned(1), u8s(&[7, 8]), u8s(&[1, 2])];
    let error = refuse::<Vec<BTreeMap<u8, bool>>>(&one(2, kind("map", &entries)));
    assert_eq!(error.path(), "0.7");
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    enum Any {
        A(bool),
    }
    let variants = [u8s(&[0]), array(&[text("A")]), array(&[u8s(&[1])])];
    let error = refuse::<Vec<Any>>(&one(1, kind("enum", &variants)));
    assert_eq!(error.path(), "0.A");
    let tuple = kind("tuple", &[array(&[u8s(&[1]), f64s(&[2.0])])]);
    assert_eq!(refuse::<Vec<(u8, bool)>>(&one(1, tuple)).path(), "0.1");
    let items = kind("rows", &[array(&[unsigned(1), array(&[text("x")])])]);
    let error = refuse::<Vec<IsNumber>>(&one(2, items));
    assert_eq!(error.path(), "1");
    // Offsets of items are those in the document.
    assert_eq!(error.offset(), Some(15));
}

#[derive(Deserialize, Debug)]
#[allow(dead_code)]
struct IsNumber(u8);

#[test]
fn options_that_are_not_in_the_data_do_not_recurse_forever() {
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct A(Option<Box<A>>);
    let error = refuse::<Vec<A>>(&one(1, u8s(&[1])));
    assert!(error.to_string().contains("options are nested too deeply"), "{error}");
    let option = kind("option", &[bytes(&[1]), u8s(&[1])]);
    let error = refuse::<Vec<A>>(&one(1, option));
    assert!(error.to_string().contains("options are nested too deeply"), "{error}");
    decode_any::<Vec<A>>(&one(1, kind("unit", &[])));
}

fn decode_any<'de, T: Deserialize<'de>>(document: &'de [u8]) {
    tenarc::from_slice::<T>(document).unwrap();
}

#[test]
fn visitors_that_do_not_take_everything_are_refused() {
    /// Takes one element or entry.
    #[derive(Debug)]
    struct First;
    impl<'de> Deserialize<'de> for First {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Self)
        }
    }
    impl<'de> Visitor<'de> for First {
        type Value = Self;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
            seq.next_element::<IgnoredAny>()?;
            Ok(self)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
            map.next_entry::<IgnoredAny, IgnoredAny>()?;
            Ok(self)
        }
    }
    for document in [
        one(2, u8s(&[1, 2])),
        one(1, kind("array", &[unsigned(2), u8s(&[1, 2])])),
        one(1, kind("tuple", &[array(&[u8s(&[1]), f64s(&[1.0])])])),
    ] {
        let error = refuse::<First>(&one(2, u8s(&[1, 2])));
        assert!(error.to_string().contains("expected the end of an array"), "{error}");
        drop(document);
    }
    for document in [
        map(&[("a", u8s(&[1])), ("b", u8s(&[1]))]),
        kind("map", &[unsigned(2), u8s(&[1, 2]), u8s(&[1, 2])]),
    ] {
        let error = refuse::<Vec<First>>(&one(1, document));
        assert!(error.to_string().contains("expected the end of a map, found 1 more"), "{error}");
    }
    let list = one(1, kind("array", &[unsigned(2), u8s(&[1, 2])]));
    assert!(refuse::<Vec<First>>(&list).to_string().contains("end of an array, found 1 more"));
}

#[test]
fn keys_can_be_asked_for_without_values() {
    #[derive(Debug)]
    struct Keys;
    impl<'de> Deserialize<'de> for Keys {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Self)
        }
    }
    impl<'de> Visitor<'de> for Keys {
        type Value = Self;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("keys")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
            while map.next_key::<IgnoredAny>()?.is_some() {}
            Ok(self)
        }
    }
    for document in [
        map(&[("a", u8s(&[1])), ("b", u8s(&[1]))]),
        kind("map", &[unsigned(2), u8s(&[1, 2]), u8s(&[1, 2])]),
        kind("enum", &[u8s(&[0]), array(&[text("A")]), array(&[u8s(&[1])])]),
    ] {
        let error = refuse::<Vec<Keys>>(&one(1, document));
        assert!(error.to_string().contains("expected the end of a map, found 1 more"), "{error}");
    }
}

#[test]
fn values_shared_by_reference_counts() {
    let rows: Vec<Rc<str>> = one_of(&one(2, texts(unsigned(1), "ab")));
    assert_eq!(&*rows[1], "b");
}

fn one_of<'de, T: SeededBy<'de>>(document: &'de [u8]) -> Vec<T> {
    let mut deserializer = tenarc::Deserializer::from_slice(document);
    let rows = Rows::<T>(std::marker::PhantomData).deserialize(&mut deserializer).unwrap();
    deserializer.end().unwrap();
    rows
}

/// A type that is read by a seed, not by `Deserialize`.
trait SeededBy<'de>: Sized {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl<'de> SeededBy<'de> for Rc<str> {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Rc::from)
    }
}

struct Rows<T>(std::marker::PhantomData<T>);
struct Row<T>(std::marker::PhantomData<T>);

impl<'de, T: SeededBy<'de>> DeserializeSeed<'de> for Row<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read(deserializer)
    }
}

impl<'de, T: SeededBy<'de>> DeserializeSeed<'de> for Rows<T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: SeededBy<'de>> Visitor<'de> for Rows<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut rows = Vec::new();
        while let Some(row) = seq.next_element_seed(Row(std::marker::PhantomData))? {
            rows.push(row);
        }
        Ok(rows)
    }
}

#[test]
fn raw_values_of_rows_are_items() {
    let fields = [("a", u8s(&[1, 2])), ("b", kind("present", &[bytes(&[0b01]), u8s(&[3])]))];
    let document = one(2, map(&fields));
    let raw: Vec<Box<RawValue>> = tenarc::from_slice(&document).unwrap();
    assert_eq!(raw[0].as_bytes(), map(&[("a", unsigned(1)), ("b", unsigned(3))]));
    assert_eq!(raw[1].as_bytes(), map(&[("a", unsigned(2))]));
    // Items are as they were.
    let items = kind("rows", &[array(&[vec![0x18, 1], tag(1, &unsigned(1))])]);
    let document = one(2, items);
    let raw: Vec<&RawValue> = tenarc::from_slice(&document).unwrap();
    assert_eq!((raw[0].as_bytes(), raw[1].as_bytes()), (&[0x18, 1][..], &[0xc1, 1][..]));
}

#[test]
fn a_value_with_columns_inside_can_be_read_into_types() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Log {
        lines: Vec<(u8, String)>,
    }
    let lines = kind("tuple", &[array(&[u8s(&[1, 2]), texts(unsigned(1), "ab")])]);
    let document = map(&[("lines", one(2, lines))]);
    let value: Value = tenarc::from_slice(&document).unwrap();
    let log: Log = tenarc::from_value(value.clone()).unwrap();
    assert_eq!(log.lines[1], (2, "b".into()));
    assert_eq!(value, tenarc::to_value(&log).unwrap());
    assert_eq!(tenarc::from_slice::<Log>(&document).unwrap(), log);
}
