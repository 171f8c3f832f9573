//! Reading npz files: zip files whose members are npy files.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, TensorInfo};
use tenarc::{DType, DynTensor, Error, Result};

use super::header::{Array, WITHOUT_FIELDS};
use super::input::Input;
use super::{charge, check_len, part, payload};
use crate::as_value::{AsValue, Part};
use crate::nested::COMMENT;
use crate::numpy::ByteOrder;
use crate::numpy::columns::{Column, Elements};
use crate::support::is_of_array;
use crate::zip::{Contents, Directory, Member};
use crate::{Losses, Names, TensorFile};

/// The end of the names of arrays in the file.
pub const SUFFIX: &str = ".npy";

/// An npz file: named arrays, each of which is read when it is asked for.
///
/// Opening a file reads only the list of its members. All methods take `&self`, so several threads can read at once.
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
/// for tensor in npz.tensors()? {
///     println!("{} {} {:?}", tensor.path(), tensor.dtype(), tensor.shape());
/// }
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Npz<S> {
    source: S,
    members: Vec<Member>,
    by_name: HashMap<String, usize>,
    /// Whether the file was written from a nested value.
    nested: bool,
    limits: Limits,
    /// The dtypes of raw elements.
    void: Vec<DType>,
    /// The contents of the file, once they were listed.
    listed: OnceLock<Listed>,
}

/// All columns of all arrays, and what else the file holds.
#[derive(Default)]
struct Listed {
    columns: Vec<Entry>,
    /// The index in `columns` of each name.
    by_name: HashMap<String, usize>,
    losses: Losses,
}

struct Entry {
    /// The name of the array. If the column is a field, a dot and the name of the field follow.
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

impl Npz<File> {
    /// Opens an npz file.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new). Also if the file does not exist or cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, _) = open_file(path)?;
        Self::new(file).map_err(|error| error.in_file(path))
    }
}

impl<S: ReadAt> Npz<S> {
    /// Opens an npz file from any source that is read at offsets: a file, or bytes in memory.
    ///
    /// # Errors
    /// If reading fails, the source does not end with a zip file, or its list of members contradicts itself. For
    /// example, two members have the same name, or overlap.
    pub fn new(source: S) -> Result<Self> {
        let Directory { members, comment } = Directory::read(&source)?;
        let nested = comment == COMMENT.as_bytes();
        let name = |member: &Member| member.name().strip_suffix(SUFFIX).map(str::to_owned);
        let named = members.iter().enumerate();
        let by_name = named.filter_map(|(at, member)| Some((name(member)?, at))).collect();
        let (limits, listed) = (Limits::default(), OnceLock::new());
        Ok(Self { source, members, by_name, nested, limits, void: Vec::new(), listed })
    }

    /// Sets limits for the dimensions and bytes of each array. By default, a deflated array may have 16 GiB. A stored
    /// array is limited only by the file.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads arrays of raw elements (`V2`) as tensors of this dtype, if its elements have as many bytes: see
    /// [`Options::with_void`](crate::Options::with_void).
    #[must_use]
    pub fn with_void(mut self, dtype: DType) -> Self {
        self.void.push(dtype);
        self
    }

    /// Returns the source of the file.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns all members of the zip file, in the order of its directory: arrays and other members.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the names of the arrays without `.npy`, in the order of the directory.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter_map(|member| member.name().strip_suffix(SUFFIX))
    }

    /// Returns descriptions of all arrays. Reads the header of each. The path of each is its name without `.npy`, which can
    /// be any text, so it must not be used as a path of a file.
    ///
    /// # Errors
    /// The error of [`info`](Self::info) for the first array that fails.
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        self.names().map(|name| self.info(name)).collect()
    }

    /// Returns a description of the array of this name.
    ///
    /// # Errors
    /// If there is no such array, its header is damaged, or it is not a tensor.
    pub fn info(&self, name: &str) -> Result<TensorInfo> {
        let found = self.started(name).and_then(|(array, _)| {
            let (_, meta, _) = array.tensor()?;
            let len = meta.byte_len().unwrap_or(0) as u64;
            Ok(TensorInfo::new(name.to_owned(), meta, len))
        });
        found.map_err(|error| error.in_field(name))
    }

    /// Reads the array of this name.
    ///
    /// # Errors
    /// If there is no such array, it is not a tensor, or its checksum, sizes or shape are wrong.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        self.whole(name).map_err(|error| error.in_field(name))
    }

    /// Reads the array of this name as any type that can be read from a tensor.
    ///
    /// # Errors
    /// The errors of [`dyn_tensor`](Self::dyn_tensor). Also if the type has another element type or another number of
    /// dimensions.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        let found = self.whole(name).and_then(DynTensor::into_tensor);
        found.map_err(|error| error.in_field(name))
    }

    /// Returns the array of this name and its only column, or an array and its field of this name.
    fn column(&self, name: &str) -> Result<(&str, Arc<Array>, Column)> {
        if let Some((member, _)) = self.by_name.get_key_value(name) {
            let (array, _) = self.started(member)?;
            let column = array.columns.iter().find(|column| column.path.is_empty()).cloned();
            let what = "a structured array is not a tensor; read its fields";
            return Ok((member, Arc::new(array), column.ok_or_else(|| Error::mismatch(what))?));
        }
        // Dots may be in the name of the array and in those of fields, so that only the list says which of them they are.
        let listed = self.listed()?;
        let found = listed.by_name.get(name).and_then(|number| listed.columns.get(*number));
        let found = found.ok_or_else(|| Error::not_found("the npz file has no such array"))?;
        Ok((&found.member, found.array.clone(), found.column.clone()))
    }

    fn part<'a>(&'a self, name: &'a str, array: &Array, column: &Column) -> Result<Part<'a>> {
        let open = move || {
            let started = self.started(name).map(|(_, input)| input);
            started.map_err(|error| error.in_field(name))
        };
        part::of(array, column, open, |input| input.into_inner().finish())
    }

    /// Lists all columns of all arrays, and what else the file holds.
    fn listed(&self) -> Result<&Listed> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed);
        }
        let mut listed = Listed::default();
        for member in &self.members {
            let Some(name) = member.name().strip_suffix(SUFFIX) else {
                listed.losses.add(member.name(), "a member that is not an array is left out");
                continue;
            };
            let array = match self.started(name) {
                Ok((array, _)) => array,
                // Only arrays that cannot be kept are losses. A damaged file is an error.
                Err(error) if !is_of_array(&error) => {
                    return Err(error.in_field(name));
                }
                Err(error) => {
                    listed.losses.add_tensor(name, error.message());
                    continue;
                }
            };
            if array.is_without_fields() {
                listed.losses.add(name, WITHOUT_FIELDS);
            }
            let (array, member) = (Arc::new(array), name);
            for column in &array.columns {
                let is_field = !column.path.is_empty();
                let dot = if is_field { "." } else { "" };
                let name = format!("{member}{dot}{}", column.path);
                let is_taken = listed.by_name.contains_key(&name);
                if is_taken || is_field && self.by_name.contains_key(&name) {
                    listed
                        .losses
                        .add_tensor(&name, "there is another array of this name: it is left out");
                    continue;
                }
                let (member, column) = (member.to_owned(), column.clone());
                listed.by_name.insert(name.clone(), listed.columns.len());
                listed.columns.push(Entry { name, member, array: array.clone(), column });
            }
        }
        Ok(self.listed.get_or_init(|| listed))
    }

    /// Returns the offset of a tensor's elements in the source, if they are stored there contiguous and little-endian.
    /// `None` if they are not, for example because they are deflated.
    ///
    /// # Errors
    /// The errors of [`info`](Self::info).
    pub fn position(&self, name: &str) -> Result<Option<u64>> {
        let of_name = |error: Error| error.in_field(name);
        let (member, array, column) = self.column(name).map_err(of_name)?;
        let deflated = self.member(member).is_ok_and(Member::is_deflated);
        let whole = column.len == array.record_len;
        let direct = whole && matches!(column.elements, Elements::Tensor(_, ByteOrder::Little));
        if deflated || !direct {
            return Ok(None);
        }
        let (_, input) = self.started(member).map_err(of_name)?;
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
        member.ok_or_else(|| Error::not_found("the npz file has no such array"))
    }

    /// Reads a member up to its elements. Checks that the member is as long as its header says.
    fn started(&self, name: &str) -> Result<(Array, Input<Contents<'_, S>>)> {
        let member = self.member(name)?;
        let mut input = Input::new(Contents::open(&self.source, member)?);
        let mut array = Array::read(&mut input, self.limits)?;
        array.resolve(&self.void);
        check_len(&array, input.position(), member.byte_len())?;
        charge(array.byte_len, self.limits, !member.is_deflated())?;
        Ok((array, input))
    }
}

/// The value is a map from names to tensors and arrays of texts. A field of a structured array has the name
/// `array.field`. A wrong checksum is an error after all elements of the array were passed on.
impl<S: ReadAt> TensorFile for Npz<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let listed = self.listed()?;
        let (mut parts, mut losses) = (Vec::new(), listed.losses.clone());
        for Entry { name, member, array, column } in &listed.columns {
            match self.part(member, array, column) {
                Ok(part) => parts.push((&**name, part)),
                Err(error) if !is_of_array(&error) => return Err(error),
                Err(error) => losses.add_tensor(name, error.message()),
            }
        }
        AsValue::flat(parts).with_losses(losses).named(names, self.nested)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let (member, array, column) = self.column(name).map_err(|error| error.in_field(name))?;
        match self.part(member, &array, &column).map_err(|error| error.in_field(name))? {
            Part::Tensor(tensor) | Part::Typed(_, tensor) => Ok(tensor),
            _ => Err(Error::mismatch("a string array is not a tensor").in_field(name)),
        }
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(self.position(name)?.map(|at| (&self.source as &dyn ReadAt, at)))
    }

    fn verify(&self) -> Result<Option<String>> {
        // Reading an array compares its checksum, so only the other members are left.
        let listed = self.listed()?.columns.iter();
        let read = listed.filter(|entry| {
            !matches!(entry.column.elements, Elements::Void(..) | Elements::Refused(_))
        });
        let arrays = read.map(|entry| &entry.member).collect::<HashSet<_>>().len();
        let others = self.members.len() - arrays;
        let unchecked = || match others {
            1 => "1 member is not a supported array and was not checked".to_owned(),
            _ => format!("{others} members are not supported arrays and were not checked"),
        };
        Ok((others > 0).then(unchecked))
    }
}
