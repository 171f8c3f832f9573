//! Does the work of the functions that are known, and keeps all other calls as data.

use std::sync::Arc;

use tenarc::{DType, Error, Result};

use super::global::{Global, Meaning, Rebuild};
use super::machine::Machine;
use super::object::{At, Instance, Object, Rebuilt, Signs, Storage, Value};
use super::{numpy, parts};

/// The most dimensions that torch's tensors have.
const MAX_RANK: usize = 64;

/// The result of a call.
pub enum Made {
    /// A new object.
    New(Object),
    /// One of the arguments, or a number.
    Old(Value),
}

/// A tensor that cannot be read.
fn lost_tensor(what: impl Into<Arc<str>>) -> Made {
    Made::New(Object::lost_tensor(what))
}

/// A call that is kept as data.
fn instance(function: Value, arguments: Value, is_call: bool) -> Object {
    let instance = Instance { function, arguments, is_call, ..Instance::default() };
    Object::Instance(Box::new(instance))
}

/// Returns the values of a tuple of arguments.
pub fn tuple(machine: &Machine, value: Value) -> Result<&[Value]> {
    match machine.object(value) {
        Some(Object::Tuple(values)) => Ok(values),
        _ => Err(Error::syntax("expected a tuple of arguments, found something else")),
    }
}

/// Returns the result of a call with a tuple of arguments. If the function is not known, this is the call as data.
pub fn call(machine: &mut Machine, function: Value, arguments: Value) -> Result<Made> {
    let given = tuple(machine, arguments)?;
    let unknown = Made::New(instance(function, arguments, true));
    let global = match machine.object(function) {
        Some(Object::Global(global)) => global.clone(),
        Some(Object::Instance(_)) => return Ok(unknown),
        Some(Object::Lost(lost)) => return Ok(Made::New(Object::Lost(lost.clone()))),
        _ => return Err(Error::syntax("expected a function to call, found something else")),
    };
    let values = |value: Value| match machine.object(value) {
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
        (Meaning::Counter, &[counts])
            if matches!(machine.object(counts), Some(Object::Dict(_))) =>
        {
            Made::Old(counts)
        }
        (Meaning::DefaultDict, [] | [_]) => Made::New(instance(function, Value::None, false)),
        (Meaning::List, []) => {
            machine.has_sets = true;
            Made::New(Object::List(Vec::new()))
        }
        (Meaning::List, &[all]) if values(all).is_some() => {
            let all = values(all).unwrap_or_default().to_vec();
            machine.has_sets = true;
            Made::New(Object::List(all))
        }
        (Meaning::Argument, &[argument]) | (Meaning::Tagged, &[argument, _]) => Made::Old(argument),
        (Meaning::Bytes, []) => Made::New(Object::Bytes(Box::default())),
        (Meaning::Encode, &[text, _]) => encoded(machine, text)?,
        (Meaning::Reconstructor, &[class, _, Value::None]) => {
            Made::New(new(machine, class, Value::None)?)
        }
        (Meaning::Tensor(version), arguments) => tensor(machine, *version, arguments)?,
        (Meaning::Parameter, &[data, _, ref rest @ ..]) => {
            // The other arguments are hooks, and possibly a state.
            let attributes = !rest.iter().all(|&value| is_empty(machine, Some(value)));
            parameter(machine, data, attributes)?
        }
        (Meaning::Sparse, &[layout, parts]) => {
            parts::sparse(machine, layout, parts)?.map_or(unknown, Made::New)
        }
        (Meaning::Quantised, given) => {
            let given = given.to_vec();
            parts::quantised(machine, &given)?.map_or(unknown, Made::New)
        }
        (Meaning::NumpyBuffer, arguments) => {
            numpy::array_of_buffer(machine, arguments)?.map_or(unknown, Made::New)
        }
        (Meaning::NumpyScalar, &[dtype, data]) => {
            numpy::scalar(machine, dtype, data).unwrap_or(unknown)
        }
        (Meaning::FromType, &[function, _class, arguments, state]) => {
            from_type(machine, function, arguments, state)?.unwrap_or(unknown)
        }
        _ => unknown,
    })
}

/// Returns the result of `_rebuild_from_type`: the tensor that `function` makes, and notes on it whether `state` holds
/// attributes. `None` if the function is not known.
fn from_type(
    machine: &mut Machine,
    function: Value,
    arguments: Value,
    state: Value,
) -> Result<Option<Made>> {
    let flags = are_flags(machine, state);
    let attributes = !flags && !is_empty(machine, Some(state));
    let known = match machine.object(function) {
        Some(Object::Global(global)) => matches!(global.meaning, Meaning::Tensor(_)),
        _ => false,
    };
    let arguments = match machine.object(arguments) {
        Some(Object::Tuple(_)) if known => arguments,
        _ => return Ok(None),
    };
    let mut made = call(machine, function, arguments)?;
    if let Made::New(Object::Tensor(tensor)) = &mut made {
        tensor.attributes |= attributes;
        machine.has_flags |= flags;
    }
    Ok(Some(made))
}

/// Returns whether the attributes of a tensor are those that `torch.nn.Buffer` gives it. They say how a module saves the
/// tensor, and nothing about its elements.
fn are_flags(machine: &Machine, state: Value) -> bool {
    let Some(Object::Dict(dict)) = machine.object(state) else { return false };
    let is_flag = |(key, value): &(Value, Value)| {
        let name = machine.object(*key);
        matches!(name, Some(Object::Text(name)) if matches!(&**name, "persistent" | "_is_buffer"))
            && matches!(value, Value::Bool(_))
    };
    matches!(dict.entries.len(), 1 | 2) && dict.entries.iter().all(is_flag)
}

/// Returns a new object of a class, as `cls.__new__` makes it.
pub fn new(machine: &Machine, class: Value, arguments: Value) -> Result<Object> {
    match machine.object(class) {
        Some(Object::Global(Global { meaning: Meaning::OrderedDict, .. })) => {
            Ok(Object::default_dict())
        }
        Some(Object::Global(_) | Object::Instance(_)) => Ok(instance(class, arguments, false)),
        Some(Object::Lost(lost)) => Ok(Object::Lost(lost.clone())),
        _ => Err(Error::syntax("expected a class, found something else")),
    }
}

/// Like [`new`], with keyword arguments. If there are any, their dict becomes the last argument.
pub fn new_with(
    machine: &mut Machine,
    class: Value,
    arguments: Value,
    named: Value,
) -> Result<Object> {
    if is_empty(machine, Some(named)) {
        return new(machine, class, arguments);
    }
    let mut all = tuple(machine, arguments)?.to_vec();
    all.push(named);
    let arguments = machine.add(Object::Tuple(all.into()))?;
    new(machine, class, arguments)
}

/// Gives an object its state, as the opcode `BUILD` does.
pub fn state(machine: &mut Machine, target: Value, given: Value) -> Result<()> {
    if let Some(Object::Instance(instance)) = machine.object(target)
        && let Some(array) = numpy::array_of_state(machine, instance, given)?
        && let Some(place) = machine.object_mut(target)
    {
        *place = array;
        return Ok(());
    }
    let mut metadata = None;
    let mut attributes = true;
    let entries = match machine.object(given) {
        Some(Object::Dict(dict)) => dict.entries.len(),
        _ => 0,
    };
    // Many objects may be given the same state, so walking it counts as work of the pickle.
    machine.charge(entries);
    if let Some(Object::Dict(dict)) = machine.object(given) {
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
pub fn of_id(machine: &Machine, id: Value) -> Result<Made> {
    let malformed = || Error::data("expected the id of a storage, as torch writes it");
    let (tag, rest) = tuple(machine, id)?.split_first().ok_or_else(malformed)?;
    let (kind, key, count, view) = match (machine.object(*tag), rest) {
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
    let (Some(Object::Text(key)), Some(count)) = (machine.object(key), unsigned(count)) else {
        return Err(malformed());
    };
    let view = match view {
        Value::None => (0, count),
        view => match *tuple(machine, view)? {
            [_key, start, len] => unsigned(start).zip(unsigned(len)).ok_or_else(malformed)?,
            _ => return Err(malformed()),
        },
    };
    let Some(Object::Global(global)) = machine.object(kind) else { return Err(malformed()) };
    Ok(Made::New(match &global.meaning {
        Meaning::Storage(elements) => {
            let at = At::Member(format!("{}{key}", machine.folder).into());
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

/// Returns the tensor of a parameter, and notes on it whether the parameter has attributes.
fn parameter(machine: &mut Machine, data: Value, attributes: bool) -> Result<Made> {
    match machine.object_mut(data) {
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

/// Whether a value is missing, is `None`, or is an empty dict.
fn is_empty(machine: &Machine, value: Option<Value>) -> bool {
    match value.map(|value| (value, machine.object(value))) {
        None | Some((Value::None, _)) => true,
        Some((_, Some(Object::Dict(dict)))) => dict.entries.is_empty(),
        _ => false,
    }
}

/// Returns the tensor that `_rebuild_tensor` makes, or a later version of this function.
pub fn tensor(machine: &Machine, version: Rebuild, arguments: &[Value]) -> Result<Made> {
    let few = || Error::data("expected storage, offset, size and stride of a tensor");
    let (&[storage, offset, shape, strides], rest) =
        arguments.split_first_chunk::<4>().ok_or_else(few)?;
    let storage = match machine.object(storage) {
        Some(Object::Storage(storage)) => storage.clone(),
        // The type of the storage is not known.
        Some(Object::Lost(lost)) => return Ok(lost_tensor(format!("a tensor in {}", lost.what))),
        _ => return Err(Error::data("expected the storage of a tensor, found something else")),
    };
    let dtype = match (version, &storage.elements) {
        (Rebuild::V1 | Rebuild::V2, kind) => kind.dtype().clone(),
        (Rebuild::V3, _) => match rest.get(2).and_then(|dtype| machine.object(*dtype)) {
            Some(Object::Global(Global { meaning: Meaning::DType(dtype), .. })) => dtype.clone(),
            Some(Object::Global(global)) => {
                return Ok(lost_tensor(format!("a tensor of dtype {}", global.shown())));
            }
            _ => return Err(Error::data("expected the dtype of a tensor, found something else")),
        },
    };
    let lazy = rest.get(if version == Rebuild::V3 { 3 } else { 2 }).copied();
    let Some(signs) = signs(machine, lazy, &dtype) else {
        return Ok(lost_tensor("a tensor with properties that are not known"));
    };
    let hooks = rest.get(1).copied();
    let Value::Int(offset) = offset else { return Err(few()) };
    let offset =
        u64::try_from(offset).map_err(|_| Error::data("the offset of a tensor is negative"))?;
    let rebuilt = Rebuilt {
        offset: offset.saturating_add(storage.view.0),
        storage,
        dtype,
        shape: sizes(machine, shape)?,
        strides: sizes(machine, strides)?,
        attributes: !is_empty(machine, hooks),
        swapped: false,
        signs,
    };
    Ok(Made::New(Object::Tensor(Box::new(rebuilt))))
}

/// Returns the signs that differ from those in the storage, from torch's notes about the tensor: it may be conjugated
/// or negated when it is used. `None` if a note is not known.
fn signs(machine: &Machine, notes: Option<Value>, dtype: &DType) -> Option<Signs> {
    let mut signs = Signs::default();
    if is_empty(machine, notes) {
        return Some(signs);
    }
    let Some(Object::Dict(notes)) = notes.and_then(|notes| machine.object(notes)) else {
        return None;
    };
    let is_complex = matches!(dtype, DType::C64 | DType::C128);
    let is_real = matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    for (key, value) in &notes.entries {
        let (Some(Object::Text(key)), Value::Bool(is_set)) = (machine.object(*key), *value) else {
            return None;
        };
        match &**key {
            "conj" if is_complex => signs.imaginary ^= is_set,
            "neg" if is_complex || is_real => {
                signs.real ^= is_set;
                signs.imaginary ^= is_set;
            }
            _ => return None,
        }
    }
    Some(signs)
}

/// Returns the numbers of a shape or of strides.
pub fn sizes(machine: &Machine, value: Value) -> Result<Vec<u64>> {
    let wrong = || Error::data("expected sizes or strides of a tensor that are not negative");
    let values = match machine.object(value) {
        Some(Object::Tuple(values)) => &values[..],
        Some(Object::List(values)) => values,
        _ => return Err(wrong()),
    };
    if values.len() > MAX_RANK {
        let found = values.len();
        let what = format!("a tensor has {found} dimensions, {MAX_RANK} are allowed");
        return Err(Error::limit(what));
    }
    let size = |value: &Value| match value {
        Value::Int(size) => u64::try_from(*size).map_err(|_| wrong()),
        _ => Err(wrong()),
    };
    values.iter().map(size).collect()
}
