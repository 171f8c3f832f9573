//! The values that are sent, the three forms of a stream, and the process at the other end.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use ndarray::{Array1, Array2, ShapeBuilder};
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::parts::{Parts, Split};
use tenarc::{Deserializer, IArchive, OArchive, Tensor};

use tenarc_test_support::child;

/// Beyond it a test fails rather than waits.
pub const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Model {
    pub name: String,
    pub weight: Tensor<Array2<f32>>,
    /// Column-major.
    pub counts: Tensor<Array2<i64>>,
    pub bias: Tensor<Array1<f64>>,
    pub curve: Vec<f64>,
}

pub fn model(seed: usize) -> Model {
    let noise = |at: usize| ((at * 7919 + seed * 104_729) % 65_521) as u16;
    Model {
        name: format!("model {seed}, a name that nobody should read on the way"),
        weight: Array2::from_shape_fn((60, 40), |(y, x)| noise(y * 40 + x).into()).into(),
        counts: Array2::from_shape_fn((70, 20).f(), |(y, x)| noise(x * 70 + y).into()).into(),
        bias: Array1::from_shape_fn(7, |at| f64::from(noise(at)) / 8.0).into(),
        curve: (0..800).map(|at| noise(at).into()).collect(),
    }
}

/// How many models a stream has.
const COUNT: usize = 8;

/// The forms in which values follow each other on a stream of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Archive,
    Messages,
    Parts,
}

pub const FORMS: [Form; 3] = [Form::Archive, Form::Messages, Form::Parts];

impl Form {
    pub fn named(name: &str) -> Self {
        FORMS.into_iter().find(|form| form.name() == name).unwrap()
    }

    pub fn name(self) -> String {
        format!("{self:?}")
    }

    pub fn write(self, mut stream: impl Write) -> tenarc::Result<()> {
        let models = (0..COUNT).map(model);
        match self {
            Self::Archive => {
                let mut out = OArchive::new(stream)?;
                for model in models {
                    out.save_as(&model.name, &model)?;
                }
                out.finish()?;
            }
            Self::Messages => {
                for model in models {
                    tenarc::to_writer(&mut stream, &model)?;
                }
            }
            Self::Parts => {
                for model in models {
                    Split::new(&model)?.write_to(&mut stream)?;
                }
            }
        }
        Ok(())
    }

    /// Reads to the end of the stream.
    pub fn read(self, mut stream: impl Read) -> tenarc::Result<Vec<Model>> {
        let mut models = Vec::new();
        match self {
            Self::Archive => {
                let mut input = IArchive::new(stream)?;
                while let Some(name) = input.next_name()? {
                    let name = name.map(str::to_owned);
                    let model: Model = input.load()?;
                    assert_eq!(name.as_ref(), Some(&model.name));
                    models.push(model);
                }
                assert!(input.is_at_end()?);
            }
            Self::Messages => {
                for model in Deserializer::from_reader(stream).into_iter() {
                    models.push(model?);
                }
            }
            Self::Parts => loop {
                match Parts::read_from(&mut stream) {
                    Ok(parts) => models.push(parts.load()?),
                    Err(error) if error.category() == Category::Eof => break,
                    Err(error) => return Err(error),
                }
            },
        }
        Ok(models)
    }

    /// Whether all that was written came, unchanged.
    pub fn is_whole(models: &[Model]) -> bool {
        models.len() == COUNT && models.iter().enumerate().all(|(n, found)| *found == model(n))
    }

    /// The error that reading ends with.
    #[track_caller]
    pub fn assert_refused(self, stream: impl Read, what: &str) -> tenarc::Error {
        match self.read(stream) {
            Ok(models) => panic!("{self:?} {what}: read {} models", models.len()),
            Err(error) => error,
        }
    }

    #[track_caller]
    pub fn assert_read(self, stream: impl Read, what: &str) {
        match self.read(stream) {
            Ok(models) => assert!(Self::is_whole(&models), "{self:?} {what}: other models"),
            Err(error) => panic!("{self:?} {what}: {error}"),
        }
    }
}

/// Bytes that a form writes.
pub fn plain(form: Form) -> Vec<u8> {
    let mut bytes = Vec::new();
    form.write(&mut bytes).unwrap();
    bytes
}

/// A test as another process, which is ended with the test that started it.
pub struct Peer(Option<Child>);

impl Peer {
    pub fn start(test: &str, role: &str, dir: &Path) -> Self {
        Self(Some(child::command(&[], test, role, dir).spawn().unwrap()))
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// Waits for its end; it must have found everything as it should be. Processes have timeouts of
    /// their own wherever they wait for each other.
    #[track_caller]
    pub fn succeeds(mut self) {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{errors}");
        // A name that fits no test would run none.
        assert!(said.contains("1 passed"), "{said}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A writer that takes part of what it is given, as sockets do.
pub struct Partly<W>(pub W);

impl<W: Write> Write for Partly<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(1000)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
