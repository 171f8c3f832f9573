//! Which tensors are in some of the buffers of a segment.

use std::collections::BTreeMap;
use std::ops::Range;

use super::header::Header;
use super::path::{SeenItem, inform};
use super::schema::Schema;
use crate::error::Result;
use crate::options::Limits;
use crate::tensor::TensorInfo;
use crate::wire::tensor::ItemPayload;

/// What a buffer holds.
#[derive(Default)]
pub struct BufferUse {
    /// The tensors, sequences of numbers, byte strings and columns that the buffer is. Of a column in several
    /// buffers, the rows that are in this one.
    pub payloads: Vec<(TensorInfo, Option<Range<u64>>)>,
    /// How many references in columns are to something else, such as lengths of rows.
    others: usize,
}

impl BufferUse {
    /// Whether any content is valid. It is not if the buffer has lengths, flags, codes or texts of rows.
    pub fn takes_any_content(&self) -> bool {
        self.others == 0
    }
}

/// What the buffers hold for which `asked` is true.
pub fn held(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
    asked: impl Fn(u64) -> bool,
) -> Result<BTreeMap<u64, BufferUse>> {
    let (base, buffers) = (header.metadata_offset(), &header.layout.buffers);
    let mut found: BTreeMap<u64, BufferUse> = BTreeMap::new();
    let mut columns: BTreeMap<u64, usize> = BTreeMap::new();
    inform(metadata, base, buffers, limits, &mut |place, seen, describe| match seen {
        SeenItem::Payload(item) => {
            if let ItemPayload::Buffer { number, .. } = item.payload
                && asked(number)
            {
                let held = found.entry(number).or_default();
                if place.in_columns {
                    held.others += 1;
                } else {
                    held.payloads.push((describe(None)?.info, None));
                }
            }
            Ok(())
        }
        SeenItem::Columns(at) => {
            let start = usize::try_from(at - base).unwrap_or(usize::MAX);
            let item = metadata.get(start..).unwrap_or_default();
            let outline = Schema::of_groups(item, at, buffers, limits)?;
            for (number, column) in outline.columns.iter().enumerate() {
                // A group whose numbers are narrower than the tensor is not a part of it as it is.
                let dtype = outline.tensor(column).map(|(dtype, _)| dtype);
                let pieces = column.pieces.iter().filter(|piece| asked(piece.buffer));
                let pieces =
                    pieces.filter(|piece| dtype.is_some() && piece.dtype.as_ref() == dtype);
                for piece in pieces.filter(|_| outline.is_tensor(number)) {
                    let info = describe(Some((&outline, number)))?.info;
                    let held = found.entry(piece.buffer).or_default();
                    held.payloads.push((info, Some(piece.rows.clone())));
                    *columns.entry(piece.buffer).or_default() += 1;
                }
            }
            Ok(())
        }
    })?;
    for (number, whole) in columns {
        let held = found.entry(number).or_default();
        held.others = held.others.saturating_sub(whole);
    }
    Ok(found)
}
