//! Finds the tensors in a graph: its initializers, the tensors in its nodes, and those of the graphs in its nodes.

use std::collections::BTreeMap;
use std::ops::Range;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::tensor::{self, Entry, Plain};
use super::wire::{Field, Wire};

/// The fields of a model that hold no tensors: the name of each, and how often it was found.
pub type Beside = BTreeMap<&'static str, u64>;

/// Returns the name of a field of a graph (`GraphProto` in `onnx.proto`).
fn of_graph(number: u64) -> &'static str {
    match number {
        NODE => "graph.node",
        2 => "graph.name",
        10 => "graph.doc_string",
        11 => "graph.input",
        12 => "graph.output",
        13 => "graph.value_info",
        14 => "graph.quantization_annotation",
        16 => "graph.metadata_props",
        _ => UNKNOWN_OF_GRAPH,
    }
}

/// The name under which fields of graphs are counted that are not known.
pub const UNKNOWN_OF_GRAPH: &str = "graph.unknown fields";

const NODE: u64 = 1;
const INITIALIZER: u64 = 5;
const SPARSE_INITIALIZER: u64 = 15;

/// A tensor, and its place in the model.
pub struct Located {
    pub tensor: Entry,
    /// The position of the tensor's message.
    pub at: u64,
    pub is_initializer: bool,
    /// The inner graph or function that holds the tensor, as an index in [`Walk::inner`]. `None` for the graph of the
    /// model.
    pub place: Option<usize>,
}

/// A graph in an attribute of a node, or a function.
struct Inner {
    /// The inner graph or function that this graph is in. `None` for the graph of the model.
    parent: Option<usize>,
    /// The names of the node and of its attribute, or the name of the function.
    name: String,
}

/// Reads a model from start to end, and collects its tensors.
pub struct Walk<'a, S: ?Sized> {
    pub wire: Wire<'a, S>,
    limits: Limits,
    pub tensors: Vec<Located>,
    inner: Vec<Inner>,
    pub beside: Beside,
    /// The number of sparse tensors.
    pub sparse: u64,
}

/// The contents of a node's attributes. They are collected first, because the name and the operator of the node may
/// come after its attributes.
#[derive(Default)]
struct Attributes {
    tensors: Vec<InAttribute>,
    /// The index of each graph in [`Walk::inner`], and the name of its attribute.
    graphs: Vec<(usize, String)>,
}

/// A tensor in an attribute.
struct InAttribute {
    tensor: Entry,
    /// The position of the tensor's message.
    at: u64,
    /// The name of the attribute. If the attribute is a list of tensors, the number of this one follows.
    name: String,
    /// Whether the attribute holds numbers or texts, which are a tensor only if the node is a `Constant`.
    only_of_constant: bool,
}

impl<'a, S: ReadAt + ?Sized> Walk<'a, S> {
    pub fn new(source: &'a S, limits: Limits) -> Result<Self> {
        Ok(Self {
            wire: Wire::new(source, limits)?,
            limits,
            tensors: Vec::new(),
            inner: Vec::new(),
            beside: Beside::new(),
            sparse: 0,
        })
    }

    /// Reads the graph of the model.
    pub fn main_graph(&mut self, message: &Range<u64>) -> Result<()> {
        self.graph(message, None, self.limits.max_depth())
    }

    /// Reads a function of the model (`FunctionProto`).
    pub fn function(&mut self, message: &Range<u64>) -> Result<()> {
        const NAME: u64 = 1;
        const NODE: u64 = 7;
        let place = self.add_inner(None)?;
        while let Some((number, field)) = self.wire.field(message.end)? {
            let next = field.range().end;
            match (number, field) {
                (NAME, Field::Bytes(range)) => {
                    let name = self.wire.text(&range)?;
                    self.name_inner(place, name);
                }
                (NODE, Field::Bytes(range)) => {
                    self.node(&range, Some(place), self.limits.max_depth())?;
                }
                _ => {}
            }
            self.wire.skip_to(next)?;
        }
        Ok(())
    }

    fn graph(&mut self, message: &Range<u64>, place: Option<usize>, depth: usize) -> Result<()> {
        let Some(depth) = depth.checked_sub(1) else {
            let what = "graphs are nested deeper than the limit";
            return Err(Error::limit(what).at(message.start));
        };
        while let Some((number, field)) = self.wire.field(message.end)? {
            let next = field.range().end;
            match (number, field) {
                (INITIALIZER, Field::Bytes(range)) => {
                    let tensor = self.tensor(&range)?;
                    let at = range.start;
                    self.tensors.push(Located { tensor, at, is_initializer: true, place });
                }
                (INITIALIZER, _) => {
                    let what = "expected an initializer, found a field that is not a message";
                    return Err(Error::syntax(what).at(self.wire.at()));
                }
                (SPARSE_INITIALIZER, _) => self.sparse = self.sparse.saturating_add(1),
                (number, field) => {
                    if place.is_none() {
                        *self.beside.entry(of_graph(number)).or_insert(0) += 1;
                    }
                    if let (NODE, Field::Bytes(range)) = (number, &field) {
                        self.node(range, place, depth)?;
                    }
                }
            }
            self.wire.skip_to(next)?;
        }
        Ok(())
    }

    fn tensor(&mut self, message: &Range<u64>) -> Result<Entry> {
        self.wire.charge(2 * size_of::<Located>())?;
        tensor::read(&mut self.wire, message, self.limits)
    }

    /// Reads a node (`NodeProto`).
    fn node(&mut self, message: &Range<u64>, place: Option<usize>, depth: usize) -> Result<()> {
        let (mut output, mut name, mut operator) = (None, String::new(), String::new());
        let mut attributes = Attributes::default();
        while let Some((number, field)) = self.wire.field(message.end)? {
            let next = field.range().end;
            match (number, field) {
                (2, Field::Bytes(range)) if output.is_none() => {
                    output = Some(self.wire.text(&range)?);
                }
                (3, Field::Bytes(range)) => name = self.wire.text(&range)?,
                (4, Field::Bytes(range)) => operator = self.wire.text(&range)?,
                (5, Field::Bytes(range)) => {
                    self.attribute(&range, place, depth, &mut attributes)?;
                }
                _ => {}
            }
            self.wire.skip_to(next)?;
        }
        let is_constant = operator == "Constant";
        // The name of an output is unique within its graph. The name of a node may not be.
        let node = output.into_iter().chain([name]).find(|name| !name.is_empty());
        let node = node.unwrap_or_else(|| format!("node at byte {}", message.start));
        for (number, attribute) in attributes.graphs {
            let name = self.joined(&node, &attribute)?;
            self.name_inner(number, name);
        }
        for InAttribute { mut tensor, at, name, only_of_constant } in attributes.tensors {
            if only_of_constant && !is_constant {
                continue;
            }
            tensor.name = if is_constant {
                // Other nodes know the tensor by the name of the output.
                self.wire.charge(node.len())?;
                node.clone()
            } else {
                self.joined(&node, &name)?
            };
            self.tensors.push(Located { tensor, at, is_initializer: false, place });
        }
        Ok(())
    }

    /// Reads an attribute of a node (`AttributeProto`).
    fn attribute(
        &mut self,
        message: &Range<u64>,
        place: Option<usize>,
        depth: usize,
        found: &mut Attributes,
    ) -> Result<()> {
        let (mut name, mut plain) = (String::new(), Plain::default());
        let (mut tensors, mut graphs) = (Vec::new(), Vec::new());
        while let Some((number, field)) = self.wire.field(message.end)? {
            let next = field.range().end;
            match (number, field) {
                (1, Field::Bytes(range)) => name = self.wire.text(&range)?,
                // 5 is a tensor. 10 is a tensor of a list.
                (5 | 10, Field::Bytes(range)) => {
                    let is_listed = number == 10;
                    tensors.push((self.tensor(&range)?, range.start, is_listed));
                }
                // 6 is a graph. 11 is a graph of a list.
                (6 | 11, Field::Bytes(range)) => {
                    let inner = self.add_inner(place)?;
                    graphs.push((inner, number == 11));
                    self.graph(&range, Some(inner), depth)?;
                }
                (22 | 23, _) => self.sparse = self.sparse.saturating_add(1),
                (number, field) => plain.take(&mut self.wire, number, &field)?,
            }
            self.wire.skip_to(next)?;
        }
        let numbered =
            |at: usize, is_listed| if is_listed { format!("{name}/{at}") } else { name.clone() };
        self.wire.charge((tensors.len() + graphs.len()).saturating_mul(name.len() + 20))?;
        for (at, (number, is_listed)) in graphs.into_iter().enumerate() {
            found.graphs.push((number, numbered(at, is_listed)));
        }
        for (number, (tensor, at, is_listed)) in tensors.into_iter().enumerate() {
            let name = numbered(number, is_listed);
            found.tensors.push(InAttribute { tensor, at, name, only_of_constant: false });
        }
        if let Some(tensor) = plain.of_constant(&name, message) {
            self.wire.charge(2 * size_of::<Located>())?;
            let at = message.start;
            found.tensors.push(InAttribute { tensor, at, name, only_of_constant: true });
        }
        Ok(())
    }

    fn add_inner(&mut self, parent: Option<usize>) -> Result<usize> {
        self.wire.charge(2 * size_of::<Inner>())?;
        self.inner.push(Inner { parent, name: String::new() });
        Ok(self.inner.len() - 1)
    }

    fn name_inner(&mut self, number: usize, name: String) {
        if let Some(inner) = self.inner.get_mut(number) {
            inner.name = name;
        }
    }

    /// Joins two steps to a name. Its memory counts towards the limit, because a long first step may be repeated for
    /// many second steps.
    fn joined(&mut self, first: &str, second: &str) -> Result<String> {
        self.wire.charge(first.len() + second.len() + 1)?;
        Ok(format!("{first}/{second}"))
    }

    /// Returns the name of a tensor after the names of the inner graphs that hold it.
    pub fn qualified(&mut self, place: usize, name: &str) -> Result<String> {
        let mut qualified = name.to_owned();
        let mut place = Some(place);
        while let Some(inner) = place.and_then(|number| self.inner.get(number)) {
            place = inner.parent;
            let step = inner.name.clone();
            qualified = self.joined(&step, &qualified)?;
        }
        Ok(qualified)
    }
}
