//! Reads the metadata of a checkpoint: the pickle in its file `.metadata`.

use std::collections::{HashMap, HashSet};

use tenarc::error::Category;
use tenarc::tensor::{Order, TensorMeta};
use tenarc::{DType, Error, Result};

use super::nesting::Step;
use super::python::Reader;
use crate::Losses;
use crate::chunks::{Chunk, Span};
use crate::torch::pickle::{Machine, Meaning, Object, Value};

/// What the metadata say about a checkpoint.
#[derive(Default)]
pub struct Metadata {
    /// The tensors and objects, in the order of the metadata.
    pub items: Vec<Item>,
    /// The names of the files that hold them.
    pub files: Vec<String>,
    pub losses: Losses,
}

/// A tensor or an object.
pub struct Item {
    pub name: String,
    /// The path of the value in the checkpoint.
    pub steps: Vec<Step>,
    pub kind: Kind,
}

/// The kind of an item, and where it is stored.
pub enum Kind {
    /// A tensor and its chunks, without those that have no elements.
    Tensor(TensorMeta, Vec<Chunk>),
    /// An object that `torch.save` wrote.
    Object(Span),
    /// A tensor that cannot be read, and why.
    Lost(String),
}

/// The key of a stored part: the name of a tensor or object, and the index of the part's first element.
type Key<'a> = (&'a str, Option<Vec<usize>>);

/// The stored parts, and whether each was used.
type Parts<'a> = HashMap<Key<'a>, (Span, bool)>;

/// Reads the pickle of the metadata.
pub fn read(bytes: &[u8]) -> Result<Metadata> {
    let mut machine = Machine::for_metadata();
    let root = machine.read(bytes, "")?;
    let reader = Reader(&machine.heap);
    let fields = reader.attributes(root, "Metadata")?;
    version(reader, reader.entry(fields, "version"))?;
    let mut metadata = Metadata::default();
    let paths = paths(reader, fields, &mut metadata.losses);
    let mut parts = parts(reader, fields, &mut metadata.files)?;
    let items = reader.dict(reader.entry(fields, "state_dict_metadata"), "state_dict_metadata")?;
    let mut seen = HashSet::with_capacity(items.len());
    for (name, about) in items {
        let name = reader.text(*name, "a name")?;
        let in_item = |error: Error| error.in_field(name);
        if !seen.insert(name) {
            return Err(in_item(Error::damaged("expected each name once, found this one twice")));
        }
        let kind = kind(reader, name, *about, &mut parts).map_err(in_item)?;
        let steps = match paths.get(name) {
            Some(path) => reader.steps(*path).map_err(in_item)?,
            None => vec![Step::Key(name.into())],
        };
        metadata.items.push(Item { name: name.to_owned(), steps, kind });
    }
    let mut unused: Vec<_> = parts.iter().filter(|(_, (_, used))| !used).collect();
    unused.sort_unstable_by_key(|(key, _)| *key);
    for ((name, _), _) in unused {
        metadata.losses.add(name, "a stored part that belongs to no tensor or object");
    }
    others(reader, fields, &mut metadata.losses);
    Ok(metadata)
}

/// Checks the version of the format. Older versions of torch wrote none.
fn version(reader: Reader<'_>, version: Value) -> Result<()> {
    if matches!(version, Value::None) {
        return Ok(());
    }
    let version = reader.text(version, "a version")?;
    if version.split('.').next() == Some("1") {
        return Ok(());
    }
    let what = format!("expected version 1 of the metadata, found `{}`", version.escape_debug());
    Err(Error::new(Category::Version, what))
}

/// Reports fields of the metadata that torch does not write. Some programs add their own.
fn others(reader: Reader<'_>, fields: &[(Value, Value)], losses: &mut Losses) {
    const KNOWN: [&str; 5] =
        ["state_dict_metadata", "planner_data", "storage_data", "storage_meta", "version"];
    for (key, _) in fields {
        match reader.object(*key) {
            Some(Object::Text(name)) if KNOWN.contains(&&**name) => {}
            Some(Object::Text(name)) => losses.add(name, "a field of the metadata"),
            _ => losses.add("", "a field of the metadata without a name"),
        }
    }
}

/// Returns the path for each name. It is empty if the planner that saved the checkpoint did not record paths.
fn paths<'a>(
    reader: Reader<'a>,
    fields: &[(Value, Value)],
    losses: &mut Losses,
) -> HashMap<&'a str, Value> {
    let recorded = reader.entry(fields, "planner_data");
    let paths = match (recorded, reader.object(recorded)) {
        (_, Some(Object::Dict(paths))) => paths.entries.iter().map(|(name, path)| {
            Some((reader.text(*name, "a name").ok()?, reader.is_path(*path).then_some(*path)?))
        }),
        (Value::None, _) => return HashMap::new(),
        _ => {
            losses.add("planner_data", "the data of a planner that is not torch's own");
            return HashMap::new();
        }
    };
    let paths: Option<HashMap<_, _>> = paths.collect();
    paths.unwrap_or_else(|| {
        losses.add("planner_data", "the data of a planner that is not torch's own");
        HashMap::new()
    })
}

/// Returns where the parts of tensors, and objects, are stored. Adds the names of their files to `files`.
fn parts<'a>(
    reader: Reader<'a>,
    fields: &[(Value, Value)],
    files: &mut Vec<String>,
) -> Result<Parts<'a>> {
    let stored = reader.dict(reader.entry(fields, "storage_data"), "storage_data")?;
    let mut numbers = HashMap::new();
    let mut parts = Parts::with_capacity(stored.len());
    for (index, info) in stored {
        let index = reader.attributes(*index, "MetadataIndex")?;
        let name = reader.text(reader.entry(index, "fqn"), "a name")?;
        let in_item = |error: Error| error.in_field(name);
        let offset = match reader.entry(index, "offset") {
            Value::None => None,
            offset => Some(reader.sizes(offset).map_err(in_item)?),
        };
        let (file, start, len) = place(reader, *info).map_err(in_item)?;
        let file = *numbers.entry(file).or_insert_with(|| {
            files.push(file.to_owned());
            files.len() - 1
        });
        if parts.insert((name, offset), (Span { file, start, len }, false)).is_some() {
            let what = "expected each part once, found two parts with the same offset";
            return Err(in_item(Error::damaged(what)));
        }
    }
    apart(&parts, files)?;
    Ok(parts)
}

/// Returns the name of a file, and the start and length of a part in it.
fn place(reader: Reader<'_>, info: Value) -> Result<(&str, u64, u64)> {
    let info = reader.attributes(info, "_StorageInfo")?;
    let transforms = reader.entry(info, "transform_descriptors");
    match (transforms, reader.object(transforms)) {
        (Value::None, _) => {}
        (_, Some(Object::List(names))) => {
            if let Some(name) = names.first() {
                let name = reader.text(*name, "the name of a transform")?.escape_debug();
                return Err(Error::unsupported(format!(
                    "the part was transformed by `{name}`, which is not read: save the checkpoint again without extensions"
                )));
            }
        }
        _ => {
            let found = reader.found(transforms);
            return Err(Error::data(format!("expected a list of transforms, found {found}")));
        }
    }
    let number = |name| match reader.entry(info, name) {
        Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    };
    let file = reader.text(reader.entry(info, "relative_path"), "the name of a file")?;
    match (number("offset"), number("length")) {
        (Some(start), Some(len)) if start.checked_add(len).is_some() => Ok((file, start, len)),
        _ => Err(Error::data("expected the offset and the length of a part, found other values")),
    }
}

/// Checks that no two parts overlap in a file. So the parts together are not larger than the files.
fn apart(parts: &Parts<'_>, files: &[String]) -> Result<()> {
    let mut all: Vec<_> = parts.iter().map(|((name, _), (span, _))| (span, *name)).collect();
    all.sort_unstable_by_key(|(span, name)| (span.file, span.start, span.len, *name));
    for ((one, _), (other, name)) in all.iter().zip(all.iter().skip(1)) {
        if one.file == other.file && other.start < one.start.saturating_add(one.len) {
            let file = files.get(one.file).map_or("", String::as_str).escape_debug();
            let what = format!("the part overlaps another one in `{file}`");
            return Err(Error::damaged(what).at(other.start).in_field(*name));
        }
    }
    Ok(())
}

/// Reads what the metadata say about a tensor or an object, and finds where it is stored.
fn kind<'a>(
    reader: Reader<'_>,
    name: &'a str,
    about: Value,
    parts: &mut Parts<'a>,
) -> Result<Kind> {
    let mut find = |offset: Option<Vec<usize>>| {
        let (span, used) = parts.get_mut(&(name, offset))?;
        *used = true;
        Some(*span)
    };
    if reader.attributes(about, "BytesStorageMetadata").is_ok() {
        let missing = || Error::damaged("the metadata do not say where the object is stored");
        return find(None).map(Kind::Object).ok_or_else(missing);
    }
    let tensor = reader.attributes(about, "TensorStorageMetadata")?;
    let shape = reader.sizes(reader.entry(tensor, "size"))?;
    let dtype = dtype(reader, reader.entry(tensor, "properties"))?;
    let mut chunks = Vec::new();
    let list = reader.entry(tensor, "chunks");
    let Some(Object::List(list)) = reader.object(list) else {
        let found = reader.found(list);
        return Err(Error::data(format!("expected a list of chunks, found {found}")));
    };
    for chunk in list {
        let chunk = reader.attributes(*chunk, "ChunkStorageMetadata")?;
        let start = reader.sizes(reader.entry(chunk, "offsets"))?;
        let sizes = reader.sizes(reader.entry(chunk, "sizes"))?;
        let span = find(Some(start.clone())).or_else(|| find(None).filter(|_| list.len() == 1));
        match span {
            // Ranks that hold nothing of a tensor store chunks without elements.
            _ if sizes.contains(&0) => {}
            Some(span) => chunks.push(Chunk { start, sizes, span }),
            None => {
                let what =
                    format!("the metadata do not say where the chunk at {start:?} is stored");
                return Err(Error::damaged(what));
            }
        }
    }
    let dtype = match dtype {
        Ok(dtype) => dtype,
        Err(why) => return Ok(Kind::Lost(why)),
    };
    let meta = TensorMeta::new(dtype, &shape[..], Order::C);
    if meta.byte_len().is_none_or(|len| isize::try_from(len).is_err()) {
        let what = format!("a {} tensor of shape {shape:?} does not fit in memory", meta.dtype);
        return Err(Error::data(what));
    }
    Ok(Kind::Tensor(meta, chunks))
}

/// Returns the dtype of a tensor, or why the tensor is not read. Tensor properties are pickled as a tuple. It starts with
/// the dtype and the layout.
fn dtype(reader: Reader<'_>, properties: Value) -> Result<std::result::Result<DType, String>> {
    let state = reader.state(properties, "TensorProperties")?;
    let Some(Object::Tuple(state)) = reader.object(state) else {
        let found = reader.found(state);
        return Err(Error::data(format!("expected a tuple of properties, found {found}")));
    };
    let [dtype, layout, ..] = state[..] else {
        return Err(Error::data("expected a dtype and a layout, found fewer properties"));
    };
    if let Some(Object::Text(layout)) = reader.object(layout)
        && &**layout != "torch.strided"
    {
        return Ok(Err(format!("a tensor of layout `{}`", layout.escape_debug())));
    }
    match reader.object(dtype) {
        Some(Object::Global(global)) => Ok(match &global.meaning {
            Meaning::DType(dtype) => Ok(dtype.clone()),
            _ => Err(format!("a tensor of dtype {}", global.shown())),
        }),
        _ => Err(Error::data(format!("expected a dtype, found {}", reader.found(dtype)))),
    }
}
