//! Writes results to standard output or to files. An existing file is replaced only when the new one is complete.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tenarc::archive::{Compression, SaveOptions, Segment};
use tenarc::io::{AtomicFile, SyncLevel};
use tenarc::{Archive, OArchive};

use crate::args::Writing;
use crate::failure::{Failure, Kind, OfOutput, Result};
use crate::formats::Format;
use crate::input::{Source, shown};
use crate::progress::Progress;
use crate::text::{escaped, is_unsafe};
use crate::written::Written;

/// The name of standard output in messages.
const STDOUT: &str = "standard output";

/// Standard output, for text.
pub struct Out {
    writer: BufWriter<io::Stdout>,
    coloured: bool,
}

pub const HEADING: Style = Style::new().bold();
pub const DTYPE: Style = AnsiColor::Cyan.on_default();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const BAD: Style = AnsiColor::Red.on_default();
pub const FAINT: Style = Style::new().dimmed();

impl Out {
    /// Opens standard output. With `Auto`, colours are on if it is a terminal that supports them and `NO_COLOR` is not
    /// set.
    pub fn new(choice: ColorChoice) -> Self {
        let coloured = match choice {
            ColorChoice::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            other => other != ColorChoice::Never,
        };
        Self { writer: BufWriter::with_capacity(64 << 10, io::stdout()), coloured }
    }

    pub fn is_coloured(&self) -> bool {
        self.coloured
    }

    /// Returns the text in a style, if colours are on.
    pub fn styled(&self, style: Style, text: &str) -> String {
        if self.coloured { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Prints a value as JSON on one line.
    ///
    /// # Errors
    /// If writing fails.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        write_json(self, value)?;
        self.write_all(b"\n")?;
        Ok(())
    }

    /// Prints an array as JSON, with one line for each element.
    ///
    /// # Errors
    /// If writing fails.
    pub fn json_rows<T: Serialize>(&mut self, rows: impl IntoIterator<Item = T>) -> Result<()> {
        let mut lines = JsonLines::default();
        rows.into_iter().try_for_each(|row| lines.line(self, &row))?;
        lines.end(self)
    }
}

/// Writes a JSON array with one line for each element. Each element is written at once, so that the elements are not
/// collected in memory.
#[derive(Default)]
pub struct JsonLines {
    begun: bool,
}

impl JsonLines {
    /// Writes one element.
    ///
    /// # Errors
    /// If writing fails, or the element cannot be read.
    pub fn line(&mut self, out: &mut dyn Write, row: &impl Serialize) -> Result<()> {
        out.write_all(if self.begun { b",\n" } else { b"[\n" })?;
        self.begun = true;
        write_json(out, row)
    }

    /// Writes the end of the array.
    ///
    /// # Errors
    /// If writing fails.
    pub fn end(self, out: &mut dyn Write) -> Result<()> {
        out.write_all(if self.begun { b"\n]\n" } else { b"[]\n" })?;
        Ok(())
    }
}

/// Writes JSON that is safe to print on a terminal. It escapes every character that could control the terminal, even if
/// JSON allows that character.
fn write_json(writer: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(writer, Escaping))?;
    Ok(())
}

struct Escaping;

impl serde_json::ser::Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut units = [0; 2];
        for char in fragment.chars() {
            if is_unsafe(char) {
                for unit in char.encode_utf16(&mut units) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            } else {
                write!(writer, "{char}")?;
            }
        }
        Ok(())
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(|error| OfOutput::error(&error, STDOUT))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(|error| OfOutput::error(&error, STDOUT))
    }
}

/// Whether `--quiet` was given. It silences notes and progress bars.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Silences notes and progress bars.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a message to standard error.
pub fn say(message: &str) {
    // If standard error is closed, there is no other place for the message.
    let _ = writeln!(io::stderr(), "tenarc: {}", escaped(message));
}

/// The target of a command that writes a file.
#[derive(Clone, Debug)]
pub struct Target {
    /// The path of the file. `None` means standard output.
    path: Option<PathBuf>,
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
        let path = (path != Path::new("-")).then(|| path.to_path_buf());
        let options = SaveOptions::default().with_sync(sync(writing));
        let target = Self {
            path,
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
        self.check_free()?;
        file.commit(sync(self.writing)).map_err(of_output)?;
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

    pub fn name(&self) -> String {
        self.path().map_or_else(|| STDOUT.into(), shown)
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
            let name = self.name;
            // Another process may have created the file meanwhile.
            self.target.check_free()?;
            file.commit(sync(self.target.writing))
                .map_err(|error| Failure::from(error).of_output(&name))?;
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

/// Writes an archive to a [`Target`].
pub struct ArchiveTarget {
    to: ArchiveTo,
    target: Target,
    name: String,
}

enum ArchiveTo {
    File(Box<OArchive<AtomicFile>>),
    Stdout(Box<OArchive<BufWriter<io::Stdout>>>),
}

impl ArchiveTarget {
    /// Opens an archive at the target.
    ///
    /// # Errors
    /// If the target cannot be opened for writing, or is a terminal.
    pub fn new(target: &Target) -> Result<Self> {
        let options = target.options.clone();
        let name = target.name();
        let of_output = |error: tenarc::Error| Failure::from(error).of_output(&name);
        let to = match target.path() {
            Some(path) => {
                let out = AtomicFile::replacing(path)
                    .and_then(|file| OArchive::with_options(file, options));
                ArchiveTo::File(Box::new(out.map_err(of_output)?))
            }
            None => {
                let out = OArchive::with_options(not_a_terminal()?, options).map_err(of_output)?;
                ArchiveTo::Stdout(Box::new(out))
            }
        };
        Ok(Self { to, target: target.clone(), name })
    }

    /// Adds a value to the archive.
    ///
    /// # Errors
    /// If the value cannot be read or written.
    pub fn save(&mut self, name: Option<&str>, value: &Written<'_>) -> Result<()> {
        let saved = match (&mut self.to, name) {
            (ArchiveTo::File(out), None) => out.save(value).map(drop),
            (ArchiveTo::File(out), Some(name)) => out.save_as(name, value).map(drop),
            (ArchiveTo::Stdout(out), None) => out.save(value).map(drop),
            (ArchiveTo::Stdout(out), Some(name)) => out.save_as(name, value).map(drop),
        };
        saved.map_err(|error| value.failure(error, &self.name))
    }

    /// Adds a copy of a segment, without decoding it.
    ///
    /// # Errors
    /// If the segment is damaged, or cannot be written.
    pub fn copy(&mut self, name: Option<&str>, segment: &Segment<'_, Source>) -> Result<()> {
        let saved = match (&mut self.to, name) {
            (ArchiveTo::File(out), Some(name)) => out.save_segment_as(name, segment).map(drop),
            (ArchiveTo::File(out), None) => out.save_segment(segment).map(drop),
            (ArchiveTo::Stdout(out), Some(name)) => out.save_segment_as(name, segment).map(drop),
            (ArchiveTo::Stdout(out), None) => out.save_segment(segment).map(drop),
        };
        saved.map_err(|error| Failure::while_writing(error, &self.name))
    }

    /// Writes the end of the archive. If the target is a file, the new file is then read back and verified, and
    /// replaces the old one.
    ///
    /// # Errors
    /// If writing, reading or renaming fails, or if the new file is damaged or has another number of values.
    pub fn finish(self) -> Result<()> {
        let of_output = |error: tenarc::Error| Failure::from(error).of_output(&self.name);
        match self.to {
            ArchiveTo::File(out) => {
                let values = out.segments();
                let file = out.finish().map_err(of_output)?;
                read_back(file.file(), values, !self.target.is_part).map_err(of_output)?;
                self.target.check_free()?;
                file.commit(sync(self.target.writing)).map_err(of_output)
            }
            ArchiveTo::Stdout(out) => out.finish().map(drop).map_err(of_output),
        }
    }
}

/// Checks that a file is an archive of this number of values, and verifies all bytes of it.
fn read_back(file: &File, values: u64, shows_progress: bool) -> tenarc::Result<()> {
    let archive = Archive::new(file)?;
    let progress = shows_progress.then(|| Progress::new(archive.byte_len(), "verifying"));
    archive.verify_with(|done, _| progress.iter().for_each(|bar| bar.set(done)))?;
    if archive.len() == values {
        return Ok(());
    }
    let what = format!("wrote {values} values, read back {}", archive.len());
    Err(tenarc::Error::damaged(what))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom};

    use super::*;

    #[test]
    fn an_archive_that_changed_is_not_what_was_written() {
        let mut file = tempfile::tempfile().unwrap();
        let mut out = OArchive::new(&mut file).unwrap();
        out.save(&tenarc::Tensor(vec![0.5f32; 4096])).unwrap();
        out.finish().unwrap();
        read_back(&file, 1, false).unwrap();
        assert!(read_back(&file, 2, false).unwrap_err().to_string().contains("read back 1"));
        file.seek(SeekFrom::Start(8000)).unwrap();
        file.write_all(b"x").unwrap();
        assert!(read_back(&file, 1, false).unwrap_err().to_string().contains("checksum"));
    }
}
