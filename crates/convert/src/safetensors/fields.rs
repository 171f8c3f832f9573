//! Reads and writes the JSON of headers, and writes that of indices. Repeated keys, and fields of a tensor that the specification does
//! not name, are errors: if they were ignored, a conversion would lose them.

use serde::de::{Error as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use tenarc::{DType, Error, Result};

use super::dtype;
use crate::exported::{METADATA, Metadata};
use crate::json_text::{self, FromObject, Object, as_object};

/// A parsed header that is not yet checked against its file.
#[derive(Default)]
pub struct Parsed {
    pub metadata: Option<Metadata>,
    pub tensors: Vec<Entry>,
}

pub struct Entry {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// The start and the end of its bytes, as offsets from the end of the header.
    pub range: (u64, u64),
}

pub fn header(text: &[u8]) -> Result<Parsed> {
    json_text::parse(text)
}

/// The description of a tensor in a header.
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

/// Appends the description of a tensor: `{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}`.
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

/// Returns the text of an index, formatted like the output of Python's `json.dumps(index, indent=2)`.
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
