//! Reading archives in every way there is, with memory bounded.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::de::{DeserializeOwned, Error as _};
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Archive, DynTensor, Error, IArchive, Result, Tensor, Value};

use tenarc_test_support::alloc::peak_of;
use tenarc_test_support::{OneByte, hex};

use crate::is_one_of;

pub const MIB: usize = 1 << 20;

/// Bytes that can be read at any position and are not in memory, as those of a file.
pub struct At<'a>(pub &'a [u8]);

impl ReadAt for At<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

pub const WAYS: [&str; 5] = ["positioned", "in memory", "stream", "one-byte stream", "view"];

fn stream<T: DeserializeOwned>(input: impl io::Read, options: DecodeOptions) -> Result<T> {
    let mut input = IArchive::with_options(input, options)?;
    let value = input.load()?;
    if input.is_at_end()? { Ok(value) } else { Err(Error::custom("more than one value")) }
}

pub fn read_with<T: DeserializeOwned>(
    way: &str,
    bytes: &[u8],
    options: DecodeOptions,
) -> Result<T> {
    match way {
        "positioned" => Archive::new(At(bytes))?.with_options(options).load(),
        "in memory" => Archive::new(bytes)?.with_options(options).load(),
        "stream" => stream(bytes, options),
        "one-byte stream" => stream(OneByte(bytes), options),
        _ => Archive::new(bytes)?.with_options(options).view(),
    }
}

pub fn read<T: DeserializeOwned>(way: &str, bytes: &[u8]) -> Result<T> {
    read_with(way, bytes, DecodeOptions::default())
}

/// Every way gives the value.
#[track_caller]
pub fn accepts<T: DeserializeOwned + PartialEq + Debug>(bytes: &[u8], expected: &T) {
    for way in WAYS {
        match read::<T>(way, bytes) {
            Ok(value) => assert_eq!(value, *expected, "{way}"),
            Err(error) => panic!("{way}: {error}"),
        }
    }
}

/// No way gives a value of this type, for these reasons, and in little memory.
#[track_caller]
pub fn refuses<T: DeserializeOwned>(bytes: &[u8], categories: &[Category]) -> Vec<Error> {
    let read = |way: &&str| {
        let (result, peak) = peak_of(|| read::<T>(way, bytes));
        let Err(error) = result else {
            let start = hex(&bytes[..bytes.len().min(120)]);
            panic!("{way}: {start} accepted as {}", std::any::type_name::<T>())
        };
        assert!(is_one_of(&error, categories), "{way}: {error:?}");
        let most = 2 * MIB + 64 * bytes.len();
        assert!(peak <= most, "{way}: {peak} bytes were allocated, {most} are allowed");
        error
    };
    WAYS.iter().map(read).collect()
}

/// No way gives a value of any type, and whoever verifies it is told.
#[track_caller]
pub fn refused(bytes: &[u8], categories: &[Category]) {
    refuses::<Value>(bytes, categories);
    refuses::<Tensor<DynTensor>>(bytes, categories);
    let error = verify(bytes).expect_err("verified");
    assert!(categories.contains(&error.category()), "verify: {error:?}");
}

/// Checks every byte.
pub fn verify(bytes: &[u8]) -> Result<()> {
    Archive::new(At(bytes))?.verify()
}

/// As [`verify`], of a torn archive too.
pub fn verify_torn(bytes: &[u8]) -> Result<()> {
    Archive::new_torn(At(bytes))?.verify()
}

/// That verification finds a fault of one of these kinds.
#[track_caller]
pub fn unverified(bytes: &[u8], categories: &[Category]) {
    let error = verify(bytes).expect_err("verified");
    assert!(categories.contains(&error.category()), "{error:?}");
}

pub fn limited(bytes: u64) -> DecodeOptions {
    DecodeOptions::default().with_limits(Limits::default().with_max_alloc(bytes))
}

/// All values of a stream, up to an error.
pub fn values<T: DeserializeOwned>(input: impl io::Read) -> (Vec<T>, Option<Error>) {
    let mut values = Vec::new();
    let mut input = match IArchive::new(input) {
        Ok(input) => input,
        Err(error) => return (values, Some(error)),
    };
    loop {
        match input.is_at_end() {
            Ok(true) => return (values, None),
            Ok(false) => {}
            Err(error) => return (values, Some(error)),
        }
        match input.load() {
            Ok(value) => values.push(value),
            Err(error) => return (values, Some(error)),
        }
    }
}

/// A directory of a test's own, removed when it ends.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);

        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenarc-damage-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub fn file(&self, content: &[u8]) -> PathBuf {
        let path = self.0.join("file.tenarc");
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
