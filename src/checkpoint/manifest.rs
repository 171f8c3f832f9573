//! `SHA256SUMS`: the SHA-256 sums of all checkpoints, in the format of `sha256sum -c`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write as _};
use std::path::Path;

use super::name::Name;
use crate::error::{Error, Result, shown};
use crate::io::atomic::{AtomicFile, SyncLevel};

pub const FILE: &str = "SHA256SUMS";

/// The maximum length of a manifest in bytes, enough for a million checkpoints.
const MAX_LEN: u64 = 256 << 20;

/// The content of a manifest without sums. An empty file would be indistinguishable from a truncated one.
const NOTHING: &str = "# no checkpoint is complete\n";

type Sum = [u8; 32];

/// The sums of all complete checkpoints.
#[derive(Default)]
pub struct Manifest(BTreeMap<Name, Sum>);

impl Manifest {
    /// Reads the manifest. `None` if there is no such file.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(FILE);
        let failed = |error| Error::io_at(error, "cannot read", &path);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            result => result.map_err(failed)?,
        };
        let mut text = String::new();
        file.take(MAX_LEN + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_LEN {
            return Err(Error::limit(format!("{} is longer than {MAX_LEN} bytes", shown(&path))));
        }
        let mut sums = BTreeMap::new();
        if text == NOTHING {
            return Ok(Some(Self(sums)));
        }
        if text.is_empty() {
            return Err(Error::damaged(format!("{} is empty", shown(&path))));
        }
        for (number, line) in text.lines().enumerate() {
            let bad =
                |what| Error::damaged(format!("{what} in line {} of {}", number + 1, shown(&path)));
            let (name, sum) = parse(line).ok_or_else(|| bad("expected the sum of a checkpoint"))?;
            if sums.insert(name, sum).is_some() {
                return Err(bad("found a second sum of the same file"));
            }
        }
        Ok(Some(Self(sums)))
    }

    /// The error for a missing manifest.
    #[cold]
    pub fn missing(dir: &Path) -> Error {
        let error = io::Error::new(ErrorKind::NotFound, "the manifest is missing");
        Error::io_at(error, "cannot read", &dir.join(FILE))
    }

    pub fn write(&self, dir: &Path) -> Result<()> {
        let mut text = String::new();
        for (name, sum) in &self.0 {
            for byte in sum {
                // Writing to a string cannot fail.
                let _ = write!(text, "{byte:02x}");
            }
            let _ = writeln!(text, "  {name}");
        }
        if text.is_empty() {
            text.push_str(NOTHING);
        }
        let mut file = AtomicFile::create(&dir.join(FILE))?;
        file.write_all(text.as_bytes()).map_err(Error::io)?;
        file.commit(SyncLevel::Full)
    }

    pub fn names(&self) -> BTreeSet<Name> {
        self.0.keys().copied().collect()
    }

    pub fn lists(&self, name: &Name) -> bool {
        self.0.contains_key(name)
    }

    /// Adds a file with its current sum.
    pub fn add(&mut self, dir: &Path, name: Name) -> Result<()> {
        let path = dir.join(name.to_string());
        let sum = sum_of(&path).map_err(|error| Error::io_at(error, "cannot read", &path))?;
        self.0.insert(name, sum);
        Ok(())
    }

    pub fn remove(&mut self, name: &Name) {
        self.0.remove(name);
    }

    /// Checks that a file is listed and has the listed sum.
    pub fn check(&self, dir: &Path, name: &Name) -> Result<()> {
        let path = dir.join(name.to_string());
        let listed = self
            .0
            .get(name)
            .ok_or_else(|| Error::damaged(format!("{} is not listed in {FILE}", shown(&path))))?;
        let sum = match sum_of(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let what = format!("{} is missing, but listed in {FILE}", shown(&path));
                return Err(Error::damaged(what));
            }
            sum => sum.map_err(|error| Error::io_at(error, "cannot read", &path))?,
        };
        if sum == *listed {
            return Ok(());
        }
        Err(Error::damaged(format!("{} does not have the SHA-256 sum in {FILE}", shown(&path))))
    }
}

/// Parses a line. Sum and name are separated by two spaces, or for binary files by a space and an asterisk.
fn parse(line: &str) -> Option<(Name, Sum)> {
    let (digits, name) = line.split_once(' ')?;
    let name = Name::parse(name.strip_prefix([' ', '*'])?)?;
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    let sum: Vec<u8> = pairs.iter().map(pair).collect::<Option<_>>()?;
    Some((name, sum.try_into().ok()?))
}

/// Hashes step by step: checkpoints are larger than memory is.
#[cfg(feature = "sha256")]
fn sum_of(path: &Path) -> io::Result<Sum> {
    use crate::io::atomic::retried;
    use sha2::{Digest, Sha256};

    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    let mut hasher = Sha256::new();
    loop {
        let read = retried(|| file.read(&mut buffer))?;
        match buffer.get(..read) {
            Some([]) | None => return Ok(hasher.finalize().into()),
            Some(bytes) => hasher.update(bytes),
        }
    }
}

/// Never called: without the feature, nothing can turn the manifest on.
#[cfg(not(feature = "sha256"))]
fn sum_of(_: &Path) -> io::Result<Sum> {
    Err(io::Error::new(ErrorKind::Unsupported, "the feature `sha256` is off"))
}
