//! Arrays of texts, or of lists of numbers, that are read when they are written.

use std::cell::RefCell;
use std::fmt;

use serde::ser::{Error as _, Serialize, SerializeSeq as _, Serializer};
use tenarc::{DType, Error, Result};

use crate::elements;

/// Texts of a file as nested arrays, one level for each dimension. A text that is not UTF-8 becomes a byte string. Lists of
/// numbers are read in the same way.
pub struct Texts<'a> {
    shape: Vec<usize>,
    /// The dtype of numbers, if there are lists of numbers in place of texts.
    dtype: Option<DType>,
    open: Box<dyn Fn() -> Result<Next<'a>> + 'a>,
}

/// Reads the next text, or the little-endian bytes of the next list.
pub type Next<'a> = Box<dyn FnMut() -> Result<Vec<u8>> + 'a>;

impl<'a> Texts<'a> {
    /// Makes an array of texts of this shape. `open` starts to read them from the first one.
    ///
    /// # Errors
    /// If the array is empty and has several dimensions, because its shape would be lost.
    pub fn new(shape: &[usize], open: impl Fn() -> Result<Next<'a>> + 'a) -> Result<Self> {
        if shape.len() > 1 && shape.contains(&0) {
            return Err(Error::data(NO_SHAPE));
        }
        Ok(Self { shape: shape.to_vec(), dtype: None, open: Box::new(open) })
    }

    /// Makes an array of lists of numbers: see [`new`](Self::new).
    pub fn of_lists(
        shape: &[usize],
        dtype: DType,
        open: impl Fn() -> Result<Next<'a>> + 'a,
    ) -> Result<Self> {
        Ok(Self { dtype: Some(dtype), ..Self::new(shape, open)? })
    }
}

/// The reason why an empty array of several dimensions cannot be kept.
pub const NO_SHAPE: &str = "it has no elements, and an empty array of texts or lists has no shape";

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reader =
            RefCell::new(Reader { open: &self.open, next: None, read: 0, last: Vec::new() });
        let dtype = self.dtype.as_ref();
        Level { shape: &self.shape, dtype, number: 0, reader: &reader }.serialize(serializer)
    }
}

/// A reader of texts by their numbers. Serializers ask for them in order, but for some of them twice.
struct Reader<'t, 'a> {
    open: &'t dyn Fn() -> Result<Next<'a>>,
    next: Option<Next<'a>>,
    /// The number of texts that were read.
    read: usize,
    /// The text that was read last.
    last: Vec<u8>,
}

impl Reader<'_, '_> {
    fn get(&mut self, number: usize) -> Result<&[u8]> {
        if number + 1 < self.read {
            (self.next, self.read) = (None, 0);
        }
        if self.next.is_none() {
            self.next = Some((self.open)()?);
        }
        if let Some(next) = &mut self.next {
            while self.read <= number {
                self.last = next()?;
                self.read += 1;
            }
        }
        Ok(&self.last)
    }
}

/// An array inside of the nested arrays, or a single text if `shape` is empty.
struct Level<'r, 't, 'a> {
    shape: &'t [usize],
    dtype: Option<&'t DType>,
    /// The number of its first text.
    number: usize,
    reader: &'r RefCell<Reader<'t, 'a>>,
}

impl Serialize for Level<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some((&len, shape)) = self.shape.split_first() else {
            let mut reader = self.reader.borrow_mut();
            let text = reader.get(self.number).map_err(S::Error::custom)?;
            if let Some(dtype) = self.dtype {
                let numbers = elements::packed(dtype, text).map_err(S::Error::custom)?;
                return numbers.serialize(serializer);
            }
            return match std::str::from_utf8(text) {
                Ok(text) => serializer.serialize_str(text),
                Err(_) => serializer.serialize_bytes(text),
            };
        };
        let each: usize = shape.iter().product();
        let mut array = serializer.serialize_seq(Some(len))?;
        for at in 0..len {
            let number = self.number + at * each;
            array.serialize_element(&Level {
                shape,
                dtype: self.dtype,
                number,
                reader: self.reader,
            })?;
        }
        array.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_may_be_asked_for_again() {
        let texts = Texts::new(&[2, 3], || {
            let mut number = 0u8;
            Ok(Box::new(move || {
                number += 1;
                Ok(vec![b'a' + number])
            }))
        });
        let texts = texts.unwrap();
        let mut reader = Reader { open: &texts.open, next: None, read: 0, last: Vec::new() };
        for (number, expected) in [(0, b'b'), (0, b'b'), (1, b'c'), (0, b'b'), (5, b'g'), (3, b'e')]
        {
            assert_eq!(reader.get(number).unwrap(), [expected]);
        }
        let rows: Vec<Vec<String>> = tenarc::from_slice(&tenarc::to_vec(&texts).unwrap()).unwrap();
        assert_eq!(rows, [["b", "c", "d"], ["e", "f", "g"]]);
        // A save to an archive reads some texts twice: it checks first whether rows could be columns.
        let mut archive = tenarc::OArchive::new(Vec::new()).unwrap();
        archive.save(&texts).unwrap();
        let archive = tenarc::Archive::new(archive.finish().unwrap()).unwrap();
        assert_eq!(archive.load::<Vec<Vec<String>>>().unwrap(), rows);
        assert!(Texts::new(&[2, 0], || Ok(Box::new(|| Ok(Vec::new())))).is_err());
    }
}
