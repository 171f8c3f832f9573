//! Reads arrays and scalars in the form of msgpack-numpy: a map with the dtype, the shape and the bytes.

use std::mem;

use tenarc::de::Limits;
use tenarc::tensor::{Order, Shape, TensorMeta};
use tenarc::{DType, Error, Result, Value};

use super::item::{DATA, EXTENSION, Field, Found, FoundTexts, Item};
use crate::input::Stretch;
use crate::nested::{self, Key, Node};
use crate::numpy::ByteOrder;
use crate::numpy::columns::{self, Column, Elements};
use crate::numpy::literal::Literal;
use crate::place::Place;
use crate::support::is_of_array;
use crate::texts::NO_SHAPE;

/// The keys of a map that describes an array or a scalar.
const FIELDS: [&str; 5] = ["nd", "type", "kind", "shape", "data"];
const NULL: Item = Item::Plain(Value::Null);
const COMPLEX: &str = "complex";

fn named(key: &Value, name: &str) -> bool {
    // msgpack-numpy uses byte strings as keys. A packer without `use_bin_type` writes them as strings.
    match key {
        Value::Text(text) => text == name,
        Value::Bytes(bytes) => bytes == name.as_bytes(),
        _ => false,
    }
}

/// Returns whether a reader could take a map for something else: an array, a complex number or an extension.
pub fn is_special<T>(entries: &[(Value, T)]) -> bool {
    let has = |name| entries.iter().any(|(key, _)| named(key, name));
    let count = entries.len();
    let data = has(DATA);
    count == 2 && data && (has(COMPLEX) || has(EXTENSION))
        || (3..=5).contains(&count) && data && has("nd") && has("type")
}

/// Takes memory from the budget.
type Charge<'c> = dyn FnMut(u64) -> Result<()> + 'c;

/// Returns whether a map that describes an array, a complex number or an extension has this key.
pub fn is_part(key: &Value) -> bool {
    FIELDS.iter().chain([&COMPLEX, &EXTENSION]).any(|name| named(key, name))
}

/// Returns the array, scalar or complex number that a map describes, or else the map. A map with further keys is an
/// ordinary map.
/// `charge` takes the memory that texts need.
pub fn recognised(
    mut entries: Vec<(Value, Item)>,
    at: u64,
    limits: Limits,
    charge: &mut Charge<'_>,
) -> Result<Item> {
    let known = |name: &str| entries.iter().filter(|(key, _)| named(key, name)).count() == 1;
    let fields = FIELDS.iter().filter(|name| known(name)).count();
    let whole = fields == entries.len();
    let (nd, complex, extension) = (known("nd"), known(COMPLEX), known(EXTENSION));
    let (data, dtype) = (known(DATA), known("type"));
    let mut take = |name: &str| {
        let (_, item) = entries.iter_mut().find(|(key, _)| named(key, name))?;
        Some(mem::replace(item, NULL))
    };
    if whole && nd && data && dtype {
        return match take("nd") {
            Some(Item::Plain(Value::Bool(array))) => found(array, &mut take, at, limits, charge),
            _ => Err(Error::syntax("expected a bool for `nd` of a numpy array")),
        };
    }
    if entries.len() == 2 && data && complex {
        let text = entries.iter_mut().find(|(key, _)| named(key, DATA));
        let parsed = match text.map(|(_, item)| &*item) {
            Some(Item::Plain(Value::Text(text))) => complex_of(text),
            Some(Item::Bytes(Stretch::Held(text))) => {
                std::str::from_utf8(text).ok().and_then(complex_of)
            }
            _ => None,
        };
        let Some((re, im)) = parsed else {
            return Err(Error::syntax(
                "expected a complex number as Python writes it, such as `(1+2j)`",
            ));
        };
        return Ok(complex_number(re, im, at));
    }
    if entries.len() == 2 && data && extension {
        // Extensions are read as such maps. If this map were accepted, it would be written as an extension.
        let name = EXTENSION;
        return Err(Error::data(format!(
            "a map with only the keys `{name}` and `data` is reserved for extensions"
        )));
    }
    Ok(Item::Map(entries))
}

/// Returns a complex number of Python as a tensor without dimensions.
pub fn complex_number(re: f64, im: f64, at: u64) -> Item {
    let data = [re.to_le_bytes(), im.to_le_bytes()].concat();
    tensor(DType::C128, &[], false, Stretch::Held(data), at)
}

fn tensor(dtype: DType, shape: &[usize], big_endian: bool, data: Stretch, at: u64) -> Item {
    let meta = TensorMeta { dtype, shape: Shape::from(shape), order: Order::C };
    Item::Tensor(Box::new(Found { meta, big_endian, data, field: None, at }))
}

fn found(
    array: bool,
    take: &mut dyn FnMut(&str) -> Option<Item>,
    at: u64,
    limits: Limits,
    charge: &mut Charge<'_>,
) -> Result<Item> {
    let kind = match take("kind") {
        None | Some(Item::Plain(Value::Null)) => Vec::new(),
        Some(item) => bytes_of(item).unwrap_or_else(|| b"?".to_vec()),
    };
    match kind.as_slice() {
        b"" | b"V" => {}
        b"O" => {
            let what =
                "an object array (kind O) consists of pickled Python objects, which are never read";
            return Ok(Item::Lost(what.to_owned()));
        }
        other => {
            let other = String::from_utf8_lossy(other.get(..16).unwrap_or(other)).into_owned();
            let what = format!("the numpy array has the unknown kind `{}`", other.escape_debug());
            return Ok(Item::Lost(what));
        }
    }
    let descr = take("type").ok_or_else(|| Error::syntax("expected a string for `type`"))?;
    let (columns, record) = match columns_of(&descr) {
        Ok(found) => found,
        Err(error) if is_of_array(&error) => {
            return Ok(Item::Lost(error.message().clone()));
        }
        Err(error) => return Err(error),
    };
    let shape = match take("shape") {
        Some(Item::Array(dims)) if array => dims_of(&dims, limits)?,
        None if !array => Vec::new(),
        _ => return Err(Error::syntax("expected an array of dimensions for `shape`")),
    };
    let data = match take(DATA) {
        Some(Item::Bytes(data)) => data,
        // Old packers write bytes as strings.
        Some(Item::Raw(bytes, _)) => Stretch::Held(bytes),
        Some(Item::Plain(Value::Text(text))) => Stretch::Held(text.into_bytes()),
        _ => return Err(Error::syntax("expected bytes for `data`")),
    };
    let count = Shape::from(&shape[..]).element_count();
    let expected = count.and_then(|count| count.checked_mul(record));
    if expected.map(|len| len as u64) != Some(data.len()) {
        let what = match &*columns {
            [Column { path, elements: Elements::Tensor(dtype, _), .. }] if path.is_empty() => {
                format!("a {dtype} tensor")
            }
            [Column { path, .. }] if path.is_empty() => "a string array".to_owned(),
            _ => "a structured array".to_owned(),
        };
        let found = data.len();
        return Err(Error::syntax(format!("{found} bytes do not make {what} of shape {shape:?}")));
    }
    if let [column] = &*columns
        && column.path.is_empty()
    {
        return column_of(column, &shape, None, data, at, limits, charge);
    }
    let mut items = Vec::new();
    for column in &columns {
        let place = Place { offset: column.offset, len: column.len };
        let field = Some(Field { place, record });
        charge(size_of::<(Value, Item, Found)>() as u64)?;
        // Short arrays are in memory, and each field has a part of them.
        let (data, field) = match &data {
            Stretch::Held(bytes) => (Stretch::Held(place.of_each(bytes, record)), None),
            stretch @ Stretch::At { .. } => (stretch.clone(), field),
        };
        items.push(column_of(column, &shape, field, data, at, limits, charge)?);
    }
    match nested::tree(columns.iter().map(|column| &*column.path)) {
        Ok(entries) => Ok(nested_items(Node::Map(entries), &mut items)),
        Err(error) => Ok(Item::Lost(error.message().clone())),
    }
}

/// Puts items into the maps in which their numbers are.
fn nested_items(node: Node<'_>, items: &mut [Item]) -> Item {
    match node {
        Node::Leaf(number) => {
            let item = items.get_mut(number).map(|item| mem::replace(item, NULL));
            item.unwrap_or(NULL)
        }
        Node::List(nodes) => {
            Item::Array(nodes.into_iter().map(|node| nested_items(node, items)).collect())
        }
        Node::Map(entries) => {
            let entries = entries.into_iter().map(|(key, node)| {
                let key = match key {
                    Key::Text(text) => Value::from(text),
                    #[cfg(feature = "torch")]
                    Key::Integer(number) => Value::from(number),
                };
                (key, nested_items(node, items))
            });
            Item::Map(entries.collect())
        }
        #[cfg(feature = "torch")]
        Node::Null => NULL,
    }
}

/// Returns the columns of a `type`, and the number of bytes of a record, or of an element.
fn columns_of(descr: &Item) -> Result<(Vec<Column>, usize)> {
    let literal = literal(descr).ok_or_else(|| Error::syntax("expected a string for `type`"))?;
    let decode = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    columns::parse(&literal, decode)
}

/// Returns a `type` in the form that it has in an npy file: a text, or a list of fields.
fn literal(descr: &Item) -> Option<Literal<'_>> {
    fn text(item: &Item) -> Option<Literal<'_>> {
        match item {
            Item::Plain(Value::Text(text)) => Some(Literal::Text(text.as_bytes())),
            Item::Bytes(Stretch::Held(bytes)) => Some(Literal::Text(bytes)),
            _ => None,
        }
    }
    fn dim(item: &Item) -> Option<Literal<'_>> {
        let Item::Plain(Value::Integer(dim)) = item else { return None };
        Some(Literal::Int { negative: *dim < 0, value: u64::try_from(*dim).ok() })
    }
    fn name(item: &Item) -> Option<Literal<'_>> {
        match item {
            // A title and the name.
            Item::Array(names) => {
                Some(Literal::Tuple(names.iter().map(text).collect::<Option<_>>()?))
            }
            name => text(name),
        }
    }
    fn field(field: &Item) -> Option<Literal<'_>> {
        let Item::Array(parts) = field else { return None };
        let (first, parts) = parts.split_first()?;
        let (descr, dims) = parts.split_first()?;
        let mut tuple = vec![name(first)?, literal(descr)?];
        if let [dims] = dims {
            tuple.push(match dims {
                Item::Array(dims) => Literal::Tuple(dims.iter().map(dim).collect::<Option<_>>()?),
                only => dim(only)?,
            });
        }
        Some(Literal::Tuple(tuple))
    }
    let Item::Array(fields) = descr else { return text(descr) };
    Some(Literal::List(fields.iter().map(field).collect::<Option<_>>()?))
}

/// Returns a column of an array of this shape.
fn column_of(
    column: &Column,
    shape: &[usize],
    field: Option<Field>,
    data: Stretch,
    at: u64,
    limits: Limits,
    charge: &mut Charge<'_>,
) -> Result<Item> {
    let shape: Vec<usize> = shape.iter().chain(&column.shape).copied().collect();
    check_rank(shape.len(), limits)?;
    Ok(match &column.elements {
        Elements::Tensor(dtype, order) => {
            let (dtype, big_endian) = (dtype.clone(), *order == ByteOrder::Big);
            let meta = TensorMeta { dtype, shape: Shape::from(&shape[..]), order: Order::C };
            Item::Tensor(Box::new(Found { meta, big_endian, data, field, at }))
        }
        Elements::Texts(_) if shape.len() > 1 && shape.contains(&0) => {
            Item::Lost(NO_SHAPE.to_owned())
        }
        Elements::Texts(texts) => {
            let found = FoundTexts { texts: *texts, shape, data, field };
            // The memory of the texts, and of a value for each of them.
            let values = found.count().saturating_mul(size_of::<Value>() as u64);
            charge(found.byte_len().saturating_add(values))?;
            Item::Texts(Box::new(found))
        }
        Elements::Times(times, _) => {
            let descr = times.descr();
            Item::Lost(format!("dtype `{descr}` is not read: save times and durations as integers"))
        }
        Elements::Void(len, _) => Item::Lost(format!("its elements are {len} raw bytes each")),
        Elements::Refused(why) => Item::Lost(why.clone()),
    })
}

fn bytes_of(item: Item) -> Option<Vec<u8>> {
    match item {
        Item::Plain(Value::Text(text)) => Some(text.into_bytes()),
        Item::Bytes(Stretch::Held(bytes)) => Some(bytes),
        _ => None,
    }
}

fn check_rank(found: usize, limits: Limits) -> Result<()> {
    let most = limits.max_rank();
    if found > most {
        let what = format!("the array has {found} dimensions, expected at most {most}");
        return Err(Error::limit(what));
    }
    Ok(())
}

fn dims_of(dims: &[Item], limits: Limits) -> Result<Vec<usize>> {
    check_rank(dims.len(), limits)?;
    let dim = |item: &Item| match item {
        Item::Plain(Value::Integer(dim)) => usize::try_from(*dim).ok(),
        _ => None,
    };
    let dims = dims.iter().map(dim).collect::<Option<Vec<_>>>();
    dims.ok_or_else(|| Error::syntax("expected whole numbers as dimensions"))
}

/// Parses a complex number in the form of Python's `repr`. Returns its real and imaginary part.
fn complex_of(text: &str) -> Option<(f64, f64)> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    let Some(parts) = inner.strip_suffix('j') else { return Some((float_of(inner)?, 0.0)) };
    let bytes = parts.as_bytes();
    // The sign between the parts is not the first character, and does not follow the `e` of an exponent.
    let split = (1..bytes.len()).rev().find(|&at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        matches!(bytes.get(at), Some(b'+' | b'-')) && !matches!(before, Some(b'e' | b'E'))
    });
    match split {
        None => Some((0.0, float_of(parts)?)),
        Some(at) => Some((float_of(parts.get(..at)?)?, float_of(parts.get(at..)?)?)),
    }
}

fn float_of(text: &str) -> Option<f64> {
    let plain = text.trim_start_matches(['+', '-']);
    let known = matches!(plain, "nan" | "inf") || plain.starts_with(|c: char| c.is_ascii_digit());
    known.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complex_numbers_are_read_as_python_writes_them() {
        let cases = [
            ("(1+2j)", (1.0, 2.0)),
            ("2j", (0.0, 2.0)),
            ("(-0-1e-05j)", (-0.0, -1e-5)),
            ("(1e+16+1e-07j)", (1e16, 1e-7)),
            ("(-inf+infj)", (f64::NEG_INFINITY, f64::INFINITY)),
        ];
        for (text, (re, im)) in cases {
            let (found_re, found_im) = complex_of(text).unwrap();
            assert_eq!((found_re.to_bits(), found_im.to_bits()), (re.to_bits(), im.to_bits()));
        }
        assert!(complex_of("(nan+nanj)").is_some_and(|(re, im)| re.is_nan() && im.is_nan()));
        for wrong in ["", "j", "(j)", "1+j", "infinityj", "1e", "--1j", "(1+2j", "1+2+3j", "é+j"] {
            assert!(complex_of(wrong).is_none(), "{wrong}");
        }
    }
}
