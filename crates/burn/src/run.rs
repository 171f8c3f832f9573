//! A whole training run in one file.

use std::path::{Path, PathBuf};

use burn_optim::{ModuleOptimizer, OptimizerRecord};
use burn_store::{ModuleSnapshot, ModuleStore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::archive::{Background, SaveOptions};
use tenarc::de::DecodeOptions;
use tenarc::{Error, Result, Value};

use crate::Record;
use crate::source::Source;
use crate::store::{Saved, TenarcStore, by_name};

#[derive(Serialize)]
struct Run<'a, T: ?Sized> {
    module: Saved<'a>,
    optimizer: Record<OptimizerRecord>,
    rest: &'a T,
}

/// Saves a training run: a module, its optimizer, and a value with everything else, such as the number of steps, the
/// schedule and the state of the random generator. The file is replaced in one step.
///
/// The tensors of the module are taken out of the backend and written one by one. Those of the optimizer are copied first, so
/// that meanwhile the memory has their bytes twice more.
///
/// Each call writes everything, and waits until it is on the drive. With Adam, this is three times the size of the module.
/// If a step takes less time than that, save after every hundredth step, for example.
///
/// # Errors
/// If a tensor has a dtype that cannot be saved, the `Serialize` of `rest` fails, or the file cannot be written. The
/// old file then stays unchanged.
pub fn save_run<M: ModuleSnapshot, T: Serialize + ?Sized>(
    path: impl AsRef<Path>,
    module: &M,
    optimizer: &ModuleOptimizer,
    rest: &T,
) -> Result<()> {
    save_run_with(path, module, optimizer, rest, SaveOptions::default())
}

/// Like [`save_run`], with options. They can compress tensors, or not wait for the drive.
///
/// ```
/// # use burn_core::tensor::Device;
/// # use burn_nn::LinearConfig;
/// # use burn_optim::AdamConfig;
/// use tenarc::archive::{Compression, SaveOptions};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-burn-run-with-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("run.tenarc");
/// # let model = LinearConfig::new(4, 2).init(&Device::flex());
/// # let optimizer = AdamConfig::new().init();
/// # let step = 1u32;
/// // Compresses the moments, but not the module, so that this can be mapped.
/// let options = SaveOptions::default().with_compression_by(|tensor| {
///     tensor.path().starts_with("optimizer.").then(Compression::zstd)
/// });
/// tenarc_burn::save_run_with(&path, &model, &optimizer, &step, options)?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The same errors as [`save_run`], and if the options are invalid.
pub fn save_run_with<M: ModuleSnapshot, T: Serialize + ?Sized>(
    path: impl AsRef<Path>,
    module: &M,
    optimizer: &ModuleOptimizer,
    rest: &T,
    options: SaveOptions,
) -> Result<()> {
    let module = Saved { meta: &Value::Null, tensors: by_name(module.collect(None, None, false))? };
    let optimizer = Record::new(optimizer.to_record())?;
    tenarc::archive::save_with(path, &Run { module, optimizer, rest }, options)
}

/// Like [`save_run_with`], on another thread: the run goes on when everything was copied. Waits for the save before, if that has not
/// ended.
///
/// Call [`Background::wait`] at the end: errors of the last save are returned there.
///
/// # Errors
/// Those of the save before, and the errors of [`save_run_with`] that have nothing to do with the file. Those of writing the
/// file are returned by the next call with this [`Background`].
pub fn save_run_in_background<M: ModuleSnapshot, T: Serialize + ?Sized>(
    background: &mut Background,
    path: impl Into<PathBuf>,
    module: &M,
    optimizer: &ModuleOptimizer,
    rest: &T,
    options: SaveOptions,
) -> Result<()> {
    let module = Saved { meta: &Value::Null, tensors: by_name(module.collect(None, None, false))? };
    let optimizer = Record::new(optimizer.to_record())?;
    background.save(path, &Run { module, optimizer, rest }, options)
}

/// Continues the run that [`save_run`] saved in this file: puts its tensors into the module, and its state into the
/// optimizer, and returns both with everything else. If there is no such file, returns its arguments unchanged, so that
/// a new run starts.
///
/// The module and the optimizer are new ones, made from the same configuration as those that were saved. The file has no
/// configuration of the optimizer, such as the weight decay: that of the optimizer that is given is used.
///
/// ```
/// # use burn_core as burn;
/// use burn_core::tensor::{Device, Tensor};
/// use burn_nn::LinearConfig;
/// use burn_optim::{AdamConfig, GradientsParams};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-burn-run-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("run.tenarc");
/// # for end in [3, 5] {
/// let device = Device::flex().autodiff();
/// let (model, optimizer) = (LinearConfig::new(4, 2).init(&device), AdamConfig::new().init());
/// let (mut model, mut optimizer, mut step) =
///     tenarc_burn::resume_run(&path, model, optimizer, 0u32)?;
/// while step < end {
///     let loss = model.forward(Tensor::<2>::ones([1, 4], &device)).sum();
///     let gradients = GradientsParams::from_grads(loss.backward(), &model);
///     model = optimizer.step(0.01, model, gradients);
///     step += 1;
///     tenarc_burn::save_run(&path, &model, &optimizer, &step)?;
/// }
/// # }
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be read, is damaged, or does not fit the module or the type `T`. Unlike a store, this allows
/// neither missing tensors nor unknown ones.
pub fn resume_run<M: ModuleSnapshot, T: DeserializeOwned>(
    path: impl AsRef<Path>,
    module: M,
    optimizer: ModuleOptimizer,
    rest: T,
) -> Result<(M, ModuleOptimizer, T)> {
    let path = path.as_ref();
    if !path.try_exists().map_err(Error::io).map_err(|error| error.in_file(path))? {
        return Ok((module, optimizer, rest));
    }
    load(path, module, optimizer).map_err(|error| error.in_file(path))
}

fn load<M: ModuleSnapshot, T: DeserializeOwned>(
    path: &Path,
    mut module: M,
    optimizer: ModuleOptimizer,
) -> Result<(M, ModuleOptimizer, T)> {
    // One open file, so that another process may replace it meanwhile.
    let mut store =
        TenarcStore::of_source(Source::open(path, DecodeOptions::default())?).at("module.tensors");
    let source = store.source()?;
    let optimizer =
        optimizer.load_record(source.get::<Record<OptimizerRecord>>("optimizer")?.into_inner()?);
    let rest = source.get("rest")?;
    let unknown = store.apply_to(&mut module)?.unused;
    if !unknown.is_empty() {
        let what =
            format!("the file has tensors that are not in the module: {}", unknown.join(", "));
        return Err(Error::mismatch(what));
    }
    Ok((module, optimizer, rest))
}
