//! What other frameworks document as their out-of-band cases, and views of what was received.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ShapeBuilder as _, s};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::Tensor;
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::io::SharedBytes;
use tenarc::parts::{Buffer, Parts, PartsInfo, Split};
use tenarc::tensor::{Order, SharedTensor};

use super::support::{model, received, split, weights};

#[test]
fn one_large_array() {
    let array = Tensor(Array2::from_shape_fn((300, 200), |(a, b)| (a * b) as f64));
    let sent = split(&array, &SaveOptions::default());
    assert_eq!(sent.1.len(), 1);
    assert!(sent.0.len() < 120, "{} bytes of metadata", sent.0.len());
    for (way, read) in received::<Tensor<Array2<f64>>>(&sent) {
        assert!(read.unwrap() == array, "{way}");
    }
    let info = PartsInfo::new(sent.0).unwrap();
    let buffer = &info.buffers()[0];
    assert_eq!((buffer.path(), buffer.dtype().name(), buffer.order()), ("", "f64", Order::C));
    assert_eq!((buffer.shape(), buffer.byte_len()), (&[300, 200][..], 480_000));
    assert_eq!((buffer.number(), buffer.alignment(), info.byte_len()), (0, 256, 480_000));
    assert!(buffer.checksum().is_some() && info.name().is_none());
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Table {
    title: String,
    names: Vec<String>,
    x: Tensor<Array1<i64>>,
    y: Tensor<Array1<f32>>,
    valid: Vec<u8>,
    notes: Vec<Option<String>>,
}

#[derive(Deserialize)]
struct TableView<'a> {
    title: &'a str,
    #[serde(borrow)]
    names: Vec<&'a str>,
    #[serde(borrow)]
    x: Tensor<ArrayView1<'a, i64>>,
    #[serde(borrow)]
    y: Tensor<ArrayView1<'a, f32>>,
    valid: Vec<u8>,
}

#[test]
fn a_record_of_columns_with_text_beside_them() {
    let table = Table {
        title: "measured".into(),
        names: vec!["x".into(), "größe".into()],
        x: Tensor((0..2000).collect()),
        y: Tensor((0..2000).map(|at| at as f32).collect()),
        valid: (0..4000).map(|at| at as u8).collect(),
        notes: vec![None, Some("note".into())],
    };
    let sent = split(&table, &SaveOptions::default());
    assert_eq!(sent.1.iter().map(Vec::len).collect::<Vec<_>>(), [16_000, 8000, 4000]);
    for (way, read) in received::<Table>(&sent) {
        assert!(read.unwrap() == table, "{way}");
    }
    let (metadata, buffers) = tenarc::to_parts(&table).unwrap().into_inner();
    let view: TableView = tenarc::from_parts(&metadata, &buffers).unwrap();
    assert_eq!((view.title, &view.names[..]), ("measured", &["x", "größe"][..]));
    assert!(view.x.0 == table.x.0 && view.y.0 == table.y.0 && view.valid == table.valid);
    assert!(metadata.as_ptr_range().contains(&view.title.as_ptr()));
    assert_eq!(view.x.as_ptr().cast(), buffers[0].as_ptr());
    assert_eq!(view.y.as_ptr().cast(), buffers[1].as_ptr());
}

#[test]
fn every_second_array_by_a_callback() {
    let arrays: Vec<Tensor<Vec<f32>>> = (0..7).map(|at| weights(500 + at, at)).collect();
    let next = AtomicUsize::new(0);
    let options = SaveOptions::default()
        .with_out_of_band(move |_| next.fetch_add(1, Ordering::Relaxed) % 2 == 1);
    let parts = tenarc::parts::to_parts_with(&arrays, options).unwrap();
    let told: Vec<&str> = parts.info().buffers().iter().map(|info| info.path()).collect();
    assert_eq!(told, ["1", "3", "5"]);
    let listed: Vec<_> =
        parts.tensors().unwrap().iter().map(tenarc::tensor::TensorInfo::buffer).collect();
    assert_eq!(listed, [None, Some(0), None, Some(1), None, Some(2), None]);
    let (metadata, buffers) = parts.into_inner();
    let sent = (metadata, buffers.iter().map(|buffer| buffer.to_vec()).collect());
    for (way, read) in received::<Vec<Tensor<Vec<f32>>>>(&sent) {
        assert!(read.unwrap() == arrays, "{way}");
    }
}

#[test]
fn a_plain_payload_of_bytes() {
    let payload = ByteBuf::from((0..50_000).map(|at| at as u8).collect::<Vec<_>>());
    let sent = split(&payload, &SaveOptions::default());
    assert!(sent.1 == [payload.to_vec()]);
    for (way, read) in received::<ByteBuf>(&sent) {
        assert!(read.unwrap() == payload, "{way}");
    }
    let view: &serde_bytes::Bytes = tenarc::from_parts(&sent.0, &sent.1).unwrap();
    assert_eq!(view.as_ptr(), sent.1[0].as_ptr());
    let kept: Option<ByteBuf> = tenarc::from_parts(&sent.0, &sent.1).unwrap();
    assert!(kept.unwrap() == payload);
    // It is no tensor, and is told of as one of bytes.
    let info = PartsInfo::new(&sent.0[..]).unwrap();
    assert_eq!(info.tensors().unwrap(), []);
    let buffer = info.buffers()[0].tensor();
    assert_eq!((buffer.dtype().name(), buffer.shape()), ("u8", &[50_000][..]));
}

#[test]
fn each_buffer_to_a_writer_of_its_own() {
    struct Slow(Vec<u8>);
    impl io::Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = bytes.len().min(1000);
            self.0.extend(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let value = (weights(3000, 1), "between", vec![0.5f32; 700]);
    let split = Split::new(&value).unwrap();
    let mut channels: Vec<Slow> = Vec::new();
    let each = split.each_buffer(|_, bytes| {
        let mut channel = Slow(Vec::new());
        io::Write::write_all(&mut channel, bytes)?;
        channels.push(channel);
        Ok(())
    });
    each.unwrap();
    let buffers: Vec<Vec<u8>> = channels.into_iter().map(|channel| channel.0).collect();
    let back: (Tensor<Vec<f32>>, String, Vec<f32>) =
        tenarc::from_parts(split.metadata(), &buffers).unwrap();
    assert!(back == (value.0.clone(), "between".into(), value.2.clone()));
}

#[test]
fn an_error_of_the_receiver_ends_the_walk_and_can_be_tried_again() {
    let value = vec![weights(1000, 1), weights(1000, 2), weights(1000, 3)];
    let split = Split::new(&value).unwrap();
    for last in 0..3 {
        let mut seen = 0;
        let result = split.each_buffer(|info, _| {
            seen += 1;
            if info.number() == last { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
        });
        let error = result.unwrap_err();
        assert_eq!((error.category(), seen), (Category::Io, last + 1));
        let error = io::Error::from(split.pieces(|_| Err(io::Error::other("full"))).unwrap_err());
        assert!(error.to_string().contains("full"), "{error}");
    }
    let mut seen = 0;
    let each = split.each_buffer(|_, _| {
        seen += 1;
        Ok(())
    });
    each.unwrap();
    assert_eq!(seen, 3);
}

#[test]
fn contiguous_arrays_come_in_one_piece_and_others_in_several() {
    let large = Array2::from_shape_fn((700, 500), |(a, b)| (a * 500 + b) as f32);
    let fortran = Array2::from_shape_fn((700, 500).f(), |(a, b)| (a * 500 + b) as f32);
    let stepped = large.slice(s![..;2, ..]);
    let value = (Tensor(large.view()), Tensor(fortran.view()), Tensor(stepped));
    let split = Split::new(&value).unwrap();
    let mut pieces: Vec<Vec<(u64, *const u8, usize)>> = vec![Vec::new(); 3];
    let each = split.pieces(|piece| {
        let at = piece.buffer.number();
        pieces[at].push((piece.offset, piece.bytes.as_ptr(), piece.bytes.len()));
        Ok(())
    });
    each.unwrap();
    assert_eq!(pieces[0], [(0, large.as_ptr().cast(), 1_400_000)]);
    assert_eq!(pieces[1], [(0, fortran.as_ptr().cast(), 1_400_000)]);
    assert!(pieces[2].len() > 1);
    let orders: Vec<Order> = split.info().buffers().iter().map(|info| info.order()).collect();
    assert_eq!(orders, [Order::C, Order::F, Order::C]);
}

/// Bytes that do not start where numbers may.
#[derive(Clone)]
struct Odd(Arc<Buffer>);

impl Odd {
    fn new(bytes: &[u8]) -> Self {
        let odd = [&[0], bytes].concat();
        Self(Arc::new(Buffer::copied(&odd, 64).unwrap()))
    }
}

impl AsRef<[u8]> for Odd {
    fn as_ref(&self) -> &[u8] {
        &self.0[1..]
    }
}

#[test]
fn unaligned_buffers_are_loaded_and_not_viewed() {
    #[derive(Serialize)]
    struct Written {
        name: &'static str,
        layers: Vec<Tensor<Vec<f64>>>,
    }
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct View<'a> {
        name: &'a str,
        #[serde(borrow)]
        layers: Vec<Tensor<ArrayView1<'a, f64>>>,
    }
    #[derive(Deserialize)]
    struct Owned {
        layers: Vec<Tensor<Vec<f64>>>,
    }
    let numbers: Vec<f64> = (0..300).map(f64::from).collect();
    let value = Written { name: "odd", layers: vec![Tensor(numbers.clone())] };
    let (metadata, buffers) = split(&value, &SaveOptions::default());
    let buffers: Vec<Odd> = buffers.iter().map(|buffer| Odd::new(buffer)).collect();
    let parts = Parts::new(metadata, buffers).unwrap();
    let error = parts.view::<View>().unwrap_err();
    assert_eq!(error.category(), Category::Unsupported);
    assert!(error.to_string().contains("align"), "{error}");
    assert_eq!(error.path(), "layers.0");
    let owned: Owned = parts.load().unwrap();
    assert_eq!(owned.layers[0].0, numbers);
    // Shared they are all the same, to be copied where they are asked for.
    #[derive(Deserialize)]
    struct Shared {
        layers: Vec<Tensor<SharedTensor>>,
    }
    let shared: Shared = parts.load_shared().unwrap();
    assert!(shared.layers[0].is_shared());
    let error = shared.layers[0].view::<f64>().unwrap_err();
    assert!(error.to_string().contains("align"), "{error}");
    let array = shared.layers[0].to_array::<f64>().unwrap();
    assert_eq!(array.as_slice().unwrap(), numbers);
    // An aligned copy mends it.
    let copies: tenarc::Result<Vec<Buffer>> =
        parts.buffers().iter().map(|odd| Buffer::copied(odd.as_ref(), 64)).collect();
    let parts = Parts::new(parts.metadata(), copies.unwrap()).unwrap();
    let view: View = parts.view().unwrap();
    assert_eq!(view.layers[0].as_slice().unwrap(), numbers);
}

#[test]
fn small_tensors_are_viewed_wherever_they_stand() {
    #[derive(Deserialize)]
    struct View<'a> {
        #[serde(borrow)]
        a: Tensor<ArrayView2<'a, f64>>,
        #[serde(borrow)]
        b: Tensor<ArrayView1<'a, u16>>,
    }
    #[derive(Serialize)]
    struct Written<'a> {
        pad: &'a str,
        a: Tensor<Array2<f64>>,
        b: Tensor<Vec<u16>>,
    }
    for len in 0..17 {
        let pad = "x".repeat(len);
        let value = Written { pad: &pad, a: Tensor(Array2::eye(3)), b: Tensor(vec![1, 2, 3]) };
        let parts = tenarc::to_parts(&value).unwrap();
        assert!(parts.buffers().is_empty());
        let view: View = parts.view().unwrap();
        assert_eq!((view.a.0, view.b.as_slice().unwrap()), (value.a.view(), &[1, 2, 3][..]));
        assert_eq!(parts.view_at::<Tensor<ArrayView2<f64>>>("a").unwrap().0, value.a.view());
    }
}

#[test]
fn values_at_paths() {
    let (metadata, buffers) = split(&model(1), &super::support::small());
    let parts = Parts::new(metadata, buffers).unwrap();
    let model = model(1);
    assert_eq!(parts.get::<String>("name").unwrap(), model.name);
    assert_eq!(parts.get::<Tensor<Vec<f64>>>("layers.1.bias").unwrap(), model.layers[1].bias);
    assert_eq!(parts.get::<Tensor<Vec<f64>>>("/layers/1/bias").unwrap(), model.layers[1].bias);
    let error = parts.get::<Tensor<Vec<f64>>>("layers.2").unwrap_err();
    assert!(error.to_string().contains("no value at `layers.2`"), "{error}");
    let error = parts.get::<super::support::Layer>("curve").unwrap_err();
    assert_eq!((error.category(), error.path()), (Category::Mismatch, "curve".into()));
    let error = parts.get::<Vec<(String, String)>>("layers").unwrap_err();
    assert!(error.path().starts_with("layers.0"), "{error}");
}

#[test]
fn received_buffers_are_shared_without_being_clonable() {
    let value = vec![weights(1000, 1), weights(3, 2)];
    let mut bytes = Vec::new();
    Split::new(&value).unwrap().write_to(&mut bytes).unwrap();
    let parts = Parts::read_from(&bytes[..]).unwrap();
    let start = parts.buffers()[0].as_ptr();
    let parts: Parts<SharedBytes> = parts.into_shared();
    let shared: Vec<Tensor<SharedTensor>> = parts.load_shared().unwrap();
    drop(parts);
    assert_eq!(shared[0].le_bytes().as_ptr(), start);
    assert!(shared[0].is_shared() && !shared[1].is_shared());
    assert_eq!(shared[0].view::<f32>().unwrap().as_slice().unwrap(), value[0].0);
    assert_eq!(shared[1].view::<f32>().unwrap().as_slice().unwrap(), value[1].0);
    assert_eq!(shared[0].view::<f64>().unwrap_err().category(), Category::Mismatch);
    let again = shared[0].clone();
    drop(shared);
    assert_eq!(again.to_dyn().unwrap().shape(), [1000]);
}

#[test]
fn shared_tensors_of_own_making() {
    use tenarc::DType;
    let bytes = |len: usize| SharedBytes::from_owner(vec![1u8; len]);
    let made = |dtype, shape: &[usize], len| SharedTensor::new(dtype, shape, Order::F, bytes(len));
    let tensor = made(DType::F32, &[2, 3], 24).unwrap();
    assert_eq!((tensor.order(), tensor.shape()), (Order::F, &[2, 3][..]));
    assert_eq!(made(DType::U8, &[6], 6).unwrap().order(), Order::C);
    for (dtype, shape, len) in [
        (DType::F32, &[2, 3][..], 23),
        (DType::F32, &[2, 3], 25),
        (DType::F32, &[], 0),
        (DType::F32, &[0], 4),
        (DType::U8, &[usize::MAX, 2], 2),
        (DType::U8, &[usize::MAX, 0, usize::MAX], 0),
        (DType::U16, &[usize::MAX], 8),
        (DType::F4, &[3], 2),
        (DType::F4, &[4], 1),
    ] {
        let error = made(dtype.clone(), shape, len).unwrap_err();
        assert_eq!(error.category(), Category::Data, "{dtype} {shape:?} {len}");
    }
    assert!(made(DType::from_name("posit16"), &[3], 7).is_ok());
    let bools = SharedTensor::new(DType::Bool, &[3], Order::C, bytes(3)).unwrap();
    assert!(bools.view::<bool>().unwrap().iter().all(|&bool| bool));
    let wrong = SharedBytes::from_owner(Arc::<[u8]>::from(&[0, 1, 2][..]));
    let error = SharedTensor::new(DType::Bool, &[3], Order::C, wrong).unwrap_err();
    assert_eq!(error.category(), Category::Data);
}
