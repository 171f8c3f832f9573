//! Columns that can be read as tensors: all rows have the same shape.

use arrow_ipc::{DateUnit, Field, Precision, TimeUnit, Type};
use tenarc::{DType, Error, Result};

use crate::Losses;
use tenarc_arrow::extension::{self, FixedShape};

/// The dtype and shape of each row of a column, and how its elements are stored.
#[derive(Clone, Debug)]
pub struct Cells {
    pub dtype: DType,
    pub form: Form,
    /// The sizes of the lists around the elements, from the outermost to the innermost.
    pub lists: Vec<u64>,
    /// The number of elements in a slot of the innermost type. A byte string of fixed size has one for each byte, all
    /// other types have one.
    pub slot: u64,
    /// The shape of one row.
    pub shape: Vec<usize>,
    /// The stride of each axis in elements. `None` if the elements of a row are in row-major order.
    pub strides: Option<Vec<usize>>,
    /// Whether the elements are times or UUIDs. A tensor has no place for that, and a table has.
    pub are_named: bool,
}

/// How elements are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In the form that elements have in a tensor.
    Plain,
    /// One bit for each element.
    Bits,
    /// One byte for each element. All values except 0 are true.
    Bool8,
}

impl Cells {
    /// Reads the type of a field. Returns `None` if its rows are not tensors of one shape.
    pub fn read(field: &Field<'_>, path: &str, losses: &mut Losses) -> Result<Option<Self>> {
        if field.dictionary().is_some() {
            return Ok(None);
        }
        if let Some(list) = field.type_as_fixed_size_list() {
            return Self::list(field, list.listSize(), path, losses);
        }
        let Some((dtype, form)) = element(field, path, losses)? else { return Ok(None) };
        let extension = Extension::of(field);
        let bool8 = extension.name == Some(extension::BOOL8) && dtype == DType::I8;
        let (dtype, form) = if bool8 { (DType::Bool, Form::Bool8) } else { (dtype, form) };
        extension.lost(field, bool8, path, losses);
        let are_named = match field.type_type() {
            Type::Date | Type::Time | Type::Timestamp | Type::Duration => true,
            _ => extension.name == Some(extension::UUID),
        };
        let (lists, shape, strides) = (Vec::new(), Vec::new(), None);
        let mut cells = Self { dtype, form, lists, slot: 1, shape, strides, are_named };
        if let Some(binary) = field.type_as_fixed_size_binary() {
            let width = usize::try_from(binary.byteWidth()).map_err(|_| {
                Error::syntax("the byte strings of a column have a negative length")
            })?;
            cells.slot = width as u64;
            cells.shape = vec![width];
        }
        Ok(Some(cells))
    }

    fn list(field: &Field<'_>, size: i32, path: &str, losses: &mut Losses) -> Result<Option<Self>> {
        let size = usize::try_from(size)
            .map_err(|_| Error::syntax("the lists of a column have a negative length"))?;
        let children = field.children().unwrap_or_default();
        if children.len() != 1 {
            let found = children.len();
            return Err(Error::syntax(format!(
                "expected a list type of one field, found {found} fields"
            )));
        }
        // If the list is left out, the losses of its items are not reported.
        let mut inner = Losses::default();
        let Some(mut cells) = Self::read(&children.get(0), path, &mut inner)? else {
            return Ok(None);
        };
        let extension = Extension::of(field);
        let tensor = extension.name == Some(extension::FIXED_SHAPE_TENSOR);
        if tensor && cells.strides.is_some() {
            return Ok(None);
        }
        cells.lists.insert(0, size as u64);
        if tensor {
            let text = extension.metadata.unwrap_or_default();
            let fixed = FixedShape::read(text)
                .map_err(|error| error.in_field(extension::FIXED_SHAPE_TENSOR))?;
            cells.fix(fixed, size, path, losses)?;
        } else {
            if let Some(strides) = &mut cells.strides {
                let stride = cells.shape.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim));
                strides.insert(0, stride.ok_or_else(too_large)?);
            }
            cells.shape.insert(0, size);
        }
        extension.lost(field, tensor, path, losses);
        losses.extend(inner);
        Ok(Some(cells))
    }

    /// Puts the dimensions of a tensor in front of the shape of its elements, in the order of its permutation. `size`
    /// is the size of the list that holds the elements.
    fn fix(
        &mut self,
        fixed: FixedShape,
        size: usize,
        path: &str,
        losses: &mut Losses,
    ) -> Result<()> {
        let FixedShape { shape: stored, permutation, has_names } = fixed;
        let count = stored.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim));
        if count != Some(size) {
            let what =
                format!("tensors of shape {stored:?} do not fit their lists of {size} elements");
            return Err(Error::data(what));
        }
        if has_names {
            losses.add(path, "the names of its dimensions are left out");
        }
        let rank = stored.len();
        let mut dims = [&stored[..], &self.shape].concat();
        let axes = permutation.unwrap_or_else(|| (0..rank).collect());
        if !axes.is_sorted() {
            let mut strides = vec![1usize; dims.len()];
            let mut stride = 1usize;
            for (place, &dim) in strides.iter_mut().zip(&dims).rev() {
                *place = stride;
                stride = stride.checked_mul(dim.max(1)).ok_or_else(too_large)?;
            }
            // The permutation does not affect the dimensions of the elements.
            let axes = axes.into_iter().chain(rank..dims.len());
            let moved = axes.filter_map(|axis| Some((*dims.get(axis)?, *strides.get(axis)?)));
            let (moved, strides) = moved.unzip();
            dims = moved;
            self.strides = Some(strides);
        }
        self.shape = dims;
        Ok(())
    }

    /// Returns the number of elements of one row, or `None` if it exceeds a `u64`.
    pub fn count(&self) -> Option<u64> {
        self.lists.iter().try_fold(self.slot, |count, &size| count.checked_mul(size))
    }

    /// Returns whether the elements of a row are stored in column-major order.
    pub fn is_column_major(&self) -> bool {
        let Some(strides) = &self.strides else { return false };
        let mut expected = 1usize;
        self.shape.iter().zip(strides).all(|(&dim, &stride)| {
            let fits = dim == 1 || stride == expected;
            expected = expected.saturating_mul(dim.max(1));
            fits
        })
    }

    /// Returns how many bytes `count` elements take in the buffer, or `None` if there are more than a `u64` can count.
    pub fn stored(&self, count: u64) -> Option<u64> {
        match self.form {
            Form::Bits => Some(count.div_ceil(8)),
            Form::Bool8 => Some(count),
            Form::Plain => count.checked_mul(self.width() as u64),
        }
    }

    /// Returns the size of an element in a tensor, in bytes.
    pub fn width(&self) -> usize {
        self.dtype.bits().unwrap_or(8) / 8
    }
}

#[cold]
fn too_large() -> Error {
    Error::limit("the rows do not fit in memory")
}

/// Returns the dtype of the elements of a field, and how they are stored. Returns `None` if they are not numbers,
/// times, bools or byte strings of fixed size.
fn element(field: &Field<'_>, path: &str, losses: &mut Losses) -> Result<Option<(DType, Form)>> {
    let mut timed = |dtype, what: String| {
        losses.add(path, format!("{what} become plain integers"));
        Ok(Some((dtype, Form::Plain)))
    };
    if let Some(int) = field.type_as_int() {
        return integer(int.bitWidth(), int.is_signed()).map(|dtype| Some((dtype, Form::Plain)));
    }
    if let Some(float) = field.type_as_floating_point() {
        let dtype = match float.precision() {
            Precision::HALF => DType::F16,
            Precision::SINGLE => DType::F32,
            Precision::DOUBLE => DType::F64,
            Precision(other) => {
                return Err(Error::syntax(format!("floats have the unknown precision {other}")));
            }
        };
        return Ok(Some((dtype, Form::Plain)));
    }
    if let Some(date) = field.type_as_date() {
        return match date.unit() {
            DateUnit::DAY => timed(DType::I32, "dates in days".into()),
            DateUnit::MILLISECOND => timed(DType::I64, "dates in milliseconds".into()),
            DateUnit(other) => Err(Error::syntax(format!("dates have the unknown unit {other}"))),
        };
    }
    if let Some(time) = field.type_as_time() {
        let dtype = integer(time.bitWidth(), true)?;
        return timed(dtype, format!("times in {}", unit(time.unit())?));
    }
    if let Some(stamp) = field.type_as_timestamp() {
        let zone = match stamp.timezone() {
            Some(zone) => {
                let zone: String = zone.chars().take(64).collect();
                format!(" of the time zone `{}`", zone.escape_debug())
            }
            None => String::new(),
        };
        return timed(DType::I64, format!("timestamps in {}{zone}", unit(stamp.unit())?));
    }
    if let Some(duration) = field.type_as_duration() {
        return timed(DType::I64, format!("durations in {}", unit(duration.unit())?));
    }
    Ok(match field.type_type() {
        Type::Bool => Some((DType::Bool, Form::Bits)),
        Type::FixedSizeBinary => Some((DType::U8, Form::Plain)),
        _ => None,
    })
}

fn integer(bits: i32, signed: bool) -> Result<DType> {
    Ok(match (bits, signed) {
        (8, false) => DType::U8,
        (16, false) => DType::U16,
        (32, false) => DType::U32,
        (64, false) => DType::U64,
        (8, true) => DType::I8,
        (16, true) => DType::I16,
        (32, true) => DType::I32,
        (64, true) => DType::I64,
        _ => {
            return Err(Error::syntax(format!(
                "integers have {bits} bits, expected 8, 16, 32 or 64"
            )));
        }
    })
}

fn unit(unit: TimeUnit) -> Result<&'static str> {
    Ok(match unit {
        TimeUnit::SECOND => "seconds",
        TimeUnit::MILLISECOND => "milliseconds",
        TimeUnit::MICROSECOND => "microseconds",
        TimeUnit::NANOSECOND => "nanoseconds",
        TimeUnit(other) => {
            return Err(Error::syntax(format!("times have the unknown unit {other}")));
        }
    })
}

/// The name and the metadata of the extension type of a field.
#[derive(Default)]
struct Extension<'a> {
    name: Option<&'a str>,
    metadata: Option<&'a str>,
}

impl<'a> Extension<'a> {
    fn of(field: &Field<'a>) -> Self {
        let mut found = Self::default();
        for pair in field.custom_metadata().unwrap_or_default() {
            match pair.key() {
                Some(extension::NAME) => found.name = pair.value(),
                Some(extension::METADATA) => found.metadata = pair.value(),
                _ => {}
            }
        }
        found
    }

    /// Adds the metadata of a field to `losses`. `kept` says that its extension type is kept: then its name and
    /// metadata are no losses.
    fn lost(&self, field: &Field<'_>, kept: bool, path: &str, losses: &mut Losses) {
        for pair in field.custom_metadata().unwrap_or_default() {
            let what = match pair.key().unwrap_or_default() {
                extension::NAME | extension::METADATA if kept => continue,
                extension::METADATA if self.name.is_some() => continue,
                extension::NAME => {
                    let name: String = self.name.unwrap_or_default().chars().take(64).collect();
                    format!("its extension type `{}` is left out", name.escape_debug())
                }
                key => {
                    let key: String = key.chars().take(64).collect();
                    format!("its metadata `{}` are left out", key.escape_debug())
                }
            };
            losses.add(path, what);
        }
    }
}

/// Adds all metadata of a field to `losses`, with its extension type.
pub fn lost_metadata(field: &Field<'_>, path: &str, losses: &mut Losses) {
    Extension::of(field).lost(field, false, path, losses);
}
