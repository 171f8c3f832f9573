//! Messages with tensors and typed arrays.

use std::error::Error;

use half::{bf16, f16};
use ndarray::{Array, Array1, Array2, ArrayD, Axis, Dimension, IxDyn, ShapeBuilder, arr0, s};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use tenarc::ser::EncodeOptions;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

use crate::Case;
use crate::data::{Data, Tensor as Described};
use crate::got::{LeBytes, le_bytes};

/// A record as other languages write it too: metadata and tensors in one struct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub name: String,
    pub epoch: u32,
    pub weight: Tensor<Array2<f32>>,
    #[serde(with = "tenarc::tensor")]
    pub bias: Array1<f64>,
    pub history: Vec<f32>,
    pub note: Option<String>,
}

impl Record {
    fn example() -> Self {
        Self {
            name: "encoder".into(),
            epoch: 12,
            weight: Tensor(Array2::from_shape_fn((2, 3), |(row, column)| {
                f32::from(u8::try_from(row * 3 + column).unwrap_or(0)) * 0.25
            })),
            bias: Array1::from(vec![0.1, -0.0, f64::INFINITY]),
            history: (0..16_u8).map(|step| 1.0 / f32::from(step + 1)).collect(),
            note: None,
        }
    }

    /// What the record holds, for comparison with a manifest; `packed` says whether the history
    /// stands as one typed array.
    pub fn described(&self, packed: bool) -> Data {
        let history = if packed {
            let bytes = le_bytes(self.history.iter().copied());
            Data::Numbers { dtype: "f32".into(), bytes }
        } else {
            Data::array(self.history.iter().map(|value| Data::single(*value)))
        };
        Data::object([
            ("name", Data::text(&self.name)),
            ("epoch", Data::Integer(self.epoch.into())),
            ("weight", describe(&self.weight.0, "f32")),
            ("bias", describe(&self.bias, "f64")),
            ("history", history),
            ("note", self.note.as_deref().map_or(Data::Null, Data::text)),
        ])
    }
}

/// Describes an array element by element: in column-major order where it is that and not
/// row-major too.
fn describe<A, S, D>(array: &ndarray::ArrayBase<S, D>, dtype: &str) -> Data
where
    A: LeBytes,
    S: ndarray::Data<Elem = A>,
    D: Dimension,
{
    let column_major =
        array.ndim() > 1 && !array.is_standard_layout() && array.t().is_standard_layout();
    let (order, bytes) = if column_major {
        ("F", le_bytes(array.t().iter().copied()))
    } else {
        ("C", le_bytes(array.iter().copied()))
    };
    let (dtype, shape) = (dtype.into(), array.shape().to_vec());
    Data::Tensor(Described { dtype, shape, order: order.into(), bytes })
}

fn tensor<A, D>(name: String, array: Array<A, D>, dtype: &str) -> tenarc::Result<Case>
where
    A: LeBytes + tenarc::tensor::Element,
    D: Dimension,
{
    let data = describe(&array, dtype);
    Ok(Case { name, bytes: tenarc::to_vec(&Tensor(array))?, data })
}

/// Six elements of each type that differ in every byte where they can.
macro_rules! samples {
    ($each:ident, $cases:ident) => {
        $each!($cases, "bool", [true, false, false, true, true, false]);
        $each!($cases, "u8", [0_u8, 1, 2, 127, 128, 255]);
        $each!($cases, "u16", [0_u16, 1, 0x0102, 0x7fff, 0x8000, u16::MAX]);
        $each!($cases, "u32", [0_u32, 1, 0x0102_0304, 1 << 31, 65536, u32::MAX]);
        $each!($cases, "u64", [0_u64, 1, 0x0102_0304_0506_0708, 1 << 63, 1 << 53, u64::MAX]);
        $each!($cases, "i8", [0_i8, 1, -1, 127, -127, i8::MIN]);
        $each!($cases, "i16", [0_i16, 1, -2, 0x0102, i16::MAX, i16::MIN]);
        $each!($cases, "i32", [0_i32, 1, -2, 0x0102_0304, i32::MAX, i32::MIN]);
        $each!($cases, "i64", [0_i64, 1, -2, 0x0102_0304_0506_0708, i64::MAX, i64::MIN]);
        $each!($cases, "f16", [0x0000, 0x8000, 0x3c01, 0x0001, 0x7c00, 0x7e01].map(f16::from_bits));
        $each!(
            $cases,
            "bf16",
            [0x0000, 0x8000, 0x3f81, 0x0001, 0x7f80, 0x7fc1].map(bf16::from_bits)
        );
        $each!(
            $cases,
            "f32",
            [0, 1 << 31, 0x3dcc_cccd, 1, 0x7f80_0000, 0x7fc0_0001].map(f32::from_bits)
        );
        $each!(
            $cases,
            "f64",
            [0, 1 << 63, 0x3fb9_9999_9999_999a, 1, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0001]
                .map(f64::from_bits)
        );
        $each!(
            $cases,
            "c64",
            [(0.0, -0.0), (1.0, 2.0), (-0.1, 0.1), (3e38, 1e-40), (0.5, 0.25), (-8.0, 9.0)]
                .map(|(re, im): (f32, f32)| Complex::new(re, im))
        );
        $each!(
            $cases,
            "c128",
            [(0.0, -0.0), (1.0, 2.0), (-0.1, 0.1), (1e300, 5e-324), (0.5, 0.25), (-8.0, 9.0)]
                .map(|(re, im): (f64, f64)| Complex::new(re, im))
        );
    };
}

/// Arrays of each element type in the shapes and orders that are written differently.
macro_rules! layouts {
    ($cases:ident, $dtype:literal, $values:expr) => {{
        let values = $values.to_vec();
        let rows_of = |dims: &[usize]| ArrayD::from_shape_vec(IxDyn(dims), values.clone());
        let columns_of = |dims: &[usize]| ArrayD::from_shape_vec(IxDyn(dims).f(), values.clone());
        let rows = rows_of(&[2, 3])?;
        let name = |layout: &str| format!("tensor-{}-{layout}", $dtype);
        $cases.push(tensor(name("1d"), Array1::from(values.clone()), $dtype)?);
        $cases.push(tensor(name("rows"), rows.clone(), $dtype)?);
        $cases.push(tensor(name("columns"), columns_of(&[3, 2])?, $dtype)?);
        $cases.push(tensor(name("rank4"), rows_of(&[1, 3, 2, 1])?, $dtype)?);
        $cases.push(tensor(name("rank3-columns"), columns_of(&[3, 1, 2])?, $dtype)?);
        $cases.push(tensor(name("scalar"), arr0(values[2]), $dtype)?);
        // Views whose elements lie in neither order: written row-major.
        for (layout, view) in [
            ("strided", rows.slice(s![.., ..;2]).into_dyn()),
            ("reversed", rows.slice(s![..;-1, ..]).into_dyn()),
            ("row", rows.index_axis(Axis(0), 1)),
            ("column", rows.index_axis(Axis(1), 1)),
        ] {
            let bytes = tenarc::to_vec(&Tensor(view.view()))?;
            $cases.push(Case { name: name(layout), bytes, data: describe(&view, $dtype) });
        }
        let bytes = tenarc::to_vec(&Tensor(rows.t()))?;
        $cases.push(Case { name: name("transposed"), bytes, data: describe(&rows.t(), $dtype) });
        // A dimension of zero is nothing RFC 8746 has: the own tag takes it.
        let none = ArrayD::from_shape_vec(IxDyn(&[2, 0, 3]), values[..0].to_vec())?;
        $cases.push(tensor(name("empty"), none, $dtype)?);
    }};
}

/// Sequences long enough to be packed: floats from 32 bytes on, integers from 1 KiB on.
macro_rules! packed {
    ($cases:ident, $dtype:literal, $values:expr) => {{
        let options = EncodeOptions::default().with_typed_arrays(true);
        let values: Vec<_> = $values.iter().copied().cycle().take(1024).collect();
        let bytes = tenarc::ser::to_vec_with(&values, options)?;
        let data = Data::Numbers { dtype: $dtype.into(), bytes: le_bytes(values) };
        $cases.push(Case { name: format!("packed-{}", $dtype), bytes, data });
    }};
}

pub fn cases() -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = Vec::new();
    samples!(layouts, cases);
    packed!(cases, "u8", [0_u8, 1, 2, 127, 128, 255]);
    packed!(cases, "u16", [0_u16, 0x0102, u16::MAX]);
    packed!(cases, "u32", [0_u32, 0x0102_0304, u32::MAX]);
    packed!(cases, "u64", [0_u64, 0x0102_0304_0506_0708, u64::MAX]);
    packed!(cases, "i8", [0_i8, 1, -1, i8::MIN]);
    packed!(cases, "i16", [0_i16, -2, 0x0102, i16::MIN]);
    packed!(cases, "i32", [0_i32, -2, 0x0102_0304, i32::MIN]);
    packed!(cases, "i64", [0_i64, -2, 0x0102_0304_0506_0708, i64::MIN]);
    packed!(cases, "f32", [0.0_f32, -0.0, 0.1, f32::INFINITY]);
    packed!(cases, "f64", [0.0_f64, -0.0, 0.1, f64::NEG_INFINITY]);

    // Dtypes without a Rust type, one of them in RFC 8746, one that no version knows.
    let foreign = [
        ("f8_e4m3", vec![4], 4),
        ("f8_e5m2", vec![2, 2], 4),
        ("f4", vec![2, 4], 4),
        ("f128", vec![2], 32),
        ("posit16", vec![3], 6),
    ];
    for (dtype, shape, len) in foreign {
        let bytes: Vec<u8> = (0x10..).take(len).collect();
        let array = DynTensor::new(DType::from_name(dtype), &shape, Order::C, bytes.clone())?;
        let name = format!("tensor-{dtype}");
        let data = Described { dtype: dtype.into(), shape, order: "C".into(), bytes };
        let bytes = tenarc::to_vec(&Tensor(array))?;
        cases.push(Case { name, bytes, data: Data::Tensor(data) });
    }

    let record = Record::example();
    let (bytes, data) = (tenarc::to_vec(&record)?, record.described(false));
    cases.push(Case { name: "record".into(), bytes, data });
    let options = EncodeOptions::default().with_typed_arrays(true);
    let (bytes, data) = (tenarc::ser::to_vec_with(&record, options)?, record.described(true));
    cases.push(Case { name: "record-packed".into(), bytes, data });
    Ok(cases)
}
