//! Parts of tensors, against ndarray's own slicing, and which bytes they read.

use ndarray::{Array, Array1, Array2, ArrayD, IxDyn, NewAxis, ShapeBuilder as _, SliceInfo};
use ndarray::{SliceInfoElem, s};
use num_complex::Complex;
use proptest::prelude::*;
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::{Archive, Tensor};

use super::support::{Counted, quick, ramp, to_bytes};

type Info = SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn>;

fn info(elems: &[SliceInfoElem]) -> Info {
    SliceInfo::try_from(elems.to_vec()).unwrap()
}

/// An element of a slice that fits an axis of `len`.
fn element(len: usize) -> BoxedStrategy<SliceInfoElem> {
    let signed = len.cast_signed();
    let step = prop::sample::select(vec![1isize, 1, 2, 3, 7, -1, -2, -5, isize::MAX]);
    let bound = -signed..=signed;
    let slice = (bound.clone(), proptest::option::of(bound), step)
        .prop_map(|(start, end, step)| SliceInfoElem::Slice { start, end, step });
    if len == 0 {
        return slice.boxed();
    }
    let index = (-signed..signed).prop_map(SliceInfoElem::Index);
    prop_oneof![4 => slice, 2 => index].boxed()
}

fn sliced() -> impl Strategy<Value = (Vec<usize>, bool, Vec<SliceInfoElem>)> {
    let shape = prop::collection::vec(prop_oneof![9 => 1usize..7, 1 => Just(0)], 0..5);
    (shape, any::<bool>()).prop_flat_map(|(shape, fortran)| {
        let elems: Vec<_> = shape.iter().map(|&len| element(len)).collect();
        let new_axes = prop::collection::vec(0..=shape.len(), 0..2);
        (Just(shape), Just(fortran), elems, new_axes).prop_map(
            |(shape, fortran, mut elems, new)| {
                for at in new {
                    elems.insert(at, SliceInfoElem::NewAxis);
                }
                (shape, fortran, elems)
            },
        )
    })
}

fn array(shape: &[usize], fortran: bool) -> ArrayD<f32> {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|at| at as f32).collect();
    Array::from_shape_vec(IxDyn(shape).set_f(fortran), values).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 512,
        ..ProptestConfig::default()
    })]

    #[test]
    fn slices_are_those_of_ndarray((shape, fortran, elems) in sliced(), inline: bool) {
        let array = array(&shape, fortran);
        let options = quick().with_inline_below(if inline { usize::MAX } else { 0 });
        let archive = Archive::new(Counted::new(to_bytes(&Tensor(&array), options))).unwrap();
        let found: ArrayD<f32> = archive.slice("", info(&elems)).unwrap();
        prop_assert_eq!(found, array.slice(info(&elems)));
    }

    #[test]
    fn slices_that_do_not_fit_are_errors(
        shape in prop::collection::vec(0usize..4, 0..4),
        elems in prop::collection::vec(any_element(), 0..5),
    ) {
        let archive = Archive::new(to_bytes(&Tensor(array(&shape, false)), quick())).unwrap();
        // An answer or an error, whatever it is asked.
        let elems = info(&elems);
        if let Err(error) = archive.slice::<ndarray::ArrayD<f32>>("", elems) {
            prop_assert!(matches!(error.category(), Category::Data | Category::Mismatch));
        }
    }
}

fn any_element() -> impl Strategy<Value = SliceInfoElem> {
    let bound = prop_oneof![8 => -6isize..6, 1 => Just(isize::MIN), 1 => Just(isize::MAX)];
    let step = prop_oneof![8 => -3isize..=3, 1 => Just(isize::MIN), 1 => Just(isize::MAX)];
    prop_oneof![
        4 => (bound.clone(), proptest::option::of(bound.clone()), step)
            .prop_map(|(start, end, step)| SliceInfoElem::Slice { start, end, step }),
        2 => bound.prop_map(SliceInfoElem::Index),
        1 => Just(SliceInfoElem::NewAxis),
    ]
}

/// An archive whose slices are not verified, so that only their bytes are read.
fn unverified(bytes: Vec<u8>) -> Archive<Counted> {
    let options = DecodeOptions::default().with_checksums(false);
    Archive::new(Counted::new(bytes)).unwrap().with_options(options)
}

/// The number of reads beyond those of the header, and of their bytes.
fn read(archive: &Archive<Counted>, slice: impl Fn(&Archive<Counted>)) -> (usize, u64) {
    // The header is read once.
    archive.tensors().unwrap();
    archive.source().log.take();
    slice(archive);
    archive.source().log.totals()
}

#[test]
fn only_the_rows_asked_for_are_read() {
    let array = array(&[1000, 50], false);
    let archive = unverified(to_bytes(&Tensor(&array), quick()));
    let rows = read(&archive, |archive| {
        let rows: Array2<f32> = archive.slice("", s![100..110, ..]).unwrap();
        assert_eq!(rows.into_dyn(), array.slice(s![100..110, ..]).into_dyn());
    });
    assert_eq!(rows, (1, 10 * 50 * 4));
    let reversed = read(&archive, |archive| {
        let rows: Array2<f32> = archive.slice("", s![100..110;-3, ..;2]).unwrap();
        assert_eq!(rows.into_dyn(), array.slice(s![100..110;-3, ..;2]).into_dyn());
    });
    assert_eq!(reversed, (1, 10 * 50 * 4));
    let within = read(&archive, |archive| {
        let part: Array1<f32> = archive.slice("", s![-1, 10..20]).unwrap();
        assert_eq!(part.into_dyn(), array.slice(s![-1, 10..20]).into_dyn());
    });
    assert_eq!(within, (1, 10 * 4));
    let one = read(&archive, |archive| {
        let one: ndarray::Array0<f32> = archive.slice("", s![7, 7]).unwrap();
        assert_eq!(one[()], 357.0);
    });
    assert_eq!(one, (1, 4));
    let none = read(&archive, |archive| {
        let none: Array2<f32> = archive.slice("", s![7..7, ..]).unwrap();
        assert_eq!(none.shape(), [0, 50]);
    });
    assert_eq!(none, (0, 0));
    let new = read(&archive, |archive| {
        let new: ndarray::Array3<f32> = archive.slice("", s![3..4, NewAxis, ..]).unwrap();
        assert_eq!(new.shape(), [1, 1, 50]);
    });
    assert_eq!(new, (1, 200));
}

#[test]
fn only_the_columns_asked_for_are_read_in_column_major_order() {
    let array = array(&[50, 1000], true);
    let archive = unverified(to_bytes(&Tensor(&array), quick()));
    let columns = read(&archive, |archive| {
        let columns: Array2<f32> = archive.slice("", s![.., 990..]).unwrap();
        assert_eq!(columns.into_dyn(), array.slice(s![.., 990..]).into_dyn());
    });
    assert_eq!(columns, (1, 10 * 50 * 4));
    let within = read(&archive, |archive| {
        let part: Array1<f32> = archive.slice("", s![5..10, 3]).unwrap();
        assert_eq!(part.into_dyn(), array.slice(s![5..10, 3]).into_dyn());
    });
    assert_eq!(within, (1, 20));
}

#[test]
fn slices_of_other_dtypes_inline_and_in_buffers() {
    let complex = Array2::from_shape_fn((20, 30), |(a, b)| Complex::new(a as f32, b as f32));
    let bools = Array2::from_shape_fn((20, 30), |(a, b)| (a + b) % 3 == 0);
    let plain: Vec<f64> = (0..600).map(f64::from).collect();
    let value = (Tensor(&complex), Tensor(&bools), &plain);
    for below in [0, usize::MAX] {
        let archive = Archive::new(to_bytes(&value, quick().with_inline_below(below))).unwrap();
        let part: Array2<Complex<f32>> = archive.slice("0", s![3..7, ..;-1]).unwrap();
        assert_eq!(part, complex.slice(s![3..7, ..;-1]));
        let part: Array1<bool> = archive.slice("1", s![3, ..]).unwrap();
        assert_eq!(part, bools.slice(s![3, ..]));
        let part: Array1<f64> = archive.slice("2", s![10..20;2]).unwrap();
        assert_eq!(part.to_vec(), [10.0, 12.0, 14.0, 16.0, 18.0]);
        // Another dtype, another rank, no tensor.
        assert!(archive.slice::<ndarray::ArrayD<f64>>("0", s![3..7, ..]).is_err());
        assert!(archive.slice::<ndarray::ArrayD<bool>>("1", s![3..7]).is_err());
        assert!(archive.slice::<ndarray::ArrayD<f32>>("3", s![3..7]).is_err());
    }
    let text = Archive::new(to_bytes("text", quick())).unwrap();
    assert!(text.slice::<ndarray::ArrayD<f32>>("", s![3..7]).is_err());
}

#[test]
fn the_error_of_a_slice_names_the_tensor() {
    let value = std::collections::BTreeMap::from([("weight", Tensor(ramp(&[30, 40])))]);
    let archive = Archive::new(to_bytes(&value, quick())).unwrap();
    for slice in [s![0..31, ..], s![0.., 0..41], s![-31.., ..]] {
        let error = archive.slice::<ndarray::ArrayD<f32>>("weight", slice).unwrap_err();
        assert_eq!(
            (error.category(), error.path()),
            (Category::Mismatch, "weight".into()),
            "{error}"
        );
    }
    let error = archive.slice::<ndarray::ArrayD<f32>>("weight", s![30, 0]).unwrap_err();
    assert_eq!(error.category(), Category::Mismatch);
}
