//! Structs, tuples, enums, maps, sequences; lengths, tags and depth.

use super::*;

#[derive(Serialize, Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct Unit;
#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Newtype(u16);
#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Tuple(u8, String, f64);
#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Empty {}
#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct EmptyTuple();
#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Fields {
    number: i32,
    inner: Newtype,
    unit: Unit,
    list: Vec<Tuple>,
}

#[test]
fn structs_of_every_form() {
    round_trip_as(&Unit, "f6");
    round_trip_as(&Newtype(500), "19 01f4");
    round_trip_as(&Tuple(1, "a".into(), 0.5), "83 01 6161 fb 3fe0000000000000");
    round_trip_as(&Empty {}, "a0");
    round_trip_as(&EmptyTuple(), "80");
    let fields = Fields { number: -1, inner: Newtype(2), unit: Unit, list: vec![] };
    round_trip_as(&fields, "a4 666e756d626572 20 65696e6e6572 02 64756e6974 f6 646c697374 80");
    round_trip(&Fields { list: vec![Tuple(0, String::new(), -0.0)], ..fields });
    round_trip_as(&((), (1,), (1, "a".to_owned()), [(); 2]), "84 f6 81 01 82 01 6161 82 f6 f6");
}

#[test]
fn structs_come_from_arrays_too() {
    assert_eq!(
        decode::<Fields>(&unhex("84 20 02 f6 80")),
        Fields { number: -1, inner: Newtype(2), unit: Unit, list: vec![] }
    );
    assert_eq!(refuse::<Fields>(&unhex("83 20 02 f6")).category(), Category::Mismatch);
    assert_eq!(refuse::<Fields>(&unhex("85 20 02 f6 80 00")).category(), Category::Mismatch);
    assert_eq!(refuse::<Fields>(&unhex("9f 20 02 f6 80 00 ff")).category(), Category::Mismatch);
}

#[test]
fn tuples_have_their_exact_length() {
    for (bytes, what) in [
        ("82 01 02", "fewer"),
        ("84 01 02 03 04", "more"),
        ("9f 01 02 ff", "fewer"),
        ("9f 01 02 03 04 ff", "more"),
    ] {
        let bytes = unhex(bytes);
        assert_eq!(refuse::<(u8, u8, u8)>(&bytes).category(), Category::Mismatch, "{what}");
        assert_eq!(refuse::<[u8; 3]>(&bytes).category(), Category::Mismatch, "{what}");
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        assert!(<(u8, u8, u8)>::deserialize(&value).is_err(), "{what}");
        assert!(tenarc::from_value::<[u8; 3]>(value).is_err(), "{what}");
    }
    assert_eq!(decode::<(u8, u8, u8)>(&unhex("9f 01 02 03 ff")), (1, 2, 3));
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
enum Forms {
    Unit,
    Newtype(u8),
    NewtypeUnit(()),
    NewtypeOption(Option<Option<u8>>),
    Tuple(u8, String),
    EmptyTuple(),
    Struct {
        a: u8,
        b: Option<Box<Forms>>,
    },
    EmptyStruct {},
    #[serde(rename = "other name", alias = "older name")]
    Renamed,
}

fn forms() -> Vec<Forms> {
    vec![
        Forms::Unit,
        Forms::Newtype(7),
        Forms::NewtypeUnit(()),
        Forms::NewtypeOption(None),
        Forms::NewtypeOption(Some(None)),
        Forms::NewtypeOption(Some(Some(1))),
        Forms::Tuple(1, "x".into()),
        Forms::EmptyTuple(),
        Forms::Struct { a: 1, b: None },
        Forms::Struct { a: 2, b: Some(Box::new(Forms::Tuple(0, String::new()))) },
        Forms::EmptyStruct {},
        Forms::Renamed,
    ]
}

#[test]
fn enums_of_every_form() {
    let encodings = [
        "64556e6974",
        "a1 674e657774797065 07",
        "a1 6b4e657774797065556e6974 f6",
        "a1 6d4e6577747970654f7074696f6e f6",
        "a1 6d4e6577747970654f7074696f6e da54534f4d f6",
        "a1 6d4e6577747970654f7074696f6e 01",
        "a1 655475706c65 82 01 6178",
        "a1 6a456d7074795475706c65 80",
        "a1 66537472756374 a2 6161 01 6162 f6",
        "a1 66537472756374 a2 6161 02 6162 a1 655475706c65 82 00 60",
        "a1 6b456d707479537472756374 a0",
        "6a6f74686572206e616d65",
    ];
    for (form, expected) in forms().iter().zip(encodings) {
        round_trip_as(form, expected);
        round_trip(&Some(form.clone()));
    }
    round_trip(&forms());
    let keyed: BTreeMap<Forms, Forms> = forms().into_iter().zip(forms()).collect();
    round_trip(&keyed);
}

#[test]
fn enums_are_read_in_every_well_formed_spelling() {
    for bytes in [
        "a1 64556e6974 f6",
        "bf 64556e6974 f6 ff",
        "a1 64556e6974 80",
        "7f 62556e 626974 ff",
        "d9d9f7 64556e6974",
        "44556e6974".replace("44", "64").as_str(),
    ] {
        assert_eq!(decode::<Forms>(&unhex(bytes)), Forms::Unit, "{bytes}");
        let value: Value = tenarc::from_slice(&unhex(bytes)).unwrap();
        assert_eq!(Forms::deserialize(&value).unwrap(), Forms::Unit, "{bytes}");
    }
    let indefinite = unhex("bf 66537472756374 bf 6162 f6 6161 18 01 ff ff");
    assert_eq!(decode::<Forms>(&indefinite), Forms::Struct { a: 1, b: None });
    let array = unhex("a1 66537472756374 82 01 f6");
    assert_eq!(decode::<Forms>(&array), Forms::Struct { a: 1, b: None });
    assert_eq!(decode::<Forms>(&encode("older name")), Forms::Renamed);
}

#[test]
fn what_is_no_such_enum_is_refused() {
    for (bytes, what) in [
        ("a0", "an empty map"),
        ("a2 64556e6974 f6 64556e6974 f6", "a map of two entries"),
        ("bf 64556e6974 f6 64556e6974 f6 ff", "a map of two entries"),
        ("63 466f6f", "an unknown variant"),
        ("67 4e657774797065", "a newtype variant without content"),
        ("65 5475706c65", "a tuple variant without content"),
        ("66 537472756374", "a struct variant without content"),
        ("a1 64556e6974 01", "a unit variant with content"),
        ("a1 655475706c65 81 01", "a tuple variant too short"),
        ("a1 655475706c65 83 01 60 00", "a tuple variant too long"),
        ("a1 00 f6", "a number for a name"),
        ("01", "a number"),
        ("81 64556e6974", "an array"),
    ] {
        let bytes = unhex(bytes);
        assert_eq!(refuse::<Forms>(&bytes).category(), Category::Mismatch, "{what}");
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        assert!(Forms::deserialize(&value).is_err(), "{what}");
        assert!(tenarc::from_value::<Forms>(value).is_err(), "{what}");
    }
}

/// A float as a map key, ordered by its bits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bits(u64);

impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from_bits(self.0))
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(|value| Self(value.to_bits()))
    }
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    name: String,
    at: (i8, u64),
}

#[track_caller]
fn keyed<K: Serialize + DeserializeOwned + Ord + Debug>(keys: impl IntoIterator<Item = K>) {
    let map: BTreeMap<K, usize> = keys.into_iter().zip(0..).collect();
    assert!(map.len() > 1);
    round_trip(&map);
    let nested: BTreeMap<u8, BTreeMap<K, usize>> = BTreeMap::from([(0, BTreeMap::new()), (1, map)]);
    round_trip(&nested);
}

#[test]
fn maps_with_keys_of_any_type() {
    keyed([0u8, 23, 24, 255]);
    keyed([i64::MIN, -1, 0, i64::MAX]);
    keyed([u128::MAX, 0]);
    keyed([i128::MIN, -1, i128::MAX]);
    keyed([false, true]);
    keyed(['a', 'ß']);
    keyed([String::new(), "key".into(), "k".repeat(300)]);
    keyed([ByteBuf::from([0]), ByteBuf::from([1, 2])]);
    keyed([(1, -1, "a".to_owned()), (1, 0, String::new())]);
    keyed([None, Some(1u8)]);
    keyed([None, Some(None), Some(Some(()))]);
    keyed([Key { name: "n".into(), at: (-1, 1) }, Key { name: "o".into(), at: (0, 0) }]);
    keyed([vec![], vec![1, 2], vec![1, 3]]);
    keyed([BTreeMap::from([(1, 2)]), BTreeMap::new()]);
    keyed(forms());
    let nan = 0x7ff0_0000_0000_0001;
    keyed([0.0f64, -0.0, 1.5, f64::INFINITY, f64::from_bits(nan)].map(|f| Bits(f.to_bits())));
    round_trip_as(&BTreeMap::from([((), Unit)]), "a1 f6 f6");
    let hashed: HashMap<(u8, bool), Vec<i8>> =
        (0..50).map(|i| ((i, i % 2 == 0), vec![-1; usize::from(i)])).collect();
    assert_eq!(decode::<HashMap<(u8, bool), Vec<i8>>>(&encode(&hashed)), hashed);
}

#[test]
fn sequences_around_every_width_of_their_length() {
    for len in [0, 1, 23, 24, 255, 256, 65_535, 65_536] {
        let list: VecDeque<u8> = (0..len).map(|i: usize| i.to_le_bytes()[0]).collect();
        let bytes = encode(&list);
        assert_eq!(decode::<VecDeque<u8>>(&bytes), list);
        assert_eq!(
            decode::<BTreeMap<u32, ()>>(&encode(
                &list.iter().zip(0..).map(|(_, i)| (i, ())).collect::<BTreeMap<u32, ()>>()
            ))
            .len(),
            len
        );
    }
    round_trip(&vec![vec![vec![(); 3]; 2], vec![]]);
    round_trip(&[[[1u8; 2]; 3]; 4]);
    round_trip(&(0..40).collect::<BTreeSet<i32>>());
}

/// Writes a sequence and a map without saying how long they are.
#[derive(Debug, PartialEq)]
struct Unknown {
    list: Vec<u32>,
    map: BTreeMap<String, Vec<u32>>,
}

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{SerializeMap, SerializeSeq, SerializeTuple};

        struct Open<'a>(&'a [u32]);
        impl Serialize for Open<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut seq = serializer.serialize_seq(None)?;
                self.0.iter().try_for_each(|element| seq.serialize_element(element))?;
                seq.end()
            }
        }
        struct OpenMap<'a>(&'a BTreeMap<String, Vec<u32>>);
        impl Serialize for OpenMap<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                for (key, value) in self.0 {
                    map.serialize_key(key)?;
                    map.serialize_value(&Open(value))?;
                }
                map.end()
            }
        }
        let mut pair = serializer.serialize_tuple(2)?;
        pair.serialize_element(&Open(&self.list))?;
        pair.serialize_element(&OpenMap(&self.map))?;
        pair.end()
    }
}

impl<'de> Deserialize<'de> for Unknown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (list, map) = Deserialize::deserialize(deserializer)?;
        Ok(Self { list, map })
    }
}

#[test]
fn sequences_and_maps_of_unknown_length() {
    let small = Unknown { list: vec![1], map: BTreeMap::from([("a".into(), vec![])]) };
    assert_eq!(hex(&open_round_trip(&small)), "829f01ffbf61619fffff");
    let empty = Unknown { list: vec![], map: BTreeMap::new() };
    assert_eq!(hex(&open_round_trip(&empty)), "829fffbfff");
    let map = (0..300).map(|i| (i.to_string(), (0..i % 50).collect())).collect();
    open_round_trip(&Unknown { list: (0..70_000).collect(), map });

    // An iterator that knows no length.
    let odd = (0..10).filter(|i| i % 2 == 1);
    let mut bytes = Vec::new();
    (&mut tenarc::Serializer::new(&mut bytes)).collect_seq(odd).unwrap();
    assert_eq!(hex(&bytes), "9f0103050709ff");
}

#[test]
fn definite_and_indefinite_lengths_mix() {
    type Nest = Vec<BTreeMap<u8, Vec<(u8, u8)>>>;
    let expected: Nest = vec![BTreeMap::from([(1, vec![(2, 3)]), (4, vec![])])];
    for bytes in [
        "81 a2 01 81 82 02 03 04 80",
        "9f bf 01 9f 9f 02 03 ff ff 04 9f ff ff ff",
        "9f a2 01 9f 82 02 03 ff 04 80 ff",
        "98 01 b9 0002 01 9a 00000001 9b 0000000000000002 02 03 04 80",
    ] {
        assert_eq!(decode::<Nest>(&unhex(bytes)), expected, "{bytes}");
    }
}

#[test]
fn tags_without_a_meaning_here_are_passed_over() {
    assert_eq!(decode::<u8>(&unhex("c1 05")), 5);
    assert_eq!(decode::<String>(&unhex("d818 c0 d9d9f7 6161")), "a");
    assert_eq!(decode::<Vec<u8>>(&unhex("c6 82 c7 01 02")), [1, 2]);
    assert_eq!(decode::<BTreeMap<u8, u8>>(&unhex("c6 a1 c7 01 c8 02")), BTreeMap::from([(1, 2)]));
    assert_eq!(decode::<Option<u8>>(&unhex("c6 05")), Some(5));
    assert_eq!(decode::<Unit>(&unhex("c6 f6")), Unit);
    assert_eq!(decode::<Empty>(&unhex("c6 a0")), Empty {});
    assert_eq!(decode::<Forms>(&unhex("c6 a1 c6 674e657774797065 c6 07")), Forms::Newtype(7));
    assert_eq!(decode::<ByteBuf>(&unhex("c6 41 00")), ByteBuf::from([0]));
}

#[test]
fn recursive_types() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    enum Tree {
        Leaf(i64),
        Node { left: Box<Tree>, right: Box<Tree> },
        Many(Vec<Tree>),
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct List {
        value: u32,
        next: Option<Box<List>>,
    }

    fn tree(depth: i64) -> Tree {
        match depth {
            0 => Tree::Leaf(-depth),
            1 => Tree::Many((0..3).map(Tree::Leaf).collect()),
            _ => {
                let (left, right) = (tree(depth - 1), tree(depth - 2));
                Tree::Node { left: left.into(), right: right.into() }
            }
        }
    }
    round_trip(&tree(12));
    let mut list = List { value: 0, next: None };
    for value in 1..100 {
        list = List { value, next: Some(Box::new(list)) };
    }
    round_trip(&list);
}

#[test]
fn a_value_nested_too_deeply_is_refused_on_both_ways() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Deep(Vec<Deep>);

    let deep = |levels| (1..levels).fold(Deep(vec![]), |deep, _| Deep(vec![deep]));
    round_trip(&deep(128));
    assert_eq!(tenarc::to_vec(&deep(129)).unwrap_err().category(), Category::Limit);
    assert_eq!(tenarc::to_value(&deep(129)).unwrap_err().category(), Category::Limit);
    let mut bytes = vec![0x81; 128];
    bytes.push(0x80);
    assert_eq!(refuse::<Deep>(&bytes).category(), Category::Limit);
    assert_eq!(refuse::<Value>(&bytes).category(), Category::Limit);
    assert_eq!(refuse::<IgnoredAny>(&bytes).category(), Category::Limit);
}
