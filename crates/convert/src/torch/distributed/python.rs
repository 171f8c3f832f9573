//! Reads the objects of Python in the pickle of the metadata.

use tenarc::{Error, Result};

use super::nesting::Step;
use crate::nested::MAX_STEPS;
use crate::torch::pickle::{self, Heap, Object, Value};

/// The start of the names of torch's classes. Their modules were moved more than once.
const MODULES: &str = "torch.distributed.";

/// The most attributes of an object of torch. Its classes have at most seven.
const MAX_ATTRIBUTES: usize = 64;

/// The objects of a pickle that was read.
#[derive(Clone, Copy)]
pub struct Reader<'a>(pub &'a Heap);

impl<'a> Reader<'a> {
    pub fn object(self, value: Value) -> Option<&'a Object> {
        self.0.object(value)
    }

    /// Describes a value for a message.
    pub fn found(self, value: Value) -> String {
        let what = match (value, self.object(value)) {
            (Value::None, _) => "nothing",
            (Value::Bool(_), _) => "a bool",
            (Value::Int(_), _) | (_, Some(Object::Big(_))) => "an integer",
            (Value::Float(_), _) => "a float",
            (_, Some(Object::Text(_))) => "a text",
            (_, Some(Object::Bytes(_))) => "bytes",
            (_, Some(Object::List(_))) => "a list",
            (_, Some(Object::Tuple(_))) => "a tuple",
            (_, Some(Object::Dict(_))) => "a dict",
            (_, Some(Object::Global(global))) => return global.shown(),
            (_, Some(Object::Instance(instance))) => match self.object(instance.function) {
                Some(Object::Global(class)) => return format!("an object of {}", class.shown()),
                _ => "an object",
            },
            _ => "another object",
        };
        what.to_owned()
    }

    /// Returns the state of an object of the class of this name.
    pub fn state(self, value: Value, class: &str) -> Result<Value> {
        if let Some(Object::Instance(instance)) = self.object(value)
            && let Some(Object::Global(global)) = self.object(instance.function)
            && let Some(rest) = global.name.strip_prefix(MODULES)
            && rest.rsplit('.').next() == Some(class)
        {
            return Ok(instance.state.unwrap_or_default());
        }
        let found = self.found(value);
        Err(Error::data(format!("expected an object of torch's class `{class}`, found {found}")))
    }

    /// Returns the attributes of an object of the class of this name.
    pub fn attributes(self, value: Value, class: &str) -> Result<&'a [(Value, Value)]> {
        match self.state(value, class)? {
            // An object without attributes.
            Value::None => Ok(&[]),
            state => match self.dict(state, "attributes")? {
                // Many objects may have the same state, and each attribute of each is searched for in it.
                many if many.len() > MAX_ATTRIBUTES => {
                    let found = many.len();
                    let what = format!(
                        "an object of torch's class `{class}` has {found} attributes, \
                         {MAX_ATTRIBUTES} are allowed"
                    );
                    Err(Error::limit(what))
                }
                attributes => Ok(attributes),
            },
        }
    }

    pub fn dict(self, value: Value, what: &str) -> Result<&'a [(Value, Value)]> {
        match self.object(value) {
            Some(Object::Dict(dict)) => Ok(&dict.entries),
            _ => {
                let found = self.found(value);
                Err(Error::data(format!("expected a dict of {what}, found {found}")))
            }
        }
    }

    pub fn text(self, value: Value, what: &str) -> Result<&'a str> {
        match self.object(value) {
            Some(Object::Text(text)) => Ok(text),
            _ => Err(Error::data(format!("expected {what}, found {}", self.found(value)))),
        }
    }

    /// Returns the numbers of a `torch.Size`.
    pub fn sizes(self, value: Value) -> Result<Vec<usize>> {
        let sizes = pickle::sizes(self.0, value)?;
        let sizes: Option<Vec<usize>> = sizes.iter().map(|&size| size.try_into().ok()).collect();
        sizes.ok_or_else(|| Error::data("a size or an offset does not fit in memory"))
    }

    /// Whether a value is a path: a tuple of keys and indices.
    pub fn is_path(self, value: Value) -> bool {
        match self.object(value) {
            Some(Object::Tuple(steps)) => {
                !steps.is_empty() && steps.iter().all(|step| self.step(*step).is_some())
            }
            _ => false,
        }
    }

    /// Returns the steps of a path.
    pub fn steps(self, path: Value) -> Result<Vec<Step>> {
        let Some(Object::Tuple(steps)) = self.object(path) else { return Ok(Vec::new()) };
        if steps.len() > MAX_STEPS {
            let found = steps.len();
            let what = format!("a path of {found} steps, {MAX_STEPS} are allowed");
            return Err(Error::limit(what));
        }
        Ok(steps.iter().filter_map(|step| self.step(*step)).collect())
    }

    fn step(self, value: Value) -> Option<Step> {
        match (value, self.object(value)) {
            (Value::Int(index), _) => index.try_into().ok().map(Step::Index),
            (_, Some(Object::Text(key))) => Some(Step::Key(key.clone())),
            _ => None,
        }
    }

    /// Returns the value of the last entry with this key. `None` of Python if there is no such entry.
    pub fn entry(self, entries: &[(Value, Value)], name: &str) -> Value {
        let is_it = |key| matches!(self.object(key), Some(Object::Text(key)) if &**key == name);
        let found = entries.iter().rfind(|(key, _)| is_it(*key));
        found.map_or(Value::None, |(_, value)| *value)
    }
}
