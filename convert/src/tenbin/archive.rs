//! Between tenbin and archives.

use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::path::Path;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use tenarc::archive::{SaveOptions, Segment};
use tenarc::inspect::{Event, Form, SOME, escape_step};
use tenarc::io::{AtomicFile, ReadAt, open_file};
use tenarc::tensor::{Deferred, Order, TensorMeta};
use tenarc::{Error, OArchive, Result, Tensor};

use super::array::Header;
use super::chunk::Input;
use crate::options::Options;
use crate::part::Part;
use crate::{Losses, made};

/// How the arrays of a file are saved in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A map from names to tensors: where every array has a name of its own.
    Map,
    /// A sequence of tensors: where none has a name.
    Sequence,
    /// A sequence of pairs of name and tensor: everything else.
    Pairs,
}

/// Saves the arrays of a tenbin file as one value of an archive, one array at a time in memory; nothing is
/// lost. The layout follows from the names, and is told.
///
/// ```
/// use tenarc_convert::tenbin;
/// use tenarc::{Archive, OArchive};
///
/// let ten = tenbin::encode_buffer(&[("x", vec![1i32, 2, 3]), ("y", vec![4])])?;
/// let mut out = OArchive::new(Vec::new())?;
/// assert_eq!(tenbin::into_archive(&ten[..], ten.len() as u64, &mut out)?, tenbin::Layout::Map);
/// let archive = Archive::new(out.finish()?)?;
/// assert_eq!(archive.tensor::<ndarray::Array1<i32>>("x")?.sum(), 6);
///
/// let mut back = Vec::new();
/// tenbin::from_segment(&archive.segment(0)?, &mut back, &tenbin::Options::default())?;
/// assert_eq!(back, ten);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// Where the source, `len` bytes of it, cannot be read or holds something else than whole arrays, and where
/// the archive cannot be written.
pub fn into_archive<S: ReadAt, W: Write>(
    source: S,
    len: u64,
    out: &mut OArchive<W>,
) -> Result<Layout> {
    let file = TenFile::new(source, len)?;
    out.save(&file)?;
    Ok(file.layout)
}

/// A file whose arrays are read when they are asked for. It is a value that can be saved, laid out as
/// [`layout`](Self::layout) says; its arrays are read as they are written, in steps.
pub struct TenFile<S> {
    source: S,
    found: Vec<(Header, u64)>,
    layout: Layout,
}

impl<S> fmt::Debug for TenFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenFile").field("arrays", &self.found.len()).finish_non_exhaustive()
    }
}

impl<S: ReadAt> TenFile<S> {
    /// Reads the headers of all arrays in a source, `len` bytes of it, and checks what stands around them.
    ///
    /// # Errors
    /// Where the source cannot be read, or holds something else than whole arrays.
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
        Ok(Self { source, found, layout })
    }

    /// What the file is read from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// How the arrays are saved.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Where in the source the elements of an array start, counted from zero: they lie there as they are read.
    ///
    /// # Errors
    /// Where there is no such array.
    pub fn position(&self, number: usize) -> Result<u64> {
        self.at(number).map(|(_, start)| *start)
    }

    /// An array, counted from zero, which is read when it is written.
    ///
    /// # Errors
    /// Where there is no such array.
    pub fn deferred(&self, number: usize) -> Result<Deferred<'_>> {
        self.at(number).map(|(header, start)| self.array(header, *start))
    }

    fn at(&self, number: usize) -> Result<&(Header, u64)> {
        let found = self.found.get(number);
        found.ok_or_else(|| Error::data(format!("there is no array {number}")))
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

/// The headers of all arrays, and where their elements start.
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

impl<S: ReadAt> Serialize for TenFile<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let count = Some(self.found.len());
        if self.layout == Layout::Map {
            let mut map = serializer.serialize_map(count)?;
            for (header, start) in &self.found {
                map.serialize_entry(&header.name, &Tensor(self.array(header, *start)))?;
            }
            return map.end();
        }
        let mut seq = serializer.serialize_seq(count)?;
        for (header, start) in &self.found {
            let tensor = Tensor(self.array(header, *start));
            match self.layout {
                Layout::Sequence => seq.serialize_element(&tensor)?,
                _ => seq.serialize_element(&(&header.name, tensor))?,
            }
        }
        seq.end()
    }
}

/// Converts a file to an archive of one value; how that is laid out. Nothing is lost.
///
/// One array at a time is in memory. The archive has checksums, whatever the options say; it is read back and
/// verified by them before it takes its name.
///
/// # Errors
/// As [`into_archive`], and where a file cannot be read or written.
pub fn to_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: SaveOptions,
) -> Result<Layout> {
    let from = from.as_ref();
    let of_source = |error: Error| error.in_file(from);
    let (file, len) = open_file(from)?;
    let file = TenFile::new(file, len).map_err(of_source)?;
    let save = |out: &mut OArchive<&mut AtomicFile>| out.save(&file).map(drop).map_err(of_source);
    made::archive(to.as_ref(), options, save, |_| Ok(()))?;
    Ok(file.layout)
}

/// Converts an archive of one value to a file; what was not kept, where that is accepted.
///
/// Checksums are verified as tensors are read, one at a time. The file is read back and compared before it
/// takes its name.
///
/// # Errors
/// As [`from_segment`], where the archive holds several values, and where a file cannot be read or written.
pub fn from_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Losses> {
    let from = from.as_ref();
    let of_source = |error: Error| error.in_file(from);
    let archive = made::open_single(from)?;
    let segment = archive.segment(0).map_err(of_source)?;
    let write = |out: &mut dyn Write| from_segment(&segment, out, options).map_err(of_source);
    made::file(to.as_ref(), options.sync, write, |_, _| Ok(()))
}

/// Writes the tensors of a value in an archive, one at a time in memory; what was not kept, where that is
/// accepted. The value is laid out as [`Layout`] says.
///
/// What tenbin cannot say is left out: what is no tensor, and tensors that [`write`](fn@super::write) refuses; but
/// those in column-major order are written in row-major order.
///
/// # Errors
/// Where something cannot be kept and that is not accepted, or the value is neither a map nor a sequence: then,
/// nothing was written. Where the archive is damaged, or the writer fails.
pub fn from_segment<S: ReadAt + ?Sized, W: Write>(
    segment: &Segment<'_, S>,
    mut writer: W,
    options: &Options,
) -> Result<Losses> {
    let mut losses = Losses::default();
    let planned = plan(segment, &mut losses)?;
    losses.check(options.accept_losses, planned.len())?;
    for (name, path) in planned {
        let tensor = segment.dyn_tensor(&path)?.into_row_major()?;
        super::write(&mut writer, &[(name, tensor)])?;
    }
    Ok(losses)
}

/// The name and the path of each tensor that is written. All are looked at before anything is written.
fn plan<S: ReadAt + ?Sized>(
    segment: &Segment<'_, S>,
    losses: &mut Losses,
) -> Result<Vec<(String, String)>> {
    let keys = segment.keys("").map_err(|_| {
        let what = "expected a map or a sequence of tensors, or of pairs of name and tensor";
        Error::data(what)
    })?;
    let mut planned = Vec::with_capacity(keys.len());
    // A map has keys that name tensors; a sequence has numbers, which name tensors or pairs.
    let named = segment.get::<Sequence>("").is_err();
    for key in &keys {
        let pointer = format!("/{}", escape_step(key));
        let found = meta(segment, &pointer).map(|meta| (String::new(), pointer.clone(), meta));
        let found = found.or_else(|| pair(segment, &pointer).filter(|_| !named));
        let Some((name, path, mut meta)) = found else {
            losses.add(key, "it is no tensor, nor a pair of name and tensor: it is left out");
            continue;
        };
        let name = if named { key.clone() } else { name };
        if std::mem::take(&mut meta.order) == Order::F {
            losses.add(key, "column-major order: it is written in row-major order");
        }
        match Header::new(&name, meta) {
            Ok(_) => planned.push((name, path)),
            Err(error) => losses.add_tensor(key, format!("{}: it is left out", error.message())),
        }
    }
    Ok(planned)
}

/// Name, path and meta, if a pair of name and tensor is there.
fn pair<S: ReadAt + ?Sized>(
    segment: &Segment<'_, S>,
    pointer: &str,
) -> Option<(String, String, TensorMeta)> {
    segment.keys(pointer).ok().filter(|keys| keys == &["0", "1"])?;
    let path = format!("{pointer}/1");
    let meta = meta(segment, &path)?;
    Some((segment.get(&format!("{pointer}/0")).ok()?, path, meta))
}

/// Meta of the tensor that is there, if one is: byte strings are none.
fn meta<S: ReadAt + ?Sized>(segment: &Segment<'_, S>, path: &str) -> Option<TensorMeta> {
    let mut items = segment.inspect_at(path).ok()?;
    loop {
        match items.next()?.ok()?.event {
            Event::Tag(SOME) => {}
            Event::Payload(payload) if payload.form != Form::Bytes => return Some(payload.meta),
            _ => return None,
        }
    }
}

/// A sequence, whatever is in it.
struct Sequence;

impl<'de> serde::Deserialize<'de> for Sequence {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ignored = Vec::<serde::de::IgnoredAny>::deserialize(deserializer)?;
        drop(ignored);
        Ok(Self)
    }
}
