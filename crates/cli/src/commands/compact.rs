//! `compact`: writes the rows of tables that consist of many segments into few.

use std::io::Write;
use std::path::Path;

use serde_json::json;
use tenarc::archive::{Compacted, Compaction};
use tenarc::types::TypeName;

use crate::args::Compact;
use crate::condition;
use crate::document::{Document, Reading};
use crate::failure::{Failure, Of, Result, Status};
use crate::fields;
use crate::formats::Format;
use crate::input::shown;
use crate::limits::decoding;
use crate::output::Out;
use crate::target::archive::ArchiveTarget;
use crate::target::{Target, Writing};
use crate::text::{bytes, counted, escaped};

pub fn run(args: &Compact, out: &mut Out) -> Result<Status> {
    let mut compaction = Compaction::new().reading(decoding());
    for name in &args.name {
        compaction = compaction.named(name);
    }
    if let Some(condition) = &args.delete {
        compaction = compaction.without(condition::parse(condition, &types(args)?)?.0);
    }
    if let Some(column) = &args.sort {
        compaction = compaction.sorted_by(column);
    }
    let done = match &args.output {
        Some(output) => to(args, output, &compaction)?,
        None if args.file == Path::new("-") => {
            return Err(Failure::new("standard input cannot be replaced: name an output with -o"));
        }
        None => {
            let writing = Writing { no_sync: args.no_sync, no_clobber: false };
            let mut target = Target::new(&args.file, writing)?;
            target.compress(args.compress.compress);
            compaction.replace(&args.file, target.options)?
        }
    };
    if args.output.as_deref() != Some(Path::new("-")) {
        print(args, &done, out)?;
    }
    Ok(Status::Good)
}

/// The types of the columns of the tables, by which texts in the condition are understood. Standard input is read only once, so its
/// types are not known.
fn types(args: &Compact) -> Result<Vec<(String, TypeName)>> {
    if args.file == Path::new("-") {
        return Ok(Vec::new());
    }
    let document = Document::open(&args.file, &Reading::default())?;
    let Some(archive) = document.archive() else { return Ok(Vec::new()) };
    let mut names = args.name.clone();
    if names.is_empty() {
        names = document.names();
    }
    let mut types = Vec::new();
    for name in names {
        // A name that is not there, or is that of no table, is an error of the compaction.
        if let Ok(table) = archive.table(&name) {
            types.extend(fields::types(&table.columns()?));
        }
    }
    Ok(types)
}

/// Writes the new archive to another file.
fn to(args: &Compact, output: &Path, compaction: &Compaction) -> Result<Compacted> {
    let document = Document::open(&args.file, &Reading::default())?;
    let archive = document.archive().filter(|_| document.format == Format::Archive);
    let Some(archive) = archive else {
        return Err(Failure::new("only archives can be compacted").of(&document.name));
    };
    let writing = Writing { no_sync: args.no_sync, no_clobber: args.no_clobber };
    let mut target = Target::new(output, writing)?;
    target.compress(args.compress.compress);
    document.show_progress("copying", 1);
    let mut new = ArchiveTarget::new(&target)?;
    let done = new.compact(archive, compaction).of(&document.name)?;
    new.finish()?;
    Ok(done)
}

fn print(args: &Compact, done: &Compacted, out: &mut Out) -> Result<()> {
    let tables = done.tables();
    if args.json.json {
        let table = |table: &tenarc::archive::CompactedTable| {
            json!({
                "name": table.name(),
                "rows_before": table.rows_before(),
                "rows": table.rows(),
                "segments_before": table.segments_before(),
                "segments": table.segments(),
            })
        };
        return out.json(&json!({
            "tables": tables.iter().map(table).collect::<Vec<_>>(),
            "bytes_before": done.bytes_before(),
            "bytes": done.bytes(),
        }));
    }
    let file = shown(args.output.as_ref().unwrap_or(&args.file));
    for table in tables {
        let name = table.name().map_or_else(|| "the value".into(), escaped);
        let rows = counted(table.rows(), "row");
        let deleted = match table.rows_before() - table.rows() {
            0 => String::new(),
            count => format!(", {} deleted", counted(count, "row")),
        };
        let before = counted(table.segments_before(), "segment");
        let after = counted(table.segments(), "segment");
        writeln!(out, "{file}: {name}: {rows}{deleted}, {before} became {after}")?;
    }
    if tables.is_empty() {
        writeln!(out, "{file}: no table has several segments")?;
    }
    writeln!(out, "{file}: {} became {}", bytes(done.bytes_before()), bytes(done.bytes()))?;
    Ok(())
}
