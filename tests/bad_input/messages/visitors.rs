//! Group N: code of users that fails, panics, reports wrong lengths, or stops early.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::{self, Deserializer as _, IgnoredAny, Visitor};
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant,
};
use serde::{Deserialize, Serialize, Serializer};
use tenarc::error::Category::{Data, Syntax};
use tenarc::ser::EncodeOptions;
use tenarc::tensor::{Order, TensorMeta, ToTensor};
use tenarc::{DType, Deserializer, Tensor, Value};

use super::support::{MIB, accepts, refuses, unhex};

/// Writes something, then ends as told.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Error,
    Panic,
    /// Leaves the compound without ending it.
    Early,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Seq,
    LongSeq,
    Map,
    Struct,
    Newtype,
    Some,
    Variant,
    Tensor,
    TensorInSome,
}

struct Ends(Form, Ending);

impl Ending {
    fn now<E: serde::ser::Error>(self) -> Result<(), E> {
        match self {
            Self::Panic => panic!("as it should"),
            _ => Err(E::custom("as it should")),
        }
    }
}

/// Only ends.
struct Nothing(Ending);

impl Serialize for Nothing {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        self.0.now()?;
        Err(S::Error::custom("not reached"))
    }
}

impl Serialize for Ends {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(form, ending) = *self;
        let nothing = Nothing(ending);
        let early = || Err(S::Error::custom("early"));
        match form {
            Form::Seq | Form::LongSeq => {
                let len = if matches!(form, Form::Seq) { 3 } else { 5000 };
                let mut seq = serializer.serialize_seq(Some(len))?;
                for _ in 0..len - 1 {
                    seq.serialize_element(&0.5f64)?;
                }
                if !matches!(ending, Ending::Early) {
                    seq.serialize_element(&nothing)?;
                }
                early()
            }
            Form::Map => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("a", &1)?;
                map.serialize_key("b")?;
                if !matches!(ending, Ending::Early) {
                    map.serialize_value(&nothing)?;
                }
                early()
            }
            Form::Struct => {
                let mut fields = serializer.serialize_struct("S", 2)?;
                fields.serialize_field("a", &1)?;
                if !matches!(ending, Ending::Early) {
                    fields.serialize_field("b", &nothing)?;
                }
                early()
            }
            Form::Newtype => serializer.serialize_newtype_struct("N", &Self(Form::Seq, ending)),
            Form::Some => serializer.serialize_some(&Self(Form::Seq, ending)),
            Form::Variant => serializer.serialize_newtype_variant("E", 0, "V", &nothing),
            Form::Tensor => Tensor(Lying::ends(ending)).serialize(serializer),
            Form::TensorInSome => Some(Tensor(Lying::ends(ending))).serialize(serializer),
        }
    }
}

const FORMS: [Form; 9] = [
    Form::Seq,
    Form::LongSeq,
    Form::Map,
    Form::Struct,
    Form::Newtype,
    Form::Some,
    Form::Variant,
    Form::Tensor,
    Form::TensorInSome,
];

/// A tensor whose blocks are not what its meta says.
struct Lying {
    blocks: Vec<usize>,
    ending: Option<Ending>,
}

impl Lying {
    fn ends(ending: Ending) -> Self {
        Self { blocks: vec![4], ending: Some(ending) }
    }
}

impl ToTensor for Lying {
    fn meta(&self) -> TensorMeta {
        TensorMeta { dtype: DType::U8, shape: [8].into(), order: Order::C }
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>) -> tenarc::Result<()> {
        for &len in &self.blocks {
            put(&vec![7; len])?;
        }
        self.ending.map_or(Ok(()), Ending::now)
    }
}

/// Without the noise of panics that are meant.
fn caught<R>(act: impl FnOnce() -> R) -> std::thread::Result<R> {
    catch_unwind(AssertUnwindSafe(act))
}

// 94
#[test]
fn a_stream_is_broken_behind_a_value_that_failed_or_panicked() {
    for typed in [false, true] {
        for form in FORMS {
            for ending in [Ending::Error, Ending::Panic, Ending::Early] {
                let options = EncodeOptions::default().with_typed_arrays(typed);
                let mut serializer = tenarc::Serializer::with_options(Vec::new(), options);
                "first".serialize(&mut serializer).unwrap();
                let result = caught(|| Ends(form, ending).serialize(&mut serializer));
                assert!(!matches!(result, Ok(Ok(()))), "{form:?} {ending:?}");
                // Either nothing of it can be written, or nothing can follow.
                let next = "next".serialize(&mut serializer);
                let written = serializer.into_inner();
                let whole = if next.is_ok() { &b"\x65first\x64next"[..] } else { b"\x65first" };
                assert!(written.starts_with(b"\x65first"));
                assert!(
                    next.is_err() || written == whole,
                    "{form:?} {ending:?} {typed}: {written:02x?}"
                );
            }
        }
    }
}

// 94
#[test]
fn a_buffer_is_as_it_was_behind_a_value_that_failed() {
    for typed in [false, true] {
        for form in FORMS {
            let options = EncodeOptions::default().with_typed_arrays(typed);
            let mut buffer = b"before".to_vec();
            let value = Ends(form, Ending::Error);
            let error = tenarc::ser::append_to_with(&mut buffer, &value, options).unwrap_err();
            assert_eq!(error.category(), Data);
            assert!(error.to_string().contains("as it should"), "{error}");
            assert_eq!(buffer, b"before", "{form:?}");
            assert!(tenarc::to_value(&value).is_err());
            // Behind a large block, too, when it is walked a second time.
            let large = (Tensor(vec![1u8; 2 * MIB]), value);
            tenarc::ser::append_to_with(&mut buffer, &large, options).unwrap_err();
            assert_eq!(buffer, b"before", "{form:?}");
        }
    }
}

// 94
#[test]
fn a_panic_leaves_nothing_behind_for_the_next_message() {
    let good =
        (Tensor(vec![0.5f32; 3]), Value::Tag(9, Box::new(Value::Simple(99))), Some(Some(())));
    let bytes = tenarc::to_vec(&good).unwrap();
    for form in FORMS {
        let value = Ends(form, Ending::Panic);
        assert!(caught(|| tenarc::to_vec(&value)).is_err());
        assert_eq!(tenarc::to_vec(&good).unwrap(), bytes, "{form:?}");
        assert!(caught(|| tenarc::to_value(&value)).is_err());
        assert_eq!(tenarc::to_vec(&tenarc::to_value(&good).unwrap()).unwrap(), bytes, "{form:?}");
        assert!(caught(|| serde_json::to_vec(&value)).is_err());
        assert!(caught(|| serde_json::to_vec(&Value::Tag(1, Box::new(Value::Null)))).is_ok());
        assert_eq!(tenarc::to_vec(&good).unwrap(), bytes, "{form:?}");
    }
}

/// Announces one length and writes another.
struct Miscounted {
    form: &'static str,
    announced: usize,
    written: usize,
}

impl Serialize for Miscounted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        macro_rules! all {
            ($begin:expr, |$compound:ident| $one:expr) => {{
                let mut $compound = $begin?;
                for _ in 0..self.written {
                    $one?;
                }
                $compound.end()
            }};
        }
        let len = self.announced;
        match self.form {
            "seq" => all!(serializer.serialize_seq(Some(len)), |c| c.serialize_element(&0.5)),
            "integers" => all!(serializer.serialize_seq(Some(len)), |c| c.serialize_element(&5u64)),
            "tuple" => all!(serializer.serialize_tuple(len), |c| c.serialize_element(&1)),
            "tuple struct" => {
                all!(serializer.serialize_tuple_struct("T", len), |c| c.serialize_field(&1))
            }
            "tuple variant" => {
                all!(serializer.serialize_tuple_variant("E", 0, "V", len), |c| c
                    .serialize_field(&1))
            }
            "struct" => all!(serializer.serialize_struct("S", len), |c| c.serialize_field("f", &1)),
            "struct variant" => {
                all!(serializer.serialize_struct_variant("E", 0, "V", len), |c| c
                    .serialize_field("f", &1))
            }
            _ => all!(serializer.serialize_map(Some(len)), |c| c.serialize_entry("k", &1)),
        }
    }
}

// 95
#[test]
fn other_lengths_than_announced_are_errors() {
    let forms = [
        "seq",
        "integers",
        "tuple",
        "tuple struct",
        "tuple variant",
        "struct",
        "struct variant",
        "map",
    ];
    for form in forms {
        for typed in [false, true] {
            for (announced, written) in
                [(0, 1), (1, 0), (2, 3), (10, 9), (10, 11), (500, 499), (500, 501)]
            {
                let value = Miscounted { form, announced, written };
                let options = EncodeOptions::default().with_typed_arrays(typed);
                let what = format!("{form} {announced} {written} {typed}");
                let mut buffer = b"before".to_vec();
                let error =
                    tenarc::ser::append_to_with(&mut buffer, &value, options).expect_err(&what);
                assert_eq!((error.category(), &buffer[..]), (Data, &b"before"[..]), "{what}");
                let told = error.to_string();
                let expected = if written > announced { "more elements" } else { "fewer" };
                assert!(told.contains(expected), "{what}: {told}");
                let mut serializer = tenarc::Serializer::with_options(Vec::new(), options);
                value.serialize(&mut serializer).expect_err(&what);
                7u8.serialize(&mut serializer).expect_err("the stream is broken");
            }
            let right = Miscounted { form, announced: 500, written: 500 };
            let options = EncodeOptions::default().with_typed_arrays(typed);
            let bytes = tenarc::ser::to_vec_with(&right, options).unwrap();
            tenarc::from_slice::<IgnoredAny>(&bytes).unwrap();
        }
        // A claim of everything there could be allocates nothing.
        let value = Miscounted { form, announced: usize::MAX, written: 5 };
        let options = EncodeOptions::default().with_typed_arrays(true);
        let (result, peak) =
            tenarc_test_support::alloc::peak_of(|| tenarc::ser::to_vec_with(&value, options));
        assert!(result.is_err() && peak < MIB, "{form}: {peak}");
        let (_, peak) = tenarc_test_support::alloc::peak_of(|| tenarc::to_value(&value).map(drop));
        assert!(peak < MIB, "{form}: {peak}");
    }
}

// 95
#[test]
fn keys_without_values_are_errors() {
    struct Odd(&'static str);

    impl Serialize for Odd {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            for step in self.0.chars() {
                match step {
                    'k' => map.serialize_key("key")?,
                    'v' => map.serialize_value(&1)?,
                    _ => map.serialize_entry("entry", &1)?,
                }
            }
            map.end()
        }
    }

    for steps in ["", "kv", "ekve"] {
        let bytes = tenarc::to_vec(&Odd(steps)).unwrap();
        tenarc::from_slice::<IgnoredAny>(&bytes).unwrap();
    }
    for steps in ["k", "v", "kk", "kkv", "kkvv", "kvv", "ek", "ke", "ev", "kvk"] {
        assert_eq!(tenarc::to_vec(&Odd(steps)).unwrap_err().category(), Data, "{steps}");
    }
}

/// Another value each time it is walked.
struct Changing<F>(Cell<usize>, F);

impl<T: Serialize, F: Fn(usize) -> T> Serialize for Changing<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let walk = self.0.get();
        self.0.set(walk + 1);
        (self.1)(walk).serialize(serializer)
    }
}

// 95
#[test]
fn values_that_change_between_walks_are_errors_or_whole() {
    fn changes<T: Serialize>(value: impl Fn(usize) -> T, same: bool) {
        // A large block makes it two walks.
        let large = (Tensor(vec![1u8; 2 * MIB]), Changing(Cell::new(0), value));
        let mut buffer = b"before".to_vec();
        let result = tenarc::append_to(&mut buffer, &large);
        match result {
            Ok(()) => {
                assert!(same);
                tenarc::from_slice::<(IgnoredAny, IgnoredAny)>(&buffer[6..]).unwrap();
            }
            Err(error) => {
                assert!(!same);
                assert!(error.to_string().contains("between the two passes"), "{error}");
                assert_eq!(buffer, b"before");
            }
        }
    }
    changes(|_| 1, true);
    changes(|walk| vec![1u8; walk + 1], false);
    changes(|walk| vec![1u8; 5 - walk], false);
    changes(|walk| "x".repeat(300 * (2 - walk)), false);
    changes(|walk| Tensor(vec![1u8; walk + 1]), false);
    changes(|walk| if walk == 0 { Some(1) } else { None }, true);
}

// 95
#[test]
fn tensors_that_give_other_bytes_than_they_said_are_errors() {
    for blocks in
        [vec![], vec![7], vec![9], vec![4, 3], vec![4, 5], vec![8, 1], vec![usize::from(u16::MAX)]]
    {
        let lying = Tensor(Lying { blocks: blocks.clone(), ending: None });
        let error = tenarc::to_vec(&lying).unwrap_err();
        assert_eq!(error.category(), Data, "{blocks:?}");
        assert!(tenarc::to_value(&lying).is_err(), "{blocks:?}");
        let mut serializer = tenarc::Serializer::new(Vec::new());
        lying.serialize(&mut serializer).unwrap_err();
        7u8.serialize(&mut serializer).unwrap_err();
    }
    for blocks in [vec![8], vec![4, 4], vec![0, 8, 0], vec![1; 8]] {
        let honest = Tensor(Lying { blocks, ending: None });
        let bytes = tenarc::to_vec(&honest).unwrap();
        assert_eq!(accepts::<Tensor<Vec<u8>>>(&bytes).0, [7; 8]);
        tenarc::to_value(&honest).unwrap();
    }
}

/// Takes so many steps of what it is shown, then stops.
struct Stopping<'a>(&'a str);

impl<'de> de::DeserializeSeed<'de> for Stopping<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0.strip_prefix('!') {
            Some(rest) => deserializer.deserialize_enum("E", &["A"], Stopping(rest)),
            None => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Stopping<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        for step in self.0.chars() {
            match step {
                'p' => panic!("as it should"),
                _ => drop(seq.next_element::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        for step in self.0.chars() {
            match step {
                'p' => panic!("as it should"),
                'k' => drop(map.next_key::<IgnoredAny>()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_enum<A: de::EnumAccess<'de>>(self, data: A) -> Result<(), A::Error> {
        use de::VariantAccess;

        let (_, content) = data.variant::<String>()?;
        match self.0 {
            "" => Ok(()),
            "p" => panic!("as it should"),
            _ => content.newtype_variant::<IgnoredAny>().map(drop),
        }
    }
}

/// What a visitor left is refused, however it stands in the input; what it took whole is not.
fn stops(steps: &str, digits: &str, whole: bool) {
    use de::DeserializeSeed;

    // Between two numbers: one that is left would be taken for the next.
    for (start, end) in [("83 01", "02"), ("9f 01", "02 ff")] {
        struct Three<'a>(&'a str);

        impl<'de> Visitor<'de> for Three<'_> {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("three elements")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<u8>, A::Error> {
                let mut numbers: Vec<u8> = seq.next_element()?.into_iter().collect();
                seq.next_element_seed(Stopping(self.0))?;
                while let Some(number) = seq.next_element()? {
                    numbers.push(number);
                }
                Ok(numbers)
            }
        }

        let bytes = unhex(&format!("{start} {digits} {end}"));
        let mut slice = Deserializer::from_slice(&bytes);
        let result = slice.deserialize_seq(Three(steps));
        let read = Deserializer::from_reader(&bytes[..]).deserialize_seq(Three(steps));
        assert_eq!(result.is_ok(), read.is_ok(), "{steps} {digits}");
        match result {
            Ok(numbers) => {
                assert!(whole, "{steps:?} left something of {digits}");
                assert_eq!(numbers, [1, 2]);
                slice.end().unwrap();
            }
            Err(error) => assert!(!whole, "{steps} {digits}: {error}"),
        }
    }
    let mut alone = unhex(digits);
    alone.push(0x07);
    let mut deserializer = Deserializer::from_slice(&alone);
    let result = Stopping(steps).deserialize(&mut deserializer);
    assert_eq!(result.is_ok(), whole, "{steps:?} of {digits}: {result:?}");
    if whole {
        assert_eq!(u8::deserialize(&mut deserializer).unwrap(), 7);
    }
}

// 96
#[test]
fn visitors_that_stop_early_are_errors() {
    for (array, shown) in [("83010203", "eee"), ("9f010203ff", "eeee"), ("d84043010203", "eee")] {
        for steps in ["", "e", "ee"] {
            stops(steps, array, false);
        }
        stops(shown, array, true);
        stops("eeeee", array, true);
    }
    // An open array may end without a look at its end.
    stops("eee", "9f010203ff", true);
    stops("", "80", true);
    stops("", "9fff", true);
    for map in ["a201020304", "bf01020304ff"] {
        for steps in ["", "k", "kv", "kvk", "kk"] {
            stops(steps, map, false);
        }
        stops("kvkv", map, true);
        stops("kvkvk", map, true);
    }
    // A value that was not asked for, or that is not there.
    stops("k", "a10102", false);
    stops("v", "a0", false);
    stops("kvv", "a10102", false);
    stops("kvkv", "a10102", false);
    stops("kvkkv", "bf0102ff", false);
    // Tensors, which are shown as maps of four.
    for steps in ["", "k", "kv", "kvkv", "kvkvkv", "kvkvkvk"] {
        stops(steps, "d828828102d8404207 08".replace(' ', "").as_str(), false);
    }
    stops("kvkvkvkv", "d828828102d840420708", true);
    stops("kvkvkvkvk", "d828828102d840420708", true);
    stops("kvkvkvkvkv", "d828828102d840420708", false);
    // Variants whose content is left.
    stops("!", "a1614105", false);
    stops("!", "bf614105ff", false);
    stops("!c", "a1614105", true);
    stops("!c", "bf614105ff", true);
}

// 96
#[test]
fn visitors_that_panic_leave_the_levels_right() {
    use de::DeserializeSeed;

    for (steps, digits) in
        [("ep", "82 0102"), ("kp", "a1 0102"), ("p", "d828828102d840420708"), ("!p", "a1614105")]
    {
        let bytes = unhex(digits).repeat(200);
        let mut deserializer = Deserializer::from_slice(&bytes);
        let panicked = caught(|| Stopping(steps).deserialize(&mut deserializer)).is_err();
        assert!(panicked, "{steps} {digits}");
        // The next message is another matter, and this thread goes on.
        for _ in 0..200 {
            assert!(
                caught(|| Stopping(steps).deserialize(&mut Deserializer::from_slice(&bytes)))
                    .is_err()
            );
        }
        let tensor = Tensor(vec![1u8, 2]);
        let bytes = tenarc::to_vec(&tensor).unwrap();
        assert_eq!(accepts::<Tensor<Vec<u8>>>(&bytes), tensor);
        accepts::<Value>(&bytes);
    }
}

// 96
#[test]
fn errors_of_visitors_have_offset_and_path() {
    #[derive(Deserialize, Debug)]
    #[serde(try_from = "u8")]
    struct Small(#[allow(dead_code)] u8);

    impl TryFrom<u8> for Small {
        type Error = String;

        fn try_from(value: u8) -> Result<Self, String> {
            if value < 10 { Ok(Self(value)) } else { Err(format!("{value} is not small")) }
        }
    }

    let bytes = unhex("a2 6161 8101 6162 82 01 0b");
    let error = refuses::<BTreeMap<String, Vec<Small>>>(&bytes, Data);
    assert_eq!((error.path().as_str(), error.offset()), ("b.1", Some(9)), "{error}");
    let error = refuses::<BTreeMap<String, Vec<Small>>>(&unhex("a1 6161 82 01 1c"), Syntax);
    assert_eq!((error.path().as_str(), error.offset()), ("a.1", Some(5)), "{error}");
}
