//! Reads items of each type and passes them to visitors.

use serde::de::{self, Deserializer as _, Unexpected, Visitor};

use super::ValueDecoder;
use super::access::{EnumAccess, MapEntries, Seq};
use super::bulk::{self, Fill};
use super::columns::{
    PlainArray, RowElements, RowEntries, RowName, RowVariant, ShownText, check_rank, not_read,
};
use super::receive::{Receiver, received};
use super::visit::{show, visit_bytes};
use super::whole::WholeTensor;
use crate::budget::{Budget, Room};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::handoff::{self, Held, Slot};
use crate::io::input::Input;
use crate::io::source::SourceBytes;
use crate::meta::CompactMeta;
use crate::serde_model::{Narrowing, invalid, keeps_any_key, wrong_number};
use crate::value;
use crate::wire::encoded;
use crate::wire::head::{self, Head};
use crate::wire::number::Numeric;
use crate::wire::reader::{ItemStart, Left, Reader, unexpected_break};
use crate::wire::strings::Text;
use crate::wire::tag;
use crate::wire::tensor::{Kind, TensorItem};

impl<'de> ValueDecoder<'de, '_> {
    #[cold]
    pub(super) fn wrong(at: u64, found: Head, expected: &dyn de::Expected) -> Error {
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
    pub(super) fn wrong_item(at: u64, found: ItemStart, expected: &dyn de::Expected) -> Error {
        match found {
            ItemStart::Head(head) => Self::wrong(at, head, expected),
            ItemStart::Tag(tag) => invalid(Unexpected::Other(tag_name(tag)), expected).at(at),
            ItemStart::Within(_) => invalid(Unexpected::Other("tag"), expected).at(at),
        }
    }

    /// Reads a number of any width, also a bignum.
    #[inline(never)]
    pub(super) fn number(&mut self, expected: &dyn de::Expected) -> Result<Numeric> {
        let at = self.wire.offset();
        match self.wire.item()? {
            ItemStart::Head(head) => match Numeric::from_head(head) {
                Some(number) => Ok(number),
                None => Err(Self::wrong(at, head, expected)),
            },
            ItemStart::Tag(tag @ (tag::BIGNUM | tag::NEGATIVE_BIGNUM)) => self.wire.bignum(tag),
            ItemStart::Within(levels) => self.below(levels, |de| de.number(expected)),
            ItemStart::Tag(tag) => Err(Self::wrong_item(at, ItemStart::Tag(tag), expected)),
        }
    }

    /// Reads a text that the fast path did not: a long one, or one with tags or in chunks.
    #[inline(never)]
    pub(super) fn other_str<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        if let Some(text) = self.wire.short_copied_text() {
            return visit_text(text?, visitor);
        }
        let at = self.wire.offset();
        let head = self.plain(&visitor)?;
        if head.major() == head::TEXT {
            self.text(head, visitor)
        } else {
            Err(Self::wrong(at, head, &visitor))
        }
    }

    /// Reads a number as `convert` returns it. It returns `None` if the number does not fit.
    pub(super) fn number_as<A>(
        &mut self,
        expected: &dyn de::Expected,
        convert: impl FnOnce(Numeric) -> Option<A>,
    ) -> Result<A> {
        let at = self.wire.offset();
        let number = self.number(expected)?;
        convert(number).ok_or_else(|| wrong_number(number, expected).at(at))
    }

    /// Reads an `f32`, also from a float of another width, or from an integer.
    #[inline(never)]
    pub(super) fn single(&mut self, expected: &dyn de::Expected) -> Result<f32> {
        self.number_as(expected, Numeric::to_single)
    }

    /// Reads an `f64`, also from a float of another width, or from an integer.
    #[inline(never)]
    pub(super) fn double(&mut self, expected: &dyn de::Expected) -> Result<f64> {
        self.number_as(expected, Numeric::as_double)
    }

    /// Reads a bool.
    #[cold]
    #[inline(never)]
    pub(super) fn boolean(&mut self, expected: &dyn de::Expected) -> Result<bool> {
        let at = self.wire.offset();
        let head = self.plain(expected)?;
        match head.initial {
            head::FALSE => Ok(false),
            head::TRUE => Ok(true),
            _ => Err(Self::wrong(at, head, expected)),
        }
    }

    /// Reads the head of an item without a tag that changes its content. The tag `TSOM` is skipped.
    #[inline]
    pub(super) fn plain(&mut self, expected: &dyn de::Expected) -> Result<Head> {
        let at = self.wire.offset();
        match self.wire.item()? {
            ItemStart::Head(head) => Ok(head),
            item => self.plain_tagged(item, at, expected),
        }
    }

    #[cold]
    pub(super) fn plain_tagged(
        &mut self,
        found: ItemStart,
        at: u64,
        expected: &dyn de::Expected,
    ) -> Result<Head> {
        let item = match self.some_tags(found)? {
            0 => found,
            levels => self.below(levels, |de| de.wire.item())?,
        };
        match item {
            ItemStart::Head(head) => Ok(head),
            item => Err(Self::wrong_item(at, item, expected)),
        }
    }

    /// If `found` is the tag `TSOM` or a tag without a meaning, passes over all such tags that follow, and returns the
    /// number of these tags. Otherwise reads nothing and returns 0.
    #[cold]
    pub(super) fn some_tags(&mut self, found: ItemStart) -> Result<usize> {
        let first = match found {
            ItemStart::Tag(tag::SOME) => 1,
            ItemStart::Within(levels) => levels,
            _ => return Ok(0),
        };
        let passes = |tag| tag == tag::SOME || !tag::has_meaning(tag);
        let more = self.wire.within(first, |wire| wire.pass_tags(passes))?;
        Ok(first + more)
    }

    /// Reads an item that is in `levels` more tags than [`Reader`] has counted.
    #[cold]
    #[inline(never)]
    pub(super) fn below<T>(
        &mut self,
        levels: usize,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.wire.enter_all(levels)?;
        let value = read(self);
        self.wire.leave_all(levels);
        value
    }

    /// Reads the entries of a map, or the fields of a struct, which are not counted.
    #[inline(never)]
    pub(super) fn entries<const COUNTED: bool, V: Visitor<'de>>(
        &mut self,
        mut left: Left,
        visitor: V,
    ) -> Result<V::Value> {
        self.wire.enter()?;
        let result = visitor.visit_map(MapEntries::<COUNTED>::new(self, &mut left));
        self.leave(result, left, "a map")
    }

    /// Reads an array. `room` is that of its elements.
    #[inline(never)]
    pub(super) fn seq<V: Visitor<'de>>(
        &mut self,
        mut left: Left,
        room: Room,
        visitor: V,
    ) -> Result<V::Value> {
        self.wire.enter()?;
        let result = visitor.visit_seq(Seq::new(self, &mut left, room));
        self.leave(result, left, "an array")
    }

    /// Leaves an array or a map. If there is a value, the visitor must have taken all elements.
    #[inline]
    fn leave<T>(&mut self, result: Result<T>, left: Left, what: &str) -> Result<T> {
        self.wire.leave();
        if left.known() != Some(0) && result.is_ok() {
            self.close_slow(left, what)?;
        }
        result
    }

    /// Checks that the visitor has taken all elements, and takes the break of an indefinite length.
    #[cold]
    fn close_slow(&mut self, left: Left, what: &str) -> Result<()> {
        match left.known() {
            None => self.wire.end(what),
            Some(more) => {
                let message = format!("expected the end of {what}, found {more} more elements");
                Err(Error::mismatch(message).at(self.wire.offset()))
            }
        }
    }

    /// Reads a sequence from an item that is neither an array nor a byte string.
    #[cold]
    #[inline(never)]
    pub(super) fn other_seq<V: Visitor<'de>>(
        &mut self,
        at: u64,
        found: ItemStart,
        visitor: V,
    ) -> Result<V::Value> {
        match found {
            ItemStart::Within(levels) => self.below(levels, |de| de.deserialize_seq(visitor)),
            ItemStart::Tag(tag::BIGNUM | tag::NEGATIVE_BIGNUM | tag::SOME) | ItemStart::Head(_) => {
                Err(Self::wrong_item(at, found, &visitor))
            }
            ItemStart::Tag(tag) => self.typed_seq(tag, visitor),
        }
    }

    /// Reads a map from an item that is no map.
    #[cold]
    #[inline(never)]
    pub(super) fn other_map<V: Visitor<'de>>(
        &mut self,
        at: u64,
        found: ItemStart,
        visitor: V,
    ) -> Result<V::Value> {
        match found {
            ItemStart::Tag(
                tag @ (tag::ROW_MAJOR | tag::COLUMN_MAJOR | tag::TENSOR | tag::BUFFER),
            ) => received(visitor, |to| self.give_tensor(tag, to)),
            ItemStart::Within(levels) => self.below(levels, |de| de.deserialize_map(visitor)),
            _ => Err(Self::wrong_item(at, found, &visitor)),
        }
    }

    /// Reads a struct from an item that is neither a map nor an array. Columns are accepted, because they stand for an
    /// array.
    #[cold]
    #[inline(never)]
    pub(super) fn other_struct<V: Visitor<'de>>(
        &mut self,
        at: u64,
        found: ItemStart,
        visitor: V,
    ) -> Result<V::Value> {
        match found {
            ItemStart::Tag(tag::COLUMNS) => self.columns(visitor),
            ItemStart::Within(levels) => {
                self.below(levels, |de| de.deserialize_struct("", &[], visitor))
            }
            _ => Err(Self::wrong_item(at, found, &visitor)),
        }
    }

    pub(super) fn text<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        visit_text(self.wire.text(head)?, visitor)
    }

    pub(super) fn bytes<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        visit_bytes(self.wire.string(head)?, visitor)
    }

    /// Reads a typed array, a tensor of one dimension, or columns, as a sequence. Its tag was read.
    pub(super) fn typed_seq<V: Visitor<'de>>(&mut self, tag: u64, visitor: V) -> Result<V::Value> {
        received(visitor, |to| self.give_typed(tag, bulk::fills::<V>(), to))
    }

    fn give_typed(
        &mut self,
        tag: u64,
        fill: Option<Fill>,
        to: &mut dyn Receiver<'de>,
    ) -> Result<()> {
        if tag == tag::COLUMNS {
            return self.give_columns(to);
        }
        let at = self.wire.offset();
        let item = self.wire.tensor(tag)?;
        self.give_numbers(item, at, fill, to)
    }

    /// Gives the elements of a tensor of one dimension. `fill` says of which elements the visitor would make a `Vec`.
    pub(super) fn give_numbers(
        &mut self,
        item: TensorItem,
        at: u64,
        fill: Option<Fill>,
        to: &mut dyn Receiver<'de>,
    ) -> Result<()> {
        check_rank(item.meta.shape.len(), to.expected()).map_err(|error| error.at(at))?;
        if fill.is_some_and(|fill| fill.is(&item.meta.dtype)) {
            let (_, elements) = self.wire.payload_elements(item)?;
            let Some(vec) = elements.into_any_vec() else {
                return Err(Error::mismatch("expected a vector of numbers").at(at));
            };
            to.vec(vec);
            return Ok(());
        }
        let (unclosed, narrowing) = (item.unclosed(), item.kind.into());
        self.lend_budget(|de, budget| {
            let (meta, bytes) = de.wire.payload_bytes(item)?;
            let numbers = RowElements::of_numbers(&meta.dtype, narrowing, bytes, at, budget);
            let given = numbers.and_then(|numbers| numbers.give(to));
            given.map_err(|error| error.at(at))
        })?;
        self.wire.close(unclosed)
    }

    /// Lets `give` pass a copy of the budget to a visitor while the reader is in use, and takes what the visitor has taken.
    fn lend_budget(&mut self, give: impl FnOnce(&mut Self, &Budget) -> Result<()>) -> Result<()> {
        let budget = self.wire.allowance();
        let before = budget.taken();
        let given = give(self, &budget);
        self.wire.charge(budget.taken() - before)?;
        given
    }

    /// Gives the bytes of a byte string, whose head was read, as a sequence of numbers.
    pub(super) fn give_byte_numbers(
        &mut self,
        head: Head,
        at: u64,
        to: &mut dyn Receiver<'de>,
    ) -> Result<()> {
        self.lend_budget(|de, budget| {
            let bytes = de.wire.string(head)?;
            let numbers =
                RowElements::of_numbers(&DType::U8, Narrowing::Nearest, bytes, at, budget);
            let given = numbers.and_then(|numbers| numbers.give(to));
            given.map_err(|error| error.at(at))
        })
    }

    /// Reads a tensor for this crate's own visitor: see [`handoff`].
    pub(super) fn tensor<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        if let Some((meta, len)) = self.wire.usual_tensor() {
            return self.usual_tensor(meta, len, visitor).map_err(|error| error.at(at));
        }
        if self.wire.initial()? >> 5 == head::MAP {
            // The form that other serde formats write for a tensor.
            return visitor.visit_newtype_struct(self);
        }
        let item = match self.wire.item()? {
            // The tag `TSOM` has no meaning around a value that cannot be null.
            found @ (ItemStart::Tag(tag::SOME) | ItemStart::Within(_)) => {
                let levels = self.some_tags(found)?;
                return self.below(levels, |de| de.tensor(visitor));
            }
            ItemStart::Tag(tag::COLUMNS) => {
                let numbers = self.columns(PlainArray).map_err(|error| error.at(at))?;
                self.wire.charge(numbers.elements_len())?;
                return numbers.pass_on(visitor).map_err(|error| error.at(at));
            }
            ItemStart::Tag(tag @ (tag::BIGNUM | tag::NEGATIVE_BIGNUM)) => {
                return Err(Self::wrong_item(at, ItemStart::Tag(tag), &visitor));
            }
            ItemStart::Tag(tag) => self.wire.tensor(tag).map_err(|error| error.at(at))?,
            ItemStart::Head(head) if head.major() == head::ARRAY => self.wire.number_array(head)?,
            item @ ItemStart::Head(_) => return Err(Self::wrong_item(at, item, &visitor)),
        };
        self.hand_over(item, visitor).map_err(|error| error.at(at))
    }

    #[inline]
    fn usual_tensor<V: Visitor<'de>>(
        &mut self,
        meta: CompactMeta,
        len: usize,
        visitor: V,
    ) -> Result<V::Value> {
        if self.wire.src.remaining().is_none() {
            return self.hand_over(TensorItem::usual(meta.general()?, len), visitor);
        }
        let size = DType::size_of_little_endian(meta.tag()).unwrap_or(1);
        match self.wire.payload_block(size, len)? {
            SourceBytes::Borrowed(bytes) => visitor.visit_enum(WholeTensor::new(meta, bytes)),
            bytes => show(meta.general()?, true, Held::Nothing, bytes, visitor),
        }
    }

    #[inline]
    pub(super) fn hand_over<V: Visitor<'de>>(
        &mut self,
        item: TensorItem,
        visitor: V,
    ) -> Result<V::Value> {
        let stated = item.stated;
        let unclosed = item.unclosed();
        if item.is_small_block(SMALL) || self.wire.can_borrow(&item) {
            let held = self.wire.shared(&item).map_or(Held::Nothing, Held::Shared);
            let (meta, bytes) = self.wire.payload_bytes(item)?;
            let value = show(meta, stated, held, bytes, visitor)?;
            self.wire.close(unclosed)?;
            return Ok(value);
        }
        let (meta, elements) = self.wire.payload_elements(item)?;
        let incoming = Slot::Incoming { meta, stated, held: Held::Elements(Box::new(elements)) };
        handoff::offer(incoming, || visitor.visit_unit())
    }

    /// Gives a tensor, whose tag was read, to any other visitor, which sees a map of dtype, shape, order and data.
    fn give_tensor(&mut self, tag: u64, to: &mut dyn Receiver<'de>) -> Result<()> {
        let at = self.wire.offset();
        let item = self.wire.tensor(tag)?;
        self.give_map(item, at, to)
    }

    fn give_map(&mut self, item: TensorItem, at: u64, to: &mut dyn Receiver<'de>) -> Result<()> {
        let unclosed = item.unclosed();
        self.lend_budget(|de, budget| {
            let (meta, bytes) = de.wire.payload_bytes(item)?;
            RowEntries::of_tensor(&meta, bytes, at, budget)?.give(to)
        })?;
        self.wire.close(unclosed)
    }

    /// Reads the encoded bytes of an item. Payloads in buffers are inserted into it.
    pub(super) fn raw(&mut self) -> Result<SourceBytes<'de, 'static>> {
        let at = self.wire.offset();
        // Items are borrowed here, because metadata is in memory.
        let item = match self.wire.capture()? {
            SourceBytes::Borrowed(item) => item,
            other => return Ok(other),
        };
        let (levels, allowance) = (self.wire.max_depth(), self.wire.allowance());
        let whole = match self.wire.src.buffers() {
            Some(buffers) if encoded::holds_reference(item) => {
                let source = Input::segment(item, at, buffers);
                let mut inner = Reader::inside(source, levels, &allowance);
                let value = value::read(&mut inner)?;
                allowance.take_over(&inner.allowance());
                crate::to_vec(&value)?
            }
            _ => return Ok(SourceBytes::Borrowed(item)),
        };
        self.wire.resume(&allowance);
        self.wire.charge(whole.len() as u64)?;
        Ok(SourceBytes::Owned(whole))
    }

    /// Reads a byte string that is in a buffer.
    pub(super) fn buffer_bytes<V: Visitor<'de>>(
        &mut self,
        item: TensorItem,
        visitor: V,
    ) -> Result<V::Value> {
        visit_bytes(self.wire.payload_bytes(item)?.1, visitor)
    }

    /// Counts how many options were entered at one position of the input. A recursive type such as
    /// `struct A(Option<Box<A>>)` could otherwise recurse forever without reading a byte.
    #[inline]
    pub(super) fn enter_some(&mut self) -> Result<()> {
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

    /// Whether the next item is the tag `TSOM`. If it is, it is taken.
    pub(super) fn some_tag(&mut self) -> Result<bool> {
        match self.wire.peek_head()? {
            Some((head, len)) if head.major() == head::TAG && head.arg == tag::SOME => {
                self.wire.src.advance(len);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Reads an enum value with content: a map of one entry, whose head was read.
    #[inline]
    pub(super) fn variant<V: Visitor<'de>>(&mut self, at: u64, visitor: V) -> Result<V::Value> {
        self.wire.enter()?;
        let mut access = EnumAccess::new(&mut *self);
        let result = visitor.visit_enum(&mut access);
        let is_read = access.is_read();
        self.wire.leave();
        let value = result?;
        if !is_read {
            return Err(not_read().at(at));
        }
        Ok(value)
    }

    /// Reads an enum that the fast path did not: with a long name, with tags, or of indefinite length.
    #[inline(never)]
    pub(super) fn unusual_enum<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        if let Some(name) = self.wire.short_copied_text() {
            return visit_unit_variant(ShownText::of(&name?), visitor);
        }
        let at = self.wire.offset();
        let head = match self.wire.item()? {
            ItemStart::Head(head) => head,
            found @ (ItemStart::Tag(tag::SOME) | ItemStart::Within(_)) => {
                let levels = self.some_tags(found)?;
                return self.below(levels, |de| de.unusual_enum(visitor));
            }
            found @ ItemStart::Tag(_) => return Err(Self::wrong_item(at, found, &visitor)),
        };
        match head.major() {
            head::TEXT => visit_unit_variant(ShownText::of(&self.wire.text(head)?), visitor),
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
    pub(super) fn identifier<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        if let Some(text) = self.wire.short_copied_text() {
            return visit_text(text?, visitor);
        }
        if keeps_any_key::<V>() {
            return self.any(visitor);
        }
        let at = self.wire.offset();
        let head = self.plain(&visitor)?;
        match head.major() {
            head::TEXT => self.text(head, visitor),
            head::BYTES => self.bytes(head, visitor),
            _ => Err(Self::wrong(at, head, &visitor)),
        }
    }

    /// Reads a unit: null, or an empty array, which some other encoders write.
    pub(super) fn unit(&mut self, expected: &dyn de::Expected) -> Result<()> {
        let at = self.wire.offset();
        let head = match self.wire.item()? {
            ItemStart::Head(head) => head,
            found @ (ItemStart::Tag(tag::SOME) | ItemStart::Within(_)) => {
                let levels = self.some_tags(found)?;
                return self.below(levels, |de| de.unit(expected));
            }
            found @ ItemStart::Tag(_) => return Err(Self::wrong_item(at, found, expected)),
        };
        match head.initial {
            head::NULL | head::UNDEFINED => Ok(()),
            initial if initial >> 5 == head::ARRAY && head.length() == Some(0) => {
                self.wire.within(1, |_| Ok(()))
            }
            initial if initial >> 5 == head::ARRAY && head.is_indefinite() => {
                self.wire.within(1, |wire| wire.end("an empty array"))
            }
            _ => Err(Self::wrong(at, head, expected)),
        }
    }

    pub(super) fn any<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        let head = match self.wire.item()? {
            ItemStart::Head(head) => head,
            ItemStart::Tag(tag) => return self.any_tagged(tag, at, visitor),
            ItemStart::Within(levels) => return self.below(levels, |de| de.any(visitor)),
        };
        match head.major() {
            head::UNSIGNED => visitor.visit_u64(head.arg),
            head::NEGATIVE => match i64::try_from(head.arg) {
                Ok(arg) => visitor.visit_i64(!arg),
                Err(_) => visitor.visit_i128(!i128::from(head.arg)),
            },
            head::BYTES => self.bytes(head, visitor),
            head::TEXT => self.text(head, visitor),
            head::ARRAY => self.seq(Left::of(head), Room::NONE, visitor),
            head::MAP => self.entries::<true, V>(Left::of(head), visitor),
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
    pub(super) fn any_tagged<V: Visitor<'de>>(
        &mut self,
        tag: u64,
        at: u64,
        visitor: V,
    ) -> Result<V::Value> {
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
            tag => received(visitor, |to| self.give_tagged(tag, at, bulk::fills::<V>(), to)),
        }
    }

    /// Gives what is in a tag, which was read.
    fn give_tagged(
        &mut self,
        tag: u64,
        at: u64,
        fill: Option<Fill>,
        to: &mut dyn Receiver<'de>,
    ) -> Result<()> {
        match tag {
            tag::BUFFER => {
                let item = self.wire.tensor(tag)?;
                match item.kind {
                    Kind::Tensor => self.give_map(item, at, to),
                    Kind::Numbers => self.give_numbers(item, at, fill, to),
                    Kind::Bytes => to.bytes(self.wire.payload_bytes(item)?.1),
                }
            }
            tag::ROW_MAJOR | tag::COLUMN_MAJOR | tag::TENSOR | tag::COMPLEX => {
                self.give_tensor(tag, to)
            }
            typed => self.give_typed(typed, fill, to),
        }
    }
}

/// Encodes a value. Not generic, so that code for the type of a user that calls this does not compile it again.
pub(super) fn encoded(value: &value::Value) -> Result<Vec<u8>> {
    crate::to_vec(value)
}

/// Passes a text to a visitor.
#[inline]
pub(super) fn visit_text<'de, V: Visitor<'de>>(
    text: Text<'de, '_>,
    visitor: V,
) -> Result<V::Value> {
    match text {
        Text::Borrowed(text) => visitor.visit_borrowed_str(text),
        Text::Copied(text) => visitor.visit_str(text),
        Text::Owned(text) => visitor.visit_string(text),
    }
}

/// Passes an enum without content to a visitor, by the name of its variant.
pub(super) fn visit_unit_variant<'de, V: Visitor<'de>>(
    name: ShownText<'de, '_>,
    visitor: V,
) -> Result<V::Value> {
    let budget = Budget::unlimited();
    RowVariant::unit(RowName::new(name, &budget)).visit(visitor)
}

/// Tensors of at most this many bytes are read through the reader's buffer.
const SMALL: usize = 32 << 10;

fn tag_name(tag: u64) -> &'static str {
    match tag {
        tag::BIGNUM | tag::NEGATIVE_BIGNUM => "bignum",
        tag::ROW_MAJOR | tag::COLUMN_MAJOR | tag::TENSOR => "tensor",
        tag::COMPLEX => "complex numbers",
        tag::SOME => "Some",
        tag::COLUMNS => "columns",
        tag::BUFFER => "reference to a buffer",
        _ => "typed array",
    }
}
