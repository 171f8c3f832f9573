//! Headers that numpy would not write.

use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc_convert::npy;

use super::support::{fixture, npy as file, says};

#[test]
fn headers_that_say_anything_else_are_refused() {
    let cases = [
        ("", "the header ends"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)", "`,` or `}`"),
        ("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", "twice"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': 2}", "expected a tuple"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (2)}", "expected a tuple"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (True,)}", "expected integers"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (2, -1)}", "negative"),
        ("{'descr': '|u1', 'fortran_order': None, 'shape': (2,)}", "found None"),
        (
            "{'descr': 1, 'fortran_order': False, 'shape': (2,)}",
            "expected a string or a list for `descr`",
        ),
        ("{1: '|u1', 'fortran_order': False, 'shape': (2,)}", "expected a string as key"),
        (
            "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,)}",
            "does not fit in memory",
        ),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 18446744073709551616)}", "fit"),
        ("{'descr': '<c16', 'fortran_order': False, 'shape': (1152921504606846975,)}", "fit"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (f(),)}", "not evaluated"),
        ("{'descr': '|u1', 'fortran_order': 1 == 1, 'shape': (2,)}", "`,` or `}`"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)} #", "the end of the header"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}\0", "the end of the header"),
    ];
    for (header, text) in cases {
        let error = says(npy::read(&file(header, b"\x01\x02")[..]), text);
        assert!(error.offset().is_some(), "{error}");
    }
}

#[test]
fn dimensions_are_limited() {
    let shape = "1,".repeat(65);
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({shape})}}");
    let bytes = file(&header, &[1]);
    assert_eq!(npy::read(&bytes[..]).unwrap_err().category(), Category::Limit);
    let limits = Limits::default().with_max_rank(65);
    assert_eq!(npy::read_with(&bytes[..], limits).unwrap().shape(), [1; 65]);
}

#[test]
fn a_header_of_more_than_numpy_writes_is_refused_unread() {
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend(u32::MAX.to_le_bytes());
    let error = npy::read(&bytes[..]).unwrap_err();
    assert_eq!((error.category(), error.offset()), (Category::Limit, Some(8)));
}

#[test]
fn control_characters_do_not_reach_messages() {
    let header = "{'descr': '\u{1b}[31m', 'fortran_order': False, 'shape': (2,)}";
    let error = npy::read(&file(header, &[])[..]).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}'), "{error}");
}

#[test]
fn limits_count_elements() {
    let bytes = fixture("f8.npy");
    let limits = |bytes| Limits::default().with_max_alloc(bytes);
    assert!(npy::read_with(&bytes[..], limits(72)).is_ok());
    let error = npy::read_with(&bytes[..], limits(71)).unwrap_err();
    assert_eq!(error.category(), Category::Limit);
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    for name in ["f4_fortran.npy", "version_3.npy", "bool.npy"] {
        let bytes = fixture(name);
        for len in 0..bytes.len() {
            let error = npy::read(&bytes[..len]).unwrap_err();
            assert_eq!(error.category(), Category::Eof, "{name} cut to {len}: {error}");
        }
    }
}

#[test]
fn a_changed_bit_is_an_error_or_another_array() {
    let bytes = fixture("f4_fortran.npy");
    let good = npy::read(&bytes[..]).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            // `=`, the order of the machine.
            if bytes[at] == b'=' && cfg!(target_endian = "little") {
                continue;
            }
            if let Ok(found) = npy::read(&bytes[..]) {
                // Zeros of either sign are equal.
                let same = found == good && found.le_bytes() == good.le_bytes();
                assert!(!same, "bit {bit} of byte {at}");
            }
        }
    }
}
