//! npz files to archives, and back.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::ops::Range;
use std::path::Path;

use serde::ser::{Serialize, SerializeMap, Serializer};
use tenarc::archive::{SaveOptions, Segment};
use tenarc::io::{AtomicFile, ReadAt, SyncLevel, open_file};
use tenarc::tensor::Deferred;
use tenarc::{DType, DynTensor, Error, OArchive, Result, Tensor};

use super::dtype;
use super::file::NpyFile;
use super::npz::Npz;
use super::tree::{self, Leaf};
use super::write::{Compression, NpzWriter};
use crate::columns::{TensorColumn, tensor_columns};
use crate::{Losses, made};

/// What a conversion may do beyond passing everything on, and how it stores arrays.
///
/// ```
/// use tenarc_convert::npy::{Compression, ConvertOptions};
///
/// let options = ConvertOptions::default()
///     .with_flattened(true)
///     .with_losses(true)
///     .with_compression(Compression::Deflated);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    flattened: bool,
    losses: bool,
    compression: Compression,
}

impl ConvertOptions {
    /// Whether tensors inside of nested values may be named by their path, as `layers.0.weight`; off by
    /// default. An npz file is one flat map, from which the nesting does not come back.
    #[must_use]
    pub fn with_flattened(mut self, on: bool) -> Self {
        self.flattened = on;
        self
    }

    /// Whether what the other format has no place for may be left out; off by default. What it was is
    /// returned as [`Losses`].
    #[must_use]
    pub fn with_losses(mut self, on: bool) -> Self {
        self.losses = on;
        self
    }

    /// How arrays are stored in an npz file.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }
}

/// Saves the arrays of an npz file as one value, a map from names to tensors. Names such as `a/b` are
/// keys as they are; big-endian elements become little-endian ones of the same value. Elements go over
/// in steps: not even one tensor need fit memory.
///
/// Says what was left out. Whether the elements are right is known once they are read: on an error the
/// archive is what [`OArchive::save`] leaves.
///
/// # Errors
/// Where anything would be left out and `options` do not allow it: members that are no arrays, arrays
/// that are no tensors. Then, nothing was saved. Where the npz file contradicts itself, or the archive
/// cannot be written.
pub fn into_archive<S: ReadAt, W: Write>(
    npz: &Npz<S>,
    out: &mut OArchive<W>,
    options: &ConvertOptions,
) -> Result<Losses> {
    let (tensors, lost) = deferred(npz, options)?;
    out.save(&Named(&tensors))?;
    Ok(lost)
}

/// Names, and tensors that are read when they are written.
pub type NamedTensors<'a> = Vec<(&'a str, Tensor<Deferred<'a>>)>;

fn deferred<'a, S: ReadAt>(
    npz: &'a Npz<S>,
    options: &ConvertOptions,
) -> Result<(NamedTensors<'a>, Losses)> {
    let (tensors, lost) = arrays(npz)?;
    lost.check(options.losses, tensors.len())?;
    Ok((tensors, lost))
}

/// The arrays of a file that are tensors, and what else there is.
pub fn arrays<S: ReadAt>(npz: &Npz<S>) -> Result<(NamedTensors<'_>, Losses)> {
    let mut tensors = Vec::new();
    let mut lost = Losses::default();
    for member in npz.members() {
        let name = member.name().strip_suffix(super::npz::SUFFIX);
        match name.map(|name| (name, npz.deferred(name))) {
            Some((name, Ok(tensor))) => tensors.push((name, Tensor(tensor))),
            // What a damaged file holds is nothing to be left out.
            Some((_, Err(error))) if error.category() != tenarc::error::Category::Data => {
                return Err(error);
            }
            Some((name, Err(error))) => lost.add_tensor(name, error.message()),
            None => lost.add(member.name(), "a member that is no array"),
        }
    }
    Ok((tensors, lost))
}

struct Named<'a, 'b>(&'b [(&'a str, Tensor<Deferred<'a>>)]);

impl Serialize for Named<'_, '_> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, tensor) in self.0 {
            map.serialize_entry(name, tensor)?;
        }
        map.end()
    }
}

/// Writes the tensors of a saved value as arrays: a map or struct of tensors under their keys, tensors
/// inside of it under their paths if `options` allow that. A sequence that is stored as columns has a tensor for
/// each column of numbers, booleans or tensors. One tensor at a time is in memory.
///
/// Says what was left out.
///
/// # Errors
/// Where anything would be left out or renamed and `options` do not allow it: values that are no
/// tensors, and tensors of dtypes that numpy has not. Then, nothing was written. Where the archive is
/// damaged, or the npz file cannot be written.
pub fn from_segment<S: ReadAt + ?Sized, W: Write + Seek>(
    segment: &Segment<'_, S>,
    out: &mut NpzWriter<W>,
    options: &ConvertOptions,
) -> Result<Losses> {
    let mut named = Vec::new();
    let mut taken = HashSet::new();
    let mut lost = Losses::default();
    let mut add = |name: String, dtype: &DType, nested, content, lost: &mut Losses| {
        if let Err(error) = dtype::descr_of(dtype) {
            lost.add_tensor(&name, error.message());
        } else if nested && !options.flattened {
            let name = name.escape_debug();
            return Err(Error::data(format!(
                "`{name}` is inside of a nested value, which npz has not; ask for \
                 ConvertOptions::with_flattened to save it under this path"
            )));
        } else if !taken.insert(name.clone()) {
            let name = name.escape_debug();
            return Err(Error::data(format!("two tensors would be named `{name}`")));
        } else {
            named.push((name, content));
        }
        Ok(())
    };
    for leaf in tree::leaves(segment)? {
        match leaf {
            Leaf::Tensor { name, dtype, range, nested } => {
                add(name, &dtype, nested, Content::Item(range), &mut lost)?;
            }
            Leaf::Columns { name: sequence, pointer } => {
                for column in tensor_columns(segment, &pointer, &sequence, &mut lost)? {
                    let nested = column.nested || !sequence.is_empty();
                    let (name, dtype) = (column.name.clone(), column.dtype.clone());
                    add(name, &dtype, nested, Content::Column(column), &mut lost)?;
                }
            }
            Leaf::Other { name, kind } => lost.add(&name, kind),
        }
    }
    lost.check(options.losses, named.len())?;
    for (name, content) in named {
        let tensor = match content {
            Content::Item(range) => {
                let tensor: Result<Tensor<DynTensor>> = segment.decode(range);
                tensor.map(Tensor::into_inner).map_err(|error| error.in_field(&*name))?
            }
            Content::Column(column) => column.read()?,
        };
        out.add(&name, &tensor)?;
    }
    Ok(lost)
}

/// What is written as an array.
enum Content<'a, S: ?Sized> {
    /// The tensor at this range of the metadata.
    Item(Range<usize>),
    Column(TensorColumn<'a, S>),
}

/// Converts an npz file to an archive of one map. The archive is read again and verified before it takes
/// its name; on any error, what was there stays.
///
/// Says what was left out.
///
/// # Errors
/// As [`into_archive`], and where a file cannot be read or written.
pub fn npz_to_archive(
    npz: impl AsRef<Path>,
    archive: impl AsRef<Path>,
    options: &ConvertOptions,
) -> Result<Losses> {
    let (from, to) = (npz.as_ref(), archive.as_ref());
    let npz = Npz::open(from)?;
    let (tensors, lost) = deferred(&npz, options).map_err(|error| error.in_file(from))?;
    let save = |out: &mut OArchive<&mut AtomicFile>| {
        out.save(&Named(&tensors)).map(drop).map_err(|error| error.in_file(from))
    };
    made::archive(to, SaveOptions::default(), save, |archive| {
        let (found, expected) = (archive.tensors()?.len(), tensors.len());
        if found == expected {
            return Ok(());
        }
        Err(Error::damaged(format!("{found} of {expected} tensors were written")))
    })?;
    Ok(lost)
}

/// Converts an archive of one value to an npz file. The npz file is read again and verified before it
/// takes its name; on any error, what was there stays.
///
/// Says what was left out.
///
/// # Errors
/// As [`from_segment`], and where the archive holds several values, or a file cannot be read or written.
pub fn archive_to_npz(
    archive: impl AsRef<Path>,
    npz: impl AsRef<Path>,
    options: &ConvertOptions,
) -> Result<Losses> {
    let (from, to) = (archive.as_ref(), npz.as_ref());
    let archive = made::open_single(from)?;
    let file = AtomicFile::replacing(to)?;
    let out = NpzWriter::new(BufWriter::new(file.file()))?;
    let mut out = out.with_compression(options.compression);
    let segment = archive.segment(0)?;
    let lost = from_segment(&segment, &mut out, options).map_err(|error| error.in_file(from))?;
    out.finish().map_err(|error| error.in_file(to))?;
    verify(file.file()).map_err(|error| error.in_file(to))?;
    file.commit(SyncLevel::Full)?;
    Ok(lost)
}

/// Converts an npy file to an archive of one tensor. The archive is read again and verified before it takes its
/// name; on any error, what was there stays.
///
/// # Errors
/// As [`load`](super::load), and where the archive cannot be written.
pub fn npy_to_archive(npy: impl AsRef<Path>, archive: impl AsRef<Path>) -> Result<()> {
    let from = npy.as_ref();
    let file = NpyFile::new(open_file(from)?.0).map_err(|error| error.in_file(from))?;
    let tensor = Tensor(file.deferred());
    let save = |out: &mut OArchive<&mut AtomicFile>| {
        out.save(&tensor).map(drop).map_err(|error| error.in_file(from))
    };
    made::archive(archive.as_ref(), SaveOptions::default(), save, |_| Ok(()))
}

/// Converts an archive of one tensor, and nothing else, to an npy file. The npy file is read again and compared
/// before it takes its name; on any error, what was there stays.
///
/// # Errors
/// Where the archive cannot be read or holds something else, numpy has no such dtype, or the file cannot be
/// written.
pub fn archive_to_npy(archive: impl AsRef<Path>, npy: impl AsRef<Path>) -> Result<()> {
    let from = archive.as_ref();
    let of_source = |error: Error| error.in_file(from);
    let tensor: Tensor<DynTensor> = made::open_single(from)?.load().map_err(of_source)?;
    super::save(npy, &tensor.0)
}

/// Reads all arrays, whose checksums are those of what was handed over.
pub fn verify(file: &File) -> Result<()> {
    let npz = Npz::new(file)?;
    for name in npz.names() {
        tenarc::tensor::ToTensor::write_blocks(&npz.deferred(name)?, &mut |_| Ok(()))?;
    }
    Ok(())
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
