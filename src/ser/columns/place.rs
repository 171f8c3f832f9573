//! Collects the largest column of a group directly in the output.
//!
//! Columns are collected in pieces and copied to the output when their group ends. If most bytes belong to one column,
//! such as one of embeddings, that column is collected in the output itself instead, behind a gap for everything that
//! is written before it. How large the gap must be is known only when the group ends. It is predicted from the first
//! rows, as if all rows were like these. If the prediction was wrong, the column is moved by the difference. This is
//! still less work than a copy from other memory.

use super::builder::{ColumnBuilder, LengthsBuilder};
use super::bytes::Bytes;
use super::dict::Dict;
use super::narrow::narrowed;
use crate::mem::Short;
use crate::ser::kind::Kind;

/// Smaller columns are not placed in the output.
pub const MIN_BYTES: usize = 1 << 20;
/// The length of the head of an array with fewer than 24 items. The array around a column and the shape of a tensor are
/// such arrays.
const SHORT: usize = 1;
/// The length of the tag of a typed array.
const TYPED: usize = 2;

impl ColumnBuilder {
    /// Returns the memory of the largest column whose bytes are written as they were collected.
    pub fn largest(&mut self) -> Option<&mut Bytes> {
        fn of<'a>(nodes: impl Iterator<Item = &'a mut ColumnBuilder>) -> Option<&'a mut Bytes> {
            nodes
                .filter_map(ColumnBuilder::largest)
                .max_by_key(|bytes| (bytes.is_placed(), bytes.len()))
        }
        match self {
            Self::Strings(strings) => Some(&mut strings.bytes),
            Self::Tensors(tensors) => Some(&mut tensors.bytes),
            Self::List(list) => match &mut list.node {
                Self::Misfit(node) => node.elements(),
                node => node.elements(),
            },
            Self::Misfit(node) => node.largest(),
            Self::Optional(optional) | Self::Present(optional) => optional.node.largest(),
            // Numbers in a tuple of nothing else may be written in another order.
            Self::Tuple(tuple) if tuple.nodes.iter().all(Self::may_be_numbers) => None,
            Self::Tuple(tuple) => of(tuple.nodes.iter_mut()),
            Self::Struct(columns) => of(columns.fields.iter_mut().map(|field| &mut field.node)),
            _ => None,
        }
    }

    /// Whether the [largest](Self::largest) column is one of strings that is written as a dict.
    pub fn is_largest_a_dict(&mut self) -> bool {
        let Some(largest) = self.largest().map(|bytes| std::ptr::from_ref(bytes)) else {
            return false;
        };
        self.any(&|node| match node {
            Self::Strings(strings) => {
                std::ptr::eq(largest, &raw const strings.bytes) && strings.dict().is_some()
            }
            _ => false,
        })
    }

    fn may_be_numbers(&self) -> bool {
        match self {
            Self::Numbers(_) | Self::Bools(_) => true,
            Self::List(list) => list.node.may_be_numbers(),
            Self::Tuple(tuple) => tuple.nodes.iter().all(Self::may_be_numbers),
            Self::Misfit(node) => node.may_be_numbers(),
            _ => false,
        }
    }

    /// Like [`ColumnBuilder::largest`], for a column of the elements of lists. Numbers outside of lists are not included,
    /// because they may be written in another order.
    fn elements(&mut self) -> Option<&mut Bytes> {
        match self {
            Self::Numbers(numbers) => is_never_narrowed(numbers.kind).then_some(&mut numbers.bytes),
            node => node.largest(),
        }
    }
}

fn is_never_narrowed(kind: Kind) -> bool {
    matches!(kind, Kind::F32 | Kind::F64 | Kind::U8 | Kind::I8)
}

/// Predicts how many bytes are written before the payload of a column.
pub struct Prediction {
    /// The memory of the column. Only its address is used, to recognize the column.
    of: *const Bytes,
    /// The number of rows that were collected, and the number that is expected.
    now: usize,
    then: usize,
    size: usize,
}

impl Prediction {
    /// Predicts the number of bytes before the payload of the largest column, in a group of `then` rows that are like
    /// the `now` rows in `node`. `heads` is the number of bytes before the number of rows.
    pub fn of_largest(node: &mut ColumnBuilder, now: usize, then: usize, heads: usize) -> usize {
        let of = node.largest().map_or(std::ptr::null(), |bytes| std::ptr::from_ref(bytes));
        let mut prediction = Self { of, now, then, size: heads };
        prediction.head(then);
        prediction.add(node);
        prediction.size
    }

    /// Adds the bytes that are written for this column, up to the payload. Returns whether this column contains the
    /// payload. The count follows what `super::emit` writes. It is only an estimate for kinds of columns that are rare
    /// before a large one.
    fn add(&mut self, node: &ColumnBuilder) -> bool {
        match node {
            ColumnBuilder::Numbers(numbers) => {
                let narrow = narrowed(numbers.kind, &numbers.bytes).map(|(_, bytes)| bytes);
                self.size += TYPED;
                narrow.is_none() && self.is_payload(&numbers.bytes)
                    || self.bytes(narrow.as_ref().unwrap_or(&numbers.bytes).len())
            }
            ColumnBuilder::Strings(strings) => {
                let is_it = std::ptr::eq(self.of, &raw const strings.bytes);
                let dict = if is_it { None } else { Dict::of(strings) };
                if let Some(Dict { strings: distinct, .. }) = dict {
                    self.kind("dict");
                    self.size += TYPED;
                    self.bytes(strings.lengths.rows());
                    self.head(distinct.lengths.rows());
                    self.kind(if strings.is_text { "text" } else { "bytes" });
                    self.lengths(&distinct.lengths);
                    self.head(distinct.bytes.len());
                    self.size += distinct.bytes.len();
                    return false;
                }
                self.kind(if strings.is_text { "text" } else { "bytes" });
                self.lengths(&strings.lengths);
                self.is_payload(&strings.bytes) || self.bytes(strings.bytes.len())
            }
            ColumnBuilder::Tensors(tensors) => {
                // The tag, the array, the shape and the tag of the typed array.
                self.size += TYPED + SHORT + SHORT + TYPED;
                self.head(self.scaled(tensors.rows));
                tensors.meta.shape.iter().for_each(|&len| self.head(len));
                self.is_payload(&tensors.bytes) || self.bytes(tensors.bytes.len())
            }
            ColumnBuilder::List(list) => {
                self.kind(if list.lengths.same().is_some() { "array" } else { "list" });
                self.lengths(&list.lengths);
                self.add(&list.node)
            }
            ColumnBuilder::Bools(bits) => {
                self.kind("bool");
                self.bits(bits)
            }
            ColumnBuilder::Optional(optional) => {
                self.kind("option");
                self.bits(&optional.bits);
                self.add(&optional.node)
            }
            ColumnBuilder::Tuple(tuple) if tuple.is_array => {
                self.kind("array");
                self.head(tuple.len);
                tuple.nodes.iter().any(|node| self.add(node))
            }
            ColumnBuilder::Tuple(tuple) => {
                self.kind("tuple");
                self.head(tuple.nodes.len());
                tuple.nodes.iter().any(|node| self.add(node))
            }
            ColumnBuilder::Struct(columns) => {
                self.head(columns.fields.len());
                columns.fields.iter().any(|field| {
                    self.head(field.name().len());
                    self.size += field.name().len();
                    self.add(&field.node)
                })
            }
            node => self.bytes(node.size()),
        }
    }

    fn scaled(&self, count: usize) -> usize {
        count.saturating_mul(self.then) / self.now.max(1)
    }

    /// Adds the head of an item with this argument.
    fn head(&mut self, argument: usize) {
        self.size += Short::head(0, argument as u64).bytes().1;
    }

    fn kind(&mut self, name: &str) {
        self.size += SHORT;
        self.head(name.len());
        self.size += name.len();
    }

    /// Whether this is the predicted column. If so, adds its head, which is the last part before the payload.
    fn is_payload(&mut self, bytes: &Bytes) -> bool {
        let is_it = std::ptr::eq(self.of, bytes);
        if is_it {
            self.head(self.scaled(bytes.len()));
        }
        is_it
    }

    /// Adds a string that has `len` bytes now.
    fn bytes(&mut self, len: usize) -> bool {
        let len = self.scaled(len);
        self.head(len);
        self.size += len;
        false
    }

    fn bits(&mut self, bits: &Bytes) -> bool {
        let len = self.scaled(bits.len()).div_ceil(8);
        self.head(len);
        self.size += len;
        false
    }

    fn lengths(&mut self, lengths: &LengthsBuilder) {
        if let Some(len) = lengths.same() {
            return self.head(len as usize);
        }
        let narrow = narrowed(Kind::U32, &lengths.0).map(|(_, bytes)| bytes);
        self.size += TYPED;
        self.bytes(narrow.as_ref().unwrap_or(&lengths.0).len());
    }
}

/// A part of the output, with a column at its end.
pub struct Placed {
    pub output: Vec<u8>,
    /// The length of what was written before this group.
    pub before: usize,
    /// The offset of the column in the output.
    pub start: usize,
}

impl Placed {
    /// Inserts the bytes before the column, and appends those behind it.
    pub fn join(self, before: &[u8], behind: &[u8]) -> Vec<u8> {
        let Self { mut output, before: at, start } = self;
        let (wanted, len) = (at + before.len(), output.len());
        if wanted > start {
            output.resize(len + (wanted - start), 0);
        }
        output.copy_within(start..len, wanted);
        output.truncate(wanted + (len - start));
        if let Some(gap) = output.get_mut(at..wanted) {
            gap.copy_from_slice(before);
        }
        output.extend_from_slice(behind);
        output
    }

    /// Returns the output as it was before this group.
    pub fn undo(mut self) -> Vec<u8> {
        self.output.truncate(self.before);
        self.output
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;
    use crate::io::sink::Memory;
    use crate::options::EncodeOptions;
    use crate::ser::columns::emit;
    use crate::ser::columns::fill::At;
    use crate::wire::head;
    use crate::wire::writer::WriterTo;

    fn node<T: Serialize>(row: &T, rows: usize) -> ColumnBuilder {
        let mut node = ColumnBuilder::Empty;
        for _ in 0..rows {
            node.put(row, At { level: 0, options: &EncodeOptions::default() }).unwrap();
        }
        node
    }

    #[track_caller]
    fn check<T: Serialize>(row: &T) {
        for (now, then) in [(1, 1), (16, 16), (16, 23), (16, 24), (16, 5000), (17, 65536)] {
            let mut many = node(row, then);
            many.largest().unwrap().place(Vec::new());
            let mut writer = WriterTo::to(Vec::new(), Memory::growing(), EncodeOptions::default());
            writer.head(head::UNSIGNED, then as u64).unwrap();
            emit::column(writer.writer(), &many, then).unwrap();
            let (.., written) = many.largest().unwrap().take_placed().unwrap();
            let predicted = Prediction::of_largest(&mut node(row, now), now, then, 0);
            assert_eq!(Some(predicted as u64), written, "{now} rows, then {then}");
        }
    }

    #[test]
    fn predicts_the_bytes_before_a_column_if_rows_are_alike() {
        let floats = vec![1.5f32; 40];
        check(&(1u64, "label", &floats));
        check(&(70_000, (0.5, "label"), Some(true), &floats, "behind"));
        check(&(Some(300u16), false, -1i8, "*".repeat(300), vec![1u8, 2], floats));
        check(&(1i16, "text".repeat(30)));
        check(&(vec![vec![1.0; 3]; 2], -300_000, vec![vec!["text"; 9]; 8]));
    }
}
