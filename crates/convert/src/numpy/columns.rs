//! The columns of an array. Each field of a structured array is a column. Any other array is a single column. A column
//! holds elements of a tensor or texts.

use tenarc::{DType, Error, Result};

use super::literal::Literal;
use super::times::Times;
use crate::numpy;
use crate::numpy::{ByteOrder, Texts};

/// The most levels of records inside of records.
const MAX_DEPTH: usize = 8;

/// The most bytes of a record.
const MAX_RECORD: usize = 1 << 20;

/// A field of the records of an array, or a whole array that has no records.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name of the field, after the names of the fields that it is in, joined by dots. Empty if there are no
    /// records.
    pub path: String,
    pub elements: Elements,
    /// The dimensions of the field in one record.
    pub shape: Vec<usize>,
    /// The offset of the field in a record.
    pub offset: usize,
    /// The number of bytes of the field in a record.
    pub len: usize,
}

/// The type of the elements of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    Tensor(DType, ByteOrder),
    Texts(Texts),
    /// Integers of 64 bits that are times or durations.
    Times(Times, ByteOrder),
    /// Raw elements of this many bytes. Only the caller may know their dtype.
    Void(usize, ByteOrder),
    /// A type that is not read, and the reason.
    Refused(String),
}

impl Elements {
    /// Reads raw elements as elements of the first of these dtypes that has as many bytes.
    pub fn resolve(&mut self, dtypes: &[DType]) {
        if let Self::Void(len, order) = *self
            && let Some(dtype) = dtypes.iter().find(|dtype| dtype.bits() == len.checked_mul(8))
        {
            *self = Self::Tensor(dtype.clone(), order);
        }
    }
}

/// The error for raw elements whose dtype the caller has not named.
#[cold]
pub fn unknown(len: usize) -> Error {
    Error::unsupported(format!(
        "the elements have the type `V{len}`, which numpy uses for bfloat16 and FP8; give their dtype with the option `void`"
    ))
}

/// Decodes the name of a field.
pub type Decode = fn(&[u8]) -> String;

/// Returns the columns that a header describes, and the number of bytes of a record, or of an element if there are no
/// records.
///
/// # Errors
/// If numpy does not write such a description.
pub fn parse(descr: &Literal<'_>, decode: Decode) -> Result<(Vec<Column>, usize)> {
    let mut columns = Vec::new();
    let len = field(descr, decode, ("", &[], 0), MAX_DEPTH, &mut columns)?;
    Ok((columns, len))
}

/// Adds the columns of a field that starts at `offset`. Returns the number of bytes of the field.
fn field(
    descr: &Literal<'_>,
    decode: Decode,
    (path, shape, offset): (&str, &[usize], usize),
    depth: usize,
    columns: &mut Vec<Column>,
) -> Result<usize> {
    let too_large = || Error::limit(format!("a record has more than {MAX_RECORD} bytes"));
    let repeated = |len: usize| {
        let count = shape.iter().try_fold(1usize, |count, dim| count.checked_mul(*dim));
        let len = count.and_then(|count| count.checked_mul(len));
        len.filter(|len| path.is_empty() || *len <= MAX_RECORD).ok_or_else(too_large)
    };
    let fields = match descr {
        Literal::Text(text) => {
            let (elements, len) = elements(text)?;
            let len = repeated(len)?;
            // Fields without a name are padding.
            if !path.ends_with(PADDING) {
                let (path, shape) = (path.to_owned(), shape.to_vec());
                columns.push(Column { path, elements, shape, offset, len });
            }
            return Ok(len);
        }
        Literal::List(fields) => fields,
        other => {
            let found = other.kind();
            return Err(Error::syntax(format!(
                "expected a string or a list for `descr`, found {found}"
            )));
        }
    };
    let depth = depth.checked_sub(1).ok_or_else(|| {
        Error::limit(format!("records are nested more than {MAX_DEPTH} levels deep"))
    })?;
    let (mut len, first) = (0usize, columns.len());
    for entry in fields {
        let (name, descr, inner) = match entry {
            Literal::Tuple(items) => match &items[..] {
                [name, descr] => (name, descr, Vec::new()),
                [name, descr, shape] => (name, descr, dims(shape)?),
                _ => {
                    return Err(Error::syntax(
                        "expected a field as a tuple of a name, a dtype and optionally a shape",
                    ));
                }
            },
            other => {
                let found = other.kind();
                return Err(Error::syntax(format!("expected a tuple for a field, found {found}")));
            }
        };
        let name = match name {
            // A tuple of a title and the name.
            Literal::Tuple(names) => names.last().unwrap_or(name),
            name => name,
        };
        let Literal::Text(name) = name else {
            let found = name.kind();
            return Err(Error::syntax(format!("expected the name of a field, found {found}")));
        };
        let name = decode(name);
        if name.contains('\\') || name.contains(PADDING) {
            return Err(Error::data("the name of a field has escapes or zero bytes"));
        }
        let name = if name.is_empty() { PADDING } else { &name };
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let at = offset.checked_add(len).ok_or_else(too_large)?;
        let added = field(descr, decode, (&path, &inner, at), depth, columns)?;
        len = len.checked_add(added).filter(|len| *len <= MAX_RECORD).ok_or_else(too_large)?;
    }
    if !shape.is_empty() {
        for column in columns.iter_mut().skip(first) {
            column.elements =
                Elements::Refused("a field that is an array of records is not read".to_owned());
        }
    }
    repeated(len)
}

/// Stands in paths for the name of a field without a name.
const PADDING: &str = "\0";

fn dims(shape: &Literal<'_>) -> Result<Vec<usize>> {
    let dim = |item: &Literal<'_>| match item {
        Literal::Int { negative: false, value: Some(value) } => usize::try_from(*value).ok(),
        _ => None,
    };
    let dims = match shape {
        Literal::Tuple(items) => items.iter().map(dim).collect::<Option<Vec<_>>>(),
        item => dim(item).map(|dim| vec![dim]),
    };
    dims.ok_or_else(|| {
        Error::syntax("expected an integer or a tuple of integers as the shape of a field")
    })
}

/// Returns the type of elements with this type string, and the number of bytes of each element.
fn elements(text: &[u8]) -> Result<(Elements, usize)> {
    let (order, code) = numpy::byte_order(text);
    if let Some(times) = Times::of_code(code).filter(|_| order != b'|') {
        return Ok((Elements::Times(times, ByteOrder::of(order)), size_of::<i64>()));
    }
    let refused = match numpy::parse(text) {
        Ok((dtype, big_endian)) => {
            let len = dtype.byte_len(1).unwrap_or(0);
            let order = if big_endian { ByteOrder::Big } else { ByteOrder::Little };
            return Ok((Elements::Tensor(dtype, order), len));
        }
        Err(error) => error,
    };
    match Texts::of(text) {
        Some(texts) if texts.byte_len() == 0 => {
            return Ok((Elements::Refused("texts without characters are not read".to_owned()), 0));
        }
        Some(texts) => return Ok((Elements::Texts(texts), texts.byte_len())),
        None => {}
    }
    let width = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u32>().ok();
    if let [b'V', digits @ ..] = code
        && let Some(len) = width(digits)
    {
        return Ok((Elements::Void(len as usize, ByteOrder::of(order)), len as usize));
    }
    // The size of other elements follows the first character of their type string. In dates, the unit follows the size.
    let digits: Vec<u8> = code.iter().skip(1).copied().take_while(u8::is_ascii_digit).collect();
    // An array with objects is pickled as a whole, so none of its fields can be read.
    match width(&digits).filter(|_| !code.starts_with(b"O")) {
        Some(len) => Ok((Elements::Refused(refused.message().clone()), len as usize)),
        None => Err(refused),
    }
}

#[cfg(test)]
mod tests {
    use super::super::literal;
    use super::*;

    fn parsed(descr: &str) -> Result<(Vec<Column>, usize)> {
        let decode = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        parse(&literal::parse(descr.as_bytes(), 0)?, decode)
    }

    #[test]
    fn records_are_columns_at_their_places() {
        let (columns, len) = parsed(
            "[('id', '<i4'), ('', '|V4'), (('a title', 'x'), [('y', '>f8', (2, 3)), ('s', '<U5')]), ('b', '|S3')]",
        )
        .unwrap();
        let found: Vec<_> =
            columns.iter().map(|c| (&*c.path, &c.shape[..], c.offset, c.len)).collect();
        let expected: [(&str, &[usize], usize, usize); 4] =
            [("id", &[], 0, 4), ("x.y", &[2, 3], 8, 48), ("x.s", &[], 56, 20), ("b", &[], 76, 3)];
        assert_eq!(found, expected);
        assert_eq!(len, 79);
        assert_eq!(columns[1].elements, Elements::Tensor(DType::F64, ByteOrder::Big));
        assert_eq!(columns[2].elements, Elements::Texts(Texts::Unicode(5, ByteOrder::Little)));
        let (columns, len) = parsed("'<f4'").unwrap();
        assert_eq!((columns.len(), &*columns[0].path, len), (1, "", 4));
        let (columns, _) = parsed("[('a', [('b', '<f4')], (3,)), ('d', '<M8[ns]')]").unwrap();
        assert!(matches!(columns[0].elements, Elements::Refused(_)), "{columns:?}");
        assert!(
            matches!(columns[1].elements, Elements::Times(_, ByteOrder::Little)),
            "{columns:?}"
        );
        assert_eq!((columns[1].offset, columns[1].len), (12, 8));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for descr in [
            "[('a',)]",
            "['a']",
            "[(3, '<f4')]",
            "[('a', '<f4', (-1,))]",
            "[('a', '<f4', 'x')]",
            "('a', '<f4')",
            "None",
            "[('a', '|O')]",
            "[('a', '|O8')]",
            "[('a', '<f4', (1000000,))]",
            "[('a', '<f4', (18446744073709551615, 18446744073709551615))]",
            "[('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', '<f4')])])])])])])])])]",
        ] {
            assert!(parsed(descr).is_err(), "{descr}");
        }
    }
}
