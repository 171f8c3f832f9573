//! Reads the structure of a model: finds its tensors and names them, but reads no elements.

use std::cmp::Reverse;
use std::collections::HashMap;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::graph::{UNKNOWN_OF_GRAPH, Walk};
use super::tensor::Entry;
use super::wire::Field;
use crate::Losses;

/// The tensors of a model.
#[derive(Debug, Default)]
pub struct Found {
    pub tensors: Vec<Entry>,
    /// The index in `tensors` for each name.
    pub by_name: HashMap<String, usize>,
    pub losses: Losses,
}

const GRAPH: u64 = 7;
const FUNCTION: u64 = 25;

/// Returns the name of a field of a model (`ModelProto` in `onnx.proto`).
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
        FUNCTION => "functions",
        26 => "configuration",
        _ => UNKNOWN,
    }
}

/// The name under which fields are counted that are not known.
const UNKNOWN: &str = "unknown fields";

/// Reads the structure of a model.
pub fn read<S: ReadAt + ?Sized>(source: &S, limits: Limits) -> Result<Found> {
    let end = source.size().map_err(Error::io)?;
    let mut walk = Walk::new(source, limits)?;
    let mut graphs = 0;
    while let Some((number, field)) = walk.wire.field(end)? {
        let next = field.range().end;
        match (number, field) {
            (GRAPH, Field::Bytes(range)) => {
                graphs += 1;
                walk.main_graph(&range)?;
            }
            (GRAPH, _) => {
                let what = "expected a graph, found a field that is not a message";
                return Err(Error::syntax(what).at(walk.wire.at()));
            }
            (number, field) => {
                *walk.beside.entry(of_model(number)).or_insert(0) += 1;
                if let (FUNCTION, Field::Bytes(range)) = (number, &field) {
                    walk.function(range)?;
                }
            }
        }
        walk.wire.skip_to(next)?;
    }
    if graphs == 0 {
        return Err(Error::syntax("expected an ONNX model with a graph, found no graph"));
    }
    named(walk)
}

/// Gives all tensors their names, and reports what is lost.
fn named<S: ReadAt + ?Sized>(mut walk: Walk<'_, S>) -> Result<Found> {
    let mut found = Found::default();
    let mut tensors = std::mem::take(&mut walk.tensors);
    // In most files, nodes come before initializers. Tensors of the main graph are sorted to the front, because they
    // keep their names. A tensor of an inner graph gets another name if its own is taken.
    tensors.sort_by_key(|tensor| (tensor.place.is_some(), Reverse(tensor.is_initializer)));
    for located in tensors {
        let mut tensor = located.tensor;
        if found.by_name.contains_key(&tensor.name)
            && let Some(place) = located.place
        {
            // Names are unique within a graph, but not between two branches, or two functions.
            tensor.name = walk.qualified(place, &tensor.name)?;
        }
        for what in &tensor.beside {
            found.losses.add(&tensor.name, *what);
        }
        if let Some(why) = tensor.refused() {
            found.losses.add_tensor(&tensor.name, format!("{why}; it is left out"));
        }
        if found.by_name.insert(tensor.name.clone(), found.tensors.len()).is_some() {
            let what = "there are two tensors of this name";
            return Err(Error::data(what).at(located.at).in_field(tensor.name));
        }
        found.tensors.push(tensor);
    }
    let times = |count| if count == 1 { String::new() } else { format!(" ({count})") };
    let what = format!("they are left out{}", times(walk.sparse));
    found.losses.add_tensors("sparse tensors", walk.sparse, what);
    let mut graph = Vec::new();
    for (name, count) in walk.beside {
        match name {
            UNKNOWN | UNKNOWN_OF_GRAPH | "training_info" => {
                found.losses.add(name, format!("it is left out{}", times(count)));
            }
            _ => graph.push(format!("{name}{}", times(count))),
        }
    }
    if !graph.is_empty() {
        let what = format!("only the tensors of a model are read, not {}", graph.join(", "));
        found.losses.note(what);
    }
    Ok(found)
}
