//! A Parquet file of a few bytes kept the library busy for as long as it liked: it counts to the length that a list of
//! bools claims, and reads nothing.

use std::fs;
use std::path::Path;

use tenarc::error::Category;
use tenarc_convert::parquet::ParquetFile;

/// A field of the number 100, which Parquet does not have: a list of 65,535 bools, and none of them.
const LIST: [u8; 7] = [0x09, 0xc8, 1, 0xf2, 0xff, 0xff, 3];

fn fixture() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/structs.parquet");
    fs::read(path).unwrap()
}

#[track_caller]
fn is_refused(bytes: Vec<u8>) {
    let read = || {
        let file = ParquetFile::new(bytes)?;
        (0..file.row_groups()).try_for_each(|group| file.rows(group).map(drop))
    };
    let error = read().unwrap_err();
    assert_eq!(error.category(), Category::Damaged, "{error}");
    assert!(error.to_string().contains("a list or a map of bools"), "{error}");
}

#[test]
fn in_the_footer_is_refused() {
    let mut bytes = fixture();
    // The footer ends with a zero, its length and the end of the file.
    let end = bytes.len() - 9;
    bytes.splice(end..end, LIST);
    let (_, len) = bytes.split_last_chunk::<8>().unwrap();
    let len = u32::from_le_bytes(*len.first_chunk().unwrap()) + u32::try_from(LIST.len()).unwrap();
    let at = bytes.len() - 8;
    bytes[at..at + 4].copy_from_slice(&len.to_le_bytes());
    is_refused(bytes);
}

#[test]
fn in_the_header_of_a_page_is_refused() {
    // Two encodings, and the statistics of a page of numbers of four bytes: the least and the greatest value in two forms each.
    let pattern = [0x15, 6, 0x15, 6, 0x1c, 0x18, 4];
    let mut bytes = fixture();
    let at = bytes.windows(pattern.len()).position(|found| found == pattern).unwrap() + 5;
    let statistics = &mut bytes[at..at + 28];
    assert_eq!(statistics[26..], [0x11, 0x11]);
    // The rest becomes a field of bytes.
    let rest = u8::try_from(28 - LIST.len() - 2).unwrap();
    statistics[..LIST.len()].copy_from_slice(&LIST);
    statistics[LIST.len()..LIST.len() + 2].copy_from_slice(&[0x18, rest]);
    is_refused(bytes);
}
