//! npz files to archives, and back.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::Path;

use tenarc::archive::SaveOptions;
use tenarc::io::{AtomicFile, ReadAt, SyncLevel, open_file};
use tenarc::tensor::ToTensor as _;
use tenarc::{DynTensor, Error, OArchive, Result, Tensor};

use super::dtype;
use super::file::NpyFile;
use super::npz::Npz;
use super::texts;
use super::write::{Compression, NpzWriter};
use crate::exported::{Exported, Keep, METADATA};
use crate::nested::Names;
use crate::{AsValue, Losses, Stored, TensorFile as _, made};

/// What a conversion may do beyond passing everything on, and how it stores arrays.
///
/// ```
/// use tenarc_convert::npy::{Compression, ConvertOptions, Names};
///
/// let options = ConvertOptions::default()
///     .with_names(Names::Nested)
///     .with_losses(true)
///     .with_compression(Compression::Deflated);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    names: Names,
    losses: bool,
    compression: Compression,
}

impl ConvertOptions {
    /// How names of arrays are taken into an archive; by default as the file says.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.names = names;
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
    let (value, lost) = checked(npz, options)?;
    out.save(&value)?;
    Ok(lost)
}

fn checked<'a, S: ReadAt>(
    npz: &'a Npz<S>,
    options: &ConvertOptions,
) -> Result<(AsValue<'a>, Losses)> {
    let value = npz.value(options.names)?;
    let lost = value.losses().clone();
    lost.check(options.losses, value.kept())?;
    Ok((value, lost))
}

/// Writes the tensors of a saved value as arrays: tensors inside of it under their paths, as `layers.0.weight`. The
/// comment of the zip file says that names are paths, so that the nesting comes back; numpy does not look at it. A sequence
/// that is stored as columns has a tensor for each column of numbers, booleans or tensors. One tensor at a time is in
/// memory. Texts and arrays of texts are kept as numpy's `U`.
///
/// Says what was left out.
///
/// # Errors
/// Where anything would be left out and `options` do not allow it: values that are no tensors, tensors of dtypes that
/// numpy has not, and a nesting that does not come back from the names. Then, nothing was written. Where the archive is
/// damaged, or the npz file cannot be written.
pub fn export<W: Write + Seek>(
    value: &dyn Stored,
    out: &mut NpzWriter<W>,
    options: &ConvertOptions,
) -> Result<Losses> {
    let Exported { tensors, texts, single, metadata, nested, mut losses, .. } =
        Exported::of(value, Keep::Texts)?;
    for (key, text) in metadata.unwrap_or_default() {
        if key == "format" {
            let text: String = text.chars().take(64).collect();
            losses.note(format!("`{METADATA}.format`, which is `{}`", text.escape_debug()));
        } else {
            losses.add(&format!("{METADATA}.{key}"), "a text of the metadata is left out");
        }
    }
    let mut named = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        match dtype::descr_of(&tensor.meta().dtype) {
            Ok(_) => named.push((name, tensor)),
            Err(error) => losses.add_tensor(&name, error.message()),
        }
    }
    let mut kept = Vec::with_capacity(texts.len());
    for (name, texts) in texts {
        match texts::check(&texts) {
            Ok(()) => kept.push((name, texts)),
            Err(error) => losses.add(&name, error.message()),
        }
    }
    losses.check(options.losses, named.len() + kept.len())?;
    for (name, tensor) in named {
        out.add(&name, &tensor)?;
    }
    for (name, texts) in kept {
        let len = [texts.len()];
        let shape = if single.contains(&name) { &[][..] } else { &len };
        out.add_texts(&name, shape, &texts)?;
    }
    out.nested |= nested;
    Ok(losses)
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
    let (value, lost) = checked(&npz, options).map_err(|error| error.in_file(from))?;
    let save = |out: &mut OArchive<&mut AtomicFile>| {
        out.save(&value).map(drop).map_err(|error| error.in_file(from))
    };
    made::archive(to, SaveOptions::default(), save, |archive| {
        let (found, expected) = (archive.tensors()?.len(), value.kept());
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
/// As [`export`], and where the archive holds several values, or a file cannot be read or written.
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
    let lost = export(&segment, &mut out, options).map_err(|error| error.in_file(from))?;
    out.finish().map_err(|error| error.in_file(to))?;
    verify(file.file()).map_err(|error| error.in_file(to))?;
    file.commit(SyncLevel::Full)?;
    Ok(lost)
}

/// Converts an npy file to an archive of one tensor, of an array of texts, or of a map of the fields of records. The archive is read again and verified before it takes its
/// name; on any error, what was there stays.
///
/// # Errors
/// As [`load`](super::load), and where the archive cannot be written.
pub fn npy_to_archive(npy: impl AsRef<Path>, archive: impl AsRef<Path>) -> Result<()> {
    let from = npy.as_ref();
    let file = NpyFile::new(open_file(from)?.0).map_err(|error| error.in_file(from))?;
    let value = file.value(Names::default()).map_err(|error| error.in_file(from))?;
    value.losses().check(false, value.kept()).map_err(|error| error.in_file(from))?;
    let save = |out: &mut OArchive<&mut AtomicFile>| {
        out.save(&value).map(drop).map_err(|error| error.in_file(from))
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
