//! Tensors and files larger than 2 and 4 GiB. They are sparse files, so they need no disk space.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use ndarray::{Array1, ArrayView1, s};
use serde::Serialize;
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::tensor::{Element, Order, TensorMeta, ToTensor};
use tenarc::{Archive, DType, IArchive, OArchive, Tensor};

use super::support::{Dir, quick, weights};

/// Zeros, of which there is but one block in memory.
struct Zeros(usize);

impl ToTensor for Zeros {
    fn meta(&self) -> TensorMeta {
        TensorMeta { dtype: DType::U8, shape: [self.0].into(), order: Order::C }
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>) -> tenarc::Result<()> {
        let block = vec![0; 1 << 20];
        let mut left = self.0;
        while left > 0 {
            let step = left.min(block.len());
            put(&block[..step])?;
            left -= step;
        }
        Ok(())
    }
}

/// A file in which blocks of zeros are holes.
struct Sparse(File);

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Slices are compared fast without optimisation, too; single bytes are not.
        let is_zero = |chunk: &[u8]| *chunk == [0; 4096][..chunk.len()];
        if bytes.len() >= 4096 && bytes.chunks(4096).all(is_zero) {
            self.0.seek(SeekFrom::Current(bytes.len() as i64))?;
            return Ok(bytes.len());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[derive(Serialize)]
struct Huge {
    before: Tensor<Vec<f32>>,
    huge: Tensor<Zeros>,
    after: Tensor<Vec<f32>>,
}

fn check(len: usize) {
    let dir = Dir::new();
    let path = dir.file("huge.tenarc");
    // The bytes pass through the checksum, and that takes long enough.
    let options = quick().with_checksums(false);
    let mut out = OArchive::with_options(Sparse(File::create(&path).unwrap()), options).unwrap();
    let huge = Huge { before: weights(1000, 1), huge: Tensor(Zeros(len)), after: weights(1000, 2) };
    out.save_as("huge", &huge).unwrap().save_as("small", "text").unwrap();
    let file = out.finish().unwrap().0;
    assert!(file.metadata().unwrap().len() > len as u64);
    drop(file);

    let file = tenarc::open(&path).unwrap();
    let segment = file.named("huge").unwrap();
    assert_eq!(segment.tensor::<Array1<f32>>("after").unwrap().to_vec(), weights(1000, 2).0);
    let part: Array1<u8> = segment.slice("huge", s![-5..]).unwrap();
    assert_eq!(part.to_vec(), [0; 5]);
    assert_eq!(segment.tensors().unwrap()[1].shape(), [len]);
    assert_eq!(file.named("small").unwrap().load::<String>().unwrap(), "text");

    // SAFETY: nobody else knows of the file.
    let map = unsafe { tenarc::Map::open(&path) }.unwrap();
    let segment = map.segment(0).unwrap();
    let view: Tensor<ArrayView1<u8>> = segment.view_at("huge").unwrap();
    assert_eq!((view.len(), view[len - 1]), (len, 0));
    let view: Tensor<ArrayView1<f32>> = segment.view_at("after").unwrap();
    assert_eq!(view.to_vec(), weights(1000, 2).0);

    // A stream passes over it, in bounded memory.
    let source = File::open(&path).unwrap();
    let unchecked = DecodeOptions::default().with_checksums(false);
    let mut input = IArchive::with_options(source, unchecked).unwrap();
    #[derive(serde::Deserialize)]
    struct Rest {
        before: Tensor<Vec<f32>>,
        after: Tensor<Vec<f32>>,
    }
    let rest: Rest = input.load().unwrap();
    assert_eq!((rest.before, rest.after), (weights(1000, 1), weights(1000, 2)));
    assert_eq!(input.load_as::<String>("small").unwrap(), "text");
}

#[test]
#[ignore = "takes a minute without optimisation"]
fn a_tensor_of_more_than_2_gib() {
    check((2 << 30) + 12_345);
}

#[test]
#[ignore = "takes minutes without optimisation"]
fn a_file_of_more_than_4_gib() {
    check((4 << 30) + 12_345);
}

/// Reads the last byte of a chunk of 1 MiB.
fn last_of_chunk<S: ReadAt>(archive: &Archive<S>, chunk: usize) -> tenarc::Result<Array1<u8>> {
    let end = (chunk + 1) << 20;
    archive.slice("", s![end - 1..end])
}

#[test]
#[ignore = "takes a minute without optimisation"]
fn one_flipped_bit_in_2_gib_costs_one_chunk() {
    const CHUNKS: usize = 2 << 10;
    const DAMAGED: usize = 1234;
    let dir = Dir::new();
    let path = dir.file("damaged.tenarc");
    let out = Sparse(File::create(&path).unwrap());
    let mut out = OArchive::with_options(out, quick()).unwrap();
    out.save(&Tensor(Zeros(CHUNKS << 20))).unwrap();
    let mut file = out.finish().unwrap().0;
    let (start, _) = tenarc::open(&path).unwrap().only().unwrap().buffers()[0];
    file.seek(SeekFrom::Start(start + (DAMAGED as u64) * (1 << 20) + 99)).unwrap();
    file.write_all(&[1 << 5]).unwrap();
    drop(file);

    let archive = tenarc::open(&path).unwrap();
    let verified = archive.verify();
    let read = last_of_chunk(&archive, DAMAGED).map(drop);
    for error in [verified.unwrap_err(), read.unwrap_err()] {
        assert_eq!(error.category(), Category::Damaged);
        let (from, to) = (DAMAGED << 20, (DAMAGED + 1) << 20);
        let expected = format!("chunk {DAMAGED} of buffer 0, which is its bytes {from}..{to},");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    // The others are read: both neighbours, and some of the rest.
    for chunk in (0..CHUNKS).step_by(64).chain([DAMAGED - 1, DAMAGED + 1]) {
        assert_eq!(last_of_chunk(&archive, chunk).unwrap().to_vec(), [0]);
    }
}

/// Lengths that no memory holds are refused before anything is asked for.
#[test]
fn a_length_beyond_all_memory_is_refused_by_the_writer() {
    struct Endless;
    impl ToTensor for Endless {
        fn meta(&self) -> TensorMeta {
            let shape = [usize::MAX / 2, 4].into();
            TensorMeta { dtype: f64::DTYPE, shape, order: Order::C }
        }
        fn as_le_bytes(&self) -> Option<&[u8]> {
            None
        }
        fn write_blocks(
            &self,
            _: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>,
        ) -> tenarc::Result<()> {
            Ok(())
        }
    }
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    assert!(out.save(&Tensor(Endless)).is_err());
    out.save("after").unwrap();
    let bytes = out.finish().unwrap();
    assert_eq!(Archive::new(bytes).unwrap().load::<String>().unwrap(), "after");
}
