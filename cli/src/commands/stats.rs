//! `stats`: prints statistics of each tensor, and of each column of numbers.

mod measure;
mod present;

use serde::Serialize;
use serde_json::Value as Json;
use tenarc::DType;

use crate::args::Stats;
use crate::commands::ls::shown;
use crate::document::{Document, Section};
use crate::elements;
use crate::failure::{Of, Result, Status};
use crate::inputs::{self, Headings};
use crate::node::{Columns, Form, Optional, Payload};
use crate::output::{JsonLines, Out};
use crate::paths::{Globs, Listed, Named};
use crate::progress::Progress;
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
    segment: u64,
    name: Option<String>,
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
    let status = inputs::each(&args.inputs.inputs, &mut |input| {
        let document = Document::open(input, &args.read.reading())?;
        document.report_losses();
        // Tensors are read twice: the second time for the histogram.
        let total = document.bytes_of(&globs, args.choose.segment.as_deref())?;
        let progress = Progress::new(total.saturating_mul(2), "measuring");
        document.add_progress_to(&progress);
        let mut rows = Vec::new();
        let file = headings.several().then_some(&*document.name);
        for section in document.sections(args.choose.segment.as_deref())? {
            let section = section?;
            each_column(&section, &mut |column| {
                if !globs.admits(column.path()) {
                    return Ok(());
                }
                let row = column.measured(file, &section);
                let Some(row) = row.of(&document.name).of(quoted(column.path()))? else {
                    return Ok(());
                };
                if args.json.json {
                    return lines.line(out, &row);
                }
                rows.push(row);
                Ok(())
            })?;
        }
        if args.json.json || rows.is_empty() && !globs.is_empty() {
            return Ok(());
        }
        headings.print(&document.name, out)?;
        print(&rows, document.len() > 1, out)
    })?;
    inputs::check(&globs, &args.inputs.inputs, status)?;
    if args.json.json {
        lines.end(out)?;
    }
    Ok(status)
}

/// What is measured: a tensor, or a column of numbers in which rows can be null.
enum Measured<'a> {
    Tensor(Named<'a>),
    Optional { path: &'a str, columns: &'a Columns, optional: &'a Optional },
}

/// Calls `each` with all tensors and columns of numbers, in the order of the value.
///
/// # Errors
/// If columns are damaged, or `each` fails.
fn each_column<'s>(
    section: &'s Section<'_>,
    each: &mut dyn FnMut(Measured<'s>) -> Result<()>,
) -> Result<()> {
    section.each_listed(&mut |listed| match listed {
        Listed::Tensor(named) => each(Measured::Tensor(named)),
        Listed::Columns(columns) => section.fields(columns)?.iter().try_for_each(|field| {
            let path = &*field.path;
            let optional = field.optional.as_ref();
            let optional = optional.map(|optional| Measured::Optional { path, columns, optional });
            Named::of_field(field).map(Measured::Tensor).or(optional).map_or(Ok(()), &mut *each)
        }),
    })
}

impl Measured<'_> {
    fn path(&self) -> &str {
        match self {
            Self::Tensor(named) => &named.path,
            Self::Optional { path, .. } => path,
        }
    }

    /// Returns the statistics. `None` if the column turns out not to be one of numbers.
    fn measured<'f>(
        &self,
        file: Option<&'f str>,
        section: &Section<'_>,
    ) -> Result<Option<Row<'f>>> {
        let row = |dtype: &DType, shape| Row {
            file,
            segment: section.number,
            name: section.name().map(str::to_owned),
            path: self.path().to_owned(),
            dtype: dtype.name().to_owned(),
            shape,
            count: None,
            nulls: None,
            numbers: None,
            label: section.label(),
        };
        match self {
            Self::Tensor(named) => {
                let Payload { dtype, shape, form, .. } = named.payload;
                let is_measured = *form != Form::Bytes && elements::is_decoded(dtype);
                let mut blocks = |each: &mut dyn FnMut(&[u8])| {
                    section.blocks(named.node, &mut |block| {
                        each(block);
                        Ok(())
                    })
                };
                let numbers = is_measured.then(|| numbers(dtype, &mut blocks)).transpose()?;
                let count = named.payload.count();
                Ok(Some(Row { count, numbers, ..row(dtype, shape.clone()) }))
            }
            Self::Optional { columns, optional: Optional { column, dtype }, .. } => {
                let table = section.table(columns)?;
                let rows = usize::try_from(table.len()).unwrap_or(usize::MAX);
                let present: Present = table.column(column)?;
                let Some(elements) = present.elements(dtype) else { return Ok(None) };
                let mut blocks = |each: &mut dyn FnMut(&[u8])| {
                    each(&elements);
                    Ok(())
                };
                let numbers = Some(numbers(dtype, &mut blocks)?);
                let (count, nulls) = (Some(present.count()), Some(present.nulls));
                Ok(Some(Row { count, nulls, numbers, ..row(dtype, vec![rows]) }))
            }
        }
    }
}

/// A function that calls its argument with blocks of elements, the same ones each time.
type Blocks<'a> = dyn FnMut(&mut dyn FnMut(&[u8])) -> Result<()> + 'a;

fn numbers(dtype: &DType, blocks: &mut Blocks<'_>) -> Result<Numbers> {
    let mut measure = Measure::new(dtype);
    blocks(&mut |block| measure.block(block))?;
    // The histogram needs the bounds, so the elements are read a second time.
    let mut bins = Bins::new(&measure);
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

/// Lines are no longer than this, as in most terminals.
const WIDTH: usize = 80;

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
    let mut table = Table::new(&columns).within(WIDTH, "path", &["shape", "histogram"]);
    for row in rows {
        let mut cells = vec![shown(&row.path), escaped(&row.dtype).into_owned(), shape(&row.shape)];
        match &row.numbers {
            Some(numbers) => {
                cells.extend(numbers.cells.iter().cloned());
                cells.extend(counts.iter().map(|(_, count)| count(row, numbers).to_string()));
                cells.push(bars(&numbers.histogram));
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

/// Formats an integer in at most eight characters.
#[allow(clippy::cast_precision_loss)]
fn integer(value: i128) -> String {
    if value.unsigned_abs() < 10_000_000 { value.to_string() } else { brief(value as f64) }
}

/// Formats a histogram in one line.
fn bars(counts: &[u64]) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let bar = |&count: &u64| {
        // Any count above zero shows at least the smallest bar.
        let height = (u128::from(count) * 8).div_ceil(u128::from(most));
        BARS.get(usize::try_from(height).unwrap_or(8)).copied().unwrap_or(' ')
    };
    let line: String = counts.iter().map(bar).collect();
    if line.is_empty() { "-".into() } else { format!("|{line}|") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_count_above_zero_shows_a_bar() {
        assert_eq!(super::bars(&[0, 1, 50, 100, u64::MAX]), "| ▁▁▁█|");
        assert_eq!(super::bars(&[0, 1, 4, 8]), "| ▁▄█|");
        assert_eq!(super::bars(&[]), "-");
    }
}
