//! Changed values that can be written in any format, without a temporary file.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use serde::ser::{Serialize, Serializer};
use tenarc::archive::SaveOptions;
use tenarc::parts::Split;
use tenarc_convert::{Put, Stored};

use crate::document::Section;
use crate::elements::Cast;
use crate::failure::{Failure, Result};
use crate::node::{Kind, Node};
use crate::written::{Written, is_numeric};

/// The name in messages of a changed value that is not yet written to a file.
const THE_VALUE: &str = "the changed value";

/// A changed value: its metadata, and the sources of its tensors.
struct Made<'a> {
    metadata: Vec<u8>,
    /// The offset and the length of each buffer. The offset is always 0, because the buffers are not in a file.
    buffers: Vec<(u64, u64)>,
    sources: Vec<Source<'a>>,
}

/// A tensor of an input, and the cast to its new dtype, if there is one.
#[derive(Clone)]
struct Source<'a> {
    section: &'a Section<'a>,
    node: &'a Node,
    cast: Option<Cast>,
}

impl<'a> Made<'a> {
    /// Creates the metadata of a value without reading its tensors. Returns `None` if the value has columns, or tensors
    /// inside tags: these have no single source.
    ///
    /// # Errors
    /// If the value cannot be written.
    fn new(value: &Written<'a>) -> Result<Option<Self>> {
        let Some(sources) = sources(value)? else { return Ok(None) };
        let (asked, numbers) = (Asked::default(), Arc::new(Mutex::new(Vec::new())));
        let chosen = {
            let (asked, numbers) = (asked.clone(), numbers.clone());
            // This is called for each tensor while that tensor is being written, and also for lists of numbers.
            move |_: &tenarc::tensor::TensorInfo| {
                let number = asked.lock().ok().and_then(|asked| *asked);
                if let (Some(number), Ok(mut numbers)) = (number, numbers.lock()) {
                    numbers.push(number);
                }
                number.is_some()
            }
        };
        let options = SaveOptions::default().with_checksums(false).with_columns(false);
        let telling = Telling { value, asked: &asked, next: RefCell::default() };
        let split = Split::with_options(&telling, options.with_out_of_band(chosen));
        let split = split.map_err(|error| value.failure(error, THE_VALUE))?;
        let info = split.info();
        let buffers = info.buffers().iter().map(|buffer| (0, buffer.byte_len())).collect();
        let metadata = info.item().to_vec();
        drop(split);
        let numbers = numbers.lock().map(|numbers| numbers.clone()).unwrap_or_default();
        let sources = numbers.iter().filter_map(|&number| sources.get(number).cloned()).collect();
        Ok(Some(Self { metadata, buffers, sources }))
    }
}

impl<'a> Section<'a> {
    /// Creates a section from a changed value. Returns `None` if the value has columns, or tensors inside tags.
    ///
    /// # Errors
    /// If the value cannot be written.
    pub fn made(name: Option<&str>, value: &Written<'a>) -> Result<Option<Self>> {
        let made = Made::new(value)?;
        made.map(|made| Self::of_changed(name, Box::new(made))).transpose()
    }
}

impl Stored for Made<'_> {
    fn metadata(&self) -> tenarc::Result<&[u8]> {
        Ok(&self.metadata)
    }

    fn buffers(&self) -> &[(u64, u64)] {
        &self.buffers
    }

    fn blocks(&self, buffer: usize, put: &mut Put<'_>) -> tenarc::Result<()> {
        let source = self.sources.get(buffer).cloned();
        let Some(Source { section, node, mut cast }) = source else {
            let what = format!("buffer {buffer} is not a tensor of the value");
            return Err(tenarc::Error::damaged(what));
        };
        // The error of `put` is kept here, because a failure would lose its source.
        let mut refused = None;
        let mut put = |block: &[u8]| {
            put(block).map_err(|error| {
                refused = Some(error);
                Failure::new("writing was stopped")
            })
        };
        let read = section.blocks(node, &mut |block| match &mut cast {
            Some(cast) => put(&cast.block(block)?),
            None => put(block),
        });
        match refused {
            Some(error) => Err(error),
            None => read.map_err(Failure::into_library),
        }
    }
}

/// Returns the tensors of a value, in its order. `None` if some have no single source.
fn sources<'a>(value: &Written<'a>) -> Result<Option<Vec<Source<'a>>>> {
    fn add<'a>(value: &Written<'a>, found: &mut Vec<Source<'a>>) -> Result<bool> {
        match value {
            Written::Same(section, node) | Written::Plain(section, node) => {
                Ok(add_node(section, node, found))
            }
            Written::Cast(section, node, dtype) => {
                let from = node.payload().ok_or_else(|| Failure::new("expected a tensor"))?;
                let cast = Some(Cast::new(&from.dtype, dtype)?);
                found.push(Source { section, node, cast });
                Ok(true)
            }
            Written::Array(items) => all(items.iter(), found),
            Written::Map(entries) => all(entries.iter().map(|(_, value)| value), found),
            Written::Value(_) => Ok(true),
        }
    }
    fn all<'v, 'a: 'v>(
        values: impl Iterator<Item = &'v Written<'a>>,
        found: &mut Vec<Source<'a>>,
    ) -> Result<bool> {
        for value in values {
            if !add(value, found)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
    fn add_node<'a>(section: &'a Section<'a>, node: &'a Node, found: &mut Vec<Source<'a>>) -> bool {
        match &node.kind {
            Kind::Leaf => true,
            Kind::Payload(_) => {
                found.push(Source { section, node, cast: None });
                true
            }
            Kind::Columns(_) => false,
            Kind::Tag(_, inner) => !inner.holds_payload(),
            Kind::Array(items) => items.iter().all(|item| add_node(section, item, found)),
            Kind::Map(entries) => entries.iter().all(|(_, node)| add_node(section, node, found)),
        }
    }
    let mut found = Vec::new();
    Ok(add(value, &mut found)?.then_some(found))
}

/// The number of the tensor that is being written. `None` between tensors.
type Asked = Arc<Mutex<Option<usize>>>;

/// A value that records in `asked` which of its tensors is being written.
struct Telling<'v, 'a> {
    value: &'v Written<'a>,
    asked: &'v Asked,
    /// The number of the next tensor.
    next: RefCell<usize>,
}

impl Serialize for Telling<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.next.replace(0);
        Part { whole: self, part: self.value }.serialize(serializer)
    }
}

#[derive(Clone, Copy)]
struct Part<'v, 'a> {
    whole: &'v Telling<'v, 'a>,
    part: &'v Written<'a>,
}

impl Part<'_, '_> {
    /// Writes a tensor, and records its number meanwhile.
    fn tensor<S: Serializer>(self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = self.whole.next.replace_with(|next| *next + 1);
        self.tell(Some(number));
        let done = self.part.serialize(serializer);
        self.tell(None);
        done
    }

    fn tell(self, number: Option<usize>) {
        if let Ok(mut asked) = self.whole.asked.lock() {
            *asked = number;
        }
    }
}

impl Serialize for Part<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { whole, part } = *self;
        match part {
            Written::Array(items) => {
                serializer.collect_seq(items.iter().map(|part| Part { whole, part }))
            }
            Written::Map(entries) => serializer
                .collect_map(entries.iter().map(|(key, part)| (key, Part { whole, part }))),
            Written::Cast(..) => self.tensor(serializer),
            Written::Same(section, node) | Written::Plain(section, node) => match &node.kind {
                Kind::Payload(_) => self.tensor(serializer),
                Kind::Array(items) if !is_numeric(section, items) => {
                    serializer.collect_seq(items.iter().map(|node| Inside { whole, section, node }))
                }
                Kind::Map(entries) => serializer.collect_map(entries.iter().map(|(key, node)| {
                    (crate::written::WrittenKey::of(section, key), Inside { whole, section, node })
                })),
                _ => part.serialize(serializer),
            },
            Written::Value(_) => part.serialize(serializer),
        }
    }
}

/// A node inside a node that is written unchanged.
struct Inside<'v, 'a> {
    whole: &'v Telling<'v, 'a>,
    section: &'a Section<'a>,
    node: &'a Node,
}

impl Serialize for Inside<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = Written::Same(self.section, self.node);
        Part { whole: self.whole, part: &part }.serialize(serializer)
    }
}
