//! Sparse and quantised tensors, which consist of other tensors. They become maps of their parts.

use tenarc::{DType, Result};

use super::build::{self, tuple};
use super::global::{Meaning, Rebuild};
use super::machine::Machine;
use super::object::{Kind, Object, Value};

/// The layouts of sparse tensors, and the names of their parts in the order and spelling of torch.
const LAYOUTS: [(&str, &[&str]); 5] = [
    ("torch.sparse_coo", &["indices", "values", "size", "is_coalesced"]),
    ("torch.sparse_csr", &["crow_indices", "col_indices", "values", "size"]),
    ("torch.sparse_bsr", &["crow_indices", "col_indices", "values", "size"]),
    ("torch.sparse_csc", &["ccol_indices", "row_indices", "values", "size"]),
    ("torch.sparse_bsc", &["ccol_indices", "row_indices", "values", "size"]),
];

/// Makes the map of a sparse tensor. `None` if the layout or the parts are not known.
pub fn sparse(machine: &mut Machine, layout: Value, parts: Value) -> Result<Option<Object>> {
    let Some(Object::Text(name)) = machine.object(layout) else { return Ok(None) };
    let Some((_, names)) = LAYOUTS.iter().find(|(known, _)| *known == &**name) else {
        return Ok(None);
    };
    let Some(Object::Tuple(values)) = machine.object(parts) else { return Ok(None) };
    // In old files, a COO tensor lacks `is_coalesced`.
    if values.len() > names.len() || values.len() < 3 {
        return Ok(None);
    }
    let parts = names.iter().copied().zip(values.to_vec());
    let entries = [("layout", layout)].into_iter().chain(parts).collect();
    dict(machine, entries).map(Some)
}

/// Makes the map of a quantised tensor: its integers, and the parameters that turn them into numbers. `None` if the
/// dtype or the scheme is not known.
pub fn quantised(machine: &mut Machine, arguments: &[Value]) -> Result<Option<Object>> {
    let &[storage, offset, shape, strides, scheme, requires_grad, hooks] = arguments else {
        return Ok(None);
    };
    let dtype = match machine.object(storage) {
        Some(Object::Storage(storage)) => match storage.elements.dtype() {
            DType::I8 => "torch.qint8",
            DType::U8 => "torch.quint8",
            DType::I32 => "torch.qint32",
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let scheme = tuple(machine, scheme)?;
    let name = match scheme.first().and_then(|name| machine.object(*name)) {
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
    let build::Made::New(integers) = build::tensor(machine, Rebuild::V2, &plain)? else {
        return Ok(None);
    };
    entries.insert(0, ("int_repr", machine.add(integers)?));
    entries.insert(1, ("dtype", machine.add(Object::Text(dtype.into()))?));
    entries.insert(2, ("qscheme", machine.add(Object::Text(name.as_ref().into()))?));
    dict(machine, entries).map(Some)
}

fn dict(machine: &mut Machine, parts: Vec<(&str, Value)>) -> Result<Object> {
    let mut entries = Vec::with_capacity(parts.len());
    for (name, value) in parts {
        entries.push((machine.add(Object::Text(name.into()))?, value));
    }
    Ok(Object::of_entries(entries))
}

/// Returns the meaning of the class of a storage of quantised integers.
pub fn storage(name: &str) -> Option<Meaning> {
    let dtype = match name {
        "QInt8Storage" => DType::I8,
        "QUInt8Storage" => DType::U8,
        "QInt32Storage" => DType::I32,
        _ => return None,
    };
    Some(Meaning::Storage(Kind::Typed(dtype)))
}
