//! `cp`: copies files as they are, also to and from stores.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tenarc::io::ReadAt as _;

use crate::args::Cp;
use crate::failure::{Failure, Of as _, Result, Status};
use crate::formats::Format;
use crate::input::{Input, START, Source, first_bytes, shown};
use crate::progress::Progress;
use crate::target::Target;
use crate::target::archive::verified;

/// How many bytes are read at once.
const PIECE: usize = 1 << 20;

pub fn run(args: &Cp) -> Result<Status> {
    let is_folder =
        args.output.is_dir() || args.output.as_os_str().to_string_lossy().ends_with('/');
    if args.inputs.len() > 1 && !is_folder {
        let what = "several files are copied into a directory, and this is not one; in a store, the name of a directory ends with a slash";
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
    let name = input.file_name().filter(|_| input != Path::new("-")).ok_or_else(|| {
        Failure::new("has no name for its copy: name the file to write").of(&shown(input))
    })?;
    Ok(folder.join(name))
}

fn copy(path: &Path, target: &Target) -> Result<()> {
    if path.is_dir() {
        return Err(Failure::new("is a directory: name the files in it").of(&shown(path)));
    }
    let (source, name) = (Input::open_source(path)?, shown(path));
    let len = source.size().of(&name)?;
    source.add_progress_to(Progress::new(len, "copying"));
    let is_file = target.write_file(|file, _| {
        pour(&source, len, &mut &*file, &name, target)?;
        if Format::Archive.starts(&first_bytes(file, START)?) {
            verified(file, true).of(&name)?;
        }
        Ok(())
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
