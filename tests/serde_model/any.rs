//! What `deserialize_any` and `IgnoredAny` see.

use super::*;

/// What `deserialize_any` calls.
#[derive(Debug, PartialEq)]
enum Seen {
    Bool(bool),
    U64(u64),
    I64(i64),
    I128(i128),
    U128(u128),
    F32(u32),
    F64(u64),
    Text(String),
    Bytes(Vec<u8>),
    Unit,
    Some(Box<Seen>),
    Seq(Vec<Seen>),
    Map(Vec<(Seen, Seen)>),
}

struct SeenVisitor;

impl<'de> serde::de::Visitor<'de> for SeenVisitor {
    type Value = Seen;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Seen, E> {
        Ok(Seen::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Seen, E> {
        Ok(Seen::U64(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Seen, E> {
        Ok(Seen::I64(value))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Seen, E> {
        Ok(Seen::I128(value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Seen, E> {
        Ok(Seen::U128(value))
    }

    fn visit_f32<E>(self, value: f32) -> Result<Seen, E> {
        Ok(Seen::F32(value.to_bits()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Seen, E> {
        Ok(Seen::F64(value.to_bits()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Seen, E> {
        Ok(Seen::Text(value.into()))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Seen, E> {
        Ok(Seen::Bytes(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Seen, E> {
        Ok(Seen::Unit)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Seen, D::Error> {
        Seen::deserialize(deserializer).map(|inner| Seen::Some(Box::new(inner)))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Seen, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Seen::Seq(items))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Seen, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Seen::Map(entries))
    }
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SeenVisitor)
    }
}

#[test]
fn every_item_shows_itself_as_what_it_is() {
    let text = |text: &str| Seen::Text(text.into());
    for (bytes, expected) in [
        ("f4", Seen::Bool(false)),
        ("f5", Seen::Bool(true)),
        ("17", Seen::U64(23)),
        ("1b ffffffffffffffff", Seen::U64(u64::MAX)),
        ("20", Seen::I64(-1)),
        ("3b 7fffffffffffffff", Seen::I64(i64::MIN)),
        ("3b 8000000000000000", Seen::I128(i128::from(i64::MIN) - 1)),
        ("c2 41 05", Seen::U64(5)),
        ("c3 41 05", Seen::I64(-6)),
        ("c2 49 010000000000000000", Seen::I128(1 << 64)),
        ("c3 50 7fffffffffffffffffffffffffffffff", Seen::I128(i128::MIN)),
        ("c2 50 ffffffffffffffffffffffffffffffff", Seen::U128(u128::MAX)),
        ("f9 7c01", Seen::F32(0x7f80_2000)),
        ("fa 7f800001", Seen::F32(0x7f80_0001)),
        ("fb 7ff0000000000001", Seen::F64(0x7ff0_0000_0000_0001)),
        ("61 61", text("a")),
        ("7f 61 61 60 61 62 ff", text("ab")),
        ("42 0001", Seen::Bytes(vec![0, 1])),
        ("5f 41 00 41 01 ff", Seen::Bytes(vec![0, 1])),
        ("f6", Seen::Unit),
        ("f7", Seen::Unit),
        ("da54534f4d f6", Seen::Some(Box::new(Seen::Unit))),
        ("da54534f4d da54534f4d f6", Seen::Some(Box::new(Seen::Some(Box::new(Seen::Unit))))),
        ("9f 01 81 02 ff", Seen::Seq(vec![Seen::U64(1), Seen::Seq(vec![Seen::U64(2)])])),
        (
            "bf 01 f6 6161 a0 ff",
            Seen::Map(vec![(Seen::U64(1), Seen::Unit), (text("a"), Seen::Map(vec![]))]),
        ),
        ("c0 61 61", text("a")),
        ("d818 42 0001", Seen::Bytes(vec![0, 1])),
    ] {
        let bytes = unhex(bytes);
        assert_eq!(decode::<Seen>(&bytes), expected, "{}", hex(&bytes));
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(Seen::deserialize(&value).unwrap(), expected, "{}", hex(&bytes));
        assert_eq!(tenarc::from_value::<Seen>(value).unwrap(), expected, "{}", hex(&bytes));
    }
    assert_eq!(refuse::<Seen>(&unhex("ff")).category(), Category::Syntax);
    assert_eq!(refuse::<Seen>(&unhex("f0")).category(), Category::Mismatch);
    refuse::<Seen>(&unhex("c2 51 01ffffffffffffffffffffffffffffffff"));
}

#[test]
fn ignored_items_are_passed_over_whole() {
    let items = [
        "00",
        "3b ffffffffffffffff",
        "f4",
        "f6",
        "f7",
        "f0",
        "f8 ff",
        "f9 0000",
        "fb 0000000000000000",
        "40",
        "5f ff",
        "5f 41 00 ff",
        "60",
        "7f 61 61 ff",
        "80",
        "9f ff",
        "82 01 81 02",
        "a0",
        "bf ff",
        "a1 80 a0",
        "bf 01 02 ff",
        "c0 c1 00",
        "c2 51 01ffffffffffffffffffffffffffffffff",
        "d828 82 81 02 d855 48 0000000000000000",
        "d855 43 000000",
        "da54534f4d f6",
        "d819 00",
    ];
    for item in items {
        let mut bytes = unhex("82");
        bytes.extend(unhex(item));
        bytes.push(0x18);
        bytes.push(0x2a);
        let (_, behind): (IgnoredAny, u8) = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(behind, 42, "{item}");
        for (source, result) in everywhere::<(IgnoredAny, u8)>(&bytes) {
            assert_eq!(result.unwrap().1, 42, "{item} from {source}");
        }
        let (_, behind): (Box<RawValue>, u8) = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(behind, 42, "{item}");
    }
    let big = encode(&(Bytes::new(&vec![7; 200_000]), "x".repeat(200_000), 5u8));
    for (source, result) in everywhere::<(IgnoredAny, IgnoredAny, u8)>(&big) {
        assert_eq!(result.unwrap().2, 5, "{source}");
    }
}

#[test]
fn it_is_a_format_for_machines() {
    let (mut serializer, mut deserializer) =
        (tenarc::Serializer::new(Vec::new()), tenarc::Deserializer::from_slice(&[]));
    assert!(!Serializer::is_human_readable(&&mut serializer));
    assert!(!Deserializer::is_human_readable(&&mut deserializer));
    assert!(!Value::Null.is_human_readable());
    let address = std::net::Ipv4Addr::new(10, 0, 0, 1);
    round_trip_as(&address, "84 0a 00 00 01");
    round_trip(&std::time::Duration::new(5, 6));
    round_trip(&std::path::PathBuf::from("a/b"));
    round_trip(&Ok::<u8, String>(1));
    round_trip(&std::ops::Bound::Included(3));
    round_trip(&(1..5));
    round_trip(&std::num::NonZeroU16::MAX);
    round_trip(&std::num::Wrapping(-5i8));
    round_trip(&std::cmp::Reverse(2));
    round_trip(&std::ffi::CString::new("bytes").unwrap());
}
