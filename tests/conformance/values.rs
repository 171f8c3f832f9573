//! Values in the JSON form of `conformance/README.md`.

use serde_json::{Value as Json, json};
use tenarc::Value;
use tenarc::value::Numbers;

/// The tag of "some none".
const SOME: u64 = 1_414_745_933;

/// The value as JSON. Floats of 16 bits are read as floats of 32 bits, so `same` compares them.
pub fn shown(value: &Value) -> Json {
    match value {
        Value::Null | Value::Simple(23) => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Integer(value) if value.unsigned_abs() < 1 << 53 => {
            json!(i64::try_from(*value).unwrap())
        }
        Value::Integer(value) => json!({"int": value.to_string()}),
        Value::F32(value) => json!({"f32": format!("{:08x}", value.to_bits())}),
        Value::F64(value) => json!({"f64": format!("{:016x}", value.to_bits())}),
        Value::Bytes(bytes) => json!({"bytes": hex(bytes)}),
        Value::Text(text) => json!(text),
        Value::Array(items) => items.iter().map(shown).collect(),
        Value::Map(entries) => {
            let pairs: Json =
                entries.iter().map(|(key, value)| json!([shown(key), shown(value)])).collect();
            json!({"map": pairs})
        }
        Value::Tag(2 | 3, inner) => bignum(value, inner),
        Value::Tag(SOME, inner) if is_none(inner) => json!({"some": shown(inner)}),
        Value::Tag(_, inner) => shown(inner),
        Value::Simple(number) => json!({"simple": number}),
        Value::Numbers(numbers) => numbers_of(numbers),
        Value::Tensor(tensor) => json!({"tensor": {
            "dtype": tensor.dtype().name(),
            "shape": tensor.shape(),
            "order": tensor.order().name(),
            "payload": hex(&tensor.le_bytes()),
        }}),
    }
}

/// Bignums that do not fit into `i128` are kept as tags.
fn bignum(value: &Value, inner: &Value) -> Json {
    let (Value::Tag(2, _), Value::Bytes(bytes)) = (value, inner) else {
        return json!({"tag": shown(inner)});
    };
    let mut number = 0u128;
    for byte in bytes {
        number = number << 8 | u128::from(*byte);
    }
    json!({"int": number.to_string()})
}

/// Whether "some" around the value has a tag.
fn is_none(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Simple(23) | Value::Tag(SOME, _))
}

/// The array that the numbers stand for.
fn numbers_of(numbers: &Numbers) -> Json {
    if let Some(numbers) = numbers.as_slice::<half::f16>() {
        return numbers
            .iter()
            .map(|number| json!({"f16": format!("{:04x}", number.to_bits())}))
            .collect();
    }
    match tenarc::to_value(numbers).unwrap() {
        // An element at a time.
        Value::Numbers(numbers) => {
            (0..numbers.len()).map(|at| shown(&Value::Numbers(numbers.clone())[at])).collect()
        }
        other => shown(&other),
    }
}

/// Whether two values in this form are equal. A float of 16 bits equals the float of 32 bits that it is read as.
pub fn same(said: &Json, found: &Json) -> bool {
    match (said, found) {
        (Json::Array(said), Json::Array(found)) => {
            said.len() == found.len()
                && said.iter().zip(found).all(|(said, found)| same(said, found))
        }
        (Json::Object(said), Json::Object(found)) => match (said.get("f16"), found.get("f32")) {
            (Some(said), Some(found)) => {
                let bits = |text: &Json| u32::from_str_radix(text.as_str().unwrap(), 16).unwrap();
                let said = half::f16::from_bits(u16::try_from(bits(said)).unwrap());
                said.to_f32().to_bits() == bits(found)
            }
            _ => {
                said.len() == found.len()
                    && said
                        .iter()
                        .all(|(key, value)| found.get(key).is_some_and(|found| same(value, found)))
            }
        },
        _ => said == found,
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
