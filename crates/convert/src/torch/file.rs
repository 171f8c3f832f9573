//! An opened file: its value, and its tensors by their names.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, TensorInfo};
use tenarc::{DynTensor, Error, Result};

use super::container::{Container, Roots};
use super::content::Content;
use super::layout::Place;
use super::pickle::{At, Machine, Object, object};
use super::stores::{Stores, check_limits, check_sum};
use super::{layout, plain};
use crate::as_value::AsValue;
use crate::elements::collected;
use crate::{Losses, Names, TensorFile};

/// An opened file of torch. Its source is a [file](super::open), bytes in memory, or any other [`ReadAt`].
///
/// Opening it reads the pickle and checks that every tensor lies inside of its storage. The elements of a tensor are
/// read when the tensor is requested. All methods take `&self`, so several threads can read at the same time.
pub struct TorchFile<S> {
    source: S,
    container: Container,
    content: Content,
    infos: Vec<TensorInfo>,
    places: Vec<Place>,
    by_name: HashMap<String, usize>,
    limits: Limits,
}

impl<S> fmt::Debug for TorchFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TorchFile")
            .field("tensors", &self.infos.len())
            .field("losses", &self.content.losses.count())
            .finish_non_exhaustive()
    }
}

impl TorchFile<File> {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (file, _) = open_file(path)?;
        Self::new(file).map_err(|error| error.in_file(path))
    }
}

impl<S: ReadAt> TorchFile<S> {
    /// Reads the pickle of a file, and checks the tensors that it describes.
    ///
    /// # Errors
    /// If reading fails, if the file is not in a format that `torch.save` writes, if the file contradicts itself, or if
    /// a tensor reaches beyond its storage.
    pub fn new(source: S) -> Result<Self> {
        let mut machine = Machine::default();
        let (container, Roots { data, constants }) = Container::open(&source, &mut machine)?;
        let in_pickle = |error: Error| error.in_field("data.pkl");
        let mut pickle = machine.finish(data);
        plain::simplify(&mut pickle).map_err(in_pickle)?;
        let mut losses = Losses::default();
        if let Some(constants) = constants {
            losses.note(
                "the program of the TorchScript file and the inputs it was traced with are left out",
            );
            let constants_of = object(&pickle.objects, constants);
            if !matches!(constants_of, Some(Object::Tuple(values)) if values.is_empty()) {
                plain::beside(&mut pickle, "constants", constants);
            }
        }
        let mut content = Content::new(pickle, losses).map_err(in_pickle)?;
        let (mut infos, mut places, mut by_name) = (Vec::new(), Vec::new(), HashMap::new());
        for (name, _, tensor) in content.tensors() {
            let (info, place) = layout::place(name, tensor, &container, &content.objects)
                .map_err(|error| error.in_field(name))?;
            by_name.insert(name.to_owned(), infos.len());
            infos.push(info);
            places.push(place);
        }
        container.not_used(&used(&content.objects), &mut content.losses);
        let limits = Limits::default();
        Ok(Self { source, container, content, infos, places, by_name, limits })
    }

    /// Sets limits for the number of dimensions of each tensor, and for its memory. A small file can describe a huge
    /// tensor, because a tensor may repeat the elements of its storage.
    ///
    /// By default, a tensor may have as many bytes as it spans in its storage, or 16 GiB if that is more. All tensors
    /// that [`value`](TensorFile::value) returns may together have 17 times the bytes of the file, and 64 MiB more.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The source of the file.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// All tensors, in the order of the pickle. The path of each is its name. If the whole file is one tensor, its name
    /// is empty.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.infos
    }

    /// The parts of the file that cannot be read, and notes about parts that are left out by design.
    pub fn losses(&self) -> &Losses {
        &self.content.losses
    }

    /// Describes a tensor: its dtype, shape, order and length.
    ///
    /// # Errors
    /// If there is no tensor of this name.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.number(name).and_then(|number| self.at(number)).map(|(info, _)| info)
    }

    /// Reads a tensor as an array type.
    ///
    /// # Errors
    /// The errors of [`dyn_tensor`](Self::dyn_tensor). Also if the tensor has another dtype or number of dimensions
    /// than the type.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.dyn_tensor(name)?.into_tensor().map_err(|error| error.in_field(name))
    }

    /// Reads a tensor of any dtype.
    ///
    /// If the tensor fills its storage, the checksum of the storage is compared. If the tensor is only a part of it,
    /// use [`verify`](Self::verify) to compare the checksum.
    ///
    /// # Errors
    /// If there is no tensor of this name, if it cannot be read, if it is larger than the limits allow, or if a byte of
    /// a bool tensor is neither 0 nor 1.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        let number = self.number(name)?;
        self.read(number).map_err(|error| error.in_field(name))
    }

    /// Returns the position of a tensor's first element in the source, in bytes. `None` if the bytes in the source
    /// differ from those that [`deferred`](TensorFile::deferred) gives: if the elements are not contiguous, if they are
    /// big-endian, if their signs are changed, or if they are in the pickle.
    ///
    /// # Errors
    /// If there is no tensor of this name, or if the file contradicts itself.
    pub fn position(&self, name: &str) -> Result<Option<u64>> {
        let (_, place) = self.at(self.number(name)?)?;
        self.stores().position(place)
    }

    /// Whether the file has checksums. Files from before torch 1.6 have none, and newer versions can be told to write
    /// none. Then [`verify`](Self::verify) cannot detect changed elements.
    pub fn has_checksums(&self) -> bool {
        self.container.checksums
    }

    /// Reads the whole file, and compares every checksum in it.
    ///
    /// # Errors
    /// If a checksum differs, or if reading fails.
    pub fn verify(&self) -> Result<()> {
        self.stores().verify()
    }

    fn stores(&self) -> Stores<'_, S> {
        let Self { source, container, content, .. } = self;
        Stores { source, container, objects: &content.objects }
    }

    fn number(&self, name: &str) -> Result<usize> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| Error::not_found("the file has no tensor of this name").in_field(name))
    }

    fn at(&self, number: usize) -> Result<(&TensorInfo, &Place)> {
        let found = self.infos.get(number).zip(self.places.get(number));
        found.ok_or_else(|| Error::not_found(format!("there is no tensor {number}")))
    }

    fn deferred_at(&self, number: usize) -> Result<Deferred<'_>> {
        let (info, place) = self.at(number)?;
        check_limits(self.limits, info, place)?;
        Ok(Deferred::from_blocks(info.dtype().clone(), info.shape(), info.order(), move |put| {
            self.stores().blocks(info, place, put)
        }))
    }

    fn read(&self, number: usize) -> Result<DynTensor> {
        let (info, place) = self.at(number)?;
        check_limits(self.limits, info, place)?;
        // A tensor may repeat elements of its storage. So no more memory is reserved ahead than the tensor spans there.
        let sure = usize::try_from(info.byte_len().min(place.span)).unwrap_or(0);
        collected(info.meta(), sure, |put| self.stores().blocks(info, place, put))
    }
}

/// With [`Names::Stored`], the value has the structure of the pickle: dicts are maps with the same keys, and lists and
/// tuples are arrays. With [`Names::Flat`], it is one map from names to tensors and to the plain values beside them. If
/// the whole file is one tensor, or has no tensors, its value is that of the pickle in both cases. Parts that cannot be
/// read are left out of maps, and are null in arrays.
impl<S: ReadAt> TensorFile for TorchFile<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let meant = self.infos.iter().map(TensorInfo::byte_len).fold(0, u64::saturating_add);
        check_sum(self.limits, meant, self.container.byte_len())?;
        self.content.value(names, |number| self.deferred_at(number))
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let number = self.number(name)?;
        self.deferred_at(number).map_err(|error| error.in_field(name))
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(self.position(name)?.map(|at| (&self.source as &dyn ReadAt, at)))
    }

    fn verify_unread(&self) -> Result<()> {
        self.stores().verify_parts(&self.places.iter().collect::<Vec<_>>())
    }

    fn has_tied_tensors(&self) -> bool {
        let mut seen = HashSet::new();
        let mut parts = self.infos.iter().zip(&self.places).filter(|(info, _)| info.byte_len() > 0);
        parts.any(|(info, place)| {
            let part = (place.home, place.start, &place.strides, place.signs);
            !seen.insert((part, info.dtype(), info.shape(), info.order()))
        })
    }

    fn verify(&self) -> Result<Option<String>> {
        self.verify()?;
        let what = "the file has no checksums: changed elements are not detected";
        Ok((!self.has_checksums()).then(|| what.to_owned()))
    }
}

/// Returns the names of the storages that tensors use.
fn used(objects: &[Object]) -> HashSet<&str> {
    let tensors = objects.iter().filter_map(|object| match object {
        Object::Tensor(tensor) => Some(tensor),
        _ => None,
    });
    let members = tensors.filter_map(|tensor| match &tensor.storage.at {
        At::Member(key) => Some(&**key),
        At::Object(_) | At::Chunks(_) => None,
    });
    members.collect()
}
