//! Tensors out of band: metadata and buffers, to be moved however the user likes.

mod buffer;
mod held;
mod info;
mod split;

use serde::Serialize;
use serde::de::Deserialize;

pub use buffer::Buffer;
pub use held::Parts;
pub use info::{BufferInfo, PartsInfo};
pub use split::{Piece, Split};

use crate::error::Result;
use crate::options::DecodeOptions;
use crate::segment::options::SaveOptions;
use crate::segment::walk::{Output, Plan};
use info::Parsed;

/// Splits a value into metadata and buffers, into which its tensors are copied. To send them as they
/// lie, see [`Split`].
///
/// ```
/// use ndarray::Array1;
/// use tenarc::Tensor;
///
/// let record = ("columns of a table", Tensor(Array1::<i64>::zeros(1000)));
/// let parts = tenarc::to_parts(&record)?;
/// assert_eq!(parts.buffers()[0].len(), 8000);
///
/// let back: (String, Tensor<Array1<i64>>) =
///     tenarc::from_parts(parts.metadata(), parts.buffers())?;
/// assert_eq!(back.1, record.1);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// Where the value's own `Serialize` fails or gives something else when it is walked again, and where
/// there is no memory for the buffers.
pub fn to_parts<T: Serialize + ?Sized>(value: &T) -> Result<Parts> {
    to_parts_with(value, SaveOptions::default())
}

/// As [`to_parts`], with options: which tensors go to buffers, how these are aligned, whether they
/// have checksums, and whether equal ones become one.
///
/// # Errors
/// As [`to_parts`], and where the alignment is none.
// As `save_with` takes them.
#[allow(clippy::needless_pass_by_value)]
pub fn to_parts_with<T: Serialize + ?Sized>(value: &T, options: SaveOptions) -> Result<Parts> {
    options.check()?;
    let plan = Plan::new(value, &options)?;
    let alignment = usize::try_from(options.alignment).unwrap_or(1);
    let mut copies = Copies { alignment, buffers: Vec::with_capacity(plan.lengths.len()) };
    let hashes = if plan.lengths.is_empty() {
        Vec::new()
    } else {
        plan.emit(value, &options, options.checksums, &mut copies)?
    };
    Ok(Parts::trusted(split::info(&plan, &options, &hashes)?, copies.buffers))
}

/// The value of received parts: owned, or with arrays, strings and byte strings that borrow.
///
/// The buffers are verified against the metadata first, as by [`Parts::new`]. Views of small tensors,
/// which stand in the metadata, need luck with their alignment here; [`Parts::view`] settles that.
///
/// # Errors
/// As [`Parts::new`] and [`Parts::view`].
pub fn from_parts<'de, T: Deserialize<'de>, B: AsRef<[u8]>>(
    metadata: &'de [u8],
    buffers: &'de [B],
) -> Result<T> {
    from_parts_with(metadata, buffers, DecodeOptions::default())
}

/// As [`from_parts`], with options.
///
/// # Errors
/// As [`from_parts`].
pub fn from_parts_with<'de, T: Deserialize<'de>, B: AsRef<[u8]>>(
    metadata: &'de [u8],
    buffers: &'de [B],
    options: DecodeOptions,
) -> Result<T> {
    let parsed = Parsed::new(metadata, options.limits)?;
    parsed.check_references(metadata, options.limits)?;
    parsed.check(metadata, buffers.iter().map(AsRef::as_ref), options)?;
    held::decode(metadata, &parsed, buffers, "", None, None, options)
}

struct Copies {
    alignment: usize,
    buffers: Vec<Buffer>,
}

impl Output for Copies {
    fn begin(&mut self, _: u64, len: u64) -> Result<()> {
        let mut buffer = Buffer::empty(self.alignment);
        buffer.reserve(usize::try_from(len).unwrap_or(usize::MAX))?;
        self.buffers.push(buffer);
        Ok(())
    }

    fn put(&mut self, block: &[u8]) -> Result<()> {
        self.buffers.last_mut().map_or(Ok(()), |buffer| buffer.extend(block))
    }
}
