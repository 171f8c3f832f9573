//! Converts between tenbin files and archives.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use tenarc::inspect::{Event, Form, Items, SOME};
use tenarc::io::ReadAt;
use tenarc::tensor::{Deferred, Order, TensorMeta, ToTensor as _};
use tenarc::value::from_value;
use tenarc::{DynTensor, Error, Result, Tensor, Value};

use super::array::Header;
use super::chunk::Input;
use crate::as_value::{self, AsValue};
use crate::codec::Codec;
use crate::nested::{self, Names};
use crate::options::Options;
use crate::part::Part;
use crate::saved::{Node, Saved, Tree as _};
use crate::{Losses, Stored, TensorFile};

/// How the arrays of a file are saved in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A map from names to tensors. Used if every array has a name, and no two have the same.
    Map,
    /// A sequence of tensors. Used if no array has a name.
    Sequence,
    /// A sequence of pairs of a name and a tensor. Used for all other files.
    Pairs,
}

/// An opened file. Its arrays are read when they are requested.
///
/// The value of the file has the structure that [`layout`](Self::layout) returns. Its arrays are read when the value is
/// written, block by block.
pub struct TenFile<S> {
    source: S,
    /// The header of each array, and the position of its elements.
    found: Vec<(Header, u64)>,
    layout: Layout,
    /// The name that each array has as a tensor of a [`TensorFile`].
    keys: Vec<String>,
    /// The index in `found` for each of these names.
    numbers: HashMap<String, usize>,
}

impl<S> fmt::Debug for TenFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenFile").field("arrays", &self.found.len()).finish_non_exhaustive()
    }
}

impl<S: ReadAt> TenFile<S> {
    /// Reads the headers of all arrays in the first `len` bytes of a source, and checks the padding. Elements are not
    /// read yet.
    ///
    /// # Errors
    /// If the source cannot be read, or if it does not consist of complete arrays.
    pub fn new(source: S, len: u64) -> Result<Self> {
        let found = scan(&source, len)?;
        let mut names = HashSet::new();
        let mut unique = |name: &'_ str| !name.is_empty() && names.insert(name.to_owned());
        let layout = if found.iter().all(|(header, _)| header.name.is_empty()) {
            Layout::Sequence
        } else if found.iter().all(|(header, _)| unique(&header.name)) {
            Layout::Map
        } else {
            Layout::Pairs
        };
        let key = |(number, (header, _)): (usize, &(Header, u64))| match layout {
            Layout::Map => header.name.clone(),
            _ => number.to_string(),
        };
        let keys: Vec<String> = found.iter().enumerate().map(key).collect();
        let numbers = keys.iter().cloned().zip(0..).collect();
        Ok(Self { source, found, layout, keys, numbers })
    }

    /// The source of the file.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The structure of the value of the file.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the position of an array's elements in the source. Arrays are numbered from zero.
    ///
    /// # Errors
    /// If there is no array of this number.
    pub fn position(&self, number: usize) -> Result<u64> {
        self.at(number).map(|(_, start)| *start)
    }

    /// Returns an array whose elements are read when it is written. Arrays are numbered from zero.
    ///
    /// # Errors
    /// If there is no array of this number.
    pub fn deferred(&self, number: usize) -> Result<Deferred<'_>> {
        self.at(number).map(|(header, start)| self.array(header, *start))
    }

    fn number(&self, name: &str) -> Result<usize> {
        let number = self.numbers.get(name).copied();
        number.ok_or_else(|| Error::not_found("there is no array of this name").in_field(name))
    }

    fn at(&self, number: usize) -> Result<&(Header, u64)> {
        let found = self.found.get(number);
        found.ok_or_else(|| Error::not_found(format!("there is no array {number}")))
    }

    fn array(&self, header: &Header, start: u64) -> Deferred<'_> {
        let source = &self.source;
        let end = start + header.len;
        let (dtype, order) = (header.meta.dtype.clone(), header.meta.order);
        let shape = &header.meta.shape;
        Deferred::from_blocks(dtype, shape, order, move |put| {
            let mut input = Input::new(Part::new(source, start..end));
            let mut step = vec![0; crate::support::STEP];
            while start + input.at < end {
                let left = usize::try_from(end - start - input.at).unwrap_or(usize::MAX);
                let len = step.len().min(left);
                let part = step.get_mut(..len).unwrap_or_default();
                input.fill(part, "an array").map_err(|error| error.moved_by(start))?;
                put(part)?;
            }
            Ok(())
        })
    }
}

/// Returns the headers of all arrays, and the positions of their elements.
fn scan<S: ReadAt>(source: &S, len: u64) -> Result<Vec<(Header, u64)>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < len {
        let mut input = Input::new(Part::new(source, at..len));
        let header = input.header().map_err(|error| error.moved_by(at))?;
        let Some(header) = header else { break };
        let start = at + input.at;
        let end = start.checked_add(header.len);
        let Some(end) = end.filter(|&end| end <= len) else {
            let (expected, found) = (header.len, len.saturating_sub(start));
            return Err(super::chunk::cut(expected, found, "an array")
                .at(start)
                .in_field(header.name));
        };
        let mut behind = Input::new(Part::new(source, end..len));
        behind.padding(header.len).map_err(|error| error.moved_by(end))?;
        at = end + behind.at;
        found.push((header, start));
    }
    Ok(found)
}

/// The value has the structure that [`layout`](TenFile::layout) returns. With the layout [`Map`](Layout::Map), tensors
/// have the names of the arrays. With the others, their names are the numbers of the arrays, counted from zero.
impl<S: ReadAt> TensorFile for TenFile<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let parts = self.keys.iter().zip(&self.found).map(|(key, (header, start))| {
            let tensor = self.array(header, *start);
            let part = match self.layout {
                Layout::Pairs => as_value::Part::Pair(&header.name, tensor),
                _ => as_value::Part::Tensor(tensor),
            };
            (key.as_str(), part)
        });
        let parts: Vec<_> = parts.collect();
        let value = match self.layout {
            Layout::Map => AsValue::flat(parts),
            _ => AsValue::of(
                nested::Node::List((0..parts.len()).map(nested::Node::Leaf).collect()),
                parts,
            ),
        };
        value.named(names, false)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.deferred(self.number(name)?)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(Some((&self.source, self.position(self.number(name)?)?)))
    }
}

/// The [`Codec`] for tenbin files.
pub(crate) struct Tenbin;

impl Codec for Tenbin {
    fn open(&self, file: File, _: Option<&Path>, _: &Options) -> Result<Box<dyn TensorFile>> {
        let len = file.size().map_err(Error::io)?;
        Ok(Box::new(TenFile::new(file, len)?))
    }

    fn write(&self, value: &dyn Stored, out: &mut dyn Write, options: &Options) -> Result<Losses> {
        export(value, out, options)
    }
}

/// Writes the tensors of a value, with one tensor in memory at a time. The value must have one of the structures that
/// [`Layout`] lists.
///
/// Values that are not tensors are left out, and so are tensors that [`write`](fn@super::write) refuses. Column-major
/// tensors are written in row-major order. All of these are losses. If the options accept losses, they are returned.
///
/// # Errors
/// If something is lost and the options do not accept that, or if the value is neither a map nor a sequence. Then
/// nothing was written. Also if the value is damaged, or if the writer fails.
pub fn export<W: Write>(value: &dyn Stored, mut writer: W, options: &Options) -> Result<Losses> {
    value.verify_unread()?;
    let tree = Saved::of(value)?;
    let mut losses = value.lost();
    let planned = plan(value, &tree, &mut losses)?;
    losses.check(options.accept_losses, planned.len())?;
    for (name, leaf) in planned {
        let tensor = match leaf {
            Saved::Leaf(range) => value.tensor(range.clone()),
            Saved::Known(known) => tensor(known),
            _ => continue,
        };
        super::write(&mut writer, &[(name, tensor?.into_row_major()?)])?;
    }
    Ok(losses)
}

/// Returns the name and the item of each tensor that can be written, and adds all others to the losses. Nothing is
/// written yet.
fn plan<'t>(
    value: &dyn Stored,
    tree: &'t Saved,
    losses: &mut Losses,
) -> Result<Vec<(String, &'t Saved)>> {
    let mut planned = Vec::new();
    let mut add = |key: &str, item: &Saved, found: Option<(String, TensorMeta, &'t Saved)>| {
        let Some((name, mut meta, leaf)) = found else {
            let what = "it is neither a tensor nor a pair of a name and a tensor: it is left out";
            match tensors_in(value, item) {
                0 => losses.add(key, what),
                count => losses.add_tensors(key, count, what),
            }
            return;
        };
        if std::mem::take(&mut meta.order) == Order::F {
            losses.note(crate::order::TURNED);
        }
        match Header::new(&name, meta) {
            Ok(_) => planned.push((name, leaf)),
            Err(error) => losses.add_tensor(key, format!("{}: it is left out", error.message())),
        }
    };
    match plain(tree).node() {
        // The keys are the names of tensors.
        Node::Map(entries) => {
            for (key, item) in entries {
                let (key, leaf) = (key.to_step(), plain(item));
                let tensor = meta(value, leaf).map(|meta| (key.clone().into_owned(), meta, leaf));
                add(&key, leaf, tensor);
            }
        }
        // The items are tensors, or pairs of a name and a tensor.
        Node::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let leaf = plain(item);
                let tensor = meta(value, leaf).map(|meta| (String::new(), meta, leaf));
                add(&number.to_string(), leaf, tensor.or_else(|| pair(value, leaf)));
            }
        }
        _ => {
            let what = "expected a map of tensors, or a sequence of tensors or of pairs of a name and a tensor";
            return Err(Error::unsupported(what));
        }
    }
    Ok(planned)
}

/// Returns the number of tensors in an item.
fn tensors_in(value: &dyn Stored, item: &Saved) -> u64 {
    if meta(value, item).is_some() {
        return 1;
    }
    match item.node() {
        Node::Array(items) => items.iter().map(|item| tensors_in(value, item)).sum(),
        Node::Map(entries) => entries.iter().map(|(_, item)| tensors_in(value, item)).sum(),
        Node::Tag(_, inner) | Node::Named(_, inner) => tensors_in(value, inner),
        Node::Leaf => 0,
    }
}

/// Returns the name, the description and the item of a tensor if `item` is a pair of a name and a tensor.
fn pair<'t>(value: &dyn Stored, item: &'t Saved) -> Option<(String, TensorMeta, &'t Saved)> {
    let Node::Array([name, tensor]) = item.node() else { return None };
    let text = |name: &Value| Ok(name.as_str().map(str::to_owned));
    let name = plain(name).with_leaf(&|range| value.decode(range), text).ok()??;
    Some((name, meta(value, plain(tensor))?, plain(tensor)))
}

/// Returns the description of a tensor. `None` if the item is not a tensor; a byte string is not one.
fn meta(value: &dyn Stored, item: &Saved) -> Option<TensorMeta> {
    match item {
        Saved::Leaf(range) => {
            let item = value.metadata().ok()?.get(range.clone())?;
            match Items::new(item).with_buffers(value.buffers()).next()?.ok()?.event {
                Event::Payload(payload) if payload.form != Form::Bytes => Some(payload.meta),
                _ => None,
            }
        }
        Saved::Known(known @ (Value::Tensor(_) | Value::Numbers(_))) => {
            tensor(known).ok().map(|tensor| tensor.meta())
        }
        _ => None,
    }
}

fn tensor(value: &Value) -> Result<DynTensor> {
    from_value::<Tensor<DynTensor>>(value.clone()).map(Tensor::into_inner)
}

/// Returns an item without the tags around it that mark `Some`.
fn plain(mut item: &Saved) -> &Saved {
    while let Saved::Tag(SOME, inner) = item {
        item = inner;
    }
    item
}
