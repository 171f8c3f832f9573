//! What borrows is read at every length, or at none.

use std::borrow::Cow;

use ndarray::{Array1, ArrayView1};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::archive::SaveOptions;
use tenarc::{Archive, Map, Tensor, Value};

use super::{LENGTHS, Random, archived, encodings, some};

#[derive(Serialize)]
struct Owned {
    numbers: Vec<u8>,
    text: String,
    bytes: ByteBuf,
}

#[derive(Serialize, Deserialize)]
struct Borrowed<'a> {
    numbers: &'a [u8],
    text: &'a str,
    bytes: &'a serde_bytes::Bytes,
}

/// Borrows nothing from an array of numbers, but reads it.
#[derive(Deserialize)]
struct Cows<'a> {
    #[serde(borrow)]
    numbers: Cow<'a, [u8]>,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    bytes: Cow<'a, serde_bytes::Bytes>,
}

impl Owned {
    fn new(random: &mut Random, len: usize) -> Self {
        let numbers: Vec<u8> = some(random, len);
        Self { text: "t".repeat(len), bytes: numbers.clone().into(), numbers }
    }

    fn check(&self, read: tenarc::Result<Borrowed<'_>>, what: &str) {
        let read = read.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(read.numbers, self.numbers, "{what}");
        assert_eq!((read.text, &**read.bytes), (&*self.text, &**self.bytes), "{what}");
    }

    fn check_cows(&self, read: tenarc::Result<Cows<'_>>, what: &str) {
        let read = read.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(read.numbers, self.numbers, "{what}");
        assert_eq!((&*read.text, &**read.bytes), (&*self.text, &**self.bytes), "{what}");
    }
}

fn all_options() -> [SaveOptions; 3] {
    let options = SaveOptions::default;
    [options(), options().with_columns(true), options().with_columns(false)]
}

#[test]
fn slices_of_an_archive() {
    let random = &mut Random(1);
    for len in LENGTHS {
        let value = Owned::new(random, len);
        for options in all_options() {
            let archive = Archive::new(archived(&value, &options)).unwrap();
            value.check(archive.view(), &len.to_string());
            value.check_cows(archive.view(), &len.to_string());
            // What borrows is written as what owns.
            let again: Borrowed<'_> = archive.view().unwrap();
            assert_eq!(archived(&again, &options), *archive.source());
            let (metadata, buffers) =
                tenarc::parts::to_parts_with(&value, options.clone()).unwrap().into_inner();
            value.check(tenarc::from_parts(&metadata, &buffers), &len.to_string());
            let read: Value = archive.load().unwrap();
            value.check(Borrowed::deserialize(&read), &len.to_string());
        }
    }
}

#[test]
#[allow(unsafe_code)]
fn slices_of_a_map() {
    let dir = tempfile::tempdir().unwrap();
    for len in LENGTHS {
        let value = Owned::new(&mut Random(2), len);
        let path = dir.path().join(len.to_string());
        tenarc::save(&path, &value).unwrap();
        // SAFETY: nothing changes the file.
        let map = unsafe { Map::open(&path) }.unwrap();
        value.check(map.view(), &len.to_string());
    }
}

/// In the rows of a table, and of a list in a struct.
#[test]
fn slices_of_rows() {
    let random = &mut Random(3);
    for rows in [1, 3, 16, 17, 300] {
        for len in [0, 1, 3, 16, 255, 2048] {
            let lens = [len, 0, 2, len / 2];
            let values: Vec<Owned> =
                (0..rows).map(|row| Owned::new(random, lens[row % 4])).collect();
            let equal: Vec<Owned> = (0..rows).map(|_| Owned::new(random, len)).collect();
            for options in all_options() {
                for values in [&values, &equal] {
                    let archive = Archive::new(archived(values, &options)).unwrap();
                    let read: Vec<Borrowed<'_>> = archive.view().unwrap();
                    for (value, read) in values.iter().zip(read) {
                        value.check(Ok(read), "a row");
                    }
                    let archive = Archive::new(archived(&(1, values), &options)).unwrap();
                    let (_, read): (u8, Vec<Cows<'_>>) = archive.view().unwrap();
                    for (value, read) in values.iter().zip(read) {
                        value.check_cows(Ok(read), "a row");
                    }
                }
            }
        }
    }
}

/// In a message, a `Vec<u8>` is an array of numbers unless packed sequences are asked for. Only its copy can be lent.
#[test]
fn slices_of_a_message() {
    #[derive(Deserialize)]
    struct Rest<'a> {
        text: &'a str,
        bytes: &'a [u8],
    }
    for len in LENGTHS {
        let value = Owned::new(&mut Random(4), len);
        for (number, options) in encodings().into_iter().enumerate() {
            let bytes = tenarc::ser::to_vec_with(&value, options).unwrap();
            value.check_cows(tenarc::from_slice(&bytes), &len.to_string());
            let rest: Rest<'_> = tenarc::from_slice(&bytes).unwrap();
            assert_eq!((rest.text, rest.bytes), (&*value.text, &**value.bytes));
            let is_packed = number % 2 == 1;
            let read = tenarc::from_slice::<Borrowed<'_>>(&bytes);
            if is_packed || len == 0 {
                value.check(read, &len.to_string());
            } else {
                let error = read.err().unwrap().to_string();
                assert!(error.contains("expected a borrowed byte array"), "{error}");
            }
        }
        let owned = tenarc::to_value(&value).unwrap();
        value.check_cows(Cows::deserialize(&owned), &len.to_string());
    }
}

#[derive(Serialize, Deserialize)]
struct Views<'a> {
    odd: u8,
    #[serde(borrow)]
    floats: Tensor<ArrayView1<'a, f32>>,
    name: &'a str,
    #[serde(borrow)]
    small: Tensor<ArrayView1<'a, u8>>,
    #[serde(borrow)]
    wide: Tensor<ArrayView1<'a, f64>>,
    #[serde(borrow)]
    flags: Tensor<ArrayView1<'a, bool>>,
}

#[test]
fn views_of_tensors() {
    let random = &mut Random(5);
    for len in LENGTHS {
        let floats: Array1<f32> = (0..len).map(|at| at as f32).collect();
        let small: Array1<u8> = some(random, len);
        let wide: Array1<f64> = (0..len).map(|at| at as f64).collect();
        let flags: Array1<bool> = some(random, len);
        let value = Views {
            odd: 1,
            floats: floats.view().into(),
            name: "name",
            small: small.view().into(),
            wide: wide.view().into(),
            flags: flags.view().into(),
        };
        let check = |read: Views<'_>| {
            assert_eq!(*read.floats, floats);
            assert_eq!(
                (&*read.small, &*read.wide, &*read.flags),
                (&small.view(), &wide.view(), &flags.view())
            );
        };
        for options in all_options() {
            let archive = Archive::new(archived(&value, &options)).unwrap();
            check(archive.view().unwrap());
            let (metadata, buffers) =
                tenarc::parts::to_parts_with(&value, options.clone()).unwrap().into_inner();
            let parts = tenarc::parts::Parts::new(metadata, buffers).unwrap();
            check(parts.view().unwrap());
            let read: Value = archive.load().unwrap();
            check(Views::deserialize(&read).unwrap());
            if len > 2048 {
                continue;
            }
            let rows: Vec<&Views<'_>> = vec![&value; 17];
            let archive = Archive::new(archived(&rows, &options)).unwrap();
            archive.view::<Vec<Views<'_>>>().unwrap().into_iter().for_each(check);
        }
    }
}
