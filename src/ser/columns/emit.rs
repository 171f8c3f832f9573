//! Writes collected columns as items (`SPEC.md`, section 3.1).

use std::borrow::Cow;

use super::inconsistent;
use super::node::{Enum, Form, Items, Node, Numbers, Strings, Tensors, Tuple, ones, sum};
use crate::dtype::DType;
use crate::error::Result;
use crate::meta::{Order, TensorMeta};
use crate::ser::pack::Kind;
use crate::shape::Shape;
use crate::wire::apart::{Apart, Target};
use crate::wire::head;
use crate::wire::writer::Writer;

/// Writes a column of `rows` rows.
pub fn column<O: Target>(writer: &mut Writer<O>, node: &Node, rows: usize) -> Result<()> {
    if node.rows() != rows {
        return Err(inconsistent());
    }
    match node {
        Node::Empty | Node::Unit(_) => kind(writer, "unit", 0)?,
        Node::Numbers(numbers) => return column_of_numbers(writer, numbers),
        Node::Tensors(tensors) => return column_of_tensors(writer, tensors),
        Node::Misfit(node) => return column(writer, node, rows),
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
            column(writer, &list.node, sum(&list.lengths))?;
        }
        Node::Map(map) => {
            kind(writer, "map", 3)?;
            lengths(writer, &map.lengths)?;
            let entries = sum(&map.lengths);
            column(writer, &map.keys, entries)?;
            column(writer, &map.values, entries)?;
        }
        Node::Tuple(tuple) => column_of_tuples(writer, tuple, rows)?,
        Node::Enum(columns) => column_of_enums(writer, columns)?,
        Node::Items(items) => column_of_items(writer, items)?,
    }
    writer.leave(1)
}

/// Begins a column that is an array of its kind and `more` items.
fn kind<O: Target>(writer: &mut Writer<O>, kind: &str, more: u64) -> Result<()> {
    writer.enter(1)?;
    writer.sink.head(head::ARRAY, 1 + more)?;
    writer.sink.text(kind)
}

fn column_of_numbers<O: Target>(writer: &mut Writer<O>, numbers: &Numbers) -> Result<()> {
    // In an archive, a column keeps the type that it has in Rust.
    if writer.sink.apart().is_none()
        && let Some((kind, bytes)) = numbers.kind.narrowed(&numbers.bytes)
    {
        return typed(writer, &kind.dtype(), &bytes);
    }
    typed(writer, &numbers.kind.dtype(), &numbers.bytes)
}

/// Writes a typed array, or a reference to one.
fn typed<O: Target>(writer: &mut Writer<O>, dtype: &DType, bytes: &[u8]) -> Result<()> {
    if let Some(number) = apart(writer, dtype, bytes)? {
        return writer.sink.numbers_reference(dtype, number);
    }
    writer.room(1)?;
    writer.sink.typed_array_head(dtype, bytes.len())?;
    writer.sink.put_block(bytes)
}

/// Writes a text or byte string, or a reference to one.
fn string<O: Target>(writer: &mut Writer<O>, major: u8, bytes: &[u8]) -> Result<()> {
    if let Some(number) = apart(writer, &DType::U8, bytes)? {
        return writer.sink.bytes_reference(number);
    }
    writer.sink.head(major, bytes.len() as u64)?;
    writer.sink.put_block(bytes)
}

/// Writes bytes to a buffer of their own, if they should be in one. Returns its number.
fn apart<O: Target>(writer: &mut Writer<O>, dtype: &DType, bytes: &[u8]) -> Result<Option<u64>> {
    let takes =
        |apart: &mut dyn Apart, written: &[u8]| apart.takes_block(written, dtype, bytes.len());
    let Some(apart) = writer.sink.apart_if(takes) else { return Ok(None) };
    if apart.begin(bytes.len())? {
        apart.put(bytes)?;
    }
    let number = apart.end()?;
    writer.room(2)?;
    Ok(Some(number))
}

fn column_of_tensors<O: Target>(writer: &mut Writer<O>, tensors: &Tensors) -> Result<()> {
    let shape =
        Shape::from_iter([tensors.rows].into_iter().chain(tensors.meta.shape.iter().copied()));
    let meta = TensorMeta::new(tensors.meta.dtype.clone(), shape, Order::C);
    let bytes = &*tensors.bytes;
    // The tag, the array, and the shape or another tag.
    writer.room(3 + usize::from(meta.dtype.is_complex()))?;
    let takes =
        |apart: &mut dyn Apart, written: &[u8]| apart.takes_tensor(written, &meta, bytes.len());
    if let Some(apart) = writer.sink.apart_if(takes) {
        if apart.begin(bytes.len())? {
            apart.put(bytes)?;
        }
        let number = apart.end()?;
        return writer.sink.tensor_reference(&meta, number);
    }
    writer.sink.tensor_head(&meta.dtype, &meta.shape, meta.order, bytes.len())?;
    writer.sink.put_block(bytes)
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
        return writer.leave(1);
    };
    // Numbers of one type: lists of a fixed length, so that all of them are one typed array.
    for &dim in &dims {
        kind(writer, "list", 2)?;
        writer.sink.head(head::UNSIGNED, dim as u64)?;
    }
    let bytes = interleaved(tuple, kind_of_all.size(), rows);
    column_of_numbers(writer, &Numbers { kind: kind_of_all, bytes })?;
    // The caller leaves the first level.
    writer.leave(dims.len() - 1)
}

/// If a tuple has only numbers of one type, also in tuples inside it: the type, and the lengths from the
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

/// The numbers of a uniform tuple, row by row.
fn interleaved(tuple: &Tuple, size: usize, rows: usize) -> Vec<u8> {
    fn leaves<'a>(tuple: &'a Tuple, found: &mut Vec<&'a [u8]>) {
        for node in &tuple.nodes {
            match node {
                Node::Numbers(numbers) => found.push(&numbers.bytes),
                Node::Tuple(tuple) => leaves(tuple, found),
                _ => {}
            }
        }
    }
    let mut columns = Vec::new();
    leaves(tuple, &mut columns);
    let mut bytes = Vec::with_capacity(rows * size * columns.len());
    for row in 0..rows {
        for column in &columns {
            bytes.extend_from_slice(column.get(row * size..(row + 1) * size).unwrap_or_default());
        }
    }
    bytes
}

fn column_of_enums<O: Target>(writer: &mut Writer<O>, columns: &Enum) -> Result<()> {
    let variants = &columns.variants;
    let has_content = variants.iter().any(|variant| variant.form != Form::Unit);
    kind(writer, "enum", 2 + u64::from(has_content))?;
    if variants.len() <= 1 << 8 {
        #[allow(clippy::cast_possible_truncation)]
        let codes: Vec<u8> = columns.codes.iter().map(|&code| code as u8).collect();
        typed(writer, &DType::U8, &codes)?;
    } else {
        let codes: Vec<u8> = columns.codes.iter().flat_map(|code| code.to_le_bytes()).collect();
        typed(writer, &DType::U16, &codes)?;
    }
    writer.enter(1)?;
    writer.sink.head(head::ARRAY, variants.len() as u64)?;
    variants.iter().try_for_each(|variant| writer.sink.text(variant.name))?;
    if has_content {
        let mut counts = vec![0; variants.len()];
        for &code in &columns.codes {
            if let Some(count) = counts.get_mut(usize::from(code)) {
                *count += 1;
            }
        }
        writer.sink.head(head::ARRAY, variants.len() as u64)?;
        for (variant, rows) in variants.iter().zip(counts) {
            match variant.form {
                Form::Unit => writer.sink.put([head::NULL])?,
                _ => column(writer, &variant.node, rows)?,
            }
        }
    }
    writer.leave(1)
}

fn column_of_items<O: Target>(writer: &mut Writer<O>, items: &Items) -> Result<()> {
    kind(writer, "rows", 1)?;
    // The levels in the items were counted when they were encoded.
    writer.enter(1)?;
    writer.sink.head(head::ARRAY, items.ends.len() as u64)?;
    writer.sink.put_block(&items.bytes)?;
    writer.leave(1)
}

/// Writes the lengths of rows: one number if they are equal.
fn lengths<O: Target>(writer: &mut Writer<O>, lengths: &[u32]) -> Result<()> {
    if let [first, rest @ ..] = lengths
        && rest.iter().all(|len| len == first)
    {
        return writer.sink.head(head::UNSIGNED, u64::from(*first));
    }
    let bytes: Vec<u8> = lengths.iter().flat_map(|len| len.to_le_bytes()).collect();
    let (kind, bytes) = match Kind::U32.narrowed(&bytes) {
        Some((kind, bytes)) => (kind, Cow::Owned(bytes)),
        None => (Kind::U32, Cow::Borrowed(&*bytes)),
    };
    typed(writer, &kind.dtype(), &bytes)
}

/// Writes bits, from one byte for each.
fn bits<O: Target>(writer: &mut Writer<O>, found: &[u8]) -> Result<()> {
    let pack = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
    let bytes: Vec<u8> = found.chunks(8).map(pack).collect();
    string(writer, head::BYTES, &bytes)
}
