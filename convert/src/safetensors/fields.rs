//! What stands in the JSON of headers and indices. What stands there twice, or is not named in the text of
//! the format, is refused rather than passed over, as it would be lost.

use serde::de::{Error as _, IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use tenarc::{DType, Error, Result};

use super::dtype;
use crate::exported::{METADATA, Metadata};
use crate::json_text::{self, FromObject, Object, as_object};

/// A header as it stands there.
#[derive(Default)]
pub struct Parsed {
    pub metadata: Option<Metadata>,
    pub tensors: Vec<Entry>,
}

pub struct Entry {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// Start and end of its bytes, counted from the end of the header.
    pub range: (u64, u64),
}

pub fn header(text: &[u8]) -> Result<Parsed> {
    json_text::parse(text)
}

/// What an entry says of a tensor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(deserialize_with = "code")]
    dtype: DType,
    shape: Vec<usize>,
    #[serde(deserialize_with = "offsets")]
    data_offsets: (u64, u64),
}

fn code<'de, D: Deserializer<'de>>(json: D) -> Result<DType, D::Error> {
    let name = String::deserialize(json)?;
    dtype::from_name(&name)
        .ok_or_else(|| D::Error::custom(format!("safetensors 0.8 has no dtype named `{name}`")))
}

fn offsets<'de, D: Deserializer<'de>>(json: D) -> Result<(u64, u64), D::Error> {
    match Vec::deserialize(json)?[..] {
        [first, behind] => Ok((first, behind)),
        ref found => Err(D::Error::invalid_length(found.len(), &"an array of two offsets")),
    }
}

impl<'de> FromObject<'de> for Fields {
    const WHAT: &'static str = "an object with dtype, shape and data_offsets";

    fn from_entries<A: MapAccess<'de>>(entries: A) -> Result<Self, A::Error> {
        json_text::fields(entries)
    }
}

impl<'de> FromObject<'de> for Parsed {
    const WHAT: &'static str = "an object of tensors";

    fn from_entries<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let (mut tensors, mut metadata) = (Vec::new(), None);
        while let Some(name) = entries.next_key::<String>()? {
            if name == METADATA {
                if metadata.replace(entries.next_value::<Option<Object<_>>>()?).is_some() {
                    return Err(A::Error::duplicate_field(METADATA));
                }
                continue;
            }
            let Object(Fields { dtype, shape, data_offsets: range }) = entries.next_value()?;
            tensors.push(Entry { name, dtype, shape, range });
        }
        Ok(Self { metadata: metadata.flatten().map(|Object(texts)| texts), tensors })
    }
}

/// An index as it stands there.
#[derive(Default)]
pub struct Index {
    /// The keys of `metadata`, and those numbers there that are whole.
    pub numbers: Vec<(String, Option<u64>)>,
    /// Tensor and file.
    pub weight_map: Option<Metadata>,
    /// Keys beside those two.
    pub unknown: Vec<String>,
}

pub fn index(text: &[u8]) -> Result<Index> {
    json_text::parse(text)
}

impl<'de> FromObject<'de> for Index {
    const WHAT: &'static str = "an object with weight_map";

    fn from_entries<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let (mut weight_map, mut metadata, mut unknown) = (None, None, Vec::new());
        while let Some(field) = entries.next_key::<String>()? {
            let twice = match field.as_str() {
                "weight_map" => {
                    weight_map.replace(entries.next_value()?).is_some().then_some("weight_map")
                }
                "metadata" => {
                    metadata.replace(entries.next_value()?).is_some().then_some("metadata")
                }
                _ => {
                    entries.next_value::<IgnoredAny>()?;
                    unknown.push(field);
                    None
                }
            };
            if let Some(field) = twice {
                return Err(A::Error::duplicate_field(field));
            }
        }
        let metadata: Option<Object<Vec<_>>> = metadata.flatten();
        let number = |(key, value): (String, &RawValue)| (key, value.get().parse().ok());
        let numbers = metadata.into_iter().flat_map(|Object(pairs)| pairs).map(number).collect();
        Ok(Self { numbers, weight_map: weight_map.map(|Object(pairs)| pairs), unknown })
    }
}

/// Appends `{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}`.
pub fn put_tensor(
    out: &mut Vec<u8>,
    dtype: &str,
    shape: &[usize],
    data_offsets: (u64, u64),
) -> Result<()> {
    #[derive(Serialize)]
    struct Tensor<'a> {
        dtype: &'a str,
        shape: &'a [usize],
        data_offsets: (u64, u64),
    }
    json_text::put(out, &Tensor { dtype, shape, data_offsets })
}

/// An index, laid out as Python's `json.dumps(index, indent=2)` does.
pub fn write_index(total: u64, weights: &[(String, String)]) -> Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Totals {
        total_size: u64,
    }
    #[derive(Serialize)]
    struct Index<'a> {
        metadata: Totals,
        #[serde(serialize_with = "as_object")]
        weight_map: &'a [(String, String)],
    }
    let index = Index { metadata: Totals { total_size: total }, weight_map: weights };
    let mut text = serde_json::to_vec_pretty(&index).map_err(|error| Error::io(error.into()))?;
    text.push(b'\n');
    Ok(text)
}
