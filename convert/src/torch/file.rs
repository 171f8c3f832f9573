//! Reading a file at any position.

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

/// A file of torch that can be read at any position: a [file](super::open), bytes in memory, or anything
/// else that is [`ReadAt`].
///
/// Opening reads the pickle and checks every tensor against the storage it is in; elements are read when they
/// are asked for. All methods take `&self`, so that several threads can read at once.
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
    /// Reads the pickle of a file, and checks what it says.
    ///
    /// # Errors
    /// Where reading fails; where the file is not of a format that `torch.save` writes, or contradicts itself;
    /// and where a tensor reaches out of its storage.
    pub fn new(source: S) -> Result<Self> {
        let mut machine = Machine::default();
        let (container, Roots { data, constants }) = Container::open(&source, &mut machine)?;
        let in_pickle = |error: Error| error.in_field("data.pkl");
        let mut pickle = machine.finish(data);
        plain::simplify(&mut pickle).map_err(in_pickle)?;
        let mut losses = Losses::default();
        if let Some(constants) = constants {
            let what =
                "the program of a TorchScript file is left out, and inputs that it was traced with";
            losses.note(what);
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

    /// Limits the dimensions of each tensor, and what tensors take beyond the bytes that lie in their storages,
    /// as some are there several times: by default 16 GiB for each; for all that [`value`](TensorFile::value) gives together,
    /// 64 MiB and 16 times the storages.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the file is read from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// All tensors, in the order of the file. The path of each is its name, which is empty where the file is
    /// one tensor.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.infos
    }

    /// What is in the file and is neither a tensor nor a plain value: it is in none of what this type gives.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The tensor of that name, without its elements.
    ///
    /// # Errors
    /// Where there is none.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.number(name).and_then(|number| self.at(number)).map(|(info, _)| info)
    }

    /// The tensor of that name as any type that can be read from one.
    ///
    /// # Errors
    /// As [`dyn_tensor`](Self::dyn_tensor), and where its dtype or number of dimensions is another.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.dyn_tensor(name)?.into_tensor().map_err(|error| error.in_field(name))
    }

    /// The tensor of that name, whatever its dtype.
    ///
    /// The checksum of its storage is compared where the tensor reaches over all of it; for those in a part of one,
    /// see [`verify`](Self::verify).
    ///
    /// # Errors
    /// Where there is no such tensor, it cannot be read, is larger than the limits allow, or a byte of a bool
    /// tensor is neither 0 nor 1.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        let number = self.number(name)?;
        self.read(number).map_err(|error| error.in_field(name))
    }

    /// The tensor of that name, whose elements are read when it is written, some 256 KiB at a time. Those of a
    /// view with gaps are gathered from as much of its storage as it reaches over.
    ///
    /// # Errors
    /// Where there is no such tensor, or it is larger than the limits allow.
    pub fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let number = self.number(name)?;
        self.deferred_at(number).map_err(|error| error.in_field(name))
    }

    /// Where in the source the elements of that tensor start, if they lie there as they are read, one behind the
    /// other; `None` where they do not.
    ///
    /// # Errors
    /// Where there is no such tensor, or the file contradicts itself.
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

    /// A part of the pickle as a tree of leaves, of which the first is the one with the number `next`.
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

    /// Whether the file has checksums: torch can be told to write none. Then, nothing but sizes is compared.
    pub fn has_checksums(&self) -> bool {
        self.container.checksums
    }

    /// Reads the whole file, and compares every checksum in it.
    ///
    /// # Errors
    /// Where one differs, or reading fails.
    pub fn verify(&self) -> Result<()> {
        self.container.members.iter().try_for_each(|member| self.verify_member(member))
    }

    /// Compares the checksums that are not compared as all tensors are read.
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
            return Err(Error::limit(format!("{found} dimensions, {most} are allowed")));
        }
        let found = info.byte_len();
        let most = alloc_budget(self.limits, found <= place.span);
        if found > most {
            return Err(Error::limit(format!("a tensor of {found} bytes, {most} are allowed")));
        }
        Ok(())
    }

    /// That a small file does not mean something huge.
    fn check_sum(&self) -> Result<()> {
        let stored = self.container.byte_len();
        let meant = self.infos.iter().map(TensorInfo::byte_len).fold(0, u64::saturating_add);
        let most =
            self.limits.max_alloc().unwrap_or(stored.saturating_mul(16).saturating_add(64 << 20));
        if meant.saturating_sub(stored) <= most {
            return Ok(());
        }
        let what =
            format!("tensors of {meant} bytes in a file of {stored}, {most} more are allowed");
        Err(Error::limit(what))
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
        // What is there several times is no reason to take memory ahead.
        let sure = usize::try_from(info.byte_len().min(place.span)).unwrap_or(0);
        collected(info.meta(), sure, |put| self.blocks(info, place, put))
    }

    /// Hands over the elements of a tensor, little-endian.
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

/// Hands over all of a member, and compares its checksum.
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

/// With names as they are stored, the value has the structure of its pickle: dicts are maps, whose keys stay as they are, and
/// lists and tuples are arrays. Flat, it is one map of the tensors, and of the plain values beside them, by name. A file that is
/// one tensor, or has none, is that value itself. What is lost is left out, or null in an array.
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
        self.deferred(name)
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

/// The storages that tensors are in, by their names.
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
