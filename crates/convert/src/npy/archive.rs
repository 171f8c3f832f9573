//! Conversion of npz and npy files to archives and back.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::Path;

use tenarc::tensor::{Deferred, TensorMeta, ToTensor as _};
use tenarc::{DType, Error, Result};

use super::dtype;
use super::file::NpyFile;
use super::npz::Npz;
use super::texts;
use super::write::{NpzWriter, verify};
use crate::codec::{Codec, must_seek};
use crate::exported::{self, Exported, Keep, METADATA};
use crate::honest::Honest;
use crate::numpy::times::Times;
use crate::stored::Put;
use crate::typed::Type;
use crate::{Losses, Options, Stored, TensorFile};

/// The npz format.
pub(crate) struct NpzFiles;

impl Codec for NpzFiles {
    fn open(&self, file: File, _: Option<&Path>, options: &Options) -> Result<Box<dyn TensorFile>> {
        let npz = Npz::new(file)?.with_limits(options.limits);
        Ok(Box::new(options.void.iter().cloned().fold(npz, Npz::with_void)))
    }

    fn write(&self, _: &dyn Stored, _: &mut dyn Write, _: &Options) -> Result<Losses> {
        Err(must_seek())
    }

    // In a zip file, the size of a member is in front of its data, but it is known only after them. So the writer must
    // seek.
    fn write_file(
        &self,
        value: &dyn Stored,
        file: &File,
        path: &Path,
        options: &Options,
    ) -> Result<Losses> {
        let out = NpzWriter::new(BufWriter::with_capacity(1 << 20, file))?;
        let mut out = out.with_compression(options.compression);
        let losses = export(value, &mut out, options)?;
        out.finish().and_then(|_| verify(file)).map_err(|error| error.in_file(path))?;
        Ok(losses)
    }
}

/// The npy format.
pub(crate) struct Npy;

impl Codec for Npy {
    fn open(&self, file: File, _: Option<&Path>, options: &Options) -> Result<Box<dyn TensorFile>> {
        let file = NpyFile::new(file)?;
        Ok(Box::new(options.void.iter().cloned().fold(file, NpyFile::with_void)))
    }

    fn write(&self, value: &dyn Stored, out: &mut dyn Write, options: &Options) -> Result<Losses> {
        let mut lost = value.lost();
        let Some((tensor, of)) = exported::only(value)? else {
            return Err(Error::unsupported(
                "an npy file holds exactly one tensor, found another value",
            ));
        };
        let (tensor, descr) = described("", tensor, of.as_ref(), &mut lost)?;
        lost.check(options.accept_losses, 1)?;
        let mut out = Honest::new(out);
        super::emit(&descr, &tensor, &mut |block| out.write_all(block).map_err(Error::io))?;
        Ok(lost)
    }
}

/// Returns a tensor as an array of numpy, with its type string. A type that numpy does not have is a loss.
///
/// # Errors
/// If numpy does not have the dtype.
fn described<'a>(
    name: &str,
    tensor: Deferred<'a>,
    of: Option<&Type>,
    losses: &mut Losses,
) -> Result<(Deferred<'a>, String)> {
    let TensorMeta { dtype, shape, order } = tensor.meta();
    let descr = dtype::descr_of(&dtype)?;
    let Some(of) = of else { return Ok((tensor, descr.to_owned())) };
    let Some((times, number)) = Times::of_type(of).zip(integer(&dtype)) else {
        losses.add(name, of.left_out());
        return Ok((tensor, descr.to_owned()));
    };
    if of.name == "timestamp"
        && let Some([_, zone]) = of.texts().as_deref()
        && !zone.is_empty()
    {
        losses.add(name, format!("its time zone, `{}`, is left out", zone.escape_debug()));
    }
    if dtype == DType::I64 {
        return Ok((tensor, times.descr()));
    }
    let word = dtype.word();
    let wide = move |put: &mut Put<'_>| {
        let (mut rest, mut wide) = (Vec::new(), Vec::new());
        tensor.write_blocks(&mut |block| {
            rest.extend_from_slice(block);
            let numbers = rest.chunks_exact(word);
            wide.clear();
            wide.extend(numbers.clone().flat_map(|bytes| number(bytes).to_le_bytes()));
            rest = numbers.remainder().to_vec();
            put(&wide)
        })
    };
    Ok((Deferred::from_blocks(DType::I64, &shape, order, wide), times.descr()))
}

/// What reads a little-endian integer of this dtype. `None` if `i64` does not hold all of them.
fn integer(dtype: &DType) -> Option<fn(&[u8]) -> i64> {
    fn filled(bytes: &[u8], fill: u8) -> i64 {
        let mut word = [fill; 8];
        word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        i64::from_le_bytes(word)
    }
    match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Some(|bytes| {
            let is_negative = bytes.last().is_some_and(|last| *last > 127);
            filled(bytes, if is_negative { 0xff } else { 0 })
        }),
        DType::U8 | DType::U16 | DType::U32 => Some(|bytes| filled(bytes, 0)),
        _ => None,
    }
}

/// Writes the tensors of a value as arrays of an npz file. Returns what was left out.
///
/// The name of a nested tensor is its path, for example `layers.0.weight`. The comment of the zip file then says that
/// names are paths, so that readers of this crate can restore the nesting; numpy ignores it. Of a sequence that is
/// stored as columns, each column of numbers, booleans or tensors becomes an array. Texts and arrays of texts become
/// arrays of numpy's type `U`, and tensors of times and durations arrays of `datetime64` and `timedelta64`. One tensor at a time is in memory.
///
/// # Errors
/// - If anything would be left out and `options` do not accept losses. Nothing was written then. Losses are other
///   values than tensors and texts, tensors whose dtypes numpy does not have, and a nesting that cannot be restored
///   from the names.
/// - If the archive is damaged.
/// - If the npz file cannot be written.
pub fn export<W: Write + Seek>(
    value: &dyn Stored,
    out: &mut NpzWriter<W>,
    options: &Options,
) -> Result<Losses> {
    let Exported { tensors, types, texts, shapes, metadata, nested, mut losses, .. } =
        Exported::of(value, Keep::Texts)?;
    for (key, text) in metadata.unwrap_or_default() {
        if key == "format" {
            let text: String = text.chars().take(64).collect();
            losses.note(format!(
                "`{METADATA}.format`, which is `{}`, is left out",
                text.escape_debug()
            ));
        } else {
            losses.add(&format!("{METADATA}.{key}"), "a text of the metadata is left out");
        }
    }
    let mut named = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        match described(&name, tensor, types.get(&name), &mut losses) {
            Ok((tensor, descr)) => named.push((name, tensor, descr)),
            Err(error) => losses.add_tensor(&name, error.message()),
        }
    }
    let mut kept = Vec::with_capacity(texts.len());
    for (name, texts) in texts {
        match texts::check(&texts) {
            Ok(()) => kept.push((name, texts)),
            Err(error) => losses.add(&name, error.message()),
        }
    }
    losses.check(options.accept_losses, named.len() + kept.len())?;
    for (name, tensor, descr) in named {
        out.add_as(&name, &descr, &tensor)?;
    }
    for (name, texts) in kept {
        let len = vec![texts.len()];
        out.add_texts(&name, shapes.get(&name).unwrap_or(&len), &texts)?;
    }
    out.nested |= nested;
    Ok(losses)
}
