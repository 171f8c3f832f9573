//! Writes items in the way in which metadata says them (`SPEC.md`, section 5.3).

use std::ops::Range;

use super::head::{self, Head};
use super::reader::{Reader, only_in_messages};
use super::tag;
use super::tensor::Kind;
use super::walk::{Event, Walk};
use crate::error::Result;
use crate::io::input::Input;
use crate::io::sink::{Memory, Sink};
use crate::options::Limits;

/// Whether a well-formed item, nested at most this deep, is what metadata may have.
pub fn is_strict(item: &[u8], levels: usize) -> bool {
    let limits = Limits::default().with_max_depth(levels);
    Reader::new(Input::slice(item), limits).with_strict(true).skip().is_ok()
}

/// Rewrites well-formed items in the way in which metadata says them. Arrays, maps and strings of indefinite length get
/// definite lengths, and the elements of tensors and packed sequences become little-endian typed arrays.
///
/// # Errors
/// If a tensor or a packed sequence is malformed, or there is the reserved tag of typed arrays.
pub fn strict(items: &[u8]) -> Result<Vec<u8>> {
    let limits = Limits::default().with_max_depth(usize::MAX).with_max_rank(usize::MAX);
    let mut wire = Reader::new(Input::slice(items), limits);
    let mut walk = Walk::default();
    let mut edits = Edits { list: Vec::new(), new: Sink::new(Vec::new(), Memory::growing()) };
    // For each array and map around the next item: the edit of its head, if its length is indefinite, and the number
    // of its elements or entries so far.
    let mut open: Vec<(Option<usize>, u64)> = Vec::new();
    while wire.bytes_left() > 0 || walk.depth() > 0 {
        let start = at(&wire);
        match walk.next(&mut wire)? {
            Some(Event::Array(head) | Event::Map(head)) => {
                let edit = head.is_indefinite().then(|| edits.add(start..at(&wire)));
                open.push((edit, 0));
            }
            Some(Event::Element(index) | Event::Key(index)) => {
                if let Some((_, count)) = open.last_mut() {
                    *count = index + 1;
                }
            }
            Some(Event::End { major: major @ (head::ARRAY | head::MAP), .. }) => {
                if let Some((Some(edit), count)) = open.pop() {
                    edits.set(edit, |new| new.head(major, count))?;
                    // The break.
                    edits.add(start..at(&wire));
                }
            }
            Some(Event::Tag(tag)) if tag::is_array(tag) && tag != tag::BUFFER => {
                let whole = items.get(start..).unwrap_or_default();
                let mut as_it_is = Reader::new(Input::slice(whole), limits).with_strict(true);
                let wire = walk.take(&mut wire);
                if as_it_is.skip().is_ok() {
                    let content = at(wire) - start;
                    wire.pass(at(&as_it_is) - content);
                } else {
                    typed(wire, tag, &mut edits, start)?;
                }
            }
            // The reserved tag means nothing that could be written in another way.
            Some(Event::Tag(tag)) if tag::is_only_in_messages(tag) => {
                return Err(only_in_messages(tag));
            }
            Some(Event::Leaf(head)) if is_in_chunks(head) => {
                let content = wire.string(head)?;
                let content = content.as_slice().to_vec();
                let edit = edits.add(start..at(&wire));
                edits.set(edit, |new| {
                    new.head(head.major(), content.len() as u64)?;
                    new.put_slice(&content)
                })?;
            }
            Some(Event::Leaf(head)) => wire.skip_rest(head)?,
            _ => {}
        }
    }
    Ok(edits.apply(items))
}

fn at(wire: &Reader<'_, '_>) -> usize {
    usize::try_from(wire.offset()).unwrap_or(usize::MAX)
}

fn is_in_chunks(head: Head) -> bool {
    head.is_indefinite() && matches!(head.major(), head::BYTES | head::TEXT)
}

/// Rewrites a tensor or a packed sequence, whose tag at `start` was read.
#[cold]
fn typed(wire: &mut Reader<'_, '_>, tag: u64, edits: &mut Edits, start: usize) -> Result<()> {
    let item = wire.tensor(tag)?;
    let kind = item.kind;
    let (meta, elements) = wire.payload_elements(item)?;
    let bytes = elements.to_le_bytes();
    let edit = edits.add(start..at(wire));
    edits.set(edit, |new| {
        match kind {
            Kind::Tensor => new.tensor_head(&meta.dtype, &meta.shape, meta.order, bytes.len())?,
            Kind::Numbers | Kind::Bytes => new.typed_array_head(&meta.dtype, bytes.len())?,
        }
        new.put_block(&bytes)
    })
}

/// Changes to items, in the order of their places.
struct Edits {
    list: Vec<Edit>,
    /// The bytes that the changes put in.
    new: Sink<Memory>,
}

struct Edit {
    /// What is replaced.
    old: Range<usize>,
    /// The range in [`Edits::new`] of what takes its place.
    new: Range<usize>,
}

impl Edits {
    /// Removes this range. Returns the number of the edit.
    fn add(&mut self, old: Range<usize>) -> usize {
        self.list.push(Edit { old, new: 0..0 });
        self.list.len() - 1
    }

    /// Puts what `write` writes in the place of what an edit removes.
    fn set(
        &mut self,
        edit: usize,
        write: impl FnOnce(&mut Sink<Memory>) -> Result<()>,
    ) -> Result<()> {
        let start = self.len();
        write(&mut self.new)?;
        let end = self.len();
        if let Some(edit) = self.list.get_mut(edit) {
            edit.new = start..end;
        }
        Ok(())
    }

    fn len(&self) -> usize {
        usize::try_from(self.new.position()).unwrap_or(usize::MAX)
    }

    fn apply(self, items: &[u8]) -> Vec<u8> {
        let (new, ..) = self.new.into_parts();
        let mut all = Vec::with_capacity(items.len() + new.len());
        let mut done = 0;
        for Edit { old, new: put } in self.list {
            all.extend_from_slice(items.get(done..old.start).unwrap_or_default());
            all.extend_from_slice(new.get(put).unwrap_or_default());
            done = old.end;
        }
        all.extend_from_slice(items.get(done..).unwrap_or_default());
        all
    }
}
