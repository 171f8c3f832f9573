//! Saves values of different types, one after the other, in one archive.
//!
//! ```sh
//! cargo run --release --example value_after_value
//! ```
//!
//! This corresponds to `archive << a << b` and `archive >> a >> b` of C++ serialization libraries: a model of
//! several parts saves and loads itself, with code that works for any stream.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use ndarray::Array2;
use serde::{Deserialize, Serialize};
use tenarc::named::{Match, Variable};
use tenarc::{IArchive, OArchive, Tensor};

/// A sparse matrix in compressed sparse row format.
#[derive(Serialize, Deserialize, PartialEq, Debug, Default)]
struct Sparse {
    shape: (usize, usize),
    starts: Tensor<Vec<u64>>,
    columns: Tensor<Vec<u32>>,
    values: Tensor<Vec<f32>>,
}

#[derive(PartialEq, Debug, Default)]
struct Recommender {
    users: BTreeMap<String, u32>,
    ratings: Sparse,
    factors: Array2<f32>,
    best: Option<f64>,
}

impl Recommender {
    fn save<W: Write>(&self, out: &mut OArchive<W>) -> tenarc::Result<()> {
        out.save(&self.users)?.save(&self.ratings)?.save(&self.best)?;
        // A list of named tensors, as in training frameworks.
        out.save_multi(&[("factors", &self.factors)])?;
        Ok(())
    }

    fn load<R: Read>(input: &mut IArchive<R>) -> tenarc::Result<Self> {
        let (users, ratings, best) = (input.load()?, input.load()?, input.load()?);
        // Loads into an existing array, which must have the same shape.
        let mut factors = Array2::zeros((500, 16));
        let mut variables: [(&str, &mut dyn Variable); 1] = [("factors", &mut factors)];
        input.load_multi_onto(&mut variables, Match::Strict)?;
        Ok(Self { users, ratings, factors, best })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let users = (0..1000u32).map(|id| (format!("user {id}"), id)).collect();
    let ratings = Sparse {
        shape: (1000, 500),
        starts: Tensor((0..=1000).map(|row| row * 3).collect()),
        columns: Tensor((0..3000).map(|at| at * 7 % 500).collect()),
        values: Tensor(vec![4.5; 3000]),
    };
    let model = Recommender {
        users,
        ratings,
        factors: Array2::from_elem((500, 16), 0.25),
        best: Some(0.91),
    };

    // Writes to a growing vector. After `commit`, the bytes so far are a complete archive, even if a later
    // write fails.
    let mut bytes = Vec::new();
    let mut out = OArchive::new(&mut bytes)?;
    out.save("recommender, version 3")?;
    model.save(&mut out)?;
    out.commit()?;
    let (values, position) = (out.segments(), out.position());
    println!("{values} values in {position} bytes");
    model.save(&mut out)?;
    out.finish()?;
    println!("both models in {} bytes", bytes.len());

    let mut input = IArchive::new(&bytes[..])?;
    let version: String = input.load()?;
    println!("read: {version}");
    assert_eq!(Recommender::load(&mut input)?, model);
    assert_eq!(Recommender::load(&mut input)?, model);
    assert!(input.is_at_end()?);

    // Reading and writing need no seeking, so a pipe works too.
    let (reader, writer) = std::io::pipe()?;
    let received = std::thread::spawn(move || {
        let mut input = IArchive::new(reader)?;
        let model = Recommender::load(&mut input)?;
        // Without reading to the end, this thread might close the pipe before `finish` has written the rest.
        assert!(input.is_at_end()?);
        Ok::<_, tenarc::Error>(model)
    });
    let mut out = OArchive::new(writer)?;
    model.save(&mut out)?;
    drop(out.finish()?);
    assert_eq!(received.join().expect("the reader does not panic")?, model);

    // Loading a value as a wrong type is an error; the next value can still be loaded.
    let mut input = IArchive::new(&bytes[..])?;
    println!("asked for a number: {}", input.load::<u64>().unwrap_err());
    assert_eq!(Recommender::load(&mut input)?, model);
    Ok(())
}
