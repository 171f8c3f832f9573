//! Reads arrays in the form of flax: an array is an extension with its shape, the name of its dtype, and its bytes.

use rmp::decode::{read_array_len, read_bin_len, read_f64, read_int, read_str_len};
use tenarc::de::Limits;
use tenarc::tensor::{Order, Shape, TensorMeta};

use crate::numpy;

/// The type of extensions that hold arrays.
const ARRAY: i8 = 1;

/// The type of extensions that hold complex numbers of Python. The number is an array of two floats.
const COMPLEX: i8 = 2;

/// The type of extensions that hold scalars. They have the form of arrays without dimensions.
const SCALAR: i8 = 3;

/// The greatest number of bytes before the elements of an array.
pub const MAX_HEAD: usize = 1024;

/// Parses the start of an extension of `len` bytes. If it is an array of flax, returns the dtype and shape of the
/// array, and the number of bytes before its elements. `None` otherwise: other programs use the same types of
/// extensions.
pub fn head(kind: i8, len: u64, start: &[u8], limits: Limits) -> Option<(TensorMeta, u64)> {
    let mut rest = start;
    if !matches!(kind, ARRAY | SCALAR) || read_array_len(&mut rest).ok()? != 3 {
        return None;
    }
    let rank = usize::try_from(read_array_len(&mut rest).ok()?).ok()?;
    if rank > limits.max_rank() || kind == SCALAR && rank > 0 {
        return None;
    }
    let dims = (0..rank).map(|_| read_int::<usize, _>(&mut rest).ok());
    let shape = Shape::from(dims.collect::<Option<Vec<_>>>()?);
    let name_len = usize::try_from(read_str_len(&mut rest).ok()?).ok()?;
    let dtype = numpy::of_name(rest.split_off(..name_len)?)?;
    let bytes = u64::from(read_bin_len(&mut rest).ok()?);
    let head = (start.len() - rest.len()) as u64;
    let expected = shape.element_count().and_then(|count| dtype.byte_len(count))?;
    let fits = expected as u64 == bytes && head.checked_add(bytes) == Some(len);
    fits.then_some((TensorMeta { dtype, shape, order: Order::C }, head))
}

/// Returns the real and imaginary part of a complex number of flax. `None` if the extension is something else.
pub fn complex(kind: i8, mut data: &[u8]) -> Option<(f64, f64)> {
    if kind != COMPLEX || read_array_len(&mut data).ok()? != 2 {
        return None;
    }
    let parts = (read_f64(&mut data).ok()?, read_f64(&mut data).ok()?);
    data.is_empty().then_some(parts)
}

/// Returns whether an extension would be read as an array or a complex number of flax.
pub fn is_special(kind: i8, data: &[u8]) -> bool {
    let start = data.get(..MAX_HEAD).unwrap_or(data);
    head(kind, data.len() as u64, start, Limits::default()).is_some()
        || complex(kind, data).is_some()
}
