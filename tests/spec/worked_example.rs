//! tenarc writes the worked example of `SPEC.md` byte for byte, and reads it.

use ndarray::{Array1, array};
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::{IArchive, OArchive, Tensor};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Layer {
    name: String,
    bias: Tensor<Array1<f32>>,
}

fn example() -> Layer {
    Layer { name: "two".into(), bias: array![0.5, -1.0].into() }
}

/// The bytes at the start of each line with an offset in the section, up to the first column of words.
fn bytes_in(section: &str) -> Vec<u8> {
    let spec = include_str!("../../SPEC.md");
    let block = spec.split(section).nth(1).expect("the section");
    let block = block.split("\n##").next().unwrap_or_default();
    let lines = block.lines().filter(|line| line.starts_with("    "));
    let mut bytes = Vec::new();
    for line in lines {
        let (offset, hex) = line.trim_start().split_once(": ").expect("an offset before the bytes");
        assert_eq!(offset.parse(), Ok(bytes.len()), "{line}");
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
    let (expected, found) = (bytes_in("### 5.9 "), written());
    assert_eq!(hex(&expected), hex(&found));
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

#[test]
fn the_parts_of_the_worked_example_are_what_is_made_and_read() {
    let archive = written();
    let parts = tenarc::Archive::new(&archive[..]).unwrap().segment(0).unwrap().to_parts().unwrap();
    let expected = bytes_in("## 6. Parts");
    assert_eq!(hex(&expected), hex(parts.metadata()));
    let buffer = [0, 0, 0, 0x3f, 0, 0, 0x80, 0xbf];
    assert_eq!(*parts.buffers()[0], buffer);
    assert_eq!(tenarc::from_parts::<Layer, _>(&expected, &[buffer]).unwrap(), example());
}

#[test]
fn the_worked_example_is_read() {
    let bytes = bytes_in("### 5.9 ");
    assert_eq!(IArchive::new(&bytes[..]).unwrap().load::<Layer>().unwrap(), example());
    tenarc::Archive::new(&bytes[..]).unwrap().verify().unwrap();
}

#[test]
fn the_digests_of_the_worked_example_are_computed() {
    let bytes = written();
    let archive = tenarc::Archive::new(&bytes[..]).unwrap();
    let spec = include_str!("../../SPEC.md");
    let section = spec.split("### 5.10 ").nth(1).unwrap();
    for digest in [archive.segment(0).unwrap().digest().unwrap(), archive.digest().unwrap()] {
        assert!(section.contains(&format!("`{digest}`")), "{digest}");
    }
}

/// The bytes of the lines of a section that start with four spaces, up to the first column of words.
#[cfg(feature = "compression")]
fn excerpts(section: &str) -> Vec<Vec<u8>> {
    let spec = include_str!("../../SPEC.md");
    let section = spec.split(section).nth(1).expect("the section");
    let section = section.split("\n##").next().unwrap_or_default();
    let hex = |line: &str| {
        let digits = line.split("   ").next()?.replace(' ', "");
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
    };
    section.lines().filter_map(|line| hex(line.strip_prefix("    ")?)).collect()
}

#[test]
#[cfg(feature = "compression")]
fn the_compressed_buffer_is_what_is_written() {
    use tenarc::archive::Compression;

    let excerpts = excerpts("#### A worked example of a compressed buffer");
    let [description, chunk] = &excerpts[..] else { panic!("{excerpts:?}") };
    let options = SaveOptions::default().with_alignment(8).with_inline_below(0);
    let mut out =
        OArchive::with_options(Vec::new(), options.with_compression(Compression::zstd())).unwrap();
    out.save(&Tensor(vec![7u16; 16])).unwrap();
    let bytes = out.finish().unwrap();
    let archive = tenarc::Archive::new(&bytes[..]).unwrap();
    let (start, len) = archive.only().unwrap().buffers()[0];
    let (before, body) = bytes.split_at(usize::try_from(start).unwrap());
    assert!(before.windows(description.len()).any(|found| found == description), "{}", hex(before));
    assert_eq!((hex(&body[..chunk.len()]), len), (hex(chunk), 32));
}
