//! A malformed reference in a field that the type does not have was accepted from a file, and refused from a stream.

use serde::Deserialize;
use tenarc::{Archive, IArchive, Value};
use tenarc_test_support::builder::{
    array, bytes_ref, map, numbers_ref, own, simple, tensor_ref, text, unsigned,
};

#[derive(Deserialize, Debug, PartialEq)]
struct Read {
    good: serde_bytes::ByteBuf,
    last: u8,
}

#[test]
fn streams_and_files_agree() {
    let malformed = [
        bytes_ref(7),
        numbers_ref("f64", 0),
        numbers_ref("c64", 0),
        tensor_ref("f32", &[3], 0),
        own(*b"TBUF", &array(&[])),
        own(*b"TBUF", &text("x")),
        own(*b"TBUF", &array(&[text("x")])),
    ];
    for bad in malformed {
        let metadata = map(&[("bad", bad), ("good", bytes_ref(0)), ("last", unsigned(1))]);
        let bytes = simple(metadata, &[&[5; 4]]);
        let archive = Archive::new(&bytes[..]).unwrap();
        let expected = Read { good: vec![5; 4].into(), last: 1 };
        assert_eq!(archive.load::<Read>().unwrap(), expected);
        assert_eq!(IArchive::new(&bytes[..]).unwrap().load::<Read>().unwrap(), expected);
        let from_file = archive.load::<Value>().unwrap_err();
        let from_stream = IArchive::new(&bytes[..]).unwrap().load::<Value>().unwrap_err();
        assert_eq!(from_file.to_string(), from_stream.to_string());
        assert_eq!(archive.verify().unwrap_err().category(), from_file.category());
    }
}
