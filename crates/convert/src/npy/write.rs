//! A writer of npz files.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::Path;

use tenarc::io::SyncLevel;
use tenarc::tensor::ToTensor;
use tenarc::{Error, Result};

use super::npz::{Npz, SUFFIX};
use super::options::Compression;
use super::texts;
use super::{dtype, emit, header};
use crate::nested::COMMENT;
use crate::zip::write::ZipWriter;
use crate::{TensorFile as _, made};

/// Writes an npz file array by array to any writer that can seek. After an array was written, only its name and its
/// entry in the directory stay in memory.
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
    /// Whether writing an array failed in the middle, so that nothing more can be written.
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
    /// Makes an npz file that starts at the current position of the writer.
    ///
    /// # Errors
    /// If the writer does not know its position.
    pub fn new(writer: W) -> Result<Self> {
        let zip = ZipWriter::new(writer)?;
        let compression = Compression::default();
        Ok(Self { zip, names: HashSet::new(), compression, nested: false, broken: false })
    }

    /// Sets how the arrays that follow are stored.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Writes an array under a name, which can be any text without a zero byte.
    ///
    /// # Errors
    /// If numpy does not have the dtype, or there is an array of this name already. Nothing was written then. If the
    /// writer or the tensor fails, the file is broken, and nothing more can be written.
    pub fn add(&mut self, name: &str, tensor: &(impl ToTensor + ?Sized)) -> Result<&mut Self> {
        let descr = dtype::descr_of(&tensor.meta().dtype).map_err(|error| error.in_field(name))?;
        self.add_as(name, descr, tensor)
    }

    /// Writes an array whose elements have this type string of numpy.
    pub(super) fn add_as(
        &mut self,
        name: &str,
        descr: &str,
        tensor: &(impl ToTensor + ?Sized),
    ) -> Result<&mut Self> {
        let in_field = |error: Error| error.in_field(name);
        // A wrong shape must be found before anything is written.
        header::encode(descr, &tensor.meta()).map_err(in_field)?;
        self.put(name, |put| emit(descr, tensor, put)).map_err(in_field)?;
        Ok(self)
    }

    /// Writes an array of texts of this shape.
    ///
    /// # Errors
    /// The errors of [`add`](Self::add). Also if numpy would not read the texts back unchanged, or if they would take
    /// many times their size.
    pub fn add_texts(
        &mut self,
        name: &str,
        shape: &[usize],
        texts: &[String],
    ) -> Result<&mut Self> {
        let in_field = |error: Error| error.in_field(name);
        let count = shape.iter().try_fold(1usize, |count, dim| count.checked_mul(*dim));
        if count != Some(texts.len()) {
            let what = format!("{} texts do not make an array of shape {shape:?}", texts.len());
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
            return Err(Error::data(
                "writing an earlier array failed part-way; the file is broken, and nothing more can be written",
            ));
        }
        if name.contains('\0') {
            return Err(Error::data("the name has a zero byte, at which readers would cut it off"));
        }
        let member = format!("{name}{SUFFIX}");
        if member.len() > usize::from(u16::MAX) {
            let found = name.len();
            return Err(Error::limit(format!(
                "the name has {found} bytes, expected at most 65,531"
            )));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(Error::data("there are two arrays of this name"));
        }
        // If the tensor panics, the file stays broken.
        self.broken = true;
        let deflated = self.compression == Compression::Deflated;
        self.zip.member(member, deflated, emit)?;
        self.broken = false;
        Ok(())
    }

    /// Writes the list of arrays, flushes the writer and returns it. The npz file is not complete without this.
    ///
    /// # Errors
    /// If the writer fails, or writing an array failed before.
    pub fn finish(self) -> Result<W> {
        if self.broken {
            return Err(Error::data("writing an array failed part-way; the file is broken"));
        }
        self.zip.finish(if self.nested { COMMENT } else { "" })
    }
}

/// Saves named tensors as an npz file. As with [`save`](tenarc::save), the file appears complete or not at all. Before
/// it appears under its name, it is read back and its checksums are verified.
///
/// Tensors of different types can be saved together as `&dyn ToTensor`. Of a [`Deferred`](tenarc::tensor::Deferred)
/// tensor, only the block that is being written is in memory.
///
/// # Errors
/// If numpy does not have a dtype, two tensors have the same name, or the file cannot be written.
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

/// Reads all arrays and verifies their checksums, which were computed while they were written.
pub fn verify(file: &File) -> Result<()> {
    let npz = Npz::new(file)?;
    tenarc::to_writer(std::io::sink(), &npz.flat()?)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use super::*;

    #[test]
    fn what_a_disk_changed_is_found_before_a_file_takes_its_name() {
        let mut file = tempfile::tempfile().unwrap();
        let mut out = NpzWriter::new(&file).unwrap();
        out.add("a", &vec![1.0f32; 1000]).unwrap();
        out.finish().unwrap();
        assert!(verify(&file).is_ok());
        file.seek(SeekFrom::Start(1000)).unwrap();
        file.write_all(&[9]).unwrap();
        let error = verify(&file).unwrap_err();
        assert_eq!(error.category(), tenarc::error::Category::Damaged, "{error}");
    }
}
