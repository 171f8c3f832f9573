//! Reads a tensor, or the slice of it that an argument names.

use tenarc::{DType, Value};

use crate::document::{Document, Section};
use crate::elements;
use crate::failure::{Failure, Result};
use crate::node::{Form, Kind, Node, named};
use crate::rows::Meant;
use crate::slices::{self, Selection, Slice};
use crate::text::quoted;

/// The message for a value that is no tensor.
pub const NOT_A_TENSOR: &str = "not a tensor";

/// A tensor or a slice of one, with its elements in row-major order.
pub struct Taken {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
    /// The type that is named for the elements, if they are integers: its name and its parameters.
    pub of: Option<(String, Vec<Value>)>,
}

/// Returns the value and the slice that an argument names. The whole argument is tried as a path first, because a key
/// may look like a slice.
///
/// # Errors
/// If nothing is at the path.
pub fn wanted<'a>(
    document: &'a Document,
    argument: &str,
    chosen: Option<&str>,
) -> Result<(Meant<'a>, Option<Slice>)> {
    match (document.meant(argument, chosen), slices::split(argument)) {
        (Ok(meant), _) => Ok((meant, None)),
        (Err(_), Some((path, slice))) => {
            let slice = Slice::parse(slice)?;
            Ok((document.meant(path, chosen)?, Some(slice)))
        }
        (Err(failure), None) => Err(failure),
    }
}

/// Reads a tensor, or a slice of it.
///
/// # Errors
/// If the node is no tensor, the slice does not fit, or reading fails.
pub fn take(section: &Section<'_>, node: &Node, slice: Option<&Slice>) -> Result<Taken> {
    let payload = node.payload().ok_or_else(|| Failure::new(NOT_A_TENSOR))?;
    let (dims, order) = (&payload.shape, payload.order);
    let selection = match slice {
        None => Selection::all(dims, order),
        Some(slice) => Selection::new(slice, dims, order)?,
    };
    let (dtype, shape) = (payload.dtype.clone(), selection.shape());
    let of = type_of(section, node)?;
    // The whole tensor is copied as stored, which works for any dtype.
    if selection.is_all(dims, order) {
        return Ok(Taken { dtype, shape, bytes: section.payload_bytes(node)?, of });
    }
    let size = elements::size(&dtype).ok_or_else(|| {
        let name = quoted(dtype.name());
        Failure::new(format!(
            "cannot slice {name}: its elements are not whole bytes, or of unknown size"
        ))
    })?;
    let (low, high) = selection.extent();
    let (start, len) = (low * size, (high - low) * size);
    let bytes = if len as u64 == payload.byte_len {
        section.payload_bytes(node)?
    } else {
        section.part(node, start, len)?
    };
    if payload.form == Form::Bytes {
        return Ok(Taken { dtype, shape, bytes: selection.gather(&bytes, 1), of });
    }
    Ok(Taken { dtype, shape, bytes: selection.gather(&bytes, size), of })
}

/// The name and the parameters of the type of a value.
fn type_of(section: &Section<'_>, node: &Node) -> Result<Option<(String, Vec<Value>)>> {
    let Kind::Tag(tag, inner) = &node.kind else { return Ok(None) };
    let [name, parameters, _] = named(*tag, inner) else { return type_of(section, inner) };
    let name = tenarc::from_slice(section.item(&name.range))?;
    Ok(Some((name, tenarc::from_slice(section.item(&parameters.range))?)))
}
