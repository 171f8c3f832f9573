//! A walk over CBOR items. It does not recurse: however deep items are nested, they need no stack.

use super::head::{self, Head};
use super::reader::{Item, Left, Wire, unexpected_break};
use crate::error::Result;
use crate::io::source::Read;

/// What a walk comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An element of an array follows. The number is its index.
    Element(u64),
    /// A map key follows. The number counts the keys of the map from zero.
    Key(u64),
    /// The value of the map key at this offset follows.
    Value { key: u64 },
    /// An array starts: its elements follow, then [`End`](Self::End).
    Array(Head),
    /// A map starts: its keys and values follow, then [`End`](Self::End).
    Map(Head),
    /// A tag: the item in it follows, then [`End`](Self::End).
    Tag(u64),
    /// Any other item. The caller reads its content, for example with [`Wire::skip_rest`].
    Leaf(Head),
    /// The end of an array, map or tag, which started at offset `start`. `major` is its major type.
    End { major: u8, start: u64 },
}

/// A position in nested CBOR items.
///
/// The caller owns the [`Wire`] and passes it to each call, so that it can read some items by itself: the
/// content of each leaf, and what it has [taken](Self::take).
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// The arrays, maps and tags around the next item, outermost first. Each is one level of nesting.
    around: Vec<Frame>,
    /// Whether an item that nothing is around was read, and its end was not reported yet.
    begun: bool,
    known_tags: bool,
}

/// An array, map or tag that the walk is inside of.
#[derive(Clone, Copy, Debug)]
struct Frame {
    major: u8,
    next: Next,
    left: Left,
    /// How many elements or entries were reported.
    count: u64,
    start: u64,
    /// Where the current key starts.
    key: u64,
}

/// What comes next in an array, map or tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// An element or entry, or the end. It was not reported yet.
    Entry,
    /// A key. It was reported, and its head is next in the input.
    Key,
    /// A value. It was not reported yet.
    Value,
    /// An element, a value, or the item in a tag. It was reported, and its head is next in the input.
    Item,
}

impl Walk {
    /// A walk that passes over tags without a meaning to this crate, as [`Wire::item`] does. They do not
    /// count as levels of nesting.
    pub fn with_known_tags() -> Self {
        Self { known_tags: true, ..Self::default() }
    }

    /// The number of arrays, maps and tags around the next item.
    pub fn depth(&self) -> usize {
        self.around.len()
    }

    /// The [depth](Self::depth) outside the innermost array or map. `None` if there is none.
    pub fn innermost(&self) -> Option<usize> {
        self.around.iter().rposition(|frame| frame.major != head::TAG)
    }

    /// Moves to the next event. Returns `None` after an item that nothing is around. The call after that
    /// starts the next such item.
    #[inline]
    pub fn next<'de, R: Read<'de>>(&mut self, wire: &mut Wire<R>) -> Result<Option<Event>> {
        match self.around.last_mut() {
            Some(frame) => match frame.next {
                Next::Entry if wire.more(&mut frame.left)? => {
                    let index = frame.count;
                    frame.count += 1;
                    if frame.major == head::MAP {
                        frame.next = Next::Key;
                        frame.key = wire.offset();
                        return Ok(Some(Event::Key(index)));
                    }
                    frame.next = Next::Item;
                    return Ok(Some(Event::Element(index)));
                }
                Next::Entry => {
                    let Frame { major, start, .. } = *frame;
                    self.around.pop();
                    wire.leave();
                    return Ok(Some(Event::End { major, start }));
                }
                Next::Value => {
                    frame.next = Next::Item;
                    return Ok(Some(Event::Value { key: frame.key }));
                }
                Next::Key | Next::Item => {}
            },
            None if self.begun => {
                self.begun = false;
                return Ok(None);
            }
            None => {}
        }
        self.item(wire).map(Some)
    }

    fn item<'de, R: Read<'de>>(&mut self, wire: &mut Wire<R>) -> Result<Event> {
        let start = wire.offset();
        let head = if self.known_tags {
            match wire.item()? {
                Item::Head(head) => head,
                Item::Tag(arg) => Head { initial: head::TAG << 5, arg },
            }
        } else {
            wire.head()?
        };
        self.pass();
        let (event, next, left) = match head.major() {
            head::ARRAY => (Event::Array(head), Next::Entry, Left::of(head)),
            head::MAP => (Event::Map(head), Next::Entry, Left::of(head)),
            head::TAG => (Event::Tag(head.arg), Next::Item, Left::NONE),
            _ if head.initial == head::BREAK => {
                return Err(unexpected_break().at(wire.offset() - 1));
            }
            _ => return Ok(Event::Leaf(head)),
        };
        wire.enter()?;
        self.around.push(Frame { major: head.major(), next, left, count: 0, start, key: start });
        Ok(event)
    }

    /// Counts the next item as read.
    fn pass(&mut self) {
        match self.around.last_mut() {
            Some(frame) if frame.next == Next::Key => frame.next = Next::Value,
            Some(frame) => frame.next = Next::Entry,
            None => self.begun = true,
        }
    }

    /// Leaves the item that was reported last to the caller. After an element, a key or a value, the caller
    /// reads the item that follows. After a tag, it reads the item in the tag; the tag does not count as a
    /// level any more, and its end is not reported.
    pub fn take<'w, 'de, R: Read<'de>>(&mut self, wire: &'w mut Wire<R>) -> &'w mut Wire<R> {
        if self.around.pop_if(|frame| frame.major == head::TAG).is_some() {
            wire.leave();
        } else {
            self.pass();
        }
        wire
    }
}
