//! serde's [`Deserializer`](serde::Deserializer) over CBOR.

mod access;
mod bulk;
mod shown;
mod stream;
mod typed;

use std::io;

use serde::de::{self, Deserialize, DeserializeOwned, Unexpected, Visitor};

use self::access::{EnumAccess, Map, Seq, UnitVariant};
use self::shown::ShownTensor;
pub use self::stream::StreamDeserializer;
pub(crate) use self::typed::{one_more, visit_numbers};
use crate::dtype::DType;
use crate::error::{Category, Error, Result};
use crate::handoff::{self, Slot, name};
use crate::io::source::{Bytes, IoRead, Read, SliceRead};
use crate::options::DecodeOptions;
use crate::tensor::TensorMeta;
use crate::value;
use crate::wire::head::{self, Head};
use crate::wire::number::Numeric;
use crate::wire::reader::{Item, Left, Text, Wire, unexpected_break};
use crate::wire::tag;
use crate::wire::tensor::TensorItem;

/// Decodes the one value that `slice` holds. Strings, byte strings and views may borrow from it.
///
/// # Errors
/// Where the input is not well-formed, does not fit the type, exceeds the [`Limits`], or has bytes
/// left behind the value.
///
/// [`Limits`]: crate::Limits
pub fn from_slice<'de, T: Deserialize<'de>>(slice: &'de [u8]) -> Result<T> {
    from_slice_with(slice, DecodeOptions::default())
}

/// As [`from_slice`], with options.
///
/// # Errors
/// As [`from_slice`].
pub fn from_slice_with<'de, T: Deserialize<'de>>(
    slice: &'de [u8],
    options: DecodeOptions,
) -> Result<T> {
    let mut deserializer = Deserializer::over(SliceRead::new(slice), options);
    let value = deserializer.value()?;
    deserializer.end()?;
    Ok(value)
}

/// Decodes the one value that `reader` gives, to the end of its input. Tensors are read straight
/// into their memory. The reader needs no buffer of its own.
///
/// For one value of several on a stream see [`Deserializer::into_iter`].
///
/// # Errors
/// As [`from_slice`], and where the reader fails.
pub fn from_reader<R: io::Read, T: DeserializeOwned>(reader: R) -> Result<T> {
    from_reader_with(reader, DecodeOptions::default())
}

/// As [`from_reader`], with options.
///
/// # Errors
/// As [`from_reader`].
pub fn from_reader_with<R: io::Read, T: DeserializeOwned>(
    mut reader: R,
    options: DecodeOptions,
) -> Result<T> {
    // One instance of the decoder serves all readers.
    let reader: &mut dyn io::Read = &mut reader;
    let mut deserializer = Deserializer::over(IoRead::new(reader), options);
    let value = deserializer.value()?;
    deserializer.end()?;
    Ok(value)
}

/// Decodes values from a slice or a reader.
///
/// ```
/// use serde::Deserialize;
///
/// let mut deserializer = tenarc::Deserializer::from_slice(&[0x01, 0x61, b'a']);
/// assert_eq!(u8::deserialize(&mut deserializer)?, 1);
/// assert_eq!(<&str>::deserialize(&mut deserializer)?, "a");
/// deserializer.end()?;
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Debug)]
pub struct Deserializer<R> {
    pub(crate) wire: Wire<R>,
    /// Where the last option was entered without a byte consumed, and how many in a row.
    some_at: u64,
    some_count: usize,
}

impl<'de> Deserializer<SliceRead<'de>> {
    /// A deserializer that reads from a slice.
    pub fn from_slice(slice: &'de [u8]) -> Self {
        Self::from_slice_with(slice, DecodeOptions::default())
    }

    /// A deserializer that reads from a slice, with options.
    pub fn from_slice_with(slice: &'de [u8], options: DecodeOptions) -> Self {
        Self::over(SliceRead::new(slice), options)
    }
}

impl<R: io::Read> Deserializer<IoRead<R>> {
    /// A deserializer that reads from a reader.
    pub fn from_reader(reader: R) -> Self {
        Self::from_reader_with(reader, DecodeOptions::default())
    }

    /// A deserializer that reads from a reader, with options.
    pub fn from_reader_with(reader: R, options: DecodeOptions) -> Self {
        Self::over(IoRead::new(reader), options)
    }

    /// The reader, and the bytes that were taken from it beyond the last value.
    pub fn into_inner(self) -> (R, Vec<u8>) {
        self.wire.src.into_inner()
    }
}

impl<'de, R: Read<'de>> Deserializer<R> {
    pub(crate) fn over(src: R, options: DecodeOptions) -> Self {
        Self { wire: Wire::new(src, options.limits), some_at: u64::MAX, some_count: 0 }
    }

    /// Position in the input, behind what was decoded.
    pub fn byte_offset(&self) -> u64 {
        self.wire.offset()
    }

    /// Expects the end of the input.
    ///
    /// # Errors
    /// Where bytes are left, and where the reader fails.
    pub fn end(&mut self) -> Result<()> {
        match self.wire.peek()? {
            None => Ok(()),
            Some(byte) => {
                let found = head::name(byte);
                let what = format!("expected the end of the input, found {found} behind the value");
                Err(Error::syntax(what).at(self.wire.offset()))
            }
        }
    }

    /// The values of the input, one after the other (a CBOR sequence, RFC 8742).
    #[allow(clippy::should_implement_trait)]
    pub fn into_iter<T: Deserialize<'de>>(self) -> StreamDeserializer<'de, R, T> {
        StreamDeserializer::new(self)
    }

    /// One value, with the offset in errors that the value's own code raised.
    pub(crate) fn value<T: Deserialize<'de>>(&mut self) -> Result<T> {
        self.wire.renew();
        let at = self.wire.offset();
        T::deserialize(&mut *self).map_err(|error| error.at(at))
    }

    #[cold]
    fn wrong(at: u64, found: Head, expected: &dyn de::Expected) -> Error {
        if found.initial == head::BREAK {
            return unexpected_break().at(at);
        }
        let error = match found.initial {
            head::FALSE => invalid(Unexpected::Bool(false), expected),
            head::TRUE => invalid(Unexpected::Bool(true), expected),
            _ => match Numeric::from_head(found) {
                Some(number) => wrong_number(number, expected),
                None => invalid(Unexpected::Other(head::name(found.initial)), expected),
            },
        };
        error.at(at)
    }

    #[cold]
    fn wrong_item(at: u64, found: Item, expected: &dyn de::Expected) -> Error {
        match found {
            Item::Head(head) => Self::wrong(at, head, expected),
            Item::Tag(tag) => invalid(Unexpected::Other(tag_name(tag)), expected).at(at),
        }
    }

    /// A number of any width, bignums included.
    #[inline(never)]
    fn number(&mut self, expected: &dyn de::Expected) -> Result<Numeric> {
        let at = self.wire.offset();
        match self.wire.item()? {
            Item::Head(head) => match Numeric::from_head(head) {
                Some(number) => Ok(number),
                None => Err(Self::wrong(at, head, expected)),
            },
            Item::Tag(tag @ (tag::BIGNUM | tag::NEGATIVE_BIGNUM)) => self.wire.bignum(tag),
            Item::Tag(tag) => Err(Self::wrong_item(at, Item::Tag(tag), expected)),
        }
    }

    /// The head of an item that no tag changes; that of null for `Some` of null.
    #[inline(always)]
    fn plain(&mut self, expected: &dyn de::Expected) -> Result<Head> {
        let at = self.wire.offset();
        match self.wire.item()? {
            Item::Head(head) => Ok(head),
            Item::Tag(tag) => self.plain_tagged(tag, at, expected),
        }
    }

    #[cold]
    fn plain_tagged(&mut self, mut tag: u64, at: u64, expected: &dyn de::Expected) -> Result<Head> {
        for _ in 0..=self.wire.max_depth() {
            if tag != tag::SOME {
                return Err(Self::wrong_item(at, Item::Tag(tag), expected));
            }
            match self.wire.item()? {
                Item::Head(head) => return Ok(head),
                Item::Tag(next) => tag = next,
            }
        }
        Err(self.wire.too_deep())
    }

    #[inline(always)]
    fn map<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        let mut left = Left::of(head);
        self.wire.enter()?;
        let result = visitor.visit_map(Map::new(self, &mut left));
        self.wire.leave();
        let value = result?;
        self.close(left, "a map")?;
        Ok(value)
    }

    #[inline(always)]
    fn seq<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        let mut left = Left::of(head);
        self.wire.enter()?;
        let result = visitor.visit_seq(Seq::new(self, &mut left));
        self.wire.leave();
        let value = result?;
        self.close(left, "an array")?;
        Ok(value)
    }

    /// Checks that a visitor took everything.
    #[inline(always)]
    fn close(&mut self, left: Left, what: &str) -> Result<()> {
        match left.known() {
            Some(0) => Ok(()),
            _ => self.close_slow(left, what),
        }
    }

    #[cold]
    fn close_slow(&mut self, left: Left, what: &str) -> Result<()> {
        match left.known() {
            None => self.wire.end(what),
            Some(more) => {
                let message = format!("expected the end of {what}, found {more} more elements");
                Err(Error::data(message).at(self.wire.offset()))
            }
        }
    }

    fn text<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        match self.wire.text(head)? {
            Text::Borrowed(text) => visitor.visit_borrowed_str(text),
            Text::Copied(text) => visitor.visit_str(text),
            Text::Owned(text) => visitor.visit_string(text),
        }
    }

    fn bytes<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        match self.wire.string(head)? {
            Bytes::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
            Bytes::Copied(bytes) => visitor.visit_bytes(bytes),
            Bytes::Owned(bytes) => visitor.visit_byte_buf(bytes),
        }
    }

    /// A bare typed array, or a tensor of one dimension, as a sequence.
    fn typed_seq<V: Visitor<'de>>(&mut self, tag: u64, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        let item = self.wire.tensor(tag)?;
        let rank = ndarray::Dimension::ndim(&item.meta.shape);
        if rank != 1 {
            let found = format!("a tensor of {rank} dimensions");
            return Err(invalid(Unexpected::Other(&found), &visitor).at(at));
        }
        if bulk::is_vec_of::<V>(&item.meta.dtype) {
            let (_, elements) = self.wire.payload_elements(item)?;
            let made = elements.into_vec_as();
            return made.ok_or_else(|| Error::data("expected a vector of numbers").at(at));
        }
        let unclosed = item.unclosed();
        let (meta, bytes) = self.wire.payload_bytes(item)?;
        let value = visit_numbers(&meta.dtype, bytes.as_slice(), visitor);
        let value = value.map_err(|error| error.at(at))?;
        self.wire.close(unclosed)?;
        Ok(value)
    }

    /// A tensor for this crate's own visitor: see [`handoff`].
    fn tensor<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        if let Some((meta, len)) = self.wire.common_tensor() {
            let item = match self.wire.src.remaining() {
                Some(_) => {
                    let bytes = self.wire.payload_block(len)?;
                    return show(meta, true, bytes, visitor).map_err(|error| error.at(at));
                }
                None => TensorItem::common(meta, len),
            };
            return self.hand_over(item, visitor).map_err(|error| error.at(at));
        }
        if self.wire.initial()? >> 5 == head::MAP {
            // As other serde formats write a tensor.
            return visitor.visit_newtype_struct(self);
        }
        let item = match self.wire.item()? {
            Item::Tag(tag @ (tag::BIGNUM | tag::NEGATIVE_BIGNUM | tag::SOME)) => {
                return Err(Self::wrong_item(at, Item::Tag(tag), &visitor));
            }
            Item::Tag(tag) => self.wire.tensor(tag).map_err(|error| error.at(at))?,
            Item::Head(head) if head.major() == head::ARRAY => self.wire.number_array(head)?,
            item @ Item::Head(_) => return Err(Self::wrong_item(at, item, &visitor)),
        };
        self.hand_over(item, visitor).map_err(|error| error.at(at))
    }

    #[inline]
    fn hand_over<V: Visitor<'de>>(&mut self, item: TensorItem, visitor: V) -> Result<V::Value> {
        let stated = item.stated;
        let unclosed = item.unclosed();
        let in_memory = self.wire.src.remaining().is_some();
        if item.is_plain_block() && (in_memory || item.block_len() <= SMALL) {
            let (meta, bytes) = self.wire.payload_bytes(item)?;
            let value = show(meta, stated, bytes, visitor)?;
            self.wire.close(unclosed)?;
            return Ok(value);
        }
        let (meta, elements) = self.wire.payload_elements(item)?;
        let incoming = Slot::Incoming { meta, stated, elements: Some(Box::new(elements)) };
        handoff::offer(incoming, || visitor.visit_unit())
    }

    /// A tensor for any visitor: a map of dtype, shape, order and data.
    fn shown_tensor<V: Visitor<'de>>(&mut self, tag: u64, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        let item = self.wire.tensor(tag)?;
        let mut shown = ShownTensor::new(self, item);
        let value = visitor.visit_map(&mut shown).map_err(|error| error.at(at))?;
        shown.finish()?;
        Ok(value)
    }

    /// Counts options entered at one place of the input: a recursive type must not recurse on
    /// nothing.
    #[inline]
    fn enter_some(&mut self) -> Result<()> {
        let at = self.wire.offset();
        if self.some_at == at {
            self.some_count += 1;
            if self.some_count > self.wire.max_depth() {
                return Err(self.wire.too_deep());
            }
        } else {
            self.some_at = at;
            self.some_count = 1;
        }
        Ok(())
    }

    /// Whether the next item is tag `TSOM`, which then is left behind.
    fn some_tag(&mut self) -> Result<bool> {
        match self.wire.peek_head()? {
            Some((head, len)) if head.major() == head::TAG && head.arg == tag::SOME => {
                self.wire.src.advance(len);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// A variant with content: a map of one entry, whose head was read.
    #[inline(always)]
    fn variant<V: Visitor<'de>>(&mut self, at: u64, visitor: V) -> Result<V::Value> {
        self.wire.enter()?;
        let mut taken = false;
        let result = visitor.visit_enum(EnumAccess::new(&mut *self, &mut taken));
        self.wire.leave();
        let value = result?;
        if !taken {
            let what = "expected the content of a variant to be taken, found it left";
            return Err(Error::data(what).at(at));
        }
        Ok(value)
    }

    /// An enum with a long name, with tags, of indefinite length, or none.
    #[inline(never)]
    fn unusual_enum<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        let head = self.plain(&visitor)?;
        match head.major() {
            head::TEXT => match self.wire.text(head)? {
                Text::Borrowed(name) => visitor.visit_enum(UnitVariant::borrowed(name)),
                Text::Copied(name) => visitor.visit_enum(UnitVariant::copied(name)),
                Text::Owned(name) => visitor.visit_enum(UnitVariant::copied(&name)),
            },
            head::MAP if head.is_indefinite() => {
                let value = self.variant(at, visitor)?;
                self.wire.end("an enum")?;
                Ok(value)
            }
            head::MAP if head.arg == 1 => self.variant(at, visitor),
            head::MAP => {
                let found = format!("map of {} entries", head.arg);
                Err(invalid(Unexpected::Other(&found), &"an enum: a map of one entry").at(at))
            }
            _ => Err(Self::wrong(at, head, &visitor)),
        }
    }

    #[inline(never)]
    fn identifier<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        let head = self.plain(&visitor)?;
        match head.major() {
            head::TEXT => self.text(head, visitor),
            head::BYTES => self.bytes(head, visitor),
            // serde takes a number for the position of a field, which no encoder writes here.
            _ => Err(Self::wrong(at, head, &visitor)),
        }
    }

    /// Null where a unit is expected; an empty array too, which other encoders write.
    fn unit(&mut self, expected: &dyn de::Expected) -> Result<()> {
        let at = self.wire.offset();
        let head = self.plain(expected)?;
        match head.initial {
            head::NULL | head::UNDEFINED => Ok(()),
            initial if initial >> 5 == head::ARRAY && head.length() == Some(0) => Ok(()),
            initial if initial >> 5 == head::ARRAY && head.is_indefinite() => {
                self.wire.end("an empty array")
            }
            _ => Err(Self::wrong(at, head, expected)),
        }
    }

    fn any<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        let head = match self.wire.item()? {
            Item::Head(head) => head,
            Item::Tag(tag) => return self.any_tagged(tag, at, visitor),
        };
        match head.major() {
            head::UNSIGNED => visitor.visit_u64(head.arg),
            head::NEGATIVE => match i64::try_from(head.arg) {
                Ok(arg) => visitor.visit_i64(!arg),
                Err(_) => visitor.visit_i128(!i128::from(head.arg)),
            },
            head::BYTES => self.bytes(head, visitor),
            head::TEXT => self.text(head, visitor),
            head::ARRAY => self.seq(head, visitor),
            head::MAP => self.map(head, visitor),
            _ => match head.initial {
                head::FALSE => visitor.visit_bool(false),
                head::TRUE => visitor.visit_bool(true),
                head::NULL | head::UNDEFINED => visitor.visit_unit(),
                _ => match Numeric::from_head(head) {
                    Some(Numeric::Double(value)) => visitor.visit_f64(value),
                    Some(Numeric::Single(value)) => visitor.visit_f32(value),
                    _ => Err(Self::wrong(at, head, &visitor)),
                },
            },
        }
    }

    #[cold]
    fn any_tagged<V: Visitor<'de>>(&mut self, tag: u64, at: u64, visitor: V) -> Result<V::Value> {
        match tag {
            tag::SOME => {
                self.wire.enter()?;
                let value = visitor.visit_some(&mut *self);
                self.wire.leave();
                value
            }
            tag::BIGNUM | tag::NEGATIVE_BIGNUM => {
                let number = self.wire.bignum(tag)?;
                match (number.as_int(), number.as_unsigned()) {
                    (Some(value), _) => match (u64::try_from(value), i64::try_from(value)) {
                        (Ok(value), _) => visitor.visit_u64(value),
                        (_, Ok(value)) => visitor.visit_i64(value),
                        _ => visitor.visit_i128(value),
                    },
                    (None, Some(value)) => visitor.visit_u128(value),
                    (None, None) => Err(wrong_number(number, &visitor).at(at)),
                }
            }
            tag::ROW_MAJOR | tag::COLUMN_MAJOR | tag::TENSOR | tag::BUFFER | tag::COMPLEX => {
                self.shown_tensor(tag, visitor)
            }
            typed => self.typed_seq(typed, visitor),
        }
    }
}

/// Shows a tensor's bytes to this crate's own visitor.
#[inline]
fn show<'de, V: Visitor<'de>>(
    meta: TensorMeta,
    stated: bool,
    bytes: Bytes<'de, '_>,
    visitor: V,
) -> Result<V::Value> {
    handoff::offer(Slot::Incoming { meta, stated, elements: None }, || match bytes {
        Bytes::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
        Bytes::Copied(bytes) => visitor.visit_bytes(bytes),
        Bytes::Owned(bytes) => visitor.visit_bytes(&bytes),
    })
}

/// Tensors up to this size are read through the reader's buffer.
const SMALL: usize = 32 << 10;

fn tag_name(tag: u64) -> &'static str {
    match tag {
        tag::BIGNUM | tag::NEGATIVE_BIGNUM => "bignum",
        tag::ROW_MAJOR | tag::COLUMN_MAJOR | tag::TENSOR => "tensor",
        tag::COMPLEX => "complex numbers",
        tag::SOME => "Some",
        tag::BUFFER => "reference to a buffer",
        _ => "typed array",
    }
}

#[cold]
pub(crate) fn invalid(found: Unexpected<'_>, expected: &dyn de::Expected) -> Error {
    Error::new(Category::Data, format!("expected {expected}, found {found}"))
}

#[cold]
pub(crate) fn wrong_number(number: Numeric, expected: &dyn de::Expected) -> Error {
    let found = match number {
        Numeric::Int { negative, arg } => match (number.as_int(), negative) {
            (Some(value), _) => format!("integer {value}"),
            (None, false) => format!("integer {arg}"),
            (None, true) => format!("integer -1 - {arg}"),
        },
        Numeric::Single(value) => format!("single-precision float {value}"),
        Numeric::Double(value) => format!("double-precision float {value}"),
    };
    invalid(Unexpected::Other(&found), expected)
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty, $exact:ident;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let at = self.wire.offset();
            let number = match self.wire.unsigned()? {
                Some(arg) => match <$type>::try_from(arg) {
                    Ok(value) => return visitor.$visit(value),
                    Err(_) => Numeric::Int { negative: false, arg: arg.into() },
                },
                None => self.number(&visitor)?,
            };
            match number.$exact().and_then(|value| value.try_into().ok()) {
                Some(value) => visitor.$visit(value),
                None => Err(wrong_number(number, &visitor).at(at)),
            }
        }
    )*};
}

impl<'de, R: Read<'de>> de::Deserializer<'de> for &mut Deserializer<R> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.any(visitor)
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        let head = self.plain(&visitor)?;
        match head.initial {
            head::FALSE => visitor.visit_bool(false),
            head::TRUE => visitor.visit_bool(true),
            _ => Err(Deserializer::<R>::wrong(at, head, &visitor)),
        }
    }

    integers! {
        deserialize_u8 visit_u8 u8, as_int;
        deserialize_u16 visit_u16 u16, as_int;
        deserialize_u32 visit_u32 u32, as_int;
        deserialize_i8 visit_i8 i8, as_int;
        deserialize_i16 visit_i16 i16, as_int;
        deserialize_i32 visit_i32 i32, as_int;
        deserialize_i64 visit_i64 i64, as_int;
        deserialize_u64 visit_u64 u64, as_int;
        deserialize_i128 visit_i128 i128, as_int;
        deserialize_u128 visit_u128 u128, as_unsigned;
    }

    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(bytes) = self.wire.src.after(head::SINGLE) {
            return visitor.visit_f32(f32::from_be_bytes(bytes));
        }
        let at = self.wire.offset();
        let number = self.number(&visitor)?;
        match number.as_single() {
            Some(value) => visitor.visit_f32(value),
            None => Err(wrong_number(number, &visitor).at(at)),
        }
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(bytes) = self.wire.src.after(head::DOUBLE) {
            return visitor.visit_f64(f64::from_be_bytes(bytes));
        }
        let at = self.wire.offset();
        let number = self.number(&visitor)?;
        match number.as_double() {
            Some(value) => visitor.visit_f64(value),
            None => Err(wrong_number(number, &visitor).at(at)),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.wire.short_text() {
            Some(Ok(Text::Borrowed(text))) => return visitor.visit_borrowed_str(text),
            Some(Ok(Text::Copied(text))) => return visitor.visit_str(text),
            Some(Err(error)) => return Err(error),
            _ => {}
        }
        let at = self.wire.offset();
        let head = self.plain(&visitor)?;
        if head.major() == head::TEXT {
            self.text(head, visitor)
        } else {
            Err(Deserializer::<R>::wrong(at, head, &visitor))
        }
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        match self.wire.item()? {
            Item::Head(head) if head.major() == head::BYTES => self.bytes(head, visitor),
            Item::Head(head) if head.major() == head::ARRAY => self.seq(head, visitor),
            // A typed array of bytes is those bytes (RFC 8746, section 2.1).
            Item::Tag(64 | 68) => {
                let head = self.wire.head()?;
                if head.major() == head::BYTES {
                    self.bytes(head, visitor)
                } else {
                    Err(Deserializer::<R>::wrong(at, head, &visitor))
                }
            }
            item => Err(Deserializer::<R>::wrong_item(at, item, &visitor)),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let initial = self.wire.initial()?;
        match initial {
            head::NULL | head::UNDEFINED => {
                self.wire.src.advance(1);
                return visitor.visit_none();
            }
            _ if initial >> 5 == head::TAG && self.some_tag()? => {
                self.wire.enter()?;
                let value = visitor.visit_some(&mut *self);
                self.wire.leave();
                return value;
            }
            _ => {}
        }
        self.enter_some()?;
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.unit(&visitor)?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        if !name::is_ours(name) {
            return visitor.visit_newtype_struct(self);
        }
        match name {
            name::TENSOR => self.tensor(visitor),
            name::VALUE => {
                let value = self.wire.within(0, value::read)?;
                handoff::offer(Slot::Value(value), || visitor.visit_unit())
            }
            name::RAW => match self.wire.capture()? {
                Bytes::Borrowed(item) => visitor.visit_borrowed_bytes(item),
                Bytes::Copied(item) => visitor.visit_bytes(item),
                Bytes::Owned(item) => visitor.visit_byte_buf(item),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        match self.wire.item()? {
            Item::Head(head) if head.major() == head::ARRAY => self.seq(head, visitor),
            Item::Head(head) if head.major() == head::BYTES => {
                let bytes = self.wire.string(head)?;
                visit_numbers(&DType::U8, bytes.as_slice(), visitor).map_err(|error| error.at(at))
            }
            Item::Tag(tag) if is_array_tag(tag) => self.typed_seq(tag, visitor),
            item => Err(Deserializer::<R>::wrong_item(at, item, &visitor)),
        }
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        match self.wire.item()? {
            Item::Head(head) if head.major() == head::MAP => self.map(head, visitor),
            Item::Tag(tag @ (tag::ROW_MAJOR | tag::COLUMN_MAJOR | tag::TENSOR)) => {
                self.shown_tensor(tag, visitor)
            }
            item => Err(Deserializer::<R>::wrong_item(at, item, &visitor)),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let at = self.wire.offset();
        match self.wire.item()? {
            Item::Head(head) if head.major() == head::MAP => self.map(head, visitor),
            // Structs written as tuples, as other encoders do.
            Item::Head(head) if head.major() == head::ARRAY => self.seq(head, visitor),
            item => Err(Deserializer::<R>::wrong_item(at, item, &visitor)),
        }
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if self.wire.peek()? == Some(head::MAP << 5 | 1) {
            let at = self.wire.offset();
            self.wire.src.advance(1);
            return self.variant(at, visitor);
        }
        match self.wire.short_text() {
            Some(Ok(Text::Borrowed(name))) => visitor.visit_enum(UnitVariant::borrowed(name)),
            Some(Ok(Text::Copied(name))) => visitor.visit_enum(UnitVariant::copied(name)),
            Some(Err(error)) => Err(error),
            _ => self.unusual_enum(visitor),
        }
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.wire.short_text() {
            Some(Ok(Text::Borrowed(text))) => visitor.visit_borrowed_str(text),
            Some(Ok(Text::Copied(text))) => visitor.visit_str(text),
            Some(Err(error)) => Err(error),
            _ => self.identifier(visitor),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.wire.within(0, Wire::skip)?;
        visitor.visit_unit()
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Whether a tag stands for something that can be read as a sequence.
fn is_array_tag(tag: u64) -> bool {
    !matches!(tag, tag::BIGNUM | tag::NEGATIVE_BIGNUM | tag::SOME)
}
