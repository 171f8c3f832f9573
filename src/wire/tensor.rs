//! Reading tensors up to their payloads: RFC 8746 arrays, complex numbers, and the own tags.

use super::head::{self, Head};
use super::reader::{Item, Left, Wire};
use super::tag;
use crate::dtype::DType;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::io::source::Read;
use crate::mem;
use crate::meta::{Order, TensorMeta};
use crate::number::Number;
use crate::shape::Shape;
use crate::wire::number::Numeric;

/// A tensor up to its payload, which stands next in the input if it is a block.
pub struct TensorItem {
    pub meta: TensorMeta,
    /// Whether the document names the dtype; if not, it was chosen to hold the numbers found.
    pub stated: bool,
    pub payload: Payload,
    pub kind: Kind,
    /// Whether a break must follow the payload.
    pub unclosed: bool,
}

/// What an item with a block of elements stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tensor,
    /// A sequence of numbers: a bare typed array.
    Numbers,
    /// A byte string.
    Bytes,
}

pub enum Payload {
    /// Bytes of a definite-length byte string, in the byte order said.
    Block { len: usize, big_endian: bool },
    /// Little-endian bytes that stood in chunks.
    Chunks(Vec<u8>),
    /// Numbers that stood in a classical array.
    Numbers(Elements),
    /// Little-endian bytes that stand apart.
    Buffer { number: u64, len: usize },
}

impl<'de, R: Read<'de>> Wire<R> {
    /// Reads a tensor up to its payload; its tag was read.
    pub fn tensor(&mut self, tag: u64) -> Result<TensorItem> {
        match tag {
            // The tag and the array.
            tag::ROW_MAJOR => self.within(2, |wire| wire.multi_dimensional(Order::C)),
            tag::COLUMN_MAJOR => self.within(2, |wire| wire.multi_dimensional(Order::F)),
            tag::TENSOR => self.within(2, Self::named),
            tag::BUFFER => self.within(2, Self::reference),
            typed => {
                let (dtype, big_endian) = self.typed_dtype(typed)?;
                let payload = self.payload(&dtype, big_endian, None)?;
                let meta = self.row(dtype, payload.len())?;
                Ok(TensorItem { meta, stated: true, payload, kind: Kind::Numbers, unclosed: false })
            }
        }
    }

    /// Reads a tensor up to its payload if it is, and stands in the window, as this crate writes
    /// the most common ones; else nothing is read.
    #[inline]
    pub fn common_tensor(&mut self) -> Option<(TensorMeta, usize)> {
        let (meta, len, head_len) = common(self.src.window())?;
        // Tag, array, and shape or typed-array tag.
        let fits = self.has_levels(3) && meta.shape.len() <= self.max_rank();
        fits.then(|| self.src.advance(head_len))?;
        Some((meta, len))
    }

    /// What a typed-array tag, or the tag of complex numbers before one, stands for.
    fn typed_dtype(&mut self, tag: u64) -> Result<(DType, bool)> {
        let at = self.offset();
        self.within(1 + usize::from(tag == tag::COMPLEX), |_| Ok(()))?;
        if tag != tag::COMPLEX {
            return DType::from_typed_array_tag(tag)
                .ok_or_else(|| Error::data(format!("tag {tag} is no typed array")).at(at));
        }
        let head = self.head()?;
        let parts = DType::from_typed_array_tag(head.arg).filter(|_| head.major() == head::TAG);
        let whole = parts.and_then(|(parts, big_endian)| Some((parts.complex()?, big_endian)));
        match whole {
            Some(found) => Ok(found),
            None => Err(Error::data(format!(
                "expected a typed array of f32 or f64 as parts of complex numbers, found {} {}",
                head::name(head.initial),
                head.arg
            ))
            .at(at)),
        }
    }

    /// `[shape, elements]` (RFC 8746, section 3.1).
    fn multi_dimensional(&mut self, order: Order) -> Result<TensorItem> {
        let unclosed = self.array_of(2, "shape and elements of a tensor")?;
        let (shape, count) = self.shape()?;
        let order = if shape.len() < 2 { Order::C } else { order };
        let at = self.offset();
        let (dtype, stated, payload) = match self.item()? {
            Item::Head(head) if head.major() == head::ARRAY => {
                let numbers = self.classical(head, count)?;
                (numbers.dtype(), false, Payload::Numbers(numbers))
            }
            Item::Tag(tag) if tag == tag::COMPLEX || DType::from_typed_array_tag(tag).is_some() => {
                let (dtype, big_endian) = self.typed_dtype(tag)?;
                let payload = self.payload(&dtype, big_endian, Some((&shape, count)))?;
                (dtype, true, payload)
            }
            Item::Head(head) => {
                let found = head::name(head.initial);
                return Err(
                    Error::data(format!("expected elements of a tensor, found {found}")).at(at)
                );
            }
            Item::Tag(tag) => {
                return Err(
                    Error::data(format!("expected elements of a tensor, found tag {tag}")).at(at)
                );
            }
        };
        let meta = TensorMeta { dtype, shape, order };
        Ok(TensorItem { meta, stated, payload, kind: Kind::Tensor, unclosed })
    }

    /// `[dtype name, shape, order, bytes]`: the own tag.
    fn named(&mut self) -> Result<TensorItem> {
        let unclosed = self.array_of(4, "dtype, shape, order and bytes of a tensor")?;
        let dtype = self.name_text("a dtype", DType::from_name)?;
        let (shape, count) = self.shape()?;
        let order = self.order(&shape)?;
        let payload = self.payload(&dtype, false, Some((&shape, count)))?;
        let meta = TensorMeta { dtype, shape, order };
        Ok(TensorItem { meta, stated: true, payload, kind: Kind::Tensor, unclosed })
    }

    /// What a typed array of so many bytes is as a tensor.
    fn row(&self, dtype: DType, len: usize) -> Result<TensorMeta> {
        // Typed arrays are of whole-byte elements.
        let size = dtype.bits().unwrap_or(8) / 8;
        if !len.is_multiple_of(size) {
            let what = format!("{len} bytes are no whole number of {dtype} elements");
            return Err(Error::data(what).at(self.offset()));
        }
        Ok(TensorMeta { dtype, shape: Shape::from([len / size]), order: Order::C })
    }

    /// A reference to a buffer: `[dtype name, shape, order, number]` for a tensor, `[dtype name,
    /// number]` for a sequence of numbers, `[number]` for a byte string.
    fn reference(&mut self) -> Result<TensorItem> {
        let at = self.offset();
        let head = self.head()?;
        let kind = match head.length() {
            Some(4) if head.major() == head::ARRAY => Kind::Tensor,
            Some(2) if head.major() == head::ARRAY => Kind::Numbers,
            Some(1) if head.major() == head::ARRAY => Kind::Bytes,
            _ => {
                let found = head::name(head.initial);
                let what = format!("expected a reference to a buffer, found {found}");
                return Err(Error::data(what).at(at));
            }
        };
        if kind == Kind::Bytes {
            let (number, len) = self.buffer_number()?;
            let meta = self.row(DType::U8, len)?;
            let payload = Payload::Buffer { number, len };
            return Ok(TensorItem { meta, stated: true, payload, kind, unclosed: false });
        }
        let dtype = self.name_text("a dtype", DType::from_name)?;
        if kind == Kind::Numbers {
            if dtype.typed_array_tag().is_none() {
                return Err(Error::data(format!("there is no typed array of {dtype}")).at(at));
            }
            let (number, len) = self.buffer_number()?;
            let meta = self.row(dtype, len)?;
            let payload = Payload::Buffer { number, len };
            return Ok(TensorItem { meta, stated: true, payload, kind, unclosed: false });
        }
        let (shape, count) = self.shape()?;
        let order = self.order(&shape)?;
        let (number, len) = self.buffer_number()?;
        if dtype.bits().is_some() && dtype.byte_len(count) != Some(len) {
            return Err(Error::data(format!(
                "a {dtype} tensor of shape {shape:?} does not take the {len} bytes of buffer {number}"
            ))
            .at(at));
        }
        let meta = TensorMeta { dtype, shape, order };
        let payload = Payload::Buffer { number, len };
        Ok(TensorItem { meta, stated: true, payload, kind, unclosed: false })
    }

    /// The number of a buffer, and its length.
    fn buffer_number(&mut self) -> Result<(u64, usize)> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::UNSIGNED {
            let found = head::name(head.initial);
            let what = format!("expected the number of a buffer, found {found}");
            return Err(Error::data(what).at(at));
        }
        let number = head.arg;
        let Some(buffers) = self.src.buffers() else {
            return Err(Error::data("reference to a buffer, but a message has none").at(at));
        };
        let Some(len) = buffers.len_of(number) else {
            let what = format!("reference to buffer {number} of {}", buffers.count());
            return Err(Error::data(what).at(at));
        };
        match usize::try_from(len).ok().filter(|&len| isize::try_from(len).is_ok()) {
            Some(len) => Ok((number, len)),
            None => {
                Err(Error::limit(format!("a buffer of {len} bytes does not fit memory")).at(at))
            }
        }
    }

    fn order(&mut self, shape: &Shape) -> Result<Order> {
        let at = self.offset();
        let order = self
            .name_text("a memory order", Order::from_name)?
            .ok_or_else(|| Error::data("expected memory order C or F, found another").at(at))?;
        Ok(if shape.len() < 2 { Order::C } else { order })
    }

    /// The head of an array of `len` items; whether a break must come behind them.
    fn array_of(&mut self, len: u64, what: &str) -> Result<bool> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::ARRAY || head.length().is_some_and(|found| found != len) {
            let found = match head.length() {
                Some(found) if head.major() == head::ARRAY => format!("array of {found}"),
                _ => head::name(head.initial).to_owned(),
            };
            return Err(Error::data(format!("expected an array of {what}, found {found}")).at(at));
        }
        Ok(head.is_indefinite())
    }

    fn name_text<T>(&mut self, what: &str, parse: impl Fn(&str) -> T) -> Result<T> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::TEXT || head.arg > 256 {
            let found = head::name(head.initial);
            return Err(Error::data(format!("expected the name of {what}, found {found}")).at(at));
        }
        Ok(parse(self.text(head)?.as_str()))
    }

    /// The dimensions and their product.
    ///
    /// A dimension may be zero, which makes a tensor without elements (RFC 8746 has no such
    /// array, but others write it); the product of the other dimensions must fit all the same.
    fn shape(&mut self) -> Result<(Shape, usize)> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::ARRAY {
            let found = head::name(head.initial);
            return Err(
                Error::data(format!("expected an array of dimensions, found {found}")).at(at)
            );
        }
        self.within(1, |_| Ok(()))?;
        let max = self.max_rank();
        let too_many = || Error::limit(format!("tensor of more than {max} dimensions")).at(at);
        if head.length().is_some_and(|rank| rank > max as u64) {
            return Err(too_many());
        }
        let mut left = Left::of(head);
        let mut rank = 0;
        // Memory is taken as dimensions come: their number is only claimed.
        let dims = std::iter::from_fn(|| match self.more(&mut left) {
            Ok(true) if rank == max => Some(Err(too_many())),
            Ok(true) => {
                rank += 1;
                Some(self.dimension())
            }
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        });
        let shape = dims.collect::<Result<Shape>>()?;
        match shape.element_count() {
            Some(count) => Ok((shape, count)),
            None => Err(Error::data(format!("shape {shape:?} does not fit memory")).at(at)),
        }
    }

    fn dimension(&mut self) -> Result<usize> {
        let at = self.offset();
        let head = self.head()?;
        let dim = usize::try_from(head.arg).ok().filter(|_| head.major() == head::UNSIGNED);
        dim.filter(|&dim| isize::try_from(dim).is_ok()).ok_or_else(|| {
            let (found, arg) = (head::name(head.initial), head.arg);
            let what =
                format!("expected a dimension that fits memory, found {found} with argument {arg}");
            Error::data(what).at(at)
        })
    }

    /// The byte string of a typed array: its head, and its content if that is in chunks.
    fn payload(
        &mut self,
        dtype: &DType,
        big_endian: bool,
        claim: Option<(&Shape, usize)>,
    ) -> Result<Payload> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::BYTES {
            let found = head::name(head.initial);
            return Err(
                Error::data(format!("expected the bytes of a tensor, found {found}")).at(at)
            );
        }
        // A dtype of unknown size takes any length.
        let expected = match claim {
            Some((shape, count)) if dtype.bits().is_some() => Some((
                shape,
                dtype.byte_len(count).ok_or_else(|| {
                    Error::data(format!("a {dtype} tensor of shape {shape:?} fills no whole bytes"))
                        .at(at)
                })?,
            )),
            _ => None,
        };
        let check = |found: u64| match expected {
            Some((shape, len)) if len as u64 != found => Err(Error::data(format!(
                "a {dtype} tensor of shape {shape:?} takes {len} bytes, found {found}"
            ))
            .at(at)),
            _ => Ok(()),
        };
        match head.length() {
            Some(found) => {
                check(found)?;
                let len = usize::try_from(found).map_err(|_| {
                    Error::limit(format!("a tensor of {found} bytes does not fit memory")).at(at)
                })?;
                Ok(Payload::Block { len, big_endian })
            }
            None => {
                let max = expected.map_or(usize::MAX, |(_, len)| len);
                let mut bytes = self.chunks(head, max)?;
                check(bytes.len() as u64)?;
                if big_endian {
                    mem::swap_words(&mut bytes, dtype.word());
                }
                Ok(Payload::Chunks(bytes))
            }
        }
    }

    /// The numbers of a classical array as the narrowest of bool, i64, u64 and f64 that holds
    /// them all.
    fn classical(&mut self, array: Head, count: usize) -> Result<Elements> {
        let at = self.offset();
        let elements = self.numbers(array)?;
        if elements.len() != count {
            let found = elements.len();
            let what = format!("expected {count} elements of a tensor, found {found}");
            return Err(Error::data(what).at(at));
        }
        Ok(elements)
    }

    /// A plain array of numbers as a tensor of one dimension; its head was read.
    pub fn number_array(&mut self, array: Head) -> Result<TensorItem> {
        let elements = self.numbers(array)?;
        let shape = Shape::from([elements.len()]);
        let meta = TensorMeta { dtype: elements.dtype(), shape, order: Order::C };
        let payload = Payload::Numbers(elements);
        Ok(TensorItem { meta, stated: false, payload, kind: Kind::Numbers, unclosed: false })
    }

    fn numbers(&mut self, array: Head) -> Result<Elements> {
        let at = self.offset();
        let mut numbers: Vec<Number> = Vec::new();
        let mut left = Left::of(array);
        self.within(1, |wire| {
            while wire.more(&mut left)? {
                wire.charge(size_of::<Number>() as u64)?;
                numbers.push(wire.element()?);
            }
            Ok(())
        })?;
        Elements::holding(&numbers)
            .ok_or_else(|| Error::data("elements of one tensor are of different kinds").at(at))
    }

    fn element(&mut self) -> Result<Number> {
        let at = self.offset();
        let head = match self.item()? {
            Item::Head(head) => head,
            Item::Tag(tag) => {
                return Err(Error::data(format!("expected a number, found tag {tag}")).at(at));
            }
        };
        match head.initial {
            head::FALSE => return Ok(Number::Bool(false)),
            head::TRUE => return Ok(Number::Bool(true)),
            _ => {}
        }
        let number = Numeric::from_head(head);
        let exact = number.and_then(|number| match number {
            Numeric::Int { .. } => {
                let value = number.as_int()?;
                match u64::try_from(value) {
                    Ok(value) => Some(Number::Unsigned(value)),
                    Err(_) => i64::try_from(value).ok().map(Number::Signed),
                }
            }
            float => float.as_double().map(Number::Float),
        });
        exact.ok_or_else(|| {
            let found = head::name(head.initial);
            Error::data(format!("expected a number of at most 64 bits, found {found}")).at(at)
        })
    }
}

/// Meta, payload length and length of all that stands before the payload of a row-major typed array
/// of up to four dimensions (as many as its shape holds without allocating), all lengths definite.
#[inline]
fn common(window: &[u8]) -> Option<(TensorMeta, usize, usize)> {
    let [0xd8, 40, 0x82, rank, rest @ ..] = window else { return None };
    let rank = usize::from(rank ^ head::ARRAY << 5);
    let mut rest = rest;
    let mut dims = [0; Shape::INLINE];
    let mut count = 1usize;
    for dim in dims.get_mut(..rank)? {
        (*dim, rest) = argument(rest, head::UNSIGNED)?;
        count = count.checked_mul(*dim)?;
    }
    let shape = Shape::inline(rank, dims);
    let (typed, rest) = argument(rest, head::TAG)?;
    let (dtype, big_endian) = DType::from_typed_array_tag(typed as u64)?;
    let (len, rest) = argument(rest, head::BYTES)?;
    // Zero dimensions are left to the general case, as what else is unusual.
    let fits = !big_endian && count != 0 && dtype.byte_len(count) == Some(len);
    let head_len = window.len() - rest.len();
    fits.then_some((TensorMeta { dtype, shape, order: Order::C }, len, head_len))
}

/// The argument of a head of this major type, of definite length and below 2^32, and what follows.
#[inline(always)]
fn argument(bytes: &[u8], major: u8) -> Option<(usize, &[u8])> {
    let (initial, rest) = bytes.split_first()?;
    match initial.wrapping_sub(major << 5) {
        small @ 0..24 => Some((small.into(), rest)),
        24 => rest.split_first().map(|(&arg, rest)| (arg.into(), rest)),
        25 => {
            let (arg, rest) = rest.split_first_chunk()?;
            Some((u16::from_be_bytes(*arg).into(), rest))
        }
        26 => {
            let (arg, rest) = rest.split_first_chunk()?;
            Some((usize::try_from(u32::from_be_bytes(*arg)).ok()?, rest))
        }
        _ => None,
    }
}

impl TensorItem {
    /// What [`Wire::common_tensor`] read.
    pub fn common(meta: TensorMeta, len: usize) -> Self {
        let payload = Payload::Block { len, big_endian: false };
        Self { meta, stated: true, payload, kind: Kind::Tensor, unclosed: false }
    }

    pub fn unclosed(&self) -> bool {
        self.unclosed
    }

    /// Whether the payload is a block of so many bytes or fewer, as it goes into memory.
    pub fn is_small_block(&self, max: usize) -> bool {
        matches!(self.payload, Payload::Block { big_endian: false, len } if len <= max)
    }
}

impl Payload {
    pub fn len(&self) -> usize {
        match self {
            Self::Block { len, .. } | Self::Buffer { len, .. } => *len,
            Self::Chunks(bytes) => bytes.len(),
            Self::Numbers(elements) => elements.byte_len(),
        }
    }
}
