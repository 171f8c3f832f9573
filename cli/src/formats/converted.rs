//! Formats that the library converts.

use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::path::Path;

use tenarc::Value;
use tenarc::de::Limits;
use tenarc_convert::{Format as Converted, Options, Stored, json, msgpack, written};

use super::{
    Format, Lossy, NOT_KEPT, Sections, as_rows, is_index, only, single, tell, temporary,
    write_stream,
};
use crate::document::{Document, Reading};
use crate::failure::{Failure, Of as _, Result};
use crate::input::Input;
use crate::output::Target;

/// # Errors
/// If the input cannot be read, or is not of this format.
pub fn read(format: Format, of: Converted, input: Input, reading: &Reading) -> Result<Document> {
    let values: &mut dyn Iterator<Item = tenarc::Result<Value>> = match of {
        Converted::Json => &mut json::values(input.reader()?, Limits::default()),
        Converted::Msgpack => &mut msgpack::values(input.reader()?, Limits::default()),
        _ => {
            // External data files of ONNX models are read only from the directory of the model.
            let options = Options::default().with_external(true).with_names(reading.names);
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
pub fn write(
    of: Converted,
    sections: Sections<'_, '_>,
    target: &Target,
    lossy: Lossy,
) -> Result<()> {
    let options = Options::default().with_losses(lossy.0);
    match of {
        Converted::Json | Converted::Msgpack => {
            let mut write = |out: &mut dyn Write| values(of, sections, out, &options);
            let name = target.name();
            let save = |file: &File, path: &Path| {
                let written = written(file, path, |out| write(out).map_err(Failure::into_library));
                written.map_err(|error| Failure::while_writing(error, &name))
            };
            if target.write_file(save)? { Ok(()) } else { write_stream(target, &mut write) }
        }
        Converted::Safetensors if target.path().is_some_and(is_index) => {
            Err(Failure::new("cannot write a sharded model: write one .safetensors file"))
        }
        // These have no place for columns.
        Converted::Npy | Converted::Tenbin => as_rows(&single(sections)?, |value| {
            if of == Converted::Npy && !value.is_tensor()? {
                let what = "an npy file holds exactly one tensor: use `tenarc get` to save one";
                return Err(Failure::new(what));
            }
            save(of, value, target, &options)
        }),
        _ => only(sections, |value| save(of, value, target, &options)),
    }
}

fn values(
    of: Converted,
    sections: Sections<'_, '_>,
    out: &mut dyn Write,
    options: &Options,
) -> Result<()> {
    for section in sections {
        let section = section?;
        let lost = match section.message().map(tenarc::from_slice::<Value>) {
            Some(value) if of == Converted::Json => {
                let lost = json::write_with(&mut *out, &value?, options)?;
                out.write_all(b"\n")?;
                lost
            }
            Some(value) => msgpack::write_with(&mut *out, &value?, options)?,
            None => as_rows(&section, |value| Ok(of.write(value, out, options)?))?,
        };
        tell(&lost, None, NOT_KEPT);
    }
    Ok(())
}

fn save(of: Converted, value: &dyn Stored, target: &Target, options: &Options) -> Result<()> {
    let name = target.name();
    let put = |file: &File, path: &Path| {
        let lost = of.write_file(value, file, path, options);
        tell(&lost.map_err(|error| Failure::while_writing(error, &name))?, None, NOT_KEPT);
        Ok(())
    };
    if target.write_file(put)? {
        return Ok(());
    }
    // The writer of npz seeks, which a pipe cannot.
    let mut spooled = if of == Converted::Npz { Some(temporary()?) } else { None };
    if let Some(file) = &mut spooled {
        put(file, Path::new(&name))?;
        file.rewind()?;
    }
    write_stream(target, &mut |writer| {
        match &mut spooled {
            Some(file) => drop(io::copy(file, writer)?),
            None => tell(&of.write(value, writer, options)?, None, NOT_KEPT),
        }
        Ok(())
    })
}
