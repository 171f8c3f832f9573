//! Reads the elements of a tensor, block by block.

use std::fs::File;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::{DType, Error, Result};

use super::tensor::{Entry, External, Payload};
use super::wire::Wire;
use crate::input::STEP;
use crate::source;
use crate::support::parent;

/// The directories in which external files may be.
#[derive(Debug)]
pub struct Directory {
    /// The directory of the model.
    path: PathBuf,
    /// The directory of the model, and that of the file that the model is a link to. Both are resolved: their paths
    /// contain no links. The second is needed because caches of models keep all files in one directory, and links to
    /// them in another.
    real: [PathBuf; 2],
}

impl Directory {
    /// Finds the directories for a model.
    pub fn of(model: &Path) -> Result<Self> {
        let real = |path: &Path| {
            path.canonicalize().map_err(|error| Error::io_at(error, "cannot find", path))
        };
        let path = parent(model).to_owned();
        let real = [real(&path)?, parent(&real(model)?).to_owned()];
        Ok(Self { path, real })
    }

    /// Whether a file is in the directory of the model or below, or in the same directory as the file that the model is
    /// a link to.
    fn holds(&self, file: &Path) -> bool {
        let [of_model, of_target] = &self.real;
        file.starts_with(of_model) || file.parent() == Some(of_target)
    }
}

/// Passes all elements to `put` as little-endian bytes, block by block. External files must be in `directory`.
pub fn blocks<S: ReadAt + ?Sized>(
    tensor: &Entry,
    from: &S,
    directory: Option<&Directory>,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let dtype = tensor.dtype.as_ref().map_err(|why| Error::unsupported(*why))?;
    let expected = tensor.byte_len();
    let expected = expected.ok_or_else(|| Error::data("the tensor does not fit in memory"))?;
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
                        let what = format!("expected {expected} bytes of elements, found more");
                        Error::syntax(what).at(at)
                    })?;
                    if block.len() >= STEP {
                        put(&block)?;
                        block.clear();
                    }
                }
            }
            if left > 0 {
                let what = format!("{left} of the {expected} bytes of the elements are missing");
                return Err(Error::syntax(what));
            }
            put(&block)
        }
        Payload::External(external) => {
            let directory = directory.ok_or_else(|| {
                Error::unsupported(
                    "the elements are in an external file, which is not read unless that is allowed",
                )
            })?;
            let (file, range) = open(external, directory, expected as u64)?;
            copy(&file, &range, put)
        }
        Payload::Texts { .. } => Err(Error::mismatch("the elements are texts")),
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

/// Appends the bytes of an element to a block, and returns how many they are.
fn push(dtype: &DType, number: u64, block: &mut Vec<u8>) -> Result<usize> {
    fn add<T: TryFrom<i128>, const N: usize>(
        number: i128,
        bytes: impl Fn(T) -> [u8; N],
        block: &mut Vec<u8>,
    ) -> Option<usize> {
        block.extend_from_slice(&bytes(T::try_from(number).ok()?));
        Some(N)
    }
    // A negative number of any type is written as a varint of 64 bits.
    let signed = i128::from(number.cast_signed());
    let added = match dtype {
        DType::I8 => add(signed, i8::to_le_bytes, block),
        DType::I16 => add(signed, i16::to_le_bytes, block),
        DType::I32 => add(signed, i32::to_le_bytes, block),
        DType::I64 => add(signed, i64::to_le_bytes, block),
        DType::U32 => add(number.into(), u32::to_le_bytes, block),
        DType::U64 => add(number.into(), u64::to_le_bytes, block),
        // Floats of 16 bits are written as integers with the same bits.
        DType::U16 | DType::F16 | DType::BF16 => add(signed, u16::to_le_bytes, block),
        _ => add(signed, u8::to_le_bytes, block),
    };
    added.ok_or_else(|| Error::data(format!("element {signed} does not fit in {dtype}")))
}

/// Opens an external file, and returns the range of the elements in it. The name of the file is relative to the
/// directory. A link that leads out of the directory is refused.
fn open(external: &External, directory: &Directory, expected: u64) -> Result<(File, Range<u64>)> {
    let location = Path::new(&external.location);
    let plain = location.components().all(|part| matches!(part, Component::Normal(_)));
    let refused = || {
        let shown = external.location.escape_debug();
        Error::data(format!("the external file `{shown}` is not in the directory of the model"))
    };
    if external.location.is_empty() || !plain || external.location.contains(['\\', ':', '\0']) {
        return Err(refused());
    }
    let path = directory.path.join(location);
    let found = path.canonicalize().map_err(|error| Error::io_at(error, "cannot find", &path))?;
    if !directory.holds(&found) {
        let shown = external.location.escape_debug();
        return Err(Error::data(format!(
            "the external file `{shown}` is a link that leads out of the directory of the model"
        )));
    }
    let (file, size) = open_file(&found)?;
    let len = external.length.unwrap_or(expected);
    let end = external.offset.checked_add(len).filter(|&end| end <= size);
    match end {
        Some(end) if len == expected => Ok((file, external.offset..end)),
        Some(_) => {
            let what = format!("expected {expected} bytes of elements, the model states {len}");
            Err(Error::syntax(what).in_file(&path))
        }
        None => {
            let offset = external.offset;
            let what = format!("{len} bytes from offset {offset} on, found a file of {size} bytes");
            Err(Error::eof(&what).in_file(&path))
        }
    }
}
