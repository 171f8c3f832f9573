//! `merge`: joins shards, or maps of tensors, into one value, or merges an adapter into weights.

mod lora;

use std::collections::HashMap;

use tenarc::Value;

use super::split::ELSEWHERE;
use crate::args::Merge;
use crate::document::{Document, Section, with_chunks};
use crate::failure::{Failure, Result, Status};
use crate::formats;
use crate::formats::values::{Valued, Values};
use crate::node::{Key, Kind, Node};
use crate::progress::Progress;
use crate::target::Target;
use crate::text::quoted;
use crate::written::{Written, WrittenKey};

pub fn run(args: &Merge) -> Result<Status> {
    let to = formats::of_output(&args.output.output, args.output.to)?;
    formats::only_for_archives("--compress", args.compress.compress.is_some(), to)?;
    let reading = args.read.reading();
    let open = |input: &std::path::PathBuf| Document::open(input, &reading);
    let documents = args.inputs.iter().map(open).collect::<Result<Vec<_>>>()?;
    let adapter = args.lora.as_deref().map(lora::Adapter::open).transpose()?;
    documents.iter().try_for_each(|document| document.check_copy(false))?;
    let sections =
        documents.iter().map(|document| document.only(None)).collect::<Result<Vec<_>>>()?;
    let mut target = Target::new(&args.output.output, args.output.writing)?;
    let (mut name, mut alignment, mut chunk_len) = (None, None, None);
    for section in &sections {
        name = name.or(section.name());
        alignment = alignment.max(section.segment().map(tenarc::archive::Segment::alignment));
        chunk_len = chunk_len.max(section.compressed_chunks());
    }
    target.finds_equal(true);
    target.options = with_chunks(target.options, chunk_len);
    target.compress(args.compress.compress);
    if let Some(alignment) = alignment {
        target.options = target.options.with_alignment(alignment);
    }
    let total = documents.iter().fold(0, |sum: u64, one| sum.saturating_add(one.byte_len()));
    let progress = Progress::new(total.saturating_mul(target.passes(to)), "merging");
    for document in &documents {
        document.add_progress_to(&progress);
    }
    let of_adapter = adapter.as_ref().map(|adapter| adapter.document.only(None)).transpose()?;
    let places: Vec<Place<'_>> = sections
        .iter()
        .zip(&documents)
        .map(|(section, document)| Place { section, node: &section.root, file: &document.name })
        .collect();
    let value = match (&adapter, &of_adapter, &*sections) {
        (Some(adapter), Some(of_adapter), [base]) => {
            lora::merged(base, of_adapter, &adapter.config)?
        }
        (Some(_), ..) => return Err(Failure::new("--lora is for one input")),
        _ => merged(&places, &mut String::new())?,
    };
    let mut value = Some(value);
    let mut values = Values::new(1, |put| {
        value.take().map_or(Ok(()), |value| put(Valued::Changed(name, value)))
    });
    values.write(to, &target)?;
    Ok(Status::Good)
}

/// The node of one file at a path.
#[derive(Clone, Copy)]
struct Place<'a> {
    section: &'a Section<'a>,
    node: &'a Node,
    file: &'a str,
}

impl<'a> Place<'a> {
    fn item(&self) -> &'a [u8] {
        self.section.item(&self.node.range)
    }

    /// Returns whether the tensor that belongs here is in another shard.
    fn is_elsewhere(&self) -> bool {
        matches!(self.node.kind, Kind::Leaf)
            && matches!(tenarc::from_slice(self.item()), Ok(Value::Simple(ELSEWHERE)))
    }
}

/// Joins the values of several files at one path.
fn merged<'a>(places: &[Place<'a>], path: &mut String) -> Result<Written<'a>> {
    let mut there: Vec<Place<'a>> =
        places.iter().copied().filter(|place| !place.is_elsewhere()).collect();
    if there.is_empty() {
        there.extend(places.first());
    }
    let Some((first, rest)) = there.split_first() else {
        return Err(Failure::new("nothing to merge"));
    };
    if rest.is_empty() {
        return Ok(Written::Same(first.section, first.node));
    }
    match &first.node.kind {
        Kind::Map(_) => maps(&there, path),
        Kind::Array(items)
            if !there.iter().any(|place| matches!(place.node.kind, Kind::Columns(_))) =>
        {
            let mut arrays = Vec::with_capacity(there.len());
            for place in &there {
                match &place.node.kind {
                    Kind::Array(other) if other.len() == items.len() => arrays.push(other),
                    _ => return Err(conflict(*first, *place, path)),
                }
            }
            let merged = (0..items.len()).map(|at| {
                let column = arrays.iter().zip(&there);
                let column: Vec<Place<'a>> = column
                    .filter_map(|(items, place)| Some(Place { node: items.get(at)?, ..*place }))
                    .collect();
                step(&column, &at.to_string(), path)
            });
            Ok(Written::Array(merged.collect::<Result<_>>()?))
        }
        _ => {
            for place in rest {
                if !is_same(*first, *place)? {
                    return Err(conflict(*first, *place, path));
                }
            }
            Ok(Written::Same(first.section, first.node))
        }
    }
}

fn step<'a>(places: &[Place<'a>], step: &str, path: &mut String) -> Result<Written<'a>> {
    let len = path.len();
    if len > 0 {
        path.push('.');
    }
    path.push_str(step);
    let merged = merged(places, path);
    path.truncate(len);
    merged
}

/// Joins maps: all entries of all maps, in the order in which they are first found.
fn maps<'a>(there: &[Place<'a>], path: &mut String) -> Result<Written<'a>> {
    let mut columns: Vec<(&'a Section<'a>, &'a Key, Vec<Place<'a>>)> = Vec::new();
    let mut known: HashMap<&'a [u8], usize> = HashMap::new();
    for (at, place) in there.iter().enumerate() {
        let Kind::Map(entries) = &place.node.kind else {
            return Err(conflict(*there.first().unwrap_or(place), *place, path));
        };
        for (key, node) in entries {
            let item = place.section.item(&key.range);
            let next = columns.len();
            let column = *known.entry(item).or_insert(next);
            if column == next {
                columns.push((place.section, key, Vec::with_capacity(there.len() - at)));
            }
            if let Some((_, _, column)) = columns.get_mut(column) {
                column.push(Place { node, ..*place });
            }
        }
    }
    let merged = columns.into_iter().map(|(section, key, column)| {
        Ok((WrittenKey::of(section, key), step(&column, &key.step, path)?))
    });
    Ok(Written::Map(merged.collect::<Result<_>>()?))
}

/// Returns whether two files hold the same value at a path that is neither a map nor an array.
fn is_same(a: Place<'_>, b: Place<'_>) -> Result<bool> {
    match (a.node.payload(), b.node.payload()) {
        (None, None) if a.node.holds_columns() || b.node.holds_columns() => {
            let [a, b] = [a, b].map(|place| crate::written::value(place.section, place.node));
            Ok(a? == b?)
        }
        (None, None) => Ok(a.item() == b.item()),
        (Some(from), Some(to)) => {
            let alike = (from.form, &from.dtype, &from.shape, from.order)
                == (to.form, &to.dtype, &to.shape, to.order);
            Ok(alike && a.section.payload_bytes(a.node)? == b.section.payload_bytes(b.node)?)
        }
        _ => Ok(false),
    }
}

fn conflict(a: Place<'_>, b: Place<'_>, path: &str) -> Failure {
    let at = if path.is_empty() { String::new() } else { format!(" at {}", quoted(path)) };
    Failure::new(format!("{} and {} hold different values{at}", a.file, b.file))
}
