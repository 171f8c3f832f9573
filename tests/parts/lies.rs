//! Metadata with correct hashes and wrong contents, made by the second writer of archives
//! (`tenarc_test_support::builder`).

use serde::de::DeserializeOwned;
use serde_bytes::ByteBuf;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::parts::Parts;
use tenarc::tensor::SharedTensor;
use tenarc::{Archive, DynTensor, Error, Tensor, Value};

use super::support::{Sent, flat, received};
use tenarc_test_support::alloc::peak_of;
use tenarc_test_support::builder::{
    Seg, array, bytes, bytes_ref, inline_tensor, map, numbers_ref, own, sealed, tag, tensor_ref,
    text, unsigned,
};

fn sent(seg: &Seg) -> Sent {
    (seg.parts(), seg.buffers.clone())
}

/// Every way gives an error of one of these kinds, whatever is asked for, in little memory.
#[track_caller]
fn refused_as<T: DeserializeOwned>(seg: &Seg, categories: &[Category]) -> Error {
    let sent = sent(seg);
    let size = flat(&sent).len();
    let (read, peak) = peak_of(|| received::<T>(&sent));
    assert!(peak < (1 << 20) + 64 * size, "{peak} bytes");
    let mut errors = Vec::new();
    for (way, read) in read {
        let Err(error) = read else { panic!("{way}: accepted") };
        assert!(categories.contains(&error.category()), "{way}: {error}");
        errors.push(error);
    }
    errors.swap_remove(0)
}

#[track_caller]
fn refused(seg: &Seg, category: Category) -> Error {
    // A tensor may notice first that the value is none.
    refused_as::<Tensor<DynTensor>>(seg, &[category, Category::Mismatch]);
    refused_as::<Value>(seg, &[category])
}

/// In `{"a": [.., x]}`, so that there is a path to tell.
fn nested(item: Vec<u8>) -> Vec<u8> {
    map(&[("a", array(&[unsigned(1), item]))])
}

#[test]
fn two_writers_agree() {
    let metadata = map(&[
        ("a", tensor_ref("f32", &[2], 0)),
        ("b", bytes_ref(1)),
        ("c", numbers_ref("f64", 2)),
    ]);
    let buffers = [vec![0; 8], vec![1; 3], vec![0; 32]];
    let slices: Vec<&[u8]> = buffers.iter().map(|buffer| &buffer[..]).collect();
    #[derive(serde::Serialize)]
    struct Written {
        a: Tensor<Vec<f32>>,
        b: ByteBuf,
        c: Vec<f64>,
    }
    let value = Written { a: Tensor(vec![0.0; 2]), b: ByteBuf::from(vec![1; 3]), c: vec![0.0; 4] };
    for checksums in [false, true] {
        let seg = Seg::new(metadata.clone(), &slices);
        let seg = if checksums { seg } else { seg.unchecked() };
        let options =
            tenarc::archive::SaveOptions::default().with_inline_below(0).with_checksums(checksums);
        let theirs = super::support::split(&value, &options);
        assert!(sent(&seg) == theirs);
        // A name is kept.
        let named = seg.named("layer");
        let parts = Parts::new(named.parts(), named.buffers).unwrap();
        assert_eq!(parts.info().name(), Some("layer"));
    }
    assert!(Seg::new(text("x"), &[]).parts() == tenarc::to_parts("x").unwrap().metadata());
}

#[test]
fn references_beyond_the_buffers() {
    for number in [1, 2, 255, 1 << 32, u64::MAX - 1, u64::MAX] {
        for reference in
            [tensor_ref("u8", &[4], number), numbers_ref("u8", number), bytes_ref(number)]
        {
            let metadata = nested(array(&[bytes_ref(0), reference]));
            let error = refused(&Seg::new(metadata, &[b"1234"]), Category::Data);
            assert!(error.to_string().contains(&format!("buffer {number}")), "{error}");
            let metadata = nested(bytes_ref(number));
            let error = refused(&Seg::new(metadata, &[]), Category::Data);
            assert!(error.to_string().contains(&format!("buffer {number}")), "{error}");
        }
    }
    // The path is told before there are buffers.
    let seg = Seg::new(nested(array(&[bytes_ref(0), bytes_ref(9)])), &[b"1234"]);
    let error = tenarc::parts::PartsInfo::new(seg.parts()).unwrap_err();
    assert_eq!(error.path(), "a.1.1");
}

#[test]
fn buffers_that_nothing_refers_to() {
    let metadata = nested(array(&[bytes_ref(0), bytes_ref(2), text("something else")]));
    let error = refused(&Seg::new(metadata, &[b"1", b"2", b"3"]), Category::Damaged);
    assert!(error.to_string().contains("nothing refers to buffer 1"), "{error}");
    let error = refused(&Seg::new(text("long enough"), &[b"1"]), Category::Damaged);
    assert!(error.to_string().contains("nothing refers to buffer 0"), "{error}");
    let error = refused(&Seg::new(text("x"), &[b"1"]), Category::Damaged);
    assert!(
        error.to_string().contains("1 buffers are impossible: 2 bytes cannot refer to so many"),
        "{error}"
    );
    // A reference inside other bytes is none.
    let inside = array(&[tag(24, &bytes(&bytes_ref(0))), bytes(&bytes_ref(0)), text("long text")]);
    let error = refused(&Seg::new(inside, &[b"1"]), Category::Damaged);
    assert!(error.to_string().contains("nothing refers to buffer 0"), "{error}");
}

#[test]
fn buffers_of_length_zero() {
    // Nobody writes them; read they are what they say.
    let seg = Seg::new(nested(array(&[tensor_ref("f32", &[0, 3], 0), bytes_ref(1)])), &[b"", b""]);
    for (way, read) in received::<Value>(&sent(&seg)) {
        read.unwrap_or_else(|error| panic!("{way}: {error}"));
    }
    let error = refused(&Seg::new(nested(tensor_ref("f32", &[], 0)), &[b""]), Category::Data);
    assert!(error.to_string().contains("buffer 0 has 0 bytes"), "{error}");
}

#[test]
fn payloads_of_another_length_than_shape_and_dtype_ask_for() {
    for (dtype, shape) in [
        ("f32", &[2][..]),
        ("f32", &[3, 1]),
        ("f32", &[1 << 62]),
        ("f32", &[1 << 32, 1 << 32]),
        ("u8", &[u64::MAX]),
        ("u8", &[0]),
        ("u8", &[0, u64::MAX, u64::MAX]),
        ("f4", &[7]),
        ("c128", &[1]),
    ] {
        let error =
            refused(&Seg::new(nested(tensor_ref(dtype, shape, 0)), &[b"1234"]), Category::Data);
        assert!(error.path().starts_with('a') || !error.to_string().is_empty());
    }
    for dtype in ["f64", "bool", "f8_e4m3", "posit16"] {
        refused(&Seg::new(nested(numbers_ref(dtype, 0)), &[b"1234"]), Category::Data);
    }
}

#[test]
fn references_that_are_malformed() {
    let dims = |shape: &[u64]| array(&shape.iter().map(|&dim| unsigned(dim)).collect::<Vec<_>>());
    let number = || unsigned(0);
    for content in [
        array(&[]),
        unsigned(0),
        bytes(b"0"),
        array(&[text("f32")]),
        array(&[text("f32"), dims(&[1]), number()]),
        array(&[text("f32"), dims(&[1]), text("X"), number()]),
        array(&[text("f32"), dims(&[1]), text("C"), text("0")]),
        array(&[text("f32"), dims(&[1]), text("C"), vec![0x20]]),
        array(&[text("f32"), dims(&[1]), text("C"), number(), number()]),
        array(&[unsigned(1), dims(&[1]), text("C"), number()]),
        array(&[text(&"x".repeat(257)), dims(&[4]), text("C"), number()]),
        b"\x9f\x00\xff".to_vec(),
    ] {
        let metadata = array(&[bytes_ref(0), own(*b"TBUF", &content)]);
        let sent = sent(&Seg::new(metadata, &[b"1234"]));
        for (way, read) in received::<Value>(&sent) {
            let error = read.map(drop).expect_err(way);
            assert!(
                matches!(error.category(), Category::Data | Category::Syntax),
                "{way}: {error}"
            );
        }
    }
}

#[test]
fn items_that_are_malformed() {
    let references = || array(&[bytes_ref(0), bytes_ref(0)]);
    for (metadata, category) in [
        (Vec::new(), Category::Damaged),
        (references()[..8].to_vec(), Category::Eof),
        (array(&[bytes_ref(0), vec![0xff]]), Category::Syntax),
        (array(&[bytes_ref(0), vec![0x1c]]), Category::Syntax),
        (array(&[bytes_ref(0), b"\x62\xff\xff".to_vec()]), Category::Syntax),
        (array(&[bytes_ref(0), b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff".to_vec()]), Category::Eof),
        (array(&[bytes_ref(0), b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff".to_vec()]), Category::Eof),
        ([vec![0x81; 200], bytes_ref(0)].concat(), Category::Limit),
    ] {
        refused(&Seg::new(metadata, &[b"1234"]), category);
    }
    for metadata in [[references(), vec![0]].concat(), [references(), references()].concat()] {
        for (way, read) in received::<Value>(&sent(&Seg::new(metadata, &[b"1234"]))) {
            let error = read.map(drop).expect_err(way);
            let expected = [Category::Data, Category::Syntax];
            assert!(expected.contains(&error.category()), "{way}: {error}");
        }
    }
}

#[test]
fn headers_that_lie() {
    let seg = Seg::new(bytes_ref(0), &[b"1234"]);
    let cases: [(Seg, &[Category]); 12] = [
        (Seg { version: 2, ..seg.clone() }, &[Category::Version]),
        (Seg { check: text("md5"), ..seg.clone() }, &[Category::Data]),
        // With hashes that are shorter than this says.
        (
            Seg { check: array(&[text("md5"), unsigned(16)]), ..seg.clone() },
            &[Category::Damaged, Category::Eof, Category::Torn],
        ),
        (seg.clone().aligned(0), &[Category::Data]),
        (seg.clone().aligned(4), &[Category::Data]),
        (seg.clone().aligned(24), &[Category::Data]),
        (seg.clone().aligned(1 << 17), &[Category::Data]),
        (Seg { name: text(&"n".repeat(1025)), ..seg.clone() }, &[Category::Data]),
        (seg.clone().claiming(&[1 << 63]), &[Category::Data]),
        (seg.clone().claiming(&[1 << 62, 1 << 62]), &[Category::Data]),
        (Seg { lengths: Some(bytes(b"1")), ..seg.clone() }, &[Category::Data]),
        (Seg { hashes_tag: 71, ..seg.clone() }, &[Category::Damaged]),
    ];
    for (seg, expected) in cases {
        let (metadata, buffers) = sent(&seg);
        let error = Parts::new(metadata, buffers).unwrap_err();
        assert!(expected.contains(&error.category()), "{error}");
        let error = Parts::read_from(&flat(&sent(&seg))[..]).unwrap_err();
        assert!(expected.contains(&error.category()), "{error}");
    }
    // Hashes too few and too many, of a checked and an unchecked header.
    for hashes in [vec![], vec![1, 2]] {
        let seg = Seg { hashes: Some(hashes), ..seg.clone() };
        let (metadata, buffers) = sent(&seg);
        assert!(Parts::new(metadata, buffers).is_err());
        assert!(Parts::read_from(&flat(&sent(&seg))[..]).is_err());
    }
    let unchecked = Seg { hashes: Some(vec![1]), ..seg.clone().unchecked() };
    let (metadata, buffers) = sent(&unchecked);
    assert!(Parts::new(metadata, buffers).is_err());
    // Records of other kinds.
    for name in [*b"TDIR", *b"TEND", *b"TBUF"] {
        let record = sealed(&own(name, &array(&[unsigned(1), array(&[]), array(&[])])), 0);
        let error = Parts::<Vec<u8>>::new(record, Vec::new()).unwrap_err();
        assert!(matches!(error.category(), Category::Data | Category::Damaged), "{error}");
    }
}

#[test]
fn a_wrong_hash_in_the_list_is_told_of_the_buffer() {
    let mut seg = Seg::new(nested(bytes_ref(0)), &[b"1234"]);
    seg.hashes = Some(vec![7]);
    let error = refused(&seg, Category::Damaged);
    assert!(error.to_string().contains("buffer 0 (`a.1`, u8 [4])"), "{error}");
    assert!(error.to_string().contains("0000000000000007"), "{error}");
}

#[test]
fn a_bool_that_is_none_is_never_shown_as_one() {
    let seg = Seg::new(tensor_ref("bool", &[4], 0), &[&[0, 1, 2, 1]]);
    refused_as::<Tensor<Vec<bool>>>(&seg, &[Category::Data]);
    let (metadata, buffers) = sent(&seg);
    let parts = Parts::new(metadata, buffers).unwrap();
    let error = parts.load_shared::<Tensor<SharedTensor>>().unwrap_err();
    assert_eq!(error.category(), Category::Data);
}

#[test]
fn very_many_references_to_one_buffer() {
    // Each an owned copy of 64 KiB from seven bytes: the limit says how many.
    let payload = vec![1; 1 << 16];
    let seg = Seg::new(array(&vec![bytes_ref(0); 2000]), &[&payload]);
    let (metadata, buffers) = sent(&seg);
    let options = DecodeOptions::default().with_limits(Limits::default().with_max_alloc(10 << 20));
    let parts = Parts::with_options(metadata, buffers, options).unwrap();
    let (result, peak) = peak_of(|| parts.load::<Vec<ByteBuf>>().map(drop));
    assert_eq!(result.unwrap_err().category(), Category::Limit);
    assert!(peak < 12 << 20, "{peak} bytes");
    let seg = Seg::new(array(&vec![tensor_ref("u8", &[1 << 16], 0); 2000]), &[&payload]);
    let (metadata, buffers) = sent(&seg);
    let buffers: Vec<std::sync::Arc<[u8]>> = buffers.into_iter().map(Into::into).collect();
    // Shared, they take no memory.
    let parts = Parts::new(metadata, buffers).unwrap();
    let (shared, peak) = peak_of(|| parts.load_shared::<Vec<Tensor<SharedTensor>>>().unwrap());
    assert_eq!(shared.len(), 2000);
    assert!(peak < 1 << 20, "{peak} bytes");
}

#[test]
fn long_keys_over_many_tensors_take_bounded_memory() {
    let key = "k".repeat(100_000);
    let many = array(&(0..1000).map(bytes_ref).collect::<Vec<_>>());
    let buffers = vec![&b"x"[..]; 1000];
    let seg = Seg::new(map(&[(&key, many)]), &buffers);
    let (metadata, buffers) = sent(&seg);
    let (result, peak) = peak_of(|| Parts::new(&metadata[..], buffers.clone()).map(drop));
    assert_eq!(result.unwrap_err().category(), Category::Limit);
    assert!(peak < (40 << 20) + 20 * metadata.len(), "{peak} bytes");
    // Without the paths the value is had.
    let value: Value = tenarc::from_parts(&metadata, &buffers).unwrap();
    assert!(matches!(value, Value::Map(entries) if entries.len() == 1));
}

#[test]
fn small_tensors_in_metadata_stay_what_they_are() {
    let seg = Seg::new(array(&[inline_tensor("f64", &[2], &[0; 16]), bytes_ref(0)]), &[b"1"]);
    for (way, read) in received::<(Tensor<Vec<f64>>, ByteBuf)>(&sent(&seg)) {
        assert_eq!(read.unwrap().0.0, [0.0; 2], "{way}");
    }
    let archive = tenarc_test_support::builder::archive(&seg);
    let parts = Archive::new(&archive[..]).unwrap().segment(0).unwrap().to_parts().unwrap();
    assert!(parts.metadata() == seg.parts());
}
