//! What a model holds, without the elements.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::tensor::{self, TensorEntry};
use super::wire::{Field, Wire};
use crate::Losses;

/// What was found in a model.
#[derive(Debug, Default)]
pub struct Found {
    pub tensors: Vec<TensorEntry>,
    pub by_name: HashMap<String, usize>,
    pub losses: Losses,
}

const GRAPH: u64 = 7;
const INITIALIZER: u64 = 5;
const SPARSE_INITIALIZER: u64 = 15;
const NODE: u64 = 1;

/// Names of fields, by which their loss is told.
fn of_model(number: u64) -> &'static str {
    match number {
        1 => "ir_version",
        2 => "producer_name",
        3 => "producer_version",
        4 => "domain",
        5 => "model_version",
        6 => "doc_string",
        8 => "opset_import",
        14 => "metadata_props",
        20 => "training_info",
        25 => "functions",
        26 => "configuration",
        _ => UNKNOWN,
    }
}

/// What is neither a part of the graph nor a description of it.
const UNKNOWN: &str = "unknown fields";
const UNKNOWN_OF_GRAPH: &str = "graph.unknown fields";
const SPARSE: &str = "graph.sparse_initializer";

fn of_graph(number: u64) -> &'static str {
    match number {
        1 => "graph.node",
        2 => "graph.name",
        10 => "graph.doc_string",
        11 => "graph.input",
        12 => "graph.output",
        13 => "graph.value_info",
        14 => "graph.quantization_annotation",
        SPARSE_INITIALIZER => SPARSE,
        16 => "graph.metadata_props",
        _ => UNKNOWN_OF_GRAPH,
    }
}

/// The number of tensors in the attributes of a node, and of the graphs in them.
fn tensors_of_node<S: ReadAt + ?Sized>(
    wire: &mut Wire<'_, S>,
    node: &Range<u64>,
    depth: usize,
) -> Result<u64> {
    const ATTRIBUTE: u64 = 5;
    if depth == 0 {
        return Err(Error::limit("graphs in graphs, nested more deeply than is allowed"));
    }
    sum(wire, node, |wire, number, inside| match number {
        ATTRIBUTE => sum(wire, inside, |wire, number, inside| match number {
            // A tensor, tensors, a sparse tensor, sparse tensors.
            5 | 10 | 22 | 23 => Ok(1),
            // A graph, graphs.
            6 | 11 => sum(wire, inside, |wire, number, inside| match number {
                NODE => tensors_of_node(wire, inside, depth - 1),
                INITIALIZER | SPARSE_INITIALIZER => Ok(1),
                _ => Ok(0),
            }),
            _ => Ok(0),
        }),
        _ => Ok(0),
    })
}

/// The sum of what `count` gives for the messages inside of a message: for the number and the bytes of each.
fn sum<S: ReadAt + ?Sized>(
    wire: &mut Wire<'_, S>,
    message: &Range<u64>,
    mut count: impl FnMut(&mut Wire<'_, S>, u64, &Range<u64>) -> Result<u64>,
) -> Result<u64> {
    let mut total = 0u64;
    while let Some((number, field)) = wire.field(message.end)? {
        let next = field.range().end;
        if let Field::Bytes(inside) = &field {
            total = total.saturating_add(count(wire, number, inside)?);
        }
        wire.skip_to(next)?;
    }
    Ok(total)
}

/// Reads through a model; no elements.
pub fn read<S: ReadAt + ?Sized>(source: &S, limits: Limits) -> Result<Found> {
    let end = source.size().map_err(Error::io)?;
    let mut wire = Wire::new(source, limits)?;
    let mut found = Found::default();
    // Whatever there is beside, counted.
    let mut beside = BTreeMap::new();
    let (mut graphs, mut nodes) = (0, 0u64);
    while let Some((number, field)) = wire.field(end)? {
        let next = field.range().end;
        match (number, field) {
            (GRAPH, Field::Bytes(range)) => {
                graphs += 1;
                nodes = nodes.saturating_add(graph(
                    &mut wire,
                    &range,
                    limits,
                    &mut found,
                    &mut beside,
                )?);
            }
            (GRAPH, _) => return Err(Error::syntax("a graph that is no message").at(wire.at())),
            (number, _) => *beside.entry(of_model(number)).or_insert(0u64) += 1,
        }
        wire.skip_to(next)?;
    }
    if graphs == 0 {
        return Err(Error::syntax("expected an ONNX model, found none with a graph"));
    }
    let mut graph = Vec::new();
    for (name, count) in beside {
        let times = if count == 1 { String::new() } else { format!(" ({count})") };
        match name {
            SPARSE => found.losses.add_tensors(name, count, format!("it is left out{times}")),
            UNKNOWN | UNKNOWN_OF_GRAPH | "training_info" => {
                found.losses.add(name, format!("it is left out{times}"));
            }
            _ => graph.push(format!("{name}{times}")),
        }
    }
    if !graph.is_empty() {
        found
            .losses
            .note(format!("only the tensors of a model are read, not {}", graph.join(", ")));
    }
    let what = format!("tensors in nodes of the graph are not read ({nodes})");
    found.losses.add_tensors("graph.node", nodes, what);
    Ok(found)
}

fn graph<S: ReadAt + ?Sized>(
    wire: &mut Wire<'_, S>,
    message: &Range<u64>,
    limits: Limits,
    found: &mut Found,
    beside: &mut BTreeMap<&'static str, u64>,
) -> Result<u64> {
    let mut nodes = 0u64;
    while let Some((number, field)) = wire.field(message.end)? {
        let next = field.range().end;
        match (number, field) {
            (INITIALIZER, Field::Bytes(range)) => {
                wire.charge(2 * size_of::<TensorEntry>())?;
                let losses = &mut found.losses;
                let tensor = tensor::read(wire, &range, limits, &mut |name, what| {
                    losses.add(name, what);
                })?;
                if let Some(why) = tensor.refused() {
                    found.losses.add_tensor(tensor.name(), format!("{why}; it is left out"));
                }
                let name = tensor.name.clone();
                if found.by_name.insert(name.clone(), found.tensors.len()).is_some() {
                    let what = "there are two tensors of this name";
                    return Err(Error::data(what).at(range.start).in_field(name));
                }
                found.tensors.push(tensor);
            }
            (INITIALIZER, _) => {
                return Err(Error::syntax("an initializer that is no message").at(wire.at()));
            }
            (NODE, Field::Bytes(range)) => {
                *beside.entry(of_graph(NODE)).or_insert(0) += 1;
                nodes = nodes.saturating_add(tensors_of_node(wire, &range, limits.max_depth())?);
            }
            (number, _) => *beside.entry(of_graph(number)).or_insert(0) += 1,
        }
        wire.skip_to(next)?;
    }
    Ok(nodes)
}
