//! npy and zip files built by hand, with correct or wrong contents.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use tenarc::io::ReadAt;
use tenarc::{DynTensor, Error, Result};
use tenarc_convert::npy::Npz;

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/npy")
}

pub fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
}

/// An npy file with this header, not padded.
pub fn npy(header: &str, elements: &[u8]) -> Vec<u8> {
    let len = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), elements].concat()
}

/// One of bytes, so that the file is as long as one likes.
pub fn bytes(elements: &[u8]) -> Vec<u8> {
    let len = elements.len();
    npy(&format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({len},)}}"), elements)
}

pub fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// What a header of a member says, local or central.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Vec<u8>,
    pub flags: u16,
    pub method: u16,
    pub crc: u32,
    pub compressed: u32,
    pub inflated: u32,
    pub extra: Vec<u8>,
    pub offset: u32,
}

impl Entry {
    fn fields(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for field in [45, self.flags, self.method, 0, 0x21] {
            out.extend(u16::to_le_bytes(field));
        }
        for field in [self.crc, self.compressed, self.inflated] {
            out.extend(field.to_le_bytes());
        }
        out.extend((self.name.len() as u16).to_le_bytes());
        out.extend((self.extra.len() as u16).to_le_bytes());
        out
    }

    fn local(&self) -> Vec<u8> {
        [b"PK\x03\x04", &self.fields()[..], &self.name, &self.extra].concat()
    }

    fn central(&self) -> Vec<u8> {
        let mut out = b"PK\x01\x02\x2d\x03".to_vec();
        out.extend(self.fields());
        // Length of the comment, disk, attributes.
        out.extend([0; 10]);
        out.extend(self.offset.to_le_bytes());
        out.extend(&self.name);
        out.extend(&self.extra);
        out
    }
}

/// A member: its local header, its bytes as they lie, what follows them, and what the directory says.
#[derive(Clone, Debug)]
pub struct Part {
    pub local: Entry,
    pub data: Vec<u8>,
    pub behind: Vec<u8>,
    pub central: Entry,
}

pub fn part(name: &str, contents: &[u8], deflate: bool) -> Part {
    let data = if deflate { deflated(contents) } else { contents.to_vec() };
    let entry = Entry {
        name: name.into(),
        flags: 0,
        method: if deflate { 8 } else { 0 },
        crc: crc(contents),
        compressed: data.len() as u32,
        inflated: contents.len() as u32,
        extra: Vec::new(),
        offset: 0,
    };
    Part { local: entry.clone(), data, behind: Vec::new(), central: entry }
}

/// The end record for a list of so many bytes that starts at `start`.
pub fn end(count: u16, size: u32, start: u32) -> Vec<u8> {
    let mut out = b"PK\x05\x06\0\0\0\0".to_vec();
    out.extend([count, count].into_iter().flat_map(u16::to_le_bytes));
    out.extend([size, start].into_iter().flat_map(u32::to_le_bytes));
    out.extend([0; 2]);
    out
}

/// The members with their local headers; and the list, whose offsets `place` may change.
pub fn body(parts: &[Part], place: impl Fn(usize, u32) -> u32) -> (Vec<u8>, Vec<u8>) {
    let (mut body, mut list) = (Vec::new(), Vec::new());
    for (at, part) in parts.iter().enumerate() {
        let mut central = part.central.clone();
        central.offset = place(at, body.len() as u32);
        body.extend(part.local.local());
        body.extend(&part.data);
        body.extend(&part.behind);
        list.extend(central.central());
    }
    (body, list)
}

pub fn zip_at(parts: &[Part], place: impl Fn(usize, u32) -> u32) -> Vec<u8> {
    let (body, list) = body(parts, place);
    let end = end(parts.len() as u16, list.len() as u32, body.len() as u32);
    [body, list, end].concat()
}

pub fn zip(parts: &[Part]) -> Vec<u8> {
    zip_at(parts, |_, at| at)
}

/// Bytes that can be read at any position and give a few at a time, as a file may.
pub struct Slow(pub Vec<u8>);

impl ReadAt for Slow {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let few = out.len().min(7);
        self.0.read_at(&mut out[..few], offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

/// All arrays of an npz file, its elements and all.
pub fn all(bytes: &[u8]) -> Result<Vec<(String, DynTensor)>> {
    let npz = Npz::new(bytes)?;
    let names: Vec<String> = npz.names().map(str::to_owned).collect();
    names.into_iter().map(|name| npz.dyn_tensor(&name).map(|tensor| (name, tensor))).collect()
}

/// An error that says this.
#[track_caller]
pub fn says<T: std::fmt::Debug>(result: Result<T>, expected: &str) -> Error {
    let error = result.unwrap_err();
    assert!(error.to_string().contains(expected), "{expected}: {error}");
    error
}
