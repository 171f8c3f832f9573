//! Reads and writes the formats that tenarc-convert converts.

use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::path::Path;

use tenarc::Value;
use tenarc::tensor::ToTensor as _;
use tenarc_convert::{Format as Converted, Losses, Options, Stored, json, msgpack, safetensors};

use super::stream::{write_file_or_stream, write_stream};
use super::values::Values;
use super::{Format, Lossy, is_index};
use crate::document::{Document, Reading, Section};
use crate::failure::{Failure, Of as _, Result};
use crate::fields::AllRows;
use crate::input::{Input, shown};
use crate::limits::limits;
use crate::losses::{NOT_KEPT, tell};
use crate::target::Target;
use crate::temporary::{save_temporary, temporary, temporary_archive};
use crate::written::Written;

/// Opens a file. JSON and MessagePack become messages. Tensors of all other files are read in place.
///
/// # Errors
/// If the input cannot be read, or is not of this format.
pub fn read(format: Format, of: Converted, input: Input, reading: &Reading) -> Result<Document> {
    let (mut messages, mut losses) = (Vec::new(), Losses::default());
    match of {
        Converted::Json => {
            json::append_messages(input.reader()?, limits(), &mut messages).of("JSON")?;
        }
        Converted::Msgpack => {
            let read =
                msgpack::append_messages(input.reader()?, limits(), &mut losses, &mut messages);
            read.of("MessagePack")?;
        }
        _ => {
            // External data files of ONNX models are read only from the directory of the model.
            let options = Options::default().with_external(true).with_names(reading.names);
            let options = options.with_limits(limits());
            let options = reading.void.iter().cloned().fold(options, Options::with_void);
            let opened = of.open_file(input.file, input.path.as_deref(), &options)?;
            return Ok(Document::of_opened(input.name, format, opened));
        }
    }
    Ok(Document::of_messages(input.name, format, messages)?.with_losses(losses))
}

/// Writes values. The new file is read back and compared. It replaces the target only if all values were written.
///
/// # Errors
/// If a value cannot be read, if this format cannot hold it and `lossy` is off, or if the target cannot be written.
pub fn write(of: Converted, values: &mut Values<'_>, target: &Target, lossy: Lossy) -> Result<()> {
    let options = Options::default().with_losses(lossy.0);
    let are_lines = target.path().is_some_and(json::is_lines);
    match of {
        Converted::Json | Converted::Msgpack => {
            let options = options.with_lines(are_lines);
            write_stream(target, &mut |out| {
                let mut write = |value: &dyn Stored| {
                    tell(&of.write(value, &mut *out, &options)?, None, NOT_KEPT);
                    Ok(())
                };
                match of {
                    Converted::Json if !are_lines && values.joined()?.is_some() => {
                        one_array(values, out, &options)
                    }
                    Converted::Msgpack if joined(of, values, &mut write)? => Ok(()),
                    _ => all(of, values, out, &options),
                }
            })
        }
        Converted::Safetensors
            if target.shard_size.is_some() || target.path().is_some_and(is_index) =>
        {
            only(of, values, &mut |value| sharded(value, target, &options))
        }
        _ => only(of, values, &mut |value| save(of, value, target, &options)),
    }
}

/// Writes values one after the other.
fn all(
    of: Converted,
    values: &mut Values<'_>,
    out: &mut dyn Write,
    options: &Options,
) -> Result<()> {
    let mut lost = Losses::default();
    values.each(&mut |value| {
        value.with_section(&mut |section| {
            lost.extend(match section.message().map(tenarc::from_slice::<Value>) {
                Some(value) if of == Converted::Json => {
                    let lost = json::write_with(&mut *out, &value?, options)?;
                    out.write_all(b"\n")?;
                    lost
                }
                Some(value) => msgpack::write_with(&mut *out, &value?, options)?,
                None => as_rows(section, |value| Ok(of.write(value, &mut *out, options)?))?,
            });
            Ok(())
        })
    })?;
    tell(&lost, None, NOT_KEPT);
    Ok(())
}

/// Writes the parts of a table as one array of JSON. The rows of one part are in memory at a time.
fn one_array(values: &mut Values<'_>, out: &mut dyn Write, options: &Options) -> Result<()> {
    let (mut lost, mut rows) = (Losses::default(), false);
    out.write_all(b"[")?;
    values.each(&mut |value| {
        value.with_section(&mut |section| {
            let mut part =
                InBrackets { out, follows: rows, begun: false, wrote: false, last: Vec::new() };
            lost.extend(as_rows(section, |value| {
                Ok(Converted::Json.write(value, &mut part, options)?)
            })?);
            rows |= part.wrote;
            Ok(())
        })
    })?;
    out.write_all(b"]\n")?;
    tell(&lost, None, NOT_KEPT);
    Ok(())
}

/// Writes what is in an array of JSON: all but the first bracket, and the last one with the end of its line.
struct InBrackets<'w> {
    out: &'w mut dyn Write,
    /// Whether it follows another part, which has rows.
    follows: bool,
    /// Whether the first bracket was passed.
    begun: bool,
    /// Whether the part has rows.
    wrote: bool,
    /// The bytes that may be the last ones.
    last: Vec<u8>,
}

impl Write for InBrackets<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.last.extend_from_slice(bytes);
        if !self.begun && !bytes.is_empty() {
            self.begun = true;
            self.last.remove(0);
        }
        let inside = self.last.len().saturating_sub(b"]\n".len());
        if inside > 0 {
            if self.follows && !self.wrote {
                self.out.write_all(b",")?;
            }
            self.wrote = true;
            self.out.write_all(self.last.get(..inside).unwrap_or_default())?;
            self.last.drain(..inside);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The size of shards if the output is named as an index and no size is given. transformers wrote shards of this size
/// for years.
const SHARD_SIZE: u64 = 5_000_000_000;

/// Writes a model in several files with an index. If the model fits in one file and the output is not named as an
/// index, writes only that file.
fn sharded(value: &dyn Stored, target: &Target, options: &Options) -> Result<()> {
    let Some(path) = target.path().filter(|_| !target.is_object()) else {
        return Err(Failure::new(
            "a model in shards is several files: give a file name instead of - or an address",
        ));
    };
    let most = target.shard_size.unwrap_or(SHARD_SIZE);
    let export = safetensors::Export::new(value)?;
    let lens =
        export.tensors().iter().map(|(_, tensor)| tensor.meta().byte_len().unwrap_or(usize::MAX));
    let index = if is_index(path) {
        path.to_path_buf()
    } else if lens.fold(0, |sum: u64, len| sum.saturating_add(len as u64)) <= most {
        return save(Converted::Safetensors, value, target, options);
    } else {
        if path.symlink_metadata().is_ok() {
            let what = "the file exists, and programs would read it in place of the shards: remove it first";
            return Err(Failure::new(what).of_output(&target.name()));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".index.json");
        name.into()
    };
    // The stem has neither `.index.json` nor `.safetensors`.
    target.check_shards(&index.with_extension("").with_extension("").with_extension(""))?;
    let options = options.clone().with_save(target.options.clone());
    let lost = export.save_sharded(&index, most, &options);
    let lost = lost.map_err(|error| Failure::while_writing(error, &shown(&index)))?;
    tell(&lost, None, NOT_KEPT);
    Ok(())
}

/// Writes the only value to one file.
fn save(of: Converted, value: &dyn Stored, target: &Target, options: &Options) -> Result<()> {
    let to_file = |file: &File, path: &Path| of.write_file(value, file, path, options);
    write_file_or_stream(target, to_file, |writer| {
        if !matches!(of, Converted::Npz | Converted::Torch) {
            return Ok(of.write(value, writer, options)?);
        }
        // The writers of zip files seek, and a pipe cannot seek.
        let (mut spooled, name) = (temporary()?, target.name());
        let lost = to_file(&spooled, Path::new(&name));
        let lost = lost.map_err(|error| Failure::while_writing(error, &name))?;
        spooled.rewind()?;
        io::copy(&mut spooled, writer)?;
        Ok(lost)
    })
}

/// Calls `write` with the only value, in a form that the format can hold.
fn only(
    of: Converted,
    values: &mut Values<'_>,
    write: &mut dyn FnMut(&dyn Stored) -> Result<()>,
) -> Result<()> {
    if joined(of, values, write)? {
        return Ok(());
    }
    values.only(&mut |section| match section.stored() {
        _ if !holds_columns(of) => as_rows(section, |value| {
            if of == Converted::Npy && !value.is_tensor()? {
                let what = "an npy file holds exactly one tensor: use `tenarc get` to save one";
                return Err(Failure::new(what));
            }
            write(value)
        }),
        Some(value) => write(value),
        None => as_rows(section, &mut *write),
    })
}

/// Whether the writer of a format takes columns.
fn holds_columns(of: Converted) -> bool {
    !matches!(
        of,
        Converted::Json
            | Converted::Msgpack
            | Converted::Npy
            | Converted::Tenbin
            | Converted::Torch
    )
}

/// Calls `write` with all values as one, if they are parts of one table. Returns whether they are.
fn joined(
    of: Converted,
    values: &Values<'_>,
    write: &mut dyn FnMut(&dyn Stored) -> Result<()>,
) -> Result<bool> {
    let Some(table) = values.joined()? else { return Ok(false) };
    if holds_columns(of) {
        write(&table)?;
    } else {
        let rows = AllRows::of(table.table());
        let archive = temporary_archive(|out| {
            Ok(out.save(&rows).map(drop).map_err(|error| rows.error(error))?)
        })?;
        write(&archive.segment(0)?)?;
    }
    Ok(true)
}

/// Calls `write` with a value without columns. Lists of numbers in a message become tensors. A value with columns is
/// first written to a temporary archive as rows, so that the rows need not all be in memory.
fn as_rows<T>(section: &Section<'_>, write: impl FnOnce(&dyn Stored) -> Result<T>) -> Result<T> {
    if let Some(stored) = section.stored().filter(|_| !section.root.holds_columns()) {
        return write(stored);
    }
    let value = Written::plain(section);
    if let Some(made) = Section::made(section.name(), &value)?
        && let Some(stored) = made.stored()
    {
        return write(stored);
    }
    let archive = temporary_archive(|out| save_temporary(out, None, &value))?;
    write(&archive.segment(0)?)
}
