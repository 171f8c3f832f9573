//! Reads HDF5 files, such as those of h5py, `PyTables`, Keras and NetCDF-4, and converts them to archives.
//!
//! ```no_run
//! use ndarray::Array2;
//! use tenarc_convert::hdf5;
//!
//! let file = hdf5::open("measured.h5")?;
//! let pressure: Array2<f64> = file.tensor("run/pressure")?;
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! The crate [`hdf5_reader`] reads groups, datatypes and attributes, in Rust alone. Chunks are found and put together here.
//! This module maps what is found:
//!
//! | HDF5 | value |
//! |---|---|
//! | group | map from names to its members |
//! | dataset of integers, floats or complex numbers | tensor, converted to little-endian |
//! | dataset of h5py's bools | `bool` tensor |
//! | elements that are arrays | more dimensions of the tensor |
//! | dataset of texts | text, or array of texts |
//! | dataset of lists of numbers, of different lengths | array of sequences of numbers |
//! | dataset of structs (of a compound datatype) | map from the names of the fields to such arrays, as of an npz file |
//! | dataset that is null | null |
//! | references to objects, and further links to a group | their paths, for example `/run/pressure` |
//! | attributes | maps in `__metadata__`, by the path of the object, for example `/` and `/run` |
//! | integers that pandas says are times or durations | tensor of that type, as of an npz file |
//! | names of the values of an enum | a map from names to numbers, as the attribute `enum` of the dataset or field |
//! | scales of dimensions | their paths in the attribute `DIMENSION_LIST`, an entry for each dimension |
//!
//! Chunks may be compressed with gzip, LZF, LZ4, Zstandard, Blosc, bitshuffle, SZIP, n-bit, or scale and offset, and may be
//! shuffled. Elements that were never written have the fill value of the dataset. Keras' raw elements of the dtype bfloat16
//! are read as such.
//!
//! Losses are: references to parts of datasets, raw elements, other filters, elements in other files, and virtual
//! datasets. External links are not followed. Soft links that lead nowhere, and named datatypes,
//! are left out.
//!
//! With [`Names::Flat`], the name of a tensor is the path of its dataset, for example `layers/dense/vars/0`.
//! With [`Names::Nested`], maps with the keys 0, 1, … become arrays.

mod about;
mod attribute;
mod budget;
mod contents;
mod counted;
mod datatype;
mod error;
mod filters;
mod header;
mod index;
mod keras;
mod links;
mod mend;
mod pandas;
mod stored;

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hdf5_reader::{BytesStorage, FileStorage, Hdf5File, OpenOptions, Storage};
use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, Order, TensorInfo, TensorMeta};
use tenarc::{DynTensor, Error, Result, Value};

use crate::as_value::{AsValue, Metadata, Part};
use crate::codec::Codec;
use crate::nested::{self, Key, Node};
use crate::stored::Put;
use crate::support::no_tensor_named;
use crate::texts::{Next, Texts};
use crate::{Names, Options, TensorFile, source};

use budget::{Budget, of_file};
use contents::{Contents, Elements, Entry, Found, Outside};
use counted::Counted;
use datatype::{Array, Numbers, Resolve, Text};
use error::failed;
use keras::{Place, Weights};
use stored::Source;

/// An opened HDF5 file.
///
/// Opening reads the groups, the descriptions of datasets, and the attributes. The elements of a dataset are read when
/// they are requested. All of a dataset is in memory then, unless its elements lie one after the other in the file.
pub struct Hdf5 {
    file: File,
    /// The offset of the HDF5 file in `file`. `None` if it is in memory.
    start: Option<u64>,
    /// The HDF5 file in the zip file that `file` is. `None` if `file` is an HDF5 file.
    weights: Option<Weights>,
    source: Source,
    /// The structs of the dataset of which a field was read last, and its address. Reading them again for each of many
    /// fields would take long.
    structs: Mutex<Option<(u64, Vec<u8>)>>,
    contents: Contents,
    /// For the texts of each dataset.
    budget: Budget,
}

impl fmt::Debug for Hdf5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hdf5")
            .field("datasets", &self.contents.datasets.len())
            .finish_non_exhaustive()
    }
}

/// Opens a file. See [`Hdf5::new`].
///
/// # Errors
/// The errors of [`Hdf5::new`], and if the file cannot be opened.
pub fn open(path: impl AsRef<Path>) -> Result<Hdf5> {
    let path = path.as_ref();
    let (file, _) = open_file(path)?;
    Hdf5::new(file).map_err(|error| error.in_file(path))
}

impl Hdf5 {
    /// Reads everything but the elements of datasets. The file is an HDF5 file, or a file of Keras 3, which is a zip file.
    /// Of the latter, `model.weights.h5` is read: in place if it is not compressed, as Keras writes it, and otherwise
    /// into memory.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or uses a part of the format that is not read.
    pub fn new(file: File) -> Result<Self> {
        Self::with_limits(file, Limits::default())
    }

    /// Like [`new`](Self::new), with limits. A dataset may take as much memory as one allocation may take. By default,
    /// that is 64 MiB and 1,100 times the length of the file: deflate compresses no better.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_limits(file: File, limits: Limits) -> Result<Self> {
        let len = file.metadata().map_err(Error::io)?.len();
        let most = limits.max_alloc().unwrap_or(len.saturating_mul(1100).saturating_add(64 << 20));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let weights = Weights::find(&file)?;
        let outside = Outside::default();
        let options = OpenOptions::default()
            .with_max_read_bytes(most)
            .with_max_chunk_bytes(most)
            .with_external_link_resolver(Arc::new(outside.clone()));
        let (storage, len, start): (Box<dyn Storage>, _, _) = match &weights {
            Some(found) => match found.place(&file, most)? {
                Place::Inflated(bytes) => {
                    let len = bytes.len() as u64;
                    (Box::new(BytesStorage::new(bytes)), len, None)
                }
                Place::At(start) => {
                    (Box::new(of_file_storage(&file)?), found.byte_len(), Some(start))
                }
            },
            None => (Box::new(of_file_storage(&file)?), len, Some(0)),
        };
        let counted = Counted::new(storage, start.unwrap_or(0), len, of_file(len));
        let counted = Arc::new(counted);
        let opened =
            Hdf5File::from_storage_with_options(counted.clone(), options).map_err(failed)?;
        let budget = Budget::new(len, limits);
        let source = Source { file: opened, filters: filters::all(most), most };
        let mut contents = Contents::read(&source.file, &counted, &source, budget, &outside)?;
        if weights.as_ref().is_some_and(|found| found.has_others) {
            let what = "only the weights of a Keras file are read: the other members of the zip file are left out";
            contents.losses.note(what);
        }
        // The crate parses parts of the file again when elements are read.
        counted.count_no_more();
        Ok(Self { file, start, weights, source, structs: Mutex::new(None), contents, budget })
    }

    /// The attributes of all objects that have some: maps from their names to values, by the path of the object.
    pub fn attributes(&self) -> &[(String, Value)] {
        &self.contents.attributes
    }

    /// Describes all tensors. The path of each is its name.
    pub fn tensors(&self) -> Vec<TensorInfo> {
        let info = |found: &Found| match &found.kind {
            Elements::Numbers(Array { numbers, shape, len })
            | Elements::Times(_, Array { numbers, shape, len }) => {
                let meta = TensorMeta::new(numbers.dtype.clone(), &**shape, Order::C);
                Some(TensorInfo::new(found.path.clone(), meta, *len as u64))
            }
            Elements::Text(_) | Elements::List(_) | Elements::Value(_) => None,
        };
        self.contents.datasets.iter().filter_map(info).collect()
    }

    /// Reads a tensor as an array type. Its name is the path of its dataset, such as `run/pressure`.
    ///
    /// # Errors
    /// If there is no tensor of this name, if it cannot be read, or if it has another dtype or number of dimensions.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.dyn_tensor(name)?.into_tensor().map_err(|error| error.in_field(name))
    }

    /// Reads a tensor of any dtype. Its name is the path of its dataset.
    ///
    /// # Errors
    /// If there is no tensor of this name, or if it cannot be read.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        let (found, array) = self.find(name)?;
        let dtype = array.numbers.dtype.clone();
        let tensor = DynTensor::new(dtype, &array.shape, Order::C, self.elements(found, array)?);
        tensor.map_err(|error| error.in_field(name))
    }

    fn find(&self, name: &str) -> Result<(&Found, &Array)> {
        let number = self.contents.numbers.get(name);
        let found = number.and_then(|number| self.contents.datasets.get(*number));
        match found.map(|found| (found, &found.kind)) {
            Some((found, Elements::Numbers(array) | Elements::Times(_, array))) => {
                Ok((found, array))
            }
            _ => Err(no_tensor_named(name)),
        }
    }

    fn part<'a>(&'a self, found: &'a Found) -> Result<Part<'a>> {
        match &found.kind {
            Elements::Numbers(array) => Ok(Part::Tensor(self.deferred_of(found, array))),
            Elements::Times(times, array) => {
                let times =
                    times.part(&array.shape, Order::C, move |put| self.blocks(found, array, put));
                // What cannot be read fails when it is written, like other elements.
                times.or_else(|_| Ok(Part::Tensor(self.deferred_of(found, array))))
            }
            Elements::Text(text) => {
                Texts::new(&found.outer, || self.texts(found, *text)).map(Part::Texts)
            }
            Elements::List(numbers) => {
                let dtype = numbers.dtype.clone();
                let lists = Texts::of_lists(&found.outer, dtype, || self.lists(found, numbers));
                lists.map(Part::Texts)
            }
            Elements::Value(value) => Ok(Part::Value(value)),
        }
    }

    /// Returns the offset of a dataset in the file. `None` if its elements are not as tenarc stores them.
    fn place_of(&self, found: &Found) -> Option<u64> {
        self.start?.checked_add(found.place?)
    }

    fn deferred_of<'a>(&'a self, found: &'a Found, array: &'a Array) -> Deferred<'a> {
        let dtype = array.numbers.dtype.clone();
        Deferred::from_blocks(dtype, &array.shape, Order::C, move |put| {
            self.blocks(found, array, put)
        })
    }

    /// Passes the little-endian elements of a dataset to `put` in blocks.
    fn blocks(&self, found: &Found, array: &Array, put: &mut Put<'_>) -> Result<()> {
        match self.place_of(found) {
            Some(start) => {
                let end = start.saturating_add(array.len as u64);
                source::in_steps(&self.file, start..end, |block, _| put(block))
            }
            None => put(&self.elements(found, array)?),
        }
    }

    /// Reads all elements of a dataset, and converts them to little-endian.
    fn elements(&self, found: &Found, array: &Array) -> Result<Vec<u8>> {
        let mut bytes = self.raw(found)?;
        if bytes.len() != array.len {
            let what = format!("expected {} bytes of elements, found {}", array.len, bytes.len());
            return Err(Error::damaged(what));
        }
        array.numbers.to_le(&mut bytes);
        Ok(bytes)
    }

    /// Starts to read the texts of a dataset.
    fn texts<'a>(&'a self, found: &'a Found, text: Text) -> Result<Next<'a>> {
        let width = match text {
            Text::Fixed(len, _) => len,
            Text::Variable => found.dataset.vlen_reference_size(),
        };
        let read = move |element: &[u8], resolve: &Resolve<'_>, budget: &mut Budget| {
            text.read(element, resolve, budget)
        };
        self.each(found, width, read)
    }

    /// Starts to read the lists of a dataset.
    fn lists<'a>(&'a self, found: &'a Found, numbers: &'a Numbers) -> Result<Next<'a>> {
        let width = found.dataset.vlen_reference_size();
        let read = |element: &[u8], resolve: &Resolve<'_>, budget: &mut Budget| {
            numbers.list(element, resolve, budget)
        };
        self.each(found, width, read)
    }

    /// Starts to read elements of `width` bytes one after the other.
    fn each<'a>(
        &'a self,
        found: &'a Found,
        width: usize,
        read: impl Fn(&[u8], &Resolve<'_>, &mut Budget) -> Result<Vec<u8>> + 'a,
    ) -> Result<Next<'a>> {
        let bytes = self.raw(found)?;
        let mut budget = self.budget;
        let mut at = 0usize;
        Ok(Box::new(move || {
            let element = bytes.get(at..).and_then(|rest| rest.get(..width));
            let element = element.ok_or_else(|| Error::damaged("a dataset has too few texts"))?;
            at = at.saturating_add(width);
            let resolve = |reference: &[u8], size| {
                found.dataset.resolve_vlen_reference_bytes(reference, size)
            };
            read(element, &resolve, &mut budget)
        }))
    }

    fn raw(&self, found: &Found) -> Result<Vec<u8>> {
        let read = || self.source.elements(&found.dataset, &found.header).map_err(failed);
        let mut structs = self.structs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(field) = found.field else {
            *structs = None;
            drop(structs);
            return read();
        };
        let address = found.dataset.address();
        let structs = match &mut *structs {
            Some((of, structs)) if *of == address => structs,
            other => &mut other.insert((address, read()?)).1,
        };
        let width = found.dataset.raw_element_size().map_err(failed)?;
        Ok(field.of_each(structs, width))
    }
}

fn of_file_storage(file: &File) -> Result<FileStorage> {
    let file = file.try_clone().map_err(Error::io)?;
    FileStorage::from_file(file).map_err(failed)
}

/// The value of a file has a map for each group. Attributes are under `__metadata__`.
impl TensorFile for Hdf5 {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let Contents { datasets, root, links, attributes, losses, .. } = &self.contents;
        let mut parts = Vec::with_capacity(datasets.len() + links.len());
        for found in datasets {
            parts.push((
                &*found.path,
                self.part(found).map_err(|error| error.in_field(&*found.path))?,
            ));
        }
        parts.extend(links.iter().map(|link| (&*link.path, Part::Value(&link.to))));
        let value = match names {
            Names::Flat => AsValue::flat(parts),
            Names::Nested => {
                let names = datasets.iter().map(|found| &*found.dotted);
                let names = names.chain(links.iter().map(|link| &*link.dotted));
                AsValue::of(Node::Map(nested::tree(names)?), parts)
            }
            Names::Stored => AsValue::of(node(root, datasets.len()), parts),
        };
        let metadata = match &**attributes {
            [] => Metadata::None,
            attributes => Metadata::Values(attributes),
        };
        // The names were split already, if that was asked for.
        value.with_metadata(metadata).with_losses(losses.clone()).named(Names::Flat, false)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let (found, array) = self.find(name)?;
        Ok(self.deferred_of(found, array))
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        let (found, _) = self.find(name)?;
        Ok(self.place_of(found).map(|start| (&self.file as &dyn ReadAt, start)))
    }

    fn verify(&self) -> Result<Option<String>> {
        if let Some((path, what)) = &self.contents.damage {
            return Err(Error::damaged(&**what).in_field(&**path));
        }
        if let Some(weights) = &self.weights {
            // The checksum of the zip file counts for all elements.
            return weights.verify(&self.file).map(|()| None);
        }
        Ok(Some("only some HDF5 files have checksums of their elements".into()))
    }

    fn about(&self) -> Result<Value> {
        Ok(about::of(&self.source.file, &self.contents))
    }

    fn has_tied_tensors(&self) -> bool {
        self.contents.has_tied
    }
}

/// A group as a map. The parts of its links come after those of this many datasets.
fn node(entries: &[(String, Entry)], datasets: usize) -> Node<'_> {
    let mut nodes = Vec::with_capacity(entries.len());
    for (name, entry) in entries {
        let node = match entry {
            Entry::Group(entries) => node(entries, datasets),
            Entry::Dataset(number) => Node::Leaf(*number),
            Entry::Link(number) => Node::Leaf(datasets + *number),
        };
        nodes.push((Key::Text(name), node));
    }
    Node::Map(nodes)
}

/// The [`Codec`] for HDF5 files.
pub(crate) struct Hdf5Files;

impl Codec for Hdf5Files {
    fn open(&self, file: File, _: Option<&Path>, options: &Options) -> Result<Box<dyn TensorFile>> {
        Ok(Box::new(Hdf5::with_limits(file, options.limits)?))
    }
}
