//! `recover`: repairs a truncated archive.

use std::io::Write;

use tenarc::archive::Recovered;

use crate::args::Recover;
use crate::failure::{Result, Status};
use crate::input::shown;
use crate::output::Out;
use crate::text::{bytes, counted};

pub fn run(args: &Recover, out: &mut Out) -> Result<Status> {
    let recovered = match &args.output {
        None => tenarc::archive::recover(&args.file)?,
        Some(output) => tenarc::archive::recover_to(&args.file, output)?,
    };
    let Recovered { segments, damaged, dropped } = recovered;
    if args.json.json {
        let found =
            serde_json::json!({"segments": segments, "damaged": damaged, "dropped": dropped});
        out.json(&found)?;
    } else {
        let file = shown(args.output.as_ref().unwrap_or(&args.file));
        let kept = counted(segments, "value");
        let dropped = bytes(dropped);
        let but = match damaged {
            0 => String::new(),
            _ => format!(" ({damaged} of them damaged: run `tenarc verify`)"),
        };
        writeln!(out, "{file}: kept {kept}{but}, dropped {dropped} at the end")?;
    }
    Ok(Status::Good)
}
