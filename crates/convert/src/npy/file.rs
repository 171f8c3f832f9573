//! An npy file that is read at offsets.

use std::fmt;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::tensor::Deferred;
use tenarc::{DType, Error, Result};

use super::header::{Array, WITHOUT_FIELDS};
use super::input::{Input, Stream};
use super::{check_len, part};
use crate::nested::{Names, Node};
use crate::numpy::ByteOrder;
use crate::numpy::columns::{Column, Elements};
use crate::part::Part;
use crate::support::is_of_array;
use crate::{AsValue, Losses, TensorFile, as_value};

/// An npy file, whose elements are read when they are needed.
///
/// ```
/// use tenarc_convert::TensorFile as _;
/// use tenarc_convert::npy::{self, NpyFile};
///
/// let mut bytes = Vec::new();
/// npy::write(&mut bytes, &ndarray::array![[1.0f32, 2.0]])?;
/// let file = NpyFile::new(bytes)?;
/// assert_eq!(file.tensors()?[0].shape(), [1, 2]);
/// tenarc::to_vec(&tenarc::Tensor(file.deferred("")?))?;
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct NpyFile<S> {
    source: S,
    array: Array,
    /// The offset of the elements.
    start: u64,
}

impl<S> fmt::Debug for NpyFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NpyFile").field("array", &self.array).finish_non_exhaustive()
    }
}

impl<S: ReadAt> NpyFile<S> {
    /// Reads the header of an npy file. The file must hold one array and nothing else.
    ///
    /// # Errors
    /// If the source cannot be read, the header is not one of npy, or the source is longer or shorter than the array.
    pub fn new(source: S) -> Result<Self> {
        let size = source.size().map_err(Error::io)?;
        let mut input = Input::new(Stream(Part::new(&source, 0..size)));
        let array = Array::read(&mut input, Limits::default())?;
        let start = input.position();
        check_len(&array, start, size)?;
        Ok(Self { source, array, start })
    }

    /// Reads raw elements (`V2`) as elements of this dtype, if these have as many bytes: see
    /// [`Options::with_void`](crate::Options::with_void).
    #[must_use]
    pub fn with_void(mut self, dtype: DType) -> Self {
        self.array.resolve(&[dtype]);
        self
    }

    /// Returns the source of the file.
    pub fn source(&self) -> &S {
        &self.source
    }

    fn part(&self, column: &Column) -> Result<as_value::Part<'_>> {
        let end = self.start.saturating_add(self.array.byte_len as u64);
        let open = move || Ok(Input::new(Stream(Part::new(&self.source, self.start..end))));
        part::of(&self.array, column, open, |_| Ok(()))
    }

    fn column(&self, name: &str) -> Result<&Column> {
        let column = self.array.columns.iter().find(|column| column.path == name);
        let what =
            "the npy file has no field of this name; an array without fields has the empty name";
        column.ok_or_else(|| Error::not_found(what).in_field(name))
    }
}

/// The value is the array itself, if it is a tensor or an array of texts. A structured array is a map of its fields.
impl<S: ReadAt> TensorFile for NpyFile<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let (mut parts, mut losses) = (Vec::new(), Losses::default());
        for column in &self.array.columns {
            let name = column.path.as_str();
            match self.part(column) {
                Ok(_) if parts.iter().any(|(taken, _)| *taken == name) => {
                    losses.add_tensor(name, "there is another field of this name: it is left out");
                }
                Ok(part) => parts.push((name, part)),
                Err(error) if is_of_array(&error) && !name.is_empty() => {
                    losses.add_tensor(name, error.message());
                }
                Err(error) => return Err(error),
            }
        }
        if self.array.is_without_fields() {
            losses.add("", WITHOUT_FIELDS);
        }
        let value = match parts[..] {
            [("", _)] => AsValue::of(Node::Leaf(0), parts),
            _ => AsValue::flat(parts),
        };
        value.with_losses(losses).named(names, false)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        match self.part(self.column(name)?).map_err(|error| error.in_field(name))? {
            as_value::Part::Tensor(tensor) | as_value::Part::Typed(_, tensor) => Ok(tensor),
            _ => Err(Error::mismatch("a string array is not a tensor").in_field(name)),
        }
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        let column = self.column(name)?;
        let whole = column.len == self.array.record_len;
        let direct = whole && matches!(column.elements, Elements::Tensor(_, ByteOrder::Little));
        Ok(direct.then_some((&self.source, self.start)))
    }
}
