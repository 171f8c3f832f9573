//! How often parts are copied: not at all if they are in memory in the form in which they are sent.

#![allow(clippy::cast_precision_loss)] // Sample values are small numbers made from an index.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use ndarray::{Array2, ArrayView2, ShapeBuilder as _};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;
use tenarc::archive::SaveOptions;
use tenarc::parts::{Parts, Split};
use tenarc::tensor::SharedTensor;

use tenarc_test_support::alloc::peak_of;

const MIB: usize = 1 << 20;
const ROWS: usize = 4096;
const COLUMNS: usize = 1024;
/// Each of the four arrays has so many bytes.
const ARRAY: usize = ROWS * COLUMNS * 4;

#[derive(Serialize, Deserialize, PartialEq)]
struct Value {
    name: String,
    rows: Vec<Tensor<Array2<f32>>>,
    columns: Vec<Tensor<Array2<f32>>>,
}

#[derive(Deserialize)]
struct View<'a> {
    name: &'a str,
    #[serde(borrow)]
    rows: Vec<Tensor<ArrayView2<'a, f32>>>,
    #[serde(borrow)]
    columns: Vec<Tensor<ArrayView2<'a, f32>>>,
}

#[derive(Deserialize)]
struct Shared {
    name: String,
    rows: Vec<Tensor<SharedTensor>>,
    columns: Vec<Tensor<SharedTensor>>,
}

/// 64 MiB, half of it row-major and half column-major.
fn value() -> Value {
    let array = |seed: u8, fortran: bool| {
        Tensor(Array2::from_elem((ROWS, COLUMNS).set_f(fortran), f32::from(seed)))
    };
    Value {
        name: "64 MiB".into(),
        rows: vec![array(1, false), array(2, false)],
        columns: vec![array(3, true), array(4, true)],
    }
}

impl Value {
    fn starts(&self) -> Vec<*const u8> {
        let arrays = self.rows.iter().chain(&self.columns);
        arrays.map(|array| array.as_ptr().cast()).collect()
    }
}

fn options() -> [SaveOptions; 2] {
    [SaveOptions::default(), SaveOptions::default().with_checksums(false)]
}

#[test]
fn what_is_handed_out_is_the_arrays_themselves() {
    let value = value();
    for options in options() {
        let (split, peak) = peak_of(|| Split::with_options(&value, options).unwrap());
        assert!(peak < MIB, "{peak} bytes to split");

        let mut seen = Vec::with_capacity(8);
        let ((), peak) = peak_of(|| {
            let each = split.pieces(|piece| {
                seen.push((piece.offset, piece.bytes.as_ptr(), piece.bytes.len()));
                Ok(())
            });
            each.unwrap();
        });
        assert!(peak < MIB, "{peak} bytes for pieces");
        let expected: Vec<_> = value.starts().iter().map(|&start| (0, start, ARRAY)).collect();
        assert_eq!(seen, expected);

        let mut seen = Vec::with_capacity(8);
        let ((), peak) = peak_of(|| {
            let each = split.each_buffer(|_, bytes| {
                seen.push((bytes.as_ptr(), bytes.len()));
                Ok(())
            });
            each.unwrap();
        });
        assert!(peak < MIB, "{peak} bytes for buffers");
        let expected: Vec<_> = value.starts().iter().map(|&start| (start, ARRAY)).collect();
        assert_eq!(seen, expected);

        let mut written = Vec::with_capacity(5 * ARRAY);
        let ((), peak) = peak_of(|| split.write_to(&mut written).unwrap());
        assert!(peak < MIB, "{peak} bytes to write");
        assert_eq!(written.len(), split.metadata().len() + 4 * ARRAY);
        // Nor is anything of it held twice when it is read.
        let (parts, peak) = peak_of(|| Parts::read_from(&written[..]).unwrap());
        assert!(peak < 4 * ARRAY + 2 * ARRAY, "{peak} bytes to read");
        let ((), peak) = peak_of(|| parts.write_to(std::io::sink()).unwrap());
        assert!(peak < MIB, "{peak} bytes to write parts");
        let view: View = parts.view().unwrap();
        assert!(view.rows[1].0 == value.rows[1].0 && view.columns[1].0 == value.columns[1].0);
    }
}

#[test]
fn parts_hold_one_copy() {
    let value = value();
    for options in options() {
        let (parts, peak) = peak_of(|| tenarc::parts::to_parts_with(&value, options).unwrap());
        assert!(peak < 4 * ARRAY + MIB, "{peak} bytes for parts");
        assert_eq!(parts.buffers().len(), 4);
        let (loaded, peak) = peak_of(|| parts.load::<Value>().unwrap());
        assert!(peak < 4 * ARRAY + MIB, "{peak} bytes to load");
        assert!(loaded == value);
    }
}

/// Bytes as a transport may hold them, counting what lives of them.
#[derive(Debug)]
struct Message(Vec<u8>);

static LIVE: AtomicUsize = AtomicUsize::new(0);

impl Message {
    fn new(bytes: Vec<u8>) -> Self {
        LIVE.fetch_add(1, Ordering::SeqCst);
        Self(bytes)
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A type of one's own, behind a count of references.
#[derive(Clone, Debug)]
struct Handle(Arc<Message>);

impl AsRef<[u8]> for Handle {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Views and shared tensors lie in these buffers.
#[track_caller]
fn lie_in<B: AsRef<[u8]> + Clone + Send + Sync + 'static>(
    value: &Value,
    metadata: &[u8],
    buffers: Vec<B>,
) -> Shared {
    let starts: Vec<*const u8> = buffers.iter().map(|buffer| buffer.as_ref().as_ptr()).collect();
    let (view, peak) = peak_of(|| tenarc::from_parts::<View, B>(metadata, &buffers).unwrap());
    assert!(peak < MIB, "{peak} bytes for views");
    let found: Vec<*const u8> =
        view.rows.iter().chain(&view.columns).map(|array| array.as_ptr().cast()).collect();
    assert_eq!(found, starts);
    assert_eq!(view.name, value.name);
    assert!(metadata.as_ptr_range().contains(&view.name.as_ptr()));
    assert!(view.rows[0].0 == value.rows[0].0 && view.columns[0].0 == value.columns[0].0);

    let (parts, peak) = peak_of(|| Parts::new(metadata, buffers).unwrap());
    assert!(peak < MIB, "{peak} bytes to put together");
    let (shared, peak) = peak_of(|| parts.load_shared::<Shared>().unwrap());
    assert!(peak < MIB, "{peak} bytes to share");
    drop(parts);
    let tensors = || shared.rows.iter().chain(&shared.columns);
    let found: Vec<*const u8> = tensors().map(|tensor| tensor.le_bytes().as_ptr()).collect();
    assert_eq!(found, starts);
    assert!(tensors().all(|tensor| tensor.is_shared()));
    for (shared, array) in tensors().zip(value.rows.iter().chain(&value.columns)) {
        assert!(shared.view::<f32>().unwrap() == array.0.view().into_dyn());
    }
    shared
}

#[test]
fn views_and_shared_tensors_lie_in_the_buffers() {
    let value = value();
    let options = SaveOptions::default().with_checksums(false);
    let (metadata, buffers) = tenarc::parts::to_parts_with(&value, options).unwrap().into_inner();

    let messages: Vec<Arc<Message>> =
        buffers.iter().map(|buffer| Arc::new(Message::new(buffer.to_vec()))).collect();
    let handles = messages.into_iter().map(Handle).collect();
    let shared = lie_in(&value, &metadata, handles);
    assert_eq!(shared.name, value.name);
    // All handles but those inside the tensors are gone; each tensor keeps its buffer alone.
    assert_eq!(LIVE.load(Ordering::SeqCst), 4);
    let Shared { mut rows, columns, .. } = shared;
    drop(columns);
    assert_eq!(LIVE.load(Ordering::SeqCst), 2);
    let last = rows.pop().unwrap();
    let again = last.clone();
    drop((rows, last));
    assert_eq!(LIVE.load(Ordering::SeqCst), 1);
    assert!(again.view::<f32>().unwrap() == value.rows[1].0.view().into_dyn());
    drop(again);
    assert_eq!(LIVE.load(Ordering::SeqCst), 0);

    let copies = buffers.iter().map(|buffer| Bytes::copy_from_slice(buffer)).collect::<Vec<_>>();
    let kept = copies[0].clone();
    drop(lie_in(&value, &metadata, copies));
    assert!(kept.is_unique(), "a handle was left behind");

    let copies = buffers.iter().map(|buffer| Arc::from(&buffer[..])).collect::<Vec<Arc<[u8]>>>();
    let kept = Arc::downgrade(&copies[3]);
    let shared = lie_in(&value, &metadata, copies);
    assert_eq!(kept.strong_count(), 1);
    drop(shared);
    assert_eq!(kept.strong_count(), 0);

    // Those of Parts themselves.
    let parts = Parts::new(metadata, buffers).unwrap().into_shared();
    let starts: Vec<*const u8> = parts.buffers().iter().map(|buffer| buffer.as_ptr()).collect();
    let (shared, peak) = peak_of(|| parts.load_shared::<Shared>().unwrap());
    assert!(peak < MIB, "{peak} bytes to share");
    assert_eq!(shared.rows[1].le_bytes().as_ptr(), starts[1]);
}

#[test]
fn what_is_strided_is_gathered_once() {
    let value = value();
    let stepped = Tensor(value.rows[0].slice(ndarray::s![..;2, ..]));
    let split = Split::new(&stepped).unwrap();
    let ((), peak) = peak_of(|| {
        let each = split.pieces(|piece| {
            assert!(piece.bytes.len() < MIB);
            Ok(())
        });
        each.unwrap();
    });
    assert!(peak < MIB, "{peak} bytes for pieces");
    let ((), peak) = peak_of(|| {
        let each = split.each_buffer(|_, bytes| {
            assert_eq!(bytes.len(), ARRAY / 2);
            Ok(())
        });
        each.unwrap();
    });
    assert!(peak < ARRAY / 2 + MIB, "{peak} bytes for a buffer");
}
