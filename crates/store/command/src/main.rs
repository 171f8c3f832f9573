//! `tenarc` with addresses: the command line of tenarc, in which a file can also be an object in a store.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::process::ExitCode;

use tenarc::io::{ReadAhead, ReadAt};
use tenarc_cli::Addresses;
use tenarc_store::{BlockingStore, Kind, ObjectFile, Put, Store};

fn main() -> ExitCode {
    tenarc_cli::run_with(Stores)
}

/// Opens objects by the clients of the crate `object_store`.
struct Stores;

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
        Ok(Box::new(Opened { source: store.source(name)?, _store: store }))
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

/// An object, and the store whose threads read it.
struct Opened {
    source: ReadAhead<ObjectFile>,
    _store: BlockingStore,
}

impl ReadAt for Opened {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.source.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.source.size()
    }

    fn read_last(&self, out: &mut Vec<u8>) -> io::Result<u64> {
        self.source.read_last(out)
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        self.source.will_read(ranges);
    }

    fn will_read_most(&self, range: Range<u64>) {
        self.source.will_read_most(range);
    }
}
