//! Makes the tensors that the functions of torch make of a storage.

use std::sync::Arc;

use tenarc::{DType, Error, Result};

use super::global::{Global, Meaning, Rebuild};
use super::heap::{Heap, Made, is_empty, sizes};
use super::object::{Object, Value};
use super::storage::{Rebuilt, Signs};

/// A tensor that cannot be read.
fn lost_tensor(what: impl Into<Arc<str>>) -> Made {
    Made::New(Object::lost_tensor(what))
}

/// Returns the tensor that `_rebuild_tensor` makes, or a later version of this function.
pub fn tensor(heap: &Heap, version: Rebuild, arguments: &[Value]) -> Result<Made> {
    let few = || Error::data("expected storage, offset, size and stride of a tensor");
    let (&[storage, offset, shape, strides], rest) =
        arguments.split_first_chunk::<4>().ok_or_else(few)?;
    let storage = match heap.object(storage) {
        Some(Object::Storage(storage)) => storage.clone(),
        // The type of the storage is not known.
        Some(Object::Lost(lost)) => return Ok(lost_tensor(format!("a tensor in {}", lost.what))),
        _ => return Err(Error::data("expected the storage of a tensor, found something else")),
    };
    let dtype = match (version, &storage.elements) {
        (Rebuild::V1 | Rebuild::V2, kind) => kind.dtype().clone(),
        (Rebuild::V3, _) => match rest.get(2).and_then(|dtype| heap.object(*dtype)) {
            Some(Object::Global(Global { meaning: Meaning::DType(dtype), .. })) => dtype.clone(),
            Some(Object::Global(global)) => {
                return Ok(lost_tensor(format!("a tensor of dtype {}", global.shown())));
            }
            _ => return Err(Error::data("expected the dtype of a tensor, found something else")),
        },
    };
    let lazy = rest.get(if version == Rebuild::V3 { 3 } else { 2 }).copied();
    let Some(signs) = signs(heap, lazy, &dtype) else {
        return Ok(lost_tensor("a tensor with properties that are not known"));
    };
    let hooks = rest.get(1).copied();
    let Value::Int(offset) = offset else { return Err(few()) };
    let offset =
        u64::try_from(offset).map_err(|_| Error::data("the offset of a tensor is negative"))?;
    let rebuilt = Rebuilt {
        offset: offset.saturating_add(storage.view.0),
        storage,
        dtype,
        shape: sizes(heap, shape)?,
        strides: sizes(heap, strides)?,
        attributes: !is_empty(heap, hooks),
        swapped: false,
        signs,
    };
    Ok(Made::New(Object::Tensor(Box::new(rebuilt))))
}

/// Returns the signs that differ from those in the storage, from torch's notes about the tensor: it may be conjugated
/// or negated when it is used. `None` if a note is not known.
fn signs(heap: &Heap, notes: Option<Value>, dtype: &DType) -> Option<Signs> {
    let mut signs = Signs::default();
    if is_empty(heap, notes) {
        return Some(signs);
    }
    let Some(Object::Dict(notes)) = notes.and_then(|notes| heap.object(notes)) else {
        return None;
    };
    let is_complex = matches!(dtype, DType::C64 | DType::C128);
    let is_real = matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    for (key, value) in &notes.entries {
        let (Some(Object::Text(key)), Value::Bool(is_set)) = (heap.object(*key), *value) else {
            return None;
        };
        match &**key {
            "conj" if is_complex => signs.imaginary ^= is_set,
            "neg" if is_complex || is_real => {
                signs.real ^= is_set;
                signs.imaginary ^= is_set;
            }
            _ => return None,
        }
    }
    Some(signs)
}
