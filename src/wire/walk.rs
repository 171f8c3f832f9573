//! A walk over CBOR items. It does not recurse: however deep items are nested, they need no stack.

use super::head::{self, Head};
use super::reader::{ItemStart, Left, Reader, unexpected_break};
use super::tag;
use crate::error::Result;

/// What a walk finds next.
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
    /// Any other item. The caller reads its content, for example with [`Reader::skip_rest`].
    Leaf(Head),
    /// The end of an array, map or tag, which started at offset `start`. `major` is its major type.
    End { major: u8, start: u64 },
}

/// A position in nested CBOR items.
///
/// The caller owns the [`Reader`] and passes it to each call, so that it can read some items by itself: the
/// content of each leaf, and what it has [taken](Self::take).
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// The array, map or tag around the next item.
    inner: Frame,
    /// Those around `inner`, outermost first.
    outer: Vec<Frame>,
    known_tags: bool,
    passes_types: bool,
}

/// An array, map or tag that the walk is inside of. The outermost frame contains the outermost item, like a tag.
#[derive(Clone, Copy, Debug)]
struct Frame {
    major: u8,
    next: Next,
    left: Left,
    /// The number of elements or entries that were reported.
    count: u64,
    start: u64,
    /// The offset of the current key.
    key: u64,
}

impl Default for Frame {
    /// The outermost frame has one item inside, as a tag has.
    fn default() -> Self {
        let major = head::TAG;
        Self { major, next: Next::Item, left: Left::NONE, count: 0, start: 0, key: 0 }
    }
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
    /// A walk that passes over tags without a meaning to this crate, as [`Reader::item`] does. They do not
    /// count as levels of nesting. Tags that refer to another value are reported: a walk that looks for
    /// tensors does not need that value.
    pub fn with_known_tags() -> Self {
        Self { known_tags: true, ..Self::default() }
    }

    /// A walk in which the tag of a type has nothing but its item.
    pub fn with_items_of_types() -> Self {
        Self { passes_types: true, ..Self::default() }
    }

    /// The number of arrays, maps and tags around the next item.
    pub fn depth(&self) -> usize {
        self.outer.len()
    }

    /// The [depth](Self::depth) outside the innermost array or map. `None` if there is none.
    pub fn innermost(&self) -> Option<usize> {
        if self.inner.major != head::TAG {
            return self.outer.len().checked_sub(1);
        }
        self.outer.iter().rposition(|frame| frame.major != head::TAG)?.checked_sub(1)
    }

    /// Moves to the next event. Returns `None` at the end of an outermost item. The next call then starts the next
    /// outermost item.
    #[inline]
    pub fn next(&mut self, wire: &mut Reader<'_, '_>) -> Result<Option<Event>> {
        let inner = &mut self.inner;
        match inner.next {
            Next::Entry if wire.more(&mut inner.left)? => {
                let index = inner.count;
                inner.count += 1;
                if inner.major == head::MAP {
                    inner.next = Next::Key;
                    inner.key = wire.offset();
                    return Ok(Some(Event::Key(index)));
                }
                inner.next = Next::Item;
                Ok(Some(Event::Element(index)))
            }
            Next::Entry => Ok(self.end(wire)),
            Next::Value => {
                inner.next = Next::Item;
                Ok(Some(Event::Value { key: inner.key }))
            }
            Next::Key | Next::Item => self.item(wire).map(Some),
        }
    }

    #[inline]
    fn end(&mut self, wire: &mut Reader<'_, '_>) -> Option<Event> {
        let Some(outer) = self.outer.pop() else {
            self.inner = Frame::default();
            return None;
        };
        let Frame { major, start, .. } = std::mem::replace(&mut self.inner, outer);
        wire.leave();
        Some(Event::End { major, start })
    }

    #[inline]
    fn item(&mut self, wire: &mut Reader<'_, '_>) -> Result<Event> {
        let start = wire.offset();
        let mut head = wire.head()?;
        if head.major() == head::TAG && self.known_tags {
            head = match wire.known(head)? {
                ItemStart::Head(head) => head,
                ItemStart::Tag(arg) => Head { initial: head::TAG << 5, arg },
                ItemStart::Within(_) => wire.head()?,
            };
        }
        if self.passes_types && head.major() == head::TAG && head.arg == tag::TYPE {
            wire.within(2, Reader::type_head)?;
        }
        self.pass();
        let (event, next, left) = match head.major() {
            head::ARRAY => (Event::Array(head), Next::Entry, Left::of(head)),
            head::MAP => (Event::Map(head), Next::Entry, Left::of(head)),
            head::TAG => {
                wire.check_tag(head.arg)?;
                (Event::Tag(head.arg), Next::Item, Left::NONE)
            }
            _ if head.initial == head::BREAK => {
                return Err(unexpected_break().at(wire.offset() - 1));
            }
            _ => return Ok(Event::Leaf(head)),
        };
        wire.enter()?;
        self.outer.push(self.inner);
        self.inner = Frame { major: head.major(), next, left, count: 0, start, key: start };
        Ok(event)
    }

    /// Counts the next item as read.
    #[inline]
    fn pass(&mut self) {
        let inner = &mut self.inner;
        inner.next = if inner.next == Next::Key { Next::Value } else { Next::Entry };
    }

    /// Leaves the item that was reported last to the caller. After an element, a key or a value, the caller
    /// reads the item that follows. After a tag, it reads the item in the tag; the tag does not count as a
    /// level any more, and its end is not reported.
    #[inline]
    pub fn take<'w, 'de, 'b>(&mut self, wire: &'w mut Reader<'de, 'b>) -> &'w mut Reader<'de, 'b> {
        match self.outer.pop_if(|_| self.inner.major == head::TAG) {
            Some(outer) => {
                self.inner = outer;
                wire.leave();
            }
            None => self.pass(),
        }
        wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::input::Input;
    use crate::options::Limits;

    fn wire(bytes: &[u8], max_depth: usize) -> Reader<'_, '_> {
        Reader::new(Input::slice(bytes), Limits::default().with_max_depth(max_depth))
    }

    /// All events up to the end of the first item, with the depth after each.
    fn events(bytes: &[u8], mut walk: Walk) -> Vec<(Event, usize)> {
        let mut wire = wire(bytes, 128);
        let mut events = Vec::new();
        while let Some(event) = walk.next(&mut wire).unwrap() {
            if let Event::Leaf(head) = event {
                wire.skip_rest(head).unwrap();
            }
            events.push((event, walk.depth()));
        }
        events
    }

    fn head(initial: u8, arg: u64) -> Head {
        Head { initial, arg }
    }

    #[test]
    fn tells_where_each_item_is() {
        // [1({"a": [_ ]})], and another item.
        let bytes = b"\x81\xc1\xa1\x61a\x9f\xff\x05";
        let expected = [
            (Event::Array(head(0x81, 1)), 1),
            (Event::Element(0), 1),
            (Event::Tag(1), 2),
            (Event::Map(head(0xa1, 1)), 3),
            (Event::Key(0), 3),
            (Event::Leaf(head(0x61, 1)), 3),
            (Event::Value { key: 3 }, 3),
            (Event::Array(head(0x9f, 0)), 4),
            (Event::End { major: head::ARRAY, start: 5 }, 3),
            (Event::End { major: head::MAP, start: 2 }, 2),
            (Event::End { major: head::TAG, start: 1 }, 1),
            (Event::End { major: head::ARRAY, start: 0 }, 0),
        ];
        assert_eq!(events(bytes, Walk::default()), expected);
        let passed: Vec<_> = events(bytes, Walk::with_known_tags());
        assert!(passed.iter().all(|(event, _)| !matches!(event, Event::Tag(_))), "{passed:?}");
    }

    #[test]
    fn goes_on_after_what_the_caller_reads() {
        // {[1]: 1([2]), "b": 3}
        let mut wire = wire(b"\xa2\x81\x01\xc1\x81\x02\x61b\x03\x04", 3);
        let mut walk = Walk::default();
        let mut found = Vec::new();
        while let Some(event) = walk.next(&mut wire).unwrap() {
            match event {
                Event::Key(_) => walk.take(&mut wire).skip().unwrap(),
                // The limit is three levels. The map and the array take two, and a tag that was taken takes none.
                Event::Tag(_) => walk.take(&mut wire).within(1, Reader::skip).unwrap(),
                _ => {}
            }
            found.push(event);
        }
        let expected = [
            Event::Map(head(0xa2, 2)),
            Event::Key(0),
            Event::Value { key: 1 },
            Event::Tag(1),
            Event::Key(1),
            Event::Value { key: 6 },
            Event::Leaf(head(3, 3)),
            Event::End { major: head::MAP, start: 0 },
        ];
        assert_eq!(found, expected);
        assert_eq!(walk.next(&mut wire).unwrap(), Some(Event::Leaf(head(4, 4))));
    }

    #[test]
    fn depth_takes_no_stack() {
        let mut bytes = vec![0x81; 1 << 20];
        bytes.push(0);
        let mut deep = wire(&bytes, usize::MAX);
        let mut walk = Walk::default();
        let mut deepest = 0;
        while walk.next(&mut deep).unwrap().is_some() {
            deepest = deepest.max(walk.depth());
        }
        assert_eq!(deepest, 1 << 20);
        let mut shallow = wire(&bytes, 100);
        let mut walk = Walk::default();
        let error = loop {
            if let Err(error) = walk.next(&mut shallow) {
                break error;
            }
        };
        assert_eq!(error.to_string(), "nesting is deeper than 100 levels (byte 101)");
    }
}
