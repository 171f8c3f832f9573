//! `convert`: writes a file in another format.

use crate::args::Convert;
use crate::document::Document;
use crate::failure::{Failure, Kind, Result, Status};
use crate::formats::{self, Lossy};
use crate::output::Target;

pub fn run(args: &Convert, quiet: bool) -> Result<Status> {
    let to = args.to.or_else(|| formats::by_extension(&args.output)).ok_or_else(|| {
        Failure::new("cannot detect the output format from the file name: use --to")
    })?;
    formats::only_for_archives("--compress", args.compress.compress.is_some(), to)?;
    to.check_writable()?;
    let document = Document::open(&args.input, &args.read.reading())?;
    document.refuse_losses(args.lossy)?;
    document.show_progress("converting", quiet);
    let mut target = Target::new(&args.output, args.writing)?;
    if args.compress.compress.is_some() {
        if document.archive().is_some() {
            target.options = document.like(target.options, None)?;
        }
        target.compress(args.compress.compress);
    }
    if document.has_tied_tensors() {
        target.options = target.options.with_dedup(true);
    }
    let mut sections = document.sections(args.choose.segment.as_deref())?;
    let written = to.write(&mut sections, &target, Lossy(args.lossy));
    written.map_err(|failure| match failure.kind {
        Kind::Loss => failure.with_hint(": use --lossy").of(&document.name),
        _ => failure.of(&document.name),
    })?;
    Ok(Status::Good)
}
