//! Messages without tensors: every kind of value serde knows, each with a description of its own
//! making, so that the encoder does not vouch for itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::Case;
use crate::data::Data;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meters(pub f64);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair(pub u8, pub String);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Marker;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    Point,
    Circle(f32),
    Line(i16, i16),
    Rect { width: u32, height: u32 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Internal {
    Start,
    Move { dx: i32 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "content")]
enum Adjacent {
    Start,
    Text(String),
    Both(u8, u8),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(u64),
    Text(String),
}

#[derive(Serialize)]
struct Flattened {
    id: u8,
    #[serde(flatten)]
    rest: BTreeMap<String, u32>,
}

#[derive(Serialize)]
struct UnknownLength {
    #[serde(serialize_with = "without_length")]
    items: Vec<u32>,
}

fn without_length<S: serde::Serializer>(items: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeSeq;
    let mut seq = serializer.serialize_seq(None)?;
    for item in items {
        seq.serialize_element(item)?;
    }
    seq.end()
}

/// Every kind of value on which the other Rust crates agree, in one struct: units are null for some
/// and an empty array for others, and minicbor-serde writes a character as a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Everything {
    pub flag: bool,
    pub tiny: i8,
    pub low: i16,
    pub negative: i64,
    pub byte: u8,
    pub large: u64,
    pub single: f32,
    pub double: f64,
    pub text: String,
    pub blob: ByteBuf,
    pub none: Option<u8>,
    pub some: Option<u8>,
    pub meters: Meters,
    pub pair: Pair,
    pub tuple: (u8, String, bool),
    pub shapes: Vec<Shape>,
    pub nested: Vec<Vec<u16>>,
    pub names: BTreeMap<String, u32>,
    pub ages: BTreeMap<u32, String>,
    pub empty: Vec<u8>,
}

impl Everything {
    pub fn example() -> Self {
        Self {
            flag: true,
            tiny: -128,
            low: -300,
            negative: i64::MIN,
            byte: 255,
            large: u64::MAX,
            single: 0.1,
            double: -0.0,
            text: "tensor \u{1d11e}".into(),
            blob: ByteBuf::from(vec![0, 1, 254, 255]),
            none: None,
            some: Some(7),
            meters: Meters(1.25),
            pair: Pair(1, "one".into()),
            tuple: (2, "two".into(), false),
            shapes: vec![
                Shape::Point,
                Shape::Circle(0.5),
                Shape::Line(-1, 1),
                Shape::Rect { width: 640, height: 480 },
            ],
            nested: vec![vec![], vec![1], vec![2, 65535]],
            names: [("a".into(), 1), ("b".into(), 70000)].into(),
            ages: [(1, "one".into()), (1000, "thousand".into())].into(),
            empty: vec![],
        }
    }

    fn described() -> Data {
        use Data::{Bool, Bytes, Integer, Null};
        let text = Data::text;
        Data::object([
            ("flag", Bool(true)),
            ("tiny", Integer(-128)),
            ("low", Integer(-300)),
            ("negative", Integer(-9_223_372_036_854_775_808)),
            ("byte", Integer(255)),
            ("large", Integer(18_446_744_073_709_551_615)),
            ("single", Data::F32(0x3dcc_cccd)),
            ("double", Data::F64(0x8000_0000_0000_0000)),
            ("text", text("tensor \u{1d11e}")),
            ("blob", Bytes(vec![0, 1, 254, 255])),
            ("none", Null),
            ("some", Integer(7)),
            ("meters", Data::double(1.25)),
            ("pair", Data::array([Integer(1), text("one")])),
            ("tuple", Data::array([Integer(2), text("two"), Bool(false)])),
            ("shapes", Data::array(shapes().map(|(_, data)| data))),
            (
                "nested",
                Data::array([Data::array([]), Data::integers([1]), Data::integers([2, 65535])]),
            ),
            ("names", Data::object([("a", Integer(1)), ("b", Integer(70000))])),
            ("ages", Data::Map(vec![(Integer(1), text("one")), (Integer(1000), text("thousand"))])),
            ("empty", Data::array([])),
        ])
    }
}

fn shapes() -> [(Shape, Data); 4] {
    let size = Data::object([("width", Data::Integer(640)), ("height", Data::Integer(480))]);
    [
        (Shape::Point, Data::text("Point")),
        (Shape::Circle(0.5), Data::object([("Circle", Data::single(0.5))])),
        (Shape::Line(-1, 1), Data::object([("Line", Data::integers([-1, 1]))])),
        (Shape::Rect { width: 640, height: 480 }, Data::object([("Rect", size)])),
    ]
}

pub fn cases() -> tenarc::Result<Vec<Case>> {
    let mut cases = Vec::new();
    numbers(&mut cases)?;
    strings(&mut cases)?;
    containers(&mut cases)?;
    enums(&mut cases)?;

    let mut add = |name, bytes: Vec<u8>, data| cases.push(Case { name, bytes, data });
    add("everything".into(), tenarc::to_vec(&Everything::example())?, Everything::described());
    // What `Some(None)` needs so that it comes back: the own tag TSOM, which others keep.
    let some = Data::Tag(0x5453_4f4d, Box::new(Data::Null));
    add("some-none".into(), tenarc::to_vec(&Some(None::<u8>))?, some.clone());
    add("some-unit".into(), tenarc::to_vec(&Some(()))?, some);
    Ok(cases)
}

fn numbers(cases: &mut Vec<Case>) -> tenarc::Result<()> {
    macro_rules! integers {
        ($($type:ty),*) => {$(
            for value in [<$type>::MIN, 0, 1, 23, 24, 100, <$type>::MAX] {
                let name = format!("{}-{value}", stringify!($type));
                let data = Data::Integer(value.into());
                cases.push(Case { name, bytes: tenarc::to_vec(&value)?, data });
            }
        )*};
    }
    integers!(u8, u16, u32, u64, i8, i16, i32, i64);
    for value in [1_i128 << 64, -(1 << 64), -1 - (1 << 64), i128::MAX, i128::MIN] {
        let data = Data::Integer(value);
        let name = format!("i128{value:+}");
        cases.push(Case { name, bytes: tenarc::to_vec(&value)?, data });
    }
    let value = (1_u128 << 64) + 1;
    let data = Data::Integer((1 << 64) + 1);
    cases.push(Case { name: "u128".into(), bytes: tenarc::to_vec(&value)?, data });

    let floats = [
        ("zero", 0.0),
        ("minus-zero", -0.0),
        ("tenth", 0.1),
        ("whole", 3.0),
        ("largest", f32::MAX),
        ("smallest", f32::from_bits(1)),
        ("infinity", f32::INFINITY),
        ("nan", f32::NAN),
    ];
    for (name, value) in floats {
        let data = Data::single(value);
        cases.push(Case { name: format!("f32-{name}"), bytes: tenarc::to_vec(&value)?, data });
    }
    let doubles = [
        ("zero", 0.0),
        ("minus-zero", -0.0),
        ("tenth", 0.1),
        ("whole", 1e15),
        ("largest", f64::MAX),
        ("smallest", f64::from_bits(1)),
        ("minus-infinity", f64::NEG_INFINITY),
        ("nan", f64::NAN),
    ];
    for (name, value) in doubles {
        let data = Data::double(value);
        cases.push(Case { name: format!("f64-{name}"), bytes: tenarc::to_vec(&value)?, data });
    }
    Ok(())
}

fn strings(cases: &mut Vec<Case>) -> tenarc::Result<()> {
    for len in [0_usize, 1, 23, 24, 255, 256, 65535, 65536] {
        let text = "ab".repeat(len.div_ceil(2));
        let data = Data::text(&text[..len]);
        let bytes = tenarc::to_vec(&text[..len])?;
        cases.push(Case { name: format!("text-{len}"), bytes, data });

        let blob: Vec<u8> = (0..=255).cycle().take(len).collect();
        let bytes = tenarc::to_vec(serde_bytes::Bytes::new(&blob))?;
        cases.push(Case { name: format!("bytes-{len}"), bytes, data: Data::Bytes(blob) });
    }
    for (name, text) in [("latin", "ü"), ("wide", "水"), ("astral", "𐅑"), ("quotes", "\"\\\n\0")]
    {
        let data = Data::text(text);
        cases.push(Case { name: format!("text-{name}"), bytes: tenarc::to_vec(text)?, data });
    }
    let data = Data::text("é");
    cases.push(Case { name: "char".into(), bytes: tenarc::to_vec(&'é')?, data });
    Ok(())
}

fn containers(cases: &mut Vec<Case>) -> tenarc::Result<()> {
    let mut add = |name: &str, bytes: Vec<u8>, data| {
        cases.push(Case { name: name.into(), bytes, data });
    };
    add("true", tenarc::to_vec(&true)?, Data::Bool(true));
    add("false", tenarc::to_vec(&false)?, Data::Bool(false));
    add("unit", tenarc::to_vec(&())?, Data::Null);
    add("unit-struct", tenarc::to_vec(&Marker)?, Data::Null);
    add("none", tenarc::to_vec(&None::<u8>)?, Data::Null);
    add("some", tenarc::to_vec(&Some(5))?, Data::Integer(5));
    add("newtype", tenarc::to_vec(&Meters(0.5))?, Data::double(0.5));
    let pair = Data::array([Data::Integer(1), Data::text("a")]);
    add("tuple-struct", tenarc::to_vec(&Pair(1, "a".into()))?, pair.clone());
    add("tuple", tenarc::to_vec(&(1, "a"))?, pair);
    for len in [0_u32, 1, 23, 24, 255, 256] {
        let items: Vec<u32> = (0..len).collect();
        add(&format!("seq-{len}"), tenarc::to_vec(&items)?, Data::integers(0..len));
    }
    let floats = [0.5_f32, -1.5, f32::MIN_POSITIVE];
    add("seq-f32", tenarc::to_vec(&floats.to_vec())?, Data::array(floats.map(Data::single)));
    let doubles = [0.1_f64, -1e300];
    add("seq-f64", tenarc::to_vec(&doubles.to_vec())?, Data::array(doubles.map(Data::double)));
    let unknown = UnknownLength { items: vec![1, 2, 300] };
    let data = Data::object([("items", Data::integers([1, 2, 300]))]);
    add("seq-of-unknown-length", tenarc::to_vec(&unknown)?, data);

    let map: BTreeMap<String, u32> = (0..30).map(|n| (format!("key {n}"), n)).collect();
    let entries = map.iter().map(|(key, n)| (Data::text(key), Data::Integer((*n).into())));
    add("map", tenarc::to_vec(&map)?, Data::Map(entries.collect()));
    let by_number: BTreeMap<i32, bool> = [(-1, true), (0, false), (1000, true)].into();
    let entries = by_number.iter().map(|(key, on)| (Data::Integer((*key).into()), Data::Bool(*on)));
    add("map-by-number", tenarc::to_vec(&by_number)?, Data::Map(entries.collect()));
    let rest = [("a".into(), 1), ("b".into(), 2)].into();
    let entries = [("id", 9), ("a", 1), ("b", 2)].map(|(key, n)| (key, Data::Integer(n)));
    add("flatten", tenarc::to_vec(&Flattened { id: 9, rest })?, Data::object(entries));
    add("empty-map", tenarc::to_vec(&BTreeMap::<u8, u8>::new())?, Data::Map(vec![]));

    let deep = (0..40).fold(Data::Integer(1), |inner, _| Data::array([inner]));
    add("deep", tenarc::to_vec(&Nested(40))?, deep);
    Ok(())
}

/// A one in so many arrays.
struct Nested(u32);

impl Serialize for Nested {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            0 => serializer.serialize_u8(1),
            levels => serializer.collect_seq([Self(levels - 1)]),
        }
    }
}

fn enums(cases: &mut Vec<Case>) -> tenarc::Result<()> {
    for (shape, data) in shapes() {
        let debug = format!("{shape:?}");
        let name = debug.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        let bytes = tenarc::to_vec(&shape)?;
        cases.push(Case { name: format!("enum-{}", name.to_lowercase()), bytes, data });
    }
    let mut add = |name: &str, bytes: Vec<u8>, data| {
        cases.push(Case { name: format!("enum-{name}"), bytes, data });
    };
    let kind = |name| ("type", Data::text(name));
    add("internal-unit", tenarc::to_vec(&Internal::Start)?, Data::object([kind("Start")]));
    let data = Data::object([kind("Move"), ("dx", Data::Integer(-5))]);
    add("internal-struct", tenarc::to_vec(&Internal::Move { dx: -5 })?, data);
    add("adjacent-unit", tenarc::to_vec(&Adjacent::Start)?, Data::object([kind("Start")]));
    let data = Data::object([kind("Text"), ("content", Data::text("hi"))]);
    add("adjacent-newtype", tenarc::to_vec(&Adjacent::Text("hi".into()))?, data);
    let data = Data::object([kind("Both"), ("content", Data::integers([1, 2]))]);
    add("adjacent-tuple", tenarc::to_vec(&Adjacent::Both(1, 2))?, data);
    add("untagged-number", tenarc::to_vec(&Untagged::Number(12))?, Data::Integer(12));
    add("untagged-text", tenarc::to_vec(&Untagged::Text("t".into()))?, Data::text("t"));
    Ok(())
}
