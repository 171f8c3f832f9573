//! The worked example of `SPEC.md` is what is written, and is read.

use ndarray::{Array1, array};
use serde::{Deserialize, Serialize};
use tenarc::{IArchive, OArchive, SaveOptions, Tensor};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Layer {
    name: String,
    bias: Tensor<Array1<f32>>,
}

fn example() -> Layer {
    Layer { name: "two".into(), bias: array![0.5, -1.0].into() }
}

/// The bytes at the start of each line of the block behind the heading, up to the first column of
/// words.
fn bytes_in_spec() -> Vec<u8> {
    let spec = include_str!("../SPEC.md");
    let block = spec.split("### 5.9 ").nth(1).expect("section 5.9");
    let block = block.split("\n### ").next().unwrap_or_default();
    let lines = block.lines().filter(|line| line.starts_with("    "));
    let mut bytes = Vec::new();
    for line in lines {
        let (_, hex) = line.trim_start().split_once(": ").expect("an offset before the bytes");
        // Words start in a column of their own.
        let digits: String = hex.chars().take(35).filter(|c| !c.is_whitespace()).collect();
        for pair in digits.as_bytes().chunks(2) {
            let pair = std::str::from_utf8(pair).unwrap();
            bytes.push(u8::from_str_radix(pair, 16).unwrap_or_else(|_| panic!("{line}")));
        }
    }
    bytes
}

fn written() -> Vec<u8> {
    let options = SaveOptions::default().with_alignment(32).with_inline_below(0);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save_as("layer", &example()).unwrap();
    out.finish().unwrap()
}

#[test]
fn the_worked_example_is_what_is_written() {
    let (expected, found) = (bytes_in_spec(), written());
    let hex = |bytes: &[u8]| -> Vec<String> { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    assert_eq!(hex(&expected).join(" "), hex(&found).join(" "));
}

#[test]
fn the_worked_example_is_read() {
    let bytes = bytes_in_spec();
    assert_eq!(IArchive::new(&bytes[..]).unwrap().load::<Layer>().unwrap(), example());
    tenarc::Archive::new(&bytes[..]).unwrap().verify().unwrap();
}
