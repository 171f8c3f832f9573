//! `recover`: repairs a truncated or damaged archive.

use std::collections::HashSet;
use std::io::Write;
use std::ops::Range;

use serde_json::{Value as Json, json};
use tenarc::archive::{self, Filled, FilledChunk, Lost, Mended, Recovered};
use tenarc::tensor::TensorInfo;

use super::ls;
use crate::args::Recover;
use crate::failure::{Result, Status};
use crate::input::shown;
use crate::limits::decoding;
use crate::output::{Out, refuse_to_replace};
use crate::text::{bytes, counted, escaped};

pub fn run(args: &Recover, out: &mut Out) -> Result<Status> {
    if let Some(output) = args.output.as_ref().filter(|_| args.no_clobber) {
        refuse_to_replace(output)?;
    }
    let recovered = match &args.output {
        None => archive::recover_with(&args.file, decoding())?,
        Some(output) if args.fill => archive::recover_filled_with(&args.file, output, decoding())?,
        Some(output) => archive::recover_to_with(&args.file, output, decoding())?,
    };
    if args.json.json {
        out.json(&as_json(&recovered))?;
    } else {
        print(&recovered, &shown(args.output.as_ref().unwrap_or(&args.file)), out)?;
    }
    Ok(Status::Good)
}

fn as_json(recovered: &Recovered) -> Json {
    let salvaged = recovered.salvaged.as_ref().map(|salvaged| {
        json!({
            "name": salvaged.name,
            "tensors": paths(&salvaged.tensors),
            "missing": places(&salvaged.missing),
        })
    });
    let range = |range: &Range<u64>| json!([range.start, range.end]);
    let chunk = |chunk: &FilledChunk| {
        let rows = chunk.rows.as_ref().map(range);
        json!({"chunk": chunk.number, "bytes": range(&chunk.bytes), "rows": rows})
    };
    let filled = |filled: &Filled| {
        let chunks: Vec<Json> = filled.chunks.iter().map(chunk).collect();
        json!({"tensors": paths(&filled.tensors), "chunks": chunks})
    };
    let mended = |mended: &Mended| {
        let filled: Vec<Json> = mended.filled.iter().map(filled).collect();
        json!({
            "number": mended.number,
            "name": mended.name,
            "filled": filled,
            "missing": mended.missing,
        })
    };
    let lost = |lost: &Lost| json!({"number": lost.number, "name": lost.name, "error": lost.error});
    json!({
        "segments": recovered.segments,
        "damaged": recovered.damaged,
        "dropped": recovered.dropped,
        "salvaged": salvaged,
        "mended": recovered.mended.iter().map(mended).collect::<Vec<_>>(),
        "lost": recovered.lost.iter().map(lost).collect::<Vec<_>>(),
    })
}

fn print(recovered: &Recovered, file: &str, out: &mut Out) -> Result<()> {
    let kept = counted(recovered.segments, "value");
    let but = match recovered.damaged {
        0 => String::new(),
        damaged => format!(" ({damaged} of them damaged: run `tenarc verify`)"),
    };
    let cut = if recovered.salvaged.is_some() { "cut" } else { "dropped" };
    let dropped = bytes(recovered.dropped);
    writeln!(out, "{file}: kept {kept}{but}, {cut} {dropped} at the end")?;
    for lost in &recovered.lost {
        let name = named(lost.name.as_deref());
        writeln!(out, "value #{}{name} is lost: {}", lost.number, escaped(&lost.error))?;
    }
    for mended in &recovered.mended {
        let name = named(mended.name.as_deref());
        writeln!(
            out,
            "value #{}{name} was damaged; the new file has zeros in place of:",
            mended.number
        )?;
        for Filled { tensors, chunks, .. } in &mended.filled {
            let tensors: Vec<_> = paths(tensors).into_iter().map(ls::shown).collect();
            let tensors = tensors.join(", ");
            for FilledChunk { number, bytes: Range { start, end }, rows, .. } in chunks {
                let rows = rows.as_ref().map_or_else(String::new, |rows| {
                    format!(", rows {}..{}", rows.start, rows.end)
                });
                writeln!(out, "  {tensors}: chunk {number}, bytes {start}..{end}{rows}")?;
            }
        }
        for path in &mended.missing {
            writeln!(
                out,
                "  {}: all rows, because their lengths, flags or texts are damaged; the new file has null",
                ls::shown(path)
            )?;
        }
    }
    if let Some(salvaged) = &recovered.salvaged {
        let (kept, missing) =
            (salvaged.tensors.len() as u64, places(&salvaged.missing).len() as u64);
        let name = salvaged
            .name
            .as_deref()
            .map_or_else(String::new, |name| format!(" of {}", escaped(name)));
        let kept = counted(kept, "tensor");
        writeln!(
            out,
            "kept {kept}{name} of the cut value, without verifying them; {missing} missing:"
        )?;
        for path in places(&salvaged.missing) {
            writeln!(out, "  {}", ls::shown(path))?;
        }
    }
    Ok(())
}

fn named(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" ({})", escaped(name)))
}

/// The paths of what is missing. A sequence that is stored as columns misses several buffers, and is named once.
fn places(missing: &[TensorInfo]) -> Vec<&str> {
    let mut seen = HashSet::new();
    paths(missing).into_iter().filter(|path| seen.insert(*path)).collect()
}

fn paths(tensors: &[TensorInfo]) -> Vec<&str> {
    tensors.iter().map(TensorInfo::path).collect()
}
