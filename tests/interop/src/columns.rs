//! Arrow's files and streams, exchanged with pyarrow.
//!
//! What a column holds follows from its name, as in [`arrays`](crate::arrays), and so does the layout of a
//! file: `rows`, where the first dimension is that of rows, or `cells`, where each tensor is in one cell.

use std::error::Error;
use std::fs;
use std::path::Path;

use tenarc::DynTensor;
use tenarc::io::ReadAt;
use tenarc::tensor::Order;
use tenarc_convert::arrow::{self, ArrowFile, Batches, Layout, Options};

use crate::Tally;
use crate::arrays::{compare, named, sample};

/// Those of numpy that Arrow has.
const DTYPES: [&str; 12] =
    ["bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"];

/// Shapes of one number of rows, and any.
const ROWS: [&[usize]; 4] = [&[3], &[3, 2], &[3, 2, 4], &[3, 1]];
const CELLS: [&[usize]; 6] = [&[], &[0], &[3], &[2, 3], &[0, 3], &[2, 3, 4]];

fn samples(shapes: &[&[usize]], orders: &[Order]) -> Option<Vec<(String, DynTensor)>> {
    let mut found = Vec::new();
    for dtype in DTYPES {
        for shape in shapes {
            for &order in orders {
                found.push((named(dtype, shape, order), sample(dtype, shape, order)?));
            }
        }
    }
    Some(found)
}

pub fn write(dir: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(dir)?;
    let rows = samples(&ROWS, &[Order::C]).ok_or("no such dtype")?;
    let cells = samples(&CELLS, &[Order::C, Order::F]).ok_or("no such dtype")?;
    for extension in ["arrow", "arrows"] {
        let at = |name: &str| dir.join(name).with_extension(extension);
        arrow::save(at("rows"), &rows)?;
        arrow::save_with(at("rows_batches"), &rows, &Options::default().with_rows_per_batch(2))?;
        arrow::save_with(at("cells"), &cells, &Options::default().with_layout(Layout::OneRow))?;
    }
    Ok(())
}

pub fn check(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    let mut tally = Tally::default();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let stem = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        check_file(&arrow::open(&path)?, &stem, &mut tally);
        // As a stream, batch by batch; those of one batch hold the same.
        let batches = Batches::new(fs::File::open(&path)?)?.collect::<Result<Vec<_>, _>>()?;
        if let [batch] = &batches[..] {
            check_file(batch, &stem, &mut tally);
        }
    }
    Ok(tally)
}

fn check_file<S: ReadAt>(file: &ArrowFile<S>, stem: &str, tally: &mut Tally) {
    for info in file.tensors() {
        let name = info.path();
        tally.note(&format!("{stem}, {name}"), compare(name, file.dyn_tensor(name)));
    }
    let losses = file.losses();
    let kept = if losses.is_empty() { Ok(()) } else { Err(losses.to_string()) };
    tally.note(stem, kept);
}
