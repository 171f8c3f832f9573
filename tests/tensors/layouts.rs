//! Every element type in every memory layout, rank and zero-sized shape.

use std::fmt::Debug;

use ndarray::{
    Array, Array0, Array1, Array2, Array3, Array4, ArrayBase, ArrayD, ArrayViewD, Axis, Data,
    Dimension, IxDyn, ShapeBuilder, s,
};
use tenarc::tensor::Order;
use tenarc::{DynTensor, Tensor};

use super::support::{Sample, assert_reads, decode, encode, for_every_element, hex};

fn cube<A: Sample>() -> Array3<A> {
    let mut next = 0;
    Array3::from_shape_simple_fn((2, 3, 4), || {
        next += 1;
        A::sample(next)
    })
}

/// Asserts that an array comes back as it was, and whether it stands column-major on the wire.
///
/// The rank is erased first, so that this is compiled once for each element type.
#[track_caller]
fn round_trips<A, S, D>(array: &ArrayBase<S, D>, order: Order)
where
    A: Sample,
    S: Data<Elem = A>,
    D: Dimension,
{
    erased(&array.view().into_dyn(), order);
}

#[track_caller]
fn erased<A: Sample>(array: &ArrayViewD<'_, A>, order: Order) {
    let bytes = encode(array);
    for found in decode::<Tensor<ArrayD<A>>>(&bytes) {
        let found = found.unwrap();
        assert_eq!(found.view(), array);
        match order {
            Order::C => assert!(found.is_standard_layout(), "{:?}", found.strides()),
            Order::F => assert!(found.t().is_standard_layout(), "{:?}", found.strides()),
        }
    }
    let found: Tensor<DynTensor> = tenarc::from_slice(&bytes).unwrap();
    assert_eq!((found.shape(), found.order()), (array.shape(), order));
    assert_eq!(found.view::<A>().unwrap(), array);
}

#[test]
fn row_major_arrays() {
    fn check<A: Sample>() {
        round_trips(&cube::<A>(), Order::C);
    }
    for_every_element!(check);
}

#[test]
fn column_major_arrays() {
    fn check<A: Sample>() {
        let values = (0..24).map(A::sample).collect();
        round_trips(&Array3::from_shape_vec((2, 3, 4).f(), values).unwrap(), Order::F);
    }
    for_every_element!(check);
}

#[test]
fn transposed_arrays_are_column_major() {
    fn check<A: Sample>() {
        round_trips(&cube::<A>().reversed_axes(), Order::F);
        round_trips(&cube::<A>().t(), Order::F);
    }
    for_every_element!(check);
}

#[test]
fn permuted_axes() {
    fn check<A: Sample>() {
        for axes in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1]] {
            round_trips(&cube::<A>().permuted_axes(axes), Order::C);
        }
    }
    for_every_element!(check);
}

#[test]
fn views_with_steps() {
    fn check<A: Sample>() {
        round_trips(&cube::<A>().slice(s![.., ..;2, ..]), Order::C);
        round_trips(&cube::<A>().slice(s![.., .., ..;3]), Order::C);
        round_trips(&cube::<A>().slice(s![..;2, ..;2, 1..;2]), Order::C);
        round_trips(&cube::<A>().t().slice(s![..;2, .., ..]), Order::C);
    }
    for_every_element!(check);
}

#[test]
fn reversed_axes_of_elements() {
    fn check<A: Sample>() {
        round_trips(&cube::<A>().slice(s![..;-1, .., ..]), Order::C);
        round_trips(&cube::<A>().slice(s![.., .., ..;-1]), Order::C);
        round_trips(&cube::<A>().slice(s![..;-1, ..;-2, ..;-3]), Order::C);
        let mut column_major = cube::<A>().reversed_axes();
        column_major.invert_axis(Axis(1));
        round_trips(&column_major, Order::C);
        round_trips(&Array1::from_iter((0..5).map(A::sample)).slice(s![..;-1]), Order::C);
    }
    for_every_element!(check);
}

#[test]
fn sub_slices() {
    fn check<A: Sample>() {
        round_trips(&cube::<A>().slice(s![1.., .., ..]), Order::C);
        round_trips(&cube::<A>().slice(s![.., 1..2, ..]), Order::C);
        round_trips(&cube::<A>().slice(s![.., 1..3, 1..3]), Order::C);
        round_trips(&cube::<A>().slice_move(s![1.., 1.., 2..]), Order::C);
        round_trips(&cube::<A>().index_axis(Axis(1), 2), Order::C);
        round_trips(&cube::<A>().t().index_axis(Axis(2), 1), Order::F);
        round_trips(&cube::<A>().index_axis(Axis(0), 1).diag(), Order::C);
    }
    for_every_element!(check);
}

#[test]
fn broadcast_arrays() {
    fn check<A: Sample>() {
        let row = Array1::from_iter((0..4).map(A::sample));
        round_trips(&row.broadcast((3, 4)).unwrap(), Order::C);
        round_trips(&row.broadcast((2, 3, 4)).unwrap().permuted_axes([2, 0, 1]), Order::C);
        let scalar = Array0::from_elem((), A::sample(1));
        round_trips(&scalar.broadcast((2, 2)).unwrap(), Order::C);
    }
    for_every_element!(check);
}

#[test]
fn single_rows_and_columns_count_as_row_major() {
    fn check<A: Sample>() {
        let column = Array2::from_shape_vec((3, 1).f(), (0..3).map(A::sample).collect()).unwrap();
        round_trips(&column, Order::C);
        round_trips(&column.t(), Order::C);
        let ones = Array4::from_shape_vec((1, 1, 1, 1).f(), vec![A::sample(7)]).unwrap();
        round_trips(&ones, Order::C);
    }
    for_every_element!(check);
}

#[test]
fn ranks_that_are_known_at_compile_time() {
    fn check<D: Dimension + Debug>(shape: impl ndarray::IntoDimension<Dim = D>) {
        let shape = shape.into_dimension();
        let mut next = 0;
        let row_major = Array::<u16, D>::from_shape_simple_fn(shape.clone(), || {
            next += 1;
            u16::sample(next)
        });
        let column_major = row_major.clone().reversed_axes();
        let mut strided = column_major.clone();
        if D::NDIM != Some(0) {
            strided.invert_axis(Axis(0));
        }
        for array in [row_major, column_major, strided] {
            let bytes = tenarc::to_vec(&Tensor(array.view())).unwrap();
            assert_eq!(bytes, encode(&array));
            assert_reads(&bytes, &Tensor(array.clone()));
            assert_reads(&bytes, &Tensor(array.into_shared()));
        }
    }
    check(());
    check(3);
    check((3, 2));
    check((3, 2, 4));
    check((3, 2, 2, 2));
    check((3, 2, 2, 2, 2));
    check((3, 2, 2, 2, 2, 2));
}

#[test]
fn dynamic_ranks_from_0_to_8_in_both_orders() {
    fn check<A: Sample>() {
        for rank in 0..=8 {
            let shape: Vec<usize> = (0..rank).map(|axis| 2 + usize::from(axis == 0)).collect();
            let count = shape.iter().product();
            let values: Vec<A> = (0..count).map(|index| A::sample(index % 100)).collect();
            let array = ArrayD::from_shape_vec(IxDyn(&shape), values.clone()).unwrap();
            round_trips(&array, Order::C);
            let array = ArrayD::from_shape_vec(IxDyn(&shape).f(), values).unwrap();
            round_trips(&array, if rank < 2 { Order::C } else { Order::F });
        }
    }
    for_every_element!(check);
}

#[test]
fn zero_sized_arrays_keep_their_shape() {
    fn check<A: Sample>() {
        for rank in 1..=4 {
            // Every set of axes that are zero, but the empty one.
            for zeros in 1..1 << rank {
                let dim = |axis: usize| if zeros >> axis & 1 == 1 { 0 } else { axis + 2 };
                let shape: Vec<usize> = (0..rank).map(dim).collect();
                round_trips(&ArrayD::<A>::default(IxDyn(&shape)), Order::C);
                let bytes = encode(&ArrayD::<A>::default(IxDyn(&shape).f()));
                assert_reads(&bytes, &Tensor(ArrayD::<A>::default(IxDyn(&shape))));
                // RFC 8746 has no such arrays: tag TENS.
                assert!(hex(&bytes).starts_with("da54454e5384"), "{}", hex(&bytes));
            }
        }
        let square = Array2::from_elem((4, 4), A::sample(1));
        round_trips(&square.slice(s![2..2, ..]), Order::C);
        round_trips(&square.slice(s![.., 4..;2]), Order::C);
    }
    for_every_element!(check);
}

#[test]
fn layouts_larger_than_the_blocks_they_are_written_in() {
    fn check<A: Sample>() {
        let array = Array2::from_shape_fn((9, 20_000), |(i, j)| A::sample((i * 7 + j) % 100));
        // Rows longer than a block, rows of which many fit, and rows without contiguous elements.
        round_trips(&array.slice(s![..;2, ..]), Order::C);
        round_trips(&array.slice(s![.., 5..19_000]), Order::C);
        round_trips(&array.slice(s![.., ..;3]), Order::C);
        round_trips(&array.t(), Order::F);
        let narrow = Array2::from_shape_fn((20_000, 9), |(i, j)| A::sample((i * 7 + j) % 100));
        round_trips(&narrow.slice(s![.., 1..8]), Order::C);
        round_trips(&narrow.slice(s![..;-1, ..]), Order::C);
        round_trips(&narrow.slice(s![.., ..1]), Order::C);
    }
    check::<u8>();
    check::<f32>();
    check::<num_complex::Complex<f64>>();
}

#[test]
fn float_bits_survive() {
    let singles: Vec<u32> = vec![
        0x7f80_0001, // signalling NaN
        0xffc0_1234, // quiet NaN with sign and payload
        0x8000_0000, // -0.0
        0x0000_0001, // smallest subnormal
        0x7f80_0000, // infinity
    ];
    let array = Array1::from_iter(singles.iter().map(|&bits| f32::from_bits(bits)));
    let strided = Array1::from_iter(singles.iter().flat_map(|&bits| [f32::from_bits(bits), 1.0]));
    for bytes in [encode(&array), encode(&strided.slice(s![..;2]))] {
        for found in decode::<Tensor<Array1<f32>>>(&bytes) {
            let bits: Vec<u32> = found.unwrap().iter().map(|value| value.to_bits()).collect();
            assert_eq!(bits, singles);
        }
    }
    let doubles: Vec<u64> = vec![0x7ff0_0000_0000_0001, 0xfff8_dead_beef_0001, 1 << 63, 1];
    let bytes = encode(&Array1::from_iter(doubles.iter().map(|&bits| f64::from_bits(bits))));
    for found in decode::<Tensor<Array1<f64>>>(&bytes) {
        let bits: Vec<u64> = found.unwrap().iter().map(|value| value.to_bits()).collect();
        assert_eq!(bits, doubles);
    }
    let halves: Vec<u16> = vec![0x7c01, 0xfe12, 0x8000, 1];
    let bytes = encode(&Array1::from_iter(halves.iter().map(|&bits| half::f16::from_bits(bits))));
    for found in decode::<Tensor<Array1<half::f16>>>(&bytes) {
        let bits: Vec<u16> = found.unwrap().iter().map(|value| value.to_bits()).collect();
        assert_eq!(bits, halves);
    }
}
