//! Columns whose buffers in an archive are not what the metadata say.

use tenarc::archive::col;
use tenarc::{Archive, DynTensor, Tensor, Value};
use tenarc_test_support::alloc::refusing_above;
use tenarc_test_support::builder::{Seg, archive, map, numbers_ref, tensor_ref, unsigned};
use tenarc_test_support::effort::some_of;

use crate::build::{Style, Writer, kind, one};
use crate::hostile::rows;

// 121
#[test]
fn buffers_of_another_length_than_their_column() {
    let list = |len: u64, number| kind("array", &[unsigned(len), numbers_ref("u8", number)]);
    let cases: [(u64, Vec<u8>, &[u8]); 6] = [
        (3, numbers_ref("f32", 0), &[1; 4]),
        (3, numbers_ref("f32", 0), &[1; 16]),
        (3, tensor_ref("u8", &[3, 2], 0), &[1; 7]),
        (2, list(1 << 39, 0), &[1; 8]),
        (2, list(1 << 62, 0), &[1; 8]),
        (2, list(u64::MAX, 0), &[1; 8]),
    ];
    for (rows, column, buffer) in cases {
        let metadata = map(&[("log", one(rows, map(&[("x", column)])))]);
        let bytes = archive(&Seg::new(metadata, &[buffer]));
        let file = Archive::new(&bytes[..]).unwrap();
        // Reading beyond the buffer would read what follows it in the file.
        let errors = refusing_above(1 << 20, || {
            let part = file.slice::<DynTensor>("log.x", (0..2,)).map(drop);
            let column = file.slice::<DynTensor>("log.x", (.., 0..1)).map(drop);
            let all = file.get::<Tensor<DynTensor>>("log.x").map(drop);
            [part, column, all].map(|result| result.unwrap_err().to_string())
        });
        // The column, or its first row.
        let named = |error: &String| error.contains("log.x") || error.contains("log.0.x");
        assert!(errors.iter().all(named), "{errors:?}");
    }
}

/// Reads a table with damaged buffers in many ways. `paths` are those of its columns.
fn try_table(bytes: &[u8], paths: &[String]) {
    let archive = Archive::new(bytes).unwrap();
    let table = archive.only().unwrap().table("").unwrap();
    // Compared by their bytes, as a NaN equals nothing.
    let bytes = |rows: Vec<Value>| -> Vec<Vec<u8>> {
        rows.iter().map(|row| tenarc::to_vec(row).unwrap()).collect()
    };
    let whole = archive.load().map(bytes);
    let parts = archive.only().unwrap().to_parts().unwrap();
    assert_eq!(parts.load().map(bytes).ok(), whole.as_ref().ok().cloned());
    let count = usize::try_from(table.len()).unwrap();
    for first in 0..count - 1 {
        let some = table.rows(first as u64..first as u64 + 2).map(bytes);
        match (&whole, some) {
            (Ok(whole), some) => assert_eq!(some.unwrap(), whole[first..first + 2]),
            // What is wrong may be in other rows.
            (Err(_), Ok(some)) => assert_eq!(some.len(), 2),
            (Err(_), Err(_)) => {}
        }
    }
    for path in paths {
        let column: tenarc::Result<Vec<Value>> = table.column(path);
        let views = table.views::<Vec<Value>>(path).unwrap();
        let views: tenarc::Result<Vec<Vec<Value>>> = views.collect();
        match (column, views) {
            (Ok(column), Ok(views)) => {
                assert_eq!(column.len(), count, "{path}");
                assert_eq!(bytes(views.concat()), bytes(column), "{path}");
            }
            (Err(_), Err(_)) => assert!(whole.is_err(), "{path}"),
            (column, views) => panic!("{path}: {column:?}, views: {views:?}"),
        }
        drop(table.view_column::<Vec<&str>>(path));
        let number: tenarc::Result<u64> = table.filter(col(path).eq(1)).count();
        assert!(number.is_err() || table.column::<Vec<Value>>(path).is_ok(), "{path}");
        drop(table.filter(col(path).eq("a")).column::<Vec<Value>>(path));
        let there = table.filter(col(path).is_not_null());
        if let (Ok(rows), Ok(column)) = (there.row_numbers(), there.column::<Vec<Value>>(path)) {
            assert_eq!(rows.len(), column.len(), "{path}");
            assert!(column.iter().all(|value| !value.is_null()), "{path}");
        }
    }
}

// 121
/// Bits, lengths, codes, texts and numbers in buffers that are not what the metadata need.
#[test]
fn flipped_bits_in_buffers_are_no_danger() {
    let styles = [
        Style { buffers: true, ..Style::default() },
        Style { buffers: true, wide: true, tuples: true, group: 4, ..Style::default() },
    ];
    for style in styles {
        let mut writer = Writer::new(style);
        let document = writer.document(&rows());
        assert!(writer.buffers.len() > 10);
        let made = |buffers: &[Vec<u8>]| {
            let buffers: Vec<&[u8]> = buffers.iter().map(|buffer| &**buffer).collect();
            archive(&Seg::new(document.clone(), &buffers))
        };
        let whole = made(&writer.buffers);
        let sound = Archive::new(&whole[..]).unwrap();
        assert_eq!(sound.load::<Vec<Value>>().unwrap(), rows());
        let columns = sound.only().unwrap().table("").unwrap().columns().unwrap();
        let paths: Vec<String> = columns.iter().map(|column| column.path().to_owned()).collect();
        let mut buffers = writer.buffers.clone();
        for number in 0..buffers.len() {
            for at in 0..buffers[number].len() {
                // The lowest, the highest, and each of the others at some of the bytes.
                for bit in some_of([0, 7, 1 + at % 6], 3, at) {
                    buffers[number][at] ^= 1 << bit;
                    let damaged = made(&buffers);
                    refusing_above(1 << 20, || try_table(&damaged, &paths));
                    buffers[number][at] ^= 1 << bit;
                }
            }
        }
    }
}
