//! Tensors that are made of others, by hand.

use tenarc_convert::TensorFile as _;
use tenarc_convert::torch::TorchFile;

use super::support::{self, Pickler, all, file, floats, refused, under_a};

fn tensor(pickle: Pickler) -> Pickler {
    pickle.tensor("FloatStorage", 12, 0, &[12], &[1])
}

fn sparse(layout: &str, parts: impl FnOnce(Pickler) -> Pickler) -> Vec<u8> {
    under_a(|pickle| {
        let pickle = pickle.global("torch._utils", "_rebuild_sparse_tensor");
        let pickle = pickle.global("torch.serialization", "_get_layout").text(layout);
        parts(pickle.op(b"\x85R(")).op(b"t\x86R")
    })
}

fn quantised(kind: &str, scheme: impl FnOnce(Pickler) -> Pickler) -> Vec<u8> {
    under_a(|pickle| {
        let pickle = pickle.global("torch._utils", "_rebuild_qtensor").op(b"(");
        let pickle = pickle.storage(kind, "0", 48).int(0).ints(&[48]).ints(&[1]);
        scheme(pickle.op(b"(")).op(b"t\x89").hooks().op(b"tR")
    })
}

/// The paths of tensors, and the value.
fn read(pickle: &[u8]) -> (Vec<String>, String) {
    let bytes = file(pickle, &floats(12));
    let found = TorchFile::new(&bytes[..]).unwrap();
    let paths = found.tensors().iter().map(|tensor| tensor.path().to_owned()).collect();
    let text = tenarc::diag::to_string(&tenarc::to_vec(&found.stored().unwrap()).unwrap());
    (paths, text.unwrap())
}

#[test]
fn parts_that_are_not_known_are_data_with_their_tensors() {
    let old = sparse("torch.sparse_coo", |pickle| tensor(tensor(pickle)).ints(&[3]));
    assert_eq!(read(&old).0, ["a.indices", "a.values"]);
    for pickle in [
        sparse("torch.other", |pickle| tensor(tensor(pickle)).ints(&[3])),
        sparse("torch.sparse_coo", |pickle| tensor(tensor(pickle))),
        sparse("torch.sparse_csr", |pickle| tensor(tensor(pickle)).op(b"NNN")),
    ] {
        let (paths, text) = read(&pickle);
        assert_eq!(paths, ["a.arguments.1.0", "a.arguments.1.1"]);
        assert!(text.contains("torch._utils._rebuild_sparse_tensor"), "{text}");
    }
    let affine = |pickle: Pickler| pickle.global("torch", "per_tensor_affine");
    for pickle in [
        quantised("QInt8Storage", |pickle| pickle.global("torch", "other").op(b"NN")),
        quantised("QInt8Storage", |pickle| affine(pickle).op(b"N")),
        quantised("QInt8Storage", |pickle| pickle.op(b"NNN")),
        quantised("QInt8Storage", |pickle| pickle),
    ] {
        let (paths, text) = read(&pickle);
        // The storage is an argument, and so is kept.
        assert_eq!(paths, ["a.arguments.0"]);
        assert!(text.contains("torch._utils._rebuild_qtensor"), "{text}");
    }
    let (paths, text) = read(&quantised("QInt8Storage", |pickle| affine(pickle).op(b"NN")));
    assert_eq!(paths, ["a.int_repr"]);
    assert!(text.contains(r#""scale": null"#), "{text}");
}

#[test]
fn parts_must_be_what_torch_writes() {
    let outside = under_a(|pickle| {
        let pickle = pickle.global("torch._utils", "_rebuild_qtensor").op(b"(");
        let pickle = pickle.storage("QInt8Storage", "0", 48).int(1).ints(&[48]).ints(&[1]).op(b"(");
        let pickle = pickle.global("torch", "per_tensor_affine").op(b"NNt\x89");
        pickle.hooks().op(b"tR")
    });
    refused(&outside, "lie outside of the 48 bytes");
    let wide =
        quantised("QInt32Storage", |pickle| pickle.global("torch", "per_tensor_affine").op(b"NN"));
    refused(&wide, "48 i32 elements, as the pickle says, found 48 bytes");
}

#[test]
fn no_changed_byte_panics() {
    let scheme = |pickle: Pickler| pickle.global("torch", "per_tensor_affine").op(b"K\x01K\x02");
    for pickle in [
        sparse("torch.sparse_coo", |pickle| tensor(tensor(pickle)).ints(&[3])),
        quantised("QInt8Storage", scheme),
    ] {
        all(&file(&pickle, &floats(12))).unwrap();
        support::no_changed_byte_panics(&pickle, 23);
    }
}
