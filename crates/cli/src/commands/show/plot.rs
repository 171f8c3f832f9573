//! Draws tensors.

use std::io::Write;

use tenarc::DType;
use tenarc::tensor::Order;

use crate::args::Show;
use crate::document::{Document, Section};
use crate::elements;
use crate::failure::{Failure, Of, Result};
use crate::node::Form;
use crate::output::{HEADING, Out};
use crate::paths::Named;
use crate::plot::{Graphics, Picture};
use crate::rows::Meant;
use crate::taken::{take, wanted};
use crate::text::{escaped, quoted, shape};

/// Draws all tensors of a document, or what a path names.
pub fn run(document: &Document, args: &Show, graphics: Graphics, out: &mut Out) -> Result<()> {
    let chosen = args.choose.segment.as_deref();
    let count = if args.path.is_empty() {
        let mut count = 0;
        for section in document.sections(chosen)? {
            let section = section?;
            if document.len() > 1 {
                writeln!(out, "{}", out.styled(HEADING, &document.label(&section)))?;
            }
            count += all(&section, graphics, out).of(&document.name)?;
        }
        count
    } else {
        part(document, &args.path, chosen, graphics, out).of(&document.name)?
    };
    if count == 0 {
        return Err(Failure::new("there is no tensor of numbers to draw")).of(&document.name);
    }
    Ok(())
}

/// Draws what a path names, or a slice of a tensor. Returns the number of tensors.
fn part(
    document: &Document,
    path: &str,
    chosen: Option<&str>,
    graphics: Graphics,
    out: &mut Out,
) -> Result<usize> {
    let (meant, slice) = wanted(document, path, chosen)?;
    let Meant::Value(section) = meant else {
        let hint = "a table: name one of its columns, as in events.score";
        return Err(Failure::new(hint)).of(quoted(path));
    };
    let Some(slice) = slice else { return all(&section, graphics, out) };
    let taken = take(&section, &section.root, Some(&slice)).of(quoted(path))?;
    heading("", &taken.dtype, &taken.shape, out)?;
    let picture = Picture { dtype: &taken.dtype, dims: &taken.shape, order: Order::C };
    if !elements::is_decoded(&taken.dtype) {
        return Ok(0);
    }
    let mut blocks = |each: &mut dyn FnMut(&[u8])| {
        each(&taken.bytes);
        Ok(())
    };
    picture.draw(graphics, &mut blocks, out)?;
    Ok(1)
}

/// Draws all tensors of a section. Returns their number.
fn all(section: &Section<'_>, graphics: Graphics, out: &mut Out) -> Result<usize> {
    let mut count = 0;
    section.each_tensor(&mut |Named { path, node, payload, .. }| {
        if payload.form == Form::Bytes || !elements::is_decoded(&payload.dtype) {
            return Ok(());
        }
        count += 1;
        heading(&path, &payload.dtype, &payload.shape, out)?;
        let (dtype, dims, order) = (&payload.dtype, &payload.shape, payload.order);
        let mut blocks = |each: &mut dyn FnMut(&[u8])| {
            section.blocks(node, &mut |block| {
                each(block);
                Ok(())
            })
        };
        Picture { dtype, dims, order }.draw(graphics, &mut blocks, out).of(quoted(&path))
    })?;
    Ok(count)
}

fn heading(path: &str, dtype: &DType, dims: &[usize], out: &mut Out) -> Result<()> {
    if !path.is_empty() {
        write!(out, "{}  ", out.styled(HEADING, &escaped(path)))?;
    }
    writeln!(out, "{} {}", escaped(dtype.name()), shape(dims))?;
    Ok(())
}
