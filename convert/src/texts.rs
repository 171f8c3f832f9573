//! Arrays of texts, which are read when they are written.

use std::cell::RefCell;
use std::fmt;

use serde::ser::{Error as _, Serialize, SerializeSeq as _, Serializer};
use tenarc::{Error, Result};

/// Texts of a file as nested arrays, one level for each dimension. A text that is not UTF-8 becomes a byte string.
pub struct Texts<'a> {
    shape: Vec<usize>,
    open: Box<dyn Fn() -> Result<Next<'a>> + 'a>,
}

/// Reads the next text.
pub type Next<'a> = Box<dyn FnMut() -> Result<Vec<u8>> + 'a>;

impl<'a> Texts<'a> {
    /// Texts of this shape. `open` starts to read them from the first one.
    ///
    /// # Errors
    /// If the shape would be lost.
    pub fn new(shape: &[usize], open: impl Fn() -> Result<Next<'a>> + 'a) -> Result<Self> {
        if shape.len() > 1 && shape.contains(&0) {
            return Err(Error::data(NO_SHAPE));
        }
        Ok(Self { shape: shape.to_vec(), open: Box::new(open) })
    }
}

/// Why some texts cannot be kept.
pub const NO_SHAPE: &str = "it has no elements, and an empty array of texts has no shape";

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let next = RefCell::new((self.open)().map_err(S::Error::custom)?);
        Level { shape: &self.shape, next: &next }.serialize(serializer)
    }
}

/// What is left of the shape.
struct Level<'t, 'a> {
    shape: &'t [usize],
    next: &'t RefCell<Next<'a>>,
}

impl Serialize for Level<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some((&len, shape)) = self.shape.split_first() else {
            let next = (self.next.borrow_mut())();
            return match String::from_utf8(next.map_err(S::Error::custom)?) {
                Ok(text) => serializer.serialize_str(&text),
                Err(error) => serializer.serialize_bytes(error.as_bytes()),
            };
        };
        let mut array = serializer.serialize_seq(Some(len))?;
        for _ in 0..len {
            array.serialize_element(&Level { shape, next: self.next })?;
        }
        array.end()
    }
}
