//! A whole training run in one file.

use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_nn::{Optimizer, VarMap};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::archive::{Background, SaveOptions};
use tenarc::named::Match;
use tenarc::{Error, Result};

use crate::saved::Variables;
use crate::{AdamW, Sgd, Weights};

/// An optimizer that is saved without its variables, and gets them again after it was loaded.
pub trait SavedOptimizer: Optimizer + Serialize + for<'de> Deserialize<'de> {
    /// Gives a loaded optimizer the variables of the map.
    ///
    /// # Errors
    /// If the state of the optimizer does not fit the variables.
    fn bind(&mut self, variables: &VarMap) -> candle_core::Result<()>;
}

impl SavedOptimizer for AdamW {
    fn bind(&mut self, variables: &VarMap) -> candle_core::Result<()> {
        self.bind(variables)
    }
}

impl SavedOptimizer for Sgd {
    fn bind(&mut self, variables: &VarMap) -> candle_core::Result<()> {
        self.bind(variables)
    }
}

#[derive(Serialize)]
struct Run<'a, O, T: ?Sized> {
    variables: Variables<'a>,
    optimizer: &'a O,
    rest: &'a T,
}

/// Saves a training run: the variables of a model, its optimizer, and a value with everything else, such as the number of
/// steps, the schedule and the state of the random generator. The file is replaced in one step.
///
/// Each call writes everything, and waits until it is on the drive. With [`AdamW`], this is three times the size of the
/// variables. If a step takes less time than that, save after every hundredth step, for example.
///
/// # Errors
/// If tenarc does not have the dtype of a variable, the optimizer or `rest` fails to serialize, or the file cannot be
/// written. The file is then the one that was there before.
pub fn save_run<O: SavedOptimizer, T: Serialize + ?Sized>(
    path: impl AsRef<Path>,
    variables: &VarMap,
    optimizer: &O,
    rest: &T,
) -> Result<()> {
    save_run_with(path, variables, optimizer, rest, SaveOptions::default())
}

/// Like [`save_run`], with options. They can compress tensors, or not wait for the drive.
///
/// ```
/// # use candle_nn::{ParamsAdamW, VarMap};
/// # use tenarc_candle::AdamW;
/// use tenarc::archive::{Compression, SaveOptions};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-candle-run-with-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("run.tenarc");
/// # let variables = VarMap::new();
/// # let optimizer = AdamW::for_vars(&variables, ParamsAdamW::default())?;
/// # let step = 1u32;
/// // Compresses the moments, but not the variables, so that these can be mapped.
/// let options = SaveOptions::default().with_compression_by(|tensor| {
///     tensor.path().starts_with("optimizer.").then(Compression::zstd)
/// });
/// tenarc_candle::save_run_with(&path, &variables, &optimizer, &step, options)?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The same errors as [`save_run`], and if the options are invalid.
pub fn save_run_with<O: SavedOptimizer, T: Serialize + ?Sized>(
    path: impl AsRef<Path>,
    variables: &VarMap,
    optimizer: &O,
    rest: &T,
    options: SaveOptions,
) -> Result<()> {
    let run = Run { variables: Variables(variables), optimizer, rest };
    tenarc::archive::save_with(path, &run, options)
}

/// Like [`save_run_with`], on another thread: the run goes on when everything was copied. Waits for the save before, if that has not
/// ended.
///
/// Call [`Background::wait`] at the end: errors of the last save are returned there.
///
/// # Errors
/// Those of the save before, and the errors of [`save_run_with`] that have nothing to do with the file. Those of writing the
/// file are returned by the next call with this [`Background`].
pub fn save_run_in_background<O: SavedOptimizer, T: Serialize + ?Sized>(
    background: &mut Background,
    path: impl Into<PathBuf>,
    variables: &VarMap,
    optimizer: &O,
    rest: &T,
    options: SaveOptions,
) -> Result<()> {
    let run = Run { variables: Variables(variables), optimizer, rest };
    background.save(path, &run, options)
}

/// Continues the run that [`save_run`] saved in this file: puts its tensors into the variables, and returns its optimizer,
/// bound to the variables, with everything else. If there is no such file, returns what it was given, so that the run
/// starts.
///
/// Make the model first, so that the map has its variables. Each gets its value where it is, on any device, and the model
/// uses the new values. The tensors are verified before the first variable changes, so they are read twice.
///
/// The optimizer of the file has the parameters that were saved with it, such as the learning rate. Those of the optimizer
/// that is given are not used. To train on with others, call [`AdamW::set_params`] or [`Sgd::set_params`] afterwards.
///
/// ```
/// use candle_core::{DType, Device, Module, Tensor};
/// use candle_nn::{Optimizer, ParamsAdamW, VarBuilder, VarMap};
/// use tenarc_candle::AdamW;
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-candle-run-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("run.tenarc");
/// let input = Tensor::ones((8, 4), DType::F32, &Device::Cpu)?;
/// # for end in [3, 5] {
/// let variables = VarMap::new();
/// let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
/// let model = candle_nn::linear(4, 2, vb.pp("fc"))?;
/// let optimizer = AdamW::for_vars(&variables, ParamsAdamW::default())?;
/// let (mut optimizer, mut step) =
///     tenarc_candle::resume_run(&path, &variables, optimizer, 0u32)?;
/// while step < end {
///     optimizer.backward_step(&model.forward(&input)?.sqr()?.mean_all()?)?;
///     step += 1;
///     tenarc_candle::save_run(&path, &variables, &optimizer, &step)?;
/// }
/// # assert_eq!(optimizer.step_count(), u64::from(end));
/// # }
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// - The file is damaged, or does not fit the variables, the optimizer or the type `T`: names, dtypes and shapes must be
///   the same on both sides. Then no variable was changed.
/// - The file cannot be read. If this happens after the tensors were verified, some variables may have been changed.
pub fn resume_run<O: SavedOptimizer, T: DeserializeOwned>(
    path: impl AsRef<Path>,
    variables: &VarMap,
    optimizer: O,
    rest: T,
) -> Result<(O, T)> {
    let path = path.as_ref();
    if !path.try_exists().map_err(Error::io).map_err(|error| error.in_file(path))? {
        return Ok((optimizer, rest));
    }
    // One open file, so that another process may replace it meanwhile.
    let archive = tenarc::open(path)?;
    let load = || {
        let value = archive.only()?;
        let mut optimizer: O = value.get("optimizer")?;
        optimizer.bind(variables).map_err(|error| Error::data(error.to_string()))?;
        let rest = value.get("rest")?;
        // Otherwise damage is found when the variables before it have changed already.
        if value.has_checksums() {
            value.verify_at("variables")?;
        }
        Ok((optimizer, rest))
    };
    let found = load().map_err(|error: Error| error.in_file(path))?;
    let weights = Weights::of_file(archive, path)?.within("variables")?;
    weights.load_on(variables, Match::Strict, &Device::Cpu)?;
    Ok(found)
}
