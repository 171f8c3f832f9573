//! `cp`: copies files as they are, also to and from stores.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tenarc::Archive;
use tenarc::io::ReadAt as _;

use crate::args::Cp;
use crate::failure::{Failure, Of as _, Result, Status};
use crate::formats::Format;
use crate::input::{Input, START, Source, shown};
use crate::progress::Progress;
use crate::target::Target;

/// How many bytes are read at once.
const PIECE: usize = 1 << 20;

pub fn run(args: &Cp) -> Result<Status> {
    let is_folder =
        args.output.is_dir() || args.output.as_os_str().to_string_lossy().ends_with('/');
    if args.inputs.len() > 1 && !is_folder {
        let what = "several files are copied to a directory, and this is none: end it with a slash if it is one of a store";
        return Err(Failure::new(what).of_output(&shown(&args.output)));
    }
    for input in &args.inputs {
        let output = if is_folder { inside(&args.output, input)? } else { args.output.clone() };
        copy(input, &Target::new(&output, args.writing)?)?;
    }
    Ok(Status::Good)
}

/// The path of a copy in a directory.
fn inside(folder: &Path, input: &Path) -> Result<PathBuf> {
    let name = input
        .file_name()
        .filter(|_| input != Path::new("-"))
        .ok_or_else(|| Failure::new("has no name that its copy could have").of(&shown(input)))?;
    Ok(folder.join(name))
}

fn copy(path: &Path, target: &Target) -> Result<()> {
    if path.is_dir() {
        return Err(Failure::new("is a directory: name the files in it").of(&shown(path)));
    }
    let input = Input::open(path)?;
    let (name, len) = (input.name.clone(), input.len()?);
    let is_archive = Format::Archive.starts(&input.start(START)?);
    let source = input.into_source();
    source.add_progress_to(Progress::new(len, "copying"));
    let is_file = target.write_file(|file, _| {
        pour(&source, len, &mut &*file, &name, target)?;
        if is_archive { verify(file).of(&name) } else { Ok(()) }
    })?;
    if !is_file {
        let mut writer = target.writer()?;
        pour(&source, len, &mut writer, &name, target)?;
        writer.finish()?;
    }
    Ok(())
}

fn pour(source: &Source, len: u64, out: &mut dyn Write, name: &str, target: &Target) -> Result<()> {
    source.will_read(&mut std::iter::once(0..len));
    let (mut piece, mut done) = (vec![0; PIECE], 0);
    while done < len {
        let read = source.read_at(&mut piece, done).of(name)?;
        if read == 0 {
            let error = io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("became shorter while it was copied: expected {len} bytes, found {done}"),
            );
            return Err(Failure::from(error).of(name));
        }
        let written = out.write_all(&piece[..read]);
        written.map_err(|error| Failure::from(error).of_output(&target.name()))?;
        done += read as u64;
    }
    Ok(())
}

/// Checks all bytes of the copy of an archive.
fn verify(file: &File) -> tenarc::Result<()> {
    let archive = Archive::new(file)?;
    let progress = Progress::new(archive.byte_len(), "verifying");
    archive.verify_with(|done, _| progress.set(done))
}
