//! The tensors of a graph, of its nodes, and of the graphs in these.

use std::ops::Range;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::model::{Beside, UNKNOWN_OF_GRAPH};
use super::tensor::{self, Plain, TensorEntry};
use super::wire::{Field, Wire};

/// The name of a field of a graph (`GraphProto` in `onnx.proto`).
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

const NODE: u64 = 1;
const INITIALIZER: u64 = 5;
const SPARSE_INITIALIZER: u64 = 15;

/// A tensor that was found, and where.
pub struct Located {
    pub tensor: TensorEntry,
    /// The position of its message.
    pub at: u64,
    pub is_initializer: bool,
    /// The graph or function that holds it. `None`: the graph of the model.
    pub place: Option<usize>,
}

/// A graph in an attribute of a node, or a function.
struct Inner {
    /// The graph that this one is in.
    parent: Option<usize>,
    /// The node and its attribute, or the function.
    name: String,
}

/// Reads a model from front to end.
pub struct Walk<'a, S: ?Sized> {
    pub wire: Wire<'a, S>,
    limits: Limits,
    pub tensors: Vec<Located>,
    inner: Vec<Inner>,
    pub beside: Beside,
    /// The number of sparse tensors.
    pub sparse: u64,
}

/// What the attributes of a node hold. The node's name, and what it does, may come after them.
#[derive(Default)]
struct Attributes {
    tensors: Vec<InAttribute>,
    /// Graphs, by their numbers in [`Walk::inner`], and the names of their attributes.
    graphs: Vec<(usize, String)>,
}

struct InAttribute {
    tensor: TensorEntry,
    at: u64,
    /// The name of the attribute, and the number of the tensor if it is one of a list.
    name: String,
    /// Whether this is a tensor only if the node is a `Constant`: numbers or texts.
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

    /// The graph of the model.
    pub fn main_graph(&mut self, message: &Range<u64>) -> Result<()> {
        self.graph(message, None, self.limits.max_depth())
    }

    /// A function of the model (`FunctionProto`).
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
            let what = "graphs in graphs, nested more deeply than is allowed";
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
                    let what = "an initializer that is no message";
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

    fn tensor(&mut self, message: &Range<u64>) -> Result<TensorEntry> {
        self.wire.charge(2 * size_of::<Located>())?;
        tensor::read(&mut self.wire, message, self.limits)
    }

    /// A node (`NodeProto`).
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
        // The name of an output is unique within its graph. That of a node need not be.
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

    /// An attribute of a node (`AttributeProto`).
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
                // A tensor; or one of several.
                (5 | 10, Field::Bytes(range)) => {
                    let is_listed = number == 10;
                    tensors.push((self.tensor(&range)?, range.start, is_listed));
                }
                // A graph; or one of several.
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

    /// Two steps as a name. Its memory is counted, because the first step may be long and have many second ones.
    fn joined(&mut self, first: &str, second: &str) -> Result<String> {
        self.wire.charge(first.len() + second.len() + 1)?;
        Ok(format!("{first}/{second}"))
    }

    /// The name of a tensor, behind those of the graphs that it is in.
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
