//! A sequence of complex numbers or of 128-bit floats was written as a reference to a buffer, which `SPEC.md` allows for
//! numbers of 8 to 64 bits only.

use tenarc::archive::SaveOptions;
use tenarc::{Archive, IArchive, OArchive, Value};
use tenarc_test_support::builder::{numbers_ref, simple};
use tenarc_test_support::unhex;

#[test]
fn only_numbers_of_8_to_64_bits() {
    // Complex numbers, and 128-bit floats.
    for item in ["d9a7f9 d856 50", "d857 50"] {
        let message = [unhex(item), vec![0; 16]].concat();
        let value: Value = tenarc::from_slice(&message).unwrap();
        assert!(matches!(&value, Value::Numbers(_)), "{value:?}");
        let options = SaveOptions::default().with_inline_below(0);
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        out.save(&value).unwrap();
        let archive = Archive::new(out.finish().unwrap()).unwrap();
        assert!(archive.only().unwrap().buffers().is_empty());
        assert_eq!(archive.load::<Value>().unwrap(), value);
    }
    for dtype in ["c64", "c128", "f128", "bool", "bf16", "f4", "unknown"] {
        let bytes = simple(numbers_ref(dtype, 0), &[&[0; 16]]);
        let archive = Archive::new(&bytes[..]).unwrap();
        for error in [
            archive.load::<Value>().unwrap_err(),
            archive.verify().unwrap_err(),
            IArchive::new(&bytes[..]).unwrap().load::<Value>().unwrap_err(),
        ] {
            let expected =
                "expected a sequence of numbers of 8 to 64 bits in a buffer, found one of";
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
    for dtype in ["u8", "i64", "f16", "f32", "f64"] {
        let bytes = simple(numbers_ref(dtype, 0), &[&[0; 16]]);
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        archive.load::<Value>().unwrap();
    }
}
