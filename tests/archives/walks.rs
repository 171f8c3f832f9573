//! Values that serialize differently in the two passes of a save.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::ser::{Error as _, SerializeStruct as _};
use serde::{Serialize, Serializer};
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::tensor::Order;
use tenarc::{Archive, DType, DynTensor, IArchive, OArchive, Value};

use super::support::{Dir, contents, from_bytes, quick, variants, weights};

/// One value when walked first, another from the second time on.
struct Changing {
    walks: Cell<usize>,
    first: Value,
    then: Value,
}

impl Serialize for Changing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let walk = self.walks.replace(self.walks.get() + 1);
        if walk == 0 { self.first.serialize(serializer) } else { self.then.serialize(serializer) }
    }
}

fn tensor(len: usize) -> Value {
    let bytes = (0..len).map(|at| at as u8).collect();
    let tensor = DynTensor::new(DType::U8, &[len], Order::C, bytes).unwrap();
    Value::Tensor(Box::new(tensor))
}

fn floats(len: usize) -> Value {
    Value::Array((0..len).map(|at| Value::F32(at as f32)).collect())
}

fn array<const N: usize>(values: [Value; N]) -> Value {
    Value::Array(values.into())
}

/// What may change, by name: the first and the second value.
fn changes() -> Vec<(&'static str, Value, Value)> {
    let text = |text: &str| Value::Text(text.into());
    let big = tensor(5000);
    vec![
        ("text", array([big.clone(), text("a")]), array([big.clone(), text("b")])),
        ("longer text", array([big.clone(), text("a")]), array([big.clone(), text("aa")])),
        ("shorter text", array([big.clone(), text("aa")]), array([big.clone(), text("a")])),
        ("longer payload", array([big.clone()]), array([tensor(5001)])),
        ("shorter payload", array([big.clone()]), array([tensor(4999)])),
        ("payload gone", array([big.clone(), big.clone()]), array([big.clone(), text("")])),
        ("payload more", array([big.clone(), text("")]), array([big.clone(), big.clone()])),
        ("all payloads gone", array([big.clone()]), text("")),
        ("inline instead", array([big.clone(), big.clone()]), array([big.clone(), tensor(5)])),
        ("in a buffer instead", array([big.clone(), tensor(5)]), array([big.clone(), big.clone()])),
        ("elements fewer", array([big.clone(), text("")]), array([big.clone()])),
        ("elements more", array([big.clone()]), array([big.clone(), text("")])),
        ("longer sequence", array([floats(2000)]), array([floats(2001)])),
        ("shorter sequence", array([floats(90_000)]), array([floats(80_000)])),
        ("a sequence of tensors", floats(2000), array([big.clone(), big.clone()])),
        ("bytes instead", array([floats(1250)]), array([Value::Bytes(vec![0; 5000])])),
        ("dtype", array([floats(1250)]), {
            let numbers: Vec<u32> = (0..1250).collect();
            array([Value::Numbers(Box::new(numbers.into()))])
        }),
        ("a sequence mixed late", array([floats(100_001)]), {
            let Value::Array(mut items) = floats(100_000) else { unreachable!() };
            items.push(Value::Text("end".into()));
            array([Value::Array(items)])
        }),
        ("shape", array([big.clone()]), {
            let tensor = DynTensor::new(DType::U8, &[2, 2500], Order::C, vec![0; 5000]).unwrap();
            array([Value::Tensor(Box::new(tensor))])
        }),
    ]
}

fn changing(first: &Value, then: &Value) -> Changing {
    Changing { walks: Cell::new(0), first: first.clone(), then: then.clone() }
}

/// Over a plain writer nothing can be taken back: the archive is broken, and says so.
#[track_caller]
fn breaks_a_stream<T: Serialize>(name: &str, options: SaveOptions, value: &T) {
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save("before").unwrap();
    let position = out.position();
    let error = out.save(value).map(drop).unwrap_err();
    assert_eq!(error.category(), Category::Data, "{name}: {error}");
    for _ in 0..2 {
        let refused = out.save("after").map(drop).unwrap_err();
        assert!(refused.to_string().contains("broken"), "{name}: {refused}");
        let refused = out.commit().map(drop).unwrap_err();
        assert!(refused.to_string().contains("broken"), "{name}: {refused}");
    }
    assert_eq!(out.segments(), 1, "{name}");
    let bytes = out.get_ref().clone();
    assert!(out.finish().is_err());
    assert!(bytes.len() as u64 >= position);
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load::<String>().unwrap(), "before");
    let torn = input.load::<Value>().unwrap_err();
    assert_eq!(torn.category(), Category::Torn, "{name}: {torn}");
}

/// A file is cut back, and takes further values.
#[track_caller]
fn spares_a_file<T: Serialize>(name: &str, options: &SaveOptions, value: impl Fn() -> T) {
    let dir = Dir::new();
    let path = dir.file("a.tenarc");
    tenarc::archive::save_with(&path, "old", quick()).unwrap();
    let old = contents(&path);

    let error = tenarc::archive::save_with(&path, &value(), options.clone()).unwrap_err();
    assert_eq!(error.category(), Category::Data, "{name}: {error}");
    assert!(contents(&path) == old, "{name}");
    assert_eq!(dir.names(), ["a.tenarc"], "{name}");

    for append in [false, true] {
        let mut out = if append {
            OArchive::append_with(&path, options.clone()).unwrap()
        } else {
            OArchive::create(&path, options.clone()).unwrap()
        };
        let before = out.segments();
        out.save(&weights(1000, 1)).unwrap();
        let position = out.position();
        for _ in 0..2 {
            out.save_as("changes", &value()).map(drop).unwrap_err();
            assert_eq!((out.segments(), out.position()), (before + 1, position), "{name}");
        }
        out.save("after").unwrap();
        out.finish().unwrap();
        assert_eq!(dir.names(), ["a.tenarc"], "{name}");
        let file = tenarc::open(&path).unwrap();
        file.verify().unwrap();
        assert_eq!(file.len(), before + 2);
        assert_eq!(file.segment(before + 1).unwrap().load::<String>().unwrap(), "after");
    }
}

#[test]
fn a_value_that_changes_between_the_walks_is_an_error() {
    for (name, first, then) in changes() {
        breaks_a_stream(name, quick(), &changing(&first, &then));
        spares_a_file(name, &quick(), || changing(&first, &then));
    }
}

#[test]
fn a_value_that_changes_is_noticed_under_dedup_too() {
    for (name, first, then) in changes() {
        for checksums in [false, true] {
            let options = quick().with_dedup(true).with_checksums(checksums);
            breaks_a_stream(name, options.clone(), &changing(&first, &then));
        }
    }
    // Only their equality told that these two can share a buffer.
    let other = DynTensor::new(DType::U8, &[5000], Order::C, vec![9; 5000]).unwrap();
    let (first, then) = (
        array([tensor(5000), tensor(5000)]),
        array([tensor(5000), Value::Tensor(Box::new(other))]),
    );
    breaks_a_stream("tied", quick().with_dedup(true), &changing(&first, &then));
}

/// Shuffled anew in each walk.
#[derive(Serialize)]
struct Rebuilt {
    #[serde(serialize_with = "rebuilt")]
    map: Vec<String>,
    weight: tenarc::Tensor<Vec<f32>>,
}

fn rebuilt<S: Serializer>(keys: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    let map: HashMap<&str, usize> = keys.iter().map(|key| (key.as_str(), key.len())).collect();
    map.serialize(serializer)
}

#[test]
fn a_hash_map_rebuilt_while_it_is_serialized_is_an_error_that_says_so() {
    let value = || Rebuilt {
        map: (0..100).map(|n| format!("key {n}")).collect(),
        weight: weights(1000, 1),
    };
    breaks_a_stream("rebuilt", quick(), &value());
    spares_a_file("rebuilt", &quick(), value);
    let error = OArchive::new(Vec::new()).unwrap().save(&value()).map(drop).unwrap_err();
    assert!(error.to_string().contains("HashMap"), "{error}");
    // Without a second walk there is nothing to differ.
    let small = Rebuilt { weight: weights(3, 1), ..value() };
    OArchive::new(Vec::new()).unwrap().save(&small).unwrap();
}

/// Ends in the walk of a number, before or behind the tensor.
struct Ending {
    walks: Cell<usize>,
    walk: usize,
    before: bool,
    panics: bool,
}

impl Ending {
    fn new(walk: usize, before: bool, panics: bool) -> Self {
        Self { walks: Cell::new(0), walk, before, panics }
    }

    fn end<E: serde::ser::Error>(&self) -> Result<(), E> {
        assert!(!self.panics, "the value panics");
        Err(E::custom("the value fails"))
    }
}

impl Serialize for Ending {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ends = self.walks.replace(self.walks.get() + 1) == self.walk;
        let mut fields = serializer.serialize_struct("Ending", 2)?;
        if ends && self.before {
            self.end().map_err(S::Error::custom::<tenarc::Error>)?;
        }
        fields.serialize_field("weight", &weights(100_000, 1))?;
        if ends {
            self.end().map_err(S::Error::custom::<tenarc::Error>)?;
        }
        fields.serialize_field("text", "text")?;
        fields.end()
    }
}

#[test]
fn a_value_that_fails_in_either_walk() {
    for before in [true, false] {
        // In the first walk nothing was written yet, so that a stream goes on, too.
        let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
        let error = out.save(&Ending::new(0, before, false)).map(drop).unwrap_err();
        assert!(error.to_string().contains("the value fails"), "{error}");
        out.save("after").unwrap();
        assert_eq!(from_bytes::<String>(&out.finish().unwrap()), "after");

        breaks_a_stream("second walk", quick(), &Ending::new(1, before, false));
        for walk in [0, 1] {
            spares_a_file("fails", &quick(), || Ending::new(walk, before, false));
        }
    }
}

#[test]
fn a_value_that_panics_leaves_no_trace_of_a_file() {
    for (walk, before) in [(0, true), (0, false), (1, true), (1, false)] {
        let dir = Dir::new();
        let path = dir.file("a.tenarc");
        tenarc::archive::save_with(&path, "old", quick()).unwrap();
        let old = contents(&path);
        let value = AssertUnwindSafe(Ending::new(walk, before, true));
        assert!(catch_unwind(|| tenarc::archive::save_with(&path, &*value, quick())).is_err());
        assert!(contents(&path) == old);
        assert_eq!(dir.names(), ["a.tenarc"]);

        let mut out = AssertUnwindSafe(OArchive::append_with(&path, quick()).unwrap());
        let value = AssertUnwindSafe(Ending::new(walk, before, true));
        assert!(catch_unwind(move || out.save(&*value).map(drop)).is_err());
        assert!(contents(&path) == old, "cut back when dropped");

        // Caught outside the archive: after the first walk it is as it was.
        let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
        let value = Ending::new(walk, before, true);
        let caught = catch_unwind(AssertUnwindSafe(|| out.save(&value).map(drop)));
        assert!(caught.is_err());
        assert_eq!(out.save("after").is_ok(), walk == 0);
    }
}

#[test]
fn a_value_without_buffers_is_walked_once_and_one_with_them_twice() {
    for (name, options) in variants() {
        let text = changing(&Value::Text("a".into()), &Value::Text("b".into()));
        OArchive::with_options(Vec::new(), options).unwrap().save(&text).unwrap();
        assert_eq!(text.walks.get(), 1, "{name}");
    }
    let first = array([tensor(5000), Value::Null]);
    let same = changing(&first, &first);
    OArchive::with_options(Vec::new(), quick()).unwrap().save(&same).unwrap();
    assert_eq!(same.walks.get(), 2);
    let inline = changing(&first, &first);
    let options = quick().with_inline_below(usize::MAX);
    OArchive::with_options(Vec::new(), options).unwrap().save(&inline).unwrap();
    assert_eq!(inline.walks.get(), 1);
}

#[test]
fn a_callback_is_asked_once_about_each() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    // Every second one, though the value is walked twice.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let options = quick().with_out_of_band(move |_| count.fetch_add(1, Ordering::Relaxed) % 2 == 1);
    let value = (weights(1000, 1), weights(1000, 2), weights(9, 3).0, weights(9, 4));
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(&value).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let apart: Vec<bool> =
        archive.tensors().unwrap().iter().map(|info| info.buffer().is_some()).collect();
    assert_eq!(apart, [false, true, false, true]);
}
