//! Files that were cut, changed, or made to mislead.

use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::tensor::Order;
use tenarc::{DType, Value};
use tenarc_convert::TensorFile as _;
use tenarc_convert::arrow::{ArrowFile, Batches, Layout};

use super::support::{both, fixture, quick, says, tensor, value};
use tenarc_test_support::alloc::peak_of;

const MIB: usize = 1 << 20;

fn small() -> Vec<Vec<u8>> {
    let rows = [
        ("a", tensor(&DType::Bool, &[5], Order::C, 0)),
        ("b", tensor(&DType::F32, &[5, 2], Order::C, 1)),
    ];
    let row = [
        ("a", tensor(&DType::U16, &[2, 3], Order::F, 0)),
        ("b", tensor(&DType::I64, &[], Order::C, 1)),
    ];
    let mut all = both(&rows, &quick().with_rows_per_batch(3)).to_vec();
    all.extend(both(&row, &quick().with_layout(Layout::OneRow)));
    for name in
        ["structs.arrow", "strings_sliced.arrow", "noise.arrow", "no_rows.arrow", "batches.arrows"]
    {
        all.push(fixture(name));
    }
    all
}

/// All that can be had of a file, by both ways; memory stays small meanwhile.
fn read(bytes: &[u8]) -> Option<Value> {
    // Of strings, several take the room of one more each.
    let limits = Limits::default().with_max_alloc(2 << 20);
    let (whole, most) = peak_of(|| {
        let file = ArrowFile::new(bytes).ok()?.with_limits(limits);
        let _ = file.nested().is_ok();
        value(&file).ok()
    });
    assert!(most < 24 * MIB, "{most} bytes");
    let ((), most) = peak_of(|| {
        for batch in Batches::with_limits(bytes, limits).into_iter().flatten() {
            let _ = batch.and_then(|batch| value(&batch));
        }
    });
    assert!(most < 24 * MIB, "{most} bytes");
    whole
}

#[test]
fn a_file_that_was_cut_is_none_and_a_stream_is_shorter() {
    for bytes in small() {
        let whole = read(&bytes).unwrap();
        let is_file = bytes.starts_with(b"ARROW1");
        for len in 0..bytes.len() {
            match read(&bytes[..len]) {
                None => {}
                Some(_) if is_file => panic!("a file of {} bytes was read of {len}", bytes.len()),
                // Where a batch ends, a stream may; columns may have nulls in what follows.
                Some(found) => {
                    assert!(found.as_map().unwrap().len() >= whole.as_map().unwrap().len());
                }
            }
        }
    }
}

#[test]
fn no_change_of_a_byte_does_harm() {
    for bytes in small() {
        for at in 0..bytes.len() {
            for change in [1, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                read(&changed);
            }
        }
    }
}

#[test]
fn no_change_of_compressed_bytes_does_harm() {
    for name in ["lz4.arrows", "zstd.arrows", "lz4.arrow", "zstd.arrow"] {
        let bytes = fixture(name);
        for at in (0..bytes.len()).step_by(41) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            read(&changed);
        }
    }
}

/// Puts other bytes in place of some that occur once.
fn with(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let found: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(old)).collect();
    assert_eq!(found.len(), 1, "{old:?}");
    let mut bytes = bytes.to_vec();
    bytes[found[0]..][..old.len()].copy_from_slice(new);
    bytes
}

#[test]
fn contradictions_are_named() {
    let stream = &both(&[("x", vec![0x55u8; 321])], &quick())[1];
    let number = |n: i64| n.to_le_bytes();
    // The number of rows stands in the batch and in the node, the buffer's length in the batch.
    let places: Vec<usize> =
        (0..stream.len() - 8).filter(|&at| stream[at..].starts_with(&number(321))).collect();
    let mut seen = Vec::new();
    for &place in &places {
        for claim in [-1, 0, 322, i64::MAX, i64::MIN] {
            let mut changed = stream.clone();
            changed[place..place + 8].copy_from_slice(&number(claim));
            let error = ArrowFile::new(&changed[..]).err().map(|error| error.to_string());
            seen.push(error.unwrap_or_default());
        }
    }
    assert!(places.len() == 3, "{places:?}");
    for expected in [
        "a record batch states -1 rows",
        "expected 322 rows, found 321",
        "expected 321 rows, found 322",
        "expected a buffer of at least 321 bytes, found 0",
        "a buffer of -1 bytes",
    ] {
        assert!(seen.iter().any(|error| error.contains(expected)), "{expected}: {seen:#?}");
    }
    // The length of the body.
    let changed = with(stream, &number(384), &number(1 << 40));
    says(ArrowFile::new(&changed[..]), "a body of 1099511627776 bytes, found");
    let error =
        says(Batches::new(&changed[..]).unwrap().next().unwrap(), "the limit is").category();
    assert_eq!(error, Category::Limit);
}

#[test]
fn strings_that_lie_elsewhere_are_refused() {
    let bytes = fixture("strings.arrow");
    let limits = Limits::default().with_max_alloc(40);
    let file = ArrowFile::new(&bytes[..]).unwrap().with_limits(limits);
    says(file.texts("utf8_view"), "more bytes for strings");
    says(file.texts("utf8"), "more bytes for strings");
    let changed: Vec<u8> = {
        let text = "für".as_bytes();
        let mut changed = bytes.clone();
        let places: Vec<usize> =
            (0..bytes.len()).filter(|&at| bytes[at..].starts_with(text)).collect();
        for at in places {
            changed[at + 1] = 0xff;
        }
        changed
    };
    let file = ArrowFile::new(&changed[..]).unwrap();
    for name in ["utf8", "large_utf8", "utf8_view"] {
        says(file.texts(name), "a text is not UTF-8");
    }
    file.byte_strings("binary").unwrap();
}

/// Rows that take no bytes can be claimed without end.
#[test]
fn rows_of_nothing_take_no_memory() {
    let nothing = both(&[("x", tensor(&DType::F32, &[77, 0], Order::C, 0))], &quick());
    for bytes in nothing {
        let mut changed = bytes.clone();
        for at in 0..bytes.len() - 8 {
            if bytes[at..].starts_with(&77i64.to_le_bytes()) {
                changed[at..at + 8].copy_from_slice(&(1i64 << 60).to_le_bytes());
            }
        }
        let file = ArrowFile::new(&changed[..]).unwrap();
        assert_eq!(file.dyn_tensor("x").unwrap().shape(), [1 << 60, 0]);
    }
}

#[test]
fn limits_hold() {
    let bytes = &both(&[("x", tensor(&DType::F32, &[100, 2, 3], Order::C, 0))], &quick())[1];
    let file = |limits| ArrowFile::new(&bytes[..]).unwrap().with_limits(limits);
    file(Limits::strict()).dyn_tensor("x").unwrap();
    says(
        file(Limits::default().with_max_rank(2)).dyn_tensor("x"),
        "3 dimensions, expected at most 2",
    );
    says(file(Limits::default().with_max_alloc(2399)).flat(), "the tensor has 2400 bytes");
    let limits = Limits::default().with_max_alloc(1000);
    says(Batches::with_limits(&bytes[..], limits).unwrap().next().unwrap(), "the limit is");
}
