//! The container of the pickle and the storages: a zip file, or a file of torch before 1.6. This module finds the entry
//! of a zip file ("member") that holds the pickle, and those that hold storages.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::legacy::{self, Storages};
use super::pickle::{Machine, Value};
use crate::zip::{Bytes as _, Contents, Directory, Member};
use crate::{Losses, source};

/// The length of the longest pickle that is read, in bytes.
const MAX_PICKLE: u64 = 64 << 20;

/// The length of the longest `version` or `byteorder` member that is read, in bytes.
const MAX_NOTE: u64 = 64;

/// The newest version of the format, as of torch 2.15.
const MAX_VERSION: u32 = 10;

/// The members that torch writes beside the storages.
const OWN: [&str; 6] = [
    "data.pkl",
    "version",
    "byteorder",
    ".format_version",
    ".storage_alignment",
    ".data/serialization_id",
];

/// The members that only a `TorchScript` file has. The constants of the program are data, and are read. The other
/// members are code, and are not read.
const CONSTANTS: &str = "constants.pkl";
const PARTS_OF_PROGRAM: [&str; 2] = ["code/", "traced_inputs"];
const PROGRAM: [&str; 3] = ["bytecode.pkl", "mobile_debug_handles.pkl", "callstack_debug_map.pkl"];

/// The advice in errors about formats that are not read.
const SAVE_AGAIN: &str =
    "save it again with a newer torch: torch.save(torch.load(path, weights_only=True), path)";

/// The members of a zip file, or the storages of a file of torch before 1.6.
#[derive(Debug, Default)]
pub struct Container {
    pub members: Vec<Member>,
    /// The index in `members` for each name. Names are without the prefix that all members share.
    by_name: HashMap<String, usize>,
    /// Whether elements are big-endian.
    pub big_endian: bool,
    /// Whether the zip file has checksums.
    pub checksums: bool,
    /// Whether the file is a `TorchScript` program with its tensors.
    pub is_program: bool,
    /// The storages of a file that is not a zip file.
    pub storages: Storages,
}

/// The place of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// The member of the zip file with this number.
    Member(usize),
    /// The bytes from this position on, in a file that is not a zip file.
    Raw(u64),
    /// The object of the pickle with this number.
    Object(usize),
}

/// The values that the pickles of a file make.
#[derive(Debug)]
pub struct Roots {
    pub data: Value,
    /// The constants of the program, if the file is a `TorchScript` program.
    pub constants: Option<Value>,
}

impl Container {
    /// Reads the pickles of a file, and finds its storages.
    pub fn open<S: ReadAt + ?Sized>(source: &S, machine: &mut Machine) -> Result<(Self, Roots)> {
        let start = start(source)?;
        if legacy::is_legacy(&start) {
            let (data, storages) = legacy::read(source, machine)?;
            return Ok((Self { storages, ..Self::default() }, Roots { data, constants: None }));
        }
        refuse_others(&start)?;
        let container = Self::of_zip(source)?;
        let bytes = container.small(source, "data.pkl", MAX_PICKLE)?;
        let bytes = bytes.ok_or_else(|| Error::data("the file has no member `data.pkl`"))?;
        let data = machine.read(&bytes, DATA).map_err(|error| error.in_field("data.pkl"))?;
        let constants = container.small(source, CONSTANTS, MAX_PICKLE)?.map(|bytes| {
            machine.read(&bytes, OF_CONSTANTS).map_err(|error| error.in_field(CONSTANTS))
        });
        Ok((container, Roots { data, constants: constants.transpose()? }))
    }

    /// Reads the list of members, and the members `version` and `byteorder`.
    fn of_zip<S: ReadAt + ?Sized>(source: &S) -> Result<Self> {
        let Directory { mut members, .. } = Directory::read(source)?;
        // If torch.serialization.set_crc32_options(False) was called, torch writes no checksums.
        let checksums = !members.iter().all(Member::may_lack_checksum);
        if !checksums {
            members.iter_mut().for_each(Member::without_checksum);
        }
        let prefix = prefix(&members)?.to_owned();
        let by_name = members
            .iter()
            .enumerate()
            .filter_map(|(at, member)| Some((member.name().strip_prefix(&prefix)?.to_owned(), at)))
            .collect();
        let mut container = Self { members, by_name, checksums, ..Self::default() };
        container.is_program = container.find(CONSTANTS).is_some();
        container.version(source)?;
        container.big_endian = match container.note(source, "byteorder")?.as_deref() {
            // Older files have no member `byteorder`. They are little-endian.
            None | Some(b"little") => false,
            Some(b"big") => true,
            Some(other) => {
                let found = crate::shown::shown(other);
                let what = format!("expected `little` or `big`, found {found}");
                return Err(Error::data(what).in_field("byteorder"));
            }
        };
        Ok(container)
    }

    fn version<S: ReadAt + ?Sized>(&self, source: &S) -> Result<()> {
        let note = self.note(source, "version")?;
        let note = note.ok_or_else(|| Error::data("the file has no member `version`"))?;
        let number = std::str::from_utf8(&note).ok().and_then(|text| text.trim().parse().ok());
        match number {
            Some(1..=MAX_VERSION) => Ok(()),
            _ => {
                let found = crate::shown::shown(&note);
                let what = format!("expected format version 1 to {MAX_VERSION}, found {found}");
                Err(Error::new(Category::Version, what))
            }
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns where a storage is, and its length in bytes.
    pub fn storage(&self, key: &str) -> Option<(Home, u64)> {
        if let Some(place) = self.storages.places.get(key) {
            return Some((Home::Raw(place.start), place.end - place.start));
        }
        let number = self.find(key)?;
        Some((Home::Member(number), self.members.get(number)?.byte_len()))
    }

    /// Returns the length of all members or storages together, in bytes.
    pub fn byte_len(&self) -> u64 {
        let members = self.members.iter().map(Member::byte_len);
        let places = self.storages.places.values().map(|place| place.end - place.start);
        members.chain(places).fold(0, u64::saturating_add)
    }

    /// Reports the storages that are not `used`, and everything else in the file that is not read.
    pub fn not_used(&self, used: &HashSet<&str>, losses: &mut Losses) {
        let unused = "a storage that the pickle does not use";
        for (number, member) in self.members.iter().enumerate() {
            if self.storage_key(number).is_some_and(|key| !used.contains(key)) {
                losses.add(member.name(), unused);
            }
        }
        for name in self.strangers() {
            losses.add(name, "a member that is neither torch's own nor a storage");
        }
        let places = self.storages.places.keys().filter(|key| !used.contains(key.as_str()));
        let mut places: Vec<_> = places.collect();
        places.sort_unstable();
        for key in places {
            losses.add(key, unused);
        }
        if self.storages.rest > 0 {
            let what = format!("{} bytes that follow the last storage", self.storages.rest);
            losses.add("", what);
        }
    }

    fn note<S: ReadAt + ?Sized>(&self, source: &S, name: &str) -> Result<Option<Vec<u8>>> {
        self.small(source, name, MAX_NOTE)
    }

    /// Reads a whole member of at most `limit` bytes. `None` if the file has no member of this name.
    fn small<S: ReadAt + ?Sized>(
        &self,
        source: &S,
        name: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>> {
        let Some(member) = self.find(name).and_then(|at| self.members.get(at)) else {
            return Ok(None);
        };
        contents(source, member, limit).map(Some).map_err(|error| error.in_field(name))
    }

    /// Returns the names of the members that torch does not write.
    fn strangers(&self) -> impl Iterator<Item = &str> {
        self.members.iter().enumerate().filter_map(|(at, member)| {
            let own = |name: &&str| self.find(name) == Some(at);
            let strange = self.storage_key(at).is_none() && !OWN.iter().any(own);
            (strange && !self.is_code(at)).then(|| member.name())
        })
    }

    /// Whether a member belongs to a `TorchScript` program and is not a storage.
    fn is_code(&self, number: usize) -> bool {
        let inner = self.inner(number);
        let is_part = |name: &str| {
            name == CONSTANTS
                || PROGRAM.contains(&name)
                || PARTS_OF_PROGRAM.iter().any(|part| name.starts_with(part))
        };
        self.is_program && inner.is_some_and(is_part)
    }

    /// Returns the name of a member without the prefix that all members share.
    fn inner(&self, number: usize) -> Option<&str> {
        let (_, inner) = self.members.get(number)?.name().split_once('/')?;
        (self.find(inner) == Some(number)).then_some(inner)
    }

    /// Returns the name of the storage that a member holds. `None` if the member is not a storage.
    fn storage_key(&self, number: usize) -> Option<&str> {
        let inner = self.inner(number)?;
        let is_storage =
            inner.starts_with(DATA) || self.is_program && inner.starts_with(OF_CONSTANTS);
        is_storage.then_some(inner)
    }
}

/// The start of the names of storages: of those that `data.pkl` uses, and of those that `constants.pkl` uses.
const DATA: &str = "data/";
const OF_CONSTANTS: &str = "constants/";

/// Opens a member that is not compressed. torch never compresses members, so a compressed one is an error.
pub fn stored<'a, S: ReadAt + ?Sized>(
    source: &'a S,
    member: &'a Member,
) -> Result<Contents<'a, S>> {
    if member.is_deflated() {
        let what = "the member is compressed, but torch never compresses: zip the file again \
                    without compression";
        return Err(Error::unsupported(what));
    }
    Contents::open(source, member)
}

fn contents<S: ReadAt + ?Sized>(source: &S, member: &Member, limit: u64) -> Result<Vec<u8>> {
    let found = member.byte_len();
    if found > limit {
        return Err(Error::limit(format!(
            "the member has {found} bytes, at most {limit} are read"
        )));
    }
    let mut contents = stored(source, member)?;
    let mut bytes = vec![0; usize::try_from(found).unwrap_or(0)];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match contents.read(rest)? {
            0 => return Err(Error::eof("the rest of a member")),
            read => done += read,
        }
    }
    contents.finish()?;
    Ok(bytes)
}

/// Returns the prefix that the names of all members share: the name that the file had when it was written, and a slash.
fn prefix(members: &[Member]) -> Result<&str> {
    let mut found = members.iter().filter_map(|member| {
        let prefix = member.name().strip_suffix("data.pkl")?;
        (prefix.ends_with('/') && prefix.matches('/').count() == 1).then_some(prefix)
    });
    let prefix = found.next().ok_or_else(|| {
        Error::data("torch.save did not write this zip file: it has no member `…/data.pkl`")
    })?;
    match found.next() {
        None => Ok(prefix),
        Some(_) => Err(Error::damaged("the file has two members `…/data.pkl`")),
    }
}

/// Reads the first 512 bytes of a file, or all if it is shorter.
fn start<S: ReadAt + ?Sized>(source: &S) -> Result<Vec<u8>> {
    let len = source.size().map_err(Error::io)?.min(512);
    source::bytes(source, 0, len).map(Cow::into_owned)
}

/// Refuses other formats whose files also end in `.pt`, with an error that names the format.
fn refuse_others(start: &[u8]) -> Result<()> {
    let what = if start.get(257..262) == Some(b"ustar") {
        "a tar file, as torch before 0.2 wrote it"
    } else if start.starts_with(b"\x80") {
        "a pickle without a zip file around it"
    } else {
        return Ok(());
    };
    Err(Error::data(format!("expected a zip file, found {what}; {SAVE_AGAIN}")))
}
