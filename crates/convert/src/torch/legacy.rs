//! Reads files of torch 0.1 to 1.5. They are not zip files, but five pickles and then the storages. The pickles are a
//! magic number, the version of the format, the sizes of numbers on the machine, the value, and the names of the
//! storages in their order. Each storage is the number of its elements in 8 bytes, and then the elements. All numbers
//! are little-endian.

use std::collections::HashMap;
use std::ops::Range;

use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::pickle::{At, Heap, Machine, Object, Value};
use crate::source;

/// The magic number as a pickle of any protocol ends: `LONG1` with 10 bytes, and `STOP`. It must end within the first
/// `MAGIC_WITHIN` bytes of the file.
const MAGIC: &[u8] = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
const MAGIC_WITHIN: usize = 32;

const VERSION: i64 = 1001;

/// The length of the longest pickle that is read, and the number of bytes that are read of a pickle at first.
const MAX_PICKLE: u64 = 64 << 20;
const WINDOW: u64 = 64 << 10;

/// Whether a file is one that torch wrote before version 1.6, given the first bytes of the file. Later files are zip
/// files.
pub fn is_legacy(start: &[u8]) -> bool {
    let start = start.get(..MAGIC_WITHIN).unwrap_or(start);
    start.starts_with(b"\x80") && start.windows(MAGIC.len()).any(|window| window == MAGIC)
}

/// The storages of a file from before torch 1.6.
#[derive(Debug, Default)]
pub struct Storages {
    /// The bytes of each storage in the file, by its name.
    pub places: HashMap<String, Range<u64>>,
    /// The number of bytes that follow the last storage.
    pub rest: u64,
}

/// Reads the value of a file, and finds the storages.
pub fn read<S: ReadAt + ?Sized>(source: &S, machine: &mut Machine) -> Result<(Value, Storages)> {
    let size = source.size().map_err(Error::io)?;
    let mut at = 0;
    let mut next = |machine: &mut Machine, what: &str| {
        let (value, len) =
            pickle(source, machine, at, size).map_err(|error| error.in_field(what))?;
        at += len;
        Ok::<_, Error>(value)
    };
    next(machine, "magic number")?;
    let version = next(machine, "version")?;
    if !matches!(version, Value::Int(VERSION)) {
        let found = match version {
            Value::Int(found) => found.to_string(),
            _ => "a value that is not an integer".to_owned(),
        };
        let what =
            format!("expected version {VERSION} of the format before torch 1.6, found {found}");
        return Err(Error::new(Category::Version, what));
    }
    // This pickle gives the sizes of numbers on the machine. They do not matter, because those in the file are fixed.
    next(machine, "machine")?;
    let root = next(machine, "value")?;
    let names = next(machine, "names of storages")?;
    let storages = storages(source, &machine.heap, names, at, size)?;
    Ok((root, storages))
}

/// Reads the pickle at position `at`, and returns its value and its length. Only the end of a pickle shows its length.
/// So this reads a part of the file, and then larger ones until the whole pickle is in it.
fn pickle<S: ReadAt + ?Sized>(
    source: &S,
    machine: &mut Machine,
    at: u64,
    size: u64,
) -> Result<(Value, u64)> {
    let left = size.saturating_sub(at).min(MAX_PICKLE);
    // If the file is in memory, nothing must be read again, so the first part is everything that is left.
    let mut window = if source.contents().is_some() { left } else { left.min(WINDOW) };
    loop {
        let bytes = source::bytes(source, at, window)?;
        let before = machine.heap.state();
        match machine.read_first(&bytes, "") {
            Ok((value, len)) => return Ok((value, len as u64)),
            Err(error) if error.category() == Category::Eof && window < left => {
                machine.heap.restore(before);
                window = window.saturating_mul(4).min(left);
            }
            Err(error) if error.category() == Category::Eof && left == MAX_PICKLE => {
                let what = format!("the pickle has more than {MAX_PICKLE} bytes");
                return Err(Error::limit(what));
            }
            Err(error) => return Err(error.moved_by(at)),
        }
    }
}

fn storages<S: ReadAt + ?Sized>(
    source: &S,
    heap: &Heap,
    names: Value,
    mut at: u64,
    size: u64,
) -> Result<Storages> {
    let wrong = || Error::data("expected a list of the names of storages");
    let Some(Object::List(names)) = heap.object(names) else { return Err(wrong()) };
    let mut known = HashMap::new();
    for object in &heap.objects {
        if let Object::Storage(storage) = object
            && let At::Member(name) = &storage.at
        {
            known.insert(&**name, storage);
        }
    }
    let mut found = Storages::default();
    for name in names {
        let Some(Object::Text(name)) = heap.object(*name) else { return Err(wrong()) };
        let fail = |error: Error| error.at(at).in_field(format!("storage {}", name.escape_debug()));
        let storage = known.get(&**name).ok_or_else(|| {
            fail(Error::data("the value uses no storage of this name and a known type"))
        })?;
        let width = storage.elements.dtype().bits().unwrap_or(8) as u64 / 8;
        let mut count = [0; 8];
        source::read_exact(source, &mut count, at).map_err(fail)?;
        let count = u64::from_le_bytes(count);
        if count != storage.count {
            let claimed = storage.count;
            let what = format!("expected {claimed} elements, as the value says, found {count}");
            return Err(fail(Error::damaged(what)));
        }
        let start = at.saturating_add(8);
        let end = count.checked_mul(width).and_then(|len| start.checked_add(len));
        let Some(end) = end.filter(|&end| end <= size) else {
            let left = size.saturating_sub(start);
            return Err(fail(Error::eof(&format!("{count} elements, found {left} bytes"))));
        };
        if found.places.insert(name.to_string(), start..end).is_some() {
            return Err(fail(Error::damaged("two storages have this name")));
        }
        at = end;
    }
    found.rest = size.saturating_sub(at);
    Ok(found)
}
