//! Plain sequences of numbers go to buffers by themselves.

use std::cell::Cell;
use std::fmt::Debug;

use ndarray::{Array2, Array3, ArrayD};
use serde::de::DeserializeOwned;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Serialize, Serializer};
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::{Archive, IArchive, OArchive, Value};

use super::support::{from_bytes, quick, ramp, read_everywhere, round_trip, to_bytes, variants};

/// Elements as a serializer is given them: the announced length, and one by one or at once.
struct Elements<'a, T> {
    items: &'a [T],
    announced: Option<usize>,
    one_by_one: bool,
    walks: Cell<usize>,
}

impl<'a, T> Elements<'a, T> {
    fn new(items: &'a [T], announced: Option<usize>, one_by_one: bool) -> Self {
        Self { items, announced, one_by_one, walks: Cell::new(0) }
    }
}

/// An iterator that claims a length.
struct Claiming<I>(I, Option<usize>);

impl<I: Iterator> Iterator for Claiming<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.1.unwrap_or(0), self.1)
    }
}

impl<T: Serialize> Serialize for Elements<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.walks.set(self.walks.get() + 1);
        if self.one_by_one {
            let mut seq = serializer.serialize_seq(self.announced)?;
            self.items.iter().try_for_each(|item| seq.serialize_element(item))?;
            return seq.end();
        }
        serializer.collect_seq(Claiming(self.items.iter(), self.announced))
    }
}

/// A number of any type, or something else: what a sequence may turn out to hold.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
#[serde(untagged)]
enum Any {
    Integer(u64),
    Single(f32),
    Text(String),
    None(Option<u8>),
}

fn written<T: Serialize + ?Sized>(value: &T) -> tenarc::Result<Vec<u8>> {
    let mut out = OArchive::with_options(Vec::new(), quick())?;
    out.save(value)?;
    out.finish()
}

fn buffers(bytes: &[u8]) -> usize {
    Archive::new(bytes).unwrap().segment(0).unwrap().buffers().len()
}

#[track_caller]
fn reads<T: DeserializeOwned + PartialEq + Debug>(bytes: &[u8], expected: &T) {
    Archive::new(bytes).unwrap().verify().unwrap();
    for (way, read) in read_everywhere::<T>(bytes) {
        assert!(read.unwrap_or_else(|error| panic!("{way}: {error}")) == *expected, "{way}");
    }
}

#[test]
fn plain_vectors_of_every_number_type() {
    macro_rules! each {
        ($($type:ty)*) => {$(
            for len in [0usize, 1, 3, 4, 7, 8, 127, 128, 1023, 1024, 2048, 40_000] {
                let numbers: Vec<$type> = (0..len).map(|at| (at % 100) as $type).collect();
                let bytes = to_bytes(&numbers, quick());
                let large = len * size_of::<$type>() >= 2048;
                assert_eq!(buffers(&bytes), usize::from(large), "{len} of {}", stringify!($type));
                reads(&bytes, &numbers);
            }
        )*};
    }
    each!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);
}

#[test]
fn every_option_keeps_them() {
    round_trip(&(
        (0..5000).map(f64::from).collect::<Vec<f64>>(),
        (0..5000).collect::<Vec<i64>>(),
        vec![vec![0.5f32; 3000]; 12],
        vec![vec![0u8; 3]; 3],
        vec![Some(1.5f32); 3000],
        vec![(1.0f32, 2.0f32); 500],
    ));
}

#[test]
fn arrays_by_the_serde_feature_of_ndarray() {
    let square = Array2::from_shape_fn((80, 90), |(a, b)| (a * b) as f32);
    let cube = Array3::from_shape_fn((10, 20, 30), |(a, b, c)| (a * b * c) as i64);
    let stepped = ramp(&[40, 50]).slice_move(ndarray::s![..;2, ..;-1]).into_dyn();
    let value: (Array2<f32>, Array3<i64>, ArrayD<f32>) = (square, cube, stepped);
    let bytes = to_bytes(&value, quick());
    assert_eq!(buffers(&bytes), 3);
    round_trip(&value);
}

#[test]
fn tuples_and_arrays_are_never_packed() {
    let tuple = [[0.5f32; 32]; 32];
    assert_eq!(buffers(&to_bytes(&tuple, quick().with_inline_below(0))), 0);
    round_trip(&tuple);
}

#[test]
fn sequences_of_known_and_unknown_length_one_by_one_and_at_once() {
    for len in [0, 5, 511, 512, 513, 16_383, 16_384, 16_385, 100_000] {
        let numbers: Vec<f32> = (0..len).map(|at| at as f32).collect();
        for one_by_one in [false, true] {
            for announced in [Some(len), None] {
                let value = Elements::new(&numbers, announced, one_by_one);
                let bytes = to_bytes(&value, quick());
                // Of a sequence without a length nothing tells that it could be packed.
                let large = announced.is_some() && len * 4 >= 2048;
                assert_eq!(buffers(&bytes), usize::from(large));
                assert_eq!(value.walks.get(), 1 + usize::from(large));
                assert!(from_bytes::<Vec<f32>>(&bytes) == numbers);
            }
        }
    }
}

#[test]
fn wrong_lengths_are_errors() {
    for len in [600, 100_000] {
        let numbers: Vec<f32> = (0..len).map(|at| at as f32).collect();
        for one_by_one in [false, true] {
            for announced in [0, 1, len - 1, len + 1, 2 * len, usize::MAX / 8, usize::MAX] {
                let value = Elements::new(&numbers, Some(announced), one_by_one);
                let error = written(&value).unwrap_err();
                assert_eq!(error.category(), Category::Data, "{announced} of {len}: {error}");
                // With what stands around it.
                let value = (1, Elements::new(&numbers, Some(announced), one_by_one), &numbers);
                assert!(written(&value).is_err());
            }
        }
    }
}

/// So many numbers, then something else, then numbers again.
fn mixed(before: usize, other: Any, behind: usize) -> Vec<Any> {
    let mut items: Vec<Any> = (0..before).map(|at| Any::Single(at as f32)).collect();
    items.push(other);
    items.extend((0..behind).map(|at| Any::Single(at as f32)));
    items
}

#[test]
fn a_sequence_that_changes_its_type_is_written_plainly() {
    for (before, behind) in [(1, 0), (500, 3000), (16_384, 0), (16_385, 7), (100_000, 300)] {
        for other in [Any::Text("end".into()), Any::Integer(1), Any::None(None)] {
            let items = mixed(before, other.clone(), behind);
            for one_by_one in [false, true] {
                if before == 100_000 && (one_by_one || other != Any::Integer(1)) {
                    // One of these is enough.
                    continue;
                }
                let value = Elements::new(&items, Some(items.len()), one_by_one);
                let bytes = to_bytes(&value, quick());
                assert_eq!(buffers(&bytes), 0);
                assert!(from_bytes::<Vec<Any>>(&bytes) == items, "{before}, {other:?}");
            }
        }
    }
}

#[test]
fn many_sequences_that_change_late_among_others_that_do_not() {
    let even: Vec<f32> = (0..2000).map(|at| at as f32).collect();
    let late = mixed(17_000, Any::Text("end".into()), 10);
    for count in [1, 8, 9, 20] {
        let value: Vec<(&[f32], Elements<Any>)> = (0..count)
            .map(|_| (&even[..], Elements::new(&late, Some(late.len()), false)))
            .collect();
        let bytes = to_bytes(&value, quick().with_columns(false));
        // Beyond so many restarts no sequence goes to a buffer.
        let expected = if count <= 8 { count } else { 0 };
        assert_eq!(buffers(&bytes), expected, "{count}");
        let walks = value[0].1.walks.get();
        assert!(walks <= 11, "{walks} walks");
        let back: Vec<(Vec<f32>, Vec<Any>)> = from_bytes(&bytes);
        assert_eq!(back.len(), count);
        assert!(back.iter().all(|(a, b)| *a == even && *b == late), "{count}");
    }
}

#[test]
fn late_changes_do_not_disturb_tensors_nor_dedup() {
    let late = mixed(17_000, Any::Text("end".into()), 10);
    let even = vec![0.5f32; 5000];
    for (name, options) in variants() {
        let sequence = Elements::new(&late, Some(late.len()), true);
        let value = (super::support::weights(5000, 1), &sequence, &even, &even);
        let bytes = to_bytes(&value, options);
        let back: (tenarc::Tensor<Vec<f32>>, Vec<Any>, Vec<f32>, Vec<f32>) = from_bytes(&bytes);
        assert_eq!(back.0, super::support::weights(5000, 1), "{name}");
        assert!(back.1 == late && back.2 == even && back.3 == even, "{name}");
    }
}

#[test]
fn nested_sequences_inside_one_that_turned_out_mixed() {
    // Numbers, and then a sequence of numbers where one was expected.
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(untagged)]
    enum Item {
        Single(f32),
        List(Vec<f32>),
    }
    let list: Vec<f32> = (0..3000).map(|at| at as f32).collect();
    for before in [600, 40_000] {
        let items: Vec<Item> = (0..before)
            .map(|at| Item::Single(at as f32))
            .chain((0..3).map(|_| Item::List(list.clone())))
            .collect();
        let value = (&items, &list);
        let bytes = to_bytes(&value, quick());
        assert_eq!(buffers(&bytes), 4);
        assert!(from_bytes::<(Vec<Item>, Vec<f32>)>(&bytes) == (items, list.clone()));
    }
}

#[test]
fn an_element_that_fails_leaves_a_stream_in_order() {
    struct Fails(bool);
    impl Serialize for Fails {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if self.0 {
                return Err(serde::ser::Error::custom("the element fails"));
            }
            serializer.serialize_f32(0.5)
        }
    }
    for before in [1, 600, 50_000] {
        for one_by_one in [false, true] {
            let mut items: Vec<Fails> = (0..before).map(|_| Fails(false)).collect();
            items.push(Fails(true));
            let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
            let value = Elements::new(&items, Some(items.len() + 100), one_by_one);
            let error = out.save(&value).map(drop).unwrap_err();
            assert!(error.to_string().contains("the element fails"), "{before}: {error}");
            out.save("after").unwrap();
            let bytes = out.finish().unwrap();
            assert_eq!(from_bytes::<String>(&bytes), "after");
        }
    }
}

#[test]
fn sequences_read_as_what_they_are() {
    let numbers: Vec<i64> = (0..3000).collect();
    let bytes = to_bytes(&numbers, quick());
    // As other numbers, as a tensor, as a value, as the elements of a fixed array.
    reads::<Vec<u16>>(&bytes, &(0..3000).collect());
    reads::<tenarc::Tensor<Vec<i64>>>(&bytes, &tenarc::Tensor(numbers.clone()));
    reads::<Value>(&bytes, &Value::Numbers(Box::new(numbers.into())));
    let error = IArchive::new(&bytes[..]).unwrap().load::<Vec<u8>>().unwrap_err();
    assert_eq!(error.category(), Category::Mismatch);
    let error = IArchive::new(&bytes[..]).unwrap().load::<Vec<String>>().unwrap_err();
    assert_eq!(error.category(), Category::Mismatch);
    let options = SaveOptions::default().with_inline_below(0);
    reads::<[f32; 8]>(&to_bytes(&vec![0.5f32; 8], options), &[0.5; 8]);
}
