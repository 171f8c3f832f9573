//! Compares two values node by node.

use std::collections::HashMap;

use serde::Serialize;
use tenarc::Value;
use tenarc::archive::Table;
use tenarc::inspect::TYPE;

use super::values::{self, Values};
use crate::document::Section;
use crate::elements::{self, Element};
use crate::failure::{Of, Result};
use crate::fields;
use crate::input::Source;
use crate::node::{self, Form, Key, Node, Payload};
use crate::paths::Globs;
use crate::rows::BLOCK;
use crate::text::{escaped, quoted};

/// The greatest number of characters that are shown of a value that differs.
const SHOWN: usize = 60;

/// A place at which two files differ.
#[derive(Debug, Serialize)]
pub struct Difference {
    pub segment: u64,
    pub path: String,
    pub kind: Kind,
    /// A short description of the value in A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    /// A short description of the value in B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
    #[serde(flatten)]
    pub values: Option<Values>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    OnlyInA,
    OnlyInB,
    /// The two values are of different kinds, such as a tensor and a map.
    #[serde(rename = "kind")]
    Type,
    Dtype,
    Shape,
    /// Values that are not tensors differ.
    Value,
    /// Elements of a tensor differ.
    Elements,
    /// The names of the two values in their archives differ.
    Name,
}

pub struct Comparison<'a> {
    pub a: &'a Section<'a>,
    pub b: &'a Section<'a>,
    pub segment: u64,
    pub globs: &'a Globs,
    pub atol: f64,
    pub rtol: f64,
    pub structure: bool,
    /// Whether the names of the values are compared.
    pub names: bool,
}

impl Comparison<'_> {
    pub fn differences(&self) -> Result<Vec<Difference>> {
        let mut found = Vec::new();
        if self.names && self.a.name() != self.b.name() && self.globs.is_empty() {
            let (a, b) = (self.a.label(), self.b.label());
            self.add(&mut found, "", Kind::Name, Some(a), Some(b), None);
        }
        self.node(&self.a.root, &self.b.root, &mut String::new(), &mut found)?;
        Ok(found)
    }

    fn add(
        &self,
        found: &mut Vec<Difference>,
        path: &str,
        kind: Kind,
        a: Option<String>,
        b: Option<String>,
        values: Option<Values>,
    ) {
        if self.globs.admits(path) {
            let path = path.to_owned();
            found.push(Difference { segment: self.segment, path, kind, a, b, values });
        }
    }

    fn node(
        &self,
        a: &Node,
        b: &Node,
        path: &mut String,
        found: &mut Vec<Difference>,
    ) -> Result<()> {
        // Marks the patterns that match this path as used, even if there is no difference.
        self.globs.any(path);
        match (&a.kind, &b.kind) {
            (node::Kind::Payload(from), node::Kind::Payload(to)) => {
                return self.payload((a, from), (b, to), path, found);
            }
            (node::Kind::Array(from), node::Kind::Array(to)) => {
                for at in 0..from.len().max(to.len()) {
                    self.entry(from.get(at), to.get(at), &at.to_string(), path, found)?;
                }
            }
            (node::Kind::Map(from), node::Kind::Map(to)) => self.maps(from, to, path, found)?,
            (node::Kind::Tag(from, inner), node::Kind::Tag(to, other)) if from == to => {
                let (item, other_item) = (node::tagged(*from, inner), node::tagged(*to, other));
                // What stands in front of an item is the name and the parameters of its type.
                let head = self.a.item(&(a.range.start..item.range.start));
                if *from != TYPE || head == self.b.item(&(b.range.start..other_item.range.start)) {
                    return self.node(item, other_item, path, found);
                }
                let (from, to) = (words(self.a, a), words(self.b, b));
                self.add(found, path, Kind::Type, Some(from), Some(to), None);
            }
            (node::Kind::Columns(_), _) | (_, node::Kind::Columns(_)) => {
                return self.rows(a, b, path, found);
            }
            (node::Kind::Payload(_), _) | (_, node::Kind::Payload(_)) if self.stored(a, b)? => {}
            _ if !self.leaves(a, b)? => {
                let kinds = [a, b].map(|node| std::mem::discriminant(&node.kind));
                let kind = if kinds[0] == kinds[1] { Kind::Value } else { Kind::Type };
                if !self.structure || kind == Kind::Type {
                    let (from, to) = (words(self.a, a), words(self.b, b));
                    self.add(found, path, kind, Some(from), Some(to), None);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares the values that two arrays or maps have under one step of a path.
    fn entry(
        &self,
        a: Option<&Node>,
        b: Option<&Node>,
        step: &str,
        path: &mut String,
        found: &mut Vec<Difference>,
    ) -> Result<()> {
        let len = path.len();
        if len > 0 {
            path.push('.');
        }
        path.push_str(step);
        match (a, b) {
            (Some(a), Some(b)) => self.node(a, b, path, found)?,
            (Some(a), None) => {
                self.add(found, path, Kind::OnlyInA, Some(words(self.a, a)), None, None);
            }
            (None, Some(b)) => {
                self.add(found, path, Kind::OnlyInB, None, Some(words(self.b, b)), None);
            }
            (None, None) => {}
        }
        path.truncate(len);
        Ok(())
    }

    /// Compares two sequences row by row, if at least one of them is stored as columns.
    fn rows(
        &self,
        a: &Node,
        b: &Node,
        path: &mut String,
        found: &mut Vec<Difference>,
    ) -> Result<()> {
        let tables = (table(self.a, a)?, table(self.b, b)?);
        let sides = (Blocks::of(a, tables.0.as_ref()), Blocks::of(b, tables.1.as_ref()));
        let (Some(mut from), Some(mut to)) = sides else {
            // One of the two is not an array, but for example numbers in a buffer. Only a writer other than tenarc
            // stores numbers as columns.
            if crate::written::value(self.a, a)? != crate::written::value(self.b, b)? {
                let (from, to) = (words(self.a, a), words(self.b, b));
                self.add(found, path, Kind::Type, Some(from), Some(to), None);
            }
            return Ok(());
        };
        let mut row = 0u64;
        loop {
            let (from, to) = (from.next()?, to.next()?);
            let (rows, others) = (from.rows(), to.rows());
            if rows.is_empty() && others.is_empty() {
                return Ok(());
            }
            let comparison = Comparison {
                a: from.section.as_ref().unwrap_or(self.a),
                b: to.section.as_ref().unwrap_or(self.b),
                segment: self.segment,
                globs: self.globs,
                atol: self.atol,
                rtol: self.rtol,
                structure: self.structure,
                names: self.names,
            };
            for at in 0..rows.len().max(others.len()) {
                comparison.entry(rows.get(at), others.get(at), &row.to_string(), path, found)?;
                row += 1;
            }
        }
    }

    /// Compares two maps. The order of their entries does not matter.
    fn maps(
        &self,
        a: &[(Key, Node)],
        b: &[(Key, Node)],
        path: &mut String,
        found: &mut Vec<Difference>,
    ) -> Result<()> {
        let mut others: HashMap<&[u8], (&Key, &Node)> = HashMap::with_capacity(b.len());
        for (key, node) in b {
            others.insert(self.b.item(&key.range), (key, node));
        }
        for (key, node) in a {
            let other = others.remove(self.a.item(&key.range)).map(|(_, node)| node);
            self.entry(Some(node), other, &key.step, path, found)?;
        }
        for (key, node) in b {
            if others.remove(self.b.item(&key.range)).is_some() {
                self.entry(None, Some(node), &key.step, path, found)?;
            }
        }
        Ok(())
    }

    /// Returns whether a block of numbers or bytes equals an array or byte string in the metadata of the other file. A
    /// writer may store the same value in either way.
    fn stored(&self, a: &Node, b: &Node) -> Result<bool> {
        let is_tensor = |node: &Node| node.payload().is_some_and(|p| p.form == Form::Tensor);
        if is_tensor(a) || is_tensor(b) {
            return Ok(false);
        }
        let plain = |section: &Section<'_>, node: &Node| match node.payload() {
            Some(payload) if payload.form == Form::Numbers => {
                let size = elements::size(&payload.dtype).unwrap_or(1);
                let bytes = section.payload_bytes(node)?;
                let numbers = bytes.chunks_exact(size);
                let numbers = numbers.map(|bytes| match elements::decode(&payload.dtype, bytes) {
                    Some(Element::Int(value)) => Value::Integer(value),
                    Some(Element::Float(value, _)) => Value::F64(value),
                    _ => Value::Bytes(bytes.to_vec()),
                });
                Ok(Value::Array(numbers.collect()))
            }
            _ if matches!(node.kind, node::Kind::Array(_)) && node.holds_payload() => {
                Ok(Value::Null)
            }
            _ => crate::written::value(section, node),
        };
        match (plain(self.a, a)?, plain(self.b, b)?) {
            (Value::Array(a), Value::Array(b)) => {
                let mut pairs = a.iter().zip(&b);
                Ok(a.len() == b.len() && pairs.all(|(a, b)| self.is_same(a, b)))
            }
            (a, b) => Ok(a == b),
        }
    }

    fn is_same(&self, a: &Value, b: &Value) -> bool {
        // JSON and Python have only doubles, so a float of 32 bits equals each double that rounds to it.
        #[allow(clippy::cast_possible_truncation)]
        let numbers = match (a, b) {
            (Value::F32(a), Value::F64(b)) | (Value::F64(b), Value::F32(a))
                if b.is_finite() == (*b as f32).is_finite() =>
            {
                (Some((*a).into()), Some((*b as f32).into()))
            }
            _ => (number(a), number(b)),
        };
        match numbers {
            (Some(a), Some(b)) => values::is_close(a, b, self.atol, self.rtol),
            _ => a == b,
        }
    }

    /// Returns whether two values without tensors are the same.
    fn leaves(&self, a: &Node, b: &Node) -> Result<bool> {
        // Nodes of the same kind with payloads are compared by their parts. Here, the kinds or the tags differ.
        if a.holds_payload() || b.holds_payload() {
            return Ok(false);
        }
        let (a, b) = (self.a.item(&a.range), self.b.item(&b.range));
        if a == b {
            return Ok(true);
        }
        let (a, b): (Value, Value) = (tenarc::from_slice(a)?, tenarc::from_slice(b)?);
        Ok(self.is_same(&a, &b))
    }

    fn payload(
        &self,
        (a, from): (&Node, &Payload),
        (b, to): (&Node, &Payload),
        path: &str,
        found: &mut Vec<Difference>,
    ) -> Result<()> {
        let labels = (Some(from.label()), Some(to.label()));
        let kind = match () {
            () if (from.form == Form::Bytes) != (to.form == Form::Bytes) => Kind::Type,
            () if from.shape != to.shape => Kind::Shape,
            () if from.dtype != to.dtype => Kind::Dtype,
            // Elements of unknown size cannot be reordered for comparison.
            () if from.order != to.order && elements::size(&from.dtype).is_none() => Kind::Shape,
            () => Kind::Elements,
        };
        if kind != Kind::Elements {
            self.add(found, path, kind, labels.0, labels.1, None);
            return Ok(());
        }
        if self.structure || !self.globs.admits(path) {
            return Ok(());
        }
        let tolerance = (self.atol, self.rtol);
        let values = values::compare((self.a, a, from), (self.b, b, to), tolerance);
        if let Some(values) = values.of(quoted(path))? {
            self.add(found, path, Kind::Elements, labels.0, labels.1, Some(values));
        }
        Ok(())
    }
}

fn table<'a>(section: &Section<'a>, node: &Node) -> Result<Option<Table<'a, Source>>> {
    match &node.kind {
        node::Kind::Columns(columns) => section.table(columns).map(Some),
        _ => Ok(None),
    }
}

/// The rows of a sequence in blocks of equal size.
enum Blocks<'t> {
    Columns(Box<dyn Iterator<Item = tenarc::Result<Value>> + 't>),
    Array(std::slice::Chunks<'t, Node>),
}

/// Some consecutive rows of a sequence.
struct Block<'t> {
    /// The section that the rows are in, if it is not the section of the sequence.
    section: Option<Section<'t>>,
    nodes: &'t [Node],
}

impl Block<'_> {
    fn rows(&self) -> &[Node] {
        match self.section.as_ref().map(|section| &section.root.kind) {
            Some(node::Kind::Array(items)) => items,
            _ => self.nodes,
        }
    }
}

impl<'t> Blocks<'t> {
    fn of(node: &'t Node, table: Option<&'t Table<'_, Source>>) -> Option<Self> {
        match (&node.kind, table) {
            (_, Some(table)) => Some(Self::Columns(Box::new(fields::rows(table)))),
            (node::Kind::Array(items), _) => Some(Self::Array(items.chunks(BLOCK))),
            _ => None,
        }
    }

    /// Returns the next block, which is empty at the end.
    fn next(&mut self) -> Result<Block<'t>> {
        match self {
            Self::Columns(rows) => {
                let rows = rows.take(BLOCK).collect::<tenarc::Result<Vec<Value>>>()?;
                let section = Section::of_value(&Value::Array(rows))?;
                Ok(Block { section: Some(section), nodes: &[] })
            }
            Self::Array(chunks) => {
                Ok(Block { section: None, nodes: chunks.next().unwrap_or_default() })
            }
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn number(value: &Value) -> Option<f64> {
    match value {
        // A double does not hold all larger integers exactly.
        Value::Integer(value) if value.unsigned_abs() <= 1 << 53 => Some(*value as f64),
        Value::F32(value) => Some((*value).into()),
        Value::F64(value) => Some(*value),
        _ => None,
    }
}

/// Returns a short description of a node, for the output.
fn words(section: &Section<'_>, node: &Node) -> String {
    match &node.kind {
        node::Kind::Payload(payload) => payload.label(),
        node::Kind::Array(items) => format!("array of {}", items.len()),
        node::Kind::Columns(columns) => {
            let rows = section.table(columns).map_or(0, |table| table.len());
            format!("array of {rows}")
        }
        node::Kind::Map(entries) => format!("map of {}", entries.len()),
        node::Kind::Tag(tag, inner) => match node::named(*tag, inner) {
            [name, _, item] => {
                let name: Value = tenarc::from_slice(section.item(&name.range)).unwrap_or_default();
                format!("{}({})", escaped(name.as_str().unwrap_or_default()), words(section, item))
            }
            _ => format!("{tag}({})", words(section, inner)),
        },
        node::Kind::Leaf => {
            let text = tenarc::diag::to_string(section.item(&node.range)).unwrap_or_default();
            match text.char_indices().nth(SHOWN) {
                Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
                None => text,
            }
        }
    }
}
