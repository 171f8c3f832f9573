//! A stream refused a value with a tag that refers to another value (25 or 29) if the segment had buffers,
//! although [`Archive`] read the same bytes.

use ndarray::Array1;
use serde::Serialize;
use tenarc::value::RawValue;
use tenarc::{Archive, IArchive, OArchive, Tensor, Value};

#[derive(Serialize)]
struct Record<'a> {
    weight: Tensor<Array1<f32>>,
    shared: &'a RawValue,
}

#[test]
fn are_read_from_a_stream_as_from_a_file() {
    for shared in [&b"\xd8\x19\x01"[..], b"\xd8\x1d\x01", b"\xd8\x19\xc3\x40"] {
        let weight = Tensor(Array1::zeros(1 << 12));
        let shared = RawValue::from_bytes(shared).unwrap();
        let mut out = OArchive::new(Vec::new()).unwrap();
        out.save(&Record { weight, shared }).unwrap();
        let bytes = out.finish().unwrap();

        let archive = Archive::new(&bytes[..]).unwrap();
        let value: Value = archive.load().unwrap();
        assert!(matches!(value["shared"], Value::Tag(25 | 29, _)));
        assert_eq!(IArchive::new(&bytes[..]).unwrap().load::<Value>().unwrap(), value);
        assert_eq!(archive.tensors().unwrap().len(), 1);
        archive.verify().unwrap();
        // A typed value would need the value that the tag refers to.
        let error = archive.get::<u8>("shared").unwrap_err();
        assert!(error.to_string().contains("refers to another value"), "{error}");
    }
}
