//! `recover`: repairs a truncated archive.

use std::io::Write;

use tenarc::archive::Recovered;
use tenarc::tensor::TensorInfo;

use crate::args::Recover;
use crate::failure::{Result, Status};
use crate::input::shown;
use crate::output::{Out, refuse_to_replace};
use crate::text::{bytes, counted, escaped};

pub fn run(args: &Recover, out: &mut Out) -> Result<Status> {
    if let Some(output) = args.output.as_ref().filter(|_| args.no_clobber) {
        refuse_to_replace(output)?;
    }
    let recovered = match &args.output {
        None => tenarc::archive::recover(&args.file)?,
        Some(output) => tenarc::archive::recover_to(&args.file, output)?,
    };
    let Recovered { segments, damaged, dropped, salvaged, .. } = recovered;
    if args.json.json {
        let salvaged = salvaged.map(|salvaged| {
            serde_json::json!({
                "name": salvaged.name,
                "tensors": paths(&salvaged.tensors),
                "missing": paths(&salvaged.missing),
            })
        });
        let found = serde_json::json!({
            "segments": segments,
            "damaged": damaged,
            "dropped": dropped,
            "salvaged": salvaged,
        });
        out.json(&found)?;
    } else {
        let file = shown(args.output.as_ref().unwrap_or(&args.file));
        let kept = counted(segments, "value");
        let dropped = bytes(dropped);
        let but = match damaged {
            0 => String::new(),
            _ => format!(" ({damaged} of them damaged: run `tenarc verify`)"),
        };
        let cut = if salvaged.is_some() { "cut" } else { "dropped" };
        writeln!(out, "{file}: kept {kept}{but}, {cut} {dropped} at the end")?;
        if let Some(salvaged) = salvaged {
            let (kept, missing) = (salvaged.tensors.len() as u64, salvaged.missing.len() as u64);
            let name = salvaged
                .name
                .as_deref()
                .map_or_else(String::new, |name| format!(" of {}", escaped(name)));
            let kept = counted(kept, "tensor");
            writeln!(
                out,
                "kept {kept}{name} of the cut value, without verifying them; {missing} missing:"
            )?;
            for path in paths(&salvaged.missing) {
                writeln!(out, "  {}", super::ls::shown(path))?;
            }
        }
    }
    Ok(Status::Good)
}

fn paths(tensors: &[TensorInfo]) -> Vec<&str> {
    tensors.iter().map(TensorInfo::path).collect()
}
