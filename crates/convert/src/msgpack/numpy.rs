//! Reads arrays and scalars in the form of msgpack-numpy: a map with the dtype, the shape and the bytes.

use tenarc::de::Limits;
use tenarc::tensor::{Order, Shape, TensorMeta};
use tenarc::{DType, Error, Result, Value};

use super::item::{DATA, EXTENSION, Found, FoundTexts, Item};
use crate::input::Stretch;
use crate::numpy::{self, Texts};
use crate::texts::NO_SHAPE;

/// The keys of a map that describes an array or a scalar.
const FIELDS: [&str; 5] = ["nd", "type", "kind", "shape", "data"];
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

/// Returns the array, scalar or complex number that a map describes, or else the map. A map with further keys is an
/// ordinary map.
pub fn recognised(mut entries: Vec<(Value, Item)>, at: u64, limits: Limits) -> Result<Item> {
    let known = |name: &str| entries.iter().filter(|(key, _)| named(key, name)).count() == 1;
    let fields = FIELDS.iter().filter(|name| known(name)).count();
    let whole = fields == entries.len();
    let (nd, complex, extension) = (known("nd"), known(COMPLEX), known(EXTENSION));
    let (data, dtype) = (known(DATA), known("type"));
    let mut take = |name: &str| {
        let (_, item) = entries.iter_mut().find(|(key, _)| named(key, name))?;
        Some(std::mem::replace(item, Item::Plain(Value::Null)))
    };
    if whole && nd && data && dtype {
        return match take("nd") {
            Some(Item::Plain(Value::Bool(array))) => found(array, &mut take, at, limits),
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
    Item::Tensor(Box::new(Found { meta, big_endian, data, at }))
}

fn found(
    array: bool,
    take: &mut dyn FnMut(&str) -> Option<Item>,
    at: u64,
    limits: Limits,
) -> Result<Item> {
    let kind = match take("kind") {
        None | Some(Item::Plain(Value::Null)) => Vec::new(),
        Some(item) => bytes_of(item).unwrap_or_else(|| b"?".to_vec()),
    };
    match kind.as_slice() {
        b"" => {}
        b"V" => {
            let what = "a structured array (kind V) is not a tensor; save each field by itself";
            return Err(Error::data(what));
        }
        b"O" => {
            let what =
                "an object array (kind O) consists of pickled Python objects, which are never read";
            return Err(Error::data(what));
        }
        other => {
            let other = String::from_utf8_lossy(other.get(..16).unwrap_or(other)).into_owned();
            let what = format!("the numpy array has the unknown kind `{}`", other.escape_debug());
            return Err(Error::data(what));
        }
    }
    let descr = match take("type") {
        Some(Item::Array(_)) => {
            let what = "a structured array is not a tensor; save each field by itself";
            return Err(Error::data(what));
        }
        Some(item) => bytes_of(item),
        None => None,
    };
    let descr = descr.ok_or_else(|| Error::syntax("expected a string for `type`"))?;
    let texts = Texts::of(&descr).filter(|texts| texts.byte_len() > 0);
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
    let mismatch = |found: u64, what: &str| {
        Error::syntax(format!("{found} bytes do not make {what} of shape {shape:?}"))
    };
    if let Some(texts) = texts {
        let expected = count.and_then(|count| count.checked_mul(texts.byte_len()));
        if expected.map(|len| len as u64) != Some(data.len()) {
            return Err(mismatch(data.len(), "a string array"));
        }
        if shape.len() > 1 && shape.contains(&0) {
            return Err(Error::data(NO_SHAPE));
        }
        return Ok(Item::Texts(Box::new(FoundTexts { texts, shape, data })));
    }
    let (dtype, big_endian) = numpy::parse(&descr)?;
    let expected = count.and_then(|count| dtype.byte_len(count));
    if expected.map(|len| len as u64) != Some(data.len()) {
        return Err(mismatch(data.len(), &format!("a {dtype} tensor")));
    }
    Ok(tensor(dtype, &shape, big_endian, data, at))
}

fn bytes_of(item: Item) -> Option<Vec<u8>> {
    match item {
        Item::Plain(Value::Text(text)) => Some(text.into_bytes()),
        Item::Bytes(Stretch::Held(bytes)) => Some(bytes),
        _ => None,
    }
}

fn dims_of(dims: &[Item], limits: Limits) -> Result<Vec<usize>> {
    if dims.len() > limits.max_rank() {
        let (found, most) = (dims.len(), limits.max_rank());
        return Err(Error::limit(format!(
            "the array has {found} dimensions, expected at most {most}"
        )));
    }
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
