//! Files with the variables of a model and a value beside them.

use std::fs::File;
use std::path::Path;

use candle_core::Device;
use candle_nn::VarMap;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use tenarc::archive::SaveOptions;
use tenarc::named::{Match, Unmatched};
use tenarc::{Archive, Result};

use crate::{Weights, var_map};

/// Saves the variables of a model to a file, with a value of any type beside them, such as the configuration.
///
/// The file is replaced in one step, as by [`tenarc::save`]: after a crash, it is the old file or the new one. It holds
/// a struct of two fields, `meta` and `variables`. If you need more fields, derive a struct of your own, and mark the
/// field of the variables with `#[serde(with = "tenarc_candle::var_map")]`.
///
/// ```
/// use candle_core::{DType, Device};
/// use candle_nn::{Init, VarBuilder, VarMap};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Config {
///     hidden: usize,
/// }
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-candle-doc-save-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.tenarc");
/// let variables = VarMap::new();
/// let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
/// let layer = candle_nn::linear(64, 32, vb.pp("fc"))?;
/// tenarc_candle::save(&path, &variables, &Config { hidden: 32 })?;
///
/// // Into an empty map, so that the configuration can be used to build the model.
/// let loaded = VarMap::new();
/// let config: Config = tenarc_candle::load(&path, &loaded, &Device::Cpu)?;
/// let vb = VarBuilder::from_varmap(&loaded, DType::F32, &Device::Cpu);
/// let same = candle_nn::linear(64, config.hidden, vb.pp("fc"))?;
/// assert_eq!(same.weight().to_vec2::<f32>()?, layer.weight().to_vec2::<f32>()?);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be written, `meta` fails to serialize, or tenarc does not have the dtype of a variable.
pub fn save<M: Serialize + ?Sized>(
    path: impl AsRef<Path>,
    variables: &VarMap,
    meta: &M,
) -> Result<()> {
    save_with(path, variables, meta, SaveOptions::default())
}

/// Like [`save`], with options. They can compress tensors, leave out checksums, or not wait for the drive.
///
/// ```
/// # use candle_nn::VarMap;
/// use tenarc::archive::{Compression, SaveOptions};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-candle-save-with-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.tenarc");
/// # let variables = VarMap::new();
/// let options = SaveOptions::default().with_compression(Compression::zstd());
/// tenarc_candle::save_with(&path, &variables, &"a small model", options)?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The same errors as [`save`], and if the options are invalid.
pub fn save_with<M: Serialize + ?Sized>(
    path: impl AsRef<Path>,
    variables: &VarMap,
    meta: &M,
    options: SaveOptions,
) -> Result<()> {
    tenarc::archive::save_with(path, &Saved { meta, variables: Variables(variables) }, options)
}

/// The file that [`save`] writes.
#[derive(Serialize)]
struct Saved<'a, M: ?Sized> {
    meta: &'a M,
    variables: Variables<'a>,
}

/// Writes the variables as [`var_map`] does.
pub struct Variables<'a>(pub &'a VarMap);

impl Serialize for Variables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        var_map::serialize(self.0, serializer)
    }
}

/// Loads a file of [`save`]: the tensors into the variables, and the value beside them, which is returned.
///
/// If the map is empty, it gets all variables of the file, on `device`. If not, both must have the same names, dtypes
/// and shapes. Each variable then gets its new value in place, so that models that use it see it, and `device` is not
/// used. One tensor at a time is in memory beside the variables.
///
/// # Errors
/// - The file cannot be read, is damaged, or was not written by [`save`].
/// - The value does not fit `M`, or names, dtypes or shapes differ. Then no variable was changed.
pub fn load<M: DeserializeOwned>(
    path: impl AsRef<Path>,
    variables: &VarMap,
    device: &Device,
) -> Result<M> {
    load_from(path.as_ref(), variables, Match::Strict, device).map(|(meta, _)| meta)
}

/// Like [`load`], with a [`Match`] that says which names may be missing on either side. Also returns these names.
///
/// ```no_run
/// use candle_nn::VarMap;
/// use tenarc_candle::Match;
///
/// let variables = VarMap::new();
/// // ... a model with another last layer makes its variables here ...
/// let ((), unmatched) = tenarc_candle::load_into("model.tenarc", &variables, Match::Fill)?;
/// println!("not in the file: {:?}", unmatched.missing);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// The same errors as [`load`], if names differ in a way that `mode` does not allow.
pub fn load_into<M: DeserializeOwned>(
    path: impl AsRef<Path>,
    variables: &VarMap,
    mode: Match,
) -> Result<(M, Unmatched)> {
    load_from(path.as_ref(), variables, mode, &Device::Cpu)
}

fn load_from<M: DeserializeOwned>(
    path: &Path,
    variables: &VarMap,
    mode: Match,
    device: &Device,
) -> Result<(M, Unmatched)> {
    let archive = tenarc::open(path)?;
    let read = |archive: &Archive<File>| {
        let value = archive.only()?;
        value.keys("variables")?;
        value.get("meta")
    };
    let meta = read(&archive).map_err(|error| error.in_file(path))?;
    let weights = Weights::of_file(archive, path)?.within("variables")?;
    let unmatched = weights.load_on(variables, mode, device)?;
    Ok((meta, unmatched))
}
