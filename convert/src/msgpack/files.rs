//! MessagePack files to archives, and back.

use std::io::Write;
use std::path::Path;

use serde::ser::{Error as _, Serialize, SerializeMap as _, Serializer};
use tenarc::archive::SaveOptions;
use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::Deferred;
use tenarc::{Error, Result, Tensor};

use super::Options;
use super::read::{Found, Item, Reader, not_utf8};
use super::write::Format;
use crate::input::{Positions, STEP, Stretch};
use crate::support::swap_words;
use crate::{Losses, Stored, made, source, values};

/// Converts a file of MessagePack values, one after the other, to an archive of as many.
///
/// Nothing is lost; widths of integers, which mean nothing in MessagePack, are not kept. Arrays are read
/// as they are written, in steps. The archive has checksums, whatever the options say; it is read back and
/// verified by them before it takes its name.
///
/// # Errors
/// Where the file cannot be read, holds something else than MessagePack or an array that is no tensor, and
/// where the archive cannot be written.
pub fn to_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: SaveOptions,
) -> Result<()> {
    to_archive_with(from, to, options, Limits::default())
}

/// As [`to_archive`], with limits, which each value has for itself.
///
/// # Errors
/// As [`to_archive`], and with [`Category::Limit`](tenarc::error::Category::Limit) where there is more.
pub fn to_archive_with(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: SaveOptions,
    limits: Limits,
) -> Result<()> {
    let from = from.as_ref();
    let (file, _) = open_file(from)?;
    made::archive(
        to.as_ref(),
        options,
        |out| {
            let mut values = Reader::new(Positions::new(&file)?, limits);
            while let Some(item) = values.next().map_err(|error| error.in_file(from))? {
                out.save(&InFile { item: &item, source: &file })?;
            }
            Ok(())
        },
        |_| Ok(()),
    )
}

/// A value whose long parts are still in the file.
struct InFile<'a, S> {
    item: &'a Item,
    source: &'a S,
}

impl<S: ReadAt> Serialize for InFile<'_, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let inside = |item| InFile { item, source: self.source };
        match self.item {
            Item::Plain(value) => value.serialize(serializer),
            Item::Raw(_, at) => Err(Z::Error::custom(not_utf8(*at))),
            Item::Bytes(stretch) => {
                let mut bytes = Vec::new();
                blocks(stretch, self.source, STEP, &mut |block| {
                    bytes.extend_from_slice(block);
                    Ok(())
                })
                .map_err(Z::Error::custom)?;
                serializer.serialize_bytes(&bytes)
            }
            Item::Array(items) => serializer.collect_seq(items.iter().map(inside)),
            Item::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, item) in entries {
                    map.serialize_entry(key, &inside(item))?;
                }
                map.end()
            }
            Item::Tensor(found) => Tensor(deferred(found, self.source)).serialize(serializer),
        }
    }
}

fn deferred<'a, S: ReadAt>(found: &'a Found, source: &'a S) -> Deferred<'a> {
    let meta = &found.meta;
    let shape = &meta.shape;
    Deferred::from_blocks(meta.dtype.clone(), shape, meta.order, move |put| {
        blocks(&found.data, source, STEP, &mut |block| {
            if found.big_endian {
                swap_words(block, meta.dtype.word());
            }
            put(block)
        })
    })
}

/// Hands over bytes in steps.
fn blocks<S: ReadAt>(
    stretch: &Stretch,
    source: &S,
    step: usize,
    put: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    match *stretch {
        Stretch::Held(ref bytes) => put(&mut bytes.clone()),
        Stretch::At { start, len } => {
            let mut block = vec![0; usize::try_from(len).unwrap_or(step).min(step)];
            let mut done = 0;
            while done < len {
                let left = usize::try_from(len - done).unwrap_or(usize::MAX);
                let part = block.get_mut(..left.min(step)).unwrap_or_default();
                source::read_exact(source, part, start.saturating_add(done))?;
                put(part)?;
                done += left.min(step) as u64;
            }
            Ok(())
        }
    }
}

/// Writes a value, one tensor at a time in memory; what was not kept, where that is accepted.
///
/// # Errors
/// Where the value is damaged, the writer fails, and where something cannot be kept and that is not accepted:
/// that is found out while the value is written.
pub fn export<W: Write>(value: &dyn Stored, writer: W, options: &Options) -> Result<Losses> {
    values::export::<Format>(value, writer, options)
}

/// Converts an archive to a file of MessagePack values, one after the other; what was not kept, where that is
/// accepted.
///
/// Checksums are verified as tensors are read, one at a time. The file is read back and compared before it
/// takes its name.
///
/// # Errors
/// Where the archive cannot be read or is damaged, something cannot be kept and that is not accepted (then no
/// file was made), or the file cannot be written.
pub fn from_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Losses> {
    values::from_archive::<Format>(from.as_ref(), to.as_ref(), options, b"", |file, expected| {
        // As any reader would.
        let mut values = Reader::new(Positions::new(file)?, Limits::default());
        let mut found = 0;
        while values.next()?.is_some() {
            found += 1;
        }
        if found != expected {
            let what = format!("wrote {expected} values, read back {found}");
            return Err(Error::damaged(what));
        }
        Ok(())
    })
}
