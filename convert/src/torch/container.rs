//! The zip file: which of its members is what.

use std::collections::HashMap;

use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use crate::zip::{Bytes as _, Contents, Directory, Member};

/// The longest pickle that is read.
const MAX_PICKLE: u64 = 64 << 20;

/// The longest of the other members that say something.
const MAX_NOTE: u64 = 64;

/// The newest version of the format, as of torch 2.15.
const MAX_VERSION: u32 = 10;

/// What torch 0.1 to 1.5 begin a file with: a pickled number.
const OLD_MAGIC: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

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
#[derive(Debug)]
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
}

impl Container {
    /// Reads the list of members, and what they say of the file.
    pub fn read<S: ReadAt + ?Sized>(source: &S) -> Result<Self> {
        refuse_others(source)?;
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
        let mut container =
            Self { members, by_name, big_endian: false, checksums, is_program: false };
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

    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The pickle.
    pub fn pickle<S: ReadAt + ?Sized>(&self, source: &S) -> Result<Vec<u8>> {
        let found = self.small(source, "data.pkl", MAX_PICKLE)?;
        found.ok_or_else(|| Error::data("the file has no member `data.pkl`"))
    }

    /// The pickle of a program's constants, if it is one.
    pub fn constants<S: ReadAt + ?Sized>(&self, source: &S) -> Result<Option<Vec<u8>>> {
        self.small(source, CONSTANTS, MAX_PICKLE)
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
    pub fn strangers(&self) -> impl Iterator<Item = &str> {
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
    pub fn storage_key(&self, number: usize) -> Option<&str> {
        let inner = self.inner(number)?;
        let is_storage =
            inner.starts_with(DATA) || self.is_program && inner.starts_with(OF_CONSTANTS);
        is_storage.then_some(inner)
    }
}

/// What the names of storages start with, for the values and for the constants of a program.
pub const DATA: &str = "data/";
pub const OF_CONSTANTS: &str = "constants/";

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

/// Recognises what once had the same name.
fn refuse_others<S: ReadAt + ?Sized>(source: &S) -> Result<()> {
    let mut start = [0; 512];
    let mut len = 0;
    while let Some(rest) = start.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match source.read_at(rest, len as u64) {
            Ok(0) => break,
            Ok(read) => len += read.min(rest.len()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(error)),
        }
    }
    let start = start.get(..len).unwrap_or_default();
    let what = if start.starts_with(OLD_MAGIC) {
        "a file of torch before 1.6, without a zip file around it"
    } else if start.get(257..262) == Some(b"ustar") {
        "a tar file, as torch before 0.2 wrote them"
    } else if start.starts_with(b"\x80") {
        "a pickle without a zip file around it"
    } else {
        return Ok(());
    };
    Err(Error::data(format!("{what}, is not read; {SAVE_AGAIN}")))
}
