//! Reads what other languages wrote, from slices and readers, as values and as typed arrays.

use ndarray::ArrayD;
use serde::de::{DeserializeOwned, IgnoredAny};
use tenarc::value::RawValue;
use tenarc::{DynTensor, Tensor, Value};

use crate::data::{Data, Tensor as Described};
use crate::got::le_bytes;
use crate::tensors::Record;
use crate::{Entry, OneByte, Tally, for_each_dtype};

pub fn check(entries: &[Entry]) -> Tally {
    let mut tally = Tally::default();
    for entry in entries {
        let mut note =
            |kind: &str, result| tally.note(&format!("{} as {kind}", entry.file), result);
        note("value", everywhere(&entry.bytes, |value: Value| matches(&value, &entry.data)));
        note("ignored value", everywhere(&entry.bytes, |_: IgnoredAny| Ok(())));
        note(
            "raw value",
            everywhere(&entry.bytes, |raw: Box<RawValue>| {
                if raw.as_bytes() == entry.bytes { Ok(()) } else { Err("other bytes".into()) }
            }),
        );
        // Written again, in whatever form tenarc chooses, it must still be the same.
        note("rewritten value", rewritten(&entry.bytes, &entry.data));
        match &entry.data {
            Data::Tensor(tensor) => {
                note(
                    "dynamic tensor",
                    everywhere(&entry.bytes, |found: Tensor<DynTensor>| {
                        Data::Tensor(Described::from(&found.0)).matches(&entry.data)
                    }),
                );
                if let Some(result) = array(&entry.bytes, tensor) {
                    note("array", result);
                }
            }
            Data::Numbers { dtype, bytes } => {
                if let Some(result) = sequence(&entry.bytes, dtype, bytes) {
                    note("sequence", result);
                }
            }
            _ => {}
        }
        if entry.is_record {
            note(
                "record",
                everywhere(&entry.bytes, |record: Record| {
                    // A struct does not show whether its sequence stood as a typed array.
                    let packed = record.described(true).matches(&entry.data);
                    packed.or_else(|_| record.described(false).matches(&entry.data))
                }),
            );
        }
    }
    tally
}

fn matches(value: &Value, wanted: &Data) -> Result<(), String> {
    Data::from(value).matches(wanted)
}

/// Checks what a slice, a reader and a reader of single bytes give.
fn everywhere<T: DeserializeOwned>(
    bytes: &[u8],
    check: impl Fn(T) -> Result<(), String>,
) -> Result<(), String> {
    let sources = [
        ("slice", tenarc::from_slice(bytes)),
        ("reader", tenarc::from_reader(bytes)),
        ("one-byte reader", tenarc::from_reader(OneByte(bytes))),
    ];
    for (source, result) in sources {
        let value = result.map_err(|error| format!("from {source}: {error}"))?;
        check(value).map_err(|error| format!("from {source}: {error}"))?;
    }
    Ok(())
}

fn rewritten(bytes: &[u8], wanted: &Data) -> Result<(), String> {
    let value: Value = tenarc::from_slice(bytes).map_err(|error| error.to_string())?;
    let written = tenarc::to_vec(&value).map_err(|error| error.to_string())?;
    everywhere(&written, |value: Value| matches(&value, wanted))
}

/// Reads the tensor into an array of its element type, if Rust has that.
fn array(bytes: &[u8], wanted: &Described) -> Option<Result<(), String>> {
    macro_rules! typed {
        ($type:ty, $name:literal) => {
            if wanted.dtype == $name {
                return Some(everywhere(bytes, |found: Tensor<ArrayD<$type>>| {
                    if found.shape() != wanted.shape {
                        return Err(format!("shape {:?}", found.shape()));
                    }
                    let elements = if wanted.order == "F" {
                        le_bytes(found.t().iter().copied())
                    } else {
                        le_bytes(found.iter().copied())
                    };
                    if elements == wanted.bytes { Ok(()) } else { Err(format!("{:?}", found.0)) }
                }));
            }
        };
    }
    for_each_dtype!(typed);
    None
}

/// Reads the typed array into a vector of its element type, if serde has that.
fn sequence(bytes: &[u8], dtype: &str, wanted: &[u8]) -> Option<Result<(), String>> {
    macro_rules! typed {
        ($type:ty, $name:literal) => {
            if dtype == $name {
                return Some(everywhere(bytes, |found: Vec<$type>| {
                    if le_bytes(found.iter().copied()) == wanted {
                        Ok(())
                    } else {
                        Err(format!("{found:?}"))
                    }
                }));
            }
        };
    }
    typed!(u8, "u8");
    typed!(u16, "u16");
    typed!(u32, "u32");
    typed!(u64, "u64");
    typed!(i8, "i8");
    typed!(i16, "i16");
    typed!(i32, "i32");
    typed!(i64, "i64");
    typed!(f32, "f32");
    typed!(f64, "f64");
    None
}
