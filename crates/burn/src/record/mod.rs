//! burn's records as values that serde saves.

mod content;
mod held;

use std::fmt;

use burn_core::store::{ModuleRecord, RecordError};
use burn_optim::OptimizerRecord;
use burn_optim::lr_scheduler::LrSchedulerRecord;
use burn_store::burn_pack::Bytes;
use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use tenarc::{Error, Result};

/// A record of burn that can be a field of a saved struct: a [`ModuleRecord`], an [`OptimizerRecord`] or an
/// [`LrSchedulerRecord`]. Its tensors are saved as tensors.
///
/// ```
/// # use burn_core as burn;
/// use burn_core::module::Module;
/// use burn_core::store::ModuleRecord;
/// use burn_core::tensor::{Device, Tensor};
/// use burn_nn::LinearConfig;
/// use burn_optim::{AdamConfig, GradientsParams, OptimizerRecord};
/// use serde::{Deserialize, Serialize};
/// use tenarc_burn::Record;
///
/// #[derive(Serialize, Deserialize)]
/// struct Checkpoint {
///     model: Record<ModuleRecord>,
///     optimizer: Record<OptimizerRecord>,
///     epoch: u32,
/// }
///
/// let device = Device::flex().autodiff();
/// let mut model = LinearConfig::new(4, 2).init(&device);
/// let mut optimizer = AdamConfig::new().init();
/// let loss = model.forward(Tensor::<2>::ones([1, 4], &device)).sum();
/// let gradients = GradientsParams::from_grads(loss.backward(), &model);
/// model = optimizer.step(0.01, model, gradients);
///
/// let saved = Checkpoint {
///     model: Record::new(model.clone().into_record())?,
///     optimizer: Record::new(optimizer.to_record())?,
///     epoch: 3,
/// };
/// let bytes = tenarc::to_vec(&saved)?;
///
/// let loaded: Checkpoint = tenarc::from_slice(&bytes)?;
/// let model = LinearConfig::new(4, 2).init(&device).load_record(loaded.model.into_inner()?);
/// let optimizer = AdamConfig::new().init().load_record(loaded.optimizer.into_inner()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | record | what is saved |
/// |---|---|
/// | `ModuleRecord` | `ids`: the ids of the parameters by path. `tensors`: their values by path. |
/// | `OptimizerRecord` | For each parameter by path: its id, and its state as `tensors` and `numbers`. For `LBFGS`: one state, as `state`. |
/// | `LrSchedulerRecord` | Numbers by name. |
///
/// burn looks up the state of an optimizer by the ids of the parameters. So load the record of the module too: it
/// gives the parameters the ids that they had.
///
/// The fields of burn's records are private, and burn gives them as a burnpack in memory. So their tensors are copied twice
/// when a `Record` is made, and twice by [`into_inner`](Self::into_inner). Meanwhile the memory has their bytes once more.
pub struct Record<R: BurnRecord>(R::Content);

impl<R: BurnRecord> Record<R> {
    /// Converts a record of burn.
    ///
    /// # Errors
    /// If the record has tensors of a dtype that cannot be saved, such as quantized ones.
    pub fn new(record: R) -> Result<Self> {
        content::of_bytes(record.into_bytes().map_err(|error| of_burn(&error))?).map(Self)
    }

    /// Returns the record of burn, for `load_record`.
    ///
    /// # Errors
    /// If the record has tensors of a dtype that burn does not have, or parameters with more than 8 dimensions.
    pub fn into_inner(self) -> Result<R> {
        R::from_bytes(content::into_bytes(self.0)?).map_err(|error| of_burn(&error))
    }
}

impl<R: BurnRecord> fmt::Debug for Record<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").finish_non_exhaustive()
    }
}

impl<R: BurnRecord> Serialize for Record<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, R: BurnRecord> Deserialize<'de> for Record<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        R::Content::deserialize(deserializer).map(Self)
    }
}

fn of_burn(error: &RecordError) -> Error {
    Error::data(error.to_string())
}

/// The records of burn. Other crates cannot implement this trait.
pub trait BurnRecord: Sized + sealed::Sealed {
    #[doc(hidden)]
    type Content: Content;
    #[doc(hidden)]
    fn into_bytes(self) -> std::result::Result<Bytes, RecordError>;
    #[doc(hidden)]
    fn from_bytes(bytes: Bytes) -> std::result::Result<Self, RecordError>;
}

#[doc(hidden)]
pub trait Content: content::Content + Serialize + DeserializeOwned + Send {}

impl<C: content::Content + Serialize + DeserializeOwned + Send> Content for C {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! records {
    ($($record:ident: $content:ident;)*) => {$(
        impl sealed::Sealed for $record {}

        impl BurnRecord for $record {
            type Content = content::$content;

            fn into_bytes(self) -> std::result::Result<Bytes, RecordError> {
                self.into_bytes()
            }

            fn from_bytes(bytes: Bytes) -> std::result::Result<Self, RecordError> {
                Self::from_bytes(bytes)
            }
        }
    )*};
}

records! {
    ModuleRecord: Module;
    OptimizerRecord: Optimizer;
    LrSchedulerRecord: Scheduler;
}
