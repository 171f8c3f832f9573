//! `stats`: prints statistics of each tensor.

mod measure;

use serde::Serialize;
use serde_json::Value as Json;

use crate::args::Stats;
use crate::commands::ls::shown;
use crate::document::{Document, Section};
use crate::elements;
use crate::failure::{Of, Result, Status};
use crate::inputs::{self, Headings};
use crate::node::{Form, Payload};
use crate::output::{JsonLines, Out};
use crate::paths::{Globs, Named};
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::text::{brief, escaped, quoted, shape};
use measure::{Bins, Measure};

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
    count: Option<usize>,
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
            section.each_tensor(&mut |named| {
                if !globs.admits(&named.path) {
                    return Ok(());
                }
                let row = measured(file, &section, &named);
                let row = row.of(&document.name).of(quoted(&named.path))?;
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

fn measured<'a>(
    file: Option<&'a str>,
    section: &Section<'_>,
    named: &Named<'_>,
) -> Result<Row<'a>> {
    let Payload { dtype, shape, .. } = named.payload;
    let numbers = match named.payload.form {
        Form::Bytes => None,
        _ if elements::is_decoded(dtype) => Some(numbers(section, named)?),
        _ => None,
    };
    Ok(Row {
        file,
        segment: section.number,
        name: section.name().map(str::to_owned),
        path: named.path.clone(),
        dtype: dtype.name().to_owned(),
        shape: shape.clone(),
        count: named.payload.count(),
        numbers,
        label: section.label(),
    })
}

fn numbers(section: &Section<'_>, named: &Named<'_>) -> Result<Numbers> {
    let mut measure = Measure::new(&named.payload.dtype);
    section.blocks(named.node, &mut |block| {
        measure.block(block);
        Ok(())
    })?;
    // The histogram needs the bounds, so the elements are read a second time.
    let mut bins = Bins::new(&measure);
    if bins.is_needed() {
        section.blocks(named.node, &mut |block| {
            bins.block(block);
            Ok(())
        })?;
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
type Counted = (&'static str, fn(&Numbers) -> u64);

/// Lines are no longer than this, as in most terminals.
const WIDTH: usize = 80;

fn print(rows: &[Row<'_>], several: bool, out: &mut Out) -> Result<()> {
    // NaN and Inf get columns only if a tensor has such elements, because few tensors do.
    let found = |count: fn(&Numbers) -> u64| {
        rows.iter().filter_map(|row| row.numbers.as_ref()).any(|numbers| count(numbers) > 0)
    };
    let mut counts: Vec<Counted> = vec![("zeros", |numbers| numbers.zeros)];
    let others: [Counted; 2] = [("NaN", |numbers| numbers.nan), ("Inf", |numbers| numbers.inf)];
    counts.extend(others.into_iter().filter(|(_, count)| found(*count)));
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
                cells.extend(counts.iter().map(|(_, count)| count(numbers).to_string()));
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
