//! burn-train's checkpointer, with one file for each epoch.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use burn_core::store::ModuleRecord;
use burn_optim::OptimizerRecord;
use burn_optim::lr_scheduler::LrSchedulerRecord;
use burn_train::checkpoint::{Checkpointer, CheckpointerError};
use serde::{Deserialize, Serialize};
use tenarc::{Checkpoints, Error, Result};

use crate::Record;

/// Saves and loads the checkpoints of burn-train's learners: the module, the optimizer and the scheduler of an epoch in
/// one file. burn-train wants a checkpointer for each of the three. Give it clones of one:
///
/// ```no_run
/// # use burn_train::{LearnerModel, SupervisedTraining};
/// use tenarc_burn::TenarcCheckpointer;
///
/// # fn continued<M: LearnerModel>(training: SupervisedTraining<M>) -> tenarc::Result<SupervisedTraining<M>> {
/// let files = TenarcCheckpointer::new("run-7")?;
/// let last = files.last_epoch()?;
/// let mut training = training.with_custom_checkpointers(files.clone(), files.clone(), files);
/// if let Some(epoch) = last {
///     training = training.checkpoint(epoch);
/// }
/// # Ok(training)
/// # }
/// ```
///
/// The files are those of [`tenarc::Checkpoints`], with the epoch as the step. A file appears when the last of the
/// three was saved, in one step. So each file that exists is complete, and a process that is killed leaves the files of
/// the epochs before. Which files are kept is decided by burn-train's `CheckpointingStrategy`.
///
/// burn-train's own data loaders shuffle with a random generator whose state is in no checkpoint. So a resumed run only
/// ends like one that was not stopped if the order of its data does not depend on earlier epochs.
#[derive(Clone)]
pub struct TenarcCheckpointer {
    files: Checkpoints,
    /// The records that were saved of epochs that are not complete.
    pending: Arc<Mutex<BTreeMap<usize, Pending>>>,
}

#[derive(Default, Serialize)]
#[serde(rename = "Checkpoint")]
struct Pending {
    module: Option<Record<ModuleRecord>>,
    optimizer: Option<Record<OptimizerRecord>>,
    scheduler: Option<Record<LrSchedulerRecord>>,
}

impl fmt::Debug for TenarcCheckpointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenarcCheckpointer").field("files", &self.files).finish_non_exhaustive()
    }
}

impl TenarcCheckpointer {
    /// Uses this directory. It is created if it does not exist.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn new(dir: impl Into<PathBuf>) -> Result<Self> {
        Checkpoints::new(dir).map(Self::with_checkpoints)
    }

    /// Uses these files, for example with other options for saving.
    pub fn with_checkpoints(files: Checkpoints) -> Self {
        Self { files, pending: Arc::default() }
    }

    /// The files.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.files
    }

    /// The last epoch with a file, for `SupervisedTraining::checkpoint`. `None` if there is none.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn last_epoch(&self) -> Result<Option<usize>> {
        let last = self.files.steps()?.last().copied();
        Ok(last.and_then(|epoch| usize::try_from(epoch).ok()))
    }

    /// Keeps one of the three records. After the last one, writes the file.
    fn put(&self, epoch: usize, put: impl FnOnce(&mut Pending)) -> Result<()> {
        // Saving and deleting wait for each other: burn-train calls from three threads.
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = pending.entry(epoch).or_default();
        put(parts);
        if parts.module.is_none() || parts.optimizer.is_none() || parts.scheduler.is_none() {
            return Ok(());
        }
        let Some(parts) = pending.remove(&epoch) else { return Ok(()) };
        self.files.save(epoch as u64, &parts)
    }

    /// Removes the epoch. Only the first of the three calls finds it.
    fn remove(&self, epoch: usize) -> Result<()> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.remove(&epoch);
        let epoch = epoch as u64;
        if self.files.steps()?.contains(&epoch) { self.files.remove(epoch) } else { Ok(()) }
    }
}

fn of_tenarc(error: Error) -> CheckpointerError {
    CheckpointerError::IOError(error.into())
}

macro_rules! checkpointers {
    ($($field:ident: $record:ident;)*) => {$(
        impl Checkpointer<$record> for TenarcCheckpointer {
            fn save(
                &self,
                epoch: usize,
                record: $record,
            ) -> std::result::Result<(), CheckpointerError> {
                let record = Record::new(record).map_err(of_tenarc)?;
                self.put(epoch, |parts| parts.$field = Some(record)).map_err(of_tenarc)
            }

            fn delete(&self, epoch: usize) -> std::result::Result<(), CheckpointerError> {
                self.remove(epoch).map_err(of_tenarc)
            }

            fn restore(&self, epoch: usize) -> std::result::Result<$record, CheckpointerError> {
                #[derive(Deserialize)]
                struct Part {
                    $field: Record<$record>,
                }

                let part: Part = self.files.load(epoch as u64).map_err(of_tenarc)?;
                part.$field.into_inner().map_err(of_tenarc)
            }
        }
    )*};
}

checkpointers! {
    module: ModuleRecord;
    optimizer: OptimizerRecord;
    scheduler: LrSchedulerRecord;
}
