//! While a value with many deferred tensors is saved, only one of them is in memory at a time.

use std::convert::Infallible;
use std::io;

use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::parts::Split;
use tenarc::tensor::{Deferred, Order};
use tenarc::{DType, OArchive, Tensor};

use tenarc_test_support::alloc::peak_of;

/// The default, without syncing.
fn quick() -> SaveOptions {
    SaveOptions::default().with_sync(SyncLevel::Off)
}

const COUNT: usize = 16;
/// Bytes of one tensor.
const ONE: usize = 4 << 20;
/// What may come on top: staging, metadata, a block.
const BESIDE: usize = 256 << 10;
/// One block of those that come in blocks.
const BLOCK: usize = 64 << 10;

#[derive(Serialize)]
struct Model<'a> {
    name: &'static str,
    layers: Vec<Tensor<Deferred<'a>>>,
}

/// Fetched whole.
fn whole() -> Model<'static> {
    let fetch = |seed: u8| move || Ok::<_, Infallible>(vec![f32::from(seed); ONE / 4]);
    let layers = (0..16).map(|seed| Deferred::new(&[1024, 1024], fetch(seed)).into());
    Model { name: "whole", layers: layers.collect() }
}

/// Handed over in blocks; smaller, as each way hashes all of it.
fn blocks() -> Model<'static> {
    let layer = |seed: u8| {
        Deferred::from_blocks(DType::F32, &[512, 512], Order::C, move |put| {
            let block = vec![seed; BLOCK];
            (0..(1 << 20) / BLOCK).try_for_each(|_| put(&block))
        })
    };
    Model { name: "blocks", layers: (0..16).map(|seed| layer(seed).into()).collect() }
}

/// Takes everything, keeps nothing.
struct Counting(usize);

impl io::Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[track_caller]
fn assert_most(name: &str, way: &str, (taken, most): (tenarc::Result<usize>, usize), bound: usize) {
    let taken = taken.unwrap();
    assert!(taken >= COUNT << 20, "{name}, {way}: {taken} bytes came out");
    println!("{name}, {way}: {} KiB", most >> 10);
    assert!(most <= bound, "{name}, {way}: {most} bytes in memory, of {bound}");
}

#[test]
fn one_tensor_at_a_time_is_in_memory() {
    for (model, one, held) in [(whole(), ONE, ONE), (blocks(), 1 << 20, BLOCK)] {
        let name = model.name;
        let bound = held + BESIDE;

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.tenarc");
        let saved = peak_of(|| {
            tenarc::archive::save_with(&path, &model, quick())?;
            Ok(usize::try_from(path.metadata().unwrap().len()).unwrap())
        });
        assert_most(name, "save", saved, bound);

        let written = peak_of(|| {
            let mut out = OArchive::new(Counting(0))?;
            out.save(&model)?;
            out.finish().map(|counting| counting.0)
        });
        assert_most(name, "OArchive", written, bound);

        // One walk for the checksums; then the buffers, as often as one likes.
        let (split, most) = peak_of(|| Split::new(&model));
        let split = split.unwrap();
        assert_most(name, "Split::new", (Ok(COUNT * one), most), bound);
        let sent = peak_of(|| {
            let mut counting = Counting(0);
            split.write_to(&mut counting)?;
            Ok(counting.0)
        });
        assert_most(name, "Split::write_to", sent, bound);

        let sent = peak_of(|| {
            let mut total = 0;
            split.pieces(|piece| {
                total += piece.bytes.len();
                Ok(())
            })?;
            Ok(total)
        });
        assert_most(name, "Split::pieces", sent, bound);

        // What comes in blocks is gathered, one buffer at a time.
        let gathered = if held == one { bound } else { one + bound };
        let sent = peak_of(|| {
            let mut total = 0;
            split.each_buffer(|_, bytes| {
                total += bytes.len();
                Ok(())
            })?;
            Ok(total)
        });
        assert_most(name, "Split::each_buffer", sent, gathered);

        let written = peak_of(|| {
            let mut counting = Counting(0);
            tenarc::to_writer(&mut counting, &model)?;
            Ok(counting.0)
        });
        assert_most(name, "to_writer", written, bound);

        let parts = peak_of(|| {
            let parts = tenarc::to_parts(&model)?;
            Ok(parts.buffers().iter().map(|buffer| buffer.len()).sum())
        });
        assert_most(name, "to_parts", parts, COUNT * one + bound);
    }
}

/// Under dedup they are hashed, and not kept to be compared.
#[test]
fn dedup_keeps_none_of_them() {
    let model = blocks();
    let written = peak_of(|| {
        let mut out = OArchive::with_options(Counting(0), quick().with_dedup(true))?;
        out.save(&model)?;
        out.finish().map(|counting| counting.0)
    });
    assert_most(model.name, "OArchive with dedup", written, BLOCK + BESIDE);
}

/// The result itself, which is allocated once, and one tensor beside it.
#[test]
fn a_message_takes_its_own_length_and_one_tensor() {
    let model = whole();
    let message = peak_of(|| tenarc::to_vec(&model).map(|bytes| bytes.len()));
    assert_most("whole", "to_vec", message, COUNT * ONE + ONE + BESIDE);
}
