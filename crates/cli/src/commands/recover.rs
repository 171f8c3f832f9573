//! `recover`: repairs a truncated or damaged archive.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use serde_json::{Value as Json, json};
use tenarc::Archive;
use tenarc::archive::{Recovered, Recovery};
use tenarc::io::ReadAt;
use tenarc::tensor::TensorInfo;

use super::ls;
use crate::args::Recover;
use crate::failure::{Failure, Kind, Of as _, Result, Status};
use crate::input::shown;
use crate::limits::decoding;
use crate::output::{Out, say};
use crate::progress::Progress;
use crate::target::refuse_to_replace;
use crate::text::{bytes, counted, escaped};

pub fn run(args: &Recover, out: &mut Out) -> Result<Status> {
    if let Some(output) = args.output.as_ref().filter(|_| args.no_clobber) {
        refuse_to_replace(output)?;
    }
    let recovery = Recovery::of(&args.file).with_options(decoding());
    let recovered = match &args.output {
        None => recovery.in_place()?,
        Some(output) => recovery.to(output)?,
    };
    let file = args.output.as_ref().unwrap_or(&args.file);
    let damage = damage(file);
    let found = damage.as_deref().unwrap_or_default();
    if args.json.json {
        out.json(&as_json(&recovered, found))?;
    } else {
        print(&recovered, found, &shown(file), out)?;
    }
    let found = damage.map_err(|failure| failure.with_hint(": what was kept is not verified"))?;
    if found.is_empty() {
        return Ok(Status::Good);
    }
    say(&format!(
        "{}: the kept values are damaged; what is whole in them can be read",
        shown(file)
    ));
    Ok(Status::Found)
}

/// Damage in a recovered file.
struct Damage {
    /// The number and the name of the value. `None` if the damage is in no value.
    value: Option<(u64, Option<String>)>,
    error: String,
}

/// Verifies a recovered file, and returns its damage: the first one of each value. Repairing keeps damaged values, so that
/// what is whole in them is not lost.
///
/// # Errors
/// If the file cannot be read, or needs more memory than the limits allow.
fn damage(path: &Path) -> Result<Vec<Damage>> {
    // Of a device or a pipe, nothing can be read back.
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let archive = tenarc::open(path)?.with_options(decoding());
    all_damage(&archive).of(shown(path))
}

fn all_damage<S: ReadAt>(archive: &Archive<S>) -> Result<Vec<Damage>> {
    let progress = Progress::new(archive.byte_len(), "verifying");
    let Some(first) = fault(archive.verify_with(|done, _| progress.set(done)))? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for number in 0..archive.len() {
        let mut name = None;
        let verified = archive.segment(number).and_then(|segment| {
            name = segment.name().map(str::to_owned);
            if segment.has_checksums() { segment.verify_at("") } else { Ok(()) }
        });
        if let Some(error) = fault(verified)? {
            found.push(Damage { value: Some((number, name)), error });
        }
    }
    if found.is_empty() {
        // The damage is outside of headers and tensors, for example in a padding.
        found.push(Damage { value: None, error: first });
    }
    Ok(found)
}

/// Returns the text of an error that reports damage.
///
/// # Errors
/// If the error does not report damage.
fn fault(verified: tenarc::Result<()>) -> Result<Option<String>> {
    match verified {
        Ok(()) => Ok(None),
        Err(error) => match Failure::from(error) {
            failure if failure.kind == Kind::Damage => Ok(Some(failure.to_string())),
            failure => Err(failure),
        },
    }
}

fn as_json(recovered: &Recovered, found: &[Damage]) -> Json {
    let salvaged = recovered.salvaged.as_ref().map(|salvaged| {
        json!({
            "name": salvaged.name,
            "tensors": paths(&salvaged.tensors),
            "missing": places(&salvaged.missing),
        })
    });
    let damage = |Damage { value, error }: &Damage| {
        let (number, name) =
            value.as_ref().map_or((None, None), |(number, name)| (Some(number), name.as_ref()));
        json!({"number": number, "name": name, "error": error})
    };
    json!({
        "segments": recovered.segments,
        "damaged": damaged(found),
        "damage": found.iter().map(damage).collect::<Vec<_>>(),
        "dropped": recovered.dropped,
        "salvaged": salvaged,
    })
}

/// Returns the number of damaged values.
fn damaged(found: &[Damage]) -> usize {
    found.iter().filter(|damage| damage.value.is_some()).count()
}

fn print(recovered: &Recovered, found: &[Damage], file: &str, out: &mut Out) -> Result<()> {
    let kept = counted(recovered.segments, "value");
    let but = match damaged(found) {
        0 => String::new(),
        damaged => format!(" ({damaged} of them damaged)"),
    };
    let cut = if recovered.salvaged.is_some() { "cut" } else { "dropped" };
    let dropped = bytes(recovered.dropped);
    writeln!(out, "{file}: kept {kept}{but}, {cut} {dropped} at the end")?;
    for Damage { value, error } in found {
        let error = escaped(error);
        match value {
            Some((number, name)) => {
                let name = named(name.as_deref());
                writeln!(out, "value #{number}{name} is damaged: {error}")?;
            }
            None => writeln!(out, "damaged: {error}")?,
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
