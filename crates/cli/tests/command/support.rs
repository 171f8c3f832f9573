//! Creates test files, and runs the program on them.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ndarray::{Array, IxDyn};
use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::{DynTensor, OArchive, Tensor, Value};

/// A temporary directory for one test.
pub struct Dir(tempfile::TempDir);

impl Dir {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Saves an archive of one value.
    pub fn save(&self, name: &str, value: &(impl Serialize + ?Sized)) -> PathBuf {
        self.save_all(name, &[(None, value)])
    }

    /// Saves an archive of several values, with or without names.
    pub fn save_all<T: Serialize + ?Sized>(
        &self,
        name: &str,
        values: &[(Option<&str>, &T)],
    ) -> PathBuf {
        let path = self.file(name);
        let options = SaveOptions::default().with_sync(SyncLevel::Off);
        let mut out = OArchive::create(&path, options).unwrap();
        for (name, value) in values {
            match name {
                Some(name) => out.save_as(name, value).unwrap(),
                None => out.save(value).unwrap(),
            };
        }
        out.finish().unwrap();
        path
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub bytes: Vec<u8>,
    pub err: String,
}

impl Ran {
    pub fn out(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    /// Checks that the run succeeded without a message, and returns its standard output.
    #[track_caller]
    pub fn good(&self) -> &str {
        assert_eq!((self.status, self.err.as_str()), (0, ""), "{self:?}");
        self.out()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.out()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that the run failed, with the reason on standard error and nothing on standard output.
    #[track_caller]
    pub fn failed(&self, status: i32, why: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.err.contains(why), "{self:?}");
        assert!(self.err.starts_with("tenarc: ") || self.err.starts_with("error: "), "{self:?}");
        assert_eq!(self.out(), "", "{self:?}");
    }
}

pub fn command(dir: &Dir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenarc"));
    command
        .current_dir(dir.path())
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("COLORTERM");
    command
}

/// Runs the program in a directory.
pub fn run<A: AsRef<OsStr>>(dir: &Dir, args: &[A]) -> Ran {
    run_with(dir, args, b"")
}

/// Runs the program with the given standard input.
pub fn run_with<A: AsRef<OsStr>>(dir: &Dir, args: &[A], input: &[u8]) -> Ran {
    let mut command = command(dir);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran {
        status: output.status.code().expect("ended by itself"),
        bytes: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A tensor of the numbers 0, 1, 2, …
pub fn ramp(shape: &[usize]) -> Tensor<Array<f32, IxDyn>> {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|at| at as f32).collect();
    Tensor(Array::from_shape_vec(IxDyn(shape), values).unwrap())
}

/// A value with metadata, tensors in buffers, tensors in the metadata, and a plain vector of numbers.
#[derive(Serialize, Clone)]
pub struct Model {
    pub name: String,
    pub version: u32,
    pub rate: f32,
    pub layers: Vec<Layer>,
    pub curve: Vec<f64>,
    pub note: Option<String>,
}

#[derive(Serialize, Clone)]
pub struct Layer {
    pub weight: Tensor<Array<f32, IxDyn>>,
    pub bias: Tensor<Array<f32, IxDyn>>,
}

pub fn model() -> Model {
    let layer = |rows| Layer { weight: ramp(&[rows, 64]), bias: ramp(&[rows]) };
    Model {
        name: "small \"one\"".into(),
        version: 3,
        rate: 0.1,
        layers: vec![layer(32), layer(10)],
        curve: (0..300).map(f64::from).collect(),
        note: None,
    }
}

/// A map from names to tensors, like checkpoints of other programs.
pub fn flat(entries: &[(&str, DynTensor)]) -> Value {
    let entry = |(name, tensor): &(&str, DynTensor)| {
        (Value::Text((*name).into()), Value::Tensor(Box::new(tensor.clone())))
    };
    Value::Map(entries.iter().map(entry).collect())
}

/// Changes a byte of a file.
pub fn flip(path: &Path, at: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 1;
    std::fs::write(path, bytes).unwrap();
}
