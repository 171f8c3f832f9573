//! Tensors of an archive or another file, for candle's `VarBuilder`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Shape, Tensor};
use candle_nn::var_builder::{SimpleBackend, VarBuilder};
use candle_nn::{Init, VarMap};
use tenarc::archive::Segment;
use tenarc::inspect::dotted;
use tenarc::io::ReadAt;
use tenarc::named::{Match, Unmatched};
use tenarc::tensor::TensorInfo;
use tenarc::{Archive, Error, Map, Result};

use crate::candle_tensor::{CandleTensor, CandleVar};
use crate::error::of_candle;
use crate::to_candle;
use crate::var_map::lock;

/// The tensors of one saved value, by name. It is a backend of candle's `VarBuilder`.
///
/// The name of a tensor is its path in the value: field names, map keys and positions joined by dots. In this example
/// the model is one field of a struct:
///
/// ```
/// use candle_core::{DType, Device, Module, Tensor};
/// use candle_nn::{Init, VarMap};
/// use serde::Serialize;
/// use tenarc_candle::Weights;
///
/// #[derive(Serialize)]
/// struct Saved {
///     labels: Vec<String>,
///     #[serde(with = "tenarc_candle::var_map")]
///     model: VarMap,
/// }
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-candle-doc-weights-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.tenarc");
/// let model = VarMap::new();
/// model.get((10, 64), "fc.weight", Init::Const(0.5), DType::F32, &Device::Cpu)?;
/// model.get(10, "fc.bias", Init::Const(0.0), DType::F32, &Device::Cpu)?;
/// tenarc::save(&path, &Saved { labels: vec!["zero".into()], model })?;
///
/// let weights = Weights::open(&path)?.at("model")?;
/// let vb = weights.var_builder(DType::BF16, &Device::Cpu);
/// let layer = candle_nn::linear(64, 10, vb.pp("fc"))?;
/// let scores = layer.forward(&Tensor::ones((1, 64), DType::BF16, &Device::Cpu)?)?;
/// assert_eq!(scores.to_dtype(DType::F32)?.to_vec2::<f32>()?, [[32.0; 10]]);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Each tensor is read when the model asks for it, directly into the memory that candle then uses. If the model asks
/// for another dtype or device, the stored tensor is converted and then freed, so at most one tensor is in memory
/// beside the model. From a [`Map`], the bytes are copied once: candle's tensors own their memory, so they cannot use
/// that of the map.
///
/// Checksums are verified, unless the archive or map was given
/// [`DecodeOptions::with_checksums(false)`](tenarc::de::DecodeOptions::with_checksums).
pub struct Weights<'a> {
    source: Box<dyn Source + 'a>,
    /// The tensors under `prefix`, by name.
    tensors: HashMap<String, Listed>,
    prefix: String,
    /// The file's path, for errors.
    file: Option<PathBuf>,
}

struct Listed {
    info: TensorInfo,
    /// Whether another tensor has the same name: `a.b` can be a key, or a field in a field.
    is_ambiguous: bool,
}

impl fmt::Debug for Weights<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weights")
            .field("file", &self.file)
            .field("prefix", &self.prefix)
            .field("tensors", &self.tensors.len())
            .finish_non_exhaustive()
    }
}

impl Weights<'static> {
    /// Opens an archive file that holds one value, with [`tenarc::open`]: tensors are read, and not mapped.
    ///
    /// # Errors
    /// If the file cannot be opened, is not an archive, is damaged, or does not hold exactly one value.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::of_file(tenarc::open(path)?, path)
    }

    /// Opens a file of safetensors. The names are those in the file.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a safetensors file.
    #[cfg(feature = "safetensors")]
    pub fn open_safetensors(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::of_source(tenarc_convert::safetensors::open(path)?, path)
    }

    /// Opens a model of several safetensors files. The path is that of its index, which usually is named
    /// `model.safetensors.index.json`.
    ///
    /// # Errors
    /// If the index or one of the files cannot be read, or they do not fit together.
    #[cfg(feature = "safetensors")]
    pub fn open_sharded_safetensors(index: impl AsRef<Path>) -> Result<Self> {
        let index = index.as_ref();
        Self::of_source(tenarc_convert::safetensors::open_sharded(index)?, index)
    }

    /// Opens a GGUF file. The names are those in the file. Quantised tensors become `f32`, as
    /// [`CandleTensor`] says.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a GGUF file of version 2 or 3.
    #[cfg(feature = "gguf")]
    pub fn open_gguf(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::of_source(tenarc_convert::gguf::open(path)?, path)
    }

    pub(crate) fn of_file(source: Archive<File>, path: &Path) -> Result<Self> {
        Self::of_source(source, path)
    }

    fn of_source(source: impl Source + 'static, path: &Path) -> Result<Self> {
        let weights = Self::of(source).map_err(|error| error.in_file(path))?;
        Ok(Self { file: Some(path.to_owned()), ..weights })
    }

    /// Uses a mapped archive that holds one value.
    ///
    /// # Errors
    /// If the archive does not hold exactly one value, or is damaged.
    pub fn from_map(map: Map) -> Result<Self> {
        Self::of(map)
    }
}

impl<'a> Weights<'a> {
    /// Uses an archive that holds one value.
    ///
    /// # Errors
    /// If the archive does not hold exactly one value, or is damaged.
    pub fn new<S: ReadAt + Send + 'a>(archive: Archive<S>) -> Result<Self> {
        Self::of(archive)
    }

    /// Uses one value of an archive that holds several, such as `archive.named("best")?`.
    ///
    /// # Errors
    /// If the value is damaged.
    pub fn of_segment<S: ReadAt>(segment: Segment<'a, S>) -> Result<Self> {
        Self::of(segment)
    }

    /// Uses the tensors of an open file of safetensors, or of bytes in memory.
    ///
    /// # Errors
    /// There are none at present.
    #[cfg(feature = "safetensors")]
    pub fn of_safetensors<S: ReadAt + Send + 'a>(
        file: tenarc_convert::safetensors::SafeTensors<S>,
    ) -> Result<Self> {
        Self::of(file)
    }

    fn of(source: impl Source + 'a) -> Result<Self> {
        let mut weights = Self {
            source: Box::new(source),
            tensors: HashMap::new(),
            prefix: String::new(),
            file: None,
        };
        weights.list()?;
        Ok(weights)
    }

    /// Selects the tensors in the field, key or position at this path. Their names start after it.
    ///
    /// # Errors
    /// If there are no tensors in it.
    pub fn at(self, path: &str) -> Result<Self> {
        let weights = self.within(path)?;
        if weights.tensors.is_empty() {
            let prefix = weights.prefix.escape_debug();
            let what = format!("there are no tensors in `{prefix}`");
            return Err(weights.in_file(Error::not_found(what)));
        }
        Ok(weights)
    }

    /// Like [`at`](Self::at), but there may be no tensors.
    pub(crate) fn within(mut self, path: &str) -> Result<Self> {
        if !self.prefix.is_empty() {
            self.prefix.push('.');
        }
        self.prefix.push_str(path);
        self.list()?;
        Ok(self)
    }

    fn list(&mut self) -> Result<()> {
        self.tensors.clear();
        for (name, info) in self.source.list()? {
            let name = if self.prefix.is_empty() {
                name
            } else {
                let rest = name.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix('.'));
                let Some(rest) = rest else { continue };
                rest.to_owned()
            };
            match self.tensors.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(Listed { info, is_ambiguous: false });
                }
                Entry::Occupied(mut entry) => entry.get_mut().is_ambiguous = true,
            }
        }
        Ok(())
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.tensors.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// A `VarBuilder` that gives a model these tensors, converted to `dtype` and moved to `device`.
    pub fn var_builder(self, dtype: DType, device: &Device) -> VarBuilder<'a> {
        VarBuilder::from_backend(Box::new(self), dtype, device.clone())
    }

    /// The tensor with this name, with the stored dtype, on the CPU.
    ///
    /// # Errors
    /// If there is no such tensor, it cannot be read or is damaged, or candle does not have its dtype.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        let info = self.find(name)?;
        self.read(info.path())
    }

    fn read(&self, path: &str) -> Result<Tensor> {
        let tensor = self.source.tensor(path).map_err(|error| self.in_file(error))?;
        Ok(tensor.into_inner())
    }

    /// All tensors as the variables of a new `VarMap`.
    ///
    /// # Errors
    /// If a tensor cannot be read or is damaged, two have the same name, or candle does not have the dtype of one.
    pub fn to_var_map(&self, device: &Device) -> Result<VarMap> {
        let variables = VarMap::new();
        self.insert_all(&variables, device)?;
        Ok(variables)
    }

    fn insert_all(&self, variables: &VarMap, device: &Device) -> Result<()> {
        let mut found = HashMap::with_capacity(self.tensors.len());
        for name in self.names() {
            let info = self.find(name)?;
            let CandleVar(mut var) =
                self.source.var(info.path()).map_err(|error| self.in_file(error))?;
            if !device.same_device(var.device()) {
                let moved =
                    var.to_device(device).and_then(|tensor| candle_core::Var::from_tensor(&tensor));
                var = moved.map_err(|error| of_candle(&error).in_field(name))?;
            }
            found.insert(name.to_owned(), var);
        }
        lock(variables).extend(found);
        Ok(())
    }

    /// Loads the tensors into the variables with the same names. Models that use the variables see the new values.
    /// One tensor at a time is in memory beside them. If the map is empty, it gets all tensors, on the CPU.
    ///
    /// [`Match`] says which names may be missing on either side: with [`Match::Strict`], the default, none. Names, dtypes and shapes are compared first: if they do
    /// not fit, no variable is changed.
    ///
    /// # Errors
    /// - Names differ in a way that `mode` does not allow, or dtypes or shapes differ.
    /// - A tensor cannot be read or is damaged. Then some variables may have been loaded.
    pub fn load_into(&self, variables: &VarMap, mode: Match) -> Result<Unmatched> {
        self.load_on(variables, mode, &Device::Cpu)
    }

    /// Like [`load_into`](Self::load_into), with the device for the variables of an empty map.
    pub(crate) fn load_on(
        &self,
        variables: &VarMap,
        mode: Match,
        device: &Device,
    ) -> Result<Unmatched> {
        // Clones of variables share their memory, so the map need not stay locked.
        let by_name = crate::var_map::sorted(variables);
        if by_name.is_empty() {
            self.insert_all(variables, device)?;
            return Ok(Unmatched::default());
        }
        let mut unmatched = Unmatched::default();
        let mut pairs = Vec::with_capacity(by_name.len());
        for (name, var) in &by_name {
            if !self.tensors.contains_key(name) {
                unmatched.missing.push(name.clone());
                continue;
            }
            let info = self.find(name)?;
            if to_candle(info.dtype()) != Some(var.dtype()) || info.shape() != var.dims() {
                let what = format!(
                    "expected {} {:?} of the variable, found a tensor {} {:?}",
                    var.dtype().as_str(),
                    var.dims(),
                    info.dtype(),
                    info.shape()
                );
                return Err(self.in_file(Error::mismatch(what).in_field(name)));
            }
            pairs.push((name, var, info));
        }
        let unexpected =
            |name: &&str| by_name.binary_search_by(|(known, _)| known.as_str().cmp(name)).is_err();
        unmatched.unexpected =
            self.names().into_iter().filter(unexpected).map(str::to_owned).collect();
        if !mode.allows(&unmatched) {
            let what = format!("names differ: the file has {unmatched}");
            return Err(self.in_file(Error::mismatch(what)));
        }
        for (name, var, info) in pairs {
            let tensor = self.read(info.path())?;
            let set = tensor.to_device(var.device()).and_then(|tensor| var.set(&tensor));
            set.map_err(|error| self.in_file(of_candle(&error).in_field(name)))?;
        }
        Ok(unmatched)
    }

    fn full(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}.{name}", self.prefix) }
    }

    fn find(&self, name: &str) -> Result<TensorInfo> {
        match self.tensors.get(name) {
            Some(listed) if !listed.is_ambiguous => Ok(listed.info.clone()),
            // A row of columns is not listed. The error for a name that does not exist suggests a similar one.
            _ => self.source.info(&self.full(name)).map_err(|error| self.in_file(error)),
        }
    }

    /// Like [`find`](Self::find), with candle's error if there is no such tensor.
    fn find_for_candle(&self, name: &str) -> candle_core::Result<TensorInfo> {
        self.find(name).map_err(|error| {
            let missing = candle_core::Error::CannotFindTensor { path: self.full(name) }.bt();
            missing.context(error)
        })
    }

    fn fetch(
        &self,
        info: &TensorInfo,
        dtype: DType,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        let tensor = self.read(info.path()).map_err(candle_core::Error::wrap)?.to_device(device)?;
        let tensor = match (tensor.dtype(), dtype) {
            // candle 0.11.1 overflows the stack if it converts one to the other. This way loses nothing.
            (DType::F8E4M3, DType::F64) => tensor.to_dtype(DType::F32)?,
            _ => tensor,
        };
        tensor
            .to_dtype(dtype)
            .map_err(|error| error.context(format!("cannot convert the tensor `{}`", info.path())))
    }

    fn in_file(&self, error: Error) -> Error {
        match &self.file {
            Some(file) => error.in_file(file),
            None => error,
        }
    }
}

impl SimpleBackend for Weights<'_> {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: Init,
        dtype: DType,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        let info = self.find_for_candle(name)?;
        if info.shape() != shape.dims() {
            let file = self.file.as_ref().map(|file| format!(" in {}", file.display()));
            return Err(candle_core::Error::UnexpectedShape {
                msg: format!("shape mismatch for `{}`{}", info.path(), file.unwrap_or_default()),
                expected: shape,
                got: Shape::from(info.shape()),
            }
            .bt());
        }
        self.fetch(&info, dtype, device)
    }

    fn get_unchecked(
        &self,
        name: &str,
        dtype: DType,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        self.fetch(&self.find_for_candle(name)?, dtype, device)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }
}

/// A source of tensors.
trait Source: Send + Sync {
    /// Returns the name and the description of every tensor. The name is the path with dots, even if the path is a JSON
    /// Pointer.
    fn list(&self) -> Result<Vec<(String, TensorInfo)>>;
    fn info(&self, path: &str) -> Result<TensorInfo>;
    fn tensor(&self, path: &str) -> Result<CandleTensor>;
    fn var(&self, path: &str) -> Result<CandleVar>;
}

impl<S: ReadAt> Source for Segment<'_, S> {
    fn list(&self) -> Result<Vec<(String, TensorInfo)>> {
        let tensors = self.tensors()?;
        Ok(tensors.into_iter().map(|info| (dotted(info.path()).into_owned(), info)).collect())
    }

    fn info(&self, path: &str) -> Result<TensorInfo> {
        self.info(path)
    }

    fn tensor(&self, path: &str) -> Result<CandleTensor> {
        self.tensor(path)
    }

    fn var(&self, path: &str) -> Result<CandleVar> {
        self.tensor(path)
    }
}

impl<S: ReadAt + Send> Source for Archive<S> {
    fn list(&self) -> Result<Vec<(String, TensorInfo)>> {
        Source::list(&self.only()?)
    }

    fn info(&self, path: &str) -> Result<TensorInfo> {
        self.only()?.info(path)
    }

    fn tensor(&self, path: &str) -> Result<CandleTensor> {
        self.only()?.tensor(path)
    }

    fn var(&self, path: &str) -> Result<CandleVar> {
        self.only()?.tensor(path)
    }
}

impl Source for Map {
    fn list(&self) -> Result<Vec<(String, TensorInfo)>> {
        Source::list(&**self)
    }

    fn info(&self, path: &str) -> Result<TensorInfo> {
        Source::info(&**self, path)
    }

    fn tensor(&self, path: &str) -> Result<CandleTensor> {
        Source::tensor(&**self, path)
    }

    fn var(&self, path: &str) -> Result<CandleVar> {
        Source::var(&**self, path)
    }
}

#[cfg(any(feature = "safetensors", feature = "gguf"))]
mod converted {
    #[cfg(feature = "gguf")]
    use tenarc_convert::gguf::Gguf;
    #[cfg(feature = "safetensors")]
    use tenarc_convert::safetensors::{SafeTensors, Sharded};

    use super::{CandleTensor, CandleVar, ReadAt, Result, Source, TensorInfo};

    macro_rules! sources {
        ($($feature:literal [$($generics:tt)*] $type:ty;)*) => {$(
            #[cfg(feature = $feature)]
            impl<$($generics)*> Source for $type {
                fn list(&self) -> Result<Vec<(String, TensorInfo)>> {
                    let tensors = self.tensors().into_iter();
                    Ok(tensors.map(|info| (info.path().to_owned(), info.clone())).collect())
                }

                fn info(&self, name: &str) -> Result<TensorInfo> {
                    self.info(name).cloned()
                }

                fn tensor(&self, name: &str) -> Result<CandleTensor> {
                    self.tensor(name)
                }

                fn var(&self, name: &str) -> Result<CandleVar> {
                    self.tensor(name)
                }
            }
        )*};
    }

    sources! {
        "safetensors" [S: ReadAt + Send] SafeTensors<S>;
        "safetensors" [] Sharded;
        "gguf" [S: ReadAt + Send] Gguf<S>;
    }
}
