//! Checkpoints that are saved while the program goes on.

use serde::Serialize;

use super::Checkpoints;
use crate::archive::{Background, Snapshot};
use crate::error::Result;

/// Checkpoints that another thread saves, one at a time: [`Checkpoints::in_background`].
///
/// ```
/// use tenarc::{Checkpoints, Tensor};
///
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path().join("run-7");
/// let checkpoints = Checkpoints::new(&dir)?.with_keep_last(2);
/// let mut background = checkpoints.clone().in_background();
/// let mut weights = Tensor(vec![0.0f32; 10_000]);
/// for step in 1..=5 {
///     weights[0] = step as f32;
///     background.save(step, &weights)?;
/// }
/// background.wait()?;
/// let latest = checkpoints.latest::<Tensor<Vec<f32>>>()?.expect("five were saved");
/// assert_eq!((latest.step, latest.value[0]), (5, 5.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A save copies the value ([`Snapshot`]), and waits for the save before if that has not ended. [`Checkpoints::latest`] and
/// other readers see a checkpoint when it is complete. **An error of a save is returned by the next call**, or by
/// [`wait`](Self::wait). Call `wait` before the program ends: if it is dropped, it waits too, but errors are lost.
#[derive(Debug)]
pub struct BackgroundCheckpoints {
    checkpoints: Checkpoints,
    background: Background,
}

impl Checkpoints {
    /// Saves on another thread from now on.
    pub fn in_background(self) -> BackgroundCheckpoints {
        BackgroundCheckpoints { checkpoints: self, background: Background::default() }
    }
}

impl BackgroundCheckpoints {
    /// Saves a step: see [`Checkpoints::save`].
    ///
    /// # Errors
    /// Those of the save before, and those of [`Snapshot::new`]. Those of this save are returned by the next call.
    pub fn save<T: Serialize + ?Sized>(&mut self, step: u64, value: &T) -> Result<()> {
        self.start(step, None, value)
    }

    /// Saves a step with a score: see [`Checkpoints::save_scored`].
    ///
    /// # Errors
    /// The same errors as [`save`](Self::save).
    pub fn save_scored<T: Serialize + ?Sized>(
        &mut self,
        step: u64,
        score: f64,
        value: &T,
    ) -> Result<()> {
        self.start(step, Some(score), value)
    }

    /// Saves a step, unless the save before has not ended. Returns whether it is saved.
    ///
    /// # Errors
    /// The same errors as [`save`](Self::save).
    pub fn save_unless_busy<T: Serialize + ?Sized>(
        &mut self,
        step: u64,
        value: &T,
    ) -> Result<bool> {
        if self.background.is_busy() {
            return Ok(false);
        }
        self.save(step, value).map(|()| true)
    }

    /// Saves a step of which nothing is copied, because the value is given away. Use it for values whose tensors are shared and
    /// do not change, such as [`SharedTensor`](crate::tensor::SharedTensor).
    ///
    /// # Errors
    /// Those of the save before. Those of this save are returned by the next call.
    pub fn save_owned<T: Serialize + Send + 'static>(&mut self, step: u64, value: T) -> Result<()> {
        let checkpoints = self.checkpoints.clone();
        self.background.start(move || checkpoints.save(step, &value))
    }

    fn start<T: Serialize + ?Sized>(
        &mut self,
        step: u64,
        score: Option<f64>,
        value: &T,
    ) -> Result<()> {
        // Only one copy is in memory at a time.
        self.background.wait()?;
        let checkpoints = self.checkpoints.clone();
        let snapshot = Snapshot::new(value, &checkpoints.options)?;
        self.background.start(move || checkpoints.store(step, score, &snapshot))
    }

    /// Whether a save is in progress. Then the next one would wait.
    pub fn is_busy(&self) -> bool {
        self.background.is_busy()
    }

    /// Waits for the last save.
    ///
    /// # Errors
    /// Those of the last save.
    ///
    /// # Panics
    /// If the value's `Serialize` panicked in [`save_owned`](Self::save_owned).
    pub fn wait(&mut self) -> Result<()> {
        self.background.wait()
    }

    /// The directory.
    pub fn get_ref(&self) -> &Checkpoints {
        &self.checkpoints
    }
}
