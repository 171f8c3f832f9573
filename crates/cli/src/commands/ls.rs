//! `ls`: lists the tensors of a file.

mod tree;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io::Write;

use serde::Serialize;
use tenarc::types::TypeName;

use crate::args::{Ls, Sort};
use crate::document::{Document, Section};
use crate::failure::{Result, Status};
use crate::inputs::{self, Headings};
use crate::node::{Columns, Kind, Node, Payload};
use crate::output::{FAINT, HEADING, JsonLines, Out};
use crate::paths::{self, Globs, Listed, Named};
use crate::shared::{Shared, Unit};
use crate::table::{Align, Table};
use crate::text::{bytes, counted, escaped, shape};
use tree::Tree;

/// One line of the list.
#[derive(Debug, Serialize)]
struct Row<'a> {
    /// The name of the file, if there are several files.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// `None` for a table over several values.
    segment: Option<u64>,
    name: Option<String>,
    /// The number of values, for a table over several of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<usize>,
    path: String,
    /// `None` if it is not a tensor.
    dtype: Option<String>,
    /// The kind of the rows of a column. It is "columns" for a whole sequence that is stored as columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// The name of the type that the rows of a column have.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    shape: Vec<usize>,
    order: &'static str,
    /// `None` if it is not a tensor.
    bytes: Option<u64>,
    /// The codec of a compressed tensor. `stored` is the number of bytes that are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    codec: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<u64>,
    #[serde(skip)]
    label: String,
}

pub fn run(args: &Ls, out: &mut Out) -> Result<Status> {
    let globs = Globs::new(&args.only.patterns)?;
    let mut lines = JsonLines::default();
    let mut headings = Headings::new(args.inputs.inputs.len());
    let status = inputs::each(&args.inputs.inputs, &mut |input| {
        let document = Document::open(input, &args.read.reading())?;
        document.report_losses();
        let mut found = Found { globs: &globs, lines: &mut lines, headings: &mut headings };
        if args.tree { found.tree(&document, args, out) } else { found.list(&document, args, out) }
    })?;
    inputs::check(&globs, &args.inputs.inputs, status)?;
    if args.json.json {
        lines.end(out)?;
    }
    Ok(status)
}

/// Prints the lists of the files, one after the other.
struct Found<'a> {
    globs: &'a Globs,
    lines: &'a mut JsonLines,
    headings: &'a mut Headings,
}

impl Found<'_> {
    fn list<'d>(&mut self, document: &'d Document, args: &Ls, out: &mut Out) -> Result<()> {
        let mut rows = Vec::new();
        let file = self.headings.several().then_some(&*document.name);
        // Rows that need not be sorted are printed at once.
        let streams = args.json.json && args.sort == Sort::Stored && !args.reverse;
        document.each_unit(args.choose.segment.as_deref(), &mut |unit| {
            let mut each = |row: Row<'d>| {
                let row = Row { file, ..row };
                if !self.globs.admits_in(row.name.as_deref(), &row.path) {
                    return Ok(());
                }
                if streams {
                    return self.lines.line(out, &row);
                }
                rows.push(row);
                Ok(())
            };
            let section = match unit {
                Unit::Value(section) => section,
                Unit::Table(shared) => return shared_table(&shared, &mut each),
            };
            let mut each = |row| each(Row { label: document.label(&section), ..row });
            section.each_listed(&mut |listed| match listed {
                Listed::Tensor(Named { path, payload, .. }) => {
                    each(Row::of(&section, path, None, payload))
                }
                Listed::Columns(columns) => table(&section, columns, &mut each),
            })
        })?;
        match args.sort {
            Sort::Stored => {}
            Sort::Path => rows.sort_by(|a, b| natural(&a.path).cmp(&natural(&b.path))),
            Sort::Dtype => rows.sort_by_key(Row::form),
            Sort::Shape => {
                rows.sort_by(|a, b| (a.shape.len(), &a.shape).cmp(&(b.shape.len(), &b.shape)));
            }
            Sort::Bytes => rows.sort_by_key(|row| Reverse(row.bytes)),
        }
        if args.reverse {
            rows.reverse();
        }
        if args.json.json {
            return rows.iter().try_for_each(|row| self.lines.line(out, row));
        }
        if rows.is_empty() && !self.globs.is_empty() {
            return Ok(());
        }
        self.headings.print(&document.name, out)?;
        print(&rows, document.len() > 1, out)
    }
}

impl<'a> Row<'a> {
    fn of(
        section: &Section<'a>,
        path: String,
        kind: Option<&'static str>,
        payload: &Payload,
    ) -> Self {
        let Payload { dtype, shape, order, byte_len, .. } = payload;
        let compressed = section.compressed(payload);
        Self {
            codec: compressed.map(|how| how.codec.to_owned()),
            stored: compressed.map(|how| how.stored),
            dtype: Some(dtype.name().to_owned()),
            order: if *order == tenarc::tensor::Order::F { "F" } else { "C" },
            bytes: Some(*byte_len),
            ..Self::without_tensor(section, path, kind, shape.clone())
        }
    }

    fn without_tensor(
        section: &Section<'a>,
        path: String,
        kind: Option<&'static str>,
        shape: Vec<usize>,
    ) -> Self {
        Self {
            file: None,
            segment: Some(section.number),
            name: section.name().map(str::to_owned),
            values: None,
            path,
            dtype: None,
            kind,
            of: None,
            shape,
            order: "C",
            bytes: None,
            codec: None,
            stored: None,
            label: String::new(),
        }
    }

    /// Returns the dtype, or the kind of a column that is not a tensor, and the name of its type.
    fn form(&self) -> String {
        let form = self.dtype.as_deref().or(self.kind).unwrap_or_default();
        let of = self.of.iter().flat_map(|of| [" ", of]);
        std::iter::once(form).chain(of).collect()
    }
}

/// Lists a sequence that is stored as columns, and its columns.
fn table<'a>(
    section: &Section<'a>,
    columns: &Columns,
    each: &mut dyn FnMut(Row<'a>) -> Result<()>,
) -> Result<()> {
    let len = usize::try_from(section.table(columns)?.len()).unwrap_or(usize::MAX);
    each(Row::without_tensor(section, columns.path.clone(), Some(COLUMNS), vec![len]))?;
    for field in section.fields(columns)? {
        let (path, kind) = (field.path.clone(), Some(field.kind));
        let row = match field.tensor.as_ref().and_then(Node::payload) {
            Some(payload) => Row::of(section, path, kind, payload),
            None => Row::without_tensor(section, path, kind, vec![len]),
        };
        each(Row { of: named(field.of.as_ref()), ..row })?;
    }
    Ok(())
}

fn named(of: Option<&TypeName>) -> Option<String> {
    of.map(|of| of.name().to_owned())
}

/// Lists a table over several values, and its columns.
fn shared_table<'a>(
    shared: &Shared<'_>,
    each: &mut dyn FnMut(Row<'a>) -> Result<()>,
) -> Result<()> {
    let row = |path: &str, kind| Row {
        file: None,
        segment: None,
        name: Some(shared.name.clone()),
        values: Some(shared.parts.len()),
        path: path.to_owned(),
        dtype: None,
        kind: Some(kind),
        of: None,
        shape: vec![shared.rows],
        order: "C",
        bytes: None,
        codec: None,
        stored: None,
        label: shared.label(),
    };
    each(row("", COLUMNS))?;
    for column in &shared.columns {
        let row = Row { of: named(column.of.as_ref()), ..row(&column.path, column.kind) };
        each(match &column.tensor {
            Some(tensor) => Row {
                dtype: Some(tensor.dtype.name().to_owned()),
                shape: tensor.shape.clone(),
                bytes: Some(tensor.byte_len),
                codec: column.compressed().map(|how| how.codec.to_owned()),
                stored: column.compressed().map(|how| how.stored),
                ..row
            },
            None => row,
        })?;
    }
    Ok(())
}

/// The text in place of the dtype for a sequence that is stored as columns.
const COLUMNS: &str = "columns";

/// Returns a sort key in which numbers are compared as numbers, so that layer 10 comes after layer 9.
fn natural(path: &str) -> Vec<(u8, u128, &str)> {
    let pieces = path.split('.');
    let piece = |piece| match str::parse(piece) {
        Ok(number) => (0, number, ""),
        Err(_) => (1, 0, piece),
    };
    pieces.map(piece).collect()
}

fn print(rows: &[Row<'_>], several: bool, out: &mut Out) -> Result<()> {
    let mut columns = vec![
        ("path", Align::Left),
        ("dtype", Align::Left),
        ("shape", Align::Left),
        ("bytes", Align::Right),
    ];
    let compressed = rows.iter().any(|row| row.codec.is_some());
    if compressed {
        columns.extend([("stored", Align::Right), ("codec", Align::Left)]);
    }
    if several {
        columns.insert(0, ("segment", Align::Left));
    }
    let mut table = Table::new(&columns);
    if let Some(width) = out.width() {
        table = table.within(width, "path", &["codec", "stored"]);
    }
    for row in rows {
        let order = if row.order == "F" { " F" } else { "" };
        let mut cells = vec![
            shown(&row.path),
            escaped(&row.form()).into_owned(),
            shape(&row.shape) + order,
            row.bytes.map_or_else(|| "-".into(), bytes),
        ];
        if compressed {
            cells.push(row.stored.or(row.bytes).map_or_else(|| "-".into(), bytes));
            cells.push(
                row.codec.as_deref().map_or_else(String::new, |codec| escaped(codec).into_owned()),
            );
        }
        if several {
            cells.insert(0, row.label.clone());
        }
        table.row(cells);
    }
    table.print(out)?;
    let sizes = rows.iter().filter_map(|row| row.bytes);
    let (count, total) =
        sizes.fold((0, 0u64), |(count, total), size| (count + 1, total.saturating_add(size)));
    let mut summary = format!("{}, {}", counted(count, "tensor"), bytes(total));
    if compressed {
        let stored = rows.iter().filter_map(|row| row.stored.or(row.bytes));
        let stored = stored.fold(0, u64::saturating_add);
        summary = format!("{summary}, {} stored", bytes(stored));
    }
    let tables = rows.iter().filter(|row| row.kind == Some(COLUMNS));
    let (count, total) = tables.fold((0, 0u64), |(count, total), row| {
        let len = row.shape.first().copied().unwrap_or(0) as u64;
        (count + 1, total.saturating_add(len))
    });
    if count > 0 {
        summary = format!("{summary}; {} of {}", counted(count, "table"), counted(total, "row"));
    }
    writeln!(out, "{}", out.styled(FAINT, &summary))?;
    Ok(())
}

/// Returns a path for printing. The path of the whole value is empty, and is replaced by a text.
pub fn shown(path: &str) -> String {
    if path.is_empty() { "(the value)".into() } else { escaped(path).into_owned() }
}

impl Found<'_> {
    fn tree(&mut self, document: &Document, args: &Ls, out: &mut Out) -> Result<()> {
        let mut begun = false;
        document.each_unit(args.choose.segment.as_deref(), &mut |unit| {
            let section = match unit {
                Unit::Value(section) => section,
                Unit::Table(shared) => {
                    let mut tree = Tree::new();
                    for column in &shared.columns {
                        if let Some(payload) = &column.tensor
                            && self.globs.admits_in(Some(&shared.name), &column.path)
                        {
                            let path = Cow::Borrowed(&*column.path);
                            tree.add(&[path], payload, column.compressed());
                        }
                    }
                    return self.print_tree(&tree, document, &shared.label(), &mut begun, out);
                }
            };
            let mut tree = Tree::new();
            let names = paths::of(section.bytes())?;
            let admits = |path: &str| self.globs.admits_in(section.name(), path);
            let mut failed = Ok(());
            paths::walk(&section.root, &mut Vec::new(), &mut |steps, node| match &node.kind {
                Kind::Payload(payload)
                    if payload.is_listed() && admits(&names.path(steps).text) =>
                {
                    tree.add(steps, payload, section.compressed(payload));
                }
                Kind::Columns(columns) => match section.fields(columns) {
                    Ok(fields) => {
                        for field in fields.iter().filter(|field| admits(&field.path)) {
                            let tensor = field.tensor.as_ref().and_then(Node::payload);
                            let Some(payload) = tensor else { continue };
                            let rest = field.path.get(columns.path.len()..).unwrap_or_default();
                            let rest = Cow::Borrowed(rest.trim_start_matches(['.', '/']));
                            let steps = [steps, &[rest]].concat();
                            tree.add(&steps, payload, section.compressed(payload));
                        }
                    }
                    Err(failure) => failed = Err(failure),
                },
                _ => {}
            });
            failed?;
            self.print_tree(&tree, document, &document.label(&section), &mut begun, out)
        })
    }

    /// Prints the tree of a value or a table. `begun` says whether one of the document was printed before.
    fn print_tree(
        &mut self,
        tree: &Tree<'_>,
        document: &Document,
        label: &str,
        begun: &mut bool,
        out: &mut Out,
    ) -> Result<()> {
        if tree.is_empty() && !self.globs.is_empty() {
            return Ok(());
        }
        let is_only = document.len() == 1;
        match (std::mem::replace(begun, true), is_only) {
            (true, _) => {}
            (false, true) => self.headings.gap(out)?,
            (false, false) => self.headings.print(&document.name, out)?,
        }
        let name = escaped(&document.name);
        let label = if is_only { &*name } else { label };
        writeln!(out, "{}  {}", out.styled(HEADING, label), tree.summary(out))?;
        tree.print(out)
    }
}
