//! Reads everything of a tensor that comes before its payload: arrays of RFC 8746, complex numbers, and
//! the tags that this crate defines.

use super::head::{self, Head};
use super::reader::{ItemStart, Left, Reader};
use super::tag;
use crate::dtype::DType;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::mem;
use crate::meta::{CompactMeta, Order, TensorMeta};
use crate::number::Number;
use crate::shape::Shape;
use crate::wire::number::Numeric;

/// A tensor, up to its payload. If the payload is an [`ItemPayload::Block`], it is next in the input.
pub struct TensorItem {
    pub meta: TensorMeta,
    /// Whether the document states the dtype. If not, the dtype was chosen to fit the numbers.
    pub stated: bool,
    pub payload: ItemPayload,
    pub kind: Kind,
    /// Whether the array around the payload has an indefinite length, so that a break must follow.
    pub unclosed: bool,
}

/// What an item with a block of elements represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tensor,
    /// A sequence of numbers: a typed array without a shape.
    Numbers,
    /// A byte string.
    Bytes,
}

/// Where the elements of a tensor are.
pub enum ItemPayload {
    /// The next `len` bytes of the input.
    Block { len: usize, big_endian: bool },
    /// Little-endian bytes, joined from the chunks of a byte string of indefinite length.
    Chunks(Vec<u8>),
    /// Elements that were read from a plain CBOR array of numbers.
    Numbers(Elements),
    /// Little-endian bytes in the buffer of this number.
    Buffer { number: u64, len: usize },
}

impl Reader<'_, '_> {
    /// Reads a tensor up to its payload. Its tag, which is `tag`, was read.
    pub fn tensor(&mut self, tag: u64) -> Result<TensorItem> {
        match tag {
            // Two levels: the tag and the array.
            tag::ROW_MAJOR => self.within(2, |wire| wire.multi_dimensional(Order::C)),
            tag::COLUMN_MAJOR => self.within(2, |wire| wire.multi_dimensional(Order::F)),
            tag::TENSOR => self.within(2, Self::named),
            tag::BUFFER => self.within(2, Self::reference),
            typed => {
                let (dtype, big_endian) = self.typed_dtype(typed)?;
                let payload = self.payload(&dtype, big_endian, None)?;
                let meta = self.row(dtype, payload.len())?;
                Ok(TensorItem {
                    meta,
                    stated: false,
                    payload,
                    kind: Kind::Numbers,
                    unclosed: false,
                })
            }
        }
    }

    /// A fast path for tensors in the form that this crate usually writes: reads the tensor up to its
    /// payload, and returns its metadata and the length of the payload. If the tensor has another
    /// form, or not all of it is in the window, reads nothing and returns `None`.
    // Always: 2 % of decoding small tensors.
    #[inline(always)]
    pub fn usual_tensor(&mut self) -> Option<(CompactMeta, usize)> {
        let (usual, len, head_len) = usual(self.src.window())?;
        // Three levels: the tag, the array, and the shape or the tag of the typed array.
        if !self.has_levels(3) || usize::from(usual.rank()) > self.max_rank() {
            return None;
        }
        self.src.advance(head_len);
        Some((usual, len))
    }

    /// The dtype and byte order of a typed array, and whether it is big-endian. `tag` is the tag of the
    /// typed array, or that of complex numbers, after which the tag of the parts is read.
    fn typed_dtype(&mut self, tag: u64) -> Result<(DType, bool)> {
        let at = self.offset();
        self.check_tag(tag)?;
        self.within(1 + usize::from(tag == tag::COMPLEX), |_| Ok(()))?;
        if tag != tag::COMPLEX {
            return DType::from_typed_array_tag(tag).ok_or_else(|| {
                Error::data(format!("tag {tag} is not the tag of a typed array")).at(at)
            });
        }
        let head = self.head()?;
        self.check_tag(head.arg)?;
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

    /// Reads `[shape, elements]` (RFC 8746, section 3.1).
    fn multi_dimensional(&mut self, order: Order) -> Result<TensorItem> {
        let unclosed = self.array_of(2, "shape and elements of a tensor")?;
        let (shape, count) = self.shape()?;
        let order = if shape.len() < 2 { Order::C } else { order };
        let (dtype, stated, payload) = self.elements_of(&shape, count)?;
        let meta = TensorMeta { dtype, shape, order };
        Ok(TensorItem { meta, stated, payload, kind: Kind::Tensor, unclosed })
    }

    /// Reads the `count` elements of a tensor of this shape, up to their bytes. Returns their dtype, whether the document
    /// states it, and the payload.
    fn elements_of(&mut self, shape: &Shape, count: usize) -> Result<(DType, bool, ItemPayload)> {
        let at = self.offset();
        let found = match self.item()? {
            ItemStart::Head(head) if head.major() == head::ARRAY && !self.is_strict() => {
                let numbers = self.classical(head, count)?;
                return Ok((numbers.dtype(), false, ItemPayload::Numbers(numbers)));
            }
            ItemStart::Tag(tag) if is_typed(tag) => {
                let (dtype, big_endian) = self.typed_dtype(tag)?;
                let payload = self.payload(&dtype, big_endian, Some((shape, count)))?;
                return Ok((dtype, true, payload));
            }
            ItemStart::Within(levels) if !self.is_strict() => {
                return self.within(levels, |wire| wire.elements_of(shape, count));
            }
            ItemStart::Head(head) => head::name(head.initial).to_owned(),
            ItemStart::Tag(tag) => format!("tag {tag}"),
            ItemStart::Within(_) => "another tag".to_owned(),
        };
        Err(no_elements(&found).at(at))
    }

    /// Skips `[shape, elements]` in metadata.
    pub(super) fn skip_dense(&mut self) -> Result<()> {
        self.within(1, |wire| {
            wire.array_of(2, "shape and elements of a tensor")?;
            wire.skip()?;
            match wire.peek_head()? {
                Some((head, _)) if head.major() != head::TAG || !is_typed(head.arg) => {
                    let found = match head.major() {
                        head::TAG => format!("tag {}", head.arg),
                        _ => head::name(head.initial).to_owned(),
                    };
                    Err(no_elements(&found).at(wire.offset()))
                }
                _ => wire.skip(),
            }
        })
    }

    /// Reads `[dtype name, shape, order, bytes]`, the content of [`tag::TENSOR`].
    fn named(&mut self) -> Result<TensorItem> {
        let unclosed = self.array_of(4, "dtype, shape, order and bytes of a tensor")?;
        let dtype = self.name_text("a dtype", DType::from_name)?;
        let (shape, count) = self.shape()?;
        let order = self.order(&shape)?;
        let payload = self.payload(&dtype, false, Some((&shape, count)))?;
        let meta = TensorMeta { dtype, shape, order };
        Ok(TensorItem { meta, stated: true, payload, kind: Kind::Tensor, unclosed })
    }

    /// The metadata of a typed array of `len` bytes, as a tensor of one dimension.
    fn row(&self, dtype: DType, len: usize) -> Result<TensorMeta> {
        // Elements of typed arrays take whole bytes.
        let size = dtype.bits().unwrap_or(8) / 8;
        if !len.is_multiple_of(size) {
            let what = format!("{len} bytes are not a whole number of {dtype} elements");
            return Err(Error::data(what).at(self.offset()));
        }
        Ok(TensorMeta { dtype, shape: Shape::from([len / size]), order: Order::C })
    }

    /// Reads the content of [`tag::BUFFER`], a reference to a buffer: `[dtype name, shape, order,
    /// number]` for a tensor, `[dtype name, number]` for a sequence of numbers, `[number]` for a byte
    /// string.
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
            let payload = ItemPayload::Buffer { number, len };
            return Ok(TensorItem { meta, stated: true, payload, kind, unclosed: false });
        }
        let dtype = self.name_text("a dtype", DType::from_name)?;
        if kind == Kind::Numbers {
            if !dtype.is_packed() {
                let what = format!(
                    "expected a sequence of numbers of 8 to 64 bits in a buffer, found one of {dtype}"
                );
                return Err(Error::data(what).at(at));
            }
            let (number, len) = self.buffer_number()?;
            let meta = self.row(dtype, len)?;
            let payload = ItemPayload::Buffer { number, len };
            return Ok(TensorItem { meta, stated: false, payload, kind, unclosed: false });
        }
        let (shape, count) = self.shape()?;
        let order = self.order(&shape)?;
        let (number, len) = self.buffer_number()?;
        if dtype.bits().is_some() && dtype.byte_len(count) != Some(len) {
            return Err(Error::data(format!(
                "buffer {number} has {len} bytes, which is not the length of a {dtype} tensor of shape {shape:?}"
            ))
            .at(at));
        }
        let meta = TensorMeta { dtype, shape, order };
        let payload = ItemPayload::Buffer { number, len };
        Ok(TensorItem { meta, stated: true, payload, kind, unclosed: false })
    }

    /// Reads the number of a buffer. Returns it with the length of that buffer in bytes.
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
            let what = "found a reference to a buffer, but a message has no buffers";
            return Err(Error::data(what).at(at));
        };
        let Some(len) = buffers.len_of(number) else {
            let count = buffers.count();
            let what =
                format!("found a reference to buffer {number}, but there are {count} buffers");
            return Err(Error::data(what).at(at));
        };
        match usize::try_from(len).ok().filter(|&len| isize::try_from(len).is_ok()) {
            Some(len) => Ok((number, len)),
            None => {
                Err(Error::limit(format!("a buffer of {len} bytes does not fit in memory")).at(at))
            }
        }
    }

    /// Reads the memory order. With fewer than two dimensions, both orders are the same: then it is
    /// [`Order::C`].
    fn order(&mut self, shape: &Shape) -> Result<Order> {
        let at = self.offset();
        let parse = |name: &str| Order::from_name(name).ok_or_else(|| name.to_owned());
        let order = self.name_text("a memory order", parse)?.map_err(|name| {
            Error::data(format!("expected memory order C or F, found {name:?}")).at(at)
        })?;
        Ok(if shape.len() < 2 { Order::C } else { order })
    }

    /// Reads the head of an array of `len` items. Returns whether its length is indefinite, so that a
    /// break must follow the items.
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

    /// Reads a short text, the name of `what`, and parses it.
    fn name_text<T>(&mut self, what: &str, parse: impl Fn(&str) -> T) -> Result<T> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::TEXT || head.arg > 256 {
            let found = head::name(head.initial);
            return Err(Error::data(format!("expected the name of {what}, found {found}")).at(at));
        }
        Ok(parse(self.text(head)?.as_str()))
    }

    /// Reads the dimensions. Returns them with their product, the number of elements.
    ///
    /// A dimension may be 0, so that the tensor has no elements. RFC 8746 does not allow such arrays,
    /// but other encoders write them. The product of the other dimensions must fit in memory even then.
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
        let too_many = || Error::limit(format!("the tensor has more than {max} dimensions")).at(at);
        if head.length().is_some_and(|rank| rank > max as u64) {
            return Err(too_many());
        }
        let mut left = Left::of(head);
        let mut rank = 0;
        // The rank in the head may be false, so memory grows with the dimensions that are read.
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
        self.charge(shape.allocated() as u64)?;
        match shape.element_count() {
            Some(count) => Ok((shape, count)),
            None => {
                let what = format!("a tensor of shape {shape:?} does not fit in memory");
                Err(Error::data(what).at(at))
            }
        }
    }

    fn dimension(&mut self) -> Result<usize> {
        let at = self.offset();
        let head = self.head()?;
        let dim = usize::try_from(head.arg).ok().filter(|_| head.major() == head::UNSIGNED);
        dim.filter(|&dim| isize::try_from(dim).is_ok()).ok_or_else(|| {
            let (found, arg) = (head::name(head.initial), head.arg);
            let what = format!(
                "expected a dimension that fits in memory, found {found} with argument {arg}"
            );
            Error::data(what).at(at)
        })
    }

    /// Reads the head of the byte string of a typed array, and checks its length against `claim`, the
    /// shape and its number of elements. If the string is in chunks, also reads its content.
    fn payload(
        &mut self,
        dtype: &DType,
        big_endian: bool,
        claim: Option<(&Shape, usize)>,
    ) -> Result<ItemPayload> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::BYTES {
            let found = head::name(head.initial);
            return Err(
                Error::data(format!("expected the bytes of a tensor, found {found}")).at(at)
            );
        }
        // If the size of the elements is unknown, any length is accepted.
        let expected = match claim {
            Some((shape, count)) if dtype.bits().is_some() => Some((
                shape,
                dtype.byte_len(count).ok_or_else(|| {
                    Error::data(format!(
                        "a {dtype} tensor of shape {shape:?} does not fill a whole number of bytes"
                    ))
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
                    Error::limit(format!("a tensor of {found} bytes does not fit in memory")).at(at)
                })?;
                Ok(ItemPayload::Block { len, big_endian })
            }
            None => {
                let max = expected.map_or(usize::MAX, |(_, len)| len);
                let mut bytes = self.chunks(head, max)?;
                check(bytes.len() as u64)?;
                if big_endian {
                    mem::swap_words(&mut bytes, dtype.word());
                }
                Ok(ItemPayload::Chunks(bytes))
            }
        }
    }

    /// Reads `count` elements from a plain CBOR array of numbers, which RFC 8746 calls a classical
    /// array. The dtype is the first of bool, i64, u64 and f64 that can represent all of them exactly.
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

    /// Reads a plain array of numbers as a tensor of one dimension. Its head was read.
    pub fn number_array(&mut self, array: Head) -> Result<TensorItem> {
        // An array of other things is a good value, but no tensor.
        let elements = self.numbers(array).map_err(Error::into_mismatch)?;
        let shape = Shape::from([elements.len()]);
        let meta = TensorMeta { dtype: elements.dtype(), shape, order: Order::C };
        let payload = ItemPayload::Numbers(elements);
        Ok(TensorItem { meta, stated: false, payload, kind: Kind::Numbers, unclosed: false })
    }

    fn numbers(&mut self, array: Head) -> Result<Elements> {
        let at = self.offset();
        let mut numbers: Vec<Number> = Vec::new();
        let mut left = Left::of(array);
        let mut are_single = true;
        self.within(1, |wire| {
            while wire.more(&mut left)? {
                if numbers.len() == numbers.capacity() {
                    wire.reserve(&mut numbers, 1)?;
                }
                are_single &= matches!(wire.peek()?, Some(head::HALF | head::SINGLE));
                numbers.push(wire.element()?);
            }
            Ok(())
        })?;
        self.charge((numbers.len() as u64).saturating_mul(Elements::MAX_NUMBER))?;
        self.refund_vec(&numbers);
        Elements::of_plain_array(&numbers, are_single).map_err(|error| error.at(at))
    }

    fn element(&mut self) -> Result<Number> {
        let at = self.offset();
        let head = match self.item()? {
            ItemStart::Head(head) => head,
            ItemStart::Within(levels) => return self.within(levels, Self::element),
            ItemStart::Tag(tag) => {
                return Err(Error::data(format!("expected a number, found tag {tag}")).at(at));
            }
        };
        match head.initial {
            head::FALSE => return Ok(Number::Bool(false)),
            head::TRUE => return Ok(Number::Bool(true)),
            _ => {}
        }
        let number = Numeric::from_head(head).and_then(element_of);
        number.ok_or_else(|| {
            let found = head::name(head.initial);
            Error::data(format!("expected a number of at most 64 bits, found {found}")).at(at)
        })
    }
}

/// Whether the tag is around a typed array, or around the one that has the parts of complex numbers.
fn is_typed(tag: u64) -> bool {
    tag == tag::COMPLEX || DType::from_typed_array_tag(tag).is_some()
}

#[cold]
fn no_elements(found: &str) -> Error {
    Error::data(format!("expected the elements of a tensor as a typed array, found {found}"))
}

/// A number as an element of a tensor. `None` if it is an integer that needs more than 64 bits.
pub fn element_of(number: Numeric) -> Option<Number> {
    match number {
        Numeric::Int { .. } => {
            let value = number.as_int()?;
            match u64::try_from(value) {
                Ok(value) => Some(Number::Unsigned(value)),
                Err(_) => i64::try_from(value).ok().map(Number::Signed),
            }
        }
        float => float.as_double().map(Number::Float),
    }
}

/// Parses the start of a row-major tensor of the [usual form](CompactMeta), whose lengths are all definite. Returns the
/// metadata, the length of the payload, and the number of bytes before the payload. `None` also for some tensors of a
/// few bytes at the end of the input, which the general code reads.
// Always: 2 % of decoding small tensors.
#[inline(always)]
fn usual(window: &[u8]) -> Option<(CompactMeta, usize, usize)> {
    let [0xd8, 40, 0x82, rank, ..] = window else { return None };
    let rank = rank ^ head::ARRAY << 5;
    if rank > CompactMeta::MAX_RANK {
        return None;
    }
    let mut at = 4;
    let mut dims = 0u128;
    for number in 0..rank {
        dims |= u128::from(argument(window, &mut at, head::UNSIGNED)?) << (32 * number);
    }
    let &[0xd8, tag] = window.get(at..)?.first_chunk()? else { return None };
    at += 2;
    let len = argument(window, &mut at, head::BYTES)?;
    let usual = CompactMeta { head: u16::from_le_bytes([tag, rank]), dims };
    (usual.byte_len() == Some(len)).then_some((usual, usize::try_from(len).ok()?, at))
}

/// The argument of the head of this major type at this place, which is moved behind the head. `None` if the head has
/// another major type, an indefinite length, or an argument of 2^32 or more, or if fewer than five bytes are there.
// Always: 2 % of loading small tensors.
#[inline(always)]
fn argument(window: &[u8], at: &mut usize, major: u8) -> Option<u32> {
    let &[initial, ref word @ ..] = window.get(*at..)?.first_chunk::<5>()?;
    let info = initial ^ major << 5;
    if info < 24 {
        *at += 1;
        return Some(info.into());
    }
    // The additional information 24 to 26 means 1, 2 or 4 bytes.
    let class = info - 24;
    if class > 2 {
        return None;
    }
    let width = 1u32 << class;
    *at += 1 + width as usize;
    Some(u32::from_be_bytes(*word) >> (32 - 8 * width))
}

impl TensorItem {
    /// The tensor that [`Reader::usual_tensor`] has read.
    pub fn usual(meta: TensorMeta, len: usize) -> Self {
        let payload = ItemPayload::Block { len, big_endian: false };
        Self { meta, stated: true, payload, kind: Kind::Tensor, unclosed: false }
    }

    pub fn unclosed(&self) -> bool {
        self.unclosed
    }

    /// Whether the payload is a little-endian block of at most `max` bytes.
    pub fn is_small_block(&self, max: usize) -> bool {
        matches!(self.payload, ItemPayload::Block { big_endian: false, len } if len <= max)
    }
}

impl ItemPayload {
    pub fn len(&self) -> usize {
        match self {
            Self::Block { len, .. } | Self::Buffer { len, .. } => *len,
            Self::Chunks(bytes) => bytes.len(),
            Self::Numbers(elements) => elements.byte_len(),
        }
    }
}
