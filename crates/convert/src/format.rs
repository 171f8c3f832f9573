//! The formats, and conversions between their files and archives.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use tenarc::io::open_file;
use tenarc::tensor::ToTensor;
use tenarc::{Archive, Error, OArchive, Result};

use crate::codec::{Archived, Codec};
use crate::{AsValue, JoinedTable, Losses, Opened, Options, Stored, TensorFile, made};

/// A file format.
///
/// ```
/// # #[cfg(all(feature = "safetensors", feature = "npy"))]
/// # fn main() -> tenarc::Result<()> {
/// use tenarc_convert::{Format, Options};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-format-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = |name: &str| dir.join(name);
/// # tenarc_convert::safetensors::save(path("model.safetensors"), &[("weight", vec![1.0f32])])?;
/// let options = Options::default();
/// Format::Safetensors.to_archive(path("model.safetensors"), path("model.tenarc"), &options)?;
/// Format::Npz.from_archive(path("model.tenarc"), path("model.npz"), &options)?;
///
/// // Without an archive between them.
/// let model = Format::Safetensors.open(path("model.safetensors"), &options)?;
/// Format::Npz.save(&model, path("again.npz"), &options)?;
/// # assert_eq!(std::fs::read(path("model.npz"))?, std::fs::read(path("again.npz"))?);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// # #[cfg(not(all(feature = "safetensors", feature = "npy")))]
/// # fn main() {}
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Arrow's IPC files and streams.
    #[cfg(feature = "arrow")]
    Arrow,
    /// GGUF files of llama.cpp. Nothing is quantised.
    #[cfg(feature = "gguf")]
    Gguf,
    /// HDF5 files, only read.
    #[cfg(feature = "hdf5")]
    Hdf5,
    /// JSON values, one after the other.
    #[cfg(feature = "json")]
    Json,
    /// MessagePack values, one after the other.
    #[cfg(feature = "msgpack")]
    Msgpack,
    /// One array of numpy: an npy file.
    #[cfg(feature = "npy")]
    Npy,
    /// Named arrays of numpy: an npz file.
    #[cfg(feature = "npy")]
    Npz,
    /// The tensors of ONNX models, only read.
    #[cfg(feature = "onnx")]
    Onnx,
    /// safetensors. The index of a sharded model, which consists of several files, is read as well. Use
    /// [`save_sharded`](crate::safetensors::Export::save_sharded) to write one.
    #[cfg(feature = "safetensors")]
    Safetensors,
    /// webdataset's tenbin.
    #[cfg(feature = "tenbin")]
    Tenbin,
    /// `PyTorch` files, and the directories of distributed checkpoints, which are only read.
    #[cfg(feature = "torch")]
    Torch,
}

impl Format {
    fn codec(self) -> &'static dyn Codec {
        match self {
            #[cfg(feature = "arrow")]
            Self::Arrow => &crate::arrow::Arrow,
            #[cfg(feature = "gguf")]
            Self::Gguf => &crate::gguf::GgufFiles,
            #[cfg(feature = "hdf5")]
            Self::Hdf5 => &crate::hdf5::Hdf5Files,
            #[cfg(feature = "json")]
            Self::Json => &crate::json::Json,
            #[cfg(feature = "msgpack")]
            Self::Msgpack => &crate::msgpack::Msgpack,
            #[cfg(feature = "npy")]
            Self::Npy => &crate::npy::Npy,
            #[cfg(feature = "npy")]
            Self::Npz => &crate::npy::NpzFiles,
            #[cfg(feature = "onnx")]
            Self::Onnx => &crate::onnx::OnnxModels,
            #[cfg(feature = "safetensors")]
            Self::Safetensors => &crate::safetensors::Safetensors,
            #[cfg(feature = "tenbin")]
            Self::Tenbin => &crate::tenbin::Tenbin,
            #[cfg(feature = "torch")]
            Self::Torch => &crate::torch::Torch,
        }
    }

    /// Opens a file of tensors. The options say whether its value is nested by the dots in names.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged. JSON and MessagePack always fail: their files hold values, not named
    /// tensors.
    pub fn open(self, path: impl AsRef<Path>, options: &Options) -> Result<Opened> {
        let path = &*self.codec().first_file(path.as_ref());
        let (file, _) = open_file(path)?;
        self.open_file(file, Some(path), options).map_err(|error| error.in_file(path))
    }

    /// Like [`open`](Self::open), for a file that is open already. `path` is its path: some formats read other files in
    /// the same directory.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_file(self, file: File, path: Option<&Path>, options: &Options) -> Result<Opened> {
        Opened::new(self.codec().open(file, path, options)?, options.names)
    }

    /// Converts a file to an archive. Returns what was lost, if the options accept losses. A file of tensors becomes
    /// one value of the archive. If the format is JSON or MessagePack, each value of the file becomes one. If an Arrow
    /// file holds a table, each record batch becomes one.
    ///
    /// Tensors are read in steps while they are written. Of a JSON file, only one value at a time is in memory. The
    /// archive has checksums of the bytes as they were read. Before it appears under its name, it is read back and
    /// verified by its checksums. If anything fails, a file that was there before stays. If tensors of the file are
    /// [tied](TensorFile::has_tied_tensors), equal tensors are stored once.
    ///
    /// # Errors
    /// - If the file cannot be read or is damaged.
    /// - If something cannot be kept, and the options do not accept losses.
    /// - If the archive cannot be written.
    pub fn to_archive(
        self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Losses> {
        let codec = self.codec();
        let (from, to) = (&*codec.first_file(from.as_ref()), to.as_ref());
        let of_source = |error: Error| error.in_file(from);
        let (file, _) = open_file(from)?;
        let mut save = options.save.clone();
        if codec.holds_values() {
            let losses = RefCell::new(Losses::default());
            let load = |out: &mut Archived<'_>| {
                losses.replace(codec.load(&file, options, out).map_err(of_source)?);
                Ok(())
            };
            made::archive(to, save, load, |archive| {
                if archive.is_empty() {
                    losses.borrow_mut().note("the file holds no values");
                }
                Ok(())
            })?;
            return Ok(losses.into_inner());
        }
        let file = match codec.open_or_convert(file, (from, to), options)? {
            ControlFlow::Continue(file) => file,
            ControlFlow::Break(losses) => return Ok(losses),
        };
        let value = checked(&*file, options).map_err(of_source)?;
        // Damage must be found before anything is written.
        file.verify_unread().map_err(of_source)?;
        if file.has_tied_tensors() {
            save = save.with_dedup(true);
        }
        let save_value = |out: &mut Archived<'_>| {
            out.save(&value).map(drop).map_err(|error| error.in_file(from))
        };
        made::archive(to, save, save_value, |archive| check(&value, archive))?;
        Ok(value.told())
    }

    /// Converts an archive to a file. Returns what was lost, if the options accept losses. The archive must hold
    /// exactly one value, unless the format is JSON or MessagePack, which hold any number of values, or the values are
    /// parts of one table: see [`JoinedTable`].
    ///
    /// Tensors are read one at a time, and their checksums are verified. Before the file appears under its name, it is
    /// read back and compared: its bytes, and if it is a table, also all values and nulls. If anything fails, a file that
    /// was there before stays.
    ///
    /// # Errors
    /// - If the archive cannot be read, is damaged, or does not hold exactly one value.
    /// - If something cannot be kept, and the options do not accept losses.
    /// - If files of this format are only read.
    /// - If the file cannot be written.
    pub fn from_archive(
        self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Losses> {
        let (from, codec) = (from.as_ref(), self.codec());
        let of_source = |error: Error| error.in_file(from);
        let archive = Archive::new(open_file(from)?.0).map_err(of_source)?;
        if codec.holds_values() {
            let options = &codec.of_name(to.as_ref(), options);
            let write = |out: &mut dyn Write| {
                let mut losses = Losses::default();
                for segment in archive.segments() {
                    losses.extend(codec.write(&segment?, out, options)?);
                }
                Ok(losses)
            };
            let to = to.as_ref();
            let save = |file: &File| made::written(file, to, |out| write(out)).map_err(of_source);
            return made::file(to, options.sync(), save);
        }
        let table = codec.table_from_archive(&archive, to.as_ref(), options);
        if let Some(losses) = table.map_err(of_source)? {
            return Ok(losses);
        }
        if archive.len() != 1 {
            let values = archive.segments().collect::<Result<Vec<_>>>().map_err(of_source)?;
            if let Some(table) = JoinedTable::of(values).map_err(of_source)? {
                return self.save(&table, to, options).map_err(of_source);
            }
            let found = archive.len();
            let what = format!(
                "expected an archive of one value, found {found} values; convert each value separately"
            );
            return Err(of_source(Error::not_found(what)));
        }
        let segment = archive.segment(0).map_err(of_source)?;
        self.save(&segment, to, options).map_err(of_source)
    }

    /// Saves a value as a file of this format. The value is one of an archive, or an opened file of another format.
    /// Returns what was lost, if the options accept losses.
    ///
    /// Before the file appears under its name, it is read back and compared. If anything fails, a file that was there
    /// before stays.
    ///
    /// # Errors
    /// - If the value cannot be read or is damaged.
    /// - If something cannot be kept, and the options do not accept losses.
    /// - If files of this format are only read.
    /// - If the file cannot be written.
    pub fn save(
        self,
        value: &dyn Stored,
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Losses> {
        let path = path.as_ref();
        made::file(path, options.sync(), |file| self.write_file(value, file, path, options))
    }

    /// Like [`save`](Self::save), but writes to an open file, which must be empty and open for reading too. `path` is
    /// its path, which errors show. For Arrow, its extension also decides between a file and a stream, unless the
    /// options do.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save).
    pub fn write_file(
        self,
        value: &dyn Stored,
        file: &File,
        path: &Path,
        options: &Options,
    ) -> Result<Losses> {
        let options = self.codec().of_name(path, options);
        self.codec().write_file(value, file, path, &options)
    }

    /// Writes a value to any writer. This fails for npz and torch, which need a writer that can seek.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save).
    pub fn write(
        self,
        value: &dyn Stored,
        writer: &mut dyn Write,
        options: &Options,
    ) -> Result<Losses> {
        self.codec().write(value, writer, options)
    }
}

/// Saves a file of tensors as one value of an archive. Returns what was lost, if the options accept losses. Tensors are
/// read in steps while they are written.
///
/// # Errors
/// If the file is damaged, or something cannot be kept and the options do not accept losses. In these cases, nothing
/// was saved. Also if the archive cannot be written.
pub fn into_archive<W: Write>(
    file: &dyn TensorFile,
    out: &mut OArchive<W>,
    options: &Options,
) -> Result<Losses> {
    let value = checked(file, options)?;
    file.verify_unread()?;
    out.save(&value)?;
    Ok(value.told())
}

/// Returns the file as a value, if nothing is lost or the options accept losses.
fn checked<'a>(file: &'a dyn TensorFile, options: &Options) -> Result<AsValue<'a>> {
    let value = file.value(options.names)?;
    value.losses().check(options.accept_losses, value.kept())?;
    Ok(value)
}

/// Checks that the archive lists the tensors of the value, each with its dtype, shape and order. It may list more:
/// sequences of numbers can be stored as tensors are.
fn check(value: &AsValue<'_>, archive: &Archive<&File>) -> Result<()> {
    let found = archive.tensors()?;
    let mut found = found.iter();
    let is_there = |meta| found.any(|info| *info.meta() == meta);
    if value.is_map() && !value.in_order().map(ToTensor::meta).all(is_there) {
        return Err(Error::damaged(
            "the tensors that were read back differ from those that were written",
        ));
    }
    Ok(())
}
