//! What calls make: done here, by what is known of the functions.

use std::sync::Arc;

use tenarc::{DType, Error, Result};

use super::global::{Global, Rebuild};
use super::machine::Machine;
use super::object::{Kind, Object, Rebuilt, Storage, Value};

/// The most dimensions that torch's tensors have.
const MAX_RANK: usize = 64;

/// What a call gives.
pub enum Made {
    New(Object),
    /// One of its arguments.
    Old(Value),
}

/// Something of which only this is known.
fn other(what: impl Into<Arc<str>>) -> Made {
    Made::New(Object::Other(what.into()))
}

/// What an unknown function or class would make.
fn unknown(global: &Global) -> Made {
    other(format!("an object that {} would make", global.shown()))
}

fn tuple(machine: &Machine, value: Value) -> Result<&[Value]> {
    match machine.object(value) {
        Some(Object::Tuple(values)) => Ok(values),
        _ => Err(Error::syntax("expected a tuple of arguments, found something else")),
    }
}

/// Calls a function with a tuple of arguments.
pub fn call(machine: &mut Machine, function: Value, arguments: Value) -> Result<Made> {
    let global = match machine.object(function) {
        Some(Object::Global(global)) => global.clone(),
        Some(Object::Other(what)) => return Ok(other(what.clone())),
        _ => return Err(Error::syntax("expected a function to call, found something else")),
    };
    let arguments = tuple(machine, arguments)?;
    Ok(match (&global, arguments) {
        (Global::OrderedDict, []) => Made::New(Object::Dict(Box::default())),
        (Global::Size, &[sizes]) if matches!(machine.object(sizes), Some(Object::Tuple(_))) => {
            Made::Old(sizes)
        }
        (Global::Bytes, []) => Made::New(Object::Bytes(Box::default())),
        (Global::Encode, &[text, _]) => encoded(machine, text)?,
        (Global::Tensor(version), arguments) => tensor(machine, *version, arguments)?,
        (Global::Parameter, &[data, _, ref rest @ ..]) => {
            // Hooks, and a state, if there are any.
            let attributes = !rest.iter().all(|&value| is_empty(machine, Some(value)));
            parameter(machine, data, attributes)?
        }
        _ => unknown(&global),
    })
}

/// An object of a class, without a call of it.
pub fn new(machine: &Machine, class: Value, arguments: Option<Value>) -> Result<Made> {
    match machine.object(class) {
        Some(Object::Global(Global::OrderedDict)) if arguments.is_some() => {
            Ok(Made::New(Object::Dict(Box::default())))
        }
        Some(Object::Global(global)) => Ok(unknown(global)),
        Some(Object::Other(what)) => Ok(other(what.clone())),
        _ => Err(Error::syntax("expected a class, found something else")),
    }
}

/// Gives attributes to what was made.
pub fn state(machine: &mut Machine, target: Value, state: Value) -> Result<()> {
    let mut metadata = None;
    let mut attributes = true;
    if let Some(Object::Dict(dict)) = machine.object(state) {
        let entries = &dict.entries;
        let is_metadata =
            |key| matches!(machine.object(key), Some(Object::Text(name)) if &**name == "_metadata");
        metadata = entries.iter().find(|(key, _)| is_metadata(*key)).map(|(_, value)| *value);
        attributes = entries.iter().any(|(key, _)| !is_metadata(*key));
    }
    match machine.object_mut(target) {
        Some(Object::Dict(dict)) => {
            dict.metadata = metadata.or(dict.metadata);
            dict.attributes |= attributes;
        }
        Some(Object::Tensor(tensor)) => tensor.attributes = true,
        Some(Object::Other(_)) => {}
        _ => return Err(Error::syntax("attributes for what has none")),
    }
    Ok(())
}

/// A storage, as what torch writes in its place: that it is one, its type, key, device and size.
pub fn storage(machine: &Machine, id: Value) -> Result<Object> {
    let malformed = || Error::data("expected the id of a storage, as torch writes it");
    let &[tag, kind, key, _device, count] = tuple(machine, id)? else { return Err(malformed()) };
    let is_storage = matches!(machine.object(tag), Some(Object::Text(tag)) if &**tag == "storage");
    let (Some(Object::Text(key)), Value::Int(count)) = (machine.object(key), count) else {
        return Err(malformed());
    };
    let count = u64::try_from(count).map_err(|_| malformed())?;
    match machine.object(kind) {
        Some(Object::Global(Global::Storage(elements))) if is_storage => {
            let (key, elements) = (key.clone(), elements.clone());
            Ok(Object::Storage(Arc::new(Storage { key, elements, count })))
        }
        Some(Object::Global(Global::Unknown(name))) if is_storage => {
            Ok(Object::Other(format!("a storage of type `{}`", name.escape_debug()).into()))
        }
        _ => Err(malformed()),
    }
}

/// Bytes, which old protocols write as a text of characters up to 255.
fn encoded(machine: &Machine, text: Value) -> Result<Made> {
    let Some(Object::Text(text)) = machine.object(text) else {
        return Err(Error::syntax("expected a text to encode as bytes"));
    };
    if text.is_ascii() {
        return Ok(Made::New(Object::Bytes(text.as_bytes().into())));
    }
    let bytes: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(char).ok()).collect();
    let bytes = bytes.ok_or_else(|| Error::syntax("expected a text of characters up to 255"))?;
    Ok(Made::New(Object::Bytes(bytes.into())))
}

/// The tensor that a parameter is.
fn parameter(machine: &mut Machine, data: Value, attributes: bool) -> Result<Made> {
    match machine.object_mut(data) {
        Some(Object::Tensor(tensor)) => {
            tensor.attributes |= attributes;
            Ok(Made::Old(data))
        }
        Some(Object::Other(_)) => Ok(Made::Old(data)),
        _ => Err(Error::data("expected the tensor of a parameter, found something else")),
    }
}

/// Whether there is nothing, `None`, or a dict without entries.
fn is_empty(machine: &Machine, value: Option<Value>) -> bool {
    match value.map(|value| (value, machine.object(value))) {
        None | Some((Value::None, _)) => true,
        Some((_, Some(Object::Dict(dict)))) => dict.entries.is_empty(),
        _ => false,
    }
}

fn tensor(machine: &Machine, version: Rebuild, arguments: &[Value]) -> Result<Made> {
    let few = || Error::data("expected storage, offset, size and stride of a tensor");
    let (&[storage, offset, shape, strides], rest) =
        arguments.split_first_chunk::<4>().ok_or_else(few)?;
    let storage = match machine.object(storage) {
        Some(Object::Storage(storage)) => storage.clone(),
        // Of a type that is none here.
        Some(Object::Other(what)) => return Ok(other(format!("a tensor in {what}"))),
        _ => return Err(Error::data("expected the storage of a tensor, found something else")),
    };
    let dtype = match (version, &storage.elements) {
        (Rebuild::V1 | Rebuild::V2, Kind::Typed(dtype)) => dtype.clone(),
        (Rebuild::V1 | Rebuild::V2, Kind::Untyped) => DType::U8,
        (Rebuild::V3, _) => match rest.get(2).and_then(|dtype| machine.object(*dtype)) {
            Some(Object::Global(Global::DType(dtype))) => dtype.clone(),
            Some(Object::Global(global)) => {
                return Ok(other(format!("a tensor of dtype {}", global.shown())));
            }
            _ => return Err(Error::data("expected the dtype of a tensor, found something else")),
        },
    };
    let lazy = rest.get(if version == Rebuild::V3 { 3 } else { 2 }).copied();
    if !is_empty(machine, lazy) {
        return Ok(other(
            "a tensor that is conjugated or negated as it is used; save its resolve_conj() or \
             resolve_neg()",
        ));
    }
    let hooks = rest.get(1).copied();
    let Value::Int(offset) = offset else { return Err(few()) };
    let rebuilt = Rebuilt {
        storage,
        dtype,
        offset: u64::try_from(offset)
            .map_err(|_| Error::data("the offset of a tensor is negative"))?,
        shape: sizes(machine, shape)?,
        strides: sizes(machine, strides)?,
        attributes: !is_empty(machine, hooks),
    };
    Ok(Made::New(Object::Tensor(Box::new(rebuilt))))
}

fn sizes(machine: &Machine, value: Value) -> Result<Vec<u64>> {
    let wrong = || Error::data("expected the sizes or strides of a tensor, none of them negative");
    let values = match machine.object(value) {
        Some(Object::Tuple(values)) => &values[..],
        Some(Object::List(values)) => values,
        _ => return Err(wrong()),
    };
    if values.len() > MAX_RANK {
        let found = values.len();
        return Err(Error::limit(format!(
            "{found} dimensions of a tensor, {MAX_RANK} are allowed"
        )));
    }
    let size = |value: &Value| match value {
        Value::Int(size) => u64::try_from(*size).map_err(|_| wrong()),
        _ => Err(wrong()),
    };
    values.iter().map(size).collect()
}
