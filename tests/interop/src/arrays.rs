//! npy and npz files, exchanged with numpy.
//!
//! What an array holds follows from its name, `dtype-shape-order`: its n-th element in row-major order is
//! n, negative where n is odd and the dtype has negative numbers, the remainder by 2 of a bool; the
//! imaginary part is n + 1.

use std::error::Error;
use std::fs;
use std::path::Path;

use half::f16;
use ndarray::{ArrayD, IxDyn, ShapeBuilder};
use num_complex::Complex;
use tenarc::DynTensor;
use tenarc::tensor::{Element, Order};
use tenarc_convert::npy::{self, Compression, Npz};

use crate::Tally;

const SHAPES: [&[usize]; 6] = [&[], &[0], &[3], &[2, 3], &[0, 3], &[2, 3, 4]];
const DTYPES: [&str; 14] = [
    "bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64", "c64",
    "c128",
];

fn array<A: Element>(shape: &[usize], order: Order, value: fn(u8) -> A) -> DynTensor {
    let row_major = |index: IxDyn| {
        let at = ndarray::Dimension::slice(&index);
        at.iter().zip(shape).fold(0, |all, (&at, &dim)| all * dim + at)
    };
    let shape_of = IxDyn(shape).set_f(order == Order::F);
    let element = |index| value(u8::try_from(row_major(index)).unwrap_or(u8::MAX));
    ArrayD::from_shape_fn(shape_of, element).into()
}

/// A small number, negative where it is odd.
fn signed(n: u8) -> i8 {
    let n = i8::try_from(n).unwrap_or(i8::MAX);
    if n % 2 == 1 { -n } else { n }
}

pub fn sample(dtype: &str, shape: &[usize], order: Order) -> Option<DynTensor> {
    Some(match dtype {
        "bool" => array(shape, order, |n| n % 2 == 1),
        "u8" => array(shape, order, |n| n),
        "u16" => array(shape, order, u16::from),
        "u32" => array(shape, order, u32::from),
        "u64" => array(shape, order, u64::from),
        "i8" => array(shape, order, signed),
        "i16" => array(shape, order, |n| i16::from(signed(n))),
        "i32" => array(shape, order, |n| i32::from(signed(n))),
        "i64" => array(shape, order, |n| i64::from(signed(n))),
        "f16" => array(shape, order, |n| f16::from(signed(n))),
        "f32" => array(shape, order, |n| f32::from(signed(n))),
        "f64" => array(shape, order, |n| f64::from(signed(n))),
        "c64" => array(shape, order, |n| Complex::new(f32::from(signed(n)), f32::from(n) + 1.0)),
        "c128" => array(shape, order, |n| Complex::new(f64::from(signed(n)), f64::from(n) + 1.0)),
        _ => return None,
    })
}

/// The name from which follows what an array holds.
pub fn named(dtype: &str, shape: &[usize], order: Order) -> String {
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    let letter = if order == Order::F { "F" } else { "C" };
    format!("{dtype}-{}-{letter}", dims.join("x"))
}

pub fn write(dir: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(dir)?;
    let mut arrays = Vec::new();
    for dtype in DTYPES {
        for shape in SHAPES {
            for order in [Order::C, Order::F] {
                let array = sample(dtype, shape, order).ok_or("no such dtype")?;
                arrays.push((named(dtype, shape, order), array));
            }
        }
    }
    for (name, array) in &arrays {
        npy::save(dir.join(format!("{name}.npy")), array)?;
    }
    npy::save_npz(dir.join("stored.npz"), &arrays, Compression::Stored)?;
    npy::save_npz(dir.join("deflated.npz"), &arrays, Compression::Deflated)?;
    Ok(())
}

pub fn check(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    let mut tally = Tally::default();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "npz") {
            let npz = Npz::open(&path)?;
            for name in npz.names() {
                tally.note(&format!("{stem}, {name}"), compare(name, npz.dyn_tensor(name)));
            }
        } else {
            tally.note(&stem, compare(&stem, npy::load(&path)));
        }
    }
    Ok(tally)
}

pub fn compare(name: &str, found: tenarc::Result<DynTensor>) -> Result<(), String> {
    let found = found.map_err(|error| error.to_string())?;
    let parts: Vec<&str> = name.split('-').collect();
    let [dtype, dims, order, ..] = parts[..] else { return Err("a name that says nothing".into()) };
    let dims = dims.split('x').filter(|dim| !dim.is_empty()).map(str::parse);
    let shape = dims.collect::<Result<Vec<usize>, _>>().map_err(|error| error.to_string())?;
    // To numpy, an array without elements is in row-major order, too.
    let column_major = order == "F" && shape.len() > 1 && !shape.contains(&0);
    let order = if column_major { Order::F } else { Order::C };
    match sample(dtype, &shape, order) {
        Some(expected) if expected == found => Ok(()),
        expected => Err(format!("expected {expected:?}, found {found:?}")),
    }
}
