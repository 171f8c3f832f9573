//! Formats that the library converts.

use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::path::Path;

use tenarc::Value;
use tenarc_convert::{Format as Converted, Options, Stored, json, msgpack, written};

use super::{
    Format, Lossy, NOT_KEPT, Values, as_rows, is_index, tables, tell, temporary, write_stream,
};
use crate::document::{Document, Reading};
use crate::failure::{Failure, Of as _, Result};
use crate::input::Input;
use crate::limits::limits;
use crate::output::Target;

/// # Errors
/// If the input cannot be read, or is not of this format.
pub fn read(format: Format, of: Converted, input: Input, reading: &Reading) -> Result<Document> {
    let values: &mut dyn Iterator<Item = tenarc::Result<Value>> = match of {
        Converted::Json => &mut json::values(input.reader()?, limits()),
        Converted::Msgpack => &mut msgpack::values(input.reader()?, limits()),
        _ => {
            if of == Converted::Arrow
                && let Some(table) = tables::read_arrow(&input)?
            {
                return Ok(table);
            }
            // External data files of ONNX models are read only from the directory of the model.
            let options = Options::default().with_external(true).with_names(reading.names);
            let options = options.with_limits(limits());
            let opened = of.open_file(input.file, input.path.as_deref(), &options)?;
            return Ok(Document::of_opened(input.name, format, opened));
        }
    };
    let mut messages = Vec::new();
    for value in values {
        let value = value.of(if of == Converted::Json { "JSON" } else { "MessagePack" })?;
        tenarc::append_to(&mut messages, &value)?;
    }
    Document::of_messages(input.name, format, messages)
}

/// Writes values. A target file is read back and compared, and replaced only if all of them were written.
///
/// # Errors
/// If a value cannot be read, if this format cannot hold it and `lossy` is off, or if the target cannot be written.
pub fn write(of: Converted, values: &mut Values<'_>, target: &Target, lossy: Lossy) -> Result<()> {
    let options = Options::default().with_losses(lossy.0);
    match of {
        Converted::Json | Converted::Msgpack => {
            let name = target.name();
            let save = |file: &File, path: &Path| {
                let write = |out: &mut (dyn Write + Send)| {
                    all(of, values, out, &options).map_err(Failure::into_library)
                };
                written(file, path, write).map_err(|error| Failure::while_writing(error, &name))
            };
            if target.write_file(save)? {
                return Ok(());
            }
            write_stream(target, &mut |out| all(of, values, out, &options))
        }
        Converted::Safetensors if target.path().is_some_and(is_index) => {
            Err(Failure::new("cannot write a sharded model: write one .safetensors file"))
        }
        _ => one(of, values, target, &options),
    }
}

/// Writes values one after the other.
fn all(
    of: Converted,
    values: &mut Values<'_>,
    out: &mut dyn Write,
    options: &Options,
) -> Result<()> {
    values.each(&mut |value| {
        value.with_section(&mut |section| {
            let lost = match section.message().map(tenarc::from_slice::<Value>) {
                Some(value) if of == Converted::Json => {
                    let lost = json::write_with(&mut *out, &value?, options)?;
                    out.write_all(b"\n")?;
                    lost
                }
                Some(value) => msgpack::write_with(&mut *out, &value?, options)?,
                None => as_rows(section, |value| Ok(of.write(value, &mut *out, options)?))?,
            };
            tell(&lost, None, NOT_KEPT);
            Ok(())
        })
    })
}

/// Writes the only value.
fn one(of: Converted, values: &mut Values<'_>, target: &Target, options: &Options) -> Result<()> {
    let name = target.name();
    let mut put = |file: &File, path: &Path| {
        only(of, values, &mut |value| {
            let lost = of.write_file(value, file, path, options);
            tell(&lost.map_err(|error| Failure::while_writing(error, &name))?, None, NOT_KEPT);
            Ok(())
        })
    };
    if target.write_file(&mut put)? {
        return Ok(());
    }
    if of != Converted::Npz {
        return write_stream(target, &mut |writer| {
            only(of, values, &mut |value| {
                tell(&of.write(value, writer, options)?, None, NOT_KEPT);
                Ok(())
            })
        });
    }
    // The writer of npz seeks, which a pipe cannot.
    let mut spooled = temporary()?;
    put(&spooled, Path::new(&name))?;
    spooled.rewind()?;
    write_stream(target, &mut |writer| Ok(io::copy(&mut spooled, writer).map(drop)?))
}

/// Calls `write` with the only value, in a form that the format can take.
fn only(
    of: Converted,
    values: &mut Values<'_>,
    write: &mut dyn FnMut(&dyn Stored) -> Result<()>,
) -> Result<()> {
    values.only(&mut |section| match section.stored() {
        // These have no place for columns.
        _ if matches!(of, Converted::Npy | Converted::Tenbin) => as_rows(section, |value| {
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
