//! What lists may hold: names, dtypes, shapes, many and none.

use ndarray::{Array0, Array2, Array3, ArrayD, ArrayView2, IxDyn, ShapeBuilder, arr0, array, s};
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::named::{load_multi, save_multi};
use tenarc::tensor::{Deferred, Order, ToTensor};
use tenarc::{Archive, DType, DynTensor, Error, IArchive, OArchive};

use super::{names, ramp, saved};
use tenarc_test_support::DTYPES;

#[test]
fn names_are_any_text() {
    let long = "x".repeat(10_000);
    let strange = [
        "",
        ".",
        "..",
        "a.b.c",
        "a",
        "a.b",
        "/",
        "layers/0/weight",
        "0",
        "-1",
        "\0",
        "nul\0inside",
        "\u{1f980} crab",
        "\u{202e}right to left",
        "e\u{301}",
        "\u{e9}",
        " ",
        "a\nb",
        "\"quoted\"",
        "`ticks`",
        "~0~1",
        "$tenarc::Tensor",
        "dtype",
        "shape",
        "data",
        long.as_str(),
    ];
    let tensors: Vec<_> =
        strange.iter().enumerate().map(|(at, &name)| (name, ramp(7, at))).collect();
    let stream = saved(&tensors);
    let back = load_multi(&stream[..]).unwrap();
    assert_eq!(names(&back), strange);
    for ((_, found), (name, expected)) in back.iter().zip(&tensors) {
        assert_eq!(found.view::<f32>().unwrap(), expected.view().into_dyn(), "{name:?}");
    }
    // Onto variables in another order.
    let mut variables = vec![ramp(7, 999); strange.len()];
    let mut named: Vec<(&str, &mut dyn tenarc::named::Variable)> = Vec::new();
    for (name, variable) in strange.iter().rev().zip(&mut variables) {
        named.push((name, variable));
    }
    tenarc::named::load_multi_onto(&stream[..], &mut named, tenarc::named::Match::Strict).unwrap();
    for (found, (name, expected)) in variables.iter().rev().zip(&tensors) {
        assert_eq!(found, expected, "{name:?}");
    }
}

#[test]
fn every_dtype_shape_and_order() {
    let mut tensors = Vec::new();
    for name in DTYPES.into_iter().chain(["posit24", "a name still to be invented"]) {
        let dtype = DType::from_name(name);
        for (number, shape) in [&[2, 3, 4][..], &[24], &[0, 5], &[], &[8, 100]].iter().enumerate() {
            for order in [Order::C, Order::F] {
                let count: usize = shape.iter().product();
                let bits = dtype.bits().unwrap_or(24);
                if !(count * bits).is_multiple_of(8) {
                    continue;
                }
                let most = if dtype == DType::Bool { 2 } else { 251 };
                let bytes = (0..count * bits / 8).map(|at| u8::try_from(at % most).unwrap());
                let tensor = DynTensor::new(dtype.clone(), shape, order, bytes.collect()).unwrap();
                tensors.push((format!("{name} {number} {order:?}"), tensor));
            }
        }
    }
    let back = load_multi(&saved(&tensors)[..]).unwrap();
    assert_eq!(back.len(), tensors.len());
    for ((found_name, found), (name, expected)) in back.iter().zip(&tensors) {
        assert_eq!(found_name, name);
        assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()), "{name}");
        assert_eq!(found.order(), expected.order(), "{name}");
        assert!(found.le_bytes() == expected.le_bytes(), "{name}");
    }
}

#[test]
fn tensors_of_many_types_go_together() {
    let owned = Array2::<f64>::eye(40);
    let view: ArrayView2<f64> = owned.slice(s![..;3, ..;-2]);
    let columns = Array3::<i32>::ones((3, 4, 5).f());
    let (vector, array, slice) = (vec![1u8, 2, 3], [0.5f32; 3], &[true, false][..]);
    let scalar: Array0<u64> = arr0(7);
    let deferred = Deferred::new(&[2, 2], || Ok::<_, Error>(vec![1i8, 2, 3, 4]));
    let unknown = DynTensor::new(DType::F8E4M3, &[2, 2], Order::F, vec![1, 2, 3, 4]).unwrap();
    let tensors: [(&str, &dyn ToTensor); 8] = [
        ("owned", &owned),
        ("view", &view),
        ("columns", &columns),
        ("vector", &vector),
        ("array", &array),
        ("slice", &slice),
        ("deferred", &deferred),
        ("unknown", &unknown),
    ];
    let mut all = tensors.to_vec();
    all.push(("scalar", &scalar));
    let back = load_multi(&saved(&all)[..]).unwrap();
    assert_eq!(back[0].1.view::<f64>().unwrap(), owned.into_dyn());
    let owned = Array2::<f64>::eye(40);
    assert_eq!(back[1].1.view::<f64>().unwrap(), owned.slice(s![..;3, ..;-2]).into_dyn());
    assert_eq!((back[2].1.order(), back[2].1.shape()), (Order::F, &[3, 4, 5][..]));
    assert_eq!(back[3].1.view::<u8>().unwrap(), array![1, 2, 3].into_dyn());
    assert_eq!(back[4].1.view::<f32>().unwrap(), array![0.5, 0.5, 0.5].into_dyn());
    assert_eq!(back[5].1.view::<bool>().unwrap(), array![true, false].into_dyn());
    assert_eq!(back[6].1.view::<i8>().unwrap(), array![[1, 2], [3, 4]].into_dyn());
    assert_eq!(back[7].1, unknown);
    assert_eq!(back[8].1.view::<u64>().unwrap(), ArrayD::from_elem(IxDyn(&[]), 7));
}

#[test]
fn an_empty_list() {
    let stream = saved::<&str, Vec<f32>>(&[]);
    assert!(load_multi(&stream[..]).unwrap().is_empty());
    let none: &mut [(&str, &mut dyn tenarc::named::Variable)] = &mut [];
    let unmatched =
        tenarc::named::load_multi_onto(&stream[..], none, tenarc::named::Match::Strict).unwrap();
    assert_eq!(unmatched, tenarc::named::Unmatched::default());
}

#[test]
fn two_of_one_name_are_refused_by_the_writer() {
    let mut stream = Vec::new();
    let (a, b) = (ramp(1000, 1), ramp(2000, 2));
    let error = save_multi(&mut stream, &[("a", &a), ("b", &b), ("a", &b)]).unwrap_err();
    assert!(error.to_string().contains("two tensors named `a`"), "{error}");
    let mut out = OArchive::new(Vec::new()).unwrap();
    assert!(out.save_multi(&[("a", &a), ("a", &b)]).is_err());
    out.save_multi(&[("a", &a), ("b", &b)]).unwrap();
    let stream = out.finish().unwrap();
    assert_eq!(names(&load_multi(&stream[..]).unwrap()), ["a", "b"]);
}

#[test]
fn ten_thousand_tensors_keep_their_order() {
    // Neither sorted nor in the order of any hash.
    let name = |at: usize| format!("block.{}.{}", at * 7919 % 10_000, at % 3);
    let tensors: Vec<_> = (0..10_000).map(|at| (name(at), ramp(5, at % 900))).collect();
    let stream = saved(&tensors);
    let back = load_multi(&stream[..]).unwrap();
    assert_eq!(back.len(), 10_000);
    for (at, (found, tensor)) in back.iter().enumerate() {
        assert_eq!(found, &name(at));
        assert_eq!(tensor.view::<f32>().unwrap()[[0]], (at % 900 * 1000) as f32);
    }
    let mut arrays = vec![ramp(5, 1); 10_000];
    let mut variables: Vec<(String, &mut dyn tenarc::named::Variable)> = Vec::new();
    for (at, array) in arrays.iter_mut().enumerate().rev() {
        variables.push((name(at), array));
    }
    tenarc::named::load_multi_onto(&stream[..], &mut variables, tenarc::named::Match::Strict)
        .unwrap();
    assert!(arrays.iter().zip(&tensors).all(|(found, (_, expected))| found == expected));
}

/// With options, with names, beside other values.
#[test]
fn several_lists_in_one_archive() {
    let options = SaveOptions::default().with_alignment(4096).with_dedup(true);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    let tied = ramp(3000, 1);
    out.save_multi(&[("a", &tied), ("b", &tied)]).unwrap().save("between").unwrap();
    out.save_multi(&[("c", [1u8, 2])]).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    archive.verify().unwrap();
    let segment = archive.segment(0).unwrap();
    assert_eq!((segment.alignment(), segment.buffers().len()), (4096, 1));

    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(names(&input.load_multi().unwrap()), ["a", "b"]);
    let error = input.load_multi().unwrap_err();
    assert_eq!(error.category(), Category::Mismatch, "{error}");
    assert_eq!(names(&input.load_multi().unwrap()), ["c"]);
    assert_eq!(input.load_multi().unwrap_err().category(), Category::Eof);
}
