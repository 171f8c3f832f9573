//! `stats`: prints statistics of each tensor, and of each column of numbers.

mod measure;
mod present;

use std::io::Write;

use serde::Serialize;
use serde_json::Value as Json;
use tenarc::DType;
use tenarc::error::Category;

use crate::args::Stats;
use crate::commands::ls::shown;
use crate::document::{Document, Section};
use crate::elements::{self, Blocks, Cast};
use crate::failure::{Of, Result, Status};
use crate::inputs::{self, Headings};
use crate::node::{Columns, Form, Node, Optional, Payload};
use crate::output::{HEADING, JsonLines, Out};
use crate::paths::{Globs, Listed, Named};
use crate::plot;
use crate::progress::Progress;
use crate::shared::{Column, Shared, Unit, common};
use crate::table::{Align, Table};
use crate::text::{brief, escaped, quoted, shape};
use measure::{Bins, Measure};
use present::Present;

/// The statistics of one tensor.
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
    dtype: String,
    shape: Vec<usize>,
    /// The number of elements.
    count: Option<usize>,
    /// The number of rows that are null, of a column in which rows can be null.
    #[serde(skip_serializing_if = "Option::is_none")]
    nulls: Option<u64>,
    /// `None` if the dtype cannot be decoded.
    #[serde(flatten)]
    numbers: Option<Numbers>,
    #[serde(skip)]
    label: String,
}

#[derive(Debug, Serialize)]
struct Numbers {
    min: Json,
    max: Json,
    mean: Json,
    std: Json,
    zeros: u64,
    nan: u64,
    inf: u64,
    histogram: Vec<u64>,
    #[serde(skip)]
    cells: [String; 4],
}

pub fn run(args: &Stats, out: &mut Out) -> Result<Status> {
    let globs = Globs::new(&args.only.patterns)?;
    let mut lines = JsonLines::default();
    let mut headings = Headings::new(args.inputs.inputs.len());
    // With room for the count behind the highest bar.
    let ranges = if args.plot { out.line(plot::WIDTH).clamp(28, plot::WIDTH) - 16 } else { 12 };
    let ranges = u16::try_from(ranges).unwrap_or(12);
    let status = inputs::each(&args.inputs.inputs, &mut |input| {
        let document = Document::open(input, &args.read.reading())?;
        document.report_losses();
        // Tensors are read twice: the second time for the histogram.
        let total = document.bytes_of(&globs, args.choose.segment.as_deref())?;
        let progress = Progress::new(total.saturating_mul(2), "measuring");
        document.add_progress_to(&progress);
        let mut rows = Vec::new();
        let file = headings.several().then_some(&*document.name);
        document.each_unit(args.choose.segment.as_deref(), &mut |unit| {
            let (number, name, label) = match &unit {
                Unit::Value(section) => {
                    (Some(section.number), section.name(), document.label(section))
                }
                Unit::Table(shared) => (None, Some(&*shared.name), shared.label()),
            };
            let values = match &unit {
                Unit::Value(_) => None,
                Unit::Table(shared) => Some(shared.parts.len()),
            };
            let mut each = |column: Measured<'_>| {
                if !globs.admits_in(name, column.path()) {
                    return Ok(());
                }
                let found = column.measured(ranges).of(&document.name).of(quoted(column.path()))?;
                let Some(Found { dtype, shape, count, nulls, numbers }) = found else {
                    return Ok(());
                };
                let row = Row {
                    file,
                    segment: number,
                    name: name.map(str::to_owned),
                    values,
                    path: column.path().to_owned(),
                    dtype: dtype.name().to_owned(),
                    shape,
                    count,
                    nulls,
                    numbers,
                    label: label.clone(),
                };
                if args.json.json {
                    return lines.line(out, &row);
                }
                rows.push(row);
                Ok(())
            };
            match &unit {
                Unit::Value(section) => each_column(section, &mut each),
                Unit::Table(shared) => shared
                    .columns
                    .iter()
                    .filter(|column| column.numbers.is_some() || column.tensor.is_some())
                    .try_for_each(|column| each(Measured::Shared { shared, column })),
            }
        })?;
        if args.json.json || rows.is_empty() && !globs.is_empty() {
            return Ok(());
        }
        headings.print(&document.name, out)?;
        let print = if args.plot { print_plots } else { print };
        print(&rows, document.len() > 1, out)
    })?;
    inputs::check(&globs, &args.inputs.inputs, status)?;
    if args.json.json {
        lines.end(out)?;
    }
    Ok(status)
}

/// What is measured: a tensor, a column of numbers in which rows can be null, or a column of a table over several values.
enum Measured<'a> {
    Tensor {
        section: &'a Section<'a>,
        named: Named<'a>,
    },
    Optional {
        section: &'a Section<'a>,
        path: &'a str,
        columns: &'a Columns,
        optional: &'a Optional,
    },
    Shared {
        shared: &'a Shared<'a>,
        column: &'a Column,
    },
}

/// The statistics of one tensor or column, and what it is.
struct Found {
    dtype: DType,
    shape: Vec<usize>,
    count: Option<usize>,
    nulls: Option<u64>,
    numbers: Option<Numbers>,
}

/// Calls `each` with all tensors and columns of numbers, in the order of the value.
///
/// # Errors
/// If columns are damaged, or `each` fails.
fn each_column<'s>(
    section: &'s Section<'s>,
    each: &mut dyn FnMut(Measured<'s>) -> Result<()>,
) -> Result<()> {
    section.each_listed(&mut |listed| match listed {
        Listed::Tensor(named) => each(Measured::Tensor { section, named }),
        Listed::Columns(columns) => section.fields(columns)?.iter().try_for_each(|field| {
            let path = &*field.path;
            let optional = field.optional.as_ref();
            let optional =
                optional.map(|optional| Measured::Optional { section, path, columns, optional });
            let tensor = Named::of_field(field).map(|named| Measured::Tensor { section, named });
            tensor.or(optional).map_or(Ok(()), &mut *each)
        }),
    })
}

impl Measured<'_> {
    fn path(&self) -> &str {
        match self {
            Self::Tensor { named, .. } => &named.path,
            Self::Optional { path, .. } => path,
            Self::Shared { column, .. } => &column.path,
        }
    }

    /// Returns the statistics. `None` if the column turns out not to be one of numbers.
    fn measured(&self, ranges: u16) -> Result<Option<Found>> {
        match self {
            Self::Tensor { section, named } => {
                let Payload { dtype, shape, form, .. } = named.payload;
                let is_measured = *form != Form::Bytes && elements::is_decoded(dtype);
                let mut blocks = |each: &mut dyn FnMut(&[u8])| {
                    section.blocks(named.node, &mut |block| {
                        each(block);
                        Ok(())
                    })
                };
                let numbers =
                    is_measured.then(|| numbers(dtype, ranges, &mut blocks)).transpose()?;
                let (count, dtype, shape) = (named.payload.count(), dtype.clone(), shape.clone());
                Ok(Some(Found { dtype, shape, count, nulls: None, numbers }))
            }
            Self::Optional { section, columns, optional: Optional { column, dtype }, .. } => {
                let table = section.table(columns)?;
                let rows = usize::try_from(table.len()).unwrap_or(usize::MAX);
                let present: Present = table.column(column)?;
                let Some(elements) = present.elements(dtype) else { return Ok(None) };
                let mut blocks = |each: &mut dyn FnMut(&[u8])| {
                    each(&elements);
                    Ok(())
                };
                let numbers = Some(numbers(dtype, ranges, &mut blocks)?);
                let (count, nulls) = (Some(present.count()), Some(present.nulls));
                Ok(Some(Found { dtype: dtype.clone(), shape: vec![rows], count, nulls, numbers }))
            }
            Self::Shared { shared, column } => over_values(shared, column, ranges),
        }
    }
}

/// The elements of a column in one of several values.
enum Piece<'a> {
    Tensor(&'a Section<'a>, &'a Node, DType),
    /// The numbers of the rows that are not null.
    Held(Vec<u8>, DType),
}

impl Piece<'_> {
    fn dtype(&self) -> &DType {
        match self {
            Self::Tensor(_, _, dtype) | Self::Held(_, dtype) => dtype,
        }
    }
}

/// Measures a column of a table over several values. `None` if it turns out not to be one of numbers.
fn over_values(shared: &Shared<'_>, column: &Column, ranges: u16) -> Result<Option<Found>> {
    if let (Some(tensor), None) = (&column.tensor, &column.numbers) {
        let (dtype, shape, count) = (tensor.dtype.clone(), tensor.shape.clone(), tensor.count());
        return Ok(Some(Found { dtype, shape, count, nulls: None, numbers: None }));
    }
    let Some((initial, dims)) = &column.numbers else { return Ok(None) };
    let (mut pieces, mut count, mut nulls) = (Vec::new(), 0usize, 0u64);
    for part in shared.parts.iter().filter(|part| part.rows > 0) {
        let field = part.field(&column.path)?;
        let payload = field.and_then(|field| field.tensor.as_ref()).and_then(Node::payload);
        if let (Some(payload), Some(node)) =
            (payload, field.and_then(|field| field.tensor.as_ref()))
        {
            count = count.saturating_add(payload.count().unwrap_or(usize::MAX));
            pieces.push(Piece::Tensor(&part.section, node, payload.dtype.clone()));
            continue;
        }
        if part.is_columns && field.is_none() {
            // No row of this value has the field.
            nulls = nulls.saturating_add(part.rows as u64);
            continue;
        }
        let Some(segment) = part.section.segment() else { return Ok(None) };
        let optional = field.and_then(|field| field.optional.as_ref());
        let path = optional.map_or(&*column.path, |optional| &*optional.column);
        let present = match segment.table("")?.column::<Present>(path) {
            Ok(present) => present,
            // Rows that are not stored as columns may lack the field.
            Err(error)
                if !part.is_columns
                    && matches!(
                        error.category(),
                        Category::NotFound | Category::Mismatch | Category::Data
                    ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let dtype = optional.map_or_else(|| present.dtype(), |optional| optional.dtype.clone());
        let Some(elements) = present.elements(&dtype) else { return Ok(None) };
        count = count.saturating_add(present.count());
        nulls = nulls.saturating_add(present.nulls);
        // Nulls have no dtype.
        if !elements.is_empty() {
            pieces.push(Piece::Held(elements, dtype));
        }
    }
    let dtypes = pieces.iter().map(Piece::dtype);
    let Some(dtype) = &common(dtypes.chain([initial])) else { return Ok(None) };
    let mut blocks = |each: &mut dyn FnMut(&[u8])| {
        pieces.iter().try_for_each(|piece| {
            let from = piece.dtype();
            let mut cast = (from != dtype).then(|| Cast::new(from, dtype)).transpose()?;
            let mut put = |block: &[u8]| {
                match &mut cast {
                    Some(cast) => each(&cast.block(block)?),
                    None => each(block),
                }
                Ok(())
            };
            match piece {
                Piece::Tensor(section, node, _) => section.blocks(node, &mut put),
                Piece::Held(elements, _) => put(elements),
            }
        })
    };
    let is_measured = elements::is_decoded(dtype);
    let numbers = is_measured.then(|| numbers(dtype, ranges, &mut blocks)).transpose()?;
    let shape = [&[shared.rows], &**dims].concat();
    let nulls = (column.tensor.is_none()).then_some(nulls);
    Ok(Some(Found { dtype: dtype.clone(), shape, count: Some(count), nulls, numbers }))
}

fn numbers(dtype: &DType, ranges: u16, blocks: &mut Blocks<'_>) -> Result<Numbers> {
    let mut measure = Measure::new(dtype);
    blocks(&mut |block| measure.block(block))?;
    // The histogram needs the bounds, so the elements are read a second time.
    let mut bins = Bins::new(&measure, ranges);
    if bins.is_needed() {
        blocks(&mut |block| bins.block(block))?;
    }
    let (least, greatest) = measure.bounds();
    let float = |value: Option<f64>| {
        value.map_or(Json::Null, |value| {
            serde_json::Number::from_f64(value)
                .map_or_else(|| value.to_string().into(), Json::Number)
        })
    };
    let cell = |value: Option<f64>| value.map_or_else(|| "-".into(), brief);
    let bound = |bound: Option<measure::Bound>| match bound {
        None => ("-".into(), Json::Null),
        Some(measure::Bound::Int(value)) => (integer(value), elements::integer_json(value)),
        Some(measure::Bound::Float(value)) => (brief(value), float(Some(value))),
    };
    let ((least, min), (greatest, max)) = (bound(least), bound(greatest));
    let (mean, std) = (measure.mean(), measure.std());
    Ok(Numbers {
        min,
        max,
        mean: float(mean),
        std: float(std),
        zeros: measure.zeros,
        nan: measure.nan,
        inf: measure.inf,
        histogram: bins.counts(),
        cells: [least, greatest, cell(mean), cell(std)],
    })
}

/// The heading of a count, and the function that returns it for a tensor.
type Counted = (&'static str, fn(&Row<'_>, &Numbers) -> u64);

fn print(rows: &[Row<'_>], several: bool, out: &mut Out) -> Result<()> {
    // Each count but that of zeros gets a column only if a tensor has such elements, because few have.
    let found = |(_, count): &Counted| {
        rows.iter().any(|row| row.numbers.as_ref().is_some_and(|numbers| count(row, numbers) > 0))
    };
    let others: [Counted; 3] = [
        ("NaN", |_, numbers| numbers.nan),
        ("Inf", |_, numbers| numbers.inf),
        ("nulls", |row, _| row.nulls.unwrap_or_default()),
    ];
    let mut counts: Vec<Counted> = vec![("zeros", |_, numbers| numbers.zeros)];
    counts.extend(others.into_iter().filter(found));
    let mut columns = vec![("path", Align::Left), ("dtype", Align::Left), ("shape", Align::Left)];
    columns.extend(["min", "max", "mean", "std"].map(|name| (name, Align::Right)));
    columns.extend(counts.iter().map(|(name, _)| (*name, Align::Right)));
    columns.push(("histogram", Align::Left));
    if several {
        columns.insert(0, ("segment", Align::Left));
    }
    let mut table =
        Table::new(&columns).within(out.line(plot::WIDTH), "path", &["shape", "histogram"]);
    for row in rows {
        let mut cells = vec![shown(&row.path), escaped(&row.dtype).into_owned(), shape(&row.shape)];
        match &row.numbers {
            Some(numbers) => {
                cells.extend(numbers.cells.iter().cloned());
                cells.extend(counts.iter().map(|(_, count)| count(row, numbers).to_string()));
                cells.push(plot::line(&numbers.histogram));
            }
            None => cells.extend(std::iter::repeat_n("-".to_owned(), counts.len() + 5)),
        }
        if several {
            cells.insert(0, row.label.clone());
        }
        table.row(cells);
    }
    table.print(out)?;
    Ok(())
}

/// Prints the histogram of each tensor over several lines.
fn print_plots(rows: &[Row<'_>], several: bool, out: &mut Out) -> Result<()> {
    for row in rows {
        let label = if several { format!("{} ", row.label) } else { String::new() };
        let (path, dtype) = (out.styled(HEADING, &shown(&row.path)), escaped(&row.dtype));
        write!(out, "{label}{path}  {dtype} {}", shape(&row.shape))?;
        let Some(numbers) = &row.numbers else {
            writeln!(out)?;
            continue;
        };
        let [least, greatest, mean, std] = &numbers.cells;
        write!(out, "  mean {mean}, std {std}")?;
        let counts = [(numbers.zeros, "zeros"), (numbers.nan, "NaN"), (numbers.inf, "Inf")];
        for (count, what) in counts.iter().chain([&(row.nulls.unwrap_or(0), "nulls")]) {
            if *count > 0 {
                write!(out, ", {count} {what}")?;
            }
        }
        writeln!(out)?;
        if !numbers.histogram.is_empty() {
            write!(out, "{}", plot::bars(&numbers.histogram, least, greatest))?;
        }
    }
    Ok(())
}

/// Formats an integer in at most eight characters.
#[allow(clippy::cast_precision_loss)]
fn integer(value: i128) -> String {
    if value.unsigned_abs() < 10_000_000 { value.to_string() } else { brief(value as f64) }
}
