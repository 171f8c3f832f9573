//! Reading npz files: zip files whose members are npy files.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, Order, TensorMeta};
use tenarc::{DType, DynTensor, Error, Result};

use super::header::Header;
use super::input::Input;
use super::{charge, check_len, payload};
use crate::as_value::{AsValue, Part};
use crate::nested::COMMENT;
use crate::zip::{Contents, Directory, Member};
use crate::{Losses, Names, TensorFile};

/// What the names of arrays end with in the file.
pub const SUFFIX: &str = ".npy";

/// An npz file: named arrays, each of which is read when it is asked for.
///
/// Opening reads the list of members only. All methods take `&self`, so that several threads can read
/// at once.
///
/// ```
/// use ndarray::{Array1, array};
/// use tenarc_convert::npy::{Npz, NpzWriter};
///
/// let mut out = NpzWriter::new(std::io::Cursor::new(Vec::new()))?;
/// out.add("layers/0/bias", &array![1.0f32, 2.0])?;
/// let bytes = out.finish()?.into_inner();
///
/// let npz = Npz::new(&bytes[..])?;
/// let bias: Array1<f32> = npz.tensor("layers/0/bias")?;
/// assert_eq!(bias, array![1.0, 2.0]);
/// for entry in npz.tensors()? {
///     println!("{} {} {:?}", entry.name(), entry.dtype(), entry.shape());
/// }
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Npz<S> {
    source: S,
    members: Vec<Member>,
    by_name: HashMap<String, usize>,
    /// Whether it was written from a nested value.
    nested: bool,
    limits: Limits,
}

impl<S> fmt::Debug for Npz<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Npz").field("members", &self.members).finish_non_exhaustive()
    }
}

/// An array of an npz file, without its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorEntry {
    name: String,
    meta: TensorMeta,
    big_endian: bool,
}

impl TensorEntry {
    /// The name, without `.npy`; any text: never to be used as the path of a file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the elements.
    pub fn dtype(&self) -> &DType {
        &self.meta.dtype
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.meta.shape
    }

    /// How the elements follow each other.
    pub fn order(&self) -> Order {
        self.meta.order
    }

    /// Whether the elements are stored big-endian. They are little-endian once they are read.
    pub fn is_big_endian(&self) -> bool {
        self.big_endian
    }
}

impl Npz<File> {
    /// Opens an npz file.
    ///
    /// # Errors
    /// As [`new`](Self::new), and where there is no such file, or something else than one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, _) = open_file(path)?;
        Self::new(file).map_err(|error| error.in_file(path))
    }
}

impl<S: ReadAt> Npz<S> {
    /// Opens an npz file that is read at positions: a file, or bytes in memory.
    ///
    /// # Errors
    /// Where reading fails, there is no zip file that ends where the source does, or its list of members
    /// contradicts itself: two of one name, or one that lies over another.
    pub fn new(source: S) -> Result<Self> {
        let Directory { members, comment } = Directory::read(&source)?;
        let nested = comment == COMMENT.as_bytes();
        let name = |member: &Member| member.name().strip_suffix(SUFFIX).map(str::to_owned);
        let named = members.iter().enumerate();
        let by_name = named.filter_map(|(at, member)| Some((name(member)?, at))).collect();
        Ok(Self { source, members, by_name, nested, limits: Limits::default() })
    }

    /// Limits the dimensions and bytes of each array. By default a deflated one may take 16 GiB, and a
    /// stored one what the file has.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the file is read from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// All members of the zip file, in the order listed: arrays, and whatever else there is.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The names of the arrays, in the order listed, without `.npy`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter_map(|member| member.name().strip_suffix(SUFFIX))
    }

    /// All arrays, without their elements. Reads the beginning of each.
    ///
    /// # Errors
    /// As [`info`](Self::info), of the first that fails.
    pub fn tensors(&self) -> Result<Vec<TensorEntry>> {
        self.names().map(|name| self.info(name)).collect()
    }

    /// The array of that name, without its elements.
    ///
    /// # Errors
    /// Where there is none, or its header is that of no tensor.
    pub fn info(&self, name: &str) -> Result<TensorEntry> {
        let (header, _) = self.started(name).map_err(|error| error.in_field(name))?;
        let Header { meta, big_endian, .. } = header;
        Ok(TensorEntry { name: name.to_owned(), meta, big_endian })
    }

    /// The array of that name.
    ///
    /// # Errors
    /// Where there is none, it is no tensor, or what is stored contradicts itself: checksum, sizes,
    /// shape.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        self.whole(name).map_err(|error| error.in_field(name))
    }

    /// The array of that name, as any type that can be read from a tensor.
    ///
    /// # Errors
    /// As [`dyn_tensor`](Self::dyn_tensor), and where elements or dimensions are others.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        let found = self.whole(name).and_then(DynTensor::into_tensor);
        found.map_err(|error| error.in_field(name))
    }

    /// The array of that name, whose elements are read in steps when it is written: never is all of it
    /// in memory.
    ///
    /// # Errors
    /// As [`info`](Self::info). What is wrong with the elements is an error when they are written, and a
    /// wrong checksum one when all of them were handed over.
    pub fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let entry = self.info(name)?;
        let (dtype, order) = (entry.meta.dtype.clone(), entry.meta.order);
        let name = name.to_owned();
        Ok(Deferred::from_blocks(dtype, entry.shape(), order, move |put| {
            self.blocks(&name, put).map_err(|error| error.in_field(&*name))
        }))
    }

    /// Where in the source the elements of that tensor start, if they lie there as they are read, one behind the
    /// other; `None` where they do not.
    ///
    /// # Errors
    /// As [`info`](Self::info).
    pub fn position(&self, name: &str) -> Result<Option<u64>> {
        let deflated = self.member(name).is_ok_and(Member::is_deflated);
        let (header, input) = self.started(name).map_err(|error| error.in_field(name))?;
        let direct = !deflated && !header.big_endian;
        Ok(direct.then(|| input.into_inner().position()))
    }

    fn blocks(&self, name: &str, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (header, mut input) = self.started(name)?;
        payload::blocks(&header, &mut input, put)?;
        input.into_inner().finish()
    }

    fn whole(&self, name: &str) -> Result<DynTensor> {
        let (header, mut input) = self.started(name)?;
        let stored = self.member(name).is_ok_and(|member| !member.is_deflated());
        let proven = if stored { header.byte_len } else { 0 };
        let tensor = payload::tensor(&header, &mut input, proven)?;
        input.into_inner().finish()?;
        Ok(tensor)
    }

    fn member(&self, name: &str) -> Result<&Member> {
        let member = self.by_name.get(name).and_then(|&at| self.members.get(at));
        member.ok_or_else(|| Error::data("the npz file has no such array"))
    }

    /// A member up to its elements, which are as many as the directory says.
    fn started(&self, name: &str) -> Result<(Header, Input<Contents<'_, S>>)> {
        let member = self.member(name)?;
        let mut input = Input::new(Contents::open(&self.source, member)?);
        let header = Header::read(&mut input, self.limits)?;
        check_len(&header, input.position(), member.byte_len())?;
        charge(&header, self.limits, !member.is_deflated())?;
        Ok((header, input))
    }
}

/// A map of the arrays that are tensors, by name.
impl<S: ReadAt> TensorFile for Npz<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let mut parts = Vec::new();
        let mut lost = Losses::default();
        for member in &self.members {
            let Some(name) = member.name().strip_suffix(SUFFIX) else {
                lost.add(member.name(), "a member that is no array");
                continue;
            };
            match self.deferred(name) {
                Ok(tensor) => parts.push((name, Part::Tensor(tensor))),
                // What a damaged file holds is nothing to be left out.
                Err(error) if error.category() != Category::Data => return Err(error),
                Err(error) => lost.add_tensor(name, error.message()),
            }
        }
        AsValue::flat(parts).with_losses(lost).named(names, self.nested)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.deferred(name)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(self.position(name)?.map(|at| (&self.source as &dyn ReadAt, at)))
    }

    fn verify(&self) -> Result<Option<String>> {
        // Reading an array compares its checksum, so only the other members are left.
        let arrays = self.names().filter(|name| self.info(name).is_ok()).count();
        let others = self.members.len() - arrays;
        let unchecked = || match others {
            1 => "1 member is not an array and was not checked".to_owned(),
            _ => format!("{others} members are not arrays and were not checked"),
        };
        Ok((others > 0).then(unchecked))
    }
}
