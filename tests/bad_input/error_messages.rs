//! What errors say: category, byte offset, path, what was expected and what was found.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::io;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::error::Category;
use tenarc::{Error, Value};
use tenarc_test_support::{OneByte, refuse, round_trip, unhex};

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Model {
    name: String,
    layers: Vec<Layer>,
    #[serde(default)]
    steps: BTreeMap<i64, Vec<bool>>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Layer {
    weight: Vec<f32>,
    #[serde(default)]
    kind: Kind,
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Default)]
enum Kind {
    #[default]
    Linear,
    Leaky(f32),
    Clip(i8, i8),
    Custom {
        alpha: u8,
        inner: Option<Box<Kind>>,
    },
}

/// One broken document.
struct Broken {
    what: &'static str,
    refuse: fn(&[u8]) -> Error,
    bytes: &'static str,
    category: Category,
    offset: u64,
    path: &'static str,
    message: &'static str,
}

/// Rows of: what, type, bytes, category, offset, path, message.
macro_rules! broken {
    ($($what:literal, $type:ty, $bytes:expr, $category:ident, $offset:literal, $path:literal,
        $message:literal;)*) => {
        [$(Broken {
            what: $what,
            refuse: refuse::<$type>,
            bytes: $bytes,
            category: Category::$category,
            offset: $offset,
            path: $path,
            message: $message,
        }),*]
    };
}

fn check(table: &[Broken]) {
    let mut wrong = Vec::new();
    for row in table {
        let error = (row.refuse)(&unhex(row.bytes));
        let place = match row.path {
            "" => format!(" (byte {})", row.offset),
            path => format!(" at `{path}` (byte {})", row.offset),
        };
        let found = (error.category(), error.offset(), error.path(), error.to_string());
        let expected = (
            row.category,
            Some(row.offset),
            row.path.to_owned(),
            format!("{}{place}", row.message),
        );
        if found != expected {
            wrong.push(format!("{}\n   found {found:?}\nexpected {expected:?}", row.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn documents_that_do_not_fit_the_type() {
    check(&broken! {
        "a text where a number belongs",
            u8, "61 61",
            Mismatch, 0, "", "expected u8, found text string";
        "a number where a text belongs",
            String, "18 64",
            Mismatch, 0, "", "expected a string, found integer 100";
        "a number where an array belongs",
            Vec<u8>, "20",
            Mismatch, 0, "", "expected a sequence, found integer -1";
        "an array where a map belongs",
            BTreeMap<u8, u8>, "80",
            Mismatch, 0, "", "expected a map, found array";
        "a map where an array belongs",
            Vec<u8>, "a0",
            Mismatch, 0, "", "expected a sequence, found map";
        "null where a number belongs",
            u8, "f6",
            Mismatch, 0, "", "expected u8, found null";
        "null where a text belongs",
            (u8, String), "82 01 f6",
            Mismatch, 2, "1", "expected a string, found null";
        "undefined where a boolean belongs",
            bool, "f7",
            Mismatch, 0, "", "expected a boolean, found undefined";
        "a boolean where a float belongs",
            f64, "f5",
            Mismatch, 0, "", "expected f64, found boolean `true`";
        "a float where a boolean belongs",
            bool, "f9 3e00",
            Mismatch, 0, "", "expected a boolean, found single-precision float 1.5";
        "a float that is no integer",
            i32, "fb 3ff8000000000000",
            Mismatch, 0, "", "expected i32, found double-precision float 1.5";
        "an integer that no float holds",
            f32, "1a 01000001",
            Mismatch, 0, "", "expected f32, found integer 16777217";
        "an integer beyond the type",
            Vec<i8>, "83 01 18 7f 18 80",
            Mismatch, 4, "2", "expected i8, found integer 128";
        "a bignum beyond the type",
            u64, "c2 49 010000000000000000",
            Mismatch, 0, "", "expected u64, found integer 18446744073709551616";
        "a bignum beyond all types",
            u128, "c2 51 010000000000000000000000000000000000",
            Unsupported, 1, "", "a bignum of 17 bytes does not fit in 128 bits";
        "a bignum that is a text",
            u128, "c2 61 61",
            Data, 1, "", "expected the bytes of a bignum, found text string";
        "a text of two characters for one",
            char, "62 6162",
            Mismatch, 0, "", "invalid value: string \"ab\", expected a character";
        "bytes where a text belongs",
            String, "41 61",
            Mismatch, 0, "", "expected a string, found byte string";
        "a simple value nobody knows",
            BTreeMap<String, bool>, "a1 6161 f0",
            Mismatch, 3, "a", "expected a boolean, found simple value";
        "a tag of another meaning",
            String, "c2 41 01",
            Mismatch, 0, "", "expected a string, found bignum";
        "a reference that is not followed",
            Vec<String>, "82 6161 d819 00",
            Unsupported, 5, "1", "tag 25 refers to another value, which is not supported";
        "a tuple too short",
            (u8, u8, u8), "82 01 02",
            Mismatch, 0, "", "invalid length 2, expected a tuple of size 3";
        "a tuple too long",
            (u8, u8), "84 01 02 03 04",
            Mismatch, 3, "", "expected the end of an array, found 2 more elements";
        "a tuple of unknown length too long",
            (u8, u8), "9f 01 02 03 ff",
            Mismatch, 3, "", "expected the end of an array, found more";
        "a tagged value and more behind it",
            Value, "d819 00 00",
            Syntax, 3, "", "expected the end of the input, found unsigned integer after the value";
    });
}

#[test]
fn paths_lead_through_structs_sequences_maps_and_enums() {
    // {"name": "m", "layers": [{"weight": [..], "kind": ..}], "steps": {..}}
    check(&broken! {
        "a missing field",
            Model, "a1 646e616d65 616d",
            Mismatch, 0, "", "missing field `layers`";
        "a missing field inside",
            Model, "a2 646e616d65 616d 666c6179657273 82 a1 66776569676874 80 a0",
            Mismatch, 25, "layers.1", "missing field `weight`";
        "a field twice",
            Model, "a2 646e616d65 616d 646e616d65 616d",
            Data, 0, "", "duplicate field `name`";
        "a weight that is no number",
            Model, "a2 646e616d65 616d 666c6179657273 81 a1 66776569676874 83 01 f93e00 6178",
            Mismatch, 29, "layers.0.weight.2", "expected f32, found text string";
        "a weight out of range",
            Model, "a2 646e616d65 616d 666c6179657273 81 a1 66776569676874 81 fb 48078287f49c4a1d",
            Mismatch, 25, "layers.0.weight.0", "expected f32, found double-precision float 1000000000000000000000000000000000000000";
        "a number as a field name",
            Model, "a1 00 00",
            Mismatch, 1, "", "expected field identifier, found integer 0";
        "an integer key",
            Model, "a1 657374657073 a1 39 01f3 82 f5 00",
            Mismatch, 13, "steps.-500.1", "expected a boolean, found integer 0";
        "a large integer key",
            BTreeMap<u64, u8>, "a2 00 00 1b ffffffffffffffff f5",
            Mismatch, 12, "18446744073709551615", "expected u8, found boolean `true`";
        "a boolean key",
            BTreeMap<bool, u8>, "a1 f5 f5",
            Mismatch, 2, "<boolean>", "expected u8, found boolean `true`";
        "a key of an array",
            BTreeMap<(u8, u8), u8>, "a1 82 01 02 f5",
            Mismatch, 4, "<array>", "expected u8, found boolean `true`";
        "a key that does not fit",
            BTreeMap<u8, u8>, "a1 6161 00",
            Mismatch, 1, "", "expected u8, found text string";
        "a key in a map of unknown length",
            HashMap<String, HashMap<String, u8>>, "bf 6161 bf 6162 20 ff ff",
            Mismatch, 6, "a.b", "expected u8, found integer -1";
        "the content of a newtype variant",
            Vec<Kind>, "82 664c696e656172 a1 654c65616b79 6178",
            Mismatch, 15, "1.Leaky", "expected f32, found text string";
        "the second field of a tuple variant",
            Kind, "a1 64436c6970 82 01 1903e8",
            Mismatch, 8, "Clip.1", "expected i8, found integer 1000";
        "a tuple variant too short",
            Kind, "a1 64436c6970 81 01",
            Mismatch, 6, "Clip", "invalid length 1, expected tuple variant Kind::Clip with 2 elements";
        "a tuple variant too long",
            Kind, "a1 64436c6970 83 01 02 03",
            Mismatch, 9, "Clip", "expected the end of an array, found 1 more elements";
        "a struct variant in a struct variant",
            Kind, "a1 66437573746f6d a2 65616c706861 01 65696e6e6572 \
                a1 66437573746f6d a2 65616c706861 f5 65696e6e6572 f6",
            Mismatch, 37, "Custom.inner.Custom.alpha", "expected u8, found boolean `true`";
        "an unknown variant",
            (u8, Kind), "82 00 63 466f6f",
            Mismatch, 2, "1", "unknown variant `Foo`, expected one of `Linear`, `Leaky`, `Clip`, `Custom`";
        "an unknown variant with content",
            (u8, Kind), "82 00 a1 63 466f6f 00",
            Mismatch, 3, "1", "unknown variant `Foo`, expected one of `Linear`, `Leaky`, `Clip`, `Custom`";
        "a variant without its content",
            Kind, "64 436c6970",
            Mismatch, 0, "", "expected tuple variant, found unit variant";
        "a unit variant with content",
            Kind, "a1 664c696e656172 07",
            Mismatch, 8, "Linear", "expected unit variant, found integer 7";
        "two variants at once",
            Kind, "a2 664c696e656172 f6 654c65616b79 00",
            Mismatch, 0, "", "expected an enum: a map of one entry, found map of 2 entries";
        "an array for an enum",
            Kind, "80",
            Mismatch, 0, "", "expected enum Kind, found array";
        "an option of what does not fit",
            BTreeMap<String, Option<Option<u8>>>, "a1 6161 da54534f4d f5",
            Mismatch, 8, "a", "expected u8, found boolean `true`";
        "a value",
            Value, "a1 6161 82 00 ff",
            Syntax, 5, "a.1", "found a break outside a container of indefinite length";
    });
}

#[test]
fn documents_that_are_not_well_formed() {
    check(&broken! {
        "nothing", u8, "", Eof, 0, "", "input ended, expected a value";
        "half a head", u64, "1a 0001", Eof, 0, "", "input ended, expected the rest of a head";
        "half a text",
            BTreeMap<String, String>, "a1 6161 63 6162",
            Eof, 4, "a", "input ended, expected 3 bytes of text string, found 2";
        "half a byte string",
            (u8, ByteBuf), "82 00 58 20 0102",
            Eof, 4, "1", "input ended, expected 32 bytes of byte string, found 2";
        "half an array", Vec<u8>, "83 01 02", Eof, 3, "2", "input ended, expected a value";
        "half a map",
            BTreeMap<u8, u8>, "a2 01 02 03",
            Eof, 4, "3", "input ended, expected a value";
        "an array without its break", Vec<u8>, "9f 01", Eof, 2, "", "input ended, expected a value";
        "a tag around nothing", (u8, u8), "82 01 c1", Eof, 3, "1", "input ended, expected a value";
        "a length beyond the input",
            ByteBuf, "5b 00000000ffffffff 00",
            Eof, 9, "", "input ended, expected 4294967295 bytes of byte string, found 1";
        "an ignored item cut short",
            (IgnoredAny, u8), "82 82 01",
            Eof, 3, "0", "input ended, expected a value";
        "reserved additional information",
            Vec<u8>, "82 01 1c",
            Syntax, 2, "1", "an item has reserved additional information";
        "an integer of indefinite length",
            u8, "1f", Syntax, 0, "", "an integer or a tag has an indefinite length";
        "a simple value in too many bytes",
            Value, "f8 14", Syntax, 0, "", "a simple value below 32 is encoded in two bytes";
        "a break where an element belongs",
            Vec<u8>, "82 01 ff",
            Syntax, 2, "1", "found a break outside a container of indefinite length";
        "a break where a value belongs",
            BTreeMap<u8, u8>, "bf 01 ff",
            Syntax, 2, "1", "found a break outside a container of indefinite length";
        "a break for a document",
            Value, "ff", Syntax, 0, "", "found a break outside a container of indefinite length";
        "a text that is not UTF-8",
            Vec<String>, "82 6161 62 c328",
            Syntax, 4, "1",
            "text is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0";
        "a code point across chunks",
            String, "7f 61 c3 61 a4 ff",
            Syntax, 1, "",
            "text is not UTF-8: incomplete utf-8 byte sequence from index 0";
        "a chunk of another kind",
            String, "7f 61 61 41 62 ff",
            Syntax, 3, "", "expected a chunk of a text string, found byte string";
        "a chunk in chunks",
            ByteBuf, "5f 5f 41 00 ff ff",
            Syntax, 1, "", "expected a chunk of a byte string, found byte string";
        "trailing bytes",
            u8, "01 6161",
            Syntax, 1, "", "expected the end of the input, found text string after the value";
        "a trailing break",
            Vec<u8>, "81 01 ff",
            Syntax, 2, "", "expected the end of the input, found break after the value";
    });
}

#[test]
fn every_prefix_of_a_document_ends_too_early() {
    let model = Model {
        name: "model".into(),
        layers: vec![
            Layer { weight: vec![0.5, 1e9], kind: Kind::Clip(-1, 1) },
            Layer {
                weight: vec![],
                kind: Kind::Custom { alpha: 1, inner: Some(Box::new(Kind::Leaky(0.1))) },
            },
        ],
        steps: BTreeMap::from([(-1, vec![true]), (1000, vec![])]),
    };
    let bytes = round_trip(&model);
    for len in 0..bytes.len() {
        for error in [
            refuse::<Model>(&bytes[..len]),
            refuse::<Value>(&bytes[..len]),
            refuse::<IgnoredAny>(&bytes[..len]),
            refuse::<Box<tenarc::value::RawValue>>(&bytes[..len]),
        ] {
            assert_eq!(error.category(), Category::Eof, "{len} bytes: {error}");
            assert!(error.offset().unwrap() <= len as u64, "{len} bytes: {error}");
            assert!(error.to_string().starts_with("input ended, expected "), "{error}");
        }
    }
    // And every further byte comes too late.
    for byte in 0..=255 {
        let longer = [&bytes[..], &[byte]].concat();
        let error = refuse::<Model>(&longer);
        assert_eq!(error.category(), Category::Syntax, "{error}");
        assert_eq!(error.offset(), Some(bytes.len() as u64), "{error}");
    }
}

#[test]
fn paths_of_values_name_the_same_as_paths_of_documents() {
    fn both<T: DeserializeOwned + Debug>(bytes: &str) -> (Error, [Error; 2]) {
        let bytes = unhex(bytes);
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        let borrowed = T::deserialize(&value).unwrap_err();
        (refuse::<T>(&bytes), [borrowed, tenarc::from_value::<T>(value).unwrap_err()])
    }
    for (read, found) in [
        both::<Model>("a1 646e616d65 616d"),
        both::<Model>("a2 646e616d65 616d 666c6179657273 81 a1 66776569676874 83 01 f93e00 6178"),
        both::<Model>("a1 657374657073 a1 39 01f3 82 f5 00"),
        both::<Vec<Kind>>("82 664c696e656172 a1 654c65616b79 6178"),
        both::<Kind>("a1 64436c6970 82 01 1903e8"),
        both::<Kind>("a1 64436c6970 83 01 02 03"),
        both::<Kind>("64 436c6970"),
        both::<Kind>("a1 664c696e656172 07"),
        both::<Kind>("a1 66437573746f6d a2 65616c706861 f5 65696e6e6572 f6"),
        both::<BTreeMap<String, Option<u8>>>("a1 6161 f5"),
        both::<(u8, u8)>("83 01 02 03"),
        both::<Vec<i8>>("82 00 1903e8"),
        both::<f32>("fb 48078287f49c4a1d"),
        both::<bool>("f0"),
    ] {
        for error in found {
            assert_eq!(error.path(), read.path(), "{error} / {read}");
            assert_eq!(error.category(), read.category(), "{error} / {read}");
            assert_eq!(error.offset(), None, "a value has no bytes");
        }
    }
}

#[test]
fn long_keys_are_cut_and_control_characters_escaped() {
    let document = |key: &str| tenarc::to_vec(&BTreeMap::from([(key, true)])).unwrap();
    let key = "k".repeat(1000);
    let error = tenarc::from_slice::<BTreeMap<String, u8>>(&document(&key)).unwrap_err();
    assert_eq!(error.path(), format!("{}…", "k".repeat(256)));
    let error = tenarc::from_reader::<_, BTreeMap<String, u8>>(&document(&key)[..]).unwrap_err();
    let shown = error.path();
    let kept = shown.strip_suffix('…').unwrap();
    assert!(key.starts_with(kept) && kept.len() >= 16, "{shown}");

    let error = refuse::<BTreeMap<String, u8>>(&document("a\u{1b}[2J\n"));
    assert_eq!(error.path(), "a\u{1b}[2J\n");
    assert!(!error.to_string().contains(['\u{1b}', '\n']), "{error}");
}

#[test]
fn keys_are_named_by_every_reader_wherever_its_buffer_ends() {
    #[derive(Deserialize, Debug)]
    struct Two {
        #[serde(rename = "before")]
        _before: String,
        #[serde(rename = "the-key")]
        _key: bool,
    }

    // A key that ends at each place around the end of a reader's buffer.
    for before in (65_536 - 40)..(65_536 + 10) {
        let map =
            vec![("before".to_owned(), "x".repeat(before - 14)), ("the-key".into(), "y".into())];
        let value = Value::Map(
            map.into_iter().map(|(key, text)| (Value::Text(key), Value::Text(text))).collect(),
        );
        let bytes = tenarc::to_vec(&value).unwrap();
        let error = refuse::<Two>(&bytes);
        assert_eq!(error.path(), "the-key", "{error}");
    }
}

#[test]
fn keys_longer_than_the_buffer_of_a_reader_do_not_move_the_error() {
    #[derive(Serialize, Deserialize, PartialEq, Eq, Hash, Debug)]
    struct Numbers(#[serde(with = "tenarc::tensor")] Vec<u64>);

    fn check<K: Serialize + DeserializeOwned + Eq + Hash + Debug>(key: impl Fn(usize) -> K) {
        for len in [0, 1, 31, 32, 33, 40_000, 65_500, 65_530, 65_536, 65_537, 100_000, 700_000] {
            let [other, key] = [30_000, len].map(|len| tenarc::to_vec(&key(len)).unwrap());
            let bytes = [&[0xa2][..], &other, &[1], &key, &[0x80]].concat();
            let slice = tenarc::from_slice::<HashMap<K, u8>>(&bytes).unwrap_err();
            for reader in [&mut &bytes[..] as &mut dyn io::Read, &mut OneByte(&bytes)] {
                let error = tenarc::from_reader::<_, HashMap<K, u8>>(reader).unwrap_err();
                assert_eq!(error.category(), slice.category(), "{error} / {slice}");
                assert_eq!(error.offset(), slice.offset(), "{error} / {slice}");
                let shown = error.path();
                let is_start = slice.path().starts_with(shown.trim_end_matches('…'));
                assert!(shown == "?" || is_start, "{error} / {slice}");
            }
            assert_eq!(slice.offset(), Some(bytes.len() as u64 - 1), "{slice}");
        }
    }

    // Each byte of these keys looks like a key itself: the number -1.
    check(|len| " ".repeat(len));
    check(|len| ByteBuf::from(vec![0x20; len]));
    check(|len| (true, ByteBuf::from(vec![0x20; len])));
    check(|len| Numbers(vec![0x2020_2020_2020_2020; len / 8]));
    check(|len| [(); 3].map(|()| " ".repeat(len / 3)));
}

#[test]
fn errors_become_errors_of_io() {
    for (bytes, kind) in [
        (&[0x18][..], io::ErrorKind::UnexpectedEof),
        (&[0xff], io::ErrorKind::InvalidData),
        (&[0x61, 0x61], io::ErrorKind::InvalidData),
    ] {
        let error = tenarc::from_slice::<u8>(bytes).unwrap_err();
        let text = error.to_string();
        let error = io::Error::from(error);
        assert_eq!((error.kind(), error.to_string()), (kind, text));
        let inner = error.into_inner().unwrap().downcast::<Error>().unwrap();
        assert!(std::error::Error::source(&*inner).is_none());
    }
}

#[test]
fn limits_say_what_was_reached() {
    use tenarc::de::{DecodeOptions, Limits};

    fn limited<T: DeserializeOwned + Debug>(bytes: &str, limits: Limits) -> Error {
        let options = DecodeOptions::default().with_limits(limits);
        let bytes = unhex(bytes);
        let error = tenarc::de::from_reader_with::<_, T>(&bytes[..], options).unwrap_err();
        let other = tenarc::de::from_reader_with::<_, T>(OneByte(&bytes), options).unwrap_err();
        assert_eq!(error.to_string(), other.to_string());
        assert_eq!(error.category(), Category::Limit, "{error}");
        error
    }
    let error = limited::<Value>("81 a1 00 c1 80", Limits::default().with_max_depth(3));
    assert_eq!(error.to_string(), "nesting is deeper than 3 levels at `0.0` (byte 5)");
    let error = limited::<Vec<String>>(
        "83 63616161 63616161 63616161",
        Limits::default().with_max_alloc(3 * size_of::<String>() as u64 + 8),
    );
    assert_eq!(
        error.to_string(),
        "the value needs more memory than the limit of 80 bytes at `2` (byte 10); Limits::with_max_alloc sets another limit"
    );
}
