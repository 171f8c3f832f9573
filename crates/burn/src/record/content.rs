//! The content of burn's three records, in the form in which it is saved.
//!
//! The fields of burn's records are private. They can only be seen as a burnpack, which has named tensors, named
//! numbers, and texts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use burn_store::burn_pack::{
    Bytes, Error as PackError, Reader, Scalar, Tensor as PackTensor, Writer,
};
use serde::{Deserialize, Serialize};
use tenarc::{Error, Result, Tensor};

use super::held::Held;

/// The name of the number with which burn says how many dimensions a parameter has.
const RANK: &str = "__rank";

/// burn panics if a parameter has more dimensions.
const MOST_DIMENSIONS: u64 = 8;

/// A record in a form that serde saves.
pub trait Content: Sized {
    fn of_pack(pack: Reader) -> Result<Self>;
    fn into_pack(self) -> Result<Writer>;
}

pub fn of_bytes<C: Content>(bytes: Bytes) -> Result<C> {
    C::of_pack(Reader::from_bytes(bytes).map_err(|error| of_pack(&error))?)
}

pub fn into_bytes<C: Content>(content: C) -> Result<Bytes> {
    content.into_pack()?.into_bytes().map_err(|error| of_pack(&error))
}

fn of_pack(error: &PackError) -> Error {
    Error::data(error.to_string())
}

fn tensors(pack: Reader) -> Result<Vec<PackTensor>> {
    pack.into_tensors().map_err(|error| of_pack(&error))
}

/// The parameters of a module. The fields are those that `TenarcStore` writes.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Module")]
pub struct Module {
    ids: BTreeMap<String, u64>,
    tensors: BTreeMap<String, Tensor<Held>>,
}

impl Content for Module {
    fn of_pack(pack: Reader) -> Result<Self> {
        let mut module = Self { ids: BTreeMap::new(), tensors: BTreeMap::new() };
        for tensor in tensors(pack)? {
            let name = tensor.name.clone();
            module.ids.extend(tensor.param_id.map(|id| (name.clone(), id)));
            let held = Held::of_pack(tensor).map_err(|error| error.in_field(&name))?;
            module.tensors.insert(name, held.into());
        }
        Ok(module)
    }

    fn into_pack(self) -> Result<Writer> {
        let Self { ids, tensors } = self;
        let tensors = tensors.into_iter().map(|(name, Tensor(held))| {
            let id = ids.get(&name).copied();
            held.into_pack(name, id)
        });
        Ok(Writer::new(tensors.collect::<Result<_>>()?))
    }
}

/// The state of an optimizer, by the paths of the parameters in their module.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Optimizer")]
pub struct Optimizer(BTreeMap<String, Parameter>);

/// The key of a state that belongs to no parameter, as that of `LBFGS`.
const WHOLE: &str = "state";

/// The state of one parameter. Without an id, it is that of all parameters together.
#[derive(Default, Serialize, Deserialize)]
struct Parameter {
    id: Option<u64>,
    path: Option<String>,
    rank: Option<u64>,
    numbers: BTreeMap<String, Number>,
    tensors: BTreeMap<String, Tensor<Held>>,
}

impl Content for Optimizer {
    /// In the burnpack, the name of what belongs to a parameter begins with its id. The texts are the paths of the
    /// parameters by id.
    fn of_pack(pack: Reader) -> Result<Self> {
        let mut by_id = BTreeMap::new();
        for (name, scalar) in pack.scalars().clone() {
            let (parameter, name) = of_parameter(&mut by_id, &name);
            match (name, scalar) {
                (RANK, Scalar::UInt(rank)) => parameter.rank = Some(rank),
                _ => drop(parameter.numbers.insert(name.to_owned(), scalar.into())),
            }
        }
        let paths = pack.metadata().clone();
        for tensor in tensors(pack)? {
            let full = tensor.name.clone();
            let (parameter, name) = of_parameter(&mut by_id, &full);
            let held = Held::of_pack(tensor).map_err(|error| error.in_field(&full))?;
            parameter.tensors.insert(name.to_owned(), held.into());
        }
        let mut parameters = BTreeMap::new();
        for (id, mut parameter) in by_id {
            let id = id.map(|id| id.to_string());
            parameter.path = id.as_ref().and_then(|id| paths.get(id).cloned());
            // Two modules that one optimizer trains can have a path in common.
            let key = match (&parameter.path, id) {
                (Some(path), Some(id)) if parameters.contains_key(path) => format!("{path} {id}"),
                (Some(path), _) => path.clone(),
                (None, Some(id)) => id,
                (None, None) => WHOLE.to_owned(),
            };
            let Entry::Vacant(entry) = parameters.entry(key) else {
                let what = "two parameters of the optimizer have the same path or id";
                return Err(Error::data(what));
            };
            entry.insert(parameter);
        }
        Ok(Self(parameters))
    }

    fn into_pack(self) -> Result<Writer> {
        let (mut tensors, mut numbers, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        for (key, parameter) in self.0 {
            let Parameter { id, path, rank, numbers: own, tensors: held } = parameter;
            if let Some(rank @ MOST_DIMENSIONS..) = rank.and_then(|rank| rank.checked_sub(1)) {
                let what =
                    format!("expected at most {MOST_DIMENSIONS} dimensions, found {}", rank + 1);
                return Err(Error::data(what).in_field(&key));
            }
            if id.is_none() && key != WHOLE {
                let what = "expected the id of a parameter, found none";
                return Err(Error::data(what).in_field(&key));
            }
            let full = |name: &str| id.map_or_else(|| name.to_owned(), |id| format!("{id}.{name}"));
            numbers.extend(rank.map(|rank| (full(RANK), Scalar::UInt(rank))));
            numbers.extend(own.into_iter().map(|(name, it)| (full(&name), it.into())));
            paths.extend(id.zip(path).map(|(id, path)| (id.to_string(), path)));
            for (name, Tensor(held)) in held {
                tensors.push(held.into_pack(full(&name), id)?);
            }
        }
        let pack = with_numbers(Writer::new(tensors), numbers);
        Ok(paths.iter().fold(pack, |pack, (id, path)| pack.with_metadata(id, path)))
    }
}

/// Returns the parameter whose id starts the name, and the rest of the name. A name without an id belongs to the state of
/// all parameters.
fn of_parameter<'p, 'n>(
    by_id: &'p mut BTreeMap<Option<u64>, Parameter>,
    name: &'n str,
) -> (&'p mut Parameter, &'n str) {
    let parts = name.split_once('.').and_then(|(id, rest)| Some((id.parse().ok()?, rest)));
    let (id, rest) = parts.map_or((None, name), |(id, rest)| (Some(id), rest));
    let parameter = by_id.entry(id).or_insert_with(|| Parameter { id, ..Parameter::default() });
    (parameter, rest)
}

/// The state of a scheduler of the learning rate.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Scheduler")]
pub struct Scheduler(BTreeMap<String, Number>);

impl Content for Scheduler {
    fn of_pack(pack: Reader) -> Result<Self> {
        let numbers = pack.scalars().iter().map(|(name, scalar)| (name.clone(), (*scalar).into()));
        Ok(Self(numbers.collect()))
    }

    fn into_pack(self) -> Result<Writer> {
        let numbers = self.0.into_iter().map(|(name, number)| (name, number.into()));
        Ok(with_numbers(Writer::new(Vec::new()), numbers))
    }
}

fn with_numbers(pack: Writer, numbers: impl IntoIterator<Item = (String, Scalar)>) -> Writer {
    numbers.into_iter().fold(pack, |pack, (name, scalar)| pack.with_scalar(&name, scalar))
}

/// A number of a record. burn accepts signed and unsigned integers in place of each other, if they fit.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Bool(bool),
    UInt(u64),
    Int(i64),
    Float(f64),
}

impl From<Scalar> for Number {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(value) => Self::Bool(value),
            Scalar::UInt(value) => Self::UInt(value),
            Scalar::Int(value) => Self::Int(value),
            Scalar::Float(value) => Self::Float(value),
        }
    }
}

impl From<Number> for Scalar {
    fn from(number: Number) -> Self {
        match number {
            Number::Bool(value) => Self::Bool(value),
            Number::UInt(value) => Self::UInt(value),
            Number::Int(value) => Self::Int(value),
            Number::Float(value) => Self::Float(value),
        }
    }
}
