//! What stands in the JSON of headers and indices. What stands there twice, or is not named in the text of
//! the format, is refused rather than passed over, as it would be lost.

use tenarc::{DType, Error, Result};

use super::dtype;
use crate::exported::{METADATA, Metadata};
use crate::strict_json::{Json, put_text};

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
    let mut parsed = Parsed::default();
    let mut seen = false;
    let mut json = Json::new(text)?;
    json.object("an object of tensors", |json, name, at| {
        if name != METADATA {
            let entry = entry(json).map_err(|error| error.in_field(name.as_str()));
            let (dtype, shape, range) = entry?;
            parsed.tensors.push(Entry { name, dtype, shape, range });
            return Ok(());
        }
        once(&mut seen, METADATA, at)?;
        if !json.null() {
            parsed.metadata = Some(texts(json).map_err(|error| error.in_field(METADATA))?);
        }
        Ok(())
    })?;
    json.end()?;
    Ok(parsed)
}

/// Dtype, shape and range.
type Fields = (DType, Vec<usize>, (u64, u64));

fn entry(json: &mut Json<'_>) -> Result<Fields> {
    let start = json.offset();
    let (mut dtype, mut shape, mut range) = (None, None, None);
    json.object("an object with dtype, shape and data_offsets", |json, field, at| {
        let twice = match field.as_str() {
            "dtype" => dtype.replace(code(json)?).is_some(),
            "shape" => {
                shape.replace(dims(json).map_err(|error| error.in_field("shape"))?).is_some()
            }
            "data_offsets" => range.replace(offsets(json)?).is_some(),
            _ => {
                let what =
                    "expected no further field than dtype, shape and data_offsets, found one";
                return Err(Error::data(what).in_field(field).at(at));
            }
        };
        if twice { Err(found_twice(&field, at)) } else { Ok(()) }
    })?;
    let missing = |field: &str| {
        let what = format!("expected a field {field}, found none");
        Error::data(what).at(start)
    };
    Ok((
        dtype.ok_or_else(|| missing("dtype"))?,
        shape.ok_or_else(|| missing("shape"))?,
        range.ok_or_else(|| missing("data_offsets"))?,
    ))
}

fn code(json: &mut Json<'_>) -> Result<DType> {
    let at = json.offset();
    let name = json.text("the name of a dtype")?;
    dtype::from_name(&name).ok_or_else(|| {
        let shown: String = name.chars().take(64).collect();
        let what = format!("safetensors 0.8 has no dtype named `{}`", shown.escape_debug());
        Error::data(what).at(at)
    })
}

fn dims(json: &mut Json<'_>) -> Result<Vec<usize>> {
    let mut dims = Vec::new();
    json.array("an array of dimensions", |json| {
        let at = json.offset();
        let dim = json.unsigned("a whole number")?;
        let dim = usize::try_from(dim);
        dims.push(dim.map_err(|_| Error::limit("a dimension that fits no memory").at(at))?);
        Ok(())
    })?;
    Ok(dims)
}

fn offsets(json: &mut Json<'_>) -> Result<(u64, u64)> {
    let start = json.offset();
    let mut found = Vec::new();
    json.array("an array of two offsets", |json| {
        let offset = json.unsigned("a whole number")?;
        if found.len() < 3 {
            found.push(offset);
        }
        Ok(())
    })?;
    match found[..] {
        [first, behind] => Ok((first, behind)),
        _ => {
            let what = "expected an array of two offsets, found another number of them";
            Err(Error::data(what).at(start))
        }
    }
}

fn texts(json: &mut Json<'_>) -> Result<Metadata> {
    let mut pairs = Vec::new();
    json.object("an object of texts", |json, key, _| {
        match json.text("a text") {
            Ok(text) => pairs.push((key, text)),
            Err(error) => return Err(error.in_field(key)),
        }
        Ok(())
    })?;
    Ok(pairs)
}

fn once(seen: &mut bool, field: &str, at: u64) -> Result<()> {
    if std::mem::replace(seen, true) { Err(found_twice(field, at)) } else { Ok(()) }
}

#[cold]
fn found_twice(field: &str, at: u64) -> Error {
    Error::data("expected each field once, found one twice").in_field(field).at(at)
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
    let mut index = Index::default();
    let mut described = false;
    let mut json = Json::new(text)?;
    json.object("an object with weight_map", |json, field, at| {
        match field.as_str() {
            "weight_map" => {
                let pairs = texts(json).map_err(|error| error.in_field("weight_map"))?;
                if index.weight_map.replace(pairs).is_some() {
                    return Err(found_twice("weight_map", at));
                }
            }
            "metadata" => {
                once(&mut described, "metadata", at)?;
                if !json.null() {
                    json.object("an object or null", |json, key, _| {
                        index.numbers.push((key, json.any()?));
                        Ok(())
                    })?;
                }
            }
            _ => {
                json.any()?;
                index.unknown.push(field);
            }
        }
        Ok(())
    })?;
    json.end()?;
    Ok(index)
}

/// Appends `:{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}`.
pub fn put_tensor(out: &mut Vec<u8>, code: &str, shape: &[usize], range: (u64, u64)) {
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    let (dims, (start, end)) = (dims.join(","), range);
    let text = format!(r#":{{"dtype":"{code}","shape":[{dims}],"data_offsets":[{start},{end}]}}"#);
    out.extend_from_slice(text.as_bytes());
}

/// An index, laid out as Python's `json.dumps(index, indent=2)` does.
pub fn write_index(total: u64, weights: &[(String, String)]) -> Vec<u8> {
    let mut text =
        format!("{{\n  \"metadata\": {{\n    \"total_size\": {total}\n  }},\n  \"weight_map\": {{")
            .into_bytes();
    for (number, (tensor, file)) in weights.iter().enumerate() {
        text.extend_from_slice(if number > 0 { b",\n    " } else { b"\n    " });
        put_text(&mut text, tensor);
        text.extend_from_slice(b": ");
        put_text(&mut text, file);
    }
    text.extend_from_slice(if weights.is_empty() { b"}\n}\n" } else { b"\n  }\n}\n" });
    text
}
