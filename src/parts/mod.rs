//! Out-of-band tensors: a value as metadata and separate buffers, to be sent or stored by the user.

mod buffer;
mod info;
mod joined;
mod split;

use serde::Serialize;
use serde::de::Deserialize;

pub use buffer::Buffer;
pub use info::{BufferInfo, PartsInfo};
pub use joined::Parts;
pub use split::{Piece, Split};

use crate::error::Result;
use crate::io::chunks::Hashes;
use crate::options::DecodeOptions;
use crate::plan::Plan;
use crate::plan::pass::Output;
use crate::segment::options::SaveOptions;
use crate::wire::writer::ToWrite;
use info::DecodedMetadata;

/// Splits a value into metadata and buffers. The tensors are copied into the buffers; [`Split`] sends them
/// without a copy.
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
/// If the value's `Serialize` fails, the value changes between the two passes over it, or there is not enough
/// memory for the buffers.
pub fn to_parts<T: Serialize + ?Sized>(value: &T) -> Result<Parts> {
    to_parts_with(value, SaveOptions::default())
}

/// Like [`to_parts`], with options: which tensors go to buffers, how these are aligned, whether they have
/// checksums, and whether equal ones are stored once.
///
/// # Errors
/// The same errors as [`to_parts`], and if the alignment is not a power of two from 8 to 65,536.
// By value, like `save_with`.
#[allow(clippy::needless_pass_by_value)]
pub fn to_parts_with<T: Serialize + ?Sized>(value: &T, options: SaveOptions) -> Result<Parts> {
    parts_of(&value, &options)
}

fn parts_of(value: &dyn ToWrite, options: &SaveOptions) -> Result<Parts> {
    options.check()?;
    let plan = Plan::new(value, options)?;
    let alignment = usize::try_from(options.alignment).unwrap_or(1);
    let mut copies = Copies { alignment, buffers: Vec::with_capacity(plan.lengths.len()) };
    let hashes = if plan.lengths.is_empty() {
        Hashes::default()
    } else {
        plan.emit(value, options, options.checksums, &mut copies)?
    };
    Ok(Parts::trusted(split::info(&plan, options, &hashes)?, copies.buffers))
}

/// Decodes a value from received parts. The value is owned, or has arrays, strings and byte strings that
/// borrow from the parts.
///
/// The buffers are first verified against the metadata, as by [`Parts::new`]. Small tensors are stored inside
/// the metadata, where they may not be aligned. A view of such a tensor then fails here, while
/// [`Parts::view`] makes an aligned copy of it.
///
/// ```
/// use tenarc::Tensor;
///
/// let parts = tenarc::to_parts(&("frame", Tensor(vec![9u8; 4096])))?;
/// // The receiver got the metadata and each buffer by itself.
/// let metadata: &[u8] = parts.metadata();
/// let buffers: Vec<Vec<u8>> = parts.buffers().iter().map(|buffer| buffer.to_vec()).collect();
/// let (name, frame): (String, Tensor<Vec<u8>>) = tenarc::from_parts(metadata, &buffers)?;
/// assert_eq!((name.as_str(), frame.len()), ("frame", 4096));
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// - The metadata or the buffers are wrong, with the same errors as [`Parts::new`].
/// - The value does not fit the type, or bytes to be borrowed are not aligned for their element type.
pub fn from_parts<'de, T: Deserialize<'de>, B: AsRef<[u8]>>(
    metadata: &'de [u8],
    buffers: &'de [B],
) -> Result<T> {
    from_parts_with(metadata, buffers, DecodeOptions::default())
}

/// Like [`from_parts`], with options.
///
/// # Errors
/// The same errors as [`from_parts`].
pub fn from_parts_with<'de, T: Deserialize<'de>, B: AsRef<[u8]>>(
    metadata: &'de [u8],
    buffers: &'de [B],
    options: DecodeOptions,
) -> Result<T> {
    let parsed = DecodedMetadata::new(metadata, options.limits)?;
    parsed.check_references(metadata, options.limits)?;
    parsed.check(metadata, buffers.iter().map(AsRef::as_ref), options)?;
    joined::decode(metadata, &parsed, buffers, "", joined::Loan::copied(options, None), options)
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
