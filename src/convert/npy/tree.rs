//! What stands where in a saved value, for formats that are flat.

use std::collections::HashSet;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::io::source::SliceRead;
use crate::options::Limits;
use crate::segment::path::is_leaf;
use crate::segment::spelling::key;
use crate::wire::head;
use crate::wire::reader::{Left, Wire};
use crate::wire::tag;

/// Something without keys inside of a map.
pub enum Leaf {
    Tensor {
        /// The key, or the path, its steps joined by dots.
        name: String,
        /// Where it stands in the metadata.
        range: Range<usize>,
        /// Whether it is named by more than one key, or by none that is a text.
        nested: bool,
    },
    Other {
        name: String,
        kind: &'static str,
    },
}

/// The leaves of a value, which is a map or a struct; in their order.
pub fn leaves(metadata: &[u8]) -> Result<Vec<Leaf>> {
    let mut walk = Walk {
        wire: Wire::new(SliceRead::new(metadata), Limits::default()),
        name: String::new(),
        depth: 0,
        flat: true,
        found: Vec::new(),
        names: HashSet::new(),
    };
    walk.item()?;
    Ok(walk.found)
}

struct Walk<'a> {
    wire: Wire<SliceRead<'a>>,
    name: String,
    depth: usize,
    /// Whether the outermost value is a map, and its keys so far are texts.
    flat: bool,
    found: Vec<Leaf>,
    names: HashSet<String>,
}

impl Walk<'_> {
    fn item(&mut self) -> Result<()> {
        let mut start = self.wire.offset();
        let mut item = self.wire.head()?;
        while item.major() == head::TAG && !is_leaf(item.arg) {
            start = self.wire.offset();
            item = self.wire.head()?;
        }
        match item.major() {
            head::ARRAY | head::MAP => self.container(item),
            head::TAG if !matches!(item.arg, tag::BIGNUM | tag::NEGATIVE_BIGNUM) => {
                let next = self.wire.peek_head()?.map(|(head, _)| head);
                // A reference to a byte string has the number of a buffer, and nothing beside.
                let bytes = item.arg == tag::BUFFER && next.is_some_and(|head| head.arg == 1);
                self.wire.within(1, Wire::skip)?;
                if bytes { self.other("bytes") } else { self.tensor(start) }
            }
            head::TAG => {
                self.wire.within(1, Wire::skip)?;
                self.other("an integer")
            }
            head::BYTES | head::TEXT => {
                self.wire.string(item).map(drop)?;
                self.other(if item.major() == head::TEXT { "a text" } else { "bytes" })
            }
            head::UNSIGNED | head::NEGATIVE => self.other("an integer"),
            _ => self.other("a bool, float or null"),
        }
    }

    fn container(&mut self, item: head::Head) -> Result<()> {
        self.wire.enter()?;
        let mut left = Left::of(item);
        let name_len = self.name.len();
        let mut index = 0u64;
        while self.wire.more(&mut left)? {
            let text = self.wire.peek_head()?.is_some_and(|(head, _)| head.major() == head::TEXT);
            let (step, plain) = if item.major() == head::MAP {
                (key(&mut self.wire)?.into_owned(), text)
            } else {
                (index.to_string(), false)
            };
            index += 1;
            self.flat &= plain || self.depth > 0;
            if self.depth > 0 {
                self.name.push('.');
            }
            self.name.push_str(&step);
            self.depth += 1;
            self.item()?;
            self.depth -= 1;
            self.name.truncate(name_len);
        }
        self.wire.leave();
        // What is empty would vanish.
        if index == 0 && self.depth > 0 {
            self.other("an empty map or sequence")?;
        }
        Ok(())
    }

    /// The tensor that was passed over, which stands from `start` on.
    fn tensor(&mut self, start: u64) -> Result<()> {
        if self.depth == 0 {
            return Err(Error::data("a tensor without a name; write it as npy, or in a map"));
        }
        let name = self.name.clone();
        let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
        let range = at(start)..at(self.wire.offset());
        if !self.names.insert(name.clone()) {
            let name = name.escape_debug();
            return Err(Error::data(format!("two tensors would be named `{name}`")));
        }
        self.found.push(Leaf::Tensor { name, range, nested: self.depth > 1 || !self.flat });
        Ok(())
    }

    // A result, so that it can end a match.
    #[allow(clippy::unnecessary_wraps)]
    fn other(&mut self, kind: &'static str) -> Result<()> {
        self.found.push(Leaf::Other { name: self.name.clone(), kind });
        Ok(())
    }
}
