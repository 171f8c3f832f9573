//! Inputs named on the command line: a file, a pipe, or `-` for standard input.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc_convert::torch::distributed_metadata;
use tenarc_convert::{Opened, Put, Stored};

use crate::address;
use crate::failure::{Failure, Kind, Of, OfInput, Result};
use crate::formats::{Format, index_in};
use crate::progress::Progress;
use crate::text::escaped;

/// The bytes of an object by which it is known whether it is an archive, and from which other formats are detected.
pub const START: usize = 4 << 10;

/// An input that can be read at any position.
pub struct Input {
    /// Of an archive in a store, only the first bytes.
    pub file: File,
    /// An archive in a store.
    object: Option<Box<dyn ReadAt + Send>>,
    /// The name, as printed.
    pub name: String,
    /// The path, if it is a regular file: some formats read other files in the same directory. For a directory, this is
    /// the file in it that is read first: the metadata of a distributed checkpoint of torch, or the index of a sharded model.
    pub path: Option<PathBuf>,
}

impl Input {
    /// Opens an input. Standard input and pipes are first copied to an unnamed temporary file, because they cannot be
    /// read at any position.
    ///
    /// # Errors
    /// If it cannot be read, is a device, or is a directory that is neither a distributed checkpoint nor has one index of a sharded
    /// model.
    pub fn open(path: &Path) -> Result<Self> {
        let name = shown(path);
        if path == Path::new("-") {
            let file = spooled(&mut io::stdin().lock()).of(&name)?;
            return Ok(Self { file, object: None, name, path: None });
        }
        if let Some(object) = object_at(path, &name)? {
            return Self::of_object(object, name);
        }
        let found = std::fs::metadata(path).of(&name).map_err(|failure| {
            let is_pattern = name.contains(['*', '?', '[', '{']);
            let hint = if is_pattern { "; a pattern is given with -e" } else { "" };
            failure.with_hint(hint)
        })?;
        if found.is_dir() {
            let path = match distributed_metadata(path) {
                Some(path) => path,
                None => index_in(path).of(&name)?,
            };
            let file = File::open(&path).of(&name)?;
            return Ok(Self { file, object: None, name, path: Some(path) });
        }
        if is_device(&found) {
            let what = format!("{name}: is a device, which may never end");
            return Err(Failure::of_kind(Kind::Io, what));
        }
        let mut file = File::open(path).of(&name)?;
        if !found.is_file() {
            file = spooled(&mut file).of(&name)?;
        }
        let path = found.is_file().then(|| path.to_path_buf());
        Ok(Self { file, object: None, name, path })
    }

    /// Opens what is copied as it is. An object is read in its store, whatever is in it.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_source(path: &Path) -> Result<Source> {
        match object_at(path, &shown(path))? {
            Some(object) => Ok(Source::of(object)),
            None => Ok(Self::open(path)?.into_source()),
        }
    }

    /// An archive is read in its store, as far as it is needed. All of any other object is copied to an unnamed temporary file.
    fn of_object(object: Box<dyn ReadAt + Send>, name: String) -> Result<Self> {
        let start = first_bytes(&*object, START).of(&name)?;
        if Format::Archive.starts(&start) {
            let file = spooled(&mut &*start).of(&name)?;
            return Ok(Self { file, object: Some(object), name, path: None });
        }
        // Or each piece that is copied would be a request.
        object.will_read(&mut iter::once(0..object.size().of(&name)?));
        let file = spooled(&mut ReadFrom { object: &*object, position: 0 }).of(&name)?;
        Ok(Self { file, object: None, name, path: None })
    }

    /// Returns the number of bytes.
    ///
    /// # Errors
    /// If it is not known.
    pub fn len(&self) -> Result<u64> {
        match &self.object {
            Some(object) => object.size(),
            None => self.file.size(),
        }
        .of(&self.name)
    }

    /// Returns what an archive is read from.
    pub fn into_source(self) -> Source {
        self.object.map_or_else(|| Source::new(self.file), Source::of)
    }

    /// Reads the first `len` bytes, or all bytes if there are fewer.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn start(&self, len: usize) -> Result<Vec<u8>> {
        first_bytes(&self.file, len).of(&self.name)
    }

    /// Returns a reader from the first byte.
    ///
    /// # Errors
    /// If the file cannot be rewound.
    pub fn reader(&self) -> Result<&File> {
        (&self.file).rewind().of(&self.name)?;
        Ok(&self.file)
    }

    /// Reads all bytes into memory.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn contents(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader()?.read_to_end(&mut bytes).of(&self.name)?;
        Ok(bytes)
    }
}

/// Opens the object, if the path is an address.
fn object_at(path: &Path, name: &str) -> Result<Option<Box<dyn ReadAt + Send>>> {
    let Some(address) = address::of(path) else { return Ok(None) };
    let object = address::opener().and_then(|opener| Ok(opener.open(address)?));
    object.map(Some).of(name)
}

/// Returns a path for printing.
pub fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".into();
    }
    escaped(&path.to_string_lossy()).into_owned()
}

#[cfg(unix)]
fn is_device(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = found.file_type();
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: &std::fs::Metadata) -> bool {
    false
}

/// Reads the first `len` bytes, or all bytes if there are fewer.
pub fn first_bytes(source: &(impl ReadAt + ?Sized), len: usize) -> io::Result<Vec<u8>> {
    let mut start = vec![0; len];
    let mut done = 0;
    while let Some(rest) = start.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match source.read_at(rest, done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    start.truncate(done);
    Ok(start)
}

/// Reads an object from its first byte to its last.
struct ReadFrom<'a> {
    object: &'a dyn ReadAt,
    position: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.object.read_at(out, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

fn spooled(reader: &mut dyn Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(reader, &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// The file or object that an archive is read from. It can add the bytes that are read to a progress bar.
pub struct Source {
    from: Box<dyn ReadAt + Send>,
    progress: OnceLock<Progress>,
}

impl Source {
    pub fn new(file: File) -> Self {
        Self::of(Box::new(file))
    }

    fn of(from: Box<dyn ReadAt + Send>) -> Self {
        Self { from, progress: OnceLock::new() }
    }

    /// Adds the bytes that are read from now on to a progress bar.
    pub fn add_progress_to(&self, progress: Progress) {
        // If there is a progress bar already, that one stays.
        let _ = self.progress.set(progress);
    }
}

impl ReadAt for Source {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self
            .from
            .read_at(out, offset)
            .map_err(|error| io::Error::new(error.kind(), OfInput(error.to_string())))?;
        if let Some(progress) = self.progress.get() {
            progress.add(read as u64);
        }
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.from.size()
    }

    fn read_last(&self, out: &mut Vec<u8>) -> io::Result<u64> {
        let len = self.from.read_last(out);
        len.map_err(|error| io::Error::new(error.kind(), OfInput(error.to_string())))
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        self.from.will_read(ranges);
    }

    fn will_read_most(&self, range: Range<u64>) {
        self.from.will_read_most(range);
    }
}

/// A file of another format, from which converters read tensors. It marks I/O errors of the file as errors of an input,
/// so that they are not taken for errors of the output.
pub struct OpenedInput<'a>(pub &'a Opened);

impl Stored for OpenedInput<'_> {
    fn metadata(&self) -> tenarc::Result<&[u8]> {
        self.0.metadata()
    }

    fn buffers(&self) -> &[(u64, u64)] {
        self.0.buffers()
    }

    fn blocks(&self, buffer: usize, put: &mut Put<'_>) -> tenarc::Result<()> {
        let mut of_output = false;
        let read = self.0.blocks(buffer, &mut |block| put(block).inspect_err(|_| of_output = true));
        read.map_err(|error| match error.category() {
            Category::Io if !of_output => {
                tenarc::Error::io(io::Error::other(OfInput(error.to_string())))
            }
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use tenarc::DType;
    use tenarc::tensor::{Deferred, Order};
    use tenarc_convert::{AsValue, Names, TensorFile};

    use super::*;

    /// An npy file whose array cannot be read.
    struct Broken(tenarc_convert::npy::NpyFile<Vec<u8>>);

    impl TensorFile for Broken {
        fn value(&self, names: Names) -> tenarc::Result<AsValue<'_>> {
            self.0.value(names)
        }

        fn deferred(&self, _: &str) -> tenarc::Result<Deferred<'_>> {
            Ok(Deferred::from_blocks(DType::F32, &[8], Order::C, |put| {
                put(&[0; 4])?;
                Err(tenarc::Error::io(io::Error::other("the disk is gone")))
            }))
        }
    }

    #[test]
    fn errors_of_an_input_are_not_those_of_the_output() {
        let mut bytes = Vec::new();
        tenarc_convert::npy::write(&mut bytes, &vec![0.5f32; 8]).unwrap();
        let broken = Broken(tenarc_convert::npy::NpyFile::new(bytes).unwrap());
        let opened = Opened::new(Box::new(broken), Names::Stored).unwrap();
        let failure = |put: &mut Put<'_>| {
            let error = OpenedInput(&opened).blocks(0, put).unwrap_err();
            Failure::while_writing(error, "out.npz").to_string()
        };
        let of_input = failure(&mut |_| Ok(()));
        assert!(
            of_input.contains("the disk is gone") && !of_input.contains("out.npz"),
            "{of_input}"
        );
        let full = |_: &[u8]| Err(tenarc::Error::io(io::Error::other("no space")));
        let of_output = failure(&mut { full });
        assert!(
            of_output.starts_with("out.npz: ") && of_output.contains("no space"),
            "{of_output}"
        );
    }
}
