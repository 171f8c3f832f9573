//! serde's attributes and its ways to write enums.

use super::*;

#[derive(Serialize, Deserialize, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
struct Attributes {
    #[serde(rename = "kind")]
    r#type: u8,
    #[serde(alias = "former_name", alias = "first_name")]
    later_name: String,
    #[serde(default)]
    missing_is_zero: u32,
    #[serde(default = "seven")]
    missing_is_seven: u32,
    #[serde(skip)]
    never_written: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    written_if_some: Option<u8>,
    optional: Option<u8>,
}

fn seven() -> u32 {
    7
}

#[test]
fn rename_alias_default_and_skip() {
    let full = Attributes {
        r#type: 1,
        later_name: "n".into(),
        missing_is_zero: 2,
        missing_is_seven: 3,
        never_written: None,
        written_if_some: Some(4),
        optional: None,
    };
    let bytes = round_trip(&full);
    assert_eq!(bytes[0], 0xa6);
    let bytes = encode(&Attributes { never_written: Some(9), ..full });
    assert_eq!(decode::<Attributes>(&bytes).never_written, None);
    let bytes = round_trip(&Attributes { written_if_some: None, ..Attributes::default() });
    assert_eq!(bytes[0], 0xa5);

    let older = BTreeMap::from([("kind", Value::Integer(1)), ("former_name", "x".into_value())]);
    let read: Attributes = decode(&encode(&older));
    let expected = Attributes {
        r#type: 1,
        later_name: "x".into(),
        missing_is_seven: 7,
        ..Attributes::default()
    };
    assert_eq!(read, expected);
    assert_eq!(tenarc::from_value::<Attributes>(tenarc::to_value(&older).unwrap()).unwrap(), read);
}

trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for &str {
    fn into_value(self) -> Value {
        Value::Text(self.to_owned())
    }
}

#[test]
fn unknown_missing_and_doubled_fields() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Lenient {
        a: u8,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        a: u8,
    }

    // Whatever stands behind the unknown key is passed over whole.
    let mut bytes = unhex("a2 6162");
    bytes.extend(encode(&(vec![("deep", Some(Some(())))], Bytes::new(&[1, 2]), u128::MAX)));
    bytes.extend(unhex("6161 05"));
    assert_eq!(decode::<Lenient>(&bytes), Lenient { a: 5 });
    let error = refuse::<Strict>(&bytes);
    assert!(error.to_string().contains("unknown field `b`, expected `a`"), "{error}");
    assert_eq!(decode::<Strict>(&unhex("a1 6161 05")), Strict { a: 5 });
    // A field name may be bytes.
    assert_eq!(decode::<Strict>(&unhex("a1 4161 05")), Strict { a: 5 });
    let error = refuse::<Lenient>(&unhex("a0"));
    assert!(error.to_string().contains("missing field `a`"), "{error}");
    let error = refuse::<Lenient>(&unhex("a2 6161 01 6161 02"));
    assert!(error.to_string().contains("duplicate field `a`"), "{error}");
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
struct Point {
    x: i32,
    y: f32,
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
#[serde(tag = "kind")]
enum Internal {
    Unit,
    Newtype(Point),
    Struct { a: Option<u8>, nested: Vec<Point>, level: Option<Option<()>> },
    Map(BTreeMap<String, u8>),
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    Unit,
    Newtype(Point),
    Wide(u128),
    Tuple(u8, String),
    Struct { a: Option<Option<u8>>, b: ByteBuf },
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
#[serde(untagged)]
enum Untagged {
    Bool(bool),
    Small(u8),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Character(char),
    Text(String),
    Bytes(ByteBuf),
    Pair(u8, Box<Untagged>),
    Point(Point),
    Map(BTreeMap<u8, Untagged>),
    List(Vec<Untagged>),
    Nothing,
}

fn point() -> Point {
    Point { x: -3, y: 0.1 }
}

#[test]
fn internally_tagged_enums() {
    for value in [
        Internal::Unit,
        Internal::Newtype(point()),
        Internal::Struct { a: None, nested: vec![point(), point()], level: None },
        Internal::Struct { a: Some(1), nested: vec![], level: Some(None) },
        Internal::Struct { a: Some(1), nested: vec![], level: Some(Some(())) },
        Internal::Map(BTreeMap::from([("a".into(), 1), ("b".into(), 2)])),
    ] {
        round_trip(&value);
        round_trip(&vec![(1, Some(value))]);
    }
    // The tag need not come first.
    let bytes = unhex("a3 6161 05 666e6573746564 80 646b696e64 66537472756374");
    let expected = Internal::Struct { a: Some(5), nested: vec![], level: None };
    assert_eq!(decode::<Internal>(&bytes), expected);
    refuse::<Internal>(&unhex("a1 6161 05"));
}

#[test]
fn adjacently_tagged_enums() {
    for value in [
        Adjacent::Unit,
        Adjacent::Newtype(point()),
        Adjacent::Wide(u128::MAX),
        Adjacent::Tuple(1, "a".into()),
        Adjacent::Struct { a: None, b: ByteBuf::from([1]) },
        Adjacent::Struct { a: Some(None), b: ByteBuf::new() },
        Adjacent::Struct { a: Some(Some(3)), b: ByteBuf::from([2; 300]) },
    ] {
        round_trip(&value);
        round_trip(&vec![(1, Some(value))]);
    }
    // Content before the tag is buffered.
    let bytes = unhex("a2 6163 82 01 6161 6174 655475706c65");
    assert_eq!(decode::<Adjacent>(&bytes), Adjacent::Tuple(1, "a".into()));
}

#[test]
fn untagged_enums() {
    for value in [
        Untagged::Bool(true),
        Untagged::Small(0),
        Untagged::Signed(-1),
        Untagged::Signed(256),
        Untagged::Signed(i64::MIN),
        Untagged::Unsigned(u64::MAX),
        Untagged::Float(0.5),
        Untagged::Float(f64::MAX),
        Untagged::Character('ß'),
        Untagged::Text("text".into()),
        // serde takes bytes that are UTF-8 for text there.
        Untagged::Bytes(ByteBuf::from([1, 0xff])),
        Untagged::Pair(1, Box::new(Untagged::Point(point()))),
        Untagged::Map(BTreeMap::from([(1, Untagged::Nothing), (2, Untagged::Bool(false))])),
        Untagged::List(vec![
            Untagged::List(vec![Untagged::Nothing]),
            Untagged::Text(String::new()),
        ]),
        Untagged::Nothing,
    ] {
        round_trip(&value);
        round_trip(&vec![value]);
    }
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Flat {
    id: u64,
    #[serde(flatten)]
    point: Point,
    #[serde(flatten)]
    inner: Option<Extra>,
    #[serde(flatten)]
    rest: BTreeMap<String, Untagged>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Extra {
    note: String,
    level: Option<Option<()>>,
    bytes: ByteBuf,
}

#[test]
fn flattened_structs_enums_and_maps() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Tagged {
        id: u8,
        #[serde(flatten)]
        internal: Internal,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Named {
        id: u8,
        #[serde(flatten)]
        form: External,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    enum External {
        Point(Point),
        List(Vec<Option<Option<u8>>>),
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Catch {
        #[serde(flatten)]
        all: HashMap<String, Value>,
    }

    let extra = Extra { note: "n".into(), level: Some(None), bytes: ByteBuf::from([1, 2, 3]) };
    let flat = Flat {
        id: u64::MAX,
        point: point(),
        inner: Some(extra),
        rest: BTreeMap::from([
            ("more".into(), Untagged::List(vec![Untagged::Float(0.25)])),
            ("none".into(), Untagged::Nothing),
        ]),
    };
    open_round_trip(&flat);
    for level in [None, Some(None), Some(Some(()))] {
        let extra = Extra { note: String::new(), level, bytes: ByteBuf::new() };
        open_round_trip(&Flat { id: 0, point: point(), inner: Some(extra), rest: BTreeMap::new() });
    }
    for internal in [Internal::Unit, Internal::Newtype(point())] {
        open_round_trip(&Tagged { id: 1, internal });
    }
    let list = vec![None, Some(None), Some(Some(1))];
    for form in [External::Point(point()), External::List(list)] {
        open_round_trip(&Named { id: 1, form });
    }
    let all = Catch {
        all: HashMap::from([
            ("null".into(), Value::Null),
            ("array".into(), Value::Array(vec![Value::F32(0.5), Value::F64(0.5)])),
            ("bytes".into(), Value::Bytes(vec![0xff])),
            ("map".into(), Value::Map(vec![(Value::Bool(true), Value::Integer(-5))])),
        ]),
    };
    assert_eq!(decode::<Catch>(&encode(&all)), all);
}

#[test]
fn borrows_through_serde_s_own_buffer() {
    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(untagged)]
    enum Borrowed<'a> {
        Text(&'a str),
        Bytes(&'a [u8]),
    }
    let bytes = encode(&("text", Bytes::new(b"\xff")));
    let back: (Borrowed, Borrowed) = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(back, (Borrowed::Text("text"), Borrowed::Bytes(b"\xff")));
}

#[test]
fn with_from_into_and_remote() {
    #[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
    #[serde(from = "String", into = "String")]
    struct Upper(String);
    impl From<String> for Upper {
        fn from(text: String) -> Self {
            Self(text.to_lowercase())
        }
    }
    impl From<Upper> for String {
        fn from(upper: Upper) -> Self {
            upper.0.to_uppercase()
        }
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    #[serde(try_from = "u8")]
    struct Even(u8);
    impl TryFrom<u8> for Even {
        type Error = String;
        fn try_from(value: u8) -> Result<Self, String> {
            if value.is_multiple_of(2) { Ok(Self(value)) } else { Err(format!("{value} is odd")) }
        }
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    #[serde(transparent)]
    struct Transparent {
        inner: Vec<u8>,
    }

    round_trip_as(&Upper("abc".into()), "63414243");
    round_trip(&Even(4));
    let error = refuse::<Vec<Even>>(&unhex("82 02 03"));
    assert_eq!((error.path(), error.category()), ("1".into(), Category::Data));
    assert!(error.to_string().starts_with("3 is odd"), "{error}");
    round_trip_as(&Transparent { inner: vec![1] }, "81 01");
}
