//! Files of named tensors, whatever their format.

use std::fmt;
use std::sync::{Mutex, OnceLock};

use tenarc::archive::SaveOptions;
use tenarc::io::ReadAt;
use tenarc::parts::Split;
use tenarc::tensor::{Deferred, TensorInfo, ToTensor as _};
use tenarc::{Error, Result};

use crate::as_value::{AsValue, Asked, Telling};
use crate::stored::{Put, Stored};
use crate::{Losses, Names, source};

/// A file of named tensors, which are read when they are asked for.
///
/// Every format that is read tensor by tensor has a type that implements this.
pub trait TensorFile {
    /// The file as a value that can be saved, with its names taken as `names` says. Its tensors are read as they are written.
    ///
    /// # Errors
    /// If the file is damaged, if a tensor has more dimensions than archives are read with, and if names are to be taken
    /// apart and one leads through another (`a` and `a.b`), one has more than 64 steps, or the first step of one is
    /// `__metadata__`.
    fn value(&self, names: Names) -> Result<AsValue<'_>>;

    /// A tensor by its name, whose bytes are read when it is written. If the file is one tensor, its name is empty.
    ///
    /// # Errors
    /// If there is no such tensor, or it cannot be read.
    fn deferred(&self, name: &str) -> Result<Deferred<'_>>;

    /// Where the bytes of a tensor are stored as tenarc stores them. `None` if they are stored otherwise, for example
    /// compressed.
    ///
    /// # Errors
    /// If there is no such tensor, or it cannot be read.
    fn place(&self, _name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(None)
    }

    /// Checks what of the tensors is not checked as all of them are read, such as the checksum of bytes of which a tensor is
    /// only a part.
    ///
    /// # Errors
    /// If something is damaged.
    fn verify_unread(&self) -> Result<()> {
        Ok(())
    }

    /// Checks all that reading all tensors does not check. Returns a description of what cannot be checked: by default, that
    /// of formats without checksums.
    ///
    /// # Errors
    /// If something is damaged.
    fn verify(&self) -> Result<Option<String>> {
        Ok(Some("the format has no checksums: changed elements are not detected".into()))
    }

    /// Whether two tensors are the same bytes of the file, as the tied weights of a model are. An archive with
    /// [deduplication](tenarc::archive::SaveOptions::with_dedup) has them once.
    fn has_tied_tensors(&self) -> bool {
        false
    }

    /// Descriptions of all tensors, in the order of the file. The path of each is its name.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    fn tensors(&self) -> Result<Vec<TensorInfo>> {
        Ok(self.value(Names::Flat)?.infos())
    }

    /// The file as a value with the structure that it was saved with, as far as the file says.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    fn stored(&self) -> Result<AsValue<'_>> {
        self.value(Names::Stored)
    }

    /// The file as a value in which names are as they are: a map of its tensors by name, and its metadata, if there are
    /// any, under `__metadata__`.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    fn flat(&self) -> Result<AsValue<'_>> {
        self.value(Names::Flat)
    }

    /// The file as a value in which names are taken apart at their dots: a tree of maps, in which steps that count from
    /// zero make an array. So `layers.0.weight` and `layers.1.weight` are read into a struct whose field `layers` is a
    /// vector of structs.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    fn nested(&self) -> Result<AsValue<'_>> {
        self.value(Names::Nested)
    }
}

/// A file of named tensors, and its value without their bytes: the metadata are in memory, and the tensors are read from the
/// file when they are needed.
pub struct Opened {
    file: Box<dyn TensorFile>,
    metadata: Vec<u8>,
    /// The length of each buffer, behind a zero in place of its position.
    buffers: Vec<(u64, u64)>,
    /// The tensor of each buffer.
    names: Vec<String>,
    losses: Losses,
    watch: OnceLock<Box<dyn Fn(u64)>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("tensors", &self.names.len())
            .field("losses", &self.losses)
            .finish_non_exhaustive()
    }
}

impl Opened {
    /// Looks through a file, without reading its tensors. What else it holds goes to the metadata.
    ///
    /// # Errors
    /// The errors of [`TensorFile::value`].
    pub fn new(file: Box<dyn TensorFile>, names: Names) -> Result<Self> {
        let value = file.value(names)?;
        let asked = Asked::default();
        let numbers = std::sync::Arc::new(Mutex::new(Vec::new()));
        let chosen = {
            let (asked, numbers) = (asked.clone(), numbers.clone());
            // It is called for each tensor while that is being written, and for what could be a block of numbers.
            move |_: &TensorInfo| {
                let number = asked.lock().ok().and_then(|asked| *asked);
                if let (Some(number), Ok(mut numbers)) = (number, numbers.lock()) {
                    numbers.push(number);
                }
                number.is_some()
            }
        };
        let options = SaveOptions::default().with_checksums(false).with_columns(false);
        let telling = Telling(&value, &asked);
        let split = Split::with_options(&telling, options.with_out_of_band(chosen))?;
        let info = split.info();
        let buffers = info.buffers().iter().map(|buffer| (0, buffer.byte_len())).collect();
        let metadata = info.item().to_vec();
        drop(split);
        let numbers = numbers.lock().map(|numbers| numbers.clone()).unwrap_or_default();
        let name = |number: usize| value.name(number).unwrap_or_default().to_owned();
        let names = numbers.into_iter().map(name).collect();
        let losses = value.losses().clone();
        drop(value);
        let watch = OnceLock::new();
        Ok(Self { file, metadata, buffers, names, losses, watch })
    }

    /// The file.
    pub fn file(&self) -> &dyn TensorFile {
        &*self.file
    }

    /// What the file holds that is not in the value.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The number of tensors that have bytes.
    pub fn tensor_count(&self) -> usize {
        self.names.len()
    }

    /// The number of bytes of all tensors.
    pub fn byte_len(&self) -> u64 {
        self.buffers.iter().fold(0, |sum, (_, len)| sum.saturating_add(*len))
    }

    /// Calls a function with the number of bytes of each block of a tensor that is read from now on. Only the first
    /// function that is given is called.
    pub fn watch(&self, watch: impl Fn(u64) + 'static) {
        // If there is one already, that one stays.
        let _ = self.watch.set(Box::new(watch));
    }

    /// Fills `out` with the bytes of a buffer from `start`, without reading those before. Returns `false` if the file does
    /// not allow that, as when it is compressed.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn part(&self, buffer: usize, start: u64, out: &mut [u8]) -> Result<bool> {
        let Some((source, at)) = self.file.place(self.name(buffer)?)? else { return Ok(false) };
        source::read_exact(source, out, at.saturating_add(start))?;
        Ok(true)
    }

    fn name(&self, buffer: usize) -> Result<&str> {
        let name = self.names.get(buffer).map(String::as_str);
        name.ok_or_else(|| Error::data(format!("buffer {buffer} is not a tensor of the file")))
    }
}

impl Stored for Opened {
    fn metadata(&self) -> Result<&[u8]> {
        Ok(&self.metadata)
    }

    fn buffers(&self) -> &[(u64, u64)] {
        &self.buffers
    }

    fn lost(&self) -> Losses {
        self.losses.clone()
    }

    fn blocks(&self, buffer: usize, put: &mut Put<'_>) -> Result<()> {
        let mut given = 0u64;
        self.file.deferred(self.name(buffer)?)?.write_blocks(&mut |block| {
            given = given.saturating_add(block.len() as u64);
            if let Some(watch) = self.watch.get() {
                watch(block.len() as u64);
            }
            put(block)
        })?;
        match self.buffers.get(buffer) {
            Some((_, len)) if *len == given => Ok(()),
            // The file was changed after it was opened.
            expected => Err(Error::damaged(format!(
                "expected {} bytes of a tensor, found {given}: the file has changed",
                expected.map_or(0, |(_, len)| *len)
            ))),
        }
    }
}
