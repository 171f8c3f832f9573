//! Does the work of the functions that are known, and keeps all other calls as data.

use std::sync::Arc;

use tenarc::{Error, Result};

use super::global::{Global, Meaning};
use super::heap::{Heap, Made, is_empty, tuple};
use super::object::{Instance, Object, Value};
use super::storage::{At, Storage};
use super::tensor::tensor;
use super::{numpy, parts};

/// A call that is kept as data.
fn instance(function: Value, arguments: Value, is_call: bool) -> Object {
    let instance = Instance { function, arguments, is_call, ..Instance::default() };
    Object::Instance(Box::new(instance))
}

/// Returns the result of a call with a tuple of arguments. If the function is not known, this is the call as data.
pub fn call(heap: &mut Heap, function: Value, arguments: Value) -> Result<Made> {
    let given = tuple(heap, arguments)?;
    let unknown = Made::New(instance(function, arguments, true));
    let global = match heap.object(function) {
        Some(Object::Global(global)) => global.clone(),
        Some(Object::Instance(_)) => return Ok(unknown),
        Some(Object::Lost(lost)) => return Ok(Made::New(Object::Lost(lost.clone()))),
        _ => return Err(Error::syntax("expected a function to call, found something else")),
    };
    let values = |value: Value| match heap.object(value) {
        Some(Object::List(values)) => Some(&values[..]),
        Some(Object::Tuple(values)) => Some(&values[..]),
        _ => None,
    };
    Ok(match (&global.meaning, given) {
        (Meaning::OrderedDict | Meaning::Counter, []) => Made::New(Object::default_dict()),
        (Meaning::OrderedDict, &[pairs]) => {
            // Python 2 writes the entries as an argument: a list of pairs.
            let pair = |&pair: &Value| <[Value; 2]>::try_from(values(pair)?).ok();
            let pairs: Option<Vec<_>> =
                values(pairs).and_then(|all| all.iter().map(pair).collect());
            let entries =
                pairs.map(|all| all.into_iter().map(|[key, value]| (key, value)).collect());
            entries.map_or(unknown, |entries| Made::New(Object::of_entries(entries)))
        }
        (Meaning::Counter, &[counts]) if matches!(heap.object(counts), Some(Object::Dict(_))) => {
            Made::Old(counts)
        }
        (Meaning::DefaultDict, [] | [_]) => Made::New(instance(function, Value::None, false)),
        (Meaning::List, []) => {
            heap.has_sets = true;
            Made::New(Object::List(Vec::new()))
        }
        (Meaning::List, &[all]) if values(all).is_some() => {
            let all = values(all).unwrap_or_default().to_vec();
            heap.has_sets = true;
            Made::New(Object::List(all))
        }
        (Meaning::Argument, &[argument]) | (Meaning::Tagged, &[argument, _]) => Made::Old(argument),
        (Meaning::Bytes, []) => Made::New(Object::Bytes(Box::default())),
        (Meaning::Encode, &[text, _]) => encoded(heap, text)?,
        (Meaning::Reconstructor, &[class, _, Value::None]) => {
            Made::New(new(heap, class, Value::None)?)
        }
        (Meaning::Tensor(version), arguments) => tensor(heap, *version, arguments)?,
        (Meaning::Parameter, &[data, _, ref rest @ ..]) => {
            // The other arguments are hooks, and possibly a state.
            let attributes = !rest.iter().all(|&value| is_empty(heap, Some(value)));
            parameter(heap, data, attributes)?
        }
        (Meaning::Sparse, &[layout, parts]) => {
            parts::sparse(heap, layout, parts)?.map_or(unknown, Made::New)
        }
        (Meaning::Quantised, given) => {
            let given = given.to_vec();
            parts::quantised(heap, &given)?.map_or(unknown, Made::New)
        }
        (Meaning::NumpyBuffer, arguments) => {
            numpy::array_of_buffer(heap, arguments)?.map_or(unknown, Made::New)
        }
        (Meaning::NumpyScalar, &[dtype, data]) => {
            numpy::scalar(heap, dtype, data).unwrap_or(unknown)
        }
        (Meaning::FromType, &[function, _class, arguments, state]) => {
            from_type(heap, function, arguments, state)?.unwrap_or(unknown)
        }
        _ => unknown,
    })
}

/// Returns the result of `_rebuild_from_type`: the tensor that `function` makes, and notes on it whether `state` holds
/// attributes. `None` if the function is not known.
fn from_type(
    heap: &mut Heap,
    function: Value,
    arguments: Value,
    state: Value,
) -> Result<Option<Made>> {
    let flags = are_flags(heap, state);
    let attributes = !flags && !is_empty(heap, Some(state));
    let known = match heap.object(function) {
        Some(Object::Global(global)) => matches!(global.meaning, Meaning::Tensor(_)),
        _ => false,
    };
    let arguments = match heap.object(arguments) {
        Some(Object::Tuple(_)) if known => arguments,
        _ => return Ok(None),
    };
    let mut made = call(heap, function, arguments)?;
    if let Made::New(Object::Tensor(tensor)) = &mut made {
        tensor.attributes |= attributes;
        heap.has_flags |= flags;
    }
    Ok(Some(made))
}

/// Returns whether the attributes of a tensor are those that `torch.nn.Buffer` gives it. They say how a module saves the
/// tensor, and nothing about its elements.
fn are_flags(heap: &Heap, state: Value) -> bool {
    let Some(Object::Dict(dict)) = heap.object(state) else { return false };
    let is_flag = |(key, value): &(Value, Value)| {
        let name = heap.object(*key);
        matches!(name, Some(Object::Text(name)) if matches!(&**name, "persistent" | "_is_buffer"))
            && matches!(value, Value::Bool(_))
    };
    matches!(dict.entries.len(), 1 | 2) && dict.entries.iter().all(is_flag)
}

/// Returns a new object of a class, as `cls.__new__` makes it.
pub fn new(heap: &Heap, class: Value, arguments: Value) -> Result<Object> {
    match heap.object(class) {
        Some(Object::Global(Global { meaning: Meaning::OrderedDict, .. })) => {
            Ok(Object::default_dict())
        }
        Some(Object::Global(_) | Object::Instance(_)) => Ok(instance(class, arguments, false)),
        Some(Object::Lost(lost)) => Ok(Object::Lost(lost.clone())),
        _ => Err(Error::syntax("expected a class, found something else")),
    }
}

/// Like [`new`], with keyword arguments. If there are any, their dict becomes the last argument.
pub fn new_with(heap: &mut Heap, class: Value, arguments: Value, named: Value) -> Result<Object> {
    if is_empty(heap, Some(named)) {
        return new(heap, class, arguments);
    }
    let mut all = tuple(heap, arguments)?.to_vec();
    all.push(named);
    let arguments = heap.add(Object::Tuple(all.into()))?;
    new(heap, class, arguments)
}

/// Gives an object its state, as the opcode `BUILD` does.
pub fn state(heap: &mut Heap, target: Value, given: Value) -> Result<()> {
    if let Some(Object::Instance(instance)) = heap.object(target)
        && let Some(array) = numpy::array_of_state(heap, instance, given)?
        && let Some(place) = heap.object_mut(target)
    {
        *place = array;
        return Ok(());
    }
    let mut metadata = None;
    let mut attributes = true;
    let entries = match heap.object(given) {
        Some(Object::Dict(dict)) => dict.entries.len(),
        _ => 0,
    };
    // Many objects may be given the same state, so walking it counts as work of the pickle.
    heap.charge(entries);
    if let Some(Object::Dict(dict)) = heap.object(given) {
        let entries = &dict.entries;
        let is_metadata =
            |key| matches!(heap.object(key), Some(Object::Text(name)) if &**name == "_metadata");
        metadata = entries.iter().find(|(key, _)| is_metadata(*key)).map(|(_, value)| *value);
        attributes = entries.iter().any(|(key, _)| !is_metadata(*key));
    }
    match heap.object_mut(target) {
        Some(Object::Dict(dict)) => {
            dict.metadata = metadata.or(dict.metadata);
            dict.attributes |= attributes;
        }
        Some(Object::Tensor(tensor)) => tensor.attributes = true,
        Some(Object::Instance(instance)) if instance.state.is_none() => {
            instance.state = Some(given);
        }
        Some(Object::Lost(_)) => {}
        _ => {
            let what = "expected an object that can have attributes, found something else";
            return Err(Error::syntax(what));
        }
    }
    Ok(())
}

/// Returns the object with a persistent id. torch gives ids to storages: type, key, device and size of the storage.
/// Before torch 1.6, an id may also say which part of the storage is used. These versions also gave ids to classes of
/// modules, with their source code; the source code is left out.
pub fn of_id(heap: &Heap, id: Value) -> Result<Made> {
    let malformed = || Error::data("expected the id of a storage, as torch writes it");
    let (tag, rest) = tuple(heap, id)?.split_first().ok_or_else(malformed)?;
    let (kind, key, count, view) = match (heap.object(*tag), rest) {
        (Some(Object::Text(tag)), &[class, ..]) if &**tag == "module" => {
            return Ok(Made::Old(class));
        }
        (Some(Object::Text(tag)), &[kind, key, _device, count]) if &**tag == "storage" => {
            (kind, key, count, Value::None)
        }
        (Some(Object::Text(tag)), &[kind, key, _device, count, view]) if &**tag == "storage" => {
            (kind, key, count, view)
        }
        _ => return Err(malformed()),
    };
    let (Some(Object::Text(key)), Some(count)) = (heap.object(key), unsigned(count)) else {
        return Err(malformed());
    };
    let view = match view {
        Value::None => (0, count),
        view => match *tuple(heap, view)? {
            [_key, start, len] => unsigned(start).zip(unsigned(len)).ok_or_else(malformed)?,
            _ => return Err(malformed()),
        },
    };
    let Some(Object::Global(global)) = heap.object(kind) else { return Err(malformed()) };
    Ok(Made::New(match &global.meaning {
        Meaning::Storage(elements) => {
            let at = At::Member(format!("{}{key}", heap.folder).into());
            let elements = elements.clone();
            Object::Storage(Arc::new(Storage { at, elements, count, view }))
        }
        _ => Object::lost_tensor(format!("a storage of type {}", global.shown())),
    }))
}

fn unsigned(value: Value) -> Option<u64> {
    match value {
        Value::Int(number) => number.try_into().ok(),
        _ => None,
    }
}

/// Returns the bytes of a text. Old protocols write bytes as a text with a character up to 255 for each.
fn encoded(heap: &Heap, text: Value) -> Result<Made> {
    let Some(Object::Text(text)) = heap.object(text) else {
        return Err(Error::syntax("expected a text to encode as bytes"));
    };
    if text.is_ascii() {
        return Ok(Made::New(Object::Bytes(text.as_bytes().into())));
    }
    let bytes: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(char).ok()).collect();
    let bytes = bytes.ok_or_else(|| Error::syntax("expected a text of characters up to 255"))?;
    Ok(Made::New(Object::Bytes(bytes.into())))
}

/// Returns the tensor of a parameter, and notes on it whether the parameter has attributes.
fn parameter(heap: &mut Heap, data: Value, attributes: bool) -> Result<Made> {
    match heap.object_mut(data) {
        Some(Object::Tensor(tensor)) => {
            tensor.attributes |= attributes;
            Ok(Made::Old(data))
        }
        // The map of a sparse or quantised tensor.
        Some(Object::Dict(dict)) => {
            dict.attributes |= attributes;
            Ok(Made::Old(data))
        }
        Some(Object::Instance(_) | Object::Lost(_)) => Ok(Made::Old(data)),
        _ => Err(Error::data("expected the tensor of a parameter, found something else")),
    }
}
