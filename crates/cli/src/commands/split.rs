//! `split`: writes each value to an archive of its own, or the tensors of one value to several.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use tenarc::Value;

use crate::args::Split;
use crate::document::{Document, Section, with_chunks};
use crate::failure::{Of, Result, Status};
use crate::node::{Kind, Node};
use crate::output::Out;
use crate::target::archive::ArchiveTarget;
use crate::target::{Target, refuse_to_replace};
use crate::text::escaped;
use crate::written::{Written, WrittenKey};

/// CBOR's simple value *undefined*, in place of a tensor that is in another shard.
pub const ELSEWHERE: u8 = 23;

pub fn run(args: &Split, out: &mut Out) -> Result<Status> {
    let document = Document::open(&args.input, &args.read.reading())?;
    document.check_copy(false)?;
    std::fs::create_dir_all(&args.directory).of(crate::input::shown(&args.directory))?;
    let stem = args.input.file_stem().map_or("value".into(), |stem| stem.to_string_lossy());
    let stem = if args.input == Path::new("-") { "value".into() } else { stem };
    let chosen = args.choose.segment.as_deref();
    let copies = args.max_size.is_none() && args.compress.compress.is_none();
    let finds_equal = !copies && document.archive().is_some();
    document.show_progress("splitting", 1 + u64::from(finds_equal));
    let mut files = Vec::new();
    match args.max_size {
        None => {
            let sections: Vec<u64> = document
                .sections(chosen)?
                .map(|section| Ok(section?.number))
                .collect::<Result<_>>()?;
            check_free(args, &stem, sections.len())?;
            for (at, &number) in sections.iter().enumerate() {
                let section = document.section(number)?;
                let file = shard(&args.directory, &stem, at, sections.len());
                let target = target(&file, args, &section)?;
                let mut to = ArchiveTarget::new(&target)?;
                match section.segment().filter(|_| !target.recompresses) {
                    Some(segment) => to.copy(section.name(), segment),
                    None => to.save(section.name(), &Written::whole(&section)),
                }
                .of(&document.name)?;
                to.finish()?;
                files.push(file);
            }
        }
        Some(max) => {
            let section = document.only(chosen)?;
            let shards = Shards::new(&section, max)?;
            check_free(args, &stem, shards.count)?;
            for at in 0..shards.count {
                let file = shard(&args.directory, &stem, at, shards.count);
                let mut to = ArchiveTarget::new(&target(&file, args, &section)?)?;
                let value = shards.value(&section, &section.root, at);
                to.save(section.name(), &value).of(&document.name)?;
                to.finish()?;
                files.push(file);
            }
        }
    }
    let names: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    if args.json.json {
        out.json_rows(&names)?;
    } else {
        for name in &names {
            writeln!(out, "{}", escaped(name))?;
        }
    }
    Ok(Status::Good)
}

fn target(file: &Path, args: &Split, section: &Section<'_>) -> Result<Target> {
    let mut target = Target::new(file, args.writing)?;
    target.is_part = true;
    if let Some(segment) = section.segment() {
        target.finds_equal(true);
        let options = target.options.with_alignment(segment.alignment());
        target.options = with_chunks(options, section.compressed_chunks());
    }
    target.compress(args.compress.compress);
    Ok(target)
}

/// Checks that the shards may be written.
///
/// # Errors
/// If a shard exists already, and `--no-clobber` was given.
fn check_free(args: &Split, stem: &str, count: usize) -> Result<()> {
    if args.writing.no_clobber {
        (0..count)
            .try_for_each(|at| refuse_to_replace(&shard(&args.directory, stem, at, count)))?;
    }
    Ok(())
}

/// Returns the name of a shard, such as `model-00001-of-00003.tenarc`.
fn shard(directory: &Path, stem: &str, at: usize, count: usize) -> PathBuf {
    directory.join(format!("{stem}-{:05}-of-{count:05}.tenarc", at + 1))
}

/// The shard of each unit. A unit is a tensor, a sequence that is stored as columns, or a tag with tensors inside.
/// Columns hold the elements of all rows together, and the meaning of a tag may depend on all of its content.
struct Shards {
    /// The number of the shard, by the position of the unit in the metadata.
    places: HashMap<usize, usize>,
    count: usize,
}

impl Shards {
    /// Fills one shard after the other, in the order of the units. Units that share a buffer go to the same shard.
    ///
    /// # Errors
    /// If the metadata is damaged.
    fn new(section: &Section<'_>, max: u64) -> Result<Self> {
        let mut shards = Self { places: HashMap::new(), count: 1 };
        let (mut filled, mut buffers) = (0u64, HashMap::new());
        let mut units = Vec::new();
        find_units(&section.root, &mut units);
        for unit in units {
            let blobs = section.blobs(unit)?;
            let shared = blobs.iter().find_map(|blob| buffers.get(&blob.buffer?).copied());
            let (mut len, mut own) = (0u64, HashSet::new());
            for blob in &blobs {
                let is_new = blob
                    .buffer
                    .is_none_or(|buffer| !buffers.contains_key(&buffer) && own.insert(buffer));
                len = len.saturating_add(if is_new { blob.len } else { 0 });
            }
            let place = shared.unwrap_or_else(|| {
                if filled > 0 && filled.saturating_add(len) > max {
                    filled = 0;
                    shards.count += 1;
                }
                shards.count - 1
            });
            if place == shards.count - 1 {
                filled = filled.saturating_add(len);
            }
            buffers.extend(own.into_iter().map(|buffer| (buffer, place)));
            shards.places.insert(unit.range.start, place);
        }
        Ok(shards)
    }

    /// Returns the value that shard number `at` holds: all metadata, and the units of this shard.
    fn value<'a>(&self, section: &'a Section<'a>, node: &'a Node, at: usize) -> Written<'a> {
        match (&node.kind, self.places.get(&node.range.start)) {
            (Kind::Array(items), _) => {
                Written::Array(items.iter().map(|item| self.value(section, item, at)).collect())
            }
            (Kind::Map(entries), _) => {
                let entry =
                    |(key, value)| (WrittenKey::of(section, key), self.value(section, value, at));
                Written::Map(entries.iter().map(|(key, value)| entry((key, value))).collect())
            }
            (_, Some(place)) if *place != at => Written::Value(Value::Simple(ELSEWHERE)),
            _ => Written::Same(section, node),
        }
    }
}

fn find_units<'n>(node: &'n Node, found: &mut Vec<&'n Node>) {
    match &node.kind {
        Kind::Array(items) => items.iter().for_each(|item| find_units(item, found)),
        Kind::Map(entries) => entries.iter().for_each(|(_, value)| find_units(value, found)),
        Kind::Payload(_) | Kind::Columns(_) => found.push(node),
        Kind::Tag(..) if node.holds_payload() => found.push(node),
        Kind::Leaf | Kind::Tag(..) => {}
    }
}
