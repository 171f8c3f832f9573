//! `cat`: writes the values of several files into one file.

use crate::args::Cat;
use crate::document::Document;
use crate::failure::{Of, Result, Status};
use crate::formats::{self, Values};
use crate::output::Target;
use crate::written::Written;

pub fn run(args: &Cat, quiet: bool) -> Result<Status> {
    let target = Target::new(&args.output.output, args.output.writing)?;
    let to = formats::of_output(&args.output.output, args.output.to)?;
    let mut out = Values::new(&target, to)?;
    for input in &args.inputs {
        let document = Document::open(input, &args.read.reading())?;
        document.refuse_losses(false)?;
        document.show_progress("copying", quiet);
        for section in document.sections(None)? {
            let section = section?;
            let saved = match section.segment() {
                Some(segment) => out.copy(section.name(), segment),
                None => out.save(None, &Written::whole(&section)),
            };
            saved.of(&document.name)?;
        }
    }
    out.finish()?;
    Ok(Status::Good)
}
