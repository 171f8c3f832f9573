//! `convert`: writes a file in another format.

use super::edit::Changes;
use crate::args::Convert;
use crate::document::{AsTable, Document};
use crate::failure::{Failure, Kind, Of as _, Result, Status};
use crate::formats::values::{Valued, Values};
use crate::formats::{self, Format, Lossy};
use crate::kept::kept;
use crate::output::{is_quiet, say};
use crate::paths::Globs;
use crate::target::Target;
use crate::written::Written;

pub fn run(args: &Convert) -> Result<Status> {
    if args.to.is_none() && args.output.extension().is_none() {
        let what = "cannot detect the output format from the file name: use --to";
        return Err(Failure::new(what));
    }
    let to = formats::of_output(&args.output, args.to)?;
    formats::only_for_archives("--compress", args.compress.compress.is_some(), to)?;
    formats::only_for_archives("--dedup", args.dedup, to)?;
    let is_sharded = args.shard_size.is_some();
    formats::only_for(Format::Safetensors, "safetensors", "--shard-size", is_sharded, to)?;
    to.check_writable()?;
    let mut reading = args.read.reading();
    reading.names = args.names.map_or_else(Default::default, Into::into);
    if to == Format::Parquet && reading.table == AsTable::No {
        reading.table = AsTable::Needed;
    }
    let document = Document::open(&args.input, &reading)?;
    if args.names.is_some() && document.opened().is_none() {
        let what =
            "--names is for files of named tensors, such as safetensors: this one has a structure";
        return Err(Failure::new(what).of(&document.name));
    }
    document.check_copy(args.lossy)?;
    if document.len() == 0 && !is_quiet() {
        say(&format!("{}: note: the file holds no values", document.name));
    }
    let mut target = Target::new(&args.output, args.writing)?;
    let chooses = !args.only.patterns.is_empty();
    let casts = !args.cast.is_empty();
    let stores_anew = args.compress.compress.is_some() || args.dedup || chooses || casts;
    if stores_anew && document.archive().is_some() {
        document.like(&mut target, None)?;
    }
    target.shard_size = args.shard_size;
    target.compress(args.compress.compress);
    if args.dedup || document.has_tied_tensors() {
        target.dedup();
    }
    document.show_progress("converting", target.passes(to));
    let chosen = args.choose.segment.as_deref();
    let mut values = match (&*args.only.patterns, &*args.cast) {
        ([], []) => Values::of(&document, chosen)?,
        (patterns, []) => matching(&document, chosen, patterns)?,
        (_, cast) => changed(&document, chosen, Changes::casting(cast)?)?,
    };
    let written = to.write(&mut values, &target, Lossy(args.lossy));
    written.map_err(|failure| match failure.kind {
        Kind::Loss => failure.with_hint(": use --lossy").of(&document.name),
        _ => failure.of(&document.name),
    })?;
    Ok(Status::Good)
}

/// Returns the changed values of a document.
fn changed<'d>(
    document: &'d Document,
    chosen: Option<&str>,
    changes: Changes,
) -> Result<Values<'d>> {
    let numbers = document.numbers(chosen)?;
    Ok(Values::new(numbers.len() as u64, move |put| {
        for &number in &numbers {
            let section = document.section(number)?;
            let put = match changes.applied(&section).of(&document.name)? {
                Some(value) => put(Valued::Changed(section.name(), value)),
                None => put(Valued::Whole(&section)),
            };
            put.of(&document.name)?;
        }
        changes.check_used().of(&document.name)
    }))
}

/// Returns, for each value of a document, the part with the tensors whose path matches.
fn matching<'d>(
    document: &'d Document,
    chosen: Option<&str>,
    patterns: &[String],
) -> Result<Values<'d>> {
    let globs = Globs::new(patterns)?;
    let numbers = document.numbers(chosen)?;
    if let Some(whole) = whole(document, &numbers, &globs).of(&document.name)? {
        return Values::of_numbers(document, whole);
    }
    let only = u64::from(numbers.len() == 1);
    Ok(Values::new(only, move |put| {
        for &number in &numbers {
            let section = document.section(number)?;
            if let Some(value) = kept(&section, &globs).of(&document.name)? {
                put(Valued::Changed(section.name(), value)).of(&document.name)?;
            }
        }
        globs.check().of(&document.name)
    }))
}

/// Returns the numbers of the values that match, if each of them matches as a whole. They are written as if they were
/// chosen, so that tables stay tables.
fn whole(document: &Document, numbers: &[u64], globs: &Globs) -> Result<Option<Vec<u64>>> {
    if document.archive().is_none() {
        return Ok(None);
    }
    let mut found = Vec::new();
    for &number in numbers {
        let section = document.section(number)?;
        match kept(&section, globs)? {
            None => {}
            Some(Written::Same(_, node)) if node.range == section.root.range => found.push(number),
            Some(_) => return Ok(None),
        }
    }
    Ok((!found.is_empty()).then_some(found))
}
