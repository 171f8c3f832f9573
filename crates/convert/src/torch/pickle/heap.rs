//! The objects that pickles make, and the limits for making them.

use tenarc::{Error, Result};

use super::object::{Object, Value, object};

/// The most opcodes that are run for all pickles of a file. Each makes at most one object, value or entry. torch writes
/// about twenty for a tensor. The entries of a state that an object is given count as opcodes, too.
const MAX_OPERATIONS: u32 = 1 << 22;

/// The most bytes that the objects of all pickles may take. The length of a pickle does not limit this, because an
/// opcode may copy an object.
const MAX_COST: usize = 128 << 20;

/// How many times these limits are the limits for the metadata of a distributed checkpoint. torch writes about sixty
/// opcodes for each part of a tensor.
const FOR_METADATA: u8 = 4;

/// The most dimensions that torch's tensors have.
const MAX_RANK: usize = 64;

/// The objects of the pickles of a file.
#[derive(Default)]
pub struct Heap {
    pub objects: Vec<Object>,
    /// The bytes that all objects take.
    cost: usize,
    /// The number of opcodes that were run, and of entries of states.
    operations: u32,
    /// Whether some of the lists were sets or deques.
    pub has_sets: bool,
    /// Whether flags of buffers were left out.
    pub has_flags: bool,
    /// The start of the names of storages.
    pub folder: &'static str,
    /// Whether the limits are [`FOR_METADATA`] times as high.
    is_metadata: bool,
}

/// A state that a [`Heap`] can go back to.
#[derive(Clone, Copy, Debug)]
pub struct State {
    objects: usize,
    cost: usize,
    operations: u32,
}

/// The result of a call.
pub enum Made {
    /// A new object.
    New(Object),
    /// One of the arguments, or a number.
    Old(Value),
}

impl Heap {
    /// Creates a heap for the metadata of a distributed checkpoint, which may be longer than other pickles.
    pub fn for_metadata() -> Self {
        Self { is_metadata: true, ..Self::default() }
    }

    fn times(&self) -> u8 {
        if self.is_metadata { FOR_METADATA } else { 1 }
    }

    pub fn object(&self, value: Value) -> Option<&Object> {
        object(&self.objects, value)
    }

    pub fn object_mut(&mut self, value: Value) -> Option<&mut Object> {
        match value {
            Value::Object(number) => self.objects.get_mut(number),
            _ => None,
        }
    }

    /// Adds an object, and returns its value.
    pub fn add(&mut self, object: Object) -> Result<Value> {
        self.cost = self.cost.saturating_add(object.cost());
        let most = MAX_COST.saturating_mul(self.times().into());
        if self.cost > most {
            let what = format!("the pickle makes more than {most} bytes of objects");
            return Err(Error::limit(what));
        }
        self.objects.push(object);
        Ok(Value::Object(self.objects.len() - 1))
    }

    /// Counts an opcode that is about to be run.
    pub fn count(&mut self) -> Result<()> {
        let most = MAX_OPERATIONS.saturating_mul(self.times().into());
        if self.operations >= most {
            let what = format!("the pickle has more than {most} opcodes and entries of states");
            return Err(Error::limit(what));
        }
        self.operations += 1;
        Ok(())
    }

    /// Counts work that is not bounded by the opcode that asks for it, as so many opcodes.
    pub fn charge(&mut self, steps: usize) {
        self.operations = self.operations.saturating_add(steps.try_into().unwrap_or(u32::MAX));
    }

    /// Returns the current state, for [`restore`](Self::restore).
    pub fn state(&self) -> State {
        State { objects: self.objects.len(), cost: self.cost, operations: self.operations }
    }

    /// Forgets the objects that were made after `state`, after a pickle was only read in part. This is enough, because
    /// a pickle cannot change the objects of those before it.
    pub fn restore(&mut self, State { objects, cost, operations }: State) {
        self.objects.truncate(objects);
        (self.cost, self.operations) = (cost, operations);
    }
}

/// Returns the values of a tuple of arguments.
pub fn tuple(heap: &Heap, value: Value) -> Result<&[Value]> {
    match heap.object(value) {
        Some(Object::Tuple(values)) => Ok(values),
        _ => Err(Error::syntax("expected a tuple of arguments, found something else")),
    }
}

/// Returns the numbers of a shape or of strides.
pub fn sizes(heap: &Heap, value: Value) -> Result<Vec<u64>> {
    let wrong = || Error::data("expected sizes or strides of a tensor that are not negative");
    let values = match heap.object(value) {
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

/// Whether a value is missing, is `None`, or is an empty dict.
pub fn is_empty(heap: &Heap, value: Option<Value>) -> bool {
    match value.map(|value| (value, heap.object(value))) {
        None | Some((Value::None, _)) => true,
        Some((_, Some(Object::Dict(dict)))) => dict.entries.is_empty(),
        _ => false,
    }
}
