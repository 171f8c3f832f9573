//! Elements and entries of a [`Value`] by position, key and pointer.

use std::ops;

use super::Value;

/// What elements of a [`Value`] are found by: a `usize` in an array, a text in a map.
///
/// This trait is sealed.
pub trait Index: sealed::Sealed {
    /// Where the element stands among the elements or entries of `value`.
    #[doc(hidden)]
    fn position(&self, value: &Value) -> Option<usize>;

    /// As [`position`](Self::position). A key that is not there is added.
    #[doc(hidden)]
    fn position_or_insert(&self, value: &mut Value) -> usize;
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for usize {}
    impl Sealed for str {}
    impl Sealed for String {}
    impl<T: Sealed + ?Sized> Sealed for &T {}
}

impl Index for usize {
    fn position(&self, value: &Value) -> Option<usize> {
        value.as_array().filter(|items| *self < items.len()).map(|_| *self)
    }

    fn position_or_insert(&self, value: &mut Value) -> usize {
        match value {
            Value::Array(items) if *self < items.len() => *self,
            Value::Array(items) => {
                panic!("no element of number {self} in an array of {} elements", items.len())
            }
            other => panic!("no element of number {self} in a value that is {}", other.kind()),
        }
    }
}

impl Index for str {
    fn position(&self, value: &Value) -> Option<usize> {
        value.as_map()?.iter().position(|(key, _)| key.as_str() == Some(self))
    }

    fn position_or_insert(&self, value: &mut Value) -> usize {
        if value.is_null() {
            *value = Value::Map(Vec::new());
        }
        let found = self.position(value);
        match value {
            Value::Map(entries) => found.unwrap_or_else(|| {
                entries.push((Value::from(self), Value::Null));
                entries.len() - 1
            }),
            other => panic!("no entry `{self}` in a value that is {}", other.kind()),
        }
    }
}

impl Index for String {
    fn position(&self, value: &Value) -> Option<usize> {
        self.as_str().position(value)
    }

    fn position_or_insert(&self, value: &mut Value) -> usize {
        self.as_str().position_or_insert(value)
    }
}

impl<T: Index + ?Sized> Index for &T {
    fn position(&self, value: &Value) -> Option<usize> {
        (**self).position(value)
    }

    fn position_or_insert(&self, value: &mut Value) -> usize {
        (**self).position_or_insert(value)
    }
}

/// The element of an array or the entry of a map; [`Value::Null`] if it is not there.
impl<I: Index> ops::Index<I> for Value {
    type Output = Value;

    fn index(&self, index: I) -> &Value {
        self.get(index).unwrap_or(&Value::Null)
    }
}

/// The element of an array, or the entry of a map. A key that is not there is added with the value null; null
/// becomes a map.
///
/// # Panics
/// If the array is too short, and if the value is neither an array for a number nor a map or null for a key.
impl<I: Index> ops::IndexMut<I> for Value {
    fn index_mut(&mut self, index: I) -> &mut Value {
        let value = self.untagged_mut();
        let at = index.position_or_insert(value);
        value.child_mut(at).expect("the position of an element")
    }
}

impl Value {
    /// The value of a text key, if this is a map, or the element of this number, if it is an array. Tags around
    /// the map or array are passed over. The first of several entries with one key counts.
    ///
    /// Keys that are not texts are found by [`pointer`](Self::pointer) and in [`as_map`](Self::as_map).
    pub fn get(&self, index: impl Index) -> Option<&Value> {
        let value = self.untagged();
        value.child(index.position(value)?)
    }

    /// As [`get`](Self::get), to be changed.
    pub fn get_mut(&mut self, index: impl Index) -> Option<&mut Value> {
        let value = self.untagged_mut();
        value.child_mut(index.position(value)?)
    }

    /// The value at a JSON Pointer (RFC 6901): `/layers/3/weight`.
    ///
    /// Steps are map keys (text, or an integer in decimal) and positions in arrays. Tags are passed over. The
    /// first of several entries with one key counts.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        steps(pointer)?.try_fold(self, |value, step| {
            let value = value.untagged();
            value.child(value.step(&step)?)
        })
    }

    /// As [`pointer`](Self::pointer), to be changed.
    pub fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        steps(pointer)?.try_fold(self, |value, step| {
            let value = value.untagged_mut();
            value.child_mut(value.step(&step)?)
        })
    }

    /// Where the step of a pointer leads among the elements or entries.
    fn step(&self, step: &str) -> Option<usize> {
        match self {
            Self::Array(_) => {
                // As in RFC 6901, section 4: no sign, no leading zeros.
                let canonical = step == "0" || !step.starts_with(['0', '+']);
                step.parse::<usize>().ok().filter(|_| canonical)
            }
            Self::Map(entries) => step.position(self).or_else(|| {
                let key = Value::Integer(step.parse().ok()?);
                entries.iter().position(|(k, _)| *k == key)
            }),
            _ => None,
        }
    }

    /// The value without the tags around it.
    fn untagged(&self) -> &Value {
        let mut value = self;
        while let Self::Tag(_, inner) = value {
            value = inner;
        }
        value
    }

    fn untagged_mut(&mut self) -> &mut Value {
        let mut value = self;
        while let Self::Tag(_, inner) = value {
            value = inner;
        }
        value
    }

    /// The element, or the value of the entry, at a position.
    fn child(&self, at: usize) -> Option<&Value> {
        match self {
            Self::Array(items) => items.get(at),
            Self::Map(entries) => entries.get(at).map(|(_, value)| value),
            _ => None,
        }
    }

    fn child_mut(&mut self, at: usize) -> Option<&mut Value> {
        match self {
            Self::Array(items) => items.get_mut(at),
            Self::Map(entries) => entries.get_mut(at).map(|(_, value)| value),
            _ => None,
        }
    }

    /// What it is, as a noun.
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::F32(_) | Self::F64(_) => "a float",
            Self::Bytes(_) => "a byte string",
            Self::Text(_) => "a text",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
            Self::Tag(..) => "a tagged value",
            Self::Simple(_) => "a simple value",
            Self::Numbers(_) => "a typed array",
            Self::Tensor(_) => "a tensor",
        }
    }
}

/// The steps of a JSON Pointer, if it is one.
fn steps(pointer: &str) -> Option<impl Iterator<Item = String>> {
    // The first piece is what stands before the first slash.
    let mut pieces = pointer.split('/');
    pieces.next().filter(|before| before.is_empty())?;
    Some(pieces.map(|step| step.replace("~1", "/").replace("~0", "~")))
}
