//! `convert`: writes a file in another format.

use clap::ValueEnum;

use crate::args::Convert;
use crate::document::Document;
use crate::failure::{Failure, Kind, Result, Status};
use crate::formats::{self, Format, Lossy};
use crate::output::Target;

pub fn run(args: &Convert, quiet: bool) -> Result<Status> {
    let to = args.to.or_else(|| formats::by_extension(&args.output)).ok_or_else(|| {
        Failure::new("cannot detect the output format from the file name: use --to")
    })?;
    if args.compress.compress.is_some() && to != Format::Archive {
        let to = to.to_possible_value().map_or_else(String::new, |to| to.get_name().to_owned());
        let what = format!("--compress is only for archives, and the output is of the format {to}");
        return Err(Failure::new(what));
    }
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
    let mut sections = document.sections(args.choose.segment.as_deref())?;
    let written = formats::codec(to).write(&mut sections, &target, Lossy(args.lossy));
    written.map_err(|failure| match failure.kind {
        Kind::Loss => failure.with_hint(": use --lossy").of(&document.name),
        _ => failure.of(&document.name),
    })?;
    Ok(Status::Good)
}
