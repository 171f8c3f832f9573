//! Lists of named tensors, as a training framework's variables are saved.

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

/// Saves named tensors as an archive of one value, a map, to any writer.
///
/// Names are any text, in the order given. Tensors of several types go together as `&dyn ToTensor`.
/// Tensors are handed to the writer as they lie; nothing seeks. In a file each is then opened by its name,
/// `open(path)?.tensor(name)`; by a JSON Pointer, where the name is empty or begins with a slash.
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
/// Where two tensors have one name, which is found before anything is written but the archive's first
/// bytes, and where the writer fails.
pub fn save_multi<W: io::Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
) -> Result<()> {
    let mut out = OArchive::new(writer)?;
    out.save_multi(tensors)?;
    out.finish().map(drop)
}

impl<W: io::Write> OArchive<W> {
    /// Saves named tensors as one value, as [`save_multi`] does: with options, into a file that takes its
    /// place as a whole ([`create`](OArchive::create)), or several lists one after the other.
    ///
    /// # Errors
    /// As [`save`](Self::save), and, before anything is written, where two tensors have one name.
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

/// Loads all tensors that [`save_multi`] wrote, or of any archive whose first value is a map or struct
/// of tensors, from any reader; in their order, with checksums verified.
///
/// It is read to the end mark, or to the header of the next value, and not for the end of the input, so that
/// a socket may stay open. More may have been taken from the reader: several lists in one stream are read by
/// one [`IArchive`], with [`IArchive::load_multi`].
///
/// # Errors
/// Where the reader fails, the archive is damaged, or its first value holds something else or two
/// tensors of one name.
pub fn load_multi<R: io::Read>(reader: R) -> Result<Vec<(String, DynTensor)>> {
    let mut input = IArchive::new(reader)?;
    let tensors = input.load_multi()?;
    input.settle()?;
    Ok(tensors)
}

impl<R: io::Read> IArchive<R> {
    /// Loads all tensors of the next value, as [`load_multi`] does.
    ///
    /// # Errors
    /// As [`load`](Self::load), and where the value holds something else or two tensors of one name. The
    /// value behind it can still be loaded.
    pub fn load_multi(&mut self) -> Result<Vec<(String, DynTensor)>> {
        let mut tensors = Vec::new();
        let mut names = HashSet::new();
        self.load_seed(Entries {
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

    /// Loads the tensors of the next value onto variables, as [`load_multi_onto`] does.
    ///
    /// # Errors
    /// As [`load_multi_onto`]. Where names, dtypes or shapes do not fit, the value is still the next: it
    /// can be loaded otherwise, or skipped.
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
        self.load_seed(Entries {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Match {
    /// Nothing: the names are the same on both sides.
    Strict,
    /// The archive may have more tensors, which are passed over: a model out of a checkpoint of a training
    /// run. This is what tch's `VarStore::load` allows.
    Every,
    /// Variables may be missing in the archive, and stay as they are: a model that goes on from one with
    /// fewer layers.
    Partial,
    /// Both may have what the other has not, as tch's `load_partial` and `fill_safetensors` allow.
    Fill,
}

/// Names that only one side has; see [`load_multi_onto`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// Variables that the archive has no tensor for, and that are as they were.
    pub missing: Vec<String>,
    /// Tensors that there is no variable for, and that were passed over.
    pub unexpected: Vec<String>,
}

/// Loads tensors that [`save_multi`] wrote onto variables that are there, by name, from any reader. One
/// tensor at a time is in memory beside the variables.
///
/// Names, dtypes and shapes are compared before anything is read into a variable: where they differ in a
/// way that `mode` does not allow, all variables are as they were. A stream that breaks in the middle leaves
/// some of them loaded; so does damage, as checksums stand behind the tensors: after an error other than
/// these, take none of them for what was saved.
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
/// Where names differ as `mode` does not allow, dtypes or shapes differ, two variables or tensors have
/// one name, the reader fails, or the archive is damaged.
pub fn load_multi_onto<R: io::Read, N: AsRef<str>>(
    reader: R,
    variables: &mut [(N, &mut dyn Variable)],
    mode: Match,
) -> Result<Unmatched> {
    let mut input = IArchive::new(reader)?;
    let unmatched = input.load_multi_onto(variables, mode)?;
    input.settle()?;
    Ok(unmatched)
}

/// Holds the entries of a map against variables.
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
                return Err(Error::data(what).in_field(name));
            }
            Some(None) => {
                let what = format!("expected {dtype} {shape:?}, found no tensor");
                return Err(Error::data(what).in_field(name));
            }
        }
    }
    let unexpected = stored.iter().map(|(name, _)| name).filter(|name| !names.contains(&name[..]));
    unmatched.unexpected = unexpected.cloned().collect();
    let refused = match mode {
        Match::Strict => !unmatched.missing.is_empty() || !unmatched.unexpected.is_empty(),
        Match::Every => !unmatched.missing.is_empty(),
        Match::Partial => !unmatched.unexpected.is_empty(),
        Match::Fill => false,
    };
    if refused {
        return Err(Error::data(format!(
            "names differ: the archive has no {}; there are no variables for {}",
            listed(&unmatched.missing),
            listed(&unmatched.unexpected)
        )));
    }
    Ok(unmatched)
}

/// Names, the first few of them.
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

/// The entries of a map, those that are wanted read as tensors.
struct Entries<'f> {
    wants: &'f dyn Fn(&str) -> bool,
    put: &'f mut dyn FnMut(String, DynTensor) -> Result<()>,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tensors by name")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if (self.wants)(&name) {
                let tensor = map.next_value::<Tensor<DynTensor>>()?.into_inner();
                (self.put)(name, tensor).map_err(M::Error::custom)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
