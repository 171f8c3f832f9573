//! Reads CBOR items from a source and enforces the limits on nesting and memory.

use std::cell::Cell;

use super::head::{self, Head, Parsed};
use super::tag;
use crate::budget::{Budget, ElementSize, FREE_ROW, Growth};
use crate::error::{Error, Result};
use crate::io::input::Input;
use crate::io::source::SourceBytes;
use crate::options::Limits;

impl<'de> Reader<'de, '_> {
    /// The bytes that were not read yet, if they are in memory and can be borrowed.
    pub fn rest(&self) -> &'de [u8] {
        self.src.lent().unwrap_or_default()
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

/// A `Vec` that grows byte by byte takes so many times its length: its room is up to twice as long, and while it grows,
/// there is the block before it, too.
pub const GROWING: u64 = 3;

/// A source of CBOR items, and how much of the limits is left.
#[derive(Debug)]
pub struct Reader<'de, 'b> {
    pub src: Input<'de, 'b>,
    /// The number of further levels that may be entered.
    depth: usize,
    budget: Budget,
    /// The sum of all size hints given so far: see [`Reader::size_hint`].
    hinted: Cell<u64>,
    /// Whether the source stores the bytes of skipped items, so that they count as allocated.
    recording: bool,
    /// Whether the input is the metadata of a segment, which says each thing in one way (`SPEC.md`, section 5.3).
    /// Everything else is refused.
    strict: bool,
}

/// The start of the next item, as a typed reader needs it.
#[derive(Clone, Copy, Debug)]
pub enum ItemStart {
    Head(Head),
    /// A tag that changes how its content is read.
    Tag(u64),
    /// This many tags that have no meaning to this crate. The item in them was not read, and has another start than
    /// this one. The caller reads it [within](Reader::within) as many levels.
    Within(usize),
}

/// The number of items of an array or map that are left. It is unknown if a break ends the container.
#[derive(Clone, Copy, Debug)]
pub struct Left(u64);

impl Left {
    /// No items.
    pub const NONE: Self = Self(0);
    const UNKNOWN: u64 = u64::MAX;

    /// The number of items of the container with this head. The largest `u64` means an unknown
    /// number, so that a length of this value is reduced by one. No input has that many items.
    #[inline]
    pub fn of(head: Head) -> Self {
        Self(match head.length() {
            Some(len) => len.min(Self::UNKNOWN - 1),
            None => Self::UNKNOWN,
        })
    }

    /// The items of these many groups of columns: for each, the number of rows and a column.
    pub fn groups(count: usize) -> Self {
        Self((count as u64).saturating_mul(2).min(Self::UNKNOWN - 1))
    }

    /// Takes one item. Returns false if none are left.
    #[inline]
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
    #[inline]
    pub fn known(self) -> Option<u64> {
        (self.0 != Self::UNKNOWN).then_some(self.0)
    }
}

impl<'de, 'b> Reader<'de, 'b> {
    #[inline]
    pub fn new(src: Input<'de, 'b>, limits: Limits) -> Self {
        let budget = Budget::new(limits);
        budget.allow(src.allowed());
        let strict = src.is_metadata();
        let (depth, hinted) = (limits.max_depth, Cell::new(0));
        Self { src, depth, budget, hinted, recording: false, strict }
    }

    /// Sets whether the input is the metadata of a segment. Otherwise it is if the source says so.
    pub fn with_strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// Reads a part that says each thing in one way, as metadata does, also if the rest of the input need not.
    pub fn strictly<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::replace(&mut self.strict, true);
        let result = read(self);
        self.strict = before;
        result
    }

    /// A reader of an item inside another document, with what is left of the limits of that document.
    pub fn inside(src: Input<'de, 'b>, levels: usize, allowance: &Budget) -> Self {
        let (budget, hinted) = (allowance.clone(), Cell::new(0));
        let strict = budget.strict;
        Self { src, depth: levels, budget, hinted, recording: false, strict }
    }

    /// What is left of the budget, with all that the input allows so far.
    pub fn allowance(&self) -> Budget {
        self.budget.allow(self.src.allowed());
        let mut allowance = self.budget.clone();
        allowance.strict = self.strict;
        allowance
    }

    /// Takes back the budget after other code has used it.
    pub fn resume(&mut self, allowance: &Budget) {
        self.budget.take_over(allowance);
    }

    /// Resets the limits. Each value of a stream gets the full limits.
    pub fn renew(&mut self) {
        self.depth = self.limits().max_depth;
        self.budget = Budget::new(self.limits());
        let before = if self.src.remaining().is_none() { self.src.allowed() } else { 0 };
        self.budget.start(before);
        self.budget.allow(self.src.allowed());
    }

    pub fn limits(&self) -> Limits {
        self.budget.limits
    }

    pub fn max_rank(&self) -> usize {
        self.limits().max_rank
    }

    pub fn max_depth(&self) -> usize {
        self.limits().max_depth
    }

    #[inline]
    pub fn offset(&self) -> u64 {
        self.src.offset()
    }

    /// Enters one level of nesting. After `Ok`, the caller must call [`Reader::leave`], unless an error
    /// ends the decoding.
    #[inline]
    pub fn enter(&mut self) -> Result<()> {
        match self.depth.checked_sub(1) {
            Some(depth) => {
                self.depth = depth;
                Ok(())
            }
            None => Err(self.too_deep()),
        }
    }

    #[inline]
    pub fn leave(&mut self) {
        self.depth += 1;
    }

    /// Enters so many levels of nesting at once. After `Ok`, the caller must call [`Reader::leave_all`].
    pub fn enter_all(&mut self, levels: usize) -> Result<()> {
        self.depth = self.depth.checked_sub(levels).ok_or_else(|| self.too_deep())?;
        Ok(())
    }

    pub fn leave_all(&mut self, levels: usize) {
        self.depth += levels;
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

    /// The number of further levels of nesting that may be entered.
    pub fn levels_left(&self) -> usize {
        self.depth
    }

    #[cold]
    pub fn too_deep(&self) -> Error {
        let max = self.max_depth();
        Error::limit(format!("nesting is deeper than {max} levels")).at(self.offset())
    }

    /// Takes bytes that are about to be allocated from the document's budget.
    #[inline]
    pub fn charge(&mut self, bytes: u64) -> Result<()> {
        if self.budget.take(bytes) { Ok(()) } else { self.charge_more(bytes, 0) }
    }

    /// Like [`charge`](Self::charge), for memory that grows with the next `len` bytes of the input, which are read into it.
    /// So these count as input.
    #[inline]
    pub fn charge_input(&mut self, len: u64) -> Result<()> {
        if self.budget.take(len) { Ok(()) } else { self.charge_more(len, len) }
    }

    /// Takes bytes after what the input allows was added to the budget. The next `ahead` bytes count as input, too.
    #[cold]
    #[inline(never)]
    fn charge_more(&mut self, bytes: u64, ahead: u64) -> Result<()> {
        self.budget.allow(self.src.allowed().saturating_add(Limits::allowed(ahead, 0)));
        self.budget.charge(bytes).map_err(|error| error.at(self.offset()))
    }

    /// Takes memory for the next `len` bytes of the input, which arrive step by step, so that `len` may be false. If they do
    /// not fit in the first step, the block grows, and there are two blocks for a while. `first` is the length of that step.
    pub fn charge_steps(&mut self, len: usize, first: usize) -> Result<()> {
        if len <= first {
            return self.charge_input(len as u64);
        }
        self.charge_input((len as u64).saturating_mul(2))?;
        self.refund(len as u64);
        Ok(())
    }

    /// Takes the bytes of a block that grows: see [`Budget::grow`].
    #[inline]
    pub fn grow(&mut self, growth: Growth) -> Result<()> {
        self.charge(growth.new)?;
        self.budget.refund(growth.old);
        Ok(())
    }

    /// Makes room for more elements, which at least doubles if there is too little.
    pub fn reserve<T>(&mut self, values: &mut Vec<T>, more: usize) -> Result<()> {
        Growth::of(values, more).reserve(values, |growth| self.grow(growth))
    }

    /// Takes what rows cost that take no bytes of input.
    pub fn free_rows(&mut self, rows: impl Into<usize>) -> Result<()> {
        self.charge_kept((rows.into() as u64).saturating_mul(FREE_ROW))
    }

    /// Like [`charge`](Self::charge), for what values cost that are made of a group of rows, not the group itself. It stays
    /// taken when the group is freed.
    pub fn charge_kept(&mut self, bytes: u64) -> Result<()> {
        self.charge(bytes)?;
        self.budget.keep(bytes);
        Ok(())
    }

    /// The number of bytes of memory that are taken from the budget, without those of [`charge_kept`](Self::charge_kept).
    pub fn taken(&self) -> u64 {
        self.budget.held()
    }

    /// Notes that memory was taken for a value of this type, which is read next: see [`Budget::in_box`].
    #[inline]
    pub fn place(&self, element: &ElementSize) {
        self.budget.place(element);
    }

    /// Takes the bytes of a value of this type, if it is in a box.
    #[inline]
    pub fn charge_box<T>(&mut self) -> Result<()> {
        match self.budget.in_box::<T>() {
            Some(bytes) => self.charge(bytes),
            None => Ok(()),
        }
    }

    /// Gives back bytes of the budget that were freed.
    pub fn refund(&self, bytes: u64) {
        self.budget.refund(bytes);
    }

    /// Gives back the room of a vector that is freed next.
    pub fn refund_vec<T>(&self, values: &Vec<T>) {
        self.budget.refund_vec(values);
    }

    /// The number of elements to reserve memory for, if the container claims to have `claimed` elements.
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
    #[inline]
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
    #[inline]
    pub fn initial(&mut self) -> Result<u8> {
        match self.peek()? {
            Some(byte) => Ok(byte),
            None => Err(Error::eof("a value").at(self.offset())),
        }
    }

    /// The items of the next container, if it has this major type and its length is in its first byte. Otherwise reads nothing.
    #[inline]
    pub fn few(&mut self, major: u8) -> Option<Left> {
        let len = self.src.window().first()?.wrapping_sub(major << 5);
        if len >= 24 {
            return None;
        }
        self.src.advance(1);
        Some(Left(len.into()))
    }

    /// Reads the next head.
    #[inline]
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
        let mut parsed = (head::parse(self.src.window()), 0);
        if !matches!(parsed.0, Parsed::Head(..)) {
            parsed = self.refill(parsed.0)?;
        }
        match parsed {
            (Parsed::Head(head, len), _) => {
                // Every head of indefinite length comes here. Tags are refused by those who know that they read one.
                if self.strict
                    && let Some(error) = without_length(head)
                {
                    return Err(error.at(at));
                }
                self.src.advance(len);
                Ok(head)
            }
            (Parsed::Short(_), 0) => Err(Error::eof("a value").at(at)),
            (Parsed::Short(_), _) => Err(Error::eof("the rest of a head").at(at)),
            (Parsed::Malformed(why), _) => Err(Error::syntax(why).at(at)),
        }
    }

    /// Reads an unsigned integer, if the next item is one.
    #[inline]
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

    /// Reads the next head, or tags that have no meaning to this crate.
    #[inline]
    pub fn item(&mut self) -> Result<ItemStart> {
        let head = self.head()?;
        if head.major() == head::TAG { self.tagged(head) } else { Ok(ItemStart::Head(head)) }
    }

    /// Like [`Reader::item`], if the next head was read and is a tag.
    #[inline(never)]
    pub fn tagged(&mut self, head: Head) -> Result<ItemStart> {
        match self.known(head)? {
            ItemStart::Tag(tag @ (tag::STRING_REFERENCE | tag::SHARED_REFERENCE)) => {
                let what = format!("tag {tag} refers to another value, which is not supported");
                Err(Error::unsupported(what).at(self.offset()))
            }
            item => Ok(item),
        }
    }

    /// Refuses a tag, which was read, if it does not occur here.
    #[inline]
    pub fn check_tag(&self, tag: u64) -> Result<()> {
        if tag::is_only_in_messages(tag) && self.strict {
            return Err(only_in_messages(tag).at(self.offset()));
        }
        Ok(())
    }

    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Like [`Reader::tagged`], but does not refuse tags that refer to another value.
    #[inline]
    pub fn known(&mut self, head: Head) -> Result<ItemStart> {
        if head.major() != head::TAG {
            return Ok(ItemStart::Head(head));
        }
        if self.depth == 0 {
            return Err(self.too_deep());
        }
        self.check_tag(head.arg)?;
        if tag::has_meaning(head.arg) {
            return Ok(ItemStart::Tag(head.arg));
        }
        let is_type = head.arg == tag::TYPE;
        let levels = 1 + usize::from(is_type);
        let more = self.within(levels, |wire| {
            if is_type {
                wire.type_head()?;
            }
            wire.pass_tags(|tag| !tag::has_meaning(tag))
        })?;
        Ok(ItemStart::Within(levels + more))
    }

    /// Passes over the tags before an item as long as `passes` is true for them. Returns their number. Each counts as
    /// a level of nesting.
    #[cold]
    pub fn pass_tags(&mut self, passes: impl Fn(u64) -> bool) -> Result<usize> {
        let mut levels = 0;
        while let Some((head, len)) = self.peek_head()? {
            if head.major() != head::TAG || !passes(head.arg) {
                break;
            }
            self.check_tag(head.arg)?;
            if levels == self.depth {
                return Err(self.too_deep());
            }
            levels += 1;
            self.src.advance(len);
            if head.arg == tag::TYPE {
                // The array in the tag.
                levels += 1;
                self.within(levels, Self::type_head)?;
            }
        }
        Ok(levels)
    }

    /// Whether a container has one more item, which is counted as taken. If the length is indefinite,
    /// this looks for the break. After the last item, `left` is 0.
    #[inline]
    pub fn more(&mut self, left: &mut Left) -> Result<bool> {
        match left.0 {
            Left::UNKNOWN => self.more_before_break(left),
            _ => Ok(left.take_one()),
        }
    }

    /// Like [`Reader::more`], but does not count the item. The caller counts it with
    /// [`Left::take_one`].
    #[inline]
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
        Err(Error::mismatch(format!("expected the end of {what}, found more")).at(at))
    }

    /// Skips one item, checks that it is well-formed, and returns its encoded bytes.
    pub fn capture(&mut self) -> Result<SourceBytes<'de, 'static>> {
        self.capture_run(1)
    }

    /// Like [`Reader::capture`], for `items` items that follow one another.
    pub fn capture_run(&mut self, items: usize) -> Result<SourceBytes<'de, 'static>> {
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
            self.charge_input(GROWING * (self.offset() - at))?;
        }
        match head.major() {
            head::UNSIGNED | head::NEGATIVE => Ok(()),
            head::BYTES if head.is_indefinite() => self.skip_chunks(head),
            head::BYTES => self.discard(head.arg),
            head::TEXT if head.is_indefinite() => self.skip_chunks(head),
            head::TEXT => {
                if self.recording {
                    self.charge_input(head.arg.saturating_mul(GROWING))?;
                }
                self.text(head).map(drop)
            }
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
                self.skip_tagged(head.arg)?;
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
            head::TAG => self.within(1, |wire| wire.skip_tagged(head.arg)),
            _ if head.initial == head::BREAK => Err(unexpected_break().at(self.offset() - 1)),
            _ => Ok(()),
        }
    }

    /// Skips the item in a tag.
    fn skip_tagged(&mut self, tag: u64) -> Result<()> {
        self.check_tag(tag)?;
        if self.strict && matches!(tag, tag::ROW_MAJOR | tag::COLUMN_MAJOR) {
            return self.skip_dense();
        }
        self.skip()
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
            self.charge_input(len.saturating_mul(GROWING))?;
        }
        let missing = self.src.pass_over(len)?;
        if missing > 0 {
            let found = len - missing;
            let what = format!("{len} bytes of byte string, found {found}");
            return Err(Error::eof(&what).at(self.offset()));
        }
        Ok(())
    }
}

/// The error for a head that metadata does not have.
#[cold]
fn indefinite(head: Head) -> Error {
    let found = head::name(head.initial);
    let what = format!(
        "columns and the metadata of archives have definite lengths only, found {found} of indefinite length"
    );
    Error::data(what)
}

/// The error for a tag that metadata does not have.
#[cold]
pub fn only_in_messages(tag: u64) -> Error {
    let what = format!(
        "tag {tag} is for big-endian or clamped numbers, which columns and the metadata of archives do not have"
    );
    Error::data(what)
}

/// The error for a head that the metadata of a segment does not have.
pub fn refused_in_metadata(head: Head) -> Option<Error> {
    match head.major() {
        head::TAG => tag::is_only_in_messages(head.arg).then(|| only_in_messages(head.arg)),
        _ => without_length(head),
    }
}

/// The error for a string, array or map of indefinite length. A break has the same additional information, but no length.
fn without_length(head: Head) -> Option<Error> {
    (head.is_indefinite() && head.initial != head::BREAK).then(|| indefinite(head))
}

#[cold]
pub fn unexpected_break() -> Error {
    Error::syntax("found a break outside a container of indefinite length")
}
