//! Values of archives and of other formats as files.

use std::io::{self, Write};

use tenarc::tensor::{Deferred, Order, ToTensor as _};
use tenarc::{Result, Value};

use super::types::{self, Types};
use super::write::{Entry, Plan, listed};
use crate::exported::{Exported, Keep, METADATA};
use crate::saved::Saved;
use crate::{Losses, Options, Stored, nested, order};

/// Names of tensors that are longer are not read by llama.cpp.
const MAX_NAME: usize = 63;

/// Writes the tensors of a value, and what is under `__metadata__`; what was not kept, if that is accepted.
pub fn write(value: &dyn Stored, out: &mut dyn Write, options: &Options) -> Result<Losses> {
    let found = Exported::of(value, Keep::TensorsBesideMetadata)?;
    let mut losses = found.losses;
    let mut metadata = metadata(value, &mut losses)?;
    if found.nested {
        metadata.push((nested::KEY.to_owned(), Value::from(nested::NESTED)));
    }
    let metadata = typed(&metadata, &mut losses)?;
    let mut tensors = Vec::with_capacity(found.tensors.len());
    for (name, tensor) in &found.tensors {
        if name.len() > MAX_NAME {
            let name = name.escape_debug();
            losses.note(format!(
                "llama.cpp does not read names of more than {MAX_NAME} bytes: `{name}`"
            ));
        }
        let meta = tensor.meta();
        let turned = meta.order == Order::F && meta.shape.len() > 1 && order::can_reorder(&meta);
        let tensor = if turned {
            let (dtype, shape) = (meta.dtype.clone(), &meta.shape);
            let meta = meta.clone();
            let put = move |put: &mut dyn FnMut(&[u8]) -> Result<()>| {
                order::row_major(tensor, &meta, put)
            };
            Deferred::from_blocks(dtype, shape, Order::C, put)
        } else {
            // Of a dtype that the library does not know, only the file says how many bytes there are.
            let len = tensor.byte_len(&meta).unwrap_or(usize::MAX);
            let put = |put: &mut dyn FnMut(&[u8]) -> Result<()>| tensor.write_blocks(put);
            Deferred::from_blocks(meta.dtype.clone(), &meta.shape, meta.order, put)
                .with_byte_len(len)
        };
        match listed(&tensor) {
            Ok(_) => {
                if turned {
                    losses.note(order::TURNED);
                }
                tensors.push((name, tensor));
            }
            Err(why) => losses.add_tensor(name, format!("{why}: the tensor is left out")),
        }
    }
    losses.check(options.accept_losses, tensors.len())?;
    Plan::new(&metadata, &tensors)?.write(io::BufWriter::with_capacity(64 << 10, out))?;
    Ok(losses)
}

/// What is under `__metadata__`, if that is a map.
fn metadata(value: &dyn Stored, losses: &mut Losses) -> Result<Vec<(String, Value)>> {
    let Some(saved) = Saved::of(value)?.entry(METADATA) else { return Ok(Vec::new()) };
    let Value::Map(entries) = saved.into_value(&|range| value.decode(range))? else {
        // It is no map, so it was looked at as any other value.
        return Ok(Vec::new());
    };
    let mut kept = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        match key {
            Value::Text(key) => kept.push((key, value)),
            _ => losses.add(METADATA, "a key that is not text is left out"),
        }
    }
    Ok(kept)
}

/// Chooses the types of metadata, as far as GGUF has such values.
fn typed<'m>(metadata: &'m [(String, Value)], losses: &mut Losses) -> Result<Vec<Entry<'m>>> {
    const SHOWN: usize = 3;
    let types = Types::of(metadata).map_err(|error| error.in_field(METADATA))?;
    let mut kept = Vec::with_capacity(metadata.len());
    let mut chosen = Vec::new();
    for (key, value) in metadata.iter().filter(|(key, _)| key != types::KEY) {
        match types.typed(key, value) {
            Ok(entry) => {
                if let Some(change) = entry.change() {
                    losses.note(format!("`{METADATA}.{}`: {change}", key.escape_debug()));
                }
                if entry.is_chosen(value) {
                    chosen.push(format!("`{}` ({})", key.escape_debug(), entry.kind));
                }
                kept.push((key.as_str(), value, entry));
            }
            Err(why) => losses.add(&format!("{METADATA}.{key}"), format!("{why}: it is left out")),
        }
    }
    if !chosen.is_empty() {
        let more = chosen.len().saturating_sub(SHOWN);
        chosen.truncate(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        losses.note(format!(
            "the types of metadata that do not say theirs were chosen, and llama.cpp reads each key as one type only: \
             {}{more}; `{METADATA}.{}` can list them",
            chosen.join(", "),
            types::KEY,
        ));
    }
    Ok(kept)
}
