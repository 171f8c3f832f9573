//! `edit`: drops, renames and casts tensors, and sets metadata.

mod changes;
pub mod tree;

use tenarc::archive::Segment;

use crate::args::Edit;
use crate::document::Document;
use crate::failure::{Failure, Of, Result, Status};
use crate::formats::values::{Valued, Values};
use crate::formats::{self, Format};
use crate::target::Target;
use crate::written::Written;
pub use changes::Changes;

pub fn run(args: &Edit) -> Result<Status> {
    let document = Document::open(&args.input, &args.read.reading())?;
    document.check_copy(false)?;
    if args.in_place && document.format != Format::Archive {
        let what = "only archives can be edited in place: name an output file with -o";
        return Err(Failure::new(what).of(&document.name));
    }
    let output = match (&args.output, args.in_place) {
        (Some(output), _) => output.clone(),
        (None, _) if args.input == std::path::Path::new("-") => {
            return Err(Failure::new("standard input cannot be edited in place"));
        }
        // If the input is a symbolic link, its target is replaced, not the link.
        (None, _) => std::fs::canonicalize(&args.input).of(&document.name)?,
    };
    let to = if args.in_place { Format::Archive } else { formats::of_output(&output, args.to)? };
    formats::only_for_archives("--compress", args.compress.compress.is_some(), to)?;
    formats::only_for_archives("--align", args.align.is_some(), to)?;
    let changes = Changes::new(args)?;
    let chosen = args.choose.segment.as_deref();
    let chosen = match chosen {
        Some(_) => Some(document.only(chosen)?.number),
        None if changes.sets() && document.len() > 1 => Some(document.only(None)?.number),
        None => None,
    };
    let mut target = Target::new(&output, args.writing)?;
    document.like(&mut target, args.align)?;
    target.compress(args.compress.compress);
    document.show_progress("copying", target.passes(to));
    let mut values = Values::new(document.len(), |put| {
        for number in 0..document.len() {
            let section = document.section(number)?;
            let meant = chosen.is_none_or(|chosen| chosen == number);
            let new = if meant { changes.applied(&section).of(&document.name)? } else { None };
            let alignment = section.segment().map(Segment::alignment);
            let moves = args.align.is_some() && args.align != alignment;
            match new {
                Some(value) => put(Valued::Changed(section.name(), value)),
                None if moves => put(Valued::Changed(section.name(), Written::whole(&section))),
                None => put(Valued::Whole(&section)),
            }
            .of(&document.name)?;
        }
        changes.check_used().of(&document.name)
    });
    values.write(to, &target)?;
    Ok(Status::Good)
}
