//! How much memory the conversions of `MessagePack`, JSON and ONNX take.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use tenarc::error::Category;
use tenarc_convert::{Format, Options};
use tenarc_convert::{json, msgpack};

use tenarc_test_support::alloc::peak_of;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;

const MIB: usize = 1 << 20;

/// A file of pieces.
fn write(path: &Path, pieces: &[&[u8]], times: usize) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for _ in 0..times {
        for piece in pieces {
            file.write_all(piece).unwrap();
        }
    }
    file.flush().unwrap();
}

/// What `msgpack_numpy` puts in front of `MIB` bytes.
fn array(descr: &[u8], len: u32) -> Vec<u8> {
    let front = [&b"\x84\xa2nd\xc3\xa4type\xa3"[..], descr, b"\xa5shape\x91\xce"].concat();
    let data = [&b"\xa4data\xc6"[..], &u32::try_from(MIB).unwrap().to_be_bytes()].concat();
    [&front[..], &len.to_be_bytes(), &data].concat()
}

#[test]
fn messagepack_and_json_go_over_tensor_by_tensor() {
    let dir = tempfile::tempdir().unwrap();
    let (from, archive, to) = (dir.path().join("in"), dir.path().join("a"), dir.path().join("out"));
    let zeros = vec![0; MIB];
    let mut file = File::create(&from).unwrap();
    // One value of 16 arrays, every other one big-endian.
    file.write_all(b"\xdc\x00\x10").unwrap();
    for _ in 0..8 {
        for descr in [&b"<u4"[..], b">f4"] {
            file.write_all(&array(descr, 1 << 18)).unwrap();
            file.write_all(&zeros).unwrap();
        }
    }
    let (result, most) =
        peak_of(|| Format::Msgpack.to_archive(&from, &archive, &Options::default()));
    result.unwrap();
    assert!(most < 2 * MIB, "{most} bytes to archive 16 MiB of MessagePack");
    let (result, most) =
        peak_of(|| Format::Msgpack.from_archive(&archive, &to, &Options::default()));
    result.unwrap();
    assert!(fs::metadata(&to).unwrap().len() > 16 << 20);
    assert!(most < 3 * MIB, "{most} bytes to write tensors of 1 MiB as MessagePack");
    let (result, most) = peak_of(|| Format::Json.from_archive(&archive, &to, &Options::default()));
    result.unwrap();
    assert!(most < 3 * MIB, "{most} bytes to write tensors of 1 MiB as JSON");
}

#[test]
fn json_lines_go_over_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let (from, archive) = (dir.path().join("in"), dir.path().join("a"));
    let line = format!("{{\"a\":{:?}}}\n", vec![0.5; 1000]);
    write(&from, &[line.as_bytes()], 500);
    let (result, most) = peak_of(|| Format::Json.to_archive(&from, &archive, &Options::default()));
    result.unwrap();
    assert!(most < MIB, "{most} bytes for lines of {} bytes", line.len());
}

#[test]
fn models_go_over_in_steps() {
    let dir = tempfile::tempdir().unwrap();
    let (from, archive) = (dir.path().join("in"), dir.path().join("a"));
    // 8 MiB, and as many elements: a dimension of four bytes, and lengths of four bytes.
    let large = [0x80, 0x80, 0x80, 4];
    // As bytes of u8, and as packed numbers of i32.
    for (kind, field) in [(2, 9 << 3 | 2), (6, 5 << 3 | 2)] {
        let front = [&[8][..], &large, &[16, kind, field], &large].concat();
        let mut len = large;
        len[0] |= u8::try_from(front.len()).unwrap();
        let tensor = [&[5 << 3 | 2][..], &len, &front].concat();
        let mut len = large;
        len[0] |= u8::try_from(front.len() + 5).unwrap();
        let head = [&[7 << 3 | 2][..], &len, &tensor].concat();
        write(&from, &[&head, &vec![1; 8 * MIB]], 1);
        let (result, most) =
            peak_of(|| Format::Onnx.to_archive(&from, &archive, &Options::default()));
        result.unwrap();
        assert!(most < 2 * MIB, "{most} bytes to archive a model of 8 MiB");
        assert_eq!(
            tenarc::open(&archive).unwrap().only().unwrap().info("/").unwrap().shape(),
            [8 * MIB]
        );
    }
}

/// Lengths may claim what they like.
#[test]
fn memory_follows_the_bytes_received() {
    let claims = [0xc6, 0xdb, 0xdd, 0xdf].map(|marker| vec![marker, 0xff, 0xff, 0xff, 0xf0]);
    for given in [0, 100, MIB] {
        for claim in &claims {
            let bytes = [&claim[..], &vec![b'a'; given]].concat();
            let (error, most) = peak_of(|| msgpack::read(&bytes[..]).unwrap_err());
            // A map has a key only once.
            let twice = claim[0] == 0xdf && given > 0;
            let expected = if twice { Category::Data } else { Category::Eof };
            assert_eq!(error.category(), expected, "{error}");
            assert!(most < 200 * given + MIB, "{most} bytes for {given}");
        }
        let bytes = [&b"\""[..], &vec![b'a'; given]].concat();
        let (error, most) = peak_of(|| json::read(&bytes[..]).unwrap_err());
        assert_eq!(error.category(), Category::Eof, "{error}");
        assert!(most < 4 * given + MIB, "{most} bytes for {given}");
    }
    let numbers = format!("[{}", "1,".repeat(MIB / 2));
    let (_, most) = peak_of(|| json::read(numbers.as_bytes()).unwrap_err());
    assert!(most < 64 * MIB, "{most} bytes for 1 MiB of numbers");
}
