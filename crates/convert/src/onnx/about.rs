//! What a model says about itself: its inputs and outputs, its operators, and the program that wrote it.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result, Value};

use super::tensor::type_name;
use super::wire::{Field, Wire};

/// Describes a model: see [`TensorFile::about`](crate::TensorFile::about).
///
/// # Errors
/// If reading fails, a message is damaged, or a limit is exceeded.
pub fn of<S: ReadAt + ?Sized>(source: &S, limits: Limits) -> Result<Value> {
    let end = source.size().map_err(Error::io)?;
    let mut model = Reader { wire: Wire::new(source, limits)? };
    let mut graph = Graph::default();
    let (mut name, mut version, mut ir_version) = (String::new(), String::new(), Value::Null);
    let mut opsets = BTreeMap::new();
    model.each(0..end, |model, field| {
        match field {
            (1, Field::Varint(number, _)) => ir_version = number.into(),
            (2, Field::Bytes(range)) => name = model.text(&range)?,
            (3, Field::Bytes(range)) => version = model.text(&range)?,
            (7, Field::Bytes(range)) => model.graph(range, &mut graph)?,
            (8, Field::Bytes(range)) => {
                let (domain, version) = model.opset(range)?;
                opsets.insert(domain, version);
            }
            _ => {}
        }
        Ok(())
    })?;
    let Graph { mut inputs, outputs, nodes, initializers } = graph;
    // Old models list their initializers as inputs too.
    inputs.retain(|(name, _)| !initializers.contains(name));
    let described = |values: Vec<(String, Value)>| -> Value {
        values.into_iter().map(|(_, described)| described).collect()
    };
    let producer = format!("{name} {version}");
    Ok([
        ("producer", Value::from(producer.trim())),
        ("ir_version", ir_version),
        ("opsets", opsets.into_iter().collect()),
        ("inputs", described(inputs)),
        ("outputs", described(outputs)),
        ("nodes", nodes.into_iter().collect()),
    ]
    .into_iter()
    .collect())
}

/// What is described of the graph of a model. Inputs and outputs have their names.
#[derive(Default)]
struct Graph {
    inputs: Vec<(String, Value)>,
    outputs: Vec<(String, Value)>,
    /// The number of nodes, by operator.
    nodes: BTreeMap<String, u64>,
    initializers: HashSet<String>,
}

struct Reader<'a, S: ?Sized> {
    wire: Wire<'a, S>,
}

impl<S: ReadAt + ?Sized> Reader<'_, S> {
    /// Calls `each` with all fields of a message. What it does not read is passed over.
    fn each(
        &mut self,
        message: Range<u64>,
        mut each: impl FnMut(&mut Self, (u64, Field)) -> Result<()>,
    ) -> Result<()> {
        self.wire.skip_to(message.start)?;
        while let Some(field) = self.wire.field(message.end)? {
            let next = field.1.range().end;
            each(self, field)?;
            self.wire.skip_to(next)?;
        }
        Ok(())
    }

    /// Reads a text that is only shown, so it need not be UTF-8.
    fn text(&mut self, range: &Range<u64>) -> Result<String> {
        // For its place in a list.
        self.wire.charge(size_of::<(String, Value)>())?;
        Ok(String::from_utf8_lossy(&self.wire.bytes(range)?).into_owned())
    }

    /// Returns the domain of a set of operators, and its version.
    fn opset(&mut self, message: Range<u64>) -> Result<(String, Value)> {
        let (mut domain, mut version) = (String::new(), Value::Null);
        self.each(message, |reader, field| {
            match field {
                (1, Field::Bytes(range)) => domain = reader.text(&range)?,
                (2, Field::Varint(number, _)) => version = number.into(),
                _ => {}
            }
            Ok(())
        })?;
        Ok((if domain.is_empty() { "ai.onnx".to_owned() } else { domain }, version))
    }

    fn graph(&mut self, message: Range<u64>, graph: &mut Graph) -> Result<()> {
        self.each(message, |reader, field| {
            match field {
                (1, Field::Bytes(range)) => {
                    let operator = reader.operator(range)?;
                    *graph.nodes.entry(operator).or_insert(0) += 1;
                }
                (5, Field::Bytes(range)) => {
                    let name = reader.text_of(range, 8)?;
                    graph.initializers.insert(name);
                }
                (11, Field::Bytes(range)) => graph.inputs.push(reader.described(range)?),
                (12, Field::Bytes(range)) => graph.outputs.push(reader.described(range)?),
                _ => {}
            }
            Ok(())
        })
    }

    /// Returns the text in a field of a message, which is empty if the message has no such field.
    fn text_of(&mut self, message: Range<u64>, number: u64) -> Result<String> {
        let mut text = String::new();
        self.each(message, |reader, field| {
            match field {
                (found, Field::Bytes(range)) if found == number => text = reader.text(&range)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(text)
    }

    /// Returns the operator of a node, after its domain if that is not the one of ONNX.
    fn operator(&mut self, node: Range<u64>) -> Result<String> {
        let (mut operator, mut domain) = (String::new(), String::new());
        self.each(node, |reader, field| {
            match field {
                (4, Field::Bytes(range)) => operator = reader.text(&range)?,
                (7, Field::Bytes(range)) => domain = reader.text(&range)?,
                _ => {}
            }
            Ok(())
        })?;
        let is_own = matches!(&*domain, "" | "ai.onnx");
        Ok(if is_own { operator } else { format!("{domain}.{operator}") })
    }

    /// Returns the name of an input or output (`ValueInfoProto`), and its description.
    fn described(&mut self, message: Range<u64>) -> Result<(String, Value)> {
        let (mut name, mut kind, mut shape) = (String::new(), "unknown".to_owned(), Value::Null);
        self.each(message, |reader, field| {
            match field {
                (1, Field::Bytes(range)) => name = reader.text(&range)?,
                (2, Field::Bytes(range)) => (kind, shape) = reader.type_of(range)?,
                _ => {}
            }
            Ok(())
        })?;
        let pairs = [("name", Value::from(&*name)), ("dtype", kind.into()), ("shape", shape)];
        Ok((name, pairs.into_iter().collect()))
    }

    /// Returns the dtype and the shape of a tensor, or the kind of another type (`TypeProto`). The shape is null if its
    /// number of dimensions is unknown.
    fn type_of(&mut self, message: Range<u64>) -> Result<(String, Value)> {
        let mut found = ("unknown".to_owned(), Value::Null);
        self.each(message, |reader, field| {
            match field {
                (1, Field::Bytes(range)) => found = reader.tensor(range)?,
                (8, Field::Bytes(range)) => {
                    found = reader.tensor(range)?;
                    found.0.insert_str(0, "sparse ");
                }
                (4, _) => found = ("sequence".to_owned(), Value::Null),
                (5, _) => found = ("map".to_owned(), Value::Null),
                (9, _) => found = ("optional".to_owned(), Value::Null),
                _ => {}
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn tensor(&mut self, message: Range<u64>) -> Result<(String, Value)> {
        let (mut dtype, mut shape) = ("unknown".to_owned(), Value::Null);
        self.each(message, |reader, field| {
            match field {
                (1, Field::Varint(number, _)) => dtype = type_name(number),
                (2, Field::Bytes(range)) => shape = Value::Array(reader.shape(range)?),
                _ => {}
            }
            Ok(())
        })?;
        Ok((dtype, shape))
    }

    /// Returns the dimensions: numbers, names of symbolic ones, or null for unknown ones.
    fn shape(&mut self, message: Range<u64>) -> Result<Vec<Value>> {
        let mut dims = Vec::new();
        self.each(message, |reader, field| {
            let (1, Field::Bytes(range)) = field else { return Ok(()) };
            reader.wire.charge(2 * size_of::<Value>())?;
            let mut dim = Value::Null;
            reader.each(range, |reader, field| {
                match field {
                    (1, Field::Varint(number, _)) => dim = number.cast_signed().into(),
                    (2, Field::Bytes(range)) => {
                        dim = Some(reader.text(&range)?).filter(|name| !name.is_empty()).into();
                    }
                    _ => {}
                }
                Ok(())
            })?;
            dims.push(dim);
            Ok(())
        })?;
        Ok(dims)
    }
}
