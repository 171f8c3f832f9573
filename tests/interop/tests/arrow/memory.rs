//! Reading and converting takes little memory, whatever the size of the file.

use std::fs::File;
use std::io::{BufReader, Write as _};

use tenarc::DType;
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::io::SyncLevel;
use tenarc::tensor::{Deferred, Order};
use tenarc_convert::arrow::{self, ArrowFile, Batches, Container};
use tenarc_convert::{Format, Options, TensorFile as _};

use super::support::quick;
use tenarc_test_support::alloc::peak_of;

const MIB: usize = 1 << 20;

/// 16 MiB, of which a block is there.
fn large(shape: &[usize], order: Order) -> Deferred<'static> {
    Deferred::from_blocks(DType::F32, shape, order, |put| {
        (0..64u8).try_for_each(|at| put(&vec![at; MIB / 4]))
    })
}

#[test]
fn a_conversion_takes_blocks_of_a_tensor() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("x.arrow"), dir.path().join("x.tenarc"));
    let options = Options::default().with_save(SaveOptions::default().with_sync(SyncLevel::Off));
    for (shape, order) in [(&[4 * MIB][..], Order::C), (&[1024, 4096], Order::C)] {
        let (saved, most) =
            peak_of(|| arrow::save_with(&from, &[("x", large(shape, order))], &quick()));
        saved.unwrap();
        assert!(most < 2 * MIB, "{most} bytes to write 16 MiB");
        let (done, most) = peak_of(|| Format::Arrow.to_archive(&from, &to, &options));
        done.unwrap();
        assert!(most < 2 * MIB, "{most} bytes to archive 16 MiB");
        let (tensor, most) = peak_of(|| arrow::open(&from).unwrap().dyn_tensor("x").unwrap());
        assert_eq!(tensor.shape(), shape);
        assert!(most < 17 * MIB, "{most} bytes to read 16 MiB");
    }
}

#[test]
fn a_stream_takes_one_batch() {
    let mut file = tempfile::tempfile().unwrap();
    let options = Options::default().with_rows_per_batch(64).with_container(Container::Stream);
    let held = vec![7u8; 16 * MIB];
    let rows = ndarray::ArrayView2::from_shape((1024, 16 << 10), &held).unwrap();
    arrow::to_writer_with(&mut file, &[("x", rows)], &options).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let (rows, most) = peak_of(|| {
        let batches = Batches::new(BufReader::new(&file)).unwrap();
        batches.map(|batch| batch.unwrap().flat().map(|_| 64).unwrap()).sum::<usize>()
    });
    assert_eq!(rows, 1024);
    assert!(most < 2 * MIB, "{most} bytes for batches of 1 MiB");
}

/// Lengths may claim what they like.
#[test]
fn memory_follows_the_bytes_received() {
    for len in [100_000_000i32, i32::MAX, -1] {
        let bytes = [&[0xff; 4][..], &len.to_le_bytes(), &[0; 1000]].concat();
        let (error, most) = peak_of(|| Batches::new(&bytes[..]).unwrap_err());
        assert!(most < MIB, "{most} bytes for {error}");
        let (error, most) = peak_of(|| ArrowFile::new(&bytes[..]).unwrap_err());
        assert!(most < MIB, "{most} bytes for {error}");
    }
}

/// A window of 128 MiB is no reason to allocate it.
#[test]
fn frames_do_not_choose_the_memory() {
    let mut bytes = super::support::fixture("zstd.arrows");
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let places: Vec<usize> =
        (0..bytes.len() - 8).filter(|&at| bytes[at..].starts_with(&magic)).collect();
    for at in places {
        // A window of its own, as large as can be, and no size of the content.
        bytes[at + 4] = 0;
        bytes[at + 5] = 0x8f;
    }
    let file = ArrowFile::new(&bytes[..]).unwrap();
    let (error, most) = peak_of(|| file.dyn_tensor("x").unwrap_err());
    assert_eq!(error.category(), Category::Damaged);
    assert!(most < MIB, "{most} bytes for {error}");
}

/// Zeros that were compressed to nearly nothing.
#[test]
fn what_is_compressed_goes_over_in_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("x.arrow"), dir.path().join("x.tenarc"));
    let zeros: arrow_array::ArrayRef =
        std::sync::Arc::new(arrow_array::UInt8Array::from(vec![0; 64 * MIB]));
    let batch = arrow_array::RecordBatch::try_from_iter([("x", zeros)]).unwrap();
    let lz4 = Some(arrow_ipc::CompressionType::LZ4_FRAME);
    let options = arrow_ipc::writer::IpcWriteOptions::default().try_with_compression(lz4).unwrap();
    let mut file = File::create(&from).unwrap();
    let mut out =
        arrow_ipc::writer::FileWriter::try_new_with_options(&mut file, &batch.schema(), options)
            .unwrap();
    out.write(&batch).unwrap();
    out.finish().unwrap();
    drop(out);
    file.flush().unwrap();
    assert!(file.metadata().unwrap().len() < MIB as u64);
    let options = Options::default().with_save(SaveOptions::default().with_sync(SyncLevel::Off));
    let (done, most) = peak_of(|| Format::Arrow.to_archive(&from, &to, &options));
    done.unwrap();
    assert!(most < 24 * MIB, "{most} bytes for 64 MiB");
    assert_eq!(tenarc::open(&to).unwrap().only().unwrap().info("x").unwrap().shape(), [64 * MIB]);
}
