//! The buffers of columns that are left out. A reader must know how many there are to skip them.

use arrow_ipc::{Field, MetadataVersion, Type, UnionMode};
use tenarc::{Error, Result};

/// The number of buffers of a column, and the columns inside of it.
///
/// ("Buffer listing for each layout" in Arrow's columnar format.)
#[derive(Debug)]
pub struct Physical {
    pub buffers: usize,
    /// Whether further buffers follow. The batch says how many.
    pub variadic: bool,
    pub children: Vec<Physical>,
}

impl Physical {
    pub fn of(field: &Field<'_>, version: MetadataVersion) -> Result<Self> {
        let of = |buffers, variadic| Ok(Self { buffers, variadic, children: Vec::new() });
        // The column holds indices into the dictionary, which is in another message.
        if field.dictionary().is_some() {
            return of(2, false);
        }
        let buffers = match field.type_type() {
            Type::Null => return of(0, false),
            Type::Int
            | Type::FloatingPoint
            | Type::Bool
            | Type::Decimal
            | Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::Interval
            | Type::Duration
            | Type::FixedSizeBinary => return of(2, false),
            Type::Binary | Type::Utf8 | Type::LargeBinary | Type::LargeUtf8 => return of(3, false),
            Type::BinaryView | Type::Utf8View => return of(2, true),
            // Up to version 4 of the metadata, all types but nulls had a bitmap of nulls, even unions.
            Type::RunEndEncoded => usize::from(version == MetadataVersion::V4),
            Type::Struct_ | Type::FixedSizeList => 1,
            Type::List | Type::LargeList | Type::Map => 2,
            Type::ListView | Type::LargeListView => 3,
            Type::Union => {
                let dense =
                    field.type_as_union().is_some_and(|union| union.mode() == UnionMode::Dense);
                1 + usize::from(dense) + usize::from(version == MetadataVersion::V4)
            }
            Type(other) => {
                let what = format!("the column has the unknown type {other}");
                return Err(Error::unsupported(what));
            }
        };
        let children = field.children().map(|fields| {
            fields.iter().map(|field| Self::of(&field, version)).collect::<Result<_>>()
        });
        let children = children.transpose()?.unwrap_or_default();
        Ok(Self { buffers, variadic: false, children })
    }
}
