//! An archive that is read as a message, and the reverse: the error says what to use instead.

use std::collections::BTreeMap;

use tenarc::error::Category;
use tenarc::{Archive, Error, IArchive, Tensor, Value};

use super::support::{Dir, model, quick, to_bytes};

#[track_caller]
fn is_told_as_archive<T>(result: Result<T, Error>) {
    let error = result.map(drop).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("found an archive"), "{text}");
    assert!(text.contains("tenarc::load, tenarc::open or tenarc::IArchive"), "{text}");
    assert_eq!((error.category(), error.offset()), (Category::Mismatch, Some(0)));
}

#[test]
fn an_archive_is_no_message() {
    let archive = to_bytes(&model(), quick());
    is_told_as_archive(tenarc::from_slice::<Value>(&archive));
    is_told_as_archive(tenarc::from_slice::<BTreeMap<String, u8>>(&archive));
    is_told_as_archive(tenarc::from_slice::<String>(&archive));
    is_told_as_archive(tenarc::from_reader::<_, Value>(&archive[..]));
    is_told_as_archive(tenarc::from_reader::<_, Vec<u8>>(&archive[..]));
    // A message of the same tags is one.
    let tagged: Value = tenarc::from_slice(&archive[..12]).unwrap();
    assert_eq!(tenarc::from_reader::<_, Value>(&archive[..12]).unwrap(), tagged);
}

/// Whether each way to open an archive takes the bytes for a message.
#[track_caller]
fn hints(bytes: &[u8]) -> Vec<bool> {
    let dir = Dir::new();
    let file = dir.file("message");
    std::fs::write(&file, bytes).unwrap();
    let errors = [
        Archive::new(bytes).map(drop),
        tenarc::open(&file).map(drop),
        tenarc::load::<Value>(&file).map(drop),
        // SAFETY: nobody else knows of the file.
        unsafe { tenarc::Map::open(&file) }.map(drop),
        IArchive::new(bytes).map(drop),
    ];
    let hint = "it may be a message: read it with tenarc::from_slice or tenarc::from_reader";
    errors
        .into_iter()
        .map(|result| {
            let error = result.unwrap_err();
            assert_eq!(error.category(), Category::Syntax);
            assert!(error.to_string().contains("not a tenarc archive"), "{error}");
            error.to_string().contains(hint)
        })
        .collect()
}

#[test]
fn a_message_is_no_archive() {
    let numbers: Vec<u32> = (0..5000).collect();
    for message in [
        tenarc::to_vec(&model()).unwrap(),
        tenarc::to_vec(&Tensor(vec![0.5f32; 100_000])).unwrap(),
        tenarc::to_vec(&numbers).unwrap(),
        tenarc::to_vec(&"a text of more bytes than the magic").unwrap(),
        tenarc::to_vec(&(1, "b")).unwrap(),
        // Of indefinite lengths.
        b"\xbf\x61a\x9f\x01\x02\xff\x61b\x5f\x42ab\xff\x61c\xf6\xff".to_vec(),
    ] {
        assert_eq!(hints(&message), [true; 5], "{:x?}", &message[..4]);
    }
}

#[test]
fn other_files_are_not_taken_for_messages() {
    let mut safetensors = b"\xa8\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[2]".to_vec();
    safetensors.resize(500, b' ');
    for other in [
        b"no archive at all, but long enough for one".to_vec(),
        b"{\"json\": [1, 2, 3], \"more\": {}}".to_vec(),
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".to_vec(),
        b"PK\x03\x04\x14\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        b"\x80\x02}q\0(X\x05\0\0\0modelq\x01".to_vec(),
        b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\x04\0\x10\0\0\0\0\0".to_vec(),
        safetensors,
        // A message and more behind it, a message that is cut, and a claim of more than there is.
        b"\x82\x01\x02\x03aaaaaaaaaaaaaaaaaa".to_vec(),
        b"\xff\x01\x02\x03aaaaaaaaaaaaaaaaaa".to_vec(),
    ] {
        // Of a stream, the end is not known.
        assert_eq!(hints(&other)[..4], [false; 4], "{:x?}", &other[..4]);
    }
    let cut = &tenarc::to_vec(&vec!["text"; 20]).unwrap()[..50];
    assert_eq!(hints(cut), [false, false, false, false, true]);
}
