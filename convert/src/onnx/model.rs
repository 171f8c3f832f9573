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
        _ => "unknown fields",
    }
}

fn of_graph(number: u64) -> &'static str {
    match number {
        1 => "graph.node",
        2 => "graph.name",
        10 => "graph.doc_string",
        11 => "graph.input",
        12 => "graph.output",
        13 => "graph.value_info",
        14 => "graph.quantization_annotation",
        15 => "graph.sparse_initializer",
        16 => "graph.metadata_props",
        _ => "graph.unknown fields",
    }
}

/// Reads through a model; no elements.
pub fn read<S: ReadAt + ?Sized>(source: &S, limits: Limits) -> Result<Found> {
    let end = source.size().map_err(Error::io)?;
    let mut wire = Wire::new(source, limits)?;
    let mut found = Found::default();
    // Whatever there is beside, counted.
    let mut beside = BTreeMap::new();
    let mut graphs = 0;
    while let Some((number, field)) = wire.field(end)? {
        let next = field.range().end;
        match (number, field) {
            (GRAPH, Field::Bytes(range)) => {
                graphs += 1;
                graph(&mut wire, &range, limits, &mut found, &mut beside)?;
            }
            (GRAPH, _) => return Err(Error::syntax("a graph that is no message").at(wire.at())),
            (number, _) => *beside.entry(of_model(number)).or_insert(0u64) += 1,
        }
        wire.skip_to(next)?;
    }
    if graphs == 0 {
        return Err(Error::syntax("expected an ONNX model, found none with a graph"));
    }
    for (name, count) in beside {
        let what = match count {
            1 => "it is left out".to_owned(),
            count => format!("all {count} of it are left out"),
        };
        found.losses.add(name, what);
    }
    Ok(found)
}

fn graph<S: ReadAt + ?Sized>(
    wire: &mut Wire<'_, S>,
    message: &Range<u64>,
    limits: Limits,
    found: &mut Found,
    beside: &mut BTreeMap<&'static str, u64>,
) -> Result<()> {
    while let Some((number, field)) = wire.field(message.end)? {
        let next = field.range().end;
        match (number, field) {
            (INITIALIZER, Field::Bytes(range)) => {
                wire.charge(2 * size_of::<TensorEntry>())?;
                let losses = &mut found.losses;
                let tensor = tensor::read(wire, &range, limits, &mut |name, what| {
                    losses.add(name, what);
                })?;
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
            (number, _) => *beside.entry(of_graph(number)).or_insert(0) += 1,
        }
        wire.skip_to(next)?;
    }
    Ok(())
}
