//! Turns objects of a pickle into plain data, which archives can hold. An object of a class becomes what the pickle
//! says about it. No class is looked up, and nothing is called.

use std::collections::{HashMap, HashSet};
use std::mem::take;

use tenarc::{Error, Result};

use super::pickle::{Dict, Instance, Object, Origin, Pickle, Rebuilt, Value, object};
use super::tree::step;

/// The number of attributes that may be copied from the states of objects. Many objects may share one long state, and
/// each gets a copy of it. So without a limit, a small pickle could take much memory.
const MAX_COPIED: usize = 1 << 22;

/// The attributes of a module that hold its parameters, buffers and inner modules. In a `state_dict`, the names of
/// tensors do not contain them.
const PARTS: [&str; 3] = ["_parameters", "_buffers", "_modules"];

/// Replaces the storages and instances of a pickle by plain data.
pub fn simplify(pickle: &mut Pickle) -> Result<()> {
    let count = pickle.objects.len();
    let mut plain = Plain {
        objects: take(&mut pickle.objects),
        origins: HashMap::new(),
        texts: HashMap::new(),
        names: HashMap::new(),
        copied: 0,
    };
    for number in 0..count {
        plain.object(number)?;
    }
    // Dict keys are checked last, because the states of objects have only now become dicts.
    for number in 0..plain.objects.len() {
        let Some(Object::Dict(dict)) = plain.objects.get(number) else { continue };
        if let Some(changed) = without_bad_keys(&plain.objects, dict) {
            plain.replace(number, Object::Dict(Box::new(changed)));
        }
    }
    pickle.objects = plain.objects;
    pickle.origins = plain.origins;
    Ok(())
}

type Entries = Vec<(Value, Value)>;

struct Plain {
    objects: Vec<Object>,
    origins: HashMap<usize, Origin>,
    /// The object numbers of the texts that [`key`](Self::key) has added.
    texts: HashMap<&'static str, usize>,
    /// The names of functions as texts, by the object numbers of the functions.
    names: HashMap<usize, Value>,
    /// The number of attributes that were copied from states.
    copied: usize,
}

impl Plain {
    fn get(&self, value: Value) -> Option<&Object> {
        object(&self.objects, value)
    }

    fn add(&mut self, object: Object) -> Value {
        self.objects.push(object);
        Value::Object(self.objects.len() - 1)
    }

    fn replace(&mut self, number: usize, with: Object) {
        if let Some(object) = self.objects.get_mut(number) {
            *object = with;
        }
    }

    fn key(&mut self, text: &'static str) -> Value {
        if let Some(number) = self.texts.get(text) {
            return Value::Object(*number);
        }
        let key = self.add(Object::Text(text.into()));
        self.texts.insert(text, self.objects.len() - 1);
        key
    }

    /// Returns the name of a function as a text. All calls of the function share it.
    fn name(&mut self, function: Value) -> Value {
        let (Value::Object(number), Some(Object::Global(global))) = (function, self.get(function))
        else {
            return function;
        };
        if let Some(name) = self.names.get(&number) {
            return *name;
        }
        let text = Object::Text(global.name.as_ref().into());
        let name = self.add(text);
        self.names.insert(number, name);
        name
    }

    fn object(&mut self, number: usize) -> Result<()> {
        let with = match self.objects.get_mut(number) {
            Some(Object::Storage(storage)) => Object::Tensor(Box::new(Rebuilt::all(storage))),
            Some(Object::Instance(instance)) => {
                let instance = take(&mut **instance);
                self.instance(number, instance)?
            }
            _ => return Ok(()),
        };
        self.replace(number, with);
        Ok(())
    }

    fn instance(&mut self, number: usize, mut instance: Instance) -> Result<Object> {
        let is_bare = self.is_empty(instance.arguments);
        let has = (instance.state, instance.items.len(), instance.entries.len());
        let plain = match has {
            _ if !is_bare => None,
            (None, 0, 0) => (!instance.is_call).then(Object::default_dict),
            (None, _, 0) => Some(Object::List(take(&mut instance.items))),
            (None, 0, _) => Some(Object::of_entries(take(&mut instance.entries))),
            (Some(state), 0, 0) => self.attributes(state)?.map(Object::of_entries),
            _ => None,
        };
        let name = match self.get(instance.function) {
            Some(Object::Global(global)) => Some(global.name.clone()),
            _ => None,
        };
        let origin = if plain.is_some() { Origin::Class } else { Origin::Call };
        self.origins.extend(name.map(|name| (number, origin(name))));
        Ok(plain.unwrap_or_else(|| self.call(instance)))
    }

    /// Returns a map of everything that the pickle says about a call.
    fn call(&mut self, instance: Instance) -> Object {
        let Instance { function, arguments, state, items, entries, .. } = instance;
        let called = self.name(function);
        let mut all = vec![(self.key("call"), called), (self.key("arguments"), arguments)];
        if let Some(state) = state {
            all.push((self.key("state"), state));
        }
        if !items.is_empty() {
            let items = self.add(Object::List(items));
            all.push((self.key("items"), items));
        }
        if !entries.is_empty() {
            let entries = self.add(Object::of_entries(entries));
            all.push((self.key("entries"), entries));
        }
        Object::of_entries(all)
    }

    /// Returns the attributes in a state. A state is a dict of attributes, or a tuple of this dict and that of the
    /// slots. `None` if it is something else.
    fn attributes(&mut self, state: Value) -> Result<Option<Entries>> {
        let dicts = match self.get(state) {
            Some(Object::Tuple(values)) if values.len() == 2 => values.to_vec(),
            _ => vec![state],
        };
        let mut found = Entries::new();
        for value in dicts {
            match (value, self.get(value)) {
                (Value::None, _) => {}
                (_, Some(Object::Dict(dict))) => found.extend_from_slice(&dict.entries),
                _ => return Ok(None),
            }
        }
        let found = self.module(&found).unwrap_or(found);
        self.copied = self.copied.saturating_add(found.len());
        if self.copied > MAX_COPIED {
            let what = format!("the objects have more than {MAX_COPIED} attributes together");
            return Err(Error::limit(what));
        }
        Ok(Some(found))
    }

    /// Returns the attributes of a module, with its parameters, buffers and inner modules among them. So tensors have
    /// the names of the module's `state_dict`. `None` if the object is not a module, or if two attributes would have
    /// the same name.
    fn module(&self, attributes: &[(Value, Value)]) -> Option<Entries> {
        let text = |key: Value| match self.get(key) {
            Some(Object::Text(text)) => Some(&**text),
            _ => None,
        };
        let part = |name: &str| {
            let found = attributes.iter().find(|(key, _)| text(*key) == Some(name))?;
            match self.get(found.1) {
                Some(Object::Dict(dict)) => Some(&dict.entries[..]),
                _ => None,
            }
        };
        let [parameters, buffers, modules] = PARTS.map(part);
        let parts = [parameters?, buffers.unwrap_or_default(), modules?].into_iter().flatten();
        // A parameter that a module does not use is None. A `state_dict` does not contain it.
        let parts = parts.filter(|(_, value)| !matches!(value, Value::None));
        let own = attributes.iter().filter(|(key, value)| match text(*key) {
            Some(name) => {
                !(PARTS.contains(&name) || name.starts_with('_') && self.is_empty(*value))
            }
            None => true,
        });
        let all: Entries = parts.chain(own).copied().collect();
        let mut names = HashSet::with_capacity(all.len());
        all.iter().all(|(key, _)| names.insert(text(*key))).then_some(all)
    }

    fn is_empty(&self, value: Value) -> bool {
        match self.get(value) {
            Some(Object::Dict(dict)) => dict.entries.is_empty(),
            Some(Object::List(values)) => values.is_empty(),
            Some(Object::Tuple(values)) => values.is_empty(),
            _ => matches!(value, Value::None),
        }
    }
}

/// Adds a value to the root of the pickle under the key `name`.
pub fn beside(pickle: &mut Pickle, name: &str, value: Value) {
    let key = Value::Object(pickle.objects.len());
    pickle.objects.push(Object::Text(name.into()));
    let objects = &pickle.objects;
    let is_taken = match object(objects, pickle.root) {
        Some(Object::Dict(dict)) => {
            dict.entries.iter().any(|(key, _)| step(objects, *key).is_some_and(|step| step == name))
        }
        _ => true,
    };
    if is_taken {
        // The root is not a dict, or already has this key. So a new dict holds the root and the value.
        let root = Value::Object(pickle.objects.len());
        pickle.objects.push(Object::Text("value".into()));
        let entries = vec![(root, pickle.root), (key, value)];
        pickle.root = Value::Object(pickle.objects.len());
        pickle.objects.push(Object::of_entries(entries));
    } else if let Value::Object(number) = pickle.root
        && let Some(Object::Dict(dict)) = pickle.objects.get_mut(number)
    {
        dict.entries.push((key, value));
    }
}

/// Returns the dict without the entries whose keys cannot be kept. `None` if there are no such entries.
fn without_bad_keys(objects: &[Object], dict: &Dict) -> Option<Dict> {
    let mut steps = HashSet::with_capacity(dict.entries.len());
    let mut check = |key: Value| match step(objects, key) {
        None => Err("an entry whose key is neither a text nor an integer"),
        Some(step) if steps.insert(step.clone()) => Ok(()),
        Some(_) => Err("an entry whose key reads like that of another entry"),
    };
    let checked: Vec<_> = dict.entries.iter().map(|(key, _)| check(*key)).collect();
    if checked.iter().all(Result::is_ok) {
        return None;
    }
    let mut changed = Dict { entries: Vec::new(), lost: dict.lost.clone(), ..*dict };
    for (entry, checked) in dict.entries.iter().zip(checked) {
        match checked {
            Ok(()) => changed.entries.push(*entry),
            Err(why) => {
                let is_tensor = matches!(object(objects, entry.1), Some(Object::Tensor(_)));
                changed.lost.push((why, is_tensor));
            }
        }
    }
    Some(changed)
}
