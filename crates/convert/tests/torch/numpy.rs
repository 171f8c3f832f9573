//! Arrays that are in the pickle, and lazy signs, by hand.

use tenarc::error::Category;
use tenarc_convert::TensorFile as _;
use tenarc_convert::torch::TorchFile;

use super::support::{Pickler, file, floats, no_changed_byte_panics, refused, under_a};

/// An array as numpy pickles it; the dtype has this state.
fn array(shape: &[i64], code: &str, state: &[u8], order: &[u8], data: &[u8]) -> Vec<u8> {
    under_a(|pickle| {
        let pickle = pickle.global("numpy.core.multiarray", "_reconstruct").op(b"(");
        let pickle = pickle.global("numpy", "ndarray").op(b"K\x00\x85C\x01btR(K\x01").ints(shape);
        let pickle = pickle.global("numpy", "dtype").op(b"(").text(code).op(b"\x89\x88tR");
        let pickle = pickle.op(state).op(b"b").op(order);
        pickle.op(b"C").op([data.len() as u8]).op(data).op(b"tb")
    })
}

const LITTLE: &[u8] = b"(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t";
const C: &[u8] = b"\x89";

fn good() -> Vec<u8> {
    array(&[2, 2], "i2", LITTLE, C, &[1, 0, 2, 0, 3, 0, 4, 0])
}

fn a(pickle: &[u8]) -> TorchFile<Vec<u8>> {
    TorchFile::new(file(pickle, &floats(12))).unwrap()
}

#[test]
fn arrays_must_have_as_many_bytes_as_they_say() {
    assert_eq!(a(&good()).dyn_tensor("a").unwrap().le_bytes()[..], [1, 0, 2, 0, 3, 0, 4, 0]);
    for (shape, len, text) in [
        (&[2, 2][..], 6, "expected 8 bytes of an array, found 6"),
        (&[2, 2], 10, "expected 8 bytes of an array, found 10"),
        (&[0, 2], 10, "expected 0 bytes of an array, found 10"),
        (&[], 0, "expected 2 bytes of an array, found 0"),
        (&[i64::MAX, i64::MAX], 8, "does not fit in memory"),
        (&[1 << 40], 8, "expected 2199023255552 bytes of an array, found 8"),
        (&[-1], 8, "that are not negative"),
        (&[1; 65], 2, "65 dimensions"),
    ] {
        let pickle = array(shape, "i2", LITTLE, C, &vec![0; len]);
        let category = refused(&pickle, text);
        assert!(matches!(category, Category::Damaged | Category::Data | Category::Limit), "{text}");
    }
    // Bools are checked as they are read.
    let found = a(&array(&[1], "b1", LITTLE, C, &[2]));
    assert!(found.dyn_tensor("a").is_err());
}

#[test]
fn arrays_of_other_dtypes_or_classes_are_data() {
    let of_two: &[u8] =
        b"(K\x03X\x01\0\0\0<K\x01K\x02\x86NNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t";
    for pickle in [
        array(&[2], "U1", LITTLE, C, &[0; 8]),
        array(&[2], "O8", LITTLE, C, &[0; 8]),
        array(&[2], "i4", of_two, C, &[0; 8]),
        array(&[2], "i4", b"K\x01", C, &[0; 8]),
        array(&[2], "i4", LITTLE, b"K\x01", &[0; 8]),
    ] {
        let found = a(&pickle);
        assert!(found.tensors().is_empty() && found.losses().count() == 1);
        let text = tenarc::diag::to_string(&tenarc::to_vec(&found.stored().unwrap()).unwrap());
        assert!(text.unwrap().contains("numpy.core.multiarray._reconstruct"));
    }
}

#[test]
fn no_changed_byte_of_an_array_panics() {
    no_changed_byte_panics(&good(), 7);
}

/// Twelve floats, or six complex numbers, with notes of torch.
fn noted(kind: &str, count: i64, notes: impl FnOnce(Pickler) -> Pickler) -> TorchFile<Vec<u8>> {
    let pickle = under_a(|pickle| {
        let pickle = pickle.global("torch._utils", "_rebuild_tensor_v2").op(b"(");
        let pickle = pickle.storage(kind, "0", count).int(0).ints(&[count]).ints(&[1]);
        notes(pickle.op(b"\x89").hooks().op(b"}")).op(b"tR")
    });
    a(&pickle)
}

#[test]
fn signs_are_those_of_use() {
    let set = |name: &'static str| move |pickle: Pickler| pickle.text(name).op(b"\x88s");
    let signs = |file: &TorchFile<Vec<u8>>| -> Vec<bool> {
        let tensor = file.dyn_tensor("a").unwrap();
        tensor.le_bytes().chunks_exact(4).map(|float| float[3] & 0x80 != 0).collect()
    };
    assert_eq!(signs(&noted("ComplexFloatStorage", 6, set("conj"))), [false, true].repeat(6));
    assert_eq!(signs(&noted("ComplexFloatStorage", 6, set("neg"))), [true; 12]);
    let both = noted("ComplexFloatStorage", 6, |pickle| set("neg")(set("conj")(pickle)));
    assert_eq!(signs(&both), [true, false].repeat(6));
    assert_eq!(signs(&noted("FloatStorage", 12, set("neg"))), [true; 12]);
    let off = noted("FloatStorage", 12, |pickle| pickle.text("neg").op(b"\x89s"));
    assert_eq!(signs(&off), [false; 12]);
    // What no tensor of torch has.
    for lost in [
        noted("FloatStorage", 12, set("conj")),
        noted("IntStorage", 12, set("neg")),
        noted("FloatStorage", 12, set("other")),
        noted("FloatStorage", 12, |pickle| pickle.text("neg").op(b"K\x01s")),
    ] {
        assert_eq!((lost.tensors().len(), lost.losses().tensors()), (0, 1));
    }
}
