//! Computes the statistics of a group (`SPEC.md`, section 5.13) from its collected columns.

use half::f16;

use super::builder::{ColumnBuilder, EnumBuilder, NumbersBuilder, StringsBuilder, VariantForm};
use super::bytes::Bytes;
use crate::ser::kind::Kind;
use crate::wire::statistics::{Bound, ByPath, KEPT, Statistic};

/// What is known about the columns of a group of `rows` rows.
pub fn of_group(node: &ColumnBuilder, rows: usize) -> ByPath<Statistic> {
    let mut group = Group { rows, path: Vec::new(), found: ByPath::new() };
    group.column(node);
    group.found
}

struct Group<'n> {
    rows: usize,
    /// The names that lead to the current column.
    path: Vec<&'n str>,
    found: ByPath<Statistic>,
}

/// How many numbers are NaN, and between which bounds the others are.
type Summary = (usize, Option<Bound>, Option<Bound>);

impl<'n> Group<'n> {
    fn column(&mut self, node: &'n ColumnBuilder) {
        let (nans, least, greatest) = match node {
            ColumnBuilder::Struct(columns) => {
                columns.fields.iter().for_each(|field| self.field(field.name(), &field.node));
                return;
            }
            ColumnBuilder::Optional(optional) | ColumnBuilder::Present(optional) => {
                return self.column(&optional.node);
            }
            ColumnBuilder::Typed(typed) => return self.column(&typed.node),
            ColumnBuilder::Misfit(node) => return self.column(node),
            ColumnBuilder::Empty | ColumnBuilder::Unit(_) => return self.add(0, (0, None, None)),
            ColumnBuilder::Bools(bits) => {
                let (_, least, greatest) = integers(bits, u8::from_le_bytes);
                let bool = |bound| match bound {
                    Bound::Integer(value) => Bound::Bool(value != 0),
                    bound => bound,
                };
                (0, least.map(bool), greatest.map(bool))
            }
            ColumnBuilder::Numbers(numbers) => of_numbers(numbers),
            ColumnBuilder::Halves(bytes) => {
                floats(bytes, |half| f16::from_le_bytes(half).to_f32(), f32::INFINITY)
            }
            // A dict has each string that occurs once.
            ColumnBuilder::Strings(strings) => {
                of_strings(strings.dict().map_or(strings, |dict| &dict.strings))
            }
            ColumnBuilder::Enum(columns) => {
                for variant in &columns.variants {
                    if variant.form != VariantForm::Unit {
                        self.field(variant.name(), &variant.node);
                    }
                }
                of_names(columns)
            }
            ColumnBuilder::Tensors(_)
            | ColumnBuilder::List(_)
            | ColumnBuilder::Map(_)
            | ColumnBuilder::Tuple(_)
            | ColumnBuilder::Items(_) => return,
        };
        self.add(node.rows(), (nans, least, greatest));
    }

    fn field(&mut self, name: &'n str, node: &'n ColumnBuilder) {
        self.path.push(name);
        self.column(node);
        self.path.pop();
    }

    /// Adds what is known about the current column, of which so many rows are not null.
    fn add(&mut self, present: usize, (nans, least, greatest): Summary) {
        if self.path.is_empty() {
            return;
        }
        let nulls = self.rows.saturating_sub(present) as u64;
        let (rows, nans) = (self.rows as u64, nans as u64);
        let path = self.path.iter().map(|name| (*name).to_owned()).collect();
        self.found.insert(path, Statistic { rows, nulls, nans, least, greatest });
    }
}

fn of_numbers(numbers: &NumbersBuilder) -> Summary {
    let bytes = &numbers.bytes;
    match numbers.kind {
        Kind::U8 => integers(bytes, u8::from_le_bytes),
        Kind::U16 => integers(bytes, u16::from_le_bytes),
        Kind::U32 => integers(bytes, u32::from_le_bytes),
        Kind::U64 => integers(bytes, u64::from_le_bytes),
        Kind::I8 => integers(bytes, i8::from_le_bytes),
        Kind::I16 => integers(bytes, i16::from_le_bytes),
        Kind::I32 => integers(bytes, i32::from_le_bytes),
        Kind::I64 => integers(bytes, i64::from_le_bytes),
        Kind::F32 => floats(bytes, f32::from_le_bytes, f32::INFINITY),
        Kind::F64 => floats(bytes, f64::from_le_bytes, f64::INFINITY),
    }
}

fn integers<const N: usize, T: Copy + Ord + Into<i128>>(
    bytes: &Bytes,
    number: impl Fn([u8; N]) -> T + Copy,
) -> Summary {
    let Some(first) = bytes.words().next().map(number) else { return (0, None, None) };
    let (mut least, mut greatest) = (first, first);
    for piece in bytes.pieces() {
        for word in piece.as_chunks().0 {
            let number = number(*word);
            least = least.min(number);
            greatest = greatest.max(number);
        }
    }
    (0, Some(Bound::Integer(least.into())), Some(Bound::Integer(greatest.into())))
}

/// How many floats are compared side by side. In any other order than theirs, the compiler may not compare them.
const LANES: usize = 8;

fn floats<const N: usize, T: Copy + PartialOrd + Into<f64> + std::ops::Neg<Output = T>>(
    bytes: &Bytes,
    number: impl Fn([u8; N]) -> T,
    infinity: T,
) -> Summary {
    let (mut least, mut greatest) = ([infinity; LANES], [-infinity; LANES]);
    let mut nans = [0u32; LANES];
    let mut add = |words: &[[u8; N]]| {
        let lanes = least.iter_mut().zip(&mut greatest).zip(&mut nans);
        for (word, ((least, greatest), nans)) in words.iter().zip(lanes) {
            let number = number(*word);
            // Comparisons with NaN are false.
            *least = if number < *least { number } else { *least };
            *greatest = if number > *greatest { number } else { *greatest };
            #[allow(clippy::eq_op)]
            let is_nan = number != number;
            *nans += u32::from(is_nan);
        }
    };
    for piece in bytes.pieces() {
        let (blocks, rest) = piece.as_chunks::<N>().0.as_chunks::<LANES>();
        for words in blocks {
            add(words);
        }
        add(rest);
    }
    let nans = nans.iter().map(|&nans| nans as usize).sum();
    if nans * N == bytes.len() {
        return (nans, None, None);
    }
    let least = least.into_iter().map(Into::into).fold(f64::INFINITY, f64::min);
    let greatest = greatest.into_iter().map(Into::into).fold(f64::NEG_INFINITY, f64::max);
    (nans, Some(Bound::Float(least)), Some(Bound::Float(greatest)))
}

/// The start of a string: its first bytes, big-endian, with zeros behind a shorter string; and in the last byte its length, or
/// one more than the bytes here. The order of starts is that of the strings, as far as these show it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Start(u128);

/// For each length, ones where the bytes of the string are.
const BYTES: [u128; KEPT + 2] = {
    let mut masks = [!0xff; KEPT + 2];
    let mut len = 0;
    while len < KEPT {
        masks[len] = !(u128::MAX >> (8 * len));
        len += 1;
    }
    masks
};

impl Start {
    /// `from` begins with the string of this length, and goes on behind it where it can: 16 bytes are then loaded at once.
    #[inline]
    fn of(from: &[u8], len: usize) -> Self {
        let bytes = match from.first_chunk() {
            Some(bytes) => u128::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; KEPT + 1];
                bytes.iter_mut().zip(from).for_each(|(place, byte)| *place = *byte);
                u128::from_be_bytes(bytes)
            }
        };
        let len = len.min(KEPT + 1);
        Self(bytes & BYTES[len] | len as u128)
    }

    /// Calls `make` with the first bytes, and another one if they are not all.
    fn bound<B>(self, make: impl Fn(&[u8]) -> B) -> B {
        let bytes = self.0.to_be_bytes();
        let [_, .., len] = bytes;
        make(bytes.get(..len.into()).unwrap_or_default())
    }
}

// By itself, it has enough registers.
#[inline(never)]
fn of_strings(strings: &StringsBuilder) -> Summary {
    let mut pieces = strings.bytes.pieces();
    let mut rest: &[u8] = &[];
    // No string is above the first of these or below the second one.
    let (mut least, mut greatest) = (Start(u128::MAX), Start(0));
    for lengths in strings.lengths.0.pieces() {
        for &len in lengths.as_chunks().0 {
            let len = u32::from_le_bytes(len) as usize;
            while rest.is_empty() && len > 0 {
                let Some(next) = pieces.next() else { return (0, None, None) };
                rest = next;
            }
            let start = Start::of(rest, len);
            // Most strings are neither.
            if start < least {
                least = start;
            }
            if start > greatest {
                greatest = start;
            }
            let Some(next) = rest.get(len..) else { return (0, None, None) };
            rest = next;
        }
    }
    if strings.lengths.rows() == 0 {
        return (0, None, None);
    }
    let is_text = strings.is_text;
    let least = least.bound(|start| Bound::below(start, is_text));
    (0, Some(least), greatest.bound(|start| Bound::above(start, is_text)))
}

/// The names of the variants that occur.
fn of_names(columns: &EnumBuilder) -> Summary {
    let counted = columns.variants.iter().zip(columns.counts());
    let names =
        counted.filter(|(_, count)| *count > 0).map(|(variant, _)| variant.name().as_bytes());
    let least = names.clone().min().map(|name| Bound::below(name, true));
    (0, least, names.max().and_then(|name| Bound::above(name, true)))
}
