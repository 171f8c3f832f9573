//! `cat`: writes the values of several files into one file.

use std::path::PathBuf;

use crate::args::Cat;
use crate::document::Document;
use crate::failure::{Of as _, Result, Status};
use crate::formats;
use crate::formats::values::{Valued, Values};
use crate::target::Target;

pub fn run(args: &Cat) -> Result<Status> {
    let target = Target::new(&args.output.output, args.output.writing)?;
    let to = formats::of_output(&args.output.output, args.output.to)?;
    let open = |input: &PathBuf| -> Result<Document> {
        let document = Document::open(input, &args.read.reading())?;
        document.check_copy(false)?;
        document.show_progress("copying", target.passes(to));
        Ok(document)
    };
    if let [input] = &*args.inputs {
        Values::of(&open(input)?, None)?.write(to, &target)?;
        return Ok(Status::Good);
    }
    let mut values = Values::new(args.inputs.len() as u64, |put| {
        for input in &args.inputs {
            let document = open(input)?;
            for section in document.sections(None)? {
                put(Valued::Whole(&section?)).of(&document.name)?;
            }
        }
        Ok(())
    });
    values.write(to, &target)?;
    Ok(Status::Good)
}
