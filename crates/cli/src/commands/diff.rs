//! `diff`: compares two files.

mod compare;
mod values;

use std::io::Write;

use crate::args::Diff;
use crate::commands::ls::shown;
use crate::document::{Document, Reading};
use crate::failure::{Failure, Result, Status};
use crate::formats::Format;
use crate::output::{BAD, FAINT, GOOD, Out};
use crate::paths::Globs;
use crate::progress::Progress;
use crate::text::{counted, escaped};
use compare::{Comparison, Difference, Kind};

pub fn run(args: &Diff, out: &mut Out) -> Result<Status> {
    if ![args.atol, args.rtol].iter().all(|tolerance| *tolerance >= 0.0) {
        return Err(Failure::new("--atol and --rtol must not be negative or NaN"));
    }
    if [&args.a, &args.b].iter().all(|path| *path == std::path::Path::new("-")) {
        return Err(Failure::new("only one of the two files can be standard input"));
    }
    let reading = |from: Option<Format>| {
        let both = args.read.reading();
        Reading { from: from.or(both.from), ..both }
    };
    let a = Document::open(&args.a, &reading(args.from_a))?;
    let b = Document::open(&args.b, &reading(args.from_b))?;
    a.report_losses();
    b.report_losses();
    let globs = Globs::new(&args.patterns)?;
    let mut found = Vec::new();
    let chosen = args.choose.segment.as_deref();
    let pairs = pairs(&a, &b, chosen)?;
    if !args.structure {
        let total = a.bytes_of(&globs, chosen)?.saturating_add(b.bytes_of(&globs, chosen)?);
        let progress = Progress::new(total, "comparing");
        a.add_progress_to(&progress);
        b.add_progress_to(&progress);
    }
    for (from, to) in pairs {
        let number = from.or(to).unwrap_or(0);
        let only = |kind, label: String| Difference {
            segment: number,
            path: String::new(),
            kind,
            a: (kind == Kind::OnlyInA).then(|| format!("value {label}")),
            b: (kind == Kind::OnlyInB).then(|| format!("value {label}")),
            values: None,
        };
        match (from, to) {
            (Some(from), None) => found.push(only(Kind::OnlyInA, a.section(from)?.label())),
            (None, Some(to)) => found.push(only(Kind::OnlyInB, b.section(to)?.label())),
            (None, None) => {}
            (Some(from), Some(to)) => {
                let (from, to) = (a.section(from)?, b.section(to)?);
                let comparison = Comparison {
                    a: &from,
                    b: &to,
                    segment: number,
                    globs: &globs,
                    atol: args.atol,
                    rtol: args.rtol,
                    structure: args.structure,
                    // Other formats have no names for values: those of tables are the names of the files.
                    names: [&a, &b].iter().all(|document| document.format == Format::Archive),
                };
                found.extend(comparison.differences()?);
            }
        }
    }
    globs.check()?;
    if args.json.json {
        out.json_rows(&found)?;
    } else {
        print(&found, a.len().max(b.len()) > 1, out)?;
    }
    Ok(if found.is_empty() { Status::Good } else { Status::Found })
}

type Pair = (Option<u64>, Option<u64>);

/// Returns the numbers of the values to compare: of the chosen value in both files, or of all values, paired by number.
fn pairs(a: &Document, b: &Document, chosen: Option<&str>) -> Result<Vec<Pair>> {
    if chosen.is_some() {
        return Ok(vec![(Some(a.only(chosen)?.number), Some(b.only(chosen)?.number))]);
    }
    let there = |document: &Document, number| (number < document.len()).then_some(number);
    let numbers = 0..a.len().max(b.len());
    Ok(numbers.map(|number| (there(a, number), there(b, number))).collect())
}

fn print(found: &[Difference], several: bool, out: &mut Out) -> Result<()> {
    for difference in found {
        let Difference { segment, path, kind, a, b, values } = difference;
        let place = if several { format!("#{segment} {}", shown(path)) } else { shown(path) };
        let (a, b) = (a.as_deref().unwrap_or(""), b.as_deref().unwrap_or(""));
        let (a, b) = (out.styled(BAD, &escaped(a)), out.styled(GOOD, &escaped(b)));
        match (kind, values) {
            (Kind::OnlyInA, _) => writeln!(out, "{place}: only in A: {a}")?,
            (Kind::OnlyInB, _) => writeln!(out, "{place}: only in B: {b}")?,
            (_, Some(values)) => writeln!(out, "{place}: {values}")?,
            (Kind::Name, _) => writeln!(out, "{place}: name {a} → {b}")?,
            _ => writeln!(out, "{place}: {a} → {b}")?,
        }
    }
    if !found.is_empty() {
        let summary = counted(found.len() as u64, "difference");
        writeln!(out, "{}", out.styled(FAINT, &summary))?;
    }
    Ok(())
}
