//! Reading npz files: zip files whose members are npy files.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, Order, TensorMeta};
use tenarc::{DType, DynTensor, Error, Result};

use super::columns::{ByteOrder, Column, Elements};
use super::header::Array;
use super::input::Input;
use super::{charge, check_len, part, payload};
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
    /// What the file holds, once it was looked through.
    listed: OnceLock<Listed>,
}

/// All columns of all arrays.
#[derive(Default)]
struct Listed {
    columns: Vec<Entry>,
    losses: Losses,
}

struct Entry {
    /// The name of the array, and that of the field, if it is one.
    name: String,
    member: String,
    array: Arc<Array>,
    column: Column,
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
        let (limits, listed) = (Limits::default(), OnceLock::new());
        Ok(Self { source, members, by_name, nested, limits, listed })
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
        let found = self.started(name).and_then(|(array, _)| {
            let (_, meta, order) = array.tensor()?;
            Ok(TensorEntry { name: name.to_owned(), meta, big_endian: order == ByteOrder::Big })
        });
        found.map_err(|error| error.in_field(name))
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
    /// in memory. A field of a structured array has the name `array.field`.
    ///
    /// # Errors
    /// As [`info`](Self::info). What is wrong with the elements is an error when they are written, and a
    /// wrong checksum one when all of them were handed over.
    pub fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let (member, array, column) = self.column(name).map_err(|error| error.in_field(name))?;
        match self.part(member, &array, &column).map_err(|error| error.in_field(name))? {
            Part::Tensor(tensor) => Ok(tensor),
            _ => Err(Error::data("a string array is no tensor").in_field(name)),
        }
    }

    /// The array that has this name or a field of it, and the column that is meant.
    fn column(&self, name: &str) -> Result<(&str, Array, Column)> {
        let found = self.by_name.get_key_value(name).map(|(name, _)| (&**name, ""));
        let of_field = || {
            name.match_indices('.').find_map(|(dot, _)| {
                let (array, field) = (name.get(..dot)?, name.get(dot + 1..)?);
                let (array, _) = self.by_name.get_key_value(array)?;
                Some((&**array, field))
            })
        };
        let missing = || Error::data("the npz file has no such array");
        let (member, field) = found.or_else(of_field).ok_or_else(missing)?;
        let (array, _) = self.started(member)?;
        match array.columns.iter().find(|column| column.path == field).cloned() {
            Some(column) => Ok((member, array, column)),
            None if field.is_empty() => {
                Err(Error::data("a structured array is no tensor; read its fields"))
            }
            None => Err(missing()),
        }
    }

    fn part<'a>(&'a self, name: &'a str, array: &Array, column: &Column) -> Result<Part<'a>> {
        let open = move || {
            let started = self.started(name).map(|(_, input)| input);
            started.map_err(|error| error.in_field(name))
        };
        part::of(array, column, open, |input| input.into_inner().finish())
    }

    /// All columns of all arrays, and what else there is.
    fn listed(&self) -> Result<&Listed> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed);
        }
        let mut listed = Listed::default();
        let mut names = HashSet::new();
        for member in &self.members {
            let Some(name) = member.name().strip_suffix(SUFFIX) else {
                listed.losses.add(member.name(), "a member that is no array");
                continue;
            };
            let array = match self.started(name) {
                Ok((array, _)) => array,
                // What a damaged file holds is nothing to be left out.
                Err(error) if error.category() != Category::Data => {
                    return Err(error.in_field(name));
                }
                Err(error) => {
                    listed.losses.add_tensor(name, error.message());
                    continue;
                }
            };
            let (array, member) = (Arc::new(array), name);
            for column in &array.columns {
                let is_field = !column.path.is_empty();
                let dot = if is_field { "." } else { "" };
                let name = format!("{member}{dot}{}", column.path);
                if is_field && self.by_name.contains_key(&name) || !names.insert(name.clone()) {
                    listed.losses.add_tensor(&name, "there is another array of this name");
                    continue;
                }
                let (member, column) = (member.to_owned(), column.clone());
                listed.columns.push(Entry { name, member, array: array.clone(), column });
            }
        }
        Ok(self.listed.get_or_init(|| listed))
    }

    /// Where in the source the elements of that tensor start, if they lie there as they are read, one behind the
    /// other; `None` where they do not.
    ///
    /// # Errors
    /// As [`info`](Self::info).
    pub fn position(&self, name: &str) -> Result<Option<u64>> {
        let deflated = self.member(name).is_ok_and(Member::is_deflated);
        let (_, array, column) = self.column(name).map_err(|error| error.in_field(name))?;
        let whole = column.len == array.record_len;
        let direct = whole && matches!(column.elements, Elements::Tensor(_, ByteOrder::Little));
        if deflated || !direct {
            return Ok(None);
        }
        let (_, input) = self.started(name).map_err(|error| error.in_field(name))?;
        Ok(Some(input.into_inner().position()))
    }

    fn whole(&self, name: &str) -> Result<DynTensor> {
        let (array, input) = self.started(name)?;
        let stored = self.member(name).is_ok_and(|member| !member.is_deflated());
        let proven = if stored { array.byte_len } else { 0 };
        let (tensor, input) = payload::tensor(&array, input, proven)?;
        input.into_inner().finish()?;
        Ok(tensor)
    }

    fn member(&self, name: &str) -> Result<&Member> {
        let member = self.by_name.get(name).and_then(|&at| self.members.get(at));
        member.ok_or_else(|| Error::data("the npz file has no such array"))
    }

    /// A member up to its elements, which are as many as the directory says.
    fn started(&self, name: &str) -> Result<(Array, Input<Contents<'_, S>>)> {
        let member = self.member(name)?;
        let mut input = Input::new(Contents::open(&self.source, member)?);
        let array = Array::read(&mut input, self.limits)?;
        check_len(&array, input.position(), member.byte_len())?;
        charge(array.byte_len, self.limits, !member.is_deflated())?;
        Ok((array, input))
    }
}

/// A map of the arrays that are tensors or texts, by name, and of the fields of structured arrays.
impl<S: ReadAt> TensorFile for Npz<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let listed = self.listed()?;
        let (mut parts, mut losses) = (Vec::new(), listed.losses.clone());
        for Entry { name, member, array, column } in &listed.columns {
            match self.part(member, array, column) {
                Ok(part) => parts.push((&**name, part)),
                Err(error) if error.category() != Category::Data => return Err(error),
                Err(error) => losses.add_tensor(name, error.message()),
            }
        }
        AsValue::flat(parts).with_losses(losses).named(names, self.nested)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.deferred(name)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(self.position(name)?.map(|at| (&self.source as &dyn ReadAt, at)))
    }

    fn verify(&self) -> Result<Option<String>> {
        // Reading an array compares its checksum, so only the other members are left.
        let listed = self.listed()?.columns.iter();
        let read = listed.filter(|entry| !matches!(entry.column.elements, Elements::Refused(_)));
        let arrays = read.map(|entry| &entry.member).collect::<HashSet<_>>().len();
        let others = self.members.len() - arrays;
        let unchecked = || match others {
            1 => "1 member is not an array that is read, and was not checked".to_owned(),
            _ => format!("{others} members are not arrays that are read, and were not checked"),
        };
        Ok((others > 0).then(unchecked))
    }
}
