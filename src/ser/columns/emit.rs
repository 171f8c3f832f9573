//! Writes collected columns as items (`SPEC.md`, section 3.1).

use std::borrow::Cow;

use super::bytes::Bytes;
use super::fixed::{Fixed, Form};
use super::inconsistent;
use super::narrow::{converted, narrowed};
use super::node::{self, Enum, Items, Lengths, Node, Strings, Tensors, Tuple, ones};
use crate::dtype::DType;
use crate::error::Result;
use crate::meta::{Order, TensorMeta};
use crate::ser::pack::Kind;
use crate::shape::Shape;
use crate::wire::apart::{Apart, Target};
use crate::wire::encoded::is_deeper;
use crate::wire::head;
use crate::wire::writer::Writer;

/// Writes a column of `rows` rows.
pub fn column<O: Target>(writer: &mut Writer<O>, node: &Node, rows: usize) -> Result<()> {
    if node.rows() != rows {
        return Err(inconsistent());
    }
    match node {
        Node::Empty | Node::Loose | Node::Unit(_) => kind(writer, "unit", 0)?,
        Node::Numbers(numbers) => return column_of_numbers(writer, numbers.kind, &numbers.bytes),
        Node::Tensors(tensors) => return column_of_tensors(writer, tensors),
        Node::Misfit(node) => return column(writer, node, rows),
        Node::Fixed(fixed) => return column_of_rows(writer, fixed),
        Node::Struct(columns) => {
            writer.enter(1)?;
            writer.sink.head(head::MAP, columns.fields.len() as u64)?;
            for field in &columns.fields {
                writer.sink.text(field.key)?;
                column(writer, &field.node, rows)?;
            }
        }
        Node::Bools(found) => {
            kind(writer, "bool", 1)?;
            bits(writer, found)?;
        }
        Node::Strings(strings) => column_of_strings(writer, strings)?,
        Node::Optional(optional) => {
            kind(writer, "option", 2)?;
            bits(writer, &optional.bits)?;
            column(writer, &optional.node, ones(&optional.bits))?;
        }
        Node::Present(optional) => {
            kind(writer, "present", 2)?;
            bits(writer, &optional.bits)?;
            column(writer, &optional.node, ones(&optional.bits))?;
        }
        Node::List(list) => {
            kind(writer, "list", 2)?;
            lengths(writer, &list.lengths)?;
            column(writer, &list.node, list.lengths.sum())?;
        }
        Node::Map(map) => {
            kind(writer, "map", 3)?;
            lengths(writer, &map.lengths)?;
            let entries = map.lengths.sum();
            column(writer, &map.keys, entries)?;
            column(writer, &map.values, entries)?;
        }
        Node::Tuple(tuple) => return column_of_tuples(writer, tuple, rows),
        Node::Enum(columns) => column_of_enums(writer, columns)?,
        Node::Items(items) => column_of_items(writer, items)?,
    }
    writer.leave(1)
}

/// Begins a column: an array of the name of its kind and `more` items.
fn kind<O: Target>(writer: &mut Writer<O>, kind: &str, more: u64) -> Result<()> {
    writer.enter(1)?;
    writer.sink.head(head::ARRAY, 1 + more)?;
    writer.sink.text(kind)
}

fn column_of_numbers<O: Target>(writer: &mut Writer<O>, of: Kind, bytes: &Bytes) -> Result<()> {
    // In an archive, a column keeps the type that it has in Rust.
    if writer.sink.apart().is_none()
        && let Some((kind, bytes)) = narrowed(of, bytes)
    {
        return typed(writer, &kind.dtype(), &bytes);
    }
    typed(writer, &of.dtype(), bytes)
}

/// Writes a typed array, or a reference to one.
fn typed<O: Target>(writer: &mut Writer<O>, dtype: &DType, bytes: &Bytes) -> Result<()> {
    if let Some(number) = apart(writer, dtype, bytes)? {
        return writer.sink.numbers_reference(dtype, number);
    }
    writer.room(1)?;
    writer.sink.typed_array_head(dtype, bytes.len())?;
    put(writer, bytes)
}

/// Writes a text or byte string, or a reference to one.
fn string<O: Target>(writer: &mut Writer<O>, major: u8, bytes: &Bytes) -> Result<()> {
    if let Some(number) = apart(writer, &DType::U8, bytes)? {
        return writer.sink.bytes_reference(number);
    }
    writer.sink.head(major, bytes.len() as u64)?;
    put(writer, bytes)
}

/// Writes bytes to a buffer of their own, if they should be in one. Returns the number of the buffer.
fn apart<O: Target>(writer: &mut Writer<O>, dtype: &DType, bytes: &Bytes) -> Result<Option<u64>> {
    let takes =
        |apart: &mut dyn Apart, written: &[u8]| apart.takes_block(written, dtype, bytes.len());
    let Some(apart) = writer.sink.apart_if(takes) else { return Ok(None) };
    if apart.begin(bytes.len())? {
        bytes.pieces().try_for_each(|piece| apart.put(piece))?;
    }
    let number = apart.end()?;
    writer.room(2)?;
    Ok(Some(number))
}

fn put<O: Target>(writer: &mut Writer<O>, bytes: &Bytes) -> Result<()> {
    if bytes.skip_at(writer.sink.position()) {
        return Ok(());
    }
    bytes.pieces().try_for_each(|piece| writer.sink.put_block(piece))
}

fn column_of_tensors<O: Target>(writer: &mut Writer<O>, tensors: &Tensors) -> Result<()> {
    let shape =
        [tensors.rows].into_iter().chain(tensors.meta.shape.iter().copied()).collect::<Shape>();
    let meta = TensorMeta::new(tensors.meta.dtype.clone(), shape, Order::C);
    let bytes = &tensors.bytes;
    // The levels of the tag, the array, and the shape or another tag.
    writer.room(3 + usize::from(meta.dtype.is_complex()))?;
    let takes =
        |apart: &mut dyn Apart, written: &[u8]| apart.takes_tensor(written, &meta, bytes.len());
    if let Some(apart) = writer.sink.apart_if(takes) {
        if apart.begin(bytes.len())? {
            bytes.pieces().try_for_each(|piece| apart.put(piece))?;
        }
        let number = apart.end()?;
        return writer.sink.tensor_reference(&meta, number);
    }
    writer.sink.tensor_head(&meta.dtype, &meta.shape, meta.order, bytes.len())?;
    put(writer, bytes)
}

fn column_of_strings<O: Target>(writer: &mut Writer<O>, strings: &Strings) -> Result<()> {
    let (name, major) = if strings.is_text { ("text", head::TEXT) } else { ("bytes", head::BYTES) };
    kind(writer, name, 2)?;
    lengths(writer, &strings.lengths)?;
    string(writer, major, &strings.bytes)
}

fn column_of_tuples<O: Target>(writer: &mut Writer<O>, tuple: &Tuple, rows: usize) -> Result<()> {
    let Some((kind_of_all, dims)) = uniform(tuple) else {
        kind(writer, "tuple", 1)?;
        writer.enter(1)?;
        writer.sink.head(head::ARRAY, tuple.nodes.len() as u64)?;
        tuple.nodes.iter().try_for_each(|node| column(writer, node, rows))?;
        return writer.leave(2);
    };
    column_of_lists(writer, kind_of_all, &dims, &interleaved(tuple, kind_of_all.size(), rows))
}

/// Writes tuples of numbers of one type as lists of a fixed length, so that all of them are one typed
/// array.
fn column_of_lists<O: Target>(
    writer: &mut Writer<O>,
    of: Kind,
    dims: &[usize],
    bytes: &Bytes,
) -> Result<()> {
    heads_of_lists(writer, dims)?;
    column_of_numbers(writer, of, bytes)?;
    writer.leave(dims.len())
}

fn heads_of_lists<O: Target>(writer: &mut Writer<O>, dims: &[usize]) -> Result<()> {
    for &dim in dims {
        kind(writer, "list", 2)?;
        writer.sink.head(head::UNSIGNED, dim as u64)?;
    }
    Ok(())
}

/// If the tuple and the tuples inside it have only numbers of one type, returns this type, and the lengths from the
/// outermost tuple to the innermost.
fn uniform(tuple: &Tuple) -> Option<(Kind, Vec<usize>)> {
    let of = |node: &Node| match node {
        Node::Numbers(numbers) => Some((numbers.kind, Vec::new())),
        Node::Tuple(tuple) => uniform(tuple),
        _ => None,
    };
    let mut nodes = tuple.nodes.iter();
    let (kind, dims) = of(nodes.next()?)?;
    if !nodes.all(|node| of(node).as_ref() == Some(&(kind, dims.clone()))) {
        return None;
    }
    Some((kind, [tuple.nodes.len()].into_iter().chain(dims).collect()))
}

/// Returns the numbers of a uniform tuple, row by row.
fn interleaved(tuple: &Tuple, size: usize, rows: usize) -> Bytes {
    fn leaves<'a>(tuple: &'a Tuple, found: &mut Vec<Cow<'a, [u8]>>) {
        for node in &tuple.nodes {
            match node {
                Node::Numbers(numbers) => found.push(numbers.bytes.joined()),
                Node::Tuple(tuple) => leaves(tuple, found),
                _ => {}
            }
        }
    }
    let mut columns = Vec::new();
    leaves(tuple, &mut columns);
    let mut bytes = Bytes::default();
    for row in 0..rows {
        for column in &columns {
            bytes.push_slice(column.get(row * size..(row + 1) * size).unwrap_or_default());
        }
    }
    bytes
}

/// Writes rows of numbers.
fn column_of_rows<O: Target>(writer: &mut Writer<O>, fixed: &Fixed) -> Result<()> {
    match Whole::of(writer, fixed) {
        Some(whole) => {
            whole.head(writer, fixed, fixed.rows)?;
            writer.sink.put_block(fixed.bytes())
        }
        None => column_of_form(writer, fixed, &fixed.form),
    }
}

/// The form of a column whose payload consists of the bytes of the rows, unchanged: rows of floats of one type, in a
/// message.
pub struct Whole {
    float: Kind,
    /// The lengths, if the rows are tuples: see [`dims`].
    dims: Option<Vec<usize>>,
}

impl Whole {
    pub fn of<O: Target>(writer: &mut Writer<O>, fixed: &Fixed) -> Option<Self> {
        let float = fixed.form.uniform().filter(|kind| matches!(kind, Kind::F32 | Kind::F64))?;
        // In an archive, each field gets a column of its own. A row with only one field is written as a column of
        // numbers.
        if writer.sink.apart().is_some() || fixed.width == float.size() {
            return None;
        }
        Some(Self { float, dims: dims(&fixed.form).map(|(.., dims)| dims) })
    }

    /// Writes everything before the payload.
    pub fn head<O: Target>(
        &self,
        writer: &mut Writer<O>,
        fixed: &Fixed,
        rows: usize,
    ) -> Result<()> {
        let len = rows * fixed.width;
        let levels = self.dims.as_ref().map_or(1, Vec::len);
        if let Some(dims) = &self.dims {
            heads_of_lists(writer, dims)?;
            writer.room(1)?;
            writer.sink.typed_array_head(&self.float.dtype(), len)?;
        } else {
            kind(writer, "interleaved", 2)?;
            names(writer, &fixed.form)?;
            let shape = Shape::from_iter([rows, fixed.width / self.float.size()]);
            // The levels of the tag, the array, and the shape or another tag.
            writer.room(3)?;
            writer.sink.tensor_head(&self.float.dtype(), &shape, Order::C, len)?;
        }
        writer.leave(levels)
    }
}

fn names<O: Target>(writer: &mut Writer<O>, form: &Form) -> Result<()> {
    match form {
        Form::Bool(_) | Form::Number(..) => return writer.sink.put([head::NULL]),
        Form::Tuple(forms) => {
            writer.enter(1)?;
            writer.sink.head(head::ARRAY, forms.len() as u64)?;
            forms.iter().try_for_each(|form| names(writer, form))?;
        }
        Form::Struct(fields) => {
            writer.enter(1)?;
            writer.sink.head(head::MAP, fields.len() as u64)?;
            for (key, form) in fields {
                writer.sink.text(key)?;
                names(writer, form)?;
            }
        }
    }
    writer.leave(1)
}

/// Writes a part of rows of numbers as columns of its own.
fn column_of_form<O: Target>(writer: &mut Writer<O>, fixed: &Fixed, form: &Form) -> Result<()> {
    match form {
        Form::Number(kind, at) => {
            return column_of_numbers(writer, *kind, &gather(fixed, *at, kind.size()));
        }
        Form::Bool(at) => {
            kind(writer, "bool", 1)?;
            bits(writer, &gather(fixed, *at, 1))?;
        }
        Form::Struct(fields) => {
            writer.enter(1)?;
            writer.sink.head(head::MAP, fields.len() as u64)?;
            for (key, form) in fields {
                writer.sink.text(key)?;
                column_of_form(writer, fixed, form)?;
            }
        }
        Form::Tuple(forms) => {
            if let Some((kind, start, dims)) = dims(form) {
                let len = dims.iter().product::<usize>() * kind.size();
                return column_of_lists(writer, kind, &dims, &gather(fixed, start, len));
            }
            kind(writer, "tuple", 1)?;
            writer.enter(1)?;
            writer.sink.head(head::ARRAY, forms.len() as u64)?;
            forms.iter().try_for_each(|form| column_of_form(writer, fixed, form))?;
            writer.leave(1)?;
        }
    }
    writer.leave(1)
}

/// If this is a tuple of numbers of one type, or of such tuples of equal length, returns the type, the offset in the
/// row, and the lengths from the outermost tuple to the innermost.
fn dims(form: &Form) -> Option<(Kind, usize, Vec<usize>)> {
    match form {
        Form::Number(kind, at) => Some((*kind, *at, Vec::new())),
        Form::Tuple(forms) => {
            let mut all = forms.iter().map(dims);
            let (kind, at, inner) = all.next()??;
            let is_like = |other: Option<(Kind, usize, Vec<usize>)>| {
                other.is_some_and(|(k, _, dims)| k == kind && dims == inner)
            };
            if !all.all(is_like) {
                return None;
            }
            Some((kind, at, [forms.len()].into_iter().chain(inner).collect()))
        }
        _ => None,
    }
}

/// Returns the `len` bytes from `at` on of each row.
fn gather(fixed: &Fixed, at: usize, len: usize) -> Bytes {
    // If the compiler knows the length, the loop copies words without calling a function.
    match len {
        1 => words::<1>(fixed, at),
        2 => words::<2>(fixed, at),
        4 => words::<4>(fixed, at),
        8 => words::<8>(fixed, at),
        12 => words::<12>(fixed, at),
        16 => words::<16>(fixed, at),
        24 => words::<24>(fixed, at),
        _ => {
            let mut bytes = Bytes::default();
            for row in fixed.bytes().chunks_exact(fixed.width) {
                bytes.push_slice(row.get(at..at + len).unwrap_or_default());
            }
            bytes
        }
    }
}

fn words<const N: usize>(fixed: &Fixed, at: usize) -> Bytes {
    let mut bytes = Bytes::default();
    bytes.fill(fixed.rows, N, |part, before| {
        let rows = fixed.bytes().chunks_exact(fixed.width).skip(before);
        let words = rows.filter_map(|row| row.get(at..)?.first_chunk::<N>());
        part.as_chunks_mut().0.iter_mut().zip(words).for_each(|(place, word)| *place = *word);
    });
    bytes
}

fn column_of_enums<O: Target>(writer: &mut Writer<O>, columns: &Enum) -> Result<()> {
    let variants = &columns.variants;
    let has_content = variants.iter().any(|variant| variant.form != node::Form::Unit);
    kind(writer, "enum", 2 + u64::from(has_content))?;
    if variants.len() <= 1 << 8 {
        typed(writer, &DType::U8, &converted(&columns.codes, |[low, _]: [u8; 2]| [low]))?;
    } else {
        typed(writer, &DType::U16, &columns.codes)?;
    }
    writer.enter(1)?;
    writer.sink.head(head::ARRAY, variants.len() as u64)?;
    variants.iter().try_for_each(|variant| writer.sink.text(variant.name))?;
    if has_content {
        writer.sink.head(head::ARRAY, variants.len() as u64)?;
        for (variant, rows) in variants.iter().zip(columns.counts()) {
            match variant.form {
                node::Form::Unit => writer.sink.put([head::NULL])?,
                _ => column(writer, &variant.node, rows)?,
            }
        }
    }
    writer.leave(1)
}

fn column_of_items<O: Target>(writer: &mut Writer<O>, items: &Items) -> Result<()> {
    kind(writer, "rows", 1)?;
    writer.enter(1)?;
    // When the items were encoded, it was not known how deep the column is.
    if items.iter().any(|item| is_deeper(item, writer.depth)) {
        return Err(writer.too_deep());
    }
    writer.sink.head(head::ARRAY, items.ends.len() as u64)?;
    writer.sink.put_block(&items.bytes)?;
    writer.leave(1)
}

/// Writes the lengths of rows: one number if they are equal.
fn lengths<O: Target>(writer: &mut Writer<O>, lengths: &Lengths) -> Result<()> {
    if let Some(first) = lengths.iter().next()
        && lengths.iter().all(|len| len == first)
    {
        return writer.sink.head(head::UNSIGNED, u64::from(first));
    }
    match narrowed(Kind::U32, &lengths.0) {
        Some((kind, bytes)) => typed(writer, &kind.dtype(), &bytes),
        None => typed(writer, &DType::U32, &lengths.0),
    }
}

/// Writes bits, from one byte for each.
fn bits<O: Target>(writer: &mut Writer<O>, found: &Bytes) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_is_the_lowest() {
        for byte in 0..=u8::MAX {
            assert_eq!(packed(std::array::from_fn(|n| byte >> n & 1)), byte);
        }
    }

    #[test]
    fn gathers_parts_of_every_length() {
        macro_rules! check {
            ($($len:literal)*) => {$(
                let rows = [1, 2, 3].map(|row: u8| (row, [row + 10; $len], row + 20));
                let mut fixed = Fixed::like(&rows[0]).unwrap();
                assert!(rows.iter().all(|row| fixed.push(row)));
                let expected: Vec<u8> = rows.iter().flat_map(|(_, part, _)| *part).collect();
                assert_eq!(*gather(&fixed, 1, $len).joined(), expected);
            )*};
        }
        check!(1 2 3 4 8 12 16 24 32);
    }
}
