//! The files that commands write. An existing file is replaced only when the new one is complete.

pub mod archive;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tempfile::TempDir;
use tenarc::archive::{Compression, SaveOptions};
use tenarc::io::{AtomicFile, SyncLevel};

use crate::address;
use crate::failure::{Failure, Kind, Of as _, OfOutput, Result};
use crate::formats::Format;
use crate::input::shown;
use crate::output::STDOUT;
use crate::temporary::TEMPORARY;
use crate::text::escaped;

/// How files are written.
#[derive(Args, Clone, Copy, Debug)]
pub struct Writing {
    /// Do not wait until the output is on disk; it may then be lost if the machine crashes
    #[arg(long)]
    pub no_sync: bool,
    /// Do not replace a file that is there
    #[arg(long)]
    pub no_clobber: bool,
}

/// The target of a command that writes a file.
#[derive(Clone, Debug)]
pub struct Target {
    /// The path of the file. `None` means standard output.
    path: Option<PathBuf>,
    /// The address of the object that the file becomes. Then the file is a temporary one.
    object: Option<(String, Arc<TempDir>)>,
    pub options: SaveOptions,
    /// Whether the tensors of archives are encoded again, for example to compress them. Otherwise, unchanged values are
    /// copied without decoding them.
    pub recompresses: bool,
    finds_equal: bool,
    /// Whether this is one of several outputs of a command, which share a progress bar.
    pub is_part: bool,
    /// The greatest number of bytes of tensors in each file of a sharded safetensors model.
    pub shard_size: Option<u64>,
    writing: Writing,
}

impl Target {
    /// Creates a target. The path `-` means standard output.
    ///
    /// # Errors
    /// If the file exists and `--no-clobber` was given.
    pub fn new(path: &Path, writing: Writing) -> Result<Self> {
        let mut object = None;
        let mut path = (path != Path::new("-")).then(|| path.to_path_buf());
        if let Some(address) = path.as_deref().and_then(address::of) {
            address::opener().map_err(|failure| failure.of_output(address))?;
            let dir = tempfile::tempdir().of(format!("cannot create {TEMPORARY}"))?;
            object = Some((address.to_owned(), Arc::new(dir)));
        }
        if let Some((_, dir)) = &object {
            // Some formats depend on the name.
            let name = path.as_deref().and_then(Path::file_name).unwrap_or(OsStr::new("object"));
            path = Some(dir.path().join(name));
        }
        let options = SaveOptions::default().with_sync(sync(writing));
        let target = Self {
            path,
            object,
            options,
            recompresses: false,
            finds_equal: false,
            is_part: false,
            shard_size: None,
            writing,
        };
        target.check_free()?;
        Ok(target)
    }

    /// Checks that the target may be written.
    ///
    /// # Errors
    /// If the file exists and `--no-clobber` was given.
    fn check_free(&self) -> Result<()> {
        match self.path() {
            Some(path) if self.writing.no_clobber => refuse_to_replace(path),
            _ => Ok(()),
        }
    }

    /// Checks that shards of a model may be written.
    ///
    /// # Errors
    /// If a shard of a model with this stem exists and `--no-clobber` was given.
    pub fn check_shards(&self, stem: &Path) -> Result<()> {
        let (Some(name), true) = (stem.file_name(), self.writing.no_clobber) else { return Ok(()) };
        let start = format!("{}-", name.to_string_lossy());
        let dir = stem.parent().filter(|dir| !dir.as_os_str().is_empty());
        let dir = dir.unwrap_or(Path::new("."));
        // A directory that cannot be read is reported when the files are written.
        let Ok(entries) = std::fs::read_dir(dir) else { return Ok(()) };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(&start) && name.ends_with(".safetensors") {
                refuse_to_replace(&path)?;
            }
        }
        Ok(())
    }

    /// Calls `write` with a new file, in which it can seek, and replaces the old file by the new one. Returns `false`
    /// if the target is not a file but a pipe, a device or standard output. Then `write` is not called.
    ///
    /// # Errors
    /// If it cannot be written, or `write` fails.
    pub fn write_file(&self, write: impl FnOnce(&File, &Path) -> Result<()>) -> Result<bool> {
        let Some(path) = self.path() else { return Ok(false) };
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(false);
        }
        let of_output = |error: tenarc::Error| Failure::from(error).of_output(&self.name());
        let file = AtomicFile::replacing(path).map_err(of_output)?;
        write(file.file(), path)?;
        self.commit(file)?;
        Ok(true)
    }

    /// Sets how the tensors of an archive are compressed. `None` leaves them as they are.
    pub fn compress(&mut self, compression: Option<Compression>) {
        if let Some(compression) = compression {
            self.options = self.options.clone().with_compression(compression);
            self.recompresses = true;
        }
    }

    /// Stores equal tensors of an archive once. Values of archives are then encoded again rather than copied.
    pub fn dedup(&mut self) {
        self.finds_equal(true);
        self.recompresses = true;
    }

    /// Sets whether equal tensors of a saved value are found, so that they are stored once.
    pub fn finds_equal(&mut self, on: bool) {
        self.options = self.options.clone().with_dedup(on);
        self.finds_equal = on;
    }

    /// Returns how many times values are read when they are written in this format: twice if equal tensors must be
    /// found first, or if a table is compared with its file, otherwise once.
    pub fn passes(&self, to: Format) -> u64 {
        1 + u64::from(to == Format::Parquet || self.finds_equal && to == Format::Archive)
    }

    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether this is one object in a store, beside which there can be no other file.
    pub fn is_object(&self) -> bool {
        self.object.is_some()
    }

    pub fn name(&self) -> String {
        match &self.object {
            Some((address, _)) => escaped(address).into_owned(),
            None => self.path().map_or_else(|| STDOUT.into(), shown),
        }
    }

    /// Makes a file that is complete the file of this target, or its object.
    ///
    /// # Errors
    /// If it cannot be written, or is there and `--no-clobber` was given.
    fn commit(&self, file: AtomicFile) -> Result<()> {
        let name = self.name();
        // Another process may have created the file meanwhile.
        self.check_free()?;
        file.commit(sync(self.writing)).map_err(|error| Failure::from(error).of_output(&name))?;
        let (Some((address, _)), Some(path)) = (&self.object, self.path()) else { return Ok(()) };
        let replace = !self.writing.no_clobber;
        let opener = address::opener()?;
        let written =
            File::open(path).and_then(|mut file| opener.write(address, &mut file, replace));
        written.map_err(|error| Failure::from(error).of_output(&name))
    }

    /// Opens a writer to the target. A file is replaced only when the writer is finished.
    ///
    /// # Errors
    /// If the target cannot be opened for writing, or is a terminal.
    pub fn writer(&self) -> Result<TargetWriter> {
        let Some(path) = self.path() else {
            let to = To::Stdout(not_a_terminal()?);
            return Ok(TargetWriter { to, target: self.clone(), name: self.name() });
        };
        let to = match std::fs::metadata(path) {
            // A device or pipe cannot be replaced by a file: it is written directly.
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(path);
                let file = file.map_err(|error| Failure::from(error).of_output(&self.name()))?;
                To::Direct(buffered(file))
            }
            _ => {
                let file = AtomicFile::replacing(path);
                let file = file.map_err(|error| Failure::from(error).of_output(&self.name()))?;
                To::File(Box::new(buffered(file)))
            }
        };
        Ok(TargetWriter { to, target: self.clone(), name: self.name() })
    }
}

fn sync(writing: Writing) -> SyncLevel {
    if writing.no_sync { SyncLevel::Off } else { SyncLevel::Full }
}

/// Checks that there is no file at a path.
///
/// # Errors
/// If there is a file.
pub fn refuse_to_replace(path: &Path) -> Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => {
            let what = "the file is there, and --no-clobber keeps it";
            Err(Failure::of_kind(Kind::Io, what).of_output(&shown(path)))
        }
    }
}

/// Returns standard output, or an error if it is a terminal: binary data is useless there.
fn not_a_terminal() -> Result<BufWriter<io::Stdout>> {
    if io::stdout().is_terminal() {
        let what = "standard output is a terminal: name a file with -o, or redirect the output";
        return Err(Failure::new(what));
    }
    Ok(buffered(io::stdout()))
}

fn buffered<W: Write>(writer: W) -> BufWriter<W> {
    BufWriter::with_capacity(1 << 20, writer)
}

/// Writes to a [`Target`].
pub struct TargetWriter {
    to: To,
    target: Target,
    name: String,
}

enum To {
    Stdout(BufWriter<io::Stdout>),
    Direct(BufWriter<File>),
    File(Box<BufWriter<AtomicFile>>),
}

impl TargetWriter {
    /// Writes the buffered bytes. If the target is a file, the new file then replaces the old one.
    ///
    /// # Errors
    /// If writing or renaming fails.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        if let To::File(file) = self.to {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            self.target.commit(file)?;
        }
        Ok(())
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.to {
            To::Stdout(writer) => writer,
            To::Direct(writer) => writer,
            To::File(writer) => &mut **writer,
        }
    }
}

impl Write for TargetWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes).map_err(|error| OfOutput::error(&error, &self.name))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush().map_err(|error| OfOutput::error(&error, &self.name))
    }
}
