//! A build without the feature `compression` lists, verifies and copies compressed tensors, reads everything else, and
//! names the feature where it is missing. `.ci/run` runs this program without the feature; with it, there are no tests
//! here.

#![cfg(not(feature = "compression"))]

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_bytes::ByteBuf;
use tenarc::archive::{Compression, SaveOptions, Segment};
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Archive, DynTensor, Error, IArchive, OArchive, Tensor};
use tenarc_test_support::OneByte;

/// The paths, and the lengths in bytes, of the tensors in `compressed.tenarc`, which are stored in buffers of these
/// numbers.
const TENSORS: [(&str, u64); 7] = [
    ("bf16", 120_000),
    ("f32", 80_000),
    ("f64", 16_000),
    ("complex", 24_000),
    ("i64", 160_000),
    ("bool", 70_001),
    ("f4", 4096),
];

/// The values in it, and the codec of each tensor.
const VALUES: [(&str, [&str; 7]); 4] = [
    ("zstd", ["zstd"; 7]),
    ("lz4", ["lz4"; 7]),
    ("library", ["zstd"; 7]),
    ("mixed", ["zstd", "lz4", "zstd", "", "zstd", "lz4", ""]),
];

fn golden() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/compressed.tenarc");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Bytes that can be read at any position and are not in memory, as those of a file.
struct At(Vec<u8>);

impl ReadAt for At {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

/// The bytes of a buffer as they are stored.
fn stored<'a, S: ReadAt>(segment: &Segment<'_, S>, archive: &'a [u8], number: usize) -> &'a [u8] {
    let (start, len) = segment.buffers()[number];
    let len = segment.compressed(number).map_or(len, |buffer| buffer.stored_len());
    &archive[usize::try_from(start).unwrap()..][..usize::try_from(len).unwrap()]
}

#[track_caller]
fn names_the_feature(error: &Error, codec: &str) {
    assert_eq!(error.category(), Category::Unsupported, "{error}");
    let expected = format!("this build cannot read {codec}: turn on the feature `compression`");
    assert!(error.to_string().contains(&expected), "{error}");
}

#[test]
fn compressed_tensors_are_listed_verified_and_copied() {
    let bytes = golden();
    let archive = Archive::new(At(bytes.clone())).unwrap();
    archive.verify().unwrap();
    let mut copy = OArchive::new(Vec::new()).unwrap();
    for (name, codecs) in VALUES {
        let segment = archive.named(name).unwrap();
        let listed = segment.tensors().unwrap();
        for (number, ((path, len), codec)) in TENSORS.into_iter().zip(codecs).enumerate() {
            assert_eq!((listed[number].path(), listed[number].byte_len()), (path, len), "{name}");
            let found = segment.compressed(number);
            assert_eq!(found.map_or("", |found| found.codec()), codec, "{name}: {path}");
        }
        segment.verify_at("f32").unwrap();
        copy.save_segment(&segment).unwrap();
    }
    let copy = copy.finish().unwrap();
    let copied = Archive::new(&copy[..]).unwrap();
    copied.verify().unwrap();
    for (name, _) in VALUES {
        let (old, new) = (archive.named(name).unwrap(), copied.named(name).unwrap());
        for number in 0..old.buffers().len() {
            assert!(
                stored(&old, &bytes, number) == stored(&new, &copy, number),
                "{name}: {number}"
            );
        }
    }
}

#[test]
fn compressed_tensors_are_refused_by_name_and_others_are_read() {
    let bytes = golden();
    let positioned = Archive::new(At(bytes.clone())).unwrap();
    let in_memory = Archive::new(bytes).unwrap();
    for (name, codecs) in VALUES {
        for ((path, len), codec) in TENSORS.into_iter().zip(codecs) {
            let tensors = [
                positioned.named(name).unwrap().dyn_tensor(path),
                in_memory.named(name).unwrap().dyn_tensor(path),
            ];
            for tensor in tensors {
                match tensor {
                    Ok(tensor) => {
                        assert_eq!((tensor.le_bytes().len() as u64, codec), (len, ""), "{path}");
                    }
                    Err(error) => {
                        names_the_feature(&error, codec);
                        assert_eq!(error.path(), path);
                    }
                }
            }
        }
        // Noise does not shrink. The second chunk of the other one is noise too.
        let segment = positioned.named(name).unwrap();
        let noise: ByteBuf = segment.get("noise").unwrap();
        let mut chunk = vec![0; 64 << 10];
        segment.read_buffer_part(7, 64 << 10, &mut chunk).unwrap();
        assert!(chunk.starts_with(&noise), "{name}");
        let error = segment.read_buffer_part(7, 0, &mut chunk).unwrap_err();
        names_the_feature(&error, codecs[0]);
    }
}

/// A field with a compressed tensor, behind fields that are skipped.
#[derive(Deserialize, Debug)]
struct Part {
    #[serde(rename = "bool")]
    _bool: Tensor<DynTensor>,
}

#[derive(Deserialize, Debug)]
struct Noise {
    noise: ByteBuf,
}

#[test]
fn every_way_names_the_feature() {
    let bytes = golden();
    let archive = Archive::new(At(bytes.clone())).unwrap();
    for (name, codecs) in VALUES {
        let segment = archive.named(name).unwrap();
        let codec = codecs[5];
        let stream = |reader: &mut dyn io::Read| IArchive::new(reader)?.load_as::<Part>(name);
        let mut errors = vec![
            segment.load::<Part>().unwrap_err(),
            segment.slice::<Vec<bool>>("bool", (3..5,)).unwrap_err(),
            stream(&mut &bytes[..]).unwrap_err(),
            stream(&mut OneByte(&bytes)).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.path() == "bool"), "{errors:?}");
        errors.push(segment.read_buffer(5, |_| Ok(())).unwrap_err());
        for error in errors {
            names_the_feature(&error, codec);
        }
        names_the_feature(&segment.to_parts().unwrap_err(), codecs[0]);
        // Values without compressed tensors are loaded, also by a stream.
        let noise: Noise = segment.load().unwrap();
        let found: Noise = IArchive::new(&bytes[..]).unwrap().load_as(name).unwrap();
        assert!(found.noise == noise.noise);
    }
}

#[test]
fn nothing_is_saved_if_it_should_be_compressed() {
    for (codec, compression) in [("zstd", Compression::zstd()), ("lz4", Compression::lz4())] {
        let options = SaveOptions::default().with_compression(compression);
        let saved = OArchive::with_options(Vec::new(), options)
            .and_then(|mut out| out.save(&Tensor(vec![0.5f32; 100_000])).map(drop));
        let error = saved.unwrap_err().to_string();
        let expected =
            format!("this build cannot write {codec}: turn on the feature `compression`");
        assert!(error.contains(&expected), "{error}");
    }
}
