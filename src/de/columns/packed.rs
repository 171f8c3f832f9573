//! Reads rows of interleaved numbers as blocks of bytes.
//!
//! A type that consists of numbers asks for the same in each row: enter this struct, read so many numbers, leave it.
//! The first row is compared with the columns step by step. From then on, the numbers are taken from the block one
//! after the other, and everything that the type asks for is mixed into a signature. The signature is compared once for
//! each row. The parts that are mixed are constants, so that after inlining little is left of it.
//!
//! A row that asks for anything else is read again in the general way, as are rows with errors. This takes a second
//! seed. Only a seed of type `PhantomData` can be had twice: see [`mem::phantom`].

use std::any::type_name;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::needs_drop;

use serde::de::{self, DeserializeSeed, Visitor};
use serde::forward_to_deserialize_any;

use crate::handoff::name;
use crate::mem;
use crate::wire::columns::{
    BLOCK, Column, Kind, Known, MAX_NODES, Node, NumberType, Structs, is_derived, nodes,
};

/// Reads a row as a block. Returns the seed if the row has to be read in the general way.
#[inline(always)]
pub fn read_packed<'de, S: DeserializeSeed<'de>>(
    column: &mut Column<'de>,
    row: usize,
    seed: S,
) -> Result<S::Value, S> {
    // Types that own memory do not consist of numbers only. No code is compiled for them.
    if const { needs_drop::<S::Value>() || size_of::<S::Value>() > 4 * BLOCK } {
        return Err(seed);
    }
    let Kind::Structs(Structs { fields, packed: Some(packed), .. }) = &mut column.kind else {
        return Err(seed);
    };
    let (mut first, mut expected) = (None, 0);
    match packed.known {
        Known::Signature(signature) => expected = signature,
        Known::Nothing => match nodes(fields) {
            Some(nodes) => first = Some(FirstRow { nodes, entered: 0 }),
            None => packed.known = Known::Unusable,
        },
        Known::Unusable => {}
    }
    if let Known::Unusable = packed.known {
        return Err(seed);
    }
    let (Some(block), Some(again)) = (packed.block(row), mem::phantom::<S, S::Value>()) else {
        return Err(seed);
    };
    let kind = packed.kind;
    let mut cursor = Cursor {
        block,
        at: 0,
        kind,
        signature: 0,
        entered: 0,
        failed: false,
        first: first.as_mut(),
    };
    let result = seed.deserialize(Part(&mut cursor));
    let Cursor { at, signature, failed, .. } = cursor;
    let is_same = match first {
        None => signature == expected,
        Some(FirstRow { nodes, entered }) => {
            packed.known = Known::Signature(signature);
            entered == nodes.len()
        }
    };
    match result {
        Ok(value) if is_same && !failed && usize::from(at) == packed.stride => Ok(value),
        _ => {
            packed.known = Known::Unusable;
            Err(again)
        }
    }
}

/// Compares the first row with the columns.
struct FirstRow<'c> {
    nodes: Vec<Node<'c>>,
    /// The number of structs and tuples that were entered.
    entered: usize,
}

impl FirstRow<'_> {
    /// Enters a tuple of `len` elements, or the struct with these names. Returns whether the row has it.
    ///
    /// The structs and tuples must be entered in the right order, each in front of the right number, and each must have
    /// as many parts as are asked for. In the end, all must have been entered, and all numbers must have been taken.
    /// This is enough: it leaves no choice which part is a number, and which is a struct or tuple.
    #[cold]
    #[inline(never)]
    fn enter<V>(&mut self, at: u8, len: usize, names: Option<&'static [&'static str]>) -> bool {
        let Some(node) = self.nodes.get(self.entered) else { return false };
        self.entered += 1;
        let is_same = match (&node.names, names) {
            (None, None) => true,
            (Some(found), Some(names)) => {
                found == names && is_derived(type_name::<V>()) && are_distinct(names)
            }
            _ => false,
        };
        is_same && node.start == usize::from(at) && node.len == len
    }
}

/// A row that is being read. No function that is not inlined gets a reference to it, so that its parts can be in
/// registers.
struct Cursor<'a, 'c> {
    block: &'a [u8; BLOCK],
    /// The offset of the next number. Because it is a byte, the compiler knows that the number is inside of the block.
    at: u8,
    kind: NumberType,
    signature: u64,
    /// The number of structs and tuples that were entered.
    entered: usize,
    /// Whether something was asked for that the row does not have. The type may have ignored the error.
    failed: bool,
    first: Option<&'a mut FirstRow<'c>>,
}

impl Cursor<'_, '_> {
    /// The next number. If it has another type, the visitor gets some number in its place: an error here would
    /// have to be passed on for each number of each row.
    #[inline(always)]
    fn number<const N: usize>(&mut self, kind: NumberType) -> [u8; N] {
        let word = self.block.get(usize::from(self.at)..).and_then(<[u8]>::first_chunk);
        self.failed |= self.kind != kind;
        // A number has at most 8 bytes.
        #[allow(clippy::cast_possible_truncation)]
        let len = N as u8;
        self.at = self.at.wrapping_add(len);
        word.copied().unwrap_or([0; N])
    }

    #[inline(always)]
    fn fail(&mut self) -> Other {
        self.failed = true;
        Other
    }

    /// Passes the elements of a tuple to a visitor, or the fields of the struct with these names.
    #[inline(always)]
    fn visit<'de, V: Visitor<'de>>(
        &mut self,
        len: usize,
        names: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, Other> {
        let mut what = Plain(len as u64);
        if let Some(names) = names {
            typeid::of::<V>().hash(&mut what);
            what.0 ^= names.as_ptr().addr() as u64;
        }
        let mixed = (self.signature ^ what.0).wrapping_add(u64::from(self.at));
        self.signature = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        // A type could ask for tuples in tuples without an end.
        if self.entered == MAX_NODES {
            return Err(self.fail());
        }
        self.entered += 1;
        if let Some(first) = &mut self.first
            && !first.enter::<V>(self.at, len, names)
        {
            return Err(self.fail());
        }
        let mut parts = Parts { cursor: self, left: len };
        let value = visitor.visit_seq(&mut parts);
        let left = parts.left;
        self.failed |= left != 0;
        value
    }
}

fn are_distinct(names: &[&str]) -> bool {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// The row asks for something else than the columns have. This error is never shown, because the row is read again. It
/// has no content, so that the compiler can keep the numbers of a `Result` in registers.
#[derive(Debug)]
struct Other;

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the row has to be read in the general way")
    }
}

impl std::error::Error for Other {}

impl de::Error for Other {
    #[cold]
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }

    #[cold]
    fn invalid_type(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self
    }

    #[cold]
    fn invalid_length(_: usize, _: &dyn de::Expected) -> Self {
        Self
    }
}

/// Takes the bits of a type id, which are well mixed.
struct Plain(u64);

impl Hasher for Plain {
    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn write_u64(&mut self, value: u64) {
        self.0 ^= value;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
}

/// The fields of a struct or the elements of a tuple.
struct Parts<'p, 'a, 'c> {
    cursor: &'p mut Cursor<'a, 'c>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for &mut Parts<'_, '_, '_> {
    type Error = Other;

    #[inline(always)]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Other> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        match seed.deserialize(Part(self.cursor)) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(error),
        }
    }

    #[inline(always)]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// A struct, a tuple or a number in a row.
struct Part<'p, 'a, 'c>(&'p mut Cursor<'a, 'c>);

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty, $kind:ident;)*) => {$(
        #[inline(always)]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
            let word = self.0.number(NumberType::$kind);
            visitor.$visit(<$type>::from_le_bytes(word))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Part<'_, '_, '_> {
    type Error = Other;

    numbers! {
        deserialize_u8 visit_u8 u8, U8;
        deserialize_u16 visit_u16 u16, U16;
        deserialize_u32 visit_u32 u32, U32;
        deserialize_u64 visit_u64 u64, U64;
        deserialize_i8 visit_i8 i8, I8;
        deserialize_i16 visit_i16 i16, I16;
        deserialize_i32 visit_i32 i32, I32;
        deserialize_i64 visit_i64 i64, I64;
        deserialize_f32 visit_f32 f32, F32;
        deserialize_f64 visit_f64 f64, F64;
    }

    #[inline(always)]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Other> {
        self.0.visit(names.len(), Some(names), visitor)
    }

    #[inline(always)]
    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Other> {
        self.0.visit(len, None, visitor)
    }

    #[inline(always)]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Other> {
        self.0.visit(len, None, visitor)
    }

    #[inline(always)]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Other> {
        if name::is_ours(name) {
            return Err(self.0.fail());
        }
        visitor.visit_newtype_struct(self)
    }

    #[inline(always)]
    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Other> {
        Err(self.0.fail())
    }

    forward_to_deserialize_any! {
        bool i128 u128 char str string bytes byte_buf option unit unit_struct seq map enum identifier ignored_any
    }

    #[inline(always)]
    fn is_human_readable(&self) -> bool {
        false
    }
}
