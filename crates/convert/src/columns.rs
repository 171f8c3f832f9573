//! The columns of a sequence in an archive as tensors.

use std::rc::Rc;

use tenarc::archive::Segment;
use tenarc::inspect::{dotted, escape_step};
use tenarc::io::ReadAt;
use tenarc::tensor::{Deferred, Order, TensorMeta};
use tenarc::{DynTensor, Result, Tensor};

use crate::Losses;

/// Returns the columns of a sequence that are tensors, and adds the other columns to `losses`.
///
/// `pointer` is the path of the sequence as a JSON Pointer. `sequence` is the same path as the names of its tensors
/// have it.
pub fn tensor_columns<'a, S: ReadAt + ?Sized>(
    segment: &'a Segment<'_, S>,
    pointer: &str,
    sequence: &str,
    losses: &mut Losses,
) -> Result<Vec<(String, Deferred<'a>)>> {
    let (table, sequence) = (Rc::new(segment.table(pointer)?), Rc::<str>::from(sequence));
    let columns = table.columns()?;
    if columns.is_empty() {
        losses.add(&sequence, "its rows have no fields that are tensors: it is left out");
    }
    let rows = usize::try_from(table.len()).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for column in columns {
        let path = column.path();
        // The fields of a struct follow it as columns of their own.
        if column.kind() == "structs" {
            continue;
        }
        let below = dotted(path);
        let name =
            if sequence.is_empty() { below.into_owned() } else { format!("{sequence}.{below}") };
        let tensor = column.dtype().zip(column.row_shape()).filter(|_| column.is_tensor());
        let Some((dtype, dims)) = tensor else {
            let kind = column.kind();
            losses.add(&name, format!("a column of {kind} is not a tensor: it is left out"));
            continue;
        };
        let shape = [&[rows][..], dims].concat();
        if TensorMeta::new(dtype.clone(), &*shape, Order::C).byte_len().is_none() {
            let what = format!(
                "the byte length of a column of {dtype}{shape:?} is unknown: it is left out"
            );
            losses.add_tensor(&name, what);
            continue;
        }
        let (dtype, path) = (dtype.clone(), column.path().to_owned());
        let (table, sequence) = (table.clone(), sequence.clone());
        // The whole column is in memory while it is written.
        let read = move |put: &mut dyn FnMut(&[u8]) -> Result<()>| {
            let tensor: Result<Tensor<DynTensor>> = table.column(&path);
            let tensor = tensor.map_err(|error| match &*sequence {
                "" => error,
                sequence => error.in_field(sequence),
            });
            put(&tensor?.le_bytes())
        };
        found.push((name, Deferred::from_blocks(dtype, &shape, Order::C, read)));
    }
    Ok(found)
}

/// Returns a step of a JSON Pointer: a slash and the escaped text.
pub fn escaped(step: &str) -> String {
    format!("/{}", escape_step(step))
}
