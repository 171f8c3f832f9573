//! The elements of a tensor, in steps.

use std::fs::File;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::{DType, Error, Result};

use super::tensor::{External, Payload, TensorEntry};
use super::wire::Wire;
use crate::input::STEP;
use crate::source;
use crate::support::parent;

/// Where other files with elements may be.
#[derive(Debug)]
pub struct Directory {
    /// The directory of the model.
    path: PathBuf,
    /// Without links: the directory of the model, and that of the file that the model is a link to. Caches of models keep all
    /// files in one directory, and links to them in another.
    real: [PathBuf; 2],
}

impl Directory {
    /// The directory of a model.
    pub fn of(model: &Path) -> Result<Self> {
        let real = |path: &Path| {
            path.canonicalize().map_err(|error| Error::io_at(error, "cannot find", path))
        };
        let path = parent(model).to_owned();
        let real = [real(&path)?, parent(&real(model)?).to_owned()];
        Ok(Self { path, real })
    }

    /// Whether a file is in the directory of the model or below, or beside the file that the model is a link to.
    fn holds(&self, file: &Path) -> bool {
        let [of_model, of_target] = &self.real;
        file.starts_with(of_model) || file.parent() == Some(of_target)
    }
}

/// Hands over all elements as little-endian bytes. `directory` is where other files may be.
pub fn blocks<S: ReadAt + ?Sized>(
    tensor: &TensorEntry,
    from: &S,
    directory: Option<&Directory>,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let dtype = tensor.dtype.as_ref().map_err(|why| Error::data(*why))?;
    let expected = tensor.byte_len();
    let expected = expected.ok_or_else(|| Error::data("a tensor that does not fit memory"))?;
    match &tensor.payload {
        Payload::Plain(ranges) => ranges.iter().try_for_each(|range| copy(from, range, put)),
        Payload::Varints(ranges) => {
            let mut left = expected;
            let mut block = Vec::new();
            let mut wire = Wire::new(from, Limits::default())?;
            for range in ranges {
                wire.skip_to(range.start)?;
                while wire.at() < range.end {
                    let at = wire.at();
                    let number = wire.varint(range.end)?;
                    let width = push(dtype, number, &mut block).map_err(|error| error.at(at))?;
                    left = left.checked_sub(width).ok_or_else(|| {
                        let what = format!("more than the {expected} bytes of a tensor");
                        Error::syntax(what).at(at)
                    })?;
                    if block.len() >= STEP {
                        put(&block)?;
                        block.clear();
                    }
                }
            }
            if left > 0 {
                return Err(Error::syntax(format!(
                    "{left} bytes of {expected} of a tensor are missing"
                )));
            }
            put(&block)
        }
        Payload::External(external) => {
            let directory = directory.ok_or_else(|| {
                Error::data(
                    "its elements lie in another file, which is not read unless that is allowed",
                )
            })?;
            let (file, range) = open(external, directory, expected as u64)?;
            copy(&file, &range, put)
        }
        Payload::Texts { .. } => Err(Error::data("texts are no elements")),
    }
}

fn copy<S: ReadAt + ?Sized>(
    from: &S,
    range: &Range<u64>,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let len = range.end - range.start;
    let mut block = vec![0; usize::try_from(len).unwrap_or(STEP).min(STEP)];
    let mut at = range.start;
    while at < range.end {
        let left = usize::try_from(range.end - at).unwrap_or(STEP).min(STEP);
        let step = block.get_mut(..left).unwrap_or_default();
        source::read_exact(from, step, at)?;
        put(step)?;
        at += left as u64;
    }
    Ok(())
}

/// Adds an element as its bytes; how many it were.
fn push(dtype: &DType, number: u64, block: &mut Vec<u8>) -> Result<usize> {
    fn add<T: TryFrom<i128>, const N: usize>(
        number: i128,
        bytes: impl Fn(T) -> [u8; N],
        block: &mut Vec<u8>,
    ) -> Option<usize> {
        block.extend_from_slice(&bytes(T::try_from(number).ok()?));
        Some(N)
    }
    // Negative numbers are written in 64 bits, whatever their type.
    let signed = i128::from(number.cast_signed());
    let added = match dtype {
        DType::I8 => add(signed, i8::to_le_bytes, block),
        DType::I16 => add(signed, i16::to_le_bytes, block),
        DType::I32 => add(signed, i32::to_le_bytes, block),
        DType::I64 => add(signed, i64::to_le_bytes, block),
        DType::U32 => add(number.into(), u32::to_le_bytes, block),
        DType::U64 => add(number.into(), u64::to_le_bytes, block),
        // Floats by their bits.
        DType::U16 | DType::F16 | DType::BF16 => add(signed, u16::to_le_bytes, block),
        _ => add(signed, u8::to_le_bytes, block),
    };
    added.ok_or_else(|| Error::data(format!("{signed} is no {dtype}")))
}

/// Opens a file of elements. Its name is relative to the directory, and links that lead out of it are refused.
fn open(external: &External, directory: &Directory, expected: u64) -> Result<(File, Range<u64>)> {
    let location = Path::new(&external.location);
    let plain = location.components().all(|part| matches!(part, Component::Normal(_)));
    let refused = || {
        let shown = external.location.escape_debug();
        Error::data(format!("file `{shown}` of elements is not in the directory of the model"))
    };
    if external.location.is_empty() || !plain || external.location.contains(['\\', ':', '\0']) {
        return Err(refused());
    }
    let path = directory.path.join(location);
    let found = path.canonicalize().map_err(|error| Error::io_at(error, "cannot find", &path))?;
    if !directory.holds(&found) {
        let shown = external.location.escape_debug();
        let what = format!(
            "file `{shown}` of elements is a link that leads out of the directory of the model"
        );
        return Err(Error::data(what));
    }
    let (file, size) = open_file(&found)?;
    let len = external.length.unwrap_or(expected);
    let end = external.offset.checked_add(len).filter(|&end| end <= size);
    match end {
        Some(end) if len == expected => Ok((file, external.offset..end)),
        Some(_) => {
            let what = format!("a tensor of {expected} bytes has {len} in another file");
            Err(Error::syntax(what).in_file(&path))
        }
        None => {
            let what = format!("{len} bytes of elements, where the file has {size}");
            Err(Error::eof(&what).in_file(&path))
        }
    }
}
