//! Reading a file at any position.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, TensorInfo};
use tenarc::{DynTensor, Error, Result};

use super::container::{Container, stored};
use super::gather;
use super::layout::{self, Place};
use super::pickle::{Object, Pickle};
use super::tree::{Leaf, Tree, What};
use super::value::Plain;
use crate::as_value::{AsValue, Part};
use crate::elements::collected;
use crate::nested::Node;
use crate::support::{STEP, alloc_budget, swap_words};
use crate::zip::{Bytes as _, Member};
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
    /// Where reading fails; where the file is not of the format of torch 1.6 or later, or contradicts itself;
    /// where a tensor reaches out of its storage; and where the pickle names a function that attacks use.
    pub fn new(source: S) -> Result<Self> {
        let container = Container::read(&source)?;
        let bytes = container.pickle(&source)?;
        let in_pickle = |error: Error| error.in_field("data.pkl");
        let pickle = Pickle::read(&bytes).map_err(in_pickle)?;
        let Tree { leaves, bare, mut losses } = Tree::new(&pickle).map_err(in_pickle)?;
        let objects = pickle.objects;
        let (mut infos, mut places, mut by_name) = (Vec::new(), Vec::new(), HashMap::new());
        for Leaf { name, what } in &leaves {
            let What::Tensor(number) = what else { continue };
            let Some(Object::Tensor(tensor)) = objects.get(*number) else { continue };
            let (info, place) =
                layout::place(name, tensor, &container).map_err(|error| error.in_field(name))?;
            by_name.insert(name.clone(), infos.len());
            infos.push(info);
            places.push(place);
        }
        not_used(&container, &objects, &mut losses);
        let limits = Limits::default();
        Ok(Self {
            source,
            container,
            objects,
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
        let (info, place) = self.at(self.number(name)?)?;
        if place.strides.is_some() || self.container.big_endian && info.dtype().word() > 1 {
            return Ok(None);
        }
        let start = stored(&self.source, self.member(place)?)?.position();
        Ok(Some(start.saturating_add(place.start)))
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
    pub(super) fn verify_parts(&self) -> Result<()> {
        let whole = self.places.iter().filter(|place| place.whole).map(|place| place.member);
        let mut done: HashSet<usize> = whole.collect();
        for place in &self.places {
            if let Some(member) = self.container.members.get(place.member)
                && done.insert(place.member)
            {
                self.verify_member(member)?;
            }
        }
        Ok(())
    }

    fn verify_member(&self, member: &Member) -> Result<()> {
        self.whole(member, 1, &mut |_| Ok(())).map_err(|error| error.in_field(member.name()))
    }

    fn number(&self, name: &str) -> Result<usize> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| Error::data("the file has no tensor of this name").in_field(name))
    }

    fn at(&self, number: usize) -> Result<(&TensorInfo, &Place)> {
        let found = self.infos.get(number).zip(self.places.get(number));
        found.ok_or_else(|| Error::data(format!("there is no tensor {number}")))
    }

    fn member(&self, place: &Place) -> Result<&Member> {
        let member = self.container.members.get(place.member);
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
        let sum = |lens: &mut dyn Iterator<Item = u64>| lens.fold(0, u64::saturating_add);
        let stored = sum(&mut self.container.members.iter().map(Member::byte_len));
        let meant = sum(&mut self.infos.iter().map(TensorInfo::byte_len));
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
        let member = self.member(place)?;
        let swapped = if self.container.big_endian { info.dtype().word() } else { 1 };
        if place.whole {
            return self.whole(member, swapped, put);
        }
        let start = stored(&self.source, member)?.position().saturating_add(place.start);
        let mut put = |mut block: Vec<u8>| {
            swap_words(&mut block, swapped);
            put(&block)
        };
        match &place.strides {
            None => gather::direct(&self.source, start, info.byte_len(), &mut put),
            Some(strides) => {
                if place.start == 0 && place.span == member.byte_len() {
                    self.verify_member(member)?;
                }
                gather::strided(&self.source, start, info, place, strides, &mut put)
            }
        }
    }

    /// Hands over all of a member, and compares its checksum.
    fn whole(
        &self,
        member: &Member,
        swapped: usize,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut contents = stored(&self.source, member)?;
        let mut left = member.byte_len();
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
            swap_words(&mut block, swapped);
            put(&block)?;
        }
        contents.finish()
    }
}

/// A map of the tensors, and of the plain values beside them, by name. A file that is one tensor, or has none, is that value
/// itself. What [`losses`](TorchFile::losses) names is left out, or null in a sequence of plain values.
impl<S: ReadAt> TensorFile for TorchFile<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        self.check_sum()?;
        let mut numbers = 0..self.infos.len();
        let part = |leaf: &'_ Leaf| match leaf.what {
            What::Plain(value) => Ok(Part::Plain(Plain { objects: &self.objects, value })),
            What::Tensor(_) => {
                let number = numbers.next().unwrap_or(usize::MAX);
                let tensor = self.deferred_at(number).map(Part::Tensor);
                tensor.map_err(|error| error.in_field(&*leaf.name))
            }
        };
        let parts: Result<Vec<_>> = self.leaves.iter().map(part).collect();
        let parts = self.leaves.iter().map(|leaf| &*leaf.name).zip(parts?).collect();
        let value =
            if self.bare { AsValue::of(Node::Leaf(0), parts) } else { AsValue::flat(parts) };
        value.with_losses(self.losses.clone()).named(names, false)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.deferred(name)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(self.position(name)?.map(|at| (&self.source as &dyn ReadAt, at)))
    }

    fn verify(&self) -> Result<Option<String>> {
        self.verify()?;
        let what = "the file has no checksums: changed elements are not detected";
        Ok((!self.has_checksums()).then(|| what.to_owned()))
    }
}

/// Members that no tensor is in.
fn not_used(container: &Container, objects: &[Object], losses: &mut Losses) {
    let storages = objects.iter().filter_map(|object| match object {
        Object::Storage(storage) => Some(&*storage.key),
        _ => None,
    });
    let used: HashSet<&str> = storages.collect();
    for (number, member) in container.members.iter().enumerate() {
        if container.storage_key(number).is_some_and(|key| !used.contains(key)) {
            losses.add(member.name(), "a storage that the pickle does not use");
        }
    }
    for name in container.strangers() {
        losses.add(name, "a member that is neither torch's own nor a storage");
    }
}
