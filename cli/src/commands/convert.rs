//! `convert`: the same values in another format.

use crate::args::Convert;
use crate::document::Document;
use crate::failure::{Failure, Of, Result, Status};
use crate::formats;
use crate::output::Target;

pub fn run(args: &Convert, quiet: bool) -> Result<Status> {
    let to = args.to.or_else(|| formats::by_extension(&args.output)).ok_or_else(|| {
        Failure::new("the name of the output does not tell the format: give it by --to")
    })?;
    let document = Document::open(&args.input, &args.read.reading())?;
    document.watch("converting", quiet);
    let target = Target::new(&args.output, !args.no_sync);
    let mut sections = document.sections(args.choose.segment.as_deref())?;
    formats::codec(to).write(&mut sections, &target).of(&document.name)?;
    Ok(Status::Good)
}
