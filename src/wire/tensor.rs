//! Reading tensors: RFC 8746 arrays, complex numbers, and the own tag.

use bytemuck::Pod;
use half::{bf16, f16};
use ndarray::{Dimension, IxDyn};
use num_complex::Complex;

use super::head::{self, Head};
use super::reader::{Item, Left, Text, Wire};
use super::tag;
use crate::dtype::{DType, Number};
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::io::source::{Bytes, Read, STEP, of_whole, reserve};
use crate::mem;
use crate::meta::{Order, TensorMeta, element_count};
use crate::options::Limits;
use crate::wire::number::Numeric;

/// A tensor up to its payload, which stands next in the input if it is a block.
pub struct TensorItem {
    pub meta: TensorMeta,
    /// Whether the document names the dtype; if not, it was chosen to hold the numbers found.
    pub stated: bool,
    pub payload: Payload,
    pub kind: Kind,
    /// Whether a break must follow the payload.
    unclosed: bool,
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
        let fits = self.has_levels(3) && meta.shape.ndim() <= self.max_rank();
        fits.then(|| self.src.advance(head_len))?;
        Some((meta, len))
    }

    /// The bytes of a payload that is one block.
    #[inline]
    pub fn payload_block(&mut self, dtype: &DType, len: usize) -> Result<Bytes<'de, '_>> {
        if self.src.remaining().is_some() {
            return match self.src.take(len, "a tensor")? {
                Bytes::Borrowed(bytes) => Ok(Bytes::Borrowed(self.src.settle(bytes, dtype.word()))),
                // What is in memory can be borrowed.
                Bytes::Copied(bytes) => Ok(Bytes::Owned(bytes.to_vec())),
                Bytes::Owned(bytes) => Ok(Bytes::Owned(bytes)),
            };
        }
        self.charge(len as u64)?;
        self.src.take(len, "a tensor")
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
        match parts {
            Some((DType::F32, big_endian)) => Ok((DType::C64, big_endian)),
            Some((DType::F64, big_endian)) => Ok((DType::C128, big_endian)),
            _ => Err(Error::data(format!(
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
        let order = if shape.ndim() < 2 { Order::C } else { order };
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
        Ok(TensorMeta { dtype, shape: IxDyn(&[len / size]), order: Order::C })
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
                "a {dtype} tensor of shape {:?} does not take the {len} bytes of buffer {number}",
                shape.slice()
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

    fn order(&mut self, shape: &IxDyn) -> Result<Order> {
        let at = self.offset();
        let order = self
            .name_text("a memory order", Order::from_name)?
            .ok_or_else(|| Error::data("expected memory order C or F, found another").at(at))?;
        Ok(if shape.ndim() < 2 { Order::C } else { order })
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
        Ok(match self.text(head)? {
            Text::Borrowed(text) => parse(text),
            Text::Copied(text) => parse(text),
            Text::Owned(text) => parse(&text),
        })
    }

    /// The dimensions and their product.
    ///
    /// A dimension may be zero, which makes a tensor without elements (RFC 8746 has no such
    /// array, but others write it); the product of the other dimensions must fit all the same.
    fn shape(&mut self) -> Result<(IxDyn, usize)> {
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
        // A higher rank, if the limits allow it, allocates as its dimensions come.
        let claimed = usize::try_from(head.arg).ok().filter(|&rank| rank <= Limits::DEFAULT_RANK);
        let mut dims = IxDyn::zeros(claimed.unwrap_or(0));
        let mut spilled = Vec::new();
        let mut rank = 0;
        while self.more(&mut left)? {
            let at = self.offset();
            let head = self.head()?;
            let dim = usize::try_from(head.arg).ok().filter(|_| head.major() == head::UNSIGNED);
            let Some(dim) = dim.filter(|&dim| isize::try_from(dim).is_ok()) else {
                let found = head::name(head.initial);
                return Err(Error::data(format!(
                    "expected a dimension that fits memory, found {found} with argument {}",
                    head.arg
                ))
                .at(at));
            };
            match dims.slice_mut().get_mut(rank) {
                Some(slot) => *slot = dim,
                None if rank < max => spilled.push(dim),
                None => return Err(too_many()),
            }
            rank += 1;
        }
        let shape = if spilled.is_empty() { dims } else { IxDyn(&spilled) };
        match element_count(shape.slice()) {
            Some(count) => Ok((shape, count)),
            None => {
                Err(Error::data(format!("shape {:?} does not fit memory", shape.slice())).at(at))
            }
        }
    }

    /// The byte string of a typed array: its head, and its content if that is in chunks.
    fn payload(
        &mut self,
        dtype: &DType,
        big_endian: bool,
        claim: Option<(&IxDyn, usize)>,
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
                    let shape = shape.slice();
                    Error::data(format!("a {dtype} tensor of shape {shape:?} fills no whole bytes"))
                        .at(at)
                })?,
            )),
            _ => None,
        };
        let check = |found: u64| match expected {
            Some((shape, len)) if len as u64 != found => Err(Error::data(format!(
                "a {dtype} tensor of shape {:?} takes {len} bytes, found {found}",
                shape.slice()
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
        let shape = IxDyn(&[elements.len()]);
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

    /// The payload as little-endian bytes, borrowed if it can be. [`Wire::close`] comes next.
    #[inline]
    pub fn payload_bytes(&mut self, item: TensorItem) -> Result<(TensorMeta, Bytes<'de, '_>)> {
        let bytes = match item.payload {
            Payload::Block { len, big_endian: false } => {
                self.payload_block(&item.meta.dtype, len)?
            }
            Payload::Block { len, big_endian: true } => {
                let mut bytes = self.fill::<u8>(len)?;
                mem::swap_words(&mut bytes, item.meta.dtype.word());
                Bytes::Owned(bytes)
            }
            Payload::Chunks(bytes) => Bytes::Owned(bytes),
            Payload::Numbers(elements) => Bytes::Owned(elements.to_le_bytes()),
            Payload::Buffer { number, len } => match self.lend_buffer(number)? {
                Some(bytes) => {
                    // Nothing tells here whether what is lent is copied. A buffer lent once is
                    // backed by input as often.
                    let buffers = self.src.buffers();
                    let cost = buffers.map_or(0, |buffers| buffers.cost(number, len as u64));
                    self.charge(cost)?;
                    Bytes::Borrowed(bytes)
                }
                None => Bytes::Owned(self.fill_buffer::<u8>(number, len)?),
            },
        };
        Ok((item.meta, bytes))
    }

    /// The payload as typed elements: read straight into their memory.
    pub fn payload_elements(&mut self, item: TensorItem) -> Result<(TensorMeta, Elements)> {
        let TensorItem { meta, payload, unclosed, .. } = item;
        let at = self.offset();
        let elements = match payload {
            Payload::Block { len, big_endian } => {
                self.elements(&meta.dtype, Origin::Here, len, big_endian)?
            }
            Payload::Buffer { number, len } => {
                self.elements(&meta.dtype, Origin::Buffer(number), len, false)?
            }
            Payload::Chunks(bytes) => {
                Elements::from_le_bytes(&meta.dtype, bytes).map_err(|error| error.at(at))?
            }
            Payload::Numbers(elements) => elements,
        };
        self.close(unclosed)?;
        Ok((meta, elements))
    }

    /// Passes over the payload.
    pub fn pass_payload(&mut self, item: &TensorItem) -> Result<()> {
        if let Payload::Block { len, .. } = item.payload {
            self.src.take(len, "a tensor")?;
        }
        self.close(item.unclosed)
    }

    /// Reads what stands behind the payload.
    pub fn close(&mut self, unclosed: bool) -> Result<()> {
        if unclosed { self.end("a tensor") } else { Ok(()) }
    }

    fn elements(
        &mut self,
        dtype: &DType,
        origin: Origin,
        len: usize,
        big_endian: bool,
    ) -> Result<Elements> {
        macro_rules! typed {
            ($($variant:ident $type:ty),*) => {
                match dtype {
                    $(DType::$variant => {
                        let mut values = self.fill_from::<$type>(origin, len)?;
                        if big_endian != cfg!(target_endian = "big") {
                            mem::swap_words(bytemuck::must_cast_slice_mut(&mut values), dtype.word());
                        }
                        Elements::$variant(values)
                    })*
                    DType::Bool => {
                        let at = self.offset();
                        let bytes = self.fill_from::<u8>(origin, len)?;
                        Elements::from_le_bytes(dtype, bytes).map_err(|error| error.at(at))?
                    }
                    other => {
                        let mut bytes = self.fill_from::<u8>(origin, len)?;
                        if big_endian {
                            mem::swap_words(&mut bytes, other.word());
                        }
                        Elements::from_le_bytes(other, bytes)?
                    }
                }
            };
        }
        Ok(typed!(
            U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64, F16 f16,
            BF16 bf16, F32 f32, F64 f64, C64 Complex<f32>, C128 Complex<f64>
        ))
    }

    fn fill_from<A: Pod>(&mut self, origin: Origin, len: usize) -> Result<Vec<A>> {
        match origin {
            Origin::Here => self.fill(len),
            Origin::Buffer(number) => self.fill_buffer(number, len),
        }
    }

    /// A buffer's content, where it can be lent.
    fn lend_buffer(&mut self, number: u64) -> Result<Option<&'de [u8]>> {
        match self.src.buffers() {
            Some(buffers) if buffers.lends() => buffers.lend(number).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether a payload can be shown where it lies.
    pub fn is_at_hand(&mut self, item: &TensorItem) -> bool {
        match item.payload {
            Payload::Block { big_endian: false, .. } => self.src.remaining().is_some(),
            Payload::Buffer { .. } => self.src.buffers().is_some_and(|buffers| buffers.lends()),
            _ => false,
        }
    }

    /// A buffer's content, read straight into the memory of typed values.
    fn fill_buffer<A: Pod>(&mut self, number: u64, len: usize) -> Result<Vec<A>> {
        let at = self.offset();
        let size = size_of::<A>();
        let Some(buffers) = self.src.buffers() else { return Ok(Vec::new()) };
        let cost = buffers.cost(number, len as u64);
        self.charge(cost)?;
        if !len.is_multiple_of(size) {
            return Err(partial(len).at(at));
        }
        if let Some(bytes) = self.lend_buffer(number)? {
            return mem::plain::copied(bytes).ok_or_else(|| partial(len).at(at));
        }
        let Some(buffers) = self.src.buffers() else { return Ok(Vec::new()) };
        buffers.start(number, at)?;
        let values = if buffers.is_backed() && len >= LARGE {
            let mut values = zeroed(len / size)?;
            for step in bytemuck::cast_slice_mut(&mut values).chunks_mut(STEP) {
                buffers.read(step)?;
            }
            values
        } else {
            let proven = if buffers.is_backed() { len } else { STEP };
            growing(len, proven, |step| buffers.read(step))?
        };
        buffers.finish()?;
        Ok(values)
    }

    /// `len` bytes of input as they lie, in the memory of typed values. A multiple of the size of
    /// `A` is asked for; memory follows the bytes received where their number is only claimed.
    fn fill<A: Pod>(&mut self, len: usize) -> Result<Vec<A>> {
        self.charge(len as u64)?;
        if self.src.remaining().is_some() {
            let at = self.offset();
            let bytes = self.src.take(len, "a tensor")?;
            return mem::plain::copied(bytes.as_slice()).ok_or_else(|| partial(len).at(at));
        }
        let size = size_of::<A>();
        if !len.is_multiple_of(size) {
            return Err(partial(len).at(self.offset()));
        }
        let at = self.offset();
        growing(len, STEP, |step| self.src.read_exact(step, "a tensor"))
            .map_err(|error| of_whole(error, len, self.offset() - at, "a tensor").at(at))
    }
}

/// Where a payload is read from.
#[derive(Clone, Copy)]
enum Origin {
    /// It stands next.
    Here,
    Buffer(u64),
}

/// From this size on memory is fresh from the system, and zero already, more often than not.
const LARGE: usize = 1 << 20;

/// Zeros, which fresh memory need not be filled with.
fn zeroed<A: Pod>(count: usize) -> Result<Vec<A>> {
    match bytemuck::allocation::try_zeroed_slice_box(count) {
        Ok(mut values) => {
            mem::prefer_large_pages(bytemuck::cast_slice_mut(&mut values));
            Ok(Vec::from(values))
        }
        Err(()) => {
            let bytes = count.saturating_mul(size_of::<A>());
            Err(Error::limit(format!("out of memory: {bytes} more bytes to read")))
        }
    }
}

/// `len` bytes, a multiple of the size of `A`. So much memory is asked for at once as is `proven`, the
/// rest follows the bytes received.
fn growing<A: Pod>(
    len: usize,
    proven: usize,
    mut read: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<Vec<A>> {
    let size = size_of::<A>();
    let count = len / size;
    let mut values: Vec<A> = Vec::new();
    while values.len() < count {
        let done = values.len();
        // Zeroing goes by steps that stay in cache; the allocation grows by doubling.
        let step = (count - done).min(STEP / size);
        if values.capacity() - done < step {
            let grown = (count - done).min(done.max(proven / size).max(step));
            reserve_exact(&mut values, grown)?;
        }
        values.resize(done + step, A::zeroed());
        read(bytemuck::cast_slice_mut(values.get_mut(done..).unwrap_or_default()))?;
    }
    Ok(values)
}

fn reserve_exact<A>(values: &mut Vec<A>, additional: usize) -> Result<()> {
    match values.try_reserve_exact(additional) {
        Ok(()) => Ok(()),
        // The shared wording, with a request that fails the same way.
        Err(_) => reserve(values, additional),
    }
}

/// Meta, payload length and length of all that stands before the payload of a row-major typed array
/// of up to four dimensions (as many as its shape holds without allocating), all lengths definite.
#[inline]
fn common(window: &[u8]) -> Option<(TensorMeta, usize, usize)> {
    let [0xd8, 40, 0x82, rank, rest @ ..] = window else { return None };
    let rank = usize::from(rank ^ head::ARRAY << 5);
    if rank > 4 {
        return None;
    }
    let mut rest = rest;
    let mut shape = IxDyn::zeros(rank);
    let mut count = 1usize;
    for dim in shape.slice_mut() {
        (*dim, rest) = argument(rest, head::UNSIGNED)?;
        count = count.checked_mul(*dim)?;
    }
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

#[cold]
fn partial(len: usize) -> Error {
    Error::data(format!("{len} bytes are no whole number of elements"))
}

/// What [`Wire::payload_bytes`] needs to know again afterwards.
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
