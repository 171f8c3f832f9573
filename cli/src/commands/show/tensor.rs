//! Tensors as numpy prints them: of large ones, the first and last elements of each axis.

use serde_json::Value as Json;
use tenarc::Order;

use crate::document::Section;
use crate::elements::{self, Element};
use crate::failure::Result;
use crate::node::{Form, Node, Payload};

/// How much is shown of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Among others: the edges of all but small ones.
    Little,
    /// By itself: as numpy prints it.
    Much,
    All,
}

impl Detail {
    /// Larger tensors are elided.
    fn threshold(self) -> usize {
        match self {
            Self::Little => 64,
            Self::Much => 1000,
            Self::All => usize::MAX,
        }
    }
}

/// So many elements stay at each end of an axis.
const EDGE: usize = 3;
/// Deeper ones would take thousands of edges.
const MAX_RANK: usize = 6;

/// The elements as text; empty where they are none that can be told.
pub fn text(
    section: &Section<'_>,
    node: &Node,
    payload: &Payload,
    detail: Detail,
) -> Result<String> {
    let Some(view) = View::new(section, node, payload, detail) else { return Ok(String::new()) };
    let mut cells = Vec::new();
    view.visit(&mut |element| cells.push(shown(element, detail == Detail::All)))?;
    let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let mut cells = cells.into_iter();
    view.lines(0, 0, &mut |piece| match piece {
        Piece::Text(piece) => text.push_str(piece),
        Piece::Break(indent) => {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
        }
        Piece::Cell => {
            let cell = cells.next().unwrap_or_default();
            text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
            text.push_str(&cell);
        }
    });
    Ok(text)
}

/// The elements as nested arrays; none of tensors that are too large.
pub fn json(
    section: &Section<'_>,
    node: &Node,
    payload: &Payload,
    full: bool,
) -> Result<Option<Json>> {
    let most = if full { Detail::All } else { Detail::Much }.threshold();
    let elided = payload.count().is_none_or(|count| count > most);
    if elided || payload.form == Form::Bytes {
        return Ok(None);
    }
    let Some(view) = View::new(section, node, payload, Detail::All) else { return Ok(None) };
    let mut numbers = Vec::new();
    view.visit(&mut |element| numbers.push(element.json()))?;
    Ok(Some(nested(&payload.shape, &mut numbers.into_iter())))
}

/// Elements in row-major order as nested arrays.
pub fn nested(dims: &[usize], elements: &mut dyn Iterator<Item = Json>) -> Json {
    // However many empty arrays there would be.
    if dims.contains(&0) {
        return Json::Array(Vec::new());
    }
    match dims.split_first() {
        None => elements.next().unwrap_or_default(),
        Some((&dim, rest)) => Json::Array((0..dim).map(|_| nested(rest, elements)).collect()),
    }
}

fn shown(element: Element, full: bool) -> String {
    let short = |value: f64, text: String| {
        // numpy shows 8 digits.
        let long = text.trim_start_matches('-').len() > 10;
        if long && !full && value.is_finite() {
            let rounded = format!("{value:.7e}");
            rounded.parse::<f64>().map_or(text, |value| format!("{value:?}"))
        } else {
            text
        }
    };
    match element {
        Element::Float(value, _) => short(value, element.text()),
        _ => element.text(),
    }
}

enum Piece<'a> {
    Text(&'a str),
    Break(usize),
    Cell,
}

/// What is shown of a tensor.
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

    /// The indices shown of an axis, and where some are left out.
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
        if !self.elided {
            // All are shown: with their checksum verified.
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

    /// Brackets and line breaks.
    fn lines(&self, axis: usize, depth: usize, put: &mut dyn FnMut(Piece<'_>)) {
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
                    if self.elided || column % PER_LINE != 0 {
                        put(Piece::Text(if gap { " … " } else { " " }));
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
            self.lines(axis + 1, depth + 1, put);
        }
        put(Piece::Text("]"));
    }
}

/// Elements on a line of a vector that is shown in full.
const PER_LINE: usize = 10;

/// Reads elements here and there, a block at a time.
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
        let held = from.checked_sub(self.start).filter(|from| from + size <= self.bytes.len());
        let from = match held {
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
