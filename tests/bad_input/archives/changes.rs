//! Group I: single bytes changed.

use ndarray::{Array2, s};
use serde::de::DeserializeOwned;
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Archive, DynTensor, Error};
use tenarc_test_support::effort::{some_of, stride};

use super::samples::{self, Model, ModelView, model};
use super::support::{At, values, verify, verify_torn};

/// Every value that a byte can become: all bits flipped one by one, all zeros, all ones, one more.
fn others(byte: u8) -> Vec<u8> {
    let mut others: Vec<u8> = (0..8).map(|bit| byte ^ (1 << bit)).collect();
    others.extend([0, 0xff, byte.wrapping_add(1)]);
    others.sort_unstable();
    others.dedup();
    others.retain(|&other| other != byte);
    others
}

/// Calls `check` with every changed archive and the place of the change; in a short run with some of the values of a byte.
fn each_change(bytes: &[u8], step: usize, mut check: impl FnMut(&[u8], usize)) {
    let mut changed = bytes.to_vec();
    for at in (0..bytes.len()).step_by(step) {
        for other in some_of(others(bytes[at]), 3, at / step) {
            changed[at] = other;
            check(&changed, at);
        }
        changed[at] = bytes[at];
    }
}

/// Nothing, or the truth.
#[track_caller]
fn is_error_or<T: PartialEq + std::fmt::Debug>(result: Result<T, Error>, truth: &T, at: usize) {
    match result {
        Ok(value) => assert_eq!(value, *truth, "byte {at}"),
        Err(error) => assert_ne!(error.category(), Category::Io, "byte {at}: {error}"),
    }
}

fn loads<T: DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8], truth: &[T], at: usize) {
    let (found, error) = values::<T>(bytes);
    assert!(truth.starts_with(&found), "byte {at}: {found:?}");
    assert!(error.is_some() || found.len() == truth.len(), "byte {at}");
    for archive in [Archive::new(At(bytes)), Archive::new_torn(At(bytes))] {
        let Ok(archive) = archive else { continue };
        if archive.torn().is_none() {
            assert_eq!(archive.len(), truth.len() as u64, "byte {at}");
        }
        for (index, truth) in truth.iter().enumerate() {
            is_error_or(archive.segment(index as u64).and_then(|one| one.load()), truth, at);
        }
    }
}

/// Where the elements of buffers are.
fn bodies<S: ReadAt>(archive: &Archive<S>) -> Vec<(u64, u64)> {
    archive.segments().flat_map(|segment| segment.unwrap().buffers().to_vec()).collect()
}

// 70, 60
#[test]
fn every_changed_byte_of_a_value_is_found() {
    let bytes = samples::one();
    verify(&bytes).unwrap();
    let truth = model(1);
    let part = truth.weight.slice(s![1..3, ..]).to_owned();
    let archive = Archive::new(&bytes).unwrap();
    assert_eq!(archive.view::<ModelView>().unwrap().to_model(), truth);
    let tensors = archive.tensors().unwrap();
    let bodies = bodies(&archive);
    each_change(&bytes, 1, |changed, at| {
        assert!(verify(changed).is_err(), "byte {at} is not verified");
        assert!(verify_torn(changed).is_err(), "byte {at} is not verified in a torn archive");
        loads(changed, std::slice::from_ref(&truth), at);
        let Ok(archive) = Archive::new(At(changed)) else { return };
        is_error_or(archive.load::<Model>(), &truth, at);
        is_error_or(archive.get::<Vec<f32>>("curve"), &truth.curve, at);
        is_error_or(archive.tensor::<ndarray::Array2<f32>>("tied"), &truth.weight.0, at);
        is_error_or(
            archive.only().and_then(|value| value.dyn_tensor("bias")),
            &DynTensor::from(truth.bias.0.clone()),
            at,
        );
        is_error_or(archive.tensors(), &tensors, at);
        // Slices and views have no checksum: that is one of the whole tensor.
        if !bodies.iter().any(|&(start, len)| (start..start + len).contains(&(at as u64))) {
            let slice = archive.slice::<ndarray::Array2<f32>>("weight", s![1..3, ..]);
            is_error_or(slice, &part, at);
            let archive = Archive::new(changed).unwrap();
            is_error_or(archive.view().map(|view: ModelView| view.to_model()), &truth, at);
        }
    });
}

// 70, 60
#[test]
fn every_changed_byte_of_several_values_is_found() {
    let truth: Vec<Model> = (0..3).map(model).collect();
    let bytes = samples::several();
    verify(&bytes).unwrap();
    // More bytes of the same kinds as one value has: some of them will do.
    each_change(&bytes, 7, |changed, at| {
        assert!(verify(changed).is_err(), "byte {at} is not verified");
        loads(changed, &truth, at);
        let Ok(archive) = Archive::new(At(changed)) else { return };
        for (name, truth) in samples::NAMES.iter().zip(&truth) {
            is_error_or(archive.named(name).and_then(|one| one.load()), truth, at);
        }
    });
    let bytes = samples::appended();
    verify(&bytes).unwrap();
    each_change(&bytes, 3, |changed, at| {
        assert!(verify(changed).is_err(), "byte {at} is not verified");
        // Least of all is it cut off by the next append.
        assert!(Archive::new(changed).map_or(true, |archive| archive.unfinished_bytes() == 0));
        loads(changed, &truth[..2], at);
    });
}

// 70
#[test]
fn every_changed_byte_of_a_directory_is_found() {
    let bytes = samples::many();
    verify(&bytes).unwrap();
    let truth: Vec<Vec<f32>> = (0..66).map(|at| vec![at as f32; 8]).collect();
    let archive = Archive::new(&bytes).unwrap();
    let (last, first) = (archive.segment(63).unwrap(), archive.segment(64).unwrap());
    let block = (last.offset() + last.byte_len()) as usize..first.offset() as usize;
    assert!(block.len() > 64);
    let mut changed = bytes.clone();
    for at in block.chain((0..bytes.len()).step_by(499 * stride(3))) {
        changed[at] ^= 1 << (at % 8);
        assert!(verify(&changed).is_err(), "byte {at} is not verified");
        loads(&changed, &truth, at);
        if let Ok(archive) = Archive::new(At(&changed)) {
            for index in [0, 20, 63, 64] {
                let found = archive.named(&index.to_string()).and_then(|one| one.load());
                is_error_or(found, &truth[index], at);
            }
            assert!(archive.named("none").is_err());
        }
        changed[at] = bytes[at];
    }
}

// 70: without checksums elements can change unseen, and nothing else can.
#[test]
fn without_checksums_only_elements_can_change() {
    let bytes = samples::unchecked();
    verify(&bytes).unwrap();
    let truth = model(1);
    let archive = Archive::new(&bytes).unwrap();
    let flags = archive.tensors().unwrap().into_iter().find(|tensor| tensor.path() == "flags");
    let flags = archive.segment(0).unwrap().buffers()[flags.unwrap().buffer().unwrap() as usize];
    let bodies = bodies(&archive);
    let inside = |at: usize, (start, len): (u64, u64)| (start..start + len).contains(&(at as u64));
    each_change(&bytes, 1, |changed, at| {
        if !bodies.iter().any(|&body| inside(at, body)) {
            assert!(verify(changed).is_err(), "byte {at} is not verified");
            loads(changed, std::slice::from_ref(&truth), at);
            return;
        }
        assert!(verify(changed).is_ok(), "byte {at}");
        let found = Archive::new(At(changed)).unwrap().load::<Model>();
        let (streamed, _) = values::<Model>(changed);
        let archive = Archive::new(changed).unwrap();
        let viewed = archive.view().map(|view: ModelView| view.to_model());
        if inside(at, flags) && changed[at] > 1 {
            // 46: such a byte must never become a `bool`.
            assert!(found.is_err() && viewed.is_err() && streamed.is_empty(), "byte {at}");
        } else {
            // NaN does not equal itself.
            let encoded = |model: &Model| tenarc::to_vec(model).unwrap();
            let found = encoded(&found.unwrap());
            assert_eq!(found, encoded(&viewed.unwrap()));
            assert_eq!(found, encoded(&streamed[0]));
        }
    });
}

// 71, 72
#[test]
fn torn_sectors_and_text_mode_are_found() {
    let value: Array2<u8> = Array2::from_shape_fn((100, 300), |(row, column)| (row + column) as u8);
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(&tenarc::Tensor(value)).unwrap();
    let bytes = out.finish().unwrap();
    for sector in [512, 4096] {
        for start in (0..bytes.len()).step_by(sector) {
            let end = bytes.len().min(start + sector);
            let mut changed = bytes.clone();
            changed[start..end].fill(0);
            assert!(verify(&changed).is_err(), "{start}");
            assert!(Archive::new(At(&changed)).and_then(|one| one.load::<DynOwned>()).is_err());
            // A sector of elsewhere.
            changed[start..end].copy_from_slice(&bytes[..end - start]);
            assert!(start == 0 || verify(&changed).is_err(), "{start}");
        }
    }
    let mut text = Vec::new();
    for &byte in &bytes {
        text.extend_from_slice(if byte == b'\n' { b"\r\n" } else { std::slice::from_ref(&byte) });
    }
    assert!(verify(&text).is_err());
    let recoded: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    assert!(verify(recoded.as_bytes()).is_err());
}

type DynOwned = tenarc::Tensor<DynTensor>;
