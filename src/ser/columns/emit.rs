//! Writes collected columns as items (`SPEC.md`, section 7).

use std::borrow::Cow;

use super::builder::{
    ColumnBuilder, EnumBuilder, ItemsBuilder, LengthsBuilder, StringsBuilder, TensorsBuilder,
    TupleBuilder, VariantForm, ones,
};
use super::bytes::Bytes;
use super::dict::Dict;
use super::narrow::{converted, narrowed};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::meta::{Order, TensorMeta};
use crate::ser::kind::Kind;
use crate::shape::Shape;
use crate::wire::buffer_sink::BufferSink;
use crate::wire::columns::{NumberType, Uniform, cast};
use crate::wire::encoded::is_deeper;
use crate::wire::head;
use crate::wire::writer::Writer;

/// Writes a column of `rows` rows.
pub fn column(writer: &mut Writer<'_>, node: &ColumnBuilder, rows: usize) -> Result<()> {
    if node.rows() != rows {
        return Err(inconsistent());
    }
    match node {
        // Where there is no row, nothing says which kind it would have.
        _ if rows == 0 => kind(writer, "unit", 0)?,
        ColumnBuilder::Empty | ColumnBuilder::Unit(_) => kind(writer, "unit", 0)?,
        ColumnBuilder::Numbers(numbers) => {
            return column_of_numbers(writer, numbers.kind, &numbers.bytes);
        }
        ColumnBuilder::Halves(bytes) => return typed(writer, &DType::F16, bytes),
        ColumnBuilder::Tensors(tensors) => return column_of_tensors(writer, tensors),
        ColumnBuilder::Misfit(node) => return column(writer, node, rows),
        ColumnBuilder::Struct(columns) => {
            writer.enter(1)?;
            writer.head(head::MAP, columns.fields.len() as u64)?;
            for field in &columns.fields {
                writer.text(field.name())?;
                column(writer, &field.node, rows)?;
            }
        }
        ColumnBuilder::Bools(found) => return column_of_bools(writer, found),
        ColumnBuilder::Strings(strings) => {
            // A column that is in the output was found not to be a dict.
            let dict = strings.dict().filter(|_| !strings.bytes.is_placed());
            return column_of_dict(writer, strings, dict);
        }
        ColumnBuilder::Optional(optional) => {
            kind(writer, "option", 2)?;
            bits(writer, &optional.bits)?;
            column(writer, &optional.node, ones(&optional.bits))?;
        }
        ColumnBuilder::Present(optional) => {
            kind(writer, "present", 2)?;
            bits(writer, &optional.bits)?;
            column(writer, &optional.node, ones(&optional.bits))?;
        }
        ColumnBuilder::List(list) => {
            if let Some(len) = list.lengths.same() {
                return column_of_arrays(writer, len as usize, &list.node, rows);
            }
            kind(writer, "list", 2)?;
            lengths(writer, &list.lengths)?;
            column(writer, &list.node, list.lengths.sum())?;
        }
        ColumnBuilder::Map(map) => {
            kind(writer, "map", 3)?;
            lengths(writer, &map.lengths)?;
            let entries = map.lengths.sum();
            column(writer, &map.keys, entries)?;
            column(writer, &map.values, entries)?;
        }
        ColumnBuilder::Tuple(tuple) => return column_of_tuples(writer, tuple, rows),
        ColumnBuilder::Enum(columns) => column_of_enums(writer, columns)?,
        ColumnBuilder::Typed(typed) => {
            kind(writer, "type", 3)?;
            match &typed.node {
                // The table of types asks for a dict here, and for plain byte strings elsewhere.
                ColumnBuilder::Strings(strings) if typed.of.is_category() => {
                    let dict = Dict::of_category(strings);
                    let names = dict.as_ref().map_or(strings, |dict| &dict.strings);
                    writer.type_name(&typed.name(names))?;
                    column_of_dict(writer, strings, dict.as_ref())?;
                    return writer.leave(1);
                }
                _ => writer.type_name(&typed.of)?,
            }
            match &typed.node {
                ColumnBuilder::Strings(strings) => plain_strings(writer, strings)?,
                node => column(writer, node, rows)?,
            }
        }
        ColumnBuilder::Items(items) => column_of_items(writer, items)?,
    }
    writer.leave(1)
}

/// Begins a column: an array of the name of its kind and `more` items.
fn kind(writer: &mut Writer<'_>, kind: &str, more: u64) -> Result<()> {
    writer.enter(1)?;
    writer.head(head::ARRAY, 1 + more)?;
    writer.text(kind)
}

fn column_of_bools(writer: &mut Writer<'_>, found: &Bytes) -> Result<()> {
    kind(writer, "bool", 1)?;
    bits(writer, found)?;
    writer.leave(1)
}

fn column_of_numbers(writer: &mut Writer<'_>, of: Kind, bytes: &Bytes) -> Result<()> {
    // In an archive, a column keeps the type that it has in Rust.
    if writer.apart().is_none()
        && let Some((kind, bytes)) = narrowed(of, bytes)
    {
        return typed(writer, &kind.dtype(), &bytes);
    }
    typed(writer, &of.dtype(), bytes)
}

/// Writes a typed array, or a reference to one.
fn typed(writer: &mut Writer<'_>, dtype: &DType, bytes: &Bytes) -> Result<()> {
    if let Some(number) = apart(writer, dtype, bytes)? {
        return writer.numbers_reference(dtype, number);
    }
    writer.room(1)?;
    writer.typed_array_head(dtype, bytes.len())?;
    put(writer, bytes)
}

/// Writes a text or byte string, or a reference to one.
fn string(writer: &mut Writer<'_>, major: u8, bytes: &Bytes) -> Result<()> {
    if let Some(number) = apart(writer, &DType::U8, bytes)? {
        return writer.bytes_reference(number);
    }
    writer.head(major, bytes.len() as u64)?;
    put(writer, bytes)
}

/// Writes bytes to a buffer of their own, if they should be in one. Returns the number of the buffer.
fn apart(writer: &mut Writer<'_>, dtype: &DType, bytes: &Bytes) -> Result<Option<u64>> {
    let takes =
        |apart: &mut dyn BufferSink, written: &[u8]| apart.takes_block(written, dtype, bytes.len());
    let Some(apart) = writer.apart_if(takes) else { return Ok(None) };
    if apart.begin(bytes.len())? {
        bytes.pieces().try_for_each(|piece| apart.put(piece))?;
    }
    let number = apart.end()?;
    writer.room(2)?;
    Ok(Some(number))
}

fn put(writer: &mut Writer<'_>, bytes: &Bytes) -> Result<()> {
    if bytes.skip_at(writer.position()) {
        return Ok(());
    }
    bytes.pieces().try_for_each(|piece| writer.put_block(piece))
}

fn column_of_tensors(writer: &mut Writer<'_>, tensors: &TensorsBuilder) -> Result<()> {
    let shape =
        [tensors.rows].into_iter().chain(tensors.meta.shape.iter().copied()).collect::<Shape>();
    let meta = TensorMeta::new(tensors.meta.dtype.clone(), shape, Order::C);
    let bytes = &tensors.bytes;
    // The levels of the tag, the array, and the shape or another tag.
    writer.room(3 + usize::from(meta.dtype.is_complex()))?;
    let takes = |apart: &mut dyn BufferSink, written: &[u8]| {
        apart.takes_tensor(written, &meta, bytes.len())
    };
    if let Some(apart) = writer.apart_if(takes) {
        if apart.begin(bytes.len())? {
            bytes.pieces().try_for_each(|piece| apart.put(piece))?;
        }
        let number = apart.end()?;
        return writer.tensor_reference(&meta, number);
    }
    writer.tensor_head(&meta.dtype, &meta.shape, meta.order, bytes.len())?;
    put(writer, bytes)
}

/// Writes a dict, or the strings as they are if there is none.
fn column_of_dict(
    writer: &mut Writer<'_>,
    strings: &StringsBuilder,
    dict: Option<&Dict>,
) -> Result<()> {
    let Some(Dict { codes, strings }) = dict else { return plain_strings(writer, strings) };
    let count = strings.lengths.rows();
    kind(writer, "dict", 3)?;
    column_of_codes(writer, codes, count)?;
    writer.head(head::UNSIGNED, count as u64)?;
    plain_strings(writer, strings)?;
    writer.leave(1)
}

/// Writes numbers below `count` in the least type that holds them.
fn column_of_codes(writer: &mut Writer<'_>, codes: &Bytes, count: usize) -> Result<()> {
    if count <= 1 << 8 {
        return typed(writer, &DType::U8, &converted(codes, |[low, _]: [u8; 2]| [low]));
    }
    typed(writer, &DType::U16, codes)
}

fn plain_strings(writer: &mut Writer<'_>, strings: &StringsBuilder) -> Result<()> {
    let (name, major) = if strings.is_text { ("text", head::TEXT) } else { ("bytes", head::BYTES) };
    kind(writer, name, 2)?;
    lengths(writer, &strings.lengths)?;
    string(writer, major, &strings.bytes)?;
    writer.leave(1)
}

fn column_of_tuples(writer: &mut Writer<'_>, tuple: &TupleBuilder, rows: usize) -> Result<()> {
    let elements = match &*tuple.nodes {
        [] => Some(&ColumnBuilder::Empty),
        [node] if tuple.is_array => Some(node),
        _ => None,
    };
    if let Some(elements) = elements {
        return column_of_arrays(writer, tuple.len, elements, rows);
    }
    let narrow = writer.apart().is_none();
    if let Some(Uniform { of, dims }) = uniform_tuple(tuple, rows, narrow) {
        let bytes = elements_of_tuple(tuple, rows, &dims, of);
        for &len in &dims {
            array(writer, len)?;
        }
        match of.map(|of| (of, Kind::of(&of.dtype()))) {
            Some((_, Some(of))) => column_of_numbers(writer, of, &bytes)?,
            Some((of, None)) => typed(writer, &of.dtype(), &bytes)?,
            None => column_of_bools(writer, &bytes)?,
        }
        return writer.leave(dims.len());
    }
    kind(writer, "tuple", 1)?;
    writer.enter(1)?;
    writer.head(head::ARRAY, tuple.nodes.len() as u64)?;
    tuple.nodes.iter().try_for_each(|node| column(writer, node, rows))?;
    writer.leave(2)
}

/// Writes a column whose rows are arrays of `len` elements.
fn column_of_arrays(
    writer: &mut Writer<'_>,
    len: usize,
    elements: &ColumnBuilder,
    rows: usize,
) -> Result<()> {
    array(writer, len)?;
    column(writer, elements, rows * len)?;
    writer.leave(1)
}

/// Begins a column whose rows are arrays of `len` elements.
fn array(writer: &mut Writer<'_>, len: usize) -> Result<()> {
    kind(writer, "array", 2)?;
    writer.head(head::UNSIGNED, len as u64)
}

/// What the rows of a column are, if they are numbers, bools, or arrays of them. `narrow` says whether integers are
/// written in the least type.
fn uniform(node: &ColumnBuilder, rows: usize, narrow: bool) -> Option<Uniform> {
    match node {
        _ if rows == 0 => None,
        ColumnBuilder::Numbers(numbers) => {
            let narrowed = if narrow { narrowed(numbers.kind, &numbers.bytes) } else { None };
            let kind = narrowed.map_or(numbers.kind, |(kind, _)| kind);
            Some(Uniform::single(NumberType::of(&kind.dtype())))
        }
        ColumnBuilder::Halves(_) => Some(Uniform::single(Some(NumberType::F16))),
        ColumnBuilder::Bools(_) => Some(Uniform::single(None)),
        ColumnBuilder::List(list) => {
            let len = list.lengths.same()? as usize;
            Some(uniform(&list.node, rows * len, narrow)?.in_array(len))
        }
        ColumnBuilder::Tuple(tuple) if tuple.is_array => {
            Some(uniform(tuple.nodes.first()?, rows * tuple.len, narrow)?.in_array(tuple.len))
        }
        ColumnBuilder::Tuple(tuple) => uniform_tuple(tuple, rows, narrow),
        ColumnBuilder::Misfit(node) => uniform(node, rows, narrow),
        _ => None,
    }
}

fn uniform_tuple(tuple: &TupleBuilder, rows: usize, narrow: bool) -> Option<Uniform> {
    Uniform::of_tuple(tuple.nodes.iter().map(|node| uniform(node, rows, narrow)))
}

/// The numbers of a tuple row by row, in the type `to`, or its bools.
fn elements_of_tuple(
    tuple: &TupleBuilder,
    rows: usize,
    dims: &[usize],
    to: Option<NumberType>,
) -> Bytes {
    fn elements<'n>(
        node: &'n ColumnBuilder,
        rows: usize,
        dims: &[usize],
        to: Option<NumberType>,
    ) -> Cow<'n, [u8]> {
        match (node, to, dims) {
            (ColumnBuilder::Numbers(numbers), Some(to), _) => {
                cast(numbers.bytes.joined(), &numbers.kind.dtype(), &to.dtype())
            }
            (ColumnBuilder::Bools(bytes) | ColumnBuilder::Halves(bytes), ..) => bytes.joined(),
            (ColumnBuilder::List(list), _, [len, dims @ ..]) => {
                elements(&list.node, rows * len, dims, to)
            }
            (ColumnBuilder::Tuple(tuple), _, dims) if !tuple.is_array => {
                Cow::Owned(elements_of_tuple(tuple, rows, dims, to).joined().into_owned())
            }
            (ColumnBuilder::Tuple(tuple), _, [len, dims @ ..]) => match &*tuple.nodes {
                [node] => elements(node, rows * len, dims, to),
                _ => Cow::default(),
            },
            (ColumnBuilder::Misfit(node), ..) => elements(node, rows, dims, to),
            _ => Cow::default(),
        }
    }
    let inner = dims.get(1..).unwrap_or_default();
    let columns: Vec<_> = tuple.nodes.iter().map(|node| elements(node, rows, inner, to)).collect();
    let len = inner.iter().product::<usize>() * to.map_or(1, NumberType::size);
    let mut bytes = Bytes::default();
    for row in 0..rows {
        for column in &columns {
            bytes.push_slice(column.get(row * len..(row + 1) * len).unwrap_or_default());
        }
    }
    bytes
}

fn column_of_enums(writer: &mut Writer<'_>, columns: &EnumBuilder) -> Result<()> {
    let variants = &columns.variants;
    let has_content = variants.iter().any(|variant| variant.form != VariantForm::Unit);
    kind(writer, "enum", 2 + u64::from(has_content))?;
    column_of_codes(writer, &columns.codes, variants.len())?;
    writer.enter(1)?;
    writer.head(head::ARRAY, variants.len() as u64)?;
    variants.iter().try_for_each(|variant| writer.text(variant.name()))?;
    if has_content {
        writer.head(head::ARRAY, variants.len() as u64)?;
        for (variant, rows) in variants.iter().zip(columns.counts()) {
            match variant.form {
                VariantForm::Unit => writer.put([head::NULL])?,
                _ => column(writer, &variant.node, rows)?,
            }
        }
    }
    writer.leave(1)
}

fn column_of_items(writer: &mut Writer<'_>, items: &ItemsBuilder) -> Result<()> {
    kind(writer, "rows", 1)?;
    writer.enter(1)?;
    // When the items were encoded, it was not known how deep the column is.
    if items.iter().any(|item| is_deeper(item, writer.context.depth)) {
        return Err(writer.too_deep());
    }
    if items.have_unknown_lengths {
        writer.overflow_mut().unknown_length();
    }
    writer.head(head::ARRAY, items.ends.len() as u64)?;
    writer.put_block(&items.bytes)?;
    writer.leave(1)
}

/// Writes the lengths of rows: one number if they are equal.
fn lengths(writer: &mut Writer<'_>, lengths: &LengthsBuilder) -> Result<()> {
    if let Some(len) = lengths.same() {
        return writer.head(head::UNSIGNED, u64::from(len));
    }
    match narrowed(Kind::U32, &lengths.0) {
        Some((kind, bytes)) => typed(writer, &kind.dtype(), &bytes),
        None => typed(writer, &DType::U32, &lengths.0),
    }
}

/// Writes bits, from one byte for each.
fn bits(writer: &mut Writer<'_>, found: &Bytes) -> Result<()> {
    let found = found.joined();
    let (whole, rest) = found.as_chunks();
    let mut bytes = Bytes::default();
    bytes.fill(whole.len(), 1, |part, before| {
        let words = whole.get(before..).unwrap_or_default();
        part.iter_mut().zip(words).for_each(|(byte, bits)| *byte = packed(*bits));
    });
    if !rest.is_empty() {
        let mut bits = [0; 8];
        bits.iter_mut().zip(rest).for_each(|(place, bit)| *place = *bit);
        bytes.push([packed(bits)]);
    }
    string(writer, head::BYTES, &bytes)
}

/// The byte with these bits, each of which is 0 or 1. The first becomes the lowest.
fn packed(bits: [u8; 8]) -> u8 {
    // The factor has one bit for each byte, which moves the bit in it to its place in the uppermost byte. No two
    // products meet in one place, so there is no carry.
    let [.., byte] = u64::from_le_bytes(bits).wrapping_mul(0x0102_0408_1020_4080).to_le_bytes();
    byte
}

/// The error for columns that have different numbers of rows.
#[cold]
pub fn inconsistent() -> Error {
    Error::data("a value's `Serialize` went on after an error, or left a value out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_is_the_lowest() {
        for byte in 0..=u8::MAX {
            assert_eq!(packed(std::array::from_fn(|n| byte >> n & 1)), byte);
        }
    }
}
