//! Addresses of objects in stores, such as `s3://bucket/model.tenarc`. This crate opens none, because clients of stores have 150
//! dependencies: a program that has them passes [`Addresses`] to [`run_with`](crate::run_with).

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use tenarc::io::ReadAt;

use crate::failure::{Failure, Kind, Result};

/// What opens and writes objects.
pub trait Addresses: Send + Sync {
    /// Opens an object for reading.
    ///
    /// # Errors
    /// If there is no such object, or it cannot be read.
    fn open(&self, address: &str) -> io::Result<Box<dyn ReadAt + Send>>;

    /// Writes an object with the content of a file. If it exists and must not be replaced, this is an error.
    ///
    /// # Errors
    /// If it cannot be written. Then an object that was there stays as it is.
    fn write(&self, address: &str, content: &mut File, replace: bool) -> io::Result<()>;
}

static ADDRESSES: OnceLock<Box<dyn Addresses>> = OnceLock::new();

pub fn set(addresses: Box<dyn Addresses>) {
    // If they are set already, those stay.
    let _ = ADDRESSES.set(addresses);
}

/// Returns the address, if a path is one rather than the name of a file.
pub fn of(path: &Path) -> Option<&str> {
    const SCHEMES: [&str; 10] =
        ["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https"];
    let address = path.to_str()?;
    let (scheme, _) = address.split_once("://")?;
    SCHEMES.contains(&scheme).then_some(address)
}

/// Returns what opens addresses.
///
/// # Errors
/// If this program has nothing that does.
pub fn opener() -> Result<&'static dyn Addresses> {
    ADDRESSES.get().map(|addresses| &**addresses).ok_or_else(|| {
        let what = "this build of tenarc reads and writes files only: install the package tenarc-store-cli for objects in stores";
        Failure::of_kind(Kind::Unsupported, what)
    })
}
