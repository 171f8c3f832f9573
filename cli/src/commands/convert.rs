//! `convert`: the same values in another format.

use crate::args::Convert;
use crate::document::Document;
use crate::failure::{Failure, Of, Result, Status};
use crate::formats::{self, Lossy};
use crate::output::Target;

pub fn run(args: &Convert, quiet: bool) -> Result<Status> {
    let to = args.to.or_else(|| formats::by_extension(&args.output)).ok_or_else(|| {
        Failure::new("the name of the output does not tell the format: give it by --to")
    })?;
    let document = Document::open(&args.input, &args.read.reading())?;
    document.keep(args.lossy)?;
    document.watch("converting", quiet);
    let target = Target::new(&args.output, !args.no_sync);
    let mut sections = document.sections(args.choose.segment.as_deref())?;
    let written = formats::codec(to).write(&mut sections, &target, Lossy(args.lossy));
    let hinted = written.map_err(|failure| match failure {
        Failure::Other(why) if why.ends_with("unless losses are accepted") => {
            Failure::Other(format!("{why}, by --lossy"))
        }
        other => other,
    });
    hinted.of(&document.name)?;
    Ok(Status::Good)
}
