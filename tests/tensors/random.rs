//! Round trips of arbitrary tensors.

use ndarray::{ArrayD, Axis, IxDyn, ShapeBuilder, Slice};
use proptest::prelude::*;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

use super::support::{OneByte, encode};

fn dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(vec![
        "bool",
        "u8",
        "u16",
        "u32",
        "u64",
        "i8",
        "i16",
        "i32",
        "i64",
        "f16",
        "bf16",
        "f32",
        "f64",
        "f128",
        "c64",
        "c128",
        "f8_e5m2",
        "f8_e4m3",
        "f8_e8m0",
        "f8_e5m2fnuz",
        "f8_e4m3fnuz",
        "other",
    ])
    .prop_map(DType::from_name)
}

fn shape() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![9 => 1usize..5, 1 => Just(0)], 0..6)
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::F)]
}

/// A tensor of arbitrary bytes, NaNs among them.
fn tensor() -> impl Strategy<Value = DynTensor> {
    (dtype(), shape(), order()).prop_flat_map(|(dtype, shape, order)| {
        let count: usize = shape.iter().product();
        let len = count * dtype.bits().unwrap_or(8) / 8;
        let max = if dtype == DType::Bool { 1 } else { u8::MAX };
        prop::collection::vec(0..=max, len)
            .prop_map(move |bytes| DynTensor::new(dtype.clone(), &shape, order, bytes).unwrap())
    })
}

/// How to look at an array: axes in another order, each with start, end, step.
#[derive(Debug, Clone)]
struct Look {
    axes: Vec<usize>,
    slices: Vec<(usize, usize, isize)>,
}

fn look(rank: usize) -> impl Strategy<Value = Look> {
    let axes = Just((0..rank).collect::<Vec<usize>>()).prop_shuffle();
    let step = prop_oneof![Just(1isize), Just(1), Just(-1), Just(2), Just(-2), Just(3)];
    let slices = prop::collection::vec((0usize..3, 0usize..5, step), rank);
    (axes, slices).prop_map(|(axes, slices)| Look { axes, slices })
}

fn strided() -> impl Strategy<Value = (ArrayD<u16>, Look)> {
    (prop::collection::vec(1usize..6, 0..6), order()).prop_flat_map(|(shape, order)| {
        let count: usize = shape.iter().product();
        let values = (0..count as u16).collect();
        let shape = IxDyn(&shape);
        let rank = ndarray::Dimension::ndim(&shape);
        let array = ArrayD::from_shape_vec(shape.set_f(order == Order::F), values).unwrap();
        (Just(array), look(rank))
    })
}

fn assert_same(found: &DynTensor, expected: &DynTensor) {
    assert_eq!(found.dtype(), expected.dtype());
    assert_eq!(found.shape(), expected.shape());
    assert_eq!(found.order(), expected.order());
    assert_eq!(found.le_bytes(), expected.le_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tensors_come_back_bit_for_bit(tensor in tensor()) {
        let tensor = Tensor(tensor);
        let bytes = tenarc::to_vec(&tensor).unwrap();
        assert_same(&tenarc::from_slice::<Tensor<DynTensor>>(&bytes).unwrap(), &tensor);
        assert_same(&tenarc::from_reader::<_, Tensor<DynTensor>>(&*bytes).unwrap(), &tensor);
        assert_same(&tenarc::from_reader::<_, Tensor<DynTensor>>(OneByte(&bytes)).unwrap(), &tensor);
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        prop_assert_eq!(&tenarc::to_vec(&value).unwrap(), &bytes);
        assert_same(&tenarc::from_value::<Tensor<DynTensor>>(value).unwrap(), &tensor);
        let bincode = bincode::serialize(&tensor).unwrap();
        assert_same(&bincode::deserialize::<Tensor<DynTensor>>(&bincode).unwrap(), &tensor);
    }

    #[test]
    fn arrays_come_back_whatever_their_strides((array, look) in strided()) {
        let mut view = array.view().permuted_axes(look.axes);
        for (axis, &(start, end, step)) in look.slices.iter().enumerate() {
            let len = view.len_of(Axis(axis));
            let start = start.min(len);
            let end = end.max(start).min(len);
            view.slice_axis_inplace(Axis(axis), Slice::new(start as isize, Some(end as isize), step));
        }
        let bytes = encode(&view);
        let expected = view.to_owned();
        prop_assert_eq!(&tenarc::from_slice::<Tensor<ArrayD<u16>>>(&bytes).unwrap().0, &expected);
        prop_assert_eq!(&tenarc::from_reader::<_, Tensor<ArrayD<u16>>>(OneByte(&bytes)).unwrap().0, &expected);
        let dynamic = DynTensor::from(view.view());
        prop_assert_eq!(dynamic.view::<u16>().unwrap(), &view);
        // The tensor made from the view and the view itself stand on the wire alike.
        prop_assert_eq!(tenarc::to_vec(&Tensor(&dynamic)).unwrap(), bytes);
        let value = tenarc::to_value(&Tensor(&view)).unwrap();
        prop_assert_eq!(value.as_tensor().unwrap(), &dynamic);
    }

    #[test]
    fn damaged_tensors_never_panic(tensor in tensor(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = tenarc::to_vec(&Tensor(tensor)).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let from_slice = tenarc::from_slice::<Tensor<DynTensor>>(&bytes);
        let from_reader = tenarc::from_reader::<_, Tensor<DynTensor>>(OneByte(&bytes));
        prop_assert_eq!(from_slice.is_ok(), from_reader.is_ok());
        if let (Ok(a), Ok(b)) = (from_slice, from_reader) {
            assert_same(&a, &b);
        }
    }
}
