//! burn's `ModuleStore` over an archive.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use burn_store::burn_pack::{self, Tensor as PackTensor};
use burn_store::{
    ApplyResult, IdentityAdapter, KeyRemapper, ModuleAdapter, ModuleSnapshot, ModuleStore,
    PathFilter, map_indices_contiguous_except,
};
use serde::de::DeserializeOwned;
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeStruct, Serializer};
use tenarc::archive::SaveOptions;
use tenarc::de::DecodeOptions;
use tenarc::inspect::dotted;
use tenarc::io::SharedBytes;
use tenarc::tensor::{Deferred, Order};
use tenarc::{Error, Map, OArchive, Result, Value};

use crate::dtype::{from_burn, to_burn};
use crate::source::Source;

/// The field with the tensors in the files that a store writes.
const TENSORS: &str = "tensors";

/// Saves burn's modules to archives and loads them from there. It is used as burn's own stores are: by
/// `module.save_into(&mut store)` and `module.load_from(&mut store)`.
///
/// ```
/// use burn_core as burn;
///
/// use burn::module::Module;
/// use burn::tensor::Device;
/// use burn_nn::{Linear, LinearConfig};
/// use burn_store::{ModuleSnapshot, PathFilter};
/// use tenarc_burn::TenarcStore;
///
/// #[derive(Module, Debug)]
/// struct Model {
///     encoder: Linear,
///     decoder: Linear,
/// }
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-burn-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.tenarc");
/// let device = Device::flex();
/// let new = || Model {
///     encoder: LinearConfig::new(64, 8).init(&device),
///     decoder: LinearConfig::new(8, 64).init(&device),
/// };
/// let model = new();
/// let mut store = TenarcStore::from_file(&path).with_meta(&("run 7", 0.25))?;
/// model.save_into(&mut store)?;
///
/// let mut other = new();
/// let mut store = TenarcStore::from_file(&path);
/// let (name, _): (String, f64) = store.meta()?;
/// assert_eq!(name, "run 7");
/// other.load_from(&mut store)?;
/// assert_eq!(other.encoder.weight.val().to_data(), model.encoder.weight.val().to_data());
///
/// // Only a part.
/// let encoder = PathFilter::new().with_regex("^encoder");
/// let result = new().load_from(&mut TenarcStore::from_file(&path).filter(encoder))?;
/// assert_eq!(result.applied.len(), 2);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// Each of the booleans is an option of its own.
#[allow(clippy::struct_excessive_bools)]
pub struct TenarcStore {
    place: Place,
    path: String,
    meta: Value,
    filter: PathFilter,
    remapper: KeyRemapper,
    indices_are_mapped: bool,
    /// The lists whose indices are kept.
    kept_indices: PathFilter,
    from_adapter: Box<dyn ModuleAdapter>,
    to_adapter: Box<dyn ModuleAdapter>,
    allow_partial: bool,
    validate: bool,
    overwrite: bool,
    skip_enum_variants: bool,
    save_options: SaveOptions,
    decode_options: DecodeOptions,
    source: Option<Arc<Source>>,
    tensors: Option<BTreeMap<String, PackTensor>>,
}

/// Where the archive is.
enum Place {
    File(PathBuf),
    Memory(Option<SharedBytes>),
    Map,
}

impl fmt::Debug for TenarcStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TenarcStore");
        if let Place::File(file) = &self.place {
            shown.field("file", file);
        }
        shown.field("path", &self.path).finish_non_exhaustive()
    }
}

impl TenarcStore {
    /// A store in a file. Nothing is opened before the store is used.
    ///
    /// Unlike burn's own stores, this appends no extension to the name.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self::new(Place::File(path.into()), None)
    }

    /// A store in memory: the bytes of an archive to load from, or `None` to save into. [`bytes`](Self::bytes) returns
    /// what was saved.
    pub fn from_bytes(bytes: Option<Vec<u8>>) -> Self {
        Self::new(Place::Memory(bytes.map(SharedBytes::from_owner)), None)
    }

    /// A store that loads from a mapped file. Large tensors are not copied, as far as the backend can use the memory of
    /// the map. Their checksums are not verified: `Map::verify` does this.
    pub fn from_map(map: Map) -> Self {
        Self::new(Place::Map, Some(Source::Map(map)))
    }

    /// A store over a source that is open already. It can only load.
    pub(crate) fn of_source(source: Source) -> Self {
        Self::new(Place::Map, Some(source))
    }

    fn new(place: Place, source: Option<Source>) -> Self {
        Self {
            place,
            path: TENSORS.to_owned(),
            meta: Value::Null,
            filter: PathFilter::new(),
            remapper: KeyRemapper::new(),
            indices_are_mapped: false,
            kept_indices: PathFilter::new(),
            from_adapter: Box::new(IdentityAdapter),
            to_adapter: Box::new(IdentityAdapter),
            allow_partial: false,
            validate: true,
            overwrite: false,
            skip_enum_variants: false,
            save_options: SaveOptions::default(),
            decode_options: DecodeOptions::default(),
            source: source.map(Arc::new),
            tensors: None,
        }
    }

    /// Loads the tensors from another field of the saved value. By default this is `tensors`, where stores save them.
    /// The path `""` is the whole value. So a model that is a part of a larger struct can be loaded.
    #[must_use]
    pub fn at(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), tensors: None, ..self }
    }

    /// Sets a value that is saved beside the tensors, such as the configuration.
    ///
    /// # Errors
    /// If the value's `Serialize` fails.
    pub fn with_meta<M: Serialize + ?Sized>(self, meta: &M) -> Result<Self> {
        Ok(Self { meta: tenarc::to_value(meta)?, ..self })
    }

    /// Loads the value that was saved beside the tensors.
    ///
    /// # Errors
    /// If the archive cannot be read, or the value does not fit the type.
    pub fn meta<M: DeserializeOwned>(&mut self) -> Result<M> {
        let meta = self.source()?.get("meta");
        meta.map_err(|error| self.in_file(error))
    }

    /// Sets which tensors are saved or loaded. An empty filter selects all.
    ///
    /// The methods `with_regex`, `with_full_path` and `with_predicate` add to this filter. A tensor is selected if one of
    /// its conditions is met.
    #[must_use]
    pub fn filter(self, filter: PathFilter) -> Self {
        Self { filter, ..self }
    }

    /// Adds the tensors whose names match a regex to those that are saved or loaded.
    ///
    /// ```
    /// # use tenarc_burn::TenarcStore;
    /// // The encoder, and all biases.
    /// let store = TenarcStore::from_file("model.tenarc").with_regex(r"^encoder\.").with_regex(r"\.bias$");
    /// ```
    ///
    /// # Panics
    /// If the regex is invalid, as burn's [`PathFilter`] does.
    #[must_use]
    pub fn with_regex(mut self, pattern: impl AsRef<str>) -> Self {
        self.filter = self.filter.with_regex(pattern);
        self
    }

    /// Adds several regexes, as [`with_regex`](Self::with_regex) adds one.
    ///
    /// # Panics
    /// If a regex is invalid.
    #[must_use]
    pub fn with_regexes<S: AsRef<str>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.filter = self.filter.with_regexes(patterns);
        self
    }

    /// Adds the tensor with this name to those that are saved or loaded.
    #[must_use]
    pub fn with_full_path(mut self, path: impl Into<String>) -> Self {
        self.filter = self.filter.with_full_path(path);
        self
    }

    /// Adds several names, as [`with_full_path`](Self::with_full_path) adds one.
    #[must_use]
    pub fn with_full_paths<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.filter = self.filter.with_full_paths(paths);
        self
    }

    /// Adds the tensors for which a function returns `true`. It gets the name, and the types of the modules around the
    /// tensor, joined by dots: `Struct:Model.Struct:Linear`.
    #[must_use]
    pub fn with_predicate(mut self, predicate: fn(&str, &str) -> bool) -> Self {
        self.filter = self.filter.with_predicate(predicate);
        self
    }

    /// Adds several functions, as [`with_predicate`](Self::with_predicate) adds one.
    #[must_use]
    pub fn with_predicates(
        mut self,
        predicates: impl IntoIterator<Item = fn(&str, &str) -> bool>,
    ) -> Self {
        self.filter = self.filter.with_predicates(predicates);
        self
    }

    /// Selects all tensors, whatever the other methods have added.
    #[must_use]
    pub fn match_all(mut self) -> Self {
        self.filter = self.filter.match_all();
        self
    }

    /// Sets new names for tensors, when they are saved and when they are loaded.
    #[must_use]
    pub fn remap(self, remapper: KeyRemapper) -> Self {
        Self { remapper, tensors: None, ..self }
    }

    /// Adds a regex and what replaces its matches in names, when tensors are saved and when they are loaded.
    ///
    /// # Panics
    /// If the regex is invalid, as in burn's stores. [`KeyRemapper::add_pattern`] returns an error instead.
    #[must_use]
    pub fn with_key_remapping(self, from: impl AsRef<str>, to: impl Into<String>) -> Self {
        let remapper = self.remapper.clone().add_pattern(from, to).expect("an invalid regex");
        self.remap(remapper)
    }

    /// Sets whether gaps between indices are closed when tensors are loaded, as in burn's `SafetensorsStore`: the layers
    /// 0, 2 and 4 become 0, 1 and 2.
    #[must_use]
    pub fn map_indices_contiguous(self, on: bool) -> Self {
        Self { indices_are_mapped: on, tensors: None, ..self }
    }

    /// Keeps the indices of the lists whose names match a regex, if
    /// [`map_indices_contiguous`](Self::map_indices_contiguous) is on. The name is what comes before the index, after
    /// [`remap`](Self::remap): `flows` for `flows.2.weight`. Several calls keep the lists of each.
    ///
    /// # Panics
    /// If the regex is invalid.
    #[must_use]
    pub fn map_indices_contiguous_except(mut self, pattern: impl AsRef<str>) -> Self {
        self.kept_indices = self.kept_indices.with_regex(pattern);
        self.tensors = None;
        self
    }

    /// Sets the adapter for tensors that are loaded.
    #[must_use]
    pub fn with_from_adapter(self, adapter: impl ModuleAdapter + 'static) -> Self {
        Self { from_adapter: Box::new(adapter), ..self }
    }

    /// Sets the adapter for tensors that are saved.
    #[must_use]
    pub fn with_to_adapter(self, adapter: impl ModuleAdapter + 'static) -> Self {
        Self { to_adapter: Box::new(adapter), ..self }
    }

    /// Sets whether tensors of the module may be missing. By default this is an error.
    #[must_use]
    pub fn allow_partial(self, allow: bool) -> Self {
        Self { allow_partial: allow, ..self }
    }

    /// Sets whether errors while loading, such as other shapes, fail the whole call. This is the default. Otherwise,
    /// [`ApplyResult::errors`] has them.
    #[must_use]
    pub fn validate(self, validate: bool) -> Self {
        Self { validate, ..self }
    }

    /// Sets whether an existing file is replaced. By default this is an error, as in burn's own stores.
    #[must_use]
    pub fn overwrite(self, overwrite: bool) -> Self {
        Self { overwrite, ..self }
    }

    /// Sets whether names leave out the variants of enums.
    #[must_use]
    pub fn skip_enum_variants(self, skip: bool) -> Self {
        Self { skip_enum_variants: skip, ..self }
    }

    /// Sets the options for saving, such as compression.
    #[must_use]
    pub fn with_save_options(self, options: SaveOptions) -> Self {
        Self { save_options: options, ..self }
    }

    /// Sets the options for loading, such as whether checksums are verified. They do not apply to a map, which has
    /// options of its own.
    #[must_use]
    pub fn with_decode_options(self, options: DecodeOptions) -> Self {
        Self { decode_options: options, ..self }
    }

    /// The bytes that were saved into a store in memory.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.place {
            Place::Memory(bytes) => bytes.as_deref(),
            Place::File(_) | Place::Map => None,
        }
    }

    fn in_file(&self, error: Error) -> Error {
        match &self.place {
            Place::File(file) => error.in_file(file),
            Place::Memory(_) | Place::Map => error,
        }
    }

    /// The archive to load from, which is opened if it is not.
    pub(crate) fn source(&mut self) -> Result<Arc<Source>> {
        if let Some(source) = &self.source {
            return Ok(source.clone());
        }
        let source = match &self.place {
            Place::File(file) => Source::open(file, self.decode_options)?,
            Place::Memory(Some(bytes)) => Source::in_memory(bytes.clone(), self.decode_options)?,
            Place::Memory(None) | Place::Map => {
                return Err(Error::not_found("the store is empty: nothing was saved into it"));
            }
        };
        Ok(self.source.insert(Arc::new(source)).clone())
    }

    /// The tensors in the archive, by their names after remapping. Their elements are not read.
    fn listed(&mut self) -> Result<BTreeMap<String, PackTensor>> {
        let source = self.source()?;
        let listed = self.list(&source);
        listed.map_err(|error| self.in_file(error))
    }

    fn list(&self, source: &Arc<Source>) -> Result<BTreeMap<String, PackTensor>> {
        // In a file that a store has saved, the ids are beside the tensors.
        let parent = match self.path.rsplit_once('.') {
            Some((parent, TENSORS)) => Some(parent),
            None if self.path == TENSORS => Some(""),
            _ => None,
        };
        let ids: BTreeMap<String, u64> = match parent {
            Some(parent) if source.keys(parent)?.contains(&"ids".into()) => {
                source.get(&joined(parent, "ids"))?
            }
            _ => BTreeMap::new(),
        };
        let mut tensors = Vec::new();
        for info in source.tensors()? {
            let full = dotted(info.path()).into_owned();
            let name = if self.path.is_empty() {
                full
            } else {
                let rest = full.strip_prefix(&self.path).and_then(|rest| rest.strip_prefix('.'));
                let Some(rest) = rest else { continue };
                rest.to_owned()
            };
            let dtype = to_burn(info.dtype()).ok_or_else(|| {
                let what = format!("burn has no tensors of {}", info.dtype());
                Error::unsupported(what).in_field(info.path())
            })?;
            let len = usize::try_from(info.byte_len()).map_err(|_| {
                Error::limit("the tensor does not fit into memory").in_field(info.path())
            })?;
            let (shape, id) = (info.shape().to_vec(), ids.get(&name).copied());
            let source = source.clone();
            let read = move || {
                let elements = source.elements(&info);
                elements.map_err(|error| burn_pack::Error::IoError(error.to_string()))
            };
            tensors.push(PackTensor::deferred(name, dtype, shape, id, len, read));
        }
        if tensors.is_empty() && source.keys(&self.path).is_err() {
            let what = format!("there is nothing at `{}`", self.path.escape_debug());
            return Err(Error::not_found(what));
        }
        if !self.remapper.is_empty() {
            tensors = self.remapper.remap(tensors).0;
        }
        if self.indices_are_mapped {
            let keep = |list: &str| self.kept_indices.matches(list);
            tensors = map_indices_contiguous_except(tensors, keep).0;
        }
        by_name(tensors)
    }

    fn filled(&mut self) -> Result<&BTreeMap<String, PackTensor>> {
        let tensors = match self.tensors.take() {
            Some(tensors) => tensors,
            None => self.listed()?,
        };
        Ok(self.tensors.insert(tensors))
    }
}

fn joined(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

pub fn by_name(tensors: Vec<PackTensor>) -> Result<BTreeMap<String, PackTensor>> {
    let mut by_name = BTreeMap::new();
    for tensor in tensors {
        match by_name.entry(tensor.name.clone()) {
            Entry::Vacant(entry) => drop(entry.insert(tensor)),
            Entry::Occupied(entry) => {
                let name = entry.key().escape_debug();
                return Err(Error::data(format!("there are two tensors named `{name}`")));
            }
        }
    }
    Ok(by_name)
}

impl ModuleStore for TenarcStore {
    type Error = Error;

    /// Saves the tensors of a module. Each is read from its device when it is written, so that one at a time is in
    /// memory beside the module. A file is replaced in one step.
    fn collect_from<M: ModuleSnapshot>(&mut self, module: &M) -> Result<()> {
        let filter = (!self.filter.is_empty()).then(|| self.filter.clone());
        let adapter = Some(self.to_adapter.clone());
        let mut tensors = module.collect(filter, adapter, self.skip_enum_variants);
        if !self.remapper.is_empty() {
            tensors = self.remapper.remap(tensors).0;
        }
        let saved = Saved { meta: &self.meta, tensors: by_name(tensors)? };
        let options = self.save_options.clone();
        match &mut self.place {
            Place::File(file) => {
                if !self.overwrite && std::fs::symlink_metadata(&file).is_ok() {
                    let what = "the file exists; to replace it, use `overwrite(true)`";
                    return Err(Error::data(what).in_file(file));
                }
                tenarc::archive::save_with(&file, &saved, options)?;
            }
            Place::Memory(bytes) => {
                let mut out = OArchive::with_options(Vec::new(), options)?;
                out.save(&saved)?;
                *bytes = Some(SharedBytes::from_owner(out.finish()?));
            }
            Place::Map => return Err(Error::unsupported("a store over a map can only load")),
        }
        // The store has new content, so everything that was read before is discarded.
        (self.source, self.tensors) = (None, None);
        Ok(())
    }

    /// Loads the tensors into a module. Each is read when the module asks for it.
    fn apply_to<M: ModuleSnapshot>(&mut self, module: &mut M) -> Result<ApplyResult> {
        let tensors = self.filled()?.values().cloned().collect();
        let filter = (!self.filter.is_empty()).then(|| self.filter.clone());
        let adapter = Some(self.from_adapter.clone());
        let result = module.apply(tensors, filter, adapter, self.skip_enum_variants);
        let failed = if self.validate && !result.errors.is_empty() {
            let errors: Vec<String> = result.errors.iter().map(ToString::to_string).collect();
            errors.join("; ")
        } else if !self.allow_partial && !result.missing.is_empty() {
            format!("tensors are missing, which `allow_partial(true)` would allow: {result}")
        } else {
            return Ok(result);
        };
        Err(self.in_file(Error::mismatch(failed)))
    }

    fn get_tensor(&mut self, name: &str) -> Result<Option<&PackTensor>> {
        Ok(self.filled()?.get(name))
    }

    fn get_all_tensors(&mut self) -> Result<&BTreeMap<String, PackTensor>> {
        self.filled()
    }

    fn keys(&mut self) -> Result<Vec<String>> {
        Ok(self.filled()?.keys().cloned().collect())
    }
}

/// The value that is saved.
pub struct Saved<'a> {
    pub meta: &'a Value,
    pub tensors: BTreeMap<String, PackTensor>,
}

impl Serialize for Saved<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ids = self.tensors.iter().filter_map(|(name, tensor)| Some((name, tensor.param_id?)));
        let mut fields = serializer.serialize_struct("Module", 3)?;
        fields.serialize_field("meta", self.meta)?;
        fields.serialize_field("ids", &ids.collect::<BTreeMap<_, _>>())?;
        fields.serialize_field(TENSORS, &Tensors(&self.tensors))?;
        fields.end()
    }
}

struct Tensors<'a>(&'a BTreeMap<String, PackTensor>);

impl Serialize for Tensors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, tensor) in self.0 {
            let dtype = from_burn(tensor.dtype).ok_or_else(|| {
                let name = name.escape_debug();
                S::Error::custom(format!(
                    "burn's dtype {:?} of `{name}` cannot be saved",
                    tensor.dtype
                ))
            })?;
            let write = |put: &mut dyn FnMut(&[u8]) -> Result<()>| {
                let bytes = tensor.to_bytes().map_err(|error| Error::data(error.to_string()))?;
                put(&bytes)
            };
            let deferred = Deferred::from_blocks(dtype, &tensor.shape.to_vec(), Order::C, write);
            map.serialize_entry(name, &tenarc::Tensor(deferred))?;
        }
        map.end()
    }
}
