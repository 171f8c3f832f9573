//! An opened file: its value, and its tensors by their names.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, TensorInfo};
use tenarc::{DynTensor, Error, Result};

use super::container::{Container, Roots, stored};
use super::gather;
use super::layout::{Home, Place};
use super::pickle::{At, Machine, Object, Pickle, Value};
use super::tree::{Leaf, Tree, lost, object};
use super::value::Plain;
use super::{layout, plain};
use crate::as_value::{AsValue, Part};
use crate::elements::collected;
use crate::nested::{Key, Node};
use crate::support::{STEP, alloc_budget};
use crate::zip::{Bytes as _, Contents, Member};
use crate::{Losses, Names, TensorFile};

/// An opened file of torch. Its source is a [file](super::open), bytes in memory, or any other [`ReadAt`].
///
/// Opening it reads the pickle and checks that every tensor lies inside of its storage. The elements of a tensor are
/// read when the tensor is requested. All methods take `&self`, so several threads can read at the same time.
pub struct TorchFile<S> {
    source: S,
    container: Container,
    objects: Vec<Object>,
    root: Value,
    leaves: Vec<Leaf>,
    bare: bool,
    losses: Losses,
    infos: Vec<TensorInfo>,
    places: Vec<Place>,
    by_name: HashMap<String, usize>,
    limits: Limits,
}

impl<S> fmt::Debug for TorchFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TorchFile")
            .field("tensors", &self.infos.len())
            .field("losses", &self.losses.count())
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
        let tree = Tree::new(&mut pickle, losses).map_err(in_pickle)?;
        let Tree { leaves, bare, mut losses } = tree;
        let Pickle { objects, root, .. } = pickle;
        let (mut infos, mut places, mut by_name) = (Vec::new(), Vec::new(), HashMap::new());
        for Leaf { name, value, .. } in &leaves {
            let Some(Object::Tensor(tensor)) = object(&objects, *value) else { continue };
            let (info, place) = layout::place(name, tensor, &container, &objects)
                .map_err(|error| error.in_field(&**name))?;
            by_name.insert(name.clone(), infos.len());
            infos.push(info);
            places.push(place);
        }
        container.not_used(&used(&objects), &mut losses);
        let limits = Limits::default();
        Ok(Self {
            source,
            container,
            objects,
            root,
            leaves,
            bare,
            losses,
            infos,
            places,
            by_name,
            limits,
        })
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
        &self.losses
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
        match place.home {
            Home::Member(member) if place.is_as_stored() => {
                let start = stored(&self.source, self.member(member)?)?.position();
                Ok(Some(start.saturating_add(place.start)))
            }
            Home::Raw(start) if place.is_as_stored() => Ok(Some(start.saturating_add(place.start))),
            _ => Ok(None),
        }
    }

    /// Makes a tree of a value of the pickle. Its leaves are numbered in their order, from `next` on.
    fn node(&self, value: Value, next: &mut usize) -> Node<'_> {
        let objects = &self.objects[..];
        let is_leaf = match (value, self.leaves.get(*next).map(|leaf| leaf.value)) {
            (Value::Object(number), Some(Value::Object(leaf))) => number == leaf,
            (value, _) => !matches!(value, Value::Object(_)),
        };
        match object(objects, value) {
            _ if lost(objects, value).is_some() => Node::Null,
            _ if is_leaf => {
                *next += 1;
                Node::Leaf(*next - 1)
            }
            Some(Object::Dict(dict)) => {
                let mut entries = Vec::with_capacity(dict.entries.len());
                for (key, value) in &dict.entries {
                    let key = match (*key, object(objects, *key)) {
                        (Value::Int(number), _) => Key::Integer(number),
                        (_, Some(Object::Text(text))) => Key::Text(text),
                        _ => continue,
                    };
                    if lost(objects, *value).is_none() {
                        entries.push((key, self.node(*value, next)));
                    }
                }
                Node::Map(entries)
            }
            Some(Object::List(values)) => {
                Node::List(values.iter().map(|value| self.node(*value, next)).collect())
            }
            Some(Object::Tuple(values)) => {
                Node::List(values.iter().map(|value| self.node(*value, next)).collect())
            }
            _ => Node::Null,
        }
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
        self.container.members.iter().try_for_each(|member| self.verify_member(member))
    }

    /// Compares the checksums of those storages that no tensor fills. Reading the tensors compares the others.
    fn verify_parts(&self) -> Result<()> {
        let members = |is_whole: bool| {
            let places = self.places.iter().filter(move |place| place.whole == is_whole);
            places.filter_map(|place| match place.home {
                Home::Member(member) => Some(member),
                _ => None,
            })
        };
        let mut done: HashSet<usize> = members(true).collect();
        for member in members(false).filter(|member| done.insert(*member)) {
            self.verify_member(self.member(member)?)?;
        }
        Ok(())
    }

    fn verify_member(&self, member: &Member) -> Result<()> {
        let all = Contents::open(&self.source, member);
        let read = all.and_then(|all| whole(all, member.byte_len(), &mut |_| Ok(())));
        read.map_err(|error| error.in_field(member.name()))
    }

    fn number(&self, name: &str) -> Result<usize> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| Error::data("the file has no tensor of this name").in_field(name))
    }

    fn at(&self, number: usize) -> Result<(&TensorInfo, &Place)> {
        let found = self.infos.get(number).zip(self.places.get(number));
        found.ok_or_else(|| Error::data(format!("there is no tensor {number}")))
    }

    fn member(&self, number: usize) -> Result<&Member> {
        let member = self.container.members.get(number);
        member.ok_or_else(|| Error::data("there is no such member"))
    }

    fn check_limits(&self, info: &TensorInfo, place: &Place) -> Result<()> {
        let (found, most) = (info.shape().len(), self.limits.max_rank());
        if found > most {
            let what = format!("the tensor has {found} dimensions, {most} are allowed");
            return Err(Error::limit(what));
        }
        let found = info.byte_len();
        let most = alloc_budget(self.limits, found <= place.span);
        if found > most {
            return Err(Error::limit(format!("the tensor has {found} bytes, {most} are allowed")));
        }
        Ok(())
    }

    /// Checks that a small file does not describe huge tensors.
    fn check_sum(&self) -> Result<()> {
        let stored = self.container.byte_len();
        let meant = self.infos.iter().map(TensorInfo::byte_len).fold(0, u64::saturating_add);
        let most =
            self.limits.max_alloc().unwrap_or(stored.saturating_mul(16).saturating_add(64 << 20));
        if meant.saturating_sub(stored) <= most {
            return Ok(());
        }
        Err(Error::limit(format!(
            "the tensors have {meant} bytes, the file has {stored}: {most} bytes more than in the file are allowed"
        )))
    }

    fn deferred_at(&self, number: usize) -> Result<Deferred<'_>> {
        let (info, place) = self.at(number)?;
        self.check_limits(info, place)?;
        Ok(Deferred::from_blocks(info.dtype().clone(), info.shape(), info.order(), move |put| {
            self.blocks(info, place, put)
        }))
    }

    fn read(&self, number: usize) -> Result<DynTensor> {
        let (info, place) = self.at(number)?;
        self.check_limits(info, place)?;
        // A tensor may repeat elements of its storage. So no more memory is reserved ahead than the tensor spans there.
        let sure = usize::try_from(info.byte_len().min(place.span)).unwrap_or(0);
        collected(info.meta(), sure, |put| self.blocks(info, place, put))
    }

    /// Passes the elements of a tensor to `put` as little-endian bytes, block by block.
    fn blocks(
        &self,
        info: &TensorInfo,
        place: &Place,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut put = |block: &mut [u8]| {
            place.finish(block);
            put(block)
        };
        match place.home {
            Home::Object(number) => {
                let bytes = self.objects.get(number).and_then(Object::as_bytes);
                gather::elements(bytes.unwrap_or_default(), place.start, info, place, &mut put)
            }
            Home::Raw(start) => {
                let start = start.saturating_add(place.start);
                gather::elements(&self.source, start, info, place, &mut put)
            }
            Home::Member(member) => {
                let member = self.member(member)?;
                let contents = stored(&self.source, member)?;
                if place.whole {
                    return whole(contents, member.byte_len(), &mut put);
                }
                let start = contents.position().saturating_add(place.start);
                if place.strides.is_some() && place.start == 0 && place.span == member.byte_len() {
                    self.verify_member(member)?;
                }
                gather::elements(&self.source, start, info, place, &mut put)
            }
        }
    }
}

/// Passes all bytes of a member to `put`, block by block, and compares its checksum.
fn whole<S: ReadAt + ?Sized>(
    mut contents: Contents<'_, S>,
    len: u64,
    put: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut left = len;
    let mut block = Vec::new();
    while left > 0 {
        block.resize(usize::try_from(left).unwrap_or(STEP).min(STEP), 0);
        let mut done = 0;
        while let Some(rest) = block.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match contents.read(rest)? {
                0 => return Err(Error::eof("the rest of a storage")),
                read => done += read,
            }
        }
        left = left.saturating_sub(done as u64);
        put(&mut block)?;
    }
    contents.finish()
}

/// With [`Names::Stored`], the value has the structure of the pickle: dicts are maps with the same keys, and lists and
/// tuples are arrays. With [`Names::Flat`], it is one map from names to tensors and to the plain values beside them. If
/// the whole file is one tensor, or has no tensors, its value is that of the pickle in both cases. Parts that cannot be
/// read are left out of maps, and are null in arrays.
impl<S: ReadAt> TensorFile for TorchFile<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        self.check_sum()?;
        let (mut numbers, mut parts) = (0..self.infos.len(), Vec::with_capacity(self.leaves.len()));
        for Leaf { name, value, is_tensor } in &self.leaves {
            let part = if *is_tensor {
                let number = numbers.next().unwrap_or(usize::MAX);
                let tensor = self.deferred_at(number).map(Part::Tensor);
                tensor.map_err(|error| error.in_field(&**name))?
            } else {
                Part::Plain(Plain { objects: &self.objects, value: *value })
            };
            parts.push((&**name, part));
        }
        let value = if self.bare || names == Names::Stored {
            AsValue::of(self.node(self.root, &mut 0), parts)
        } else {
            AsValue::flat(parts)
        };
        value.with_losses(self.losses.clone()).named(names, false)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let number = self.number(name)?;
        self.deferred_at(number).map_err(|error| error.in_field(name))
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(self.position(name)?.map(|at| (&self.source as &dyn ReadAt, at)))
    }

    fn verify_unread(&self) -> Result<()> {
        self.verify_parts()
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
        At::Object(_) => None,
    });
    members.collect()
}
