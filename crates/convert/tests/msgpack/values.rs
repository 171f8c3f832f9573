//! Values beside rmp-serde, with msgpack-numpy's arrays, into archives and back.

use std::collections::HashSet;
use std::fs;

use half::bf16;
use ndarray::{Array2, ArrayD, IxDyn, ShapeBuilder as _, array};
use num_complex::Complex;
use proptest::prelude::*;
use tenarc::archive::SaveOptions;
use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, OArchive, Tensor, Value, to_value};
use tenarc_convert::msgpack::{self, Options};
use tenarc_convert::{Format, Loss, Losses};

fn written(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    msgpack::write(&mut bytes, value).unwrap();
    bytes
}

/// Reads and writes again.
fn again(bytes: &[u8]) -> Vec<u8> {
    written(&msgpack::read(bytes).unwrap())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn tensor(tensor: impl Into<DynTensor>) -> Value {
    Value::Tensor(Box::new(tensor.into()))
}

/// A byte string.
fn bin(bytes: &[u8]) -> Vec<u8> {
    [&[0xc4, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

fn string(text: &str) -> Vec<u8> {
    [&[0xa0 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

/// An array as `msgpack.packb(array, default=msgpack_numpy.encode)` gives it.
fn numpy(descr: &str, shape: &[u8], data: &[u8]) -> Vec<u8> {
    let shape = [&[0x90 | u8::try_from(shape.len()).unwrap()], shape].concat();
    let fields = [
        [bin(b"nd"), vec![0xc3]],
        [bin(b"type"), string(descr)],
        [bin(b"kind"), bin(b"")],
        [bin(b"shape"), shape],
        [bin(b"data"), bin(data)],
    ];
    [vec![0x85], fields.concat().concat()].concat()
}

#[test]
fn every_kind_of_value_has_its_shortest_form() {
    let cases: Vec<(Value, Vec<u8>)> = vec![
        (Value::Null, vec![0xc0]),
        (Value::Bool(false), vec![0xc2]),
        (Value::Bool(true), vec![0xc3]),
        (Value::Integer(0), vec![0]),
        (Value::Integer(127), vec![0x7f]),
        (Value::Integer(128), vec![0xcc, 0x80]),
        (Value::Integer(256), vec![0xcd, 1, 0]),
        (Value::Integer(65536), vec![0xce, 0, 1, 0, 0]),
        (Value::Integer(1 << 32), vec![0xcf, 0, 0, 0, 1, 0, 0, 0, 0]),
        (Value::Integer(u64::MAX.into()), [&[0xcf][..], &[0xff; 8]].concat()),
        (Value::Integer(-1), vec![0xff]),
        (Value::Integer(-32), vec![0xe0]),
        (Value::Integer(-33), vec![0xd0, 0xdf]),
        (Value::Integer(-128), vec![0xd0, 0x80]),
        (Value::Integer(-129), vec![0xd1, 0xff, 0x7f]),
        (Value::Integer(-32769), vec![0xd2, 0xff, 0xff, 0x7f, 0xff]),
        (Value::Integer(i64::MIN.into()), vec![0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        (Value::F32(1.5), vec![0xca, 0x3f, 0xc0, 0, 0]),
        (Value::F64(1.5), vec![0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
        (text("é"), vec![0xa2, 0xc3, 0xa9]),
        (text(&"x".repeat(32)), [&[0xd9, 32][..], &[b'x'; 32]].concat()),
        (text(&"x".repeat(256)), [&[0xda, 1, 0][..], &[b'x'; 256]].concat()),
        (text(&"x".repeat(65536)), [&[0xdb, 0, 1, 0, 0][..], &vec![b'x'; 65536]].concat()),
        (Value::Bytes(vec![]), vec![0xc4, 0]),
        (Value::Bytes(vec![7; 256]), [&[0xc5, 1, 0][..], &[7; 256]].concat()),
        (Value::Bytes(vec![7; 65536]), [&[0xc6, 0, 1, 0, 0][..], &vec![7; 65536]].concat()),
        (Value::Array(vec![]), vec![0x90]),
        (Value::Array(vec![Value::Null; 16]), [&[0xdc, 0, 16][..], &[0xc0; 16]].concat()),
        (
            Value::Map(vec![(Value::Integer(1), Value::Null), (Value::Null, text("a"))]),
            vec![0x82, 1, 0xc0, 0xc0, 0xa1, b'a'],
        ),
    ];
    for (value, bytes) in cases {
        assert_eq!(written(&value), bytes, "{value}");
        assert_eq!(msgpack::read(&bytes[..]).unwrap(), value);
    }
}

#[test]
fn floats_keep_their_width_and_every_bit() {
    for bits in [0, 0x7fc0_0001, 0xff80_0000, 0x8000_0000, 1] {
        let bytes = [&[0xca][..], &u32::to_be_bytes(bits)].concat();
        assert_eq!(again(&bytes), bytes);
    }
    for bits in [0x7ff8_0000_dead_beef, 0xfff0_0000_0000_0000, 0x3ff0_0000_0000_0000] {
        let bytes = [&[0xcb][..], &u64::to_be_bytes(bits)].concat();
        assert_eq!(again(&bytes), bytes);
    }
}

#[test]
fn extensions_are_maps_that_are_written_as_extensions() {
    for len in [0usize, 1, 2, 3, 4, 8, 16, 17, 256, 65536] {
        let value = Value::Map(vec![
            (text("msgpack_ext"), Value::Integer(-1)),
            (text("data"), Value::Bytes(vec![5; len])),
        ]);
        let bytes = written(&value);
        assert!((0xc7..=0xc9).contains(&bytes[0]) || (0xd4..=0xd8).contains(&bytes[0]), "{len}");
        assert_eq!(msgpack::read(&bytes[..]).unwrap(), value);
    }
    // A timestamp as Python's `msgpack.packb(datetime, datetime=True)` gives it.
    let stamp = [0xd6, 0xff, 0x65, 0, 0, 0];
    assert_eq!(again(&stamp), stamp);
    let map = [&[0x82][..], &string("msgpack_ext"), &[5], &string("data"), &bin(b"x")].concat();
    let error = msgpack::read(&map[..]).unwrap_err();
    assert!(error.to_string().contains("reserved for extensions"), "{error}");
    // One whose type is none is a map like any other, but cannot be told from one when read.
    let value = Value::Map(vec![
        (text("msgpack_ext"), Value::Integer(128)),
        (text("data"), Value::Bytes(vec![])),
    ]);
    assert!(msgpack::write(Vec::new(), &value).is_err());
}

#[test]
fn arrays_of_numpy_are_tensors_of_every_dtype() {
    fn check(value: impl Into<DynTensor>, descr: &str, shape: &[u8]) {
        let tensor = value.into();
        let bytes = numpy(descr, shape, &tensor.le_bytes());
        assert_eq!(written(&self::tensor(tensor.clone())), bytes, "{descr}");
        assert_eq!(msgpack::read(&bytes[..]).unwrap(), self::tensor(tensor), "{descr}");
    }
    check(array![[true], [false]], "|b1", &[2, 1]);
    check(array![1u8, 255], "|u1", &[2]);
    check(array![-1i8], "|i1", &[1]);
    check(array![1u16], "<u2", &[1]);
    check(array![-2i16], "<i2", &[1]);
    check(array![1u32], "<u4", &[1]);
    check(array![-2i32], "<i4", &[1]);
    check(array![u64::MAX], "<u8", &[1]);
    check(array![i64::MIN], "<i8", &[1]);
    check(array![half::f16::ONE], "<f2", &[1]);
    check(array![[1.5f32, -0.0, f32::INFINITY]], "<f4", &[1, 3]);
    check(Array2::<f64>::zeros((2, 0)), "<f8", &[2, 0]);
    check(array![Complex::new(1.0f32, 2.0)], "<c8", &[1]);
    check(array![Complex::new(1.0f64, 2.0)], "<c16", &[1]);
}

#[test]
fn big_endian_elements_and_old_writers_keys_are_read() {
    let big = numpy(">i4", &[2], &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe]);
    assert_eq!(msgpack::read(&big[..]).unwrap(), tensor(array![1i32, -2]));
    let big = numpy(">c8", &[1], &[1.0f32.to_be_bytes(), 2.0f32.to_be_bytes()].concat());
    assert_eq!(msgpack::read(&big[..]).unwrap(), tensor(array![Complex::new(1.0f32, 2.0)]));
    // Without `use_bin_type`, keys and bytes are strings, UTF-8 or not.
    for data in [[0xff, 0xfe], [b'a', 0]] {
        let fields = [
            [string("nd"), vec![0xc3]],
            [string("type"), string("<u2")],
            [string("shape"), vec![0x91, 1]],
            [string("data"), [vec![0xa2], data.to_vec()].concat()],
        ];
        let bytes = [vec![0x84], fields.concat().concat()].concat();
        let expected = tensor(array![u16::from_le_bytes(data)]);
        assert_eq!(msgpack::read(&bytes[..]).unwrap(), expected);
    }
}

#[test]
fn scalars_and_complex_numbers_are_tensors_without_dimensions() {
    let fields = [
        [bin(b"nd"), vec![0xc2]],
        [bin(b"type"), string("<f4")],
        [bin(b"data"), bin(&1.5f32.to_le_bytes())],
    ];
    let scalar = [vec![0x83], fields.concat().concat()].concat();
    let expected = tensor(ArrayD::from_elem(IxDyn(&[]), 1.5f32));
    assert_eq!(msgpack::read(&scalar[..]).unwrap(), expected);
    assert_eq!(written(&expected), scalar);

    let fields = [[bin(b"complex"), vec![0xc3]], [bin(b"data"), string("(1-2j)")]];
    let complex = [vec![0x82], fields.concat().concat()].concat();
    let expected = tensor(ArrayD::from_elem(IxDyn(&[]), Complex::new(1.0f64, -2.0)));
    assert_eq!(msgpack::read(&complex[..]).unwrap(), expected);
}

#[test]
fn what_is_no_tensor_is_refused_by_name() {
    let with_kind = |kind: &[u8]| {
        let fields = [
            [bin(b"nd"), vec![0xc3]],
            [bin(b"type"), vec![0x90]],
            [bin(b"kind"), bin(kind)],
            [bin(b"shape"), vec![0x90]],
            [bin(b"data"), bin(b"\x80\x04.")],
        ];
        [vec![0x85], fields.concat().concat()].concat()
    };
    let cases = [
        (with_kind(b"V"), "structured"),
        (with_kind(b"O"), "pickled"),
        (with_kind(b"X"), "kind `X`"),
        (with_kind(b""), "structured"),
        (numpy("<M8[s]", &[1], &[0; 8]), "`<M8[s]`"),
        (numpy("<f4", &[3], &[0; 8]), "8 bytes do not make a f32 tensor of shape [3]"),
        (numpy("|b1", &[1], &[2]), "byte 2"),
        (numpy("<f4", &[0xff], &[]), "whole numbers"),
        (vec![0xa1, 0xff], "not UTF-8"),
        (vec![0xc1], "0xc1"),
        (vec![0xc0, 0xc0], "expected the end"),
    ];
    for (bytes, why) in cases {
        let error = msgpack::read(&bytes[..]).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, expected {why}");
    }
    let huge = [numpy("<f4", &[], &[]), vec![]].concat();
    let at = huge.windows(5).position(|part| part == b"shape").unwrap();
    let mut huge = huge;
    // Dimensions whose product does not fit.
    let dims = [vec![0x93], [[0xcf].to_vec(), vec![0x7f; 8]].concat().repeat(3)].concat();
    huge.splice(at + 5..at + 6, dims);
    assert!(msgpack::read(&huge[..]).is_err());
}

#[test]
fn maps_with_more_or_other_fields_stay_maps() {
    let value = Value::Map(vec![(text("nd"), Value::Bool(true)), (text("data"), Value::Null)]);
    assert_eq!(msgpack::read(&written(&value)[..]).unwrap(), value);
    // What would be read as something else is told.
    let value = Value::Map(vec![
        (text("nd"), Value::Bool(true)),
        (text("type"), text("<f4")),
        (text("data"), Value::Bytes(vec![])),
    ]);
    let error = msgpack::write(Vec::new(), &value).unwrap_err();
    assert!(error.to_string().contains("would be read as one"), "{error}");
}

#[test]
fn what_messagepack_has_not_is_a_loss() {
    let f8 = DynTensor::new(DType::F8E4M3, &[1], Order::C, vec![1]).unwrap();
    let cases = [
        (Value::Tag(99, Box::new(text("a"))), "tag 99", text("a")),
        (Value::Simple(23), "simple value 23", Value::Null),
        (Value::Integer(1 << 64), "64 bits", text("18446744073709551616")),
        (Value::Integer(i128::from(i64::MIN) - 1), "64 bits", text("-9223372036854775809")),
        (
            tensor(array![bf16::from_f32(1.5)]),
            "bf16, which are written as f32",
            tensor(array![1.5f32]),
        ),
        (tensor(f8), "f8_e4m3", Value::Null),
        (Value::Tag(2, Box::new(Value::Bytes(vec![1; 17]))), "128 bits", Value::Null),
    ];
    for (value, why, rest) in cases {
        let kept = tensor(ndarray::Array1::from_elem(1, 1.0f32));
        let value = Value::Map(vec![(text("at"), value), (text("kept"), kept)]);
        let mut bytes = Vec::new();
        let error = msgpack::write(&mut bytes, &value).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, expected {why}");
        assert_eq!((error.category(), bytes.len()), (Category::Data, 0));
        let options = Options::default().with_losses(true);
        let losses = msgpack::write_with(&mut bytes, &value, &options).unwrap();
        assert_eq!((losses.count(), losses.listed()[0].path()), (1, "at"));
        assert_eq!(msgpack::read(&bytes[..]).unwrap().get("at"), Some(&rest));
    }
}

#[test]
fn column_major_order_is_a_note() {
    let column_major = Array2::from_shape_fn((2, 3).f(), |(i, j)| u8::try_from(3 * i + j).unwrap());
    let row_major = Array2::from_shape_fn((2, 3), |(i, j)| u8::try_from(3 * i + j).unwrap());
    let mut bytes = Vec::new();
    let losses =
        msgpack::write_with(&mut bytes, &tensor(column_major), &Options::default()).unwrap();
    assert!(losses.is_empty() && losses.notes()[0].contains("row-major order"), "{losses:?}");
    assert_eq!(msgpack::read(&bytes[..]).unwrap(), tensor(row_major));
}

#[test]
fn packed_numbers_are_written_number_by_number() {
    let numbers = Value::Numbers(Box::new(vec![1.5f32, f32::from_bits(0x7f80_0001)].into()));
    assert_eq!(written(&numbers), [0x92, 0xca, 0x3f, 0xc0, 0, 0, 0xca, 0x7f, 0x80, 0, 1]);
    let numbers = Value::Numbers(Box::new(vec![1u64, u64::MAX].into()));
    assert_eq!(written(&numbers)[..3], [0x92, 1, 0xcf]);
}

fn plain() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| Value::Integer(n.into())),
        (0i64..70_000).prop_map(|n| Value::Integer((n - 35_000).into())),
        any::<u64>().prop_map(|n| Value::Integer(n.into())),
        any::<f32>().prop_map(Value::F32),
        any::<f64>().prop_map(Value::F64),
        any::<String>().prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(4, 64, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
            prop::collection::vec((inner.clone(), inner), 0..20).prop_map(|entries| {
                let mut keys = HashSet::new();
                let new = |(key, _): &(Value, Value)| keys.insert(tenarc::to_vec(key).unwrap());
                Value::Map(entries.into_iter().filter(new).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rmp_serde_writes_and_reads_the_same(value in plain()) {
        let bytes = written(&value);
        prop_assert_eq!(&rmp_serde::to_vec(&value).unwrap(), &bytes);
        let theirs: Value = rmp_serde::from_slice(&bytes).unwrap();
        let ours = msgpack::read(&bytes[..]).unwrap();
        prop_assert_eq!(rmp_serde::to_vec(&theirs).unwrap(), rmp_serde::to_vec(&ours).unwrap());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = msgpack::read_with(&bytes[..], Limits::strict());
    }
}

/// A value with something of everything.
fn sample() -> Vec<u8> {
    let parts = [
        vec![0x85],
        [string("a"), numpy("<f4", &[2, 1], &[0; 8])].concat(),
        [string("b"), numpy(">c16", &[1], &[1; 16])].concat(),
        [string("c"), vec![0xd6, 0xff, 1, 2, 3, 4]].concat(),
        [vec![7], vec![0x93, 0xca, 0, 0, 0, 0, 0xdc, 0, 1, 0xc0, 0xd1, 0xff, 0]].concat(),
        [bin(b"k"), bin(b"complex")].concat(),
    ];
    parts.concat()
}

#[test]
fn truncations_and_changed_bytes_are_errors_or_other_values() {
    let bytes = sample();
    assert!(msgpack::read(&bytes[..]).is_ok());
    for len in 0..bytes.len() {
        let error = msgpack::read(&bytes[..len]).unwrap_err();
        assert_eq!(error.category(), Category::Eof, "{len}: {error}");
    }
    let mut refused = 0;
    for at in 0..bytes.len() {
        for byte in 0..=255 {
            let mut changed = bytes.clone();
            changed[at] = byte;
            match msgpack::read_with(&changed[..], Limits::strict()) {
                Ok(value) => drop(msgpack::write(Vec::new(), &value)),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn a_key_stands_once_in_a_map() {
    for twice in
        [&b"\x82\xa1a\x01\xa1a\x02"[..], b"\x82\x01\x01\xcd\x00\x01\x02", b"\x82\xc0\xc0\xc0\xc0"]
    {
        let error = msgpack::read(twice).unwrap_err();
        assert!(error.to_string().contains("two entries of this key"), "{error}");
        assert_eq!(error.category(), Category::Data);
    }
    // Of different types, they are different keys.
    let map = msgpack::read(&b"\x83\x01\x01\xa11\x02\xca\x3f\x80\x00\x00\x03"[..]).unwrap();
    assert_eq!(map.as_map().unwrap().len(), 3);
    let map = Value::Map(vec![(text("a"), Value::Null), (text("a"), Value::Bool(true))]);
    let error = msgpack::write(Vec::new(), &map).unwrap_err();
    assert!(error.to_string().contains("the same key as an earlier one"), "{error}");
    let (mut bytes, options) = (Vec::new(), Options::default().with_losses(true));
    assert_eq!(msgpack::write_with(&mut bytes, &map, &options).unwrap().count(), 1);
    assert_eq!(bytes, b"\x81\xa1a\xc0");
}

/// A reader refuses a map in which a key stands twice.
#[test]
fn of_keys_that_are_written_alike_the_first_stays() {
    let tensor = |dtype, bytes| Value::from(DynTensor::new(dtype, &[1], Order::C, bytes).unwrap());
    let wide = Value::Integer(1 << 70);
    let alike = [
        (Value::Null, Value::Simple(99)),
        (Value::Simple(99), Value::Simple(98)),
        (Value::Simple(99), tensor(DType::F8E4M3, vec![1])),
        (wide.clone(), text(&wide.to_string())),
        (tensor(DType::F32, vec![0, 0, 128, 63]), tensor(DType::BF16, vec![128, 63])),
        (Value::Tag(9, Box::new(Value::from(1))), Value::from(1)),
        (Value::Array(vec![Value::Null]), Value::Array(vec![Value::Simple(99)])),
    ];
    let options = Options::default().with_losses(true);
    for (first, second) in alike {
        for (first, second) in [(&first, &second), (&second, &first)] {
            let entries = vec![
                (first.clone(), Value::from(1)),
                (second.clone(), Value::from(2)),
                (text("tensor"), tensor(DType::U8, vec![1])),
            ];
            let map = Value::Map(entries);
            let mut bytes = Vec::new();
            let losses = msgpack::write_with(&mut bytes, &map, &options).unwrap();
            let left_out = |loss: &Loss| loss.what().contains("the same key as an earlier one");
            let left_out = losses.listed().iter().filter(|loss| left_out(loss)).count();
            assert_eq!(left_out, 1, "{first:?} {second:?} {losses}");
            let read = msgpack::read(&bytes[..]).unwrap();
            let entries = read.as_map().unwrap();
            assert_eq!(entries.len(), 2, "{read:?}");
            assert_eq!(entries[0].1, Value::from(1));
            assert!(msgpack::write(Vec::new(), &map).is_err());
        }
    }
}

/// A file in which every tensor became nil looks like success.
#[test]
fn a_file_without_any_of_its_tensors_is_not_written() {
    let tiny = DynTensor::new(DType::F8E4M3, &[2], Order::C, vec![1, 2]).unwrap();
    let value = Value::Map(vec![(text("a"), Value::from(tiny)), (text("b"), Value::from(1))]);
    let mut bytes = Vec::new();
    let lossy = Options::default().with_losses(true);
    let error = msgpack::write_with(&mut bytes, &value, &lossy).unwrap_err();
    assert!(error.to_string().contains("no tensor is left"), "{error}");
    assert!(bytes.is_empty());
}

#[test]
fn errors_say_where() {
    let error = msgpack::read(&b"\x92\x01\xa1\xff"[..]).unwrap_err().to_string();
    assert!(error.contains("not UTF-8") && error.contains("byte 3"), "{error}");
    let bad = [&[0x91][..], &numpy("|b1", &[2], &[1, 2])].concat();
    let error = msgpack::read(&bad[..]).unwrap_err();
    assert_eq!(error.offset(), Some(1), "{error}");
}

#[test]
fn claimed_lengths_and_depths_are_not_believed() {
    let claims = [0xc6, 0xdb, 0xdd, 0xdf].map(|marker| vec![marker, 0xff, 0xff, 0xff, 0xf0]);
    for claim in claims {
        let error = msgpack::read(&claim[..]).unwrap_err();
        assert_eq!(error.category(), Category::Eof, "{error}");
        let error = msgpack::read(&[&claim[..], &vec![0; 100_000]].concat()[..]).unwrap_err();
        // A map has a key only once.
        let expected = if claim[0] == 0xdf { Category::Data } else { Category::Eof };
        assert_eq!(error.category(), expected, "{error}");
    }
    let error = msgpack::read(&[0xc9, 0xff, 0xff, 0xff, 0xff, 1, 2][..]).unwrap_err();
    assert_eq!(error.category(), Category::Eof, "{error}");
    let nested = |depth: usize| [vec![0x91; depth], vec![0xc0]].concat();
    assert!(msgpack::read(&nested(128)[..]).is_ok());
    assert_eq!(msgpack::read(&nested(129)[..]).unwrap_err().category(), Category::Limit);
    let mut value = Value::Null;
    for _ in 0..129 {
        value = Value::Array(vec![value]);
    }
    assert_eq!(msgpack::write(Vec::new(), &value).unwrap_err().category(), Category::Limit);
    let many = [&[0xdd, 0, 1, 0, 0][..], &vec![0xc0; 65536]].concat();
    let limits = Limits::default().with_max_alloc(1 << 20);
    let error = msgpack::read_with(&many[..], limits).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
}

#[test]
fn files_become_archives_and_come_back_to_the_bit() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name);
    let long =
        ArrayD::from_shape_fn(IxDyn(&[100, 70]), |at| if at[0] > at[1] { 1.5f32 } else { -0.5 });
    let first = Value::Map(vec![
        (text("weight"), tensor(long.clone())),
        (text("note"), text("é")),
        (Value::Bytes(b"blob".to_vec()), Value::Bytes(vec![9; 10_000])),
        (text("list"), Value::Array(vec![Value::Integer(1), text("x"), Value::F32(0.5)])),
        // Archives pack these.
        (text("numbers"), Value::Array((0..3000).map(Value::Integer).collect())),
        (text("floats"), Value::Array(vec![Value::F64(0.5); 3000])),
    ]);
    let second = tensor(array![true, false]);
    let third = msgpack::read(&sample()[..]).unwrap();
    let bytes = [written(&first), written(&second), written(&third)].concat();
    fs::write(path("in.msgpack"), &bytes).unwrap();
    Format::Msgpack.to_archive(path("in.msgpack"), path("a.tenarc"), &Options::default()).unwrap();

    let archive = tenarc::open(path("a.tenarc")).unwrap();
    assert_eq!(archive.len(), 3);
    let segment = archive.segment(0).unwrap();
    let weight: ArrayD<f32> = segment.tensor("weight").unwrap();
    assert_eq!(weight, long);
    let loaded: Value = segment.load().unwrap();
    assert_eq!(loaded.pointer("/list"), first.pointer("/list"));
    assert!(matches!(loaded.pointer("/floats"), Some(Value::Numbers(_))));
    assert_eq!(archive.segment(2).unwrap().load::<Value>().unwrap(), third);

    let lost = Format::Msgpack
        .from_archive(path("a.tenarc"), path("out.msgpack"), &Options::default())
        .unwrap();
    assert!(lost.is_empty());
    assert_eq!(fs::read(path("out.msgpack")).unwrap(), bytes);
}

#[test]
fn long_big_endian_arrays_are_turned_as_they_are_read_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("in"), dir.path().join("out"));
    let data: Vec<u8> = (0..50_000u32).flat_map(u32::to_be_bytes).collect();
    let small = numpy(">u4", &[1], &[0; 4]);
    // The array's dimension and bytes, which are longer than the helper says.
    let start = &small[..small.windows(5).position(|part| part == b"shape").unwrap() + 5];
    let len = u32::try_from(data.len()).unwrap().to_be_bytes();
    let rest = [&[0x91, 0xcd, 0xc3, 0x50][..], &bin(b"data"), &[0xc6], &len, &data].concat();
    fs::write(&from, [start, &rest].concat()).unwrap();
    Format::Msgpack.to_archive(&from, &to, &Options::default()).unwrap();
    let found: Tensor<ndarray::Array1<u32>> = tenarc::load(&to).unwrap();
    assert!(found.iter().copied().eq(0..50_000));

    // Cut anywhere, there is no archive.
    let whole = fs::read(&from).unwrap();
    let before = fs::read(&to).unwrap();
    for len in [1, 30, 60, whole.len() / 2, whole.len() - 1] {
        fs::write(&from, &whole[..len]).unwrap();
        assert!(Format::Msgpack.to_archive(&from, &to, &Options::default()).is_err(), "{len}");
        assert_eq!(fs::read(&to).unwrap(), before);
    }
}

#[test]
fn an_archive_that_would_lose_something_makes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("in"), dir.path().join("out"));
    let mut out = OArchive::create(&from, SaveOptions::default()).unwrap();
    let value = to_value(&(1, Tensor(ndarray::Array1::from_elem(500, bf16::ONE)))).unwrap();
    out.save(&1u8).unwrap();
    out.save(&value).unwrap();
    out.finish().unwrap();
    let error = Format::Msgpack.from_archive(&from, &to, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("bf16"), "{error}");
    assert!(!to.exists());
    let options = Options::default().with_losses(true);
    assert_eq!(Format::Msgpack.from_archive(&from, &to, &options).unwrap().count(), 1);
    let bytes = fs::read(&to).unwrap();
    let values: Vec<_> =
        msgpack::values(&bytes[..], Limits::default()).map(Result::unwrap).collect();
    assert_eq!(values[1].pointer("/1"), Some(&tensor(ndarray::Array1::from_elem(500, 1.0f32))));
}

#[test]
fn values_end_at_the_first_error() {
    let bytes = [1, 2, 0xc1, 3];
    let found: Vec<_> = msgpack::values(&bytes[..], Limits::default()).collect();
    assert_eq!(found.len(), 3);
    assert_eq!(found[2].as_ref().unwrap_err().offset(), Some(2));
    assert!(msgpack::read(&[][..]).is_err());
}

/// Values that are appended as messages have the bytes of values that are read as a whole, and the same errors.
#[test]
fn messages_are_those_of_whole_values() {
    let array = numpy("<f4", &[2], &[0, 0, 128, 63, 0, 0, 0, 64]);
    let long = [&[0xdc, 0x01, 0x00][..], &vec![0x05; 256]].concat();
    let rows: Vec<u8> = (0..300u16).flat_map(|_| b"\x82\xa1a\x01\xa4type\x90".to_vec()).collect();
    let rows = [&[0xdc, 0x01, 0x2c][..], &rows].concat();
    let cases = [
        vec![0xc0, 0x90, 0x80, 0x91, 0x90, 0x92, 0x01, 0x80, 0x92, 0x80, 0x01],
        array.clone(),
        [&[0x93][..], &array, &long, &rows].concat(),
        [&[0x82, 0xa1, b'a'][..], &rows, &[0xa1, b'b'], &array].concat(),
        [&[0x81, 0xa2, b'n', b'd'][..], &rows].concat(),
        // Errors: two equal keys, cut off, and an array that is none.
        b"\x92\x80\x82\xa1a\x01\xa1a\x02".to_vec(),
        b"\x92\x80\x82\xa1a\x01\xa1b".to_vec(),
        [&[0x91, 0x81, 0xa1, b'x'][..], &numpy("<f4", &[3], &[0; 8])].concat(),
        vec![0x91; 1000],
    ];
    for bytes in cases {
        let whole: tenarc::Result<Vec<Value>> =
            msgpack::values(&bytes[..], Limits::default()).collect();
        let mut messages = Vec::new();
        let mut losses = Losses::default();
        let limits = Limits::default();
        let appended = msgpack::append_messages(&bytes[..], limits, &mut losses, &mut messages);
        match (whole, appended) {
            (Ok(values), Ok(())) => {
                let expected = values.iter().map(|value| tenarc::to_vec(value).unwrap());
                assert_eq!(messages, expected.collect::<Vec<_>>().concat(), "{bytes:x?}");
            }
            (Err(whole), Err(appended)) => assert_eq!(whole.to_string(), appended.to_string()),
            (whole, appended) => panic!("{whole:?} {appended:?}"),
        }
    }
}
