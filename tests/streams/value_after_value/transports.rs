//! To and from growing vectors, files, and streams that can neither seek nor buffer.

use std::fs::File;
use std::io::{self, Read, Write};
use std::thread;

use ndarray::Array2;
use tenarc::{Archive, IArchive, OArchive, Tensor};

use super::quick;
use tenarc_test_support::{OneByte, Ragged};

fn save<W: Write>(out: &mut OArchive<W>) -> tenarc::Result<()> {
    out.save("first")?.save(&2u8)?.save(&vec![3.0f32; 3000])?;
    out.save(&Tensor(Array2::<f64>::eye(30)))?.save(&Some("last"))?;
    Ok(())
}

#[track_caller]
fn load<R: Read>(input: &mut IArchive<R>) {
    assert_eq!(input.load::<String>().unwrap(), "first");
    assert_eq!(input.load::<u8>().unwrap(), 2);
    assert_eq!(input.load::<Vec<f32>>().unwrap(), [3.0; 3000]);
    assert_eq!(input.load::<Tensor<Array2<f64>>>().unwrap().0, Array2::<f64>::eye(30));
    assert_eq!(input.load::<Option<String>>().unwrap().as_deref(), Some("last"));
}

fn bytes() -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    save(&mut out).unwrap();
    out.finish().unwrap()
}

#[test]
fn a_vector_that_grows_while_values_are_added() {
    let mut vector = Vec::new();
    let mut out = OArchive::with_options(&mut vector, quick()).unwrap();
    let mut lengths = Vec::new();
    for round in 1..=4 {
        save(&mut out).unwrap();
        out.commit().unwrap();
        assert_eq!(out.segments(), round * 5);
        lengths.push((usize::try_from(out.position()).unwrap(), round * 5));
        // What is committed is in the vector, and can be read while the archive goes on.
        assert_eq!(out.get_ref().len() as u64, out.position());
        let so_far = Vec::clone(out.get_ref());
        let mut input = IArchive::new(&so_far[..]).unwrap();
        (0..round).for_each(|_| load(&mut input));
        assert!(input.is_at_end().unwrap());
    }
    out.save("behind the last commit").unwrap();
    drop(out);
    // Every commit is a whole archive. What follows the last one is not part of it.
    for &(len, segments) in &lengths {
        let archive = Archive::new(&vector[..len]).unwrap();
        archive.verify().unwrap();
        assert_eq!(archive.len(), segments);
    }
    let archive = Archive::new(&vector[..]).unwrap();
    assert_eq!(Some(archive.len()), lengths.last().map(|&(_, segments)| segments));
    assert!(archive.unfinished_bytes() > 0);
    let mut input = IArchive::new(&vector[..]).unwrap();
    (0..4).for_each(|_| load(&mut input));
    assert_eq!(input.load::<String>().unwrap(), "behind the last commit");
    assert_eq!(input.is_at_end().unwrap_err().category(), tenarc::error::Category::Torn);
}

/// What stood in the vector before stays.
#[test]
fn archives_one_behind_the_other_in_one_vector() {
    let mut vector = b"some bytes before".to_vec();
    let mut starts = Vec::new();
    for _ in 0..3 {
        starts.push(vector.len());
        let mut out = OArchive::with_options(&mut vector, quick()).unwrap();
        save(&mut out).unwrap();
        out.finish().unwrap();
    }
    starts.push(vector.len());
    for range in starts.windows(2) {
        let archive = &vector[range[0]..range[1]];
        assert!(archive == bytes());
        load(&mut IArchive::new(archive).unwrap());
    }
    assert!(vector.starts_with(b"some bytes before"));
}

#[test]
fn files_plain_atomic_and_appended_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plain");
    let mut out = OArchive::with_options(File::create(&path).unwrap(), quick()).unwrap();
    save(&mut out).unwrap();
    drop(out.finish().unwrap());
    assert!(std::fs::read(&path).unwrap() == bytes());
    load(&mut IArchive::new(File::open(&path).unwrap()).unwrap());

    let mut out = OArchive::append(&path).unwrap();
    save(&mut out).unwrap();
    out.commit().unwrap();
    save(&mut out).unwrap();
    out.finish().unwrap();
    let mut input = IArchive::new(io::BufReader::new(File::open(&path).unwrap())).unwrap();
    (0..3).for_each(|_| load(&mut input));
    assert!(input.is_at_end().unwrap());
    let file = tenarc::open(&path).unwrap();
    file.verify().unwrap();
    assert_eq!(
        file.segment(14).unwrap().load::<Option<String>>().unwrap().as_deref(),
        Some("last")
    );

    let path = dir.path().join("atomic");
    let mut out = OArchive::create(&path, quick()).unwrap();
    save(&mut out).unwrap();
    assert!(!path.exists());
    out.finish().unwrap();
    load(&mut IArchive::new(File::open(&path).unwrap()).unwrap());
}

/// Writes at most a few bytes at a time, never buffers, cannot seek.
struct Bare(Vec<u8>);

impl Write for Bare {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(7);
        self.0.extend(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn streams_that_only_write_and_read() {
    let mut out = OArchive::with_options(Bare(Vec::new()), quick()).unwrap();
    save(&mut out).unwrap();
    let written = out.finish().unwrap().0;
    assert!(written == bytes());
    load(&mut IArchive::new(OneByte(&written)).unwrap());
    load(&mut IArchive::new(Ragged::new(&written, 11)).unwrap());
}

/// Each value is there before the next is written: a program that answers value by value.
#[test]
fn a_conversation_over_two_pipes() {
    let (questions, ask) = io::pipe().unwrap();
    let (answers, answer) = io::pipe().unwrap();
    let other = thread::spawn(move || {
        let mut input = IArchive::new(questions).unwrap();
        let mut out = OArchive::with_options(answer, quick()).unwrap();
        for matrix in input.records::<Tensor<Array2<f64>>>() {
            out.save(&matrix.unwrap().sum()).unwrap();
        }
        out.finish().unwrap();
    });
    let mut out = OArchive::with_options(ask, quick()).unwrap();
    let mut input = None;
    for size in [1, 100, 3] {
        out.save(&Tensor(Array2::<f64>::eye(size))).unwrap();
        if input.is_none() {
            input = Some(IArchive::new(answers.try_clone().unwrap()).unwrap());
        }
        let sum: f64 = input.as_mut().unwrap().load().unwrap();
        assert_eq!(sum, f64::from(u8::try_from(size).unwrap()));
    }
    drop(out.finish().unwrap());
    assert!(input.unwrap().is_at_end().unwrap());
    other.join().unwrap();
}
