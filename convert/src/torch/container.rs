//! What holds the pickle and the storages: a zip file, of which this says which of its members is what, or a file of torch
//! before 1.6.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::layout::Home;
use super::legacy::{self, Storages};
use super::pickle::{Machine, Value};
use crate::zip::{Bytes as _, Contents, Directory, Member};
use crate::{Losses, source};

/// The longest pickle that is read.
const MAX_PICKLE: u64 = 64 << 20;

/// The longest of the other members that say something.
const MAX_NOTE: u64 = 64;

/// The newest version of the format, as of torch 2.15.
const MAX_VERSION: u32 = 10;

/// Members that torch writes for itself.
const OWN: [&str; 6] = [
    "data.pkl",
    "version",
    "byteorder",
    ".format_version",
    ".storage_alignment",
    ".data/serialization_id",
];

/// Of `TorchScript`: the constants of the program, which are data, and the rest of it, which is not.
const CONSTANTS: &str = "constants.pkl";
const PARTS_OF_PROGRAM: [&str; 2] = ["code/", "traced_inputs"];
const PROGRAM: [&str; 3] = ["bytecode.pkl", "mobile_debug_handles.pkl", "callstack_debug_map.pkl"];

/// How to get rid of what is not read.
const SAVE_AGAIN: &str =
    "save it again with a newer torch: torch.save(torch.load(path, weights_only=True), path)";

/// A file of the format.
#[derive(Debug, Default)]
pub struct Container {
    pub members: Vec<Member>,
    /// The number of each by the name it has behind the name of the file.
    by_name: HashMap<String, usize>,
    /// Whether elements are big-endian.
    pub big_endian: bool,
    /// Whether there are checksums.
    pub checksums: bool,
    /// Whether it is a `TorchScript` program with its tensors.
    pub is_program: bool,
    /// The storages of a file that is no zip file.
    pub storages: Storages,
}

/// The values in a file.
#[derive(Debug)]
pub struct Roots {
    pub data: Value,
    /// The constants of a program, if it is one.
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

    /// Reads the list of members, and what they say of the file.
    fn of_zip<S: ReadAt + ?Sized>(source: &S) -> Result<Self> {
        let Directory { mut members, .. } = Directory::read(source)?;
        // torch.serialization.set_crc32_options(False) leaves all of them empty.
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
            // Older files have none, and are of machines that wrote this one.
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
                let what = format!("version {found} of the format, 1 to {MAX_VERSION} are read");
                Err(Error::new(Category::Version, what))
            }
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Where a storage is, and how many bytes it has.
    pub fn storage(&self, key: &str) -> Option<(Home, u64)> {
        if let Some(place) = self.storages.places.get(key) {
            return Some((Home::Raw(place.start), place.end - place.start));
        }
        let number = self.find(key)?;
        Some((Home::Member(number), self.members.get(number)?.byte_len()))
    }

    /// How many bytes the file has for its value, at most.
    pub fn byte_len(&self) -> u64 {
        let members = self.members.iter().map(Member::byte_len);
        let places = self.storages.places.values().map(|place| place.end - place.start);
        members.chain(places).fold(0, u64::saturating_add)
    }

    /// Tells what is in the file besides its value and these storages.
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

    /// All of a member, which is no larger than `limit`.
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

    /// The members that are neither torch's own nor storages.
    fn strangers(&self) -> impl Iterator<Item = &str> {
        self.members.iter().enumerate().filter_map(|(at, member)| {
            let own = |name: &&str| self.find(name) == Some(at);
            let strange = self.storage_key(at).is_none() && !OWN.iter().any(own);
            (strange && !self.is_code(at)).then(|| member.name())
        })
    }

    /// Whether a member is a part of a program, and holds no tensors.
    fn is_code(&self, number: usize) -> bool {
        let inner = self.inner(number);
        let is_part = |name: &str| {
            name == CONSTANTS
                || PROGRAM.contains(&name)
                || PARTS_OF_PROGRAM.iter().any(|part| name.starts_with(part))
        };
        self.is_program && inner.is_some_and(is_part)
    }

    /// The name of a member behind that of the file.
    fn inner(&self, number: usize) -> Option<&str> {
        let (_, inner) = self.members.get(number)?.name().split_once('/')?;
        (self.find(inner) == Some(number)).then_some(inner)
    }

    /// The name of the storage that a member is, if it is one.
    fn storage_key(&self, number: usize) -> Option<&str> {
        let inner = self.inner(number)?;
        let is_storage =
            inner.starts_with(DATA) || self.is_program && inner.starts_with(OF_CONSTANTS);
        is_storage.then_some(inner)
    }
}

/// What the names of storages start with, for the values and for the constants of a program.
const DATA: &str = "data/";
const OF_CONSTANTS: &str = "constants/";

/// A member that is stored as it is, which all of torch's are, ready to be read.
pub fn stored<'a, S: ReadAt + ?Sized>(
    source: &'a S,
    member: &'a Member,
) -> Result<Contents<'a, S>> {
    if member.is_deflated() {
        let what = "the member is compressed, which torch does not do; zip the file again without";
        return Err(Error::data(what));
    }
    Contents::open(source, member)
}

fn contents<S: ReadAt + ?Sized>(source: &S, member: &Member, limit: u64) -> Result<Vec<u8>> {
    let found = member.byte_len();
    if found > limit {
        return Err(Error::limit(format!("a member of {found} bytes, {limit} are allowed")));
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

/// What stands before the names of all members: that of the file when it was written.
fn prefix(members: &[Member]) -> Result<&str> {
    let mut found = members.iter().filter_map(|member| {
        let prefix = member.name().strip_suffix("data.pkl")?;
        (prefix.ends_with('/') && prefix.matches('/').count() == 1).then_some(prefix)
    });
    let prefix = found.next().ok_or_else(|| {
        Error::data("a zip file, but none that torch.save wrote: it has no member `…/data.pkl`")
    })?;
    match found.next() {
        None => Ok(prefix),
        Some(_) => Err(Error::damaged("the file has two members `…/data.pkl`")),
    }
}

/// The first bytes of a file.
fn start<S: ReadAt + ?Sized>(source: &S) -> Result<Vec<u8>> {
    let len = source.size().map_err(Error::io)?.min(512);
    source::bytes(source, 0, len).map(Cow::into_owned)
}

/// Recognises what once had the same name.
fn refuse_others(start: &[u8]) -> Result<()> {
    let what = if start.get(257..262) == Some(b"ustar") {
        "a tar file, as torch before 0.2 wrote them"
    } else if start.starts_with(b"\x80") {
        "a pickle without a zip file around it"
    } else {
        return Ok(());
    };
    Err(Error::data(format!("{what}, is not read; {SAVE_AGAIN}")))
}
