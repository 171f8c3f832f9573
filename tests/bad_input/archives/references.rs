//! Group K: metadata that refers to buffers in ways no writer uses.

use ndarray::{Array1, Array2};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tenarc::error::Category::{Damaged, Data, Limit, Mismatch, Syntax};
use tenarc::tensor::Order;
use tenarc::value::RawValue;
use tenarc::{Archive, DynTensor, Tensor, Value};

use super::support::{
    At, MIB, WAYS, accepts, limited, read, read_with, refused, refuses, unverified, values, verify,
};
use tenarc_test_support::alloc::peak_of;
use tenarc_test_support::builder::{
    Built, Seg, archive, array, bytes, bytes_ref, head, inline_tensor, map, numbers_ref, own,
    raw_text, simple, tag, tensor_ref, text, unsigned,
};

const FOUR: [u8; 16] = *b"\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40";

fn floats() -> Tensor<Array1<f32>> {
    Tensor(Array1::from(vec![1.0, 2.0, 3.0, 4.0]))
}

fn one(reference: Vec<u8>) -> Vec<u8> {
    simple(reference, &[&FOUR])
}

#[test]
fn what_is_true_is_read() {
    accepts(&one(tensor_ref("f32", &[4], 0)), &floats());
    accepts(
        &one(tensor_ref("f32", &[2, 2], 0)),
        &Tensor(Array2::from_shape_vec((2, 2), vec![1.0f32, 2.0, 3.0, 4.0]).unwrap()),
    );
    accepts(&one(numbers_ref("f32", 0)), &vec![1.0f32, 2.0, 3.0, 4.0]);
    accepts(&one(numbers_ref("f32", 0)), &floats());
    accepts(&one(bytes_ref(0)), &serde_bytes::ByteBuf::from(FOUR));
    verify(&one(tensor_ref("f32", &[4], 0))).unwrap();
}

// 78
#[test]
fn buffers_that_there_are_none_of() {
    for number in [1, 2, 255, 1 << 32, (1 << 32) + 1, 1 << 63, u64::MAX] {
        refused(&one(tensor_ref("f32", &[4], number)), &[Data]);
        refused(&one(numbers_ref("f32", number)), &[Data]);
        refused(&one(bytes_ref(number)), &[Data]);
        refused(&simple(bytes_ref(number), &[]), &[Data]);
    }
}

// 40, 41, 59, 78
#[test]
fn buffers_that_do_not_fit_dtype_and_shape() {
    let shapes: [&[u64]; 9] =
        [&[], &[3], &[5], &[2, 3], &[0], &[1 << 62], &[1 << 32, 1 << 32], &[4, 0], &[u64::MAX]];
    for shape in shapes {
        refused(&one(tensor_ref("f32", shape, 0)), &[Data, Limit]);
    }
    for dtype in ["f64", "f16", "u8", "c128", "bool", "f4", "f6_e2m3", "f128"] {
        refused(&one(tensor_ref(dtype, &[4], 0)), &[Data]);
    }
    let odd = |reference| simple(reference, &[&FOUR[..15]]);
    refused(&odd(numbers_ref("f32", 0)), &[Data]);
    refused(&odd(tensor_ref("f32", &[4], 0)), &[Data]);
    refused(&odd(tensor_ref("f32", &[3], 0)), &[Data]);
    // A sequence of what has no typed array.
    for dtype in ["bool", "bf16", "f4", "who knows"] {
        refused(&one(numbers_ref(dtype, 0)), &[Data]);
    }
}

// 48, 66
#[test]
fn dtypes_nobody_knows_pass_through() {
    let bytes = one(tensor_ref("p3109_8", &[3, 5], 0));
    let expected =
        DynTensor::new(tenarc::DType::from_name("p3109_8"), &[3, 5], Order::C, FOUR.to_vec());
    accepts(&bytes, &Tensor(expected.unwrap()));
    verify(&bytes).unwrap();
    refuses::<Tensor<Array2<f32>>>(&bytes, &[Data]);
    assert!(
        Archive::new(&bytes)
            .unwrap()
            .slice::<ndarray::ArrayD<f32>>("", ndarray::s![.., ..])
            .is_err()
    );
    let long = "n".repeat(300);
    refused(&one(tensor_ref(&long, &[4], 0)), &[Data]);
    let cut = array(&[raw_text(b"f\xff"), array(&[unsigned(4)]), text("C"), unsigned(0)]);
    refused(&one(own(*b"TBUF", &cut)), &[Data, Syntax]);
}

// 23, 78
#[test]
fn references_of_other_forms() {
    let shape = || array(&[unsigned(4)]);
    let wrong = [
        vec![],
        vec![text("f32"), shape(), unsigned(0)],
        vec![text("f32"), shape(), text("C"), unsigned(0), unsigned(0)],
        vec![text("f32"), shape(), text("K"), unsigned(0)],
        vec![text("f32"), shape(), text("C"), vec![0x20]],
        vec![text("f32"), shape(), text("C"), text("0")],
        vec![text("f32"), shape(), text("C"), vec![0xf9, 0, 0]],
        vec![text("f32"), shape(), text("C"), vec![0xc2, 0x41, 0]],
        vec![unsigned(85), shape(), text("C"), unsigned(0)],
        vec![text("f32"), text("4"), text("C"), unsigned(0)],
    ];
    for items in wrong {
        refused(&one(own(*b"TBUF", &array(&items))), &[Data, Syntax]);
    }
    let items = [text("f32"), shape(), text("C"), unsigned(0)].concat();
    refused(&one(own(*b"TBUF", &[&[0x9f][..], &items, &[0xff]].concat())), &[Data]);
    refused(&one(own(*b"TBUF", &unsigned(0))), &[Data]);
    refused(&one(own(*b"TBUF", &bytes(b"0"))), &[Data]);
    refused(&one(own(*b"TBUF", &bytes_ref(0))), &[Data]);
    refused(&one(own(*b"TBUF", &[])), &[tenarc::error::Category::Eof, Data]);
}

// 30: inside another tensor, in place of a key, in a shape.
#[test]
fn references_where_none_belongs() {
    let inner = [tensor_ref("f32", &[4], 0), bytes_ref(0), numbers_ref("f32", 0)];
    for inner in inner {
        for outer in [40, 1040] {
            let content = array(&[array(&[unsigned(4)]), inner.clone()]);
            refused(&one(tag(outer, &content)), &[Data]);
            let content = array(&[inner.clone(), bytes(&FOUR)]);
            refused(&one(tag(outer, &content)), &[Data]);
        }
        let named = array(&[text("f32"), array(&[unsigned(4)]), text("C"), inner.clone()]);
        refused(&one(own(*b"TENS", &named)), &[Data]);
        refused(&one(tag(43_001, &inner)), &[Data]);
        refused(&one(tag(85, &inner)), &[Data]);
        // Any tag can stand there for who knows no better.
        refuses::<Tensor<DynTensor>>(&one(tag(2, &inner)), &[Data, Syntax]);
        unverified(&one(tag(2, &inner)), &[Damaged, Data]);
        // As a key it is one, though no path leads there.
        let key = [head(5, 1), inner, unsigned(1)].concat();
        for way in WAYS {
            assert!(
                read::<std::collections::BTreeMap<String, Value>>(way, &one(key.clone())).is_err()
            );
        }
    }
}

// 30: a reference is none in a message.
#[test]
fn references_mean_nothing_in_messages() {
    for reference in [tensor_ref("f32", &[4], 0), numbers_ref("f32", 0), bytes_ref(0)] {
        assert!(tenarc::from_slice::<Value>(&reference).is_err());
        assert!(tenarc::from_slice::<Tensor<DynTensor>>(&reference).is_err());
        assert!(tenarc::from_slice::<Vec<f32>>(&reference).is_err());
        // What is kept raw of an archive must not mean another buffer elsewhere.
        for way in WAYS {
            if let Ok(raw) = read::<Box<RawValue>>(way, &one(reference.clone())) {
                let value = tenarc::from_slice::<Tensor<DynTensor>>(raw.as_bytes());
                assert!(value.is_err() || value.unwrap().le_bytes() == FOUR.as_slice(), "{way}");
            }
        }
    }
}

/// Reads an array of many references to one buffer with a budget for few.
#[track_caller]
fn meets_the_budget<T: DeserializeOwned>(way: &str, bytes: &[u8], budget: u64) {
    let place = format!("{way} as {}", std::any::type_name::<T>());
    let (found, peak) = peak_of(|| read_with::<T>(way, bytes, limited(budget)).map(drop));
    let error = found.expect_err(&place);
    assert_eq!(error.category(), Limit, "{place}: {error}");
    // The metadata is held by streams, and what is wider than its bytes takes eight times as much.
    assert!(peak < 3 * bytes.len() + 8 * budget as usize + 2 * MIB, "{place}: {peak}");
}

fn referred_to(many: u64) -> Vec<u8> {
    let reference = tensor_ref("u8", &[64 << 10], 0);
    let metadata = [head(4, many), reference.repeat(many as usize)].concat();
    simple(metadata, &[&vec![7u8; 64 << 10]])
}

// 57, 61: one buffer referred to again and again makes copies that nothing backs.
#[test]
fn a_buffer_referred_to_a_million_times() {
    let bytes = referred_to(1_000_000);
    for way in ["positioned", "stream", "view"] {
        meets_the_budget::<Vec<Tensor<DynTensor>>>(way, &bytes, 24 << 20);
    }
    // Whoever asks for none of it gets along, if the header is within the limit.
    read_with::<IgnoredAny>("positioned", &bytes, limited(24 << 20)).unwrap();
    let error = read_with::<IgnoredAny>("positioned", &bytes, limited(8 << 20)).unwrap_err();
    assert_eq!(error.category(), Limit);
}

// 57, 61
#[test]
fn a_buffer_referred_to_often_by_every_type() {
    let bytes = referred_to(5000);
    for way in WAYS {
        meets_the_budget::<Vec<Tensor<DynTensor>>>(way, &bytes, 2 << 20);
        meets_the_budget::<Vec<Tensor<Array1<u8>>>>(way, &bytes, 2 << 20);
        meets_the_budget::<Vec<Vec<u8>>>(way, &bytes, 2 << 20);
        meets_the_budget::<Vec<Vec<u64>>>(way, &bytes, 2 << 20);
        meets_the_budget::<Vec<Box<RawValue>>>(way, &bytes, 2 << 20);
        meets_the_budget::<Value>(way, &bytes, 2 << 20);
    }
}

// 57: as many times, as bytes and as numbers.
#[test]
fn a_byte_string_referred_to_a_thousand_times() {
    let content = vec![7u8; 64 << 10];
    let budget = 8 << 20;
    for reference in [bytes_ref(0), numbers_ref("u8", 0), numbers_ref("u16", 0)] {
        let bytes = simple([head(4, 1000), reference.repeat(1000)].concat(), &[&content]);
        for way in WAYS {
            let (found, peak) =
                peak_of(|| read_with::<Value>(way, &bytes, limited(budget)).map(drop));
            let error = found.expect_err(way);
            assert_eq!(error.category(), Limit, "{way}: {error}");
            assert!(peak < budget as usize + 3 * MIB + 3 * bytes.len(), "{way}: {peak}");
        }
    }
}

// 78: streams keep what is referred to later, and nothing else.
#[test]
fn references_out_of_order() {
    let contents: Vec<Vec<u8>> = (0..50u8).map(|at| vec![at; 1 + usize::from(at)]).collect();
    let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    let orders: [Vec<u64>; 4] = [
        (0..50).rev().collect(),
        (0..50).map(|at| at * 7 % 50).collect(),
        (0..50).chain(0..50).collect(),
        (0..100).map(|at| (at * at) % 50).collect(),
    ];
    for order in orders {
        let references: Vec<_> = order.iter().map(|&at| tensor_ref("u8", &[at + 1], at)).collect();
        let bytes = simple(array(&references), &contents);
        let expected: Vec<_> =
            order.iter().map(|&at| Tensor(Array1::from(contents[at as usize].to_vec()))).collect();
        accepts(&bytes, &expected);
    }
}

// 78, 13: what a stream keeps for later is charged too.
#[test]
fn buffers_kept_for_later_are_charged() {
    let content = vec![1u8; 16 * MIB];
    let metadata = array(&[tensor_ref("u8", &[1], 1), tensor_ref("u8", &[16 << 20], 0)]);
    let bytes = simple(metadata, &[&content, b"x"]);
    type Two = (Tensor<Array1<u8>>, Tensor<Array1<u8>>);
    let (found, peak) = peak_of(|| read_with::<Two>("stream", &bytes, limited(1 << 20)).map(drop));
    assert_eq!(found.unwrap_err().category(), Limit);
    assert!(peak < 4 * MIB, "{peak}");
    // As little is kept where the value does not even ask for it in the end.
    #[derive(Deserialize)]
    struct First(#[allow(dead_code)] Tensor<Array1<u8>>, #[allow(dead_code)] IgnoredAny);
    let (_, peak) = peak_of(|| read_with::<First>("stream", &bytes, limited(1 << 20)).map(drop));
    assert!(peak < 4 * MIB, "{peak}");
}

// 78, 58
#[test]
fn buffers_nobody_refers_to() {
    let metadata = tensor_ref("f32", &[4], 1);
    let bytes = simple(metadata, &[b"unused", &FOUR, b"neither"]);
    accepts(&bytes, &floats());
    unverified(&bytes, &[Damaged]);
    let bytes = simple(unsigned(7), &[b"unused"]);
    accepts(&bytes, &7u8);
    unverified(&bytes, &[Damaged]);
}

// 56
#[test]
fn buffers_of_no_bytes() {
    let none = [tensor_ref("f32", &[0], 0), tensor_ref("f32", &[0], 1), tensor_ref("u8", &[1], 2)];
    let bytes = simple(array(&none), &[b"", b"", b"x"]);
    let empty = || Tensor(Array1::<f32>::zeros(0));
    accepts(&bytes, &(empty(), empty(), Tensor(Array1::from(vec![b'x']))));
    verify(&bytes).unwrap();
    let bytes = simple(array(&[bytes_ref(0), numbers_ref("f64", 0)]), &[b""]);
    accepts(&bytes, &(serde_bytes::ByteBuf::new(), Vec::<f64>::new()));
    verify(&bytes).unwrap();
    // As many as there is room for in the header.
    let many = 100_000;
    let seg = Seg::new(unsigned(1), &[]);
    let seg = Seg { buffers: vec![Vec::new(); many], ..seg };
    let (found, peak) = peak_of(|| verify(&archive(&seg)));
    assert_eq!(found.unwrap_err().category(), Damaged);
    assert!(peak < 100 * many, "{peak}");
}

// 60, 61
#[test]
fn equal_sized_buffers_swapped() {
    let names = || map(&[("a", tensor_ref("f32", &[2], 0)), ("b", tensor_ref("f32", &[2], 1))]);
    let (first, second) = (&FOUR[..8], &FOUR[8..]);
    let hash = |content: &[u8]| tenarc_test_support::builder::hash(content, 0);
    let swapped = Seg {
        hashes: Some(vec![hash(first), hash(second)]),
        ..Seg::new(names(), &[second, first])
    };
    refused_but_views(&archive(&swapped));
    for hashes in [vec![], vec![hash(first)], vec![0, 0], vec![hash(first); 3]] {
        let lying = Seg { hashes: Some(hashes), ..Seg::new(names(), &[first, second]) };
        refused_but_views(&archive(&lying));
    }
}

/// Views have no checksums of contents, but there all must still hold.
#[track_caller]
fn refused_but_views(bytes: &[u8]) {
    for way in &WAYS[..4] {
        let error = read::<std::collections::BTreeMap<String, Tensor<DynTensor>>>(way, bytes);
        let error = error.expect_err(way);
        assert!(
            matches!(error.category(), Damaged | tenarc::error::Category::Torn | Syntax),
            "{error}"
        );
    }
    assert!(verify(bytes).is_err());
}

// 60: the list of checksums, of another tag than it has.
#[test]
fn checksums_under_another_tag() {
    let seg = Seg { hashes_tag: 64, ..Seg::new(tensor_ref("f32", &[4], 0), &[&FOUR]) };
    unverified(&archive(&seg), &[Damaged, Data]);
    for way in &WAYS[..4] {
        assert!(read::<Tensor<DynTensor>>(way, &archive(&seg)).is_err(), "{way}");
    }
}

// 60, 66
#[test]
fn checksums_of_other_kinds() {
    for check in ["", "xxh3-6", "xxh3-128", "sha256", "XXH3-64"] {
        let seg = Seg { check: text(check), ..Seg::new(tensor_ref("f32", &[4], 0), &[&FOUR]) };
        refused(&archive(&seg), &[Data]);
    }
    for check in [vec![0xf4], vec![0xf7], unsigned(0), bytes(b"xxh3-64"), raw_text(&[0xff; 7])] {
        let seg = Seg { check, ..Seg::new(tensor_ref("f32", &[4], 0), &[&FOUR]) };
        refused(&archive(&seg), &[Data, Syntax]);
    }
}

// 17, 19
#[test]
fn metadata_nested_deeply() {
    for open in [b"\x81".to_vec(), b"\xa1\x61a".to_vec(), own(*b"TSOM", &[]), tag(99, &[])] {
        let deep = [open.repeat(100_000), tensor_ref("f32", &[4], 0)].concat();
        refuses::<Value>(&one(deep.clone()), &[Limit]);
        refuses::<Tensor<DynTensor>>(&one(deep.clone()), &[Limit, Data]);
        unverified(&one(deep.clone()), &[Limit]);
        let bytes = one(deep);
        let archive = Archive::new(At(&bytes)).unwrap();
        assert_eq!(archive.tensors().unwrap_err().category(), Limit);
        for path in ["a", "0", "a.a.a", "/a/a", "0.0.0.0", "/0/0"] {
            assert!(archive.get::<Value>(path).is_err());
            assert!(archive.only().unwrap().keys(path).is_err());
            assert!(archive.only().unwrap().dyn_tensor(path).is_err());
        }
        assert!(archive.load::<IgnoredAny>().is_err());
    }
}

// 8
#[test]
fn metadata_of_no_or_several_items() {
    let good = tensor_ref("f32", &[4], 0);
    for metadata in [vec![], [good.clone(), good.clone()].concat(), [good, vec![0]].concat()] {
        refused(&one(metadata), &[Data, Syntax, Damaged, tenarc::error::Category::Eof]);
    }
    for cut in 1..10 {
        let good = map(&[("a", tensor_ref("f32", &[4], 0))]);
        refused(
            &one(good[..good.len() - cut].to_vec()),
            &[tenarc::error::Category::Eof, Syntax, Data, Damaged],
        );
    }
    refused(&one(vec![0xff]), &[Syntax, Data]);
    refused(&simple(vec![0xff], &[]), &[Syntax, Data]);
    refused(&simple(vec![0x82, 0xff, 0], &[]), &[Syntax, Data]);
    assert!(Archive::new(&simple(vec![0x82, 0xff, 0], &[])).unwrap().get::<u8>("1").is_err());
    refused(&one(vec![0x1c]), &[Syntax]);
}

// 33
#[test]
fn keys_that_stand_there_twice() {
    #[derive(Deserialize, Debug, PartialEq)]
    struct Held {
        a: Tensor<Array1<f32>>,
    }
    let reference = || tensor_ref("f32", &[4], 0);
    let bytes = one(map(&[("a", reference()), ("a", reference())]));
    refuses::<Held>(&bytes, &[Data]);
    let archive = Archive::new(&bytes).unwrap();
    assert!(archive.tensor::<ndarray::Array1<f32>>("a").is_err());
    assert!(archive.only().unwrap().dyn_tensor("/a").is_err());
    accepts(&one(map(&[("a", reference()), ("b", reference())])), &Held { a: floats() });
}

// 39, 43
#[test]
fn shapes_of_references_are_bounded() {
    let ones = vec![1; 65];
    refused(&one(tensor_ref("f32", &ones, 0)), &[Limit]);
    let ones = vec![1; 1_000_000];
    refused(&one(tensor_ref("f32", &ones, 0)), &[Limit]);
    let zeros = [0, 1 << 62];
    refused(&one(tensor_ref("f32", &zeros, 0)), &[Data]);
    refused(&simple(tensor_ref("f64", &[0, 1 << 62, 1 << 62], 0), &[b""]), &[Data, Limit]);
}

// 46
#[test]
fn bools_of_other_bytes() {
    for at in [0, 1, 500, 999] {
        for byte in [2, 0x80, 0xff] {
            let mut flags = vec![1; 1000];
            flags[at] = byte;
            let apart = simple(tensor_ref("bool", &[1000], 0), &[&flags]);
            let inline = simple(inline_tensor("bool", &[1000], &flags), &[]);
            for bytes in [apart, inline] {
                refuses::<Tensor<Array1<bool>>>(&bytes, &[Data]);
                refuses::<Tensor<DynTensor>>(&bytes, &[Data]);
                let archive = Archive::new(&bytes).unwrap();
                let view = archive.view::<Tensor<ndarray::ArrayView1<bool>>>();
                assert_eq!(view.unwrap_err().category(), Data);
                let slice = archive.slice::<ndarray::ArrayD<bool>>("", ndarray::s![at..=at]);
                assert_eq!(slice.unwrap_err().category(), Data);
                // The bytes are as they must be: it is the value that is none.
                verify(&bytes).unwrap();
            }
        }
    }
}

// 20: what does not fit one type is no reason to lose what follows.
#[test]
fn streams_go_on_behind_what_does_not_fit() {
    let bytes = Built::new()
        .segment(&Seg::new(tensor_ref("i64", &[2], 0), &[&FOUR]))
        .segment(&Seg::new(tensor_ref("f32", &[4], 0), &[&FOUR]))
        .end()
        .bytes;
    let mut input = tenarc::IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load::<Tensor<Array1<f32>>>().unwrap_err().category(), Mismatch);
    assert_eq!(input.load::<Tensor<Array1<f32>>>().unwrap(), floats());
    assert!(input.is_at_end().unwrap());
    let (found, error) = values::<Tensor<DynTensor>>(&bytes[..]);
    assert!(found.len() == 2 && error.is_none());
}

// 70, 30: metadata changed at every byte, by someone who can make hashes.
#[test]
fn metadata_that_is_changed_and_sealed() {
    use super::samples::{Model, model, one};

    let good = one();
    let archive = Archive::new(&good).unwrap();
    let segment = archive.segment(0).unwrap();
    let buffers: Vec<&[u8]> = segment
        .buffers()
        .iter()
        .map(|&(start, len)| &good[start as usize..(start + len) as usize])
        .collect();
    let metadata = segment.metadata().unwrap().to_vec();
    let seal = |metadata: &[u8]| {
        tenarc_test_support::builder::archive(&Seg::new(metadata.to_vec(), &buffers).aligned(64))
    };
    assert!(seal(&metadata) == good);
    let mut changed = metadata.clone();
    for at in 0..metadata.len() {
        for other in [0, 0xff, metadata[at] ^ 1, metadata[at] ^ 0x20, metadata[at].wrapping_add(1)]
        {
            changed[at] = other;
            let bytes = seal(&changed);
            let outcomes = WAYS.map(|way| {
                let (found, peak) = peak_of(|| read::<Value>(way, &bytes));
                assert!(peak < MIB, "{way}, byte {at}: {peak}");
                found.map(|value| tenarc::to_vec(&value).unwrap()).ok()
            });
            for (way, outcome) in WAYS.iter().zip(&outcomes) {
                assert_eq!(*outcome, outcomes[0], "{way}, byte {at} as {other:02x}");
            }
            // Encoded, as NaN does not equal itself.
            let model_of = |way| {
                let found = read::<Model>(way, &bytes);
                found.map(|model| tenarc::to_vec(&model).unwrap()).ok()
            };
            assert_eq!(model_of("positioned"), model_of("stream"), "byte {at} as {other:02x}");
            if verify(&bytes).is_ok() {
                let archive = Archive::new(At(&bytes)).unwrap();
                for tensor in archive.tensors().unwrap() {
                    if let Ok(found) = archive.only().unwrap().dyn_tensor(tensor.path()) {
                        assert_eq!(found.dtype(), tensor.dtype());
                        assert_eq!(found.shape(), tensor.shape());
                    }
                }
            }
        }
        changed[at] = metadata[at];
    }
    assert_eq!(read::<Model>("stream", &seal(&metadata)).unwrap(), model(1));
}
