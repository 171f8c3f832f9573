//! Archives over what bytes travel through: files, sockets, pipes, compression, encryption.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tenarc::{IArchive, OArchive};

use super::support::{Dir, Model, model, quick, weights};

#[track_caller]
fn write<W: Write>(writer: W) -> W {
    let mut out = OArchive::with_options(writer, quick()).unwrap();
    for n in 0..20 {
        out.save_as(&format!("n{n}"), &(n, model())).unwrap();
    }
    out.finish().unwrap()
}

#[track_caller]
fn read<R: Read>(reader: R) -> R {
    let mut input = IArchive::new(reader).unwrap();
    for n in 0..20 {
        if n % 5 == 4 {
            assert!(input.skip().unwrap());
            continue;
        }
        assert_eq!(input.next_name().unwrap(), Some(Some(format!("n{n}").as_str())));
        assert_eq!(input.load::<(usize, Model)>().unwrap(), (n, model()));
    }
    assert!(input.is_at_end().unwrap());
    let (reader, taken) = input.into_inner();
    assert!(taken.is_empty());
    reader
}

#[test]
fn through_files_with_and_without_buffers() {
    let dir = Dir::new();
    let path = dir.file("plain");
    drop(write(File::create(&path).unwrap()));
    read(File::open(&path).unwrap());
    read(io::BufReader::new(File::open(&path).unwrap()));
    drop(write(io::BufWriter::new(File::create(&path).unwrap())));
    read(File::open(&path).unwrap());
    // It is a file like any other.
    tenarc::open(&path).unwrap().verify().unwrap();

    let mut file = File::create_new(dir.file("late")).unwrap();
    file.write_all(&[1; 1001]).unwrap();
    drop(write(file));
    let mut file = File::open(dir.file("late")).unwrap();
    file.seek(SeekFrom::Start(1001)).unwrap();
    read(file);
}

#[test]
fn through_a_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(write(TcpStream::connect(address).unwrap())));
        let (stream, _) = listener.accept().unwrap();
        read(stream);
    });
}

#[test]
fn through_a_pipe() {
    let (reader, writer) = io::pipe().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(write(writer)));
        read(reader);
    });
}

/// Each value can be had as soon as it was saved, though the archive goes on: neither side waits
/// for bytes that come later.
#[test]
fn values_arrive_before_the_archive_ends() {
    let (reader, writer) = io::pipe().unwrap();
    let (ask, asked) = mpsc::channel::<usize>();
    let (answer, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut out = OArchive::with_options(writer, quick()).unwrap();
            for n in asked {
                out.save(&(n, weights(n, n))).unwrap();
            }
        });
        scope.spawn(move || {
            let mut input = IArchive::new(reader).unwrap();
            while let Ok(value) = input.load::<(usize, tenarc::Tensor<Vec<f32>>)>() {
                answer.send(value).unwrap();
            }
        });
        // Beyond a block of the directory, with and without buffers.
        for n in (0..130).map(|n| n * 20) {
            ask.send(n).unwrap();
            let (found, tensor) = answers.recv_timeout(Duration::from_secs(20)).unwrap();
            assert_eq!((found, tensor), (n, weights(n, n)));
        }
        drop(ask);
    });
}

#[test]
fn through_gzip() {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    write(&mut out);
    let bytes = out.finish().unwrap();
    read(GzDecoder::new(&bytes[..]));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn through_zstd() {
    let mut out = zstd::Encoder::new(Vec::new(), 1).unwrap();
    write(&mut out);
    let bytes = out.finish().unwrap();
    read(zstd::Decoder::new(&bytes[..]).unwrap());
}

/// A toy, which stands for what encrypts.
struct Xor<T>(T, u8);

impl<T> Xor<T> {
    fn turn(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte ^= self.1;
            self.1 = self.1.wrapping_mul(5).wrapping_add(113);
        }
    }
}

impl<R: Read> Read for Xor<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(out)?;
        self.turn(&mut out[..read]);
        Ok(read)
    }
}

impl<W: Write> Write for Xor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut bytes = bytes.to_vec();
        self.turn(&mut bytes);
        self.0.write_all(&bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn through_a_cipher() {
    let bytes = write(Xor(Vec::new(), 1)).0;
    assert!(IArchive::new(&bytes[..]).is_err());
    read(Xor(&bytes[..], 1));
    // With the wrong key it is no archive.
    assert!(IArchive::new(Xor(&bytes[..], 2)).is_err());
}
