//! Values that are not tensors: texts, numbers, and the elements of sequences and columns.

use std::io::Write;
use std::ops::Range;

use tenarc::Value;

use crate::args::GetFormat;
use crate::commands::show::{AsJson, meaning, scalar_text};
use crate::document::Section;
use crate::failure::{Failure, Result};
use crate::formats::stream::print_or_write;
use crate::node::{Kind, Node, named};
use crate::output::{JsonLines, Out};
use crate::rows::{Meant, Rows};
use crate::slices::Slice;
use crate::taken::NOT_A_TENSOR;
use crate::target::Target;
use crate::text::escaped;

/// Prints or saves a value. A sequence gets one line for each element. As text, it must consist of scalars.
pub fn run(
    meant: Meant<'_>,
    slice: Option<&Slice>,
    format: GetFormat,
    target: &Target,
    out: &mut Out,
) -> Result<()> {
    let json = match format {
        GetFormat::Json => true,
        GetFormat::Text => false,
        GetFormat::Raw | GetFormat::Npy => {
            return Err(Failure::new(format!("{NOT_A_TENSOR}: it is written as text or JSON")));
        }
    };
    if let Meant::Value(section) = &meant
        && slice.is_none()
        && !is_sequence(section)
    {
        return print_or_write(target, out, &mut |writer| {
            one(section, &section.root, json, writer)
        });
    }
    let rows = Rows::of(meant)?;
    let wanted = match slice {
        None => 0..rows.len(),
        Some(slice) => slice.rows(rows.len())?,
    };
    print_or_write(target, out, &mut |writer| each(&rows, wanted.clone(), json, writer))
}

fn is_sequence(section: &Section<'_>) -> bool {
    matches!(section.root.untagged().kind, Kind::Columns(_) | Kind::Array(_))
}

fn each(rows: &Rows<'_>, wanted: Range<u64>, json: bool, writer: &mut dyn Write) -> Result<()> {
    let mut lines = JsonLines::default();
    rows.blocks(wanted, &mut |section, items| {
        items.iter().try_for_each(|node| {
            if json {
                AsJson::full(section, node).read(|json| lines.line(writer, json))
            } else {
                one(section, node, false, writer)
            }
        })
    })?;
    if json { lines.end(writer) } else { Ok(()) }
}

fn one(section: &Section<'_>, node: &Node, json: bool, writer: &mut dyn Write) -> Result<()> {
    if json {
        AsJson::full(section, node).read(|json| Ok(serde_json::to_writer(&mut *writer, json)?))?;
    } else {
        if let Kind::Tag(tag, inner) = &node.kind
            && let [name, parameters, item] = named(*tag, inner)
            && let Some(text) = meaning(section, [name, parameters, item])?
        {
            return Ok(writeln!(writer, "{}", escaped(&text))?);
        }
        let node = node.untagged();
        let Kind::Leaf = node.kind else {
            let what = "a value that consists of others: use --json, or `tenarc show`";
            return Err(Failure::new(what));
        };
        let item = section.item(&node.range);
        match tenarc::from_slice(item)? {
            // Without quotes, so that other programs can use it. It stays one line, which moves no cursor.
            Value::Text(text) => writer.write_all(escaped(&text).as_bytes())?,
            value => writer.write_all(scalar_text(value, item, true)?.as_bytes())?,
        }
    }
    Ok(writer.write_all(b"\n")?)
}
