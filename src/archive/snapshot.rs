//! Copies of values in memory, and saving them on another thread.

use std::fmt;
use std::io::{self, Write};
use std::panic;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use serde::ser::{Error as _, Serialize, Serializer};

use super::{Archive, OArchive, save_with};
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::segment::options::SaveOptions;

/// A copy of a value in memory, as it is stored. It can be saved later and on another thread, while the value changes.
///
/// Making it takes little more time than copying the tensors: nothing is hashed, compressed or written. Saving it gives the same
/// bytes as saving the value with the same options.
///
/// ```
/// use tenarc::archive::{SaveOptions, Snapshot};
/// use tenarc::{Archive, OArchive, Tensor};
///
/// let mut weights = Tensor(vec![0.5f32; 1000]);
/// let before = Snapshot::new(&weights, &SaveOptions::default())?;
/// weights[7] = 1.0;
/// let saved = std::thread::spawn(move || -> tenarc::Result<Vec<u8>> {
///     let mut out = OArchive::new(Vec::new())?;
///     out.save(&before)?;
///     out.finish()
/// });
/// let weights: Tensor<Vec<f32>> = Archive::new(saved.join().unwrap()?)?.load()?;
/// assert_eq!(weights[7], 0.5);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Snapshot(Archive<Pieces>);

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("bytes", &self.0.byte_len()).finish()
    }
}

impl Snapshot {
    /// Copies a value. `options` are those with which it will be saved: they decide what is stored as columns and
    /// what is in the metadata.
    ///
    /// # Errors
    /// If the value's `Serialize` fails, or the options are not valid.
    pub fn new<T: Serialize + ?Sized>(value: &T, options: &SaveOptions) -> Result<Self> {
        let mut out = OArchive::with_options(Pieces::default(), options.for_copy())?;
        out.save(value)?;
        Archive::new(out.finish()?).map(Self)
    }

    /// The memory that it takes, in bytes.
    pub fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = || {
            let segment = self.0.only()?;
            let whole = 0..segment.metadata()?.len();
            segment.stored(whole)
        };
        stored().map_err(|error| error.through(S::Error::custom))?.serialize(serializer)
    }
}

/// Bytes in pieces of one length, which are never moved while there come more.
#[derive(Default)]
struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    const LEN: usize = 16 << 20;
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_full = self.0.last().is_none_or(|last| last.len() == Self::LEN);
        if is_full {
            // The first piece grows, because most values are small.
            let capacity = if self.0.is_empty() { 0 } else { Self::LEN };
            let mut piece = Vec::new();
            piece.try_reserve_exact(capacity)?;
            self.0.push(piece);
        }
        let Some(last) = self.0.last_mut() else { return Ok(0) };
        let len = bytes.len().min(Self::LEN - last.len());
        last.try_reserve(len)?;
        last.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReadAt for Pieces {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        match self.0.get(at / Self::LEN) {
            Some(piece) => piece.read_at(out, (at % Self::LEN) as u64),
            None => Ok(0),
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// Saves values on another thread, one at a time, while the program goes on.
///
/// A call of [`save`](Self::save) takes as long as copying the tensors ([`Snapshot`]), plus what is left of the save
/// before. Memory for one copy of the value is needed.
///
/// **An error of a save is returned by the next call**, or by [`wait`](Self::wait). Call `wait` before the program ends: if it is
/// dropped, it waits too, but errors are lost.
///
/// ```
/// use tenarc::Tensor;
/// use tenarc::archive::{Background, SaveOptions};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-background-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.tenarc");
/// let mut background = Background::default();
/// let mut weights = Tensor(vec![0.5f32; 1000]);
/// for step in 0..10 {
///     weights[step] = 1.0;
///     background.save(&path, &weights, SaveOptions::default())?;
/// }
/// background.wait()?;
/// let saved: Tensor<Vec<f32>> = tenarc::load(&path)?;
/// assert_eq!(saved, weights);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`start`](Self::start) does anything else on the thread.
#[derive(Debug, Default)]
pub struct Background {
    running: Option<JoinHandle<Result<()>>>,
}

impl Background {
    /// Saves a value as a file, as [`save_with`] does. Waits for the save before, if it has not ended.
    ///
    /// # Errors
    /// Those of the save before, and those of [`Snapshot::new`]. Those of this save are returned by the next call.
    pub fn save<T: Serialize + ?Sized>(
        &mut self,
        path: impl Into<PathBuf>,
        value: &T,
        options: SaveOptions,
    ) -> Result<()> {
        self.wait()?;
        let (path, snapshot) = (path.into(), Snapshot::new(value, &options)?);
        self.start(move || save_with(path, &snapshot, options))
    }

    /// Does something on another thread. Waits for what was started before, if it has not ended.
    ///
    /// # Errors
    /// Those of what was started before, and if no thread can be started.
    pub fn start(&mut self, work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
        self.wait()?;
        let thread = thread::Builder::new().name("tenarc-background".into()).spawn(work);
        self.running = Some(thread.map_err(Error::io)?);
        Ok(())
    }

    /// Whether something is still in progress. Then a save would wait.
    pub fn is_busy(&self) -> bool {
        self.running.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits for what was started.
    ///
    /// # Errors
    /// Those of what was started.
    ///
    /// # Panics
    /// If it panicked.
    pub fn wait(&mut self) -> Result<()> {
        match self.running.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(panic)) => panic::resume_unwind(panic),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(thread) = self.running.take() {
            // There is nobody to whom an error could be returned.
            let _ = thread.join();
        }
    }
}
