//! `Rows` took structs with fields wider than the element type, whose bytes it then swapped in the wrong
//! units on hosts of the other byte order. Such structs no longer compile, as the examples of `Rows`
//! show; these still do.

use bytemuck::{Pod, Zeroable};
use num_complex::Complex;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Inner {
    a: u16,
    b: [i16; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Nested {
    inner: [Inner; 2],
    c: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Wide {
    at: f64,
    value: f64,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Tables {
    #[serde(with = "tenarc::tensor::Rows::<u16>")]
    nested: Vec<Nested>,
    #[serde(with = "tenarc::tensor::Rows::<f64>")]
    wide: Vec<Wide>,
    #[serde(with = "tenarc::tensor::Rows::<Complex<f32>>")]
    complex: Vec<[Complex<f32>; 2]>,
    #[serde(with = "tenarc::tensor::Rows::<u8>")]
    bytes: Vec<[u8; 3]>,
}

#[test]
fn fields_of_one_width_are_rows_of_the_same_bytes_everywhere() {
    let inner = |a| Inner { a, b: [-1, 0x0203] };
    let tables = Tables {
        nested: vec![Nested { inner: [inner(1), inner(0x0405)], c: 6 }],
        wide: vec![Wide { at: 1.0, value: -1.0 }],
        complex: vec![[Complex::new(1.0, -1.0), Complex::new(0.0, 2.0)]],
        bytes: vec![[1, 2, 3]],
    };
    let bytes = tenarc::to_vec(&tables).unwrap();
    let payloads: [&[u8]; 4] = [
        &[0x4e, 1, 0, 0xff, 0xff, 3, 2, 5, 4, 0xff, 0xff, 3, 2, 6, 0],
        &[0x50, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0xf0, 0xbf],
        &[0x50, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf, 0, 0, 0, 0, 0, 0, 0, 0x40],
        &[0x43, 1, 2, 3],
    ];
    for payload in payloads {
        assert!(bytes.windows(payload.len()).any(|window| window == payload), "{payload:x?}");
    }
    assert_eq!(tenarc::from_slice::<Tables>(&bytes).unwrap(), tables);
    assert_eq!(tenarc::from_reader::<_, Tables>(&bytes[..]).unwrap(), tables);
}
