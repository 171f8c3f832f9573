//! `verify` checks what is stored. What was stored wrongly could not be found without the types of the values.

use tenarc::archive::{Compression, SaveOptions};
use tenarc::{Archive, OArchive, Tensor, Value};
use tenarc_test_support::builder::{
    Seg, array, inline_tensor, map, own, simple, tensor_ref, text, unsigned,
};

#[test]
fn what_does_not_decode_is_found() {
    let text_column = |lengths| array(&[text("text"), unsigned(lengths), text("abcd")]);
    let cases = [
        (tensor_ref("bool", &[4], 0), "a bool is stored as the byte 2"),
        (inline_tensor("bool", &[2], &[1, 7]), "7"),
        (own(*b"TCOL", &array(&[unsigned(2), text_column(3)])), "add up to 6 bytes, found 4"),
        (own(*b"TCOL", &array(&[unsigned(2), array(&[text("new kind")])])), "kind of column"),
    ];
    for (item, expected) in cases {
        let fields = [("log", item), ("other", tensor_ref("u8", &[4], 0))];
        let bytes = simple(map(&fields), &[&[0, 1, 2, 0]]);
        let archive = Archive::new(&bytes[..]).unwrap();
        let error = archive.verify_decoded().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(archive.load::<Value>().is_err());
    }
}

#[test]
fn what_decodes_is_good() {
    let rows: Vec<(u8, String, Option<Vec<f32>>)> =
        (0..300).map(|at| (at as u8, format!("row {at}"), Some(vec![0.5; 3]))).collect();
    for compression in [None, Some(Compression::zstd())] {
        let options = SaveOptions::default();
        let options = match compression {
            Some(compression) => options.with_compression(compression),
            None => options,
        };
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        out.save_as("rows", &rows).unwrap();
        out.save_as("flags", &Tensor(vec![true; 5000])).unwrap();
        out.save_as("values", &(Tensor(vec![1.5f32; 5000]), "text", vec![7u8; 3000])).unwrap();
        let archive = Archive::new(out.finish().unwrap()).unwrap();
        archive.verify_decoded().unwrap();
    }
}

#[test]
fn the_value_is_named() {
    let seg = |name: &str, byte| Seg::new(tensor_ref("bool", &[1], 0), &[&[byte]]).named(name);
    let bytes = tenarc_test_support::builder::Built::new()
        .segment(&seg("first", 1))
        .segment(&seg("second", 3))
        .end()
        .bytes;
    let error = Archive::new(&bytes[..]).unwrap().verify_decoded().unwrap_err();
    assert!(error.to_string().contains("value `second`"), "{error}");
}
