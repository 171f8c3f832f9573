//! Time zones of a Parquet file that its own schema does not have.
//!
//! Parquet says of a timestamp that it is in UTC, and not which zone it is of. The schema of Arrow in the file's metadata does.
//! Seconds are written as milliseconds, and then the library does not look at the zone.

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::root_as_message;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
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

/// The fields that were found, with the zones that the fields of the same place have in `stated`.
pub fn with_zones(found: &Fields, stated: &Fields) -> Fields {
    if found.len() != stated.len() {
        return found.clone();
    }
    found.iter().zip(stated).map(|(found, stated)| with_zone(found, stated)).collect()
}

fn with_zone(found: &FieldRef, stated: &Field) -> FieldRef {
    let of = match (found.data_type(), stated.data_type()) {
        (DataType::Timestamp(unit, Some(_)), DataType::Timestamp(_, Some(zone))) => {
            DataType::Timestamp(*unit, Some(zone.clone()))
        }
        (DataType::Struct(found), DataType::Struct(stated)) => {
            DataType::Struct(with_zones(found, stated))
        }
        (DataType::List(found), DataType::List(stated)) => DataType::List(with_zone(found, stated)),
        (DataType::LargeList(found), DataType::LargeList(stated)) => {
            DataType::LargeList(with_zone(found, stated))
        }
        (DataType::FixedSizeList(found, size), DataType::FixedSizeList(stated, _)) => {
            DataType::FixedSizeList(with_zone(found, stated), *size)
        }
        (DataType::Map(found, is_sorted), DataType::Map(stated, _)) => {
            DataType::Map(with_zone(found, stated), *is_sorted)
        }
        _ => return found.clone(),
    };
    found.as_ref().clone().with_data_type(of).into()
}
