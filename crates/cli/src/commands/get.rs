//! `get`: prints or saves one tensor or another value, or a slice of it.

mod value;

use std::io::Write;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use tenarc::error::Category;
use tenarc::tensor::{Deferred, Order};
use tenarc::{Archive, DType, DynTensor, OArchive, Value};
use tenarc_convert::{Format, Options, meaning, npy};

use super::show::Nested;
use crate::args::{Get, GetFormat};
use crate::document::{Document, Section};
use crate::elements::{self, Cast, Element};
use crate::failure::{Failure, Of, Result, Status};
use crate::fields::tagged;
use crate::formats::stream::{print_or_write, write_stream};
use crate::input::shown;
use crate::losses::{NOT_KEPT, tell};
use crate::output::{JsonLines, Out};
use crate::paths::{Globs, Named};
use crate::rows::Meant;
use crate::taken::{NOT_A_TENSOR, Taken, take, wanted};
use crate::target::{Target, Writing};
use crate::text::{escaped, quoted};

pub fn run(args: &Get, out: &mut Out) -> Result<Status> {
    let format = format(args)?;
    let document = Document::open(&args.input, &args.read.reading())?;
    let chosen = args.choose.segment.as_deref();
    let writing = Writing { no_sync: true, no_clobber: args.no_clobber };
    let target = Target::new(&args.output, writing)?;
    let Some(path) = &args.path else { return matching(&document, format, &target, args, out) };
    let (meant, slice) = wanted(&document, path, chosen).of(&document.name)?;
    let section = match meant {
        Meant::Value(section) if section.root.payload().is_some() => section,
        _ if args.cast.is_some() => return Err(Failure::new(NOT_A_TENSOR)).of(quoted(path)),
        other => {
            value::run(other, slice.as_ref(), format, &target, out).of(quoted(path))?;
            return Ok(Status::Good);
        }
    };
    let taken = take(&section, &section.root, slice.as_ref()).and_then(|taken| taken.cast(args));
    let taken = taken.of(quoted(path))?;
    match format {
        GetFormat::Json => {
            drop(decoded(&taken)?);
            if target.path().is_none() {
                out.json(&taken)?;
            } else {
                write_stream(&target, &mut |writer| Ok(serde_json::to_writer(writer, &taken)?))?;
            }
        }
        GetFormat::Text => print_or_write(&target, out, &mut |writer| text(&taken, writer))?,
        GetFormat::Raw => write_stream(&target, &mut |writer| Ok(writer.write_all(&taken.bytes)?))?,
        GetFormat::Npy => save_npy(&taken, &target)?,
    }
    Ok(Status::Good)
}

/// Saves a tensor as an npy file. Dates, times and durations are those of numpy.
fn save_npy(taken: &Taken, target: &Target) -> Result<()> {
    let dtype = taken.dtype.clone();
    let shown = |error: tenarc::Error| match error.category() {
        Category::Unsupported => Failure::new(format!("{error}: --cast f32, or use --as raw")),
        _ => error.into(),
    };
    let Some(of) = &taken.of else {
        let tensor = Deferred::from_blocks(dtype, &taken.shape, Order::C, |put| put(&taken.bytes));
        write_stream(target, &mut |writer| npy::write(writer, &tensor).map_err(shown))?;
        return Ok(());
    };
    // A value with its type, of which the converter makes the dtype of numpy.
    let tensor = DynTensor::new(dtype, &taken.shape, Order::C, taken.bytes.clone())?;
    let tensor = Value::Tensor(Box::new(tensor));
    let mut out = OArchive::new(Vec::new())?;
    out.save(&tagged(&of.0, of.1.clone(), tensor))?;
    let archive = Archive::new(out.finish()?)?;
    let (value, options) = (archive.segment(0)?, Options::default().with_losses(true));
    write_stream(target, &mut |writer| {
        tell(&Format::Npy.write(&value, writer, &options).map_err(shown)?, None, NOT_KEPT);
        Ok(())
    })?;
    Ok(())
}

/// Prints or saves all tensors whose path matches.
fn matching(
    document: &Document,
    format: GetFormat,
    target: &Target,
    args: &Get,
    out: &mut Out,
) -> Result<Status> {
    if matches!(format, GetFormat::Npy | GetFormat::Raw) {
        return Err(Failure::new(
            "with -e, tensors are written as text or JSON: use `tenarc convert -e` for other formats",
        ));
    }
    let globs = Globs::new(&args.only.patterns)?;
    let several = document.len() > 1;
    let each_line = |put: &mut dyn FnMut(&Section<'_>, &Named<'_>, Taken) -> Result<()>| {
        for section in document.sections(args.choose.segment.as_deref())? {
            let section = section?;
            section.each_tensor(&mut |named| {
                if !globs.admits_in(section.name(), &named.path) {
                    return Ok(());
                }
                let taken = take(&section, named.node, None).and_then(|taken| taken.cast(args));
                put(&section, &named, taken.of(quoted(&named.path))?)
            })?;
        }
        globs.check().of(&document.name)
    };
    let mut write = |writer: &mut dyn Write| match format {
        GetFormat::Json => {
            let mut lines = JsonLines::default();
            each_line(&mut |section, named, taken| {
                let segment = section.number;
                drop(decoded(&taken)?);
                lines.line(writer, &Entry { segment, path: &named.path, tensor: taken })
            })?;
            lines.end(writer)
        }
        _ => each_line(&mut |section, named, taken| {
            let label = if several { document.label(section) + " " } else { String::new() };
            let Taken { dtype, shape, .. } = &taken;
            let (dtype, shape) = (escaped(dtype.name()), crate::text::shape(shape));
            writeln!(writer, "{label}{}: {dtype} {shape}", super::ls::shown(&named.path))?;
            text(&taken, writer)
        }),
    };
    print_or_write(target, out, &mut write)?;
    Ok(Status::Good)
}

/// One of several tensors.
#[derive(serde::Serialize)]
struct Entry<'a> {
    segment: u64,
    path: &'a str,
    #[serde(flatten)]
    tensor: Taken,
}

/// Returns the format of the output.
///
/// # Errors
/// If the extension of the output's name belongs to no format of a single tensor.
fn format(args: &Get) -> Result<GetFormat> {
    let extension = args.output.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
    match (args.format, extension.as_deref()) {
        _ if args.json.json => Ok(GetFormat::Json),
        (Some(format), _) => Ok(format),
        (None, Some("npy")) => Ok(GetFormat::Npy),
        (None, Some("raw" | "bin")) => Ok(GetFormat::Raw),
        (None, Some("json")) => Ok(GetFormat::Json),
        (None, Some("txt") | None) => Ok(GetFormat::Text),
        (None, Some(end)) => Err(Failure::new(format!(
            "{}: a tensor alone is written as .npy, .raw, .txt or .json, not as .{}: use --as, or `tenarc edit \
             --keep` to write it by its name",
            shown(&args.output),
            escaped(end)
        ))),
    }
}

/// Decodes the elements. Returns an error if the dtype cannot be decoded.
fn decoded(taken: &Taken) -> Result<impl Iterator<Item = Element> + '_> {
    let Taken { dtype, bytes, .. } = taken;
    match elements::size(dtype).filter(|_| elements::is_decoded(dtype)) {
        Some(size) => {
            let elements = bytes.chunks_exact(size);
            Ok(elements.filter_map(|element| elements::decode(dtype, element)))
        }
        None => {
            let name = quoted(dtype.name());
            Err(Failure::new(format!("elements of {name} have no text form: use --as raw")))
        }
    }
}

impl Taken {
    /// Converts the elements to the requested dtype.
    fn cast(mut self, args: &Get) -> Result<Self> {
        if let Some(dtype) = &args.cast {
            let dtype = DType::from_name(dtype);
            // Elements of this dtype keep their bits, also those of NaN.
            if dtype == self.dtype {
                return Ok(self);
            }
            self.bytes = Cast::new(&self.dtype, &dtype)?.block(&self.bytes)?;
            (self.dtype, self.of) = (dtype, None);
        }
        Ok(self)
    }
}

fn text(taken: &Taken, writer: &mut dyn Write) -> Result<()> {
    let row = taken.shape.last().copied().unwrap_or(1);
    for (at, element) in decoded(taken)?.enumerate() {
        let last = (at + 1).is_multiple_of(row);
        let text = match (&taken.of, &element) {
            (Some((name, parameters)), Element::Int(number)) => {
                meaning::text(name, parameters, &Value::Integer(*number))
            }
            _ => None,
        };
        let text = text.unwrap_or_else(|| element.text());
        // `text` ends whole numbers with a point, as numpy does (`1.`). Some parsers need a digit after the point.
        let zero = if text.ends_with('.') { "0" } else { "" };
        write!(writer, "{text}{zero}{}", if last { "\n" } else { " " })?;
    }
    Ok(())
}

impl Serialize for Taken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let size = elements::size(&self.dtype).unwrap_or(1);
        let element = |at: usize| {
            let bytes = self.bytes.get(at * size..).and_then(|rest| rest.get(..size))?;
            elements::decode(&self.dtype, bytes)
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("dtype", self.dtype.name())?;
        if let Some((name, parameters)) = &self.of {
            map.serialize_entry("type", &(name, parameters))?;
        }
        map.serialize_entry("shape", &self.shape)?;
        map.serialize_entry("data", &Nested::new(&self.shape, Order::C, &element))?;
        map.end()
    }
}
