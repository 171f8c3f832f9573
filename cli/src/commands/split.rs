//! `split`: writes each value to an archive of its own, or the tensors of one value to several.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use tenarc::Value;

use crate::args::Split;
use crate::document::{Document, Section};
use crate::failure::{Of, Result, Status};
use crate::node::{Kind, Node};
use crate::output::{ArchiveTarget, Out, Target};
use crate::text::escaped;
use crate::written::{Written, WrittenKey};

/// CBOR's simple value *undefined*, in place of a tensor that is in another shard.
pub const ELSEWHERE: u8 = 23;

pub fn run(args: &Split, out: &mut Out, quiet: bool) -> Result<Status> {
    let document = Document::open(&args.input, &args.read.reading())?;
    document.refuse_losses(false)?;
    document.show_progress("splitting", quiet);
    std::fs::create_dir_all(&args.directory).of(crate::input::shown(&args.directory))?;
    let stem = args.input.file_stem().map_or("value".into(), |stem| stem.to_string_lossy());
    let stem = if args.input == Path::new("-") { "value".into() } else { stem };
    let chosen = args.choose.segment.as_deref();
    let mut files = Vec::new();
    match args.max_size {
        None => {
            let sections: Vec<u64> = document
                .sections(chosen)?
                .map(|section| Ok(section?.number))
                .collect::<Result<_>>()?;
            for (at, &number) in sections.iter().enumerate() {
                let section = document.section(number)?;
                let file = shard(&args.directory, &stem, at, sections.len());
                let mut to = ArchiveTarget::new(&target(&file, args, &section))?;
                match section.segment() {
                    Some(segment) => to.copy(section.name(), segment),
                    None => to.save(None, &Written::whole(&section)),
                }
                .of(&document.name)?;
                to.finish()?;
                files.push(file);
            }
        }
        Some(max) => {
            let section = document.only(chosen)?;
            let shards = Shards::new(&section, max);
            for at in 0..shards.count {
                let file = shard(&args.directory, &stem, at, shards.count);
                let mut to = ArchiveTarget::new(&target(&file, args, &section))?;
                let value = shards.value(&section, &section.root, at);
                to.save(section.name(), &value).of(&document.name)?;
                to.finish()?;
                files.push(file);
            }
        }
    }
    let names: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    if args.json.json {
        out.json(&names)?;
    } else {
        for name in &names {
            writeln!(out, "{}", escaped(name))?;
        }
    }
    Ok(Status::Good)
}

fn target(file: &Path, args: &Split, section: &Section<'_>) -> Target {
    let mut target = Target::new(file, !args.no_sync);
    if let Some(segment) = section.segment() {
        target.options = target.options.with_alignment(segment.alignment()).with_dedup(true);
    }
    target
}

/// The name of a shard, such as `model-00001-of-00003.tenarc`.
fn shard(directory: &Path, stem: &str, at: usize, count: usize) -> PathBuf {
    directory.join(format!("{stem}-{:05}-of-{count:05}.tenarc", at + 1))
}

/// Which shard each tensor goes to.
struct Shards {
    /// The number of the shard, by the position of the tensor in the metadata.
    places: HashMap<usize, usize>,
    count: usize,
}

impl Shards {
    /// Fills one shard after the other, in the order of the tensors. Tensors that share a buffer go to the
    /// same shard.
    fn new(section: &Section<'_>, max: u64) -> Self {
        let mut shards = Self { places: HashMap::new(), count: 1 };
        let (mut filled, mut buffers) = (0u64, HashMap::new());
        visit(&section.root, &mut |node| {
            let Kind::Payload(payload) = &node.kind else { return };
            let shared = payload.buffer.and_then(|buffer| buffers.get(&buffer).copied());
            let place = shared.unwrap_or_else(|| {
                if filled > 0 && filled.saturating_add(payload.byte_len) > max {
                    filled = 0;
                    shards.count += 1;
                }
                filled = filled.saturating_add(payload.byte_len);
                shards.count - 1
            });
            if let Some(buffer) = payload.buffer {
                buffers.insert(buffer, place);
            }
            shards.places.insert(node.range.start, place);
        });
        shards
    }

    /// The value as shard number `at` holds it: all metadata, and the tensors of this shard.
    fn value<'a>(&self, section: &'a Section<'a>, node: &'a Node, at: usize) -> Written<'a> {
        match &node.kind {
            Kind::Leaf => Written::Same(section, node),
            Kind::Payload(_) if self.places.get(&node.range.start) == Some(&at) => {
                Written::Same(section, node)
            }
            Kind::Payload(_) => Written::Value(Value::Simple(ELSEWHERE)),
            Kind::Array(items) => {
                Written::Array(items.iter().map(|item| self.value(section, item, at)).collect())
            }
            Kind::Map(entries) => {
                let entry =
                    |(key, value)| (WrittenKey::of(section, key), self.value(section, value, at));
                Written::Map(entries.iter().map(|(key, value)| entry((key, value))).collect())
            }
            // A tag's meaning may depend on all of its content, so it is not split: the first shard gets it.
            // Nor are columns, which have the elements of all rows in common.
            Kind::Tag(..) | Kind::Columns(_) if at == 0 || !node.holds_payload() => {
                Written::Same(section, node)
            }
            Kind::Tag(..) | Kind::Columns(_) => Written::Value(Value::Simple(ELSEWHERE)),
        }
    }
}

fn visit(node: &Node, each: &mut dyn FnMut(&Node)) {
    each(node);
    match &node.kind {
        Kind::Array(items) => items.iter().for_each(|item| visit(item, each)),
        Kind::Map(entries) => entries.iter().for_each(|(_, value)| visit(value, each)),
        Kind::Leaf | Kind::Payload(_) | Kind::Tag(..) | Kind::Columns(_) => {}
    }
}

/// Parses a number of bytes: `5GB`, `512 MiB`, `1000`.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (letter, base): (&str, u64) = match unit.strip_suffix("ib") {
        Some(letter) => (letter, 1024),
        None => (unit.strip_suffix('b').unwrap_or(&unit), 1000),
    };
    let power = ["", "k", "m", "g", "t"].iter().position(|known| *known == letter);
    let power = power.and_then(|power| u32::try_from(power).ok());
    let power = power
        .ok_or_else(|| format!("unknown unit {unit:?}: use k, M, G, T, KiB, MiB, GiB, TiB"))?;
    let number: u64 = number.parse().map_err(|_| "expected a number of bytes".to_owned())?;
    let size = base.checked_pow(power).and_then(|unit| number.checked_mul(unit));
    size.filter(|&size| size > 0).ok_or_else(|| "expected 1 to 2^64 - 1 bytes".to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn parses_sizes_with_units() {
        let size = super::size;
        assert_eq!((size("7"), size("2k"), size("2 KiB")), (Ok(7), Ok(2000), Ok(2048)));
        assert_eq!((size("5GB"), size("1gib")), (Ok(5_000_000_000), Ok(1 << 30)));
        for wrong in
            ["", "0", "-1", "k", "1 XB", "1kk", "1é", "99999999T", "9999999999999999999999"]
        {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
