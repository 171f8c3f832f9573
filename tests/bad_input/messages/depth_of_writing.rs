//! Threat 22: values nested too deeply to be written. Whatever is written can be read.

use std::io::{self, Write};

use ndarray::arr0;
use num_complex::Complex;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::ser::{SerializeMap, SerializeTupleVariant};
use serde::{Serialize, Serializer};
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category::Limit;
use tenarc::ser::EncodeOptions;
use tenarc::value::{Numbers, RawValue};
use tenarc::{Tensor, Value};

use super::support::{Nest, is_well_formed, on_small_stack, on_stack};

/// What a level is written as.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    Seq,
    OpenSeq,
    Collected,
    MapValue,
    MapKey,
    NewtypeVariant,
    TupleVariant,
    Some,
    Newtype,
}

const LEVELS: [Level; 9] = [
    Level::Seq,
    Level::OpenSeq,
    Level::Collected,
    Level::MapValue,
    Level::MapKey,
    Level::NewtypeVariant,
    Level::TupleVariant,
    Level::Some,
    Level::Newtype,
];

/// A value in so many levels.
struct Deep<'a, T: ?Sized>(Level, usize, &'a T);

impl<T: Serialize + ?Sized> Serialize for Deep<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;

        let Some(rest) = self.1.checked_sub(1) else { return self.2.serialize(serializer) };
        let inner = Deep(self.0, rest, self.2);
        match self.0 {
            Level::Seq | Level::OpenSeq => {
                let len = (self.0 == Level::Seq).then_some(1);
                let mut seq = serializer.serialize_seq(len)?;
                seq.serialize_element(&inner)?;
                seq.end()
            }
            Level::Collected => serializer.collect_seq([inner]),
            Level::MapValue | Level::MapKey => {
                let mut map = serializer.serialize_map(Some(1))?;
                match self.0 {
                    Level::MapKey => map.serialize_entry(&inner, &0)?,
                    _ => map.serialize_entry("k", &inner)?,
                }
                map.end()
            }
            Level::NewtypeVariant => serializer.serialize_newtype_variant("E", 0, "N", &inner),
            Level::TupleVariant => {
                let mut tuple = serializer.serialize_tuple_variant("E", 0, "T", 1)?;
                tuple.serialize_field(&inner)?;
                tuple.end()
            }
            Level::Some => serializer.serialize_some(&inner),
            Level::Newtype => serializer.serialize_newtype_struct("N", &inner),
        }
    }
}

/// Encodes with and without typed arrays, to memory and to a writer; all must agree.
fn written<T: Serialize + ?Sized>(value: &T, depth: usize) -> Vec<tenarc::Result<Vec<u8>>> {
    [false, true]
        .map(|typed| {
            let options = EncodeOptions::default().with_max_depth(depth).with_typed_arrays(typed);
            let mut buffer = b"before".to_vec();
            let appended = tenarc::ser::append_to_with(&mut buffer, value, options);
            let mut sink = Vec::new();
            let streamed = tenarc::ser::to_writer_with(&mut sink, value, options);
            assert_eq!(appended.is_ok(), streamed.is_ok());
            if appended.is_err() {
                assert_eq!(buffer, b"before", "nothing of it stays");
            } else {
                assert_eq!(&buffer[6..], sink);
            }
            appended.map(|()| sink)
        })
        .into()
}

/// Whatever is written within a limit is read within it.
fn is_read_where_written<T: Serialize + ?Sized>(value: &T, depth: usize, what: &str) -> bool {
    let mut all = true;
    for result in written(value, depth) {
        match result {
            Ok(bytes) => {
                let limits = Limits::default().with_max_depth(depth);
                let options = DecodeOptions::default().with_limits(limits);
                let check = |result: tenarc::Result<()>, kind: &str| {
                    assert!(result.is_ok(), "{what} within {depth} as {kind}: {result:?}");
                };
                let any = tenarc::de::from_slice_with::<IgnoredAny>(&bytes, options);
                check(any.map(drop), "IgnoredAny");
                let value = tenarc::de::from_slice_with::<Value>(&bytes, options);
                check(value.as_ref().map(drop).map_err(|_| panic!("{what}: {value:?}")), "Value");
                let raw = tenarc::de::from_reader_with::<_, Box<RawValue>>(&bytes[..], options);
                check(raw.map(drop), "RawValue");
                is_well_formed(&bytes);
                // And is written again from there.
                let options = EncodeOptions::default().with_max_depth(depth);
                let again = tenarc::ser::to_vec_with(&value.unwrap(), options);
                check(again.map(drop), "written again");
            }
            Err(error) => {
                assert_eq!(error.category(), Limit, "{what} within {depth}: {error}");
                all = false;
            }
        }
    }
    all
}

fn leaves(check: &mut dyn FnMut(&str, &dyn erased::Leaf)) {
    let raw = RawValue::from_bytes(&[0x81, 0x82, 0x01, 0x80]).unwrap();
    check("integer", &7u8);
    check("text", &"a");
    check("null", &());
    check("bignum", &u128::MAX);
    check("negative bignum", &i128::MIN);
    check("wide integer that is small", &7u128);
    check("Some of nothing", &Some(()));
    check("Some of Some of nothing", &Some(Some(None::<u8>)));
    check("floats", &vec![0.5f64; 10]);
    check("integers", &vec![7u32; 1000]);
    check("few", &vec![0.5f64; 2]);
    check("none", &Vec::<f32>::new());
    check("mixed", &(0.5f32, vec![1u8], "b"));
    check("tensor", &Tensor(vec![1.5f32, 2.5]));
    check("scalar tensor", &Tensor(arr0(7u8)));
    check("bool tensor", &Tensor(vec![true, false]));
    check("empty tensor", &Tensor(Vec::<f64>::new()));
    check("complex tensor", &Tensor(vec![Complex::new(1.0f32, 2.0)]));
    check("numbers", &Numbers::from(vec![1u16, 2]));
    check("complex numbers", &Numbers::from(vec![Complex::new(1.0f64, 2.0)]));
    check("tags", &Value::Tag(99, Box::new(Value::Tag(100, Box::new(Value::Null)))));
    check("raw", &raw);
    check("unit variant", &crate::messages::support::Kind::Unit);
    check("tuple variant", &crate::messages::support::Kind::Tuple(1, "x".into()));
    check("struct variant", &crate::messages::support::Kind::Struct { a: 0.5 });
}

/// `Serialize` without its type.
mod erased {
    use serde::Serialize;

    use super::{Deep, LEVELS, is_read_where_written};

    pub trait Leaf {
        /// How many of the depths tried were deep enough, for each kind of level.
        fn check(&self, name: &str, outer: usize, depths: &mut dyn Iterator<Item = usize>)
        -> usize;
    }

    impl<T: Serialize> Leaf for T {
        fn check(
            &self,
            name: &str,
            outer: usize,
            depths: &mut dyn Iterator<Item = usize>,
        ) -> usize {
            let mut enough = 0;
            for depth in depths {
                for level in LEVELS {
                    let what = format!("{name} in {outer} levels of {level:?}");
                    let value = Deep(level, outer, self);
                    enough += usize::from(is_read_where_written(&value, depth, &what));
                }
            }
            enough
        }
    }
}

// 22
#[test]
fn what_is_written_within_a_limit_is_read_within_it() {
    leaves(&mut |name, leaf| {
        for outer in 0..3 {
            let enough = leaf.check(name, outer, &mut (0..9));
            assert!(enough >= 9 * 2, "{name}: {enough}");
        }
    });
}

// 22
#[test]
fn what_is_written_within_the_default_limit_is_read_within_it() {
    // Without optimisation, frames take the whole stack that a test has.
    on_stack(4 << 20, || {
        leaves(&mut |name, leaf| {
            // Notation and raw values are read as well.
            for outer in 124..130 {
                leaf.check(name, outer, &mut [128].into_iter());
            }
        });
    });
}

// 22
#[test]
fn deeper_values_are_errors_before_anything_is_lost() {
    for level in [Level::Seq, Level::Collected, Level::MapValue, Level::NewtypeVariant] {
        for levels in [129, 1000] {
            for result in written(&Deep(level, levels, &1u8), 128) {
                assert_eq!(result.unwrap_err().category(), Limit, "{level:?}");
            }
            let error = tenarc::to_value(&Deep(level, levels, &1u8)).unwrap_err();
            assert_eq!(error.category(), Limit, "{level:?}");
        }
    }
    for levels in [129, 1000] {
        let options = Deep(Level::Some, levels, &());
        assert_eq!(tenarc::to_vec(&options).unwrap_err().category(), Limit);
        assert_eq!(tenarc::to_value(&options).unwrap_err().category(), Limit);
    }
}

// 22
#[test]
fn both_ways_to_write_agree_on_what_fits() {
    for level in LEVELS {
        for levels in [60, 63, 64, 65, 127, 128, 129] {
            let value = Deep(level, levels, &1u8);
            let fits = match level {
                // Two levels each.
                Level::TupleVariant => levels <= 64,
                // None at all.
                Level::Newtype => true,
                _ => levels <= 128,
            };
            assert_eq!(tenarc::to_vec(&value).is_ok(), fits, "{level:?} {levels}");
            assert_eq!(tenarc::to_value(&value).is_ok(), fits, "{level:?} {levels} as Value");
        }
    }
}

#[derive(Serialize, serde::Deserialize, Debug, Default, PartialEq)]
struct List {
    next: Option<Box<List>>,
}

// 22
#[test]
fn recursive_values_come_back_up_to_the_limit() {
    fn back<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> bool {
        let Ok(bytes) = tenarc::to_vec(value) else {
            assert!(tenarc::to_value(value).is_err());
            return false;
        };
        assert_eq!(tenarc::from_slice::<T>(&bytes).unwrap(), *value);
        let made = tenarc::to_value(value).unwrap();
        assert_eq!(tenarc::from_value::<T>(made).unwrap(), *value);
        true
    }
    on_small_stack(|| {
        let mut list = List::default();
        let mut nest = Nest(vec![]);
        for levels in 1..200 {
            assert_eq!(back(&list), levels <= 128);
            assert_eq!(back(&nest), levels <= 128);
            list = List { next: Some(Box::new(list)) };
            nest = Nest(vec![nest]);
        }
    });
}

// 22
#[test]
fn too_deep_a_raw_value_is_not_written() {
    let deep = [vec![0x81; 100], vec![0x80]].concat();
    let raw = RawValue::from_bytes(&deep).unwrap();
    let fits = Deep(Level::Seq, 27, raw);
    is_well_formed(&tenarc::to_vec(&fits).unwrap());
    let error = tenarc::to_vec(&Deep(Level::Seq, 28, raw)).unwrap_err();
    assert_eq!(error.category(), Limit);
}

// 22
#[test]
fn a_serializer_says_that_its_stream_is_broken() {
    struct Counted(Vec<u8>);

    impl Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut serializer = tenarc::Serializer::new(Counted(Vec::new()));
    1u8.serialize(&mut serializer).unwrap();
    let error = Deep(Level::Seq, 200, &1u8).serialize(&mut serializer).unwrap_err();
    assert_eq!(error.category(), Limit);
    2u8.serialize(&mut serializer).unwrap_err();
    vec![2u8].serialize(&mut serializer).unwrap_err();
    assert_eq!(serializer.into_inner().0, [1], "only what was whole");
}
