//! One variable of all values that were saved under one name.

use ndarray::{Array2, Array3, Axis, ShapeBuilder as _, s, stack};
use serde::Serialize;
use tenarc::archive::Compression;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::{Archive, DynTensor, OArchive, Tensor};

use super::support::{Counted, quick};

#[derive(Serialize)]
struct State {
    step: u32,
    velocity: Tensor<Array2<f32>>,
}

/// Some steps are in column-major order.
fn velocity(step: u32) -> Array2<f32> {
    let shape = (300, 3).set_f(step % 3 == 2);
    Array2::from_shape_fn(shape, |(row, column)| (step * 10_000) as f32 + (row * 3 + column) as f32)
}

fn saved(compression: Compression) -> Vec<u8> {
    let options = quick().with_compression(compression);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    for step in 0..8 {
        out.save_as("state", &State { step, velocity: velocity(step).into() }).unwrap();
        out.save_as("log", "between").unwrap();
    }
    out.finish().unwrap()
}

#[test]
fn steps_are_read_one_by_one_and_together() {
    for compression in [Compression::none(), Compression::lz4()] {
        let archive = Archive::new(saved(compression)).unwrap();
        let series = archive.series("state", "velocity").unwrap();
        assert_eq!((series.len(), series.is_empty()), (8, false));
        let one: Tensor<Array2<f32>> = series.get(5).unwrap();
        assert_eq!(one.0, velocity(5));
        for steps in [0..8, 3..4, 2..6] {
            let all: Vec<_> = steps.clone().map(|step| velocity(step as u32)).collect();
            let read: Vec<Tensor<Array2<f32>>> = series.read(steps.clone()).unwrap();
            assert!(read.iter().map(|tensor| &tensor.0).eq(&all));
            let views: Vec<_> = all.iter().map(|each| each.view()).collect();
            let want = stack(Axis(0), &views).unwrap();
            assert_eq!(series.stack::<Array3<f32>>(steps.clone()).unwrap(), want);
            let part: Array3<f32> = series.slice(steps, s![10..20, ..;2]).unwrap();
            assert_eq!(part, want.slice(s![.., 10..20, ..;2]));
        }
        assert_eq!(series.stack::<DynTensor>(..=2).unwrap().shape(), [3, 300, 3]);
        let steps: Vec<u32> = archive.series("state", "step").unwrap().read(6..).unwrap();
        assert_eq!(steps, [6, 7]);
        let whole: Vec<String> = archive.series("log", "").unwrap().read(1..3).unwrap();
        assert_eq!(whole, ["between", "between"]);
        assert!(series.read::<Tensor<Array2<f32>>>(3..3).unwrap().is_empty());
    }
}

#[test]
fn only_the_steps_that_are_asked_for_are_read() {
    let bytes = saved(Compression::none());
    let len = bytes.len();
    let source = Counted::new(bytes);
    let log = source.log.clone();
    let archive = Archive::new(source).unwrap();
    let series = archive.series("state", "velocity").unwrap();
    let (_, directory) = log.totals();
    assert!(directory < len as u64 / 4, "{directory} bytes are read for the directory");
    series.stack::<Array3<f32>>(4..6).unwrap();
    let (_, read) = log.totals();
    assert!(read < len as u64 / 3, "{read} of {len} bytes are read for two of eight steps");
}

#[test]
fn errors_say_which_step() {
    let mut bytes = saved(Compression::none());
    let (start, _) = Archive::new(&bytes[..]).unwrap().segment(6).unwrap().buffers()[0];
    bytes[usize::try_from(start).unwrap()] ^= 1;
    let archive = Archive::new(bytes).unwrap();
    let series = archive.series("state", "velocity").unwrap();
    let error = series.stack::<Array3<f32>>(..).unwrap_err();
    assert_eq!((error.category(), error.path()), (Category::Damaged, "3.velocity".to_owned()));
    assert!(series.stack::<Array3<f32>>(4..).is_ok());
    for (error, said) in [
        (series.get::<Tensor<Array2<f32>>>(8).unwrap_err(), "no step 8: the series has 8 steps"),
        (series.stack::<Array3<f32>>(4..9).unwrap_err(), "no step 8"),
        (series.stack::<Array3<f32>>(4..4).unwrap_err(), "the range is empty"),
        (archive.series("velocity", "").unwrap_err(), "no segment named `velocity`"),
        (archive.series("state", "speed").unwrap().get::<f32>(2).unwrap_err(), "speed"),
    ] {
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn steps_that_differ_are_no_tensor() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("s", &Tensor(vec![1f32; 3])).unwrap();
    out.save_as("s", &Tensor(vec![1f32; 4])).unwrap();
    out.save_as("s", &Tensor(vec![1f64; 3])).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let series = archive.series("s", "").unwrap();
    let error = series.stack::<Array2<f32>>(..).unwrap_err().to_string();
    assert!(
        error.contains("expected a tensor of f32 and [3], as before, found one of f32 and [4]"),
        "{error}"
    );
    assert_eq!(series.slice::<Array2<f32>>(..2, s![..2]).unwrap(), Array2::<f32>::ones((2, 2)));
    assert_eq!(series.stack::<Array2<f32>>(1..2).unwrap(), Array2::<f32>::ones((1, 4)));
}

#[test]
fn steps_of_few_bytes_do_not_become_much_memory() {
    let options = quick().with_compression(Compression::lz4());
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    for _ in 0..8 {
        out.save_as("s", &Tensor(vec![0u8; 1 << 20])).unwrap();
    }
    let limits = Limits::default().with_max_alloc(6 << 20);
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let archive = archive.with_options(DecodeOptions::default().with_limits(limits));
    let series = archive.series("s", "").unwrap();
    assert_eq!(series.stack::<DynTensor>(..2).unwrap().shape(), [2, 1 << 20]);
    assert_eq!(series.stack::<DynTensor>(..).unwrap_err().category(), Category::Limit);
}
