//! Reads CBOR items from a source and enforces the limits on nesting and memory.

use std::borrow::Cow;
use std::cell::Cell;
use std::str;

use super::columns::{Allowance, Scope};
use super::head::{self, Head, Parsed};
use super::number::Numeric;
use super::tag;
use crate::error::{Error, Result};
use crate::io::source::{Bytes, Read, SliceRead, Source as _, pass_over, reserve};
use crate::mem;
use crate::options::Limits;

impl<'de> Reader<SliceRead<'de>> {
    /// The bytes that were not read yet.
    pub fn rest(&self) -> &'de [u8] {
        self.src.rest()
    }

    /// Skips bytes that the caller has read from [`Reader::rest`].
    pub fn pass(&mut self, bytes: usize) {
        self.src.advance(bytes);
    }

    /// The number of bytes that were not read yet.
    pub fn bytes_left(&self) -> usize {
        self.src.remaining().unwrap_or(0)
    }
}

/// A source of CBOR items, and how much of the limits is left.
#[derive(Debug)]
pub struct Reader<R> {
    pub src: R,
    /// How many more levels may be entered.
    depth: usize,
    limits: Limits,
    /// How many more bytes may be allocated.
    budget: u64,
    /// The sum of all size hints given so far: see [`Reader::size_hint`].
    hinted: Cell<u64>,
    /// Whether the source stores the bytes of skipped items, so that they count as allocated.
    recording: bool,
    /// The limits that only columns use up.
    columns: Scope,
}

/// The next item, as a typed reader needs it: the head of an item, or a tag that changes how its
/// content is read. All other tags are skipped.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    Head(Head),
    Tag(u64),
}

/// How many items of an array or map are left: a number, or unknown if a break ends the container.
#[derive(Clone, Copy, Debug)]
pub struct Left(u64);

impl Left {
    /// No items.
    pub const NONE: Self = Self(0);
    const UNKNOWN: u64 = u64::MAX;

    /// The number of items of the container with this head. The largest `u64` means an unknown
    /// number, so that a length of this value is reduced by one. No input has that many items.
    #[inline(always)]
    pub fn of(head: Head) -> Self {
        Self(match head.length() {
            Some(len) => len.min(Self::UNKNOWN - 1),
            None => Self::UNKNOWN,
        })
    }

    /// Takes one item. Returns false if none are left.
    #[inline(always)]
    pub fn take_one(&mut self) -> bool {
        let fewer = self.0.wrapping_sub(1);
        // One comparison finds both special values: 0 wraps to `u64::MAX`, and `UNKNOWN` becomes
        // `UNKNOWN - 1`.
        if fewer >= Self::UNKNOWN - 1 {
            return self.0 == Self::UNKNOWN;
        }
        self.0 = fewer;
        true
    }

    /// The number of items left, or `None` if a break ends the container.
    #[inline(always)]
    pub fn known(self) -> Option<u64> {
        (self.0 != Self::UNKNOWN).then_some(self.0)
    }
}

/// The content of a text string. The variants are those of [`Bytes`].
pub enum Text<'de, 's> {
    Borrowed(&'de str),
    Copied(&'s str),
    Owned(String),
}

impl<'de> Text<'de, '_> {
    pub fn into_cow(self) -> Cow<'de, str> {
        match self {
            Self::Borrowed(text) => Cow::Borrowed(text),
            Self::Copied(text) => Cow::Owned(text.to_owned()),
            Self::Owned(text) => Cow::Owned(text),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Copied(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl<'de, R: Read<'de>> Reader<R> {
    pub fn new(src: R, limits: Limits) -> Self {
        let budget = limits.alloc_budget(src.bounds_itself());
        Self {
            src,
            depth: limits.max_depth,
            limits,
            budget,
            hinted: Cell::new(0),
            recording: false,
            columns: Scope::default(),
        }
    }

    /// A reader of an item inside another document, with what is left of the limits of that document.
    pub fn inside(src: R, levels: usize, allowance: &Allowance) -> Self {
        let mut wire = Self::new(src, allowance.limits);
        wire.depth = levels;
        wire.resume(allowance);
        wire
    }

    /// What is left of the limits.
    pub fn allowance(&self) -> Allowance {
        let (budget, scope) = (Cell::new(self.budget), Cell::new(self.columns));
        Allowance { limits: self.limits, budget, scope }
    }

    /// Takes back what is left of the limits after other code has used an [`Allowance`].
    pub fn resume(&mut self, allowance: &Allowance) {
        self.budget = allowance.budget.get();
        self.columns = allowance.scope.get();
    }

    /// The limits that only columns use up.
    pub fn column_limits(&mut self) -> &mut Scope {
        &mut self.columns
    }

    /// Resets the limits. Each value of a stream gets the full limits.
    pub fn renew(&mut self) {
        self.depth = self.limits.max_depth;
        self.budget = self.limits.alloc_budget(self.src.bounds_itself());
        self.columns = Scope::default();
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub fn max_rank(&self) -> usize {
        self.limits.max_rank
    }

    pub fn max_depth(&self) -> usize {
        self.limits.max_depth
    }

    #[inline(always)]
    pub fn offset(&self) -> u64 {
        self.src.offset()
    }

    /// Enters one level of nesting. After `Ok`, the caller must call [`Reader::leave`], unless an error
    /// ends the decoding.
    #[inline(always)]
    pub fn enter(&mut self) -> Result<()> {
        match self.depth.checked_sub(1) {
            Some(depth) => {
                self.depth = depth;
                Ok(())
            }
            None => Err(self.too_deep()),
        }
    }

    #[inline(always)]
    pub fn leave(&mut self) {
        self.depth += 1;
    }

    /// Runs `read` with `levels` more levels entered. Leaves them again also after an error, because a
    /// visitor may continue after one.
    pub fn within<T>(
        &mut self,
        levels: usize,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let depth = self.depth.checked_sub(levels).ok_or_else(|| self.too_deep())?;
        let outer = std::mem::replace(&mut self.depth, depth);
        let result = read(self);
        self.depth = outer;
        result
    }

    #[inline]
    pub fn has_levels(&self, levels: usize) -> bool {
        self.depth >= levels
    }

    /// How many more levels of nesting may be entered.
    pub fn levels_left(&self) -> usize {
        self.depth
    }

    #[cold]
    pub fn too_deep(&self) -> Error {
        let max = self.limits.max_depth;
        Error::limit(format!("nesting is deeper than {max} levels")).at(self.offset())
    }

    /// Subtracts bytes that are about to be allocated from the document's budget.
    pub fn charge(&mut self, bytes: u64) -> Result<()> {
        match self.budget.checked_sub(bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(Error::limit(format!(
                "cannot allocate {bytes} more bytes, {} are left of the limit",
                self.budget
            ))
            .at(self.offset())),
        }
    }

    /// How many elements to reserve memory for if the container claims to have `claimed` elements.
    ///
    /// The claim may be false. Each element takes at least one byte of input, so the sum of all hints
    /// of a document is kept below its number of bytes. If the length of the input is unknown, this
    /// counts the bytes read so far plus 4096.
    #[inline]
    pub fn size_hint(&self, claimed: Left) -> Option<usize> {
        let ahead = self.src.remaining().unwrap_or(4096) as u64;
        let proven = (self.offset().saturating_add(ahead)).saturating_sub(self.hinted.get());
        let hint = claimed.known()?.min(proven);
        self.hinted.set(self.hinted.get() + hint);
        usize::try_from(hint).ok()
    }

    /// The next byte, without taking it. `None` at the end of the input.
    #[inline(always)]
    pub fn peek(&mut self) -> Result<Option<u8>> {
        if let Some(&byte) = self.src.window().first() {
            return Ok(Some(byte));
        }
        self.peek_slow()
    }

    #[cold]
    fn peek_slow(&mut self) -> Result<Option<u8>> {
        self.src.fill(1)?;
        Ok(self.src.window().first().copied())
    }

    /// The initial byte of the next item, without taking it.
    #[inline(always)]
    pub fn initial(&mut self) -> Result<u8> {
        match self.peek()? {
            Some(byte) => Ok(byte),
            None => Err(Error::eof("a value").at(self.offset())),
        }
    }

    /// Reads the next head.
    #[inline(always)]
    pub fn head(&mut self) -> Result<Head> {
        if let Some(&initial) = self.src.window().first() {
            let info = initial & 0x1f;
            if info < 24 {
                self.src.advance(1);
                return Ok(Head { initial, arg: info.into() });
            }
        }
        self.long_head()
    }

    #[inline(never)]
    fn long_head(&mut self) -> Result<Head> {
        // If nine bytes are there, an argument of any width is read as one word of eight bytes. The
        // two-byte form of simple values has a rule of its own.
        if let Some(&[initial, ref word @ ..]) = self.src.window().first_chunk::<9>() {
            let class = (initial & 0x1f).wrapping_sub(24);
            if class < 4 && initial != head::SIMPLE_BYTE {
                let width = 1usize << class;
                let arg = u64::from_be_bytes(*word) >> (64 - 8 * width);
                self.src.advance(1 + width);
                return Ok(Head { initial, arg });
            }
        }
        self.unusual_head()
    }

    #[inline(never)]
    fn unusual_head(&mut self) -> Result<Head> {
        let at = self.offset();
        let parsed = head::parse(self.src.window());
        if let Parsed::Head(head, len) = parsed {
            self.src.advance(len);
            return Ok(head);
        }
        match self.refill(parsed)? {
            (Parsed::Head(head, len), _) => {
                self.src.advance(len);
                Ok(head)
            }
            (Parsed::Short(_), 0) => Err(Error::eof("a value").at(at)),
            (Parsed::Short(_), _) => Err(Error::eof("the rest of a head").at(at)),
            (Parsed::Malformed(why), _) => Err(Error::syntax(why).at(at)),
        }
    }

    /// Reads an unsigned integer, if the next item is one.
    #[inline(always)]
    pub fn unsigned(&mut self) -> Result<Option<u64>> {
        match self.src.window().first() {
            Some(&initial) if initial < 24 => {
                self.src.advance(1);
                Ok(Some(initial.into()))
            }
            Some(&0x18) => match self.src.window().get(1) {
                Some(&arg) => {
                    self.src.advance(2);
                    Ok(Some(arg.into()))
                }
                None => self.long_head().map(|head| Some(head.arg)),
            },
            Some(&initial) if initial < 0x1c => self.long_head().map(|head| Some(head.arg)),
            _ => Ok(None),
        }
    }

    /// Reads the next item if it is a text string of less than 256 bytes that is already in the
    /// window. Otherwise reads nothing.
    #[inline(always)]
    pub fn short_text(&mut self) -> Option<Result<Text<'de, '_>>> {
        let window = self.src.window();
        let len = window.first()?.wrapping_sub(head::TEXT << 5);
        let (skip, len) = match len {
            0..24 => (1, len),
            24 => (2, *window.get(1)?),
            _ => return None,
        };
        if window.len() < skip + usize::from(len) {
            return None;
        }
        if self.src.remaining().is_none() && self.charge(len.into()).is_err() {
            return None;
        }
        let at = self.offset();
        Some(match self.src.short(skip, len.into())? {
            Bytes::Borrowed(bytes) => match mem::text(bytes) {
                Ok(text) => Ok(Text::Borrowed(text)),
                Err(error) => Err(not_utf8(error).at(at + skip as u64)),
            },
            Bytes::Copied(bytes) => match mem::text(bytes) {
                Ok(text) => Ok(Text::Copied(text)),
                Err(error) => Err(not_utf8(error).at(at + skip as u64)),
            },
            Bytes::Owned(_) => return None,
        })
    }

    /// If the window was too short for the head, reads more input and parses again. Also returns the
    /// length of the window.
    fn refill(&mut self, mut parsed: Parsed) -> Result<(Parsed, usize)> {
        while let Parsed::Short(need) = parsed {
            self.src.fill(need)?;
            parsed = head::parse(self.src.window());
            if self.src.window().len() < need {
                break;
            }
        }
        Ok((parsed, self.src.window().len()))
    }

    /// The next head and its length in bytes, without taking it. `None` if the input ends or the head is
    /// malformed.
    pub fn peek_head(&mut self) -> Result<Option<(Head, usize)>> {
        let parsed = head::parse(self.src.window());
        Ok(match self.refill(parsed)?.0 {
            Parsed::Head(head, len) => Some((head, len)),
            _ => None,
        })
    }

    /// Reads the next head, and skips tags that have no meaning to this crate.
    #[inline(always)]
    pub fn item(&mut self) -> Result<Item> {
        let head = self.head()?;
        if head.major() == head::TAG { self.tagged(head) } else { Ok(Item::Head(head)) }
    }

    /// Like [`Reader::item`], if the next head was read and is a tag.
    #[inline(never)]
    pub fn tagged(&mut self, mut head: Head) -> Result<Item> {
        let mut left = self.depth;
        loop {
            if head.major() != head::TAG {
                return Ok(Item::Head(head));
            }
            left = left.checked_sub(1).ok_or_else(|| self.too_deep())?;
            match head.arg {
                tag::BIGNUM | tag::NEGATIVE_BIGNUM | tag::SOME | tag::COLUMNS => {
                    return Ok(Item::Tag(head.arg));
                }
                array if tag::is_array(array) => return Ok(Item::Tag(array)),
                tag::STRING_REFERENCE | tag::SHARED_REFERENCE => {
                    let what =
                        format!("tag {} refers to another value, which is not supported", head.arg);
                    return Err(Error::data(what).at(self.offset()));
                }
                _ => head = self.head()?,
            }
        }
    }

    /// Whether a container has one more item, which is counted as taken. If the length is indefinite,
    /// this looks for the break. After the last item, `left` is 0.
    #[inline(always)]
    pub fn more(&mut self, left: &mut Left) -> Result<bool> {
        match left.0 {
            Left::UNKNOWN => self.more_before_break(left),
            _ => Ok(left.take_one()),
        }
    }

    /// Like [`Reader::more`], but does not count the item. The caller counts it with
    /// [`Left::take_one`].
    #[inline(always)]
    pub fn any_left(&mut self, left: &mut Left) -> Result<bool> {
        match left.0 {
            Left::UNKNOWN => self.more_before_break(left),
            left => Ok(left > 0),
        }
    }

    #[inline(never)]
    fn more_before_break(&mut self, left: &mut Left) -> Result<bool> {
        let more = !self.at_break()?;
        if !more {
            left.0 = 0;
        }
        Ok(more)
    }

    /// Whether the next byte is a break. If it is, it is taken.
    pub fn at_break(&mut self) -> Result<bool> {
        let at_break = self.initial()? == head::BREAK;
        if at_break {
            self.src.advance(1);
        }
        Ok(at_break)
    }

    /// Takes a break. `what` is the item that it ends, for the error message.
    pub fn end(&mut self, what: &str) -> Result<()> {
        let at = self.offset();
        if self.at_break()? {
            return Ok(());
        }
        Err(Error::data(format!("expected the end of {what}, found more")).at(at))
    }

    /// The content of a byte or text string whose head was read.
    #[inline(always)]
    pub fn string(&mut self, head: Head) -> Result<Bytes<'de, '_>> {
        match head.length() {
            Some(len) => self.block(len, head::name(head.initial)),
            None => self.chunks(head, usize::MAX).map(Bytes::Owned),
        }
    }

    #[inline(always)]
    fn block(&mut self, len: u64, what: &str) -> Result<Bytes<'de, '_>> {
        if self.src.remaining().is_none() {
            self.charge(len)?;
        }
        match usize::try_from(len) {
            Ok(len) => self.src.take(len, what),
            Err(_) => Err(Error::limit(format!("{len} bytes of {what} do not fit in memory"))
                .at(self.offset())),
        }
    }

    /// Reads the head of the next chunk of a string of indefinite length. `None` at the end of the
    /// string. Each chunk must have the type of the string and a definite length (RFC 8949, section
    /// 3.2.3).
    pub fn next_chunk(&mut self, string: Head) -> Result<Option<Head>> {
        let at = self.offset();
        if self.at_break()? {
            return Ok(None);
        }
        let chunk = self.head()?;
        if chunk.major() != string.major() || chunk.is_indefinite() {
            let (found, expected) = (head::name(chunk.initial), head::name(string.initial));
            let what = format!("expected a chunk of a {expected}, found {found}");
            return Err(Error::syntax(what).at(at));
        }
        Ok(Some(chunk))
    }

    /// The content of a string of indefinite length, at most `max` bytes. Each chunk of a text must be
    /// valid UTF-8 by itself: a code point cannot be split across chunks (RFC 8949, section 3.2.3).
    #[cold]
    pub fn chunks(&mut self, string: Head, max: usize) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let at = self.offset();
            let Some(chunk) = self.next_chunk(string)? else { return Ok(all) };
            if chunk.arg > (max - all.len()) as u64 {
                let what = format!("expected at most {max} bytes in chunks, found more");
                return Err(Error::data(what).at(at));
            }
            if self.src.remaining().is_some() {
                // Otherwise `block` charges.
                self.charge(chunk.arg)?;
            }
            let bytes = self.block(chunk.arg, head::name(chunk.initial))?;
            let bytes = bytes.as_slice();
            if chunk.major() == head::TEXT {
                str::from_utf8(bytes).map_err(|error| not_utf8(error).at(at))?;
            }
            reserve(&mut all, bytes.len())?;
            all.extend_from_slice(bytes);
        }
    }

    /// The content of a text string whose head was read.
    #[inline(always)]
    pub fn text(&mut self, head: Head) -> Result<Text<'de, '_>> {
        let at = self.offset();
        match self.string(head)? {
            Bytes::Borrowed(bytes) => match mem::text(bytes) {
                Ok(text) => Ok(Text::Borrowed(text)),
                Err(error) => Err(not_utf8(error).at(at)),
            },
            Bytes::Copied(bytes) => match str::from_utf8(bytes) {
                Ok(text) => Ok(Text::Copied(text)),
                Err(error) => Err(not_utf8(error).at(at)),
            },
            Bytes::Owned(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Text::Owned(text)),
                Err(error) => Err(not_utf8(error.utf8_error()).at(at)),
            },
        }
    }

    /// The content of a bignum. Its tag, which is `tag`, was read.
    pub fn bignum(&mut self, tag: u64) -> Result<Numeric> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::BYTES {
            let found = head::name(head.initial);
            return Err(
                Error::data(format!("expected the bytes of a bignum, found {found}")).at(at)
            );
        }
        let bytes = self.string(head)?;
        let bytes = bytes.as_slice();
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let digits = bytes.get(zeros..).unwrap_or_default();
        let mut arg = [0; 16];
        let Some(low) = 16usize.checked_sub(digits.len()).and_then(|skip| arg.get_mut(skip..))
        else {
            let what = format!("a bignum of {} bytes does not fit in 128 bits", digits.len());
            return Err(Error::data(what).at(at));
        };
        low.copy_from_slice(digits);
        Ok(Numeric::Int { negative: tag == tag::NEGATIVE_BIGNUM, arg: u128::from_be_bytes(arg) })
    }

    /// Skips one item, checks that it is well-formed, and returns its encoded bytes.
    pub fn capture(&mut self) -> Result<Bytes<'de, 'static>> {
        self.capture_run(1)
    }

    /// Like [`Reader::capture`], for so many items that follow one another.
    pub fn capture_run(&mut self, items: usize) -> Result<Bytes<'de, 'static>> {
        self.recording = self.src.remaining().is_none();
        self.src.record();
        let result = self.within(0, |wire| (0..items).try_for_each(|_| wire.skip()));
        let item = self.src.recorded();
        self.recording = false;
        result.map(|()| item)
    }

    /// Skips one item and checks that it is well-formed.
    pub fn skip(&mut self) -> Result<()> {
        let at = self.offset();
        let head = self.head()?;
        if self.recording {
            self.charge(self.offset() - at)?;
        }
        match head.major() {
            head::UNSIGNED | head::NEGATIVE => Ok(()),
            head::BYTES if head.is_indefinite() => self.skip_chunks(head),
            head::BYTES => self.discard(head.arg),
            head::TEXT if head.is_indefinite() => self.skip_chunks(head),
            head::TEXT => self.text(head).map(drop),
            head::ARRAY | head::MAP => {
                self.enter()?;
                let mut left = Left::of(head);
                while self.more(&mut left)? {
                    self.skip()?;
                    if head.major() == head::MAP {
                        self.skip()?;
                    }
                }
                self.leave();
                Ok(())
            }
            head::TAG => {
                self.enter()?;
                self.skip()?;
                self.leave();
                Ok(())
            }
            _ if head.initial == head::BREAK => Err(unexpected_break().at(at)),
            _ => Ok(()),
        }
    }

    /// Skips the rest of an item that is neither an array nor a map. Its head was read. Checks that
    /// texts are UTF-8.
    pub fn skip_rest(&mut self, head: Head) -> Result<()> {
        match head.major() {
            head::BYTES | head::TEXT if head.is_indefinite() => self.skip_chunks(head),
            head::BYTES => self.discard(head.arg),
            head::TEXT => self.text(head).map(drop),
            head::TAG => self.within(1, Self::skip),
            _ if head.initial == head::BREAK => Err(unexpected_break().at(self.offset() - 1)),
            _ => Ok(()),
        }
    }

    fn skip_chunks(&mut self, string: Head) -> Result<()> {
        while let Some(chunk) = self.next_chunk(string)? {
            if chunk.major() == head::TEXT {
                self.text(chunk)?;
            } else {
                self.discard(chunk.arg)?;
            }
        }
        Ok(())
    }

    fn discard(&mut self, len: u64) -> Result<()> {
        if self.recording {
            self.charge(len)?;
        }
        let missing = pass_over(&mut self.src, len)?;
        if missing > 0 {
            let found = len - missing;
            let what = format!("{len} bytes of byte string, found {found}");
            return Err(Error::eof(&what).at(self.offset()));
        }
        Ok(())
    }
}

#[cold]
pub fn not_utf8(error: str::Utf8Error) -> Error {
    Error::syntax(format!("text is not UTF-8: {error}"))
}

#[cold]
pub fn unexpected_break() -> Error {
    Error::syntax("break outside a container of indefinite length")
}
