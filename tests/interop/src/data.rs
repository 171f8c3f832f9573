//! What a message holds, in words every language can check: the form in which manifests say what
//! the files beside them contain.
//!
//! In JSON a value is `{"t": kind, ...}`. Integers are decimal text and floats the hexadecimal
//! digits of their bits, because JSON readers round both; payloads are little-endian bytes in
//! hexadecimal digits.

use std::fmt::Write;

use serde_json::{Value as Json, json};

/// A value, described.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Null,
    Undefined,
    /// Another simple value.
    Simple(u8),
    Bool(bool),
    Integer(i128),
    /// The bits of a single float.
    F32(u32),
    /// The bits of a double float.
    F64(u64),
    /// The bits, as a double, of a float of any width: for writers that choose the width.
    Float(u64),
    Text(String),
    Bytes(Vec<u8>),
    Array(Vec<Data>),
    Map(Vec<(Data, Data)>),
    Tag(u64, Box<Data>),
    /// A bare typed array.
    Numbers {
        dtype: String,
        bytes: Vec<u8>,
    },
    Tensor(Tensor),
}

/// A tensor, described.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub dtype: String,
    pub shape: Vec<usize>,
    /// `"C"` or `"F"`; always `"C"` below two dimensions.
    pub order: String,
    /// The elements in that order, little-endian.
    pub bytes: Vec<u8>,
}

impl Data {
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    pub fn single(value: f32) -> Self {
        Self::F32(value.to_bits())
    }

    pub fn double(value: f64) -> Self {
        Self::F64(value.to_bits())
    }

    pub fn array(items: impl IntoIterator<Item = Self>) -> Self {
        Self::Array(items.into_iter().collect())
    }

    pub fn integers<T: Into<i128>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::array(items.into_iter().map(|item| Self::Integer(item.into())))
    }

    /// A map with text keys.
    pub fn object<const N: usize>(entries: [(&str, Self); N]) -> Self {
        Self::Map(entries.into_iter().map(|(key, item)| (Self::text(key), item)).collect())
    }

    /// Whether a reader that knows no tags can read it.
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Integer(value) => value.unsigned_abs() <= u128::from(u64::MAX),
            Self::Array(items) => items.iter().all(Self::is_plain),
            Self::Map(entries) => {
                entries.iter().all(|(key, item)| key.is_plain() && item.is_plain())
            }
            Self::Tag(..) | Self::Numbers { .. } | Self::Tensor(_) => false,
            _ => true,
        }
    }

    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => json!({"t": "null"}),
            Self::Undefined => json!({"t": "undefined"}),
            Self::Simple(value) => json!({"t": "simple", "v": value}),
            Self::Bool(value) => json!({"t": "bool", "v": value}),
            Self::Integer(value) => json!({"t": "int", "v": value.to_string()}),
            Self::F32(bits) => json!({"t": "f32", "v": format!("{bits:08x}")}),
            Self::F64(bits) => json!({"t": "f64", "v": format!("{bits:016x}")}),
            Self::Float(bits) => json!({"t": "float", "v": format!("{bits:016x}")}),
            Self::Text(text) => json!({"t": "text", "v": text}),
            Self::Bytes(bytes) => json!({"t": "bytes", "v": hex(bytes)}),
            Self::Array(items) => {
                json!({"t": "array", "v": items.iter().map(Self::to_json).collect::<Vec<_>>()})
            }
            Self::Map(entries) => {
                let pair = |(key, item): &(Self, Self)| json!([key.to_json(), item.to_json()]);
                json!({"t": "map", "v": entries.iter().map(pair).collect::<Vec<_>>()})
            }
            Self::Tag(tag, content) => json!({"t": "tag", "tag": tag, "v": content.to_json()}),
            Self::Numbers { dtype, bytes } => {
                json!({"t": "numbers", "dtype": dtype, "v": hex(bytes)})
            }
            Self::Tensor(Tensor { dtype, shape, order, bytes }) => json!({
                "t": "tensor", "dtype": dtype, "shape": shape, "order": order, "v": hex(bytes),
            }),
        }
    }

    /// The inverse of [`Data::to_json`]; `None` where a manifest is not of that form.
    pub fn from_json(json: &Json) -> Option<Self> {
        let content = &json["v"];
        Some(match json["t"].as_str()? {
            "null" => Self::Null,
            "undefined" => Self::Undefined,
            "simple" => Self::Simple(content.as_u64()?.try_into().ok()?),
            "bool" => Self::Bool(content.as_bool()?),
            "int" => Self::Integer(content.as_str()?.parse().ok()?),
            "f32" => Self::F32(u32::from_str_radix(content.as_str()?, 16).ok()?),
            "f64" => Self::F64(u64::from_str_radix(content.as_str()?, 16).ok()?),
            "float" => Self::Float(u64::from_str_radix(content.as_str()?, 16).ok()?),
            "text" => Self::text(content.as_str()?),
            "bytes" => Self::Bytes(unhex(content.as_str()?)?),
            "array" => {
                Self::Array(content.as_array()?.iter().map(Self::from_json).collect::<Option<_>>()?)
            }
            "map" => {
                let pair =
                    |json: &Json| Some((Self::from_json(&json[0])?, Self::from_json(&json[1])?));
                Self::Map(content.as_array()?.iter().map(pair).collect::<Option<_>>()?)
            }
            "tag" => Self::Tag(json["tag"].as_u64()?, Box::new(Self::from_json(content)?)),
            "numbers" => Self::Numbers {
                dtype: json["dtype"].as_str()?.into(),
                bytes: unhex(content.as_str()?)?,
            },
            "tensor" => {
                let dimension = |json: &Json| json.as_u64().and_then(|dim| dim.try_into().ok());
                Self::Tensor(Tensor {
                    dtype: json["dtype"].as_str()?.into(),
                    shape: json["shape"]
                        .as_array()?
                        .iter()
                        .map(dimension)
                        .collect::<Option<_>>()?,
                    order: json["order"].as_str()?.into(),
                    bytes: unhex(content.as_str()?)?,
                })
            }
            _ => return None,
        })
    }

    /// Compares what was read with what a manifest says.
    ///
    /// # Errors
    /// The first difference, with its place.
    pub fn matches(&self, wanted: &Self) -> Result<(), String> {
        let differ = || Err(format!("found {}, wanted {}", self.shown(), wanted.shown()));
        match (self, wanted) {
            (Self::Array(found), Self::Array(wanted)) => {
                if found.len() != wanted.len() {
                    return differ();
                }
                for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                    found.matches(wanted).map_err(|error| format!("[{index}] {error}"))?;
                }
                Ok(())
            }
            (Self::Map(found), Self::Map(wanted)) => {
                if found.len() != wanted.len() {
                    return differ();
                }
                // Not every language keeps the order of keys, so neither does a manifest.
                for (key, wanted) in wanted {
                    let Some((_, found)) =
                        found.iter().find(|(other, _)| other.matches(key).is_ok())
                    else {
                        return Err(format!("no key {}", key.shown()));
                    };
                    found.matches(wanted).map_err(|error| format!("{} {error}", key.shown()))?;
                }
                Ok(())
            }
            (Self::Tag(found, content), Self::Tag(tag, wanted)) if found == tag => {
                content.matches(wanted).map_err(|error| format!("tag {tag} {error}"))
            }
            (_, Self::Float(wanted)) => match self.as_double() {
                Some(found) if same(found, f64::from_bits(*wanted)) => Ok(()),
                _ => differ(),
            },
            // A reader that knows one float type only has lost the width, not the value.
            (Self::Float(found), Self::F32(_) | Self::F64(_)) => match wanted.as_double() {
                Some(wanted) if same(f64::from_bits(*found), wanted) => Ok(()),
                _ => differ(),
            },
            _ if self == wanted => Ok(()),
            _ => differ(),
        }
    }

    fn as_double(&self) -> Option<f64> {
        match *self {
            Self::F32(bits) => Some(f32::from_bits(bits).into()),
            Self::F64(bits) | Self::Float(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// A line for messages: whole payloads help nobody.
    fn shown(&self) -> String {
        let mut text = self.to_json().to_string();
        if text.len() > 200 {
            let end = (0..=200).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.truncate(end);
            text.push_str("...");
        }
        text
    }
}

/// Widening a NaN may quiet it, so all NaNs are one here; tensors are compared by their bytes.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}
