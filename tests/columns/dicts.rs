//! Columns with few distinct rows are written as dicts, and read as any other.

use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::ser::EncodeOptions;
use tenarc::{Archive, DynTensor, OArchive, Value};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Line {
    level: String,
    host: Option<String>,
    #[serde(with = "serde_bytes")]
    key: Vec<u8>,
    id: String,
}

fn lines(rows: usize) -> Vec<Line> {
    let line = |row: usize| Line {
        level: ["info", "warning", "error"][row * row % 3].into(),
        host: (!row.is_multiple_of(5)).then(|| format!("host-{}.example.com", row % 100)),
        key: vec![u8::try_from(row % 7).unwrap(); 9],
        id: format!("{row:08x}"),
    };
    (0..rows).map(line).collect()
}

fn saved(lines: &[Line], inline_below: usize) -> Vec<u8> {
    let options = SaveOptions::default().with_inline_below(inline_below);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    for lines in lines.chunks(70_000) {
        out.save_as("log", lines).unwrap();
    }
    out.finish().unwrap()
}

fn count(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).filter(|bytes| *bytes == what).count()
}

#[test]
fn few_distinct_texts_are_stored_once() {
    let lines = lines(2_000);
    let options = EncodeOptions::default().with_columns(true);
    let bytes = tenarc::ser::to_vec_with(&lines, options).unwrap();
    assert_eq!(count(&bytes, b"\x64dict"), 3);
    assert_eq!(count(&bytes, b"host-17.example.com"), 1);
    assert_eq!(tenarc::from_slice::<Vec<Line>>(&bytes).unwrap(), lines);
    let mut streamed = Vec::new();
    tenarc::ser::to_writer_with(&mut streamed, &lines, options).unwrap();
    assert_eq!(streamed, bytes);
    let value: Value = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(value, tenarc::to_value(&lines).unwrap());
    // Texts are borrowed, as others are.
    #[derive(Deserialize)]
    struct Borrowed<'a> {
        level: &'a str,
        #[serde(borrow)]
        key: &'a serde_bytes::Bytes,
    }
    let borrowed: Vec<Borrowed<'_>> = tenarc::from_slice(&bytes).unwrap();
    assert!(bytes.as_ptr_range().contains(&borrowed[7].level.as_ptr()));
    assert_eq!(borrowed[8].key[..], lines[8].key);
}

#[test]
fn where_a_dict_saves_too_little_there_is_none() {
    let written = |texts: Vec<String>| {
        let rows: Vec<(String,)> = texts.into_iter().map(|text| (text,)).collect();
        let options = EncodeOptions::default().with_columns(true);
        let bytes = tenarc::ser::to_vec_with(&rows, options).unwrap();
        assert_eq!(tenarc::from_slice::<Vec<(String,)>>(&bytes).unwrap(), rows);
        count(&bytes, b"\x64dict")
    };
    assert_eq!(written((0..500).map(|row| (row % 2).to_string()).collect()), 0);
    assert_eq!(written((0..500).map(|row| format!("{row}")).collect()), 0);
    assert_eq!(written((0..20).map(|row| format!("{}", row % 2)).collect()), 0);
    assert_eq!(written((0..500).map(|row| format!("{:04}", row % 150)).collect()), 1);
    // With codes of two bytes.
    assert_eq!(written((0..5_000).map(|row| format!("{:09}", row % 1_000)).collect()), 0);
    assert_eq!(written((0..5_000).map(|row| format!("{:09}", row / 5)).collect()), 1);
    // A reader would take few bytes for very many.
    assert_eq!(written(vec!["x".repeat(20_000); 800]), 0);
}

/// Texts and byte strings of up to 16 bytes are compared as numbers, longer ones by their first 16 bytes and the rest.
#[test]
fn rows_that_differ_a_little_are_told_apart() {
    let zeros = |len: usize| vec![0; len];
    let ends = |len: usize, last: u8| [zeros(len), vec![last]].concat();
    // Of each length up to 30: zeros, zeros and a one, zeros and a two.
    let kinds: Vec<Vec<u8>> = (0..30)
        .flat_map(|len| [zeros(len), ends(len.saturating_sub(1), 1), ends(len, 2)])
        .map(|bytes| [bytes, b"behind all that differs in it".to_vec()].concat())
        .chain((0..30).flat_map(|len| [zeros(len), ends(len, 3)]))
        .collect();
    let rows: Vec<_> = (0..5_000)
        .map(|row| (serde_bytes::ByteBuf::from(&*kinds[row * 7 % kinds.len()]),))
        .collect();
    let options = EncodeOptions::default().with_columns(true);
    let bytes = tenarc::ser::to_vec_with(&rows, options).unwrap();
    assert_eq!(count(&bytes, b"\x64dict"), 1);
    assert_eq!(count(&bytes, b"\x02behind all"), 30);
    assert_eq!(tenarc::from_slice::<Vec<(serde_bytes::ByteBuf,)>>(&bytes).unwrap(), rows);
}

/// A column of a megabyte is collected in the output.
#[test]
fn large_columns_are_dicts_too() {
    let texts: Vec<(String, u8)> =
        (0..20_000).map(|row| (format!("{:0300}", row / 30), 1)).collect();
    let options = EncodeOptions::default().with_columns(true);
    let bytes = tenarc::ser::to_vec_with(&texts, options).unwrap();
    assert!(bytes.len() < 300_000, "{}", bytes.len());
    let mut streamed = Vec::new();
    tenarc::ser::to_writer_with(&mut streamed, &texts, options).unwrap();
    assert_eq!(streamed, bytes);
    assert_eq!(tenarc::from_slice::<Vec<(String, u8)>>(&bytes).unwrap(), texts);
}

#[test]
fn dicts_in_archives() {
    for inline_below in [0, 1 << 20] {
        let lines = lines(80_000);
        let bytes = saved(&lines, inline_below);
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        let table = archive.table("log").unwrap();
        assert_eq!(table.len(), 80_000);
        for row in [0, 3, 65_535, 65_536, 69_999, 70_000, 79_999] {
            assert_eq!(table.row::<Line>(row as u64).unwrap(), lines[row], "{row}");
        }
        let some: Vec<Line> = table.rows(65_530..65_540).unwrap();
        assert_eq!(some, lines[65_530..65_540]);
        let levels: Vec<String> = table.column("level").unwrap();
        assert!(levels.iter().eq(lines.iter().map(|line| &line.level)));
        let hosts: Vec<Option<String>> = table.column("host").unwrap();
        assert!(hosts.iter().eq(lines.iter().map(|line| &line.host)));
        let segment = archive.segment(0).unwrap();
        assert_eq!(segment.get::<String>("level.5").unwrap(), lines[5].level);
        assert_eq!(segment.get::<String>("7.host").unwrap(), *lines[7].host.as_ref().unwrap());
        assert!(segment.tensors().unwrap().is_empty());
        assert!(segment.get::<tenarc::Tensor<DynTensor>>("level").is_err());
        let rows: Vec<Line> = table.iter::<Line>().collect::<tenarc::Result<_>>().unwrap();
        assert_eq!(rows, lines);
    }
}
