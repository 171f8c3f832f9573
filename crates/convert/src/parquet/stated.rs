//! The types that a Parquet file states for its columns, where the library takes others.
//!
//! Parquet says of a timestamp that it is in UTC, and not which zone it is of. The schema of Arrow in the file's
//! metadata does. Seconds are written as milliseconds, and then the library does not look at the zone.
//!
//! Parquet has one type of dates, which counts days. If the schema of Arrow says that they were milliseconds, the
//! library makes milliseconds of them, and would write plain integers.

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::root_as_message;
use arrow_schema::{DataType, FieldRef, Fields, Schema};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// A message of Arrow's IPC format starts with these bytes, and the length of its metadata in four more.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Reads the schema in the metadata of a file, which the library has read before. `None` if it is no schema.
pub fn schema(text: &str) -> Option<Schema> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    let message = match bytes.strip_prefix(&CONTINUATION) {
        Some(rest) => rest.get(4..)?,
        None => &bytes,
    };
    try_fb_to_schema(root_as_message(message).ok()?.header_as_schema()?).ok()
}

/// The fields with the time zones that are stated.
pub fn with_zones(found: &Fields, stated: &Fields) -> Fields {
    with(found, stated, |found, stated| match (found, stated) {
        (DataType::Timestamp(unit, Some(_)), DataType::Timestamp(_, Some(zone))) => {
            Some(DataType::Timestamp(*unit, Some(zone.clone())))
        }
        _ => None,
    })
}

/// The fields with dates in days where Parquet has these.
pub fn with_days(found: &Fields, of_parquet: &Fields) -> Fields {
    with(found, of_parquet, |found, stored| match (found, stored) {
        (DataType::Date64, DataType::Date32) => Some(DataType::Date32),
        _ => None,
    })
}

type Choose = fn(&DataType, &DataType) -> Option<DataType>;

/// The fields with the types that are chosen for them and those in the same places of `stated`.
fn with(found: &Fields, stated: &Fields, choose: Choose) -> Fields {
    if found.len() != stated.len() {
        return found.clone();
    }
    found.iter().zip(stated).map(|(found, stated)| field(found, stated, choose)).collect()
}

fn field(found: &FieldRef, stated: &FieldRef, choose: Choose) -> FieldRef {
    let of = match (found.data_type(), stated.data_type()) {
        (DataType::Struct(found), DataType::Struct(stated)) => {
            DataType::Struct(with(found, stated, choose))
        }
        (DataType::List(found), DataType::List(stated)) => {
            DataType::List(field(found, stated, choose))
        }
        (DataType::LargeList(found), DataType::LargeList(stated) | DataType::List(stated)) => {
            DataType::LargeList(field(found, stated, choose))
        }
        (
            DataType::FixedSizeList(found, size),
            DataType::FixedSizeList(stated, _) | DataType::List(stated),
        ) => DataType::FixedSizeList(field(found, stated, choose), *size),
        (DataType::Map(found, is_sorted), DataType::Map(stated, _)) => {
            DataType::Map(field(found, stated, choose), *is_sorted)
        }
        (of, stated) => match choose(of, stated) {
            Some(of) => of,
            None => return found.clone(),
        },
    };
    found.as_ref().clone().with_data_type(of).into()
}
