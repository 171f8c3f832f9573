//! Finds elements and entries of a [`Value`] by position, key or JSON Pointer.

use std::borrow::Cow;
use std::ops;

use self::sealed::Positions;
use super::Value;
use crate::steps::unescape_step;

/// An index into a [`Value`]: a `usize` for arrays, a text for maps.
///
/// This trait is sealed: other crates cannot implement it.
pub trait Index: sealed::Positions {}

impl Index for usize {}
impl Index for str {}
impl Index for String {}
impl<T: Index + ?Sized> Index for &T {}

mod sealed {
    use super::Value;

    /// The methods of [`Index`](super::Index). Other crates cannot name this trait.
    pub trait Positions {
        /// The position among the elements of an array or the entries of a map.
        fn position(&self, value: &Value) -> Option<usize>;

        /// Like [`position`](Self::position), but adds a missing key. Panics if `value` has no such position.
        fn position_or_insert(&self, value: &mut Value) -> usize;
    }
}

impl Positions for usize {
    fn position(&self, value: &Value) -> Option<usize> {
        value.as_array().filter(|items| *self < items.len()).map(|_| *self)
    }

    fn position_or_insert(&self, value: &mut Value) -> usize {
        match value.as_array() {
            Some(items) if *self < items.len() => *self,
            Some(items) => {
                panic!("index {self} is out of bounds: the array has {} elements", items.len())
            }
            None => panic!("cannot index {} with the number {self}", value.noun()),
        }
    }
}

impl Positions for str {
    fn position(&self, value: &Value) -> Option<usize> {
        value.as_map()?.iter().rposition(|(key, _)| key.as_str() == Some(self))
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
            other => panic!("cannot index {} with the key `{self}`", other.noun()),
        }
    }
}

impl Positions for String {
    fn position(&self, value: &Value) -> Option<usize> {
        self.as_str().position(value)
    }

    fn position_or_insert(&self, value: &mut Value) -> usize {
        self.as_str().position_or_insert(value)
    }
}

impl<T: Positions + ?Sized> Positions for &T {
    fn position(&self, value: &Value) -> Option<usize> {
        (**self).position(value)
    }

    fn position_or_insert(&self, value: &mut Value) -> usize {
        (**self).position_or_insert(value)
    }
}

/// The element of an array, packed or not, or the value of a key in a map. [`Value::Null`] if there is none.
impl<I: Index> ops::Index<I> for Value {
    type Output = Value;

    fn index(&self, index: I) -> &Value {
        self.get(index).unwrap_or(&Value::Null)
    }
}

/// The element of an array, or the value of a key in a map. A missing key is added, with null as its value. If the
/// indexed value itself is null, it becomes a map with this key.
///
/// # Panics
/// - The array has no element of this number.
/// - The index is a number, but the value is not an array.
/// - The index is a key, but the value is neither a map nor null.
impl<I: Index> ops::IndexMut<I> for Value {
    fn index_mut(&mut self, index: I) -> &mut Value {
        let value = self.untagged_mut();
        let at = index.position_or_insert(value);
        value.child_mut(at).expect("the position is valid")
    }
}

impl Value {
    /// The value of a text key in a map, or the element of an array. Tags around the map or array are ignored. If
    /// several entries have the key, the last one is returned.
    ///
    /// Keys that are not texts can be found with [`pointer`](Self::pointer), or in [`as_map`](Self::as_map).
    pub fn get(&self, index: impl Index) -> Option<&Value> {
        let value = self.untagged();
        value.child(index.position(value)?)
    }

    /// Like [`get`](Self::get), but returns a mutable reference.
    pub fn get_mut(&mut self, index: impl Index) -> Option<&mut Value> {
        let value = self.untagged_mut();
        value.child_mut(index.position(value)?)
    }

    /// The value at a JSON Pointer (RFC 6901): `/layers/3/weight`.
    ///
    /// Each step is a map key (a text, or an integer in decimal) or a position in an array. Tags are ignored. If
    /// several entries have the key, the last one is used.
    ///
    /// ```
    /// let value = tenarc::to_value(&[[1, 2], [3, 4]])?;
    /// assert_eq!(value.pointer("/1/0"), Some(&3.into()));
    /// assert_eq!(value.pointer("/2"), None);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        steps(pointer)?.try_fold(self, |value, step| {
            let value = value.untagged();
            value.child(value.step(&step)?)
        })
    }

    /// Like [`pointer`](Self::pointer), but returns a mutable reference.
    pub fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        steps(pointer)?.try_fold(self, |value, step| {
            let value = value.untagged_mut();
            value.child_mut(value.step(&step)?)
        })
    }

    /// The position of the element or entry that one step of a pointer names.
    fn step(&self, step: &str) -> Option<usize> {
        match self {
            Self::Array(_) | Self::Numbers(_) => {
                // RFC 6901, section 4, allows no sign and no leading zeros.
                let canonical = step == "0" || !step.starts_with(['0', '+']);
                step.parse::<usize>().ok().filter(|_| canonical)
            }
            Self::Map(entries) => step.position(self).or_else(|| {
                let key = Value::Integer(step.parse().ok()?);
                entries.iter().rposition(|(k, _)| *k == key)
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
            Self::Map(entries) => entries.get(at).map(|(_, value)| value),
            _ => self.as_array()?.get(at),
        }
    }

    fn child_mut(&mut self, at: usize) -> Option<&mut Value> {
        match self {
            Self::Map(entries) => entries.get_mut(at).map(|(_, value)| value),
            _ => self.as_array_mut()?.get_mut(at),
        }
    }

    /// The kind of value, as a noun for messages.
    fn noun(&self) -> &'static str {
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

/// The steps of a JSON Pointer. `None` if the text is not a JSON Pointer.
fn steps(pointer: &str) -> Option<impl Iterator<Item = Cow<'_, str>>> {
    // The text before the first slash must be empty.
    let mut pieces = pointer.split('/');
    pieces.next().filter(|before| before.is_empty())?;
    Some(pieces.map(unescape_step))
}
