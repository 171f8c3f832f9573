//! Archives over files and pipes. Over sockets, compressed and encrypted: `tests/streams/transports/`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::mpsc;
use std::time::Duration;

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
