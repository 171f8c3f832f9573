//! `convert`: writes a file in another format.

use crate::args::Convert;
use crate::document::Document;
use crate::failure::{Failure, Of, Result, Status};
use crate::formats::{self, Lossy};
use crate::output::Target;

pub fn run(args: &Convert, quiet: bool) -> Result<Status> {
    let to = args.to.or_else(|| formats::by_extension(&args.output)).ok_or_else(|| {
        Failure::new("cannot detect the output format from the file name: use --to")
    })?;
    let document = Document::open(&args.input, &args.read.reading())?;
    document.refuse_losses(args.lossy)?;
    document.show_progress("converting", quiet);
    let target = Target::new(&args.output, !args.no_sync);
    let mut sections = document.sections(args.choose.segment.as_deref())?;
    let written = formats::codec(to).write(&mut sections, &target, Lossy(args.lossy));
    let hinted = written.map_err(|failure| match failure {
        Failure::Other(why) if why.ends_with("unless losses are accepted") => {
            Failure::Other(format!("{why}: use --lossy"))
        }
        other => other,
    });
    hinted.of(&document.name)?;
    Ok(Status::Good)
}
