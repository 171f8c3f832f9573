//! The bytes that are written, and what cannot be written.

use std::io;

use ndarray::{Array1, Array2, ShapeBuilder as _, arr0};
use tenarc::tensor::{Deferred, Order, ToTensor};
use tenarc::{DType, DynTensor};
use tenarc_convert::arrow::{self, ArrowFile, Batches, Container, Layout};
use tenarc_convert::{Options, TensorFile as _};

use super::support::{quick, says, tensor, written};

#[test]
fn the_layout_follows_from_the_shapes() {
    let (x, y, scalar) = (Array2::<f32>::ones((3, 2)), Array1::<u8>::zeros(3), arr0(7i64));
    let rows: [(&str, &dyn ToTensor); 2] = [("x", &x), ("y", &y)];
    assert_eq!(ArrowFile::new(written_dyn(&rows, &quick())).unwrap().rows(), 3);
    for other in [&scalar as &dyn ToTensor, &Array1::<u8>::zeros(4)] {
        let mixed: [(&str, &dyn ToTensor); 2] = [("x", &x), ("other", other)];
        let file = ArrowFile::new(written_dyn(&mixed, &quick())).unwrap();
        assert_eq!((file.rows(), file.info("x").unwrap().shape()), (1, &[3, 2][..]));
        assert_eq!(other.meta().shape, file.info("other").unwrap().shape());
        let asked = quick().with_layout(Layout::Rows);
        says(arrow::to_writer_with(io::sink(), &mixed, &asked), "expected a tensor of 3 rows");
    }
    let asked = quick().with_layout(Layout::OneRow);
    let file = ArrowFile::new(written_dyn(&rows, &asked)).unwrap();
    assert_eq!((file.rows(), file.info("x").unwrap().shape()), (1, &[3, 2][..]));
}

fn written_dyn(tensors: &[(&str, &dyn ToTensor)], options: &Options) -> Vec<u8> {
    written(tensors, options)
}

#[test]
fn the_container_follows_from_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let tensors = [("x", vec![1.5f64, 2.5])];
    for (name, is_file) in [("x.arrow", true), ("x.feather", true), ("x.arrows", false)] {
        let path = dir.path().join(name);
        arrow::save_with(&path, &tensors, &quick()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.starts_with(b"ARROW1"), is_file, "{name}");
        let x: Array1<f64> = arrow::open(&path).unwrap().tensor("x").unwrap();
        assert_eq!(x.as_slice(), Some(&[1.5, 2.5][..]));
        let asked = if is_file { Container::Stream } else { Container::File };
        arrow::save_with(&path, &tensors, &quick().with_container(asked)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().starts_with(b"ARROW1"), !is_file);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn buffers_are_aligned() {
    let tensors = [
        ("a", tensor(&DType::I8, &[50], Order::C, 0)),
        ("b", tensor(&DType::F64, &[50, 3], Order::C, 1)),
    ];
    for bytes in super::support::both(&tensors, &quick().with_rows_per_batch(20)) {
        for (_, tensor) in &tensors {
            let rows = &tensor.le_bytes()[..tensor.le_bytes().len() / 5 * 2];
            let at = bytes.windows(rows.len()).position(|found| found == rows).unwrap();
            assert_eq!(at % 64, 0);
        }
    }
}

#[test]
fn what_arrow_has_not_is_lost() {
    let column_major = Array2::<f32>::from_shape_fn((3, 2).f(), |(i, j)| (i * 2 + j) as f32);
    let tensors = [
        (
            "bf16",
            DynTensor::new(DType::BF16, &[3], Order::C, vec![0x80, 0x3f, 0, 0xc0, 1, 0]).unwrap(),
        ),
        ("f8", DynTensor::new(DType::F8E4M3, &[3, 1], Order::C, vec![0x38, 0xb8, 0x7e]).unwrap()),
        ("complex", tensor(&DType::C64, &[3], Order::C, 0)),
        (
            "other",
            DynTensor::new(DType::from_name("new\u{1b}"), &[3], Order::C, vec![0; 7]).unwrap(),
        ),
        ("turned", column_major.clone().into()),
    ];
    let error = says(arrow::to_writer_with(Vec::new(), &tensors, &quick()), "stops unless losses");
    assert!(error.to_string().contains("`bf16`: Arrow has no dtype bf16"), "{error}");
    assert!(!error.to_string().contains('\u{1b}'));
    let mut bytes = Vec::new();
    let options = quick().with_losses(true).with_rows_per_batch(2);
    let losses = arrow::to_writer_with(&mut bytes, &tensors, &options).unwrap();
    let lost: Vec<&str> = losses.listed().iter().map(tenarc_convert::Loss::path).collect();
    // Tensors that are left out stand first.
    assert_eq!(lost, ["complex", "other", "bf16", "f8"]);
    // The order of the elements in memory is no loss.
    assert_eq!(losses.notes(), ["tensors in column-major order are written in row-major order"]);
    let file = ArrowFile::new(bytes).unwrap();
    let singles = |name: &str| file.dyn_tensor(name).unwrap().into_array::<f32>().unwrap();
    assert_eq!(singles("bf16").as_slice().unwrap(), [1.0, -2.0, f32::from_bits(1 << 16)]);
    assert_eq!(singles("f8").as_slice().unwrap(), [1.0, -1.0, 448.0]);
    assert_eq!(singles("turned"), column_major.into_dyn());
    assert_eq!(file.tensors().len(), 3);
}

#[test]
fn a_deferred_tensor_is_fetched_batch_by_batch() {
    let fetched = std::cell::Cell::new(0);
    let deferred = Deferred::from_blocks(DType::Bool, &[20, 3], Order::C, |put| {
        fetched.set(fetched.get() + 1);
        // Blocks that end within a row, and within a byte.
        (0..12).try_for_each(|at| put(&[at % 2, 1, 0, 0, 1]))
    });
    let bytes = written(&[("x", deferred)], &quick().with_rows_per_batch(7));
    assert_eq!(fetched.get(), 3);
    let found = ArrowFile::new(bytes).unwrap().dyn_tensor("x").unwrap();
    let expected: Vec<u8> = (0..12).flat_map(|at| [at % 2, 1, 0, 0, 1]).collect();
    assert_eq!(found.le_bytes(), expected);
    for count in [3, 5] {
        let wrong =
            Deferred::from_blocks(DType::U8, &[4], Order::C, move |put| put(&vec![0; count]));
        says(arrow::to_writer(Vec::new(), &[("x", wrong)]), "expected 4 bytes of a tensor");
    }
}

#[test]
fn names_are_checked() {
    let x = vec![1u8];
    says(arrow::to_writer(io::sink(), &[("a", &x), ("a", &x)]), "two tensors of this name");
    says(arrow::to_writer(io::sink(), &[("__metadata__", &x)]), "cannot be the name of a tensor");
    let twice = quick().with_metadata([("a", "1"), ("a", "2")]);
    says(arrow::to_writer_with(io::sink(), &[("x", &x)], &twice), "each key once");
    let layout = quick().with_metadata([("tenarc.layout", "one row")]);
    says(arrow::to_writer_with(io::sink(), &[("x", &x)], &layout), "cannot be a key");
    let odd = [("", &x), ("a.b", &x), ("a", &x), ("\u{0}é", &x)];
    let file = ArrowFile::new(written(&odd, &quick())).unwrap();
    for (name, x) in odd {
        assert_eq!(*file.dyn_tensor(name).unwrap().le_bytes(), x[..]);
    }
    says(file.nested(), "cannot be nested");
}

#[test]
fn metadata_come_back() {
    let texts = [("b", "für"), ("a", "")];
    for layout in [Layout::Rows, Layout::OneRow] {
        let options = quick().with_metadata(texts).with_layout(layout);
        let file = ArrowFile::new(written(&[("x", vec![1u8])], &options)).unwrap();
        let found: Vec<_> = file.metadata().unwrap().iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(found, texts);
    }
}

/// Rows that somebody put together have no longer a layout of one row.
#[test]
fn a_layout_of_one_row_is_of_one_row() {
    let options = quick().with_layout(Layout::OneRow);
    let stream = written(&[("x", Array2::<f32>::ones((2, 3)))], &options);
    let end = stream.len() - 8;
    let schema = stream.windows(4).rposition(|bytes| bytes == [0xff; 4]).unwrap();
    assert_eq!(schema, end);
    let batch = stream[..end].windows(4).rposition(|bytes| bytes == [0xff; 4]).unwrap();
    let twice = [&stream[..end], &stream[batch..]].concat();
    let file = ArrowFile::new(&twice[..]).unwrap();
    assert_eq!((file.rows(), file.info("x").unwrap().shape()), (2, &[2, 2, 3][..]));
    assert!(file.metadata().is_some());
    for batch in Batches::new(&twice[..]).unwrap() {
        assert_eq!(batch.unwrap().info("x").unwrap().shape(), [2, 3]);
    }
}

#[test]
fn a_writer_that_fails_is_told() {
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = bytes.len().min(self.0);
            self.0 -= len;
            if len == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(len) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let tensors = [("x", vec![1u8; 1000])];
    let whole = written(&tensors, &quick()).len();
    for room in (0..whole).step_by(97) {
        let error = arrow::to_writer(Full(room), &tensors).unwrap_err();
        assert_eq!(error.category(), tenarc::error::Category::Io);
    }
    arrow::to_writer(Full(whole), &tensors).unwrap();
}

#[test]
fn columns_keep_the_order_of_the_value() {
    #[derive(serde::Serialize)]
    struct Table {
        name: Vec<String>,
        x: tenarc::Tensor<Vec<f32>>,
        note: Vec<String>,
        y: tenarc::Tensor<Vec<i64>>,
    }

    let texts = || vec!["a".to_owned(), "b".to_owned()];
    let (x, y) = (vec![1.0f32, 2.0].into(), vec![3i64, 4].into());
    let table = Table { name: texts(), x, note: texts(), y };
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(&table).unwrap();
    let archive = tenarc::Archive::new(out.finish().unwrap()).unwrap();
    let segment = archive.segment(0).unwrap();
    let mut bytes = Vec::new();
    arrow::Export::new(&segment).unwrap().to_writer(&mut bytes, &Options::default()).unwrap();
    let file = ArrowFile::new(bytes).unwrap();
    let tenarc::Value::Map(entries) = tenarc::to_value(&file.flat().unwrap()).unwrap() else {
        panic!("expected a map");
    };
    let names: Vec<_> = entries.iter().map(|(name, _)| name.as_str().unwrap()).collect();
    assert_eq!(names, ["name", "x", "note", "y"]);
}
