//! Reads the columns of an archive as arrays of Arrow.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, DictionaryArray,
    FixedSizeListArray, Int32Array, ListArray, MapArray, PrimitiveArray, StringArray, StructArray,
    UInt32Array, UInt64Array, cast::AsArray as _, make_array, new_empty_array, types,
};
use arrow_buffer::{BooleanBuffer, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Fields};
use bytes::Bytes;
use half::f16;
use serde_bytes::ByteBuf;
use tenarc::archive::Segment;
use tenarc::io::ReadAt;
use tenarc::{DType, DynTensor, Error, Result, Tensor};

use crate::category::Category;
use crate::columns::{Column, Group, Lengths, Part};
use crate::named::Named;
use crate::schema::{Inner, Missing, Type, data_type};

/// The major type of text strings (RFC 8949, section 3.1). Texts in a buffer are stored as a byte string.
const TEXT: u8 = 3;

/// A reader of the columns of a segment.
pub struct Arrays<'a, 's, S: ?Sized>(pub &'a Segment<'s, S>);

impl<S: ReadAt + ?Sized> Arrays<'_, '_, S> {
    /// Reads an array for each field of a group, whose rows must be structs.
    pub fn fields(&self, group: &Group, fields: &[(String, Inner)]) -> Result<Vec<ArrayRef>> {
        match &group.column {
            Column::Struct(columns) => self.of_fields(columns, group.rows, fields),
            _ => Err(Error::mismatch("expected rows that are structs, found rows of another type")),
        }
    }

    /// Reads the one column of rows that are no structs.
    pub fn rows(&self, group: &Group, fields: &[(String, Inner)]) -> Result<Vec<ArrayRef>> {
        let array = |(_, inner): &(String, Inner)| self.array(&group.column, group.rows, inner);
        fields.iter().map(array).collect()
    }

    fn of_fields(
        &self,
        columns: &[(String, Column)],
        rows: usize,
        fields: &[(String, Inner)],
    ) -> Result<Vec<ArrayRef>> {
        let array = |(name, inner): &(String, Inner)| {
            match columns.iter().find(|(found, _)| found == name) {
                Some((_, column)) => self.array(column, rows, inner),
                None => nulls(inner, rows),
            }
            .map_err(|error| error.in_field(name.as_str()))
        };
        fields.iter().map(array).collect()
    }

    /// Reads a column of `rows` rows as an array of this type.
    fn array(&self, column: &Column, rows: usize, inner: &Inner) -> Result<ArrayRef> {
        let array: ArrayRef = match (column, &inner.of) {
            (Column::Optional { bits, column, .. }, _) => {
                let bits = self.bits(bits, rows)?;
                let some = self.array(column, bits.count_set_bits(), inner)?;
                return if some.is_empty() { nulls(inner, rows) } else { spread(&bits, &some) };
            }
            (Column::Dict { codes, count, column }, _) => {
                let distinct = self.array(column, *count, inner)?;
                let codes = UInt32Array::from(self.codes::<u32>(codes, rows)?);
                if codes.values().iter().any(|&code| code as usize >= *count) {
                    return Err(Error::damaged("a code of a dict has no row"));
                }
                arrow_select::take::take(&distinct, &codes, None).map_err(damaged)?
            }
            (Column::Unit, _) => nulls(inner, rows)?,
            (Column::Bools(bits), Type::Bool) => {
                Arc::new(BooleanArray::new(self.bits(bits, rows)?, None))
            }
            (Column::Numbers(stored, part), Type::Number(dtype)) => {
                self.numbers(stored, part, rows, dtype)?
            }
            (Column::Tensors(meta, part), Type::Tensor(dtype, shape)) => {
                let count = shape.iter().try_fold(rows, |count, dim| count.checked_mul(*dim));
                let count = count.unwrap_or(usize::MAX);
                let elements = self.numbers(&meta.dtype, part, count, dtype)?;
                lists_of(&inner.data_type()?, elements, rows)?
            }
            (Column::Texts(lengths, part), Type::Text) => {
                let (offsets, bytes) = self.strings(lengths, part, rows)?;
                Arc::new(StringArray::try_new(offsets, bytes, None).map_err(damaged)?)
            }
            (Column::Bytes(lengths, part), Type::Bytes) => {
                let (offsets, bytes) = self.strings(lengths, part, rows)?;
                Arc::new(BinaryArray::try_new(offsets, bytes, None).map_err(damaged)?)
            }
            (Column::Typed { column, .. }, Type::Category(category)) => {
                self.category(column, rows, category)?
            }
            (Column::Typed { column, .. }, Type::Named(named, _)) => {
                named.array(&self.stored(column, rows, named)?)?
            }
            (Column::Typed { column, .. }, _) => return self.array(column, rows, inner),
            (Column::Enum { codes, variants }, Type::Text) => {
                let mut texts = StringBuilder::new();
                for code in self.codes::<usize>(codes, rows)? {
                    let (name, _) = variants.get(code).ok_or_else(no_variant)?;
                    texts.append_value(name);
                }
                Arc::new(texts.finish())
            }
            (Column::Enum { codes, variants }, Type::Enum(all)) => {
                let codes = self.codes(codes, rows)?;
                names_of(&codes, variants, all.iter())?
            }
            (Column::Enum { codes, variants }, Type::Variants(all)) => {
                self.variants(&self.codes(codes, rows)?, variants, &inner.data_type()?, all)?
            }
            (Column::List(lengths, column), Type::Fixed(len, item)) => {
                if !matches!(lengths, Lengths::All(found) if found == len) {
                    return Err(other_type());
                }
                let items = self.array(column, rows.saturating_mul(*len), item)?;
                lists_of(&inner.data_type()?, items, rows)?
            }
            (Column::List(lengths, column), Type::List(item)) => {
                let (offsets, count) = self.offsets(lengths, rows)?;
                let items = self.array(column, count, item)?;
                let list = ListArray::try_new(item.field("item")?, offsets, items, None);
                Arc::new(list.map_err(damaged)?)
            }
            (Column::Tuple(columns), _) => self.tuples(columns, rows, inner)?,
            (Column::List(Lengths::All(len), column), Type::Tuple(inners))
                if inners.len() == *len =>
            {
                self.lists_as_tuples(column, rows, inner, inners)?
            }
            (Column::Struct(columns), Type::Struct(fields)) => {
                let arrays = self.of_fields(columns, rows, fields)?;
                structs(&inner.data_type()?, arrays, rows)?
            }
            (Column::Map(lengths, columns), Type::Map(inners)) => {
                self.map(lengths, columns, rows, inner, inners)?
            }
            _ => return Err(other_type()),
        };
        match array.len() {
            found if found == rows => Ok(array),
            found => {
                Err(Error::damaged(format!("expected a column of {rows} rows, found {found}")))
            }
        }
    }

    /// The rows of tuples.
    fn tuples(&self, columns: &[Column], rows: usize, inner: &Inner) -> Result<ArrayRef> {
        let read = |(column, inner): (&Column, &Inner)| self.array(column, rows, inner);
        match &inner.of {
            Type::Tuple(inners) if columns.len() == inners.len() => {
                let arrays = columns.iter().zip(inners).map(read).collect::<Result<_>>()?;
                structs(&inner.data_type()?, arrays, rows)
            }
            Type::Fixed(len, item) if columns.len() == *len => {
                lists_of(&inner.data_type()?, self.interleaved(columns, rows, item)?, rows)
            }
            Type::List(item) => {
                let (offsets, _) = self.offsets(&Lengths::All(columns.len()), rows)?;
                let items = self.interleaved(columns, rows, item)?;
                let list = ListArray::try_new(item.field("item")?, offsets, items, None);
                Ok(Arc::new(list.map_err(damaged)?))
            }
            _ => Err(other_type()),
        }
    }

    /// The elements of tuples, row by row.
    fn interleaved(&self, columns: &[Column], rows: usize, item: &Inner) -> Result<ArrayRef> {
        let arrays = columns.iter().map(|column| self.array(column, rows, item));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let arrays: Vec<_> = arrays.iter().map(AsRef::as_ref).collect();
        let of_row = |row| (0..columns.len()).map(move |at| (at, row));
        let places: Vec<_> = (0..rows).flat_map(of_row).collect();
        arrow_select::interleave::interleave(&arrays, &places).map_err(damaged)
    }

    /// The rows of lists that have the length of the tuples that they become.
    fn lists_as_tuples(
        &self,
        items: &Column,
        rows: usize,
        inner: &Inner,
        inners: &[Inner],
    ) -> Result<ArrayRef> {
        let len = inners.len();
        let element = |(at, inner): (usize, &Inner)| {
            let items = self.array(items, rows.saturating_mul(len), inner)?;
            let places = (0..rows).map(|row| (row * len + at) as u64);
            let places = UInt64Array::from_iter_values(places);
            arrow_select::take::take(&items, &places, None).map_err(damaged)
        };
        let arrays = inners.iter().enumerate().map(element).collect::<Result<_>>()?;
        structs(&inner.data_type()?, arrays, rows)
    }

    /// The texts of a column.
    pub fn names(&self, column: &Column, rows: usize) -> Result<Vec<String>> {
        let text = Inner { of: Type::Text, nullable: false, missing: Missing::Never };
        let texts = self.array(column, rows, &text)?;
        Ok(texts.as_string::<i32>().iter().flatten().map(str::to_owned).collect())
    }

    fn category(&self, column: &Column, rows: usize, category: &Category) -> Result<ArrayRef> {
        let (codes, count, texts) = match column {
            Column::Typed { column, .. } => return self.category(column, rows, category),
            Column::Dict { codes, count, column } => (codes, *count, column),
            _ => return Err(other_type()),
        };
        let numbers: HashMap<_, _> = category.names.iter().map(String::as_str).zip(0..).collect();
        let names = self.names(texts, count)?;
        let numbers: Vec<_> = names.iter().map(|name| numbers.get(&**name).copied()).collect();
        let codes = self.codes::<usize>(codes, rows)?.into_iter().map(|code| {
            let number =
                numbers.get(code).ok_or_else(|| Error::damaged("a code of a dict has no row"))?;
            number.ok_or_else(other_type)
        });
        category_of(&codes.collect::<Result<Vec<_>>>()?, category)
    }

    /// The numbers or byte strings of a column that has a type with a name.
    fn stored(&self, column: &Column, rows: usize, named: &Named) -> Result<ArrayRef> {
        match column {
            Column::Numbers(stored, part) => self.numbers(stored, part, rows, &named.number()),
            column => {
                let bytes = Inner { of: Type::Bytes, nullable: false, missing: Missing::Never };
                self.array(column, rows, &bytes)
            }
        }
    }

    /// The rows of an enum with data: the names of their variants, and the contents of each variant.
    fn variants(
        &self,
        codes: &[usize],
        variants: &[(String, Option<Column>)],
        of: &DataType,
        all: &[(String, Option<Inner>)],
    ) -> Result<ArrayRef> {
        check_nulls(of, codes.len())?;
        let mut arrays = vec![names_of(codes, variants, all.iter().map(|(name, _)| name))?];
        for (name, content) in all {
            if let Some(content) = content {
                let array = self.contents(name, variants, codes, content);
                arrays.push(array.map_err(|error| error.in_field(name.as_str()))?);
            }
        }
        structs(of, arrays, codes.len())
    }

    /// The contents of the variant of this name, which are null in the rows of other variants.
    fn contents(
        &self,
        name: &str,
        variants: &[(String, Option<Column>)],
        codes: &[usize],
        content: &Inner,
    ) -> Result<ArrayRef> {
        let found = variants.iter().position(|(other, _)| other == name);
        let column = found.and_then(|code| Some((code, variants.get(code)?.1.as_ref()?)));
        let Some((code, column)) = column else { return nulls(content, codes.len()) };
        let is_this: BooleanBuffer = codes.iter().map(|&row| row == code).collect();
        let some = self.array(column, is_this.count_set_bits(), content)?;
        if some.is_empty() { nulls(content, codes.len()) } else { spread(&is_this, &some) }
    }

    fn map(
        &self,
        lengths: &Lengths,
        columns: &(Column, Column),
        rows: usize,
        inner: &Inner,
        inners: &(Inner, Inner),
    ) -> Result<ArrayRef> {
        let (offsets, count) = self.offsets(lengths, rows)?;
        let keys = self.array(&columns.0, count, &inners.0)?;
        let values = self.array(&columns.1, count, &inners.1)?;
        let DataType::Map(entries, is_sorted) = inner.data_type()? else {
            return Err(other_type());
        };
        let found = structs(entries.data_type(), vec![keys, values], count)?;
        let found = found.as_any().downcast_ref::<StructArray>().ok_or_else(other_type)?;
        let map = MapArray::try_new(entries, offsets, found.clone(), None, is_sorted);
        Ok(Arc::new(map.map_err(damaged)?))
    }

    /// The bytes of a part that is a buffer, in the memory of the archive. `None` if they must be copied from there.
    fn shared(&self, part: &Part) -> Result<Option<Buffer>> {
        let Some(number) = part.buffer.and_then(|number| usize::try_from(number).ok()) else {
            return Ok(None);
        };
        let bytes = self.0.share_buffer(number)?;
        Ok(bytes.map(|bytes| Buffer::from(Bytes::from_owner(bytes))))
    }

    /// Reads a text or a byte string.
    fn string(&self, part: &Part) -> Result<Buffer> {
        if let Some(bytes) = self.shared(part)? {
            return Ok(bytes);
        }
        let at = part.at.clone();
        let is_text = self.0.metadata()?.get(at.start).is_some_and(|head| head >> 5 == TEXT);
        let bytes = if is_text {
            self.0.decode::<String>(at)?.into_bytes()
        } else {
            self.0.decode::<ByteBuf>(at)?.into_vec()
        };
        Ok(Buffer::from_vec(bytes))
    }

    fn bits(&self, part: &Part, rows: usize) -> Result<BooleanBuffer> {
        let bytes = self.string(part)?;
        if bytes.len() != rows.div_ceil(8) {
            let found = bytes.len();
            return Err(Error::damaged(format!(
                "expected a bit for each of {rows} rows, found {found} bytes"
            )));
        }
        Ok(BooleanBuffer::new(bytes, 0, rows))
    }

    fn lengths(&self, lengths: &Lengths, rows: usize) -> Result<Vec<u64>> {
        match lengths {
            Lengths::All(len) => {
                check_rows(rows)?;
                Ok(vec![*len as u64; rows])
            }
            Lengths::Each(part) => self.codes(part, rows),
        }
    }

    /// Returns the offsets of rows in their elements, and the number of all elements.
    fn offsets(&self, lengths: &Lengths, rows: usize) -> Result<(OffsetBuffer<i32>, usize)> {
        let mut end = 0i32;
        let mut offsets = vec![end];
        for len in self.lengths(lengths, rows)? {
            let next = i32::try_from(len).ok().and_then(|len| end.checked_add(len));
            end = next.ok_or_else(|| {
                let most = i32::MAX;
                Error::limit(format!("the rows of a group have more than {most} elements or bytes"))
            })?;
            offsets.push(end);
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok((offsets, usize::try_from(end).unwrap_or_default()))
    }

    fn strings(
        &self,
        lengths: &Lengths,
        part: &Part,
        rows: usize,
    ) -> Result<(OffsetBuffer<i32>, Buffer)> {
        let (offsets, expected) = self.offsets(lengths, rows)?;
        let bytes = self.string(part)?;
        match bytes.len() {
            found if found == expected => Ok((offsets, bytes)),
            found => {
                Err(Error::damaged(format!("expected {expected} bytes of texts, found {found}")))
            }
        }
    }

    fn tensor(&self, part: &Part, count: usize) -> Result<DynTensor> {
        let Tensor(tensor): Tensor<DynTensor> = self.0.decode(part.at.clone())?;
        let found = tensor.shape().iter().try_fold(1usize, |count, dim| count.checked_mul(*dim));
        if found != Some(count) {
            let shape = tensor.shape();
            return Err(Error::damaged(format!(
                "expected a column of {count} numbers, found a shape of {shape:?}"
            )));
        }
        Ok(tensor)
    }

    /// Reads unsigned integers: codes of variants, or lengths.
    fn codes<T: TryFrom<u64>>(&self, part: &Part, rows: usize) -> Result<Vec<T>> {
        let tensor = self.tensor(part, rows)?;
        let width = tensor.dtype().word();
        if !matches!(tensor.dtype(), DType::U8 | DType::U16 | DType::U32 | DType::U64) {
            let dtype = tensor.dtype();
            return Err(Error::damaged(format!("expected unsigned integers, found {dtype}")));
        }
        let bytes = tensor.le_bytes();
        let number = |bytes: &[u8]| {
            let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            T::try_from(number)
                .map_err(|_| Error::damaged(format!("a code or length of {number} is too large")))
        };
        bytes.chunks_exact(width).map(number).collect()
    }

    /// Reads numbers as an array of `dtype`, which can be wider than that of this group: it holds the numbers of all
    /// groups.
    fn numbers(
        &self,
        stored: &DType,
        part: &Part,
        count: usize,
        dtype: &DType,
    ) -> Result<ArrayRef> {
        if stored == dtype
            && let Some(of) = data_type(dtype).filter(|_| cfg!(target_endian = "little"))
            // Arrow has bits for bools.
            && of != DataType::Boolean
            && let Some(bytes) = self.shared(part)?
        {
            return numbers_in(bytes, &of, count);
        }
        let tensor = self.tensor(part, count)?;
        if tensor.dtype() == dtype {
            return elements(tensor);
        }
        macro_rules! widened {
            ($($to:ident $to_type:ident from $($from:ident $from_type:ty),*;)*) => {
                match (dtype, tensor.dtype()) {
                    $($((DType::$to, DType::$from) => {
                        let numbers = tensor.into_vec::<$from_type>()?;
                        widen::<types::$to_type, _>(numbers)
                    })*)*
                    _ => return Err(other_type()),
                }
            };
        }
        Ok(widened! {
            U16 UInt16Type from U8 u8;
            U32 UInt32Type from U8 u8, U16 u16;
            U64 UInt64Type from U8 u8, U16 u16, U32 u32;
            I16 Int16Type from U8 u8, I8 i8;
            I32 Int32Type from U8 u8, I8 i8, U16 u16, I16 i16;
            I64 Int64Type from U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32;
            F32 Float32Type from U8 u8, I8 i8, U16 u16, I16 i16, F16 f16;
            F64 Float64Type from U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, F16 f16, F32 f32;
        })
    }
}

/// The most rows of a column that takes no bytes for each row (`SPEC.md`, section 7).
const MAX_ROWS: usize = 1 << 24;

fn check_rows(rows: usize) -> Result<()> {
    if rows > MAX_ROWS {
        let what = format!(
            "a column whose rows take no bytes has {rows} rows, expected at most {MAX_ROWS}"
        );
        return Err(Error::limit(what));
    }
    Ok(())
}

fn nulls(inner: &Inner, rows: usize) -> Result<ArrayRef> {
    check_rows(rows)?;
    check_nulls(&inner.data_type()?, rows)?;
    // `take` keeps the dictionaries inside of the empty array. A file has one dictionary for all batches.
    let indices = UInt32Array::new_null(rows);
    arrow_select::take::take(&empty(inner)?, &indices, None).map_err(damaged)
}

/// Returns an array of this type without values.
fn empty(inner: &Inner) -> Result<ArrayRef> {
    let of = inner.data_type()?;
    let all =
        |inners: &mut dyn Iterator<Item = &Inner>| inners.map(empty).collect::<Result<Vec<_>>>();
    let none = || OffsetBuffer::new_empty();
    Ok(match (&inner.of, &of) {
        (Type::Enum(names), _) => dictionary(Int32Array::new_null(0), names.iter())?,
        (Type::Category(category), _) => category_of(&[], category)?,
        (Type::Variants(variants), _) => {
            let names = variants.iter().map(|(name, _)| name);
            let mut arrays = vec![dictionary(Int32Array::new_null(0), names)?];
            for (_, content) in variants {
                arrays.extend(content.as_ref().map(empty).transpose()?);
            }
            structs(&of, arrays, 0)?
        }
        (Type::Tuple(inners), _) => structs(&of, all(&mut inners.iter())?, 0)?,
        (Type::Struct(fields), _) => {
            structs(&of, all(&mut fields.iter().map(|(_, inner)| inner))?, 0)?
        }
        (Type::Fixed(_, item), _) => lists_of(&of, empty(item)?, 0)?,
        (Type::List(item), DataType::List(field)) => {
            let list = ListArray::try_new(field.clone(), none(), empty(item)?, None);
            Arc::new(list.map_err(damaged)?)
        }
        (Type::Map(inners), DataType::Map(entries, is_sorted)) => {
            let found = all(&mut [&inners.0, &inners.1].into_iter())?;
            let found = structs(entries.data_type(), found, 0)?;
            let found = found.as_struct().clone();
            let map = MapArray::try_new(entries.clone(), none(), found, None, *is_sorted);
            Arc::new(map.map_err(damaged)?)
        }
        _ => new_empty_array(&of),
    })
}

/// The most values that an array with nulls may have in all of its parts.
const MAX_VALUES: usize = 1 << 29;

/// Checks the memory of an array with nulls. In Arrow, numbers, lists of fixed length, fields of structs and contents of variants
/// take memory even where they are null, so a file of a few bytes could need more memory than there is.
fn check_nulls(of: &DataType, rows: usize) -> Result<()> {
    let values = values_of(of).saturating_mul(rows);
    if values > MAX_VALUES {
        let what = format!(
            "a column with nulls has {rows} rows and {values} values in Arrow, expected at most {MAX_VALUES}"
        );
        return Err(Error::limit(what));
    }
    Ok(())
}

/// The number of values that a row of this type has in all arrays, if it is null.
fn values_of(of: &DataType) -> usize {
    match of {
        DataType::FixedSizeList(item, size) => {
            values_of(item.data_type()).saturating_mul(usize::try_from(*size).unwrap_or(0))
        }
        DataType::Struct(fields) => {
            let values = fields.iter().map(|field| values_of(field.data_type()));
            values.fold(1, usize::saturating_add)
        }
        _ => 1,
    }
}

/// The numbers in these bytes, which are copied only if they are not aligned.
fn numbers_in(bytes: Buffer, of: &DataType, count: usize) -> Result<ArrayRef> {
    let width = of.primitive_width().ok_or_else(other_type)?;
    if count.checked_mul(width) != Some(bytes.len()) {
        let found = bytes.len() / width;
        return Err(Error::damaged(format!("expected a column of {count} numbers, found {found}")));
    }
    let data = new_empty_array(of).to_data().into_builder().len(count).buffers(vec![bytes]);
    Ok(make_array(data.align_buffers(true).build().map_err(damaged)?))
}

fn widen<P: ArrowPrimitiveType, T: Into<P::Native>>(numbers: Vec<T>) -> ArrayRef {
    Arc::new(PrimitiveArray::<P>::from_iter_values(numbers.into_iter().map(Into::into)))
}

/// Converts the elements of a tensor to an array of their own type.
pub fn elements(tensor: DynTensor) -> Result<ArrayRef> {
    if *tensor.dtype() == DType::Bool {
        let bytes = tensor.le_bytes();
        return Ok(Arc::new(bytes.iter().map(|byte| Some(*byte == 1)).collect::<BooleanArray>()));
    }
    macro_rules! array {
        ($($of:ident $type:ty: $array:ident;)*) => {
            match tensor.dtype() {
                $(DType::$of => {
                    let numbers = ScalarBuffer::from(tensor.into_vec::<$type>()?);
                    Ok(Arc::new(PrimitiveArray::<types::$array>::new(numbers, None)))
                })*
                _ => Err(other_type()),
            }
        };
    }
    array! {
        U8 u8: UInt8Type;
        U16 u16: UInt16Type;
        U32 u32: UInt32Type;
        U64 u64: UInt64Type;
        I8 i8: Int8Type;
        I16 i16: Int16Type;
        I32 i32: Int32Type;
        I64 i64: Int64Type;
        F16 f16: Float16Type;
        F32 f32: Float32Type;
        F64 f64: Float64Type;
    }
}

fn lists_of(of: &DataType, items: ArrayRef, rows: usize) -> Result<ArrayRef> {
    let DataType::FixedSizeList(field, size) = of else { return Err(other_type()) };
    let list = FixedSizeListArray::try_new_with_length(field.clone(), *size, items, None, rows);
    Ok(Arc::new(list.map_err(damaged)?))
}

fn structs(of: &DataType, arrays: Vec<ArrayRef>, rows: usize) -> Result<ArrayRef> {
    let DataType::Struct(fields) = of else { return Err(other_type()) };
    let fields: Fields = fields.clone();
    let array = StructArray::try_new_with_length(fields, arrays, None, rows);
    Ok(Arc::new(array.map_err(damaged)?))
}

/// Returns an array with the next value for each bit that is set, and null for each other bit.
fn spread(bits: &BooleanBuffer, values: &ArrayRef) -> Result<ArrayRef> {
    if bits.count_set_bits() == bits.len() {
        return Ok(make_array(values.to_data()));
    }
    check_nulls(values.data_type(), bits.len())?;
    let mut next = 0u32;
    let indices: UInt32Array = bits
        .iter()
        .map(|bit| {
            bit.then(|| {
                next += 1;
                next - 1
            })
        })
        .collect();
    arrow_select::take::take(values, &indices, None).map_err(damaged)
}

/// Returns the names of variants by their codes in a group. The values of the dictionary are the names of all groups.
fn names_of<'a>(
    codes: &[usize],
    variants: &[(String, Option<Column>)],
    all: impl Iterator<Item = &'a String> + Clone,
) -> Result<ArrayRef> {
    let numbers: HashMap<_, _> = all.clone().zip(0i32..).collect();
    let numbers: Vec<_> = variants.iter().map(|(name, _)| numbers.get(name).copied()).collect();
    let codes = codes.iter().map(|&code| numbers.get(code).copied().flatten());
    let codes = codes.map(|code| code.ok_or_else(no_variant)).collect::<Result<Vec<_>>>()?;
    dictionary(Int32Array::from(codes), all)
}

fn dictionary<'a>(codes: Int32Array, names: impl Iterator<Item = &'a String>) -> Result<ArrayRef> {
    let names = Arc::new(StringArray::from_iter_values(names));
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(codes, names).map_err(damaged)?))
}

fn category_of(codes: &[usize], category: &Category) -> Result<ArrayRef> {
    let names = Arc::new(StringArray::from_iter_values(&category.names));
    category.array(codes, names).map_err(damaged)
}

#[cold]
fn no_variant() -> Error {
    Error::damaged("a code of an enum has no variant")
}

#[cold]
fn other_type() -> Error {
    Error::data("a column does not have the type that was found for it before")
}

#[allow(clippy::needless_pass_by_value)]
fn damaged(error: ArrowError) -> Error {
    Error::damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_that_take_too_much_memory_are_refused() {
        let inner = |len| {
            let number =
                Inner { of: Type::Number(DType::F32), nullable: false, missing: Missing::Never };
            Inner {
                of: Type::Fixed(len, Box::new(number)),
                nullable: true,
                missing: Missing::Never,
            }
        };
        assert_eq!(nulls(&inner(3), 1000).unwrap().null_count(), 1000);
        assert!(nulls(&inner(1 << 20), 1 << 16).is_err());
        let of_structs = |len| Type::Struct(vec![("a".to_owned(), inner(len))]);
        let structs = Inner { of: of_structs(1 << 20), nullable: true, missing: Missing::Never };
        assert!(nulls(&structs, 1 << 16).is_err());
    }
}
