//! `tenarc` with addresses: the command line of tenarc, in which a file can also be an object in a store.

use std::fs::File;
use std::io;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use tenarc::io::ReadAt;
use tenarc_cli::Addresses;
use tenarc_store::{BlockingStore, Kind, Put, Store};

fn main() -> ExitCode {
    tenarc_cli::run_with(Stores::default())
}

/// Opens objects by the clients of the crate `object_store`.
#[derive(Default)]
struct Stores {
    /// Their threads read the objects, until the program ends.
    opened: Mutex<Vec<BlockingStore>>,
}

/// The store of an object, and the name of the object in it.
fn place(address: &str) -> io::Result<(BlockingStore, &str)> {
    let (folder, name) = address.rsplit_once('/').unwrap_or((address, ""));
    if name.is_empty() || folder.ends_with('/') {
        let what = "expected the address of an object, such as s3://bucket/model.tenarc";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    Ok((Store::open(folder)?.blocking()?, name))
}

impl Addresses for Stores {
    fn open(&self, address: &str) -> io::Result<Box<dyn ReadAt + Send>> {
        let (store, name) = place(address)?;
        let source = store.source(name)?;
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).push(store);
        Ok(Box::new(source))
    }

    fn write(&self, address: &str, content: &mut File, replace: bool) -> io::Result<()> {
        let (store, name) = place(address)?;
        let put = if replace { Put::Replace } else { Put::Create };
        let mut writer = store.writer_with(name, put)?;
        io::copy(content, &mut writer)?;
        writer.finish().map(drop).map_err(|error| match error.kind() {
            Kind::Exists => io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the object is there, and --no-clobber keeps it",
            ),
            _ => error.into(),
        })
    }
}
