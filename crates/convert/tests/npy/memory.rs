//! How much memory reading and converting numpy's files takes.

use std::io::{self, Cursor, Read as _};

use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::tensor::{Deferred, Order};
use tenarc::{Archive, DType, OArchive};
use tenarc_convert::npy::{self, Compression, Npz, NpzWriter, Options};

use tenarc_test_support::alloc::peak_of;

const MIB: usize = 1 << 20;

/// Bytes that differ from block to block.
fn large(bytes: usize) -> Deferred<'static> {
    Deferred::from_blocks(DType::U8, &[bytes], Order::C, move |put| {
        (0..bytes / 4096).try_for_each(|at| put(&[at.to_le_bytes()[0]; 4096]))
    })
}

fn npz(bytes: usize, compression: Compression) -> Vec<u8> {
    let file = Cursor::new(Vec::with_capacity(bytes + MIB));
    let mut out = NpzWriter::new(file).unwrap().with_compression(compression);
    out.add("a", &large(bytes)).unwrap();
    out.finish().unwrap().into_inner()
}

/// A writer that forgets.
struct Sink;

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes in memory that are read as those of a file.
struct File(Vec<u8>);

impl ReadAt for File {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

#[test]
fn arrays_of_any_size_go_over_in_steps() {
    const LEN: usize = 16 * MIB;

    for compression in [Compression::Stored, Compression::Deflated] {
        let (file, most) = peak_of(|| npz(LEN, compression));
        assert!(most < LEN + 2 * MIB, "{most} bytes to write");
        let npz = Npz::new(File(file)).unwrap();
        let mut out = OArchive::new(Sink).unwrap();
        let options = Options::default();
        let (lost, most) = peak_of(|| tenarc_convert::into_archive(&npz, &mut out, &options));
        assert!(lost.unwrap().is_empty() && out.position() > LEN as u64);
        assert!(most < MIB, "{most} bytes to convert");
        // The array itself, and what it leaves behind where it grows.
        let grown = if compression == Compression::Stored { 0 } else { LEN / 2 };
        let (tensor, most) = peak_of(|| npz.dyn_tensor("a").unwrap());
        assert!(most < LEN + grown + MIB, "{most} bytes to read");
        assert_eq!(tensor.shape(), [LEN]);
    }
}

#[test]
fn an_archive_goes_over_tensor_by_tensor() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    let names: Vec<String> = (0..8).map(|at| at.to_string()).collect();
    let tensors: std::collections::BTreeMap<&str, _> =
        names.iter().map(|name| (&name[..], tenarc::Tensor(large(2 * MIB)))).collect();
    out.save(&tensors).unwrap();
    let archive = File(out.finish().unwrap());
    let archive = Archive::new(archive).unwrap();
    let mut to = NpzWriter::new(Cursor::new(Vec::with_capacity(20 * MIB))).unwrap();
    let options = Options::default();
    let segment = archive.segment(0).unwrap();
    let (lost, most) = peak_of(|| npy::export(&segment, &mut to, &options));
    assert!(lost.unwrap().is_empty());
    assert!(most < 3 * MIB, "{most} bytes for tensors of 2 MiB");
}

/// A header may claim what it likes.
#[test]
fn memory_follows_the_bytes_received() {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824,)}";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    for given in [0, 24, 4 * MIB] {
        let reader = bytes.chain(io::repeat(1).take(given as u64));
        let (result, most) = peak_of(|| npy::read(reader).unwrap_err());
        assert_eq!(result.category(), Category::Eof);
        assert!(most < 3 * given + MIB, "{most} bytes for {given}");
    }
}

/// 16 MiB of zeros in 16 KiB, behind an array that is smaller.
#[test]
fn bombs_do_not_go_off() {
    let mut file = npz(16 * MIB, Compression::Deflated);
    let claims = file.windows(2).position(|bytes| bytes == b"PK").unwrap();
    assert!(claims == 0 && file.len() < 256 << 10, "{}", file.len());
    let npz = Npz::new(&file[..]).unwrap();
    let limits = tenarc::de::Limits::strict().with_max_alloc(MIB as u64);
    let npz = npz.with_limits(limits);
    let (error, most) = peak_of(|| npz.dyn_tensor("a").unwrap_err());
    assert_eq!(error.category(), Category::Limit);
    assert!(most < MIB / 2, "{most} bytes to refuse");
    // Of a directory that claims many members, no memory is taken ahead of them.
    let len = file.len();
    file[len - 12..len - 8].copy_from_slice(&[0xfe, 0xff, 0xfe, 0xff]);
    let (result, most) = peak_of(|| Npz::new(&file[..]).map(drop).unwrap_err());
    assert!(most < MIB / 2, "{most} bytes to refuse: {result}");
}
