//! `show`: prints a value as text or JSON.

mod aligned;
mod plot;
mod tensor;

use tensor::Detail;
pub use tensor::Nested;

use std::io::Write;
use std::ops::Range;

use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::Value as Json;
use tenarc::Value;

use crate::args::Show;
use crate::document::{Document, Section};
use crate::elements::integer_json;
use crate::failure::{Failure, Of, Result, Status};
use crate::node::{Key, Kind, Node, named};
use crate::output::{DTYPE, HEADING, JsonLines, Out};
use crate::rows::{Meant, Rows};
use crate::slices::{self, Slice};
use crate::text::{escaped, quoted};
use crate::written::failed;

/// With more tensors than this, elements are shown only with `--full`.
const FEW: usize = 20;
/// Without `--full`, only this many entries of an array are shown, and ten times as many of a map.
const ENTRIES: usize = 100;
/// Without `--full`, only this many characters of a text are shown.
const TEXT: usize = 1000;
/// Arrays of scalars are written on one line up to this width.
const LINE: usize = 90;

pub fn run(args: &Show, out: &mut Out) -> Result<Status> {
    let document = Document::open(&args.input, &args.read.reading())?;
    document.report_losses();
    if let Some(graphics) = args.plot {
        plot::run(&document, args, graphics, out)?;
        return Ok(Status::Good);
    }
    let chosen = args.choose.segment.as_deref();
    let several = document.len() > 1;
    if args.condition.is_some() || args.head.is_some() || !args.columns.is_empty() {
        let rows = Rows::picked(&document, args).of(&document.name)?;
        shown_rows(&rows, 0..rows.len(), args, out)?;
        return Ok(Status::Good);
    }
    if !args.path.is_empty() || chosen.is_none() && document.whole_table()?.is_some() {
        return part(&document, args, out);
    }
    let mut lines = JsonLines::default();
    // As JSON, one value is itself, and any other number of values is an array.
    let listed = document.numbers(chosen)?.len() != 1;
    for section in document.sections(chosen)? {
        let section = section?;
        if args.json.json {
            let json = AsJson { section: &section, node: &section.root, full: args.full };
            if listed {
                json.read(|json| lines.line(out, json))?;
            } else {
                json.print(out)?;
            }
            continue;
        }
        if several {
            writeln!(out, "{}", out.styled(HEADING, &document.label(&section)))?;
        }
        value(&section, args, out)?;
    }
    if args.json.json && listed {
        lines.end(out)?;
    }
    Ok(Status::Good)
}

/// Shows the part that a path names, or some of its rows.
fn part(document: &Document, args: &Show, out: &mut Out) -> Result<Status> {
    let chosen = args.choose.segment.as_deref();
    // The whole argument is tried as a path first, because a key may look like a slice.
    let target = match (document.meant(&args.path, chosen), slices::split(&args.path)) {
        (Ok(target), _) => target,
        (Err(_), Some((path, slice))) => {
            let rows = document.meant(path, chosen).and_then(Rows::of);
            let rows = rows.of(&document.name)?;
            let wanted = Slice::parse(slice)?.rows(rows.len())?;
            shown_rows(&rows, wanted, args, out)?;
            return Ok(Status::Good);
        }
        (Err(failure), None) => return Err(failure.of(&document.name)),
    };
    match target {
        Meant::Value(section) => {
            // A part of a table has no value of its own.
            let is_of_one = chosen.is_some() && document.numbers(chosen)?.len() == 1;
            if is_of_one && !args.json.json && document.len() > 1 {
                writeln!(out, "{}", out.styled(HEADING, &document.label(&section)))?;
            }
            if args.json.json {
                AsJson { section: &section, node: &section.root, full: args.full }.print(out)?;
            } else {
                value(&section, args, out)?;
            }
        }
        Meant::Table(table) => {
            let rows = Rows::Table(table);
            if args.json.json {
                print_json_rows(&rows, args.full, out)?;
            } else {
                shown_rows(&rows, 0..rows.len(), args, out)?;
            }
        }
    }
    Ok(Status::Good)
}

/// Prints the root of a section.
fn value(section: &Section<'_>, args: &Show, out: &mut Out) -> Result<()> {
    let node = &section.root;
    let detail = match node.payload() {
        _ if args.full => Some(Detail::All),
        Some(_) => Some(Detail::Much),
        None => (node.payload_count() <= FEW).then_some(Detail::Little),
    };
    let mut printer = Printer { section, full: args.full, detail, out };
    printer.node(node, 0)?;
    writeln!(printer.out)?;
    Ok(())
}

/// Prints some rows. As JSON, each row is a line.
fn shown_rows(rows: &Rows<'_>, wanted: Range<u64>, args: &Show, out: &mut Out) -> Result<()> {
    if args.json.json {
        return rows.blocks(wanted, &mut |section, items| {
            items.iter().try_for_each(|node| {
                let json = AsJson { section, node, full: args.full };
                json.read(|json| out.json(json))
            })
        });
    }
    let detail = Some(if args.full { Detail::All } else { Detail::Little });
    print_rows(rows, wanted, args.full, detail, 0, out)?;
    writeln!(out)?;
    Ok(())
}

/// Prints rows as an array.
fn print_rows(
    rows: &Rows<'_>,
    wanted: Range<u64>,
    full: bool,
    detail: Option<Detail>,
    depth: usize,
    out: &mut Out,
) -> Result<()> {
    let count = wanted.end.saturating_sub(wanted.start);
    if count == 0 {
        write!(out, "[]")?;
        return Ok(());
    }
    let shown = if full { count } else { count.min(ENTRIES as u64) };
    writeln!(out, "[")?;
    let indent = "  ".repeat(depth + 1);
    rows.blocks(wanted.start..wanted.start + shown, &mut |section, items| {
        let payloads: usize = items.iter().map(Node::payload_count).sum();
        let detail = detail.filter(|detail| *detail == Detail::All || payloads <= FEW);
        let mut printer = Printer { section, full, detail, out };
        for item in items {
            write!(printer.out, "{indent}")?;
            printer.node(item, depth + 1)?;
            writeln!(printer.out, ",")?;
        }
        Ok(())
    })?;
    if shown < count {
        writeln!(out, "{indent}… {} more", count - shown)?;
    }
    write!(out, "{}]", "  ".repeat(depth))?;
    Ok(())
}

/// Prints all rows as JSON, each in a line.
fn print_json_rows(rows: &Rows<'_>, full: bool, out: &mut Out) -> Result<()> {
    let mut lines = JsonLines::default();
    rows.blocks(0..rows.len(), &mut |section, items| {
        items
            .iter()
            .try_for_each(|node| AsJson { section, node, full }.read(|json| lines.line(out, json)))
    })?;
    lines.end(out)
}

struct Printer<'a> {
    section: &'a Section<'a>,
    full: bool,
    /// How much of a tensor's elements is shown. `None` shows dtype and shape only.
    detail: Option<Detail>,
    out: &'a mut Out,
}

impl Printer<'_> {
    fn node(&mut self, node: &Node, depth: usize) -> Result<()> {
        match &node.kind {
            Kind::Leaf => {
                let text = leaf(self.section.item(&node.range), self.full)?;
                write!(self.out, "{text}")?;
            }
            Kind::Tag(tag, inner) => {
                let mut inner = &**inner;
                if let [name, parameters, item] = named(*tag, inner) {
                    if let Some(text) = meaning(self.section, [name, parameters, item])? {
                        write!(self.out, "{text}")?;
                        return Ok(());
                    }
                    let name = tenarc::from_slice::<Value>(self.section.item(&name.range))?;
                    write!(self.out, "{}", escaped(name.as_str().unwrap_or_default()))?;
                    if !matches!(&parameters.kind, Kind::Array(all) if all.is_empty()) {
                        self.node(parameters, depth)?;
                    }
                    inner = item;
                } else {
                    write!(self.out, "{tag}")?;
                }
                write!(self.out, "(")?;
                self.node(inner, depth)?;
                write!(self.out, ")")?;
            }
            Kind::Payload(payload) => {
                let label = payload.label();
                write!(self.out, "{}", self.out.styled(DTYPE, &label))?;
                if let Some(detail) = self.detail {
                    let indent = "  ".repeat(depth + 1);
                    let line = self.out.line(tensor::WIDTH + indent.len());
                    let line = line.saturating_sub(indent.len());
                    let text = tensor::text(self.section, node, payload, detail, line)?;
                    for (at, line) in text.lines().enumerate() {
                        let before = if at == 0 && !text.contains('\n') { " " } else { &indent };
                        let end = if text.contains('\n') { "\n" } else { "" };
                        write!(self.out, "{end}{before}{line}")?;
                    }
                }
            }
            Kind::Columns(columns) => {
                let rows = Rows::Table(self.section.table(columns)?);
                let all = 0..rows.len();
                print_rows(&rows, all, self.full, self.detail, depth, self.out)?;
            }
            Kind::Array(items) => self.array(items, depth)?,
            Kind::Map(entries) => self.map(entries, depth)?,
        }
        Ok(())
    }

    fn shown(&self, len: usize) -> usize {
        if self.full { len } else { len.min(ENTRIES) }
    }

    fn array(&mut self, items: &[Node], depth: usize) -> Result<()> {
        let shown = self.shown(items.len());
        if items.iter().all(|item| matches!(item.kind, Kind::Leaf)) {
            let texts = items.iter().take(shown);
            let texts = texts.map(|item| leaf(self.section.item(&item.range), self.full));
            let mut texts = texts.collect::<Result<Vec<_>>>()?;
            if shown < items.len() {
                texts.push(format!("… {} more", items.len() - shown));
            }
            let line = texts.join(", ");
            if line.len() <= self.out.line(LINE) || shown < items.len() {
                write!(self.out, "[{line}]")?;
                return Ok(());
            }
        }
        writeln!(self.out, "[")?;
        let indent = "  ".repeat(depth + 1);
        for item in items.iter().take(shown) {
            write!(self.out, "{indent}")?;
            self.node(item, depth + 1)?;
            writeln!(self.out, ",")?;
        }
        self.close(items.len() - shown, "]", depth)
    }

    fn map(&mut self, entries: &[(Key, Node)], depth: usize) -> Result<()> {
        if entries.is_empty() {
            write!(self.out, "{{}}")?;
            return Ok(());
        }
        // All fields of a struct should be shown, but not all entries of a map with many thousands.
        let shown = if self.full { entries.len() } else { entries.len().min(10 * ENTRIES) };
        writeln!(self.out, "{{")?;
        let indent = "  ".repeat(depth + 1);
        for (key, value) in entries.iter().take(shown) {
            let name = match self.section.item(&key.range) {
                [] => quoted(&key.step),
                item => leaf(item, self.full)?,
            };
            write!(self.out, "{indent}{name}: ")?;
            self.node(value, depth + 1)?;
            writeln!(self.out, ",")?;
        }
        self.close(entries.len() - shown, "}", depth)
    }

    fn close(&mut self, more: usize, bracket: &str, depth: usize) -> Result<()> {
        if more > 0 {
            writeln!(self.out, "{}… {more} more", "  ".repeat(depth + 1))?;
        }
        write!(self.out, "{}{bracket}", "  ".repeat(depth))?;
        Ok(())
    }
}

/// Formats an item without tensors as text.
fn leaf(item: &[u8], full: bool) -> Result<String> {
    scalar_text(tenarc::from_slice(item)?, item, full)
}

/// Like [`leaf`], for an item that was decoded.
pub fn scalar_text(value: Value, item: &[u8], full: bool) -> Result<String> {
    Ok(match value {
        Value::Text(text) => {
            let cut = text.char_indices().nth(TEXT).filter(|_| !full);
            match cut {
                Some((at, _)) => {
                    let start = quoted(text.get(..at).unwrap_or_default());
                    format!("{start} … {} bytes more", text.len() - at)
                }
                None => quoted(&text),
            }
        }
        Value::F32(value) => format!("{value:?}"),
        Value::F64(value) => format!("{value:?}"),
        Value::Bytes(bytes) if bytes.len() > TEXT / 10 && !full => {
            let start = tenarc::to_vec(&Value::Bytes(bytes.iter().take(32).copied().collect()))?;
            format!("{} … {} bytes", tenarc::diag::to_string(&start)?, bytes.len())
        }
        _ => escaped(&tenarc::diag::to_string(item)?).into_owned(),
    })
}

/// A node that is written as JSON while it is read. Tensors, tags and values that JSON lacks become objects.
pub struct AsJson<'a> {
    section: &'a Section<'a>,
    node: &'a Node,
    full: bool,
}

impl<'a> AsJson<'a> {
    /// The node with all elements of its tensors.
    pub fn full(section: &'a Section<'a>, node: &'a Node) -> Self {
        Self { section, node, full: true }
    }

    /// Calls `read`. If reading the section failed, returns that failure instead of serde's error about it.
    pub fn read<T>(&self, read: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        read(self).map_err(|failure| self.section.fault.take().map_or(failure, |fault| *fault))
    }

    /// Prints the node on one line. An array gets one line for each element.
    fn print(&self, out: &mut Out) -> Result<()> {
        let Self { section, full, .. } = *self;
        match &self.node.kind {
            Kind::Columns(columns) => {
                print_json_rows(&Rows::Table(section.table(columns)?), full, out)
            }
            Kind::Array(items) => {
                let mut lines = JsonLines::default();
                for node in items {
                    Self { section, node, full }.read(|json| lines.line(out, json))?;
                }
                lines.end(out)
            }
            _ => self.read(|json| out.json(json)),
        }
    }
}

impl Serialize for AsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { section, full, .. } = *self;
        let inside = |node| Self { section, node, full };
        match &self.node.kind {
            Kind::Leaf => scalar(section.item(&self.node.range))
                .map_err(|failure| failed::<S::Error>(section, failure))?
                .serialize(serializer),
            Kind::Columns(columns) => {
                let table = section
                    .table(columns)
                    .map_err(|failure| failed::<S::Error>(section, failure))?;
                let rows = Rows::Table(table);
                let mut seq = serializer.serialize_seq(None)?;
                let mut error = None;
                let read = rows.blocks(0..rows.len(), &mut |section, items| {
                    for node in items {
                        seq.serialize_element(&AsJson { section, node, full }).map_err(
                            |found| {
                                error = Some(found);
                                section.fault.take().map_or_else(
                                    || Failure::new("cannot be written"),
                                    |fault| *fault,
                                )
                            },
                        )?;
                    }
                    Ok(())
                });
                match (error, read) {
                    (Some(error), _) => Err(error),
                    (None, Err(failure)) => Err(failed(section, failure)),
                    (None, Ok(())) => seq.end(),
                }
            }
            Kind::Array(items) => serializer.collect_seq(items.iter().map(inside)),
            Kind::Map(entries) => {
                serializer.collect_map(entries.iter().map(|(key, node)| (&*key.step, inside(node))))
            }
            Kind::Tag(tag, inner) => {
                let text = match named(*tag, inner) {
                    [name, parameters, item] => meaning(section, [name, parameters, item]),
                    _ => Ok(None),
                };
                if let Some(text) = text.map_err(|failure| failed::<S::Error>(section, failure))? {
                    return serializer.serialize_str(&text);
                }
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("tag", tag)?;
                map.serialize_entry("value", &inside(inner))?;
                map.end()
            }
            Kind::Payload(payload) => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("dtype", payload.dtype.name())?;
                map.serialize_entry("shape", &payload.shape)?;
                map.serialize_entry("bytes", &payload.byte_len)?;
                if let Some(how) = section.compressed(payload) {
                    map.serialize_entry("codec", how.codec)?;
                    map.serialize_entry("stored", &how.stored)?;
                }
                let data = tensor::Data::new(section, self.node, payload, full)
                    .map_err(|failure| failed::<S::Error>(section, failure))?;
                if let Some(data) = data {
                    map.serialize_entry("data", &data)?;
                }
                map.end()
            }
        }
    }
}

/// The text that people write for a value of a named type. `None` if there is no such text.
pub fn meaning(section: &Section<'_>, parts: [&Node; 3]) -> Result<Option<String>> {
    if !parts.iter().all(|part| matches!(part.kind, Kind::Leaf | Kind::Array(_))) {
        return Ok(None);
    }
    let [name, parameters, item] =
        parts.map(|part| tenarc::from_slice::<Value>(section.item(&part.range)));
    let parameters = parameters?;
    let (Value::Text(name), Some(parameters)) = (name?, parameters.as_array()) else {
        return Ok(None);
    };
    Ok(tenarc_convert::meaning::text(&name, parameters, &item?))
}

fn scalar(item: &[u8]) -> Result<Json> {
    let float = |value: f64| match serde_json::Number::from_f64(value) {
        Some(number) => Json::Number(number),
        None => value.to_string().into(),
    };
    Ok(match tenarc::from_slice(item)? {
        Value::Null | Value::Simple(23) => Json::Null,
        Value::Bool(value) => value.into(),
        Value::Integer(value) => integer_json(value),
        Value::F32(value) => float(value.into()),
        Value::F64(value) => float(value),
        Value::Text(text) => text.into(),
        other => match tenarc::from_value::<u128>(other) {
            Ok(wide) => wide.to_string().into(),
            Err(_) => serde_json::json!({"diag": tenarc::diag::to_string(item)?}),
        },
    })
}
