//! Sparse and quantised tensors, which consist of other tensors. They become maps of their parts.

use tenarc::{DType, Result};

use super::global::Rebuild;
use super::heap::{Heap, Made, tuple};
use super::object::{Object, Value};
use super::tensor::tensor;

/// The layouts of sparse tensors, and the names of their parts in the order and spelling of torch.
const LAYOUTS: [(&str, &[&str]); 5] = [
    ("torch.sparse_coo", &["indices", "values", "size", "is_coalesced"]),
    ("torch.sparse_csr", &["crow_indices", "col_indices", "values", "size"]),
    ("torch.sparse_bsr", &["crow_indices", "col_indices", "values", "size"]),
    ("torch.sparse_csc", &["ccol_indices", "row_indices", "values", "size"]),
    ("torch.sparse_bsc", &["ccol_indices", "row_indices", "values", "size"]),
];

/// Makes the map of a sparse tensor. `None` if the layout or the parts are not known.
pub fn sparse(heap: &mut Heap, layout: Value, parts: Value) -> Result<Option<Object>> {
    let Some(Object::Text(name)) = heap.object(layout) else { return Ok(None) };
    let Some((_, names)) = LAYOUTS.iter().find(|(known, _)| *known == &**name) else {
        return Ok(None);
    };
    let Some(Object::Tuple(values)) = heap.object(parts) else { return Ok(None) };
    // In old files, a COO tensor lacks `is_coalesced`.
    if values.len() > names.len() || values.len() < 3 {
        return Ok(None);
    }
    let parts = names.iter().copied().zip(values.to_vec());
    let entries = [("layout", layout)].into_iter().chain(parts).collect();
    dict(heap, entries).map(Some)
}

/// Makes the map of a quantised tensor: its integers, and the parameters that turn them into numbers. `None` if the
/// dtype or the scheme is not known.
pub fn quantised(heap: &mut Heap, arguments: &[Value]) -> Result<Option<Object>> {
    let &[storage, offset, shape, strides, scheme, requires_grad, hooks] = arguments else {
        return Ok(None);
    };
    let dtype = match heap.object(storage) {
        Some(Object::Storage(storage)) => match storage.elements.dtype() {
            DType::I8 => "torch.qint8",
            DType::U8 => "torch.quint8",
            DType::I32 => "torch.qint32",
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let scheme = tuple(heap, scheme)?;
    let name = match scheme.first().and_then(|name| heap.object(*name)) {
        Some(Object::Global(global)) => global.name.clone(),
        _ => return Ok(None),
    };
    let mut entries = match (&*name, scheme) {
        ("torch.per_tensor_affine", &[_, scale, zero_point]) => {
            vec![("scale", scale), ("zero_point", zero_point)]
        }
        (
            "torch.per_channel_affine" | "torch.per_channel_affine_float_qparams",
            &[_, scales, zero_points, axis],
        ) => vec![("scale", scales), ("zero_point", zero_points), ("axis", axis)],
        _ => return Ok(None),
    };
    let plain = [storage, offset, shape, strides, requires_grad, hooks];
    let Made::New(integers) = tensor(heap, Rebuild::V2, &plain)? else {
        return Ok(None);
    };
    entries.insert(0, ("int_repr", heap.add(integers)?));
    entries.insert(1, ("dtype", heap.add(Object::Text(dtype.into()))?));
    entries.insert(2, ("qscheme", heap.add(Object::Text(name.as_ref().into()))?));
    dict(heap, entries).map(Some)
}

fn dict(heap: &mut Heap, parts: Vec<(&str, Value)>) -> Result<Object> {
    let mut entries = Vec::with_capacity(parts.len());
    for (name, value) in parts {
        entries.push((heap.add(Object::Text(name.into()))?, value));
    }
    Ok(Object::of_entries(entries))
}
