//! Sequences of numbers are written as typed arrays if that option is on.

// Numbers in these tests are made from small indices.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_precision_loss)]

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use ndarray::{Array1, Array2, ArrayD, IxDyn, ShapeBuilder, array, s};
use serde::de::DeserializeOwned;
use serde::ser::{SerializeSeq, SerializeTuple};
use serde::{Deserialize, Serialize, Serializer};
use tenarc::Value;
use tenarc::ser::EncodeOptions;
use tenarc_test_support::{Ragged, decode, encode, everywhere, hex, unhex};

fn packing() -> EncodeOptions {
    EncodeOptions::default().with_typed_arrays(true)
}

/// Encodes with typed arrays by every entry point, which must give the same.
#[track_caller]
fn pack<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let bytes = tenarc::ser::to_vec_with(value, packing()).unwrap();
    let mut written = Vec::new();
    tenarc::ser::to_writer_with(&mut written, value, packing()).unwrap();
    assert!(written == bytes, "to_writer gives another message than to_vec");
    let mut appended = b"before".to_vec();
    tenarc::ser::append_to_with(&mut appended, value, packing()).unwrap();
    assert!(appended == [b"before", &bytes[..]].concat(), "append_to gives another message");
    let mut serializer = tenarc::Serializer::with_options(Vec::new(), packing());
    value.serialize(&mut serializer).unwrap();
    assert!(*serializer.get_ref() == bytes, "Serializer gives another message");
    bytes
}

/// Asserts that a value comes back from both forms, and gives the packed one.
#[track_caller]
fn round_trips<T>(value: &T) -> Vec<u8>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    encode(value);
    let bytes = pack(value);
    for bytes in [&bytes, &tenarc::to_vec(value).unwrap()] {
        assert_eq!(&decode::<T>(bytes), value);
        let held: Value = tenarc::from_slice(bytes).unwrap();
        assert_eq!(&T::deserialize(&held).unwrap(), value);
        assert!(tenarc::to_vec(&held).unwrap() == *bytes, "a value is written as it was read");
    }
    bytes
}

/// Whether a message is a bare typed array.
fn is_packed(bytes: &[u8]) -> bool {
    matches!(bytes, [0xd8, 64..=87, ..])
}

/// Asserts that sequences are packed from a number of elements on, and not below it.
#[track_caller]
#[allow(clippy::needless_pass_by_value)] // Easier to read where it is called.
fn threshold<T>(least: usize, tag: u8, element: T)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug + Clone,
{
    let below = round_trips(&vec![element.clone(); least - 1]);
    assert_eq!(below, tenarc::to_vec(&vec![element.clone(); least - 1]).unwrap());
    for len in [least, least + 1] {
        let bytes = round_trips(&vec![element.clone(); len]);
        assert_eq!(bytes[..2], [0xd8, tag], "{len} elements");
    }
}

#[test]
fn floats_are_packed_from_32_bytes_on() {
    threshold(8, 85, 0.1f32);
    threshold(4, 86, 0.1f64);
}

#[test]
fn integers_are_packed_from_1024_bytes_on() {
    // Bytes at every length, so that they can be borrowed.
    assert_eq!(round_trips(&vec![7u8; 2]), [0xd8, 64, 0x42, 7, 7]);
    threshold(512, 69, 700u16);
    threshold(256, 70, 70_000u32);
    threshold(128, 71, u64::MAX);
    threshold(1024, 72, -7i8);
    threshold(512, 77, -700i16);
    threshold(256, 78, -70_000i32);
    threshold(128, 79, i64::MIN);
}

#[test]
fn packed_sequences_are_a_tag_and_a_byte_string() {
    let bytes = round_trips(&vec![1.0f64, -2.0, 0.5, 0.25]);
    let expected = "d856 5820 000000000000f03f 00000000000000c0 000000000000e03f 000000000000d03f";
    assert_eq!(hex(&bytes), hex(&unhex(expected)));
    let shorts: Vec<i16> = (-256..256).collect();
    let bytes = round_trips(&shorts);
    let payload: Vec<u8> = shorts.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(hex(&bytes), format!("d84d590400{}", hex(&payload)));
}

#[test]
fn the_default_writes_element_by_element() {
    let singles = tenarc::to_vec(&[0.5f32; 100].to_vec()).unwrap();
    assert_eq!(singles[..3], [0x98, 100, 0xfa]);
    assert_eq!(tenarc::to_vec(&vec![1u8; 2000]).unwrap()[..4], [0x99, 0x07, 0xd0, 1]);
}

#[test]
fn any_collection_is_a_sequence() {
    let mut deque: VecDeque<f64> = (0..10).map(f64::from).collect();
    deque.rotate_left(3);
    deque.push_front(0.5);
    assert!(is_packed(&round_trips(&deque)));
    assert!(is_packed(&round_trips(&vec![0.5f32; 8].into_boxed_slice())));
    let list: std::collections::LinkedList<f32> = (0..20u8).map(f32::from).collect();
    assert!(is_packed(&round_trips(&list)));
    let set: std::collections::BTreeSet<u32> = (0..300).collect();
    assert!(is_packed(&round_trips(&set)));
    assert!(is_packed(&pack(&[0.5f32; 8][..])));
    assert!(is_packed(&round_trips(&std::rc::Rc::new(vec![0.5f32; 8]).as_ref().clone())));
}

#[test]
fn every_bit_of_floats_is_kept() {
    let bits: Vec<u32> = vec![0x7f80_0001, 0xffc0_1234, 0x8000_0000, 1, 0x7f80_0000, 0, 2, 3];
    let singles: Vec<f32> = bits.iter().map(|&bits| f32::from_bits(bits)).collect();
    let bytes = pack(&singles);
    assert!(is_packed(&bytes));
    for (_, found) in everywhere::<Vec<f32>>(&bytes) {
        assert_eq!(found.unwrap().iter().map(|value| value.to_bits()).collect::<Vec<_>>(), bits);
    }
}

#[test]
fn number_types_that_serde_shows_as_others() {
    // usize is u64 to serde, f16 is u16.
    assert_eq!(round_trips(&vec![usize::MAX; 128])[1], 71);
    assert!(!is_packed(&round_trips(&vec![i128::MAX; 500])));
    assert!(!is_packed(&round_trips(&vec!['x'; 2000])));
    assert!(!is_packed(&round_trips(&vec![true; 2000])));
    assert!(!is_packed(&round_trips(&vec![(); 2000])));
    assert!(!is_packed(&round_trips(&vec![String::from("text"); 2000])));
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Meters(f64);

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
#[serde(transparent)]
struct Seconds {
    value: f64,
}

#[test]
fn newtypes_round_trip() {
    round_trips(&vec![Meters(0.5); 100]);
    assert!(is_packed(&round_trips(&vec![Seconds { value: 0.5 }; 100])));
}

#[test]
fn elements_in_options_are_not_packed() {
    assert!(!is_packed(&round_trips(&vec![Some(0.5f64); 100])));
    assert!(!is_packed(&round_trips(&vec![Some(0.5f64), None, Some(1.5), None, None])));
    let mut late = vec![Some(1u32); 1000];
    late[999] = None;
    assert!(!is_packed(&round_trips(&late)));
}

#[test]
fn sequences_in_options_keep_their_levels() {
    round_trips(&Some(vec![0.5f64; 10]));
    round_trips(&Some(Some(vec![0.5f64; 10])));
    round_trips(&vec![Some(vec![0.5f64; 10]), None, Some(vec![]), Some(vec![1.0])]);
    round_trips(&(Some(None::<Vec<f64>>), Some(Some(vec![0.5f64; 10]))));
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Point(f64, f64, f64, f64);

#[test]
fn tuples_and_arrays_are_never_packed() {
    assert!(!is_packed(&round_trips(&[0.5f64; 32])));
    assert!(!is_packed(&round_trips(&[7u64; 16])));
    let tuple = (0.5f64, 0.5f64, 0.5f64, 0.5f64, 0.5f64, 0.5f64);
    assert_eq!(round_trips(&tuple)[0], 0x86);
    assert_eq!(round_trips(&Point(1.0, 2.0, 3.0, 4.0))[0], 0x84);
    // Elements of a sequence that are tuples.
    let points = vec![(1.0f64, 2.0f64, 3.0f64, 4.0f64); 10];
    assert_eq!(round_trips(&points), tenarc::to_vec(&points).unwrap());
}

/// Announces a tuple longer than any that derives.
struct LongTuple;

impl Serialize for LongTuple {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(5000)?;
        (0..5000u32).try_for_each(|value| tuple.serialize_element(&value))?;
        tuple.end()
    }
}

#[test]
fn long_tuples_are_not_packed_either() {
    assert_eq!(pack(&LongTuple), tenarc::to_vec(&LongTuple).unwrap());
}

#[test]
fn empty_and_nested_sequences() {
    round_trips(&Vec::<f64>::new());
    round_trips(&vec![Vec::<f64>::new(); 50]);
    let nested = vec![vec![0.5f64; 10], vec![], vec![0.5; 3], vec![1.5; 4]];
    let bytes = round_trips(&nested);
    assert_eq!(bytes[0], 0x84);
    assert_eq!(bytes[1..3], [0xd8, 86]);
    round_trips(&vec![vec![vec![1u8; 1024]; 3]; 3]);
    round_trips(&vec![(String::from("a"), vec![0.5f32; 100]), (String::from("b"), vec![])]);
}

#[test]
fn inside_structs_maps_and_enums() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Record {
        id: u64,
        label: String,
        embedding: Vec<f32>,
        counts: Vec<u16>,
        by_name: BTreeMap<String, Vec<f64>>,
        kind: Kind,
        last: u8,
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    enum Kind {
        Newtype(Vec<f32>),
        Tuple(u8, Vec<f32>),
        Struct { samples: Vec<f32>, rate: u8 },
    }
    for kind in [
        Kind::Newtype(vec![0.5; 9]),
        Kind::Tuple(1, vec![0.5; 9]),
        Kind::Struct { samples: vec![0.5; 9], rate: 44 },
    ] {
        let record = Record {
            id: 7,
            label: "seven".into(),
            embedding: (0..256u16).map(|value| f32::from(value) / 7.0).collect(),
            counts: (0..600).collect(),
            by_name: [("a".into(), vec![0.1; 5]), ("b".into(), vec![0.1])].into(),
            kind,
            last: 255,
        };
        let packed = round_trips(&record);
        assert!(packed.len() < tenarc::to_vec(&record).unwrap().len());
    }
}

#[test]
fn ndarrays_own_serde_form_is_packed() {
    fn check<T>(array: &T, tag: u8)
    where
        T: Serialize + DeserializeOwned + PartialEq + Debug,
    {
        let bytes = round_trips(array);
        let data = bytes.windows(7).position(|at| at == [b"\x64data", &[0xd8, tag][..]].concat());
        assert!(data.is_some(), "{}", hex(&bytes));
    }
    check(&Array1::from_iter((0..100u8).map(f64::from)), 86);
    check(&Array2::<f32>::eye(5), 85);
    check(&ArrayD::<i64>::zeros(IxDyn(&[2, 3, 4, 6])), 79);
    // In logical order, whatever the order in memory.
    let column_major = Array2::from_shape_vec((2, 4).f(), (0..8).collect()).unwrap();
    check(&column_major.mapv(|value: i32| f64::from(value)), 86);
    let strided = array![[1.0f64, 2.0, 3.0], [4.0, 5.0, 6.0]].slice_move(s![..;-1, ..;2]);
    check(&strided, 86);
    round_trips(&Array2::<f32>::zeros((0, 3)));
    round_trips(&ndarray::arr0(1.5f32));
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
#[serde(untagged)]
enum Scalar {
    Unsigned(u64),
    Single(Bits32),
    Double(f64),
    Text(String),
}

/// A single that is not read from a double.
#[derive(PartialEq, Debug, Clone)]
struct Bits32(f32);

impl Serialize for Bits32 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f32(self.0)
    }
}

impl<'de> Deserialize<'de> for Bits32 {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bits32;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a single")
            }

            fn visit_f32<E>(self, value: f32) -> Result<Bits32, E> {
                Ok(Bits32(value))
            }

            fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Bits32, E> {
                Err(E::custom("a double"))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[test]
fn mixed_sequences_come_back_as_they_were() {
    let (single, double) = (Scalar::Single(Bits32(0.5)), Scalar::Double(0.25));
    let (text, integer) = (Scalar::Text("x".into()), Scalar::Unsigned(7));
    for first in [&single, &double, &integer] {
        for other in [&single, &double, &text, &integer] {
            if first == other {
                continue;
            }
            // The other kind comes second, late, or last; and then the first again.
            for len in [4, 8, 200, 5000] {
                for at in [1, len / 2, len - 1] {
                    let mut mixed = vec![first.clone(); len];
                    mixed[at] = other.clone();
                    let bytes = round_trips(&mixed);
                    assert!(bytes == tenarc::to_vec(&mixed).unwrap(), "written plainly");
                    mixed[at..].fill(other.clone());
                    round_trips(&mixed);
                }
            }
        }
    }
    let all = [single, double, text, integer];
    round_trips(&all.iter().cycle().take(1000).cloned().collect::<Vec<_>>());
}

#[test]
fn packed_numbers_are_shown_with_their_exact_type() {
    round_trips(&vec![Scalar::Single(Bits32(0.1)); 100]);
    round_trips(&vec![Scalar::Double(0.5); 100]);
    let bytes = round_trips(&vec![Scalar::Unsigned(7); 2000]);
    assert_eq!(bytes[..2], [0xd8, 71]);
}

/// A sequence that announces another length than it has.
struct Announced<T> {
    announced: Option<usize>,
    items: Vec<T>,
}

impl<T: Serialize> Serialize for Announced<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(self.announced)?;
        self.items.iter().try_for_each(|item| seq.serialize_element(item))?;
        seq.end()
    }
}

fn announced<T>(announced: Option<usize>, items: Vec<T>) -> Announced<T> {
    Announced { announced, items }
}

#[test]
fn sequences_written_element_by_element_are_packed_too() {
    let doubles: Vec<f64> = (0..100u8).map(f64::from).collect();
    assert_eq!(pack(&announced(Some(100), doubles.clone())), pack(&doubles));
    let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
    assert_eq!(pack(&announced(Some(3000), bytes.clone())), pack(&bytes));
    for len in [0, 1, 3, 4] {
        let doubles = doubles[..len].to_vec();
        assert_eq!(pack(&announced(Some(len), doubles.clone())), pack(&doubles));
    }
    let mixed: Vec<Scalar> = [Scalar::Double(0.5), Scalar::Double(0.5), Scalar::Text("x".into())]
        .into_iter()
        .cycle()
        .take(27)
        .collect();
    assert_eq!(pack(&announced(Some(27), mixed.clone())), pack(&mixed));
    let nested = vec![announced(Some(5), vec![0.5f32; 5]), announced(Some(9), vec![0.5; 9])];
    assert_eq!(pack(&nested), pack(&vec![vec![0.5f32; 5], vec![0.5; 9]]));
}

#[test]
fn sequences_of_unknown_length_are_of_indefinite_length() {
    let doubles = vec![0.5f64; 10];
    let bytes = pack(&announced(None, doubles.clone()));
    assert_eq!((bytes[0], bytes[bytes.len() - 1]), (0x9f, 0xff));
    assert_eq!(decode::<Vec<f64>>(&bytes), doubles);
    assert_eq!(bytes, tenarc::to_vec(&announced(None, doubles)).unwrap());
}

/// Goes through `collect_seq` with an iterator that may or may not know its length.
struct Collected(Option<usize>);

impl Serialize for Collected {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(len) => serializer.collect_seq(std::iter::repeat_n(0.5f64, len)),
            None => serializer.collect_seq((0..100u8).filter(|v| v % 2 == 0).map(f64::from)),
        }
    }
}

#[test]
fn collected_iterators_are_packed_where_their_length_is_known() {
    assert_eq!(pack(&Collected(Some(100))), pack(&vec![0.5f64; 100]));
    assert_eq!(pack(&Collected(None))[0], 0x9f);
}

#[track_caller]
fn fails<T: Serialize>(value: &T, text: &str) {
    for options in [EncodeOptions::default(), packing()] {
        let mut buffer = b"before".to_vec();
        let error =
            tenarc::ser::append_to_with(&mut buffer, value, options).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert_eq!(buffer, b"before", "the buffer is as it was");
        assert!(tenarc::ser::to_writer_with(std::io::sink(), value, options).is_err());
        let mut serializer = tenarc::Serializer::with_options(std::io::sink(), options);
        assert!(value.serialize(&mut serializer).is_err());
    }
}

#[test]
fn wrong_lengths_are_errors_packed_or_not() {
    for len in [1, 3, 4, 8, 2000] {
        fails(&announced(Some(len), vec![0.5f64; len - 1]), "fewer elements than it announced");
        fails(&announced(Some(len), vec![0.5f64; len + 1]), "more elements than it announced");
        fails(&announced(Some(len), vec![1u8; len - 1]), "fewer elements than it announced");
        fails(&announced(Some(len), vec![1u8; len + 1]), "more elements than it announced");
    }
    fails(&announced(Some(8), Vec::<f64>::new()), "fewer elements than it announced");
    fails(&announced(Some(usize::MAX), vec![0.5f64; 10]), "fewer elements than it announced");
    fails(&announced(Some(usize::MAX / 8 + 1), vec![1u64; 10]), "fewer elements than it announced");
    fails(&vec![announced(Some(9), vec![0.5f64; 8])], "fewer elements than it announced");
}

/// An iterator whose size hint is wrong: the hint, the number of elements, and the element.
struct Hinting<T>(usize, usize, T);

impl<T: Copy> Iterator for Hinting<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.1 = self.1.checked_sub(1)?;
        Some(self.2)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0, Some(self.0))
    }
}

struct Hinted<T>(usize, usize, T);

impl<T: Copy + Serialize> Serialize for Hinted<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(Hinting(self.0, self.1, self.2))
    }
}

fn wrong_size_hints_are_errors<T: Copy + Serialize + PartialEq>(element: T) {
    for (hint, len) in [(8, 7), (5000, 4000), (8, 0), (usize::MAX, 10)] {
        fails(&Hinted(hint, len, element), "fewer elements than it announced");
    }
    for (hint, len) in [(8, 9), (4000, 5000), (0, 10), (3, 10), (512, 513)] {
        fails(&Hinted(hint, len, element), "more elements than it announced");
    }
    for len in [0, 100, 512, 513, 5000] {
        let hinted = Hinted(len, len, element);
        assert!(pack(&hinted) == pack(&vec![element; len]));
        assert!(tenarc::to_vec(&hinted).unwrap() == tenarc::to_vec(&vec![element; len]).unwrap());
    }
}

#[test]
fn wrong_size_hints_are_errors_packed_or_not() {
    wrong_size_hints_are_errors(0.5f64);
    wrong_size_hints_are_errors(0.5f32);
    wrong_size_hints_are_errors(1000u16);
    wrong_size_hints_are_errors(-1i8);
    wrong_size_hints_are_errors(true);
    wrong_size_hints_are_errors("text");
}

/// Fails in the middle of a sequence: as an element, or between elements.
struct Failing {
    inside: bool,
}

impl Serialize for Failing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(100))?;
        (0..50).try_for_each(|_| seq.serialize_element(&0.5f64))?;
        if self.inside {
            seq.serialize_element(&FailingElement)?;
        }
        Err(serde::ser::Error::custom("stopped here"))
    }
}

struct FailingElement;

impl Serialize for FailingElement {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("stopped here"))
    }
}

#[test]
fn a_sequence_that_fails_half_way_leaves_the_buffer_as_it_was() {
    fails(&Failing { inside: true }, "stopped here");
    fails(&Failing { inside: false }, "stopped here");
    fails(&("a", Failing { inside: false }), "stopped here");
}

#[test]
fn errors_inside_sequences_tell_the_path() {
    let value = BTreeMap::from([("list", Failing { inside: true })]);
    let error = tenarc::ser::to_vec_with(&value, packing()).unwrap_err();
    assert_eq!(error.path(), "list.50");
}

#[test]
fn several_values_on_one_stream() {
    let mut serializer = tenarc::Serializer::with_options(Vec::new(), packing());
    vec![0.5f64; 5].serialize(&mut serializer).unwrap();
    announced(Some(5), vec![1.5f64; 5]).serialize(&mut serializer).unwrap();
    vec![2.5f64; 5000].serialize(&mut serializer).unwrap();
    (&mut serializer).serialize_str("end").unwrap();
    let bytes = serializer.into_inner();
    let values: Vec<Value> =
        tenarc::Deserializer::from_slice(&bytes).into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(values.len(), 4);
    assert_eq!(tenarc::from_value::<Vec<f64>>(values[1].clone()).unwrap(), [1.5; 5]);
    assert_eq!(tenarc::from_value::<Vec<f64>>(values[2].clone()).unwrap(), vec![2.5; 5000]);
}

type Large = (Vec<f32>, tenarc::Tensor<Vec<u8>>, Vec<Scalar>, Vec<f64>, Vec<u8>);

#[test]
fn large_sequences() {
    let singles: Vec<f32> = (0..2_000_000).map(|value| value as f32).collect();
    let bytes = pack(&singles);
    assert_eq!(bytes.len(), 8_000_000 + 7);
    assert!(tenarc::from_slice::<Vec<f32>>(&bytes).unwrap() == singles);
    assert!(tenarc::from_reader::<_, Vec<f32>>(&*bytes).unwrap() == singles);
    assert!(tenarc::from_reader::<_, Vec<f64>>(&*bytes).unwrap().len() == singles.len());
    let plain = tenarc::to_vec(&singles).unwrap();
    assert!(tenarc::from_slice::<Vec<f32>>(&plain).unwrap() == singles);

    // Mixed at the very end, and behind a tensor that makes the encoder measure first.
    let mut mixed: Vec<Scalar> = vec![Scalar::Double(0.5); 200_000];
    mixed.push(Scalar::Text("end".into()));
    let tensor = tenarc::Tensor(vec![0u8; 3 << 20]);
    let value: Large = (vec![1.5f32; 300_000], tensor, mixed, vec![2.5f64; 300_000], vec![1u8; 10]);
    let bytes = pack(&value);
    let back: Large = tenarc::from_slice(&bytes).unwrap();
    assert!(back == value);
    let back: Large = tenarc::from_reader(Ragged::new(&bytes, 3)).unwrap();
    assert!(back == value);
}
