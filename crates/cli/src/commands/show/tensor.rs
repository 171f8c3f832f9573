//! Prints tensors as numpy does: for large ones, the first and last elements of each axis.

use serde::ser::{Serialize, Serializer};
use tenarc::tensor::Order;

use super::aligned;
use crate::document::Section;
use crate::elements::{self, Element};
use crate::failure::Result;
use crate::node::{Form, Node, Payload};

/// How many elements of a tensor are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Up to 64 elements are shown in full: for a tensor among others.
    Little,
    /// Up to 1000 elements are shown in full, as in numpy: for a tensor alone.
    Much,
    /// All elements are shown.
    All,
}

impl Detail {
    /// Returns the number of elements above which a tensor is abbreviated.
    fn threshold(self) -> usize {
        match self {
            Self::Little => 64,
            Self::Much => 1000,
            Self::All => usize::MAX,
        }
    }
}

/// The number of elements shown at each end of an abbreviated axis.
const EDGE: usize = 3;
/// Tensors of at most this many bytes are read at once: each part of one would read, and verify, a chunk of it.
const WHOLE: u64 = 1 << 20;
/// Abbreviated tensors with more dimensions are not shown: even their edges have thousands of elements.
const MAX_RANK: usize = 6;

/// Returns the elements as text, in lines of at most `line` characters. The text is empty if the dtype cannot be
/// decoded, or if the tensor has too many dimensions.
pub fn text(
    section: &Section<'_>,
    node: &Node,
    payload: &Payload,
    detail: Detail,
    line: usize,
) -> Result<String> {
    let Some(view) = View::new(section, node, payload, detail) else { return Ok(String::new()) };
    let mut cells = Vec::new();
    view.visit(&mut |element| cells.push(element))?;
    let mut cells = aligned::texts(&cells, detail == Detail::All);
    if let [cell] = &mut *cells {
        // A single element is not aligned with others.
        *cell = cell.trim_end().to_owned();
    }
    let width = cells.first().map_or(0, |cell| cell.chars().count());
    let mut text = String::new();
    let mut cells = cells.into_iter();
    let depth = payload.shape.len().saturating_sub(1);
    let per_line = (line.saturating_sub(BRACKETS + 2 * depth) / (width + 1)).max(1);
    view.lines(0, 0, per_line, &mut |piece| match piece {
        Piece::Text(piece) => text.push_str(piece),
        Piece::Break(indent) => {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
        }
        Piece::Cell => {
            text.push_str(&cells.next().unwrap_or_default());
        }
    });
    Ok(text)
}

/// The elements of a tensor as nested JSON arrays. They are decoded as they are written.
pub struct Data<'a> {
    view: View<'a>,
    bytes: Vec<u8>,
}

impl<'a> Data<'a> {
    /// Reads the elements. Returns `None` if the tensor is too large, or if its dtype cannot be decoded.
    pub fn new(
        section: &'a Section<'a>,
        node: &'a Node,
        payload: &'a Payload,
        full: bool,
    ) -> Result<Option<Self>> {
        let most = if full { Detail::All } else { Detail::Much }.threshold();
        let elided = payload.count().is_none_or(|count| count > most);
        if elided || payload.form == Form::Bytes {
            return Ok(None);
        }
        let Some(view) = View::new(section, node, payload, Detail::All) else { return Ok(None) };
        let is_empty = payload.count() == Some(0);
        let bytes = if is_empty { Vec::new() } else { section.payload_bytes(node)? };
        Ok(Some(Self { view, bytes }))
    }
}

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let View { payload, size, .. } = &self.view;
        let element = |at: usize| {
            let bytes = self.bytes.get(at * size..).and_then(|rest| rest.get(..*size))?;
            elements::decode(&payload.dtype, bytes)
        };
        Nested::new(&payload.shape, payload.order, &element).serialize(serializer)
    }
}

/// Elements that are written as nested arrays.
#[derive(Clone, Copy)]
pub struct Nested<'a> {
    dims: &'a [usize],
    order: Order,
    /// The number of dimensions that lead to this array. `base` is the position of its first element.
    axis: usize,
    base: usize,
    element: &'a dyn Fn(usize) -> Option<Element>,
}

impl<'a> Nested<'a> {
    /// Creates nested arrays. `element` returns the element at a position in memory.
    pub fn new(
        dims: &'a [usize],
        order: Order,
        element: &'a dyn Fn(usize) -> Option<Element>,
    ) -> Self {
        Self { dims, order, axis: 0, base: 0, element }
    }
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(&dim) = self.dims.get(self.axis) else {
            return (self.element)(self.base).map(Element::json).serialize(serializer);
        };
        // A shape such as [2^40, 0] would give 2^40 empty arrays.
        if self.dims.contains(&0) {
            return serializer.collect_seq([(); 0]);
        }
        let stride: usize = match self.order {
            Order::C => self.dims.iter().skip(self.axis + 1).product(),
            Order::F => self.dims.iter().take(self.axis).product(),
        };
        let (axis, base) = (self.axis + 1, self.base);
        serializer.collect_seq((0..dim).map(|at| Self { axis, base: base + at * stride, ..*self }))
    }
}

enum Piece<'a> {
    Text(&'a str),
    Break(usize),
    Cell,
}

/// The part of a tensor that is shown.
struct View<'a> {
    section: &'a Section<'a>,
    node: &'a Node,
    payload: &'a Payload,
    size: usize,
    elided: bool,
}

impl<'a> View<'a> {
    fn new(
        section: &'a Section<'a>,
        node: &'a Node,
        payload: &'a Payload,
        detail: Detail,
    ) -> Option<Self> {
        let count = payload.count()?;
        let elided = count > detail.threshold();
        let size = elements::size(&payload.dtype)?;
        let deep = payload.shape.len() > MAX_RANK && (elided || count == 0);
        let told = elements::is_decoded(&payload.dtype) && !deep;
        told.then_some(Self { section, node, payload, size, elided })
    }

    /// Returns the indices of an axis that are shown.
    fn indices(&self, dim: usize) -> impl Iterator<Item = usize> + use<> {
        let edges = self.elided && dim > 2 * EDGE;
        let (first, second) = if edges { (EDGE, dim - EDGE) } else { (dim, dim) };
        (0..first).chain(second..dim)
    }

    fn visit(&self, each: &mut dyn FnMut(Element)) -> Result<()> {
        if self.payload.count() == Some(0) {
            return Ok(());
        }
        let mut reader = Reader { view: self, start: 0, bytes: Vec::new() };
        // A column in several groups of rows, or of bools, can only be read as a whole.
        if !self.elided || self.payload.column.is_some() || self.payload.byte_len <= WHOLE {
            // The whole tensor is read, so its checksum is verified.
            reader.bytes = self.section.payload_bytes(self.node)?;
        }
        self.axis(0, 0, &mut reader, each)
    }

    fn axis(
        &self,
        axis: usize,
        base: usize,
        reader: &mut Reader<'_, '_>,
        each: &mut dyn FnMut(Element),
    ) -> Result<()> {
        let Some(&dim) = self.payload.shape.get(axis) else {
            if let Some(element) = reader.element(base)? {
                each(element);
            }
            return Ok(());
        };
        let stride: usize = match self.payload.order {
            Order::C => self.payload.shape.iter().skip(axis + 1).product(),
            Order::F => self.payload.shape.iter().take(axis).product(),
        };
        for index in self.indices(dim) {
            self.axis(axis + 1, base + index * stride, reader, each)?;
        }
        Ok(())
    }

    /// Calls `put` with brackets, separators and cells, in the order in which they are printed.
    fn lines(&self, axis: usize, depth: usize, per_line: usize, put: &mut dyn FnMut(Piece<'_>)) {
        let Some(&dim) = self.payload.shape.get(axis) else {
            put(Piece::Cell);
            return;
        };
        let innermost = axis + 1 == self.payload.shape.len();
        let empty = self.payload.shape.iter().skip(axis).any(|&dim| dim == 0);
        if empty {
            put(Piece::Text("[]"));
            return;
        }
        put(Piece::Text("["));
        let (mut before, mut column) = (None, 0);
        for index in self.indices(dim) {
            if let Some(before) = before {
                let gap = index != before + 1;
                if innermost {
                    column += 1;
                    if gap {
                        put(Piece::Text(" …"));
                    }
                    if column % per_line != 0 {
                        put(Piece::Text(" "));
                    } else {
                        put(Piece::Break(depth + 1));
                    }
                } else {
                    put(Piece::Break(depth + 1));
                    if gap {
                        put(Piece::Text("…"));
                        put(Piece::Break(depth + 1));
                    }
                }
            }
            before = Some(index);
            self.lines(axis + 1, depth + 1, per_line, put);
        }
        put(Piece::Text("]"));
    }
}

/// The width of a line, of which brackets take some characters, as in numpy.
pub const WIDTH: usize = 80;
/// The characters of a line that are left for brackets.
const BRACKETS: usize = 6;

/// Reads elements at any position, and keeps the last block that was read.
struct Reader<'v, 'a> {
    view: &'v View<'a>,
    start: usize,
    bytes: Vec<u8>,
}

impl Reader<'_, '_> {
    fn element(&mut self, at: usize) -> Result<Option<Element>> {
        const BLOCK: usize = 4096;
        let View { section, node, payload, size, .. } = self.view;
        let from = at * size;
        let cached = from.checked_sub(self.start).filter(|from| from + size <= self.bytes.len());
        let from = match cached {
            Some(from) => from,
            None => {
                let len = usize::try_from(payload.byte_len).unwrap_or(usize::MAX);
                let block = BLOCK.max(*size).min(len.saturating_sub(from));
                self.bytes = section.part(node, from, block)?;
                self.start = from;
                0
            }
        };
        let bytes = self.bytes.get(from..from + size).unwrap_or_default();
        Ok(elements::decode(&payload.dtype, bytes))
    }
}
