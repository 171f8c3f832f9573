//! Saves and loads lists of named tensors, such as the variables of a training framework.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::archive::{IArchive, OArchive};
use crate::error::{Error, Result};
use crate::meta::TensorMeta;
pub use crate::tensor::variable::Variable;
use crate::tensor::{DynTensor, Tensor, ToTensor};

/// Saves named tensors to any writer, as an archive with one value: a map.
///
/// Names can be any text. The order is kept. Use `&dyn ToTensor` for tensors of several types. The tensors' bytes
/// are written directly from their memory, and there is no seeking. From a file, one tensor can be read by its
/// name with `open(path)?.tensor(name)`. If the name is empty or starts with a slash, use a JSON Pointer there.
///
/// ```
/// use ndarray::{Array1, Array2};
/// use tenarc::tensor::ToTensor;
///
/// let (weight, bias) = (Array2::<f32>::eye(100), Array1::<f64>::zeros(100));
/// let mut stream = Vec::new();
/// let tensors: [(&str, &dyn ToTensor); 2] = [("fc.weight", &weight), ("fc.bias", &bias)];
/// tenarc::named::save_multi(&mut stream, &tensors)?;
///
/// let back = tenarc::named::load_multi(&stream[..])?;
/// assert_eq!(back[0].0, "fc.weight");
/// assert_eq!(back[0].1.view::<f32>()?, weight.into_dyn());
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// If two tensors have the same name, or the writer fails. Equal names are found before any tensor is
/// written.
pub fn save_multi<W: io::Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
) -> Result<()> {
    let mut out = OArchive::new(writer)?;
    out.save_multi(tensors)?;
    out.finish().map(drop)
}

impl<W: io::Write> OArchive<W> {
    /// Saves named tensors as one value, like [`save_multi`]. Use this method for options, to replace a file
    /// atomically ([`create`](OArchive::create)), or to save several lists one after the other.
    ///
    /// # Errors
    /// The same errors as [`save`](Self::save), and if two tensors have the same name. In that case nothing was
    /// written.
    pub fn save_multi<N: AsRef<str>, T: ToTensor>(
        &mut self,
        tensors: &[(N, T)],
    ) -> Result<&mut Self> {
        let mut names = HashSet::with_capacity(tensors.len());
        match tensors.iter().find(|(name, _)| !names.insert(name.as_ref())) {
            Some((name, _)) => Err(two(name.as_ref())),
            None => self.save(&Named(tensors)),
        }
    }
}

struct Named<'a, N, T>(&'a [(N, T)]);

impl<N: AsRef<str>, T: ToTensor> Serialize for Named<'_, N, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, tensor) in self.0 {
            map.serialize_entry(name.as_ref(), &Tensor(tensor))?;
        }
        map.end()
    }
}

/// Loads all tensors that [`save_multi`] wrote, in their order, from any reader. Also reads other archives
/// whose first value is a map or struct of tensors. Checksums are verified.
///
/// Reading stops after the end mark, or after the header of the next value. It does not wait for the end of the
/// input, so that a socket may stay open. But more bytes may have been taken from the reader. To read several
/// lists from one stream, use one [`IArchive`] with [`IArchive::load_multi`].
///
/// ```
/// let mut stream = Vec::new();
/// tenarc::named::save_multi(&mut stream, &[("weight", vec![0.5f32; 100]), ("bias", vec![0.0; 10])])?;
///
/// for (name, tensor) in tenarc::named::load_multi(&stream[..])? {
///     println!("{name}: {} {:?}", tensor.dtype(), tensor.shape());
///     assert_eq!(tensor.shape(), if name == "weight" { [100] } else { [10] });
/// }
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// If the reader fails, the archive is damaged, or its first value is not a map of tensors with different
/// names.
pub fn load_multi<R: io::Read>(reader: R) -> Result<Vec<(String, DynTensor)>> {
    let mut input = IArchive::new(reader)?;
    let tensors = input.load_multi()?;
    input.confirm()?;
    Ok(tensors)
}

impl<R: io::Read> IArchive<R> {
    /// Loads all tensors of the next value, like [`load_multi`].
    ///
    /// # Errors
    /// The same errors as [`load`](Self::load), and if the value is not a map of tensors with different names. The
    /// following value can still be loaded then.
    pub fn load_multi(&mut self) -> Result<Vec<(String, DynTensor)>> {
        let mut tensors = Vec::new();
        let mut names = HashSet::new();
        self.load_seed(WantedEntries {
            wants: &|_| true,
            put: &mut |name, tensor| {
                if !names.insert(name.clone()) {
                    return Err(two(&name));
                }
                tensors.push((name, tensor));
                Ok(())
            },
        })?;
        Ok(tensors)
    }

    /// Loads the tensors of the next value into variables, like [`load_multi_onto`].
    ///
    /// # Errors
    /// The same errors as [`load_multi_onto`]. If names, dtypes or shapes do not fit, the value was not consumed:
    /// it can still be loaded in another way, or skipped.
    pub fn load_multi_onto<N: AsRef<str>>(
        &mut self,
        variables: &mut [(N, &mut dyn Variable)],
        mode: Match,
    ) -> Result<Unmatched> {
        let stored = self.next_entries()?;
        let unmatched = compare(&stored, variables, mode)?;
        let mut by_name = HashMap::with_capacity(variables.len());
        for (name, variable) in variables {
            by_name.insert((*name).as_ref().to_owned(), variable);
        }
        let names: HashSet<String> = by_name.keys().cloned().collect();
        self.load_seed(WantedEntries {
            wants: &|name| names.contains(name),
            put: &mut |name, tensor| match by_name.remove(&name) {
                Some(variable) => {
                    variable.load_tensor(tensor).map_err(|error| error.in_field(&name))
                }
                None => Err(two(&name)),
            },
        })?;
        Ok(unmatched)
    }
}

/// What may differ between the variables of a program and the tensors of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Match {
    /// Nothing: both sides must have the same names. The default.
    #[default]
    Strict,
    /// The archive may have more tensors, which are skipped: for example, only the model is loaded from a
    /// checkpoint of a training run. This is what tch's `VarStore::load` allows.
    Every,
    /// The archive may lack tensors. Their variables stay unchanged: for example, a model is trained further with
    /// more layers than before.
    Partial,
    /// Both may have names that the other lacks, as tch's `load_partial` and `fill_safetensors` allow.
    Fill,
}

impl Match {
    /// Whether these names may be missing on either side.
    pub fn allows(self, unmatched: &Unmatched) -> bool {
        let Unmatched { missing, unexpected } = unmatched;
        match self {
            Self::Strict => missing.is_empty() && unexpected.is_empty(),
            Self::Every => missing.is_empty(),
            Self::Partial => unexpected.is_empty(),
            Self::Fill => true,
        }
    }
}

/// Names that only one side has; see [`load_multi_onto`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// Variables without a tensor in the archive. They were not changed.
    pub missing: Vec<String>,
    /// Tensors without a variable. They were skipped.
    pub unexpected: Vec<String>,
}

/// The first few names of each side, such as ``no `a`; there are no variables for `b` ``.
impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (missing, unexpected) = (listed(&self.missing), listed(&self.unexpected));
        write!(f, "no {missing}; there are no variables for {unexpected}")
    }
}

/// Loads tensors that [`save_multi`] wrote into existing variables with the same names, from any reader. Besides
/// the variables, only one tensor at a time is in memory.
///
/// Names, dtypes and shapes are compared first. If they differ in a way that `mode` does not allow, no variable
/// is changed. If the input ends early or is damaged, some variables may have been loaded, even with wrong
/// content, because the checksums follow the tensors. After such an error, do not use any of the variables.
///
/// ```
/// use ndarray::{Array1, array};
/// use tenarc::named::Match;
///
/// let mut stream = Vec::new();
/// tenarc::named::save_multi(&mut stream, &[("a", array![1.0f32, 2.0]), ("b", array![3.0, 4.0])])?;
///
/// let (mut a, mut c) = (Array1::<f32>::zeros(2), Array1::<f32>::zeros(5));
/// let mut variables: [(&str, &mut dyn tenarc::named::Variable); 2] = [("a", &mut a), ("c", &mut c)];
/// assert!(tenarc::named::load_multi_onto(&stream[..], &mut variables, Match::Strict).is_err());
/// let unmatched = tenarc::named::load_multi_onto(&stream[..], &mut variables, Match::Fill)?;
/// assert_eq!((unmatched.missing, unmatched.unexpected), (vec!["c".into()], vec!["b".into()]));
/// assert_eq!(a, array![1.0, 2.0]);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// - Names differ in a way that `mode` does not allow, or dtypes or shapes differ.
/// - Two variables or two tensors have the same name.
/// - The reader fails, or the archive is damaged.
pub fn load_multi_onto<R: io::Read, N: AsRef<str>>(
    reader: R,
    variables: &mut [(N, &mut dyn Variable)],
    mode: Match,
) -> Result<Unmatched> {
    let mut input = IArchive::new(reader)?;
    let unmatched = input.load_multi_onto(variables, mode)?;
    input.confirm()?;
    Ok(unmatched)
}

/// Compares the entries of a map with variables.
fn compare<N: AsRef<str>>(
    stored: &[(String, Option<TensorMeta>)],
    variables: &[(N, &mut dyn Variable)],
    mode: Match,
) -> Result<Unmatched> {
    let mut by_name = HashMap::with_capacity(stored.len());
    for (name, meta) in stored {
        if by_name.insert(name.as_str(), meta).is_some() {
            return Err(two(name));
        }
    }
    let mut unmatched = Unmatched::default();
    let mut names = HashSet::with_capacity(variables.len());
    for (name, variable) in variables {
        let name = name.as_ref();
        if !names.insert(name) {
            let name = name.escape_debug();
            return Err(Error::data(format!("there are two variables named `{name}`")));
        }
        let (dtype, shape) = (variable.tensor_dtype(), variable.tensor_shape());
        match by_name.get(name) {
            None => unmatched.missing.push(name.to_owned()),
            Some(Some(meta)) if meta.dtype == dtype && meta.shape == shape => {}
            Some(Some(meta)) => {
                let (found, dims) = (&meta.dtype, &meta.shape);
                let what = format!("expected {dtype} {shape:?}, found a tensor {found} {dims:?}");
                return Err(Error::mismatch(what).in_field(name));
            }
            Some(None) => {
                let what = format!("expected {dtype} {shape:?}, found no tensor");
                return Err(Error::mismatch(what).in_field(name));
            }
        }
    }
    let unexpected = stored.iter().map(|(name, _)| name).filter(|name| !names.contains(&name[..]));
    unmatched.unexpected = unexpected.cloned().collect();
    if !mode.allows(&unmatched) {
        return Err(Error::mismatch(format!("names differ: the archive has {unmatched}")));
    }
    Ok(unmatched)
}

/// The first few names, for an error message.
fn listed(names: &[String]) -> String {
    const MOST: usize = 8;
    let shown: Vec<String> =
        names.iter().take(MOST).map(|name| format!("`{}`", name.escape_debug())).collect();
    match names.len() {
        0 => "others".to_owned(),
        len if len > MOST => format!("{} and {} more", shown.join(", "), len - MOST),
        _ => shown.join(", "),
    }
}

#[cold]
fn two(name: &str) -> Error {
    Error::data(format!("there are two tensors named `{}`", name.escape_debug()))
}

/// Reads the wanted entries of a map as tensors, and skips the others.
struct WantedEntries<'f> {
    wants: &'f dyn Fn(&str) -> bool,
    put: &'f mut dyn FnMut(String, DynTensor) -> Result<()>,
}

impl<'de> DeserializeSeed<'de> for WantedEntries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for WantedEntries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tensors by name")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if (self.wants)(&name) {
                let tensor = map.next_value::<Tensor<DynTensor>>()?.into_inner();
                (self.put)(name, tensor).map_err(|error| error.through(M::Error::custom))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
