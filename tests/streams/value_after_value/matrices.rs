//! Dense and sparse matrices of every element type, and plain structs as blocks.

use bytemuck::{Pod, Zeroable};
use ndarray::{Array2, Array3, ShapeBuilder, arr2};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use tenarc::tensor::Element;
use tenarc::{Archive, IArchive, OArchive, Tensor};

use super::{quick, round_trip};

/// Numbers that matrices hold.
trait Number: Element + Copy + PartialEq + std::fmt::Debug {
    fn of(value: u8) -> Self;
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Number for $type {
            fn of(value: u8) -> Self {
                Self::from(value)
            }
        })*

        impl Number for Complex<f32> {
            fn of(value: u8) -> Self {
                Self::new(value.into(), 0.0)
            }
        }

        /// Calls a generic function for each element type.
        macro_rules! for_every_number {
            ($function:ident) => { $($function::<$type>();)* $function::<Complex<f32>>(); };
        }
    };
}

numbers! { u8 u64 i16 f32 f64 half::bf16 }

#[test]
fn dense_matrices_of_every_size_and_layout() {
    fn check<A: Number>() {
        for rows in [0, 1, 8, 23] {
            for columns in [0, 1, 8, 17] {
                let at =
                    |(y, x): (usize, usize)| A::of(u8::try_from((y * columns + x) % 128).unwrap());
                let matrix = Array2::from_shape_fn((rows, columns), at);
                let mut turned = Array2::from_elem((rows, columns).f(), A::of(0));
                turned.assign(&matrix);
                let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
                out.save(&Tensor(&matrix)).unwrap().save(&Tensor(&turned)).unwrap();
                out.save(&Tensor(matrix.t())).unwrap().save(&4711).unwrap();
                let bytes = out.finish().unwrap();
                let mut input = IArchive::new(&bytes[..]).unwrap();
                for _ in 0..2 {
                    assert_eq!(input.load::<Tensor<Array2<A>>>().unwrap().0, matrix);
                }
                assert_eq!(input.load::<Tensor<Array2<A>>>().unwrap().0, matrix.t());
                assert_eq!(input.load::<u16>().unwrap(), 4711);
            }
        }
    }
    for_every_number!(check);
    round_trip(&Tensor(Array3::<bool>::from_elem((3, 4, 200), true)));
}

/// Compressed rows: the columns and values of a row stand between two of its starts.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Sparse<A: Element> {
    shape: (usize, usize),
    starts: Tensor<Vec<u64>>,
    columns: Tensor<Vec<u32>>,
    #[serde(bound = "")]
    values: Tensor<Vec<A>>,
}

impl<A: Number> Sparse<A> {
    fn new(dense: &Array2<A>) -> Self {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in dense.rows() {
            for (&value, column) in row.iter().zip(0..).filter(|(value, _)| **value != A::of(0)) {
                columns.push(column);
                values.push(value);
            }
            starts.push(values.len() as u64);
        }
        let (starts, columns) = (Tensor(starts), Tensor(columns));
        Self { shape: dense.dim(), starts, columns, values: Tensor(values) }
    }

    fn dense(&self) -> Array2<A> {
        let mut dense = Array2::from_elem(self.shape, A::of(0));
        for (row, bounds) in self.starts.windows(2).enumerate() {
            for at in bounds[0]..bounds[1] {
                let at = usize::try_from(at).unwrap();
                dense[[row, self.columns[at] as usize]] = self.values[at];
            }
        }
        dense
    }
}

#[test]
fn sparse_matrices_of_every_element_type() {
    fn check<A: Number>() {
        for (rows, columns, every) in
            [(0, 0, 1), (5, 0, 1), (1, 1, 1), (40, 50, 7), (100, 90, 4000)]
        {
            let at = |(y, x): (usize, usize)| match (y * columns + x) % every {
                0 => A::of(u8::try_from(x % 120 + 1).unwrap()),
                _ => A::of(0),
            };
            let dense = Array2::from_shape_fn((rows, columns), at);
            let sparse = Sparse::new(&dense);
            round_trip(&sparse);
            let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
            out.save_as("sparse", &sparse).unwrap();
            let archive = Archive::new(out.finish().unwrap()).unwrap();
            let back: Sparse<A> = archive.load().unwrap();
            assert_eq!(back.dense(), dense);
            // One part of it, without the others.
            assert_eq!(archive.get::<Tensor<Vec<A>>>("values").unwrap(), sparse.values);
            assert!(archive.get::<Tensor<Vec<bool>>>("values").is_err());
        }
    }
    for_every_number!(check);
}

/// Fields of one width.
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
#[repr(C)]
struct Point {
    position: [f32; 3],
    weight: f32,
}

/// Fields of several widths, as their bytes in an order that the struct chooses.
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
#[repr(C)]
struct Event {
    time: [u8; 8],
    code: [u8; 2],
    flags: [u8; 6],
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Default)]
struct Blocks {
    #[serde(with = "tenarc::tensor::Rows::<f32>")]
    points: Vec<Point>,
    #[serde(with = "tenarc::tensor::Rows::<u8>")]
    events: Vec<Event>,
}

/// As a value of its own.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Points(#[serde(with = "tenarc::tensor::Rows::<f32>")] Vec<Point>);

fn points(count: u16) -> Vec<Point> {
    let point = |at| Point { position: [f32::from(at); 3], weight: 0.5 };
    (0..count).map(point).collect()
}

#[test]
fn plain_structs_as_blocks() {
    let event = |at: u16| Event {
        time: (u64::from(at) << 40).to_le_bytes(),
        code: at.to_le_bytes(),
        flags: [1, 2, 3, 4, 5, 6],
    };
    let blocks = Blocks { points: points(1000), events: (0..1000).map(event).collect() };
    round_trip(&blocks);
    round_trip(&Blocks::default());
    round_trip(&(blocks.points.len(), blocks));
    round_trip(&Points(points(3)));
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&Points(points(1000))).unwrap();
    let bytes = out.finish().unwrap();
    assert!(bytes.len() < 16_000 + 700, "a block of {} bytes", bytes.len());
    // Which is a matrix to whoever does not know the struct.
    let matrix: Tensor<Array2<f32>> = IArchive::new(&bytes[..]).unwrap().load().unwrap();
    assert_eq!(
        matrix.slice(ndarray::s![998.., ..]),
        arr2(&[[998., 998., 998., 0.5], [999., 999., 999., 0.5]])
    );
}
