//! The header of a file: JSON with the name, dtype, shape and offsets of each tensor.

use tenarc::io::ReadAt;
use tenarc::tensor::{Order, Shape, TensorInfo, TensorMeta};
use tenarc::{DType, Error, Result};

use super::dtype;
use super::fields::{self, Entry, Parsed};
use crate::exported::{METADATA, Metadata, check_keys};
use crate::json_text::as_object;
use crate::support::no_tensor_named;
use crate::{json_text, source};

/// The greatest length of a header, in bytes. The reference implementation has the same limit.
const MAX_LEN: u64 = 100_000_000;

/// The number of bytes before the header. They hold its length.
const LEN_BYTES: u64 = 8;

/// A header that was checked against its file.
#[derive(Debug)]
pub struct Header {
    pub metadata: Option<Metadata>,
    /// The tensors, in the order of their bytes in the file.
    pub tensors: Vec<TensorInfo>,
    /// The offset of each tensor's bytes in the file.
    places: Vec<u64>,
    /// The indices in `tensors`, sorted by the names of the tensors.
    by_name: Vec<usize>,
}

impl Header {
    /// Reads the header of a file, and checks that the header and its tensors fill the file exactly.
    pub fn read<S: ReadAt + ?Sized>(file: &S) -> Result<Self> {
        let size = file.size().map_err(Error::io)?;
        let room = size.checked_sub(LEN_BYTES).ok_or_else(|| {
            Error::eof(&format!("{LEN_BYTES} bytes for the length of the header")).at(size)
        })?;
        let mut len = [0; 8];
        source::read_exact(file, &mut len, 0)?;
        let len = u64::from_le_bytes(len);
        if len > MAX_LEN {
            let what = format!("the header has {len} bytes, expected at most {MAX_LEN}");
            return Err(Error::limit(what).at(0));
        }
        if len > room {
            let what = format!("a header of {len} bytes, found {room}");
            return Err(Error::eof(&what).at(0));
        }
        let mut first = [0];
        if len > 0 {
            source::read_exact(file, &mut first, LEN_BYTES)?;
        }
        if first != *b"{" {
            return Err(Error::syntax("expected a header that begins with `{`").at(LEN_BYTES));
        }
        let text = source::bytes(file, LEN_BYTES, len)?;
        let parsed = fields::header(&text).map_err(|error| error.moved_by(LEN_BYTES))?;
        Self::checked(parsed, LEN_BYTES + len, room - len)
    }

    /// Checks that the tensors fill the rest of the file without gaps or overlaps. `base` is its offset, and `room` its
    /// length.
    fn checked(parsed: Parsed, base: u64, room: u64) -> Result<Self> {
        let Parsed { metadata, mut tensors } = parsed;
        check_keys(metadata.as_deref().unwrap_or_default())
            .map_err(|error| error.in_field(METADATA))?;
        // The header may list tensors in another order than that of their bytes.
        tensors.sort_by_key(|tensor| tensor.range);
        let by_name = by_name(&tensors)?;
        let mut infos = Vec::with_capacity(tensors.len());
        let mut places = Vec::with_capacity(tensors.len());
        let mut end = 0;
        for tensor in tensors {
            let (first, behind) = tensor.range;
            if first != end || behind < first {
                let what = format!(
                    "expected data_offsets that start at {end} and do not end before it, found [{first}, {behind}]"
                );
                return Err(Error::data(what).in_field(tensor.name));
            }
            let found = behind - first;
            check_len(&tensor.dtype, &tensor.shape, found)
                .map_err(|error| error.in_field(tensor.name.as_str()))?;
            end = behind;
            places.push(base.saturating_add(first));
            infos.push(info(tensor)?);
        }
        if end != room {
            let error = if end > room {
                Error::eof(&format!("{end} bytes of tensors, found {room}"))
            } else {
                Error::data(format!("{} bytes follow the last tensor", room - end))
            };
            return Err(error.at(base.saturating_add(end.min(room))));
        }
        Ok(Self { metadata, tensors: infos, places, by_name })
    }

    /// Returns the index of the tensor with this name.
    pub fn find(&self, name: &str) -> Result<usize> {
        let path = |&number: &usize| self.tensors.get(number).map_or("", TensorInfo::path);
        self.by_name
            .binary_search_by(|number| path(number).cmp(name))
            .ok()
            .and_then(|at| self.by_name.get(at).copied())
            .ok_or_else(|| no_tensor_named(name))
    }

    /// Returns a tensor and the offset of its bytes in the file.
    pub fn at(&self, number: usize) -> Option<(&TensorInfo, u64)> {
        Some((self.tensors.get(number)?, *self.places.get(number)?))
    }
}

/// Returns the indices of tensors, sorted by their names. Fails if two tensors have the same name, which the
/// specification forbids.
fn by_name(tensors: &[Entry]) -> Result<Vec<usize>> {
    let name = |&number: &usize| tensors.get(number).map_or("", |tensor| &tensor.name[..]);
    let mut numbers: Vec<usize> = (0..tensors.len()).collect();
    numbers.sort_by(|a, b| name(a).cmp(name(b)));
    match numbers.iter().zip(numbers.iter().skip(1)).find(|(a, b)| name(a) == name(b)) {
        Some((number, _)) => {
            let what = "there are two tensors of this name";
            Err(Error::data(what).in_field(name(number)))
        }
        None => Ok(numbers),
    }
}

/// Formats the first dimensions of a shape for an error. A hostile shape can have millions of dimensions.
pub fn shown(shape: &[usize]) -> String {
    const MOST: usize = 16;
    match shape.get(..MOST) {
        Some(first) if shape.len() > MOST => {
            format!("{first:?} and {} more dimensions", shape.len() - MOST)
        }
        _ => format!("{shape:?}"),
    }
}

/// Checks that a tensor of this dtype and shape takes `found` bytes. The reference implementation computes this number
/// in the same way.
fn check_len(dtype: &DType, shape: &[usize], found: u64) -> Result<()> {
    let shown = || format!("{dtype} tensor of shape {}", shown(shape));
    let bits = shape
        .iter()
        .try_fold(1u64, |count, &dim| count.checked_mul(dim as u64))
        .and_then(|count| count.checked_mul(dtype.bits()? as u64))
        .ok_or_else(|| {
            Error::data(format!("the byte length of a {} does not fit in 64 bits", shown()))
        })?;
    if bits % 8 != 0 {
        return Err(Error::data(format!("a {} does not fill whole bytes", shown())));
    }
    if bits / 8 != found {
        let expected = bits / 8;
        let what = format!("expected {expected} bytes for a {}, found {found}", shown());
        return Err(Error::data(what));
    }
    Ok(())
}

fn info(tensor: Entry) -> Result<TensorInfo> {
    let Entry { name, dtype, shape, range } = tensor;
    let len = source::in_memory(range.1 - range.0, range.0)?;
    let meta = TensorMeta { dtype, shape: Shape::from(shape), order: Order::C };
    Ok(TensorInfo::new(name, meta, len as u64))
}

/// Returns the header that the reference implementation writes, with its length before it.
pub fn write<'a>(
    metadata: Option<&[(String, String)]>,
    tensors: impl Iterator<Item = (&'a str, &'a TensorMeta, u64)>,
) -> Result<Vec<u8>> {
    let mut text = vec![0; 8];
    text.push(b'{');
    if let Some(metadata) = metadata {
        // JSON makes the texts longer, never shorter, so this check can come first. It avoids a large allocation.
        let len = metadata.iter().map(|(key, text)| key.len() + text.len()).sum::<usize>();
        if len as u64 > MAX_LEN {
            return Err(too_long());
        }
        check_keys(metadata).map_err(|error| error.in_field(METADATA))?;
        json_text::put(&mut text, METADATA)?;
        text.push(b':');
        as_object(metadata, &mut serde_json::Serializer::new(&mut text))
            .map_err(|error| Error::io(error.into()))?;
    }
    let mut end = 0u64;
    for (name, meta, len) in tensors {
        if text.len() > 9 {
            text.push(b',');
        }
        json_text::put(&mut text, name)?;
        text.push(b':');
        let code = dtype::to_name(&meta.dtype).map_or("", |(_, code)| code);
        let start = end;
        end = start
            .checked_add(len)
            .ok_or_else(|| Error::limit("the tensors have more than 2^64 bytes together"))?;
        fields::put_tensor(&mut text, code, &meta.shape, (start, end))?;
        if text.len() as u64 > MAX_LEN {
            break;
        }
    }
    text.push(b'}');
    let padded = text.len().next_multiple_of(8);
    text.resize(padded, b' ');
    let len = padded as u64 - LEN_BYTES;
    if len > MAX_LEN {
        return Err(too_long());
    }
    if let Some(front) = text.first_chunk_mut() {
        *front = len.to_le_bytes();
    }
    Ok(text)
}

#[cold]
fn too_long() -> Error {
    Error::limit(format!("the header would be longer than the limit of {MAX_LEN} bytes"))
}
