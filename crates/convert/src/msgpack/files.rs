//! Converts MessagePack files to archives and back.

use std::fs::File;
use std::io::Write;

use serde::ser::{Error as _, Serialize, SerializeMap as _, Serializer};
use tenarc::io::ReadAt;
use tenarc::tensor::Deferred;
use tenarc::{Result, Tensor};

use super::item::{Field, Found, Item, not_utf8, of_records};
use super::read::Reader;
use super::write::Format;
use crate::codec::{Archived, Codec};
use crate::input::{Positions, STEP, Stretch};
use crate::support::swap_words;
use crate::{Losses, Options, Stored, source, values};

/// The conversions of MessagePack files to archives and back. A file holds any number of values. The widths of integers
/// are not kept, because they mean nothing in MessagePack. Arrays are read in steps while they are written to the
/// archive.
pub(crate) struct Msgpack;

impl Codec for Msgpack {
    fn holds_values(&self) -> bool {
        true
    }

    fn load(&self, file: &File, options: &Options, out: &mut Archived<'_>) -> Result<Losses> {
        let mut values = Reader::new(Positions::new(file)?, options.limits);
        let mut losses = Losses::default();
        while let Some(mut item) = values.next()? {
            let kept = item.take_losses(&mut losses);
            losses.check(options.accept_losses, kept)?;
            out.save(&InFile { item: &item, source: file })?;
        }
        Ok(losses)
    }

    fn write(&self, value: &dyn Stored, out: &mut dyn Write, options: &Options) -> Result<Losses> {
        values::export::<Format>(value, out, options)
    }
}

/// A value whose long parts are still in the file.
struct InFile<'a, S> {
    item: &'a Item,
    source: &'a S,
}

impl<S: ReadAt> InFile<'_, S> {
    fn bytes(&self, stretch: &Stretch, field: Option<Field>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        blocks(stretch, field, self.source, STEP, &mut |block| {
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        Ok(bytes)
    }
}

impl<S: ReadAt> Serialize for InFile<'_, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let inside = |item| InFile { item, source: self.source };
        match self.item {
            Item::Plain(value) => value.serialize(serializer),
            Item::Raw(_, at) => Err(Z::Error::custom(not_utf8(*at))),
            Item::Bytes(stretch) => {
                serializer.serialize_bytes(&self.bytes(stretch, None).map_err(Z::Error::custom)?)
            }
            Item::Texts(found) => {
                let bytes = self.bytes(&found.data, found.field);
                let texts = bytes.and_then(|bytes| found.value(&bytes));
                texts.map_err(Z::Error::custom)?.serialize(serializer)
            }
            Item::Array(items) => serializer.collect_seq(items.iter().map(inside)),
            Item::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, item) in entries {
                    map.serialize_entry(key, &inside(item))?;
                }
                map.end()
            }
            Item::Lost(why) => Err(Z::Error::custom(why)),
            Item::Tensor(found) => Tensor(deferred(found, self.source)).serialize(serializer),
        }
    }
}

fn deferred<'a, S: ReadAt>(found: &'a Found, source: &'a S) -> Deferred<'a> {
    let meta = &found.meta;
    let shape = &meta.shape;
    Deferred::from_blocks(meta.dtype.clone(), shape, meta.order, move |put| {
        blocks(&found.data, found.field, source, STEP, &mut |block| {
            if found.big_endian {
                swap_words(block, meta.dtype.word());
            }
            put(block)
        })
    })
}

/// Passes the bytes of a stretch, or of a field of its records, to `put` in steps.
fn blocks<S: ReadAt>(
    stretch: &Stretch,
    field: Option<Field>,
    source: &S,
    step: usize,
    put: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    match *stretch {
        Stretch::Held(ref bytes) => put(&mut of_records(field, bytes.clone())),
        Stretch::At { start, len } => {
            // A step has whole records.
            let step = field.map_or(step, |field| step.next_multiple_of(field.record.max(1)));
            let mut block = vec![0; usize::try_from(len).unwrap_or(step).min(step)];
            let mut done = 0;
            while done < len {
                let left = usize::try_from(len - done).unwrap_or(usize::MAX);
                let part = block.get_mut(..left.min(step)).unwrap_or_default();
                source::read_exact(source, part, start.saturating_add(done))?;
                match field {
                    Some(Field { place, record }) => put(&mut place.of_each(part, record))?,
                    None => put(part)?,
                }
                done += left.min(step) as u64;
            }
            Ok(())
        }
    }
}
