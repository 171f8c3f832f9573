//! Tensors that share the memory they were read from, and values in parts.

use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::io::SharedBytes;
use tenarc::parts::{Parts, PartsInfo};
use tenarc::tensor::SharedTensor;
use tenarc::{Archive, OArchive, Tensor};

use crate::{Borrowed, Everything};

#[derive(Serialize)]
struct Model {
    weight: Tensor<Vec<f32>>,
    mask: Tensor<Vec<bool>>,
}

#[derive(Deserialize)]
struct Shared {
    weight: Tensor<SharedTensor>,
    mask: Tensor<SharedTensor>,
}

fn model() -> Model {
    Model { weight: Tensor(vec![0.5, -1.5]), mask: Tensor(vec![true, false]) }
}

fn in_buffers() -> SaveOptions {
    SaveOptions::default().with_inline_below(0).with_alignment(16)
}

#[track_caller]
fn check(shared: Shared) {
    let weight = shared.weight.clone();
    // Each of the two keeps the memory alive, in another thread too.
    std::thread::spawn(move || drop(shared.weight)).join().unwrap();
    assert_eq!(weight.to_dyn().unwrap().view::<f32>().unwrap().as_slice(), Some(&[0.5, -1.5][..]));
    assert_eq!(shared.mask.as_slice::<bool>().unwrap(), [true, false]);
    drop(weight);
    assert_eq!(&*shared.mask.le_bytes(), [1, 0]);
}

#[test]
fn tensors_outlive_the_archive_that_they_share() {
    let mut out = OArchive::with_options(Vec::new(), in_buffers()).unwrap();
    out.save(&model()).unwrap();
    let bytes = SharedBytes::from_owner(out.finish().unwrap());
    let archive = Archive::new(bytes.clone()).unwrap();
    let shared: Shared = archive.only().unwrap().load_shared().unwrap();
    let one = archive.only().unwrap().share("mask").unwrap();
    drop((archive, bytes));
    check(shared);
    assert_eq!(one.as_slice::<bool>().unwrap(), [true, false]);
}

#[test]
fn tensors_outlive_the_parts_that_they_share() {
    let parts = tenarc::parts::to_parts_with(&model(), in_buffers()).unwrap();
    let (metadata, buffers) = parts.into_shared().into_inner();
    let parts = Parts::new(metadata, buffers).unwrap();
    let shared: Shared = parts.load_shared().unwrap();
    drop(parts);
    check(shared);
}

#[test]
fn parts_are_put_together_in_every_way() {
    let expected = Everything::new();
    let sent = tenarc::parts::to_parts_with(&expected, in_buffers()).unwrap();
    let mut stream = Vec::new();
    sent.write_to(&mut stream).unwrap();
    assert_eq!(Parts::read_from(&stream[..]).unwrap().load::<Everything>().unwrap(), expected);
    let info = PartsInfo::new(sent.metadata()).unwrap();
    let filled = info.buffers().iter().zip(sent.buffers()).map(|(info, bytes)| {
        let mut buffer = info.allocate().unwrap();
        buffer.copy_from_slice(bytes);
        buffer
    });
    let buffers: Vec<_> = filled.collect();
    let parts = info.with_buffers(buffers).unwrap();
    parts.view::<Borrowed>().unwrap().check(&expected);
    assert_eq!(parts.load::<Everything>().unwrap(), expected);
}
