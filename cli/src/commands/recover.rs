//! `recover`: a torn archive made whole.

use std::io::Write;

use crate::args::Recover;
use crate::failure::{Result, Status};
use crate::input::shown;
use crate::output::Out;
use crate::text::{bytes, counted};

pub fn run(args: &Recover, out: &mut Out) -> Result<Status> {
    let recovered = match &args.output {
        None => tenarc::recover(&args.file)?,
        Some(output) => tenarc::recover_to(&args.file, output)?,
    };
    let (segments, dropped) = (recovered.segments, recovered.dropped);
    if args.json.json {
        out.json(&serde_json::json!({"segments": segments, "dropped": dropped}))?;
    } else {
        let file = shown(args.output.as_ref().unwrap_or(&args.file));
        let kept = counted(segments, "value");
        let dropped = bytes(dropped);
        writeln!(out, "{file}: {kept} kept, {dropped} behind them dropped")?;
    }
    Ok(Status::Good)
}
