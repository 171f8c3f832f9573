//! What stands where in a saved value, for formats that are flat.

use std::ops::Range;

use tenarc::archive::Segment;
use tenarc::inspect::{COLUMNS, Event, Form, Item, Items, Key};
use tenarc::io::ReadAt;
use tenarc::{DType, Error, Result};

use crate::columns::escaped;

/// Something without keys inside of a map.
pub enum Leaf {
    Tensor {
        /// The key, or the path, its steps joined by dots.
        name: String,
        dtype: DType,
        /// Where it stands in the metadata.
        range: Range<usize>,
        /// Whether it is named by more than one key, or by none that is a text.
        nested: bool,
    },
    /// A sequence that is stored as columns.
    Columns {
        name: String,
        /// Its path, as a JSON Pointer.
        pointer: String,
    },
    Other {
        name: String,
        kind: &'static str,
    },
}

/// The leaves of a value, which is a map or a struct; in their order.
pub fn leaves<S: ReadAt + ?Sized>(segment: &Segment<'_, S>) -> Result<Vec<Leaf>> {
    let mut walk = Walk {
        items: segment.inspect()?,
        name: String::new(),
        pointer: String::new(),
        depth: 0,
        flat: true,
        found: Vec::new(),
    };
    let item = walk.next()?;
    walk.item(item)?;
    Ok(walk.found)
}

struct Walk<'a> {
    items: Items<'a>,
    name: String,
    pointer: String,
    depth: usize,
    /// Whether the outermost value is a map, and its keys so far are texts.
    flat: bool,
    found: Vec<Leaf>,
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Result<Item<'a>> {
        self.items.next().unwrap_or_else(|| Err(Error::eof("an item")))
    }

    fn item(&mut self, mut item: Item<'a>) -> Result<()> {
        while let Event::Tag(tag) = item.event {
            item = self.next()?;
            if tag == COLUMNS && item.event == Event::Array {
                self.items.leave()?;
                let (name, pointer) = (self.name.clone(), self.pointer.clone());
                self.found.push(Leaf::Columns { name, pointer });
                return Ok(());
            }
        }
        match item.event {
            Event::Array | Event::Map => self.container(),
            Event::Payload(payload) if payload.form == Form::Bytes => self.other("bytes"),
            Event::Payload(payload) => self.tensor(payload.meta.dtype, item.range),
            Event::Bytes => self.other("bytes"),
            Event::Text => self.other("a text"),
            Event::Integer => self.other("an integer"),
            _ => self.other("a bool, float or null"),
        }
    }

    fn container(&mut self) -> Result<()> {
        let (name_len, pointer_len) = (self.name.len(), self.pointer.len());
        let mut index = 0u64;
        loop {
            let item = self.next()?;
            let (step, plain, item) = match item.event {
                Event::End => break,
                Event::Key(key) => {
                    let text = matches!(key, Key::Text(_));
                    (key.into_step(), text, self.next()?)
                }
                _ => (index.to_string().into(), false, item),
            };
            index += 1;
            self.flat &= plain || self.depth > 0;
            if self.depth > 0 {
                self.name.push('.');
            }
            self.name.push_str(&step);
            self.pointer.push_str(&escaped(&step));
            self.depth += 1;
            self.item(item)?;
            self.depth -= 1;
            self.name.truncate(name_len);
            self.pointer.truncate(pointer_len);
        }
        // What is empty would vanish.
        if index == 0 && self.depth > 0 {
            self.other("an empty map or sequence")?;
        }
        Ok(())
    }

    /// A tensor, which stands at this range of the metadata.
    fn tensor(&mut self, dtype: DType, range: Range<usize>) -> Result<()> {
        if self.depth == 0 {
            return Err(Error::data("a tensor without a name; write it as npy, or in a map"));
        }
        let (name, nested) = (self.name.clone(), self.depth > 1 || !self.flat);
        self.found.push(Leaf::Tensor { name, dtype, range, nested });
        Ok(())
    }

    // A result, so that it can end a match.
    #[allow(clippy::unnecessary_wraps)]
    fn other(&mut self, kind: &'static str) -> Result<()> {
        self.found.push(Leaf::Other { name: self.name.clone(), kind });
        Ok(())
    }
}
