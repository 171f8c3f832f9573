//! Rows of numbers and bools that all have the same form, such as points and triangles.
//!
//! Such rows are collected as in the memory of a struct: one number after the other, row by row. Adding a row takes no
//! branches. Each number is written where the one before it ended, and its type and name are mixed into a signature.
//! Only at the end of the row, the signature is compared with that of the first row.

use std::fmt;

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

use crate::handoff::name;
use crate::mem::{self, NewRow};
use crate::ser::delegate::{elements, fields};
use crate::ser::pack::Kind;
use crate::serde_model::{for_each_number, refuse};

/// Rows with more bytes than this are not collected in this way.
const MAX_WIDTH: usize = 248;
/// The number of bytes that are reserved for the first rows. Later, the memory is doubled, but by at most `MAX_STEP`
/// bytes.
const FIRST_STEP: usize = 512;
const MAX_STEP: usize = 64 << 10;

/// Rows of the same form.
pub struct Fixed {
    pub form: Form,
    /// The length of a row in bytes.
    pub width: usize,
    /// The signature of the first row that was added. It stays when the rows are removed.
    signature: Option<Signature>,
    /// The rows, from `base` on.
    bytes: Vec<u8>,
    base: usize,
    pub rows: usize,
}

/// The form of a row, with the offset of each number in it.
#[derive(Debug, PartialEq)]
pub enum Form {
    Bool(usize),
    Number(Kind, usize),
    Tuple(Vec<Form>),
    Struct(Vec<(&'static str, Form)>),
}

impl Fixed {
    /// Returns an empty collection for rows of the form of this value. `None` if the value is a single number, has no
    /// bytes or too many, or does not consist of numbers.
    pub fn like<T: Serialize + ?Sized>(value: &T) -> Option<Self> {
        let mut width = 0;
        let form = value.serialize(Learn(&mut width)).ok()?;
        let is_one = matches!(form, Form::Bool(_) | Form::Number(..));
        if is_one || width == 0 || width > MAX_WIDTH {
            return None;
        }
        Some(Self { form, width, signature: None, bytes: Vec::new(), base: 0, rows: 0 })
    }

    /// Continues to collect the rows in this vector, in which they start at `base`.
    pub fn place(&mut self, bytes: Vec<u8>, base: usize) {
        self.base = base;
        self.bytes = bytes;
    }

    /// Returns the vector with the rows at its end, and the offset at which they start.
    pub fn take(&mut self) -> (Vec<u8>, usize) {
        (std::mem::take(&mut self.bytes), std::mem::take(&mut self.base))
    }

    /// The bytes of all rows.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.base..).unwrap_or_default()
    }

    /// Adds rows as long as they have the form of the first one. Returns the first row of another form.
    #[inline(always)]
    pub fn extend<I>(&mut self, next: I::Item, iter: &mut I, max: usize) -> Option<I::Item>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        next.add_with(iter, self, max)
    }

    /// Adds one row. Returns whether it has the form of the first one.
    #[inline(always)]
    pub fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> bool {
        let mut signature = None;
        let done = mem::append_rows(&mut self.bytes, self.width, 1, |room| {
            signature = value.serialize(Row::<false> { room, signature: Signature::NEW }).ok();
            signature.is_some() && (self.signature.is_none() || self.signature == signature)
        });
        self.signature = self.signature.or(signature);
        self.rows += done;
        done == 1
    }

    /// The number of rows for which to reserve memory next.
    fn step(&self) -> usize {
        self.bytes().len().clamp(FIRST_STEP, MAX_STEP) / self.width
    }

    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
        self.bytes.truncate(self.base + self.rows * self.width);
    }
}

/// The loop over rows.
///
/// In it, the compiler must inline everything that a row consists of. Then the signature is a constant, and a row takes
/// one instruction for each number. The compiler inlines a function of that length only if nothing else calls it, and
/// if it is in the same unit of code. So this is a trait's method, which is compiled beside the `Serialize` of its type,
/// and [`Row`] has a type that only this loop uses.
trait Rows: Serialize + Sized {
    /// Adds this row and those that follow: see [`Fixed::extend`].
    fn add_with<I: Iterator<Item = Self>>(
        self,
        iter: &mut I,
        fixed: &mut Fixed,
        max: usize,
    ) -> Option<Self>;
}

impl<T: Serialize> Rows for T {
    #[inline(never)]
    fn add_with<I: Iterator<Item = Self>>(
        self,
        iter: &mut I,
        fixed: &mut Fixed,
        max: usize,
    ) -> Option<Self> {
        let Some(signature) = fixed.signature else { return Some(self) };
        let mut next = Some(self);
        while fixed.rows < max && next.is_some() {
            let step = fixed.step().min(max - fixed.rows);
            let done = mem::append_rows(&mut fixed.bytes, fixed.width, step, |room| {
                let Some(value) = &next else { return false };
                let found = value.serialize(Row::<true> { room, signature: Signature::NEW });
                let is_like = found.ok() == Some(signature);
                if is_like {
                    next = iter.next();
                }
                is_like
            });
            fixed.rows += done;
            if done < step {
                break;
            }
        }
        next
    }
}

impl Form {
    /// The type of all numbers, if they have the same.
    pub fn uniform(&self) -> Option<Kind> {
        fn of_all<'a>(mut forms: impl Iterator<Item = &'a Form>) -> Option<Kind> {
            let first = forms.next()?.uniform()?;
            forms.all(|form| form.uniform() == Some(first)).then_some(first)
        }
        match self {
            Self::Bool(_) => None,
            Self::Number(kind, _) => Some(*kind),
            Self::Tuple(forms) => of_all(forms.iter()),
            Self::Struct(fields) => of_all(fields.iter().map(|(_, form)| form)),
        }
    }
}

/// A number that stands for the types and names in a row, or in its first part.
///
/// Of all that is computed here, only an addition and a rotation for each number wait for what was before it. If the
/// compiler does not inline a row into the loop, these take most of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature(u64);

const TUPLE: u64 = 0x100;
const STRUCT: u64 = 0x200;
const BOOL: u64 = 0x300;

impl Signature {
    const NEW: Self = Self(0);

    /// Adds a number, or the beginning of a compound.
    #[inline(always)]
    fn with(self, kind: u64) -> Self {
        // The factor is odd and has irregular bits. The rotation makes the order count.
        let kind = (kind + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(self.0.wrapping_add(kind).rotate_left(23))
    }

    /// Adds a name. Its address and length stand for it, as different names have different ones.
    #[inline(always)]
    fn named(self, name: &'static str) -> Self {
        let name = name.as_ptr().addr() as u64 ^ (name.len() as u64) << 48;
        Self(self.0.wrapping_add(name))
    }

    #[inline(always)]
    fn end(self) -> Self {
        Self(self.0.rotate_left(7))
    }
}

/// Writes a row. The result is the signature of the types and names in it. The constant makes the row of a loop a type of
/// its own: see [`Rows`].
struct Row<'a, 'r, const IN_LOOP: bool> {
    room: &'a mut NewRow<'r>,
    /// The signature of the part of the row that was written before.
    signature: Signature,
}

impl<const IN_LOOP: bool> Row<'_, '_, IN_LOOP> {
    #[allow(clippy::unnecessary_wraps)] // serde needs a `Result`.
    #[inline(always)]
    fn leaf<const N: usize>(self, kind: u64, bytes: [u8; N]) -> Result<Signature, Unlike> {
        self.room.put(bytes);
        Ok(self.signature.with(kind))
    }

    #[inline(always)]
    fn begin(self, kind: u64) -> Self {
        Self { signature: self.signature.with(kind), ..self }
    }

    #[inline(always)]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unlike> {
        self.signature =
            value.serialize(Row::<IN_LOOP> { room: &mut *self.room, signature: self.signature })?;
        Ok(())
    }

    #[inline(always)]
    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Unlike> {
        self.signature = self.signature.named(key);
        self.element(value)
    }

    #[allow(clippy::unnecessary_wraps)] // `elements!` needs a `Result`.
    #[inline(always)]
    fn finish(self) -> Result<Signature, Unlike> {
        Ok(self.signature.end())
    }
}

/// The error for a value that is not a row of numbers.
#[derive(Debug)]
pub struct Unlike;

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a row of numbers")
    }
}

impl std::error::Error for Unlike {}

impl serde::ser::Error for Unlike {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// The methods that a row of numbers does not need.
macro_rules! unlike {
    () => {
        type SerializeTupleVariant = Impossible<Self::Ok, Unlike>;
        type SerializeMap = Impossible<Self::Ok, Unlike>;
        type SerializeStructVariant = Impossible<Self::Ok, Unlike>;

        refuse!(Unlike; scalars bytes seq);

        fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<Self::Ok, Unlike> {
            Err(Unlike)
        }

        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<Self::Ok, Unlike> {
            Err(Unlike)
        }

        fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Unlike> {
            Err(Unlike)
        }

        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, Unlike> {
            Err(Unlike)
        }

        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, Unlike> {
            Err(Unlike)
        }

        fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<Self::Ok, Unlike> {
            Err(Unlike)
        }

        #[inline(always)]
        fn is_human_readable(&self) -> bool {
            false
        }
    };
}

macro_rules! numbers {
    ($($kind:ident $type:ty, $method:ident;)*) => {$(
        #[inline(always)]
        fn $method(self, value: $type) -> Result<Self::Ok, Unlike> {
            self.number(Kind::$kind, value.to_le_bytes())
        }
    )*};
}

impl<const IN_LOOP: bool> Row<'_, '_, IN_LOOP> {
    #[inline(always)]
    fn number<const N: usize>(self, kind: Kind, bytes: [u8; N]) -> Result<Signature, Unlike> {
        self.leaf(kind as u64, bytes)
    }
}

impl<const IN_LOOP: bool> Serializer for Row<'_, '_, IN_LOOP> {
    type Ok = Signature;
    type Error = Unlike;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeStruct = Self;

    for_each_number!(numbers);
    unlike!();

    #[inline(always)]
    fn serialize_bool(self, value: bool) -> Result<Signature, Unlike> {
        self.leaf(BOOL, [value.into()])
    }

    #[inline(always)]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Signature, Unlike> {
        if name::is_ours(name) { Err(Unlike) } else { value.serialize(self) }
    }

    #[inline(always)]
    fn serialize_tuple(self, _: usize) -> Result<Self, Unlike> {
        Ok(self.begin(TUPLE))
    }

    #[inline(always)]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Unlike> {
        Ok(self.begin(TUPLE))
    }

    #[inline(always)]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unlike> {
        Ok(self.begin(STRUCT))
    }
}

elements! {
    impl[const IN_LOOP: bool] for Row<'_, '_, IN_LOOP>: Signature, Unlike;
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field
}

fields! {
    impl[const IN_LOOP: bool] for Row<'_, '_, IN_LOOP>: Signature, Unlike;
    SerializeStruct with skip
}

/// A field that some rows do not have.
fn skip<T>(_: &mut T, _: &'static str) -> Result<(), Unlike> {
    Err(Unlike)
}

/// Finds out the form of a row. The field counts the bytes of the row so far.
struct Learn<'a>(&'a mut usize);

impl Learn<'_> {
    fn number<const N: usize>(self, kind: Kind, bytes: [u8; N]) -> Result<Form, Unlike> {
        self.leaf(bytes, |at| Form::Number(kind, at))
    }

    fn leaf<const N: usize>(
        self,
        _: [u8; N],
        form: impl FnOnce(usize) -> Form,
    ) -> Result<Form, Unlike> {
        let at = *self.0;
        *self.0 += N;
        if *self.0 > MAX_WIDTH { Err(Unlike) } else { Ok(form(at)) }
    }
}

impl<'a> Serializer for Learn<'a> {
    type Ok = Form;
    type Error = Unlike;
    type SerializeTuple = LearnTuple<'a>;
    type SerializeTupleStruct = LearnTuple<'a>;
    type SerializeStruct = LearnStruct<'a>;

    for_each_number!(numbers);
    unlike!();

    fn serialize_bool(self, _: bool) -> Result<Form, Unlike> {
        self.leaf([0], Form::Bool)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Form, Unlike> {
        if name::is_ours(name) { Err(Unlike) } else { value.serialize(self) }
    }

    fn serialize_tuple(self, _: usize) -> Result<LearnTuple<'a>, Unlike> {
        Ok(LearnTuple { width: self.0, forms: Vec::new() })
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<LearnTuple<'a>, Unlike> {
        self.serialize_tuple(len)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<LearnStruct<'a>, Unlike> {
        Ok(LearnStruct { width: self.0, fields: Vec::new() })
    }
}

struct LearnTuple<'a> {
    width: &'a mut usize,
    forms: Vec<Form>,
}

impl LearnTuple<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unlike> {
        self.forms.push(value.serialize(Learn(&mut *self.width))?);
        Ok(())
    }

    fn finish(self) -> Result<Form, Unlike> {
        // A row without bytes is a column of another kind.
        if self.forms.is_empty() { Err(Unlike) } else { Ok(Form::Tuple(self.forms)) }
    }
}

elements! {
    impl[] for LearnTuple<'_>: Form, Unlike;
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field
}

struct LearnStruct<'a> {
    width: &'a mut usize,
    fields: Vec<(&'static str, Form)>,
}

impl LearnStruct<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Unlike> {
        let form = value.serialize(Learn(&mut *self.width))?;
        self.fields.push((key, form));
        Ok(())
    }

    fn finish(self) -> Result<Form, Unlike> {
        if self.fields.is_empty() { Err(Unlike) } else { Ok(Form::Struct(self.fields)) }
    }
}

fields! {
    impl[] for LearnStruct<'_>: Form, Unlike;
    SerializeStruct with skip
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const NAMES: [&str; 3] = ["x", "y", "position"];

    /// The signatures of `begun`, and of it with up to `more` further numbers of every type, in compounds of up to
    /// `levels` levels. Every signature is of another row.
    fn all(begun: Signature, more: usize, levels: usize, found: &mut Vec<Signature>) {
        found.push(begun);
        if more == 0 {
            return;
        }
        for kind in (0..=Kind::F64 as u64).chain([BOOL]) {
            all(begun.with(kind), more - 1, levels, found);
            for name in NAMES {
                all(begun.named(name).with(kind), more - 1, levels, found);
            }
        }
        if levels > 0 {
            for (named, compound) in [(begun, TUPLE), (begun, STRUCT)]
                .into_iter()
                .chain(NAMES.map(|name| (begun.named(name), STRUCT)))
            {
                let mut inner = Vec::new();
                all(named.with(compound), more - 1, levels - 1, &mut inner);
                // The first one has no number.
                found.extend(inner.into_iter().skip(1).map(Signature::end));
            }
        }
    }

    #[test]
    fn different_rows_have_different_signatures() {
        let mut found = Vec::new();
        all(Signature::NEW.with(STRUCT), 3, 2, &mut found);
        let ended = found.iter().map(|signature| signature.end());
        let distinct: HashSet<Signature> = ended.collect();
        assert_eq!(distinct.len(), found.len());
        assert!(found.len() > 50_000);
    }
}
