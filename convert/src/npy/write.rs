//! Writing npz files.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::Path;

use tenarc::io::SyncLevel;
use tenarc::tensor::ToTensor;
use tenarc::{Error, Result};

use super::archive::verify;
use super::npz::SUFFIX;
use super::texts;
use super::{emit, header};
use crate::made;
use crate::nested::COMMENT;
use crate::zip::write::ZipWriter;

/// How the arrays of an npz file are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// As they are, as `numpy.savez` does.
    #[default]
    Stored,
    /// Deflated, as `numpy.savez_compressed` does.
    Deflated,
}

/// Writes an npz file, array after array, over anything that writes and seeks. Nothing is held of what
/// was written but its name.
///
/// ```
/// use ndarray::Array2;
/// use tenarc_convert::npy::{Compression, NpzWriter};
///
/// let file = std::io::Cursor::new(Vec::new());
/// let mut out = NpzWriter::new(file)?.with_compression(Compression::Deflated);
/// out.add("zeros", &Array2::<f32>::zeros((100, 100)))?;
/// assert!(out.finish()?.into_inner().len() < 500);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct NpzWriter<W: Write + Seek> {
    zip: ZipWriter<W>,
    names: HashSet<String>,
    compression: Compression,
    /// Whether names are paths of a nested value.
    pub(super) nested: bool,
    /// Whether an array failed part-way, so that nothing can follow.
    broken: bool,
}

impl<W: Write + Seek> fmt::Debug for NpzWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NpzWriter")
            .field("arrays", &self.names.len())
            .field("compression", &self.compression)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl<W: Write + Seek> NpzWriter<W> {
    /// An npz file that starts where the writer stands.
    ///
    /// # Errors
    /// Where the writer cannot say where it stands.
    pub fn new(writer: W) -> Result<Self> {
        let zip = ZipWriter::new(writer)?;
        let compression = Compression::default();
        Ok(Self { zip, names: HashSet::new(), compression, nested: false, broken: false })
    }

    /// How the arrays that follow are stored.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Writes an array under a name, which is any text without a zero byte.
    ///
    /// # Errors
    /// Where numpy has no such dtype or the name is taken: then nothing was written. Where the writer or
    /// the tensor fails, the file is broken, and takes nothing more.
    pub fn add(&mut self, name: &str, tensor: &(impl ToTensor + ?Sized)) -> Result<&mut Self> {
        let in_field = |error: Error| error.in_field(name);
        // Before anything is written.
        header::encode(&tensor.meta()).map_err(in_field)?;
        self.put(name, |put| emit(tensor, put)).map_err(in_field)?;
        Ok(self)
    }

    /// Writes an array of texts of this shape.
    ///
    /// # Errors
    /// As [`add`](Self::add), and if numpy would not give the texts back, or if they would take many times their size.
    pub fn add_texts(
        &mut self,
        name: &str,
        shape: &[usize],
        texts: &[String],
    ) -> Result<&mut Self> {
        let in_field = |error: Error| error.in_field(name);
        let count = shape.iter().try_fold(1usize, |count, dim| count.checked_mul(*dim));
        if count != Some(texts.len()) {
            let what = format!("{} texts do not make a shape of {shape:?}", texts.len());
            return Err(in_field(Error::data(what)));
        }
        texts::check(texts).map_err(in_field)?;
        self.put(name, |put| texts::emit(shape, texts, put)).map_err(in_field)?;
        Ok(self)
    }

    fn put(
        &mut self,
        name: &str,
        emit: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        if self.broken {
            return Err(Error::data("an earlier array failed part-way; the file is broken there"));
        }
        if name.contains('\0') {
            return Err(Error::data("a name with a zero byte, where readers end it"));
        }
        let member = format!("{name}{SUFFIX}");
        if member.len() > usize::from(u16::MAX) {
            let found = name.len();
            return Err(Error::limit(format!("a name of {found} bytes, 65,531 are allowed")));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(Error::data("there are two arrays of this name"));
        }
        // Stays so where the tensor panics.
        self.broken = true;
        let deflated = self.compression == Compression::Deflated;
        self.zip.member(member, deflated, emit)?;
        self.broken = false;
        Ok(())
    }

    /// Writes the list of arrays, flushes the writer and gives it back. Without, there is no npz file.
    ///
    /// # Errors
    /// Where the writer fails, or an array failed part-way.
    pub fn finish(self) -> Result<W> {
        if self.broken {
            return Err(Error::data("an array failed part-way; the file is broken there"));
        }
        self.zip.finish(if self.nested { COMMENT } else { "" })
    }
}

/// Saves named tensors as an npz file, which appears whole or not at all, as that of
/// [`save`](tenarc::save). Tensors of several types go together as `&dyn ToTensor`; of a
/// [`Deferred`](tenarc::tensor::Deferred) one, nothing is in memory but what is being written. The file is read again, and its
/// checksums are compared, before it takes its name.
///
/// # Errors
/// Where numpy has no such dtype, two tensors have one name, or the file cannot be written.
pub fn save_npz<N: AsRef<str>, T: ToTensor>(
    path: impl AsRef<Path>,
    tensors: &[(N, T)],
    compression: Compression,
) -> Result<()> {
    let path = path.as_ref();
    let write = |file: &File| {
        let mut out = NpzWriter::new(BufWriter::new(file))?.with_compression(compression);
        for (name, tensor) in tensors {
            out.add(name.as_ref(), tensor)?;
        }
        out.finish()?;
        verify(file)
    };
    made::file(path, SyncLevel::Full, |file| write(file).map_err(|error| error.in_file(path)))
}
